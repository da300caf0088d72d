"""Admission of work to processes: which item runs next, and which has to make room. Pure: no clock, no processes.

In a `FairQueue`, clients take turns for a number of places: the next turn has the client that has used least. What it
used is counted by start-time fair queueing (P. Goyal, H. M. Vin, H. Cheng, 1996): a client that was away has as much as
the one that was served last, so nobody saves up turns.

Queries have several such queues (`Admission`). A query begins in a *fast* place. After a slice of processor time it
moves, with its process, to a *long* place, and its fast place is free again. If no long place is free it may stay while
nobody waits for a fast one. Otherwise it is stopped and waits for a long place, to start again, unless a part of its
answer has been sent: then it moves to a *draining* place, of which there are as many as long ones.

A query whose shape (its text without names, strings and numbers) was quick the last time goes before unknown shapes,
and while long queries run or wait, one fast place is reserved for such queries; while unknown ones have all fast
places, one such query runs in addition. So a flood of bad queries delays neither known good ones nor other clients, and
a wrong guess costs one slice. Time is that of the processor: on a busy machine a quick query is not taken for a long
one. No client except this process (``""``) has all long places.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Generic, Literal, TypeVar

from kg.errors import ClientBusyError, QueryBusyError

T = TypeVar("T")
SLICE_S: Final = 0.3
"""A query that uses more seconds of processor time than these counts as long."""

Lane = Literal["fast", "long"]
Verdict = Literal["moved", "kept", "displaced", "stopped"]

_REMEMBERED: Final = 4_096
_UNKNOWN_TURN: Final = 4
_MAX_SHAPE: Final = 20_000
_VARYING: Final = re.compile(r""""[^"\r\n]*"|'[^'\r\n]*'|<[^<>\s]*>|[0-9]+|:[\w.%-]+""")


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


@dataclass(slots=True, eq=False)
class Place:
    """One query that waits or runs, in `queue`. `begun`: a part of its answer has been sent.

    `used_s` is the processor time that its client was charged for, since it has a place.
    """

    client: str
    query: str
    lane: Lane = "fast"
    begun: bool = False
    used_s: float = 0.0
    queue: FairQueue[Place] | None = field(default=None, repr=False)
    sha256: str = field(init=False)
    shape: int = field(init=False)

    def __post_init__(self) -> None:
        self.sha256 = hashlib.sha256(self.query.encode("utf-8", "surrogatepass")).hexdigest()
        short = len(self.query) <= _MAX_SHAPE
        self.shape = hash(_VARYING.sub("_", self.query) if short else self.sha256)


class Admission:
    """Places and queues. Not thread-safe: its caller holds a lock.

    `fast` and `long` are the numbers of places; `queue` queries may wait for each kind of place, `per_client` of one
    client.
    """

    def __init__(self, fast: int, long: int, queue: int, per_client: int) -> None:
        self.fast: Final = fast
        self.long: Final = long
        self._usage: Final = Usage()
        make: Callable[..., FairQueue[Place]] = partial(
            FairQueue,
            queue=queue,
            client_queue=per_client,
            settings=("QUADCITE_QUERY_CLIENT_QUEUE", "QUADCITE_QUERY_QUEUE"),
            usage=self._usage,
        )
        # Queries of a known and of an unknown shape share the fast places: those in both are counted.
        self._known, self._new = make("queries"), make("queries")
        self._slow = make("long-running queries", places=long, per_client=max(1, long - 1))
        self._draining = make("answers", places=long)
        self._turn = 0
        self._quick_shapes: OrderedDict[int, None] = OrderedDict()

    @property
    def processes(self) -> int:
        """The maximum number of queries that run at a time."""
        return self.fast + 2 * self.long

    def enqueue(self, place: Place) -> None:
        """Queue a query. Raises ClientBusyError and QueryBusyError."""
        if place.lane == "long":
            place.queue = self._slow
        else:
            place.queue = self._known if place.shape in self._quick_shapes else self._new
        place.queue.wait(place.client, place)

    def withdraw(self, place: Place) -> bool:
        """Remove a query from its queue; return whether it waited."""
        return place.queue is not None and place.queue.withdraw(place.client, place)

    def next(self) -> Place | None:
        """Assign a place to the next query that may run, and return the query."""
        if (place := self._slow.next()) is not None:
            return place
        if self._known.running + self._new.running >= self.fast:
            return None if self._known.running else self._known.next()
        long_abound = self._slow.running or len(self._slow)
        new_may = not long_abound or self._new.running < max(1, self.fast - 1)
        self._turn += 1
        if new_may and self._turn % _UNKNOWN_TURN == 0:  # known shapes must not starve the others
            place = self._new.next()
        return place or self._known.next() or (self._new.next() if new_may else None)

    def charge(self, place: Place, used_s: float) -> None:
        """Charge the client of a query in a place for the processor time that the query has used so far."""
        self._usage.charge(place.client, used_s - place.used_s)
        place.used_s = max(place.used_s, used_s)

    def end_slice(self, place: Place) -> Verdict:
        """Decide what happens to a query in a fast place that has used more than `SLICE_S`."""
        self._quick_shapes.pop(place.shape, None)
        for queue in (self._slow, self._draining) if place.begun else (self._slow,):
            if queue.occupy(place.client):
                self._release(place)
                place.lane, place.queue = "long", queue
                return "moved"
        if not len(self._known) + len(self._new):
            return "kept"
        if place.begun:
            return "stopped"
        try:
            self._slow.check_room(place.client)
        except QueryBusyError:
            return "stopped"
        place.lane = "long"
        return "displaced"

    def leave(self, place: Place, *, ended: bool) -> None:
        """Take a query's place back; `ended` unless it was stopped. Its client was charged for all that it used."""
        self._release(place)
        if ended and place.used_s < SLICE_S / 2:
            self._quick_shapes[place.shape] = None
            self._quick_shapes.move_to_end(place.shape)
            if len(self._quick_shapes) > _REMEMBERED:
                self._quick_shapes.popitem(last=False)
        place.used_s = 0.0

    def _release(self, place: Place) -> None:
        assert place.queue is not None  # noqa: S101 -- it has run
        place.queue.release(place.client)
