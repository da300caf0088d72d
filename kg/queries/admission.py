"""Which query runs next, and which has to make room: places, queues and reputations. Pure: no clock, no processes.

A query begins in a *fast* place. One that still runs after a slice of time moves, with its process, to a *long* place
and its fast place is free again. Where no long place is free it may stay for as long as nobody waits for a fast one;
then it is stopped, if nothing of its answer has been passed on, and waits for a long place, to begin anew. One whose
answer is on its way cannot begin anew: it moves to a *draining* place, of which there are as many as long ones.

Of all who wait, clients take turns. A text that ran long a short while ago waits for a long place at once. A query
whose shape (its text without names, strings and numbers) was quick the last time goes before those of unknown shape,
and while long queries abound one fast place is kept for such: so a flood of bad queries does not hold up known good
ones, and a wrong guess costs one slice. No client but this process (``""``) has all long places.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, TypeVar

from kg.errors import ClientBusyError, QueryBusyError

SLICE_S: Final = 0.3
"""A query that runs longer than this many seconds counts as long."""

Lane = Literal["fast", "long"]
_K = TypeVar("_K")
_V = TypeVar("_V")
Verdict = Literal["moved", "kept", "displaced", "stopped"]

_REMEMBERED: Final = 4_096
_LONG_FOR_S: Final = 60.0
_UNKNOWN_TURN: Final = 4
_MAX_SHAPE: Final = 20_000
_VARYING: Final = re.compile(r""""[^"\r\n]*"|'[^'\r\n]*'|<[^<>\s]*>|[0-9]+|:[\w.%-]+""")


@dataclass(slots=True, eq=False)
class Place:
    """One query's hold on a place, or in a queue. `begun`: some of its answer has been passed on."""

    client: str
    query: str
    lane: Lane = "fast"
    quick: bool = False
    draining: bool = False
    begun: bool = False
    sha256: str = field(init=False)
    shape: int = field(init=False)

    def __post_init__(self) -> None:
        self.sha256 = hashlib.sha256(self.query.encode("utf-8", "surrogatepass")).hexdigest()
        short = len(self.query) <= _MAX_SHAPE
        self.shape = hash(_VARYING.sub("_", self.query) if short else self.sha256)


class _Queue:
    """Queries that wait, by client; the clients take turns."""

    def __init__(self) -> None:
        self._clients: OrderedDict[str, deque[Place]] = OrderedDict()
        self.length = 0

    def waiting(self, client: str) -> int:
        """Return how many of one client wait."""
        return len(self._clients.get(client, ()))

    def add(self, place: Place) -> None:
        """Let a query wait behind its client's others."""
        self._clients.setdefault(place.client, deque()).append(place)
        self.length += 1

    def remove(self, place: Place) -> bool:
        """Take a query out; return whether it waited here."""
        places = self._clients.get(place.client, deque())
        if place not in places:
            return False
        places.remove(place)
        self.length -= 1
        if not places:
            del self._clients[place.client]
        return True

    def take(self, barred: frozenset[str] = frozenset()) -> Place | None:
        """Take out the next query of a client that is not `barred`, and put that client last."""
        for client, places in self._clients.items():
            if client not in barred:
                place = places[0]
                self._clients.move_to_end(client)
                self.remove(place)
                return place
        return None

    def __iter__(self) -> Iterator[Place]:
        return (place for places in self._clients.values() for place in places)


