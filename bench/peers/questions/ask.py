"""ask.py TOOL QUESTION FOLDER: asks a tool, and prints the seconds that its answer took, without those
of starting Python, and the answer. `version` is a question, too."""

import importlib
import sys
import time

tool, question, folder = sys.argv[1:]
module = importlib.import_module(tool)
if question == "version":
    sys.exit(print(module.__version__))
parquet, csv = f"{folder}/sample.parquet", f"{folder}/sample.csv"


def duckdb():
    # All that `ppt stat` tells of a number.
    told = ", count({0}), min({0}), avg({0}), stddev_samp({0}), max({0}), " \
        "quantile_cont({0}, [0.5, 0.9, 0.99, 0.999])"
    numbers = ["who", "bytes", "cost", "handle"]
    queries = {
        "count": "SELECT count(*)",
        "sum": "SELECT sum(bytes)",
        "interval": "SELECT kind, count(*)" + told.format("handle"),
        "numbers": "SELECT kind, count(*)" + "".join(told.format(it) for it in numbers),
    }
    group = " GROUP BY kind" if question in ["interval", "numbers"] else ""
    query = f"{queries[question]} FROM '{parquet}'{group}"
    return lambda: module.sql(query).fetchall()[0][0]


def pyarrow():
    import pyarrow.compute
    import pyarrow.parquet as files

    if question == "count":
        return lambda: files.read_metadata(parquet).num_rows
    if question == "sum":
        return lambda: module.compute.sum(files.read_table(parquet, columns=["bytes"])["bytes"])
    if question == "export":
        table = files.read_table(parquet)
        module.set_cpu_count(1)
        module.set_io_thread_count(1)
        return lambda: files.write_table(table, f"{folder}/pyarrow.parquet", compression="zstd")


def pandas():
    if question == "sum":
        return lambda: module.read_csv(csv, usecols=["bytes"])["bytes"].sum()
    if question == "interval":
        names = ["kind", "handle_start", "handle_end"]

        def ask():
            table = module.read_csv(csv, usecols=names)
            length = table["handle_end"] - table["handle_start"]
            return length.groupby(table["kind"]).quantile([0.5, 0.99]).iloc[0]

        return ask


ask = globals()[tool]()
start = time.perf_counter()
answer = ask()
print(time.perf_counter() - start, answer)
