"""Authorization: one layer of the application asks the policies about each HTTP request, by its path and method.

It is the innermost layer, behind authentication. Calls of tools and SPARQL are decided where their arguments are known
(`DECIDED_LATER`). A sender who may read a part of the data gets only what answers about that part
(`kg.tools.audiences`): every path that is not listed as such is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from kg.errors import ForbiddenError, QuadciteError
from kg.knowledge_graph import SENDER, KnowledgeGraph
from kg.tools.decisions import require_endpoint
from kg.tools.mounts import MOUNTS

READING: Final = ("GET", "HEAD")

DECIDED_LATER: Final = frozenset({"/sparql", "/tools", "/logout", *MOUNTS})
"""Paths whose requests are decided by their arguments, with ``/tools/NAME``."""

PATHS: Final[tuple[tuple[str, str, str], ...]] = (
    ("/sparql/check/", "sparql.check", "sparql.check"),
    ("/sparql/queries/", "sparql.list", "sparql.cancel"),
    ("/sparql/", "pages.sparql", "pages.sparql"),
    ("/graphs/", "graphs.read", "graphs.write"),
    ("/shacl/", "shacl.validate", "shacl.validate"),
    ("/admin/query/", "admin.query", "admin.query"),
    ("/admin/snapshot/", "admin.snapshot", "admin.snapshot"),
    ("/admin/state/", "admin.state", "admin.state"),
    ("/admin/", "admin.backups", "admin.backups"),
    ("/metrics/", "metrics.read", "metrics.read"),
    ("/health/", "health.read", "health.read"),
    ("/v1/", "connectors.list", "connectors.list"),
    ("/search/", "pages.search", "pages.search"),
    ("/", "pages.read", "pages.read"),
)
"""The actions of requests that read, and of others, by the beginning of the path. The first one counts."""


class Authorization:
    """An application whose requests are allowed by the policies of `kg`.

    `is_public` finds paths that need no right, `refuse` builds the response to a request that is not allowed.
    """

    def __init__(
        self,
        app: ASGIApp,
        kg: KnowledgeGraph,
        is_public: Callable[[str], bool],
        refuse: Callable[[Request, QuadciteError], Response],
    ) -> None:
        self._app: Final = app
        self._refuse: Final = refuse
        self._kg: Final = kg
        self._is_public: Final = is_public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that is allowed, or refuse it."""
        if scope["type"] == "http" and scope["method"] != "OPTIONS" and not self._is_public(scope["path"]):
            action = find_action(scope["path"], scope["method"])
            if action is not None:
                try:
                    require_endpoint(self._kg, SENDER.get(), action)
                except ForbiddenError as error:
                    await self._refuse(Request(scope), error)(scope, receive, send)
                    return
        await self._app(scope, receive, send)


def find_action(path: str, method: str) -> str | None:
    """Find the action of a request; None if its arguments decide which one it is."""
    if path in DECIDED_LATER or (path.startswith("/tools/") and "/" not in path.removeprefix("/tools/")):
        return None
    _, reading, other = next(each for each in PATHS if f"{path}/".startswith(each[0]))
    return reading if method in READING else other
