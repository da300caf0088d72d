"""Queries in processes that can be killed: a warm pool of workers over immutable snapshots of the store.

pyoxigraph can neither stop a query nor bound its memory, so the server evaluates none itself. Each query has one worker
to itself, under a deadline that this process enforces by killing, and under the memory limit that the worker has set
itself (`kg.store.worker`). A killed worker is replaced at once, and no other query was in it.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Self

from pyoxigraph import NamedNode

from kg.errors import (
    InvalidInputError,
    QueryBusyError,
    QueryLimitError,
    QueryMemoryError,
)
from kg.settings import Settings
from kg.sparql.guard import check_query, names_dataset
from kg.store import replies
from kg.store.child import Lease, OverdueError, Worker, WorkerGoneError
from kg.store.protocol import Result, Store

UNLIMITED: Final = math.inf
"""As `limit` or `timeout_s`: no limit at all, for a person at a terminal; never for a server."""

_TSV: Final = "text/tab-separated-values"
_N_TRIPLES: Final = "application/n-triples"
_ACKNOWLEDGE_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Answer:
    """A finished result, the generation of the store that it speaks of, and whether the limit cut it short."""

    result: Result
    generation: int
    truncated: bool


class Cancellation:
    """Stops the query that it was given to, from any thread, before it began or while it runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._stop: Callable[[], None] | None = None

    def cancel(self) -> None:
        """Stop the query; the call that runs it raises QueryLimitError. Afterwards: does nothing."""
        with self._lock:
            self._cancelled = True
            stop = self._stop
        if stop is not None:
            stop()

    def on_cancel(self, stop: Callable[[], None] | None) -> None:
        """Call `stop` when the query is to stop, at once if that is so already; None: it has ended."""
        with self._lock:
            self._stop = stop
            cancelled = self._cancelled
        if cancelled and stop is not None:
            stop()


@dataclass(slots=True, eq=False)
class _Waiter:
    arrived: threading.Event
    worker: Worker | None = None
    cancelled: bool = False


class Streamed:
    """A result on its way: iterate over its bytes, and close it (a `with` block does).

    Closing before the end stops the query. `truncated` is None until the last piece has come; an error after the first
    piece is raised by the iteration.
    """

    def __init__(self, pool: QueryPool, lease: Lease, limits: _Limits, kind: str, media_type: str) -> None:
        assert lease.worker.snapshot is not None  # noqa: S101 -- a query runs on one
        self.kind: Final = kind
        self.media_type: Final = media_type
        self.generation: Final = lease.worker.snapshot.generation
        self.truncated: bool | None = None
        self._pool = pool
        self._limits = limits
        self._lease: Lease | None = lease
        self._timer: threading.Timer | None = None
        if lease.deadline != math.inf:
            # The reader may be slow, or gone: the worker dies on time all the same.
            self._timer = threading.Timer(max(0.0, lease.deadline - time.monotonic()), lease.stop, ("timeout",))
            self._timer.daemon = True
            self._timer.start()

    @property
    def chunks(self) -> Iterator[bytes]:
        """The pieces of the serialized result."""
        return self

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        lease = self._lease
        if lease is None:
            raise StopIteration
        try:
            kind, payload = self._pool._receive(lease, self._limits)
        except BaseException:
            self._stop_timer()
            self._lease = None
            raise
        if kind == b"D":
            return payload
        self.truncated = json.loads(payload)["truncated"]
        self._stop_timer()
        self._lease = None
        raise StopIteration

    def close(self) -> None:
        """Stop the query if it still runs."""
        self._stop_timer()
        lease, self._lease = self._lease, None
        if lease is not None:
            self._pool._discard(lease)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_lease", None) is not None:
            self.close()


@dataclass(frozen=True, slots=True)
class _Limits:
    query: str
    rows: int | None
    timeout_s: float
    deadline: float


