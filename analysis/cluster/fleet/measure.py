"""Asks fleets of several sizes and layouts, by DuckDB and Spark: how long it takes, and how many bytes are read.

    measure.py [--engines duckdb,spark] [--rounds 5] [--only WORDS] FOLDER
    measure.py --check [--engines duckdb,spark]     a small fleet, in seconds

FOLDER keeps the fleets, which generate.py writes. Each answer is compared with what numpy computes from the
generated numbers: a wrong answer ends the run. Times are medians of the rounds, after a round that does not count;
each round opens the files anew. Both engines have two threads. Bytes are those of read calls (/proc/PID/io), also
from the page cache.
"""

import argparse
import collections
import dataclasses
import functools
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

import numpy

import generate
from generate import Failure

MINUTE = 60_000_000_000
THREADS = 2
ILL = 13
"""A host that generate.py makes slow."""


@dataclasses.dataclass(frozen=True)
class Fleet:
    """Hosts for some hours, and the layout of their frames in files."""

    title: str
    hosts: int
    hours: int = 1
    files: int = 1
    layout: str = "host"
    order: str = ""
    """The order in which DuckDB has written the frames again, into one folder for each hour."""
    rows: int = 0
    """The rows of a row group in that case."""
    rate: float = 1.0
    """The number of requests of a host per second."""

    @property
    def folder(self):
        return self.title.replace(" ", "-").replace(",", "")

    @property
    def has_hours(self):
        return self.layout == "hour" or bool(self.order)

    def write(self, root):
        """The path of the fleet. Writes the fleet if it does not exist."""
        place = root / self.folder
        if not place.exists():
            unfinished = place.with_suffix(".new")
            hosts, hours = range(self.hosts), range(self.hours)
            if self.order:
                source = Fleet(f"{self.hosts} hosts", self.hosts, self.hours).write(root)
                again(source, unfinished, self.order, self.rows)
            else:
                generate.write(unfinished, hosts, hours, self.rate, self.files, self.layout)
            unfinished.rename(place)
        return place


def again(source, place, order, rows):
    """Writes the frames of an hour of all hosts into one file."""
    import duckdb

    place = place / f"hour={hour_name(0)}" / "frame=request"
    place.mkdir(parents=True)
    began = time.monotonic()
    duckdb.execute(f"SET threads = {THREADS}")
    duckdb.execute(
        f"COPY (SELECT * EXCLUDE (frame) FROM read_parquet('{source}/**/*.parquet', hive_partitioning = true) "
        f"ORDER BY {order}) TO '{place}/0.parquet' "
        f"(FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2, ROW_GROUP_SIZE {rows})"
    )
    print(f"written again by {order} in {time.monotonic() - began:.1f} s", flush=True)


def hour_name(hour):
    return str(numpy.datetime64(generate.BEGIN + hour * generate.HOUR, "ns"))[:13]


