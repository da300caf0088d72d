"""Queries in processes that can be killed: a warm pool of workers over immutable snapshots of the store.

pyoxigraph can neither stop a query nor bound its memory, so the server evaluates none itself. Each query has a worker
of its own, with a deadline that this process enforces by killing, and a memory limit that the worker sets for itself
(`kg.queries.worker`). A killed worker is replaced at once; no other query was in it. `kg.processes.admission` decides
which query runs next.

A result is truncated after the rows (or triples) of its limit, and after the row with which it reaches the setting
``max_result_mb``; it stays well-formed, and `truncated` reports it.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self, TypedDict, TypeVar, Unpack

from pyoxigraph import NamedNode, QueryResultsFormat, RdfFormat, Triple, parse, parse_query_results

from kg.errors import InvalidInputError, QueryForbiddenError, QueryMemoryError
from kg.observability import count_query_stop, span
from kg.processes.child import ChildGoneError, never
from kg.queries import text_check, worker_errors
from kg.queries.dispatcher import Dispatcher, RunningQuery, Ticket, Worker
from kg.settings import Settings
from kg.sparql.guard import CHEAP_CHARS
from kg.store.protocol import Result, Rows, Snapshotted, State
from kg.vocabulary import PREFIXES

UNLIMITED: Final = math.inf
"""As `limit` or `timeout_s`: no limit, for a person at a terminal; never for a server."""

_TSV: Final = "text/tab-separated-values"
_N_TRIPLES: Final = "application/n-triples"
_T = TypeVar("_T")
_SHORT: Final = 10_000
"""Characters of a query up to which a pipe takes it at once."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Submit the ticket, and wait until its turn has come or it was stopped."""

    ticket: Ticket


@dataclass(frozen=True, slots=True)
class Readable:
    """Wait until the answers of the worker can be read."""

    worker: Worker


@dataclass(frozen=True, slots=True)
class Call:
    """Call a function that may block, and send back its result."""

    work: Callable[[], object]


Step = Turn | Readable | Call
Steps = Generator[Step, Any, _T]


class Conversation:
    """One query with its worker: a state machine for threads and for the event loop, as generators of steps.

    It never waits itself. A driver performs each step in its own way of waiting, and sends the result back or throws
    the exception in: `QueryPool` in a thread, `kg.server.query_execution` in the loop.

    `ticket` is None once it has ended, `truncated` until its result is complete.

    `hold_bytes` is the size of a result up to which it is held back until it is complete: until then the query can
    start again if its worker is taken away or dies.
    """

    def __init__(self, dispatcher: Dispatcher, ticket: Ticket, hold_bytes: float) -> None:
        self.ticket: Ticket | None = ticket
        self.kind = ""
        self.truncated: bool | None = None
        self._dispatcher: Final = dispatcher
        self._hold_bytes: Final = hold_bytes

    def begin(self) -> Steps[list[bytes]]:
        """Run the query up to its first pieces: all of them if they are small, and then `truncated` is set."""
        ticket = self._current()
        while True:
            yield Turn(ticket)
            self._dispatcher.raise_if_stopped(ticket)
            try:
                yield from self._send(ticket)
                held: list[bytes] = []
                size = 0
                while size <= self._hold_bytes:
                    piece = yield from self._receive(ticket)
                    if piece is None:
                        return held
                    held.append(piece)
                    size += len(piece)
                if self._dispatcher.start_answer(ticket):
                    return held
            except ChildGoneError:
                pass
            if (error := (yield Call(partial(self._dispatcher.recover, ticket)))) is not None:
                self.ticket = None
                raise error

    def next_piece(self) -> Steps[bytes | None]:
        """Receive the next piece of the result; None at its end."""
        ticket = self._current()
        try:
            return (yield from self._receive(ticket))
        except ChildGoneError:
            self.ticket = None
            error = yield Call(partial(self._dispatcher.recover, ticket))
            raise error or worker_errors.KilledError("The query was stopped.") from None

    def close(self) -> None:
        """Stop the query if it still runs, and wait for the end of its process."""
        ticket, self.ticket = self.ticket, None
        if ticket is not None:
            self._dispatcher.give_up(ticket)

    def abandon(self) -> None:
        """Stop the query if it still runs, soon; takes no lock, so that a destructor may call it."""
        ticket, self.ticket = self.ticket, None
        if ticket is not None:
            self._dispatcher.abandon(ticket)

    def _current(self) -> Ticket:
        assert self.ticket is not None  # noqa: S101 -- it has not ended
        return self.ticket

    def _send(self, ticket: Ticket) -> Steps[None]:
        if ticket.sent:  # by the driver, when its turn came
            return
        if not self._dispatcher.is_ready(ticket):
            try:
                yield Call(partial(self._dispatcher.prepare, ticket))
            except ChildGoneError:
                raise  # handled by the caller, which may try another worker
            except Exception:  # an error of the store: the worker is unharmed, and free for the next query
                self.ticket = None
                self._dispatcher.hand_back(ticket)
                raise
        if can_send_at_once(ticket):
            self._dispatcher.send(ticket)
        else:
            yield Call(partial(self._dispatcher.send, ticket))

    def _receive(self, ticket: Ticket) -> Steps[bytes | None]:
        while True:
            worker = ticket.worker
            if worker is None:
                raise ChildGoneError
            while (frame := worker.poll_frame()) is None:
                yield Readable(worker)
            kind, payload = frame
            if kind == b"D":
                return payload
            content = json.loads(payload)
            if kind == b"H":
                self.kind = content["kind"]
                continue
            self.ticket = None
            self._dispatcher.finish(ticket, retire=content.get("retire", False))
            if kind == b"E":
                self.truncated = content["truncated"]
                return None
            if content["kind"] == "memory":
                count_query_stop("memory")
            build = partial(worker_errors.build_reported_error, content, ticket.query, self._dispatcher.settings)
            error: Exception = build() if len(ticket.query) < CHEAP_CHARS else (yield Call(build))
            raise error


