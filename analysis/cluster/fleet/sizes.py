"""Measures how many bytes an hour a host writes: captures by their compression, and what ppt export makes of them.

    sizes.py [--bin FOLDER] [--seconds N] [--rates 1,10,100] FOLDER

It builds server.c, starts one for each rate and compression, attaches to each for N seconds, and exports what
was captured. Its table has the growth of each capture after its first tenth, as bytes an hour, and each export.
A capture that misses a frame gets no figure. FOLDER, which must be empty or new, keeps all files.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]
CODECS = ["none", "lz4", "zstd"]
THREADS = 8


class Failure(Exception):
    """An error, with advice."""


def done(*command, **more):
    """The output of a command."""
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, **more)
    if result.returncode:
        raise Failure(f"{command[0]} ended with {result.returncode}: {result.stderr.strip()}")
    return result.stdout


def build(binaries, folder):
    """The program that writes frames."""
    done(binaries / "pptc", HERE / "request.frame", "-o", folder)
    server = folder / "server"
    done("cc", "-O2", f"-I{folder}", HERE / "server.c", folder / "request.c", "-o", server, "-lm", "-lpthread")
    return server


class Recording:
    """A server with a rate, and the ppt attached to it."""

    def __init__(self, binaries, folder, rate, codec, seconds):
        self.rate, self.codec, self.seconds = rate, codec, seconds
        self.capture = folder / f"{rate}-{codec}.bin"
        # The server ends after ppt, so that no capture ends early.
        command = [folder / "server", rate, THREADS, seconds + 30]
        self.server = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL)
        command = [binaries / "ppt", "attach", self.server.pid, "-q", "-d", f"{seconds}s", "-o", self.capture]
        command += [] if codec == "none" else ["--compress", codec]
        self.ppt = subprocess.Popen(list(map(str, command)))

    def size(self):
        return self.capture.stat().st_size

    def end(self):
        try:
            if self.ppt.wait(timeout=self.seconds + 20):
                raise Failure(f"ppt attach ended with {self.ppt.returncode}: {self.capture}")
        finally:
            self.server.kill()
            self.server.wait()

    def measured(self, binaries, hour):
        """The figures of the complete capture and of its export."""
        buffer, = json.loads(done(binaries / "ppt", "info", "--json", self.capture))["buffers"]
        if buffer["lost"] or any(buffer["dropped"].values()):
            raise Failure(f"{self.capture} misses frames: {buffer['lost_by']}, {buffer['dropped']}")
        exported = self.capture.with_suffix(".parquet")
        command = ["export", self.capture, "--frame", "request", "--format", "parquet", "-o", exported]
        done(binaries / "ppt", *command)
        return {
            "rate": self.rate, "codec": self.codec, "seconds": self.seconds, "frames": buffer["frames"],
            "capture": self.size(), "hour": round(hour), "parquet": exported.stat().st_size,
        }


def recorded(binaries, folder, rates, seconds):
    """The bytes per hour by which each recording grows, without the head and the end of its file."""
    recordings = [Recording(binaries, folder, rate, codec, seconds) for rate in rates for codec in CODECS]
    try:
        time.sleep(seconds * 0.1)
        sizes, began = [recording.size() for recording in recordings], time.monotonic()
        time.sleep(seconds * 0.85)
        hours = 3600 / (time.monotonic() - began)
        grown = [(recording.size() - size) * hours for recording, size in zip(recordings, sizes)]
    finally:
        for recording in recordings:
            recording.end()
    return zip(recordings, grown)


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "target/debug", help="where ppt is")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rates", default="1,10,100,1000")
    parser.add_argument("folder", type=pathlib.Path)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    if any(args.folder.iterdir()):
        raise Failure(f"{args.folder} is not empty: name a new folder")
    build(args.bin, args.folder)
    rates = [int(rate) for rate in args.rates.split(",")]
    rows = []
    for recording, hour in recorded(args.bin, args.folder, rates, args.seconds):
        rows.append(recording.measured(args.bin, hour))
        print(json.dumps(rows[-1]), flush=True)
    (args.folder / "sizes.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"sizes: {failure}")
