"""The composition root of the server: opens the graph, mounts MCP and all routes, and serves them."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import httpx2
import uvicorn
from fastmcp import FastMCP
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp.server import create_proxy
from fastmcp.utilities.lifespan import combine_lifespans
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute, Route
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from kg import __version__, interruption
from kg.access.audit import OK, Entry
from kg.access.tokens import Tokens
from kg.data_directory import DataDirectory
from kg.errors import AuditUnavailableError, QuadciteError, StoreError
from kg.files import is_unwritable
from kg.integrity.backup_folder import require_outside
from kg.integrity.backup_schedule import BackupSchedule
from kg.integrity.replication import Replica
from kg.knowledge_graph import PROGRESS, SENDER, KnowledgeGraph
from kg.load_schedule import Schedule, read_schedules
from kg.loading import exclusive_load
from kg.processes.garbage_collection import exempt_present_objects
from kg.processes.leases import Leases
from kg.provenance.permissions import check_request
from kg.queries.pool import QueryPool
from kg.remote.http import is_loopback
from kg.search import index_sync
from kg.server import (
    admin_routes,
    backup_routes,
    connector_routes,
    graph_store,
    monitoring,
    pages,
    service_description,
    shacl_endpoint,
    sparql_check,
    sparql_protocol,
    static,
    tool_routes,
)
from kg.server import sparql_protocol as queries
from kg.server.auth import HostGuard, LocalToken, derive_user_secret, read_token
from kg.server.authentication import Accounts, Authentication, ForwardedUser
from kg.server.authorization import Authorization
from kg.server.connection_limits import LimitedProtocol
from kg.server.endpoint import Endpoint
from kg.server.fair_limiter import compute_call_s
from kg.server.http_server import (
    GRACE_S,
    Server,
    address_of,
    build_logging,
    check_bind,
    listen,
    load_certificate,
    signals_that_return,
)
from kg.server.identity_providers import add_provider
from kg.server.mcp import CancelOnDisconnect, ToolThreads, build_mcp
from kg.server.observation import Observation, RateLimit
from kg.server.pages import workbench
from kg.server.pages.site import Site, problem_page
from kg.server.problem_details import build_handlers
from kg.server.query_execution import get_client_name
from kg.server.queued_loads import running_loads
from kg.server.request_bodies import Bodies, BodyAdmission
from kg.server.resources import PAGES
from kg.server.sessions import Sessions
from kg.server.tracing import exporting_traces
from kg.settings import Settings, read_auth_variables
from kg.shacl.process import PLACES
from kg.store.lock import find_address
from kg.store.replica import ReplicaStore
from kg.tools.audiences import find_audience, is_restricted
from kg.tools.decisions import get_policies, get_view, require_endpoint
from kg.tools.mounts import MOUNTS, find_mount
from kg.tools.operations.loads import check_source
from kg.tools.schema.schema_measurement import measuring
from kg.tools.shacl.background_validation import DatasetChecks
from kg.tools.sparql.local_services import expand_services
from kg.user_graphs import UserGraphs
from kg.vocabulary import KG
from loaders import dispatch
from loaders.confined_loads import ConfinedLoads
from loaders.sources import build_watcher

log = logging.getLogger(__name__)

REPAIR_PAUSE_S: Final = 5.0
"""Seconds after the first failed attempt to update an index that does not answer; twice as long after each other."""
MOST_PAUSE_S: Final = 60.0


def build_endpoint(
    kg: KnowledgeGraph,
    pool: QueryPool | None = None,
    checks: DatasetChecks | None = None,
) -> Endpoint:
    """Build the endpoint that the protocols serve over an open graph.

    `pool` has their own query workers; without it they share those of the tools. `checks` are the background checks of
    the dataset shapes.
    """
    checks = checks or DatasetChecks(kg)
    kg.dataset_check = checks.result
    graphs = UserGraphs(kg, checks.schedule)
    return Endpoint(
        settings=kg.settings,
        pool=pool or kg.pool,
        generation=lambda: kg.store.statistics().generation,
        graphs=graphs,
        require_writable=graphs.require_writable,
        update=graphs.update if kg.settings.updates else None,
        permit=partial(require_endpoint, kg),
        permit_write=lambda graph, method, actor: check_request(graph, method, actor, get_policies(kg)),
        is_restricted=lambda: is_restricted(get_policies(kg), SENDER.get()),
        find_audience=lambda: find_audience(kg, get_policies(kg), SENDER.get()),
        expand=lambda query, timeout_s: expand_services(get_view(kg, SENDER.get()), query, timeout_s),
        services=(KG.search,),
    )


def create_app(
    kg: KnowledgeGraph,
    pool: QueryPool | None = None,
    accounts: Accounts | None = None,
    connections: type[LimitedProtocol] = LimitedProtocol,
    schedules: Sequence[Schedule] = (),
) -> Starlette:
    """Build the application over an open graph: MCP, SPARQL, tools, pages, health.

    `pool` is that of `build_endpoint`; `connections` is the protocol of the server's connections, and `schedules` are
    the loads that it repeats. While it runs, differences between the store and the index are repaired in the
    background. `HostGuard` refuses requests for another host and those of foreign web pages; then `Authentication`
    identifies the sender by `accounts`.
    """

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        with (
            repairing_index(kg),
            checks.watching(),
            measuring(kg),
            kg.connectors.watching(),
            running_loads(kg, schedules),
            backing_up(kg),
        ):
            yield

    accounts = accounts or Accounts(settings=kg.settings)
    sessions = Sessions(accounts)
    checks = DatasetChecks(kg)
    threads = ToolThreads(kg, compute_call_s(kg.settings))
    # Without sessions, so that clients go on after a restart. `HostGuard` checks the hosts and origins of all routes.
    apps = {
        path: build_mcp(kg, path, threads).http_app(
            path=path, stateless_http=True, json_response=True, host_origin_protection=False
        )
        for path in MOUNTS
    }
    endpoint = build_endpoint(kg, pool, checks)
    bodies = Bodies(kg.settings)
    site = Site(kg, threads, sessions)
    # Routes are tried in order: the busiest first, after that of the page for browsers at the same path.
    routes: list[BaseRoute] = [*workbench.routes(site), *sparql_protocol.routes(endpoint)]
    routes += [Route(path, CancelOnDisconnect(app)) for path, app in apps.items()]
    count_held = partial(_count_held, kg, endpoint, threads, bodies, connections)
    limiters = (*threads.kinds.values(), *endpoint.limiters.list_all(), PAGES)
    policies = get_policies(kg)
    policies.watch(partial(_record_policies, kg))
    monitor = monitoring.Monitor(
        kg, threads, limiters, count_held, kg.audit, find_policy_problem=lambda: policies.problem
    )
    routes += [tool_routes.health_route(kg, threads, count_held), *queries.running_query_routes(endpoint)]
    routes += monitoring.routes(monitor)
    routes += [*graph_store.routes(endpoint), *admin_routes.routes(kg, endpoint), *backup_routes.routes(kg, endpoint)]
    routes += [*tool_routes.routes(kg, threads), *sparql_check.routes(kg, threads)]
    routes += [*shacl_endpoint.routes(kg, endpoint, threads), *connector_routes.routes(kg)]
    routes += [*service_description.routes(kg, endpoint), *accounts.routes, *pages.routes(site), *static.routes()]
    origins = [str(origin).rstrip("/") for origin in kg.settings.allowed_origins]
    origins += [accounts.origin] if accounts.origin else []
    proxies = [str(network) for network in kg.settings.trusted_proxies]
    middleware = [Middleware(ForwardedUser, settings=kg.settings)]
    middleware += [Middleware(ProxyHeadersMiddleware, trusted_hosts=proxies)] if proxies else []
    middleware.append(Middleware(Observation, audit=kg.audit))
    middleware.append(Middleware(HostGuard, origins=origins))
    if origins:  # so that their pages can read the answers
        middleware.append(
            Middleware(CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=["*"], max_age=600)
        )
    middleware.append(Middleware(Authentication, accounts=accounts, sessions=sessions))
    middleware.append(Middleware(RateLimit, settings=kg.settings))
    middleware.append(Middleware(Authorization, kg=kg, is_public=accounts.is_public, refuse=problem_page))
    middleware.append(Middleware(BodyAdmission, bodies=bodies, name_client=partial(get_client_name, endpoint)))
    app = Starlette(
        routes=routes,
        lifespan=combine_lifespans(lifespan, *(app.lifespan for app in apps.values())),
        middleware=middleware,
        exception_handlers=build_handlers(problem_page),
    )
    app.state.monitor = monitor
    return app


def _record_policies(kg: KnowledgeGraph, version: str, problem: str | None) -> None:
    """Record in the audit log that the policies were read again, or that they are invalid."""
    if kg.audit is not None:
        about = {"version": version} | ({} if problem is None else {"problem": problem})
        with contextlib.suppress(AuditUnavailableError):  # the next request is refused
            kg.audit.record(Entry("policies.read", arguments=about, outcome=OK if problem is None else "invalid_input"))


def _count_held(
    kg: KnowledgeGraph,
    endpoint: Endpoint,
    threads: ToolThreads,
    bodies: Bodies,
    connections: type[LimitedProtocol],
) -> dict[str, int]:
    """Count the resources that clients hold; `overdue` counts those held a second after their deadlines."""
    pools = {id(pool): pool for pool in (kg.pool, endpoint.pool)}.values()
    states = Counter(query.state for pool in pools for query in pool.list_queries())
    kinds, work = threads.kinds, endpoint.limiters
    leases: dict[str, list[Leases[Any]]] = {
        "requests_arriving": [connections.arriving],
        "responses_unread": [connections.unread],
        "bodies": [bodies],
        "tool_calls": [kinds["own"].running, kinds["light"].running],
        "raw_calls": [kinds["raw"].running],
        "long_calls": [kinds["long"].running],
        "pages": [PAGES.running],
        "texts_parsed": [work.reading.running, work.expanding.running],
        "writes": [work.parsing.running, work.writing.running, work.updating.running],
        "validations": [PLACES.running],
        "index_calls": [kg.search.calls],
    }
    now = time.monotonic()
    overdue = sum(each.count_overdue(now) for group in leases.values() for each in group)
    return {
        "queries_running": states["running"],
        "queries_waiting": states["waiting"],
        **{name: sum(map(len, group)) for name, group in leases.items()},
        "body_bytes": int(bodies.bytes),
        "arriving_bytes": int(connections.arriving.bytes),
        "overdue": overdue + sum(pool.count_overdue() for pool in pools),
    }


@contextlib.contextmanager
def repairing_index(kg: KnowledgeGraph) -> Iterator[None]:
    """Repair the search index in the background until the block ends: now, and after commits that it did not take."""
    stop = threading.Event()

    def work() -> None:
        pause_s = REPAIR_PAUSE_S
        while not stop.is_set():
            kg.unindexed.clear()
            try:
                if kg.replica_state is None and kg.store.find_invalidated_graphs():
                    _complete_removals(kg, stop.is_set)
                index_sync.repair_index(kg.store, kg.search, stop=stop)
                pause_s = REPAIR_PAUSE_S
            except Exception as error:  # any, since no other thread repairs the index
                log.warning("Cannot update the search index: %s", error, exc_info=not isinstance(error, QuadciteError))
                kg.unindexed.set()
                stop.wait(pause_s)
                pause_s = min(2 * pause_s, MOST_PAUSE_S)
            kg.unindexed.wait()

    worker = threading.Thread(target=work, name="repair-index", daemon=True)
    worker.start()
    try:
        yield
    finally:
        stop.set()
        behind = kg.unindexed.is_set()
        kg.unindexed.set()  # wakes the worker
        worker.join(GRACE_S)
        if not behind:
            kg.unindexed.clear()


@contextlib.contextmanager
def backing_up(kg: KnowledgeGraph) -> Iterator[None]:
    """Add points to the folder of backups in the background until the block ends, if the settings name one."""
    if kg.settings.backup_to is None:
        yield
        return
    schedule = BackupSchedule(kg)
    kg.backup_state = lambda: schedule.state
    with schedule.running():
        yield


def serve(
    data_dir: Path,
    settings: Settings,
    *,
    host: str | None = None,
    port: int | None = None,
    insecure: bool = False,
    transport: Literal["http", "stdio"] = "http",
    mount: str = "core",
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Open `data_dir` and serve it until SIGTERM or SIGINT. `on_ready` receives the address when the server is ready.

    The transport ``stdio`` serves one MCP client on standard input and output: through the server that holds `data_dir`
    if there is one, else in this process, which also serves commands and other clients on a free loopback port. Raises
    InvalidInputError for an unusable address, and what `KnowledgeGraph.open` raises. `mount` selects the tools of that
    client: a name in `kg.tools.mounts.NAMES`.
    """
    interruption.sweep_temporary_folders()
    stdio = transport == "stdio"
    path = find_mount(mount)
    replica: Replica | None = None
    if settings.replica_of is not None:
        # What writes is left to the primary.
        settings = settings.model_copy(
            update={"schedules": None, "watch_folders": (), "backup_to": None, "connector_entities": 0}
        )
        replica = Replica(settings)
        replica.prepare()
    schedules = [] if settings.schedules is None else read_schedules(settings.schedules, check_source)
    if settings.backup_to is not None:
        require_outside(settings.backup_to, data_dir)
    if stdio and (held_at := find_address(data_dir)) is not None:
        _build_proxy(held_at, path, data_dir).run(transport="stdio", show_banner=False)
        return
    host = "127.0.0.1" if stdio else host or settings.host
    directory = DataDirectory(data_dir)
    accounts = add_provider(Accounts(tokens=Tokens(directory)), settings, read_auth_variables(), directory)
    check_bind(host, protected=accounts.required or insecure)
    tls = _tls_options(settings)
    if not (is_loopback(host) or tls or settings.trusted_proxies):
        log.warning("Clients send tokens and data unencrypted to %s. Use --tls-cert and --tls-key, or a proxy.", host)
    with contextlib.closing(listen(host, 0 if stdio else settings.port if port is None else port)) as listening:
        address = address_of(listening, "https" if tls else "http")
        port = listening.getsockname()[1]
        with (
            exporting_traces(),
            KnowledgeGraph.open(
                data_dir, settings, reads=True, replica=None if replica is None else replica.open_store()
            ) as kg,
            # Raw queries have their own workers, so that expensive ones never block the tools.
            QueryPool(kg.store, settings) as raw,
            _local_token(data_dir) as token,
            contextlib.closing(ConfinedLoads(kg)) as loads,
            contextlib.ExitStack() as closing,
        ):
            if replica is not None:
                following = replica
                kg.replica_state = lambda: following.state
            kg.confined = loads
            kg.raw = raw
            kg.watcher = build_watcher(kg, exclusive_load)
            closing.callback(kg.watcher.close)  # before the process in which it loads
            for folder in settings.watch_folders:
                kg.watcher.watch(folder, None)
            kg.announce(address)  # clients may read the token from here on
            connections = LimitedProtocol.limited_by(settings)
            accounts = replace(accounts, token=token, always=not (is_loopback(host) or insecure))
            app = create_app(kg, raw, accounts, connections, schedules)
            config = uvicorn.Config(
                app,
                log_config=build_logging(settings),
                access_log=settings.access_log,
                http=connections,
                proxy_headers=False,  # those of `trusted_proxies` count alone, in `create_app`
                loop="uvloop",
                timeout_graceful_shutdown=GRACE_S,
                lifespan="on",
                server_header=False,
                **tls,
            )
            server = Server(config, address, on_ready, (kg.pool.close, raw.close))
            app.state.monitor.is_stopping = lambda: server.should_exit
            exempt_present_objects()
            if replica is not None:
                closing.enter_context(_following(replica, kg, server))
            if stdio:
                with _run_in_thread(server, listening):
                    try:
                        build_mcp(kg, path).run(transport="stdio", show_banner=False)
                    finally:
                        interruption.disarm()
            else:
                with signals_that_return():
                    server.run(sockets=[listening])
    if replica is not None and replica.restarts:
        serve(data_dir, settings, host=host, port=port, insecure=insecure, transport=transport, mount=mount)


