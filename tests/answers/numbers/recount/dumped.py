"""What `ppt dump` says of a capture, as values of Python, and what a check needs to compare with it."""

import collections
import datetime
import json
import math
import re
import struct
import subprocess
from fractions import Fraction

EPOCH = datetime.datetime(1970, 1, 1)
LOW, HIGH = -(1 << 63), (1 << 63) - 1
INTEGERS = {"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "duration"}
CPU = {"thread_cpu", "process_cpu"}
FLOATS = {"f32", "f64"}
LOSSES = ["overrun", "disk", "corrupt"]


class Failed(Exception):
    """A command failed."""


class Tools:
    def __init__(self, ppt):
        self.ppt = ppt

    def run(self, *args, code=0):
        """stdout of a command."""
        done = subprocess.run([self.ppt, *map(str, args)], capture_output=True, stdin=subprocess.DEVNULL)
        self.said = done.stderr.decode()
        if done.returncode != code:
            raise Failed(f"{' '.join(map(str, args))}: exit {done.returncode}: {self.said}")
        return done.stdout.decode()

    def sql(self, files, query):
        """The rows of an answer: what JSON has."""
        text = self.run("sql", *files, query, "--format", "jsonl")
        return [json.loads(line) for line in text.splitlines()]


class Found:
    """What differs."""

    def __init__(self):
        self.name, self.lines, self.compared = "", [], 0

    def say(self, line):
        self.lines.append(f"{self.name}: {line}")

    def shown(self):
        """The lines; of those that differ only in their digits, the first three."""
        seen = collections.Counter()
        for line in self.lines:
            kind = re.sub(r"\d+", "0", line.split(": shown")[0])
            seen[kind] += 1
            if seen[kind] <= 3:
                yield line[:600]

    def same(self, what, shown, expected, within=0.0):
        """Compares; floats within a part of the expected value."""
        self.compared += 1
        if not equal(shown, expected, within):
            self.say(f"{what}: shown {shown!r}, is {expected!r}")


def equal(shown, expected, within):
    if isinstance(expected, bool) or isinstance(shown, bool):
        return shown is expected
    if isinstance(shown, (int, float, Fraction)) and isinstance(expected, (int, float, Fraction)):
        if shown == expected:
            return True
        for one in (shown, expected):
            if isinstance(one, float) and not math.isfinite(one):
                return repr(shown) == repr(expected)
        return abs(Fraction(shown) - Fraction(expected)) <= Fraction(within) * abs(Fraction(expected))
    return shown == expected


def ns(text):
    """A time of SQL as ns since the epoch."""
    if text is None or isinstance(text, int):
        return text
    head, _, rest = text.rstrip("Z").partition(".")
    whole = datetime.datetime.fromisoformat(head) - EPOCH
    seconds = whole.days * 86_400 + whole.seconds
    return seconds * 1_000_000_000 + int(rest.ljust(9, "0") or 0)


Frame = collections.namedtuple("Frame", "file pid buffer segment ring tid seqno kind cells")


class Capture:
    """Files that belong together, and every frame in them."""

    def __init__(self, folder, entry, tools):
        self.tools, self.name = tools, entry["name"]
        self.files = [folder / name for name in entry["files"]]
        self.schemas = {schema["buffer"]: schema for schema in entry["schemas"]}
        self.infos = [json.loads(tools.run("info", file, "--json")) for file in self.files]
        # CLOCK_REALTIME minus CLOCK_MONOTONIC; of real programs, only the capture knows.
        self.offset = entry["offset"] or self.infos[0]["clock"]["epoch_offset_ns"]
        # What no dump shows, file by file: readings of counters, masks, triggers. None: not known.
        self.told = entry["told"]
        self.ids = [info["capture"]["id"][:16] for info in self.infos]
        self.frames = [frame for at in range(len(self.files)) for frame in self.read(at)]

    def read(self, at):
        for line in self.tools.run("dump", self.files[at], "--time", "own", "--format", "jsonl").splitlines():
            row = json.loads(line)
            buffer = row.pop("buffer", None) or self.infos[at]["buffers"][0]["name"]
            pid = row.pop("pid", None) or self.infos[at]["buffers"][0]["pid"]
            kind = row.pop("frame", None) or self.kinds(buffer)[0]["name"]
            standard = {name: row.pop(name) for name in ["seqno", "ring", "tid"]}
            segment = row.pop("segment", None)
            names = set(columns(self.kind(buffer, kind)))
            cells = {name: value for name, value in row.items() if name in names}
            yield Frame(at, pid, buffer, segment, standard["ring"], standard["tid"], standard["seqno"], kind, cells)

    def kinds(self, buffer):
        return self.schemas[buffer]["frames"]

    def kind(self, buffer, name):
        return next(kind for kind in self.kinds(buffer) if kind["name"] == name)

    def each_kind(self):
        for buffer in sorted(self.schemas):
            for kind in self.kinds(buffer):
                yield buffer, kind

    def of(self, buffer, kind):
        return [it for it in self.frames if it.buffer == buffer and it.kind == kind["name"]]

    def gaps(self, at):
        """The missing frames of a file, as `ppt dump --gaps` has them."""
        rows = []
        for line in self.tools.run("dump", self.files[at], "--gaps", "--format", "jsonl").splitlines():
            row = json.loads(line)
            row.setdefault("pid", self.infos[at]["buffers"][0]["pid"])
            rows.append(row)
        return rows

    def sql(self, query):
        return self.tools.sql(self.files, query)

    # What fields mean.

    def time(self, field, frame, name=None):
        """A field of type time as ns since the epoch: none where it was not taken, or is negative."""
        name = name or field["name"]
        if field["type"] in ("timeval", "timespec"):
            rest = ("tv_sec", "tv_usec", 1_000) if field["type"] == "timeval" else ("tv_sec", "tv_nsec", 1)
            cells = [frame.cells.get(f"{name}.{it}") for it in rest[:2]]
            if None in cells:
                return None
            value = cells[0] * 1_000_000_000 + cells[1] * rest[2]
        else:
            value = frame.cells.get(name)
        if value is None:
            return None
        if field.get("clock") in ("monotonic",) and field["type"] != "tsc":
            value += self.offset
        return value

    def at(self, buffer, kind, frame):
        """The time of a frame."""
        for field in kind["fields"]:
            if field.get("at"):
                return in_range(self.time(field, frame))
        return None

    def numbers(self, buffer, kind, frame):
        """Every number of a frame by the name of its column: what `ppt stat` describes."""
        for field in kind["fields"]:
            if field["type"] in INTEGERS or field.get("clock") in CPU:
                yield from elements(field, frame)
            elif field["type"] in FLOATS:
                for name, value in elements(field, frame):
                    yield name, real(value, field["type"])
        for name, (start, end) in intervals(kind).items():
            yield name, self.length(start, end, frame)

    def length(self, start, end, frame):
        """The length of an interval, where it is known."""
        at = [self.time(field, frame) for field in (start, end)]
        at = at if start.get("clock") in CPU else [in_range(it) for it in at]
        if None in at or not LOW <= at[1] - at[0] <= HIGH:
            return None
        return at[1] - at[0]


def in_range(time):
    return time if time is not None and 0 < time <= HIGH else None


def real(value, ty):
    """A float as dump writes it: f32 in their shortest form."""
    if value is None:
        return None
    value = float(value)
    if ty == "f32" and math.isfinite(value):
        return struct.unpack("f", struct.pack("f", value))[0]
    return value


def elements(field, frame):
    names = [field["name"]]
    if field.get("array"):
        names = [f"{field['name']}_{at}" for at in range(field["array"])]
    return [(name, frame.cells.get(name)) for name in names]


def columns(kind):
    """The columns of a kind of frame in a dump."""
    for field in kind["fields"]:
        names = [field["name"]]
        if field.get("array"):
            names = [f"{field['name']}_{at}" for at in range(field["array"])]
        for name in names:
            halves = {"timeval": ["tv_sec", "tv_usec"], "timespec": ["tv_sec", "tv_nsec"]}
            for half in halves.get(field["type"], [None]):
                yield f"{name}.{half}" if half else name


def intervals(kind):
    """The intervals of a kind of frame: their two fields by their names."""
    found = collections.OrderedDict()
    for field in kind["fields"]:
        interval = field.get("interval")
        if interval:
            found.setdefault(interval["name"], {})[interval["edge"]] = field
    return {name: (edges["start"], edges["end"]) for name, edges in found.items()}


def percentile(values, share):
    """As numpy interpolates; `values` are sorted."""
    at = Fraction(share) * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    one, other = values[low], values[high]
    if at == low or one == other:
        return one
    if any(isinstance(it, float) and not math.isfinite(it) for it in (one, other)):
        return float(one) + (float(other) - float(one)) * float(at - low)
    return Fraction(one) + (Fraction(other) - Fraction(one)) * (at - low)
