"""Reliable handling of Ctrl-C and SIGTERM.

Python raises the exception of a signal at any point of the main thread. Within a finalizer or the callback of a weak
reference (an import has many) the exception is printed and dropped, and the process would continue. So the handler
raises it again after a while, until shutdown has begun (`disarm`). A signal may also arrive between two steps that
belong together, such as creating a folder and registering its removal: run these with signals `postponed`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final

REPEAT_S: Final = 2.0
"""Seconds until a signal without effect is raised again."""

PREFIX: Final = "quadcite-temporary-"
"""Prefix of the names of temporary folders, which no other folder has: others are never removed."""
YOUNG_S: Final = 60.0
"""Seconds in which a temporary folder is not removed by another process."""

_postponing = 0
_waiting: int | None = None
"""The signal that arrived while signals are postponed."""


def install_handlers() -> None:
    """Make SIGINT and SIGTERM end this process in order: resources are closed and temporary files removed."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)


def disarm() -> None:
    """Stop raising the signal again: shutdown has begun, and must not be interrupted."""
    signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def postponed() -> Iterator[None]:
    """Run a few short steps without interruption; a signal that arrives meanwhile is raised after the last step.

    Has no effect in other threads: signals only interrupt the main thread.
    """
    global _postponing, _waiting
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _postponing += 1
    try:
        yield
    finally:
        _postponing -= 1
        if not _postponing and _waiting is not None:
            number, _waiting = _waiting, None
            signal.raise_signal(number)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Create a folder that is removed with the context, even if a signal arrives.

    If the process is killed, the next load or server removes it (`sweep_temporary_folders`).
    """
    with postponed():
        folder = tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)
        lock = os.open(folder.name, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield Path(folder.name)
    finally:
        with postponed():
            os.close(lock)
            folder.cleanup()


def sweep_temporary_folders() -> int:
    """Remove the temporary folders of processes of this user that no longer exist; return their number.

    The lock of a folder ends with its process. Loads and servers call it when they start.
    """
    removed = 0
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                state = os.fstat(lock)
                # A younger one may not be locked yet.
                if state.st_uid == os.geteuid() and time.time() - state.st_mtime > YOUNG_S:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
                    removed += 1
            finally:
                os.close(lock)
    return removed


def _stop(number: int, _: FrameType | None) -> None:
    global _waiting
    if _postponing:
        _waiting = number
        return
    signal.signal(signal.SIGALRM, lambda _number, frame: _stop(number, frame))
    signal.setitimer(signal.ITIMER_REAL, REPEAT_S)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)
