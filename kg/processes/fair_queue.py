"""A fair queue for any work: clients take turns for a number of places. Pure: no clock, no threads, no locks."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, deque
from typing import Final, Generic, TypeVar

from kg.errors import ClientBusyError, QueryBusyError

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Places for items that run, and a queue for those that wait; of those, each client in turn has one started.

    `places` and `queue` are the maximum numbers that run and wait, `per_client` and `client_queue` those of one client.
    This process (the client ``""``) has no limits of its own. Errors name `what` is queued, and the settings of the
    two queues. Not thread-safe.
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
    ) -> None:
        self.running = 0
        self._what: Final = what
        self._places: Final = places
        self._per_client: Final = per_client
        self._queue: Final = queue
        self._client_queue: Final = client_queue
        self._settings: Final = settings
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
        for client, items in self._waiting.items():
            if self.occupy(client):
                self._waiting.move_to_end(client)
                item = items[0]
                self.withdraw(client, item)
                return item
        return None


def _named(setting: str) -> str:
    return f", setting {setting}" if setting else ""
