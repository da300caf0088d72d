"""Limits of senders: of concurrent calls in worker threads, where they take turns and each call has a place until a
deadline, and of requests a minute.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final, TypeVar

import anyio
import anyio.to_thread
from anyio import CapacityLimiter
from limits import RateLimitItem, RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from kg.access.actors import HOLDER, Actor
from kg.access.limits import LIMITS
from kg.errors import ClientBusyError, QueryBusyError, QueryTimeoutError, RateLimitedError
from kg.observability import count_call_wait
from kg.processes.admission import FairQueue
from kg.remote.http import is_loopback
from kg.server.loop_leases import LoopLeases
from kg.settings import Settings

T = TypeVar("T")

PATIENCE_S: Final = 10.0
"""Maximum seconds that a call waits for others."""
CALL_S: Final = 120.0
"""Maximum seconds that a call has a place, unless a few queries may take longer."""
_QUERIES: Final = 4
_SWEEP_S: Final = 60.0
"""Seconds between two removals of the expired counters of senders."""


def name_client(actor: Actor, peer: str) -> str:
    """Name the client by which limits count a request: by the account of its sender, without one also by address."""
    return f"{actor.name}@{peer}" if actor.is_anonymous else actor.name


class _Counters(MemoryStorage):
    """Counters in memory that are removed now and then. The library starts a thread at each count for that."""

    def __init__(self) -> None:
        super().__init__()
        self._swept = time.time()

    def incr(self, key: str, expiry: float, amount: int = 1) -> int:
        """Add to the counter of `key`, a new one if it has expired. Called from one thread."""
        now = time.time()
        if now - self._swept >= _SWEEP_S:
            self._swept = now
            for each in [each for each, ends in self.expirations.items() if ends <= now]:
                self.clear(each)
        count = self.get(key) + amount
        if count == amount:
            self.expirations[key] = now + expiry
        self.storage[key] = count
        return count


class SenderRates:
    """The requests of each sender in the last minute, against the rate in `LIMITS`.

    Senders without an account on this machine have no limit, nor has the holder of the local token: they have the
    machine itself.
    """

    def __init__(self) -> None:
        self._window: Final = SlidingWindowCounterRateLimiter(_Counters())
        self._items: Final[dict[int, RateLimitItem]] = {}

    def count(self, actor: Actor, peer: str) -> None:
        """Count a request. Raises RateLimitedError, with the seconds to wait, if it is one too many."""
        if actor == HOLDER or (actor.is_anonymous and is_loopback(peer)):
            return
        if not (rate := LIMITS.get().requests_per_minute):
            return
        if (item := self._items.get(rate)) is None:
            item = self._items[rate] = RateLimitItemPerMinute(rate)
        client = name_client(actor, peer)
        if not self._window.hit(item, client):
            stats = self._window.get_window_stats(item, client)
            wait_s = max(1, math.ceil(stats.reset_time - time.time()))
            raise RateLimitedError(
                f"More than {rate:,} requests of {client} in a minute (setting QUADCITE_REQUESTS_PER_MINUTE). Wait "
                f"{wait_s} s.",
                wait_s,
            )


def compute_call_s(settings: Settings) -> float:
    """Compute the maximum seconds of a call that runs queries."""
    return max(CALL_S, _QUERIES * settings.query_timeout_s)


class FairLimiter:
    """Runs `at_once` calls at a time, `per_client` of one client; `waiting` more of that client may wait.

    A call waits for `patience_s`, and has its place for `seconds`. `running` are the calls that have one. `kind` names
    the calls in metrics.
    """

    def __init__(
        self,
        at_once: int,
        per_client: int,
        waiting: int,
        *,
        seconds: float = CALL_S,
        patience_s: float | None = None,
        kind: str = "other",
    ) -> None:
        self.kind: Final = kind
        self.running: Final[LoopLeases[object]] = LoopLeases()
        self._seconds, self._patience_s = seconds, patience_s
        self._queue: FairQueue[anyio.Event] = FairQueue(
            "requests", places=at_once, per_client=per_client, client_queue=waiting
        )

    @property
    def waiting(self) -> int:
        """The number of calls that wait for a place."""
        return len(self._queue)

    async def run(
        self,
        client: str,
        work: Callable[[], T],
        *,
        abandon: bool = False,
        on_late: Callable[[], object] = lambda: None,
    ) -> T:
        """Call `work` in a thread and return its result.

        With `abandon`, cancellation gives the place back at once and leaves the call to end in its thread; so does the
        deadline, after `on_late`. Without it the call is left only while it waits, and returns its result also after
        the deadline, so that the client of a write gets its outcome.

        Raises ClientBusyError when the client has too many calls, QueryBusyError when all have, and QueryTimeoutError
        at the deadline.
        """
        if not self._queue.occupy(client):
            await self._wait(client)
        place = object()

        def end() -> None:
            on_late()
            scope.cancel()

        try:
            with anyio.CancelScope() as scope:
                self.running.take(place, time.monotonic() + self._seconds, end, client=client)
                # With a limiter of its own: the queue limits these calls, and they need not wait for other threads.
                return await anyio.to_thread.run_sync(work, limiter=CapacityLimiter(1), abandon_on_cancel=abandon)
        finally:
            self.running.release(place)
            self._release(client)
        written = " If it writes, the write may still be completed: read the data before you repeat it."
        raise QueryTimeoutError(
            f"The call was stopped at its deadline of {self._seconds:g} s. Ask for less.{written if abandon else ''}"
        )

    async def _wait(self, client: str) -> None:
        turn = anyio.Event()
        self._queue.wait(client, turn)
        patience_s = PATIENCE_S if self._patience_s is None else self._patience_s
        began = time.perf_counter()
        try:
            with anyio.move_on_after(patience_s):
                await turn.wait()
            if not turn.is_set() and self._queue.is_at_limit(client):
                raise ClientBusyError(
                    f"Other requests of this client took more than {patience_s:g} s. Wait for their answers, or try "
                    "again in a second."
                )
            if not turn.is_set():
                raise QueryBusyError(
                    f"The requests of other clients took more than {patience_s:g} s. Try again in a second."
                )
        except BaseException:
            if not self._queue.withdraw(client, turn):  # its turn has come meanwhile
                self._release(client)
            raise
        finally:
            count_call_wait(self.kind, time.perf_counter() - began)

    def _release(self, client: str) -> None:
        self._queue.release(client)
        while (turn := self._queue.next()) is not None:
            turn.set()
