"""`ppt stat`: each number of each frame, field, group and slice, in all formats."""

import collections
import csv
import io
import json
import math
import re
from fractions import Fraction

from check_spans import paired
from dumped import in_range, intervals, percentile

SHARES = {"p50": Fraction(1, 2), "p90": Fraction(9, 10), "p99": Fraction(99, 100), "p999": Fraction(999, 1000)}
UNITS = {"ns": 1, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3_600 * 10**9}
KEYS = ["nulls", "min", "mean", "sd", *SHARES, "max"]


def check(capture, found):
    whole = answer(capture, [])
    expected = dict(describe(capture, capture.frames, {}, None))
    compare("stat", whole, expected, capture, found)
    texts(capture, whole, found)
    for by in ["tid", "pid", "verb"]:
        groups(capture, by, found)
    slices(capture, 50_000_000, "50ms", found)
    some(capture, found)
    alone(capture, found)
    drawn(capture, whole, found)
    spans(capture, found)
    read(capture, whole, found)


def answer(capture, args):
    text = capture.tools.run("stat", *capture.files, "--format", "json", *args)
    rows = json.loads(text)
    keyed = {}
    for row in rows:
        if "frame" not in row or row["frame"].endswith(("_spans", "_chains")):
            continue
        key = (row["buffer"], row["frame"], row["field"], row.get("step"), tuple(row["by"].items()), row["slice"])
        assert key not in keyed, key
        keyed[key] = row
    return keyed


def is_key(capture, row):
    """Whether it is a field by which frames are known: its values are no amounts."""
    fields = {field["name"]: field for field in capture.kind(row["buffer"], row["frame"])["fields"]}
    field = fields.get(row["field"], {})
    return bool(field.get("key") or "hash" in field)


def step_field(kind):
    """The field that says which half of a span, or which step of a chain, a frame is."""
    return {"span": "edge", "chain": "step"}.get(kind["kind"])


def steps_of(capture, kind, buffer, own):
    """By column, the steps whose frames set it: one of them has another value than 0. None: of all frames."""
    step = step_field(kind)
    values = collections.defaultdict(list)
    enums = {enum["name"]: enum["values"] for enum in capture.schemas[buffer].get("enums", [])}
    for frame in own:
        word = frame.cells[step] if step else None
        for field in kind["fields"]:
            if field["type"] in ("enum", "bool") and not field.get("array") and field["name"] != step:
                zero = next((name for name, value in enums.get(field.get("enum"), []) if int(value) == 0), 0)
                values[field["name"]].append((word, frame.cells[field["name"]] != zero))
        for column, value in capture.numbers(buffer, kind, frame):
            values[column].append((word, value is not None and value != 0))
    return {column: sorted({word for word, is_set in pairs if is_set and word}) or [None] for column, pairs in values.items()}


def describe(capture, frames, by, slice_, width=None, of_all=None):
    """What is expected of these frames: by the key of an answer's row. `width` is that of a slice, in ns.

    Which steps set a field, all frames of the answer say: `of_all`."""
    of_kind = collections.defaultdict(list)
    for frame in frames:
        of_kind[frame.buffer, frame.kind].append(frame)
    for (buffer, name), own in of_kind.items():
        kind = capture.kind(buffer, name)
        key = lambda field, step=None: (buffer, name, field, step, tuple(by.items()), slice_)
        yield key(None), of_frames(capture, buffer, kind, own, width)
        step = step_field(kind)
        everything = [frame for frame in of_all or frames if (frame.buffer, frame.kind) == (buffer, name)]
        steps = steps_of(capture, kind, buffer, everything)
        if step:
            yield key(step), of_words({"name": step, "type": "enum"}, own)
        for field in kind["fields"]:
            if field.get("key") or "hash" in field:
                yield key(field["name"]), of_keys(field, own)
        for column, words in steps.items():
            if is_key(capture, {"buffer": buffer, "frame": name, "field": column}):
                continue
            for word in words:
                part = [frame for frame in own if word is None or frame.cells[step] == word]
                yield key(column, word), of_column(capture, buffer, kind, column, part, width)


def of_column(capture, buffer, kind, column, own, width):
    field = next((field for field in kind["fields"] if field["name"] == column), {})
    if field.get("type") in ("enum", "bool"):
        return of_words(field, own)
    row = of_numbers([dict(capture.numbers(buffer, kind, frame))[column] for frame in own])
    if column in intervals(kind):
        row["busy"] = busy(capture, intervals(kind)[column], own, width)
    return row


def of_keys(field, own):
    values = [frame.cells[field["name"]] for frame in own]
    return {"count": len(values), "nulls": 0, "distinct": len(set(values))}


def of_frames(capture, buffer, kind, own, width):
    times = [capture.at(buffer, kind, frame) for frame in own]
    threads = {(frame.pid, frame.tid) for frame in own}
    row = {"count": len(own), "threads": len(threads)}
    if None not in times:
        first, last = min(times), max(times)
        row.update(first=first, last=last)
        width = width or last - first
        row["rate"] = Fraction(len(own), width) * 10**9 if width else None
    return row


