"""Runs the queries of queries.sql over an export by DuckDB and by a cluster, and compares their answers.

    check.py [--engine spark|ballista] [--master MASTER] [--kill] [--only WORDS] FOLDER

It prints how long each took, the second time in brackets, and ends with 1 if an answer differs: numbers
that are whole are equal to the last digit, others to 12 digits (Ballista's to 9: it interpolates
percentiles with six). `--kill` ends an executor of this machine
in the middle of each query.
"""

import argparse
import math
import pathlib
import sys
import threading
import time

import ask
import ballista

HERE = pathlib.Path(__file__).parent


def queries():
    """The names of queries, and their SQL."""
    for part in (HERE / "queries.sql").read_text().split("-- name: ")[1:]:
        name, _, query = part.partition("\n")
        yield name, query.strip().rstrip(";")


class DuckDB:
    """DuckDB on one machine. The answers of the others are compared with its answers."""

    def __init__(self, folder):
        import duckdb

        self.connection = duckdb.connect()
        for name in ask.tables(folder):
            files = f"{folder}/host=*/frame={name}/*.parquet".replace("'", "''")
            rows = f"read_parquet('{files}', hive_partitioning = true, union_by_name = true)"
            self.connection.execute(f'CREATE VIEW "{name}" AS SELECT * FROM {rows}')

    def sql(self, query):
        answer = self.connection.execute(query)
        return [column[0] for column in answer.description], answer.fetchall()


def differ(ours, theirs, tolerance):
    """The first difference between two answers."""
    def same(one, other):
        if isinstance(one, float) or isinstance(other, float):
            return math.isclose(one, other, rel_tol=tolerance)
        return one == other

    if [name.lower() for name in ours[0]] != [name.lower() for name in theirs[0]]:
        return f"columns {ours[0]}, {theirs[0]}"
    if len(ours[1]) != len(theirs[1]):
        return f"{len(ours[1])} rows, {len(theirs[1])} rows"
    for number, (one, other) in enumerate(zip(ours[1], theirs[1])):
        if len(one) != len(other) or not all(map(same, one, other)):
            return f"row {number}: {one}, {other}"
    return None


class Killer(threading.Thread):
    """Ends an executor of this machine while a query runs."""

    def __init__(self, engine):
        super().__init__()
        self.engine, self.done, self.victim = engine, threading.Event(), None
        self.start()

    def run(self):
        while not self.done.is_set():
            if self.engine.busy():
                self.victim = self.engine.kill()
                return
            time.sleep(0.005)

    def end(self):
        self.done.set()
        self.join()
        if self.victim:
            print(f"    killed the executor {self.victim}", flush=True)
        else:
            print("    the query was quicker than the kill")


def timed(engine, query):
    began = time.monotonic()
    answer = engine.sql(query)
    return answer, time.monotonic() - began


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    ask.arguments(parser, None)
    parser.add_argument("--engine", choices=["spark", "ballista"], default="spark")
    parser.add_argument("--kill", action="store_true", help="end an executor in the middle of each query")
    parser.add_argument("--only", default="", metavar="WORDS", help="queries with these words in their names")
    args = parser.parse_args()
    places = [pathlib.Path(place) for places in ask.tables(args.folder).values() for place in places]
    sizes = [file.stat().st_size for place in places for file in place.iterdir()]
    print(f"{len(sizes)} files, {sum(sizes) / 1e6:.1f} MB")
    duckdb = DuckDB(args.folder)
    began = time.monotonic()
    if args.engine == "spark":
        cluster, name_of = ask.Spark(args.folder, args.master or ask.LOCAL, args.wait), "Spark"
    else:
        cluster, name_of = ballista.Ballista(args.folder, args.master, args.wait), "Ballista"
    print(f"{name_of}: {args.master or 'two executors here'}, up after {time.monotonic() - began:.1f} s")
    wrong = 0
    try:
        for name, query in queries():
            if args.only not in name:
                continue
            theirs, one = timed(duckdb, query)
            _, again = timed(duckdb, query)
            killer = Killer(cluster) if args.kill else None
            try:
                ours, first = timed(cluster, query)
            finally:
                if killer:
                    killer.end()
            _, second = timed(cluster, query)
            difference = differ(ours, theirs, cluster.TOLERANCE)
            wrong += difference is not None
            print(f"{name}\n    {len(ours[1])} rows, {difference or 'the same'}", end="; ")
            print(f"DuckDB {one:.2f} s ({again:.2f}), {name_of} {first:.2f} s ({second:.2f})", flush=True)
    finally:
        cluster.stop()
    if wrong:
        raise ask.Failure(f"{wrong} answers differ")


if __name__ == "__main__":
    try:
        main()
    except ask.Failure as failure:
        sys.exit(f"cluster: {failure}")
