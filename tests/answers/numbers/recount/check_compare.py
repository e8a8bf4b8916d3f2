"""`ppt compare`: each statistic of each number, taken in each run, and what a side says on average."""

import json
from fractions import Fraction

from check_stat import is_key, of_numbers

SIDES = (["lossy", "forked"], ["kernel", "cut"])


def check_all(captures, found):
    sides = [[captures[name] for name in names] for names in SIDES]
    files = [[file for capture in side for file in capture.files] for side in sides]
    tools = sides[0][0].tools
    answer = json.loads(tools.run("compare", "--format", "json", "--frame", "job", *files[0], "--", *files[1]))
    expected = [[statistics(capture) for capture in side] for side in sides]
    shown = {row["field"].removeprefix("shop.job."): row for row in answer}
    found.same("compare: fields", sorted(shown), sorted(expected[0][0]))
    for field, row in shown.items():
        found.same(f"compare {field} runs", row["units"], [len(side) for side in sides])
        for change in row["changes"]:
            name = change["statistic"]
            means = [sum(Fraction(run[field][name]) for run in side) / len(side) for side in expected]
            for word, mean in zip(("first", "second"), means):
                found.same(f"compare {field} {name} {word}", change[word], mean, 1e-9)
            difference = means[1] - means[0]
            off = abs(Fraction(change["difference"]["value"]) - difference)
            found.same(f"compare {field} {name} difference", off <= Fraction(1e-9) * max(abs(means[0]), 1), True)
            if means[0]:
                found.same(f"compare {field} {name} ratio", change["ratio"]["value"], means[1] / means[0], 1e-9)


def statistics(capture):
    kind = capture.kind("shop", "job")
    values = {}
    for frame in capture.of("shop", kind):
        for column, value in capture.numbers("shop", kind, frame):
            if not is_key(capture, {"buffer": "shop", "frame": "job", "field": column}):
                values.setdefault(column, []).append(value)
    return {column: of_numbers(own) for column, own in values.items()}
