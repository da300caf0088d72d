"""Limits of HTTP connections: a request has to arrive in time, and a response has to be read in time.

uvicorn waits for both without a deadline. A client that sends a byte a second, or reads nothing, would keep a
connection, its buffers, and one of the process's file descriptors, for as long.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, ClassVar, Final, Self, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from kg.server.loop_leases import LoopLeases
from kg.settings import Settings

HEADERS_BYTES: Final = 65_536
"""Maximum size of the headers of a request. The URL may have as many bytes as a body, since it may contain a query."""
_LINGER_S: Final = 2.0
_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nretry-after: 1\r\nconnection: close\r\n\r\n"
)


class LimitedProtocol(HttpToolsProtocol):
    """Closes connections whose request is incomplete, or whose response waits for its client, for too long."""

    arrival_s: ClassVar[float] = 30.0
    """Seconds from the first byte of a request to its last."""
    sending_s: ClassVar[float] = 30.0
    """Seconds that the parts of one response wait for their client, added up."""
    head_bytes: ClassVar[int] = HEADERS_BYTES + (1 << 20)
    arriving: ClassVar[LoopLeases[object]] = LoopLeases(most=512, most_bytes=32 << 20)
    """Connections whose request arrives, with the size of its head."""
    unread: ClassVar[LoopLeases[object]] = LoopLeases(most=128)
    """Connections whose client does not read."""

    @classmethod
    def limited_by(cls, settings: Settings) -> type[Self]:
        """Build the protocol with the limits of `settings`."""
        limits = {
            "arrival_s": settings.transfer_timeout_s,
            "sending_s": max(settings.transfer_timeout_s, settings.query_timeout_s),
            "head_bytes": HEADERS_BYTES + settings.max_body_bytes,
            "arriving": LoopLeases[object](most=cls.arriving.most, most_bytes=cls.arriving.most_bytes),
            "unread": LoopLeases[object](most=cls.unread.most),
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
        self.arriving.release(self)
        self.unread.release(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what has arrived; refuse a head that is too large."""
        if self._in_head:
            self._head_size += len(data)
            self.arriving.grow(self, len(data))
            self.arriving.trim()
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self._in_head and self._head_size > self.head_bytes and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self._close()

    def on_message_begin(self) -> None:
        """Wait for the rest of a request. Its client has read the last response, unless writing to it is paused."""
        super().on_message_begin()
        if not self.flow.write_paused:
            self.unread.release(self)
        self._in_head = True
        self._await_request()

    def on_headers_complete(self) -> None:
        """Forget the size of the head."""
        self._in_head = False
        self._head_size = 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Stop waiting: uvicorn closes idle connections."""
        self.arriving.release(self)
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
        self.unread.release(self)
        self._left_s -= time.monotonic() - self._blocked_at

    def _await_request(self) -> None:
        if self not in self.arriving:
            self.arriving.take(self, time.monotonic() + self.arrival_s, self._close)
            self.arriving.trim()

    def _await_reader(self) -> None:
        if self not in self.unread:
            self._blocked_at = time.monotonic()
            self.unread.take(self, self._blocked_at + max(self._left_s, 0.0), self._abort_unread)
            self.unread.trim()

    def _abort_unread(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    def _close(self) -> None:
        self.arriving.release(self)
        self.transport.close()
        self._linger()

    def _linger(self) -> None:
        """End a closing connection whose client does not read what it was sent."""
        if self.transport.is_closing():
            self.loop.call_later(_LINGER_S, self.transport.abort)