def of_words(field, own):
    words = collections.Counter()
    for frame in own:
        value = frame.cells[field["name"]]
        if field["type"] == "bool":
            value = "true" if value else "false"
        words[str(value)] += 1
    return {"count": len(own), "nulls": 0, "values": dict(words)}


def of_numbers(values):
    """Statistics of numbers, exactly; NaN has no place among them."""
    known = sorted(it for it in values if it is not None and it == it)
    row = {"count": len(known), "nulls": len(values) - len(known)}
    if not known:
        return {**row, **dict.fromkeys(["min", "mean", "sd", "max", *SHARES])}
    row.update(min=known[0], max=known[-1])
    for name, share in SHARES.items():
        row[name] = percentile(known, share)
    if all(not isinstance(it, float) or math.isfinite(it) for it in known):
        exact = [Fraction(it) for it in known]
        mean = sum(exact) / len(exact)
        row["mean"] = mean
        row["sd"] = None
        if len(exact) > 1:
            variance = sum((it - mean) ** 2 for it in exact) / (len(exact) - 1)
            row["sd"] = root(variance)
    return row


def root(variance):
    """The square root, as near as a float has it."""
    scale = 10**40
    return Fraction(math.isqrt(variance.numerator * scale // variance.denominator), 10**20)


def busy(capture, edges, own, width):
    """The sum of the lengths by the time from the first start to the last end."""
    pairs = []
    for frame in own:
        at = [in_range(capture.time(field, frame)) for field in edges]
        if None not in at:
            pairs.append(at)
    if not pairs:
        return None
    span = width or max(end for _, end in pairs) - min(start for start, _ in pairs)
    return Fraction(sum(end - start for start, end in pairs), span) if span > 0 else None


def compare(what, shown, expected, capture, found):
    found.same(f"{what}: rows too many", sorted(map(str, shown.keys() - expected.keys())), [])
    found.same(f"{what}: rows too few", sorted(map(str, expected.keys() - shown.keys())), [])
    for key, row in expected.items():
        got = shown.get(key)
        if got is None:
            continue
        for name, value in row.items():
            within = 0 if isinstance(value, int) and name not in SHARES else 1e-9
            if isinstance(value, float) and not math.isfinite(value):
                value = str(value)
            found.same(f"{what} {'.'.join(map(str, key[:4]))} {key[4:]} {name}", got.get(name), value, within)


def texts(capture, whole, found):
    """The other formats have the numbers of JSON."""
    text = capture.tools.run("stat", *capture.files, "--format", "tsv")
    rows = list(csv.DictReader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE))
    for row in rows:
        if not row["frame"] or row["frame"].endswith(("_spans", "_chains")):
            continue
        key = (row["buffer"], row["frame"], row["field"] or None, row["step"] or None, (), None)
        got = whole.get(key)
        if got is None:
            continue
        if "values" in got:
            found.same(f"stat tsv {key} {row['value']}", int(row["count"]), got["values"].get(row["value"], 0))
            continue
        for name in ["count", "threads", "first", "last", "rate", *KEYS, "busy"]:
            if name not in got or row.get(name) is None:
                continue
            value = got[name]
            if value is None:
                found.same(f"stat tsv {key} {name}", row[name], "")
            elif isinstance(value, str):
                found.same(f"stat tsv {key} {name}", row[name], value)
            elif name in ("min", "max") and isinstance(value, int):
                # A text format has each digit.
                found.same(f"stat tsv {key} {name}", Fraction(row[name]), Fraction(value))
            else:
                found.same(f"stat tsv {key} {name}", float(row[name]), float(value))


def groups(capture, by, found):
    expected = {}
    for buffer, kind in capture.each_kind():
        if by not in ("tid", "pid") and by not in [field["name"] for field in kind["fields"]]:
            continue
        own = collections.defaultdict(list)
        for frame in capture.of(buffer, kind):
            own[getattr(frame, by) if by in ("tid", "pid") else frame.cells[by]].append(frame)
        for value, frames in own.items():
            word = None if value is None else str(value)
            expected.update(describe(capture, frames, {by: word}, None, None, capture.frames))
    if not expected:
        return
    shown = answer(capture, ["--by", by])
    if by == "verb":
        expected = {key: row for key, row in expected.items() if key[2] != "verb"}
        shown = {key: row for key, row in shown.items() if key[2] != "verb"}
    compare(f"stat --by {by}", shown, expected, capture, found)


def slices(capture, width, text, found):
    expected = {}
    own = collections.defaultdict(list)
    for frame in capture.frames:
        at = capture.at(frame.buffer, capture.kind(frame.buffer, frame.kind), frame)
        own[at if at is None else at - at % width].append(frame)
    if None in own or len(own) > 2_000:
        return
    for at, frames in own.items():
        expected.update(describe(capture, frames, {}, at, width, capture.frames))
    compare("stat --every", answer(capture, ["--every", text]), expected, capture, found)


def some(capture, found):
    """A selection says what it says of the frames that it selects."""
    chosen = [frame for frame in capture.frames if frame.seqno > 20 and frame.ring == 0]
    if chosen:
        expected = dict(describe(capture, chosen, {}, None))
        compare("stat --where", answer(capture, ["--where", "seqno > 20 AND ring = 0"]), expected, capture, found)


def alone(capture, found):
    """`--self`: intervals without what lies in them, as the table `slices` has it."""
    lengths = collections.defaultdict(list)
    for row in capture.sql("SELECT buffer, name, self FROM slices WHERE name LIKE '%.%'"):
        lengths[row["buffer"], *row["name"].split(".", 1)].append(row["self"])
    shown = answer(capture, ["--self"])
    shown = {key[:3]: row for key, row in shown.items() if key[2] and key[2].endswith(".self")}
    for (buffer, frame, column), values in lengths.items():
        got = shown.get((buffer, frame, f"{column}.self"))
        what = f"stat --self {buffer}.{frame}.{column}"
        if got is None:
            found.say(f"{what}: no row")
            continue
        for name, value in of_numbers(values).items():
            if name != "nulls":
                found.same(f"{what} {name}", got[name], value, 1e-9)


def drawn(capture, whole, found):
    """`--hist` draws each value once."""
    for (buffer, frame, field, step, _, _), row in whole.items():
        if field is None or step is not None or row.get("p50") is None or row["count"] < 2:
            continue
        text = capture.tools.run("stat", *capture.files, "-b", buffer, "--frame", frame, "--hist", field)
        counts = [re.search(r"  ([\d,]+)  ", line.strip() + "  ") for line in text.splitlines()[1:]]
        drawn = sum(int(count[1].replace(",", "")) for count in counts if count)
        infinite = re.search(r"([\d,]+) infinite", text)
        infinite = int(infinite[1].replace(",", "")) if infinite else 0
        found.same(f"stat --hist {frame}.{field}", drawn + infinite, row["count"])
        kind = capture.kind(buffer, frame)
        values = [dict(capture.numbers(buffer, kind, it)).get(field) for it in capture.of(buffer, kind)]
        found.same(f"stat --hist {frame}.{field}: infinite", infinite, sum(isinstance(it, float) and math.isinf(it) for it in values))


def spans(capture, found):
    """Spans are counted and measured as their pairs are."""
    rows = json.loads(capture.tools.run("stat", *capture.files, "--format", "json"))
    for buffer, kind in capture.each_kind():
        if kind["kind"] != "span":
            continue
        pairs, _, _ = paired(capture, buffer, kind)
        own = [row for row in rows if (row.get("buffer"), row.get("frame")) == (buffer, f"{kind['name']}_spans")]
        lengths = next((row for row in own if row["field"] in ("dur", "ppt_dur")), None)
        if lengths is None:
            found.same(f"stat {kind['name']}_spans: no row", len(pairs), 0)
            continue
        for name, value in of_numbers([end[1] - begin[1] for begin, end in pairs.values()]).items():
            if name != "nulls":
                found.same(f"stat {kind['name']}_spans {name}", lengths[name], value, 1e-9)


def read(capture, whole, found):
    """The text has the numbers of JSON, to three digits."""
    names = collections.Counter(frame for buffer, frame, field, *_ in whole if field is None)
    rows, title = {}, None
    for line in capture.tools.run("stat", *capture.files, "--format", "text").splitlines():
        if line and not line.startswith(" "):
            title = line.split("   ")[0]
            said = re.search(r"   ([\d,]+) frames?", line)
            rows[title, None] = int(said[1].replace(",", "")) if said else None
        elif title:
            rows[title, re.split(r"  +", line.strip())[0]] = line
    for (buffer, frame, field, step, _, _), row in whole.items():
        title = frame if names[frame] == 1 else f"{buffer}.{frame}"
        if field is None:
            found.same(f"stat text {title}", rows.get((title, None)), row["count"])
            continue
        line = rows.get((title, f"{field} ({step})" if step else field))
        if line is None:
            found.say(f"stat text {title}.{field} ({step}): no line")
            continue
        for name in ["p50", "p90", "p99", "max"]:
            said = re.search(rf"{name} (-?[\d,.]+(?:e-?\d+)?)(?: (ns|µs|ms|s|min|h|B))?(?=  |$)", line)
            value = row.get(name)
            if said is None or not isinstance(value, (int, float)) or not math.isfinite(value):
                continue
            shown = Fraction(said[1].replace(",", "")) * UNITS.get(said[2], 1)
            off = abs(shown - Fraction(value))
            found.same(f"stat text {title}.{field} {name} ({said[0]}, {value})", off <= max(abs(Fraction(value)) / 180, Fraction(1, 1000)), True)
