"""values.py THREADS ROUNDS: values_main.c in Python."""
import sys
import threading

import clocks
import values
from values import Small, Wide

INF = float("inf")
SINGLES = [float("nan"), INF, -INF, -0.0, 1e-45, 3.4028234663852886e38, 0.1, 16777216]
DOUBLES = [float("nan"), INF, -INF, -0.0, 5e-324, sys.float_info.max, 0.1, 2**53]


def tv(seconds, micros):
    return seconds * 10**9 + micros * 1000


def wrapped(number, bits):
    return (number + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def one(thread, i):
    values.every(
        thread=thread,
        i=i,
        a=wrapped(i * 3, 8),
        b=i * 5 % 256,
        c=wrapped(i * 257, 16),
        d=i * 263 % 65536,
        e=-i,
        f=4_000_000_000 + i,
        g=-5_000_000_000 * i,
        h=2**64 - 1 - i,
        x=i * 0.25,
        y=i / 3.0,
        even=i % 2 == 0,
        took=1_000_000_007 * i,
        when=tv(1_000_000_000 + i, i % 1_000_000),
        small=[Small.NONE, Small.SOME, 9][i % 3],
        wide=Wide.HIGH if i % 2 else Wide.LOW,
        name=f"t{thread}-{i}",
        raw=bytes([i % 256, 1, 2, 0xFF]),
        three=(i, -i, 7),
        pair=[i, -0.5],
        stamps=[tv(i, 5), 0],
        text="" if i % 2 else "tab\there, back\\slash, \x1b[31m",
    )
    values.little(thread, i, i * 7 % 65536)
    values.odd(
        # Not in their order, and some by way of a dictionary.
        control="a\tb\n\\\x01",
        cut="é€😀",
        f=SINGLES[i % 8],
        d=DOUBLES[i % 8],
        thread=thread,
        flags=[i >> bit & 1 for bit in range(9)],
        most=2**64 - 1 - thread,
        spans=(-i, 2**63 - 1),
        least=-(2**63) + i,
        **{"".join(["l", "ist"]): [Small.NONE, Small.MANY, i % 256], "i": i},
        at_start=tv(i + 1, 1),
        at_end=tv(i + 2, 999_999),
    )
    clocks.tick(thread, i, real=i * 10**9 + i % 10**9)


threads, rounds = int(sys.argv[1]), int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()


def work(thread):
    for i in range(rounds):
        one(thread, i)


crew = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
for it in crew:
    it.start()
for it in crew:
    it.join()
print("written", 4 * threads * rounds, flush=True)
sys.stdin.read()
