"""Leases of resources that clients hold: counted against a budget, each until a deadline. Pure: no clock, no loop.

The owner of a resource takes a lease when it hands the resource out, together with a function that frees the resource
without its client. It releases the lease when the resource is free. That function ends a lease that is due or over the
budget. A part with a clock calls `expire`: `kg.server.loop_leases` in the event loop, the dispatcher in its thread.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

T = TypeVar("T")

SLACK_S: Final = 1.0
"""Seconds after its deadline by which a resource is free."""


class _Lease:
    __slots__ = ("client", "end", "ended", "size", "until")

    def __init__(self, until: float, end: Callable[[], object], client: str, size: int) -> None:
        self.until, self.end, self.client, self.size = until, end, client, size
        self.ended = False


class Leases(Generic[T]):
    """The leases of one kind of resource, by holder, the oldest first. Thread-safe; times are of any one clock.

    `most` and `most_bytes` are their number and size in total, `client_bytes` is the size of those of one client.
    """

    def __init__(self, *, most: float = math.inf, most_bytes: float = math.inf, client_bytes: float = math.inf) -> None:
        self.most, self.most_bytes, self.client_bytes = most, most_bytes, client_bytes
        self.bytes = 0
        self._held: dict[T, _Lease] = {}
        self._of_clients: Counter[str] = Counter()
        self._lock: Final = threading.RLock()

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, holder: object) -> bool:
        return holder in self._held

    def __iter__(self) -> Iterator[T]:
        with self._lock:
            return iter(list(self._held))

    def is_over_share(self, client: str, size: int) -> bool:
        """Return whether `size` more bytes exceed the share of `client`."""
        return self._of_clients[client] + size > self.client_bytes

    def has_room(self, client: str, size: int) -> bool:
        """Return whether `size` more bytes of `client` are within the budget."""
        return self.bytes + size <= self.most_bytes and not self.is_over_share(client, size)

    def take(
        self,
        holder: T,
        until: float,
        end: Callable[[], object] = lambda: None,
        *,
        client: str = "",
        size: int = 0,
    ) -> None:
        """Lease a resource of `size` bytes to `holder`, which has none, until a deadline; `end` frees it then."""
        with self._lock:
            assert holder not in self._held, holder  # noqa: S101 -- its owner has lost the first one
            self._held[holder] = _Lease(until, end, client, size)
            self._count(client, size)
        self._wake_by(until)

    def extend(self, holder: T, until: float) -> None:
        """Set another deadline for the resource of `holder`."""
        with self._lock:
            if (lease := self._held.get(holder)) is not None:
                lease.until = until
        self._wake_by(until)

    def grow(self, holder: T, size: int) -> None:
        """Count `size` more bytes for the resource of `holder`."""
        with self._lock:
            if (lease := self._held.get(holder)) is not None:
                lease.size += size
                self._count(lease.client, size)

    def release(self, holder: T) -> bool:
        """Remove the lease of a resource that is free; return whether there was one."""
        with self._lock:
            lease = self._held.pop(holder, None)
            if lease is not None:
                self._count(lease.client, -lease.size)
            return lease is not None

    def find_due(self) -> float:
        """Find the time at which the next lease is due."""
        with self._lock:
            return min((lease.until for lease in self._held.values() if not lease.ended), default=math.inf)

    def expire(self, now: float) -> None:
        """End each lease that is due, once: its owner releases it."""
        with self._lock:
            due = [lease for lease in self._held.values() if lease.until <= now]
        for lease in due:
            _end(lease)

    def trim(self) -> None:
        """End the oldest leases beyond `most`, and the largest beyond `most_bytes`."""
        with self._lock:
            if len(self._held) <= self.most and self.bytes <= self.most_bytes:
                return
            held = [lease for lease in self._held.values() if not lease.ended]
            surplus = [held.pop(0) for _ in range(len(held)) if len(held) > self.most]
            excess = sum(lease.size for lease in held) - self.most_bytes
            for lease in sorted(held, key=lambda each: each.size, reverse=True):
                if excess <= 0:
                    break
                surplus.append(lease)
                excess -= lease.size
        for lease in surplus:
            _end(lease)

    def count_overdue(self, now: float) -> int:
        """Count the resources that are not free `SLACK_S` after their deadlines."""
        with self._lock:
            return sum(now > lease.until + SLACK_S for lease in self._held.values())

    def _wake_by(self, when: float) -> None:
        """Take note of a new deadline: for subclasses with a clock, which call `expire` then."""

    def _count(self, client: str, size: int) -> None:
        if not size:
            return
        self.bytes += size
        self._of_clients[client] += size
        if not self._of_clients[client]:
            del self._of_clients[client]


def _end(lease: _Lease) -> None:
    if not lease.ended:
        lease.ended = True
        lease.end()
