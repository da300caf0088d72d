"""The facts of a record that the search index has, in addition to its texts."""

from __future__ import annotations

from collections.abc import Mapping

from pyoxigraph import Literal

from kg.search.index_sync import SHOWN_PROPERTIES, GraphFacts, UnitFacts
from kg.vocabulary import DCTERMS, KG
from loaders.model import SourceDocument, SourceGraph


def find_facts(document: SourceDocument | SourceGraph, languages: Mapping[str, str]) -> GraphFacts:
    """Find the indexed facts of a record. `languages` are those derived from it, by text unit or document."""
    block_type, start, facts = KG.blockType, KG.start, GraphFacts(derived=languages)
    if isinstance(document, SourceDocument):
        if document.title:
            facts.add(document.iri, DCTERMS.title, Literal(document.title))
        for predicate, value in document.properties:
            facts.add(document.iri, predicate, value)
    else:
        for quad in document.quads:
            if quad.predicate in SHOWN_PROPERTIES:
                facts.add(*quad.triple)
    for unit in document.units:
        kind, is_cut = None, False
        for predicate, value in unit.properties:
            if predicate == block_type:
                kind = kind or value.value
            elif predicate == start:
                is_cut = True
            else:
                facts.add(unit.iri, predicate, value)
        parent = (unit.parent or unit.iri).value
        facts.units.append(UnitFacts(unit.iri.value, parent, unit.position, unit.text, kind, unit.language, is_cut))
    return facts
