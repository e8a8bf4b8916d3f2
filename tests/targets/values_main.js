// values THREADS ROUNDS: values_main.c in JavaScript, in worker threads.
'use strict';

const { Worker, isMainThread, workerData } = require('node:worker_threads');
const values = require('./values');
const clocks = require('./clocks');
const { line, rest } = require('./lines');

const { Small, Wide } = values;
const SINGLES = [NaN, Infinity, -Infinity, -0, 1e-45, 3.4028234663852886e38, 0.1, 16777216];
const DOUBLES = [
    NaN, Infinity, -Infinity, -0, Number.MIN_VALUE, Number.MAX_VALUE, 0.1, 9007199254740992,
];

function i8(i) {
    return i << 24 >> 24;
}

function i16(i) {
    return i << 16 >> 16;
}

function tv(seconds, micros) {
    return BigInt(seconds) * 1000000000n + BigInt(micros) * 1000n;
}

/** A number or a bigint: what has both forms gets them in turn. */
function either(i, number) {
    return i % 2 === 0 ? number : BigInt(number);
}

function every(thread, i) {
    values.every.write(
        thread, i, i8(i * 3), i * 5 & 0xff, i16(i * 257), i * 263 & 0xffff, -i, 4000000000 + i,
        either(i, -5000000000 * i), 0xffffffffffffffffn - BigInt(i), i * 0.25, i / 3, i % 2 === 0,
        either(i, 1000000007 * i), tv(1000000000 + i, i % 1000000),
        i % 3 === 0 ? Small.NONE : Small.SOME, i % 2 === 0 ? Wide.LOW : Wide.HIGH,
        `t${thread}-${i}`, Buffer.from([i, 1, 2, 255]), [i16(i), i16(-i), 7],
        new Float64Array([i, -0.5]), [tv(i, 5), null],
        i % 2 === 0 ? 'tab\there, back\\slash, \x1b[31m' : '');
}

/** The same by the form whose fields have names. */
function everyMade(thread, i) {
    values.every.write(() => ({
        text: i % 2 === 0 ? 'tab\there, back\\slash, \x1b[31m' : undefined,
        thread, i, a: i8(i * 3), b: i * 5 & 0xff, c: i16(i * 257), d: i * 263 & 0xffff, e: -i,
        f: 4000000000 + i, g: -5000000000 * i, h: 0xffffffffffffffffn - BigInt(i), x: i * 0.25,
        y: i / 3, even: i % 2 === 0, took: 1000000007 * i, when: tv(1000000000 + i, i % 1000000),
        small: 9, wide: i % 2 === 0 ? Wide.LOW : 9000000000n, name: `t${thread}-${i}`,
        raw: new DataView(Uint8Array.of(i, 1, 2, 255, 0, 77).buffer),
        three: Int16Array.of(i, -i, 7), pair: [i, -0.5], stamps: [either(i, i * 1e9 + 5000), 0],
    }));
}

function one(thread, i) {
    if (i % 3 === 2)
        everyMade(thread, i);
    else
        every(thread, i);
    values.little.write(thread, i, i * 7 & 0xffff);
    const flags = [];
    for (let bit = 0; bit < 9; bit++)
        flags.push((i >> bit & 1) !== 0);
    values.odd.write(
        thread, i, SINGLES[i % 8], DOUBLES[i % 8], '\u00e9\u20ac\u{1f600}', 'a\tb\n\\\x01',
        [Small.NONE, Small.MANY, i % 256], flags, 0xffffffffffffffffn - BigInt(thread),
        -0x8000000000000000n + BigInt(i), [-i, 0x7fffffffffffffffn], tv(i + 1, 1),
        tv(i + 2, 999999));
    clocks.tick.write(thread, i, BigInt(i) * 1000000000n + BigInt(i % 1000000000));
}

async function main(threads, rounds) {
    console.log('ready');
    line();
    const ends = [];
    for (let thread = 0; thread < threads; thread++) {
        const worker = new Worker(__filename, { workerData: { thread, rounds } });
        ends.push(new Promise((resolve, reject) => {
            worker.on('error', reject);
            worker.on('exit', resolve);
        }));
    }
    await Promise.all(ends);
    console.log(`written ${4 * threads * rounds}`);
    rest();
}

if (isMainThread)
    main(Number(process.argv[2]), Number(process.argv[3]));
else
    for (let i = 0; i < workerData.rounds; i++)
        one(workerData.thread, i);
