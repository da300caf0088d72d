"""Entities by meaning: vectors of the name and the first definition of each entity that a file defines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal

from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.promotion import Verdicts
from kg.retrieval.reader import iri_of
from kg.sparql.terms import bind
from kg.store.protocol import Rows, term_text
from kg.tools.documents.nodes import FILES

LEAST: Final = 0.5
"""Least cosine of a description and an entity."""
_MOST: Final = 5_000
"""Maximum number of definitions that are read."""
_AT_ONCE: Final = 256
"""Maximum number of vectors that are made in one call. The next call makes more."""

DEFINITIONS: Final = """
SELECT ?entity ?name ?claim ?confidence ?words WHERE {
  ?claim rdf:predicate kg:defines ; rdf:object ?entity ; rdf:subject ?chunk ; kg:confidence ?confidence .
  FILTER(STRSTARTS(STR(?chunk), $files))
  ?claim kg:evidence ?span . ?span oa:exact ?words . ?entity a kg:Entity ; skos:prefLabel ?name
}"""

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Meaning:
    """An entity with its first definition, and how similar it is to a description."""

    iri: str
    definition: str
    score: float


@dataclass(frozen=True, slots=True)
class _Defined:
    definitions: Mapping[str, str]
    """The surest definition of each entity."""
    texts: Sequence[str]
    """Name and definition, in the same order."""


def find_meanings(kg: KnowledgeGraph, text: str, most: int) -> list[Meaning]:
    """Find the entities whose name and definition mean about the same as a text, the nearest first.

    Without an embedding model there are none.
    """
    defined = _load(kg)
    if not defined.texts or (asked := kg.search.embed([text])) is None:
        return []
    vectors = _embed(kg, defined.texts)
    query = np.asarray(asked[0], dtype=np.float32)
    found = [
        Meaning(iri, words, float(vectors[key] @ query))
        for (iri, words), key in zip(defined.definitions.items(), defined.texts, strict=True)
        if key in vectors
    ]
    found = [each for each in found if each.score >= LEAST]
    return sorted(found, key=lambda each: (-each.score, each.iri))[:most]


def _load(kg: KnowledgeGraph) -> _Defined:
    key = "definitions of entities", kg.generation
    kept: _Defined | None = kg.memory.get(key)
    if kept is not None:
        return kept
    answer = kg.query(bind(DEFINITIONS, files=Literal(FILES)), limit=_MOST)
    if not isinstance(answer.result, Rows):
        raise TypeError("a SELECT returned no rows")
    rejected = {iri_of(claim) for claim in Verdicts.load(kg.ask).rejected}
    first: dict[str, tuple[float, str, str, str]] = {}
    for row in answer.result.rows:
        entity, name, claim, confidence, words = row
        if entity is None or name is None or claim is None or confidence is None or words is None:
            continue
        if (node := iri_of(claim)) not in rejected:
            said = -float(term_text(confidence)), node, term_text(name), term_text(words).replace("**", "")
            first[iri_of(entity)] = min(said, first.get(iri_of(entity), said))
    listed = sorted(first.items())
    made = _Defined({iri: said[3] for iri, said in listed}, [f"{said[2]}. {said[3]}" for _, said in listed])
    return kg.memory.keep(key, made)


def _embed(kg: KnowledgeGraph, texts: Sequence[str]) -> Mapping[str, Vectors]:
    """Return the vectors of texts, as far as they are made."""
    found: dict[str, Vectors] = {}
    missing = []
    for text in texts:
        kept: Vectors | None = kg.memory.get(("vector of an entity", text))
        if kept is None:
            missing.append(text)
        else:
            found[text] = kept
    part = missing[:_AT_ONCE]
    for text, vector in zip(part, (kg.search.embed(part) if part else None) or (), strict=False):
        found[text] = kg.memory.keep(("vector of an entity", text), np.asarray(vector, dtype=np.float32))
    return found
