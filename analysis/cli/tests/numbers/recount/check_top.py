"""`ppt top --once` of a capture: frames, rates, percentiles to three digits, counters and losses."""

import collections
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


def number(text):
    return Fraction(text.replace(",", ""))


def head(capture, at, text, found):
    own = [frame for frame in capture.frames if frame.file == at]
    said = re.search(r"captured ([\d,]+)", text)
    found.same("top captured", number(said[1]) if said else 0, len(own))
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
        for column, all_values in values.items():
            if column in fields and len(fields[column].split()) > 3:
                greatest(f"top {name} {column}", fields[column], max(all_values), found)
        if kind["kind"] == "span" and len(capture.files) == 1 and "spans" in fields:
            pairs, _, _ = paired(capture, buffer, kind)
            row = fields["spans"]
            found.same(f"top {name} `{row.strip()}`", number(row.split()[2]), len(pairs))


def greatest(what, row, value, found):
    """The third number of a line, as it is written: with a unit, or rounded."""
    cells = re.findall(r"(-?[\d,.]+(?:e-?\d+)?|inf|-inf)(?: (ns|µs|ms|s|B))?(?= |$)", row.split(None, 1)[1])
    if len(cells) < 3:
        return
    text, unit = cells[2]
    if "inf" in text or "e" in text:
        found.same(what, float(text) if "inf" in text else abs(float(text) / float(value) - 1) < 0.01, value if "inf" in text else True)
        return
    shown = number(text) * UNITS.get(unit, 1)
    off = abs(shown - Fraction(value))
    found.same(f"{what} ({row.strip()}, {value})", off <= max(abs(Fraction(value)) / 200, Fraction(1, 10**9)), True)
