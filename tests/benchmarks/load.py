"""A client that costs little: GET requests over kept connections, each timed, as many at a time as asked for."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

JSON = "application/sparql-results+json"


@dataclass(slots=True, eq=False)
class Connection:
    """One kept connection: `ask`, then `read` until it returns the status of the answer."""

    host: str
    port: int
    path: str
    socket: socket.socket = field(init=False)
    received: bytearray = field(default_factory=bytearray)
    sent_at: float = 0.0

    def __post_init__(self) -> None:
        self.socket = socket.create_connection((self.host, self.port), timeout=120)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, query: str, accept: str = JSON, extra: str = "") -> None:
        target = f"{self.path}?query={quote(query)}{extra}"
        self.received.clear()
        self.sent_at = time.perf_counter()
        self.socket.sendall(
            f"GET {target} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nAccept: {accept}\r\n\r\n".encode()
        )

    def read(self) -> int | None:
        """Read what has come; return the status once the answer is whole."""
        piece = self.socket.recv(1 << 18)
        if not piece:
            raise ConnectionError("the server closed the connection")
        self.received += piece
        end = self.received.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = bytes(self.received[:end]).lower()
        if b"transfer-encoding: chunked" in head:
            whole = self.received.endswith(b"0\r\n\r\n")
        else:
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            whole = len(self.received) >= end + 4 + length
        return int(head[9:12]) if whole else None

    def get(self, query: str, accept: str = JSON, extra: str = "") -> tuple[int, float]:
        """Ask and wait; return the status and the seconds."""
        self.ask(query, accept, extra)
        while (status := self.read()) is None:
            pass
        return status, time.perf_counter() - self.sent_at

    def close(self) -> None:
        self.socket.close()


def connect(url: str) -> Connection:
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return Connection(parts.hostname, parts.port, parts.path)


def throughput(url: str, queries: Iterator[str], clients: int, seconds: float) -> float:
    """Return the answers a second that `clients` get who each ask again at once."""
    connections = [connect(url) for _ in range(clients)]
    answered = 0
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection.socket, selectors.EVENT_READ, connection)
            connection.ask(next(queries))
        begun = time.perf_counter()
        while (now := time.perf_counter()) - begun < seconds:
            for key, _ in selector.select(1.0):
                status = key.data.read()
                if status is None:
                    continue
                assert status == 200, bytes(key.data.received[:500])
                answered += 1
                key.data.ask(next(queries))
    for connection in connections:
        connection.close()
    return answered / (now - begun)
