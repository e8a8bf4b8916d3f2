// node customers.js PORT CUSTOMERS REQUESTS: each customer asks so often, one thing at a time.
'use strict';

const http = require('node:http');

const [port, customers, requests] = process.argv.slice(2).map(Number);
const agent = new http.Agent({ keepAlive: true, maxSockets: customers });

function ask(path) {
    return new Promise((resolve, reject) => {
        http.get({ agent, host: '127.0.0.1', path, port }, (answer) => {
            answer.resume();
            answer.on('end', () => resolve(answer.statusCode === 200));
        }).on('error', reject);
    });
}

async function customer(who) {
    let answers = 0;
    for (let i = 0; i < requests; i++) {
        const item = `item-${(who * 7 + i) % 100}`;
        if (await ask(i % 4 === 3 ? `/order/${item}/${1 + i % 9}` : `/price/${item}`))
            answers++;
    }
    return answers;
}

Promise.all(Array.from({ length: customers }, (_, who) => customer(who))).then((all) => {
    console.log(`answers ${all.reduce((sum, some) => sum + some, 0)}`);
    agent.destroy();
});
