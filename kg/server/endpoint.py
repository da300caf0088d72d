"""What the SPARQL Protocol and the Graph Store Protocol are served over: a dataset, and what may be done to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pyoxigraph import NamedNode, Triple
from starlette.requests import Request

from kg.queries.pool import QueryPool
from kg.server.auth import Actor
from kg.server.fair_limiter import Turns
from kg.settings import Settings


@dataclass(frozen=True, slots=True)
class UpdateRequest:
    """A SPARQL Update, with the dataset that its WHERE clauses are asked of (``using-graph-uri`` and its like)."""

    text: str
    default_graphs: tuple[NamedNode, ...] = ()
    named_graphs: tuple[NamedNode, ...] = ()


class GraphWriter(Protocol):
    """Writes whole graphs; None names the default graph. Calls block. Blank nodes may occur in what is written.

    Each raises ForbiddenError for a graph that is not the caller's to write, ShapesViolatedError, ConflictError, and
    what the store raises; then nothing has changed.
    """

    def put(self, graph: NamedNode | None, triples: Sequence[Triple], actor: Actor) -> bool:
        """Make `graph` hold exactly `triples`; return whether it is new."""
        ...

    def post(self, graph: NamedNode | None, triples: Sequence[Triple], actor: Actor) -> bool:
        """Add `triples` to `graph`; return whether it is new."""
        ...

    def create(self, triples: Sequence[Triple], actor: Actor) -> NamedNode:
        """Put `triples` into a graph of its own; return its name."""
        ...

    def delete(self, graph: NamedNode | None, actor: Actor) -> None:
        """Remove `graph`. Raises NotFoundError where there is none."""
        ...


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One dataset as it is served. `union`: its default graph is the union of all graphs."""

    settings: Settings
    pool: QueryPool
    generation: Callable[[], int]
    """The newest generation of the store: an answer speaks of it or of a later one."""
    actor: Callable[[Request], Actor]
    graphs: GraphWriter
    update: Callable[[UpdateRequest, Actor], int] | None
    """Runs an update and returns the generation it made; None: this endpoint takes none."""
    expand: Callable[[str, float | None], str] = lambda query, timeout_s: query
    """Replaces the SERVICE clauses that are answered here (`kg:search`, allowed endpoints) by their results, within
    seconds (None: those of the setting). Blocks."""
    union: bool = True
    services: tuple[NamedNode, ...] = ()
    """The services that a query may name and that are answered here, from what is here (`kg:search`)."""
    reading: Turns = field(default_factory=lambda: Turns(at_once=4, per_client=2, waiting=32))
    """Where texts are read that take long to read."""
