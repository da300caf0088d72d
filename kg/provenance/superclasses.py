"""Superclasses: each text unit is a `kg:TextUnit`, and each document a `kg:Document`, in addition to its own class.

The ontology declares the hierarchy. SPARQL without a reasoner does not follow it, and a path over ``rdfs:subClassOf*``
is slow, so the superclass of each entity is a triple in one inferred graph, `SUPERCLASS_GRAPH`. Only the two anchor
classes are inferred: one quad per text unit and document. They follow the differences of each commit in the same
transaction (`kg.provenance.shipped`), so that a superclass comes and goes with the class that it follows from. Nothing
follows from graphs that people write, so that tools which read only what sources say may read the inferred graph too.
These quads are not content: no commit record, statistic or result of a commit counts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

import pyoxigraph
from pyoxigraph import NamedNode, Quad

from kg.ontology import get_ancestors, load_declared_terms
from kg.provenance.load_records import Rule
from kg.sparql.terms import bind
from kg.store.difference import Delta
from kg.store.ownership import is_user_graph
from kg.store.protocol import Patch, Query, Term, named_node, select
from kg.vocabulary import KG, PROV_GRAPH, RDF, SUPERCLASS_GRAPH, UNCOUNTED_GRAPHS

ANCHORS: Final = (KG.TextUnit, KG.Document)
"""The superclasses that are inferred."""

SUPERCLASS: Final = Rule("superclass", "1", "what has a class has the superclass that the ontology declares for it")

PREMISES: Final = """
SELECT DISTINCT ?class ?graph WHERE {
  VALUES ?class { $classes } GRAPH ?graph { $subject a ?class }
}"""


@cache
def load_hierarchy() -> Mapping[Any, tuple[NamedNode, ...]]:
    """Load the anchors above each class that has any."""
    found = {}
    for iri, term in load_declared_terms().items():
        above = get_ancestors(iri) if term.kind == "class" else ()
        if anchors := tuple(anchor for anchor in ANCHORS if anchor.value in above):
            found[NamedNode(iri)] = anchors
    return found


def get_subclasses(anchor: Term) -> list[NamedNode]:
    """Get the classes below `anchor`, direct and indirect, sorted."""
    return sorted((name for name, above in load_hierarchy().items() if anchor in above), key=str)


_TYPE: Final = f" {RDF.type}"


@cache
def _get_class_names() -> frozenset[str]:
    """Return the anchors and the classes below one, as they end a statement."""
    return frozenset(f" {name}" for name in (*load_hierarchy(), *ANCHORS))


def _find_classes(statements: Mapping[str, Quad]) -> list[Quad]:
    """Find the statements that give something a class below an anchor, or an anchor itself.

    Reading the end of the text takes a fourth of the time that reading the terms of a quad takes.
    """
    names = _get_class_names()
    return [
        quad
        for line, quad in statements.items()
        if line[-1] == ">" and line[(at := line.rfind(" ")) :] in names and line.endswith(_TYPE, 0, at)
    ]


def find_affected_superclasses(
    store: pyoxigraph.Store, deltas: Sequence[Delta], patch: Patch
) -> tuple[set[Quad], set[Quad]]:
    """Find the superclasses before and after `deltas`, which are not written yet, of what they affect."""
    hierarchy = load_hierarchy()
    content = [delta for delta in deltas if is_premise(delta.graph)]
    gone = [quad for delta in content for quad in _find_classes(delta.removed)]
    come = [quad for delta in content for quad in _find_classes(delta.added)]
    # What lost a class, or is said to be an anchor itself, is decided by all of its classes.
    unclear = {quad.subject for quad in gone} | {quad.subject for quad in come if quad.object in ANCHORS}
    held: set[Quad] = set()
    classes: dict[Any, set[tuple[object, object]]] = {subject: set() for subject in unclear}
    for subject in unclear:
        for quad in store.quads_for_pattern(subject, RDF.type, None, None):
            if is_premise(quad.graph_name):
                classes[subject].add((quad.graph_name, quad.object))
            elif quad.graph_name == SUPERCLASS_GRAPH:
                held.add(quad)
    for quad in gone:
        classes[quad.subject].discard((quad.graph_name, quad.object))
    wanted: set[Quad] = set()
    for quad in come:
        subject = quad.subject
        if subject in unclear:
            classes[subject].add((quad.graph_name, quad.object))
        else:
            wanted.update(Quad(subject, RDF.type, anchor, SUPERCLASS_GRAPH) for anchor in hierarchy[quad.object])
    for subject, stated in classes.items():
        names = {name for _, name in stated}
        above = {anchor for name in names for anchor in hierarchy.get(name, ())} - names
        wanted.update(Quad(subject, RDF.type, anchor, SUPERCLASS_GRAPH) for anchor in above)
    return held, wanted


def infer_all(store: pyoxigraph.Store) -> Iterator[Quad]:
    """Yield the content of `SUPERCLASS_GRAPH` for the whole store."""
    for anchor in ANCHORS:
        asserted = {
            quad.subject
            for quad in store.quads_for_pattern(None, RDF.type, anchor, None)
            if is_premise(quad.graph_name)
        }
        for name in get_subclasses(anchor):
            for quad in store.quads_for_pattern(None, RDF.type, name, None):
                if quad.subject not in asserted and is_premise(quad.graph_name):
                    yield Quad(quad.subject, RDF.type, anchor, SUPERCLASS_GRAPH)


def load_premises(query: Query, subject: NamedNode, anchor: Term) -> list[tuple[NamedNode, NamedNode]]:
    """Load the classes from which the superclass `anchor` of `subject` follows, each with the graph that has it."""
    classes = get_subclasses(anchor)
    rows = select(query, bind(PREMISES, classes=classes, subject=subject)) if classes else ()
    found = {(named_node(row["class"]), named_node(row["graph"])) for row in rows}
    return sorted((pair for pair in found if is_premise(pair[1])), key=str)


def is_premise(graph: object) -> bool:
    """Return whether anything is inferred from `graph`: not from provenance, nor from a graph that people write."""
    return graph not in UNCOUNTED_GRAPHS and graph != PROV_GRAPH and not is_user_graph(graph)
