"""What the kernel did: `thread_states`, `syscalls`, `faults`, and `ppt why`, whose parts come from them."""

import collections
import json

from dumped import intervals, ns


def check(capture, found):
    if "kernel" not in capture.schemas:
        found.same("thread_states of no kernel", capture.sql("SELECT count(*) AS n FROM thread_states")[0]["n"], 0)
        return
    frames = [frame for frame in capture.frames if frame.buffer == "kernel"]
    states = capture.sql("SELECT * FROM thread_states ORDER BY pid, tid, ts")
    tile(capture, frames, states, found)
    calls(capture, frames, found)
    faults(capture, frames, found)
    why(capture, states, found)


def tile(capture, frames, states, found):
    """The states of a thread follow each other without a hole, and add up to the time it was watched."""
    threads = collections.defaultdict(list)
    for row in states:
        threads[row["pid"], row["tid"]].append((ns(row["ts"]), row["dur"], row))
    last = max(frame.cells["at"] for frame in frames) + capture.offset
    for (pid, tid), own in threads.items():
        for (at, dur, _), (after, _, _) in zip(own, own[1:]):
            found.same(f"thread_states {tid}: no hole", after, at + dur)
        of_thread = [it for it in frames if it.pid == pid and it.cells.get("thread") == tid]
        known = [it.cells["at"] + capture.offset for it in of_thread if it.kind in ("watched", "thread_start")]
        if known:
            found.same(f"thread_states {tid}: begins", own[0][0], min(known))
        ends = [it.cells["at"] + capture.offset for it in of_thread if it.kind == "thread_end"]
        found.same(f"thread_states {tid}: ends", own[-1][0] + own[-1][1], ends[0] if ends else last)
        running(capture, frames, of_thread, own, tid, found)


def running(capture, frames, of_thread, own, tid, found):
    """A thread runs from each switch_in to its next switch_out, where nothing is lost between the two."""
    lost = [(it.cells["since"] or 0, it.cells["at"]) for it in frames if it.kind == "lost"]
    switches = [it for it in of_thread if it.kind in ("switch_in", "switch_out")]
    switches.sort(key=lambda it: it.cells["at"])
    shown = {at: dur for at, dur, row in own if row["state"] == "running"}
    for into, out in zip(switches, switches[1:]):
        if (into.kind, out.kind) != ("switch_in", "switch_out"):
            continue
        start, end = into.cells["at"], out.cells["at"]
        if any(low <= end and start <= high for low, high in lost):
            continue
        found.same(f"thread_states {tid}: running", shown.get(start + capture.offset), end - start)


def calls(capture, frames, found):
    rows = capture.sql("SELECT * FROM syscalls")
    shown = {(row["pid"], row["tid"], ns(row["ts"])): row for row in rows}
    enters = [it for it in frames if it.kind == "syscall_enter"]
    found.same("syscalls: rows", len(rows), len(enters))
    lost = [(it.cells["since"] or 0, it.cells["at"]) for it in frames if it.kind == "lost"]
    exits = collections.defaultdict(list)
    for frame in frames:
        if frame.kind == "syscall_exit":
            exits[frame.pid, frame.cells["thread"]].append(frame)
    for enter in enters:
        thread, at = enter.cells["thread"], enter.cells["at"]
        row = shown.get((enter.pid, thread, at + capture.offset))
        if row is None:
            found.say(f"syscalls: no row of {enter}")
            continue
        after = [it for it in exits[enter.pid, thread] if it.cells["at"] >= at]
        back = min(after, key=lambda it: it.cells["at"], default=None)
        call = enter.cells["call"]
        found.same("syscalls name", row["name"], str(call))
        if back and not any(low <= back.cells["at"] and at <= high for low, high in lost):
            found.same("syscalls dur", row["dur"], back.cells["at"] - at)
            found.same("syscalls result", row["result"], back.cells["result"])


def faults(capture, frames, found):
    rows = capture.sql("SELECT * FROM faults")
    shown = sorted((row["tid"], ns(row["ts"]), row["kind"], row["address"], row["cpu"]) for row in rows)
    own = [it for it in frames if it.kind == "page_fault"]
    cells = lambda it: [it.cells[name] for name in ("kind", "address", "cpu")]
    found.same("faults", shown, sorted((it.cells["thread"], it.cells["at"] + capture.offset, *cells(it)) for it in own))


PARTS = {"running": "running", "blocked": "blocked", "faulting": "blocked", "unknown": "unknown",
         "preempted": "runnable", "woken_late": "runnable"}


def why(capture, states, found):
    """The parts of an interval add up, and are what `thread_states` says of its time."""
    answer = json.loads(capture.tools.run("why", *capture.files, "--format", "json", "--slowest", "1000"))
    expected = 0
    for frame in capture.frames:
        kind = capture.kind(frame.buffer, frame.kind)
        expected += sum(capture.length(*edges, frame) is not None for edges in intervals(kind).values())
    slices = capture.sql("SELECT name, pid, tid, ts, dur FROM slices")
    found.same("why: entries", len(answer), len(slices))
    for entry in answer:
        shown = collections.Counter()
        for part in entry["parts"]:
            shown[PARTS[part["part"]]] += part["ns"]
        what = f"why {entry.get('seqno')} {entry['dur']}"
        found.same(f"{what}: parts add up", sum(shown.values()), entry["dur"])
        start = ns(entry["ts"])
        of_states = collections.Counter()
        for row in states:
            if (row["pid"], row["tid"]) == (entry["pid"], entry["tid"]):
                at = ns(row["ts"])
                overlap = min(start + entry["dur"], at + row["dur"]) - max(start, at)
                if overlap > 0:
                    of_states[row["state"]] += overlap
        of_states["unknown"] += entry["dur"] - sum(of_states.values())
        found.same(f"{what}: parts", +shown, +of_states)
        ran = collections.Counter()
        for part in entry["parts"]:
            for share in part["running_in"]:
                ran[share["name"]] += share["ns"]
        found.same(f"{what}: running in", ran, running_in(entry, states, slices))


def running_in(entry, states, slices):
    """The running time of an interval by the innermost slice in it: of those around, the last that began."""
    start, thread = ns(entry["ts"]), (entry["pid"], entry["tid"])
    end = start + entry["dur"]
    own = [(ns(row["ts"]), row["dur"], row["name"]) for row in slices if (row["pid"], row["tid"]) == thread]
    # Slices around the whole interval tell nothing.
    own = [it for it in own if it[0] < end and sum(it[:2]) > start and not (it[0] <= start and end <= sum(it[:2]))]
    pieces = [(ns(row["ts"]), ns(row["ts"]) + row["dur"]) for row in states
              if (row["pid"], row["tid"]) == thread and row["state"] == "running"]
    found = collections.Counter()
    for low, high in pieces:
        low, high = max(low, start), min(high, end)
        if low >= high:
            continue
        edges = {it for at, dur, _ in own for it in (at, at + dur) if low < it < high}
        edges = sorted(edges | {low, high})
        for from_, to in zip(edges, edges[1:]):
            around = [(at, -dur, name) for at, dur, name in own if at <= from_ and to <= at + dur]
            if around:
                found[max(around)[2]] += to - from_
    return found
