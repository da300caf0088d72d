"""The guard at the door: a request names this machine as its host, and comes from no foreign web page."""

from __future__ import annotations

from typing import Final

from fastmcp.server.http import HostOriginGuardMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

_REMEMBERED: Final = 256


class HostGuard(HostOriginGuardMiddleware):
    """FastMCP's guard at its strictest (against DNS rebinding). What it has let in it lets in again at once."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(self._let_in, mode="strict")
        self._inside: Final = app
        self._known: Final[set[tuple[object, ...]]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or answer it with 421 (for its Host) or 403 (for its Origin)."""
        if scope["type"] == "http" and _judged_by(scope) in self._known:
            await self._inside(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    async def _let_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and len(self._known) < _REMEMBERED:
            self._known.add(_judged_by(scope))
        await self._inside(scope, receive, send)


def _judged_by(scope: Scope) -> tuple[object, ...]:
    """Return all that the guard looks at in a request."""
    headers = (header for header in scope["headers"] if header[0] in (b"host", b"origin"))
    return (scope["scheme"], *(scope.get("server") or ()), *headers)
