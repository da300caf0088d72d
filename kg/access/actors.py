"""Actors: the senders of requests, each with a name and the scopes that determine permissions."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from kg.errors import ForbiddenError

READ: Final = "read"
SEARCH: Final = "search"
SPARQL: Final = "sparql"
WRITE: Final = "write"
CURATE: Final = "curate"
ADMIN: Final = "admin"
SCOPES: Final = (READ, SEARCH, SPARQL, WRITE, CURATE, ADMIN)

TOKEN_HINT: Final = (
    "Send a token with this scope as `Authorization: Bearer TOKEN`. `kg token new NAME --scopes LIST` makes one. On "  # noqa: S105
    "the server's machine the local token, the file 'token' in the data directory, has all scopes."
)


@dataclass(frozen=True, slots=True)
class Actor:
    """The sender of a request: the name that is recorded with their writes, their scopes, groups and claims."""

    name: str
    scopes: frozenset[str]
    groups: frozenset[str] = frozenset()
    claims: Mapping[str, str | bool | int | tuple[str, ...]] = field(default_factory=dict, hash=False)
    """Claims of the issuer of a token about them: those that the operator named."""

    @property
    def is_anonymous(self) -> bool:
        """Whether the sender has no account: their request has no credentials."""
        return self == EVERYONE or not self.scopes

    def require(self, scope: str, action: str) -> None:
        """Raise ForbiddenError unless this actor has `scope`. `action` names the operation in the message."""
        if scope not in self.scopes:
            raise ForbiddenError(
                f"{action[:1].upper()}{action[1:]} requires the scope {scope!r}. {self.name} has: "
                f"{', '.join(sorted(self.scopes))}. {TOKEN_HINT}"
            )


EVERYONE: Final = Actor("local", frozenset({READ, SEARCH, SPARQL, WRITE}))
"""The sender of a request without credentials, where no accounts are configured."""
HOLDER: Final = Actor("local-admin", frozenset(SCOPES))
"""The holder of the local token."""

AUTHOR: Final[ContextVar[Actor | None]] = ContextVar("author", default=None)
"""The actor of the tool call in progress, which limits what it may replace (`kg.provenance.permissions`). None: the
program of the operator writes, such as the command line or a watcher."""
