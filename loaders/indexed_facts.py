"""The facts of a record that the search index has, in addition to its texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from pyoxigraph import Literal, NamedNode, Quad

from kg.search.index_sync import DERIVED_CODES, SHOWN_PROPERTIES, DerivedCodes, GraphFacts, UnitFacts
from kg.vocabulary import DCTERMS, KG, RDF
from loaders.model import SourceDocument, SourceGraph


def find_derived(graphs: Mapping[NamedNode, Sequence[Quad]]) -> DerivedCodes:
    """Find the codes, and languages, that these graphs derive for documents and text units."""
    found: dict[str, dict[NamedNode, list[str]]] = defaultdict(lambda: defaultdict(list))
    for graph, quads in graphs.items():
        names = {name for name, family in DERIVED_CODES.items() if graph.value.startswith(family)}
        for quad in quads if names else ():
            subject, predicate, value = quad.triple
            if predicate in names and isinstance(value, NamedNode | Literal):
                found[subject.value][predicate].append(value.value)
    return found


def find_facts(document: SourceDocument | SourceGraph, derived: DerivedCodes) -> GraphFacts:
    """Find the indexed facts of a record. `derived` are codes and languages, by text unit or document."""
    block_type, start, facts = KG.blockType, KG.start, GraphFacts(derived=derived)
    if isinstance(document, SourceDocument):
        if document.title:
            facts.add(document.iri, DCTERMS.title, Literal(document.title))
        for class_ in document.kinds:
            facts.add(document.iri, RDF.type, class_)
        for predicate, value in document.properties:
            facts.add(document.iri, predicate, value)
    else:
        for quad in document.quads:
            if quad.predicate in SHOWN_PROPERTIES:
                facts.add(*quad.triple)
    for unit in document.units:
        facts.add(unit.iri, RDF.type, unit.kind)
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
