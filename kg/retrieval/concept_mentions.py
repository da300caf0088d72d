"""The mentions of concepts in passages, as evidence shows them: which concept, where, and in which words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Final

from pyoxigraph import NamedNode

from kg.retrieval.concept_index import concepts_of
from kg.retrieval.reader import Reader, iri_of, text_of
from kg.retrieval.results import ConceptMatch
from kg.sparql.terms import bind

MATCHES: Final = """
SELECT DISTINCT ?unit ?concept ?type ?start ?end WHERE {
  VALUES ?unit { $units }
  ?mention oa:hasSource ?unit ; kg:object ?concept ; kg:matchType ?type ; kg:start ?start ; kg:end ?end
}"""

NARROWER: Final = """
SELECT DISTINCT ?root ?concept WHERE {
  VALUES ?root { $roots } ?concept (skos:broader|^skos:narrower)* ?root
} LIMIT $most"""

NARROWER_READ: Final = 500
"""Concepts that are taken for narrower ones at most; the cut is announced."""


def matches_of(
    reader: Reader, texts: Mapping[str, str], only: Collection[str] | None = None
) -> dict[str, list[ConceptMatch]]:
    """Return the mentions of concepts in passages, given with their words, in the order of the text.

    Those of one concept by one kind of name are one match. `only`: of these concepts alone.
    """
    concepts = concepts_of(reader.kg)
    if not texts or not len(concepts):
        return {}
    places: dict[tuple[str, str, str], set[tuple[int, int]]] = defaultdict(set)
    rows = reader.rows("concepts that passages mention", bind(MATCHES, units=[NamedNode(iri) for iri in sorted(texts)]))
    for row in rows:
        concept = iri_of(row["concept"])
        if only is None or concept in only:
            place = (int(text_of(row["start"])), int(text_of(row["end"])))
            places[iri_of(row["unit"]), concept, text_of(row["type"])].add(place)
    found: dict[str, list[ConceptMatch]] = defaultdict(list)
    for (unit, concept, kind), spans in sorted(places.items(), key=lambda item: (min(item[1]), item[0])):
        known = concepts.at(concept)
        if known is None:
            continue
        offsets = sorted(spans)
        words = [texts[unit][start:end] for start, end in offsets]
        found[unit].append(
            ConceptMatch(qid=known.qid, label=known.label, match_type=kind, offsets=offsets, words=words)
        )
    return found


def narrower_of(reader: Reader, roots: Collection[str]) -> tuple[dict[str, set[str]], bool]:
    """Return, of each concept, itself and all that are narrower, however deep, and whether there are even more.

    Circles end where they began.
    """
    query = bind(NARROWER, roots=[NamedNode(iri) for iri in sorted(roots)], most=NARROWER_READ + 1)
    rows = reader.rows("narrower concepts", query)
    found = {root: {root} for root in roots}
    for row in rows[:NARROWER_READ]:
        found[iri_of(row["root"])].add(iri_of(row["concept"]))
    return found, len(rows) > NARROWER_READ
