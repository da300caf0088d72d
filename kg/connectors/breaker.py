"""A circuit breaker: after several failures in a row a server is left alone for a while, then tried once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, Literal

FAILURES: Final = 3
"""Failed calls in a row that open it."""
REST_S: Final = 30.0
"""Seconds until a trial."""

State = Literal["closed", "open", "half_open"]


class CircuitBreaker:
    """The state of one server. Thread-safe; `clock` counts seconds."""

    def __init__(
        self, failures: int = FAILURES, rest_s: float = REST_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most, self._rest_s, self._clock = failures, rest_s, clock
        self._lock = threading.Lock()
        self._failures = 0
        self._problem = ""
        self._until: float | None = None
        self._trying = False

    @property
    def state(self) -> State:
        """``closed``: calls pass; ``open``: none does; ``half_open``: the next one is a trial, or one is running."""
        with self._lock:
            if self._until is None:
                return "closed"
            return "open" if self._clock() < self._until else "half_open"

    def find_refusal(self) -> str | None:
        """Return why a call may not be made now; None if it may, and its end must be reported."""
        with self._lock:
            if self._until is None:
                return None
            left = self._until - self._clock()
            if left > 0:
                return f"not called for another {left:.0f} s after {self._failures} failures in a row: {self._problem}"
            if self._trying:
                return f"a first call after {self._failures} failures in a row is running: {self._problem}"
            self._trying = True
            return None

    def succeed(self) -> None:
        """Report that the server answered, also with an error."""
        with self._lock:
            self._failures, self._until, self._trying = 0, None, False

    def fail(self, problem: str) -> None:
        """Report that a call failed."""
        with self._lock:
            self._failures += 1
            self._problem, self._trying = problem, False
            if self._failures >= self._most:
                self._until = self._clock() + self._rest_s

    def abandon(self) -> None:
        """Report that a call was not made after all."""
        with self._lock:
            self._trying = False
