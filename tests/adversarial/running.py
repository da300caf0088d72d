"""A real server in a process of its own, over the data of the corpus, with a short deadline and little memory."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

import httpx

from kg.search.registry import MINILM
from kg.store.oxigraph import OxigraphStore
from tests.adversarial.corpus import CUT, EXAMPLE, OK, Attack, write_ring

DEADLINE_S: Final = 1.0
MEMORY_MB: Final = 256
GOOD: Final = f"SELECT ?o {{ <{EXAMPLE}1> <{EXAMPLE}text> ?o }}"
ELSEWHERE: Final = "127.0.0.2"
"""An address of this machine that a second client comes from."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a query ended: an error's code or `OK`, the HTTP status, and the seconds from its begin to its end."""

    code: str
    status: int
    seconds: float
    message: str = ""


class Running:
    """A server that is up: its address, and what its processes are and take."""

    def __init__(self, address: str, pid: int) -> None:
        self.address: Final = address
        self.pid: Final = pid

    def client(self, source: str | None = None) -> httpx.Client:
        """Return a client, from another address of this machine if `source` says so."""
        transport = httpx.HTTPTransport(local_address=source, limits=httpx.Limits(max_connections=300))
        return httpx.Client(base_url=self.address, transport=transport, timeout=60, trust_env=False)

    def connect(self, source: str | None = None, buffer_bytes: int | None = None) -> socket.socket:
        """Return a bare connection, from another address of this machine and with a small buffer if so given."""
        parts = urlsplit(self.address)
        assert parts.hostname
        assert parts.port
        connection = socket.socket()
        connection.settimeout(60)
        if buffer_bytes is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        if source is not None:
            connection.bind((source, 0))
        connection.connect((parts.hostname, parts.port))
        return connection

    def resident_bytes(self) -> int:
        """Return what the server itself holds in memory, its workers not counted."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024

    def count_sockets(self) -> int:
        """Count the sockets that the server itself has open."""
        links = []
        for descriptor in Path(f"/proc/{self.pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                links.append(descriptor.readlink().name)
        return sum(link.startswith("socket:") for link in links)

    def children(self) -> set[int]:
        """Return the processes that descend from the server."""
        parents: dict[int, int] = {}
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal():
                try:
                    fields = (folder / "stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue  # it has just ended
                if fields[0] != "Z":
                    parents[int(folder.name)] = int(fields[1])
        found = {self.pid}
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        return found - {self.pid}

    def find_children(self, module: str) -> list[int]:
        """Find the processes of the server that run `module`."""
        found = []
        for pid in self.children():
            with suppress(OSError):
                if module.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
        return found


def ask(client: httpx.Client, query: str, timeout_s: float | None = None) -> Outcome:
    """Ask a query, with a deadline before that of the server if so given, and read its whole answer."""
    started = time.monotonic()
    address = "/sparql" if timeout_s is None else f"/sparql?timeout={timeout_s}"
    with client.stream("POST", address, content=query, headers={"Content-Type": "application/sparql-query"}) as got:
        if got.status_code == 200:
            try:
                for _ in got.iter_raw():
                    pass
            except httpx.RemoteProtocolError:  # its last chunk is missing: the answer was cut, and says so
                return Outcome(CUT, 200, time.monotonic() - started)
            return Outcome(OK, 200, time.monotonic() - started)
        got.read()
        seconds = time.monotonic() - started
        body = got.json() if "json" in got.headers.get("content-type", "") else {}
        return Outcome(body.get("code", ""), got.status_code, seconds, str(body)[:300] or got.text[:300])


def persist(client: httpx.Client, attack: Attack, timeout_s: float | None = None) -> Outcome:
    """Run one attack, again for as long as the server says that it is busy."""
    query = attack.make()
    while (outcome := ask(client, query, timeout_s)).code in ("query_busy", "client_busy"):
        time.sleep(0.05)
    return outcome


def good(client: httpx.Client, patience_s: float = 20) -> float:
    """Ask a good query, again when the server is busy, and return the seconds until it was answered."""
    started = time.monotonic()
    while True:
        response = client.get(f"/sparql?query={quote(GOOD)}")
        if response.status_code == 200:
            assert len(response.json()["results"]["bindings"]) == 1
            return time.monotonic() - started
        if response.status_code != 504:  # a deadline of a second, where 200 others want the processor
            assert response.status_code in (429, 503), response.text
            assert response.headers["retry-after"]
        assert time.monotonic() - started < patience_s, response.text
        time.sleep(0.05)


@contextmanager
def running(
    folder: Path, *, data: Path | None = None, prepare: Callable[[], None] = lambda: None, **settings: str
) -> Iterator[Running]:
    """Serve the corpus's data in a process of its own; at the end it must stop on SIGTERM and leave nothing behind.

    `data` is the data directory. `prepare` is called before the server starts.
    """
    data = data or folder / "data"
    with OxigraphStore(data) as store:
        write_ring(store)
    prepare()
    process = start(folder, data, **settings)
    server = None
    try:
        server = wait_until_ready(folder, process)
        yield server
    finally:
        stop(process, server)
    assert process.returncode in (0, 128 + signal.SIGTERM)
    said = (folder / "log").read_text()
    assert "Traceback" not in said, said[-3_000:]


def start(folder: Path, data: Path, port: int = 0, **settings: str) -> subprocess.Popen[bytes]:
    """Start a server over the data directory `data`, with its log in `folder`."""
    environment = {
        **os.environ,
        "QUADCITE_MODELS_DIR": str(folder / "models"),
        "QUADCITE_MODEL": MINILM,
        "QUADCITE_QUERY_TIMEOUT_S": str(DEADLINE_S),
        "QUADCITE_QUERY_MEMORY_MB": str(MEMORY_MB),
        "QUADCITE_MAX_ROWS": "10000",
        **{f"QUADCITE_{name.upper()}": value for name, value in settings.items()},
    }
    command = [sys.executable, "-m", "kg.cli", "serve", "--port", str(port), "--data-dir", str(data)]
    with (folder / "log").open("w") as log:
        return subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)


def wait_until_ready(folder: Path, process: subprocess.Popen[bytes]) -> Running:
    """Wait until a server that was started answers."""
    server = Running(_address(folder / "log", process), process.pid)
    with server.client() as client:
        good(client, 60)
    return server


def stop(process: subprocess.Popen[bytes], server: Running | None) -> None:
    """End a server by SIGTERM. It must leave no process behind."""
    family = server.children() if server is not None else set()
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    left = {pid for pid in family if Path(f"/proc/{pid}").exists()}
    assert not left, f"processes left behind: {left}"


def _address(log: Path, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        if found := re.search(r"http://127\.0\.0\.1:\d+", log.read_text()):
            return found[0]
        time.sleep(0.02)
    raise AssertionError("the server did not start within a minute")
