"""Clients take turns: one that asks for much waits for itself, is told so in the end, and leaves nothing behind."""

from __future__ import annotations

import threading
from collections.abc import Callable

import anyio
import pytest

from kg.errors import ClientBusyError, QueryBusyError, QueryTimeoutError
from kg.server import fair_limiter
from kg.server.fair_limiter import FairLimiter


def test_one_client_has_its_places_and_leaves_the_others() -> None:
    held = threading.Event()
    done: list[str] = []

    async def main() -> None:
        line = FairLimiter(at_once=2, per_client=1, waiting=8)

        async def ask(client: str, wait: bool) -> None:
            await line.run(client, (lambda: held.wait(60)) if wait else (lambda: True))
            done.append(client)

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(ask, "greedy", True)
            await anyio.wait_all_tasks_blocked()
            await ask("modest", False)
            assert done == ["modest"]
            held.set()
        assert (len(line._queue), line._queue.running) == (0, 0)

    anyio.run(main)
    assert done == ["modest", *["greedy"] * 5]


def test_who_asks_for_too_much_or_waits_too_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_limiter, "PATIENCE_S", 0.1)
    held = threading.Event()
    refused: list[str] = []

    async def main() -> None:
        line = FairLimiter(at_once=2, per_client=1, waiting=2)

        async def ask() -> None:
            try:
                await line.run("greedy", lambda: held.wait(60))
            except ClientBusyError as error:
                refused.append(str(error))
                if len(refused) == 3:
                    held.set()

        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(ask)
        assert await line.run("greedy", lambda: 7) == 7

    anyio.run(main)
    assert sorted("0.1 s" in text for text in refused) == [False, True, True]


def test_late_call_loses_its_place_and_its_queries_are_stopped() -> None:
    held, stopped = threading.Event(), threading.Event()

    async def main() -> None:
        line = FairLimiter(at_once=1, per_client=1, waiting=8, seconds=0.1)

        def work() -> None:
            stopped.wait(60)
            held.set()

        async with anyio.create_task_group() as group:
            group.start_soon(ask, line, work)
            await anyio.wait_all_tasks_blocked()
            line._seconds = 60.0  # of the next call, which may take longer than 0.1 s on a busy machine
            assert await line.run("modest", lambda: 7) == 7
        assert (len(line.running), len(line._queue), line._queue.running) == (0, 0, 0)

    async def ask(line: FairLimiter, work: Callable[[], None]) -> None:
        with pytest.raises(QueryTimeoutError):
            await line.run("greedy", work, abandon=True, on_late=stopped.set)

    anyio.run(main)
    assert held.wait(60), "what it waited for ends"


def test_late_call_that_is_not_left_returns_its_result() -> None:
    """A commit is never left half done, and its client has to learn that it is there."""

    async def main() -> None:
        line = FairLimiter(at_once=1, per_client=1, waiting=8, seconds=0.05)
        late = threading.Event()
        assert await line.run("writer", lambda: late.wait(60), on_late=late.set)
        assert (len(line.running), line._queue.running) == (0, 0)

    anyio.run(main)


def test_call_that_waits_for_other_clients_too_long_is_told() -> None:
    held = threading.Event()

    async def main() -> None:
        line = FairLimiter(at_once=1, per_client=1, waiting=2, patience_s=0.1)
        async with anyio.create_task_group() as group:
            group.start_soon(line.run, "greedy", lambda: held.wait(60))
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(QueryBusyError) as caught:
                await line.run("modest", lambda: 7)
            assert not isinstance(caught.value, ClientBusyError)
            held.set()
        assert (len(line._queue), line._queue.running) == (0, 0)

    anyio.run(main)


def test_expired_counters_of_senders_are_removed() -> None:
    counters = fair_limiter._Counters()
    for number in range(100):
        assert counters.incr(f"sender {number}", -1) == 1  # expired at once
    assert counters.incr("sender 7", 60) == 1
    assert counters.incr("sender 7", 60) == 2
    counters._swept = 0.0
    counters.incr("sender 8", 60)
    assert set(counters.storage) == set(counters.expirations) == {"sender 7", "sender 8"}
    assert len(counters.locks) <= 2
