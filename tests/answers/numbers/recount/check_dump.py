"""`ppt dump`: its formats have the same cells, and its selections are parts of the whole."""

import csv
import io
import json
import math

from dumped import CPU, in_range


def check(capture, found):
    run = capture.tools.run
    for file in capture.files:
        for args in [[], ["--gaps"]]:
            text = run("dump", file, "--format", "jsonl", *args)
            objects = [json.loads(line, parse_float=str) for line in text.splitlines()]
            tsv = run("dump", file, *args).split("\n")[:-1]
            head = tsv[0].split("\t") if tsv else []
            found.same(f"dump {args}: rows of tsv", len(tsv) - 1, len(objects))
            for row, line in zip(objects, tsv[1:]):
                cells = dict(zip(head, map(plain, line.split("\t"))))
                compare(f"dump {args} tsv", row, cells, found)
            own = run("dump", file, "--format", "csv", *args)
            rows = list(csv.DictReader(io.StringIO(own, newline="")))
            found.same(f"dump {args}: rows of csv", len(rows), len(objects))
            for row, cells in zip(objects, rows):
                cells = {name: plain(cell) for name, cell in cells.items()}
                compare(f"dump {args} csv", row, cells, found)
        parts(capture, file, found)
        times(capture, file, found)


def times(capture, file, found):
    """In nanoseconds since the epoch, each time is what the program wrote, by its clock."""
    own = [frame for frame in capture.frames if frame.file == capture.files.index(file)]
    text = capture.tools.run("dump", file, "--time", "ns", "--format", "jsonl")
    for frame, line in zip(own, text.splitlines()):
        row = json.loads(line)
        for field in capture.kind(frame.buffer, frame.kind)["fields"]:
            if field["type"] in ("ns", "tsc") and not field.get("array") and field.get("clock") not in CPU:
                found.same("dump --time ns", row[field["name"]], in_range(capture.time(field, frame)))


def plain(cell):
    """What a cell of TSV means."""
    if "\\" not in cell:
        return cell
    out, at, raw = bytearray(), 0, cell.encode()
    while at < len(raw):
        if raw[at : at + 1] != b"\\":
            out.append(raw[at])
            at += 1
        elif raw[at + 1 : at + 2] == b"x":
            out.append(int(raw[at + 2 : at + 4], 16))
            at += 4
        else:
            out.append({b"t": 9, b"n": 10, b"\\": 92, b"r": 13}[raw[at + 1 : at + 2]])
            at += 2
    return bytes(out).decode(errors="replace")


def compare(what, row, cells, found):
    for name, value in row.items():
        shown = cells.get(name, "")
        if value is None:
            found.same(f"{what} {name}", shown, "")
        elif shown != str(value):
            # Text that is not UTF-8 differs by how it is replaced.
            same = "\ufffd" in str(value) or is_float(shown) and float(shown) == float(value)
            found.same(f"{what} {name}", shown if not same else value, value)
        else:
            found.compared += 1


def is_float(text):
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def parts(capture, file, found):
    """A selection by numbers, by time and by expression is a part, and its rows are those of the whole."""
    at = capture.files.index(file)
    whole = [frame for frame in capture.frames if frame.file == at]
    rows = lambda *args: [json.loads(it) for it in capture.tools.run("dump", file, "--format", "jsonl", *args).splitlines()]
    expected = sum(10 <= frame.seqno <= 30 for frame in whole)
    found.same("dump --from 10 --to 30", len(rows("--from", "10", "--to", "30")), expected)
    named = sorted((frame.seqno, frame.ring) for frame in whole if frame.ring != 0 and frame.seqno > 5)
    if named:
        shown = rows("--where", "ring <> 0 AND seqno > 5")
        found.same("dump --where", sorted((row["seqno"], row["ring"]) for row in shown), named)
    for buffer, kind in capture.each_kind():
        own = [frame for frame in whole if (frame.buffer, frame.kind) == (buffer, kind["name"])]
        if own:
            shown = rows("-b", buffer, "--frame", kind["name"])
            found.same(f"dump --frame {kind['name']}", len(shown), len(own))
