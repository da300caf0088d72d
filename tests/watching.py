"""Coverage watches the start of each test, where it walks most of its code for the first time, and not its repetitions.

Where coverage can only trace (Python 3.11), a line takes more than twice its time, and thousands of made-up examples,
large inputs and runaways walk the same lines again and again. So the tracer stays out of a test that measures time
(``measures_time`` and ``measures_processor_time``), and leaves any other once it has used `WATCHED_S`. Processes that a
test starts are watched where they are what is tested, in the folders `WITH_PROCESSES`; elsewhere their code is run
within the test too.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

WATCHED_S: Final = 0.05
"""Seconds of processor time, of all threads, that are watched of one test with its fixtures."""

WITH_PROCESSES: Final = frozenset({"search", "store"})

_FOR_PROCESSES: Final = "COVERAGE_PROCESS_CONFIG"


@contextmanager
def watched(*, at_all: bool, processes: bool) -> Iterator[None]:
    """Take the tracer, if there is one, out of this thread when the block has used its time, until the block ends."""
    tracer, of_threads = sys.gettrace(), threading.gettrace()
    if tracer is None:
        yield
        return

    def leave(*_: object) -> None:
        sys.settrace(None)
        threading.settrace(None)

    config = None if processes else os.environ.pop(_FOR_PROCESSES, None)
    before = signal.signal(signal.SIGPROF, leave)
    signal.siginterrupt(signal.SIGPROF, False)
    if at_all:
        signal.setitimer(signal.ITIMER_PROF, WATCHED_S)
    else:
        leave()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        sys.settrace(tracer)
        threading.settrace(of_threads)
        if config is not None:
            os.environ[_FOR_PROCESSES] = config
