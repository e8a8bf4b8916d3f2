// A hundred requests, each on its own connection, and each answered with a file.
const fs = require('fs'), http = require('http');
const server = http.createServer((request, response) => {
    response.setHeader('connection', 'close');
    fs.readFile('data', (error, data) => response.end(data));
});
server.listen(0, '127.0.0.1', () => {
    let count = 0;
    const port = server.address().port;
    const get = () => count++ < 100
        ? http.get({ port, agent: false, path: '/' }, response => response.resume().on('close', get))
        : server.close();
    get();
});
