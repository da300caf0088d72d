"""Attacks of clients other than queries: they hold connections, bodies and places, or run away. For tests, figures."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from typing import Final
from urllib.parse import quote

import httpx

from tests.adversarial.corpus import CROSS
from tests.adversarial.running import GOOD, Running, ask, good

STREAM: Final = quote("SELECT * { ?a ?p ?b . ?c ?q ?d . ?e ?r ?f }")
MANY_OBJECTS: Final = 1_900_000
"""Objects of one statement that are too many for a graph: 13 MB."""
BODY_BYTES: Final = 16 << 20


@cache
def build_statement(objects: int) -> bytes:
    """Build one statement with so many objects."""
    return b"<urn:s> <urn:p> " + b",".join(b"%d" % number for number in range(objects)) + b" ."


def open_silent_readers(server: Running, stack: ExitStack, count: int) -> list[socket.socket]:
    """Ask for endless results from four addresses, and read nothing of them."""
    silent = []
    for number in range(count):
        connection = stack.enter_context(server.connect(f"127.0.0.{number % 4 + 1}", 4_096))
        connection.sendall(
            b"GET /sparql?query=" + STREAM.encode() + b" HTTP/1.1\r\nHost: localhost\r\nAccept: text/csv\r\n"
            b"Accept-Encoding: identity\r\nConnection: close\r\n\r\n"
        )
        silent.append(connection)
    return silent


def send_half_heads(server: Running, stack: ExitStack, count: int) -> None:
    """Send requests without the end of their heads, every second one after a whole request."""
    slow = [stack.enter_context(server.connect()) for _ in range(count)]
    for number, connection in enumerate(slow):
        if number % 2:
            connection.sendall(b"GET /sparql?query=ASK%7B%7D HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b" 200 " in connection.recv(65_536)
        connection.sendall(b"GET /sparql?query=ASK%7B%7D HTTP/1.1\r\nHost: localhost\r\nX-Part: ")


def hold_bodies(server: Running, stack: ExitStack, count: int, seconds: float) -> int:
    """Send bodies of 16 MB, all but their end, as far as the server takes them; return its largest size in bytes."""
    head = "PUT /graphs/user/held HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/turtle\r\n"
    head += f"Content-Length: {BODY_BYTES}\r\n\r\n"
    held = [stack.enter_context(server.connect(f"127.0.0.{number % 4 + 1}")) for number in range(count)]
    piece, left = b"# " + b"a" * 65_533 + b"\n", dict.fromkeys(held, BODY_BYTES - 65_536)
    for connection in held:
        connection.sendall(head.encode())
        connection.setblocking(False)
    most, begun = 0, time.monotonic()
    while time.monotonic() - begun < seconds:
        for connection in held:
            with contextlib.suppress(OSError):
                left[connection] -= connection.send(piece[: max(0, left[connection])])
        most = max(most, server.resident_bytes())
    return most


def wait_until_closed(server: Running, sockets: int, seconds: float) -> float:
    """Return the seconds until the server has at most `sockets` open: it closes all others."""
    begun = time.monotonic()
    while (left := server.count_sockets()) > sockets:
        assert time.monotonic() - begun < seconds, f"{left} are open after {seconds} s, of which {sockets} may be"
        time.sleep(0.05)
    return time.monotonic() - begun


def watch(
    server: Running, client: httpx.Client, send: Callable[[], httpx.Response]
) -> tuple[httpx.Response, int, float]:
    """Send a request; return its answer, the most that the server grew, and the longest wait of a good query."""
    before, most, longest = server.resident_bytes(), 0, 0.0
    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(send)
        while not answer.done():
            longest = max(longest, good(client))
            most = max(most, server.resident_bytes())
            time.sleep(0.01)
    return answer.result(), most - before, longest


def ask_points(client: httpx.Client, count: int) -> tuple[list[float], list[str]]:
    """Ask point queries; return the seconds of each, sorted, and the answers that refuse one."""
    took, refused = [], []
    for number in range(count):
        started = time.monotonic()
        response = client.get("/sparql", params={"query": GOOD.replace("1>", f"{number}>", 1)})
        took.append(time.monotonic() - started)
        if response.status_code != 200:
            refused.append(response.text)
    return sorted(took), refused


@contextlib.contextmanager
def spinning(processes: int) -> Iterator[None]:
    """Take processor time in other processes for the block."""
    with ExitStack() as stack:
        for _ in range(processes):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-I", "-c", "while True: pass"]))
            stack.callback(process.kill)
        yield


@contextlib.contextmanager
def running_away(server: Running, count: int, addresses: int = 4) -> Iterator[None]:
    """Have `count` connections of some addresses ask one runaway after another for the block."""
    done = threading.Event()

    def run_away(number: int) -> None:
        with server.client(f"127.0.0.{2 + number % addresses}") as client:
            while not done.is_set():
                ask(client, f"SELECT (COUNT(*) AS ?n) {{ {CROSS} }} # {number} {time.monotonic()}")

    with server.client() as client, ThreadPoolExecutor(count) as threads:
        running = [threads.submit(run_away, number) for number in range(count)]
        begun = time.monotonic()
        while len(client.get("/sparql/queries").json()["queries"]) < count * 3 // 4:
            assert time.monotonic() - begun < 60
            time.sleep(0.01)
        try:
            yield
        finally:
            done.set()
            for query in client.get("/sparql/queries").json()["queries"]:
                client.delete(f"/sparql/queries/{query['id']}")
        for future in running:
            future.result()


def count_processors() -> int:
    """Count the processors of this machine."""
    return os.cpu_count() or 1
