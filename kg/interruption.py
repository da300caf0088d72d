"""Ctrl-C and SIGTERM that cannot get lost.

Python raises the exception of a signal wherever the main thread is; within a finalizer or a weak reference's callback
(an import has many) it is printed and dropped, and the process would go on. So it is raised again after a while, until
the end has begun. It may also come between two steps that belong together, as the making of a folder and the note that
it has to go: such steps are done while signals are `postponed`.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

AGAIN_S: Final = 2.0
"""Seconds after which a signal that nothing has come of is raised again."""

_postponing = 0
_waiting: int | None = None
"""Which signal has come while signals are postponed."""


def listen() -> None:
    """Let SIGINT and SIGTERM end this process as an exit does: what is open is closed, and temporary files go."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)


def disarm() -> None:
    """Say that the end has begun: what is open is being closed, and must not be interrupted."""
    signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def postponed() -> Iterator[None]:
    """Do a few short steps without a signal of `listen` between them; one that comes is raised after the last.

    Only the main thread is ever interrupted: in another, nothing is to be postponed.
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
def temporary_folder(prefix: str = "quadcite-") -> Iterator[Path]:
    """Make a folder that goes with the context, whenever a signal comes."""
    with postponed():
        folder = tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)
    try:
        yield Path(folder.name)
    finally:
        with postponed():
            folder.cleanup()


def _stop(number: int, _: FrameType | None) -> None:
    global _waiting
    if _postponing:
        _waiting = number
        return
    signal.signal(signal.SIGALRM, lambda _number, frame: _stop(number, frame))
    signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)
