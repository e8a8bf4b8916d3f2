"""Captures of ppt as Arrow tables.

    import ppt

    jobs = ppt.read("out.bin", frame="job")
    slow = ppt.sql("SELECT * FROM job ORDER BY handle DESC LIMIT 10", "out.bin")
    jobs.to_pandas()            # pandas
    polars.from_arrow(jobs)     # Polars

The program ``ppt`` reads the captures, and writes its answer into a pipe as a stream of Arrow.
It is the one of the wheel, else the one on PATH.

In all functions, captures are files, patterns (``"run*/*.bin"``) and names of rotated ones, as on the
command line, and these keywords select a part of them:

- ``buffer``: only this buffer, or these;
- ``from_``, ``to``: only from here on, and up to here: a sequence number (``500``), a time since the
  first capture began (``"1.5s"``), or a time in UTC (``"2026-11-21T15:04:05.5Z"``);
- ``memory``: what sorts, joins and groups may take before they go to disk (``"2G"``);
- ``threads``: how many threads read.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import warnings
import weakref
from typing import Any, BinaryIO, Iterable, Iterator, List, Optional, Tuple, Union

import pyarrow
import pyarrow.ipc

__all__ = ["Batches", "CaptureWarning", "Error", "frames", "read", "sql", "stat", "stream"]

Capture = Union[str, "os.PathLike[str]"]
"""A file, a pattern, or the name of rotated files."""
Where = Union[int, str, None]
"""A sequence number or a time."""
Words = Union[str, Iterable[str]]
"""One word, or several."""


class Error(Exception):
    """There is no answer: ``str(error)`` says why, in the words of the program.

    ``code`` is what ``ppt explain`` knows more about, or None. ``status`` is how the program ended: 1 it
    failed, 2 it was asked wrongly, below 0 a signal ended it; None if it did not run.
    """

    def __init__(self, message: str, code: Optional[str] = None, status: Optional[int] = None) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


class CaptureWarning(UserWarning):
    """The answer is that of an incomplete capture: frames are missing, or a part is damaged."""


def read(
    *captures: Capture,
    frame: Optional[str] = None,
    buffer: Words = (),
    from_: Where = None,
    to: Where = None,
    memory: Optional[str] = None,
    threads: Optional[int] = None,
) -> pyarrow.Table:
    """All frames of a kind. ``frame`` names it if there are several.

    Each ring is in the order of its sequence numbers; rings follow each other. Columns have their units
    and descriptions in ``table.schema.field(name).metadata``.
    """
    part = _part(buffer, from_, to, memory, threads)
    words = ["export", "--format", "arrow", *part]
    if frame is not None:
        words.append(f"--frame={frame}")
    try:
        with Batches(words, captures) as batches:
            return batches.read_all()
    except Error as error:
        if frame is None and error.status == 2:
            there = frames(*captures, buffer=buffer)
            if len(there) > 1:
                message = f"there are several kinds of frames: choose one with frame=: {', '.join(there)}"
                raise Error(message, error.code, error.status) from None
        raise


def sql(
    query: str,
    *captures: Capture,
    buffer: Words = (),
    from_: Where = None,
    to: Where = None,
    memory: Optional[str] = None,
    threads: Optional[int] = None,
) -> pyarrow.Table:
    """The answer to a query: a SELECT, and before it other statements, such as CREATE VIEW."""
    with stream(
        query, *captures, buffer=buffer, from_=from_, to=to, memory=memory, threads=threads
    ) as batches:
        return batches.read_all()


def stream(
    query: str,
    *captures: Capture,
    buffer: Words = (),
    from_: Where = None,
    to: Where = None,
    memory: Optional[str] = None,
    threads: Optional[int] = None,
) -> Batches:
    """The answer to a query, batch by batch, for what does not fit into memory.

        with ppt.stream("SELECT * FROM job", "out.bin") as batches:
            for batch in batches:       # pyarrow.RecordBatch
                …
    """
    part = _part(buffer, from_, to, memory, threads)
    return Batches(["sql", "--format=arrow", "--file=-", *part], captures, query)


def stat(
    *captures: Capture,
    frame: Optional[str] = None,
    field: Words = (),
    by: Words = (),
    every: Optional[str] = None,
    where: Optional[str] = None,
    buffer: Words = (),
    from_: Where = None,
    to: Where = None,
    memory: Optional[str] = None,
    threads: Optional[int] = None,
) -> pyarrow.Table:
    """Statistics of each kind of frame and each of its fields, as ``ppt stat`` has them.

    ``field`` names the only fields that matter: fewer are quicker. ``by`` names columns that group,
    ``every`` slices the time (``"1s"``), ``where`` is an expression of SQL.
    """
    words = ["stat", "--format=arrow", *_part(buffer, from_, to, memory, threads)]
    words += [f"--field={column}" for column in _several(field)]
    words += [f"--by={column}" for column in _several(by)]
    options = {"frame": frame, "every": every, "where": where}
    words += [f"--{option}={value}" for option, value in options.items() if value is not None]
    with Batches(words, captures) as batches:
        return batches.read_all()


def frames(*captures: Capture, buffer: Words = ()) -> List[str]:
    """The kinds of frames that there may be: what ``read`` takes as ``frame``."""
    query = """
        SELECT DISTINCT table_name FROM information_schema.tables
        WHERE table_schema NOT IN ('ppt', 'information_schema') ORDER BY table_name
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CaptureWarning)
        names: List[str] = sql(query, *captures, buffer=buffer)["table_name"].to_pylist()
    return names


