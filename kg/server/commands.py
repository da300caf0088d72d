"""The command line's way into a graph that this server holds: ``POST /commands/{name}``, for the local token's holder.

The body is a JSON object of arguments; the answer is a stream of JSON lines, ``{"progress": [done, total, doing]}`` as
it goes and at last ``{"result": ...}`` or ``{"error": {"code", "message", "retryable"}}``. ``query`` is the exception:
it answers like ``/sparql``, without a cap on rows or time. ``snapshot`` answers with the folder of a checkpoint, which
stays until the client hangs up, or dies. Whoever hangs up stops what runs.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Mapping
from typing import Any, Final

import anyio
import anyio.from_thread
import anyio.to_thread
from anyio import CapacityLimiter
from anyio.streams.memory import MemoryObjectSendStream
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from kg.actors import ADMIN
from kg.errors import InvalidInputError, NotFoundError, QuadciteError, QueryLimitError
from kg.knowledge_graph import CANCELLATION, KnowledgeGraph
from kg.queries.pool import UNLIMITED, Cancellation
from kg.server import request_bodies
from kg.server.endpoint import Endpoint
from kg.server.problem_details import fault
from kg.server.query_execution import execute
from kg.store.protocol import Snapshot, Store
from kg.tools.operations import OPERATIONS

AT_ONCE: Final = 8
"""Commands that run at the same time; more wait."""
_REPORTED_EVERY_S: Final = 0.1
_QUERY: Final = "query"
_SNAPSHOT: Final = "snapshot"
log = logging.getLogger(__name__)

Line = Mapping[str, Any]


def routes(kg: KnowledgeGraph, endpoint: Endpoint) -> list[Route]:
    """Return the route of the commands over `kg`; `endpoint` says who may ask, and answers queries."""
    limiter = CapacityLimiter(AT_ONCE)

    async def command(request: Request) -> Response:
        name = request.path_params["name"]
        try:
            endpoint.actor(request).require(ADMIN, f"the command {name!r}")
            if name not in (_QUERY, _SNAPSHOT) and name not in OPERATIONS:
                known = ", ".join(sorted([*OPERATIONS, _QUERY, _SNAPSHOT]))
                raise NotFoundError(f"there is no command {name!r}; there are {known}")
            arguments = request_bodies.arguments_in(await request.body())
            if name == _QUERY:
                return await _query(endpoint, request, arguments)
            if name == _SNAPSHOT:
                return _Kept(await anyio.to_thread.run_sync(_snapshot, kg.store))
        except QuadciteError as error:
            return JSONResponse(_error(error), error.http_status)
        return _Progressive(kg, name, arguments, limiter)

    return [Route("/commands/{name}", command, methods=["POST"], name="commands")]


async def _query(endpoint: Endpoint, request: Request, arguments: dict[str, Any]) -> Response:
    try:
        query, media_type = str(arguments["query"]), str(arguments["media_type"])
    except KeyError as error:
        raise InvalidInputError(f"the command query takes query and media_type; {error} is missing") from None
    expanded = await anyio.to_thread.run_sync(endpoint.expand, query, None)
    return await execute(
        endpoint, request, expanded, media_type=media_type, headers={}, limit=UNLIMITED,
        timeout_s=UNLIMITED,
    )  # fmt: skip


def _error(error: QuadciteError) -> dict[str, Any]:
    return {"error": {"code": error.code, "message": str(error), "retryable": error.retryable}}


def _snapshot(store: Store) -> Snapshot:
    return store.snapshot(store.statistics().generation)


class _Kept(Response):
    """Says where a snapshot is, and keeps it for as long as the client stays."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(media_type="application/x-ndjson")
        del self.headers["content-length"]
        self._snapshot = snapshot

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send its folder, and wait until the client has gone; a server that stops does not wait."""
        try:
            kept = {"generation": self._snapshot.generation, "path": str(self._snapshot.path.absolute())}
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            line = json.dumps({"result": kept}).encode() + b"\n"
            await send({"type": "http.response.body", "body": line, "more_body": True})
            while (await receive())["type"] != "http.disconnect":
                pass
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._snapshot.release)


class _Progressive(Response):
    """Runs one operation in a thread and sends what it reports, line by line."""

    def __init__(self, kg: KnowledgeGraph, name: str, arguments: dict[str, Any], limiter: CapacityLimiter) -> None:
        super().__init__(media_type="application/x-ndjson")
        del self.headers["content-length"]
        self._kg, self._name, self._arguments, self._limiter = kg, name, arguments, limiter
        self._gone = threading.Event()
        self._reported = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the lines until the operation has ended, or stop it when the client has gone."""
        cancellation = Cancellation()
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        lines, said = anyio.create_memory_object_stream[Line](1_000)

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            self._gone.set()
            cancellation.cancel()

        async def work() -> None:
            token = CANCELLATION.set(cancellation)
            try:
                async with lines:
                    await anyio.to_thread.run_sync(self._run, lines, limiter=self._limiter)
            finally:
                CANCELLATION.reset(token)

        async with anyio.create_task_group() as group:
            group.start_soon(watch)
            group.start_soon(work)
            async with said:
                async for line in said:
                    piece = json.dumps(line, ensure_ascii=False).encode() + b"\n"
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
            group.cancel_scope.cancel()

    def _run(self, lines: MemoryObjectSendStream[Line]) -> None:
        """Run the operation, in a thread of its own; its outcome is the last line."""

        def advance(done: int, total: int | None, doing: str) -> None:
            if self._gone.is_set():
                raise QueryLimitError(f"{self._name} was stopped: who asked for it has gone")
            now = time.monotonic()
            if now - self._reported >= _REPORTED_EVERY_S:
                self._reported = now
                anyio.from_thread.run(lines.send, {"progress": [done, total, doing]})

        outcome: Line
        try:
            outcome = {"result": OPERATIONS[self._name](self._kg, advance, **self._arguments)}
        except QuadciteError as error:
            outcome = _error(error)
        except TypeError as error:
            log.warning("command %s: %s", self._name, error)
            outcome = _error(InvalidInputError(f"{self._name}: {error}"))
        except Exception:  # noqa: BLE001 -- `fault` logs it
            outcome = _error(QuadciteError(fault(f"command {self._name}")))
        anyio.from_thread.run(lines.send, outcome)
