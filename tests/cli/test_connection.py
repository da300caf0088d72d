"""The connection of commands to a server."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from kg.cli.connection import ServerConnection


def test_argument_that_is_not_utf_8_reaches_the_server() -> None:
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            content = b'{"result": {}}\n'
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    name = b"laws-\xe9.csv".decode("utf-8", "surrogateescape")
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request, daemon=True)
        thread.start()
        with ServerConnection(f"http://127.0.0.1:{server.server_address[1]}", None) as connection:
            assert connection.call("search", {"query": name}) == {}
        thread.join()
    assert name in json.dumps(asked, ensure_ascii=False)