class Batches:
    """An answer on its way: an iterator of ``pyarrow.RecordBatch``.

    What takes a stream of Arrow takes it as it is: ``polars.from_arrow(batches)``. Whoever does not take
    all of it closes it, or uses ``with``: that ends the program that answers.
    """

    schema: pyarrow.Schema
    """The columns."""

    def __init__(self, words: List[str], captures: Iterable[Capture], text: str = "") -> None:
        named = [os.fspath(capture) for capture in captures]
        if not named:
            raise Error("name a capture")
        command = [_program(), *words, "--", *named]
        self._messages = _memory()
        with _memory(text) as stdin, _uninterrupted():
            self._child = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=self._messages,
                env={**os.environ, "NO_COLOR": "1"},
            )
            # Also if nobody closes it.
            self._stop = weakref.finalize(self, _stop, self._child, self._messages)
        self._pipe = _Pipe(self._child.stdout)
        self._ended = False
        try:
            self._reader = pyarrow.ipc.open_stream(self._pipe)
        except pyarrow.ArrowInvalid:
            self._end()
            # Statements without rows.
            self._reader = pyarrow.RecordBatchReader.from_batches(pyarrow.schema([]), [])
        except BaseException:
            self.close()
            raise
        self.schema = self._reader.schema

    def __iter__(self) -> Iterator[pyarrow.RecordBatch]:
        return self

    def __next__(self) -> pyarrow.RecordBatch:
        if self._ended:
            raise StopIteration
        try:
            return self._reader.read_next_batch()
        except (StopIteration, pyarrow.ArrowException, OSError):
            self._end()
            raise StopIteration from None
        except BaseException:
            self.close()
            raise

    def read_all(self) -> pyarrow.Table:
        """All that is left, as a table."""
        # One dictionary for each column: not every reader likes several.
        return pyarrow.Table.from_batches(self, self.schema).unify_dictionaries()

    def close(self) -> None:
        """Ends the program, if it did not end. What was read stays."""
        self._stop()

    def __enter__(self) -> Batches:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        reader = pyarrow.RecordBatchReader.from_batches(self.schema, self)
        return reader.__arrow_c_stream__(requested_schema)

    def _end(self) -> None:
        """The stream ended, or was cut off: the program says why."""
        self._pipe.close()
        status = self._child.wait()
        self._messages.seek(0)
        message, code = _message(self._messages.read().decode(errors="replace"))
        # A damaged capture is status 1 and a warning: what is good of it is an answer. Statements
        # without rows are no stream at all.
        good = {_Pipe.END: (0, 1), b"": (0,)}
        if status not in good.get(self._pipe.last, ()):
            how = f"ended with status {status}" if status >= 0 else f"was ended by signal {-status}"
            raise Error(message or f"ppt {how}", code, status) from None
        self._ended = True
        self.close()
        if message:
            warnings.warn(message, CaptureWarning, stacklevel=_outside())


class _Pipe(io.RawIOBase):
    """What the program writes, and the last bytes of that."""

    # The mark after the last batch: without it, the stream is cut off.
    END = bytes.fromhex("ffffffff00000000")

    def __init__(self, out: Any) -> None:
        self._out = out
        self.last = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        # As it is: batches keep these bytes, and nobody copies them.
        data: bytes = self._out.read(size)
        self.last = (self.last + data[-8:])[-8:]
        return data

    def close(self) -> None:
        self._out.close()
        super().close()


def _memory(text: str = "") -> BinaryIO:
    """A file in memory: it never makes the program wait, as a pipe that nobody reads would."""
    file = os.fdopen(os.memfd_create("ppt"), "w+b", buffering=0)
    file.write(text.encode())
    file.seek(0)
    return file


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Puts Ctrl-C off: in between, nobody would end the program that is started."""
    came = []
    # Python interrupts the main thread alone, and may not have the handler.
    takes = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT)
    before = signal.signal(signal.SIGINT, lambda *_: came.append(True)) if takes else None
    try:
        yield
    finally:
        if before:
            signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


def _stop(child: "subprocess.Popen[bytes]", messages: BinaryIO) -> None:
    messages.close()
    if child.stdout is not None:
        child.stdout.close()
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _message(said: str) -> Tuple[str, Optional[str]]:
    """The messages without the name before them, and the code of the last one."""
    codes = re.findall(r"^  more: ppt explain (\S+)$", said, re.MULTILINE)
    text = re.sub(r"^  more: ppt explain \S+\n", "", said, flags=re.MULTILINE)
    text = re.sub(r"^ppt: ", "", text, flags=re.MULTILINE)
    return text.strip(), codes[-1] if codes else None


def _outside() -> int:
    """How many frames of the stack are ours: a warning is about the caller's line."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals["__name__"] == __name__:
        level, frame = level + 1, frame.f_back
    return level


def _program() -> str:
    name = "ppt"
    beside = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders = [
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", "posix_user"),
        # pip install --target
        os.path.join(beside, "bin"),
    ]
    found = shutil.which(name, path=os.pathsep.join(folders)) or shutil.which(name)
    if found is None:
        raise Error(f"the program {name} is neither beside this module nor on PATH: install the wheel or the package")
    return found


def _several(words: Words) -> List[str]:
    return [words] if isinstance(words, str) else list(words)


def _part(buffer: Words, from_: Where, to: Where, memory: Optional[str], threads: Optional[int]) -> List[str]:
    options = {"from": from_, "to": to, "memory": memory, "threads": threads}
    words = [f"--buffer={name}" for name in _several(buffer)]
    return words + [f"--{option}={value}" for option, value in options.items() if value is not None]
