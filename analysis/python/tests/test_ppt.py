"""The module as users call it.

    python -m unittest discover analysis/python/tests       # with ppt where it finds it

What a capture holds, other tools say: `ppt dump` (its golden table), pandas, which reads the CSV that a
capture is made of, and Polars.
"""

import csv
import gc
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest
import warnings

import pyarrow

import ppt

GOLDEN = pathlib.Path(__file__).parents[3] / "dump/tests/golden/capture.bin"
NUMBERS = "SELECT value, value * 2 AS twice FROM generate_series(1, {})"

FRAMES = """
option time ns realtime;
enum State { OFF, ON, BUSY }
frame meter { time at @at; State state; f64 volts @unit("V"); i64 n; bytes raw[4]; char name[8]; bool ok; }
"""


TIMES = ["at", "ts", "drained"]


def ns(times):
    """Nanoseconds since the epoch: datetime has no such times."""
    return times.cast("int64").to_pylist()


def children(of=None):
    """The processes that a process started, without those that ended."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == (of or os.getpid()) and state != "Z":
            found.append(int(stat.parent.name))
    return found


def has_read(process):
    """Bytes, with those that its children have read: a question is answered by a process of its own."""
    try:
        own = int(pathlib.Path(f"/proc/{process}/io").read_text().split()[1])
    except OSError:
        own = 0
    return own + sum(has_read(child) for child in children(process))


class Test(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        warnings.simplefilter("error")
        self.addCleanup(warnings.resetwarnings)

    def imported(self, rows, name="meter"):
        """A capture of rows, and the CSV that it is made of."""
        (self.folder / "meter.frame").write_text(FRAMES)
        table = self.folder / f"{name}.csv"
        with table.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["at", "state", "volts", "n", "raw", "name", "ok"])
            writer.writerows(rows)
        capture = self.folder / f"{name}.bin"
        command = [ppt._program(), "import", table, "--schema", self.folder / "meter.frame", "-o", capture]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return capture, table

    def rows(self, count):
        states = ["OFF", "ON", "BUSY", "7"]
        for at in range(count):
            time = "" if at % 5 == 4 else 1_795_273_445_000_000_001 + at
            raw, name = f"{at:08x}", f"name {at % 10}"
            yield [time, states[at % 4], at / 3, (-1) ** at * at, raw, name, at % 2]

    def test_read_is_what_ppt_dump_says(self):
        with self.assertWarns(ppt.CaptureWarning) as caught:
            table = ppt.read(GOLDEN, frame="pass")
        self.assertIn("14 of 20 frames are missing", str(caught.warning))
        self.assertEqual(caught.filename, __file__)
        lines = GOLDEN.with_name("capture.bin.tsv").read_text().splitlines()
        names = lines[0].split("\t")
        dumped = [dict(zip(names, line.split("\t"))) for line in lines[1:]]
        dumped = [row for row in dumped if row["frame"] == "pass"]
        times = [field.name for field in table.schema if pyarrow.types.is_timestamp(field.type)]
        rows = table.drop_columns(times).to_pylist()
        self.assertEqual(len(rows), 5)
        text = lambda value: "" if value is None else str(value)  # noqa: E731
        for row, start, cells in zip(rows, ns(table["start"]), dumped):
            for name in ["seqno", "ring", "tid", "kind", "who", "bytes", "spent"]:
                self.assertEqual(text(row[name]), cells[name], name)
            self.assertEqual(row["raw"].hex(), cells["raw"])
            self.assertEqual(text(start), cells["start"])
            if cells["ratio"]:
                self.assertEqual(str(float(cells["ratio"])), str(row["ratio"]))

    def test_types_and_cells_are_those_of_the_table_it_is_made_of(self):
        capture, source = self.imported(self.rows(30_000))
        table = ppt.read(capture)
        of = {field.name: field.type for field in table.schema}
        self.assertEqual(of["at"], pyarrow.timestamp("ns", "UTC"))
        self.assertTrue(pyarrow.types.is_dictionary(of["state"]))
        self.assertEqual(of["raw"], pyarrow.binary(4))
        self.assertEqual((of["volts"], of["n"], of["ok"]), (pyarrow.float64(), pyarrow.int64(), pyarrow.bool_()))
        self.assertEqual(table.schema.field("volts").metadata[b"unit"], b"V")
        # One dictionary, so that a category is one.
        self.assertEqual(len({str(chunk.dictionary) for chunk in table["state"].chunks}), 1)
        self.assertGreater(table["state"].num_chunks, 1)
        self.assertEqual(table["at"].null_count, 6000)
        with source.open(newline="") as file:
            expected = list(csv.DictReader(file))
        for row, at, cells in zip(table.drop_columns(TIMES).to_pylist(), ns(table["at"]), expected):
            self.assertEqual("" if at is None else str(at), cells["at"])
            found = [row["state"], str(row["n"]), row["raw"].hex()]
            self.assertEqual(found, [cells["state"], cells["n"], cells["raw"]])
            found = (row["name"], row["ok"], row["volts"])
            self.assertEqual(found, (cells["name"], cells["ok"] == "1", float(cells["volts"])))
        self.assertEqual(table.num_rows, len(expected))

    def test_pandas_and_polars_take_it_as_it_is(self):
        try:
            import pandas
            import polars
        except ImportError as error:
            self.skipTest(str(error))
        capture, source = self.imported(self.rows(30_000))
        expected = pandas.read_csv(source, dtype={"state": "string"})
        table = ppt.read(capture)
        frame = table.to_pandas()
        self.assertEqual(str(frame["state"].dtype), "category")
        self.assertEqual(str(frame["at"].dtype), "datetime64[ns, UTC]")
        self.assertEqual(frame["state"].astype(str).tolist(), expected["state"].tolist())
        pandas.testing.assert_series_equal(frame["volts"], expected["volts"], check_exact=True)
        taken = frame["at"].dropna().astype("int64").tolist()
        self.assertEqual(taken, [row[0] for row in self.rows(30_000) if row[0]])
        query = "SELECT state, count(*) AS n, sum(volts) AS volts FROM meter GROUP BY state ORDER BY state"
        groups = expected.groupby("state")["volts"].agg(["size", "sum"])
        answer = ppt.sql(query, capture)
        self.assertEqual(answer["state"].to_pylist(), groups.index.tolist())
        self.assertEqual(answer["n"].to_pylist(), groups["size"].tolist())
        for ours, theirs in zip(answer["volts"].to_pylist(), groups["sum"]):
            self.assertAlmostEqual(ours, theirs, delta=1e-6 * theirs)
        one = polars.from_arrow(table)
        self.assertEqual(one["n"].to_list(), expected["n"].tolist())
        self.assertEqual(one["state"].cast(polars.String).to_list(), expected["state"].tolist())
        with ppt.stream("SELECT n, state FROM meter ORDER BY seqno", capture) as batches:
            streamed = polars.DataFrame(batches)
        self.assertEqual(streamed["n"].to_list(), expected["n"].tolist())

    def test_several_captures_patterns_and_parts(self):
        one, _ = self.imported(self.rows(100), "my run 1")
        two, _ = self.imported(self.rows(50), "my run 2")
        count = lambda *captures, **part: ppt.read(*captures, **part).num_rows  # noqa: E731
        self.assertEqual(count(one), 100)
        self.assertEqual(count(str(one), two), 150)
        # Patterns, and white space in them.
        pattern = self.folder / "my run *.bin"
        self.assertEqual(count(pattern), 150)
        self.assertEqual(ppt.sql("VALUES(1)", pattern).num_rows, 1)
        counted = ppt.sql("-- of both\nSELECT capture, count(*) AS n FROM meter GROUP BY 1 ORDER BY n", pattern)
        self.assertEqual(counted["n"].to_pylist(), [50, 100])
        self.assertEqual(count(one, from_=11, to="20"), 10)
        self.assertEqual(ppt.sql("SELECT * FROM frames", one, from_=11, to=20, threads=1, memory="1G").num_rows, 10)
        buffer = ppt.sql("SELECT DISTINCT buffer FROM frames", one)["buffer"][0].as_py()
        self.assertEqual(count(one, buffer=buffer), 100)
        self.assertEqual(count(one, buffer=[buffer]), 100)
        with self.assertRaisesRegex(ppt.Error, "nosuch"):
            count(one, buffer="nosuch")
        # A name that looks like an option.
        shutil.copy(one, self.folder / "--help")
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(self.folder)
        self.assertEqual(count("--help"), 100)

    def test_views_and_statements_without_rows(self):
        capture, _ = self.imported(self.rows(10))
        few = "CREATE VIEW few AS SELECT * FROM meter WHERE n > 3;"
        self.assertEqual(ppt.sql(f"{few} SELECT count(*) AS n FROM few", capture)["n"].to_pylist(), [3])
        self.assertEqual(ppt.sql(few, capture).shape, (0, 0))

    def test_stat_and_frames(self):
        capture, _ = self.imported(self.rows(8))
        self.assertEqual(ppt.frames(capture), ["meter"])
        self.assertEqual(ppt.frames(GOLDEN), ["login", "pass"])
        said = ppt.stat(capture, by="state", where="n > 0").to_pylist()
        volts = {row["by_state"]: row["count"] for row in said if row["field"] == "volts"}
        self.assertEqual(volts, {"BUSY": 2, "OFF": 1})
        self.assertGreater(ppt.stat(capture, frame="meter", by=["state", "ok"], every="1s").num_rows, 4)
        # The row without a field tells of the frames.
        for field in ["volts", ["volts", "n"]]:
            fields = ppt.stat(capture, frame="meter", field=field)["field"].to_pylist()
            self.assertEqual(set(fields) - {None}, {field} if field == "volts" else set(field))

    def test_no_frames_and_unknown_ones(self):
        capture, _ = self.imported([])
        table = ppt.read(capture)
        self.assertEqual((table.num_rows, table.schema.field("n").type), (0, pyarrow.int64()))
        self.assertEqual(ppt.sql("SELECT n FROM meter", capture).num_rows, 0)
        self.assertEqual(ppt.stat(capture, frame="meter").schema.names[:3], ["buffer", "frame", "field"])

    def test_errors_say_why(self):
        missing = self.folder / "no such.bin"
        for call, words, code, status in [
            (lambda: ppt.read(missing), "no such.bin: No such file", "cannot-read", 1),
            (lambda: ppt.sql("SELECT 1", missing), "no such.bin: No such file", "cannot-read", 1),
            (lambda: ppt.read(GOLDEN, frame="logn"), "did you mean `login`", "no-such-frame", 2),
            (lambda: ppt.read(GOLDEN), "choose one with frame=: login, pass", None, 2),
            (lambda: ppt.sql("SELEC 1", GOLDEN), "Expected: an SQL statement", "bad-sql", 1),
            (lambda: ppt.sql("SELECT nosuch FROM pass", GOLDEN), "nosuch", "no-column", 2),
            (lambda: ppt.sql("SELECT 1; SELECT 2", GOLDEN), "one answer", None, 2),
            (lambda: ppt.read(GOLDEN, frame="pass", memory="much"), "much", None, 2),
            (lambda: ppt.stat(GOLDEN, every="often"), "often", None, 2),
            (lambda: ppt.read(), "name a capture", None, None),
        ]:
            with self.subTest(words), self.assertRaises(ppt.Error) as caught:
                call()
            error = caught.exception
            self.assertIn(words, str(error))
            self.assertEqual((error.code, error.status), (code, status), words)
            self.assertFalse(str(error).startswith("ppt:") or "ppt explain" in str(error), error)
        # In the middle of an answer.
        late = "SELECT 1 / (value - 100000) FROM generate_series(1, 200000)"
        with self.assertRaisesRegex(ppt.Error, "[Dd]ivi"):
            ppt.sql(late, GOLDEN, threads=1)
        self.assertEqual(children(), [])

    def test_a_program_that_is_killed_gives_no_part_of_an_answer(self):
        with ppt.stream(NUMBERS.format(10**12), GOLDEN) as batches:
            next(batches)
            [child] = children()
            os.kill(child, signal.SIGKILL)
            with self.assertRaisesRegex(ppt.Error, "signal 9"):
                for _ in batches:
                    pass

    def test_damage_is_a_warning_and_what_is_good_is_there(self):
        capture, _ = self.imported(self.rows(30_000))
        data = bytearray(capture.read_bytes())
        data[len(data) // 2] ^= 0xFF
        capture.write_bytes(data)
        with self.assertWarnsRegex(ppt.CaptureWarning, "meter.bin: "):
            table = ppt.read(capture, frame="meter")
        self.assertTrue(0 < table.num_rows < 30_000, table.num_rows)
        # A capture that ends in the middle, or still grows.
        capture.write_bytes(GOLDEN.read_bytes()[:-100])
        with self.assertWarnsRegex(ppt.CaptureWarning, "cut off"):
            ppt.read(capture, frame="pass")

    def test_without_the_program_the_error_says_what_to_do(self):
        script = f"""
            import sys, sysconfig
            sys.path[:0] = {[str(pathlib.Path(ppt.__file__).parents[1])]!r}
            sysconfig.get_path = lambda *_: "/nowhere"
            import ppt
            try:
                ppt.read("out.bin")
            except ppt.Error as error:
                print(error)
        """
        script = textwrap.dedent(script)
        environment = {**os.environ, "PATH": "/nowhere"}
        done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
        self.assertIn("neither beside this module nor on PATH: install", done.stdout + done.stderr)

    def test_who_leaves_early_ends_the_program(self):
        # It sorts before it writes: nobody tells it by a pipe that is closed.
        sort = "SELECT value FROM generate_series(1, 1000000000000) ORDER BY value DESC"
        endless = NUMBERS.format(10**12)
        with ppt.stream(endless, GOLDEN) as batches:
            self.assertEqual(next(batches).schema, batches.schema)
            self.assertEqual(len(children()), 1)
        self.assertEqual(children(), [])
        # Nobody closes it.
        batches = ppt.stream(endless, GOLDEN)
        next(batches)
        del batches
        gc.collect()
        self.assertEqual(children(), [])
        # Ctrl-C, of this process alone: before the first batch, and between others; also while the
        # program is started.
        for query in [sort, endless]:
            for kind, read in [("sql", GOLDEN.stat().st_size), ("stream", GOLDEN.stat().st_size), ("sql", -1)]:
                done = self.interrupted(query, kind, read)
                self.assertEqual((done.returncode, done.stdout.strip()), (0, "interrupted []"), done.stderr)

    def interrupted(self, query, kind, read):
        script = f"""
            import os, signal, sys, threading
            sys.path[:0] = {sys.path!r}
            import ppt, test_ppt
            # Without a terminal, SIGINT may be ignored, and Python then leaves it so.
            signal.signal(signal.SIGINT, signal.default_int_handler)

            def interrupt():
                # Once the program read so much.
                while not any(test_ppt.has_read(it) > {read} for it in test_ppt.children()):
                    pass
                os.kill(os.getpid(), signal.SIGINT)

            threading.Thread(target=interrupt).start()
            try:
                if {kind!r} == "sql":
                    ppt.sql({query!r}, {str(GOLDEN)!r}, memory="64M")
                else:
                    for batch in ppt.stream({query!r}, {str(GOLDEN)!r}, memory="64M"):
                        pass
            except KeyboardInterrupt:
                print("interrupted", end=" ")
            print(test_ppt.children())
        """
        command = [sys.executable, "-c", textwrap.dedent(script)]
        return subprocess.run(command, capture_output=True, text=True, timeout=300)

    def test_an_answer_is_in_memory_once(self):
        # A process of its own: what others took would hide what this one takes.
        script = f"""
            import resource, sys
            sys.path[:0] = {sys.path!r}
            import ppt
            peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
            {NUMBERS.format(1000)!r}
            ppt.sql({NUMBERS.format(1000)!r}, {str(GOLDEN)!r})
            before = peak()
            table = ppt.sql({NUMBERS.format(6_000_000)!r}, {str(GOLDEN)!r})
            whole = peak() - before
            size = table.nbytes
            del table
            before = peak()
            rows = 0
            with ppt.stream({NUMBERS.format(6_000_000)!r}, {str(GOLDEN)!r}) as batches:
                for batch in batches:
                    rows += batch.num_rows
            print(rows, size, whole, peak() - before)
        """
        command = [sys.executable, "-c", textwrap.dedent(script)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        rows, size, whole, streamed = map(int, done.stdout.split() or self.fail(done.stderr))
        self.assertEqual(rows, 6_000_000)
        self.assertGreater(size, 90_000_000)
        self.assertLess(whole, 1.3 * size)
        self.assertLess(streamed, 0.2 * size)


if __name__ == "__main__":
    unittest.main()
