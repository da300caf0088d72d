"""Authentication: everyone on this machine, and the holder of the local token. There are no accounts yet.

The server binds loopback only, so every client runs on this machine and may read and write. The scope `ADMIN` requires
the token that the server writes into its data directory, readable by its own user only.
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
    """FastMCP's guard against DNS rebinding in strict mode, with a cache of the headers that it has accepted."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(self._let_in, mode="strict")
        self._inside: Final = app
        self._known: Final[set[tuple[object, ...]]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or reject it with 421 (wrong Host) or 403 (wrong Origin)."""
        if scope["type"] == "http" and _cache_key(scope) in self._known:
            await self._inside(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    async def _let_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and len(self._known) < _REMEMBERED:
            self._known.add(_cache_key(scope))
        await self._inside(scope, receive, send)


def _cache_key(scope: Scope) -> tuple[object, ...]:
    """Get all parts of a request that the guard checks, as a cache key."""
    headers = (header for header in scope["headers"] if header[0] in (b"host", b"origin"))
    return (scope["scheme"], *(scope.get("server") or ()), *headers)


if TYPE_CHECKING:  # the command line imports this module too, and starts faster without Starlette
    from starlette.requests import Request

ACTOR: Final[ContextVar[Callable[[], Actor]]] = ContextVar("actor", default=lambda: EVERYONE)
"""Identifies the actor of the call in progress. Raises UnauthorizedError for wrong credentials. Set per request."""


class LocalToken:
    """The secret of a running server, in a file that only its own user can read. Removed when the server ends."""

    def __init__(self, data_dir: Path) -> None:
        self._path: Final = data_dir / TOKEN_FILE
        self._secret: Final = secrets.token_urlsafe(32)
        partial = data_dir / f".{TOKEN_FILE}.partial"
        try:
            partial.unlink(missing_ok=True)
            # Created with its mode and renamed when complete: nobody else can have it open, or read half of it.
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(self._secret)
            partial.replace(self._path)
        except OSError as error:
            raise StoreError(f"Cannot write the local token to {self._path}: {error.strerror or error}.") from error

    def actor(self, request: Request) -> Actor:
        """Identify the sender of `request`. Raises UnauthorizedError for invalid credentials."""
        header = request.headers.get("authorization")
        if header is None:
            return EVERYONE
        scheme, _, given = header.partition(" ")
        if scheme.lower() != "bearer":
            raise UnauthorizedError(
                f"Unsupported authorization scheme {scheme[:20]!r}. Send `Authorization: Bearer TOKEN`."
            )
        if not hmac.compare_digest(given.strip().encode(), self._secret.encode()):
            raise UnauthorizedError(
                f"Invalid token. The token is in the file {TOKEN_FILE!r} of the data directory and changes with each "
                "start of the server."
            )
        return HOLDER

    def remove(self) -> None:
        """Delete the file, unless another server has replaced it by its own."""
        if read_token(self._path.parent) == self._secret:
            self._path.unlink(missing_ok=True)


def read_token(data_dir: Path) -> str | None:
    """Read the token of the server that holds `data_dir`; None if there is no readable one."""
    try:
        return (data_dir / TOKEN_FILE).read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
