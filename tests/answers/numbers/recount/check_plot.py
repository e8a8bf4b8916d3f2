"""`ppt plot`: the heights of bars, read back by the scale beside them."""

import collections
import pathlib
import re
import tempfile


def check(capture, found):
    for buffer, kind in capture.each_kind():
        own = capture.of(buffer, kind)
        names = {field["name"] for field in kind["fields"]}
        if own and {"size", "verb"} <= names:
            histogram(capture, f'"{buffer}"."{kind["name"]}"', [frame.cells["size"] for frame in own], found)
            words(capture, f'"{buffer}"."{kind["name"]}"', [frame.cells["verb"] for frame in own], found)


def drawn(capture, query, kind):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "plot.svg"
        capture.tools.run("plot", *capture.files, query, "--kind", kind, "-o", path)
        return path.read_text()


def scale(svg):
    """Pixels of 1, by the labels of the axis of counts."""
    labels = re.findall(r'y="([\d.]+)" text-anchor="end"[^>]*>([\d,.]+)<', svg)
    (low, zero), (high, most) = labels[0], labels[-1]
    return (float(low) - float(high)) / (float(most.replace(",", "")) - float(zero.replace(",", "")))


def bars(svg):
    """Left, width and value of each bar."""
    one = scale(svg)
    for left, width, height in re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)" height="([\d.]+)"', svg):
        yield float(left), float(width), float(height) / one


def histogram(capture, table, values, found):
    counts = [count for _, _, count in bars(drawn(capture, f"SELECT size FROM {table}", "histogram"))]
    whole = [round(count) for count in counts]
    found.same("plot histogram: whole counts", all(abs(count - near) < 0.02 for count, near in zip(counts, whole)), True)
    found.same("plot histogram: all values", sum(whole), len(values))


def words(capture, table, values, found):
    svg = drawn(capture, f"SELECT verb, count(*) AS n FROM {table} GROUP BY verb ORDER BY verb", "bars")
    names = re.findall(r'y="364" text-anchor="middle"[^>]*>([^<]+)<', svg)
    shown = dict(zip(names, (round(count) for _, _, count in bars(svg))))
    found.same("plot bars", shown, dict(collections.Counter(map(str, values))))
