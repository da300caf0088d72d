"""A triple stands in one content graph: the engine counts it once for each graph of the union (invariant I1). Pure.

What people write (``graph/user/...``, ``graph/cur/...``) *yields*: it may not repeat what stands elsewhere, and when a
loader asserts what it holds, its own copy goes in the same commit. What went is noted in ``graph/prov``::

    <id/cession/...> a kg:Cession ; rdf:subject s ; rdf:predicate p ; rdf:object o ;
      kg:cededBy <graph/user/...> ; kg:cededTo <graph/src/...> ; prov:wasGeneratedBy <id/commit/{generation}>
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from pyoxigraph import Literal, NamedNode, Quad, Store, Triple

from kg.errors import ConflictError
from kg.store import difference
from kg.store.difference import Delta
from kg.store.orphans import provenance_of
from kg.store.protocol import Patch
from kg.vocabulary import BASE, KG, PROV, PROV_GRAPH, RDF, SCHEMA, mint, sha256

USER: Final = BASE + "graph/user/"
CURATED: Final = BASE + "graph/cur/"
_SHOWN: Final = 3


def yields(graph: object) -> bool:
    """Say whether `graph` is one that people write, which yields to what loaders assert."""
    return isinstance(graph, NamedNode) and graph.value.startswith((USER, CURATED))


def refuse_copies(store: Store, deltas: Sequence[Delta]) -> None:
    """Raise ConflictError if a graph that yields would hold a triple of another content graph, or the text of a unit
    that has one already.
    """
    written = [delta for delta in deltas if yields(delta.graph)]
    found = [conflict for delta in written for conflict in islice(_copies(store, delta, deltas), _SHOWN + 1)]
    if found:
        shown = "; ".join(f"{line} stands in {graph}" for line, graph in found[:_SHOWN])
        more = "; and more" if len(found) > _SHOWN else ""
        raise ConflictError(
            f"a triple stands in one graph only, so that nothing is counted twice: {shown}{more}; leave it out here"
        )


def _copies(store: Store, delta: Delta, deltas: Sequence[Delta]) -> Iterator[tuple[str, NamedNode]]:
    others = {other.graph: other for other in deltas if other is not delta}
    for line, quad in delta.added.items():
        value = None if quad.predicate == SCHEMA.text else quad.object
        for held in store.quads_for_pattern(quad.subject, quad.predicate, value, None):
            graph = held.graph_name
            if not isinstance(graph, NamedNode) or graph in (delta.graph, PROV_GRAPH):
                continue
            if graph in others and _statement(held) in others[graph].removed:
                continue
            yield line, graph
            break
        else:
            yield from ((line, graph) for graph, other in others.items() if line in other.added)


@dataclass(frozen=True, slots=True)
class Cession:
    """What one graph loses, and which graph takes each statement."""

    delta: Delta
    takers: Mapping[str, NamedNode]


class Yielding:
    """What the graphs that yield speak of, kept beside the store: a commit that speaks of nothing of it costs nothing.

    It never forgets a subject, so it may hold more than there are.
    """

    def __init__(self, store: Store) -> None:
        self._subjects: set[object] = {
            quad.subject
            for graph in store.named_graphs()
            if yields(graph)
            for quad in store.quads_for_pattern(None, None, None, graph)
        }

    def follow(self, deltas: Sequence[Delta]) -> None:
        """Take in what has been written."""
        for delta in deltas:
            if yields(delta.graph):
                self._subjects.update(quad.subject for quad in delta.added.values())

    def cessions(self, store: Store, deltas: Sequence[Delta]) -> list[Cession]:
        """Return how graphs that yield lose what `deltas` add to others, and other texts of units that get a text."""
        written = {delta.graph for delta in deltas}
        taken: dict[NamedNode, dict[str, NamedNode]] = defaultdict(dict)
        for taker in deltas if self._subjects else ():
            if yields(taker.graph):
                continue
            for quad in taker.added.values():
                if quad.subject not in self._subjects:
                    continue
                value = None if quad.predicate == SCHEMA.text else quad.object
                for held in store.quads_for_pattern(quad.subject, quad.predicate, value, None):
                    graph = held.graph_name
                    if isinstance(graph, NamedNode) and yields(graph) and graph not in written:
                        taken[graph][_statement(held)] = taker.graph
        found = []
        for graph, takers in taken.items():
            held_there = difference.stored_statements(store, graph)
            wanted = {line: quad for line, quad in held_there.items() if line not in takers}
            if delta := difference.compare(graph, held_there, wanted):
                found.append(Cession(delta, takers))
        return found


def with_cessions(store: Store, described: Patch, ceded: Sequence[Cession], generation: int) -> Patch:
    """Return `described` with what ``graph/prov`` keeps of what was ceded in commit `generation`.

    The graph's content hash follows; a graph that has nothing left loses its description.
    """
    remove, add = set(described.remove), set(described.add)
    hashes: dict[NamedNode, str | None] = {}
    for cession in ceded:
        delta = cession.delta
        hashes[delta.graph] = delta.content_sha256
        for line, quad in delta.removed.items():
            node = mint("cession", sha256(f"{generation} {delta.graph} {line}")[:24])
            said: tuple[tuple[NamedNode, Any], ...] = (
                (RDF.type, KG.Cession),
                (RDF.subject, quad.subject),
                (RDF.predicate, quad.predicate),
                (RDF.object, quad.object),
                (KG.cededBy, delta.graph),
                (KG.cededTo, cession.takers[line]),
                (PROV.wasGeneratedBy, mint("commit", str(generation))),
            )
            add.update(Quad(node, predicate, value, PROV_GRAPH) for predicate, value in said)
    for graph, digest in hashes.items():
        if digest is None:
            remove |= provenance_of(store, [graph])
        elif old := set(store.quads_for_pattern(graph, KG.contentSha256, None, PROV_GRAPH)):
            remove |= old
            add.add(Quad(graph, KG.contentSha256, Literal(digest), PROV_GRAPH))
    return Patch(frozenset(remove), frozenset(add))


def _statement(quad: Quad) -> str:
    return str(Triple(quad.subject, quad.predicate, quad.object))
