"""The HTTP server as a process: the socket it listens on, its logs, and how it starts and stops."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import uvicorn

from kg.errors import InvalidInputError
from kg.remote.http import is_loopback
from kg.server.call_log import JsonFormatter
from kg.settings import Settings

log = logging.getLogger(__name__)

GRACE_S: Final = 5
"""Seconds for requests in progress to finish when the server stops."""
RENEW_S: Final = 60.0
"""Seconds between two looks at the files of the certificate."""
QUERIES_GRACE_S: Final = 2
"""Seconds after which running queries are stopped, so that their clients receive an error before the disconnect."""


def check_bind(host: str, *, protected: bool) -> None:
    """Raise InvalidInputError unless `host` is this machine alone, or requests need credentials (`protected`)."""
    if protected or is_loopback(host.strip("[]")):
        return
    raise InvalidInputError(
        f"Cannot bind {host!r}: no accounts are configured, so everyone who reaches that address could read and write. "
        "Make a token (`kg token new NAME`), or configure an identity provider or a proxy that names the user "
        "(`kg docs access`). Without accounts bind 127.0.0.1, ::1 or localhost. `--insecure` serves everyone."
    )


def listen(host: str, port: int) -> socket.socket:
    """Open a socket that listens on `host` and `port` (0: any free one). Raises InvalidInputError if it cannot."""
    if not 0 <= port <= 65535:
        raise InvalidInputError(f"Invalid port {port}. Valid: 0 to 65535; 0 is any free port.")
    name = host.strip("[]")
    # With the protocol named, asyncio turns Nagle's algorithm off, which delays each response's second packet by 40 ms.
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
                f"Port {port} on {host} is in use by another process. Choose another with --port (0: any free one)."
            ) from None
        raise InvalidInputError(f"Cannot listen on {host} port {port}: {error.strerror}.") from None
    return listening


def address_of(listening: socket.socket, scheme: str = "http") -> str:
    """Get the URL of a listening socket for programs on this machine."""
    host, port = listening.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 -- all addresses, also loopback
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


@contextlib.contextmanager
def signals_that_return() -> Iterator[None]:
    """Ignore SIGTERM and SIGINT outside uvicorn. It raises them again once it has stopped, which would end the process
    before the graph is closed.
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
    """Uvicorn that reports when it is ready, and stops long queries when it shuts down."""

    def __init__(
        self,
        config: uvicorn.Config,
        address: str,
        on_ready: Callable[[str], None] | None,
        stop_queries: Sequence[Callable[[], None]],
    ) -> None:
        super().__init__(config)
        self._certificate: tuple[int, ...] = ()
        self._address, self._on_ready, self._stop_queries = address, on_ready, stop_queries

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then call `on_ready`."""
        await super().startup(sockets)
        if self.config.ssl is not None:
            self._certificate = self._get_times()
            asyncio.get_running_loop().call_later(RENEW_S, self._renew)
        if self.started and self._on_ready is not None:
            self._on_ready(self._address)

    def _renew(self) -> None:
        """Use a certificate that has been renewed for new connections; keep the one of before if it cannot be read."""
        times = self._get_times()
        if times != self._certificate:
            try:
                load_certificate(self.config.ssl_certfile, self.config.ssl_keyfile)  # both files, before either counts
                assert self.config.ssl is not None  # noqa: S101 -- it is called only then
                self.config.ssl.load_cert_chain(str(self.config.ssl_certfile), self.config.ssl_keyfile)
            except InvalidInputError as error:
                log.error("%s The certificate of before stays in use.", error)
            else:
                self._certificate = times
                log.info("The certificate in %s is in use for new connections.", self.config.ssl_certfile)
        asyncio.get_running_loop().call_later(RENEW_S, self._renew)

    def _get_times(self) -> tuple[int, ...]:
        files = (self.config.ssl_certfile, self.config.ssl_keyfile)
        with contextlib.suppress(OSError):
            return tuple(os.stat(file).st_mtime_ns for file in files if file is not None)
        return ()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for requests in progress, and stop queries that take too long."""
        loop = asyncio.get_running_loop()
        timers = [loop.call_later(QUERIES_GRACE_S, loop.run_in_executor, None, stop) for stop in self._stop_queries]
        try:
            await super().shutdown(sockets)
        finally:
            for timer in timers:
                timer.cancel()


def load_certificate(certificate: str | os.PathLike[str] | None, key: str | os.PathLike[str] | None) -> None:
    """Raise InvalidInputError unless a server can use the certificate with the key."""

    def refuse() -> str:
        raise ValueError("the key has a passphrase")

    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(str(certificate), key, password=refuse)
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            f"Cannot use the certificate {certificate} with the key {key}: {error}. Both are PEM files, the "
            "certificate comes first in its file, and the key is its own and has no passphrase."
        ) from None


def build_logging(settings: Settings) -> dict[str, Any]:
    """Build the configuration of the logs. All of them, including the access log, go to standard error."""
    logger = {"handlers": ["stderr"], "level": settings.log_level.upper(), "propagate": False}
    calls = {"level": "INFO" if settings.log_calls else "CRITICAL"}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "text": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"},
            "json": {"()": JsonFormatter, "brand": settings.brand},
        },
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": settings.log_format,
                "stream": "ext://sys.stderr",
            }
        },
        "loggers": {
            "uvicorn": logger,
            "uvicorn.access": logger,
            "kg": logger,
            "kg.calls": calls,
            # Writes answers of remote servers, with tracebacks. `kg.connectors` logs failures, shortened.
            "mcp.client": {"level": "CRITICAL"},
        },
    }
