"""Lists text units without a query: those in a scope, by the date or title of their documents.

The index counts the units of each document in the scope. By date it is asked for the documents of one year after the
other, so that the first pages cost as much as the documents of some years. By title, all documents in the scope are
sorted. Only the units on the page are looked up.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

from pyoxigraph import NamedNode

from kg.fuzzy_names import fold
from kg.retrieval.filters import Scope, build_conditions
from kg.retrieval.hybrid_search import OWN, Found, build_units_query, newest_first
from kg.retrieval.reader import Reader, iri_of, read_counts
from kg.search.protocol import get_original
from kg.sparql.terms import bind
from kg.store.protocol import batched, term_text
from kg.text import natural_key

Order = Literal["newest", "oldest", "title"]

AT_ONCE: Final = 2_000
"""Maximum number of documents of one query for dates and titles."""

ORDER_KEYS: Final = """
SELECT DISTINCT ?document ?key ?value ?family WHERE {
  { VALUES ?document { $documents } ?document dcterms:title|skos:prefLabel ?value BIND("title" AS ?key) }
  UNION { VALUES ?document { $documents } ?document eli:date_document|dcterms:date ?value BIND("date" AS ?key) }
  UNION {
    VALUES ?document { $documents } ?document eli:is_member_of ?family OPTIONAL { ?family dcterms:title ?value }
    BIND("family" AS ?key)
  }
}"""

# Joined to a UNION without it, Oxigraph reads all texts: 250 ms for 30,000, against 1 ms.
UNITS_OF_DOCUMENT: Final = """{
    SELECT ?unit ?document (MIN(?at) AS ?position) WHERE {
      { VALUES ?document { $document } ?unit dcterms:isPartOf ?document ; schema:text ?words }
      UNION {
        VALUES (?unit ?document) { ($document $document) } ?unit schema:text ?words
        FILTER NOT EXISTS { ?unit dcterms:isPartOf ?whole }
      }
      #UNIT
      OPTIONAL { ?unit schema:position ?at }
    } GROUP BY ?unit ?document ORDER BY ?position ?unit LIMIT $most OFFSET $first
  }"""


@dataclass(frozen=True, slots=True)
class DocumentKey:
    """What documents are sorted by: the first date (ISO 8601), and the titles of the family and the document."""

    date: str | None = None
    family: str = ""
    title: str = ""
    families: tuple[str, ...] = ()
    """Their IRIs."""

    def sort_key(self, order: Order) -> tuple[Any, ...]:
        """Build the key for an order. Documents without a date or title are last."""
        title = fold(self.title)
        named = (not title, natural_key(title))
        if order == "title":
            return *named, newest_first(self.date)
        date = newest_first(self.date)
        return self.date is None, tuple(-digit for digit in date) if order == "oldest" else date, *named


_NO_KEY: Final = DocumentKey()


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of units, and the number of all."""

    units: Sequence[Found]
    total: int


def load_document_keys(reader: Reader, documents: Iterable[str]) -> Mapping[str, DocumentKey]:
    """Load what documents are sorted by. Cached until a commit changes statements about the document or its family."""

    def load(missing: list[str]) -> Mapping[str, DocumentKey]:
        said: dict[str, dict[str, str]] = {iri: {} for iri in missing}
        families: dict[str, set[str]] = {iri: set() for iri in missing}
        for portion in batched(missing, AT_ONCE):
            query = bind(ORDER_KEYS, documents=[NamedNode(iri) for iri in portion])
            for row in reader.rows("dates and titles", query, declared=("document",)):
                values, key = said[iri_of(row["document"])], term_text(row["key"])
                if "value" in row:
                    value = term_text(row["value"])
                    values[key] = min(value, values.get(key, value))
                if isinstance(family := row.get("family"), NamedNode):
                    families[iri_of(row["document"])].add(family.value)
        return {iri: DocumentKey(**values, families=tuple(families[iri])) for iri, values in said.items()}

    return reader.kept_by_iri(
        "order of documents",
        documents,
        load,
        query=ORDER_KEYS,
        declared=("document",),
        subjects=lambda iri, key: (iri, *key.families),
    )


def sort_found(reader: Reader, found: Sequence[Found], order: Order) -> list[Found]:
    """Sort units by the date or title of their documents. Those of one document stay in their order."""
    key = _document_key(reader, {each.document for each in found}, order)
    return sorted(found, key=lambda each: key(each.document))


