"""A web server that asks PostgreSQL: server.py PORT DATABASE.

/customer/N     what a customer paid: the database has an index for that
/search/TEXT    how many notes contain a text: the database reads every order
"""

import queue
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg2

CONNECTIONS = 4
database = queue.Queue()


def ask(statement, value):
    connection = database.get()
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement, (value,))
            return cursor.fetchone()[0]
    finally:
        database.put(connection)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        _, page, value = (self.path.partition("?")[0] + "//").split("/")[:3]
        if page == "customer" and value.isdigit():
            found = ask("SELECT sum(cents) FROM orders WHERE customer = %s", int(value))
        elif page == "search":
            found = ask("SELECT count(*) FROM orders WHERE note LIKE %s", f"%{value}%")
        else:
            self.send_error(404)
            return
        body = f"{found}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


for _ in range(CONNECTIONS):
    connection = psycopg2.connect(sys.argv[2])
    connection.autocommit = True
    database.put(connection)
server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
print("port", server.server_address[1], flush=True)
server.serve_forever()