class Truth:
    """The answers, computed by numpy."""

    def __init__(self, hosts, hours, rate):
        self.hosts, self.hours, self.rate = range(hosts), range(hours), rate

    @functools.cached_property
    def sums(self):
        """Of each host: frames, time, the longest; of all: those of a customer; of the last hour, a minute."""
        of_host, customer, minute, episode = {}, [0, 0], [0, 0], [0, 0]
        for host in self.hosts:
            of_host[host] = [0, 0, 0]
            for hour in self.hours:
                columns = generate.frames(host, hour, self.rate)
                handle, found = columns["handle"], columns["customer"] == 42
                of_host[host][0] += len(handle)
                of_host[host][1] += int(handle.sum())
                of_host[host][2] = max(of_host[host][2], int(handle.max()))
                customer[0] += int(found.sum())
                customer[1] += int(columns["bytes"][found].sum())
                since = columns["ts"] - generate.BEGIN - self.hours[-1] * generate.HOUR
                for sums, first, last, asked in [(minute, 30, 31, True), (episode, 20, 25, host == self.ill)]:
                    inside = (since >= first * MINUTE) & (since < last * MINUTE)
                    if asked and inside.any():
                        sums[0] += int(inside.sum())
                        sums[1] = max(sums[1], int(handle[inside].max()))
        return of_host, customer, minute, episode

    @property
    def ill(self):
        return min(ILL, self.hosts[-1])

    def questions(self, has_hours):
        """For each query: its name, the folders to read (all if empty), its SQL, and its rows."""
        of_host, customer, minute, episode = self.sums
        last = generate.BEGIN + self.hours[-1] * generate.HOUR
        folder = f"hour={hour_name(self.hours[-1])}"
        hour = f" AND hour = '{hour_name(self.hours[-1])}'" if has_hours else ""

        def longest(first, end, more=""):
            since, until = last + first * MINUTE, last + end * MINUTE
            return f"SELECT count(*), max(handle) FROM request WHERE ts_ns >= {since} AND ts_ns < {until}{hour}{more}"

        everything = [sum(one[0] for one in of_host.values()), sum(one[1] for one in of_host.values()),
                      max(one[2] for one in of_host.values())]
        busiest = sorted(of_host.items(), key=lambda one: (-one[1][1], one[0]))[:10]
        busiest = [[generate.name(host), *one[:2]] for host, one in busiest]
        by_host = ("SELECT host, count(*), sum(handle) AS busy FROM request "
                   "GROUP BY host ORDER BY busy DESC, host LIMIT 10")
        of_ill = f" AND host = '{generate.name(self.ill)}'"
        yield "everything", "", "SELECT count(*), sum(handle), max(handle) FROM request", [everything]
        yield "ten busiest hosts", "", by_host, busiest
        yield "one customer", "", "SELECT count(*), sum(bytes) FROM request WHERE customer = 42", [customer]
        yield "a minute of all", "", longest(30, 31), [minute]
        yield "five minutes of a host", "", longest(20, 25, of_ill), [episode]
        if has_hours:
            yield "a minute, its folder", folder, longest(30, 31), [minute]


def spent(pid):
    """The use of a process: wall and CPU time in seconds, bytes read, and read calls."""
    process = pathlib.Path("/proc", str(pid))
    found = dict(line.split(": ") for line in (process / "io").read_text().splitlines())
    ticks = (process / "stat").read_text().rpartition(")")[2].split()[11:13]
    cpu = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    return time.monotonic(), cpu, int(found["rchar"]), int(found["syscr"])


class DuckDB:
    """DuckDB with a new database for each query, so that nothing is cached."""

    pid = "self"

    def ask(self, place, folder, query):
        import duckdb

        with duckdb.connect() as connection:
            connection.execute(f"SET threads = {THREADS}")
            how = "hive_partitioning = true, hive_types_autocast = false"
            files = f"read_parquet('{place / folder}/**/*.parquet', {how})"
            connection.execute(f"CREATE VIEW request AS SELECT * FROM {files}")
            return connection.execute(query).fetchall()

    def stop(self):
        pass


class Spark:
    """Spark with one session. Each query lists the files again."""

    def __init__(self):
        sys.path.append(str(pathlib.Path(__file__).parents[1]))
        import ask

        with tempfile.TemporaryDirectory() as folder:
            # A session has the tables of a folder.
            generate.write(folder, [0], [0])
            try:
                self.spark = ask.Spark(folder, f"local[{THREADS}]")
            except ask.Failure as failure:
                raise Failure(str(failure)) from None
        session = self.spark.session
        session.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
        self.pid = session.sparkContext._gateway.proc.pid

    def ask(self, place, folder, query):
        rows = self.spark.session.read.option("basePath", str(place)).parquet(str(place / folder))
        rows.createOrReplaceTempView("request")
        return self.spark.sql(query)[1]

    def stop(self):
        self.spark.stop()


ENGINES = {"duckdb": DuckDB, "spark": Spark}


def measured(engine, place, folder, query, expected, rounds):
    """The medians of the use of a query."""
    took = []
    for _ in range(rounds + 1):
        before = spent(engine.pid)
        rows = engine.ask(place, folder, query)
        took.append([after - one for one, after in zip(before, spent(engine.pid))])
        found = [[one if isinstance(one, str) else int(one) for one in row] for row in rows]
        if found != expected:
            raise Failure(f"{query}\n  of {place}: {found}, and the generator wrote {expected}")
    return [statistics.median(column) for column in zip(*took[1:])]


