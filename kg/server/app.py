"""The composition root of the server: opens the graph, mounts MCP, SPARQL and health, and serves them on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import logging
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, NoReturn

import uvicorn
from fastmcp.server.http import HostOriginGuardMiddleware
from fastmcp.utilities.lifespan import combine_lifespans
from pyoxigraph import NamedNode, Triple
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Route

from kg.errors import ForbiddenError, InvalidInputError, QuadciteError
from kg.knowledge_graph import KnowledgeGraph
from kg.server import health, sparql_protocol
from kg.server.auth import EVERYONE, Actor, LocalToken
from kg.server.endpoint import Endpoint
from kg.server.mcp import StopsWithClient, Threads, build_mcp
from kg.settings import Settings
from kg.store.sandbox import QueryPool
from kg.tools.registry import CLIMATE, CORE, RESEARCH
from loaders.pipeline import heal, load

log = logging.getLogger(__name__)

MOUNTS: Final[dict[str, frozenset[str] | None]] = {
    "/mcp": frozenset({CORE}),
    "/mcp/climate": frozenset({CLIMATE}),
    "/mcp/all": None,
    "/mcp/research": frozenset({RESEARCH}),
}
"""Each path with the tags whose tools it serves; None for all but the deep-research pair."""

GRACE_S: Final = 5
"""Seconds that requests in progress have to finish when the server is told to stop."""
QUERIES_GRACE_S: Final = 2
"""Seconds after which queries that still run are stopped, so that who asked hears why before the connection ends."""


class _NoWrites:
    """The graphs of a server that takes no writes over the Graph Store Protocol."""

    def put(self, graph: NamedNode | None, triples: Sequence[Triple], actor: Actor) -> NoReturn:
        raise ForbiddenError("this server takes no graphs")

    post = put

    def create(self, triples: Sequence[Triple], actor: Actor) -> NoReturn:
        raise ForbiddenError("this server takes no graphs")

    def delete(self, graph: NamedNode | None, actor: Actor) -> NoReturn:
        raise ForbiddenError("this server takes no graphs")


def endpoint_of(kg: KnowledgeGraph, pool: QueryPool | None = None, token: LocalToken | None = None) -> Endpoint:
    """Return what the protocols serve of an open graph.

    `pool` holds the query workers that they have to themselves; without it they share those of the tools. `token` is
    what makes its holder an admin; without it nobody is.
    """
    return Endpoint(
        settings=kg.settings,
        pool=pool or kg.pool,
        generation=lambda: kg.store.statistics().generation,
        actor=token.actor if token is not None else lambda request: EVERYONE,
        graphs=_NoWrites(),
        update=None,
    )


def create_app(kg: KnowledgeGraph, pool: QueryPool | None = None, token: LocalToken | None = None) -> Starlette:
    """Return the application over an open graph: ``/mcp`` and its siblings, ``/sparql``, ``/health``.

    `pool` and `token` are those of `endpoint_of`. While it runs, what differs between the store and the index is
    rebuilt in the background. Requests that name a host other than this machine get 421, and those of a foreign web
    page 403 (DNS rebinding).
    """

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        with healing(kg):
            yield

    threads = Threads()
    apps = {
        path: build_mcp(kg, tags, threads).http_app(
            path=path, stateless_http=True, json_response=True, host_origin_protection=False
        )
        for path, tags in MOUNTS.items()
    }
    routes: list[BaseRoute] = [Route(path, StopsWithClient(app)) for path, app in apps.items()]
    endpoint = endpoint_of(kg, pool, token)
    routes += [health.route(kg, threads), *sparql_protocol.routes(endpoint)]
    return Starlette(
        routes=routes,
        lifespan=combine_lifespans(lifespan, *(app.lifespan for app in apps.values())),
        middleware=[Middleware(HostOriginGuardMiddleware, mode="strict")],
    )


@contextlib.contextmanager
def healing(kg: KnowledgeGraph) -> Iterator[None]:
    """Bring the search index in line with the store in the background, for as long as the block runs."""
    stop = threading.Event()

    def work() -> None:
        try:
            heal(kg, stop=stop)
        except QuadciteError as error:
            log.warning("the search index could not be brought up to date: %s", error)

    worker = threading.Thread(target=work, name="heal", daemon=True)
    worker.start()
    try:
        yield
    finally:
        stop.set()
        worker.join(GRACE_S)


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


def serve(
    data_dir: Path,
    settings: Settings,
    *,
    host: str | None = None,
    port: int | None = None,
    transport: Literal["http", "stdio"] = "http",
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Open `data_dir` and serve it until SIGTERM or SIGINT; `on_ready` gets the address once requests are taken.

    With the transport ``stdio`` one MCP client is served on standard input and output, and nothing else is written
    there. Raises InvalidInputError for an address that cannot be had, and what `KnowledgeGraph.open` raises.
    """
    if transport == "stdio":
        with KnowledgeGraph.open(data_dir, settings) as kg, healing(kg):
            kg.load = load
            build_mcp(kg).run(transport="stdio", show_banner=False)
        return
    with contextlib.closing(listen(host or settings.host, settings.port if port is None else port)) as listening:
        address = address_of(listening)
        with (
            KnowledgeGraph.open(data_dir, settings, address=address) as kg,
            # Raw queries have workers of their own: however many of them run away, the tools are answered.
            QueryPool(kg.store, settings) as raw,
            _local_token(data_dir) as token,
        ):
            kg.load = load
            config = uvicorn.Config(
                create_app(kg, raw, token),
                log_config=LOGGING,
                timeout_graceful_shutdown=GRACE_S,
                lifespan="on",
                server_header=False,
            )
            with _signals_that_return():
                _Server(config, address, on_ready, (kg.pool.close, raw.close)).run(sockets=[listening])


@contextlib.contextmanager
def _local_token(data_dir: Path) -> Iterator[LocalToken]:
    """Let whoever can read `data_dir` act as admin for as long as the block runs."""
    token = LocalToken(data_dir)
    try:
        yield token
    finally:
        token.remove()


@contextlib.contextmanager
def _signals_that_return() -> Iterator[None]:
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


class _Server(uvicorn.Server):
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
        await super().startup(sockets)
        if self.started and self._on_ready is not None:
            self._on_ready(self._address)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
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
