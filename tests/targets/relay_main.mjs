// relay ROUNDS: relay_main.c in JavaScript, as a module that imports its frames.
import { hash128, hashU64, passed, received, sent } from './relay/index.mjs';
import { line, rest } from './lines.js';

const rounds = Number(process.argv[2]);
console.log('ready');
line();
for (let number = 0; number < rounds; number++) {
    const text = `message ${number}`;
    sent.write(hashU64(number), 1000 + number);
    received.write(() => ({
        id: hashU64(BigInt(number)), body: hash128(Buffer.from(text)), number,
    }));
    passed.write(number, hash128(text));
}
console.log(`written ${3 * rounds}`);
rest();
