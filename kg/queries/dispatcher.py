"""Worker processes of a query pool: assigned to queries, killed at deadlines, replaced when they die.

Nothing here waits for a query. A `Conversation` (`kg.queries.pool`) submits a `Ticket`, is notified when its turn has
come, exchanges frames with the ticket's worker, and gives it back. One thread watches the deadlines; another does what
takes time (to replace a process, to start a spare one).

A query that is stopped loses its place together with its worker, by the thread that stops it. Its conversation, which
may wait for a client that reads nothing, only closes the pipes of the worker.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import math
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from typing import Any, Final, Literal, cast

from kg.errors import QueryBusyError, QueryLimitError, QueryMemoryError
from kg.observability import count_query, count_query_stop, count_query_wait
from kg.processes.admission import SLICE_S, Admission, Lane, Place
from kg.processes.child import Child, ChildGoneError, command
from kg.processes.leases import Leases
from kg.queries import worker as worker_process
from kg.queries import worker_errors
from kg.settings import Settings
from kg.store.protocol import Snapshot, Snapshotted, State
from kg.store.snapshots import once

_log: Final = logging.getLogger(__name__)
_LONG_NICENESS: Final = 10
_CLOSE_S: Final = 5.0
_ATTEMPTS: Final = 3
"""Attempts at a query whose workers turn out to be dead: it was not sent, or the worker was killed within `_DYING_S`.
After a worker that the system killed later, there is one more attempt."""
_DYING_S: Final = 0.05
_ACKNOWLEDGE_S: Final = 5.0
_REAP_S: Final = 0.01
"""Interval of checks whether a killed process has ended."""
_LEAST_S: Final = 0.005
"""Minimum seconds between two looks at a query."""
_PREPARING_S: Final = 10.0
"""Maximum seconds for the start of a worker and its snapshot, unless the query itself may take longer."""
_IDLE_S: Final = 10 * SLICE_S
"""Seconds after which a query in a fast place counts as long though it used little processor time: it waits for another
service, or shares the processor with ten others."""

_OPEN: Final = 3
"""Maximum number of snapshots that a worker has open: some 4 MB and ten file descriptors each."""

Reason = Literal["timeout", "cancelled", "closed", "displaced", "crowded", "waited"]


class Worker(Child):
    """One process that evaluates queries (`kg.queries.worker`), and the snapshots that it has open."""

    def __init__(self, settings: Settings, prologue: Mapping[str, Any]) -> None:
        options = json.dumps({"memory_bytes": settings.query_memory_mb << 20, **prologue})
        super().__init__(command(worker_process.__name__, options))
        self.snapshots: list[Snapshot] = []
        """The open ones, the last used last."""

    def find_snapshot(self, at_least: int, exactly: int | None) -> Snapshot | None:
        """Find the newest open snapshot of generation `at_least` or later, or that of `exactly`."""
        suitable = [
            each
            for each in self.snapshots
            if (each.generation >= at_least if exactly is None else each.generation == exactly)
        ]
        return max(suitable, key=lambda each: each.generation, default=None)

    def open_snapshot(self, snapshot: Snapshot, is_wanted: Callable[[Snapshot], bool]) -> list[Snapshot]:
        """Have `snapshot` opened with the next query; return the snapshots that the caller has to release.

        Those are the ones that are not wanted, or that were used the longest ago: the process closes them with the next
        query, and does not read them until then.
        """
        if any(each.path == snapshot.path for each in self.snapshots):
            return [snapshot]
        before = self.snapshots
        kept = [each for each in before if is_wanted(each) and not each.is_live]
        self.snapshots = [*kept[-(_OPEN - 1) :], snapshot]
        return [each for each in before if each not in self.snapshots]

    def close_snapshots(self, is_wanted: Callable[[Snapshot], bool]) -> bool:
        """Close the snapshots that are not wanted; return False if the worker does not answer."""
        before = self.snapshots
        self.snapshots = [each for each in before if is_wanted(each)]
        try:
            self.send(b"C", json.dumps(self.list_paths()).encode())
            self.receive(time.monotonic() + _ACKNOWLEDGE_S)
        except ChildGoneError:
            self.snapshots = before  # released at the end of the process
            return False
        for each in before:
            if each not in self.snapshots:
                each.release()
        return True

    def list_paths(self) -> list[str]:
        """List the folders of the open snapshots."""
        return [str(each.path) for each in self.snapshots]

    def release(self) -> None:
        """Release the snapshots. Called after the end of the process."""
        held, self.snapshots = self.snapshots, []
        for each in held:
            each.release()

    def end(self) -> int:
        """Kill the process, wait for its end, release its snapshots; return its exit code."""
        code = super().end()
        self.release()
        return code


@dataclass(slots=True, eq=False)
class Ticket(Place):
    """One query on its way through the pool, and its worker while it runs.

    `request` is sent to the worker, `timeout_s` bounds the time that it runs, and the time that it waits, of which
    `waited_s` is over. `snapshot` is what it is evaluated on, from `Dispatcher.send` on. While `running` it has a
    place. A query that was stopped has none, but keeps its killed worker until `Dispatcher.recover`. `processor_s` is
    the processor time of the worker when the query `started`.
    """

    request: dict[str, Any] = field(default_factory=dict)
    timeout_s: float = math.inf
    at_least: int = 0
    exactly: int | None = None
    id: int = 0
    submitted: float = 0.0
    enqueued: float = 0.0
    waited_s: float = 0.0
    worker: Worker | None = None
    snapshot: Snapshot | None = None
    running: bool = False
    sent: bool = False
    attempts: int = 0
    started: float = math.inf
    processor_s: float | None = None
    reason: Reason | None = None
    notify: Callable[[], None] = field(default=lambda: None, repr=False)


@dataclass(frozen=True, slots=True)
class RunningQuery:
    """A query that runs or waits: its client, its age in seconds, the SHA-256 of its text, and its place."""

    id: int
    client: str
    age_s: float
    sha256: str
    lane: Lane
    state: Literal["running", "waiting"]


class Dispatcher:
    """Worker processes and the tickets that use them. All methods may be called from any thread.

    At most ``query_workers + 2 * query_long_workers`` processes are alive.
    """

    def __init__(self, store: Snapshotted, settings: Settings, prologue: Mapping[str, Any]) -> None:
        self._store: Final = store
        self.settings: Final = settings
        self._prologue: Final = prologue
        self._admission: Final = Admission(
            settings.query_workers, settings.query_long_workers, settings.query_queue, settings.query_client_queue
        )
        self._lock = threading.Lock()
        self._alarm = threading.Condition(self._lock)
        self._wakes_at = math.inf
        self._ids = itertools.count(1)
        self._held: Leases[Ticket] = Leases()  # by queries that run or wait
        self._due: list[Ticket] = []  # stopped by `expire`, to be notified
        self._leased: Counter[int] = Counter()
        """The number of leases of each generation."""
        self._idle: deque[Worker] = deque()
        self._killed: list[Worker] = []  # whose queries were stopped: they count as processes until they have ended
        self._processes = 0
        self._generation = 0
        self.closed = False
        self._chores: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        for _ in range(settings.query_workers):
            self._idle.append(Worker(settings, prologue))
            self._processes += 1
        self._threads = [
            threading.Thread(target=work, name=name, daemon=True)
            for work, name in ((self._watch_deadlines, "queries-clock"), (self._do_chores, "queries-chores"))
        ]
        for thread in self._threads:
            thread.start()

    # One query

    def submit(self, ticket: Ticket, notify: Callable[[], None]) -> bool:
        """Queue a query; return True if its turn has come at once, otherwise `notify` is called when it has.

        `notify` is also called when the query was stopped while it waited: `raise_if_stopped` raises then. Raises
        QueryBusyError, ClientBusyError.
        """
        now = time.monotonic()
        with self._lock:
            if self.closed:
                ticket.reason = "closed"
            if ticket.reason is not None:
                raise self._refusal(ticket)
            if not ticket.id:
                ticket.id, ticket.submitted = next(self._ids), now
            self._admission.enqueue(ticket)
            ticket.notify, ticket.enqueued = notify, now
            until = now + max(0.0, ticket.timeout_s - ticket.waited_s)
            self._held.take(ticket, until, lambda: self._expire(ticket), client=ticket.client)
            due = self._dispatch()
            if not ticket.running:
                self._wake_by(now if self._has_overstayed(now) else until)
        _notify(other for other in due if other is not ticket)
        return ticket.running

    def raise_if_stopped(self, ticket: Ticket) -> None:
        """Raise the error of a query that was stopped while it waited, if it was."""
        with self._lock:
            if not ticket.running and ticket.reason is not None:
                raise self._refusal(ticket)

    def is_ready(self, ticket: Ticket) -> bool:
        """Return whether the worker has a suitable snapshot open, so that `send` may follow without `prepare`."""
        worker = ticket.worker
        if worker is None or (ticket.exactly is None and not ticket.at_least):
            return False
        found = worker.find_snapshot(ticket.at_least, ticket.exactly)
        return found is not None and not found.is_live

    def prepare(self, ticket: Ticket) -> None:
        """Provide a live worker and the wanted snapshot. Blocks. Raises ChildGoneError, and the errors of the store.

        A query that takes too long here loses its place like any other.
        """
        worker = ticket.worker
        if worker is not None and worker.process.poll() is not None:
            with self._lock:
                if not ticket.running:  # it was stopped, and its worker killed
                    raise ChildGoneError
                ticket.worker = None
            worker.end()  # it died idle, through no fault of this query
        if ticket.worker is None:
            worker = Worker(self.settings, self._prologue)
            with self._lock:
                if ticket.running:
                    ticket.worker = worker
            if ticket.worker is None:
                worker.end()
                raise ChildGoneError
        if self.is_ready(ticket):
            return
        with self._lock:
            self._wake_by(self._held.find_due())
        exactly = ticket.exactly
        taken = self._store.snapshot(ticket.at_least) if exactly is None else self._store.snapshot(exactly=exactly)
        worker = ticket.worker
        assert worker is not None  # noqa: S101 -- only this conversation recovers it
        with self._lock:
            self._generation = max(self._generation, taken.generation)
            closed = worker.open_snapshot(taken, self._is_wanted)
        for each in closed:
            self._chores.put(each.release)  # it may delete files, which the query need not wait for

    def send(self, ticket: Ticket) -> None:
        """Send the query to its worker and start its time. Raises ChildGoneError."""
        worker = ticket.worker
        assert worker is not None  # noqa: S101 -- prepared
        now = time.monotonic()
        with self._lock:
            if ticket.reason is not None:  # its worker was killed, and has perhaps released its snapshot
                raise ChildGoneError
            snapshot = ticket.snapshot = worker.find_snapshot(ticket.at_least, ticket.exactly)
            assert snapshot is not None  # noqa: S101 -- prepared
            worker.snapshots.sort(key=lambda each: each is snapshot)  # the last used last
            opened = worker.list_paths()
            ticket.started, until = now, now + ticket.timeout_s
            self._held.extend(ticket, until)
            ticket.processor_s = worker.get_processor_s()
            self._wake_by(min(until, now + (SLICE_S / 2 if ticket.lane == "fast" else math.inf)))
            if ticket.lane == "long":
                _set_niceness(worker, _LONG_NICENESS)
        request = {"snapshot": str(snapshot.path), "open": opened, **ticket.request}
        worker.send(b"Q", json.dumps(request).encode())
        ticket.sent = True

    def start_answer(self, ticket: Ticket) -> bool:
        """Record that a part of the answer is about to be sent; return False if the query has to start again."""
        with self._lock:
            ticket.begun = ticket.reason != "displaced"
            return ticket.begun

    def finish(self, ticket: Ticket, *, retire: bool) -> None:
        """Give back the worker of a query that has ended by itself; with `retire` it is replaced."""
        worker = ticket.worker
        assert worker is not None  # noqa: S101 -- it ran
        with self._changing():
            if not ticket.running:  # it was stopped after its last frame
                ticket.worker = None
                self._chores.put(lambda: self._end_killed(worker))
                return
            now = time.monotonic()
            count_query(now - ticket.started)
            self._charge(ticket, now)
            self._leave(ticket, ended=True)
            # Only a privileged process may raise the priority again.
            self._keep(worker, ticket, retire=retire or (ticket.lane == "long" and not _set_niceness(worker, 0)))
            self._close_old_snapshots()

    def hand_back(self, ticket: Ticket) -> None:
        """Give back the worker of a query that was not sent to it."""
        with self._changing():
            worker = ticket.worker
            if not ticket.running:  # it was stopped meanwhile
                ticket.worker = None
                if worker is not None:
                    self._chores.put(lambda: self._end_killed(worker))
                return
            self._leave(ticket, ended=False)
            if worker is None:
                self._processes -= 1
            else:
                self._keep(worker, ticket)

    def recover(self, ticket: Ticket) -> Exception | None:
        """Reap the worker of a query that did not end by itself; return its error, or None to submit it again.

        Blocks until the killed process has ended.
        """
        with self._lock:
            worker = ticket.worker
            sent, at_once = ticket.sent, time.monotonic() - ticket.started < _DYING_S
            has_place = ticket.running
            if has_place:
                self._leave(ticket, ended=False)
            ticket.worker = None
        code = 0 if worker is None else worker.end()
        with self._changing():
            if has_place:
                self._processes -= 1
                self._add_missing()
            elif worker is not None:
                self._reap(worker)
            reason = ticket.reason
            ticket.sent = False
            if reason == "displaced":
                ticket.reason = None
        if reason == "displaced":
            return None
        error = worker_errors.build_stop_error(reason, code, ticket.timeout_s, self.settings)
        killed = isinstance(error, worker_errors.KilledError)
        if reason is None:
            count_query_stop("memory" if isinstance(error, QueryMemoryError) else "failed")
        ticket.attempts += 1
        attempts = 0 if sent and not killed else 2 if sent and not at_once else _ATTEMPTS
        if reason is None and not ticket.begun and ticket.attempts < attempts:
            return None
        return QueryMemoryError(str(error)) if killed else error

    def give_up(self, ticket: Ticket) -> None:
        """End a query that has no caller any more, in any state. Blocks as `recover` does."""
        self.stop(ticket, "cancelled")
        if ticket.running or ticket.worker is not None:
            self.recover(ticket)

    def abandon(self, ticket: Ticket) -> None:
        """Give up a query soon, in another thread, without taking any lock."""
        self._chores.put(lambda: self.give_up(ticket))

    def stop(self, ticket: Ticket, reason: Reason) -> bool:
        """Stop a query in any state; return whether it ran or waited. Its conversation raises the reason."""
        with self._lock:
            known, waited = ticket in self._held, not ticket.running
            if known:
                self._stop(ticket, reason)
            elif ticket.reason in (None, "displaced"):
                ticket.reason = reason  # for its next attempt
        if known and waited:
            ticket.notify()
        return known

    # All queries

    def list_queries(self) -> list[RunningQuery]:
        """List the queries that run or wait, the oldest first."""
        now = time.monotonic()
        with self._lock:
            return [
                RunningQuery(
                    ticket.id,
                    ticket.client,
                    now - ticket.submitted,
                    ticket.sha256,
                    ticket.lane,
                    "running" if ticket.running else "waiting",
                )
                for ticket in self._held
            ]

    def count_overdue(self) -> int:
        """Count the queries that have a place, or wait, a second after their deadline."""
        return self._held.count_overdue(time.monotonic())

    def cancel(self, number: int) -> bool:
        """Stop the query with this id; return whether there was one."""
        ticket = next((each for each in self._held if each.id == number), None)
        return ticket is not None and self.stop(ticket, "cancelled")

    def lease(self, exactly: int | None) -> State:
        """Get the newest generation, or that of `exactly`; workers that have its snapshot open keep it open until it is
        released."""
        taken = self._store.pin(exactly)
        with self._lock:
            self._leased[taken.generation] += 1

        def release() -> None:
            with self._lock:
                self._leased[taken.generation] -= 1
                if not self._leased[taken.generation]:
                    del self._leased[taken.generation]
                if is_old := taken.generation < self._generation and not self.closed:
                    self._close_old_snapshots()
            if is_old:
                self._chores.put(taken.release)  # it may delete files
            else:
                taken.release()

        return replace(taken, release=once(release))

    def close_snapshots_before(self, generation: int) -> None:
        """Have idle workers close the snapshots of older generations, which they keep until the next query."""
        with self._changing():
            self._generation = max(self._generation, generation)
            self._close_old_snapshots()

    def close(self) -> None:
        """Stop all queries, kill all workers and wait for their end."""
        with self._lock:
            self.closed = True
            tickets = list(self._held)
            idle = list(self._idle)
            self._idle.clear()
            self._alarm.notify_all()
        for ticket in tickets:
            self.stop(ticket, "closed")
        for worker in idle:
            worker.end()
        with self._alarm:
            # The conversations reap their workers; those of streams that nobody reads are reaped here.
            self._alarm.wait_for(lambda: not self._held and not self._killed, timeout=_CLOSE_S)
            tickets, killed = list(self._held), list(self._killed)
        for ticket in tickets:
            self.recover(ticket)
        for worker in killed:
            self._end_killed(worker)
        self._chores.put(None)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(_CLOSE_S)

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the lock for the block; then start the queries that may run, and notify them outside the lock."""
        with self._lock:
            yield
            due = self._dispatch()
        _notify(due)

    # From here on under the lock, except the functions of the two threads

    def _dispatch(self) -> list[Ticket]:
        """Give free places to the next queries, and return them."""
        due = []
        while (self._idle or self._processes < self._admission.processes) and not self.closed:
            if (place := self._admission.next()) is None:
                break
            ticket = cast(Ticket, place)
            ticket.running = True
            now = time.monotonic()
            ticket.waited_s += now - ticket.enqueued
            count_query_wait(now - ticket.enqueued)
            self._held.extend(ticket, now + max(_PREPARING_S, ticket.timeout_s))
            if self._idle:
                ticket.worker = self._pop_idle(ticket)
            else:
                self._processes += 1  # `prepare` starts it
            due.append(ticket)
        return due

    def _pop_idle(self, ticket: Ticket) -> Worker:
        """Take an idle worker, one that has the snapshot of the query open if there is one."""
        for worker in reversed(self._idle):
            if worker.find_snapshot(ticket.at_least, ticket.exactly) is not None:
                self._idle.remove(worker)
                return worker
        return self._idle.pop()

    def _is_wanted(self, snapshot: Snapshot) -> bool:
        """Whether a worker keeps a snapshot open: a leased one, or the newest."""
        return snapshot.generation >= self._generation or snapshot.generation in self._leased

    def _keep(self, worker: Worker, ticket: Ticket, *, retire: bool = False) -> None:
        """Keep a worker for the next query, or have it replaced."""
        if retire or ticket.reason is not None or self.closed:
            self._chores.put(lambda: self._replace(worker))
        else:
            self._idle.append(worker)

    def _charge(self, ticket: Ticket, now: float) -> float:
        """Charge the client of a running query for its processor time so far, and return that, in seconds."""
        worker, before, used_s = ticket.worker, ticket.processor_s, 0.0
        if ticket.started < math.inf and worker is not None:
            processor_s = worker.get_processor_s()
            # A process that has ended, or that the system does not measure, has used all of its time.
            used_s = now - ticket.started if before is None or processor_s is None else processor_s - before
            self._admission.charge(ticket, used_s)
        return used_s

    def _leave(self, ticket: Ticket, *, ended: bool) -> None:
        ticket.running = False
        ticket.worker = None
        ticket.started = math.inf
        self._admission.leave(ticket, ended=ended)
        self._held.release(ticket)
        if self.closed:
            self._alarm.notify_all()
        elif ticket.lane == "long":
            self._wake_by(0.0)  # a query that overstays in a fast place may move to the long one

    def _stop(self, ticket: Ticket, reason: Reason) -> None:
        if ticket.reason in (None, "displaced"):
            ticket.reason = reason
        count_query_stop(reason)
        if not ticket.running:
            self._admission.withdraw(ticket)
            self._held.release(ticket)
            return
        worker = ticket.worker
        if worker is None:  # `prepare` starts none any more
            self._processes -= 1
        else:
            self._charge(ticket, time.monotonic())
            worker.kill()
            self._killed.append(worker)
        self._leave(ticket, ended=False)
        ticket.worker = worker
        self._wake_by(0.0)

    def _expire(self, ticket: Ticket) -> None:
        """Stop a query at its deadline."""
        if not ticket.running:
            self._due.append(ticket)
        self._stop(ticket, "timeout" if ticket.running else "waited")

    def _reap(self, worker: Worker) -> None:
        """Stop counting a killed process, which has ended."""
        if worker in self._killed:
            self._killed.remove(worker)
            self._processes -= 1
            self._add_missing()
            self._chores.put(worker.release)  # it may delete files
            if self.closed:
                self._alarm.notify_all()

    def _refusal(self, ticket: Ticket) -> QueryLimitError:
        settings = self.settings
        if ticket.reason in ("waited", "timeout"):  # no worker was ready in time
            return QueryBusyError(
                f"No query worker was free within {ticket.timeout_s:g} s. {settings.query_workers} workers run queries "
                f"(setting QUADCITE_QUERY_WORKERS), {settings.query_long_workers} more run long ones (setting "
                "QUADCITE_QUERY_LONG_WORKERS). Try again in a second."
            )
        return QueryLimitError(
            "The server is stopping." if ticket.reason == "closed" else "The query was cancelled before it started."
        )

    def _has_overstayed(self, now: float) -> bool:
        fast = [ticket for ticket in self._held if ticket.running and ticket.lane == "fast"]
        return any(
            now - each.started >= SLICE_S and _slice_left(each, self._charge(each, now), now) <= 0 for each in fast
        )

    def _close_old_snapshots(self) -> None:
        """Have idle workers close old snapshots that are not leased, so that they can be deleted."""
        stale = [worker for worker in self._idle if not all(map(self._is_wanted, worker.snapshots))]
        for worker in stale:
            self._idle.remove(worker)
            self._chores.put(lambda worker=worker: self._close_snapshot(worker))  # type: ignore[misc]

    def _wake_by(self, when: float) -> None:
        if when < self._wakes_at:
            self._wakes_at = when
            self._alarm.notify()

    def _watch_deadlines(self) -> None:
        with self._alarm:
            while not self.closed:
                now = time.monotonic()
                self._wakes_at = math.inf
                if notified := self._act(now):
                    self._alarm.release()
                    try:
                        _notify(notified)
                    finally:
                        self._alarm.acquire()
                elif self._wakes_at > now:
                    self._alarm.wait(None if self._wakes_at == math.inf else min(self._wakes_at - now, 3600.0))

    def _act(self, now: float) -> list[Ticket]:
        """Run the work that is due by `now`; return the tickets to notify, and set `_wakes_at` to the next due time."""
        for worker in list(self._killed):
            if worker.process.poll() is not None:
                self._reap(worker)
        self._held.expire(now)
        notified, self._due = self._due, []
        wakes_at = math.inf
        for ticket in self._held:
            if ticket.reason is not None or ticket.lane == "long" or ticket.started == math.inf:
                continue
            left = _slice_left(ticket, self._charge(ticket, now), now)
            if left <= 0:
                self._end_slice(ticket)
            else:
                wakes_at = min(wakes_at, now + max(_LEAST_S, left if left < SLICE_S / 2 else left - SLICE_S / 2))
            if left < SLICE_S / 2 and not self._idle and self._processes < self._admission.processes:
                self._processes += 1
                self._chores.put(self._add_worker)
        notified += self._dispatch()
        wakes_at = min(wakes_at, self._held.find_due())
        self._wakes_at = min(wakes_at, now + _REAP_S) if self._killed else wakes_at
        return notified

    def _add_missing(self) -> None:
        """Have a worker started where there are fewer than fast places."""
        if self._processes < self._admission.fast and not self.closed:
            self._processes += 1
            self._chores.put(self._add_worker)

    def _end_slice(self, ticket: Ticket) -> None:
        verdict = self._admission.end_slice(ticket)
        if verdict == "moved" and ticket.worker is not None:
            _set_niceness(ticket.worker, _LONG_NICENESS)
        elif verdict in ("displaced", "stopped"):
            self._stop(ticket, "displaced" if verdict == "displaced" else "crowded")

    def _do_chores(self) -> None:
        while (chore := self._chores.get()) is not None:
            chore()

    def _add_worker(self) -> None:
        try:
            worker = Worker(self.settings, self._prologue)
        except OSError as error:  # no memory or file descriptor is left for it; the next query tries again
            _log.warning("Cannot start a query worker: %s", error)
            with self._changing():
                self._processes -= 1
            return
        self._receive(worker)

    def _close_snapshot(self, worker: Worker) -> None:
        if worker.close_snapshots(self._is_wanted):
            self._receive(worker)
        else:
            self._replace(worker)

    def _receive(self, worker: Worker) -> None:
        with self._changing():
            if not self.closed:
                self._idle.appendleft(worker)
                return
        worker.end()

    def _end_killed(self, worker: Worker) -> None:
        worker.end()
        with self._changing():
            self._reap(worker)

    def _replace(self, worker: Worker) -> None:
        worker.end()
        with self._changing():
            self._processes -= 1
            self._add_missing()


def _slice_left(ticket: Ticket, used_s: float, now: float) -> float:
    """Compute the seconds until the slice of a query in a fast place ends at the earliest, at most 0 if it ended.

    A query whose answer is being sent waits for its client: its slice is a time, as is that of one that waits.
    """
    age = now - ticket.started
    idle = SLICE_S if ticket.begun else _IDLE_S
    return min(SLICE_S - used_s, idle - age)


def _notify(tickets: Iterable[Ticket]) -> None:
    for ticket in tickets:
        ticket.notify()


def _set_niceness(worker: Worker, niceness: int) -> bool:
    """Set a worker's priority; return whether the system permits it (to raise it takes a privilege)."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, worker.process.pid, niceness)
        return True
    return False
