"""`ppt info`: frames and losses of each buffer and each ring, in JSON and in text."""

import collections
import re

from dumped import LOSSES


def counts(capture, at):
    """What a file has and misses: by process and buffer, and by ring, with each cause."""
    buffers, rings = collections.defaultdict(collections.Counter), {}
    for frame in capture.frames:
        if frame.file == at:
            take(buffers, rings, (frame.pid, frame.buffer), frame.ring, frame.seqno, 1, "captured")
    for gap in capture.gaps(at):
        key = gap["pid"], gap["buffer"]
        take(buffers, rings, key, gap["ring"], gap["first_seq"], gap["count"], gap["cause"])
    return buffers, rings


def take(buffers, rings, key, ring, first, count, cause):
    buffers[key][cause] += count
    own = rings.setdefault((*key, ring), {"first": [], "next": [], "counts": collections.Counter()})
    own["counts"][cause] += count
    # Nobody was attached: those numbers are no part of the session.
    if cause != "unattended":
        own["first"].append(first)
        own["next"].append(first + count)


def check(capture, found):
    for at, info in enumerate(capture.infos):
        buffers, rings = counts(capture, at)
        for own in info["buffers"]:
            key = own["pid"], own["name"]
            counted = buffers[key]
            what = f"info {key}"
            found.same(f"{what} frames", own["frames"], counted["captured"])
            found.same(f"{what} lost", own["lost"], sum(counted[cause] for cause in LOSSES))
            for cause in LOSSES:
                found.same(f"{what} {cause}", own["lost_by"][cause], counted[cause])
            for cause in ["unattended", "left_out"]:
                found.same(f"{what} {cause}", own[cause], counted[cause])
            for ring in own["rings"]:
                at_ring = rings.get((*key, ring["ring"]), {"first": [], "next": [], "counts": {}})
                numbers = at_ring["counts"]
                where = f"{what} ring {ring['ring']}"
                if at_ring["first"]:
                    found.same(f"{where} first_seq", ring["first_seq"], min(at_ring["first"]))
                    found.same(f"{where} next_seq", ring["next_seq"], max(at_ring["next"]))
                found.same(f"{where} frames", ring["frames"], numbers.get("captured", 0))
                found.same(f"{where} lost", ring["lost"], sum(numbers.get(it, 0) for it in LOSSES))
                found.same(f"{where} left_out", ring["left_out"], numbers.get("left_out", 0))
        missing = set(buffers) - {(own["pid"], own["name"]) for own in info["buffers"]}
        found.same("info: buffers that it does not know", missing, set())
        text(capture, at, info, found)


def number(text):
    return int(text.replace(",", ""))


def text(capture, at, info, found):
    """The text has the numbers of the JSON: line by line, buffer by buffer."""
    lines = capture.tools.run("info", capture.files[at]).splitlines()
    own = collections.defaultdict(list)
    for line in lines:
        word, _, rest = line.partition(" ")
        own[word].append(rest.strip())
    buffers = info["buffers"]
    shown = [number(re.match(r"[\d,]+", it)[0]) for it in own["frames"]]
    found.same("info text frames", shown, [it["frames"] for it in buffers])
    if own["lost"]:
        losses = [it for it in buffers if it["lost"]]
        shown = [number(re.match(r"[\d,]+", it)[0]) for it in own["lost"] if it[0].isdigit()]
        found.same("info text lost", [it for it in shown if it], [it["lost"] for it in losses])
        for line, buffer in zip([it for it in own["lost"] if "(" in it], losses):
            for cause, count in buffer["lost_by"].items():
                said = re.search(rf"{cause} ([\d,]+)", line)
                found.same(f"info text {cause}", number(said[1]) if said else 0, count)
    rings = [ring for it in buffers for ring in it["rings"]]
    shown = []
    for line in own["ring"]:
        said = re.match(r"(\d+) of (\w+): ([\d,]+) up to ([\d,]+), ([\d,]+) frames?(?:, ([\d,]+) lost)?", line)
        if said:
            numbers = [number(it or "0") for it in (said[1], *said.groups()[2:])]
            shown.append((said[2], *numbers))
    names = ["ring", "first_seq", "next_seq", "frames", "lost"]
    found.same("info text rings", shown, [(it["segment"], *(it[name] for name in names)) for it in rings])
