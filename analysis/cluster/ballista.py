"""Ballista, as check.py asks it: a scheduler and two executors on this machine, and the client of ballista/."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

import ask

BIN = pathlib.Path(__file__).parents[2] / "target/cluster/bin"
"""The folder of the programs that `install` builds."""
START = 30
"""The longest time for a scheduler to start, in seconds."""


def port():
    """A free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


class Ballista:
    """Queries a cluster: that of `scheduler`, or one on this machine."""

    TOLERANCE = 1e-9

    def __init__(self, folder, scheduler=None, wait=ask.WAIT):
        for name in ["ask-ballista"] + ([] if scheduler else ["ballista-scheduler", "ballista-executor"]):
            if not (BIN / name).exists():
                raise ask.Failure(f"no {name} in {BIN}: analysis/cluster/install ballista")
        self.folder, self.wait, self.scheduler = folder, wait, scheduler
        self.processes, self.started = [], 0
        if scheduler:
            return
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="ppt-ballista-"))
        self.scheduler = f"127.0.0.1:{port()}"
        # Short intervals of both, so that a dead executor is noticed in seconds instead of minutes.
        try:
            self._start("scheduler", *self._bind("bind-port"), "--executor-timeout-seconds=6",
                        "--expire-dead-executor-interval-seconds=1")
            self._answers()
            self.start_executor()
            self.start_executor()
            while len(self._asked("executors")) < 2:
                self._alive()
                time.sleep(0.05)
        except BaseException:
            self.stop()
            raise

    def _bind(self, name):
        return "--bind-host=127.0.0.1", f"--{name}={self.scheduler.rpartition(':')[2]}"

    def _start(self, what, *words):
        self.started += 1
        log = open(self.work / f"{what}-{self.started}.log", "wb")
        with log:
            command = [BIN / f"ballista-{what}", *words]
            self.processes.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=self.work))

    def start_executor(self):
        """Starts another executor with one core."""
        folder = self.work / f"executor-{self.started}"
        folder.mkdir()
        host, _, at = self.scheduler.partition(":")
        self._start("executor", f"--scheduler-host={host}", f"--scheduler-port={at}", "--bind-host=127.0.0.1",
                    "--external-host=127.0.0.1", f"--bind-port={port()}", f"--bind-grpc-port={port()}",
                    f"--bind-health-port={port()}", f"--work-dir={folder}", "--vcores=1",
                    "--executor-heartbeat-interval-seconds=2")

    def _alive(self):
        for process in self.processes:
            if process.poll() is not None:
                logs = sorted(self.work.glob("*.log"))
                said = " ".join(line for log in logs for line in log.read_text(errors="replace").splitlines()[-1:])
                raise ask.Failure(f"{process.args[0].name} ended: {said}")

    def _answers(self):
        end = time.monotonic() + START
        while True:
            try:
                return self._asked("state")
            except OSError:
                self._alive()
                if time.monotonic() > end:
                    raise ask.Failure(f"the scheduler does not answer in {START} s") from None
                time.sleep(0.05)

    def _asked(self, what):
        with urllib.request.urlopen(f"http://{self.scheduler}/api/{what}", timeout=5) as answer:
            return json.load(answer)

    def busy(self):
        """Whether a query is running."""
        return any(job["status"] == "Running" for job in self._asked("jobs"))

    def kill(self):
        """Ends an executor, and starts another one."""
        victim = next(it for it in self.processes[1:] if it.poll() is None)
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        self.processes.remove(victim)
        self.start_executor()
        return victim.pid

    def sql(self, query):
        """The names of the columns, and the rows."""
        command = [BIN / "ask-ballista", "--format=jsonl", f"--wait={self.wait}", f"--scheduler={self.scheduler}"]
        done = subprocess.run([*command, self.folder, query], capture_output=True, text=True)
        if done.returncode:
            raise ask.Failure(done.stderr.strip().removeprefix("cluster: "))
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        return list(rows[0]) if rows else [], [tuple(row.values()) for row in rows]

    def stop(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()
        if self.processes:
            shutil.rmtree(self.work, ignore_errors=True)
        self.processes = []
