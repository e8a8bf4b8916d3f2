"""echo.py serve, or echo.py ask PORT: one connection, over which ask sends lines until its input ends."""
import select
import socket
import sys

if sys.argv[1] == "serve":
    listener = socket.create_server(("127.0.0.1", 0))
    print("ready", listener.getsockname()[1], flush=True)
    connection, _ = listener.accept()
    while data := connection.recv(100):
        connection.sendall(data)
else:
    connection = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
    number = 0
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0.0005)[0]:
        connection.sendall(b"%d\n" % number)
        assert connection.recv(100) == b"%d\n" % number
        number += 1
        if number % 100 == 0:
            print("asked", number, flush=True)
