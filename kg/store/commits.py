"""What ``graph/prov`` keeps of each commit, and of where the store stands. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad, Store

from kg.errors import InvalidInputError
from kg.store.difference import canonicalize
from kg.store.protocol import Patch
from kg.vocabulary import KG, PROV, PROV_GRAPH, RDF, XSD, mint

HEAD: Final = mint("commit", "head")
_COMMITS: Final = str(HEAD).removesuffix("head>")


@dataclass(frozen=True, slots=True)
class Head:
    """Where the store stands: replaced as a whole by each commit."""

    generation: int = 0
    quads: int = 0
    graphs: int = 0

    def as_quads(self) -> list[Quad]:
        """Return the head's own quads, which stand for the state after they are written."""
        counts = (KG.generation, self.generation), (KG.quadCount, self.quads), (KG.graphCount, self.graphs)
        return [Quad(HEAD, predicate, Literal(count), PROV_GRAPH) for predicate, count in counts]


def commit_record(generation: int, touched: Iterable[NamedNode]) -> list[Quad]:
    """Return what says that commit `generation` changed the graphs `touched`, now."""
    node = mint("commit", str(generation))
    now = Literal(datetime.now(UTC).isoformat(timespec="milliseconds"), datatype=XSD.dateTime)
    return [
        Quad(node, RDF.type, KG.Commit, PROV_GRAPH),
        Quad(node, KG.generation, Literal(generation), PROV_GRAPH),
        Quad(node, PROV.endedAtTime, now, PROV_GRAPH),
        *(Quad(node, KG.touched, graph, PROV_GRAPH) for graph in touched),
    ]


def effective(store: Store, patch: Patch) -> Patch:
    """Return what `patch` really changes in ``graph/prov``: what stands in both its halves is put in."""
    remove, add = frozenset(canonicalize(patch.remove)), frozenset(canonicalize(patch.add))
    for quad in remove | add:
        if quad.graph_name != PROV_GRAPH:
            raise InvalidInputError(f"`describe` changes {PROV_GRAPH} alone, not {quad.graph_name}: {quad}")
        if quad.subject == HEAD or str(quad.subject).startswith(_COMMITS):
            raise InvalidInputError(f"{quad.subject} is a record of the store's own and cannot be changed")
    return Patch(
        frozenset(quad for quad in remove - add if quad in store),
        frozenset(quad for quad in add if quad not in store),
    )
