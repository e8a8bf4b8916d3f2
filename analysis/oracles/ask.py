"""Answers questions about a Parquet file by other people's tools, as JSON.

    ask.py TOOL FILE < QUESTIONS

TOOL is duckdb, pyarrow, polars or pandas. QUESTIONS is a JSON list: SQL over the table `t` for duckdb,
`["sum", COLUMN]` and the like for the others.
"""

import json
import sys


def duckdb(path, questions):
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW t AS SELECT * FROM read_parquet('{path}')")
    return [[list(row) for row in connection.execute(q).fetchall()] for q in questions]


def pyarrow(path, questions):
    import pyarrow.compute as compute
    import pyarrow.parquet as parquet

    table = parquet.read_table(path)

    def answer(what, column=None):
        if what == "rows":
            return table.num_rows
        values = table[column]
        if what == "ns":  # sum of times: beyond 64 bits, so as text
            return str(sum(value.value for value in values if value.is_valid))
        if what == "nulls":
            return values.null_count
        if what == "counts":
            counts = values.combine_chunks()
            counts = compute.value_counts(counts.cast("string"))
            return sorted((c["values"].as_py() or "", c["counts"].as_py()) for c in counts)
        return getattr(compute, what)(values).as_py()

    return [answer(*question) for question in questions]


def polars(path, questions):
    import polars

    table = polars.read_parquet(path)

    def answer(what, column=None):
        if what == "rows":
            return table.height
        values = table[column]
        if what == "ns":
            return str(sum(values.drop_nulls().dt.epoch("ns").to_list()))
        if what == "nulls":
            return values.null_count()
        if what == "counts":
            counts = values.cast(polars.String).value_counts().rows()
            return sorted([(name or "", count) for name, count in counts])
        return getattr(values, what)()

    return [answer(*question) for question in questions]


def pandas(path, questions):
    import pandas

    table = pandas.read_parquet(path)

    def answer(what, column=None):
        if what == "rows":
            return len(table)
        values = table[column]
        if what == "ns":
            return str(sum(int(ns) for ns in values.dropna().astype("int64")))
        if what == "nulls":
            return int(values.isna().sum())
        if what == "counts":
            counts = values.astype("object").value_counts(dropna=False)
            return sorted(("" if n is None or n != n else str(n), int(c)) for n, c in counts.items())
        return int(getattr(values, what)())

    return [answer(*question) for question in questions]


tool, path = sys.argv[1:]
answers = globals()[tool](path, json.load(sys.stdin))
print(json.dumps(answers, default=str))
