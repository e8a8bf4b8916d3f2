"""Writes the Parquet of a fleet, as `ppt export --format parquet --partition-by host,frame` on each host does.

    generate.py [--hosts 1000] [--hours 1] [--rate 1] [--files 1] [--layout host|hour] FOLDER
    generate.py --like EXPORT       whether these files have the form of an export of request.frame

Each host serves RATE requests a second with 8 threads, by the numbers of server.c. The same arguments write the
same frames. Each hour of a host is one file, or several of the same length (--files 60: one a minute):

    host    host=h0007/frame=request/2026-01-05T00-00.parquet
    hour    hour=2026-01-05T00/host=h0007/frame=request/00.parquet
"""

import argparse
import json
import pathlib
import sys
import tempfile

import numpy
import pyarrow
from pyarrow import parquet

BEGIN = int(numpy.datetime64("2026-01-05T00", "ns").astype("int64"))
"""The first hour, in ns since the epoch."""
HOUR = 3_600_000_000_000
THREADS = 8
POLL = 100_000_000
"""The interval at which a listener polls the ring of a thread that writes little, in ns."""
OPS = ["GET", "PUT", "LIST", "DELETE"]
ROW_GROUP = 1 << 20
TIMES = ["ts", "drained", "handle_start", "handle_end"]
WORDS = ["capture", "buffer", "segment", "op"]
NUMBERS = {
    "ring": pyarrow.int32(), "seqno": pyarrow.int64(), "pid": pyarrow.int32(), "tid": pyarrow.int32(),
    "status": pyarrow.uint16(), "customer": pyarrow.uint32(), "bytes": pyarrow.uint64(), "handle": pyarrow.int64(),
}
ORDER = ["capture", "buffer", "segment", "ring", "seqno", "pid", "tid", "ts", "drained", "op", "status", "customer",
         "bytes", "handle_start", "handle_end", "handle"]
"""The columns of an export without those of its folders. Each of TIMES has two columns."""
SAID = {
    "op": {"zero": "GET"},
    "bytes": {"attributes": "unit", "unit": "B"},
    "handle_start": {"interval": "handle", "role": "start"},
    "handle_end": {"attributes": "at", "interval": "handle", "role": "at"},
    "handle": {"attributes": "at", "interval": "handle", "role": "length", "unit": "ns"},
}
"""The properties of columns in `ppt.schema`, besides names and types."""


class Failure(Exception):
    """An error, with advice."""


def name(host):
    return f"h{host:04}"


