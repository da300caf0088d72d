"""The last outcome of the requests to each remote service, so that its state can be reported without a request."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

MOST: Final = 256
"""Maximum number of hosts whose outcomes are kept."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of the last request to a host."""

    problem: str | None
    """Why it failed; None if a response arrived."""
    at: float
    """Time of the outcome, by the monotonic clock."""

    @property
    def age_s(self) -> float:
        """Seconds since the outcome."""
        return time.monotonic() - self.at


_outcomes: OrderedDict[str, Outcome] = OrderedDict()
_lock: Final = threading.Lock()


def record_outcome(url: str, problem: str | None) -> None:
    """Record the outcome of a request to `url`."""
    with _lock:
        _outcomes[_host(url)] = Outcome(problem, time.monotonic())
        _outcomes.move_to_end(_host(url))
        while len(_outcomes) > MOST:
            _outcomes.popitem(last=False)


def last_outcome(url: str) -> Outcome | None:
    """Get the last outcome of the requests of this process to the host of `url`, or None."""
    with _lock:
        return _outcomes.get(_host(url))


def _host(url: str) -> str:
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.hostname}:{parts.port}"
    except ValueError:
        return url
