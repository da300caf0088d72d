"""Leases that the event loop ends at their deadlines, which are times of `time.monotonic`."""

from __future__ import annotations

import asyncio
import math
import time
from typing import TypeVar

from kg.processes.leases import Leases

T = TypeVar("T")


class LoopLeases(Leases[T]):
    """Leases whose holders are served by the running event loop. One timer serves all of them."""

    _loop: asyncio.AbstractEventLoop | None = None
    _timer: asyncio.TimerHandle | None = None
    _wakes_at = math.inf

    def _wake_by(self, when: float) -> None:
        if when == math.inf:
            return
        loop = asyncio.get_running_loop()
        if loop is self._loop and when >= self._wakes_at:
            return
        if self._timer is not None and loop is self._loop:
            self._timer.cancel()
        self._loop, self._wakes_at = loop, when
        self._timer = loop.call_later(max(0.0, when - time.monotonic()), self._act)

    def _act(self) -> None:
        self._wakes_at = math.inf
        self.expire(time.monotonic())
        self._wake_by(self.find_due())
