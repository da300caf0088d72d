"""Limits of HTTP requests: they have to arrive in time, and few may be arriving at once.

uvicorn waits for a request without a deadline. A client that sends a byte a second would keep a connection, and one of
the process's file descriptors, for as long.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class ArrivalProtocol(HttpToolsProtocol):
    """Closes connections whose request is incomplete after `seconds`, and the oldest of them beyond `most`."""

    seconds: ClassVar[float] = 30.0
    most: ClassVar[int] = 512
    _arriving: ClassVar[OrderedDict[ArrivalProtocol, None]] = OrderedDict()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._overdue: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._arrived()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Wait for the rest of a request."""
        super().on_message_begin()
        self._await_request()

    def on_message_complete(self) -> None:
        """Stop waiting: uvicorn closes idle connections."""
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
