"""`ppt export`: tables have the cells of `ppt sql`; traces have every frame, or say how many they leave out."""

import collections
import csv
import io
import json
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile

from check_dump import plain
from check_spans import paired
from dumped import LOSSES, Failed, in_range, intervals, ns


def check(capture, found):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for buffer, kind in capture.each_kind():
            own = capture.of(buffer, kind)
            if own:
                tables(capture, buffer, kind, own, folder, found)
        if capture.frames:
            by_pyarrow(capture, folder, found)
        chrome(capture, folder, found)
        perfetto(capture, folder, found)
        ctf(capture, folder, found)


ROOT = pathlib.Path(__file__).resolve().parents[6]
ORACLE = ROOT / "target/oracles/bin/python"


# The Python that has Debian's python3-bt2.
SYSTEM = pathlib.Path("/usr/bin/python3")


def has(python, module):
    return python.exists() and subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0


def asked(program, *args, python=ORACLE):
    """The lines that another tool prints; none where it is not installed."""
    if not python.exists():
        print(f"skipped: {program.name}, analysis/oracles/install has not been run")
        return None
    done = subprocess.run([python, "-B", program, *args], capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{program.name} {args}: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def export(capture, form, to, *args):
    if to.is_dir():
        shutil.rmtree(to)
    if to.is_file():
        to.unlink()
    capture.tools.run("export", *capture.files, "--format", form, "-o", to, *args)
    return to


def tables(capture, buffer, kind, own, folder, found):
    what = f"{buffer}.{kind['name']}"
    select = ["-b", buffer, "--frame", kind["name"]]
    rows = capture.sql(f'SELECT * FROM "{buffer}"."{kind["name"]}"')
    text = export(capture, "jsonl", folder / "t.jsonl", *select).read_text()
    shown = [json.loads(line) for line in text.splitlines()]
    found.same(f"export jsonl {what}: rows", len(shown), len(own))
    key = lambda row: json.dumps(row, sort_keys=True)
    found.same(f"export jsonl {what}", sorted(map(key, shown)), sorted(map(key, rows)))
    text = export(capture, "csv", folder / "t.csv", *select).read_bytes().decode()
    lines = list(csv.DictReader(io.StringIO(text, newline="")))
    found.same(f"export csv {what}: rows", len(lines), len(own))
    pairs = zip(sorted(lines, key=place), sorted(shown, key=place))
    for line, row in pairs:
        for name, value in row.items():
            got = plain(line[name])
            if value is None:
                value = ""
            elif isinstance(value, bool):
                value = str(value).lower()
            elif isinstance(value, (int, float)) and got and float(got) == value:
                value = got
            found.same(f"export csv {what} {name}", got, str(value))


def place(row):
    names = ["capture", "buffer", "ring", "pid", "seqno"]
    values = [row.get(f"ppt_{name}", row.get(name)) for name in names]
    return [str(values[0]), str(values[1]), *(int(it) for it in values[2:])]


def by_pyarrow(capture, folder, found):
    """Parquet and Arrow have the cells of `ppt sql`, times to the nanosecond."""
    forms = {"ns.parquet": ["parquet", "--time", "ns"], "both.parquet": ["parquet"], "t.arrow": ["arrow"]}
    for name, (form, *more) in forms.items():
        export(capture, form, folder / name, *more)
    files = [path for name in forms for path in sorted(pathlib.Path(folder / name).rglob("*")) or [folder / name]]
    read = asked(pathlib.Path(__file__).with_name("read_table.py"), *files)
    if read is None:
        return
    tables = collections.defaultdict(list)
    for path, row in read:
        tables[path].append(row)
    for path in files:
        table = path.stem if path.parent.name in forms else None
        buffer, kind = whose(capture, table)
        if kind is None:
            continue
        rows = capture.sql(f'SELECT * FROM "{buffer}"."{kind}"')
        what = f"export {path.parent.name} {buffer}.{kind}"
        found.same(f"{what}: rows", len(tables[str(path)]), len(rows))
        for got, row in zip(sorted(tables[str(path)], key=place), sorted(rows, key=place)):
            same_cells(what, got, row, found)


def whose(capture, table):
    """The buffer and the frame that a file is called after; the only ones, where there is no other."""
    named = [(buffer, kind["name"]) for buffer, kind in capture.each_kind() if capture.of(buffer, kind)]
    for buffer, kind in named:
        if table in (kind, f"{buffer}.{kind}") or table is None and len(named) == 1:
            return buffer, kind
    return None, None


def same_cells(what, got, row, found):
    for name, value in row.items():
        cell = got[name]
        if isinstance(cell, int) and isinstance(value, str) and value[10:11] == "T":
            value = ns(value)
            if f"{name}_ns" in got:
                found.same(f"{what} {name}_ns", got[f"{name}_ns"], value)
                value -= value % 1_000
        elif isinstance(cell, float) and isinstance(value, (int, float)) and cell != value:
            # A float of 32 bits, in as many digits as it needs.
            value = cell if single(cell) == single(value) else value
        found.same(f"{what} {name}", cell, value)


def single(value):
    return struct.pack("f", value)


def events(capture):
    """What a trace has: a slice for each interval and each closed span, else one event for a frame."""
    expected = collections.Counter()
    for frame in capture.frames:
        kind = capture.kind(frame.buffer, frame.kind)
        slices = 0
        for name, (start, end) in intervals(kind).items():
            at = [in_range(capture.time(field, frame)) for field in (start, end)]
            if None not in at and at[0] <= at[1]:
                expected[f"{frame.kind}.{name}"] += 1
                slices += 1
        if not slices:
            expected[frame.kind] += 1
    for buffer, kind in capture.each_kind():
        if kind["kind"] == "span":
            expected[kind["name"]] += len(paired(capture, buffer, kind)[0])
    # What threads did is on tracks of their own.
    for row in capture.sql("SELECT coalesce(blocked_in, state) AS name FROM thread_states"):
        if row["name"] in expected:
            expected[row["name"]] += 1
    return +expected


def missing(capture):
    """What is missing, by cause: gaps, and frames that got no number."""
    causes = collections.Counter()
    for info in capture.infos:
        for own in info["buffers"]:
            causes.update(own["dropped"])
    for at in range(len(capture.files)):
        for gap in capture.gaps(at):
            if gap["cause"] in LOSSES:
                causes[gap["cause"]] += gap["count"]
    return +causes


def compare(form, names, capture, found):
    """The names of all events beside what is expected."""
    lost, shown, expected = collections.Counter(), collections.Counter(), events(capture)
    for name in names:
        said = re.match(r"lost ([\d,]+) \((\w+)\)", name)
        if said:
            lost[said[2]] += int(said[1].replace(",", ""))
        elif name in expected:
            shown[name] += 1
    found.same(f"export {form}: lost", dict(lost), dict(missing(capture)))
    for name in expected:
        found.same(f"export {form}: events {name}", shown[name], expected[name])


def chrome(capture, folder, found):
    trace = json.loads(export(capture, "chrome", folder / "t.json").read_text())
    compare("chrome", [it["name"] for it in trace["traceEvents"] if it["ph"] in ("X", "i", "I")], capture, found)


def perfetto(capture, folder, found):
    path = export(capture, "perfetto", folder / "t.pftrace")
    shown = asked(ROOT / "analysis/oracles/trace.py", "perfetto", path)
    if shown is not None:
        compare("perfetto", [it["name"] for it in shown if "name" in it], capture, found)


def ctf(capture, folder, found):
    """As babeltrace2 reads it: each frame once."""
    if not has(SYSTEM, "bt2"):
        print("skipped: ctf, python3-bt2 is not installed")
        return
    exported = export(capture, "ctf", folder / "ctf")
    if capture.name == "far":
        # babeltrace2 reads no time at the limit of 63 bits, in the year 2262.
        return
    shown = asked(ROOT / "analysis/oracles/trace.py", "ctf", exported, python=SYSTEM)
    expected = collections.Counter((frame.buffer, frame.kind) for frame in capture.frames)
    names = collections.Counter((it["cat"], it["name"].split(":")[-1].split(".")[-1]) for it in shown if "name" in it)
    for own in expected:
        found.same(f"export ctf: events {own}", names[own], expected[own])
    discarded = sum(it["discarded"] for it in shown if "discarded" in it)
    found.same("export ctf: discarded", discarded, sum(missing(capture).values()))
