"""Authentication: one layer of the application identifies the sender of each HTTP request, once.

The actor is the value of `SENDER` while the request is answered, in its tasks and threads. Nothing else reads the
credentials of a request. Every request with wrong ones is answered by 401, except for the paths that everybody may read
(`is_public`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from kg.access.actors import EVERYONE, Actor
from kg.errors import UnauthorizedError
from kg.knowledge_graph import SENDER
from kg.server.auth import LocalToken
from kg.server.problem_details import problem
from kg.text import quoted

_PUBLIC: Final = ("/login", "/static/", "/health/live", "/health/ready")
NOBODY: Final = Actor("nobody", frozenset())
"""The sender of a request without credentials, where accounts are configured and the path is public."""


@dataclass(frozen=True, slots=True)
class Accounts:
    """The credentials that a server accepts. Without `token` nobody is an admin."""

    token: LocalToken | None = None

    @property
    def required(self) -> bool:
        """Whether requests need credentials."""
        return False

    async def identify(self, request: Request) -> Actor:
        """Identify the sender of `request`. Raises UnauthorizedError for invalid credentials, and missing ones."""
        header = request.headers.get("authorization")
        if header is None:
            return EVERYONE
        scheme, _, given = header.partition(" ")
        if scheme.lower() != "bearer":
            raise UnauthorizedError(
                f"Unsupported authorization scheme {quoted(scheme)}. Send `Authorization: Bearer TOKEN`."
            )
        actor = self.find_holder(given.strip())
        if actor is None:
            raise UnauthorizedError(
                "Invalid token. The local token is in the file 'token' of the data directory and changes with each "
                "start of the server."
            )
        return actor

    def find_holder(self, secret: str) -> Actor | None:
        """Find the actor that holds a token; None for an unknown one."""
        return self.token.identify(secret) if self.token is not None else None


class Authentication:
    """An application whose requests have an actor: the value of `SENDER`."""

    def __init__(self, app: ASGIApp, accounts: Accounts) -> None:
        self._app: Final = app
        self._accounts: Final = accounts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of an actor, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        try:
            actor = await self._accounts.identify(request)
        except UnauthorizedError as error:
            if not is_public(scope["path"]):
                await problem(request, error)(scope, receive, send)
                return
            actor = NOBODY
        sender = SENDER.set(actor)
        try:
            await self._app(scope, receive, send)
        finally:
            SENDER.reset(sender)


def is_public(path: str) -> bool:
    """Return whether everybody may read a path: the page for signing in, its style sheet, the probe of the process."""
    return path in _PUBLIC or path.startswith("/static/")
