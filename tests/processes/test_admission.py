"""Who runs next: clients take turns for places, on a simulated clock; slices, long places, what was used, bounds."""

from __future__ import annotations

import heapq
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.errors import ClientBusyError, QueryBusyError
from kg.processes.admission import SLICE_S, Admission, FairQueue, Place, Usage

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


def admission(fast: int = 2, long: int = 2, queue: int = 8, per_client: int = 4) -> Admission:
    return Admission(fast, long, queue, per_client)


def started(places: Admission) -> list[Place]:
    found = []
    while (place := places.next()) is not None:
        found.append(place)
    return found


def leave(places: Admission, place: Place, used_s: float | None) -> None:
    """Let a query that used so much processor time leave, or one that was stopped (None)."""
    if used_s is not None:
        places.charge(place, used_s)
    places.leave(place, ended=used_s is not None)


def waiting_in(places: Admission) -> int:
    return len(places._known) + len(places._new) + len(places._slow)


def enqueue(places: Admission, *asked: tuple[str, str]) -> list[Place]:
    made = [Place(client, query) for client, query in asked]
    for place in made:
        places.enqueue(place)
    return made


def test_fast_places_are_given_in_order_and_clients_take_turns() -> None:
    places = admission()
    a, b, _, d = enqueue(places, ("x", "a"), ("x", "b"), ("x", "c"), ("y", "d"))
    assert started(places) == [a, d]
    leave(places, a, 0.01)
    assert started(places) == [b]
    assert waiting_in(places) == 1


def test_a_query_that_outlives_its_slice_moves_to_a_long_place_and_frees_its_own() -> None:
    places = admission(fast=1)
    a, b = enqueue(places, ("x", "a"), ("x", "b"))
    assert started(places) == [a]
    assert places.end_slice(a) == "moved"
    assert (a.lane, started(places)) == ("long", [b])


def test_one_client_never_has_all_long_places_but_this_process_may() -> None:
    for client, verdicts in (("x", ["moved", "kept"]), ("", ["moved", "moved"])):
        places = admission()
        enqueue(places, (client, "a"), (client, "b"))
        assert [places.end_slice(place) for place in started(places)] == verdicts


def test_without_a_long_place_a_query_stays_until_somebody_waits_then_begins_anew_in_the_long_queue() -> None:
    places = admission(fast=1, long=1)
    a, b = enqueue(places, ("x", "a"), ("x", "b"))
    assert started(places) == [a]
    assert places.end_slice(a) == "moved"
    assert started(places) == [b]
    assert places.end_slice(b) == "kept"
    [c] = enqueue(places, ("y", "c"))
    assert places.end_slice(b) == "displaced"
    leave(places, b, None)
    places.enqueue(b)
    assert (b.lane, started(places)) == ("long", [c])
    leave(places, a, 5.0)
    assert started(places) == [b]


def test_an_answer_on_its_way_is_never_begun_anew_and_drains_in_places_of_its_own() -> None:
    places = admission(fast=3, long=1)
    a, b, c = enqueue(places, ("x", "a"), ("x", "b"), ("x", "c"))
    for place in started(places):
        place.begun = True
    enqueue(places, ("y", "d"))
    assert [places.end_slice(place) for place in (a, b, c)] == ["moved", "moved", "stopped"]
    leave(places, b, 3.0)
    assert places.end_slice(c) == "moved"


def test_one_quick_query_runs_while_unknown_ones_have_all_fast_places() -> None:
    places = admission(queue=50, per_client=50)
    enqueue(places, ("good", "known"))
    leave(places, started(places)[0], 0.01)
    unknown = enqueue(places, *(("bad", f"unknown {'x' * number}") for number in range(30)))
    assert started(places) == unknown[:2]
    first, _ = enqueue(places, ("good", "known"), ("good", "known"))
    assert started(places) == [first]
    assert len(started(places)) == 0


