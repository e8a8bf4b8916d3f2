"""The tables of spans and chains: which frames belong together, how long they take, in which state."""

import collections
import itertools

from dumped import in_range, ns


def check(capture, found):
    names = collections.defaultdict(list)
    for buffer, kind in capture.each_kind():
        if kind["kind"] in ("span", "chain"):
            names[kind["name"]].append((buffer, kind))
    gaps = [(row, ns(row["ts_lo"]), ns(row["ts_hi"])) for row in capture.sql("SELECT * FROM gaps") if row["cause"] != "left_out"]
    for name, kinds in names.items():
        for buffer, kind in kinds:
            rows = capture.sql(f'SELECT * FROM "{buffer}"."{name}_{kind["kind"]}s"')
            check_one = spans if kind["kind"] == "span" else chains
            check_one(capture, buffer, kind, rows, gaps, found)


def stamped(capture, buffer, kind):
    """Frames with their times, in the order in which the tables take them."""
    field = next((it for it in kind["fields"] if it.get("at") or it.get("stamp")), None)
    keys = [it["name"] for it in kind["fields"] if it.get("key")]
    for frame in capture.of(buffer, kind):
        at = in_range(capture.time(field, frame)) if field else None
        yield frame, at, tuple(frame.cells[key] for key in keys)


def order(item):
    frame, at, _ = item
    return (at, frame.file, frame.ring, frame.seqno)


def across(kind):
    return kind.get("across", "process")


def scope(kind, frame, key):
    """Where a key counts: in a process, or on the host."""
    return (frame.pid, key) if across(kind) == "process" else key


def paired(capture, buffer, kind):
    """The closed spans, what has no other half, and the keys of frames without a time."""
    by_key = collections.defaultdict(list)
    untimed = set()
    for item in stamped(capture, buffer, kind):
        frame, at, key = item
        if at is None:
            untimed.add(scope(kind, frame, key))
        else:
            by_key[scope(kind, frame, key)].append(item)
    pairs, alone = {}, {}
    for own in by_key.values():
        begins = []
        for item in sorted(own, key=order):
            frame, at, key = item
            if frame.cells["edge"] == "begin":
                begins.append(item)
            elif begins:
                begin = begins.pop(0 if kind.get("fifo") else -1)
                pairs[place(capture, begin[0])] = (begin, item)
            else:
                alone[place(capture, frame)] = (item, "orphan")
        alone.update({place(capture, it[0]): (it, "open") for it in begins})
    return pairs, alone, untimed


def spans(capture, buffer, kind, rows, gaps, found):
    pairs, alone, untimed = paired(capture, buffer, kind)
    what = f"{buffer}.{kind['name']}_spans"
    closed = [row for row in rows if row["state"] == "closed"]
    frames = capture.of(buffer, kind)
    found.same(f"{what}: each frame once", 2 * len(closed) + len(rows) - len(closed), len(frames))
    found.same(f"{what}: closed", len(closed), len(pairs))
    for row in closed:
        pair = pairs.get(row_place(row))
        if pair is None:
            found.say(f"{what}: {row_place(row)} is not closed")
            continue
        begin, end = pair
        found.same(f"{what} {row_place(row)} end", (row["end_ring"], row["end_seqno"], row["end_pid"]), (end[0].ring, end[0].seqno, end[0].pid))
        found.same(f"{what} {row_place(row)} dur", row["dur"], end[1] - begin[1])
        found.same(f"{what} {row_place(row)} ts", ns(row["ts"]), begin[1])
        for side, item in (("begin", begin), ("end", end)):
            for field in kind["fields"]:
                if not field.get("key") and f"{side}_{field['name']}" in row and field["type"].startswith(("u", "i")):
                    got = row[f"{side}_{field['name']}"]
                    found.same(f"{what} {side}_{field['name']}", got, item[0].cells[field["name"]])
    for row in rows:
        if row["state"] == "closed":
            continue
        expected = alone.get(row_place(row))
        if expected is None:
            found.same(f"{what} {row_place(row)} state", row["state"], "lost")
            continue
        (frame, at, key), state = expected
        if scope(kind, frame, key) in untimed or may_hide(gaps, buffer, kind, frame, at, state):
            state = "lost"
        elif row["state"] == "lost" and any(gap["buffer"] == buffer for gap, _, _ in gaps):
            # The times of a gap are wider where the program sets times itself.
            continue
        found.same(f"{what} {row_place(row)} state", row["state"], state)


def may_hide(gaps, buffer, kind, frame, at, state):
    """Whether the other half may be among the missing frames."""
    for row, low, high in gaps:
        if row["buffer"] != buffer or across(kind) == "process" and row["pid"] != frame.pid:
            continue
        if state == "open" and (high is None or high >= at) or state == "orphan" and (low is None or low <= at):
            return True
    return False


def place(capture, frame):
    return (capture.ids[frame.file], frame.pid, frame.ring, frame.seqno)


def row_place(row):
    return (row["capture"], row["pid"], row["ring"], row["seqno"])


def chains(capture, buffer, kind, rows, gaps, found):
    steps = next(it for it in capture.schemas[buffer]["enums"] if it["name"] == step_enum(kind))
    names = [value[0] if isinstance(value, list) else value for value in steps["values"]]
    by_key = collections.defaultdict(list)
    for item in stamped(capture, buffer, kind):
        by_key[item[2]].append(item)
    keys = [it["name"] for it in kind["fields"] if it.get("key")]
    what = f"{buffer}.{kind['name']}_chains"
    found.same(f"{what}: rows", len(rows), len(by_key))
    lossy = any(row["buffer"] == buffer for row, _, _ in gaps)
    for row in rows:
        own = by_key[tuple(row[key] for key in keys)]
        taken = collections.defaultdict(list)
        for item in sorted((it for it in own if it[1] is not None), key=order):
            taken[item[0].cells["step"]].append(item[1])
        firsts = [taken[name][0] if taken[name] else None for name in names]
        missing = [name for name in names if not taken[name]]
        repeated = [name for name in names if len(taken[name]) > 1]
        for name, first in zip(names, firsts):
            found.same(f"{what} {name}_ts", ns(row[f"{name}_ts"]), first)
        known = [it for it in firsts if it is not None]
        if any(it[1] is None for it in own):
            state = "lost"
        elif repeated:
            state = f"repeated {','.join(repeated)}"
        elif missing:
            state = f"missing {','.join(missing)}"
        elif known != sorted(known):
            state = "out of order"
        else:
            state = "complete"
            found.same(f"{what} total", row["total"], known[-1] - known[0])
        for (one, a), (other, b) in itertools.pairwise(zip(names, firsts)):
            if state == "complete":
                found.same(f"{what} {one}_to_{other}", row[f"{one}_to_{other}"], b - a)
        if not (lossy and row["state"] == "lost" and missing):
            found.same(f"{what} {row['seqno']} state", row["state"], state)


def step_enum(kind):
    return next(it for it in kind["fields"] if it["name"] == "step")["enum"]
