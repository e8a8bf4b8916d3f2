"""`ppt sql`: the tables that say what a capture has and misses, and those of frames."""

import collections

from check_info import take
from dumped import CPU, FLOATS, LOSSES, elements, in_range, intervals, ns, real

# Captures that a listener wrote.
LIVE = ["overrun", "watched", "flight"]
CAUSES = ["overrun", "disk", "corrupt", "unattended", "left_out"]


def check(capture, found):
    frames(capture, found)
    for buffer, kind in capture.each_kind():
        own_table(capture, buffer, kind, found)
    account(capture, found)
    gaps(capture, found)
    slices(capture, found)
    clocks(capture, found)
    threads(capture, found)
    absent(capture, found)


def key(capture, frame):
    return (capture.ids[frame.file], frame.buffer, frame.ring, frame.seqno, frame.pid)


def frames(capture, found):
    rows = capture.sql("SELECT capture, buffer, ring, seqno, pid, tid, frame, ts FROM frames")
    shown = {(r["capture"], r["buffer"], r["ring"], r["seqno"], r["pid"]): r for r in rows}
    found.same("frames: count", len(rows), len(capture.frames))
    found.same("frames: one row each", len(shown), len(rows))
    for frame in capture.frames:
        row = shown.get(key(capture, frame))
        if row is None:
            found.say(f"frames: no row of {frame}")
            continue
        kind = capture.kind(frame.buffer, frame.kind)
        at = capture.at(frame.buffer, kind, frame)
        found.same("frames: kind, thread and time", (row["frame"], row["tid"], ns(row["ts"])), (frame.kind, frame.tid, at))
    if capture.name in LIVE:
        early = capture.sql("SELECT count(*) AS n FROM frames WHERE drained < ts")
        found.same("frames: drained before they were written", early[0]["n"], 0)
    total = capture.sql("SELECT count(*) AS n FROM frames")
    found.same("frames: count(*)", total[0]["n"], len(capture.frames))


def own_table(capture, buffer, kind, found):
    rows = capture.sql(f'SELECT * FROM "{buffer}"."{kind["name"]}"')
    own = capture.of(buffer, kind)
    where = f"{buffer}.{kind['name']}"
    found.same(f"{where}: count", len(rows), len(own))
    fields = {field["name"] for field in kind["fields"]} | set(intervals(kind))
    name = lambda column: f"ppt_{column}" if column in fields else column
    standard = ["capture", "buffer", "ring", "seqno", "pid"]
    shown = {tuple(row[name(column)] for column in standard): row for row in rows}
    for frame in own:
        row = shown.get(key(capture, frame))
        if row is None:
            found.say(f"{where}: no row of {frame.seqno}")
            continue
        for column, value in cells(capture, kind, frame):
            got = row[column]
            if isinstance(value, Time):
                got, value = ns(got), value.ns
            found.same(f"{where} {frame.seqno} {column}", got, value, 1e-15)
        for column, edges in intervals(kind).items():
            value = capture.length(*edges, frame)
            found.same(f"{where} {frame.seqno} {column}", row[column], value)


class Time:
    def __init__(self, value):
        self.ns = value


def cells(capture, kind, frame):
    """The cells of a frame as SQL has them."""
    for field in kind["fields"]:
        ty = field["type"]
        if ty in ("ns", "tsc", "timeval", "timespec"):
            names = [field["name"]]
            if field.get("array"):
                names = [f"{field['name']}_{at}" for at in range(field["array"])]
            for name in names:
                value = capture.time(field, frame, name)
                is_cpu = field.get("clock") in CPU
                yield name, value if is_cpu else Time(in_range(value))
            continue
        for name, value in elements(field, frame):
            if ty in FLOATS:
                value = shown(float(value))
            elif ty == "bool":
                value = value != 0
            elif ty == "enum":
                value = str(value)
            yield name, value


def shown(value):
    """A float as JSON has it."""
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "inf", "-inf": "-inf"}[str(value)]
    return value


