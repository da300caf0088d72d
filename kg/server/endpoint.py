"""The dataset behind the SPARQL and Graph Store protocols: query pool, writer, updates, limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from pyoxigraph import NamedNode, Triple
from starlette.requests import Request

from kg.access.actors import Actor
from kg.access.endpoints import require_scope
from kg.knowledge_graph import SENDER
from kg.provenance.permissions import Method
from kg.queries.pool import QueryPool
from kg.server.fair_limiter import FairLimiter
from kg.settings import Settings
from kg.store.payloads import Payload
from kg.tools.audiences import Audience

Triples = Sequence[Triple] | Payload

_WRITE_PATIENCE_S: Final = 60.0
"""Maximum seconds that a write waits for others."""


class GraphWriter(Protocol):
    """Writes whole graphs; None names the default graph. Calls block.

    The triples may contain blank nodes, or are a payload for that graph, without blank nodes.

    Each method raises ForbiddenError for a graph that the actor may not write, ShapesViolatedError, ConflictError, and
    errors of the store. In each case nothing has changed.
    """

    def put(self, graph: NamedNode | None, triples: Triples, actor: Actor) -> bool:
        """Replace the content of `graph` by `triples` and return whether it is new."""
        ...

    def post(self, graph: NamedNode | None, triples: Triples, actor: Actor) -> bool:
        """Add `triples` to `graph` and return whether it is new."""
        ...

    def create(self, triples: Triples, actor: Actor) -> NamedNode:
        """Put `triples` into a new graph and return its name."""
        ...

    def delete(self, graph: NamedNode | None, actor: Actor) -> None:
        """Remove `graph`. Raises NotFoundError if it does not exist."""
        ...


Update = Callable[[str, Sequence[NamedNode], Sequence[NamedNode], Actor], int]
"""Runs a SPARQL Update over the default and named graphs given (``using-graph-uri``, ``using-named-graph-uri``; empty:
those of the update itself) for an actor, and returns the generation of its commit."""


class EndpointLimiters:
    """The limiter of each kind of work of an endpoint: calls at a time, of one client, and those of one that wait."""

    def __init__(self) -> None:
        self.reading: Final = FairLimiter(4, 2, 32, kind="reading")
        """Parsing of long query texts."""
        self.expanding: Final = FairLimiter(8, 4, 32, kind="expanding")
        """Expansion of SERVICE clauses."""
        self.parsing: Final = FairLimiter(2, 2, 32, patience_s=_WRITE_PATIENCE_S, kind="parsing")
        """Large RDF documents, which are parsed, compared and written by processes."""
        self.writing: Final = FairLimiter(4, 3, 32, patience_s=_WRITE_PATIENCE_S, kind="writing")
        """Other writes of graphs."""
        self.updating: Final = FairLimiter(1, 1, 32, patience_s=_WRITE_PATIENCE_S, kind="updating")
        """Updates: the store runs one at a time."""

    def list_all(self) -> list[FairLimiter]:
        """List all of them."""
        return [self.reading, self.expanding, self.parsing, self.writing, self.updating]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One served dataset. `union`: its default graph is the union of all graphs."""

    settings: Settings
    pool: QueryPool
    generation: Callable[[], int]
    """The newest generation of the store. Responses are based on it or on a later one."""
    graphs: GraphWriter
    update: Update | None
    """None: this endpoint is read-only."""
    actor: Callable[[Request], Actor] = lambda request: SENDER.get()
    """Who sent a request."""
    permit: Callable[[Actor, str], None] = require_scope
    """Raises ForbiddenError unless a sender may do an action (`kg.access.endpoints`)."""
    permit_write: Callable[[NamedNode | None, Method, Actor], object] = lambda graph, method, actor: None
    """Raises ForbiddenError unless a sender may write a graph by a method; None: the default graph."""
    is_restricted: Callable[[], bool] = lambda: False
    """Whether the sender of the request may read a part of the graphs only."""
    find_audience: Callable[[], Audience | None] = lambda: None
    """Finds the graphs that the sender of the request may read; None: all. Blocks."""
    expand: Callable[[str, float | None], str] = lambda query, timeout_s: query
    """Replaces the SERVICE clauses that the server answers itself (`kg:search`, allowed endpoints) by their results,
    within a timeout in seconds (None: the setting's). Blocks."""
    require_writable: Callable[[], None] = lambda: None
    """Raises StoreError if writes are refused now, so that no payload is read for nothing. Blocks."""
    union: bool = True
    services: tuple[NamedNode, ...] = ()
    """The services that the server answers from its own data (`kg:search`)."""
    limiters: EndpointLimiters = field(default_factory=EndpointLimiters)
