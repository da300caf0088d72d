"""The queue of loads that clients submitted: on the disk, run one at a time, and resumed after a restart.

A load that a stop or a kill of the server interrupts is run again at the next start. That repeats little: records that
are stored and unchanged are skipped.
"""

from __future__ import annotations

import builtins
import json
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

from kg.data_directory import DataDirectory
from kg.errors import (
    ClientBusyError,
    InvalidInputError,
    NotFoundError,
    QuadciteError,
    QueryBusyError,
    StoreError,
    require_known_format,
)
from kg.queries.pool import Cancellation
from kg.search.index_sync import Progress

log = logging.getLogger(__name__)

State = Literal["queued", "running", "done", "failed", "cancelled"]
ENDED: Final = frozenset({"done", "failed", "cancelled"})

QUEUED: Final = 1_000
QUEUED_PER_CLIENT: Final = 100
"""Maximum loads that wait, of all clients and of one."""
KEPT: Final = 1_000
"""Ended loads that are kept, the newest."""
STARTS: Final = 3
"""Starts of a load that a server did not survive. Then it fails."""

_WAIT_S: Final = 60.0
_END_S: Final = 10.0
"""Seconds to wait at a stop for the load in progress."""
_FORMAT: Final = DataDirectory.load_queue.version
_COLUMNS: Final = (
    "number, source, locations, prune, options, client, label, state, starts, submitted, began, ended, report, error"
)
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS loads (
  number INTEGER PRIMARY KEY AUTOINCREMENT, source TEXT NOT NULL, locations TEXT NOT NULL, prune INTEGER NOT NULL,
  options TEXT NOT NULL, client TEXT NOT NULL, label TEXT NOT NULL, state TEXT NOT NULL, starts INTEGER NOT NULL,
  submitted TEXT NOT NULL, began TEXT, ended TEXT, report TEXT, error TEXT)"""


@dataclass(frozen=True, slots=True)
class QueuedLoad:
    """A submitted load. `done` of `total` (None: unknown) are counted in the unit of the step `doing`."""

    number: int
    source: str
    locations: Sequence[str]
    prune: bool
    options: Mapping[str, str]
    client: str
    """The name of the actor who submitted it."""
    label: str
    """The name of the schedule that submitted it; empty for that of a client."""
    state: State
    starts: int
    submitted: datetime
    began: datetime | None = None
    ended: datetime | None = None
    report: Mapping[str, Any] | None = None
    """The report of ``kg load --json``."""
    error: str | None = None
    done: int = 0
    total: int | None = None
    doing: str = ""


Run = Callable[[QueuedLoad, Progress, Cancellation], dict[str, Any]]
"""Runs a load, and returns its report."""


@dataclass(slots=True)
class _Running:
    load: QueuedLoad
    cancellation: Cancellation = field(default_factory=Cancellation)
    is_withdrawn: bool = False
    """Whether a client cancelled it, and not a stop of the server."""


class LoadQueue:
    """The queue of a data directory. Every method may be called from any thread.

    A damaged file is kept under another name, and the queue begins empty. Raises StoreVersionError if a newer version
    wrote the file, and StoreError if it cannot be opened.
    """

    def __init__(self, data_dir: Path) -> None:
        self._directory: Final = DataDirectory(data_dir)
        self._lock: Final = threading.Lock()
        self._changed: Final = threading.Condition(self._lock)
        self._running: _Running | None = None
        self._is_stopped = False
        try:
            self._database = self._open()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise StoreError(f"{self._directory.load_queue} cannot be opened: {error}.") from error
            kept = self._directory.name_now(DataDirectory.damaged_load_queues, ".sqlite")
            self._directory.load_queue.rename(kept)
            log.warning("The queue of loads was damaged (%s) and is kept as %s. It begins empty.", error, kept.name)
            self._database = self._open()

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(
            self._directory.load_queue, isolation_level=None, timeout=_WAIT_S, check_same_thread=False
        )
        try:
            [[version]] = database.execute("PRAGMA user_version")
            require_known_format("The queue of loads", self._directory.load_queue, version, _FORMAT)
            if version not in (0, _FORMAT):
                raise sqlite3.DatabaseError(f"its format is {version}, and this version writes {_FORMAT}")
            database.execute(_TABLE)
            database.execute(f"PRAGMA user_version = {_FORMAT}")
            database.execute(f"SELECT {_COLUMNS} FROM loads").fetchall()  # noqa: S608 -- so that damage is found now
        except BaseException:
            database.close()
            raise
        return database

    def submit(
        self,
        source: str,
        locations: Sequence[str],
        *,
        client: str,
        prune: bool = False,
        options: Mapping[str, str] | None = None,
        label: str = "",
    ) -> QueuedLoad:
        """Add a load to the end of the queue, unless the same one waits there: then that is returned.

        Raises InvalidInputError without a location, ClientBusyError if this client has `QUEUED_PER_CLIENT` loads that
        wait, and QueryBusyError if all have `QUEUED`.
        """
        if not locations:
            raise InvalidInputError("A load needs at least one location.")
        asked = [source, json.dumps([*locations]), prune, json.dumps({**(options or {})}, sort_keys=True)]
        with self._lock:
            same = self._database.execute(
                "SELECT number FROM loads WHERE state = 'queued' AND label = ? AND source = ? AND locations = ?"
                " AND prune = ? AND options = ?",
                [label, *asked],
            ).fetchone()
            if same is not None:
                return self._load(same[0])
            [[waiting, own]] = self._database.execute(
                "SELECT COUNT(*), COALESCE(SUM(client = ?), 0) FROM loads WHERE state = 'queued'", [client]
            )
            if own >= QUEUED_PER_CLIENT:
                raise ClientBusyError(f"{QUEUED_PER_CLIENT} loads of {client} wait. Submit more when some have ended.")
            if waiting >= QUEUED:
                raise QueryBusyError(f"{QUEUED} loads wait. Submit more when some have ended.")
            number = self._database.execute(
                "INSERT INTO loads (source, locations, prune, options, client, label, state, starts, submitted)"
                " VALUES (?, ?, ?, ?, ?, ?, 'queued', 0, ?)",
                [*asked, client, label, _now()],
            ).lastrowid
            self._changed.notify_all()
            return self._load(number)

    def get(self, number: int) -> QueuedLoad:
        """Get a load. Raises NotFoundError for an unknown number."""
        with self._lock:
            return self._load(number)

    def list(self, most: int = KEPT) -> list[QueuedLoad]:
        """List up to `most` loads, the newest first."""
        with self._lock:
            return self._find("ORDER BY number DESC LIMIT ?", most)

    def find_last(self, label: str) -> QueuedLoad | None:
        """Find the newest load of a schedule."""
        with self._lock:
            return next(iter(self._find("WHERE label = ? ORDER BY number DESC LIMIT 1", label)), None)

    def wait(self, number: int, seen: QueuedLoad | None, seconds: float) -> QueuedLoad:
        """Get a load as soon as it differs from `seen`, or after `seconds`. Raises NotFoundError."""
        with self._changed:
            self._changed.wait_for(lambda: self._load(number) != seen, seconds)
            return self._load(number)

    def cancel(self, number: int) -> QueuedLoad:
        """Cancel a load that waits or runs; committed records remain. An ended one stays as it is.

        Raises NotFoundError for an unknown number.
        """
        with self._changed:
            load = self._load(number)
            if load.state == "queued":
                self._end(number, "cancelled")
            elif load.state == "running" and self._running is not None and self._running.load.number == number:
                self._running.is_withdrawn = True
                self._running.cancellation.cancel()
            return self._load(number)

    @contextmanager
    def working(self, run: Run) -> Iterator[None]:
        """Run the loads, one after another in a thread, until the block ends.

        Those that an earlier process did not end wait again, at their places. The load in progress at the end of the
        block is stopped, and waits for the next process.
        """
        self._take_over()
        worker = threading.Thread(target=self._work, args=[run], name="loads", daemon=True)
        worker.start()
        try:
            yield
        finally:
            with self._changed:
                self._is_stopped = True
                if self._running is not None:
                    self._running.cancellation.cancel()
                self._changed.notify_all()
            worker.join(_END_S)
            if not worker.is_alive():  # else its load is found as running, and taken over
                with self._lock:
                    self._database.close()

    def _take_over(self) -> None:
        with self._lock:
            self._database.execute(
                "UPDATE loads SET state = 'failed', ended = ?, error = ? WHERE state = 'running' AND starts >= ?",
                [_now(), f"The server ended {STARTS} times while it ran.", STARTS],
            )
            self._database.execute("UPDATE loads SET state = 'queued' WHERE state = 'running'")

    def _work(self, run: Run) -> None:
        while (running := self._begin()) is not None:
            number = running.load.number
            try:
                report = run(running.load, self._report, running.cancellation)
            except QuadciteError as error:
                self._finish(running, error=str(error))
            except Exception as error:
                log.exception("Load %d failed.", number)
                self._finish(running, error=f"{type(error).__name__}: {error}")
            else:
                self._finish(running, report=report)

    def _begin(self) -> _Running | None:
        """Wait for a load, and begin it; None at the stop of the server."""
        with self._changed:
            while not self._is_stopped:
                if found := self._find("WHERE state = 'queued' ORDER BY number LIMIT 1"):
                    number = found[0].number
                    self._database.execute(
                        "UPDATE loads SET state = 'running', starts = starts + 1, began = ? WHERE number = ?",
                        [_now(), number],
                    )
                    self._running = _Running(self._load(number))
                    self._changed.notify_all()
                    return self._running
                self._changed.wait()
        return None

    def _report(self, done: int, total: int | None, doing: str) -> None:
        with self._changed:
            if self._running is not None:
                self._running.load = replace(self._running.load, done=done, total=total, doing=doing)
                self._changed.notify_all()

    def _finish(self, running: _Running, *, report: dict[str, Any] | None = None, error: str | None = None) -> None:
        with self._changed:
            self._running = None
            number = running.load.number
            if error is None:
                self._end(number, "done", report=json.dumps(report))
            elif running.is_withdrawn:
                self._end(number, "cancelled", error=error)
            elif self._is_stopped:  # the server stopped, the load did not fail
                self._database.execute(
                    "UPDATE loads SET state = 'queued', starts = starts - 1 WHERE number = ?", [number]
                )
            else:
                self._end(number, "failed", error=error)

    def _end(self, number: int, state: State, *, report: str | None = None, error: str | None = None) -> None:
        self._database.execute(
            "UPDATE loads SET state = ?, ended = ?, report = ?, error = ? WHERE number = ?",
            [state, _now(), report, error, number],
        )
        self._database.execute(
            "DELETE FROM loads WHERE state IN ('done', 'failed', 'cancelled') AND number <= ?", [number - KEPT]
        )
        self._changed.notify_all()

    def _load(self, number: int | None) -> QueuedLoad:
        found = self._find("WHERE number = ?", number)
        if not found:
            raise NotFoundError(f"There is no load {number}. The last {KEPT:,} loads are kept.")
        return found[0]

    def _find(self, which: str, *values: object) -> builtins.list[QueuedLoad]:
        """Read loads; `which` are clauses of SQL, and `values` their parameters."""
        rows = self._database.execute(f"SELECT {_COLUMNS} FROM loads {which}", values)  # noqa: S608
        return [self._show(_read(row)) for row in rows]

    def _show(self, load: QueuedLoad) -> QueuedLoad:
        """Add the progress of the load in progress."""
        running = self._running
        if running is None or running.load.number != load.number:
            return load
        return replace(load, done=running.load.done, total=running.load.total, doing=running.load.doing)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _read(row: Sequence[Any]) -> QueuedLoad:
    number, source, locations, prune, options, client, label, state, starts, submitted, began, ended, report, error = (
        row
    )
    return QueuedLoad(
        number=number,
        source=source,
        locations=tuple(json.loads(locations)),
        prune=bool(prune),
        options=json.loads(options),
        client=client,
        label=label,
        state=state,
        starts=starts,
        submitted=datetime.fromisoformat(submitted),
        began=None if began is None else datetime.fromisoformat(began),
        ended=None if ended is None else datetime.fromisoformat(ended),
        report=None if report is None else json.loads(report),
        error=error,
    )
