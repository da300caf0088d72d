"""A source document as quads: the one graph of its record, ready for the gate and the commit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from pyoxigraph import Literal, NamedNode, Quad

from kg.vocabulary import DCTERMS, KG, RDF, SCHEMA, mint, sha256
from loaders.model import SourceDocument, SourceGraph, TextUnit


def graph_of(document: SourceDocument | SourceGraph) -> NamedNode:
    """Return the name of the graph that holds the record: ``graph/src/{domain}/{key}``."""
    return mint("graph", "src", document.domain, *document.key)


def quads(document: SourceDocument | SourceGraph) -> list[Quad]:
    """Return the quads of the record, without those of the graphs that it shares with others."""
    graph = graph_of(document)
    if isinstance(document, SourceGraph):
        return [*document.quads, *_units(document.units, graph)] if document.units else list(document.quads)
    iri = document.iri
    result = [Quad(iri, RDF.type, kind, graph) for kind in document.kinds]
    result.append(Quad(iri, DCTERMS.title, Literal(document.title), graph))
    result += [Quad(iri, predicate, value, graph) for predicate, value in document.properties]
    return result + _units(document.units, graph)


def _units(units: Sequence[TextUnit], graph: NamedNode) -> list[Quad]:
    result = []
    type_, part_of, position = RDF.type, DCTERMS.isPartOf, SCHEMA.position
    text, text_sha256, language = SCHEMA.text, KG.textSha256, SCHEMA.inLanguage
    for unit in units:
        subject = unit.iri
        result.append(Quad(subject, type_, unit.kind, graph))
        if unit.parent is not None:
            result.append(Quad(subject, part_of, unit.parent, graph))
        result.append(Quad(subject, position, Literal(unit.position), graph))
        result.append(Quad(subject, text, Literal(unit.text), graph))
        result.append(Quad(subject, text_sha256, Literal(sha256(unit.text)), graph))
        if unit.language is not None:
            result.append(Quad(subject, language, _plain(unit.language), graph))
        for predicate, value in unit.properties:
            result.append(Quad(subject, predicate, value, graph))
    return result


@lru_cache(maxsize=1024)
def _plain(text: str) -> Literal:
    return Literal(text)
