"""The HTTP protocol of the server: requests have to arrive in time, and few may be on their way at once.

The server itself waits for a request as long as its client likes. A client that sends a byte a second would hold a
connection, and one of the process's file descriptors, for as long.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any, ClassVar, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

JOINED_BYTES: Final = 16_384
"""A write of this size is not held back for others."""


class JoinedWrites:
    """A transport whose small writes within one turn of the loop go out as one: the head of an answer with its body.

    Each write is a call of the system, and wakes whoever reads at the other end.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._held: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Take what is to be sent."""
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held.append(data)
        if len(data) >= JOINED_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._held:
            data = b"".join(self._held)
            self._held.clear()
            if not self._transport.is_closing():
                self._transport.write(data)

    def close(self) -> None:
        """Send what is held, then close."""
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class ArrivalProtocol(HttpToolsProtocol):
    """Closes connections whose request is not whole after `seconds`, and the oldest such when there are over `most`."""

    seconds: ClassVar[float] = 30.0
    most: ClassVar[int] = 512
    _arriving: ClassVar[OrderedDict[ArrivalProtocol, None]] = OrderedDict()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._overdue: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(JoinedWrites(transport, self.loop))  # type: ignore[arg-type]
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._arrived()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Wait for the rest of a request."""
        super().on_message_begin()
        self._await_request()

    def on_message_complete(self) -> None:
        """Wait no more: uvicorn sees to connections that are kept."""
        self._arrived()
        super().on_message_complete()

    def _await_request(self) -> None:
        if self._overdue is not None:
            return
        self._overdue = self.loop.call_later(self.seconds, self._close)
        self._arriving[self] = None
        if len(self._arriving) > self.most:
            next(iter(self._arriving))._close()

    def _arrived(self) -> None:
        if self._overdue is not None:
            self._overdue.cancel()
            self._overdue = None
            self._arriving.pop(self, None)

    def _close(self) -> None:
        self._arrived()
        self.transport.close()
