"""numbered.py REQUESTS: clients ask servers, in threads of two processes, over connections that threads share.

Both processes write which thread asked, or answered, which number, in the order of each thread: asked.txt and
answered.txt, a line `THREAD NUMBER` each.
"""
import itertools
import os
import queue
import random
import socket
import sys
import threading

CLIENTS = 4
CONNECTIONS = 6


def write(name, lines):
    with open(name, "w") as file:
        file.writelines(f"{thread} {number}\n" for thread, number in lines)


def serve(listener):
    lines = []

    def answer(connection):
        thread = threading.get_native_id()
        while data := connection.recv(100):
            lines.append((thread, int(data)))
            connection.sendall(b"answer " + data)

    def accept():
        connection, _ = listener.accept()
        thread = threading.Thread(target=answer, args=(connection,))
        thread.start()
        return thread

    for thread in [accept() for _ in range(CONNECTIONS)]:
        thread.join()
    write("answered.txt", lines)


def ask(port, requests):
    lines, numbers, free = [], itertools.count(), queue.Queue()
    for _ in range(CONNECTIONS):
        free.put(socket.create_connection(("127.0.0.1", port)))

    def client(count, order):
        thread = threading.get_native_id()
        for _ in range(count):
            # Not one after the other: any thread may get any connection.
            taken = [free.get() for _ in range(order.randint(1, 2))] if order.random() < 0.1 else [free.get()]
            order.shuffle(taken)
            connection = taken[0]
            number = next(numbers)
            lines.append((thread, number))
            connection.sendall(b"%d\n" % number)
            assert connection.recv(100) == b"answer %d\n" % number
            for one in taken:
                free.put(one)

    threads = [
        threading.Thread(target=client, args=(requests // CLIENTS, random.Random(number))) for number in range(CLIENTS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    while not free.empty():
        free.get().close()
    write("asked.txt", lines)


listener = socket.create_server(("127.0.0.1", 0))
server = os.fork()
if server == 0:
    serve(listener)
else:
    ask(listener.getsockname()[1], int(sys.argv[1]))
    assert os.waitpid(server, 0)[1] == 0
    print("asked", sys.argv[1])
