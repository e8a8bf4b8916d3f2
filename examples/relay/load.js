// node load.js PORT CUSTOMERS QUESTIONS FILE: each customer asks so often, one question at a time, after 25 for
// `warm-up`, in which the JVM compiles. Writes the identity of each answer, and what it took in microseconds, to FILE.
'use strict';

const fs = require('node:fs');
const http = require('node:http');

const [port, customers, questions] = process.argv.slice(2).map(Number);
const agent = new http.Agent({ keepAlive: true, maxSockets: customers });
const took = [];

function ask(path) {
    const start = process.hrtime.bigint();
    return new Promise((resolve, reject) => {
        http.get({ agent, host: '127.0.0.1', path, port }, (answer) => {
            answer.resume();
            answer.on('end', () => {
                if (answer.statusCode !== 200)
                    return reject(new Error(`${path}: ${answer.statusCode}`));
                const us = Number((process.hrtime.bigint() - start) / 1000n);
                took.push({ path, us, trace: answer.headers.traceparent.slice(3, 35) });
                resolve();
            });
        }).on('error', reject);
    });
}

async function customer(who) {
    for (let i = 0; i < 25; i++)
        await ask('/warm-up');
    for (let i = 0; i < questions; i++)
        await ask(`/item-${(who * 7 + i) % 100}`);
}

Promise.all(Array.from({ length: customers }, (_, who) => customer(who))).then(() => {
    agent.destroy();
    fs.writeFileSync(process.argv[5], took.map(({ us, trace }) => `${trace}\t${us}\n`).join(''));
    const sorted = took.filter(({ path }) => path !== '/warm-up').map(({ us }) => us).sort((a, b) => a - b);
    const [half, most] = [0.5, 0.99].map((part) => (sorted[Math.floor(sorted.length * part)] / 1000).toFixed(1));
    console.log(`warm-up ${took.length - sorted.length}`);
    console.log(`answered ${sorted.length}: half within ${half} ms, 99 % within ${most} ms`);
});
