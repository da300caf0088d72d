"""A query's conversation with its worker: one state machine for threads and for the event loop.

It is a generator of steps and never waits itself. A driver performs each step, in its own way of waiting, and sends
the result back or throws the exception in: `kg.queries.pool` in a thread, `kg.server.query_execution` in the loop.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from kg.processes.child import ChildGoneError
from kg.queries import replies
from kg.queries.dispatcher import Dispatcher, Ticket, Worker
from kg.sparql.guard import CHEAP_CHARS

T = TypeVar("T")

_SHORT: Final = 10_000
"""Characters of a query up to which a pipe takes it at once."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Submit the ticket, and wait until its turn has come or it was stopped."""

    ticket: Ticket


@dataclass(frozen=True, slots=True)
class Readable:
    """Wait until the answers of the worker can be read."""

    worker: Worker


@dataclass(frozen=True, slots=True)
class Call:
    """Call a function that may block, and send back its result."""

    work: Callable[[], object]


Step = Turn | Readable | Call
Steps = Generator[Step, Any, T]


class Conversation:
    """One query with its worker. `ticket` is None once it has ended, `truncated` until its result is complete.

    `hold_bytes` is the size of a result up to which it is held back until it is complete: until then the query can
    start again if its worker is taken away or dies.
    """

    def __init__(self, dispatcher: Dispatcher, ticket: Ticket, hold_bytes: float) -> None:
        self.ticket: Ticket | None = ticket
        self.kind = ""
        self.truncated: bool | None = None
        self._dispatcher: Final = dispatcher
        self._hold_bytes: Final = hold_bytes

    def begin(self) -> Steps[list[bytes]]:
        """Run the query up to its first pieces: all of them if they are small, and then `truncated` is set."""
        ticket = self._current()
        while True:
            yield Turn(ticket)
            self._dispatcher.raise_if_stopped(ticket)
            try:
                yield from self._send(ticket)
                held: list[bytes] = []
                size = 0
                while size <= self._hold_bytes:
                    piece = yield from self._receive(ticket)
                    if piece is None:
                        return held
                    held.append(piece)
                    size += len(piece)
                if self._dispatcher.start_answer(ticket):
                    return held
            except ChildGoneError:
                pass
            if (error := (yield Call(partial(self._dispatcher.recover, ticket)))) is not None:
                self.ticket = None
                raise error

    def next_piece(self) -> Steps[bytes | None]:
        """Receive the next piece of the result; None at its end."""
        ticket = self._current()
        try:
            return (yield from self._receive(ticket))
        except ChildGoneError:
            self.ticket = None
            error = yield Call(partial(self._dispatcher.recover, ticket))
            raise error or replies.KilledError("The query was stopped.") from None

    def close(self) -> None:
        """Stop the query if it still runs, and wait for the end of its process."""
        ticket, self.ticket = self.ticket, None
        if ticket is not None:
            self._dispatcher.give_up(ticket)

    def abandon(self) -> None:
        """Stop the query if it still runs, soon; takes no lock, so that a destructor may call it."""
        ticket, self.ticket = self.ticket, None
        if ticket is not None:
            self._dispatcher.abandon(ticket)

    def _current(self) -> Ticket:
        assert self.ticket is not None  # noqa: S101 -- it has not ended
        return self.ticket

    def _send(self, ticket: Ticket) -> Steps[None]:
        if ticket.sent:  # by the driver, when its turn came
            return
        if not self._dispatcher.is_ready(ticket):
            try:
                yield Call(partial(self._dispatcher.prepare, ticket))
            except ChildGoneError:
                raise  # handled by the caller, which may try another worker
            except Exception:  # an error of the store: the worker is unharmed, and free for the next query
                self.ticket = None
                self._dispatcher.hand_back(ticket)
                raise
        if can_send_at_once(ticket):
            self._dispatcher.send(ticket)
        else:
            yield Call(partial(self._dispatcher.send, ticket))

    def _receive(self, ticket: Ticket) -> Steps[bytes | None]:
        while True:
            worker = ticket.worker
            if worker is None:
                raise ChildGoneError
            while (frame := worker.poll_frame()) is None:
                yield Readable(worker)
            kind, payload = frame
            if kind == b"D":
                return payload
            content = json.loads(payload)
            if kind == b"H":
                self.kind = content["kind"]
                continue
            self.ticket = None
            self._dispatcher.finish(ticket, retire=content.get("retire", False))
            if kind == b"E":
                self.truncated = content["truncated"]
                return None
            build = partial(replies.build_reported_error, content, ticket.query, self._dispatcher.settings)
            error: Exception = build() if len(ticket.query) < CHEAP_CHARS else (yield Call(build))
            raise error


def can_send_at_once(ticket: Ticket) -> bool:
    """Return whether the ticket's query is so short that sending it does not block."""
    return len(ticket.query) < _SHORT
