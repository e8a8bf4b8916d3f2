"""load.py PORT SECONDS CONNECTIONS: asks for pages, over connections that are kept, one at a time on each.
Says how many answers came, and how many connections broke off."""
import http.client
import sys
import threading
import time

port, seconds, connections = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
until = time.monotonic() + seconds
answers = broken = 0
lock = threading.Lock()


def ask(number):
    global answers, broken
    connection, mine, lost = None, 0, 0
    while time.monotonic() < until:
        try:
            connection = connection or http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", "/" if mine % 4 else f"/none/{number}")
            connection.getresponse().read()
            mine += 1
        except (OSError, http.client.HTTPException):
            connection.close()
            connection, lost = None, lost + 1
    with lock:
        answers, broken = answers + mine, broken + lost


threads = [threading.Thread(target=ask, args=(i,)) for i in range(connections)]
[it.start() for it in threads]
[it.join() for it in threads]
print(answers, broken)
