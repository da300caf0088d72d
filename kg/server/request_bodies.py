"""Request bodies: admission within a budget of memory, reading up to a limit, and parsing JSON arguments."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kg.access.limits import LIMITS
from kg.errors import ClientBusyError, InvalidInputError, QuadciteError
from kg.server.fair_limiter import compute_call_s
from kg.server.loop_leases import LoopLeases
from kg.server.problem_details import RETRY_AFTER_S, HttpError, problem
from kg.settings import Settings

SMALL_BYTES: Final = 65_536
"""Size of a body that is always admitted: the server reads as much of each connection before anybody asks for it."""
PATIENCE_S: Final = 5.0
"""Maximum seconds that a body waits for room."""

_CLIENT_SHARE: Final = 0.75
_STEP_BYTES: Final = 1 << 20
_MOST_WAITING: Final = 128
_CHECK_S: Final = 0.25
_SLOW_AFTER_S: Final = 2.0
_SLOW_BYTES_PER_S: Final = 1 << 20
_BODY: Final = "quadcite.body"
"""The member of a scope with the leases of bodies and the body of the request."""
_RATE_S: Final = 1.0
"""Seconds in which the weight of what has arrived falls to a third."""


async def read(request: Request, max_bytes: int, setting: str = "QUADCITE_MAX_BODY_BYTES") -> bytes:
    """Read the body of `request`. Raises HttpError (413) over `max_bytes`, the value of `setting`."""
    own = LIMITS.get().max_body_bytes
    if own is not None and own < max_bytes:
        max_bytes, setting = own, "QUADCITE_SENDER_LIMITS"
    body = bytearray()
    too_large = HttpError(
        413, "body_too_large", f"The body is larger than {max_bytes} bytes (setting {setting}). Send less."
    )  # The connection stays open: closing it while the client sends would reset it before the response is read.
    if (_find_declared_size(request.scope) or 0) > max_bytes:
        raise too_large
    async for piece in request.stream():
        body += piece
        if len(body) > max_bytes:
            raise too_large
    return bytes(body)


def allow_time(request: Request, seconds: float) -> None:
    """Let `request`, whose body has arrived, take `seconds` from now."""
    if (found := request.scope.get(_BODY)) is not None:
        bodies, body = found
        bodies.extend(body, time.monotonic() + seconds)


def parse_arguments(body: bytes) -> dict[str, Any]:
    """Parse the arguments in a body, which may be empty. Raises InvalidInputError unless it is a JSON object."""
    if not body.strip():
        return {}
    try:
        arguments = json.loads(body)
    except ValueError as error:
        raise InvalidInputError(f"The body is not JSON: {error}.") from None
    except RecursionError:
        raise InvalidInputError("The JSON of the body is nested too deeply.") from None
    if not isinstance(arguments, dict):
        kind = "an array" if isinstance(arguments, list) else json.dumps(arguments)[:40]
        raise InvalidInputError(f'The body must be a JSON object of arguments, as in {{"limit": 5}}, not {kind}.')
    return arguments


@dataclass(slots=True, eq=False)
class Body:
    """The body of one request in progress. `size` is its declared size or, without one, the number of bytes so far."""

    client: str
    size: int
    admitted: float
    received: int = 0
    complete: bool = False
    evict: Callable[[], None] = field(default=lambda: None, repr=False)
    _rate: float = field(default=0.0, init=False)
    _rated: float = field(default=0.0, init=False)

    def receive(self, size: int, now: float) -> None:
        """Count `size` more bytes that have arrived."""
        self._rate = self.rate(now) + size / _RATE_S
        self._rated = now
        self.received += size

    def rate(self, now: float) -> float:
        """Compute the bytes per second of the last seconds, in which the latest count most."""
        return self._rate * math.exp((self._rated - now) / _RATE_S)


class Bodies(LoopLeases[Body]):
    """The bodies of all requests in progress: each until the end of its request, and none is larger than `largest`.

    `handling_s` is the maximum number of seconds from the end of a body to that of its request.
    """

    def __init__(self, settings: Settings) -> None:
        self.largest: Final = max(settings.max_graph_bytes, settings.max_body_bytes)
        most_bytes = max(settings.max_bodies_mb << 20, 2 * self.largest)
        super().__init__(most_bytes=most_bytes, client_bytes=int(most_bytes * _CLIENT_SHARE))
        self.arrival_s: Final = settings.transfer_timeout_s
        # A request reads its text, waits for a place, has it, and sends its answer.
        self.handling_s: Final = 2 * compute_call_s(settings) + settings.transfer_timeout_s

    def find_slow(self, now: float) -> Body | None:
        """Find the body that arrives most slowly, if it is slower than a local client sends."""
        arriving = (body for body in self if not body.complete and now - body.admitted >= _SLOW_AFTER_S)
        rates = {body: body.rate(now) for body in arriving}
        slowest = min(rates, key=lambda body: rates[body], default=None)
        return slowest if slowest is not None and rates[slowest] < _SLOW_BYTES_PER_S else None


class BodyAdmission:
    """An application whose requests have room for their bodies before these are read.

    A body waits up to `PATIENCE_S`; meanwhile the server stops reading from its connection, and bodies that arrive
    slowly make room for it (408). Then the answer is 429 for a client over its share, 503 for all others.
    """

    def __init__(self, app: ASGIApp, bodies: Bodies, name_client: Callable[[Request], str]) -> None:
        self._app, self._bodies, self._name_client = app, bodies, name_client
        self._freed = anyio.Event()
        self._waiting = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request once there is room for its body."""
        size = _find_declared_size(scope) if scope["type"] == "http" else 0
        if size == 0:
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        try:
            body = await self._admit(request, size)
        except (HttpError, QuadciteError) as error:
            await problem(request, error)(scope, receive, send)
            return
        arrival = _Arrival(self._bodies, body, scope, receive, send)
        try:
            with anyio.CancelScope() as handling:
                self._bodies.take(
                    body, body.admitted + self._bodies.arrival_s, handling.cancel, client=body.client, size=body.size
                )
                scope[_BODY] = self._bodies, body
                await self._app(scope, arrival.receive, arrival.send)
            if handling.cancelled_caught and not arrival.answered:
                late = (503, "server_busy", _LATE) if body.complete else (408, "request_timeout", _SLOW)
                await problem(request, HttpError(*late, _RETRY))(scope, receive, send)
        finally:
            self._bodies.release(body)
            self._freed.set()
            self._freed = anyio.Event()

    async def _admit(self, request: Request, declared: int | None) -> Body:
        size = _STEP_BYTES if declared is None else declared
        if size > self._bodies.largest:
            raise _too_large(self._bodies.largest)
        client = self._name_client(request)
        if size > SMALL_BYTES and not self._bodies.has_room(client, size):
            await self._wait(client, size)
        return Body(client, size, time.monotonic())

    async def _wait(self, client: str, size: int) -> None:
        until = time.monotonic() + PATIENCE_S
        self._waiting += 1
        try:
            while self._waiting <= _MOST_WAITING and (now := time.monotonic()) < until:
                if (slow := self._bodies.find_slow(now)) is not None:
                    slow.evict()
                with anyio.move_on_after(_CHECK_S):
                    await self._freed.wait()
                if self._bodies.has_room(client, size):
                    return
        finally:
            self._waiting -= 1
        raise _no_room(self._bodies, client, size)


