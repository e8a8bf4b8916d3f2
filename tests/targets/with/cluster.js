// A hundred requests to a worker of a cluster, each on a connection that the first process accepts.
const cluster = require('cluster'), http = require('http');
if (cluster.isPrimary) {
    const worker = cluster.fork();
    worker.on('message', port => {
        let count = 0;
        const get = () => count++ < 100
            ? http.get({ port, agent: false, path: '/' }, response => response.resume().on('end', get))
            : worker.kill();
        get();
    });
} else {
    http.createServer((request, response) => {
        response.setHeader('connection', 'close');
        response.end('answer');
    }).listen(0, '127.0.0.1', function () { process.send(this.address().port); });
}
