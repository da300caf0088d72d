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

TOKEN_HINT: Final = "Send the local token (the file 'token' in the data directory) as `Authorization: Bearer TOKEN`."  # noqa: S105


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
        """Whether the sender has no account: every process on this machine, and requests without credentials."""
        return self == EVERYONE or not self.scopes

    def require(self, scope: str, action: str) -> None:
        """Raise ForbiddenError unless this actor has `scope`. `action` names the operation in the message."""
        if scope not in self.scopes:
            raise ForbiddenError(
                f"{action[:1].upper()}{action[1:]} requires the scope {scope!r}. {self.name} has: "
                f"{', '.join(sorted(self.scopes))}. {TOKEN_HINT}"
            )


EVERYONE: Final = Actor("local", frozenset({READ, SEARCH, SPARQL, WRITE}))
"""Every process on this machine: the server binds loopback only."""
HOLDER: Final = Actor("local-admin", frozenset(SCOPES))
"""The holder of the local token."""

AUTHOR: Final[ContextVar[Actor | None]] = ContextVar("author", default=None)
"""The actor of the tool call in progress, which limits what it may replace (`kg.provenance.permissions`). None: the
program of the operator writes, such as the command line or a watcher."""