def frames(host, hour, rate=1.0):
    """The columns of the frames of an hour of a host, in the order of draining."""
    random = numpy.random.default_rng([host, hour, round(rate * 1000)])
    count = random.poisson(rate * 3600)
    end = BEGIN + hour * HOUR + numpy.sort(random.integers(0, HOUR, count))
    handle = (2e6 * numpy.exp(random.standard_normal(count))).astype("int64")
    # The requests of one host in a hundred take five times as long.
    handle *= 5 if host % 100 == 13 else 1
    ring = random.integers(0, THREADS, count).astype("int32")
    drained = (end // POLL + 1) * POLL + ring * 3000
    order = numpy.lexsort((end, ring, drained))
    luck, share = random.random(count), random.random(count)
    columns = {
        "ring": ring, "ts": end, "drained": drained,
        "handle_start": end - handle, "handle_end": end, "handle": handle,
        "op": numpy.searchsorted([0.7, 0.9, 0.98], share, side="right").astype("int32"),
        "status": numpy.select([luck < 0.01, luck < 0.05], [500, 404], 200).astype("uint16"),
        "customer": (10000 * random.random(count) ** 3).astype("uint32"),
        "bytes": (4096 * numpy.exp(random.standard_normal(count))).astype("uint64"),
        "pid": numpy.full(count, 1000 + host, "int32"), "tid": 1001 + host + ring,
    }
    columns = {key: values[order] for key, values in columns.items()}
    columns["seqno"] = numpy.zeros(count, "int64")
    for one in range(THREADS):
        mine = columns["ring"] == one
        columns["seqno"][mine] = hour * 1_000_000_000 + 1 + numpy.arange(mine.sum())
    return columns


def table(host, hour, columns):
    """The columns in the types of ppt export, without the columns of its folders."""
    count = len(columns["ts"])
    same = {"capture": f"{0xC0FFEE00 + hour:08x}{host:08x}", "buffer": "request", "segment": f"{host:016x}"}
    made = {}
    for key in ORDER:
        if key in TIMES:
            made[key] = pyarrow.array(columns[key] // 1000, pyarrow.timestamp("us", "UTC"))
            made[f"{key}_ns"] = pyarrow.array(columns[key], pyarrow.int64())
        elif key in same:
            made[key] = pyarrow.repeat(same[key], count)
        elif key == "op":
            made[key] = pyarrow.array(OPS).take(pyarrow.array(columns[key]))
        else:
            made[key] = pyarrow.array(columns[key], NUMBERS[key])
    types = {**dict.fromkeys(WORDS, "Dictionary(Int32, Utf8)"), **dict.fromkeys(TIMES, 'Timestamp(ns, "UTC")')}
    types |= {key: str(type).title().replace("Ui", "UI") for key, type in NUMBERS.items()}
    # The schema has the column of the folder, too.
    names = ORDER[:5] + ["host"] + ORDER[5:]
    types["host"] = types["op"]
    said = [{"name": key, "type": types[key], **SAID.get(key, {})} for key in names]
    schema = {"buffer": "request", "columns": said, "frame": "request"}
    lost = {"absent": 0, "captured": count, "dropped": 0, "gaps": 0, "lost": 0}
    metadata = {"ppt.schema": json.dumps(schema), "ppt.lost": json.dumps(lost)}
    return pyarrow.table(made, metadata=metadata)


def save(rows, path):
    """Writes with the properties of ppt export: dictionaries for words, differences for others, zstd."""
    path.parent.mkdir(parents=True, exist_ok=True)
    delta = {key: "DELTA_BINARY_PACKED" for key in rows.column_names if key not in WORDS}
    writer = parquet.ParquetWriter(
        path, rows.schema, compression="zstd", compression_level=1, use_dictionary=WORDS, column_encoding=delta,
        store_schema=False, write_page_index=True, write_batch_size=8192,
    )
    with writer:
        writer.write_table(rows, row_group_size=ROW_GROUP)
        writer.add_key_value_metadata(rows.schema.metadata)


def write(folder, hosts, hours, rate=1.0, files=1, layout="host"):
    """Writes a fleet. Returns the number of files."""
    for host in hosts:
        for hour in hours:
            rows = table(host, hour, frames(host, hour, rate))
            slot = (rows["drained_ns"].to_numpy() - BEGIN - hour * HOUR) // (HOUR // files)
            for number in range(files):
                # Frames that are drained after the end of the hour belong to its last file.
                part = rows.filter(pyarrow.array(numpy.minimum(slot, files - 1) == number)) if files > 1 else rows
                at = str(numpy.datetime64(BEGIN + hour * HOUR, "ns"))[:13]
                frame = pathlib.Path(f"host={name(host)}", "frame=request")
                place = frame / f"{at}-{number:02}" if layout == "host" else f"hour={at}" / frame / f"{number:02}"
                save(part, pathlib.Path(folder, f"{place}.parquet"))
    return len(hosts) * len(hours) * files


def form(path):
    """The common form of all files of a kind: columns, types, encodings, statistics, metadata."""
    file = parquet.ParquetFile(path)
    metadata = {key.decode(): json.loads(text) for key, text in file.metadata.metadata.items()}
    columns = [f"{field.name} {field.type}{'' if field.nullable else ' not null'}" for field in file.schema_arrow]
    found = {
        "columns": columns,
        "ppt.schema": metadata.pop("ppt.schema", None), "ppt.lost": sorted(metadata.pop("ppt.lost", {})),
        "other metadata": sorted(metadata),
        "rows of a full row group": [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups - 1)],
    }
    for number in range(file.metadata.num_columns):
        column, kind = file.metadata.row_group(0).column(number), file.schema.column(number)
        found[column.path_in_schema] = {
            "type": (column.physical_type, str(kind.logical_type), kind.max_definition_level),
            "compression": column.compression, "encodings": sorted(column.encodings),
            "dictionary": column.has_dictionary_page,
            "statistics": (column.is_stats_set, column.statistics.has_min_max, column.statistics.has_null_count),
            "page index": (column.has_column_index, column.has_offset_index),
        }
    return found


def differences(ours, theirs):
    return [f"{key}: {ours.get(key)}, in the export {theirs.get(key)}" for key in {**ours, **theirs}
            if ours.get(key) != theirs.get(key)]


def like(export):
    """Fails if a file written here has another form than an export with the same number of rows."""
    rows = parquet.read_metadata(export).num_rows
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "ours.parquet")
        save(table(1, 0, frames(1, 0, rows * 1.01 / 3600)).slice(0, rows), path)
        found = differences(form(path), form(export))
        if found:
            raise Failure(f"not as {export} is:\n  " + "\n  ".join(found))
        return path.stat().st_size / export.stat().st_size


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--hours", type=int, default=1)
    parser.add_argument("--rate", type=float, default=1.0, help="requests a second of a host")
    parser.add_argument("--files", type=int, default=1, help="of each hour")
    parser.add_argument("--layout", choices=["host", "hour"], default="host")
    parser.add_argument("--like", type=pathlib.Path, metavar="EXPORT")
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    args = parser.parse_args()
    if args.like:
        return print(f"the same form; {like(args.like):.2f} of its bytes")
    if not args.folder or args.folder.exists():
        raise Failure("name a folder that does not exist yet")
    hosts, hours = range(args.hosts), range(args.hours)
    print(write(args.folder, hosts, hours, args.rate, args.files, args.layout), "files")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"generate: {failure}")
