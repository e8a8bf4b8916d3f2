"""Counters and histograms: each reading and each sum, in `ppt sql`, `stat`, `info` and `top`."""

import collections
import json
from fractions import Fraction

from dumped import ns

PARTS = 16


def check(capture, found):
    if capture.told is None:
        return
    metrics = {}
    for at, told in enumerate(capture.told):
        for reading in told:
            if reading["told"] == "cells":
                schema = list(capture.schemas.values())[reading["source"]]
                metrics.setdefault(schema["buffer"], (schema["metrics"], []))[1].append((at, reading))
    for buffer, (own, readings) in metrics.items():
        counters(capture, buffer, list(cells(own)), readings, found)
        sums(capture, buffer, list(cells(own)), readings, found)
    other_tables(capture, found)


def cells(metrics):
    """Each metric with its first cell and the bounds of its buckets."""
    first = 0
    for metric in metrics:
        if metric["kind"] == "counter":
            yield metric, first, []
            first += 1
            continue
        bounds = buckets(metric)
        yield metric, first, bounds
        first += 1 + len(bounds)


def buckets(metric):
    """What each cell behind the sum counts: from, to."""
    if metric["type"] == "duration":
        edge = lambda index: index if index < PARTS else (PARTS + index % PARTS) << (index // PARTS - 1)
        return [(None, 0)] + [(edge(index), edge(index + 1)) for index in range(960)]
    low, high, count = metric["from"], metric["to"], metric["buckets"]
    edge = lambda index: low + -(-(high - low) * index // count)
    return [(None, low)] + [(edge(it), edge(it + 1)) for it in range(count)] + [(high, None)]


def signed(metric, value):
    return value - (1 << 64) if metric["type"] == "i64" and value >= 1 << 63 else value


def changes(readings, cell):
    """Of each reading of a cell that found it changed: file, time, ring, thread, value, change."""
    last = {}
    for at, reading in readings:
        for ring, tid, values in reading["rows"]:
            value = dict(map(tuple, values)).get(cell)
            if value is None:
                continue
            before = last.get(ring, 0)
            last[ring] = value
            if not reading["base"] and value != before:
                yield at, reading["mono"], ring, tid or None, value, (value - before) % (1 << 64)


def counters(capture, buffer, metrics, readings, found):
    rows = [row for row in capture.sql("SELECT * FROM counters") if row["buffer"] == buffer]
    expected = []
    for metric, first, bounds in metrics:
        if bounds:
            continue
        for at, mono, ring, tid, value, delta in changes(readings, first):
            value, delta = signed(metric, value), signed(metric, delta)
            expected.append((capture.ids[at], metric["name"], ring, mono + capture.offset, value, delta))
    shown = [(row["capture"], row["name"], row["ring"], ns(row["ts"]), row["value"], row["delta"]) for row in rows]
    key = lambda row: (row[1], -1 if row[2] is None else row[2], row[3])
    for got, value in zip(sorted(shown, key=key), sorted(expected, key=key)):
        found.same("counters", got, value)
    found.same("counters: rows", len(shown), len(expected))


def sums(capture, buffer, metrics, readings, found):
    """What was added while the captures were made: sums of counters, and buckets of histograms."""
    answer = json.loads(capture.tools.run("stat", *capture.files, "--format", "json"))
    shown = {row.get("counter") or row.get("histogram"): row for row in answer if "frame" not in row}
    table = [row for row in capture.sql("SELECT * FROM histograms") if row["buffer"] == buffer]
    for metric, first, bounds in metrics:
        name = metric["name"]
        if not bounds:
            added = sum(signed(metric, row[5]) for row in changes(readings, first))
            found.same(f"stat {name}", shown[name]["value"], added)
            continue
        counts = [(low, high, sum(row[5] for row in changes(readings, first + 1 + at)))
                  for at, (low, high) in enumerate(bounds)]
        counts = [it for it in counts if it[2]]
        total = sum(count for _, _, count in counts)
        found.same(f"stat {name} count", shown[name]["count"], total)
        for share, part in [("p50", Fraction(1, 2)), ("p90", Fraction(9, 10)), ("p99", Fraction(99, 100)),
                            ("p999", Fraction(999, 1000)), ("max", Fraction(1))]:
            found.same(f"stat {name} {share}", shown[name][share], bucket(counts, total, part))
        latest(capture, metric, first, bounds, readings, table, found)


def bucket(counts, total, part):
    """The bucket that the value with this share of all values at or below it is in."""
    rank = max(1, -(-total * part.numerator // part.denominator))
    seen = 0
    for low, high, count in counts:
        seen += count
        if seen >= rank:
            return {"lo": low, "hi": high}
    return None


def latest(capture, metric, first, bounds, readings, table, found):
    """The last reading of each ring in each file states all of its buckets."""
    last = {}
    for row in table:
        if row["name"] == metric["name"]:
            own = last.setdefault((row["capture"], row["ring"]), {})
            own.setdefault(ns(row["ts"]), []).append((row["lo"], row["hi"], row["count"], row["sum"]))
    expected = collections.defaultdict(dict)
    for at, reading in readings:
        for ring, tid, values in reading["rows"]:
            values = dict(map(tuple, values))
            buckets_ = [(low, high, values[first + 1 + it], values.get(first, 0))
                        for it, (low, high) in enumerate(bounds) if values.get(first + 1 + it)]
            if buckets_ and not reading["base"]:
                expected[capture.ids[at], ring][reading["mono"] + capture.offset] = buckets_
    key = lambda row: -1 if row[0] is None else row[0]
    for place, own in expected.items():
        for ts, rows in own.items():
            got = sorted(last.get(place, {}).get(ts, []), key=key)
            found.same(f"histograms {metric['name']} {place} {ts}", got, sorted(rows, key=key))


def other_tables(capture, found):
    """Masks and triggers, as they were written."""
    masks, triggers = [], []
    for at, told in enumerate(capture.told):
        for it in told:
            if it["told"] == "masks":
                masks.append((at, it))
            elif it["told"] == "trigger":
                triggers.append((capture.ids[at], it["mono"] + capture.offset, it["why"], it["seqno"], it["expression"] or None))
    rows = capture.sql("SELECT * FROM triggers")
    shown = [(row["capture"], ns(row["ts"]), row["why"], row["seqno"], row["expression"] or None) for row in rows]
    found.same("triggers", shown, triggers)
    expected = []
    for at, flip in masks:
        schema = list(capture.schemas.values())[flip["source"]]
        names = {number: frame["name"] for number, frame in enumerate(schema["frames"])}
        names.update({256 + number: metric["name"] for number, metric in enumerate(schema.get("metrics", []))})
        for number, enabled in flip["changes"]:
            own = (capture.ids[at], flip["mono"] + capture.offset, names[number], enabled)
            if number >= 256 or not flip["rings"]:
                expected.append((*own, None, None))
                continue
            for ring, first_enabled, first_disabled in flip["rings"]:
                expected.append((*own, ring, first_enabled if enabled else first_disabled))
    rows = capture.sql("SELECT * FROM masks")
    shown = [(r["capture"], ns(r["ts"]), r["name"], r["enabled"], r["ring"], r["first_seq"]) for r in rows]
    found.same("masks", sorted(map(str, shown)), sorted(map(str, expected)))
