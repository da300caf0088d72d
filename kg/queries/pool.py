"""Queries in processes that can be killed: a warm pool of workers over immutable snapshots of the store.

pyoxigraph can neither stop a query nor bound its memory, so the server evaluates none itself. Each query has one worker
to itself, under a deadline that this process enforces by killing, and under the memory limit that the worker has set
itself (`kg.queries.worker`). A killed worker is replaced at once, and no other query was in it. Who runs when is
decided by `kg.queries.admission`.

A result is cut after the rows (or triples) of its limit, and after the row with which it reaches the setting
``max_result_mb``; it stays well-formed, and whoever reads it is told by `truncated`.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self

from pyoxigraph import NamedNode

from kg.errors import InvalidInputError, QueryMemoryError
from kg.processes.child import ChildGoneError
from kg.queries import replies, text_check
from kg.queries.dispatcher import Dispatcher, RunningQuery, Ticket
from kg.settings import Settings
from kg.store.protocol import Result, Snapshotted
from kg.vocabulary import PREFIXES

UNLIMITED: Final = math.inf
"""As `limit` or `timeout_s`: no limit at all, for a person at a terminal; never for a server."""

_TSV: Final = "text/tab-separated-values"
_N_TRIPLES: Final = "application/n-triples"


@dataclass(frozen=True, slots=True)
class Answer:
    """A finished result, the generation of the store that it speaks of, and whether a limit cut it short."""

    result: Result
    generation: int
    truncated: bool


class Cancellation:
    """Stops the query that it was given to, from any thread, before it began or while it runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._stop: Callable[[], object] | None = None

    def cancel(self) -> None:
        """Stop the query; the call that runs it raises QueryLimitError. Afterwards: does nothing."""
        with self._lock:
            self._cancelled = True
            stop = self._stop
        if stop is not None:
            stop()

    @property
    def cancelled(self) -> bool:
        """Whether it was told to stop."""
        with self._lock:
            return self._cancelled

    def on_cancel(self, stop: Callable[[], object] | None) -> None:
        """Call `stop` when the query is to stop, at once if that is so already; None: it has ended."""
        with self._lock:
            self._stop = stop
            cancelled = self._cancelled
        if cancelled and stop is not None:
            stop()


class Streamed:
    """A result on its way: iterate over its bytes, and close it (a `with` block does).

    Closing before the end stops the query. `truncated` is None until the last piece has come; an error after the first
    piece is raised by the iteration.
    """

    def __init__(self, pool: QueryPool, ticket: Ticket, kind: str, media_type: str) -> None:
        assert ticket.snapshot is not None  # noqa: S101 -- a query runs on one
        self.kind: Final = kind
        self.media_type: Final = media_type
        self.generation: Final = ticket.snapshot.generation
        self.truncated: bool | None = None
        self._pool = pool
        self._ticket: Ticket | None = ticket

    @property
    def chunks(self) -> Iterator[bytes]:
        """The pieces of the serialized result."""
        return self

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        ticket = self._ticket
        if ticket is None:
            raise StopIteration
        try:
            kind, payload = self._pool._receive(ticket)
        except ChildGoneError:
            self._ticket = None
            raise self._pool.dispatcher.lost(ticket) or replies.KilledError("the query was stopped") from None
        except BaseException:
            self._ticket = None
            raise
        if kind == b"D":
            return payload
        self.truncated = json.loads(payload)["truncated"]
        self._ticket = None
        raise StopIteration

    def close(self) -> None:
        """Stop the query if it still runs."""
        ticket, self._ticket = self._ticket, None
        if ticket is not None:
            self._pool.dispatcher.give_up(ticket)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # The collector may run anywhere, also where a lock of the pool is held: this takes none.
        ticket = getattr(self, "_ticket", None)
        if ticket is not None:
            self._pool.dispatcher.abandon(ticket)


