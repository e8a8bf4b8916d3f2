"""A web server; each request is a frame."""
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import request
from request import Method


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        # Off, the scope does nothing; on, it stamps handle_start here and handle_end at its end.
        with request.request_scope(method=Method.GET, path=self.path) as frame:
            status, body = (200, b"hello\n") if self.path == "/" else (404, b"no such page\n")
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            frame.set(status=status, bytes=len(body))

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print("port", server.server_port, flush=True)
server.serve_forever()
