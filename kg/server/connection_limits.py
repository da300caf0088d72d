"""Limits of HTTP connections: a request has to arrive in time, and a response has to be read in time.

uvicorn waits for both without a deadline. A client that sends a byte a second, or reads nothing, would keep a
connection, its buffers, and one of the process's file descriptors, for as long.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, ClassVar, Final, Self, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from kg.settings import Settings

HEADERS_BYTES: Final = 65_536
"""Maximum size of the headers of a request. The URL may have as many bytes as a body, since it may contain a query."""
_LINGER_S: Final = 2.0
_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nretry-after: 1\r\nconnection: close\r\n\r\n"
)


class Waiting:
    """What waits for its client, the oldest first: each until its deadline, and in total within limits.

    `later` is `loop.call_later`. What exceeds `most` in number or `most_bytes` in size ends, the oldest first.
    """

    def __init__(self, most: int, most_bytes: int = 0) -> None:
        self.most, self.most_bytes = most, most_bytes
        self.bytes = 0
        self._held: OrderedDict[object, tuple[asyncio.TimerHandle, Callable[[], None]]] = OrderedDict()
        self._sizes: dict[object, int] = {}

    def __len__(self) -> int:
        return len(self._held)

    def begin(
        self, holder: object, seconds: float, end: Callable[[], None], later: Callable[..., asyncio.TimerHandle]
    ) -> None:
        """Let `holder` wait for `seconds`; then, or when it is the oldest of too many, call `end`."""
        if holder in self._held:
            return

        def expire() -> None:
            self.done(holder)
            end()

        self._held[holder] = later(seconds, expire), expire
        if len(self._held) > self.most:
            self._end_oldest()

    def grow(self, holder: object, size: int) -> None:
        """Count `size` more bytes that `holder` has in memory while it waits."""
        if holder not in self._held:
            return
        self._sizes[holder] = self._sizes.get(holder, 0) + size
        self.bytes += size
        while self.bytes > self.most_bytes:
            largest = max(self._sizes, key=lambda each: self._sizes[each])
            self._held[largest][1]()

    def done(self, holder: object) -> None:
        """Stop the waiting of `holder`, if it waits."""
        found = self._held.pop(holder, None)
        self.bytes -= self._sizes.pop(holder, 0)
        if found is not None:
            found[0].cancel()

    def _end_oldest(self) -> None:
        _, expire = next(iter(self._held.values()))
        expire()


class LimitedProtocol(HttpToolsProtocol):
    """Closes connections whose request is incomplete, or whose response waits for its client, for too long."""

    arrival_s: ClassVar[float] = 30.0
    """Seconds from the first byte of a request to its last."""
    sending_s: ClassVar[float] = 30.0
    """Seconds that the parts of one response wait for their client, added up."""
    head_bytes: ClassVar[int] = HEADERS_BYTES + (1 << 20)
    arriving: ClassVar[Waiting] = Waiting(most=512, most_bytes=32 << 20)
    """Connections whose request arrives, with the size of its head."""
    unread: ClassVar[Waiting] = Waiting(most=128)
    """Connections whose client does not read."""

    @classmethod
    def limited_by(cls, settings: Settings) -> type[Self]:
        """Build the protocol with the limits of `settings`."""
        limits = {
            "arrival_s": settings.transfer_timeout_s,
            "sending_s": max(settings.transfer_timeout_s, settings.query_timeout_s),
            "head_bytes": HEADERS_BYTES + settings.max_body_bytes,
            "arriving": Waiting(cls.arriving.most, cls.arriving.most_bytes),
            "unread": Waiting(cls.unread.most),
        }
        return cast("type[Self]", type(cls.__name__, (cls,), limits))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_head = True
        self._head_size = 0
        self._left_s = self.sending_s
        self._blocked_at = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self.arriving.done(self)
        self.unread.done(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what has arrived; refuse a head that is too large."""
        if self._in_head:
            self._head_size += len(data)
            self.arriving.grow(self, len(data))
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self._in_head and self._head_size > self.head_bytes and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self._close()

    def on_message_begin(self) -> None:
        """Wait for the rest of a request. Who sends another has read the last response, or its writing is paused."""
        super().on_message_begin()
        if not self.flow.write_paused:
            self.unread.done(self)
        self._in_head = True
        self._await_request()

    def on_headers_complete(self) -> None:
        """Forget the size of the head."""
        self._in_head = False
        self._head_size = 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Stop waiting: uvicorn closes idle connections."""
        self.arriving.done(self)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Give the client time to read the rest of the response."""
        super().on_response_complete()
        self._left_s = self.sending_s
        if self.transport.get_write_buffer_size():
            self._await_reader()

    def pause_writing(self) -> None:
        """Give the client time to read."""
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        """Subtract the time of this pause from the time that the client has for the response."""
        super().resume_writing()
        self.unread.done(self)
        self._left_s -= self.loop.time() - self._blocked_at

    def _await_request(self) -> None:
        self.arriving.begin(self, self.arrival_s, self._close, self.loop.call_later)

    def _await_reader(self) -> None:
        self._blocked_at = self.loop.time()
        self.unread.begin(self, max(self._left_s, 0.0), self._abort_unread, self.loop.call_later)

    def _abort_unread(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    def _close(self) -> None:
        self.arriving.done(self)
        self.transport.close()
        self._linger()

    def _linger(self) -> None:
        """End a closing connection whose client does not read what it was sent."""
        if self.transport.is_closing():
            self.loop.call_later(_LINGER_S, self.transport.abort)
