"""Finds the summaries of sections that a load removes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pyoxigraph import NamedNode, Quad

from kg.provenance.load_records import Derived, RecordOrigin
from kg.sparql.terms import bind
from kg.store.protocol import Store, named_node, select
from kg.vocabulary import SOURCED, iri_prefix

GRAPHS_OF: Final = """
SELECT ?graph ?section WHERE { VALUES ?section { $sections } GRAPH ?graph { ?summary kg:summaryOf ?section } }"""

_OF_SECTIONS: Final = SOURCED + "zoning/"
_SECTIONS: Final = iri_prefix("section")


def find_withdrawn(store: Store, replace: Mapping[NamedNode, Sequence[Quad]]) -> Derived:
    """Find the summaries of sections whose graphs are about to be removed. Each maps to an empty graph."""
    removed = [graph for graph, quads in replace.items() if not quads and graph.value.startswith(_OF_SECTIONS)]
    if not removed:
        return {}
    sections = {f"{_SECTIONS}{graph.value.removeprefix(_OF_SECTIONS)}": graph for graph in removed}
    rows = select(store.query_sources, bind(GRAPHS_OF, sections=[*map(NamedNode, sections)]))
    return {
        named_node(row["graph"]): ((), RecordOrigin("", (), (sections[named_node(row["section"]).value],)))
        for row in rows
    }