@dataclass(frozen=True, slots=True)
class Answer:
    """A finished result, the generation of the store that it was computed on, and whether a limit truncated it."""

    result: Result
    generation: int
    truncated: bool


class Cancellation:
    """Stops the queries of one call, from any thread, before they start or while they run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._stops: dict[object, Callable[[], object]] = {}

    def cancel(self) -> None:
        """Stop the queries; the calls that run them raise QueryLimitError. Does nothing once they have ended."""
        with self._lock:
            self._cancelled = True
            stops = list(self._stops.values())
        for stop in stops:
            stop()

    @property
    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        with self._lock:
            return self._cancelled

    def on_cancel(self, stop: Callable[[], object]) -> Callable[[], object]:
        """Call `stop` on cancellation, at once if it was cancelled already, until the returned function is called."""
        key = object()
        with self._lock:
            self._stops[key] = stop
            cancelled = self._cancelled
        if cancelled:
            stop()
        return lambda: self._stops.pop(key, None)


class Streamed:
    """A result that arrives in pieces: iterate over its bytes, and close it (a `with` block does).

    Closing before the end stops the query. `truncated` is None until the last piece has arrived; an error after the
    first piece is raised by the iteration.
    """

    def __init__(self, conversation: Conversation, held: list[bytes], generation: int) -> None:
        self.kind: Final = conversation.kind
        self.generation: Final = generation
        self.conversation: Final = conversation
        self._held = held

    @property
    def truncated(self) -> bool | None:
        """Whether a limit cut the result short."""
        return self.conversation.truncated

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self._held:
            return self._held.pop(0)
        if self.conversation.ticket is None:
            raise StopIteration
        try:
            piece = _drive(self.conversation.next_piece())
        except BaseException:  # also an interrupt: nobody would read the rest
            self.conversation.close()
            raise
        if piece is None:
            raise StopIteration
        return piece

    def close(self) -> None:
        """Stop the query if it still runs."""
        self._held.clear()
        self.conversation.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # The collector may run anywhere, also where a lock of the pool is held: this takes none.
        if (conversation := getattr(self, "conversation", None)) is not None:
            conversation.abandon()


class Options(TypedDict, total=False):
    """The options of a query; see `QueryPool`."""

    limit: float | None
    timeout_s: float | None
    at_least: int
    exactly: int | None
    default_graphs: Sequence[NamedNode]
    named_graphs: Sequence[NamedNode]
    union: bool
    client: str
    audience: frozenset[str] | None


class QueryPool:
    """Worker processes for read-only queries. Every method may be called from any thread; `run` and `stream` block.

    Options of both: `limit` (rows or triples) and `timeout_s` (seconds of running; a query waits for as long at most)
    default to the settings; `UNLIMITED` removes them. `at_least` is the oldest generation of the store that may answer,
    `exactly` the only one, which must still be kept. `default_graphs` and `named_graphs` are the dataset, in place of
    the query's FROM clauses; without either the default graph is the union of all graphs, unless `union` is False.
    `audience` has the graphs that the caller may read (None: all): the dataset consists of these, or of those among
    them that the caller gives, and FROM clauses are refused. `client` is the name of the caller, for a fair share and
    the log. `prefixes` need no declaration in a query, and relative IRIs are resolved against `base_iri`.
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

    def run(self, query: str, *, cancellation: Cancellation | None = None, **options: Unpack[Options]) -> Answer:
        """Run a query and return its finished result.

        Raises QuerySyntaxError, QueryForbiddenError, InvalidInputError for a query that cannot be evaluated, GoneError
        for a generation that is no longer kept, and when it was stopped QueryTimeoutError, QueryMemoryError,
        QueryBusyError, ClientBusyError, or QueryLimitError (cancelled).
        """
        ticket = self.build_ticket(query, **options)
        memory_mb = self._settings.query_memory_mb
        limited = ticket.request["limit"] is not None
        conversation = Conversation(self.dispatcher, ticket, memory_mb << 20 if limited else math.inf)
        on_cancel = never if cancellation is None else cancellation.on_cancel
        forget = on_cancel(partial(self.dispatcher.stop, ticket, "cancelled"))
        try:
            with span("query", {"quadcite.query.sha256": ticket.sha256}):
                pieces = self._begin(conversation, ticket)
        finally:
            conversation.close()
            forget()
        if conversation.truncated is None:
            raise QueryMemoryError(
                f"The result is larger than {memory_mb} MiB (setting QUADCITE_QUERY_MEMORY_MB). Ask for fewer rows or "
                "columns, or stream it from the endpoint."
            )
        result = parse_result(conversation.kind, pieces, truncated=conversation.truncated)
        return Answer(result, _generation(ticket), conversation.truncated)

    def stream(
        self, query: str, *, media_type: str, cancellation: Cancellation | None = None, **options: Unpack[Options]
    ) -> Streamed:
        """Begin a query and return its result in `media_type` as it arrives; same errors as `run`.

        SELECT and ASK: SPARQL JSON, XML, CSV or TSV; CONSTRUCT and DESCRIBE: Turtle, N-Triples, N3, RDF/XML, and
        JSON-LD, TriG and N-Quads, which contain the triples in their default graph. The deadline covers the whole
        transfer; nothing is computed far ahead of the reader.
        """
        ticket = self.build_ticket(query, media_type=media_type, **options)
        conversation = Conversation(self.dispatcher, ticket, 0)
        if cancellation is not None:
            cancellation.on_cancel(partial(self.dispatcher.stop, ticket, "cancelled"))
        try:
            held = self._begin(conversation, ticket)
        except BaseException:
            conversation.close()
            raise
        return Streamed(conversation, held, _generation(ticket))

    def list_queries(self) -> list[RunningQuery]:
        """List the queries that run or wait, the oldest first."""
        return self.dispatcher.list_queries()

    def count_overdue(self) -> int:
        """Count the queries that have a place, or wait, a second after their deadline."""
        return self.dispatcher.count_overdue()

    def cancel(self, number: int) -> bool:
        """Stop the query with this id; return whether there was one."""
        return self.dispatcher.cancel(number)

    def lease(self, exactly: int | None = None) -> State:
        """Get the newest generation, or that of `exactly`, for queries on it until it is released. Meanwhile workers
        that have its snapshot open keep it open. Raises the errors of `Snapshotted.snapshot`."""
        return self.dispatcher.lease(exactly)

    def close_snapshots_before(self, generation: int) -> None:
        """Have idle workers close the snapshots of older generations, which they keep until the next query."""
        self.dispatcher.close_snapshots_before(generation)

    @property
    def closed(self) -> bool:
        """Whether the pool was closed: queries raise QueryLimitError."""
        return self.dispatcher.closed

    def close(self) -> None:
        """Kill all workers and wait for their end; queries that run raise QueryLimitError."""
        self.dispatcher.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def build_ticket(
        self,
        query: str,
        *,
        media_type: str | None = None,
        limit: float | None = None,
        timeout_s: float | None = None,
        at_least: int = 0,
        exactly: int | None = None,
        default_graphs: Sequence[NamedNode] = (),
        named_graphs: Sequence[NamedNode] = (),
        union: bool = True,
        client: str = "",
        audience: frozenset[str] | None = None,
    ) -> Ticket:
        """Check a query and build its ticket for `dispatcher`; without `media_type`, for a result that `run` parses."""
        checked = text_check.check(query)
        rows = _parse_limit(self._settings.max_rows if limit is None else limit)
        timeout_s = self._settings.query_timeout_s if timeout_s is None else timeout_s
        if not timeout_s > 0:
            raise InvalidInputError(f"Invalid timeout_s {timeout_s}. It must be more than 0 seconds.")
        dataset = None
        if default_graphs or named_graphs:
            dataset = [[graph.value for graph in graphs] for graphs in (default_graphs, named_graphs)]
        if audience is not None:
            if checked.names_dataset:
                raise QueryForbiddenError(
                    "FROM is not available to senders who may read a part of the graphs. Name graphs by GRAPH, or by "
                    "the parameters default-graph-uri and named-graph-uri of the request."
                )
            # Always both lists, also empty: a default graph alone leaves every named graph readable.
            whole = [sorted(audience)] * 2
            dataset = whole if dataset is None else [[name for name in part if name in audience] for part in dataset]
        request: dict[str, Any] = {
            "query": checked.text,
            "star": checked.star,
            "union": union and not checked.names_dataset,
            "dataset": dataset,
            "limit": rows,
            "bytes": None if rows is None else self._settings.max_result_mb << 20,
            "results": media_type or _TSV,
            "graph": media_type or _N_TRIPLES,
        }
        return Ticket(client, query, request=request, timeout_s=timeout_s, at_least=at_least, exactly=exactly)

    def _begin(self, conversation: Conversation, ticket: Ticket) -> list[bytes]:
        def wait_for_turn() -> None:
            turn = threading.Event()
            if not self.dispatcher.submit(ticket, turn.set):
                turn.wait()

        return _drive(conversation.begin(), wait_for_turn)