def account(capture, found):
    buffers, rings = collections.defaultdict(collections.Counter), {}
    for frame in capture.frames:
        own = capture.ids[frame.file], frame.pid, frame.buffer
        take(buffers, rings, own, frame.ring, frame.seqno, 1, "captured")
    for at in range(len(capture.files)):
        for gap in capture.gaps(at):
            own = capture.ids[at], gap["pid"], gap["buffer"]
            take(buffers, rings, own, gap["ring"], gap["first_seq"], gap["count"], gap["cause"])
    counted = collections.Counter()
    for row in capture.sql("SELECT * FROM account"):
        counted[row["capture"], row["pid"], row["buffer"], row["cause"]] += row["count"]
    for own, causes in buffers.items():
        for cause in ["captured", *LOSSES, "left_out"]:
            found.same(f"account {own} {cause}", counted[(*own, cause)], causes[cause])
    by_info = collections.Counter()
    for at, info in enumerate(capture.infos):
        for own in info["buffers"]:
            for cause, count in own["dropped"].items():
                by_info[capture.ids[at], own["pid"], own["name"], cause] += count
    for own, count in by_info.items():
        found.same(f"account {own}", counted[own], count)
    rows = capture.sql("SELECT * FROM rings")
    for row in rows:
        own = rings.get((row["capture"], row["pid"], row["buffer"], row["ring"]))
        if own is None:
            found.same(f"rings {row}", (row["frames"], row["lost"]), (0, 0))
            continue
        numbers = [own["counts"]["captured"], sum(own["counts"][it] for it in LOSSES)]
        expected = numbers if not own["first"] else [min(own["first"]), max(own["next"]), *numbers]
        got = [row["first_seq"], row["next_seq"], row["frames"], row["lost"]]
        found.same(f"rings {row['buffer']} {row['ring']}", got[-len(expected) :], expected)
    found.same("rings: rows", len({(r["capture"], r["pid"], r["buffer"], r["ring"]) for r in rows}), len(rows))
    for at, row in enumerate(sorted(capture.sql("SELECT * FROM captures"), key=lambda row: capture.ids.index(row["capture"]))):
        lost = sum(gap["count"] for gap in capture.gaps(at) if gap["cause"] in LOSSES)
        dropped = sum(sum(own["dropped"].values()) for own in capture.infos[at]["buffers"])
        expected = [sum(frame.file == at for frame in capture.frames), lost, dropped]
        found.same(f"captures {at}", [row[it] for it in ["frames", "lost", "dropped"]], expected)
        if row["complete"]:
            found.same(f"captures {at} bytes", row["bytes"], capture.files[at].stat().st_size)
        found.same(f"captures {at} complete", row["complete"], capture.infos[at]["complete"])
        found.same(f"captures {at} created", ns(row["created"]), capture.infos[at]["capture"]["created_realtime_ns"])
    found.same("sources: rows", len(capture.sql("SELECT * FROM sources")), sum(len(i["buffers"]) for i in capture.infos))


def gaps(capture, found):
    columns = ["buffer", "pid", "segment", "ring", "first_seq", "count", "cause"]
    expected = []
    for at in range(len(capture.files)):
        expected += [(capture.ids[at], *(gap[it] for it in columns)) for gap in capture.gaps(at)]
    rows = capture.sql("SELECT * FROM gaps")
    found.same("gaps", sorted((row["capture"], *(row[it] for it in columns)) for row in rows), sorted(expected))


