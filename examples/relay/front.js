// node front.js PORT STOCK_PORT: answers GET /ITEM; the stock knows how many are left, and what one costs.
'use strict';

const { randomBytes } = require('node:crypto');
const http = require('node:http');
const { front_gave, front_took } = require('./work/front');

const [port, stock] = process.argv.slice(2).map(Number);
const agent = new http.Agent({ keepAlive: true });

/** A header of W3C's Trace Context: that of the question, if it has one. */
function traceparent(question) {
    const given = question.headers.traceparent;
    return /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(given) ? given
        : `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-01`;
}

/** The bytes of its identity. */
const trace = (header) => Buffer.from(header.slice(3, 35), 'hex');

const server = http.createServer((question, answer) => {
    const header = traceparent(question);
    const handled = front_gave.scope();
    // The functions run only while somebody is attached.
    front_took.write(() => ({ trace: trace(header) }));
    const give = (status, text) => {
        // A point comes before what it leads to: the frame before the answer.
        handled.end(() => ({ trace: trace(header), status, item: question.url.slice(1) }));
        answer.writeHead(status, { traceparent: header });
        answer.end(text);
    };
    const asked = { agent, headers: { traceparent: header }, host: '127.0.0.1', path: question.url, port: stock };
    http.get(asked, (reply) => {
        let text = '';
        reply.on('data', (some) => text += some);
        reply.on('end', () => give(reply.statusCode, text));
    }).on('error', (error) => give(502, `${error.message}\n`));
});
server.keepAliveTimeout = 60_000;
server.listen(port, '127.0.0.1', () => console.log(`port ${server.address().port}`));