class QueryPool:
    """Worker processes for read-only queries. Every method blocks and may be called from any thread.

    `limit` (rows or triples) and `timeout_s` (seconds) default to the settings; `UNLIMITED` lifts them. `at_least` is
    the oldest generation of the store that will do.
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store: Final = store
        self._settings: Final = settings
        self._lock = threading.Lock()
        self._idle: deque[Worker] = deque()
        self._waiting: deque[_Waiter] = deque()
        self._leases: set[Lease] = set()
        self._closed = False
        self._settled = threading.Condition(self._lock)
        self._generation = 0
        for _ in range(settings.query_workers):
            self._idle.append(Worker(settings))

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

        Raises QuerySyntaxError, QueryForbiddenError, InvalidInputError for what cannot be evaluated, and when it was
        stopped QueryTimeoutError, QueryMemoryError, QueryBusyError, or QueryLimitError (cancelled).
        """
        lease, limits, kind = self._begin(
            query,
            _TSV,
            _N_TRIPLES,
            limit,
            timeout_s,
            at_least,
            exactly,
            default_graphs,
            named_graphs,
            union,
            cancellation,
        )
        assert lease.worker.snapshot is not None  # noqa: S101 -- a query runs on one
        generation = lease.worker.snapshot.generation
        pieces: list[bytes] = []
        size = 0
        try:
            while True:
                frame, payload = self._receive(lease, limits)
                if frame == b"E":
                    break
                pieces.append(payload)
                size += len(payload)
                if size > self._settings.query_memory_mb << 20 and limits.rows is not None:
                    self._discard(lease)
                    raise QueryMemoryError(
                        f"the result is larger than {self._settings.query_memory_mb} MiB (setting "
                        "QUADCITE_QUERY_MEMORY_MB); ask for fewer rows or columns, or stream it from the endpoint"
                    )
        finally:
            if cancellation is not None:
                cancellation.on_cancel(None)
        truncated = json.loads(payload)["truncated"]
        return Answer(replies.result_of(kind, pieces, truncated=truncated), generation, truncated)

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

        SELECT and ASK: SPARQL JSON, XML, CSV or TSV; CONSTRUCT and DESCRIBE: Turtle, N-Triples, RDF/XML. The deadline
        covers the whole transfer; nothing is computed far ahead of the reader.
        """
        lease, limits, kind = self._begin(
            query,
            media_type,
            media_type,
            limit,
            timeout_s,
            at_least,
            exactly,
            default_graphs,
            named_graphs,
            union,
            cancellation,
        )
        return Streamed(self, lease, limits, kind, media_type)

    def close(self) -> None:
        """Kill all workers and wait for their end; queries that run raise QueryLimitError."""
        with self._lock:
            self._closed = True
            idle = list(self._idle)
            self._idle.clear()
            leases = list(self._leases)
            waiting = list(self._waiting)
            self._waiting.clear()
        for waiter in waiting:
            waiter.arrived.set()
        for worker in idle:
            worker.bury()
        for lease in leases:
            lease.stop("closed")
        with self._lock:
            # Their threads bury them; a stream that nobody reads is buried here.
            self._settled.wait_for(lambda: not self._leases, timeout=_ACKNOWLEDGE_S)
            abandoned = list(self._leases)
        for lease in abandoned:
            self._discard(lease)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # From here on: one query's way from a free worker to its end.

    def _begin(
        self,
        query: str,
        results: str,
        graph: str,
        limit: float | None,
        timeout_s: float | None,
        at_least: int,
        exactly: int | None,
        default_graphs: Sequence[NamedNode],
        named_graphs: Sequence[NamedNode],
        union: bool,
        cancellation: Cancellation | None,
    ) -> tuple[Lease, _Limits, str]:
        """Send the query to a worker and wait for the kind of its result."""
        check_query(query)
        rows = _rows(self._settings.max_rows if limit is None else limit)
        timeout_s = self._settings.query_timeout_s if timeout_s is None else timeout_s
        if not timeout_s > 0:
            raise InvalidInputError(f"timeout_s must be more than 0 seconds, not {timeout_s}")
        dataset = None
        if default_graphs or named_graphs:
            dataset = [[graph.value for graph in graphs] for graphs in (default_graphs, named_graphs)]
        again = True
        while True:
            worker = self._acquire(timeout_s, cancellation)
            try:
                worker.open_snapshot(
                    self._store.snapshot(at_least) if exactly is None else self._store.snapshot(exactly=exactly)
                )
            except WorkerGoneError:
                self._replace(worker)
                continue
            except BaseException:
                self._give_back(worker)
                raise
            assert worker.snapshot is not None  # noqa: S101 -- just opened
            self._generation = max(self._generation, worker.snapshot.generation)
            limits = _Limits(query, rows, timeout_s, time.monotonic() + timeout_s)
            lease = self._lease(worker, limits)
            if cancellation is not None:
                cancellation.on_cancel(lambda lease=lease: lease.stop("cancelled"))  # type: ignore[misc]
            request = {
                "snapshot": str(worker.snapshot.path),
                "query": query,
                "union": union and not names_dataset(query),
                "dataset": dataset,
                "limit": rows,
                "results": results,
                "graph": graph,
            }
            try:
                worker.send(b"Q", json.dumps(request).encode(), limits.deadline)
            except WorkerGoneError:
                if lease.reason is None:
                    self._discard(lease)  # it died idle, through no fault of this query
                    continue
                raise self._failure(lease, limits) from None
            except OverdueError:
                lease.stop("timeout")
                raise self._failure(lease, limits) from None
            try:
                _, payload = self._receive(lease, limits)
            except replies.KilledError as error:
                if not again:
                    raise QueryMemoryError(str(error)) from None
                again = False  # the system may have killed it before it read the query
                continue
            return lease, limits, json.loads(payload)["kind"]

    def _acquire(self, timeout_s: float, cancellation: Cancellation | None) -> Worker:
        with self._lock:
            self._check_open()
            while self._idle:
                worker = self._idle.pop()
                if worker.process.poll() is None:
                    return worker
                worker.bury()
                self._idle.appendleft(Worker(self._settings))
            if len(self._waiting) >= self._settings.query_queue:
                raise QueryBusyError(
                    f"{len(self._waiting)} queries wait already, as many as may (setting QUADCITE_QUERY_QUEUE); "
                    "try again in a second"
                )
            waiter = _Waiter(threading.Event())
            self._waiting.append(waiter)
        if cancellation is not None:

            def leave() -> None:
                waiter.cancelled = True
                waiter.arrived.set()

            cancellation.on_cancel(leave)
        waiter.arrived.wait(None if timeout_s == math.inf else min(timeout_s, threading.TIMEOUT_MAX))
        with self._lock:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            worker_or_none = waiter.worker
            if worker_or_none is None or waiter.cancelled:
                closed = self._closed
        if waiter.cancelled:
            if worker_or_none is not None:
                self._give_back(worker_or_none)
            raise QueryLimitError("the query was cancelled before it began")
        if worker_or_none is None:
            if closed:
                raise QueryLimitError("the server is stopping")
            raise QueryBusyError(
                f"no query worker was free within {timeout_s:g} s; {self._settings.query_workers} work at a time "
                "(setting QUADCITE_QUERY_WORKERS); try again in a second"
            )
        return worker_or_none

    def _check_open(self) -> None:
        if self._closed:
            raise QueryLimitError("the server is stopping")

    def _lease(self, worker: Worker, limits: _Limits) -> Lease:
        lease = Lease(worker, limits.deadline)
        with self._lock:
            self._leases.add(lease)
            closed = self._closed
        if closed:
            lease.stop("closed")
        return lease

    def _receive(self, lease: Lease, limits: _Limits) -> tuple[bytes, bytes]:
        """Return the next frame; at its end, and on errors, the worker has been given back."""
        try:
            kind, payload = lease.worker.receive(lease.deadline)
        except OverdueError:
            lease.stop("timeout")
            raise self._failure(lease, limits) from None
        except WorkerGoneError:
            raise self._failure(lease, limits) from None
        except BaseException:
            self._discard(lease)
            raise
        if kind == b"X":
            self._release(lease, retire=False)
            raise replies.reported(json.loads(payload), limits.query, self._settings)
        if kind == b"E":
            self._release(lease, retire=json.loads(payload)["retire"])
        return kind, payload

    def _release(self, lease: Lease, *, retire: bool) -> None:
        lease.end()
        worker = lease.worker
        with self._lock:
            self._leases.discard(lease)
            self._settled.notify_all()
        if retire or lease.reason is not None:
            self._replace(worker)
        else:
            self._give_back(worker)

    def _discard(self, lease: Lease) -> int:
        """End a query by killing its worker; return the exit code."""
        lease.end()
        code = self._replace(lease.worker)
        with self._lock:
            self._leases.discard(lease)
            self._settled.notify_all()
        return code

    def _replace(self, worker: Worker) -> int:
        code = worker.bury()
        with self._lock:
            closed = self._closed
        if not closed:
            self._give_back(Worker(self._settings))
        return code

    def _give_back(self, worker: Worker) -> None:
        """Hand `worker` to the query that has waited longest, or let it rest; an old snapshot is let go of."""
        stale: list[Worker] = []
        with self._lock:
            if not self._closed:
                while self._waiting:
                    waiter = self._waiting.popleft()
                    if not waiter.cancelled:
                        waiter.worker = worker
                        waiter.arrived.set()
                        return
                self._idle.append(worker)
                stale = [idle for idle in self._idle if idle.snapshot and idle.snapshot.generation < self._generation]
                for idle in stale:
                    self._idle.remove(idle)
            closed = self._closed
        if closed:
            worker.bury()
        for idle in stale:
            if idle.close_snapshot():
                self._give_back(idle)
            else:
                self._replace(idle)

    def _failure(self, lease: Lease, limits: _Limits) -> QueryLimitError:
        """Bury the worker of a query that did not end by itself; return the error that says why."""
        reason = lease.reason
        return replies.stopped(reason, self._discard(lease), limits.timeout_s, self._settings)


def _rows(limit: float) -> int | None:
    if limit == math.inf:
        return None
    if limit < 1 or limit != int(limit):
        raise InvalidInputError(f"limit must be a whole number of rows, at least 1, not {limit}")
    return int(limit)
