"""The tools `wikidata.vector_search_items` and `wikidata.vector_search_properties`: entities by words and meaning."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.concept_index import load_concepts
from kg.retrieval.reader import Reader, bounded, clean_text
from kg.retrieval.results import Result
from kg.retrieval.token_budget import Lean
from kg.tools.wikidata.entity_ids import show
from kg.tools.wikidata.names import PropertyNames, load_property_names
from kg.vocabulary import WD

QUERY_CHARACTERS: Final = 500
MOST: Final = 50

Wanted = Annotated[
    str, Field(min_length=1, max_length=QUERY_CHARACTERS, description="A name, misspelt or not, or a description")
]
Most = Annotated[int, Field(ge=1, le=MOST)]


class FoundEntity(Lean):
    """An item or property."""

    qid: str = Field(description="Id; the IRI for Wikibases other than Wikidata")
    label: str | None = None
    description: str | None = None
    aliases: list[str] | None = None
    matched: str | None = Field(None, description="The name that matches, if it is not the label")
    score: float | None = None
    named: bool | None = Field(None, description="Whether the question names it")


class EntityResult(Result):
    """Entities, best first."""

    entities: list[FoundEntity]


def vector_search_items(kg: KnowledgeGraph, query: Wanted, limit: Most = 10) -> EntityResult:
    """Find items of Wikidata by name, misspelt ones too, or by what they are.

    Use to get the QIDs that `wikidata.get_claims` takes. Returns entities: qid, label, description, aliases, matched,
    score.
    Example: wikidata.vector_search_items(query="Ilsabet Varrow").
    Next: `wikidata.get_claims` with the qids.
    """
    bounded("limit", limit, 1, MOST)
    reader = Reader(kg)
    found = find_items(reader, clean_text("query", query, QUERY_CHARACTERS), limit=limit)
    return reader.finish(EntityResult(entities=found), completeness="approximate")


def vector_search_properties(kg: KnowledgeGraph, query: Wanted, limit: Most = 10) -> EntityResult:
    """Find properties of Wikidata by name, misspelt ones too, or by what they state.

    Use to get the ids that `wikidata.get_claims` takes in properties. Returns entities: qid (P and a number), label,
    description, aliases, matched, score.
    Example: wikidata.vector_search_properties(query="lantern colour").
    Next: `wikidata.get_claims` with properties; `wikidata.sparql` with wdt: and the id.
    """
    bounded("limit", limit, 1, MOST)
    reader = Reader(kg)
    text = clean_text("query", query, QUERY_CHARACTERS)
    found = find_properties(load_property_names(reader), text, limit=limit)
    return reader.finish(EntityResult(entities=found), completeness="approximate")


def find_items(reader: Reader, text: str, *, limit: int) -> list[FoundEntity]:
    """Find items by name."""
    concepts = load_concepts(reader.kg)
    found = [(match, concept) for match, concept in concepts.like(text, limit) if concept.entity.startswith(WD.iri)]
    return [
        FoundEntity(
            qid=show(concept.entity),
            label=concept.label,
            matched=match.name if match.name != concept.label else None,
            score=round(match.score, 3),
        )
        for match, concept in found
    ]


def find_properties(names: PropertyNames, text: str, *, limit: int) -> list[FoundEntity]:
    """Find properties by name."""
    return [
        FoundEntity(
            qid=each.id,
            label=each.label,
            description=each.description,
            aliases=list(each.aliases) or None,
            matched=match.name if match.name != each.label else None,
            score=round(match.score, 3),
        )
        for match, each in names.find_similar(text, limit)
    ]


def find_meant_properties(kg: KnowledgeGraph, properties: PropertyNames, words: str) -> list[str]:
    """Find the property that some words mean, if one is clearly the nearest."""
    return []
