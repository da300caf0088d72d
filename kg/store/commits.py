"""What ``graph/prov`` keeps of each commit, and of where the store stands. Pure.

Who wants to know later what a commit changed finds what it added in the graphs that it touched. Of what it removed the
commit records the nodes and the properties, and of which nodes it changed what ``graph/prov`` says; as plain IRIs in
literals, so that nothing is linked to what is gone::

    <id/commit/{generation}> kg:removedCount n ; kg:removedNode "..." ; kg:removedProperty "..." ; kg:described "..."
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad, Store

from kg.errors import InvalidInputError
from kg.store.difference import canonicalize
from kg.store.protocol import Patch
from kg.vocabulary import KG, PROV, PROV_GRAPH, RDF, XSD, mint

HEAD: Final = mint("commit", "head")
HEAD_PROPERTIES: Final = frozenset({KG.generation, KG.quadCount, KG.graphCount})
"""What is replaced of the head by each commit, which no record mentions."""

MAX_NODES: Final = 10_000
"""Nodes of removed quads that a commit lists; one that removes more says no more than how many quads went."""

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


@dataclass(frozen=True, slots=True)
class Removal:
    """What a commit, or several, removed: the subjects and objects of the quads and their predicates.

    `described`: the nodes of which ``graph/prov`` says something else, or more, since.
    """

    nodes: frozenset[NamedNode] = frozenset()
    properties: frozenset[NamedNode] = frozenset()
    described: frozenset[NamedNode] = frozenset()

    def __or__(self, other: Removal) -> Removal:
        return Removal(self.nodes | other.nodes, self.properties | other.properties, self.described | other.described)


def commit_iri(generation: int) -> NamedNode:
    """Return the node of commit `generation`."""
    return mint("commit", str(generation))


def build_commit_record(
    generation: int, touched: Sequence[NamedNode], removed: Iterable[Quad] = (), patched: Patch | None = None
) -> list[Quad]:
    """Return what says that commit `generation` changed the graphs `touched`, now.

    `removed` is what it takes out of them, `patched` what it changes in ``graph/prov``.
    """
    node, patched = commit_iri(generation), patched or Patch()
    now = Literal(datetime.now(UTC).isoformat(timespec="milliseconds"), datatype=XSD.dateTime)
    gone = [*removed, *patched.remove]
    nodes = {quad.subject for quad in gone} | {quad.object for quad in gone if isinstance(quad.object, NamedNode)}
    said = [(KG.removedCount, Literal(len(gone)))]
    if len(nodes) <= MAX_NODES:
        said += [(KG.removedNode, _plain(each)) for each in nodes]
        said += [(KG.removedProperty, _plain(each)) for each in {quad.predicate for quad in gone}]
    described = {quad.subject for quad in (*patched.remove, *patched.add)}.difference(touched)
    said += [(KG.described, _plain(each)) for each in described]
    return [
        Quad(node, RDF.type, KG.Commit, PROV_GRAPH),
        Quad(node, KG.generation, Literal(generation), PROV_GRAPH),
        Quad(node, PROV.endedAtTime, now, PROV_GRAPH),
        *(Quad(node, KG.touched, graph, PROV_GRAPH) for graph in touched),
        *(Quad(node, predicate, value, PROV_GRAPH) for predicate, value in said),
    ]


def load_removal(store: Store, generation: int) -> Removal | None:
    """Return what commit `generation` removed; None where that is not recorded."""
    said: dict[NamedNode, set[str]] = {}
    for quad in store.quads_for_pattern(commit_iri(generation), None, None, PROV_GRAPH):
        if isinstance(quad.object, Literal):
            said.setdefault(quad.predicate, set()).add(quad.object.value)
    counts = said.get(KG.removedCount)
    if counts is None or (counts != {"0"} and KG.removedNode not in said):
        return None
    return Removal(
        *(
            frozenset(NamedNode(iri) for iri in said.get(predicate, ()))
            for predicate in (KG.removedNode, KG.removedProperty, KG.described)
        )
    )


def _plain(node: object) -> Literal:
    return Literal(str(node)[1:-1], datatype=XSD.anyURI)


def reduce_patch(store: Store, patch: Patch) -> Patch:
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
