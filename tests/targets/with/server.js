// A web server and its client in one process, over one connection that is kept: server.js NUMBER.
const http = require('http');
const number = Number(process.argv[2]);
let answered = 0;
const server = http.createServer((request, response) => {
    answered++;
    response.end('hello');
});
server.listen(0, '127.0.0.1', () => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const ask = (left) => {
        if (left === 0) {
            agent.destroy();
            server.close(() => console.log(`answered ${answered}`));
            return;
        }
        const { port } = server.address();
        http.get({ host: '127.0.0.1', port, agent }, (response) => {
            response.resume();
            response.on('end', () => setImmediate(ask, left - 1));
        });
    };
    ask(number);
});
