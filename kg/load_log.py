"""The loads of this process: those that run, with their progress, and those that ended, with their reports."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from kg.observability import observe_load
from kg.search.index_sync import Progress

_KEPT: Final = 50
"""Loads that have ended, the newest."""


@dataclass(frozen=True, slots=True)
class LoadState:
    """A load. `done` of `total` (None: unknown) are counted in the unit of the step `doing`."""

    number: int
    source: str
    locations: Sequence[str]
    began: datetime
    done: int = 0
    total: int | None = None
    doing: str = ""
    ended: datetime | None = None
    report: dict[str, Any] | None = None
    """The report of ``kg load --json``; None while it runs, and for one that failed."""
    error: str | None = None


@dataclass(slots=True)
class LoadLog:
    """The loads of a process. Every method may be called from any thread."""

    _running: dict[int, LoadState] = field(default_factory=dict, init=False)
    _ended: deque[LoadState] = field(default_factory=lambda: deque(maxlen=_KEPT), init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _number: int = field(default=0, init=False)

    @contextmanager
    def recording(
        self, source: str, locations: Sequence[str], on_progress: Progress
    ) -> Iterator[tuple[Progress, Callable[[dict[str, Any]], None]]]:
        """Record a load while the block runs. Yields what reports its progress, and what takes its report."""
        with self._lock:
            self._number += 1
            number = self._number
            self._running[number] = LoadState(number, source, tuple(locations), datetime.now(UTC))

        def progress(done: int, total: int | None, doing: str) -> None:
            self._change(number, done=done, total=total, doing=doing)
            on_progress(done, total, doing)

        def report(content: dict[str, Any]) -> None:
            self._change(number, report=content)

        try:
            with observe_load(source):
                yield progress, report
        except BaseException as error:
            self._change(number, error=str(error) or type(error).__name__)
            raise
        finally:
            with self._lock:
                self._ended.append(replace(self._running.pop(number), ended=datetime.now(UTC)))

    def _change(self, number: int, **changes: Any) -> None:
        with self._lock:
            self._running[number] = replace(self._running[number], **changes)

    def list_running(self) -> list[LoadState]:
        """List the loads that run or wait, the oldest first."""
        with self._lock:
            return list(self._running.values())

    def list_ended(self) -> list[LoadState]:
        """List the loads that ended, the newest first."""
        with self._lock:
            return list(reversed(self._ended))