def slices(capture, found):
    """Each interval of time that was taken, with what lies in it, by thread."""
    expected = []
    for frame in capture.frames:
        kind = capture.kind(frame.buffer, frame.kind)
        for name, (start, end) in intervals(kind).items():
            at = [in_range(capture.time(field, frame)) for field in (start, end)]
            is_cpu = start.get("clock") in CPU
            if None not in at and not is_cpu:
                own = (f"{frame.kind}.{name}", *key(capture, frame))
                expected.append([(frame.pid, frame.tid or (frame.buffer, frame.ring)), at[0], at[1], own])
    rows = capture.sql("SELECT * FROM slices")
    rows = [row for row in rows if "." in row["name"]]
    shown = {(row["name"], row["capture"], row["buffer"], row["ring"], row["seqno"], row["pid"]): row for row in rows}
    found.same("slices: count", len(rows), len(expected))
    threads = collections.defaultdict(list)
    for thread, start, end, own in expected:
        threads[thread].append((start, end, own))
    for own in threads.values():
        for start, end, name in own:
            row = shown.get(name)
            if row is None:
                found.say(f"slices: no row of {name}")
                continue
            found.same(f"slices {name} ts, dur", (ns(row["ts"]), row["dur"]), (start, end - start))
            around = [it for it in own if it[0] <= start and end <= it[1] and it[:2] != (start, end)]
            twins = [it for it in own if it[:2] == (start, end)]
            if len(twins) > 1:
                continue
            found.same(f"slices {name} depth", row["depth"], len(around))
            inner = min(around, key=lambda it: it[1] - it[0], default=None)
            parent = inner and inner[2][2:5]
            got = row["parent_seqno"] and (row["parent_buffer"], row["parent_ring"], row["parent_seqno"])
            found.same(f"slices {name} parent", got, parent)
            inside = [it for it in own if start <= it[0] and it[1] <= end and it[:2] != (start, end)]
            found.same(f"slices {name} self", row["self"], end - start - covered(inside))


def covered(pairs):
    """How much time some intervals take together."""
    total, until = 0, None
    for start, end, _ in sorted(pairs, key=lambda it: it[:2]):
        start = start if until is None else max(start, until)
        if end > start:
            total += end - start
            until = end
    return total


def clocks(capture, found):
    """Readings: as many as `ppt info` counts, and the first one says where the epoch is."""
    rows = capture.sql("SELECT * FROM clocks")
    for at, own in enumerate(capture.ids):
        info = capture.infos[at]["clock"]
        mine = [row for row in rows if row["capture"] == own]
        ticks = [row for row in mine if (row["clock_a"], row["clock_b"]) == ("tick", "monotonic")]
        found.same(f"clocks {at}: ticks", len(ticks), info["tick_readings"])
        epochs = [row for row in mine if (row["clock_a"], row["clock_b"]) == ("monotonic", "realtime")]
        if epochs:
            first = epochs[0]
            least, most = first["b"] - first["a_after"], first["b"] - first["a_before"]
            found.same(f"clocks {at}: epoch", least <= info["epoch_offset_ns"] <= most, True)
        for row in mine:
            found.same(f"clocks {at}: in order", row["a_before"] <= row["a_after"], True)
    # Bounds compare hosts, and these captures are of one.
    found.same("clock_bounds: rows", capture.sql("SELECT count(*) AS n FROM clock_bounds")[0]["n"], 0)


def threads(capture, found):
    """The names of threads that `ppt info` has."""
    expected = []
    for at, info in enumerate(capture.infos):
        last = {(it["pid"], it["tid"]): it["name"] for it in info.get("threads", [])}
        expected += [(capture.ids[at], *thread, name) for thread, name in last.items()]
    rows = capture.sql("SELECT * FROM threads WHERE ts_end IS NULL")
    found.same("threads", sorted((row["capture"], row["pid"], row["tid"], row["name"]) for row in rows), sorted(expected))


def absent(capture, found):
    """Without a file in the middle, the numbers between its neighbours are in no capture."""
    if len(capture.files) < 3:
        return
    first, last = 0, 2
    held = [collections.defaultdict(list) for _ in capture.files]
    for frame in capture.frames:
        held[frame.file][frame.pid, frame.buffer, frame.ring].append((frame.seqno, frame.seqno + 1))
    for at in range(len(capture.files)):
        for gap in capture.gaps(at):
            held[at][gap["pid"], gap["buffer"], gap["ring"]].append((gap["first_seq"], gap["first_seq"] + gap["count"]))
    expected = []
    for own in held[first].keys() & held[last].keys():
        before, after = max(it[1] for it in held[first][own]), min(it[0] for it in held[last][own])
        if before < after:
            expected.append((*own, before, after - before))
    files = [capture.files[first], capture.files[last]]
    rows = capture.tools.sql(files, "SELECT * FROM gaps WHERE cause = 'absent'")
    shown = [(row["pid"], row["buffer"], row["ring"], row["first_seq"], row["count"]) for row in rows]
    found.same("gaps: absent", sorted(shown), sorted(expected))
    found.same("gaps: absent numbers", bool(expected), True)
