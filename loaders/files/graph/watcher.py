"""Watches folders: collects events of the file system, and loads changed files in one thread, the only writer.

An event only means that a path may have changed: its current content decides. So nothing is lost with an event: each
folder is searched for changes when it is first watched (changes that a killed watcher missed are found by the hashes in
the store), when too many paths changed at once, and every `SEARCH_S` seconds.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pyoxigraph import NamedNode
from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver, ObservedWatch

from kg.errors import InvalidInputError, ModelError, QuadciteError, QueryLimitError, SourceError
from kg.ingestion import Folder, FolderState
from kg.knowledge_graph import KnowledgeGraph
from kg.search.index_sync import Progress
from kg.text import quoted
from loaders.files.changes import PendingChanges
from loaders.files.graph.stored_files import LoadAgain, load_freed
from loaders.files.graph.watched_folder import MOST_FILES, Changes, LoadPart, WatchedFolder
from loaders.files.loader import FORMATS
from loaders.readers.ignore_files import NAMES

log = logging.getLogger(__name__)

SEARCH_S: Final = 60.0
"""Seconds between two searches of a folder for changes without an event, as on some network file systems."""
SEARCH_ALONE_S: Final = 10.0
"""The same where the system gives no events."""
LOOK_S: Final = 1.0
"""Seconds between two looks whether a folder is there."""
RETRY_S: Final = 5.0
"""Seconds after a load that failed; twice as long after each other."""
MOST_RETRY_S: Final = 60.0
CLOSE_S: Final = 60.0
"""Maximum seconds that `close` waits for a write in progress."""
MOST_FOLDERS: Final = 64
MOST_MADE: Final = 100
MADE_S: Final = 10.0
"""Seconds after a folder was made in which the system may not report moves into it."""

Identity = tuple[int, int]
Exclusive = Callable[[Progress, Callable[[], bool]], AbstractContextManager[None]]
"""Gives the only writer its turn: called with a function for progress, and one that returns whether to stop waiting."""

_EVENTS: Final[list[type[FileSystemEvent]]] = [
    DirCreatedEvent, DirDeletedEvent, DirMovedEvent, FileClosedEvent, FileCreatedEvent, FileDeletedEvent,
    FileModifiedEvent, FileMovedEvent,
]  # fmt: skip


@dataclass(eq=False)
class _Watch(FileSystemEventHandler):
    """A folder that is watched, with the changes that wait."""

    folder: WatchedFolder
    until: float
    pending: PendingChanges
    wake: Callable[[], None]
    lock: threading.Lock = field(default_factory=threading.Lock)
    identity: Identity | None = None
    """Device and inode of the folder, None while it is missing."""
    observed: ObservedWatch | None = None
    state: FolderState = "scanning"
    problem: str | None = None
    search_at: float = -math.inf
    look_at: float = -math.inf
    blocked_until: float = -math.inf
    pause_s: float = field(default_factory=lambda: RETRY_S)
    waiting: int = 0
    """Files of the current load that are not read yet."""
    real_root: str = ""
    is_extracted: bool = False
    """Whether no load changed files since their entities were found."""
    unextracted: list[list[NamedNode]] = field(default_factory=list)
    made: deque[tuple[str, float]] = field(default_factory=lambda: deque(maxlen=MOST_MADE))
    """The folders that came last, with the time."""

    def dispatch(self, event: FileSystemEvent) -> None:
        """Note the paths of an event."""
        old = self.find_relevant(event.src_path, event.is_directory)
        new = self.find_relevant(event.dest_path, event.is_directory) if event.dest_path else None
        now = time.monotonic()
        with self.lock:
            for path in (old, new):
                if path is not None and os.path.basename(path) in NAMES:
                    self.pending.overflow(now)
            came = new if event.dest_path else old
            if came is not None and isinstance(event, DirCreatedEvent | DirMovedEvent):
                self.made.append((came, now))
            if old is not None and new is not None:
                self.pending.add_move(old, new, now)
            else:
                for path in (old, new):
                    if path is not None:
                        self.pending.add(path, now)
        if old is not None or new is not None:
            self.wake()

    def find_relevant(self, path: bytes | str, is_folder: bool) -> str | None:
        """Return a path relative to the folder, with ``/`` behind that of a folder; None if it cannot matter."""
        relative = os.path.relpath(os.fsdecode(path), self.real_root)
        parts = relative.split("/")
        if relative == "." or any(part.startswith(".") for part in parts[:-1]):
            return None
        if parts[-1] in NAMES:
            return relative
        if parts[-1].startswith(".") or not (is_folder or parts[-1].lower().endswith(FORMATS)):
            return None
        return relative + "/" * is_folder

    def find_made(self, now: float) -> set[str]:
        """Find the folders that came a short time ago."""
        with self.lock:
            return {path for path, since in self.made if now - since < MADE_S}

    def is_change_due(self, now: float) -> bool:
        """Return whether changes wait that can be loaded."""
        if self.identity is None or now < self.blocked_until:
            return False
        with self.lock:
            return self.pending.find_due() <= now

    def find_next(self) -> float:
        """Find the time at which there is something to do."""
        with self.lock:
            due = (
                math.inf
                if self.identity is None
                else max(min(self.pending.find_due(), self.search_at), self.blocked_until)
            )
        if self.state == "watching" and not self.is_extracted:
            due = min(due, self.blocked_until)
        return min(due, self.look_at, self.until)


class Watcher:
    """Watches folders until it is closed.

    `load_part` loads files that changed, `load_again` others of which they were copies; `exclusive` gives the writer
    its turn.
    """

    def __init__(self, kg: KnowledgeGraph, load_part: LoadPart, load_again: LoadAgain, exclusive: Exclusive) -> None:
        self._kg: Final = kg
        self._load_part: Final = load_part
        self._load_again: Final = load_again
        self._exclusive: Final = exclusive
        self._watches: dict[Path, _Watch] = {}
        self._lock: Final = threading.Lock()
        self._wake: Final = threading.Event()
        self._stop: Final = threading.Event()
        self._thread: threading.Thread | None = None
        self._observer: BaseObserver | None = None

    def watch(self, folder: Path, collection: str | None, seconds: float | None = None) -> None:
        """Watch a folder for `seconds`, again to prolong them; None: until `close`.

        A folder that is missing is watched for when it comes. Raises InvalidInputError for a collection that another
        folder has, or too many folders.
        """
        root = Path(os.path.abspath(folder))
        until = math.inf if seconds is None else time.monotonic() + seconds
        with self._lock:
            found = self._watches.get(root)
            if found is not None and (collection is None or found.folder.collection == collection):
                found.until = max(found.until, until)
                return
            if found is not None:
                raise InvalidInputError(
                    f"{root}: It is watched as collection {quoted(found.folder.collection)}, not as "
                    f"{quoted(collection)}."
                )
            if len(self._watches) >= MOST_FOLDERS:
                raise InvalidInputError(f"{root}: At most {MOST_FOLDERS} folders are watched.")
            made = WatchedFolder(self._kg, root, collection, self._load_part)
            for other in self._watches.values():
                if other.folder.collection == made.collection:
                    raise InvalidInputError(
                        f"{root}: The folder {other.folder.root} is watched as collection {quoted(made.collection)}. "
                        "Give this one another collection."
                    )
            rest_s = self._kg.settings.watch_debounce_ms / 1000
            self._watches[root] = _Watch(made, until, PendingChanges(rest_s), self._wake.set)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="watch-folders", daemon=True)
                self._thread.start()
        self._wake.set()

    def close(self) -> None:
        """Stop watching. A write in progress is completed; files that wait are found again by their hashes."""
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(CLOSE_S)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                with self._lock:
                    watches = list(self._watches.values())
                for each in watches:
                    if not self._stop.is_set():
                        self._work(each)
                next_s = min((each.find_next() for each in watches), default=math.inf) - time.monotonic()
                self._wake.wait(min(max(next_s, 0.0), LOOK_S))
                self._wake.clear()
        finally:
            if self._observer is not None:
                self._observer.stop()
                self._observer.join()

    def _work(self, watch: _Watch) -> None:
        """Load the due changes of a folder. An error is reported, and the folder searched for changes later."""
        now = time.monotonic()
        if now >= watch.until:
            self._unwatch(watch)
            return
        try:
            if now >= watch.look_at:
                watch.look_at = now + LOOK_S
                self._look(watch)
            if watch.identity is None or now < watch.blocked_until:
                return
            self._free(watch)
            with watch.lock:
                is_search = watch.search_at <= now or (
                    watch.pending.overflown_at is not None and watch.pending.find_due() <= now
                )
                if is_search:
                    watch.pending.clear()
                due, moved = watch.pending.take(now)
            if is_search:
                self._load(watch, watch.folder.find_changes())
                alone = watch.observed is None
                watch.search_at = time.monotonic() + (SEARCH_ALONE_S if alone else SEARCH_S)
            elif due:
                paths = {path for path in due if not path.endswith("/")}
                for path in due:
                    if path.endswith("/"):
                        paths.update(watch.folder.find_below(path[:-1]))
                if watch.folder.has_lost(paths):  # perhaps to a folder that the system did not watch yet
                    for made in watch.find_made(now):
                        paths.update(
                            path
                            for path in watch.folder.find_below(made.removesuffix("/"))
                            if path not in watch.folder.files
                        )
                self._load(watch, Changes(sorted(paths), moved))
            elif watch.state == "watching" and not watch.is_extracted:
                self._extract(watch)
            watch.pause_s = RETRY_S
            if watch.observed is not None:
                watch.problem = None
        except SourceError as error:
            self._postpone(watch, f"{watch.folder.root}: {error}")
        except (QuadciteError, OSError) as error:
            if not self._stop.is_set():
                self._postpone(watch, f"{watch.folder.root}: The changes cannot be loaded: {error}")
        except Exception as error:
            log.exception("watching %s", watch.folder.root)
            self._postpone(watch, f"{watch.folder.root}: The changes cannot be loaded: {error!r}")
        self._report(watch)

    def _look(self, watch: _Watch) -> None:
        """Look whether the folder is there and the same; watch it again if it has come back or was replaced."""
        root = watch.folder.root
        try:
            state = root.stat()
            identity: Identity | None = (state.st_dev, state.st_ino) if root.is_dir() else None
        except OSError:
            identity = None
        if identity == watch.identity and identity is not None:
            return
        self._unobserve(watch)
        before, watch.identity = watch.identity, identity
        if identity is None:
            watch.state = "missing"
            watch.problem = f"{root}: The folder is missing. Its files stay in the graph until it is there again."
            if before is not None:
                log.warning("%s", watch.problem)
            self._report(watch)
            return
        watch.state, watch.problem, watch.search_at = "scanning", None, -math.inf
        watch.real_root = os.path.realpath(root)
        self._report(watch)
        try:
            if self._observer is None:
                # Of folders that are made while the folder above is added, which are then added twice: harmless.
                warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning)
                self._observer = Observer()
                self._observer.start()
            watch.observed = self._observer.schedule(watch, watch.real_root, recursive=True, event_filter=_EVENTS)
        except (OSError, RuntimeError) as error:
            watch.problem = (
                f"{root}: The system gives no events of changes ({error}). The folder is searched for changes every "
                f"{SEARCH_ALONE_S:.0f} seconds. On Linux, raise fs.inotify.max_user_watches."
            )
            log.warning("%s", watch.problem)

    def _free(self, watch: _Watch) -> None:
        """Note the files whose originals, which are in other collections, are gone."""
        freed = watch.folder.find_freed()
        with watch.lock:
            for path in freed:
                watch.pending.add(path, time.monotonic())

    def _load(self, watch: _Watch, changes: Changes) -> None:
        """Load changes in parts. Files that change while they are read wait again."""
        for start in range(0, len(changes.paths), MOST_FILES):
            part = changes.paths[start : start + MOST_FILES]
            watch.waiting = len(changes.paths) - start
            self._report(watch)

            def advance(done: int, total: int | None, doing: str) -> None:
                if self._stop.is_set():
                    raise QueryLimitError(
                        "The load was stopped. The files that wait are found again at the next start."
                    )

            with self._exclusive(advance, self._stop.is_set):
                if self._stop.is_set():
                    return
                again = watch.folder.load(Changes(part, changes.moved), advance)
                self._load_freed()
            with watch.lock:
                for path in again:
                    watch.pending.add(path, time.monotonic())
            watch.is_extracted = False
            watch.unextracted.clear()
        watch.waiting = 0
        watch.state = "watching"

    def _load_freed(self) -> None:
        """Load the files of folders that are not watched whose originals are gone."""
        watched = [each.folder.collection for each in self._watches.values()]
        for report in load_freed(self._kg, self._load_again, watched):
            for warning in report.warnings:
                log.warning("%s", warning)

    def _extract(self, watch: _Watch) -> None:
        """Find the entities of some files. Other writers have their turn before the next ones, changed files before."""

        def advance(done: int, total: int | None, doing: str) -> None:
            if self._stop.is_set():
                raise QueryLimitError("The extraction was stopped. The next one continues it.")

        if not watch.unextracted:
            with self._exclusive(advance, self._stop.is_set):
                watch.unextracted = watch.folder.find_unextracted()
        with self._exclusive(advance, self._stop.is_set):
            try:
                part = watch.unextracted[0] if watch.unextracted else []
                is_last = len(watch.unextracted) <= 1
                if not watch.folder.extract(part, advance, self._is_change_due, link=is_last):
                    return
            except ModelError as error:
                self._kg.ingestion.record_error(f"The entities of files are not found: {error}")
                watch.unextracted.clear()
        del watch.unextracted[:1]
        watch.is_extracted = not watch.unextracted

    def _is_change_due(self) -> bool:
        """Return whether changed files wait to be loaded, or the watcher is to stop."""
        now = time.monotonic()
        return self._stop.is_set() or any(watch.is_change_due(now) for watch in list(self._watches.values()))

    def _postpone(self, watch: _Watch, problem: str) -> None:
        """Search the folder for changes later."""
        log.warning("%s", problem)
        now = time.monotonic()
        watch.waiting, watch.problem = 0, problem
        watch.folder.is_index_complete = False
        watch.search_at = -math.inf
        watch.blocked_until = now + watch.pause_s
        watch.pause_s = min(2 * watch.pause_s, MOST_RETRY_S)
        self._kg.unindexed.set()

    def _report(self, watch: _Watch) -> None:
        folder = watch.folder
        pending = len(watch.pending) + watch.waiting
        self._kg.ingestion.set_folder(
            Folder(
                str(folder.root),
                folder.collection,
                watch.state,
                len(folder.files),
                pending,
                watch.problem,
                sum(map(len, watch.unextracted)) or int(not watch.is_extracted),
            )
        )

    def _unwatch(self, watch: _Watch) -> None:
        with self._lock:
            if time.monotonic() < watch.until:
                return
            del self._watches[watch.folder.root]
        self._unobserve(watch)
        self._kg.ingestion.remove_folder(str(watch.folder.root))

    def _unobserve(self, watch: _Watch) -> None:
        if watch.observed is not None and self._observer is not None:
            with suppress(KeyError, RuntimeError):
                self._observer.unschedule(watch.observed)
        watch.observed = None
