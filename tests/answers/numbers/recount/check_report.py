"""`ppt report`: the numbers of the page, visible and embedded."""

import collections
import html.parser
import json
import re
import tempfile
from fractions import Fraction

from check_spans import paired
from check_stat import busy, is_key, of_numbers
from dumped import LOSSES, intervals, ns

SPANS = "spans of "
FEW = "too few values"
# So many values have that percentile.
ENOUGH = {"p90": 10, "p99": 100, "p99.9": 1000}
UNITS = {"ns": 1, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3_600 * 10**9}


class Page(html.parser.HTMLParser):
    """The tables of a page, each with its heading, and all of its text."""

    def __init__(self):
        super().__init__()
        self.tables, self.text, self.heading, self.cell, self.skip = [], [], "", None, None

    def handle_starttag(self, tag, attributes):
        if tag in ("script", "style", "svg"):
            self.skip = self.skip or tag
        elif tag in ("h1", "h2", "h3", "h4", "summary"):
            self.heading, self.cell = "", None
        elif tag == "table":
            self.tables.append((self.heading, []))
        elif tag == "tr":
            self.tables[-1][1].append([])
        elif tag in ("td", "th"):
            self.cell = [""]
            self.tables[-1][1][-1].append(self.cell)

    def handle_endtag(self, tag):
        if tag == self.skip:
            self.skip = None
        elif tag == "table":
            self.cell, self.heading = None, ""

    def handle_data(self, data):
        if self.skip:
            return
        self.text.append(data)
        if self.cell is not None:
            self.cell[0] += data
        else:
            self.heading += data

    def table(self, *columns):
        """The rows of every table that begins with these columns."""
        for heading, rows in self.tables:
            names = [cell[0].strip() for cell in rows[0]] if rows else []
            if names[: len(columns)] == list(columns):
                yield heading, [dict(zip(names, (cell[0].strip() for cell in row))) for row in rows[1:]]


def check(capture, found):
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/page.html"
        capture.tools.run("report", *capture.files, "-o", path)
        text = open(path, encoding="utf-8").read()
    page = Page()
    page.feed(text)
    verdict(capture, "".join(page.text), found)
    glance(capture, page, found)
    threads(capture, page, found)
    fields(capture, page, found)
    embedded(capture, json.loads(re.search(r"<script type=\"application/json\" id=data>(.*?)</script>", text, re.S)[1]), found)


def number(text):
    return Fraction(text.replace(",", ""))


def near(what, text, value, found):
    """A number of three digits, maybe with a unit of time."""
    text = text.replace("–", "")
    said = re.fullmatch(r"(-?[\d,.]+)(?: (\S+))?", text)
    if said is None or value is None:
        found.same(what, text, "" if value is None else value)
        return
    scale = UNITS.get(said[2], 1)
    off = abs(number(said[1]) * scale - Fraction(value))
    found.same(f"{what} ({text}, {float(value)})", off <= max(abs(Fraction(value)) / 180, Fraction(scale, 1000)), True)


def percentile(what, text, name, numbers, found):
    """A percentile, or that there are too few values for it."""
    few = 0 < numbers["count"] < ENOUGH.get(name, 0)
    if few or text == FEW:
        found.same(f"{what}: too few values of {numbers['count']}", text == FEW, few)
    else:
        near(what, text, numbers.get(name), found)


def verdict(capture, text, found):
    lost = sum(gap["count"] for at in range(len(capture.files)) for gap in capture.gaps(at) if gap["cause"] in LOSSES)
    dropped = sum(sum(own["dropped"].values()) for info in capture.infos for own in info["buffers"])
    said = re.search(r"([\d,]+) of ([\d,]+) frames (?:are|is) missing", text)
    shown = [number(said[1]), number(said[2])] if said else [0, 0]
    total = len(capture.frames) + lost + dropped
    found.same("report: missing", shown, [lost + dropped, total if lost + dropped else 0])


def rows_of(capture):
    """What the overview has a row for: the frames of each name, or one interval of them."""
    names = collections.Counter(kind["name"] for _, kind in capture.each_kind())
    for buffer, kind in capture.each_kind():
        if buffer == "kernel":
            continue
        own = capture.of(buffer, kind)
        name = kind["name"] if names[kind["name"]] == 1 else f"{buffer}.{kind['name']}"
        yield name, buffer, kind, own


