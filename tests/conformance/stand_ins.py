"""Stand-ins for the remote endpoints of the tests about SERVICE: pyoxigraph behind HTTP, by itself, on loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs

import pyoxigraph
from pyoxigraph import Quad, QueryResultsFormat

NAMES: Final = ("example.org", "example1.org", "example2.org", "invalid.endpoint.org")
"""Hosts of the endpoints that the tests speak of. At the last there is no endpoint."""
RELATIVE: Final = "g"
"""The endpoint that the syntax tests name, by a relative IRI. It holds nothing."""


class StandIns:
    """One server with a dataset for each endpoint, at a path of its own."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._datasets: dict[str, pyoxigraph.Store] = {}
        self.base: Final = f"{address}/"
        self.addresses: Final = [self.base + name for name in (*NAMES, RELATIVE)]

    def here(self, text: str) -> str:
        """Return `text` with the addresses of the stand-ins in place of those that the tests name."""
        for name in NAMES:
            text = text.replace(f"http://{name}/sparql", f"{self._address}/{name}")
        return text

    def load(self, datasets: dict[str, list[Quad]]) -> None:
        """Make each endpoint, by the IRI that the tests have for it, hold these quads, and the others none."""
        self._datasets = {f"/{RELATIVE}": pyoxigraph.Store()}
        for endpoint, quads in datasets.items():
            store = self._datasets[self.here(endpoint).removeprefix(self._address)] = pyoxigraph.Store()
            store.extend(quads)

    def answer(self, path: str, query: str) -> bytes | None:
        """Return the result of a query in SPARQL JSON; None where there is no endpoint."""
        if path.endswith(NAMES[-1]) or path not in self._datasets:
            return None
        found: Any = self._datasets[path].query(query)
        return found.serialize(format=QueryResultsFormat.JSON)  # type: ignore[no-any-return]


@contextmanager
def stand_ins() -> Iterator[StandIns]:
    """Serve the stand-ins for as long as the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            answer = served.answer(self.path, parse_qs(body)["query"][0])
            self.send_response(404 if answer is None else 200)
            self.send_header("Content-Type", "application/sparql-results+json")
            self.end_headers()
            self.wfile.write(answer or b"")

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served = StandIns(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="stand-ins")
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()
