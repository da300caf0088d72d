"""The graph of the properties of Wikidata that ship with Quadcite, without those that the store describes itself.

A property is in `PROPERTIES_GRAPH` with its names and predicates (`kg.wikidata_properties`) until a source describes
it: then only the source does. A triple that another graph has too is left out, so that no triple is counted twice. The
graph is maintained like the inferred graphs: the shipped description of a property comes and goes in the transaction of
a commit. People cannot displace one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import pyoxigraph
from pyoxigraph import NamedNode, Quad

from kg.provenance.load_records import Rule
from kg.provenance.superclasses import is_premise
from kg.store.difference import Delta
from kg.store.protocol import Patch
from kg.vocabulary import PROPERTIES_GRAPH, PROV_GRAPH, RDF, WD, WIKIBASE
from kg.wikidata_properties import load_properties

NAMES: Final = Rule(
    "wikidata-properties", "1", "a property of Wikidata that no source describes has the names that ship with Quadcite"
)

_SUBJECT: Final = f"<{WD.iri}P"
"""Start of the statements about properties of Wikidata."""
_IS_PROPERTY: Final = f" {RDF.type} {WIKIBASE.Property}"


def find_affected_properties(
    store: pyoxigraph.Store, deltas: Sequence[Delta], patch: Patch
) -> tuple[set[Quad], set[Quad]]:
    """Find the shipped quads before and after `deltas`, which are not written yet, of the properties they describe."""
    held: set[Quad] = set()
    wanted: set[Quad] = set()
    for name, (come, gone) in _find_changes(deltas).items():
        node = NamedNode(name[1:-1])
        wanted |= _build(store, node, come, gone)
        held.update(store.quads_for_pattern(node, None, None, PROPERTIES_GRAPH))
    return held, wanted


def infer_all_properties(store: pyoxigraph.Store) -> Iterator[Quad]:
    """Yield the content of `PROPERTIES_GRAPH` for the whole store."""
    for each in load_properties().values():
        if any(quad.graph_name != PROPERTIES_GRAPH for quad in store.quads_for_pattern(each.node, None, None, None)):
            yield from _build(store, each.node, (), ())
        else:
            yield from (Quad(each.node, predicate, value, PROPERTIES_GRAPH) for predicate, value in each.describe())


Changes = Collection[tuple[NamedNode, str]]
"""Statements about one property that are added or removed, each with its graph."""


def _find_changes(deltas: Sequence[Delta]) -> Mapping[str, tuple[Changes, Changes]]:
    """Find the statements about known properties that other graphs gain and lose, by the name of the property."""
    found: dict[str, tuple[set[tuple[NamedNode, str]], set[tuple[NamedNode, str]]]] = {}
    for delta in deltas:
        if delta.graph in (PROPERTIES_GRAPH, PROV_GRAPH):
            continue
        for side, lines in enumerate((delta.added, delta.removed)):
            for line in lines:
                if line.startswith(_SUBJECT):
                    name = line[: line.index(" ")]
                    if name[len(_SUBJECT) - 1 : -1] in load_properties():
                        found.setdefault(name, (set(), set()))[side].add((delta.graph, line))
    return found


def _build(store: pyoxigraph.Store, node: NamedNode, come: Changes, gone: Changes) -> set[Quad]:
    """Build the shipped description of a property, without what other graphs have after the changes."""
    elsewhere = set(come)
    for quad in store.quads_for_pattern(node, None, None, None):
        graph = quad.graph_name
        if isinstance(graph, NamedNode) and graph not in (PROPERTIES_GRAPH, PROV_GRAPH):
            elsewhere.add((graph, str(quad.triple)))
    elsewhere -= set(gone)
    if any(is_premise(graph) for graph, line in elsewhere if line.endswith(_IS_PROPERTY)):
        return set()
    said = load_properties()[node.value.removeprefix(WD.iri)].describe()
    quads = [Quad(node, predicate, value, PROPERTIES_GRAPH) for predicate, value in said]
    lines = {line for _, line in elsewhere}
    return {quad for quad in quads if str(quad.triple) not in lines}
