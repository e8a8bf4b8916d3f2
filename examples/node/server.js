// node server.js PORT: a shop that tells prices and takes orders.
'use strict';

const http = require('node:http');
const { Page, order_size, ordered, price_list, request } = require('./work/shop');

let prices = new Map();
let asked = 0;

/** The mistake: whoever asks meanwhile waits, because this does not let the event loop go on. */
function reload() {
    const scope = price_list.scope();
    const until = Date.now() + 15;
    prices = new Map();
    for (let i = 0; i < 100 || Date.now() < until; i++)
        prices.set(`item-${i % 100}`, 100 + i % 100);
    scope.end(prices.size);
}

function cents(item) {
    if (asked++ % 200 === 0)
        reload();
    return prices.get(item) ?? 0;
}

const server = http.createServer((asks, answers) => {
    const handled = request.scope();
    const [, what, item, count] = asks.url.split('/');
    const isOrder = what === 'order';
    let text = `${cents(item)}\n`;
    if (isOrder) {
        ordered.add(Number(count));
        order_size.observe(Number(count));
        text = `${cents(item) * Number(count)}\n`;
    }
    // Whatever runs between here and the end of the answer is part of the request.
    answers.on('close', () => {
        const page = isOrder ? Page.ORDER : Page.PRICE;
        handled.end(page, answers.statusCode, text.length, item);
    });
    answers.end(text);
});
server.keepAliveTimeout = 60_000;
server.listen(Number(process.argv[2]), '127.0.0.1', () => {
    console.log(`port ${server.address().port}`);
});
