"""Execution of a query over HTTP: run in a worker, held back while its result is small, streamed when it is not.

Headers of every answer: ``Quadcite-Snapshot`` is the generation of the store, ``Quadcite-Row-Limit`` the maximum number
of rows, and ``Quadcite-Truncated`` (``true`` or ``false``) whether a limit of rows or bytes truncated the result. A
result of more than `HELD_BYTES` is sent while it is computed, before this is known: then ``Quadcite-Truncated`` is
absent, and a result with as many rows as the limit has to be treated as truncated.

SPARQL JSON also reports it in the document. A truncated result that was held back has `TRUNCATED` among the links of
its head (https://www.w3.org/TR/sparql11-results-json/#select-link). A streamed one ends with a member
``"meta": {"truncated": true}`` after ``results``: JSON parsers accept it, and a parser that takes nothing after the
rows rejects it instead of taking the part for the whole.

A result that reaches a limit of time or memory after it began ends without its last chunk, which HTTP clients report as
an incomplete answer.

The event loop reads the workers' pipes itself: a query whose snapshot is already open changes no thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeVar, Unpack

import anyio.to_thread
from anyio import CapacityLimiter
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from kg.access.limits import bound_rows
from kg.errors import QuadciteError
from kg.observability import span
from kg.processes.child import ChildGoneError
from kg.queries.dispatcher import Dispatcher, Ticket
from kg.queries.pool import Call, Conversation, Options, Readable, Step, Steps, Turn, can_send_at_once
from kg.server.auth import get_peer
from kg.server.endpoint import Endpoint
from kg.server.fair_limiter import name_client
from kg.sparql.guard import is_cheap_to_check
from kg.vocabulary import BASE

HELD_BYTES: Final = 262_144
"""Maximum size of a result that is held back until it is complete, for ``Quadcite-Truncated``."""

TRUNCATED: Final = BASE + "truncated"
"""The link in the head of a truncated SPARQL JSON result."""

_JSON: Final = "application/sparql-results+json"
_HEAD: Final = b'{"head":{'
_WATCH_AFTER_S: Final = 0.02
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


async def execute(
    endpoint: Endpoint,
    request: Request,
    query: str,
    *,
    media_type: str,
    headers: Mapping[str, str],
    **options: Unpack[Options],
) -> Response:
    """Run `query` in a worker and return its result in `media_type`, with `headers` and those of the result.

    `options` are those of `QueryPool`; `UNLIMITED` is never for a limit that a client sends. The query stops when the
    client disconnects. Raises what `QueryPool.stream` does.
    """
    client = get_client_name(endpoint, request)
    if "audience" not in options:
        options["audience"] = await find_audience(endpoint, request)
    asked: Options = {"at_least": endpoint.generation(), "union": endpoint.union, "client": client, **options}
    if "limit" not in options:
        asked["limit"] = bound_rows(None, endpoint.settings.max_rows)
    check = partial(endpoint.pool.build_ticket, query, media_type=media_type, **asked)
    ticket = check() if is_cheap_to_check(query) else await endpoint.limiters.reading.run(client, check)
    talk = _LoopDriver(endpoint.pool.dispatcher, ticket, request.receive)
    try:
        with span("query", {"quadcite.query.sha256": ticket.sha256}):
            held = await talk.begin()
    except BaseException:
        talk.end()
        raise
    assert ticket.snapshot is not None  # noqa: S101 -- it ran on one
    answer = {
        **headers,
        "Content-Type": media_type + ("; charset=utf-8" if media_type.startswith("text/") else ""),
        "Quadcite-Snapshot": str(ticket.snapshot.generation),
    }
    if (rows := ticket.request["limit"]) is not None:
        answer["Quadcite-Row-Limit"] = str(rows)
    if talk.truncated is None:
        return _StreamedResponse(talk, held, media_type, answer)
    talk.end()
    answer["Quadcite-Truncated"] = "true" if talk.truncated else "false"
    body = b"".join(held)
    if talk.truncated and media_type == _JSON and body.startswith(_HEAD):
        body = _HEAD + f'"link":["{TRUNCATED}"],'.encode() + body[len(_HEAD) :]
    return Response(body, headers=answer)


async def find_audience(endpoint: Endpoint, request: Request) -> frozenset[str] | None:
    """Find the graphs that the sender of a request may read; None: all."""
    if not endpoint.is_restricted():
        return None
    found = await endpoint.limiters.reading.run(get_client_name(endpoint, request), endpoint.find_audience)
    return None if found is None else found.graphs


def get_client_name(endpoint: Endpoint, request: Request) -> str:
    """Return the name by which this client takes turns."""
    return name_client(endpoint.actor(request), get_peer(request.scope))


class _LoopDriver:
    """Drives one query's conversation in the event loop. `truncated` is None until the result is complete."""

    def __init__(self, dispatcher: Dispatcher, ticket: Ticket, receive: Receive) -> None:
        self._conversation = Conversation(dispatcher, ticket, HELD_BYTES)
        self._dispatcher = dispatcher
        self._receive = receive
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._watcher: asyncio.Task[None] | None = None
        # Most queries have ended before it is worth checking whether the client is still connected.
        self._timer = self._loop.call_later(_WATCH_AFTER_S, self._watch)

    @property
    def truncated(self) -> bool | None:
        return self._conversation.truncated

    async def begin(self) -> list[bytes]:
        """Receive the first pieces of the result: all of them if they are small, and then `truncated` is set."""
        return await self._drive(self._conversation.begin())

    async def next_piece(self) -> bytes | None:
        """Receive the next piece; None at the end."""
        return await self._drive(self._conversation.next_piece())

    def end(self) -> None:
        """Stop the query if it still runs, and stop watching the client."""
        self._timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()
        self.abandon()

    def abandon(self) -> None:
        """Stop the query if it still runs; takes no lock, and may be called from anywhere."""
        self._conversation.abandon()

    async def _drive(self, steps: Steps[_T]) -> _T:
        try:
            step = next(steps)
            while True:
                try:
                    result = await self._perform(step)
                except BaseException as error:  # noqa: BLE001 -- the conversation handles or raises it
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            found: _T = end.value
            return found

    async def _perform(self, step: Step) -> object:
        match step:
            case Turn(ticket):
                await self._wait_for_turn(ticket)
            case Readable(worker):
                readable = self._loop.create_future()
                self._loop.add_reader(worker.answers, _set, readable)
                try:
                    await readable
                finally:
                    self._loop.remove_reader(worker.answers)
            case Call(work):
                return await _run_in_thread(work)
        return None

    async def _wait_for_turn(self, ticket: Ticket) -> None:
        turn, dispatcher = self._loop.create_future(), self._dispatcher

        def notify() -> None:
            if threading.get_ident() == self._thread:
                # The worker need not idle until the loop comes to this query.
                if ticket.running and dispatcher.is_ready(ticket) and can_send_at_once(ticket):
                    with contextlib.suppress(ChildGoneError):  # raised again, where it is handled
                        dispatcher.send(ticket)
                _set(turn)
            else:
                with contextlib.suppress(RuntimeError):  # the loop has ended, and with it all that waited
                    self._loop.call_soon_threadsafe(_set, turn)

        if not dispatcher.submit(ticket, notify):
            await turn

    def _watch(self) -> None:
        self._watcher = self._loop.create_task(self._stop_with_client())

    async def _stop_with_client(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if (ticket := self._conversation.ticket) is not None:
            self._dispatcher.stop(ticket, "cancelled")


class _StreamedResponse(Response):
    """Sends the held pieces, then each piece as the worker computes it."""

    def __init__(self, talk: _LoopDriver, held: list[bytes], media_type: str, headers: dict[str, str]) -> None:
        super().__init__(headers=headers)
        del self.headers["content-length"]
        self._talk, self._held, self._json = talk, held, media_type == _JSON

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the result; the query stops when the client disconnects."""
        talk = self._talk
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            if scope["method"] == "HEAD":
                await send({"type": "http.response.body", "body": b""})
                return
            piece: bytes | None = b"".join(self._held)
            self._held.clear()
            last = b""  # the brace that closes a JSON result is held until it is known to be the last
            while piece is not None:
                body = last + piece
                last = body[-1:] if self._json else b""
                await send({"type": "http.response.body", "body": body[: len(body) - len(last)], "more_body": True})
                piece = await talk.next_piece()
            if self._json and talk.truncated:
                last = b',"meta":{"truncated":true}}'
            await send({"type": "http.response.body", "body": last})
        except QuadciteError as error:
            # Without the last message the server closes the connection: the client sees that the answer is incomplete.
            _log.warning("A result ended early: %s", error)
        finally:
            talk.end()

    def __del__(self) -> None:
        if (talk := getattr(self, "_talk", None)) is not None:
            talk.abandon()


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def _run_in_thread(work: Callable[[], _T]) -> _T:
    # A limiter of its own: few queries run, and they must not wait for the threads of other work.
    return await anyio.to_thread.run_sync(work, limiter=CapacityLimiter(1))