def test_the_client_that_has_used_least_is_next() -> None:
    places = admission(fast=1, long=1, queue=50, per_client=50)
    enqueue(places, *(("heavy", f"bad {'x' * n}") for n in range(3)), ("other", "a"))
    [first] = started(places)
    places.charge(first, SLICE_S)
    places.charge(first, 2.0)
    leave(places, first, None)
    order = []
    enqueue(places, ("light", "b"), ("light", "c"))
    while found := started(places):
        order.append(found[0].client)
        leave(places, found[0], 0.1)
    assert order == ["other", "light", "light", "heavy", "heavy"]


def test_a_client_that_was_away_saves_up_no_turns() -> None:
    places = admission(fast=1, long=1, queue=50, per_client=50)
    enqueue(places, ("busy", "q"))
    leave(places, started(places)[0], 0.1)  # the shape is known from here on
    enqueue(places, *[("busy", "q")] * 20)
    for _ in range(10):
        leave(places, started(places)[0], 0.1)
    enqueue(places, *[("new", "q")] * 10)
    order = []
    while found := started(places):
        order.append(found[0].client)
        leave(places, found[0], 0.1)
    assert order[:8].count("new") == 4
    assert len(places._usage) <= 2, "what nobody is ahead of is forgotten"


def test_known_quick_shapes_go_first_and_keep_a_place_while_long_queries_abound() -> None:
    places = admission(queue=50, per_client=50)
    [known] = enqueue(places, ("x", "SELECT * { <a:1> ?p 'one' }"))
    started(places)
    leave(places, known, 0.001)
    flood = enqueue(places, *(("x", f"bad {'x' * n}") for n in range(20)))
    assert started(places) == flood[:2]
    places.end_slice(flood[0])
    assert started(places) == [], "a new shape has all fast places but one while something runs long"
    [good] = enqueue(places, ("x", "SELECT * { <b:22> ?p 'two' }"))
    assert good.queue is places._known
    assert started(places) == [good]


def test_new_shapes_are_not_starved_by_known_ones() -> None:
    places = admission(fast=1, queue=100, per_client=100)
    [known] = enqueue(places, ("x", "q"))
    started(places)
    leave(places, known, 0.001)
    [new] = enqueue(places, ("x", "new"))
    enqueue(places, *[("x", "q")] * 20)
    order = []
    while found := started(places):
        order += found
        leave(places, found[0], 0.001)
    assert order.index(new) < 5


def test_queues_are_bounded_for_all_and_for_each_client() -> None:
    places = admission(queue=4, per_client=3)
    enqueue(places, *[("x", "q")] * 3)
    with pytest.raises(ClientBusyError):
        enqueue(places, ("x", "q"))
    enqueue(places, ("y", "q"))
    with pytest.raises(QueryBusyError) as raised:
        enqueue(places, ("z", "q"))
    assert not isinstance(raised.value, ClientBusyError)
    assert raised.value.retryable


@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "leave", "slice", "withdraw", "begin"]), st.integers(0, 30)), max_size=80
    )
)
def test_places_never_exceed_their_numbers_and_no_query_is_lost(steps: list[tuple[str, int]]) -> None:
    places = admission(fast=2, long=2, queue=6, per_client=3)
    waiting: list[Place] = []
    running: list[Place] = []
    for step, number in steps:
        if step == "add":
            place = Place(f"c{number % 3}", f"{'q' * number}")
            try:
                places.enqueue(place)
            except QueryBusyError:
                continue
            waiting.append(place)
        elif step == "withdraw" and waiting:
            assert places.withdraw(waiting.pop(number % len(waiting)))
        elif running:
            place = running[number % len(running)]
            if step == "begin":
                place.begun = True
            elif step == "leave":
                running.remove(place)
                leave(places, place, number / 20)
            elif place.lane == "fast" and places.end_slice(place) in ("displaced", "stopped"):
                running.remove(place)
                leave(places, place, None)
        for place in started(places):
            waiting.remove(place)
            running.append(place)
        assert waiting_in(places) == len(waiting)
        assert sum(place.lane == "fast" for place in running) <= 2
        assert sum(place.queue is places._slow for place in running) <= 2
        assert len(running) <= places.processes
    for place in running:
        leave(places, place, 0.0)
    while more := started(places):
        for place in more:
            waiting.remove(place)
            leave(places, place, 0.0)
    assert waiting == [], "everybody who waits gets a turn in the end"
