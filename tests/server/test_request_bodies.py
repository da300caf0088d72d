"""Bodies of requests in progress are counted, within a total and a share of each client, by a simulated clock."""

from __future__ import annotations

import math
import random
from collections.abc import AsyncIterator

import anyio
import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from kg.server.request_bodies import SMALL_BYTES, Bodies, Body, BodyAdmission, allow_time
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
            bodies.take(held[-1], math.inf, client=client, size=size)
        for body in chance.sample(held, min(len(held), chance.randrange(3))):
            if chance.random() < 0.3 and bodies.has_room(body.client, 1 << 18):
                body.size += 1 << 18
                bodies.grow(body, 1 << 18)
            else:
                held.remove(body)
                bodies.release(body)
        small = sum(body.size for body in held if body.size <= SMALL_BYTES)
        assert bodies.bytes == sum(body.size for body in held)
        assert len(bodies) == len(held)
        assert bodies.bytes <= bodies.most_bytes + small
        for number in range(3):
            share = sum(body.size for body in held if body.client == f"client {number}")
            assert share <= bodies.client_bytes + small
    for body in held:
        bodies.release(body)
    assert (bodies.bytes, len(bodies)) == (0, 0)


def test_slowest_body_makes_room_and_complete_ones_do_not() -> None:
    bodies = Bodies(Settings(_env_file=None))  # type: ignore[call-arg]
    quick, burst, drip, complete, fresh = (Body("client", 1 << 20, 0.0) for _ in range(5))
    complete.complete, fresh.admitted = True, 9.0
    for body in (quick, burst, drip, complete, fresh):
        bodies.take(body, math.inf, client="client", size=body.size)
    burst.receive(15 << 20, 0.1)
    for tenths in range(100):
        quick.receive(300_000, tenths / 10)
        drip.receive(1, tenths / 10)
    assert bodies.find_slow(1.0) is None
    slow = bodies.find_slow(10.0)
    assert slow is drip or slow is burst
    bodies.release(slow)
    other = bodies.find_slow(10.0)
    assert {slow, other} == {drip, burst}
    bodies.release(other)
    assert bodies.find_slow(10.0) is None


@pytest.mark.parametrize("size", [10, SMALL_BYTES + 1])
def test_request_with_a_body_ends_at_its_deadline_unless_it_may_take_longer(size: int) -> None:
    """The one whose body does not arrive gets 408, the one that takes too long 503; neither is held any more."""

    async def work(request: Request) -> Response:
        await request.body()
        if request.url.path == "/long":
            allow_time(request, 60)
            await anyio.sleep(0.8)
        else:
            await anyio.sleep(60)
        return PlainTextResponse("done")

    async def arrive(pieces: int) -> AsyncIterator[bytes]:
        yield b"a" * (size // 2)
        if pieces > 1:
            yield b"a" * (size - size // 2)
        else:
            await anyio.sleep(60)

    async def answer(path: str, pieces: int, transfer_s: float, handling_s: float) -> int:
        bodies = Bodies(Settings(transfer_timeout_s=transfer_s, _env_file=None))  # type: ignore[call-arg]
        bodies.handling_s = handling_s  # type: ignore[misc]
        app = Starlette(
            routes=[Route("/{path}", work, methods=["POST"])],
            middleware=[Middleware(BodyAdmission, bodies=bodies, name_client=lambda request: "client")],
        )
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            answered = await client.post(f"/{path}", content=arrive(pieces), headers={"Content-Length": str(size)})
        assert (len(bodies), bodies.bytes) == (0, 0)
        return answered.status_code

    assert anyio.run(answer, "short", 1, 0.1, 60) == 408
    assert anyio.run(answer, "short", 2, 60, 0.1) == 503
    assert anyio.run(answer, "long", 2, 60, 0.4) == 200