def _following(replica: Replica, kg: KnowledgeGraph, server: Server) -> contextlib.AbstractContextManager[None]:
    """Follow the primary of a replica. The server stops, to be started again, if its store has to be opened again."""

    def stop() -> None:
        server.should_exit = True

    store = kg.store
    if not isinstance(store, ReplicaStore):
        raise StoreError("The store of a replica is not that of a replica.")
    return replica.following(store, kg.unindexed.set, stop)


def _complete_removals(kg: KnowledgeGraph, is_stopped: Callable[[], bool]) -> None:
    """Complete the removal of files that an earlier process has begun: their entities, and the links of these."""
    with exclusive_load(PROGRESS.get(), is_stopped):
        # In this process: it only removes, and most servers have nothing to remove.
        dispatch.call_here(kg, "find_entities", ())


def _build_proxy(address: str, path: str, data_dir: Path) -> FastMCP:
    """Build an MCP server that forwards to the mount at `path` of the server at `address`, which holds `data_dir`."""
    verify = False if address.startswith("https:") else None  # the certificate has the public name
    transport = StreamableHttpTransport(f"{address}{path}", auth=_LocalUser(data_dir), verify=verify)
    # Without instructions of its own it forwards those of the mount.
    return create_proxy(transport, name="Quadcite", version=__version__)


