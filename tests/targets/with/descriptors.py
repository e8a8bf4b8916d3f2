"""Connections whose descriptors come in other ways than by socket and accept: descriptors.py CASE."""

import fcntl
import os
import socket
import sys


def server(number=1, count=1):
    """The address of a process that answers: so many requests on each of so many connections."""
    at = socket.create_server(("127.0.0.1", 0))
    if os.fork() == 0:
        for _ in range(number):
            with at.accept()[0] as each:
                for _ in range(count):
                    each.sendall(each.recv(64))
                each.recv(64)
        os._exit(0)
    return at.getsockname()


def passed():
    """A dispatcher accepts, and sends each connection to this process, which has had its number for a client."""
    at, idle = (socket.create_server(("127.0.0.1", 0), backlog=200) for _ in range(2))
    here, there = socket.socketpair()
    if os.fork() == 0:
        for _ in range(100):
            client = socket.create_connection(at.getsockname())
            client.sendall(b"question")
            accepted = at.accept()[0]
            socket.send_fds(there, [b"x"], [accepted.fileno()])
            accepted.close()
            client.recv(9)
            client.close()
        os._exit(0)
    for _ in range(100):
        socket.create_connection(idle.getsockname()).close()
        fd = socket.recv_fds(here, 1, 1)[1][0]
        os.read(fd, 9)
        os.write(fd, b"answer")
        os.close(fd)


def copied():
    client = socket.create_connection(server(count=100))
    fd = fcntl.fcntl(client, fcntl.F_DUPFD_CLOEXEC, 10)
    client.close()
    for _ in range(100):
        os.write(fd, b"hello")
        os.read(fd, 64)


def fast():
    """The first bytes go out with the packet that connects."""
    address = server(200, 2)
    for number in range(200):
        client = socket.socket()
        if number % 2:
            client.sendto(b"one", socket.MSG_FASTOPEN, address)
        else:
            client.sendmsg([b"one"], [], socket.MSG_FASTOPEN, address)
        client.recv(9)
        client.sendall(b"two")
        client.recv(9)
        client.close()


globals()[sys.argv[1]]()
