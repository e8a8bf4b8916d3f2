"""Customers of the services: load.py PORT CLIENTS REQUESTS.

Each client makes that many requests, one after the other; every 20th is a search. Prints how many were
answered, and what they took.
"""

import http.client
import sys
import threading
import time


def client(port, number, requests, took):
    for i in range(requests):
        page = f"/search/{i % 10}a{number % 10}" if i % 20 == 9 else f"/customer/{(number * 37 + i) % 1000}"
        # Requests of different lengths can be told apart in a capture.
        page += "?" + "x" * ((number + 2 * i) % 40)
        start = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", page)
        answer = connection.getresponse()
        answer.read()
        connection.close()
        if answer.status != 200:
            sys.exit(f"{page}: {answer.status}")
        took.append(time.perf_counter() - start)


def main():
    port, clients, requests = map(int, sys.argv[1:4])
    took = []
    threads = [
        threading.Thread(target=client, args=(port, number, requests, took)) for number in range(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took.sort()
    half, most = took[len(took) // 2], took[len(took) * 99 // 100]
    print(f"answered {len(took)}: half within {half * 1e3:.1f} ms, 99 % within {most * 1e3:.1f} ms")


main()
