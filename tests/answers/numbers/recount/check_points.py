"""Points, edges and `ppt graph`: what led to what, and how long it took."""

import collections
import json
from fractions import Fraction

from dumped import ns, percentile


def check(capture, found):
    kinds = [(buffer, kind) for buffer, kind in capture.each_kind() if kind["kind"] == "point"]
    frames = [(frame, kind) for buffer, kind in kinds for frame in capture.of(buffer, kind)]
    rows = capture.sql("SELECT * FROM points")
    pairs = sum(max(len(sides(kind, "in")), 1) * max(len(sides(kind, "out")), 1) for _, kind in frames)
    found.same("points: rows", len(rows), pairs)
    if not frames:
        return
    edges = capture.sql("SELECT * FROM edges")
    names = ["pid", "ring", "seqno"]
    by_place = {(frame.pid, frame.ring, frame.seqno): (frame, kind) for frame, kind in frames}
    for edge in edges:
        if edge["kind"] != "hash":
            continue
        ends = [by_place[tuple(edge[f"{side}_{name}"] for name in names)] for side in ("src", "dst")]
        (one, _), (other, _) = ends
        at = [stamp(capture, *end) for end in ends]
        found.same("edges latency", edge["latency"], at[1] - at[0])
        found.same("edges ts", (ns(edge["src_ts"]), ns(edge["dst_ts"])), tuple(at))
        hashes = [identity(*ends[0], "out", edge["type"]), identity(*ends[1], "in", edge["type"])]
        found.same("edges: one identity", hashes[0], hashes[1])
    nearest(capture, by_place, edges, found)
    fifo(capture, by_place, edges, found)
    matching(capture, frames, edges, found)
    graph(capture, edges, found)


def sides(kind, side):
    return [(it[side], it["name"]) for it in kind["fields"] if it.get(side)]


def identity(frame, kind, side, hash_type):
    names = dict(sides(kind, side))
    return frame.cells[names[hash_type]] if hash_type in names else None


def stamp(capture, frame, kind):
    field = next(it for it in kind["fields"] if it.get("stamp") or it.get("at"))
    return capture.time(field, frame)


def by_identity(capture, by_place, point, side, hash_type):
    found = collections.defaultdict(list)
    for frame, kind in by_place.values():
        if kind["name"] == point:
            found[identity(frame, kind, side, hash_type)].append((stamp(capture, frame, kind), frame))
    return {key: sorted(own, key=lambda it: (it[0], it[1].seqno)) for key, own in found.items()}


def shown_edges(edges, one, other):
    return sorted((e["src_seqno"], e["dst_seqno"]) for e in edges if (e["src_point"], e["dst_point"]) == (one, other))


def nearest(capture, by_place, edges, found):
    """Each effect follows the latest cause before it, within half a second."""
    sent = by_identity(capture, by_place, "sent", "out", "message")
    expected = []
    for key, own in by_identity(capture, by_place, "received", "in", "message").items():
        for at, frame in own:
            before = [it for it in sent.get(key, []) if at - 500_000_000 <= it[0] < at]
            if before:
                expected.append((before[-1][1].seqno, frame.seqno))
    found.same("edges sent -> received", shown_edges(edges, "sent", "received"), sorted(expected))


def fifo(capture, by_place, edges, found):
    """Each effect follows the earliest cause before it that none has followed."""
    received = by_identity(capture, by_place, "received", "out", "payload")
    expected = []
    for key, own in by_identity(capture, by_place, "taken", "in", "payload").items():
        waiting = list(received.get(key, []))
        for at, frame in own:
            if waiting and waiting[0][0] < at:
                expected.append((waiting.pop(0)[1].seqno, frame.seqno))
    found.same("edges received -> taken", shown_edges(edges, "received", "taken"), sorted(expected))


def matching(capture, frames, edges, found):
    counted = collections.defaultdict(collections.Counter)
    for row in capture.sql("SELECT * FROM matching"):
        for name in ["outs", "ins", "certain", "possible", "unmatched_outs", "unmatched_ins"]:
            counted[row["type"]][name] += row[name]
    unmatched = capture.sql("SELECT * FROM unmatched")
    for hash_type, own in counted.items():
        for side, name in (("out", "outs"), ("in", "ins")):
            # What comes in goes on as it is, where nothing is stated to go out.
            own_sides = lambda kind: sides(kind, side) or sides(kind, "in")
            expected = sum(hash_type in dict(own_sides(kind)) for _, kind in frames)
            found.same(f"matching {hash_type} {name}", own[name], expected)
            alone = sum((row["type"], row["side"]) == (hash_type, side) for row in unmatched)
            found.same(f"matching {hash_type} unmatched_{name}", own[f"unmatched_{name}"], alone)
        for certainty in ("certain", "possible"):
            expected = sum((edge["type"], edge["certainty"]) == (hash_type, certainty) for edge in edges)
            found.same(f"matching {hash_type} {certainty}", own[certainty], expected)


def graph(capture, edges, found):
    answer = json.loads(capture.tools.run("graph", *capture.files, "--format", "json"))
    own = collections.defaultdict(list)
    for edge in edges:
        names = [f"{edge[f'{side}_buffer']}.{edge[f'{side}_point']}" for side in ("src", "dst")]
        own[tuple(names)].append(edge)
    total = sum(edge["latency"] for edge in edges)
    for row in answer["edges"]:
        of_row = own.pop((row["from"], row["to"]), [])
        latencies = sorted(edge["latency"] for edge in of_row)
        what = f"graph {row['from']} -> {row['to']}"
        found.same(f"{what} count", row["count"], len(latencies))
        found.same(f"{what} possible", row["possible"], sum(edge["certainty"] == "possible" for edge in of_row))
        found.same(f"{what} time", row["time"], sum(latencies))
        found.same(f"{what} share", row["share"], Fraction(sum(latencies), total), 1e-12)
        found.same(f"{what} min, max", (row["min"], row["max"]), (latencies[0], latencies[-1]))
        for name, share in (("p50", 50), ("p99", 99)):
            found.same(f"{what} {name}", row[name], percentile(latencies, Fraction(share, 100)), 1e-12)
    found.same("graph: edges that it does not show", sorted(own), [])
    counts = collections.Counter(f"{it.buffer}.{it.kind}" for it in capture.frames)
    for row in answer["points"]:
        found.same(f"graph {row['point']} frames", row["frames"], counts[row["point"]])
    alone = collections.Counter()
    for row in capture.sql("SELECT point, side, type, reason FROM unmatched"):
        alone[tuple(row.values())] += 1
    shown = {(it["point"], it["side"], it["type"], it["reason"]): it["count"] for it in answer["unmatched"]}
    found.same("graph: unmatched", shown, dict(alone))
