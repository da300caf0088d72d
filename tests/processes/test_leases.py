"""Leases end at their deadlines and within their budget, by a simulated clock."""

from __future__ import annotations

import math
import random
from functools import partial

import pytest

from kg.processes.leases import SLACK_S, Leases


@pytest.mark.parametrize("seed", range(10))
def test_nothing_is_held_beyond_its_deadline_and_sums_are_of_what_is_held(seed: int) -> None:
    """Some holders give back by themselves, some extend their lease, some do nothing until they are ended."""
    chance = random.Random(seed)
    leases: Leases[int] = Leases(most=40, most_bytes=20_000, client_bytes=9_000)
    held: dict[int, tuple[str, int, float]] = {}
    now = 100.0

    def end(holder: int) -> None:
        del held[holder]
        assert leases.release(holder)

    for number in range(3_000):
        now += chance.random() / 20
        client, size, until = f"client {chance.randrange(4)}", chance.randrange(900), now + chance.random() * 5
        assert leases.is_over_share(client, size) <= (not leases.has_room(client, size))
        if leases.has_room(client, size):
            held[number] = client, size, until
            leases.take(number, until, partial(end, number), client=client, size=size)
        for holder in chance.sample(list(held), min(len(held), chance.randrange(3))):
            client, size, until = held[holder]
            match chance.randrange(4):
                case 0:
                    end(holder)
                case 1:
                    held[holder] = client, size, until + 1
                    leases.extend(holder, until + 1)
                case 2:
                    held[holder] = client, size + 100, until
                    leases.grow(holder, 100)
        leases.trim()
        leases.expire(now)
        assert list(leases) == list(held)
        assert leases.bytes == sum(size for _, size, _ in held.values()) <= 20_000
        assert len(leases) <= 40
        assert leases.count_overdue(now) == 0
        assert leases.find_due() == min((until for *_, until in held.values()), default=math.inf)
        assert all(until > now for *_, until in held.values())
    leases.expire(now + 10)
    assert (len(leases), leases.bytes, held) == (0, 0, {})


def test_lease_that_its_owner_does_not_give_back_is_ended_once_and_counts_as_overdue() -> None:
    leases: Leases[str] = Leases(most=1)
    ended: list[str] = []
    leases.take("stuck", 5.0, lambda: ended.append("stuck"))
    leases.take("next", 9.0, lambda: ended.append("next"))
    leases.trim()
    leases.trim()
    leases.expire(5.0)
    leases.expire(6.0)
    assert ended == ["stuck"], "it is the oldest, and will be free soon"
    assert (leases.count_overdue(5.0 + SLACK_S), leases.count_overdue(5.1 + SLACK_S)) == (0, 1)
    assert leases.release("stuck")
    assert not leases.release("stuck")
    assert leases.count_overdue(5.1 + SLACK_S) == 0


def test_largest_leases_are_ended_when_their_bytes_exceed_the_budget() -> None:
    leases: Leases[str] = Leases(most_bytes=100)
    ended: list[str] = []
    for name, size in (("small", 10), ("large", 60), ("middle", 30)):
        leases.take(name, math.inf, partial(ended.append, name), size=size)
    leases.trim()
    assert ended == []
    leases.grow("middle", 20)
    leases.trim()
    assert ended == ["large"]
