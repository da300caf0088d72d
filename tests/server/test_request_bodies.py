"""Bodies of requests in progress are counted, within a total and a share of each client, by a simulated clock."""

from __future__ import annotations

import random

import pytest

from kg.server.request_bodies import SMALL_BYTES, Bodies, Body
from kg.settings import Settings


@pytest.mark.parametrize("seed", range(10))
def test_bodies_stay_within_their_budget(seed: int) -> None:
    chance = random.Random(seed)
    bodies = Bodies(Settings(max_bodies_mb=8, max_graph_bytes=1 << 20, _env_file=None))  # type: ignore[call-arg]
    held: list[Body] = []
    now = 0.0
    for _ in range(2_000):
        now += chance.random() / 10
        client, size = f"client {chance.randrange(3)}", chance.randrange(1 << 20)
        if size <= SMALL_BYTES or bodies.has_room(client, size):
            held.append(Body(client, size, now))
            bodies.add(held[-1])
        for body in chance.sample(held, min(len(held), chance.randrange(3))):
            if chance.random() < 0.3:
                bodies.grow(body, 1 << 18)
            else:
                held.remove(body)
                bodies.remove(body)
        small = sum(body.size for body in held if body.size <= SMALL_BYTES)
        assert bodies.bytes == sum(body.size for body in held)
        assert len(bodies) == len(held)
        assert bodies.bytes <= bodies.most_bytes + small
        for number in range(3):
            share = sum(body.size for body in held if body.client == f"client {number}")
            assert share <= bodies.client_bytes + small
    for body in held:
        bodies.remove(body)
    assert (bodies.bytes, len(bodies)) == (0, 0)


def test_slowest_body_makes_room_and_complete_ones_do_not() -> None:
    bodies = Bodies(Settings(_env_file=None))  # type: ignore[call-arg]
    quick, burst, drip, complete, fresh = (Body("client", 1 << 20, 0.0) for _ in range(5))
    complete.complete, fresh.admitted = True, 9.0
    for body in (quick, burst, drip, complete, fresh):
        bodies.add(body)
    burst.receive(15 << 20, 0.1)
    for tenths in range(100):
        quick.receive(300_000, tenths / 10)
        drip.receive(1, tenths / 10)
    assert bodies.find_slow(1.0) is None
    slow = bodies.find_slow(10.0)
    assert slow is drip or slow is burst
    bodies.remove(slow)
    other = bodies.find_slow(10.0)
    assert {slow, other} == {drip, burst}
    bodies.remove(other)
    assert bodies.find_slow(10.0) is None
