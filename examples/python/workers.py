"""A web server that forks workers, and another one for each that ends: `workers.py PORT WORKERS`. Each
worker counts what it has served in memory that outlives it; at SIGTERM that is printed."""
import multiprocessing
import os
import signal
import socket
import sys
import time

import request
from request import Method

MOST = 10_000
fork = multiprocessing.get_context("fork")
counts = fork.RawArray("Q", 2 * MOST)  # of each worker: frames that were begun, and those that were written


def serve(number, listening):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while True:
        connection, _ = listening.accept()
        with connection:
            words = connection.recv(1000).split(b" ")
            if len(words) < 2:
                continue
            path = words[1].decode()
            start = request.now()  # 0 where nobody is attached
            status, body = (200, b"hello\n") if path == "/" else (404, b"no such page\n")
            connection.sendall(b"HTTP/1.0 %d\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))
            if start:
                counts[2 * number] += 1
                request.request(Method.GET, status, len(body), start, request.now(), path)
                counts[2 * number + 1] += 1


def worker(number, listening):
    it = fork.Process(target=serve, args=(number, listening))
    it.start()
    return it


def stop(*_):
    raise SystemExit


listening = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=128)
print("port", listening.getsockname()[1], flush=True)
signal.signal(signal.SIGTERM, stop)
workers = []
try:
    workers += [worker(i, listening) for i in range(int(sys.argv[2]))]
    started = len(workers)
    while True:
        time.sleep(0.01)
        for i, it in enumerate(workers):
            if not it.is_alive():
                workers[i] = worker(started, listening)
                started += 1
finally:
    if multiprocessing.parent_process() is None:
        [os.kill(it.pid, signal.SIGKILL) for it in workers if it.is_alive()]
        [it.join() for it in workers]
        print("workers", started, "begun", sum(counts[::2]), "done", sum(counts[1::2]), flush=True)
