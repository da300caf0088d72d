"""Work in threads for which clients take turns: one that asks for much of it waits for itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import anyio
import anyio.to_thread
from anyio import CapacityLimiter, Semaphore

from kg.errors import ClientBusyError

T = TypeVar("T")

PATIENCE_S: Final = 10.0
"""Seconds that a call waits at most for others of the same client."""


class Turns:
    """Runs `at_once` calls at a time, of one client `per_client`, while `waiting` more of that client may wait."""

    def __init__(self, at_once: int, per_client: int, waiting: int) -> None:
        self._at_once: Final = at_once
        self._per_client: Final = per_client
        self._waiting: Final = waiting
        self._threads: CapacityLimiter | None = None
        self._clients: dict[str, _Line] = {}

    async def run(self, client: str, work: Callable[[], T], *, abandon: bool = False) -> T:
        """Return what `work` returns. Raises ClientBusyError when too many of the client's calls wait already.

        With `abandon` a call that is cancelled goes on in its thread, which keeps its place, without being waited for.
        """
        self._threads = self._threads or CapacityLimiter(self._at_once)
        line = self._clients.setdefault(client, _Line(self._per_client))
        if line.calls >= self._per_client + self._waiting:
            raise ClientBusyError(
                f"{self._waiting} requests of yours wait for such work already, as many as one client may have; wait "
                "for their answers, or try again in a second"
            )
        line.calls += 1
        try:
            with anyio.move_on_after(PATIENCE_S) as waiting:
                await line.turn.acquire()
            if waiting.cancelled_caught:
                raise ClientBusyError(
                    f"other requests of yours took {PATIENCE_S:g} s of such work; wait for their answers, or try again "
                    "in a second"
                )
            try:
                return await anyio.to_thread.run_sync(work, limiter=self._threads, abandon_on_cancel=abandon)
            finally:
                line.turn.release()
        finally:
            line.calls -= 1
            if not line.calls:
                del self._clients[client]


class _Line:
    """The calls of one client that run or wait."""

    def __init__(self, at_once: int) -> None:
        self.calls = 0
        self.turn = Semaphore(at_once)
