"""Clients take turns for places, on a simulated clock."""

from __future__ import annotations

import heapq
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.errors import ClientBusyError, QueryBusyError
from kg.processes.fair_queue import FairQueue, Usage

Job = tuple[str, float, float]
"""Client, arrival, duration."""


def simulate(queue: FairQueue[int], jobs: list[Job]) -> tuple[list[float], int, Counter[str]]:
    """Run jobs; return the seconds that each waited, and the most that ran at once, in all and of each client."""
    events = [(arrival, number, "arrives") for number, (_, arrival, _) in enumerate(jobs)]
    heapq.heapify(events)
    waited = [-1.0] * len(jobs)
    running, most, most_of = Counter[str](), 0, Counter[str]()

    def start(number: int, now: float) -> None:
        nonlocal most
        client, arrival, duration = jobs[number]
        waited[number] = now - arrival
        running[client] += 1
        most, most_of[client] = max(most, running.total()), max(most_of[client], running[client])
        heapq.heappush(events, (now + duration, number, "ends"))

    while events:
        now, number, what = heapq.heappop(events)
        client = jobs[number][0]
        if what == "ends":
            running[client] -= 1
            queue.release(client)
            while (following := queue.next()) is not None:
                start(following, now)
        elif queue.occupy(client):
            start(number, now)
        else:
            queue.wait(client, number)
    return waited, most, most_of


def test_a_client_with_many_jobs_delays_another_by_one_of_them() -> None:
    greedy = [("greedy", 0.0, 1.0)] * 100
    waited, _, _ = simulate(FairQueue("jobs", places=2), [*greedy, ("modest", 0.5, 1.0), ("modest", 0.5, 1.0)])
    assert waited[100:] == [0.5, 1.5]
    assert max(waited) == 50.0


def test_jobs_of_one_client_start_in_order() -> None:
    waited, _, _ = simulate(FairQueue("jobs", places=1), [("one", number / 10, 1.0) for number in range(5)])
    assert waited == pytest.approx([0.9 * number for number in range(5)])


@given(
    st.lists(st.tuples(st.sampled_from(["", "a", "b", "c"]), st.integers(0, 20), st.integers(1, 5)), max_size=60),
    st.integers(1, 4),
    st.integers(1, 4),
)
def test_every_job_runs_within_the_limits(jobs: list[Job], places: int, per_client: int) -> None:
    queue: FairQueue[int] = FairQueue("jobs", places=places, per_client=per_client)
    waited, most, most_of = simulate(queue, jobs)
    assert all(seconds >= 0 for seconds in waited)
    assert (len(queue), queue.running) == (0, 0)
    assert most <= places
    assert all(count <= per_client for client, count in most_of.items() if client)


def test_queues_are_bounded_in_all_and_for_each_client() -> None:
    queue: FairQueue[int] = FairQueue("jobs", places=0, queue=3, client_queue=2, settings=("MINE", "ALL"))
    queue.wait("one", 1)
    queue.wait("one", 2)
    with pytest.raises(ClientBusyError, match=r"jobs.*2, setting MINE"):
        queue.wait("one", 3)
    queue.wait("two", 4)
    with pytest.raises(QueryBusyError, match=r"jobs.*3, setting ALL") as raised:
        queue.wait("three", 5)
    assert not isinstance(raised.value, ClientBusyError)
    assert queue.withdraw("one", 2)
    assert not queue.withdraw("one", 2)
    queue.wait("three", 5)


def test_the_next_turn_has_the_client_that_used_least() -> None:
    usage = Usage()
    queue: FairQueue[int] = FairQueue("jobs", places=1, usage=usage)
    for number, client in enumerate(("heavy", "heavy", "light")):
        queue.wait(client, number)
    usage.charge("heavy", 5.0)
    order = []
    while (item := queue.next()) is not None:
        order.append(item)
        queue.release("light" if item == 2 else "heavy")
    assert order == [2, 0, 1]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 10)), max_size=50))
def test_usage_never_falls_and_is_forgotten_once_nobody_is_behind(steps: list[tuple[str, float]]) -> None:
    usage = Usage()
    for client, amount in steps:
        before = {each: usage.get(each) for each in "abc"}
        usage.charge(client, amount)
        assert usage.get(client) == before[client] + amount
        usage.serve(min("abc", key=usage.get))
        assert all(usage.get(each) >= before[each] for each in "abc")
    usage.serve(max("abc", key=usage.get))
    assert len(usage) == 0
