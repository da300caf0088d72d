"""gzip for those who take it: whole bodies from a size on, streams piece by piece, each sent on at once."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers
from starlette.middleware.gzip import GZipMiddleware, GZipResponder, IdentityResponder
from starlette.types import ASGIApp, Receive, Scope, Send

from kg.server.negotiation import accepts_gzip

MINIMUM_BYTES: Final = 1_400
"""Smaller bodies fit into one packet as they are."""
LEVEL: Final = 1
"""A sixth of the size at 250 MB/s; zlib's default would take a seventh, and three times the CPU."""


class Compression(GZipMiddleware):
    """Starlette's middleware, with Accept-Encoding read by its weights: ``gzip;q=0`` takes none."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(app, MINIMUM_BYTES, LEVEL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        responder: ASGIApp
        if accepts_gzip(Headers(scope=scope).getlist("accept-encoding")):
            responder = GZipResponder(self.app, MINIMUM_BYTES, LEVEL)
        else:
            responder = IdentityResponder(self.app, MINIMUM_BYTES)
        await responder(scope, receive, send)
