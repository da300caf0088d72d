"""Backups that a server adds to a folder by itself, in a thread: on time, tried again after a failure, and reported."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from kg.errors import InvalidInputError, QuadciteError
from kg.integrity.backup_folder import BackupFolder, Point, require_outside
from kg.integrity.backups import choose_retention, write_backup
from kg.knowledge_graph import KnowledgeGraph
from kg.settings import parse_period

log: Final = logging.getLogger(__name__)

FIRST_RETRY_S: Final = 30.0
"""Seconds until a failed backup is tried again; twice as long after each other failure, up to the usual time."""
_MOST_RETRY_S: Final = 3_600.0
_LOOK_S: Final = 30.0
"""Maximum seconds of a wait, after which the clock is looked at again: it may have been set."""
_READ_EVERY: Final = timedelta(days=1)
"""Time after which a point is read through again. In between, only new files are compared with their sources."""


@dataclass(frozen=True, slots=True)
class BackupState:
    """The state of the backups of a server."""

    folder: Path
    point: int | None = None
    """The newest point."""
    generation: int | None = None
    confirmed: datetime | None = None
    """When the data directory was last compared with it."""
    next: datetime | None = None
    running: bool = False
    failures: int = 0
    """Failures in a row."""
    problem: str | None = None

    def describe_problem(self) -> str | None:
        """Describe the last failure, None: the last backup did not fail."""
        if self.problem is None:
            return None
        last = (
            f"The newest point is of {self.confirmed:%Y-%m-%d %H:%M} UTC." if self.confirmed else "There is no point."
        )
        times = f"{self.failures} times in a row" if self.failures > 1 else "once"
        again = f"It is tried again at {self.next:%H:%M:%S} UTC" if self.next else "It is tried again"
        return f"The backup to {self.folder} failed {times}: {self.problem} {again}. {last}"


class BackupSchedule:
    """Adds points to the folder `backup_to` of the settings, every `backup_every` after the newest point there."""

    def __init__(self, kg: KnowledgeGraph) -> None:
        if kg.settings.backup_to is None:
            raise InvalidInputError("No folder of backups is set: QUADCITE_BACKUP_TO.")
        self._kg: Final = kg
        self._folder: Final = BackupFolder(kg.settings.backup_to.absolute())
        self._every: Final = timedelta(seconds=parse_period(kg.settings.backup_every))
        self._retention: Final = choose_retention(kg.settings)
        self._state = BackupState(self._folder.path)
        self._closing: Final = threading.Event()
        require_outside(self._folder.path, kg.settings.data_dir)

    @property
    def state(self) -> BackupState:
        """The state, from memory."""
        return self._state

    @contextmanager
    def running(self) -> Iterator[None]:
        """Add points in the background until the block ends. A backup in progress is waited for."""
        self._note_newest()
        self._plan()
        worker = threading.Thread(target=self._work, name="backups", daemon=True)
        worker.start()
        try:
            yield
        finally:
            self._closing.set()
            worker.join()

    def _work(self) -> None:
        while not self._closing.is_set():
            due = self._state.next or datetime.now(UTC)
            wait_s = (due - datetime.now(UTC)).total_seconds()
            if wait_s > 0:
                self._closing.wait(min(wait_s, _LOOK_S))
                continue
            self.back_up()

    def back_up(self) -> None:
        """Add a point now, and plan the next one."""
        self._state = replace(self._state, running=True)
        try:
            write_backup(self._kg, self._folder.path, read=self._is_read_due(), retention=self._retention)
        except Exception as error:  # any, since no other thread backs up
            log.warning(
                "Cannot write a backup to %s: %s",
                self._folder.path,
                error,
                exc_info=not isinstance(error, QuadciteError),
            )
            self._state = replace(self._state, failures=self._state.failures + 1, problem=str(error))
        else:
            self._state = replace(self._state, failures=0, problem=None)
            self._note_newest()
        self._plan()

    def _note_newest(self) -> None:
        """Note the newest point. A folder that cannot be read is reported by the next backup."""
        if points := self._list_points():
            newest = points[-1]
            self._state = replace(
                self._state, point=newest.number, generation=newest.generation, confirmed=newest.confirmed
            )

    def _list_points(self) -> list[Point]:
        try:
            return self._folder.require().list_points()
        except (QuadciteError, OSError):
            return []

    def _is_read_due(self) -> bool:
        read = [point.written for point in self._list_points() if point.read]
        return not read or datetime.now(UTC) - max(read) >= _READ_EVERY

    def _plan(self) -> None:
        now, state = datetime.now(UTC), self._state
        if state.failures:
            pause_s = min(FIRST_RETRY_S * 2.0 ** (state.failures - 1), _MOST_RETRY_S)
            planned = now + min(timedelta(seconds=pause_s), self._every)
        elif state.confirmed is None:
            planned = now
        else:  # a point of the future is of a clock that was wrong
            planned = min(state.confirmed, now) + self._every
        self._state = replace(state, next=planned, running=False)