class QueryPool:
    """Worker processes for read-only queries. Every method may be called from any thread; `run` and `stream` block.

    Of both: `limit` (rows or triples) and `timeout_s` (seconds) default to the settings; `UNLIMITED` lifts them. The
    time is that of running; a query waits for as long at most. `at_least` is the oldest generation of the store that
    will do, `exactly` the one that must answer, which has to be kept still. `default_graphs` and `named_graphs` are the
    dataset that is asked, in place of what the query says with FROM; else its default graph is the union of all graphs,
    unless it says FROM, or `union` is False. `client` is who asks, for a fair share and the record.
    `prefixes` need no declaration in a query, and `base_iri` is what its relative IRIs are resolved against.
    """

    def __init__(
        self,
        store: Snapshotted,
        settings: Settings,
        *,
        prefixes: Mapping[str, str] = PREFIXES,
        base_iri: str | None = None,
    ) -> None:
        self._settings: Final = settings
        self.dispatcher: Final = Dispatcher(store, settings, {"prefixes": dict(prefixes), "base_iri": base_iri})

    def run(
        self,
        query: str,
        *,
        limit: float | None = None,
        timeout_s: float | None = None,
        at_least: int = 0,
        exactly: int | None = None,
        default_graphs: Sequence[NamedNode] = (),
        named_graphs: Sequence[NamedNode] = (),
        union: bool = True,
        client: str = "",
        cancellation: Cancellation | None = None,
    ) -> Answer:
        """Run a query and return its finished result.

        Raises QuerySyntaxError, QueryForbiddenError, InvalidInputError for what cannot be evaluated, GoneError for a
        generation that is no longer kept, and when it was stopped QueryTimeoutError, QueryMemoryError, QueryBusyError,
        ClientBusyError, or QueryLimitError (cancelled).
        """
        ticket = self.ticket(
            query,
            media_type=None,
            limit=limit,
            timeout_s=timeout_s,
            at_least=at_least,
            exactly=exactly,
            default_graphs=default_graphs,
            named_graphs=named_graphs,
            union=union,
            client=client,
        )
        try:
            while True:
                kind = self._begin(ticket, cancellation)
                try:
                    pieces, truncated = self._collect(ticket)
                except ChildGoneError:
                    if (error := self.dispatcher.lost(ticket)) is not None:
                        raise error from None
                    continue
                assert ticket.snapshot is not None  # noqa: S101 -- a query runs on one
                result = replies.result_of(kind, pieces, truncated=truncated)
                return Answer(result, ticket.snapshot.generation, truncated)
        finally:
            if cancellation is not None:
                cancellation.on_cancel(None)

    def stream(
        self,
        query: str,
        *,
        media_type: str,
        limit: float | None = None,
        timeout_s: float | None = None,
        at_least: int = 0,
        exactly: int | None = None,
        default_graphs: Sequence[NamedNode] = (),
        named_graphs: Sequence[NamedNode] = (),
        union: bool = True,
        client: str = "",
        cancellation: Cancellation | None = None,
    ) -> Streamed:
        """Begin a query and return its result in `media_type` as it comes; same errors as `run`.

        SELECT and ASK: SPARQL JSON, XML, CSV or TSV; CONSTRUCT and DESCRIBE: Turtle, N-Triples, N3, RDF/XML, and
        JSON-LD, TriG and N-Quads, which hold the triples in their default graph. The deadline covers the whole
        transfer; nothing is computed far ahead of the reader.
        """
        ticket = self.ticket(
            query,
            media_type=media_type,
            limit=limit,
            timeout_s=timeout_s,
            at_least=at_least,
            exactly=exactly,
            default_graphs=default_graphs,
            named_graphs=named_graphs,
            union=union,
            client=client,
        )
        while True:
            kind = self._begin(ticket, cancellation)
            if self.dispatcher.commit(ticket):
                return Streamed(self, ticket, kind, media_type)
            if (error := self.dispatcher.lost(ticket)) is not None:
                raise error

    def running(self) -> list[RunningQuery]:
        """Return the queries that run or wait, the oldest first."""
        return self.dispatcher.running()

    def cancel(self, number: int) -> bool:
        """Stop the query with this id; return whether there was one."""
        return self.dispatcher.cancel(number)

    def close(self) -> None:
        """Kill all workers and wait for their end; queries that run raise QueryLimitError."""
        self.dispatcher.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ticket(
        self,
        query: str,
        *,
        media_type: str | None,
        limit: float | None,
        timeout_s: float | None,
        at_least: int,
        exactly: int | None,
        default_graphs: Sequence[NamedNode],
        named_graphs: Sequence[NamedNode],
        union: bool,
        client: str,
    ) -> Ticket:
        """Return what `dispatcher` takes for a query, checked; `media_type` None asks for what `run` reads."""
        checked = text_check.check(query)
        rows = _rows(self._settings.max_rows if limit is None else limit)
        timeout_s = self._settings.query_timeout_s if timeout_s is None else timeout_s
        if not timeout_s > 0:
            raise InvalidInputError(f"timeout_s must be more than 0 seconds, not {timeout_s}")
        dataset = None
        if default_graphs or named_graphs:
            dataset = [[graph.value for graph in graphs] for graphs in (default_graphs, named_graphs)]
        request: dict[str, Any] = {
            "query": query,
            "union": union and not checked.names_dataset,
            "dataset": dataset,
            "limit": rows,
            "bytes": None if rows is None else self._settings.max_result_mb << 20,
            "results": media_type or _TSV,
            "graph": media_type or _N_TRIPLES,
        }
        return Ticket(client, query, request=request, timeout_s=timeout_s, at_least=at_least, exactly=exactly)

    # From here on: one query's way, in the thread that waits for it.

    def _begin(self, ticket: Ticket, cancellation: Cancellation | None) -> str:
        """Send the query to a worker and wait for the kind of its result."""
        dispatcher = self.dispatcher
        if cancellation is not None:
            cancellation.on_cancel(partial(dispatcher.stop, ticket, "cancelled"))
        while True:
            turn = threading.Event()
            if not dispatcher.submit(ticket, turn.set):
                turn.wait()
            dispatcher.claim(ticket)
            try:
                dispatcher.prepare(ticket)
                dispatcher.begin(ticket)
                _, payload = self._receive(ticket)
            except ChildGoneError:
                if (error := dispatcher.lost(ticket)) is not None:
                    raise error from None
            except BaseException:
                if ticket.running and not ticket.sent:
                    dispatcher.hand_back(ticket)
                raise
            else:
                kind: str = json.loads(payload)["kind"]
                return kind

    def _receive(self, ticket: Ticket) -> tuple[bytes, bytes]:
        """Return the next frame; at its end, and on errors that it reports, the worker has been given back."""
        worker = ticket.worker
        if worker is None:
            raise ChildGoneError
        try:
            kind, payload = worker.receive()
        except ChildGoneError:
            raise
        except BaseException:
            self.dispatcher.give_up(ticket)
            raise
        if kind == b"X":
            self.dispatcher.finish(ticket, retire=False)
            raise replies.reported(json.loads(payload), ticket.query, self._settings)
        if kind == b"E":
            self.dispatcher.finish(ticket, retire=json.loads(payload)["retire"])
        return kind, payload

    def _collect(self, ticket: Ticket) -> tuple[list[bytes], bool]:
        """Return the pieces of a result, and whether it was cut."""
        pieces: list[bytes] = []
        size = 0
        while True:
            frame, payload = self._receive(ticket)
            if frame == b"E":
                return pieces, json.loads(payload)["truncated"]
            pieces.append(payload)
            size += len(payload)
            if size > self._settings.query_memory_mb << 20 and ticket.request["limit"] is not None:
                self.dispatcher.give_up(ticket)
                raise QueryMemoryError(
                    f"the result is larger than {self._settings.query_memory_mb} MiB (setting "
                    "QUADCITE_QUERY_MEMORY_MB); ask for fewer rows or columns, or stream it from the endpoint"
                )


def _rows(limit: float) -> int | None:
    if limit == math.inf:
        return None
    if limit < 1 or limit != int(limit):
        raise InvalidInputError(f"limit must be a whole number of rows, at least 1, not {limit}")
    return int(limit)
