"""The engine of a store as a resource: one process at a time has its files open, and closes them for another one.

The engine has no method to close it: it closes with the last reference to it, also one in an error or of a reader.
The folders that a rebuild by `kg doctor --repair` uses are named here, and a killed one is finished before the engine
opens.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from pyoxigraph import Store

from kg.data_directory import DataDirectory
from kg.errors import StoreError
from kg.processes.memory import keep_few_arenas
from kg.store.lock import sync_folder

_log: Final = logging.getLogger(__name__)

_LOCKED_S: Final = 5.0
"""Time for the other process to close its files."""
_LOCKED: Final = "/LOCK: "
"""A part of the error of files that are open."""
_RETRY_S: Final = 0.01
_COMPACTION: Final = "rocksdb:low"
"""Name of the threads that merge table files."""
_NICENESS: Final = 10
"""That of the process that optimizes the index. At 15, merges fell behind in a load of a million passages, and the
engine stopped writes at 36 table files."""
_LEAST_FREE_BYTES: Final = 1 << 20
_QUAD_BYTES: Final = 1_000
"""Bytes of tables for a quad, with its terms and all orders."""


def require_space(folder: Path, quads: int) -> None:
    """Raise OSError if the disk has no room for the tables of so many quads.

    On a full disk the engine waits for space instead of failing, and all writers wait for it.
    """
    if quads and shutil.disk_usage(folder).free < _LEAST_FREE_BYTES + quads * _QUAD_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))


def finish_rebuild(directory: DataDirectory) -> bool:
    """Give a rebuilt store its name if a kill came after the damaged one had lost it; return whether that was so.

    Call it under the lock of the data directory. Raises OSError.
    """
    store, rebuilt = directory.store, directory.rebuilt_store
    if not rebuilt.is_dir():
        return False
    if store.exists():  # from which it was built, and which may have changed since
        shutil.rmtree(rebuilt, ignore_errors=True)
        return False
    rebuilt.rename(store)
    sync_folder(directory.path)
    return True


def require_files(directory: DataDirectory, *, create: bool = True) -> None:
    """Finish a rebuild that was killed, and remove what killed rebuilds and restores left. Call it under the lock.

    Raises StoreError if the store is missing: the engine would create an empty one, which `create` allows in a new
    data directory.
    """
    store = directory.store
    with suppress(OSError):  # a disk that cannot be written now
        if finish_rebuild(directory):
            _log.warning("%s was rebuilt by `kg doctor --repair`, and has its name now.", store)
    # A restore that was killed before or after the exchange of the data: within it, there is no version file.
    for leftover in (directory.partial_store, directory.restoring, directory.replaced):
        shutil.rmtree(leftover, ignore_errors=True)
    # These are made after the store.
    later = [directory.snapshots, directory.index, *directory.find(DataDirectory.damaged_stores)]
    if not (store / "CURRENT").exists() and (not create or any(path.exists() for path in later)):
        raise StoreError(
            f"{store} is missing or incomplete. Restore the data directory from a backup, or create a new one."
        )


def exchange_store(directory: DataDirectory, kept: Path) -> None:
    """Give the rebuilt store that is in `partial_store` the place of the store, which is moved to `kept`."""
    os.sync()  # the new files are on the disk before the old ones go
    directory.partial_store.rename(directory.rebuilt_store)
    try:
        directory.store.rename(kept)
        sync_folder(directory.path)
    finally:
        finish_rebuild(directory)


def open_engine(folder: Path) -> Store:
    """Open the files of a store, after waiting for a process or thread that is just closing them. Raises OSError."""
    until = time.monotonic() + _LOCKED_S
    keep_few_arenas()  # each commit as table files has a thread, and each would keep 40 MB
    while True:
        try:
            store = Store(folder)
            _yield_compaction()
            return store
        except OSError as error:
            if _LOCKED not in str(error) or time.monotonic() > until:
                raise
            time.sleep(_RETRY_S)


def _yield_compaction() -> None:
    """Let the threads that merge table files yield to those that answer and load.

    Each merge writes a whole index again. The engine starts one for two new table files, so that merges take more and
    more of the processor time of a long load. If they wait while there is other work, each merges many files.
    """
    with suppress(OSError):  # no Linux
        for task in Path("/proc/self/task").iterdir():
            with suppress(OSError):  # a thread that has ended
                if (task / "comm").read_text().startswith(_COMPACTION):
                    os.setpriority(os.PRIO_PROCESS, int(task.name), _NICENESS)


@contextmanager
def clearing_frames() -> Iterator[None]:
    """Clear the variables of the frames of an error, which may outlive them and refer to an engine to be closed."""
    try:
        yield
    except BaseException as error:
        chain: BaseException | None = error
        while chain is not None:
            traceback.clear_frames(chain.__traceback__)
            chain = chain.__cause__ or chain.__context__
        raise


def has_open(path: Path) -> bool:
    """Return whether this process has a file open; True where the system does not report it."""
    wanted = str(path.resolve())
    try:
        descriptors = os.listdir("/proc/self/fd")
    except OSError:
        return True
    for descriptor in descriptors:
        with suppress(OSError):  # closed meanwhile
            if os.readlink(f"/proc/self/fd/{descriptor}") == wanted:
                return True
    return False


class Readers:
    """The threads that read from an engine, which is closed only while there are none."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Count this thread as a reader for the time of the block."""
        with self._changed:
            self._count += 1
        try:
            yield
        finally:
            with self._changed:
                self._count -= 1
                if not self._count:
                    self._changed.notify_all()

    @contextmanager
    def wait_for_end(self, timeout_s: float) -> Iterator[bool]:
        """Wait until no thread reads; new readers wait for the end of the block. False if that took too long."""
        with self._changed:
            yield self._changed.wait_for(lambda: not self._count, timeout_s)
