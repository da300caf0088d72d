"""From a query to its HTTP answer: begun in a worker, held back while it is small, streamed when it is not.

Every answer says in its headers what it is: ``Quadcite-Snapshot`` the generation of the store, ``Quadcite-Row-Limit``
the rows that are sent at most, and ``Quadcite-Truncated`` (``true`` or ``false``) whether a limit cut it short. A
result of more than `HELD_BYTES` is sent while it is computed, so its header cannot know: then ``Quadcite-Truncated`` is
absent, and a result with as many rows as the limit has to be taken as cut short. A result that hits a limit of time or
memory after it began ends without its last chunk, which HTTP clients report as an incomplete answer; it never looks
complete.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

import anyio
import anyio.to_thread
from anyio import CapacityLimiter
from pyoxigraph import NamedNode
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from kg.errors import QuadciteError
from kg.server.endpoint import Endpoint
from kg.store.sandbox import Cancellation, Streamed

HELD_BYTES: Final = 262_144
"""A result up to this size is held back until it is complete, so that its headers can say whether it was cut short."""

_log = logging.getLogger(__name__)


async def execute(
    endpoint: Endpoint,
    request: Request,
    query: str,
    *,
    media_type: str,
    headers: Mapping[str, str],
    limit: float | None = None,
    timeout_s: float | None = None,
    default_graphs: Sequence[NamedNode] = (),
    named_graphs: Sequence[NamedNode] = (),
    exactly: int | None = None,
) -> Response:
    """Run `query` in a worker and return its result in `media_type`, with `headers` besides those of the result.

    `limit` (rows or triples) and `timeout_s` (seconds) can only lower what the settings allow. `default_graphs` and
    `named_graphs` take the place of the query's FROM clauses; `exactly` is the generation that must answer. The query
    stops when the client goes away. Raises what `QueryPool.stream` does.
    """
    settings = endpoint.settings
    rows = settings.max_rows if limit is None else min(limit, settings.max_rows)
    timeout_s = settings.query_timeout_s if timeout_s is None else min(timeout_s, settings.query_timeout_s)
    limiter = CapacityLimiter(1)
    cancellation = Cancellation()

    def begin() -> tuple[Streamed, list[bytes]]:
        stream = endpoint.pool.stream(
            query,
            media_type=media_type,
            limit=rows,
            timeout_s=timeout_s,
            at_least=endpoint.generation(),
            cancellation=cancellation,
            default_graphs=default_graphs,
            named_graphs=named_graphs,
            exactly=exactly,
            union=endpoint.union,
            client=endpoint.actor(request).name,
        )
        held: list[bytes] = []
        for piece in stream:
            held.append(piece)
            if sum(map(len, held)) > HELD_BYTES:
                break
        return stream, held

    async with _cancelled_with(request.receive, cancellation):
        stream, held = await anyio.to_thread.run_sync(begin, limiter=limiter)
    answer = {
        **headers,
        "Content-Type": stream.media_type + ("; charset=utf-8" if stream.media_type.startswith("text/") else ""),
        "Quadcite-Snapshot": str(stream.generation),
        "Quadcite-Row-Limit": str(rows),
    }
    if stream.truncated is not None:
        answer["Quadcite-Truncated"] = "true" if stream.truncated else "false"
        return Response(b"".join(held), headers=answer)
    return _StreamedResponse(stream, held, cancellation, limiter, answer)


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
        except QuadciteError as error:
            failure = error  # raised below: a task group would wrap it
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure
