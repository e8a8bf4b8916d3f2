"""rows.py ROUNDS CALLS: nanoseconds a call of Python, by turns, for each line of stdin."""

import sys
import time

import python

NAMES = ["main", "worker-3", "acceptor", "0123456789abcdef"]


def span(calls):
    begin = python.request_begin
    for i in range(calls):
        begin(i, i, i >> 1, i, i)


def text(calls):
    named, names = python.named, NAMES
    for i in range(calls):
        named(i, i >> 1, i, i, names[i & 3])


def interval(calls):
    scope = python.handled_scope
    for i in range(calls):
        with scope(i, i >> 1, i, i):
            pass


def counter(calls):
    add = python.bytes_in_add
    for i in range(calls):
        add(i)


ROWS = {
    "Python: span, one tick": span,
    "Python: text, no tick": text,
    "Python: interval, two ticks": interval,
    "Python: counter": counter,
}

rounds, calls = map(int, sys.argv[1:3])
print("ready", flush=True)
for _ in sys.stdin:
    took = {name: [] for name in ROWS}
    # The first round warms up.
    for round in range(rounds + 1):
        for name, run in ROWS.items():
            start = time.perf_counter_ns()
            run(calls)
            if round > 0:
                took[name].append((time.perf_counter_ns() - start) / calls)
    for name, all in took.items():
        all.sort()
        print(f"{name}\t{all[0]}\t{all[len(all) // 2]}")
    print("done", flush=True)
