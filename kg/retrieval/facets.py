"""Counts of results by facet: domain, place, language, type, year, party, chamber, district and concept.

For a query, the passages above the relevance floor are counted, at most `MOST_COUNTED`, with the documents that they
are in. For filters alone, all passages are counted, exactly. Both are counted by the codes of each unit in the
index; districts and concepts, which are derived later than the texts are indexed, by SPARQL.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final
from urllib.parse import unquote

import langcodes
from pyoxigraph import NamedNode

from kg.errors import IndexUnavailableError
from kg.retrieval.concept_index import get_loaded_concepts, load_concepts
from kg.retrieval.evidence import code_of
from kg.retrieval.filters import Scope
from kg.retrieval.hybrid_search import Asked, Retrieved, drop_unscored, find_allowed, list_units
from kg.retrieval.places import Places, load_places
from kg.retrieval.reader import Reader, iri_of
from kg.retrieval.results import FacetCounts, FacetName, FacetValue
from kg.search.index_sync import DOMAINS
from kg.search.protocol import Codes, Conditions, get_original
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
from kg.vocabulary import KG, iri_prefix

MOST_COUNTED: Final = 1_000
"""Maximum number of passages of a query that are counted."""
MOST_VALUES: Final = 100
"""Maximum number of values of a facet, those with most passages."""

_FIELDS: Final[Mapping[FacetName, tuple[str, ...]]] = {
    "domain": ("domain",),
    "place": ("place", "state"),
    "language": ("languages",),
    "type": ("type",),
    "year": ("year",),
    "party": ("party",),
    "chamber": ("chamber",),
}
"""The codes in the index that a facet counts."""
_DOMAIN_NAMES: Final = {
    "climate": "Laws and policies",
    "parliament": "Parliament",
    "zoning": "Municipal codes",
    "files": "Files",
}
_DISTRICT: Final = iri_prefix("district")

MENTIONS: Final = """
SELECT DISTINCT ?unit ?value WHERE { VALUES ?unit { $units } ?unit kg:mentions ?value }"""

DISTRICTS: Final = """
SELECT DISTINCT ?unit ?value WHERE { VALUES ?unit { $units } ?rule kg:definedIn ?unit ; kg:district ?value }"""

MENTIONS_COUNTED: Final = """
SELECT ?value (COUNT(DISTINCT ?unit) AS ?passages) WHERE {
  ?unit kg:mentions ?value OPTIONAL { ?unit dcterms:isPartOf ?whole } BIND(COALESCE(?whole, ?unit) AS ?document)
  #DOCUMENT
  #UNIT
} GROUP BY ?value ORDER BY DESC(?passages) ?value LIMIT $most"""

DISTRICTS_COUNTED: Final = """
SELECT ?value (COUNT(DISTINCT ?unit) AS ?passages) WHERE {
  { SELECT DISTINCT ?unit ?value WHERE { ?rule kg:district ?value ; kg:definedIn ?unit } }
  OPTIONAL { ?unit dcterms:isPartOf ?whole } BIND(COALESCE(?whole, ?unit) AS ?document)
  #DOCUMENT
  #UNIT
} GROUP BY ?value ORDER BY DESC(?passages) ?value LIMIT $most"""

NAMES: Final = """
SELECT ?node ?name WHERE { VALUES ?node { $nodes } ?node skos:prefLabel ?name }"""


def build_conditions(scope: Scope) -> tuple[Conditions, bool]:
    """Build the conditions on codes for a scope, and whether they are the whole scope."""
    found: list[Codes] = []
    rest = False
    for name, terms in scope.terms.items():
        if name in ("places", "states"):
            by_field: dict[str, list[str]] = {"place": [], "state": []}
            rows: Sequence[Any] = terms  # terms, or rows of a property and a term
            for row in rows:
                located, place = row if isinstance(row, tuple) else (None, row)
                is_state = name == "states" or located == KG.state
                by_field["state" if is_state else "place"].append(place.value)
            found.append(by_field)
        elif name == "kinds":
            found.append({"domain": [DOMAINS[term.value] for term in terms]})
        elif name in _CODED_TERMS:
            found.append({_CODED_TERMS[name]: [term.value for term in terms]})
        else:
            rest = True
    return found, not rest


_CODED_TERMS: Final = {
    "corpus_types": "type",
    "languages": "languages",
    "years": "year",
    "parties": "party",
    "chambers": "chamber",
}


def count_results(
    reader: Reader, names: Sequence[FacetName], asked: Asked, scope: Scope, found: Retrieved
) -> FacetCounts:
    """Count the passages that are results of a query, and their documents. Raises IndexUnavailableError."""
    if found.relevance == "none":
        return FacetCounts(passages=0, documents=0)
    if found.degraded == "store":
        raise IndexUnavailableError("The search index does not answer, so results cannot be counted.")
    conditions, whole = build_conditions(scope)
    limit = MOST_COUNTED + 1
    while True:
        ranking = asked.rank_codes(reader.kg.search, limit=limit, codes=conditions)
        kept = [each.iri for each in asked.select(drop_unscored(ranking.candidates), ranking, found.relevance)]
        if not whole:
            allowed = find_allowed(reader, scope, kept)
            kept = [iri for iri in kept if iri in allowed]
        ended = ranking.exhaustive or len(ranking.candidates) < limit
        if whole or ended or len(kept) > MOST_COUNTED or limit > 4 * MOST_COUNTED:
            break
        limit *= 4
    more = not ended or len(kept) > MOST_COUNTED
    counted = {iri: ranking.codes[iri] for iri in kept[:MOST_COUNTED] if iri in ranking.codes}
    return _count_units(reader, names, counted, more)


def count_scope(reader: Reader, names: Sequence[FacetName], scope: Scope) -> FacetCounts:
    """Count all passages in a scope, exactly unless it has a filter that the index has no codes for.

    Then at most `MOST_COUNTED` are counted. Raises IndexUnavailableError.
    """
    conditions, whole = build_conditions(scope)
    if not whole:
        units = list_units(reader, scope, MOST_COUNTED)
        codes = reader.kg.search.load_codes([*units][:MOST_COUNTED]) if units else {}
        return _count_units(reader, names, codes, len(units) > MOST_COUNTED)
    fields = [name for facet in names for name in _FIELDS.get(facet, ())]
    counted = reader.kg.search.count(fields, conditions)
    values: dict[FacetName, list[FacetValue]] = {}
    places = load_places(reader) if "place" in names else None
    for facet in names:
        numbers: dict[str, int] = defaultdict(int)
        for field_name in _FIELDS.get(facet, ()):
            for code, units_of in counted.by_field[field_name].items():
                for each in _places_of(places, field_name, [code]):
                    numbers[each] += units_of
        if facet not in _FIELDS:
            query = MENTIONS_COUNTED if facet == "concept" else DISTRICTS_COUNTED
            numbers.update(reader.kept(f"counts by {facet}", scope.compile(query, most=MOST_VALUES), _read_counts))
        values[facet] = _name_values(reader, facet, {code: (many, None) for code, many in numbers.items()})
    return FacetCounts(passages=counted.units, documents=counted.documents, values=values)


def _read_counts(rows: list[dict[str, Term]]) -> dict[str, int]:
    return {iri_of(row["value"]): int(term_text(row["passages"])) for row in rows if "value" in row}


def _count_units(reader: Reader, names: Sequence[FacetName], codes: Mapping[str, Codes], more: bool) -> FacetCounts:
    """Count some units, given with their codes, and their documents, by facet."""
    # Most units of a document have the same codes: they are counted together.
    alike: dict[int, tuple[Codes, list[str]]] = {}
    for iri, each in codes.items():
        alike.setdefault(id(each), (each, []))[1].append(iri)
    groups = list(alike.values())
    values: dict[FacetName, list[FacetValue]] = {}
    places = load_places(reader) if "place" in names else None
    for facet in names:
        passages: Counter[str] = Counter()
        documents: dict[str, set[str]] = defaultdict(set)
        for found, units in groups if facet in _FIELDS else _list_groups(reader, facet, codes):
            fields = _FIELDS.get(facet, (facet,))
            for value in {code for name in fields for code in _places_of(places, name, found.get(name, ()))}:
                passages[value] += len(units)
                documents[value].add(_work_of(found))
        counted = {value: (count, len(documents[value])) for value, count in passages.items()}
        values[facet] = _name_values(reader, facet, counted)
    works = {_work_of(found) for found, _ in groups}
    return FacetCounts(passages=len(codes), documents=len(works), more=more, values=values)


def _work_of(codes: Codes) -> str:
    """Get the original of the document of a unit."""
    return get_original(codes["parent"][0])


def _list_groups(reader: Reader, facet: FacetName, codes: Mapping[str, Codes]) -> list[tuple[Codes, list[str]]]:
    """List units with their values of a facet that the index has no codes for."""
    if facet == "district":
        units = [NamedNode(iri) for iri, each in codes.items() if "zoning" in each.get("domain", ())]
    else:
        units = [NamedNode(iri) for iri in codes]
    if not units:
        return []
    query = bind(DISTRICTS if facet == "district" else MENTIONS, units=units)
    found: dict[str, list[str]] = defaultdict(list)
    for row in reader.rows(f"{facet}s of the passages", query):
        found[iri_of(row["unit"])].append(iri_of(row["value"]))
    return [({"parent": codes[iri]["parent"], facet: values}, [iri]) for iri, values in found.items()]


def _places_of(places: Places | None, field_name: str, codes: Iterable[str]) -> set[str]:
    """Get the codes, and for places those that contain them."""
    found = set(codes)
    if field_name == "place" and places is not None:
        for iri in codes:
            if (place := places.get(iri)) is not None:
                found.update(outer.iri for outer in places.get_chain(place))
    return found


def _name_values(reader: Reader, facet: FacetName, numbers: Mapping[str, tuple[int, int | None]]) -> list[FacetValue]:
    """Name the values of a facet, those with most passages first; years and equal numbers by value."""
    if facet == "concept":  # texts of files mention entities too
        concepts = load_concepts(reader.kg)
        numbers = {code: counts for code, counts in numbers.items() if concepts.at(code) is not None}
    most = sorted(numbers.items(), key=lambda item: (-item[1][0], item[0]))[:MOST_VALUES]
    labels = _load_labels(reader, facet, [code for code, _ in most])
    values = [
        FacetValue(value=_value_of(reader, facet, code), label=labels[code], passages=passages, documents=documents)
        for code, (passages, documents) in most
    ]
    return sorted(values, key=lambda each: each.value, reverse=True) if facet == "year" else values


def _value_of(reader: Reader, facet: FacetName, code: str) -> str:
    """Get the value of the filter for a code."""
    if facet == "place":
        place = load_places(reader).get(code)
        return code_of(code) if place is None else place.code
    if facet == "district":
        return "/".join(map(unquote, code.removeprefix(_DISTRICT).split("/")))
    if facet == "concept":
        concept = load_concepts(reader.kg).at(code)
        return code if concept is None else concept.qid
    return code_of(code) if facet in ("type", "party", "chamber") else code


def _load_labels(reader: Reader, facet: FacetName, codes: Sequence[str]) -> dict[str, str]:
    """Load the names of codes; a code without a name is its own."""
    if facet == "domain":
        return {code: _DOMAIN_NAMES.get(code, code) for code in codes}
    if facet == "language":
        return {code: _name_language(code) for code in codes}
    if facet == "place":
        places = load_places(reader)
        return {code: place.name if (place := places.get(code)) else code_of(code) for code in codes}
    if facet == "concept":
        concepts = get_loaded_concepts(reader.kg) or load_concepts(reader.kg)
        return {code: concepts.label_of(code) or code_of(code) for code in codes}
    if facet == "year" or not codes:
        return {code: code for code in codes}

    def load(missing: list[str]) -> dict[str, str]:
        found = {code: code_of(code) for code in missing}
        for row in reader.rows("names of values", bind(NAMES, nodes=[NamedNode(code) for code in missing])):
            found[iri_of(row["node"])] = term_text(row["name"])
        return found

    names = reader.kept_by_iri("facet names", codes, load)
    if facet != "district":
        return {code: names.get(code, code_of(code)) for code in codes}
    places = load_places(reader)
    shown = {}
    for code in codes:
        key, _, district = code.removeprefix(_DISTRICT).partition("/")
        town = places.get(iri_prefix("municipality") + key)
        name = names.get(code, district)
        shown[code] = f"{name}, {town.name if town else key}"
    return shown


@cache
def _name_language(tag: str) -> str:
    try:
        return langcodes.Language.get(tag).display_name()
    except ValueError:  # no tag of BCP 47
        return tag
