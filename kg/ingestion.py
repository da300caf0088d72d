"""The state of the files that are loaded while they change: the folders that are watched, counts, rates, last errors.

`KnowledgeGraph.ingestion` is written by the watcher (`loaders.files`) and by other loads of files, and read by tools.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, Protocol

FolderState = Literal["scanning", "watching", "missing"]
Outcome = Literal["loaded", "unchanged", "duplicate", "rejected", "removed", "moved"]
EventKind = Outcome | Literal["folder"]

EVENTS: Final = 10_000
"""Maximum events that are kept for readers, the newest."""
_LOADS: Final = 100
"""Loads and commits, the newest, that rates and mean times are of."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that is watched. `files` are those that have been read, also if they were rejected."""

    path: str
    collection: str
    state: FolderState
    files: int = 0
    pending: int = 0
    """Files that have changed, or may have, and wait to be read."""
    problem: str | None = None
    unextracted: int = 0
    """Files that are searchable, and whose entities are not found yet."""


@dataclass(frozen=True, slots=True)
class Event:
    """What happened to a file or a folder. `number` ascends from 1."""

    number: int
    outcome: EventKind
    path: str
    collection: str
    text: str = ""
    """The reason, or the new path of a file that was moved."""


@dataclass(frozen=True, slots=True)
class IngestionStatus:
    """The state of the ingestion of files since the process began."""

    folders: Sequence[Folder] = ()
    queue_depth: int = 0
    """Files that wait to be read, of all folders."""
    counts: Mapping[str, int] | None = None
    """Files by outcome: loaded, unchanged, duplicate, rejected, removed, moved."""
    last_file: str | None = None
    """The file that was loaded last: its collection and path."""
    last_file_at: datetime | None = None
    last_error: str | None = None
    last_error_at: datetime | None = None
    files_per_s: float | None = None
    """Files loaded per second of the time that the last 100 loads took."""
    mean_commit_ms: float | None = None
    """Mean milliseconds of the last 100 commits."""


class FolderWatcher(Protocol):
    """Watches folders, and loads their files when they change."""

    def watch(self, folder: Path, collection: str | None, seconds: float | None = None) -> None:
        """Watch a folder for `seconds`, again to prolong them; None: until `close`.

        Raises InvalidInputError for a collection that another folder has, SourceError for a folder that is missing.
        """
        ...

    def close(self) -> None:
        """Stop watching. A write in progress is completed; files that wait are found again by their hashes."""
        ...


class Ingestion:
    """Collects the state of the ingestion of files. Thread-safe."""

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._clock: Final = clock
        self._lock: Final = threading.Lock()
        self._folders: dict[str, Folder] = {}
        self._counts: Counter[str] = Counter()
        self._events: deque[Event] = deque(maxlen=EVENTS)
        self._number = 0
        self._loads: deque[tuple[int, float]] = deque(maxlen=_LOADS)
        self._commits: deque[float] = deque(maxlen=_LOADS)
        self._last_file: tuple[str, datetime] | None = None
        self._last_error: tuple[str, datetime] | None = None

    def set_folder(self, folder: Folder) -> None:
        """Set the state of a folder. A new problem, or the end of one, is an event."""
        with self._lock:
            before = self._folders.get(folder.path)
            self._folders[folder.path] = folder
            if (before.problem if before is not None else None) != folder.problem:
                self._add_event("folder", folder.path, folder.collection, folder.problem or "It is there again.")
            if folder.problem is not None and (before is None or before.problem != folder.problem):
                self._last_error = folder.problem, self._clock()

    def remove_folder(self, path: str) -> None:
        """Remove a folder that is no longer watched."""
        with self._lock:
            self._folders.pop(path, None)

    def record_file(self, outcome: Outcome, path: str, collection: str, text: str = "") -> None:
        """Record what became of a file; `text` is the reason, or the new path of a file that was moved.

        Without `collection`, the path is named alone.
        """
        path, text = _show(path), _show(text)
        name = f"{collection}/{text if outcome == 'moved' else path}" if collection else path
        with self._lock:
            self._counts[outcome] += 1
            if outcome == "unchanged":
                return
            self._add_event(outcome, path, collection, text)
            if outcome in ("loaded", "moved"):
                self._last_file = name, self._clock()
            elif outcome == "rejected":
                self._last_error = f"{name}: {text}", self._clock()

    def record_error(self, text: str) -> None:
        """Record an error that is of no single file."""
        with self._lock:
            self._last_error = text, self._clock()

    def record_load(self, files: int, seconds: float) -> None:
        """Record the number of files of a load, and the seconds that it took."""
        with self._lock:
            self._loads.append((files, seconds))

    def record_commit(self, seconds: float) -> None:
        """Record the seconds of a commit."""
        with self._lock:
            self._commits.append(seconds)

    def list_events(self, after: int = 0) -> list[Event]:
        """List the events with higher numbers than `after`, as far as they are kept, the oldest first."""
        with self._lock:
            return [event for event in self._events if event.number > after]

    def find_problems(self) -> list[str]:
        """Find the current problems of folders."""
        with self._lock:
            return [folder.problem for folder in self._folders.values() if folder.problem is not None]

    def get_status(self) -> IngestionStatus:
        """Get the current state."""
        with self._lock:
            seconds = sum(seconds for _, seconds in self._loads)
            return IngestionStatus(
                folders=tuple(self._folders.values()),
                queue_depth=sum(folder.pending for folder in self._folders.values()),
                counts=dict(self._counts),
                last_file=self._last_file[0] if self._last_file else None,
                last_file_at=self._last_file[1] if self._last_file else None,
                last_error=self._last_error[0] if self._last_error else None,
                last_error_at=self._last_error[1] if self._last_error else None,
                files_per_s=sum(files for files, _ in self._loads) / seconds if seconds else None,
                mean_commit_ms=1000 * sum(self._commits) / len(self._commits) if self._commits else None,
            )

    def _add_event(self, outcome: EventKind, path: str, collection: str, text: str) -> None:
        self._number += 1
        self._events.append(Event(self._number, outcome, path, collection, text))


def _show(text: str) -> str:
    """Return a path as text that UTF-8 can encode."""
    return text.encode(errors="surrogateescape").decode(errors="backslashreplace")
