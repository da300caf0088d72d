"""Concepts are read again after commits that change them or the languages of documents, and after no others."""

from __future__ import annotations

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.concept_index import load_concepts
from kg.vocabulary import DCTERMS, KG, RDF, SCHEMA, SKOS, mint

CONCEPT, OTHER = mint("concept", "Q1"), mint("concept", "Q2")
NAMES, DOCUMENT, USER = (
    mint("graph", "der", "skos", "climate", "Q1"),
    mint("graph", "src", "climate", "a"),
    mint("graph", "user", "x"),
)


@pytest.fixture
def kg(empty: KnowledgeGraph) -> KnowledgeGraph:
    return empty


def write(kg: KnowledgeGraph, graph: NamedNode, *triples: tuple[NamedNode, NamedNode, NamedNode | Literal]) -> None:
    kg.store.commit({graph: [Quad(*each, graph) for each in triples]})


def say(kg: KnowledgeGraph, *names: Literal) -> None:
    write(kg, NAMES, (CONCEPT, RDF.type, SKOS.Concept), *((CONCEPT, SKOS.prefLabel, name) for name in names))


def names(kg: KnowledgeGraph) -> dict[str, tuple[str, ...]]:
    return {iri: concept.names for iri, concept in load_concepts(kg, fresh=True).by_iri.items()}


def test_concepts_are_kept_until_a_commit_changes_them(kg: KnowledgeGraph) -> None:
    say(kg, Literal("tide", language="en"), Literal("marea", language="es"))
    assert names(kg) == {CONCEPT.value: ("tide",)}
    kept = load_concepts(kg, fresh=True)
    write(kg, DOCUMENT, (mint("document", "a"), DCTERMS.title, Literal("A law")))
    document = mint("document", "a"), RDF.type, KG.PolicyDocument
    write(kg, DOCUMENT, document, (mint("document", "a"), SCHEMA.inLanguage, Literal("en")))
    assert load_concepts(kg, fresh=True) is kept
    assert kept.generation == kg.store.statistics().generation
    write(kg, DOCUMENT, document, (mint("document", "a"), SCHEMA.inLanguage, Literal("es")))
    assert names(kg) == {CONCEPT.value: ("tide", "marea")}
    say(kg, Literal("tides", language="en"))
    assert names(kg) == {CONCEPT.value: ("tides",)}
    write(kg, USER, (OTHER, RDF.type, SKOS.Concept), (OTHER, SKOS.prefLabel, Literal("forged")))
    assert names(kg) == {CONCEPT.value: ("tides",)}
    write(kg, DOCUMENT, (CONCEPT, SKOS.altLabel, Literal("high tide", language="en")))
    assert names(kg) == {CONCEPT.value: ("tides", "high tide")}
    write(kg, NAMES)
    assert names(kg) == {}
    write(kg, NAMES, (OTHER, RDF.type, SKOS.Concept))
    assert names(kg) == {OTHER.value: ()}
