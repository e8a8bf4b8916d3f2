// cost.js FOLDER ROUNDS CALLS: nanoseconds a call, by turns, for each line of stdin.
'use strict';

const fs = require('node:fs');
const { channel } = require('node:diagnostics_channel');
const path = require('node:path');
const { performance } = require('node:perf_hooks');

const folder = path.resolve(process.argv[2]);
const [rounds, calls] = process.argv.slice(3).map(Number);
const { bytes_in, handled, named, request } = require(folder);
const c = require(path.join(folder, 'cost_c.node'));
const names = ['main', 'worker-3', 'acceptor', '0123456789abcdef'];
const nobody = channel('cost');
const somebody = channel('cost.seen');
let seen = 0;
somebody.subscribe(({ kind }) => { seen += kind; });
// What many programs log with, if npm has installed it beside the package.
let pino = null;
try {
    pino = require(path.join(folder, '../node_modules/pino'));
} catch { }

const loops = {
    'loop': (n) => { let x = 0; for (let i = 0; i < n; i++) x ^= i; return x; },
    'an empty call of C': (n) => { for (let i = 0; i < n; i++) c.empty(); },
    'Node: span, one tick': (n) => { for (let i = 0; i < n; i++) request.begin(i, i, i >> 1, i, i); },
    'Node: text, no tick': (n) => { for (let i = 0; i < n; i++) named.write(i, i >> 1, i, i, names[i & 3]); },
    'Node: interval, two ticks': (n) => {
        for (let i = 0; i < n; i++) {
            const scope = handled.scope();
            scope.end(i, i >> 1, i, i);
        }
    },
    'Node: counter': (n) => { for (let i = 0; i < n; i++) bytes_in.add(i); },
    'C: span, one tick': (n) => c.request(n),
    'C: text, no tick': (n) => c.named(n),
    'C: interval, two ticks': (n) => c.handled(n),
    'C: counter': (n) => c.counter(n),
    'diagnostics_channel, nobody': (n) => {
        for (let i = 0; i < n; i++)
            if (nobody.hasSubscribers)
                nobody.publish({ i });
    },
    'diagnostics_channel, a function': (n) => {
        for (let i = 0; i < n; i++)
            if (somebody.hasSubscribers)
                somebody.publish({ kind: i, who: i >> 1, a: i, b: i });
    },
};
const few = {
    'performance.now': (n) => { for (let i = 0; i < n; i++) performance.now(); },
    'performance.mark': (n) => {
        for (let i = 0; i < n; i++)
            performance.mark('cost');
        performance.clearMarks();
    },
};

if (pino) {
    const logger = (level) => pino({ level }, pino.destination({ dest: '/dev/null', minLength: 4096, sync: true }));
    const [silent, loud] = ['error', 'info'].map(logger);
    loops['pino, level disabled'] = (n) => {
        for (let i = 0; i < n; i++)
            silent.info({ kind: i, who: i >> 1, a: i, b: i }, 'handled');
    };
    few['pino to /dev/null'] = (n) => {
        for (let i = 0; i < n; i++)
            loud.info({ kind: i, who: i >> 1, a: i, b: i }, 'handled');
    };
}

function line() {
    const byte = Buffer.alloc(1);
    let text = '';
    while (fs.readSync(0, byte, 0, 1) === 1 && byte[0] !== 10)
        text += byte.toString();
    return byte[0] === 10 ? text : null;
}

function time(run, n) {
    const start = process.hrtime.bigint();
    run(n);
    return Number(process.hrtime.bigint() - start) / n;
}

console.log('ready');
while (line() !== null) {
    const measured = {};
    // The first round compiles.
    for (let round = 0; round <= rounds; round++)
        for (const [which, n] of [[loops, calls], [few, Math.ceil(calls / 100)]])
            for (const name in which) {
                const ns = time(which[name], n);
                if (round > 0)
                    (measured[name] ??= []).push(ns);
            }
    for (const name in measured) {
        const sorted = measured[name].sort((a, b) => a - b);
        console.log(`${name}\t${sorted[0]}\t${sorted[sorted.length >> 1]}`);
    }
    console.log('done');
}