def run(fleets, root, engines, rounds):
    """The figures of each engine, fleet and query."""
    started = {name: ENGINES[name]() for name in engines}
    figures, truths = [], {}
    try:
        for fleet in fleets:
            place = fleet.write(root)
            sizes = [path.stat().st_size for path in place.glob("**/*.parquet")]
            of = fleet.hosts, fleet.hours, fleet.rate
            truth = truths.setdefault(of, Truth(*of))
            for question, folder, query, expected in truth.questions(fleet.has_hours):
                for name, engine in started.items():
                    seconds, cpu, read, reads = measured(engine, place, folder, query, expected, rounds)
                    figures.append({
                        "fleet": fleet.title, "files": len(sizes), "bytes": sum(sizes), "question": question,
                        "engine": name, "seconds": seconds, "cpu": cpu, "read": read, "reads": reads,
                    })
                    print(json.dumps(figures[-1]), flush=True)
    finally:
        for engine in started.values():
            engine.stop()
    return figures


def shown(figures):
    """A table for each engine, with wall and CPU time and bytes read for each fleet and query."""
    for name in dict.fromkeys(figure["engine"] for figure in figures):
        rows = collections.defaultdict(list)
        for figure in figures:
            if figure["engine"] == name:
                key = figure["fleet"], f"{figure['files']:,}", f"{figure['bytes'] / 1e6:.1f}"
                rows[key].append(f"{figure['seconds']:.2f} ({figure['cpu']:.2f}) s, {figure['read'] / 1e6:.2f} MB")
        titles = dict.fromkeys(figure["question"] for figure in figures)
        lines = [["fleet", "files", "MB", *titles], ["---"] * (3 + len(titles))]
        lines += [[*key, *row, *[""] * (len(titles) - len(row))] for key, row in rows.items()]
        print(f"\n{name}", *("| " + " | ".join(line) + " |" for line in lines), sep="\n")


def fleets():
    yield from (Fleet(f"{hosts} hosts", hosts) for hosts in (1, 10, 100, 1000))
    yield from (Fleet(f"{hosts} hosts, a file a minute", hosts, files=60) for hosts in (1, 10, 100))
    for days in (1, 3, 7):
        yield Fleet(f"10 hosts, {days} days", 10, 24 * days)
        yield Fleet(f"10 hosts, {days} days, by hour", 10, 24 * days, layout="hour")
    for rows in (1 << 20, 120_000):
        yield Fleet(f"1000 hosts, again by host, {rows} rows", 1000, order="host, ts_ns", rows=rows)
        yield Fleet(f"1000 hosts, again by time, {rows} rows", 1000, order="ts_ns", rows=rows)
    # The frames of 1,000 hosts, in more and in fewer files.
    for hosts, rate in (10, 100.0), (100, 10.0), (10_000, 0.1):
        yield Fleet(f"{hosts} hosts, {rate:g} a second", hosts, rate=rate)


def check(engines):
    """Every layout, small (one by Spark, which is slow at first); that a file is missing must be noticed."""
    small = [
        Fleet("3 hosts", 3), Fleet("2 hosts, 6 files an hour", 2, files=6),
        Fleet("2 hosts, 2 hours, by hour", 2, 2, layout="hour"),
        Fleet("3 hosts, again by host", 3, order="host, ts_ns", rows=2048),
    ]
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        figures = [run([small[2]] if name == "spark" else small, root, [name], 1) for name in engines]
        shown(sum(figures, []))
        next((root / small[0].folder).glob("**/*.parquet")).unlink()
        try:
            run(small[:1], root, engines[:1], 1)
        except Failure:
            return
    raise Failure("a fleet without one of its files has the same answers")


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--engines", default="duckdb,spark")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", metavar="WORDS", help="fleets with these words in their titles")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    args = parser.parse_args()
    engines = args.engines.split(",")
    if unknown := set(engines) - set(ENGINES):
        raise Failure(f"no engine {', '.join(sorted(unknown))}: {', '.join(ENGINES)}")
    if args.check:
        return check(engines)
    if not args.folder:
        raise Failure("name a folder for the fleets")
    args.folder.mkdir(parents=True, exist_ok=True)
    figures = run([fleet for fleet in fleets() if args.only in fleet.title], args.folder, engines, args.rounds)
    shown(figures)


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"measure: {failure}")
