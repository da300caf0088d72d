"""Waiting for what another thread or process does, on a machine of any speed, and finding processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

HANG_S: Final = 60.0
"""Seconds after which a test takes it that something never happens. Only a test that fails waits for so long: each
other deadline of such a test (of a query, of a stand-in that is held) has to be longer."""

LIMITS_S: Final = (0.4, 2.0, 10.0, 50.0)
"""Deadlines for a test in which something has to happen before the deadline passes: the first is enough, unless the
machine is busy. The test tries the next one while it was not."""


def until(condition: Callable[[], object]) -> None:
    """Wait until `condition` is true."""
    end = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < end, "what was waited for did not happen"
        time.sleep(0.002)


def is_alive(pid: int) -> bool:
    """Whether a process runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def find_children(parent: int) -> list[int]:
    """Find the processes that a process has started."""
    found: list[int] = []
    for file in Path(f"/proc/{parent}/task").glob("*/children"):
        with suppress(OSError):  # of a thread that has ended
            found += [int(pid) for pid in file.read_text().split()]
    return found
