"""Limits of concurrent calls in worker threads: clients take turns, and one with many calls waits for itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import anyio
import anyio.to_thread
from anyio import CapacityLimiter

from kg.errors import ClientBusyError
from kg.processes.fair_queue import FairQueue

T = TypeVar("T")

PATIENCE_S: Final = 10.0
"""Maximum seconds that a call waits for others of the same client."""


class FairLimiter:
    """Runs `at_once` calls at a time, `per_client` of one client; `waiting` more of that client may wait."""

    def __init__(self, at_once: int, per_client: int, waiting: int) -> None:
        self._queue: FairQueue[anyio.Event] = FairQueue(
            "requests", places=at_once, per_client=per_client, client_queue=waiting
        )

    async def run(self, client: str, work: Callable[[], T], *, abandon: bool = False) -> T:
        """Call `work` in a thread and return its result. Raises ClientBusyError when the client has too many calls.

        With `abandon`, cancellation gives the place back at once and leaves the call to end in its thread.
        """
        if not self._queue.occupy(client):
            await self._wait(client)
        try:
            # With a limiter of its own: the queue limits these calls, and they need not wait for other threads.
            return await anyio.to_thread.run_sync(work, limiter=CapacityLimiter(1), abandon_on_cancel=abandon)
        finally:
            self._release(client)

    async def _wait(self, client: str) -> None:
        turn = anyio.Event()
        self._queue.wait(client, turn)
        try:
            with anyio.move_on_after(PATIENCE_S):
                await turn.wait()
            if not turn.is_set() and self._queue.is_at_limit(client):
                raise ClientBusyError(
                    f"Other requests of this client took more than {PATIENCE_S:g} s. Wait for their answers, or try "
                    "again in a second."
                )
            await turn.wait()
        except BaseException:
            if not self._queue.withdraw(client, turn):  # its turn has come meanwhile
                self._release(client)
            raise

    def _release(self, client: str) -> None:
        self._queue.release(client)
        while (turn := self._queue.next()) is not None:
            turn.set()
