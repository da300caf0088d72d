"""Who asks: until there are accounts, everyone on this machine, and the holder of the local token.

The server binds loopback alone, so whoever reaches it runs on this machine: everyone may read and write. `ADMIN` takes
the token that the server writes, readable by its own user only, into the data directory it serves.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fastmcp.server.http import HostOriginGuardMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from kg.actors import EVERYONE, HOLDER, TOKEN_FILE, Actor
from kg.errors import StoreError, UnauthorizedError

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


if TYPE_CHECKING:  # commands read the token too, and start faster without
    from starlette.requests import Request

ACTOR: Final[ContextVar[Callable[[], Actor]]] = ContextVar("actor", default=lambda: EVERYONE)
"""Says who makes the call in progress; raises UnauthorizedError for wrong credentials. Set where a request arrives."""


class LocalToken:
    """The secret of one running server, in a file that only its own user can read; gone when the server ends."""

    def __init__(self, data_dir: Path) -> None:
        self._path: Final = data_dir / TOKEN_FILE
        self._secret: Final = secrets.token_urlsafe(32)
        partial = data_dir / f".{TOKEN_FILE}.partial"
        try:
            partial.unlink(missing_ok=True)
            # Made anew, with its mode, and renamed when it is whole: nobody else can have it open or read half of it.
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(self._secret)
            partial.replace(self._path)
        except OSError as error:
            raise StoreError(f"the local token cannot be written to {self._path}: {error.strerror or error}") from error

    def actor(self, request: Request) -> Actor:
        """Return who sent `request`. Raises UnauthorizedError for credentials that are not this server's."""
        header = request.headers.get("authorization")
        if header is None:
            return EVERYONE
        scheme, _, given = header.partition(" ")
        if scheme.lower() != "bearer":
            raise UnauthorizedError(f"credentials are sent as `Authorization: Bearer TOKEN`, not as {scheme[:20]!r}")
        if not hmac.compare_digest(given.strip().encode(), self._secret.encode()):
            raise UnauthorizedError(
                f"this is not the token of this server; it is in the file {TOKEN_FILE!r} of its data directory, and "
                "new each time the server starts"
            )
        return HOLDER

    def remove(self) -> None:
        """Delete the file, unless another server has put its own token there: this one is of no use any more."""
        if read_token(self._path.parent) == self._secret:
            self._path.unlink(missing_ok=True)


def read_token(data_dir: Path) -> str | None:
    """Return the token of the server that holds `data_dir`, or None where there is none to be read."""
    try:
        return (data_dir / TOKEN_FILE).read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
