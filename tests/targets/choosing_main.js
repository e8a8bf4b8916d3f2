// choosing_main.c in JavaScript, where a block is the function that makes the fields.
'use strict';

const choosing = require('./choosing');
const { line } = require('./lines');

const { LegStep, NOW, bytes, job, leg, plain, slot, stamped, waits } = choosing;
let n = 0;
console.log('ready');
for (let rounds = line(); rounds !== null; rounds = line()) {
    const ran = [0, 0, 0, 0, 0, 0, 0];
    const made = (form, fields) => {
        ran[form]++;
        return fields;
    };
    for (let i = 0; i < Number(rounds); i++) {
        n++;
        plain.write(() => made(0, { n }));
        stamped.write(() => made(1, { n, when: NOW }));
        job.begin(() => made(2, { id: n }));
        leg.step(LegStep.leave, () => made(3, { id: n }));
        leg.step(LegStep.arrive, () => made(3, { id: n }));
        job.end(() => made(2, { id: n }));
        const held = slot.scope();
        held.end(() => made(4, { name: 'node' }));
        bytes.add(1);
        waits.observe(5);
    }
    console.log(`ran ${ran.join(' ')}`);
}