def can_send_at_once(ticket: Ticket) -> bool:
    """Return whether the ticket's query is so short that sending it does not block."""
    return len(ticket.query) < _SHORT


def parse_result(kind: str, pieces: list[bytes], *, truncated: bool) -> Result:
    """Parse the finished result that a worker sent: SELECT as TSV, graphs as N-Triples."""
    data = b"".join(pieces)
    if kind == "solutions":
        solutions = parse_query_results(data, format=QueryResultsFormat.TSV)
        variables = tuple(variable.value for variable in solutions.variables)  # type: ignore[union-attr]
        return Rows(variables, [tuple(row) for row in solutions], truncated)  # type: ignore[union-attr]
    if kind == "boolean":
        return data.strip() == b"true"
    return [Triple(quad.subject, quad.predicate, quad.object) for quad in parse(data, format=RdfFormat.N_TRIPLES)]


def _drive(steps: Steps[_T], wait_for_turn: Callable[[], None] = lambda: None) -> _T:
    """Perform the steps of a conversation in this thread."""
    try:
        step = next(steps)
        while True:
            result: object = None
            try:
                match step:
                    case Turn():
                        wait_for_turn()
                    case Readable(worker):
                        worker.wait_readable()
                    case Call(work):
                        result = work()
            except BaseException as error:  # noqa: BLE001 -- the conversation handles or raises it
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as end:
        found: _T = end.value
        return found


def _generation(ticket: Ticket) -> int:
    assert ticket.snapshot is not None  # noqa: S101 -- a query runs on one
    return ticket.snapshot.generation


def _parse_limit(limit: float) -> int | None:
    if limit == math.inf:
        return None
    if limit < 1 or limit != int(limit):
        raise InvalidInputError(f"Invalid limit {limit}. It must be a whole number of rows, at least 1.")
    return int(limit)
