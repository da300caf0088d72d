"""A fair queue for any work: clients take turns for a number of places. Pure: no clock, no threads, no locks.

The next turn has the client that has used least. What it used is counted by start-time fair queueing (P. Goyal, H. M.
Vin, H. Cheng, 1996): a client that was away has as much as the one that was served last, so nobody saves up turns.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, deque
from typing import Final, Generic, TypeVar

from kg.errors import ClientBusyError, QueryBusyError

T = TypeVar("T")


class Usage:
    """Usage of each client, in any unit, for the turns in the queues that share it."""

    def __init__(self) -> None:
        self._served = 0.0
        self._used: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._used)

    def get(self, client: str) -> float:
        """Get what `client` has used, at least as much as the client that was served last."""
        return max(self._used.get(client, 0.0), self._served)

    def serve(self, client: str) -> None:
        """Record that an item of `client` starts."""
        self._served = self.get(client)
        self._used = {each: used for each, used in self._used.items() if used > self._served}

    def charge(self, client: str, amount: float) -> None:
        """Add to what `client` has used."""
        if amount > 0:
            self._used[client] = self.get(client) + amount


class FairQueue(Generic[T]):
    """Places for items that run, and a queue for those that wait; the client that used least has the next one started.

    `places` and `queue` are the maximum numbers that run and wait, `per_client` and `client_queue` those of one client.
    This process (the client ``""``) has no limits of its own. Clients that have used the same take turns; without
    `usage`, which the caller charges, all have. Errors name `what` is queued, and the settings of the two queues. Not
    thread-safe.
    """

    def __init__(
        self,
        what: str,
        *,
        places: float = math.inf,
        per_client: float = math.inf,
        queue: float = math.inf,
        client_queue: float = math.inf,
        settings: tuple[str, str] = ("", ""),
        usage: Usage | None = None,
    ) -> None:
        self.running = 0
        self._what: Final = what
        self._places: Final = places
        self._per_client: Final = per_client
        self._queue: Final = queue
        self._client_queue: Final = client_queue
        self._settings: Final = settings
        self._usage: Final = Usage() if usage is None else usage
        self._running_of: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[T]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def is_at_limit(self, client: str) -> bool:
        """Return whether `client` has as many places as one client may have."""
        return bool(client) and self._running_of[client] >= self._per_client

    def occupy(self, client: str) -> bool:
        """Give `client` a place if one is free for it; return whether it was."""
        if self.running >= self._places or self.is_at_limit(client):
            return False
        self.running += 1
        self._running_of[client] += 1
        return True

    def release(self, client: str) -> None:
        """Take a place back."""
        self.running -= 1
        self._running_of[client] -= 1
        if not self._running_of[client]:
            del self._running_of[client]

    def check_room(self, client: str) -> None:
        """Raise ClientBusyError or QueryBusyError if an item of `client` cannot wait."""
        if client and len(self._waiting.get(client, ())) >= self._client_queue:
            raise ClientBusyError(
                f"Too many {self._what} of this client are waiting ({self._client_queue}{_named(self._settings[0])}). "
                "Wait for their answers, or try again in a second."
            )
        if len(self) >= self._queue:
            raise QueryBusyError(
                f"Too many {self._what} are waiting ({self._queue}{_named(self._settings[1])}). Try again in a second."
            )

    def wait(self, client: str, item: T) -> None:
        """Queue an item behind the others of its client. Raises what `check_room` does."""
        self.check_room(client)
        self._waiting.setdefault(client, deque()).append(item)

    def withdraw(self, client: str, item: T) -> bool:
        """Remove an item from the queue; return whether it was there."""
        items = self._waiting.get(client, deque())
        if item not in items:
            return False
        items.remove(item)
        if not items:
            del self._waiting[client]
        return True

    def next(self) -> T | None:
        """Give a place to the next item of the next client that may have one, and return the item."""
        for client in sorted(self._waiting, key=self._usage.get):
            if self.occupy(client):
                self._usage.serve(client)
                self._waiting.move_to_end(client)
                item = self._waiting[client][0]
                self.withdraw(client, item)
                return item
        return None


def _named(setting: str) -> str:
    return f", setting {setting}" if setting else ""