def list_scope(
    reader: Reader, scope: Scope, order: Order, *, limit: int, offset: int, per_document: int | None = None
) -> Listed:
    """List a page of all units in a scope, and count them, exactly. Raises IndexUnavailableError.

    Units of a document are in the order of its text, with at most `per_document` of each.
    """
    documents = _Documents(reader, scope)
    total = documents.count_units(per_document)
    chosen = list(_choose(documents.sort(order), offset, offset + limit, per_document))
    return Listed(_load_units(reader, scope, chosen), total)


class _Documents:
    """The documents in a scope, with their numbers of units in it."""

    def __init__(self, reader: Reader, scope: Scope) -> None:
        self._reader = reader
        self._scope = scope
        self._conditions, self._is_coded = build_conditions(scope)
        self._loaded: Mapping[str, int] | None = None

    def count_units(self, per_document: int | None) -> int:
        """Count the units, at most `per_document` of each document and its translations."""
        if per_document is None and self._is_coded:
            return self._reader.kg.search.count([], self._conditions).units
        by_work: Counter[str] = Counter()
        for document, units in self._load().items():
            by_work[get_original(document)] += units
        return sum(min(units, per_document or units) for units in by_work.values())

    def sort(self, order: Order) -> Iterator[tuple[str, int]]:
        """Yield the documents in order, with their numbers of units."""
        if order == "title" or not self._is_coded:
            yield from self._sort(self._load(), order)
            return
        years = self._count("year")
        seen: set[str] = set()
        for year in sorted(years, reverse=order == "newest"):
            dated = self._count("parent", {"year": [year]})
            # A document with several dates is sorted by the first one.
            keys = load_document_keys(self._reader, dated)
            found = {iri: units for iri, units in dated.items() if (keys.get(iri, _NO_KEY).date or "")[:4] == year}
            seen.update(found)
            yield from self._sort(found, order)
        yield from self._sort({iri: units for iri, units in self._load().items() if iri not in seen}, order)

    def _sort(self, documents: Mapping[str, int], order: Order) -> list[tuple[str, int]]:
        key = _document_key(self._reader, documents, order)
        return sorted(documents.items(), key=lambda each: key(each[0]))

    def _count(self, field: str, *more: Mapping[str, Sequence[str]]) -> Mapping[str, int]:
        return self._reader.kg.search.count([field], [*self._conditions, *more]).by_field[field]

    def _load(self) -> Mapping[str, int]:
        """Load all of them: by the codes in the index, or if it has none for a filter, by SPARQL."""
        if self._loaded is None:
            counted = self._is_coded
            self._loaded = self._count("parent") if counted else count_by_document(self._reader, self._scope)
        return self._loaded


def count_by_document(reader: Reader, scope: Scope) -> Mapping[str, int]:
    """Count the units in a scope by document, by SPARQL. Cached until the next commit."""
    query = scope.compile(build_units_query(scope, by_document=True))
    read = partial(read_counts, "document", "units")
    return reader.kept("documents that the filters leave", query, read, declared=("document",))


def _document_key(reader: Reader, documents: Iterable[str], order: Order) -> Callable[[str], tuple[object, ...]]:
    """Build a function that returns the sort key of one of `documents`."""
    keys = load_document_keys(reader, documents)
    return lambda iri: (*keys.get(iri, _NO_KEY).sort_key(order), iri)


def _choose(
    documents: Iterable[tuple[str, int]], start: int, stop: int, per_document: int | None
) -> Iterator[tuple[str, int, int]]:
    """Yield the documents with units from `start` to `stop`: each with the first of these units and their number."""
    taken: Counter[str] = Counter()
    position = 0
    for document, units in documents:
        work = get_original(document)
        allowed = units if per_document is None else min(units, per_document - taken[work])
        taken[work] += allowed
        first, last = max(start - position, 0), min(stop - position, allowed)
        if first < last:
            yield document, first, last - first
        position += allowed
        if position >= stop:
            return


def _load_units(reader: Reader, scope: Scope, chosen: Sequence[tuple[str, int, int]]) -> list[Found]:
    """Load units of documents, given with the number of the first unit and how many."""
    if not chosen:
        return []
    parts = [
        scope.compile(UNITS_OF_DOCUMENT, document=NamedNode(document), first=first, most=most)
        for document, first, most in chosen
    ]
    query = f"SELECT ?unit ?document ?position WHERE {{\n  {' UNION '.join(parts)}\n}}"
    found: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for row in reader.rows("passages on the page", query, declared=OWN):
        position = int(term_text(row["position"])) if "position" in row else 0
        found[iri_of(row["document"])].append((position, iri_of(row["unit"])))
    return [Found(unit, document, 0.0) for document, _, most in chosen for _, unit in sorted(found[document])[:most]]
