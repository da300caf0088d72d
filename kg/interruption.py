"""Ctrl-C and SIGTERM that cannot get lost.

Python raises the exception of a signal wherever the main thread is; within a finalizer or a weak reference's callback
(an import has many) it is printed and dropped, and the process would go on. So it is raised again after a while, until
the end has begun.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Final

AGAIN_S: Final = 2.0
"""Seconds after which a signal that nothing has come of is raised again."""


def listen() -> None:
    """Let SIGINT and SIGTERM end this process as an exit does: what is open is closed, and temporary files go."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)


def obeyed() -> None:
    """Say that the end has begun: what is open is being closed, and must not be interrupted."""
    signal.setitimer(signal.ITIMER_REAL, 0)


def _stop(number: int, _: FrameType | None) -> None:
    signal.signal(signal.SIGALRM, lambda _number, frame: _stop(number, frame))
    signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)
