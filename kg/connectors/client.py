"""Calls of remote tools by their canonical names, with retries, a circuit breaker, and a cache of answers.

Nothing is sent before the first call, except by `Connectors.watching`, which lists the tools of all servers in the
background, so that `health` can report declared tools that a server lacks.
"""

from __future__ import annotations

import json
import logging
import random
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from kg.connectors.breaker import CircuitBreaker, State
from kg.connectors.manifest import Connector, load_manifest
from kg.connectors.names import RemoteCall, RemoteSchema, to_canonical, translate
from kg.errors import NotFoundError, UpstreamError
from kg.remote.http import parse_address
from kg.remote.outcomes import record_outcome
from kg.remote.response_cache import CachedResponse, ResponseCache
from kg.remote.sparql import LIVE_S, get_limiter
from kg.settings import Settings
from kg.text import to_single_line

if TYPE_CHECKING:
    from kg.connectors.mcp_session import Session

T = TypeVar("T")

ATTEMPTS: Final = 3
"""Attempts of a call, while its time lasts."""
INTERVAL_S: Final = 0.05
"""Minimum time between the starts of two calls to one host."""
MOST_CALLS: Final = 50
"""Maximum calls that one call of a canonical tool may become."""
_BACKOFF_S: Final = 0.25
_LEAST_S: Final = 0.05
_QUOTED_CHARACTERS: Final = 300

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RemoteAnswer:
    """The text that a remote tool answered with."""

    connector: str
    url: str
    tool: str
    """The name that the server has for it."""
    arguments: Mapping[str, Any]
    text: str
    asked_at: datetime
    problem: str | None = None
    """Why an answer from the cache could not be renewed."""


@dataclass(frozen=True, slots=True)
class ConnectorState:
    """The state of a server, known without a request."""

    id: str
    url: str
    enabled: bool
    breaker: State
    tools: Sequence[str] | None
    """The canonical names of its tools; None before they were listed."""
    drift: Sequence[str]
    """The declared tools that it lacks."""


