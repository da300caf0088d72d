"""The tools `wikidata.vector_search_items` and `wikidata.vector_search_properties`.

Both find entities by spelling (their names), by words, and by meaning (vectors of names and description in the index).
An entity with the very name comes first, then the others by the best of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

from kg.errors import IndexUnavailableError
from kg.fuzzy_names import fold
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.concept_index import load_concepts
from kg.retrieval.reader import Reader, bounded, clean_text
from kg.retrieval.results import Lean, Result
from kg.retrieval.text_vectors import BEING_COMPUTED, WITHOUT_MODEL, describe_matching, find_cosines
from kg.search.protocol import Candidate
from kg.tools.wikidata.claims import load_entities
from kg.tools.wikidata.entity_ids import id_of, show
from kg.tools.wikidata.names import Property, PropertyNames, load_property_names
from kg.vocabulary import WD
from kg.wikidata_properties import load_properties

QUERY_CHARACTERS: Final = 500
MOST: Final = 50
ITEMS: Final = f"{WD.iri}Q"
PROPERTIES: Final = f"{WD.iri}P"
NAME_WEIGHT: Final = 0.9
"""Weight of a similar name compared with the cosine of the meaning; an equal name has 1."""
LEAST: Final = 0.3
"""Least score of a result. Unrelated descriptions have cosines of about 0.2."""
MEANT: Final = 0.6
"""Least cosine of words and a property that they mean."""
CLEAR: Final = 0.1
"""Least distance of its cosine to that of the next property."""
ALIASES_SHOWN: Final = 10
SELECTING: Final = frozenset(
    ("first", "second", "third", "last", "latest", "next", "previous", "former", "current", "future", "eldest",
     "oldest", "youngest", "largest", "biggest", "smallest", "best", "worst", "most", "least", "average", "maximum",
     "minimum", "favourite", "favorite", "other", "half", "step", "grand", "great", "ex", "late", "real", "actual",
     "alleged", "secret", "total", "only", "every", "any", "some", "two", "three", "more", "fewer", "new", "old")
)  # fmt: skip

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
    score: float | None = Field(None, description="1: the same name; else the best similarity of name or meaning")
    named: bool | None = Field(None, description="Whether the question names it")


class EntityResult(Result):
    """Entities, best first."""

    entities: list[FoundEntity]


@dataclass(slots=True)
class _Scored:
    iri: str
    score: float
    matched: str | None = None


def vector_search_items(kg: KnowledgeGraph, query: Wanted, limit: Most = 10) -> EntityResult:
    """Find items of Wikidata by name, misspelt ones too, or by a description of them.

    Use to get the QIDs that `wikidata.get_claims` takes. Returns entities: qid, label, description, aliases, matched,
    score.
    Example: wikidata.vector_search_items(query="Ilsabet Varrow").
    Next: `wikidata.get_claims` with the qids.
    """
    bounded("limit", limit, 1, MOST)
    reader = Reader(kg)
    notes: list[str] = []
    found = find_items(reader, clean_text("query", query, QUERY_CHARACTERS), limit=limit, notes=notes)
    if not found:
        notes.append("No item has a similar name or description. Items are loaded with kg load wikibase FILE.")
    return reader.finish(EntityResult(entities=found, notes=notes), completeness="approximate")


def vector_search_properties(kg: KnowledgeGraph, query: Wanted, limit: Most = 10) -> EntityResult:
    """Find properties of Wikidata by name, misspelt ones too, or by a description of them.

    Use to get the ids that `wikidata.get_claims` takes in properties. Returns entities: qid (P and a number), label,
    description, aliases, matched, score.
    Example: wikidata.vector_search_properties(query="lantern colour").
    Next: `wikidata.get_claims` with properties; `wikidata.sparql` with wdt: and the id.
    """
    bounded("limit", limit, 1, MOST)
    reader = Reader(kg)
    notes: list[str] = []
    text = clean_text("query", query, QUERY_CHARACTERS)
    found = find_properties(kg, load_property_names(reader), text, limit=limit, notes=notes)
    if not found:
        notes.append("No property has a similar name or description.")
    return reader.finish(EntityResult(entities=found, notes=notes), completeness="approximate")


def find_items(reader: Reader, text: str, *, limit: int, notes: list[str] | None = None) -> list[FoundEntity]:
    """Find items by name, words and meaning, the best first."""
    concepts = load_concepts(reader.kg)
    spelt = {
        concept.entity: (match.score, match.name)
        for match, concept in concepts.like(text, 2 * limit)
        if concept.entity.startswith(WD.iri)
    }
    names = {iri: (concept.label, concept.names) for iri in spelt if (concept := concepts.at(iri)) is not None}
    ranked = _merge(text, spelt, _rank(reader.kg, text, ITEMS, 2 * limit, notes))[:limit]
    described = load_entities(reader, [each.iri for each in ranked], set())
    found = []
    for each in ranked:
        entity = described.get(each.iri)
        concept = concepts.at(each.iri)
        label = entity.label if entity is not None else names.get(each.iri, (None, ()))[0]
        aliases = [name for name in (concept.names if concept else ()) if name != label][:ALIASES_SHOWN]
        found.append(
            FoundEntity(
                qid=show(each.iri),
                label=label,
                description=entity.description if entity is not None else None,
                aliases=aliases or None,
                matched=each.matched if each.matched != label else None,
                score=round(each.score, 3),
            )
        )
    return found


def find_properties(
    kg: KnowledgeGraph, names: PropertyNames, text: str, *, limit: int, notes: list[str] | None = None
) -> list[FoundEntity]:
    """Find properties by name, words and meaning, the best first."""
    spelt = {WD.iri + each.id: (match.score, match.name) for match, each in names.find_similar(text, 2 * limit)}
    shipped = _compare_shipped(kg, names, text, notes)
    ranked = _merge(text, spelt, _rank(kg, text, PROPERTIES, 2 * limit, notes), shipped)
    found = []
    for each in ranked:
        known = names.properties.get(id_of(each.iri))
        if known is not None:
            found.append(
                FoundEntity(
                    qid=known.id,
                    label=known.label,
                    description=known.description,
                    aliases=list(known.aliases)[:ALIASES_SHOWN] or None,
                    matched=each.matched if each.matched != known.label else None,
                    score=round(each.score, 3),
                )
            )
    return found[:limit]


def find_meant_properties(kg: KnowledgeGraph, names: PropertyNames, words: str, notes: list[str]) -> list[str]:
    """Find the property that some words mean, if one is clearly the nearest; none without an embedding model.

    Words that select one of several values (first, eldest) have no meaning that a vector shows, so there is none.
    """
    if not SELECTING.isdisjoint(words.split()):
        return []
    cosines = _compare_shipped(kg, names, words, notes)
    for each in _rank(kg, words, PROPERTIES, MOST, None):
        if each.cosine is not None:
            cosines[each.iri] = max(each.cosine, cosines.get(each.iri, 0.0))
    ranked = sorted((-cosine, iri) for iri, cosine in cosines.items())
    if not ranked or -ranked[0][0] < MEANT or (len(ranked) > 1 and ranked[1][0] - ranked[0][0] < CLEAR):
        return []
    return [id_of(ranked[0][1])]


def _rank(kg: KnowledgeGraph, text: str, kind: str, most: int, notes: list[str] | None) -> Sequence[Candidate]:
    """Rank the entities of a kind (the start of their IRIs) in the index by words and meaning."""
    try:
        ranking = kg.search.rank(text, parents=[kind], limit=most, kind="entity")
    except IndexUnavailableError:
        if notes is not None:
            notes.append("The search index does not answer, so entities are found by name only.")
        return ()
    if notes is not None and ranking.incomplete:
        notes.append(f"The answer is approximate: {ranking.incomplete}")
    if notes is not None and ranking.model is None:
        notes.append(WITHOUT_MODEL)
    elif notes is not None and ranking.pending:
        notes.append(BEING_COMPUTED)
    return ranking.candidates


def _compare_shipped(kg: KnowledgeGraph, names: PropertyNames, text: str, notes: list[str] | None) -> dict[str, float]:
    """Compute the cosines of the properties that ship with Quadcite, which no record describes and no index has."""
    texts = {f"{WD.iri}{pid}": _to_text(each) for pid in load_properties() if (each := names.properties.get(pid))}
    cosines = find_cosines(kg, text, list(texts.values()))
    if cosines is None:
        note = describe_matching(kg, list(texts.values()))
        if notes is not None and note not in notes:
            notes.append(note)
        return {}
    return dict(zip(texts, cosines, strict=True))


def _to_text(each: Property) -> str:
    names = ", ".join(name for name in (each.label, *each.aliases) if name)
    return f"{names}: {each.description}" if each.description else names


def _merge(
    text: str,
    spelt: Mapping[str, tuple[float, str]],
    candidates: Sequence[Candidate],
    cosines: Mapping[str, float] | None = None,
) -> list[_Scored]:
    """Merge the entities with a similar name and those with a similar description, the best first.

    An entity with words of the text, in any language, counts by the square of their share.
    """
    wanted = fold(text)
    found: dict[str, _Scored] = {}
    for iri, (score, name) in spelt.items():
        found[iri] = _Scored(iri, 1.0 if fold(name) == wanted else NAME_WEIGHT * score, name)
    for iri, cosine in (cosines or {}).items():
        if cosine > found.setdefault(iri, _Scored(iri, 0.0)).score:
            found[iri] = _Scored(iri, cosine)
    for each in candidates:
        score = max(each.cosine or 0.0, NAME_WEIGHT * each.words**2)
        known = found.setdefault(each.iri, _Scored(each.iri, 0.0))
        if score > known.score:
            known.score, known.matched = score, None
    kept = [each for each in found.values() if each.score >= LEAST]
    return sorted(kept, key=lambda each: (-round(each.score, 4), each.iri))