class Admission:
    """Places and queues. Not thread-safe: its caller holds a lock.

    `fast` and `long` are the numbers of places; `queue` queries may wait for each kind of place, `per_client` of one
    client.
    """

    def __init__(self, fast: int, long: int, queue: int, per_client: int) -> None:
        self.fast: Final = fast
        self.long: Final = long
        self._queue: Final = queue
        self._per_client: Final = per_client
        self._long_per_client: Final = max(1, long - 1)
        self._known, self._new, self._slow = _Queue(), _Queue(), _Queue()
        self._fast_running = self._new_running = self._long_running = self._draining = 0
        self._long_of: Counter[str] = Counter()
        self._turn = 0
        self._quick_shapes: OrderedDict[int, None] = OrderedDict()
        self._long_texts: OrderedDict[str, float] = OrderedDict()

    @property
    def processes(self) -> int:
        """The most queries that run at a time."""
        return self.fast + 2 * self.long

    @property
    def waiting(self) -> int:
        """How many queries wait."""
        return self._known.length + self._new.length + self._slow.length

    @property
    def crowded(self) -> bool:
        """Whether somebody waits for a fast place."""
        return self._known.length + self._new.length > 0

    def enqueue(self, place: Place, now: float) -> None:
        """Let a query wait. Raises ClientBusyError and QueryBusyError when it may not."""
        if self._long_texts.get(place.sha256, 0.0) > now:
            place.lane = "long"
        place.quick = place.lane == "fast" and place.shape in self._quick_shapes
        queue = self._queue_of(place)
        self._check_room(queue, place)
        queue.add(place)

    def _queue_of(self, place: Place) -> _Queue:
        if place.lane == "long":
            return self._slow
        return self._known if place.quick else self._new

    def _check_room(self, queue: _Queue, place: Place) -> None:
        kind = "long-running queries" if queue is self._slow else "queries"
        if place.client and queue.waiting(place.client) >= self._per_client:
            raise ClientBusyError(
                f"{self._per_client} {kind} of yours wait already, as many as one client may have (setting "
                "QUADCITE_QUERY_CLIENT_QUEUE); wait for their answers, or try again in a second"
            )
        if queue.length >= self._queue:
            raise QueryBusyError(
                f"{queue.length} {kind} wait already, as many as may (setting QUADCITE_QUERY_QUEUE); try again in a "
                "second"
            )

    def withdraw(self, place: Place) -> bool:
        """Take a query out of its queue; return whether it waited."""
        return any(queue.remove(place) for queue in (self._known, self._new, self._slow))

    def next(self) -> Place | None:
        """Give the next query that may run its place, and return it."""
        if self._long_running < self.long:
            barred = frozenset(c for c, n in self._long_of.items() if c and n >= self._long_per_client)
            if (place := self._slow.take(barred)) is not None:
                self._move_to_long(place)
                return place
        if self._fast_running >= self.fast:
            return None
        place = None
        new_may = not (self._long_running or self._slow.length) or self._new_running < max(1, self.fast - 1)
        self._turn += 1
        if new_may and self._turn % _UNKNOWN_TURN == 0:
            place = self._new.take()
        place = place or self._known.take() or (self._new.take() if new_may else None)
        if place is not None:
            self._fast_running += 1
            self._new_running += not place.quick
        return place

    def slice_over(self, place: Place, now: float) -> Verdict:
        """Say what becomes of a query in a fast place that has run longer than `SLICE_S`."""
        self._quick_shapes.pop(place.shape, None)
        _remember(self._long_texts, place.sha256, now + _LONG_FOR_S)
        free = self._long_running < self.long
        if free and (not place.client or self._long_of[place.client] < self._long_per_client):
            self._leave_fast(place)
            self._move_to_long(place)
            return "moved"
        if place.begun and self._draining < self.long:
            self._leave_fast(place)
            place.lane, place.draining = "long", True
            self._draining += 1
            return "moved"
        if not self.crowded:
            return "kept"
        if place.begun:
            return "stopped"
        try:
            self._check_room(self._slow, place)
        except QueryBusyError:
            return "stopped"
        return "displaced"

    def leave(self, place: Place, elapsed_s: float | None) -> None:
        """Take a query's place from it; `elapsed_s` is what it took, or None when it did not end by itself."""
        if place.lane == "fast":
            self._leave_fast(place)
            if elapsed_s is not None and elapsed_s < SLICE_S / 2:
                _remember(self._quick_shapes, place.shape, None)
            return
        if elapsed_s is not None and elapsed_s < SLICE_S:
            self._long_texts.pop(place.sha256, None)
        if place.draining:
            self._draining -= 1
            return
        self._long_running -= 1
        self._long_of[place.client] -= 1
        if not self._long_of[place.client]:
            del self._long_of[place.client]

    def _move_to_long(self, place: Place) -> None:
        place.lane = "long"
        self._long_running += 1
        self._long_of[place.client] += 1

    def _leave_fast(self, place: Place) -> None:
        self._fast_running -= 1
        self._new_running -= not place.quick


def _remember(known: OrderedDict[_K, _V], key: _K, value: _V) -> None:
    known[key] = value
    known.move_to_end(key)
    if len(known) > _REMEMBERED:
        known.popitem(last=False)
