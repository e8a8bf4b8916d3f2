// A hundred requests, each answered with a file: by turns on a connection that stays, and on one that ends, whose
// number is the file's in the next turn.
const fs = require('fs'), http = require('http');
const staying = new http.Agent({ keepAlive: true, maxSockets: 1 });
const server = http.createServer((request, response) =>
    fs.readFile('data', (error, data) => response.end(data)));
server.listen(0, '127.0.0.1', () => {
    let count = 0;
    const port = server.address().port;
    const get = () => {
        if (count++ === 100) {
            staying.destroy();
            return server.close();
        }
        const stays = count % 2 === 1;
        http.get({ port, agent: stays ? staying : false, path: '/' }, response =>
            response.resume().on(stays ? 'end' : 'close', () => setImmediate(get)));
    };
    get();
});
