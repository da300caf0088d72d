"""Numbers of policy documents by place and year."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyoxigraph import NamedNode

from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.places import Places, load_places
from kg.retrieval.reader import Reader
from kg.retrieval.results import Statement
from kg.store.protocol import Term, term_text

COUNTS: Final = """
SELECT ?place ?year (COUNT(DISTINCT ?slug) AS ?documents) WHERE {
  ?document a kg:PolicyDocument ; kg:slug ?slug
  OPTIONAL { ?document kg:jurisdiction ?place }
  OPTIONAL { ?document eli:date_document ?date BIND(YEAR(?date) AS ?year) }
} GROUP BY ?place ?year"""

BY_YEAR: Final = """
SELECT ?year (COUNT(?slug) AS ?documents) WHERE {
  { SELECT ?slug (MIN(YEAR(?date)) AS ?year) WHERE {
      ?document a kg:PolicyDocument ; kg:slug ?slug OPTIONAL { ?document eli:date_document ?date } } GROUP BY ?slug }
} GROUP BY ?year"""


@dataclass(frozen=True, slots=True)
class DocumentCount:
    """The number of documents of a place in a year; translations count once. None: not recorded."""

    place: str | None
    """Name of the place."""
    code: str | None
    year: int | None
    documents: int


@dataclass(frozen=True, slots=True)
class DocumentCounts:
    """Numbers of documents. One of several places counts in each of `by_place`, and once in `by_year`."""

    by_place: Sequence[DocumentCount]
    by_year: Mapping[int | None, int]
    queries: Sequence[Statement]


def count_documents(kg: KnowledgeGraph) -> DocumentCounts:
    """Count the policy documents by place and year, and by year alone."""
    reader = Reader(kg)
    places = load_places(reader)
    reader.start_selection()

    def read_places(rows: Sequence[Mapping[str, Term]], places: Places) -> list[DocumentCount]:
        found = []
        for row in rows:
            term = row.get("place")
            place = places.get(term.value) if isinstance(term, NamedNode) else None
            name = place.name if place is not None else None
            code = place.code if place is not None else None
            found.append(DocumentCount(name, code, _year(row), int(term_text(row["documents"]))))
        return [each for each in found if each.documents]

    def read_years(rows: Sequence[Mapping[str, Term]]) -> dict[int | None, int]:
        return {_year(row): count for row in rows if (count := int(term_text(row["documents"])))}

    counted = reader.kept("documents by place and year", COUNTS, list)
    by_place = reader.derived("documents by place and year", read_places, counted, places)
    return DocumentCounts(by_place, reader.kept("documents by year", BY_YEAR, read_years), reader.ran)


def _year(row: Mapping[str, Term]) -> int | None:
    return int(term_text(row["year"])) if "year" in row else None
