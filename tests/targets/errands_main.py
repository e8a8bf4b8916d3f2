"""errands_main.py THREADS ROUNDS: errands_main.c in Python."""
import sys
import threading

import errands
from errands import LegStep, Verb


def take_in(thread, i):
    errands.errand_begin(thread << 32 | i, thread, verb=Verb.PUT if i % 2 else Verb.GET)
    errands.leg_step(LegStep.leave, thread << 32 | i, thread)
    errands.visit_begin(name=f"{thread}-{i}", thread=thread, when=1000 + i)


def done(thread, of, i):
    errands.leg_step(LegStep["pass_"], id=of << 32 | i, thread=thread)
    errands.leg_step(2, thread=thread, id=of << 32 | i)
    errands.visit_end(f"{of}-{i}", thread, 2000 + i)
    errands.errand_end(bytes=i * 7, thread=thread, id=of << 32 | i)


threads, rounds = int(sys.argv[1]), int(sys.argv[2])
all_have_begun = threading.Barrier(threads)
assert errands.ErrandEdge.end == 1 and "as `begin`" in errands.errand_begin.__doc__
print("ready", flush=True)
sys.stdin.readline()


def work(thread):
    for i in range(rounds):
        take_in(thread, i)
    all_have_begun.wait()
    for i in range(rounds):
        done(thread, (thread + threads - 1) % threads, i)
    errands.idle(thread)


crew = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
for it in crew:
    it.start()
for it in crew:
    it.join()
try:
    errands.leg_step(thread=1)
    sys.exit("a step is needed")
except TypeError as error:
    assert "needs a step first, such as LegStep.leave" in str(error)
for wrong in ("edge", "at", "bytes"):
    try:
        errands.errand_begin(**{wrong: 1})
        sys.exit(f"{wrong} is no field of a begin")
    except TypeError as error:
        assert wrong in str(error)
print("written", threads * (7 * rounds + 1), flush=True)
sys.stdin.read()
