"""The SPARQL 1.1 Protocol's query operation at ``/sparql``, read-only (https://www.w3.org/TR/sparql11-protocol/).

Beyond the protocol: ``timeout=`` (seconds) lowers the deadline, and every answer says in its headers what it is:
``Quadcite-Snapshot`` the generation of the store, ``Quadcite-Row-Limit`` the rows that are sent at most, and
``Quadcite-Truncated`` (``true`` or ``false``) whether that limit cut it short. A result of more than `HELD_BYTES` is
sent while it is computed, so its header cannot know: then ``Quadcite-Truncated`` is absent, and a result with as many
rows as the limit has to be taken as cut short. A result that hits a limit of time or memory after it began ends without
its last chunk, which HTTP clients report as an incomplete answer; it never looks complete.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

import anyio
import anyio.to_thread
from anyio import CapacityLimiter
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from kg.errors import InvalidInputError, QuadciteError, QueryForbiddenError
from kg.knowledge_graph import KnowledgeGraph
from kg.sparql.guard import check_query
from kg.store.sandbox import Cancellation, Streamed

HELD_BYTES: Final = 262_144
"""A result up to this size is held back until it is complete, so that its headers can say whether it was cut short."""

RESULT_TYPES: Final = (
    "application/sparql-results+json",
    "application/sparql-results+xml",
    "text/csv",
    "text/tab-separated-values",
)
GRAPH_TYPES: Final = ("text/turtle", "application/n-triples")
_ALIASES: Final = {
    "application/json": "application/sparql-results+json",
    "application/xml": "application/sparql-results+xml",
    "text/xml": "application/sparql-results+xml",
    "text/plain": "application/n-triples",
    "application/x-turtle": "text/turtle",
}
_FORM: Final = "application/x-www-form-urlencoded"
_QUERY: Final = "application/sparql-query"
_log = logging.getLogger(__name__)


class _ProtocolError(Exception):
    """A request that HTTP itself has a status for."""

    def __init__(self, status: int, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.headers = status, code, headers


@dataclass(frozen=True, slots=True)
class _Operation:
    query: str
    timeout_s: float


def negotiate(accept: str, offered: tuple[str, ...]) -> str | None:
    """Return the media type of `offered` that an Accept header likes best, or None if it takes none of them.

    By RFC 9110, section 12.5.1: the most specific range that matches a type gives its weight; among equals the order of
    `offered` decides. Common aliases (``application/json``) stand for the type that they mean.
    """
    ranges: dict[str, float] = {}
    for item in accept.split(",") if accept.strip() else ["*/*"]:
        media_range, *parameters = (part.strip().lower() for part in item.split(";"))
        weight = 1.0
        for parameter in parameters:
            name, _, value = parameter.partition("=")
            if name.strip() == "q":
                try:
                    weight = float(value)
                except ValueError:
                    weight = 0.0
        media_range = _ALIASES.get(media_range, media_range)
        ranges[media_range] = max(weight, ranges.get(media_range, 0.0))

    def weight_of(media_type: str) -> float:
        for media_range in (media_type, media_type.partition("/")[0] + "/*", "*/*"):
            if media_range in ranges:
                return ranges[media_range]
        return 0.0

    best = max(offered, key=weight_of)
    return best if weight_of(best) > 0 else None


def routes(kg: KnowledgeGraph) -> list[Route]:
    """Return the routes of the endpoint over `kg`."""
    # A query occupies a thread while it runs or waits: as many as the pool takes, apart from the threads of all else.
    limiter = CapacityLimiter(kg.settings.query_workers + kg.settings.query_queue + 1)

    async def sparql(request: Request) -> Response:
        try:
            return await _answer(kg, request, limiter)
        except _ProtocolError as error:
            return _error(error.status, error.code, str(error), error.headers)
        except ClientDisconnect:
            return _error(400, "invalid_input", "the client went away before its request was complete")
        except QuadciteError as error:
            headers = {"Retry-After": "1"} if error.retryable else None
            return _error(error.http_status, error.code, str(error), headers)

    # Every method comes here, so that 405 has the endpoint's own form.
    methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    return [Route("/sparql", sparql, methods=methods, name="sparql")]


async def _answer(kg: KnowledgeGraph, request: Request, limiter: CapacityLimiter) -> Response:
    operation = await _read(request, kg.settings.max_body_bytes)
    accept = ",".join(request.headers.getlist("accept"))
    cancellation = Cancellation()

    def begin() -> tuple[Streamed, list[bytes]]:
        form = check_query(operation.query)
        offered = GRAPH_TYPES if form in ("CONSTRUCT", "DESCRIBE") else RESULT_TYPES
        media_type = negotiate(accept, offered)
        if media_type is None:
            message = (
                f"{form or 'this query'} is answered in {', '.join(offered)}; the Accept header takes none of them"
            )
            raise _ProtocolError(406, "not_acceptable", message)
        stream = kg.pool.stream(
            operation.query,
            media_type=media_type,
            timeout_s=min(kg.settings.query_timeout_s, operation.timeout_s),
            at_least=kg.store.statistics().generation,
            cancellation=cancellation,
        )
        held: list[bytes] = []
        for piece in stream:
            held.append(piece)
            if sum(map(len, held)) > HELD_BYTES:
                break
        return stream, held

    async with _cancelled_with(request.receive, cancellation):
        stream, held = await anyio.to_thread.run_sync(begin, limiter=limiter)
    headers = {
        "Content-Type": stream.media_type + ("; charset=utf-8" if stream.media_type.startswith("text/") else ""),
        "Quadcite-Snapshot": str(stream.generation),
        "Quadcite-Row-Limit": str(kg.settings.max_rows),
        "Vary": "Accept",
    }
    if stream.truncated is not None:
        headers["Quadcite-Truncated"] = "true" if stream.truncated else "false"
        return Response(b"".join(held), headers=headers)
    return _StreamedResponse(stream, held, cancellation, limiter, headers)


class _StreamedResponse(Response):
    """Sends what is held already, then each piece as the worker computes it."""

    def __init__(
        self,
        stream: Streamed,
        held: list[bytes],
        cancellation: Cancellation,
        limiter: CapacityLimiter,
        headers: dict[str, str],
    ) -> None:
        super().__init__(headers=headers)
        del self.headers["content-length"]
        self._stream, self._held, self._cancellation, self._limiter = stream, held, cancellation, limiter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        stream = self._stream
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            if scope["method"] == "HEAD":
                await send({"type": "http.response.body", "body": b""})
                return
            await send({"type": "http.response.body", "body": b"".join(self._held), "more_body": True})
            self._held.clear()
            async with _cancelled_with(receive, self._cancellation):
                while piece := await anyio.to_thread.run_sync(next, stream, b"", limiter=self._limiter):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                await send({"type": "http.response.body", "body": b""})
        except QuadciteError as error:
            # Without the last message the server breaks the connection off: the client sees that the answer is cut.
            _log.warning("a result ended before its end: %s", error)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(stream.close, limiter=self._limiter)


@asynccontextmanager
async def _cancelled_with(receive: Receive, cancellation: Cancellation) -> AsyncIterator[None]:
    """Cancel the query when the client goes away within this block."""

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        cancellation.cancel()

    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        try:
            yield
        except (QuadciteError, _ProtocolError) as error:
            failure = error  # raised below: a task group would wrap it
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _read(request: Request, max_bytes: int) -> _Operation:
    """Return the query that a request asks for, by section 2.1 of the protocol."""
    if request.method not in ("GET", "HEAD", "POST"):
        message = f"{request.method} is not answered here; use GET, HEAD or POST"
        raise _ProtocolError(405, "method_not_allowed", message, {"Allow": "GET, HEAD, POST"})
    parameters = _parameters(request.scope["query_string"])
    if request.method == "POST":
        content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if content_type == "application/sparql-update":
            raise QueryForbiddenError("this endpoint is read-only: it takes no updates")
        if content_type not in (_FORM, _QUERY):
            message = f"a POST carries {_QUERY} or {_FORM}, not {content_type or 'a body without a type'}"
            raise _ProtocolError(415, "unsupported_media_type", message, {"Accept-Post": f"{_QUERY}, {_FORM}"})
        body = await _body(request, max_bytes)
        parameters += [("query", _text(body))] if content_type == _QUERY else _parameters(body)
    values: dict[str, list[str]] = {}
    for name, value in parameters:
        values.setdefault(name, []).append(value)
    if "update" in values:
        raise QueryForbiddenError("this endpoint is read-only: it takes no updates")
    for name in ("default-graph-uri", "named-graph-uri"):
        if name in values:
            raise InvalidInputError(f"{name} is not supported: the default graph is all graphs; use GRAPH or FROM")
    queries = values.get("query", [])
    if len(queries) != 1:
        raise InvalidInputError(f"a request carries exactly one query, as the parameter `query`, not {len(queries)}")
    return _Operation(queries[0], _timeout(values.get("timeout", ["inf"])[-1]))


def _parameters(text: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError as error:  # also UnicodeDecodeError
        raise InvalidInputError(f"the parameters are not percent-encoded UTF-8: {error}") from None


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"the query is not UTF-8: {error}") from None


def _timeout(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise InvalidInputError(f"timeout must be a number of seconds greater than 0, not {text!r}")
    return seconds


async def _body(request: Request, max_bytes: int) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > max_bytes:
            message = f"the body is larger than {max_bytes} bytes (setting QUADCITE_MAX_BODY_BYTES)"
            # The connection stays: closed on a client that still sends, it would reset before the answer is read.
            raise _ProtocolError(413, "body_too_large", message)
    return bytes(body)


def _error(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"code": code, "message": message}, status, headers)
