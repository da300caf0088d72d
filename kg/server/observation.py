"""Observation of HTTP requests: each is counted, traced, and an entry of the audit log; and the rate of each sender.

`Observation` is the outermost layer of the application. A call of a tool writes an entry of its own
(`kg.server.call_log`), which takes the place of that of its request. The entry of any other request is written before
its response begins, so that nobody gets an answer that is not in a log that is required.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from starlette.datastructures import Headers, QueryParams
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kg.access.audit import ENTRY, OK, AuditLog, Entry, FailureLimiter, note
from kg.access.limits import LIMITS, find_limits
from kg.errors import AuditUnavailableError, RateLimitedError, UnauthorizedError
from kg.knowledge_graph import SENDER
from kg.observability import RequestSpan, count_auth_failure, count_rate_refusal, observe_request, outcome_of
from kg.server.auth import get_peer
from kg.server.authentication import NOBODY
from kg.server.authorization import READING
from kg.server.call_log import REQUEST_ID, find_request_id, redact
from kg.server.fair_limiter import SenderRates
from kg.server.problem_details import problem
from kg.settings import Settings

_UNAUDITED: Final = ("/static/", "/health", "/metrics", "/admin/state", "/docs", "/favicon.ico")
"""Paths of which refused and failed requests alone are recorded: they read no data of the graph; programs poll them."""
_OAUTH: Final = frozenset({"code", "code_verifier", "state"})
"""Parameters of OAuth that are secret. `state` alone may be that of a place."""
_SUBJECTS: Final = ("graph", "query")
"""Parameters that name the data of a request: its graph, or its query."""
_REFUSED: Final = frozenset({401, 403, 429})
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY"})


class Observation:
    """An application whose requests are counted, traced, and recorded in `audit`."""

    def __init__(self, app: ASGIApp, audit: AuditLog | None = None) -> None:
        self._app: Final = app
        self._audit: Final = audit
        self._failures: Final = FailureLimiter()
        self._unknown: Final = FailureLimiter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and record it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = find_request_id(headers)
        entry = Entry(scope["method"], request_id, peer=get_peer(scope))
        tokens = REQUEST_ID.set(request_id), ENTRY.set(entry)
        method = scope["method"] if scope["method"] in _METHODS else "other"
        try:
            with observe_request(method, headers) as observed:
                await self._answer(scope, receive, send, entry, observed)
        finally:
            ENTRY.reset(tokens[1])
            REQUEST_ID.reset(tokens[0])

    async def _answer(self, scope: Scope, receive: Receive, send: Send, entry: Entry, observed: RequestSpan) -> None:
        refused = False

        async def observe(message: Message) -> None:
            nonlocal refused
            if message["type"] == "http.response.start":
                observed.status = message["status"]
                if observed.status == 401 or entry.outcome == UnauthorizedError.code:
                    count_auth_failure()
                if not entry.is_streamed:
                    try:
                        self._record(scope, entry, message)
                    except AuditUnavailableError as error:
                        refused, observed.status = True, error.http_status
                        await problem(Request(scope), error)(scope, receive, send)
            if not refused:
                await send(message)

        try:
            if self._audit is not None:
                self._audit.require_writable()
            await self._app(scope, receive, observe)
        except AuditUnavailableError as error:
            entry.is_written = True  # nothing was done
            observed.status = error.http_status
            await problem(Request(scope), error)(scope, receive, send)
        except BaseException as error:
            if not observed.status:
                entry.outcome = outcome_of(error)
                observed.status = 500 if isinstance(error, Exception) else 0
            raise
        finally:
            if (route := scope.get("route")) is not None:
                observed.route = route.path
            with suppress(AuditUnavailableError):  # it is too late for this response; the next request is refused
                self._record(scope, entry, None)

    def _record(self, scope: Scope, entry: Entry, response: Message | None) -> None:
        """Write the entry of a request, unless it is written: with the start of its response, or after its end."""
        if self._audit is None or entry.is_written:
            return
        entry.is_written = True
        status = 0 if response is None else response["status"]
        is_quiet = scope["path"].startswith(_UNAUDITED) and entry.outcome != "internal"
        if status == 401 or entry.outcome == UnauthorizedError.code:
            if not self._failures.allows(entry.peer):
                return
        elif is_quiet and status not in _REFUSED:
            return
        if entry.actor == NOBODY and scope["method"] in READING and not self._unknown.allows(entry.peer):
            return
        if entry.action == scope["method"]:
            route = scope.get("route")
            entry.action = f"{scope['method']} {scope['path'][:200] if route is None else route.path}"
        if entry.arguments is None:
            query, path = dict(QueryParams(scope["query_string"])), scope.get("path_params", {})
            # Only some are recorded, and clients may send any: those that name the data of the request are first.
            given = path | {name: query[name] for name in _SUBJECTS if name in query} | query | path
            hidden = _OAUTH if not _OAUTH.isdisjoint(given.keys() - {"state"}) else ()
            entry.arguments = redact({name: "[redacted]" if name in hidden else each for name, each in given.items()})
        if response is not None:
            found = next((value for name, value in response["headers"] if name == b"quadcite-snapshot"), b"")
            entry.snapshot = int(found) if found.isdigit() else entry.snapshot
        if entry.outcome == OK and status >= 400:
            entry.outcome = f"http_{status}"
        self._audit.record(entry)


class RateLimit:
    """An application whose senders have limits (`LIMITS`), among them a rate of requests.

    It is inside `Authentication`, which identifies them.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app: Final = app
        self._settings: Final = settings
        self._rates: Final = SenderRates()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        actor = SENDER.get()
        note(actor=actor)
        token = LIMITS.set(find_limits(self._settings, actor))
        try:
            if scope["type"] == "http" and not scope["path"].startswith(_UNAUDITED):
                self._rates.count(actor, get_peer(scope))
            await self._app(scope, receive, send)
        except RateLimitedError as error:
            count_rate_refusal()
            await problem(Request(scope), error)(scope, receive, send)
        finally:
            LIMITS.reset(token)