class RemoteServer:
    """The server of one connector. Calls block, for bounded time, and are thread-safe."""

    def __init__(
        self,
        connector: Connector,
        settings: Settings,
        *,
        sleep: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.time,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        self.connector: Final = connector
        self._timeout_s = settings.connector_timeout_s
        self._max_bytes = settings.connector_max_mb << 20
        self._cache = ResponseCache(settings.answers_dir)
        self._sleep, self._clock = sleep, clock
        self._breaker = breaker or CircuitBreaker()
        _, host, port, _ = parse_address(connector.endpoint) or ("", connector.endpoint, 0, "")
        self._limiter = get_limiter(host, port)
        self._lock = threading.Lock()
        self._listed: tuple[float, Sequence[RemoteSchema]] | None = None

    @property
    def state(self) -> ConnectorState:
        """The state of the server."""
        listed = self._listed
        tools = None if listed is None else sorted({to_canonical(schema.name) for schema in listed[1]})
        declared = [to_canonical(tool.name) for tool in self.connector.remote_tools or ()]
        drift = [] if tools is None else [name for name in declared if name not in tools]
        one = self.connector
        return ConnectorState(one.id, one.endpoint, one.enabled, self._breaker.state, tools, drift)

    def list_tools(self, seconds: float | None = None) -> Sequence[RemoteSchema]:
        """List the tools of the server; those listed within the connector's ``ttlSeconds`` are not requested again.

        Raises UpstreamError.
        """
        deadline = time.monotonic() + (self._timeout_s if seconds is None else seconds)
        listed = self._listed
        if listed is not None and time.monotonic() - listed[0] < self.connector.ttl_seconds:
            return listed[1]
        with self._limiter.exclusive(self.connector.endpoint, "tools/list", max(0.0, deadline - time.monotonic())):
            listed = self._listed
            if listed is not None and time.monotonic() - listed[0] < self.connector.ttl_seconds:
                return listed[1]
            found = self._attempt("tools/list", lambda session, left: session.list_tools(left), deadline)
            self._register(found)
            return found

    def call(self, tool: str, arguments: Mapping[str, Any], *, stale: bool = True) -> list[RemoteAnswer]:
        """Call a tool by its canonical name, or any name of the table: once, or once for each id of a list.

        The calls together have the time of the setting. An answer of the last five minutes is not requested again; an
        older one is returned with the problem if the server fails, unless not `stale`. Raises NotFoundError if the
        server has no such tool, and UpstreamError.
        """
        from kg.observability import observe_connector  # here: the import is slow, and most commands call no server

        deadline = time.monotonic() + self._timeout_s
        name = to_canonical(tool)
        with observe_connector(self.connector.id, name):
            calls = translate(tool, arguments, self.list_tools(self._timeout_s))
            if calls is None:
                raise NotFoundError(
                    f"The server of the connector {self.connector.id} has no tool for {name} with the arguments "
                    f"{', '.join(map(str, arguments))[:200] or 'none'}. `health` lists the declared tools that it "
                    "lacks."
                )
            if len(calls) > MOST_CALLS:
                raise UpstreamError(
                    f"{name} would take {len(calls):,} calls of {calls[0].tool} at the connector {self.connector.id}. "
                    f"At most {MOST_CALLS} are made for one."
                )
            if name != calls[0].tool:
                log.debug("Connector %s: %s is called as %s", self.connector.id, name, calls[0].tool)
            return [self._call(call, deadline, stale) for call in calls]

    def _call(self, call: RemoteCall, deadline: float, stale: bool) -> RemoteAnswer:
        key = json.dumps([call.tool, call.arguments], sort_keys=True, default=str)
        if (answer := self._find_cached(call, key, LIVE_S)) is not None:
            return answer
        with self._limiter.exclusive(self.connector.endpoint, key, max(0.0, deadline - time.monotonic())):
            if (answer := self._find_cached(call, key, LIVE_S)) is not None:
                return answer
            try:
                text = self._attempt(
                    call.tool, lambda session, left: session.call(call.tool, call.arguments, left), deadline
                )
            except UpstreamError as error:
                old = self._find_cached(call, key, float("inf"), str(error)) if stale else None
                if old is None:
                    raise
                return old
            now = self._clock()
            self._cache.put(self.connector.endpoint, key, CachedResponse(text.encode(errors="replace"), now))
            return self._answer(call, text, now)

    def _find_cached(self, call: RemoteCall, key: str, age_s: float, problem: str | None = None) -> RemoteAnswer | None:
        cached = self._cache.get(self.connector.endpoint, key)
        if cached is None or not 0 <= self._clock() - cached.time < age_s:
            return None
        return self._answer(call, cached.body.decode(errors="replace"), cached.time, problem)

    def _answer(self, call: RemoteCall, text: str, at: float, problem: str | None = None) -> RemoteAnswer:
        time_of = datetime.fromtimestamp(at, UTC)
        one = self.connector
        return RemoteAnswer(one.id, one.endpoint, call.tool, call.arguments, text, time_of, problem)

    def _attempt(self, tool: str, work: Callable[[Session, float], T], deadline: float) -> T:
        """Run `work` in a session, again after failures that may pass, until `deadline`. Raises UpstreamError."""
        from kg.connectors import mcp_session  # here: the import is slow

        if (refusal := self._breaker.find_refusal()) is not None:
            raise UpstreamError(f"The server of the connector {self.connector.id} is {refusal}")
        token = self.connector.auth.token
        session = mcp_session.Session(
            self.connector.endpoint, token.get_secret_value() if token else None, self._max_bytes
        )
        problem = ""
        try:
            for attempt in range(1, ATTEMPTS + 1):
                wait = self._limiter.reserve(deadline, INTERVAL_S)
                if wait is None:
                    break
                self._sleep(wait)
                try:
                    found = work(session, max(_LEAST_S, deadline - time.monotonic()))
                except mcp_session.RefusedCallError as error:
                    self._breaker.succeed()
                    record_outcome(self.connector.endpoint, None)
                    problem = self._quote(error)
                    self._log(tool, problem)
                    raise UpstreamError(f"The connector {self.connector.id}: {problem}") from None
                except mcp_session.SessionError as error:
                    problem = self._quote(error)
                    if not error.retryable:
                        break
                    if error.wait_s:
                        self._limiter.hold(error.wait_s)
                    # Full jitter, so that many clients of a server that comes back do not return together.
                    pause = random.uniform(0, _BACKOFF_S * 2**attempt)  # noqa: S311 -- no secret
                    if attempt == ATTEMPTS or time.monotonic() + pause >= deadline:
                        break
                    self._sleep(pause)
                else:
                    self._breaker.succeed()
                    record_outcome(self.connector.endpoint, None)
                    return found
        except UpstreamError:
            raise
        except BaseException as error:
            self._breaker.fail(type(error).__name__)  # a trial that ends otherwise must not stay open
            raise
        if problem:
            self._breaker.fail(problem)
            record_outcome(self.connector.endpoint, problem)
            self._log(tool, problem)
        else:  # nothing was sent
            self._breaker.abandon()
            problem = f"other calls took the {self._timeout_s:g} s of this one"
        raise UpstreamError(f"The connector {self.connector.id}: {tool} at {self.connector.endpoint}: {problem}")

    def _register(self, found: Sequence[RemoteSchema]) -> None:
        """Keep the listed tools, and log the names that are translated and the declared tools that are absent."""
        before = None if self._listed is None else [schema.name for schema in self._listed[1]]
        self._listed = time.monotonic(), found
        if before == [schema.name for schema in found]:
            return
        one = self.connector.id
        for schema in found:
            if (name := to_canonical(schema.name)) != schema.name:
                shown = to_single_line(schema.name, 100)
                fields = {"event": "tool_normalized", "connector": one, "tool": name, "remote_tool": shown}
                log.info("Connector %s: its tool %s is %s", one, shown, name, extra={"fields": fields})
        if drift := self.state.drift:
            lacking = ", ".join(drift)
            fields = {"event": "connector_drift", "connector": one, "tools": lacking}
            log.warning("Connector %s lacks declared tools: %s", one, lacking, extra={"fields": fields})

    def _log(self, tool: str, problem: str) -> None:
        one = self.connector.id
        fields = {"event": "connector_error", "connector": one, "tool": tool, "answer": problem}
        log.warning("Connector %s: %s failed: %s", one, tool, problem, extra={"fields": fields})

    def _quote(self, error: Exception) -> str:
        """Quote the answer of a server in one line, without the token, since some servers quote the request."""
        text, token = str(error), self.connector.auth.token
        return to_single_line(text.replace(token.get_secret_value(), "***") if token else text, _QUOTED_CHARACTERS)


class Connectors:
    """The servers of all connectors of the manifest."""

    def __init__(self, servers: Collection[RemoteServer] = ()) -> None:
        self.servers: Final = {server.connector.id: server for server in servers}

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Load the manifest. Raises InvalidInputError for an invalid one."""
        return cls([RemoteServer(connector, settings) for connector in load_manifest(settings).connectors])

    @property
    def manifest(self) -> list[Connector]:
        """All connectors, also those that are not enabled."""
        return [server.connector for server in self.servers.values()]

    @property
    def enabled(self) -> list[RemoteServer]:
        """The servers that may be called."""
        return [server for server in self.servers.values() if server.connector.enabled]

    def states(self) -> list[ConnectorState]:
        """The states of all servers, without a request."""
        return [server.state for server in self.servers.values()]

    def having(self, tool: str) -> list[RemoteServer]:
        """Find the enabled servers for a canonical tool: those that declare it, then those that declare no tools."""
        name, enabled = to_canonical(tool), self.enabled
        declaring = [
            server
            for server in enabled
            if any(to_canonical(each.name) == name for each in server.connector.remote_tools or ())
        ]
        return declaring + [server for server in enabled if server.connector.remote_tools is None]

    @contextmanager
    def watching(self) -> Iterator[None]:
        """List the tools of all enabled servers in the background until the block ends, again as their lists age."""
        enabled = self.enabled
        stop = threading.Event()

        def work() -> None:
            while not stop.is_set():
                for server in enabled:
                    try:
                        server.list_tools()
                    except UpstreamError as error:
                        log.debug("%s", error)  # `RemoteServer` has logged it
                stop.wait(min(server.connector.ttl_seconds for server in enabled))

        if enabled:
            threading.Thread(target=work, name="connectors", daemon=True).start()
        try:
            yield
        finally:
            stop.set()
