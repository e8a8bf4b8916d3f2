// errands THREADS ROUNDS: errands_main.c in JavaScript, in worker threads.
'use strict';

const assert = require('node:assert');
const { Worker, isMainThread, workerData } = require('node:worker_threads');
const { ErrandEdge, LegStep, Verb, errand, idle, leg, visit } = require('./errands');
const { line, rest } = require('./lines');

function id(thread, i) {
    return thread * 4294967296 + i;
}

function takeIn(thread, i) {
    errand.begin(id(thread, i), thread, i % 2 === 0 ? Verb.GET : Verb.PUT);
    leg.step(LegStep.leave, BigInt(id(thread, i)), thread);
    visit.begin(() => ({ name: `${thread}-${i}`, thread, when: 1000 + i }));
}

function done(thread, of, i) {
    leg.step(LegStep.pass_, () => ({ id: id(of, i), thread }));
    leg.step(2, id(of, i), thread);
    visit.end(`${of}-${i}`, thread, 2000 + i);
    errand.end(() => ({ bytes: i * 7, thread, id: id(of, i) }));
}

function work({ thread, threads, rounds, shared }) {
    for (let i = 0; i < rounds; i++)
        takeIn(thread, i);
    const begun = new Int32Array(shared);
    if (Atomics.add(begun, 0, 1) === threads - 1) {
        Atomics.store(begun, 1, 1);
        Atomics.notify(begun, 1);
    } else {
        Atomics.wait(begun, 1, 0);
    }
    for (let i = 0; i < rounds; i++)
        done(thread, (thread + threads - 1) % threads, i);
    idle.write(thread);
}

async function main(threads, rounds) {
    assert.strictEqual(ErrandEdge.end, 1);
    leg.step(null, 1, 1); // while nobody is attached, nothing is looked at
    console.log('ready');
    line();
    const shared = new SharedArrayBuffer(8);
    const ends = [];
    for (let thread = 0; thread < threads; thread++) {
        const worker = new Worker(__filename, { workerData: { thread, threads, rounds, shared } });
        ends.push(new Promise((resolve, reject) => {
            worker.on('error', reject);
            worker.on('exit', resolve);
        }));
    }
    await Promise.all(ends);
    assert.throws(() => leg.step(null, 1, 1), { message: 'leg.step (LegStep): null is none' });
    assert.throws(() => leg.step(256, 1, 1), { message: 'leg.step (LegStep): 256 does not fit' });
    console.log(`written ${threads * (7 * rounds + 1)}`);
    rest();
}

if (isMainThread)
    main(Number(process.argv[2]), Number(process.argv[3]));
else
    work(workerData);
