"""A web server and its client in one process: server.py NUMBER. It says how many requests it answered."""
import http.server
import sys
import threading
import urllib.request


class Handler(http.server.BaseHTTPRequestHandler):
    answered = 0

    def do_GET(self):
        Handler.answered += 1
        body = b"x" * 100
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
thread = threading.Thread(target=server.serve_forever)
thread.start()
for _ in range(int(sys.argv[1])):
    urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/").read()
server.shutdown()
thread.join()
server.server_close()
print("answered", Handler.answered)
