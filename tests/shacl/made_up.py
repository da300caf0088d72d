"""Fictional climate records."""

from __future__ import annotations

from pyoxigraph import Literal, NamedNode, Quad

from kg.vocabulary import DCTERMS, ELI, KG, RDF, SCHEMA, SKOS, mint, sha256

TEXT = "Every harbour of Nordmark shall measure its tides."


def graph_of(slug: str) -> NamedNode:
    return mint("graph", "src", "climate", slug)


def place(code: str) -> tuple[NamedNode, list[Quad]]:
    graph, iri = mint("graph", "ref", "place", code), mint("place", code)
    return graph, [Quad(iri, RDF.type, KG.Place, graph), Quad(iri, SKOS.notation, Literal(code), graph)]


def record(slug: str, passages: int = 2) -> tuple[NamedNode, list[Quad]]:
    graph, document = graph_of(slug), mint("document", slug)
    said = [
        (document, RDF.type, KG.PolicyDocument),
        (document, DCTERMS.title, Literal(f"The act {slug}")),
        (document, KG.slug, Literal(slug)),
        (document, DCTERMS.identifier, Literal(f"FICTION.{slug}")),
        (document, ELI.is_member_of, mint("family", slug)),
        (document, KG.corpusType, mint("code", "corpusType", "Legislative")),
        (document, SCHEMA.inLanguage, Literal("en")),
        (document, KG.jurisdiction, mint("place", "NMK")),
    ]
    for index in range(passages):
        passage = mint("passage", slug, str(index))
        said += [
            (passage, RDF.type, KG.Passage),
            (passage, DCTERMS.isPartOf, document),
            (passage, SCHEMA.position, Literal(index)),
            (passage, SCHEMA.text, Literal(TEXT)),
            (passage, KG.textSha256, Literal(sha256(TEXT))),
            (passage, KG.blockType, mint("code", "blockType", "Text")),
        ]
    return graph, [Quad(subject, predicate, value, graph) for subject, predicate, value in said]


def without(quads: list[Quad], predicate: NamedNode) -> list[Quad]:
    return [quad for quad in quads if quad.predicate != predicate]
