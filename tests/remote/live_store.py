"""A SPARQL endpoint on loopback that can be made to behave in any way."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

from pyoxigraph import QueryResultsFormat, QuerySolutions, Store

JSON = "application/sparql-results+json"
Behaviour = Callable[[BaseHTTPRequestHandler, str], None]


def send(handler: BaseHTTPRequestHandler, status: int, body: bytes, media_type: str = JSON, **headers: str) -> None:
    handler.send_response(status)
    for name, value in {"Content-Type": media_type, "Content-Length": str(len(body)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def status(code: int, body: bytes = b"no", media_type: str = "text/plain", **headers: str) -> Behaviour:
    return lambda handler, query: send(handler, code, body, media_type, **headers)


def bindings(*rows: dict[str, object]) -> bytes:
    return json.dumps({"head": {"vars": ["s"]}, "results": {"bindings": rows}}).encode()


@dataclass
class LiveStore:
    """Answers from `data`, unless `behaviours` has something for the next request (its last stays for all others)."""

    address: str = ""
    data: Store = field(default_factory=Store)
    behaviours: list[Behaviour] = field(default_factory=list)
    stays: bool = False
    asked: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    release: threading.Event = field(default_factory=threading.Event)
    server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        return f"{self.address}/sparql"

    def behave(self, *behaviours: Behaviour) -> None:
        self.behaviours, self.stays = list(behaviours), False

    def always(self, behaviour: Behaviour) -> None:
        self.behaviours, self.stays = [behaviour], True

    def answer(self, handler: BaseHTTPRequestHandler, query: str) -> None:
        if self.behaviours:
            behaviour = self.behaviours[0] if self.stays else self.behaviours.pop(0)
            behaviour(handler, query)
            return
        try:
            found = self.data.query(query, use_default_graph_as_union=True)
        except SyntaxError as error:
            send(handler, 400, str(error).encode(), "text/plain")
            return
        assert isinstance(found, QuerySolutions)
        send(handler, 200, found.serialize(format=QueryResultsFormat.JSON) or b"")


def serving() -> Iterator[LiveStore]:
    state = LiveStore()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            [query] = parse_qs(body)["query"]
            state.asked.append(query)
            state.headers.append({name.lower(): value for name, value in self.headers.items()})
            try:
                state.answer(self, query)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.server = server
    state.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield state
    state.release.set()
    server.shutdown()
    server.server_close()