class _LocalUser(httpx2.Auth):
    """Sends requests as everyone on this machine, to a server that may require credentials."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir: Final = data_dir

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response]:
        """Send a request with the secret of the server that runs now: each start has another."""
        if (secret := read_token(self._data_dir)) is not None:
            request.headers["Authorization"] = f"Bearer {derive_user_secret(secret)}"
        yield request


def _tls_options(settings: Settings) -> dict[str, Any]:
    """Build the options of uvicorn for the certificate. Raises InvalidInputError for an unusable one."""
    if settings.tls_cert is None or settings.tls_key is None:
        return {}
    load_certificate(settings.tls_cert, settings.tls_key)
    return {"ssl_certfile": settings.tls_cert, "ssl_keyfile": settings.tls_key}


@contextlib.contextmanager
def _run_in_thread(server: Server, listening: socket.socket) -> Iterator[None]:
    """Run `server` in a thread until the block ends, so that commands on the same data find it."""
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="http")
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join()


@contextlib.contextmanager
def _local_token(data_dir: Path) -> Iterator[LocalToken | None]:
    """Write the local token, and remove it when the block ends. None on a disk that cannot be written."""
    try:
        token = LocalToken(data_dir)
    except StoreError as error:
        if error.__cause__ is None or not is_unwritable(error.__cause__):
            raise
        log.warning("%s Nobody has the token until the server is started again.", error)
        yield None
        return
    try:
        yield token
    finally:
        token.remove()
