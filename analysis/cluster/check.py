"""Runs the queries of queries.sql over an export by DuckDB and by Spark, and compares their answers.

    check.py [--master spark://one:7077] [--kill] [--only WORDS] FOLDER

It prints how long each took, the second time in brackets, and ends with 1 if an answer differs: numbers
that are whole are equal to the last digit, others to 12 digits. `--kill` ends an executor of this machine
in the middle of each query.
"""

import argparse
import math
import os
import pathlib
import signal
import sys
import threading
import time

import ask

HERE = pathlib.Path(__file__).parent


def queries():
    """Names, and their SQL."""
    for part in (HERE / "queries.sql").read_text().split("-- name: ")[1:]:
        name, _, query = part.partition("\n")
        yield name, query.strip().rstrip(";")


class DuckDB:
    """One machine: the one that the others are held against."""

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


def same(one, other):
    if isinstance(one, float) or isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12)
    return one == other


def differ(ours, theirs):
    """The first difference of two answers."""
    if [name.lower() for name in ours[0]] != [name.lower() for name in theirs[0]]:
        return f"columns {ours[0]}, {theirs[0]}"
    if len(ours[1]) != len(theirs[1]):
        return f"{len(ours[1])} rows, {len(theirs[1])} rows"
    for number, (one, other) in enumerate(zip(ours[1], theirs[1])):
        if len(one) != len(other) or not all(map(same, one, other)):
            return f"row {number}: {one}, {other}"
    return None


def executors():
    """The processes of executors that descend from this one."""
    parents, found = {}, []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parents[int(process.name)] = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            if b"executor.CoarseGrainedExecutorBackend\0" in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except (OSError, ValueError):
            continue

    def ours(process):
        while process in parents and process != os.getpid():
            process = parents[process]
        return process == os.getpid()

    return sorted(filter(ours, found))


def kill_one(spark, killed):
    """Once a task of a query runs."""
    tracker = spark.session.sparkContext.statusTracker()
    while not killed.is_set():
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        if any(stage and stage.numActiveTasks for stage in stages) and executors():
            victim = executors()[0]
            os.kill(victim, signal.SIGKILL)
            print(f"    killed the executor {victim}", flush=True)
            killed.set()
        time.sleep(0.005)


def timed(engine, query):
    began = time.monotonic()
    answer = engine.sql(query)
    return answer, time.monotonic() - began


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    ask.arguments(parser)
    parser.add_argument("--kill", action="store_true", help="end an executor in the middle of each query")
    parser.add_argument("--only", default="", metavar="WORDS", help="queries with these words in their names")
    args = parser.parse_args()
    places = [pathlib.Path(place) for places in ask.tables(args.folder).values() for place in places]
    sizes = [file.stat().st_size for place in places for file in place.iterdir()]
    print(f"{len(sizes)} files, {sum(sizes) / 1e6:.1f} MB")
    duckdb = DuckDB(args.folder)
    began = time.monotonic()
    spark = ask.Spark(args.folder, args.master, args.wait)
    print(f"Spark: {args.master}, up after {time.monotonic() - began:.1f} s")
    wrong = 0
    try:
        for name, query in queries():
            if args.only not in name:
                continue
            theirs, one = timed(duckdb, query)
            _, again = timed(duckdb, query)
            if args.kill:
                killed = threading.Event()
                killer = threading.Thread(target=kill_one, args=(spark, killed))
                killer.start()
            ours, first = timed(spark, query)
            if args.kill:
                in_time = killed.is_set()
                killed.set()
                killer.join()
                if not in_time:
                    print("    the query was quicker than the kill")
            _, second = timed(spark, query)
            difference = differ(ours, theirs)
            wrong += difference is not None
            print(f"{name}\n    {len(ours[1])} rows, {difference or 'the same'}", end="; ")
            print(f"DuckDB {one:.2f} s ({again:.2f}), Spark {first:.2f} s ({second:.2f})", flush=True)
    finally:
        spark.stop()
    if wrong:
        raise ask.Failure(f"{wrong} answers differ")


if __name__ == "__main__":
    try:
        main()
    except ask.Failure as failure:
        sys.exit(f"cluster: {failure}")
