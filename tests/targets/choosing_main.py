"""choosing_main.c in Python, where arguments are evaluated before the module is asked."""
import sys

import choosing
from choosing import LegStep

print("ready", flush=True)
n = 0
for line in sys.stdin:
    for _ in range(int(line)):
        n += 1
        choosing.plain(n=n)
        choosing.stamped(n=n, when=choosing.now())
        choosing.job_begin(n)
        choosing.leg_step(LegStep.leave, n)
        choosing.leg_step(LegStep.arrive, n)
        choosing.job_end(n)
        with choosing.slot_scope(name="py"):
            pass
        choosing.bytes_add(1)
        choosing.waits_observe(5)
    print("ran 0 0 0 0 0 0 0", flush=True)
