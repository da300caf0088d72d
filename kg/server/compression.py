"""Compression of responses by gzip: whole bodies from a minimum size, streams piece by piece without delay."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.gzip import GZipResponder
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kg.server.negotiation import accepts_gzip

MINIMUM_BYTES: Final = 1_400
"""Smaller bodies fit into one packet uncompressed."""
LEVEL: Final = 1
"""A sixth of the size at 250 MB/s; zlib's default would take a seventh, and three times the CPU."""
PAGE_LEVEL: Final = 6
"""That of pages, which are at most some hundred kB: 15% smaller than level 1, for 1.5 ms of CPU per 100 kB."""


class Compression:
    """Starlette's gzip for clients whose Accept-Encoding accepts it, by its weights: ``gzip;q=0`` does not."""

    def __init__(self, app: ASGIApp, level: int = LEVEL) -> None:
        self.app, self.level = app, level

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_varied(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                if "Accept-Encoding" not in headers.get("vary", ""):
                    headers.add_vary_header("Accept-Encoding")
            await send(message)

        packed = accepts_gzip(Headers(scope=scope).getlist("accept-encoding"))
        app = GZipResponder(self.app, MINIMUM_BYTES, self.level) if packed else self.app
        await app(scope, receive, send_varied)
