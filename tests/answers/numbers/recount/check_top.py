"""`ppt top --once` of a capture: frames, rates, percentiles to three digits, counters and losses."""

import collections
import math
import re
from fractions import Fraction

from check_spans import paired
from dumped import LOSSES

UNITS = {"ns": 1, "µs": 10**3, "ms": 10**6, "s": 10**9}


def check(capture, found):
    for at, file in enumerate(capture.files):
        text = capture.tools.run("top", file, "--once")
        head(capture, at, text, found)
        kinds(capture, at, text, found)
        threads(capture, at, capture.tools.run("top", file, "--once", "--threads"), found)


def number(text):
    return Fraction(text.replace(",", ""))


def head(capture, at, text, found):
    own = [frame for frame in capture.frames if frame.file == at]
    said = re.search(r"captured ([\d,]+)", text)
    found.same("top captured", number(said[1]) if said else 0, len(own))
    clock(capture.infos[at], text, found)
    gaps = collections.Counter()
    for gap in capture.gaps(at):
        gaps[gap["cause"]] += gap["count"]
    lost = {cause: gaps[cause] for cause in LOSSES if gaps[cause]}
    for info in capture.infos[at]["buffers"]:
        for cause, count in info["dropped"].items():
            if count:
                lost[cause] = lost.get(cause, 0) + count
    said = re.search(r"MISSING ([\d,]+)", text)
    found.same("top missing", number(said[1]) if said else 0, sum(lost.values()))
    for cause, count in lost.items():
        said = re.search(rf"{cause.replace('_', ' ')} ([\d,]+)", text)
        found.same(f"top {cause}", number(said[1]) if said else 0, count)


def clock(info, text, found):
    """The largest error of the clocks that buffers have stamps of, to three digits."""
    errors = {"tick": info["clock"]["tick_error_ns"], "monotonic": info["clock"]["monotonic_error_ns"]}
    used = [errors[buffer["clock"]] for buffer in info["buffers"] if buffer["clock"] in errors]
    said = re.search(r"times within ([\d,.]+) (\S+)", text)
    found.same("top knows times", "times not known yet" in text, None in used)
    found.same("top clock is there", bool(said), bool(used) and None not in used)
    if said and None not in used:
        shown = number(said[1]) * UNITS[said[2]]
        found.same(f"top {said[0]}, {max(used)} ns", abs(shown - max(used)) * 200 <= max(used), True)


def threads(capture, at, text, found):
    """Each ring with its thread, the last name of that, and how many frames are there."""
    lines = text.splitlines()
    top = next(n for n, line in enumerate(lines) if line.startswith("PROCESS, THREAD"))
    shown = collections.Counter()
    for line in lines[top + 1 :]:
        row = re.fullmatch(r"(.*?) +[\d.,e+-]+ +([\d,]+) +[\d,]+ +(\S+) +(\d+) [▁-█ ]*", line + " ")
        if row is None:
            found.say(f"top: no row of a thread: {line!r}")
            continue
        shown[row[1], int(number(row[2])), row[3], int(row[4])] += 1
    names = {(row["pid"], row["tid"]): row["name"] for row in capture.infos[at].get("threads", [])}
    comms = {row["pid"]: row["comm"] for row in capture.infos[at]["targets"]}
    counts = collections.Counter()
    for frame in capture.frames:
        if frame.file == at and frame.ring is not None:
            counts[frame.pid, frame.tid, frame.buffer, frame.segment, frame.ring] += 1
    expected = collections.Counter()
    for (pid, tid, buffer, _, ring), count in counts.items():
        name = names.get((pid, tid))
        who = f"{comms[pid]} {pid} {tid or '?'}" + (f" ({name})" if name else "")
        expected[who, count, buffer, ring] += 1
    # A ring whose frames were all lost has a row without frames.
    shown = +collections.Counter({row: n for row, n in shown.items() if row[1]})
    found.same("top threads", shown, expected)


def kinds(capture, at, text, found):
    lines = text.splitlines()
    names = [name for _, kind in capture.each_kind() for name in [kind["name"]]]
    for buffer, kind in capture.each_kind():
        own = [frame for frame in capture.of(buffer, kind) if frame.file == at]
        if not own:
            continue
        name = kind["name"] if names.count(kind["name"]) == 1 else f"{buffer}.{kind['name']}"
        line = next((it for it in lines if it.split()[:1] == [name] and not it.startswith(" ")), None)
        if line is None:
            found.say(f"top: no line of {name}")
            continue
        found.same(f"top {name} count", number(line.split()[2]), len(own))
        below = lines[lines.index(line) + 1 :]
        fields = {}
        for row in below:
            if not row.startswith("  "):
                break
            # A line of the frames of one step has its name behind the field's.
            words = row.split()
            fields[" ".join(words[:2]) if words[1:2] and words[1].startswith("(") else words[0]] = row
        values = collections.defaultdict(list)
        for frame in own:
            for column, value in capture.numbers(buffer, kind, frame):
                if value is not None and value == value:
                    values[column].append(value)
        rate(f"top {name} rate", number(line.split()[1]), len(own), lines[0], found)
        for column, all_values in values.items():
            if column in fields and len(fields[column].split()) > 3:
                spread(f"top {name} {column}", fields[column], all_values, found)
        if kind["kind"] == "span" and len(capture.files) == 1 and "spans" in fields:
            pairs, _, _ = paired(capture, buffer, kind)
            row = fields["spans"]
            found.same(f"top {name} `{row.strip()}`", number(row.split()[2]), len(pairs))
            rate(f"top {name} spans rate", number(row.split()[1]), len(pairs), lines[0], found)
            lengths = [end[1] - begin[1] for begin, end in pairs.values()]
            if lengths:
                spread(f"top {name} spans", " ".join(row.split()[:1] + row.split()[3:]), lengths, found)


def rate(what, shown, count, first_line, found):
    """The count by the time that the first line states, both to three digits."""
    length = re.search(r"  ([\d,.]+) (ns|µs|ms|s)  ended", first_line)
    if length is None or not number(length[1]):
        return
    expected = Fraction(count) * 10**9 / (number(length[1]) * UNITS[length[2]])
    found.same(f"{what} ({float(shown)}, {float(expected)})", abs(shown - expected) <= max(expected / 60, Fraction(1, 100)), True)


def spread(what, row, values, found):
    """The median, the 99th percentile and the greatest value, to three digits."""
    values = sorted(values)
    nearest = lambda share: values[math.floor((len(values) - 1) * share + 0.5)]
    cells = re.findall(r"(-?[\d,.]+(?:e-?\d+)?|-?inf)(?: (ns|µs|ms|s|B))?(?= |$)", row.split(None, 1)[1])
    for (text, unit), (name, value) in zip(cells, [("p50", nearest(0.5)), ("p99", nearest(0.99)), ("max", values[-1])]):
        if "inf" in text or math.isinf(value):
            found.same(f"{what} {name}", float(text), value)
            continue
        shown = Fraction(text.replace(",", "")) * UNITS.get(unit, 1)
        off = abs(shown - Fraction(value))
        found.same(f"{what} {name} ({row.strip()}, {value})", off <= max(abs(Fraction(value)) / 150, Fraction(1, 10**9)), True)
