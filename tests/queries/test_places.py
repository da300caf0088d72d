"""Places of queries end at their deadlines, by a simulated clock: whatever their clients and workers do."""

from __future__ import annotations

import contextlib
import math
import random
import threading
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from kg.errors import QueryBusyError
from kg.processes.admission import Admission
from kg.processes.child import ChildGoneError
from kg.processes.leases import SLACK_S
from kg.queries.dispatcher import _PREPARING_S, Dispatcher, Ticket
from kg.settings import Settings
from kg.store.protocol import Snapshot

TICK_S = 0.05


class Clock:
    now = 1_000.0

    def monotonic(self) -> float:
        return self.now


class FakeProcess:
    """A process that ends `delay_s` after it was killed."""

    def __init__(self, clock: Clock, delay_s: float) -> None:
        self.pid = 0
        self._clock, self._delay_s, self._ends_at = clock, delay_s, math.inf

    def kill(self) -> None:
        self._ends_at = min(self._ends_at, self._clock.now + self._delay_s)

    def poll(self) -> int | None:
        return None if self._clock.now < self._ends_at else -9


class FakeWorker:
    def __init__(self, clock: Clock, delay_s: float) -> None:
        self._clock = clock
        self.process = FakeProcess(clock, delay_s)
        self.snapshots: list[Snapshot] = []

    def find_snapshot(self, *_: object) -> Snapshot | None:
        return next(iter(self.snapshots), None)

    def open_snapshot(self, snapshot: Snapshot, *_: object) -> list[Snapshot]:
        self.snapshots = [snapshot]
        return []

    def list_paths(self) -> list[str]:
        return []

    def kill(self) -> None:
        self.process.kill()

    def get_processor_s(self) -> float:
        return self._clock.now / 4  # four of them share a processor

    def send(self, kind: bytes, payload: bytes) -> None:
        if self.process.poll() is not None:
            raise ChildGoneError

    def release(self) -> None:
        self.snapshots = []

    def end(self) -> int:
        self.kill()
        return -9


class Simulation:
    """A dispatcher without threads, whose chores run and whose clock is watched at each tick."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, settings: Settings, chance: random.Random) -> None:
        self.clock, self.chance = Clock(), chance
        monkeypatch.setattr("kg.queries.dispatcher.time", self.clock)
        monkeypatch.setattr("kg.queries.dispatcher._set_niceness", lambda worker, niceness: True)
        monkeypatch.setattr("kg.queries.dispatcher.Worker", lambda *_: FakeWorker(self.clock, chance.random() / 2))
        never_started = SimpleNamespace(start=lambda: None, join=lambda timeout: None)
        monkeypatch.setattr("kg.queries.dispatcher.threading", _Threads(never_started))
        store: Any = SimpleNamespace(snapshot=lambda *_: Snapshot(1, None))  # type: ignore[arg-type]
        self.dispatcher = Dispatcher(store, settings, {})

    def tick(self) -> None:
        self.clock.now += TICK_S
        with self.dispatcher._lock:
            notified = self.dispatcher._act(self.clock.now)
        for ticket in notified:
            ticket.notify()
        while not self.dispatcher._chores.empty():
            chore = self.dispatcher._chores.get()
            if chore is not None:
                chore()

    def count_places(self) -> int:
        admission: Admission = self.dispatcher._admission
        return sum(queue.running for queue in (admission._known, admission._new, admission._slow, admission._draining))


class _Threads:
    """The module threading, whose threads never start."""

    def __init__(self, thread: object) -> None:
        self.Lock, self.Condition = threading.Lock, threading.Condition
        self.Thread = lambda **_: thread
        self.current_thread = lambda: thread


@pytest.mark.parametrize("seed", range(20))
def test_places_end_at_deadlines_whatever_clients_do(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Some conversations end their query, some never come back from preparing or sending, some come back late."""
    chance = random.Random(seed)
    timeout_s = 2.0
    settings = Settings(query_workers=2, query_long_workers=2, query_timeout_s=timeout_s, query_queue=20)
    simulation = Simulation(monkeypatch, settings, chance)
    dispatcher = simulation.dispatcher
    silent: list[Ticket] = []  # whose conversations wait for their clients
    hung: list[Ticket] = []  # whose conversations wait for a snapshot
    placed: dict[int, float] = {}
    for number in range(400):
        ticket = Ticket(f"client {chance.randrange(4)}", f"text {number}", timeout_s=timeout_s)
        with contextlib.suppress(QueryBusyError):
            dispatcher.submit(ticket, lambda: None)
        for running in [t for t in dispatcher._held if t.running and t.started == math.inf and t not in hung]:
            placed[running.id] = simulation.clock.now
            if chance.random() < 0.1:
                hung.append(running)
                continue
            with contextlib.suppress(ChildGoneError):
                dispatcher.prepare(running)
                dispatcher.send(running)
                if chance.random() < 0.5:
                    dispatcher.start_answer(running)
                silent.append(running)
        returning = [ticket for ticket in silent if ticket.id % 10]
        for late in chance.sample(returning, min(len(returning), chance.randrange(3))):
            silent.remove(late)
            if late.running and chance.random() < 0.5:
                dispatcher.finish(late, retire=False)
            elif late.running or late.worker is not None:
                dispatcher.give_up(late)
        if len(hung) > 2 and chance.random() < 0.05:
            back = hung.pop(chance.randrange(len(hung)))
            try:
                dispatcher.prepare(back)
                dispatcher.hand_back(back)
            except ChildGoneError:
                dispatcher.recover(back)
        simulation.tick()
        listed = Counter(query.state for query in dispatcher.list_queries())
        assert listed["running"] == simulation.count_places(), "the sums are what the list of queries shows"
        assert dispatcher._processes <= 2 + 2 * 2
        assert listed.total() == len(dispatcher._held)
        assert dispatcher._held.count_overdue(simulation.clock.now) == 0
        for held in dispatcher._held:
            if held.running and held.id in placed:
                assert simulation.clock.now <= placed[held.id] + _PREPARING_S + timeout_s + SLACK_S
                assert simulation.clock.now <= held.started + timeout_s + SLACK_S
            elif not held.running:
                assert held.waited_s + simulation.clock.now - held.enqueued <= timeout_s + SLACK_S
    for _ in range(int((_PREPARING_S + 2 * timeout_s + SLACK_S) / TICK_S) + 20):
        simulation.tick()
        for running in [t for t in dispatcher._held if t.running and t.started == math.inf and t not in hung]:
            dispatcher.prepare(running)
            dispatcher.send(running)
            silent.append(running)
    assert silent, "some clients never came back"
    assert hung, "some snapshots never came"
    assert dispatcher.list_queries() == []
    assert simulation.count_places() == 0
    assert dispatcher._processes == len(dispatcher._idle), "and no killed process is counted"