class _Arrival:
    """Receives one body that has been admitted, and ends its request early where it exceeds the admitted bytes."""

    def __init__(self, bodies: Bodies, body: Body, scope: Scope, receive: Receive, send: Send) -> None:
        self._bodies, self._body = bodies, body
        self._scope, self._receive, self._send = scope, receive, send
        self._ended = False
        self.answered = False

    async def receive(self) -> Message:
        """Receive a message. After the end of the request the client counts as disconnected."""
        body = self._body
        if self._ended:
            return {"type": "http.disconnect"}
        if body.complete:
            return await self._receive()
        message: Message = {}
        if body.size <= SMALL_BYTES:  # it makes room for nobody
            message = await self._receive()
        else:
            with anyio.CancelScope() as waiting:
                body.evict = waiting.cancel
                message = await self._receive()
        if not message:
            return await self._end(HttpError(408, "request_timeout", _SLOW, _RETRY))
        body.receive(len(message.get("body", b"")), time.monotonic())
        body.complete = not message.get("more_body", False)
        if body.complete:
            self._bodies.extend(body, time.monotonic() + self._bodies.handling_s)
        if body.received > self._bodies.largest:
            return await self._end(_too_large(self._bodies.largest))
        if body.received > body.size:
            if not self._bodies.has_room(body.client, _STEP_BYTES):
                return await self._end(_no_room(self._bodies, body.client, _STEP_BYTES))
            body.size += _STEP_BYTES
            self._bodies.grow(body, _STEP_BYTES)
        return message

    async def send(self, message: Message) -> None:
        """Send a message of the application, unless its request has ended."""
        self.answered = True
        if not self._ended:
            await self._send(message)

    async def _end(self, error: HttpError | QuadciteError) -> Message:
        self._ended = self.answered = True
        await problem(Request(self._scope), error)(self._scope, self._receive, self._send)
        return {"type": "http.disconnect"}


_RETRY: Final = {"Retry-After": str(RETRY_AFTER_S)}
_LATE: Final = (
    "The request took longer than the server allows. A write may still be completed: read the data before a repetition."
)
_SLOW: Final = "The body arrives slowly, and others wait for the memory that it takes. Try again in a few seconds."


def _find_declared_size(scope: Scope) -> int | None:
    """Find the size of the body in the headers of a request: 0 without a body, None if it is not declared."""
    for name, value in scope["headers"]:
        if name == b"transfer-encoding":
            return None
        if name == b"content-length" and value.isdigit():
            return int(value) if len(value) < 20 else 1 << 63
    return 0


def _too_large(most: int) -> HttpError:
    return HttpError(
        413,
        "body_too_large",
        f"The body is larger than {most} bytes (setting QUADCITE_MAX_GRAPH_BYTES). Split it, or load files with "
        "`kg load`.",
    )


def _no_room(bodies: Bodies, client: str, size: int) -> HttpError | QuadciteError:
    if bodies.is_over_share(client, size):
        return ClientBusyError(
            f"The bodies of this client's requests would exceed {int(bodies.client_bytes) >> 20} MiB (three quarters "
            "of the setting QUADCITE_MAX_BODIES_MB). Wait for their answers, or try again in a few seconds."
        )
    message = (
        f"The bodies of all requests would exceed {int(bodies.most_bytes) >> 20} MiB (setting QUADCITE_MAX_BODIES_MB). "
        "Try again in a few seconds."
    )
    return HttpError(503, "server_busy", message, _RETRY)
