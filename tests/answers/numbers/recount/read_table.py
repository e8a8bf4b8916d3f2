"""The rows of tables, as pyarrow reads them: JSON lines of a file's name and a row.

Run by the interpreter of analysis/oracles/install.
"""

import json
import math
import sys

import pyarrow
import pyarrow.ipc
import pyarrow.parquet


def plain(value):
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return {"nan": "NaN"}.get(str(value), str(value))
    return value


def main(path):
    if path.endswith(".parquet"):
        table = pyarrow.parquet.read_table(path)
    else:
        table = pyarrow.ipc.open_stream(path).read_all()
    columns = {}
    for name in table.column_names:
        column = table[name]
        if pyarrow.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pyarrow.types.is_timestamp(column.type):
            # Nanoseconds, whatever the unit.
            scale = {"ns": 1, "us": 1_000}[column.type.unit]
            cells = [None if it is None else it * scale for it in column.cast("int64").to_pylist()]
        elif pyarrow.types.is_float32(column.type):
            # In their shortest form, as JSON has them.
            cells = [None if it is None else plain(float(str(pyarrow.scalar(it, "float32").as_py()))) for it in column.to_pylist()]
        else:
            cells = [plain(it) for it in column.to_pylist()]
        columns[name] = cells
    for row in zip(*columns.values()):
        print(json.dumps([path, dict(zip(columns, row))]))


for path in sys.argv[1:]:
    main(path)
