"""The HTTP server as a process: the loopback socket it listens on, its logs, and how it starts and stops."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import uvicorn

from kg.errors import InvalidInputError

GRACE_S: Final = 5
"""Seconds that requests in progress have to finish when the server is told to stop."""
QUERIES_GRACE_S: Final = 2
"""Seconds after which queries that still run are stopped, so that who asked hears why before the connection ends."""


def check_loopback(host: str) -> None:
    """Raise InvalidInputError unless `host` is this machine alone."""
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host.strip("[]")).is_loopback:
            return
    if host == "localhost":
        return
    raise InvalidInputError(
        f"the server does not bind {host!r}: it has no authentication yet, so everyone who reaches that address could "
        "read the graph. Bind 127.0.0.1, ::1 or localhost, and put a proxy that authenticates in front of it"
    )


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on `host` and `port` (0: a free one); InvalidInputError when it cannot be had."""
    check_loopback(host)
    if not 0 <= port <= 65535:
        raise InvalidInputError(f"port is {port}; it must be from 0 to 65535, and 0 takes a free one")
    name = host.strip("[]")
    # Named as TCP, or asyncio leaves Nagle's algorithm on, which holds each answer's second packet back for 40 ms.
    family = socket.AF_INET6 if ":" in name else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((name, port))
        listening.listen(2048)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise InvalidInputError(
                f"port {port} on {host} is in use by another process; stop it, or choose another with --port "
                "(0 takes a free one)"
            ) from None
        raise InvalidInputError(f"cannot listen on {host} port {port}: {error.strerror}") from None
    return listening


def address_of(listening: socket.socket) -> str:
    """Return the URL that a listening socket is reached at."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextlib.contextmanager
def signals_that_return() -> Iterator[None]:
    """Let SIGTERM and SIGINT end the server and nothing else: uvicorn raises them again once it has stopped, which
    would end the process before the graph is closed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Server(uvicorn.Server):
    """Uvicorn that says when it takes requests, and ends long work in time when it stops."""

    def __init__(
        self,
        config: uvicorn.Config,
        address: str,
        on_ready: Callable[[str], None] | None,
        stop_queries: Sequence[Callable[[], None]],
    ) -> None:
        super().__init__(config)
        self._address, self._on_ready, self._stop_queries = address, on_ready, stop_queries

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take requests, then say so."""
        await super().startup(sockets)
        if self.started and self._on_ready is not None:
            self._on_ready(self._address)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let requests in progress end, and stop the queries among them that would take too long."""
        loop = asyncio.get_running_loop()
        timers = [loop.call_later(QUERIES_GRACE_S, loop.run_in_executor, None, stop) for stop in self._stop_queries]
        try:
            await super().shutdown(sockets)
        finally:
            for timer in timers:
                timer.cancel()


LOGGING: Final = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain", "stream": "ext://sys.stderr"}},
    "loggers": {
        "uvicorn": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        "uvicorn.access": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        "kg": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
    },
}
"""All logs, the access log included, go to standard error."""
