"""What the protocols may write: the graphs of people, for whoever has the scope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyoxigraph import NamedNode, Triple

from kg.server.auth import ADMIN, WRITE, Actor
from kg.server.endpoint import UpdateRequest
from kg.user_graphs import UserGraphs


@dataclass(frozen=True, slots=True)
class CivicGraphs:
    """The `GraphWriter` of a knowledge graph, and its updates."""

    graphs: UserGraphs

    def put(self, graph: NamedNode | None, triples: Sequence[Triple], actor: Actor) -> bool:
        """Make `graph` hold exactly `triples`; return whether it is new."""
        actor.require(WRITE, "writing a graph")
        return self.graphs.put(graph, triples, actor.name)

    def post(self, graph: NamedNode | None, triples: Sequence[Triple], actor: Actor) -> bool:
        """Add `triples` to `graph`; return whether it is new."""
        actor.require(WRITE, "writing a graph")
        return self.graphs.post(graph, triples, actor.name)

    def create(self, triples: Sequence[Triple], actor: Actor) -> NamedNode:
        """Put `triples` into a graph of its own; return its name."""
        actor.require(WRITE, "writing a graph")
        return self.graphs.create(triples, actor.name)

    def delete(self, graph: NamedNode | None, actor: Actor) -> None:
        """Remove `graph`. Raises NotFoundError where there is none."""
        actor.require(WRITE, "removing a graph")
        self.graphs.delete(graph, actor.name)

    def update(self, request: UpdateRequest, actor: Actor) -> int:
        """Run an update; return the generation that it made."""
        actor.require(ADMIN, "an update")
        return self.graphs.update(request.text, request.default_graphs, request.named_graphs, actor.name)