def glance(capture, page, found):
    shown = {}
    for _, rows in page.table("frame and interval", "count"):
        shown.update({row["frame and interval"]: row for row in rows})
    for name, buffer, kind, own in rows_of(capture):
        if not own:
            continue
        if not intervals(kind):
            row = shown.get(name)
            found.same(f"report {name}: count", row and number(row["count"]), len(own))
            continue
        for column, edges in intervals(kind).items():
            lengths = [capture.length(*edges, frame) for frame in own]
            expected = of_numbers(lengths)
            row = shown.get(f"{name}.{column}")
            if row is None:
                found.same(f"report {name}.{column}: no row, count", expected["count"], 0)
                continue
            found.same(f"report {name}.{column}: count", number(row["count"]), expected["count"])
            times = [capture.at(buffer, kind, frame) for frame in own]
            rate(f"report {name}.{column} rate", row["rate"], expected["count"], times, found)
            for statistic in ("p50", "p99", "max"):
                what = f"report {name}.{column} {statistic}"
                percentile(what, row[statistic], statistic, expected, found)
            share = busy(capture, edges, own, None)
            if share is not None and row["busy"]:
                near(f"report {name}.{column} busy", row["busy"].removesuffix(" %"), share * 100, found)
    for name, buffer, kind, own in rows_of(capture):
        if kind["kind"] == "span" and own:
            row = shown.get(f"{name}_spans.dur")
            pairs = paired(capture, buffer, kind)[0]
            found.same(f"report {name}_spans: count", number(row["count"]) if row else 0, len(pairs))
            if row and pairs:
                rows = capture.sql(f'SELECT ts FROM "{buffer}"."{kind["name"]}_spans"')
                rate(f"report {name}_spans rate", row["rate"], len(pairs), [ns(it["ts"]) for it in rows], found)


def rate(what, text, count, times, found):
    """How many there are a second, from the first to the last."""
    if None in times or max(times) == min(times) or not text:
        return
    near(what, text.removesuffix("/s"), Fraction(count) * 10**9 / (max(times) - min(times)), found)


def threads(capture, page, found):
    """Frames of each thread; spans, which belong to none, have rows of their own."""
    counted = collections.Counter()
    for frame in capture.frames:
        if frame.buffer != "kernel":
            counted[str(frame.pid), str(frame.tid or "")] += 1
    of_spans = collections.Counter()
    names = collections.Counter(kind["name"] for _, kind in capture.each_kind())
    for buffer, kind in capture.each_kind():
        if kind["kind"] == "span":
            name = kind["name"] if names[kind["name"]] == 1 else f"{buffer}.{kind['name']}"
            for row in capture.sql(f'SELECT pid FROM "{buffer}"."{kind["name"]}_spans"'):
                of_spans[str(row["pid"]), f"spans of {name}_spans.dur"] += 1
    for _, rows in page.table("host", "process", "thread", "frames"):
        # A thread may have a name behind its number.
        thread = lambda text: text if text.startswith(SPANS) else text.split(" ")[0]
        shown = {(row["process"], thread(row["thread"])): number(row["frames"]) for row in rows}
        spans = {key: shown.pop(key) for key in list(shown) if key[1].startswith(SPANS)}
        found.same("report: threads", shown, dict(counted))
        found.same("report: spans", spans, dict(of_spans))


def fields(capture, page, found):
    """The other numbers of a frame are in a table of its section."""
    tables = [rows for _, rows in page.table("field", "count", "min")]
    expected = []
    for name, buffer, kind, own in rows_of(capture):
        values = collections.defaultdict(list)
        for frame in own:
            for column, value in capture.numbers(buffer, kind, frame):
                if not is_key(capture, {"buffer": buffer, "frame": kind["name"], "field": column}):
                    values[column].append(value)
        expected.append({column: of_numbers(all_values) for column, all_values in values.items()})
    for rows in tables:
        # Which frame's it is, the names and the counts say.
        shown = {row["field"]: number(row["count"]) for row in rows}
        of_rows = [it for it in expected if any(it.get(name, {}).get("count") == shown[name] for name in shown)]
        if len(of_rows) != 1:
            continue
        for row in rows:
            if row["field"] not in of_rows[0]:
                continue
            own = of_rows[0][row["field"]]
            found.same(f"report {row['field']} count", number(row["count"]), own["count"])
            for statistic in ("min", "p50", "p99", "max", "mean", "sd"):
                text, value = row[statistic].removesuffix(" B"), own.get(statistic)
                if text == FEW or statistic in ENOUGH and own["count"] < ENOUGH[statistic]:
                    percentile(f"report {row['field']} {statistic}", text, statistic, own, found)
                    continue
                is_plain = value is not None and 0.001 <= abs(value) < 1e6 or value == 0
                if is_plain and value == value and "e" not in text:
                    near(f"report {row['field']} {statistic}", text, value, found)


def embedded(capture, data, found):
    own = [frame for frame in capture.frames if frame.buffer != "kernel"]
    kinds = [kind for kind in (data["frames"] or {"kinds": []})["kinds"] if kind]
    shown = sum(len(kind["times"]) for kind in kinds)
    found.same("report data: all frames", shown if data["all"] or not own else "a part", len(own))
    for kind in kinds:
        cells = {field["name"]: field for field in kind["fields"]}
        seqnos = cells.get("seqno") or cells.get("ppt_seqno")
        if seqnos:
            expected = [frame.seqno for frame in own if frame.kind == kind["label"].split(".")[-1] and kind["label"].count(".") == 0]
            if expected:
                found.same(f"report data {kind['label']} seqno", sum(map(int, seqnos["values"])), sum(expected))
    lanes = [lane for lane in data["lanes"] if not lane["spans"]]
    found.same("report data: frames of threads", sum(lane["frames"] for lane in lanes), len(own))
