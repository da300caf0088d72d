"""Waiting for what another thread or process does, on a machine of any speed."""

from __future__ import annotations

import time
from collections.abc import Callable
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
