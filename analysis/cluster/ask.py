"""Asks an export of ppt by Spark: on this machine, or on a cluster.

    ask.py [--master spark://one:7077] FOLDER 'SELECT …'

FOLDER is what `ppt export --format parquet --partition-by host,frame -o FOLDER` wrote. Each kind of frame
is a table. With a cluster, each machine has the folder under the same path.
"""

import argparse
import csv
import logging
import os
import pathlib
import signal
import socket
import sys
import time

LOCAL = "local-cluster[2,1,1024]"
"""A driver and two executors, each a process with one core and 1 GiB."""
WAIT = 60
"""The longest time for an executor of the cluster, in seconds."""
OURS = {
    "bucket": "for bucket(ts, '100ms'), write ts_ns - ts_ns % 100000000",
    "overlap": "join the two tables by their times",
}
"""Functions of `ppt sql` that no other engine has, each with a replacement."""


class Failure(Exception):
    """An error, with advice."""


def tables(folder):
    """The files of each kind of frames."""
    found = {}
    for place in sorted(pathlib.Path(folder).glob("host=*/frame=*")):
        found.setdefault(place.name.removeprefix("frame="), []).append(str(place))
    if not found:
        raise Failure(f"{folder} has no folders host=…/frame=…: ppt export --partition-by host,frame")
    return found


def reason(error):
    """The first line of an error of Java."""
    return str(getattr(error, "java_exception", error)).splitlines()[0]


def answering(master):
    """Fails if the master does not accept connections. Spark itself needs a minute to notice."""
    if not master.startswith("spark://"):
        return
    host, _, port = master.removeprefix("spark://").partition(",")[0].rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, ValueError) as error:
        raise Failure(f"{master} does not answer ({error}): docs/cluster.md says how to start one") from None


class Spark:
    """A session, with the tables of a folder."""

    TOLERANCE = 1e-12

    def __init__(self, folder, master=LOCAL, wait=WAIT):
        import pyspark
        from pyspark.sql import SparkSession

        found = tables(folder)
        answering(master)
        if not master.startswith("spark://"):
            # Executors of local-cluster find Spark and this process by these variables.
            os.environ["SPARK_HOME"] = os.path.dirname(pyspark.__file__)
            os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
            os.environ["SPARK_LOCAL_HOSTNAME"] = "localhost"
        # A failure is one line of text.
        logging.disable(logging.CRITICAL)
        builder = SparkSession.builder.master(master).appName("ppt")
        for name, value in {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "OFF",
            "spark.sql.session.timeZone": "UTC",
            # The default is 200 parts, too many for small answers.
            "spark.sql.shuffle.partitions": "8",
        }.items():
            builder = builder.config(name, value)
        from py4j.protocol import Py4JError

        try:
            self.session = builder.getOrCreate()
            self._wait(wait)
        except Py4JError as error:
            raise Failure(f"{master} gives us no session: {reason(error)}") from None
        for name, places in found.items():
            rows = self.session.read.option("basePath", folder).option("mergeSchema", "true").parquet(*places)
            rows.createOrReplaceTempView(f"`{name}`")

    def _wait(self, seconds):
        """Waits for an executor. Without one, queries would wait forever."""
        if self.session.sparkContext.master.startswith("local["):
            return
        context = self.session.sparkContext._jsc.sc()
        end = time.monotonic() + seconds
        # The status includes the driver.
        while context.getExecutorMemoryStatus().size() < 2:
            if time.monotonic() > end or context.isStopped():
                self.stop()
                why = f"the cluster gives us no executor in {seconds} s"
                raise Failure(f"{why}: docs/cluster.md says how to start workers")
            time.sleep(0.1)

    def sql(self, query):
        """The names of the columns, and the rows."""
        from pyspark.errors import PySparkException
        from py4j.protocol import Py4JError

        try:
            answer = self.session.sql(query)
            return answer.columns, [tuple(row) for row in answer.collect()]
        except PySparkException as error:
            if error.getCondition() == "UNRESOLVED_ROUTINE":
                name = error.getMessageParameters()["routineName"].strip("`").split("`")[-1]
                if name.lower() in OURS:
                    why = f"{name} is a function of ppt sql, which Spark does not have"
                    raise Failure(f"{why}: {OURS[name.lower()]}") from None
            raise Failure(str(error).splitlines()[0]) from None
        except Py4JError as error:
            raise Failure(f"Spark gave up: {reason(error)}") from None

    def busy(self):
        """Whether a task runs on an executor of this machine."""
        tracker = self.session.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return any(stage and stage.numActiveTasks for stage in stages) and bool(executors())

    def kill(self):
        """Ends an executor of this machine. Spark starts another one."""
        victim = executors()[0]
        os.kill(victim, signal.SIGKILL)
        return victim

    def stop(self):
        self.session.stop()


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


def arguments(parser, master=LOCAL):
    """The arguments for the cluster and the export."""
    parser.add_argument("--master", default=master, help="of a cluster [default: two executors here]")
    parser.add_argument("--wait", type=float, default=WAIT, metavar="SECONDS", help="for an executor")
    parser.add_argument("folder", help="an export")


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    arguments(parser)
    parser.add_argument("query")
    args = parser.parse_args()
    spark = Spark(args.folder, args.master, args.wait)
    try:
        names, rows = spark.sql(args.query)
    finally:
        spark.stop()
    writer = csv.writer(sys.stdout, dialect="excel-tab", lineterminator="\n")
    writer.writerows([names, *rows])


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"cluster: {failure}")
