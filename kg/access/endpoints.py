"""The endpoints of the server that are no tools, each with the scope that the default policies require."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kg.access.actors import ADMIN, READ, SEARCH, SPARQL, WRITE, Actor

ENDPOINTS: Final[Mapping[str, str | None]] = {
    "admin.backups": ADMIN,
    "admin.query": ADMIN,
    "admin.snapshot": ADMIN,
    "admin.state": ADMIN,
    "connectors.list": READ,
    "graphs.read": READ,
    "graphs.write": None,
    "health.read": READ,
    "metrics.read": READ,
    "pages.read": READ,
    "pages.search": SEARCH,
    "pages.sparql": SPARQL,
    "resources.read": READ,
    "shacl.validate": READ,
    "sparql.cancel": WRITE,
    "sparql.check": SPARQL,
    "sparql.describe": READ,
    "sparql.list": READ,
    "sparql.query": SPARQL,
    "sparql.update": ADMIN,
    "tools.list": READ,
}
"""The names of actions. `sparql.describe` is the service description, `sparql.list` the list of running queries,
`resources.read` the resources of MCP. `graphs.write` requires no scope: the graph that is written decides
(`kg.provenance.permissions`)."""


def require_scope(actor: Actor, action: str) -> None:
    """Raise ForbiddenError unless `actor` has the scope that the default policies require, if any."""
    if (scope := ENDPOINTS[action]) is not None:
        actor.require(scope, f"the action {action!r}")
