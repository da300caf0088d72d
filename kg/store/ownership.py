"""A triple stands in one content graph: the engine counts it once for each graph of the union (invariant I1). Pure.

What people write (``graph/user/...``, ``graph/cur/...``) *yields*: it may not repeat what stands elsewhere, and when a
loader asserts what it holds, its own copy goes in the same commit. What went is noted in ``graph/prov``::

    <id/cession/...> a kg:Cession ; rdf:subject s ; rdf:predicate p ; rdf:object o ;
      kg:cededBy <graph/user/...> ; kg:cededTo <graph/src/...> ; prov:wasGeneratedBy <id/commit/{generation}>
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
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


def cessions(store: Store, deltas: Sequence[Delta], yielding: Collection[NamedNode]) -> list[Cession]:
    """Return how each graph in `yielding` loses what `deltas` add elsewhere."""
    written = {delta.graph for delta in deltas}
    takers = [delta for delta in deltas if delta.added and not yields(delta.graph)]
    found = []
    for graph in (graph for graph in yielding if takers and graph not in written):
        taken = {line: taker.graph for taker in takers for line in _taken(store, taker, graph)}
        if taken:
            held = difference.stored_statements(store, graph)
            delta = difference.compare(graph, held, {line: quad for line, quad in held.items() if line not in taken})
            if delta is not None:
                found.append(Cession(delta, taken))
    return found


def _taken(store: Store, taker: Delta, graph: NamedNode) -> Iterator[str]:
    """Yield the statements of `graph` that `taker` adds, and other texts of units that it gives a text."""
    for line, quad in taker.added.items():
        if quad.predicate == SCHEMA.text:
            yield from map(_statement, store.quads_for_pattern(quad.subject, quad.predicate, None, graph))
        elif Quad(quad.subject, quad.predicate, quad.object, graph) in store:
            yield line


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
