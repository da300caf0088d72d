"""Counts of results by facet: domain, place, language, type, year, party, chamber, district and concept.

For a query, the passages that are near it are counted, exactly up to `MOST_COUNTED`, with the documents that
they are in. For filters alone, all passages are counted, exactly. Both are counted by the codes of each unit in the
index; districts and concepts, which are derived later than the texts are indexed, by SPARQL.

The relevance of a query is judged in the scope of its filters; a post filter limits its results afterwards. The counts
of a facet leave its own post filter out, and without a query its own filter: its values are alternatives, and each
number is that of the passages with this value which pass the filters of the other facets.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode

from kg.errors import IndexUnavailableError
from kg.languages import name_language
from kg.retrieval.asked import Asked
from kg.retrieval.concept_index import get_loaded_concepts, load_concepts
from kg.retrieval.evidence import code_of
from kg.retrieval.filters import Scope, build_conditions
from kg.retrieval.hybrid_search import (
    DEEPEST,
    FIRST_BLOCK,
    Counted,
    Retrieved,
    find_allowed,
    list_narrow,
    list_units,
    rescore,
)
from kg.retrieval.listing import count_by_document
from kg.retrieval.places import Places, load_places
from kg.retrieval.reader import Reader, iri_of, read_counts
from kg.retrieval.results import FacetCounts, FacetName, FacetValue, SearchFilters
from kg.search.protocol import Codes, Conditions, get_original
from kg.search.relevance import NOTHING, estimate_relevance
from kg.search.word_overlap import parse_question
from kg.sparql.terms import bind
from kg.store.protocol import Term, batched, term_text
from kg.vocabulary import iri_prefix

MOST_COUNTED: Final = 1_000
"""Maximum number of passages of a query that are counted."""
MOST_VALUES: Final = 100
"""Maximum number of values of a facet, those with most passages."""

MOST_LISTED: Final = 5_000
"""Maximum number of passages that the store lists to count them by facet."""
_MOST_DOCUMENTS: Final = 5_000
"""Maximum number of documents whose mentions are added up, document by document."""
_AT_ONCE: Final = 1_000
"""Maximum number of documents of one query for mentions."""
_KEPT: Final = 20_000
"""Documents whose mentions are kept, some 20 concepts each."""

_TERMS: Final[Mapping[FacetName, tuple[str, ...]]] = {
    "domain": ("kinds",),
    "place": ("places", "states"),
    "language": ("languages",),
    "corpus_type": ("corpus_types",),
    "year": ("years",),
    "party": ("parties",),
    "chamber": ("chambers",),
    "district": ("districts",),
    "concept": ("mentioned",),
}
"""The terms of a scope that are the filter of a facet."""
_FIELDS: Final[Mapping[FacetName, tuple[str, ...]]] = {
    "domain": ("domain",),
    "place": ("place", "state"),
    "language": ("languages",),
    "corpus_type": ("type",),
    "year": ("year",),
    "party": ("party",),
    "chamber": ("chamber",),
}
"""The codes in the index that a facet counts."""
DOMAIN_NAMES: Final = {
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

# From the documents on: a pattern of all mentions with their documents takes ten times as long for a small scope.
MENTIONS_COUNTED: Final = """
SELECT ?value (COUNT(DISTINCT ?unit) AS ?passages) WHERE {
  {
    #DOCUMENT
    ?unit dcterms:isPartOf ?document . ?unit kg:mentions ?value
  } UNION {
    #DOCUMENT
    ?document kg:mentions ?value FILTER NOT EXISTS { ?document dcterms:isPartOf ?whole } BIND(?document AS ?unit)
  }
  #UNIT
} GROUP BY ?value ORDER BY DESC(?passages) ?value LIMIT $most"""

# With the documents in each branch: outside of them, the engine would read all mentions.
MENTIONS_BY_DOCUMENT: Final = """
SELECT ?document ?value (COUNT(DISTINCT ?unit) AS ?passages) WHERE {
  { VALUES ?document { $documents } ?unit dcterms:isPartOf ?document . ?unit kg:mentions ?value }
  UNION {
    VALUES ?document { $documents }
    ?document kg:mentions ?value FILTER NOT EXISTS { ?document dcterms:isPartOf ?whole } BIND(?document AS ?unit)
  }
} GROUP BY ?document ?value"""

ALL_MENTIONS_COUNTED: Final = """
SELECT ?value (COUNT(DISTINCT ?unit) AS ?passages) WHERE {
  #BEGIN
  ?unit kg:mentions ?value
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


@dataclass(frozen=True, slots=True)
class PostFilter:
    """A filter of the results of a query, whose relevance is judged without it."""

    scope: Scope
    results: Counted
    """The results without it."""
    kept: Counted
    """Those of them that pass it."""
    given: SearchFilters


def count_results(
    reader: Reader,
    names: Sequence[FacetName],
    asked: Asked,
    scope: Scope,
    found: Retrieved,
    post: PostFilter | None = None,
) -> FacetCounts:
    """Count the passages that are results of a query, and their documents. Raises IndexUnavailableError.

    Each number is that of the list with the value added to the post filter, or in place of the values of its facet; or
    the least number, if there are more than were counted.
    """
    if found.degraded == "store":
        raise IndexUnavailableError("The search index does not answer, so results cannot be counted.")
    if found.counted is not None:
        counted = found.counted
    elif found.relevance.refused:
        counted = Counted()
    else:
        counted = count_units(reader, asked, scope, MOST_COUNTED, None if post is None else post.kept)
    counts = _count_units(reader, names, counted.units, counted.more)
    counts.by = "words" if asked.must else "query_words" if found.by_words else "similar"
    counts.with_words = _count_having(reader, asked, scope)
    if post is None:
        return counts
    if post.results.more:  # with a further value, others are among the first, in which words are compared
        for facet, listed in counts.values.items():
            counts.values[facet] = [each.model_copy(update={"more": True}) for each in listed]
    for facet in names:
        if (wider := _without_own(post.scope, facet)) is not None:
            others = post.results.narrow(reader, wider)
            values = _count_units(reader, [facet], others.units, others.more).values[facet]
            chosen = [*map(str, getattr(post.given, facet))]
            if others.more:  # a chosen value may be none of those of the first results
                known = {each.value for each in values}
                listed = [each for each in counts.values[facet] if each.value in chosen and each.value not in known]
                values = _sort_values(facet, [*values, *(each.model_copy(update={"more": True}) for each in listed)])
            of_list = {"passages": counts.passages, "documents": counts.documents, "more": counts.more}
            counts.values[facet] = [
                each.model_copy(update=of_list) if [each.value] == chosen else each for each in values
            ]
    return counts


def _count_having(reader: Reader, asked: Asked, scope: Scope) -> int | None:
    """Count the units in `scope` that have all words of the query, at most `MOST_COUNTED`.

    None without such words, and for a scope that the index has no codes for.
    """
    conditions, whole = build_conditions(scope)
    words = [asked.own_words, *asked.must]
    if not whole or not parse_question(asked.own_words).words:
        return None
    found = reader.kg.search.rank(
        asked.own_words, limit=1, mode="bm25", must=words, codes=conditions, counted=MOST_COUNTED
    )
    return len(found.counted)


def count_units(reader: Reader, asked: Asked, scope: Scope, most: int, judged: Counted | None = None) -> Counted:
    """Count the units in `scope` that are results of `asked`, at most `most`; see `retrieve` for `judged`.

    Raises IndexUnavailableError.
    """
    units = list_narrow(reader, scope)
    if units is not None and not units:
        return Counted(relevance=NOTHING)
    conditions, whole = build_conditions(scope)
    size = most + 1
    while True:
        # With a minimum score, each unit needs its exact score.
        limit = FIRST_BLOCK if asked.min_score is None and units is None else max(size, len(units or ()))
        ranking = asked.rank_all(
            reader,
            limit=limit,
            units=None if units is None else list(units),
            codes=conditions if units is None else (),
            counted=size,
        )
        if ranking.from_store:
            raise IndexUnavailableError("The search index does not answer, so results cannot be counted.")
        if judged is not None:
            relevance = judged.relevance
            kept = asked.select_further_counted(ranking, relevance, judged.units)
        else:
            first = ranking.candidates if units is not None else rescore(ranking.candidates[:FIRST_BLOCK])
            relevance = estimate_relevance(first, ranking)
            kept = asked.select_counted(ranking, relevance)
        ended = len(ranking.counted) < size
        if units is None and not whole:
            allowed = find_allowed(reader, scope, list(kept))
            kept = {iri: codes for iri, codes in kept.items() if iri in allowed}
        if units is not None or whole or ended or len(kept) > most or size >= DEEPEST:
            more = not ended and units is None and not whole
            return Counted.cut(kept.items(), most, relevance, ranking.incomplete, more=more)
        size = min(DEEPEST, 4 * size)


def count_scope(reader: Reader, names: Sequence[FacetName], scope: Scope) -> tuple[FacetCounts, list[str]]:
    """Count all passages in a scope, exactly, and return notes. Raises IndexUnavailableError.

    If the scope has a filter that the index has no codes for, the numbers by facet are those of `MOST_LISTED` passages.
    """
    conditions, whole = build_conditions(scope)
    own = {facet: wider for facet in names if (wider := _without_own(scope, facet)) is not None}
    if whole:
        counts = _count_conditions(reader, names, scope, conditions)
        notes: list[str] = []
    else:
        counts, notes = _count_listed(reader, names, scope)
    for facet, wider in own.items():
        others, _ = count_scope(reader, [facet], wider)
        counts.values[facet] = others.values[facet]
    return counts, notes


def _without_own(scope: Scope, facet: FacetName) -> Scope | None:
    """Leave out the filter of a facet; None if the scope has none. The other values of a facet are alternatives."""
    names = _TERMS[facet]
    return scope.without(*names) if any(name in scope.terms for name in names) else None


def _count_conditions(reader: Reader, names: Sequence[FacetName], scope: Scope, conditions: Conditions) -> FacetCounts:
    """Count the passages in a scope that is these conditions on codes."""
    fields = [name for facet in names for name in _FIELDS.get(facet, ())]
    if "district" in names:
        fields.append("domain")
    counted = reader.kg.search.count(list(dict.fromkeys(fields)), conditions)
    values: dict[FacetName, list[FacetValue]] = {}
    places = load_places(reader) if "place" in names else None
    for facet in names:
        numbers: dict[str, int] = defaultdict(int)
        for field_name in _FIELDS.get(facet, ()):
            for code, units_of in counted.by_field[field_name].items():
                for each in _add_wider(places, field_name, [code]):
                    numbers[each] += units_of
        if facet == "concept" and conditions and not scope.on_unit and counted.documents <= _MOST_DOCUMENTS:
            numbers.update(_add_up_mentions(reader, conditions))
        elif facet == "concept" or (facet == "district" and "zoning" in counted.by_field["domain"]):
            numbers.update(_count_by_store(reader, facet, scope))
        values[facet] = _name_values(reader, facet, {code: (many, None) for code, many in numbers.items()})
    return FacetCounts(passages=counted.units, documents=counted.documents, values=values)


def _add_up_mentions(reader: Reader, conditions: Conditions) -> Counter[str]:
    """Count the passages in few documents by the concepts that they mention. Conditions are those of documents.

    The numbers of a document are the same for all scopes that it is in.
    """

    def load(missing: list[str]) -> Mapping[str, Mapping[str, int]]:
        found: dict[str, dict[str, int]] = {iri: {} for iri in missing}
        for portion in batched(missing, _AT_ONCE):
            nodes = [NamedNode(iri) for iri in portion]
            query = bind(MENTIONS_BY_DOCUMENT, documents=nodes)
            for document, value, passages in reader.tuples("counts by concept", query):
                if isinstance(document, NamedNode) and isinstance(value, NamedNode):
                    found[document.value][value.value] = int(term_text(passages))
        return found

    documents = reader.kg.search.count(["parent"], conditions).by_field["parent"]
    added: Counter[str] = Counter()
    for numbers in reader.kept_by_iri(
        "mentions by document", documents, load, most=_KEPT, query=MENTIONS_BY_DOCUMENT
    ).values():
        added.update(numbers)
    return added


def _count_by_store(reader: Reader, facet: FacetName, scope: Scope) -> dict[str, int]:
    """Count the passages in a scope by a facet that the index has no codes for. Cached until the next commit."""
    query = DISTRICTS_COUNTED
    if facet == "concept":
        query = MENTIONS_COUNTED if scope.on_document else ALL_MENTIONS_COUNTED
    read = partial(read_counts, "value", "passages")
    return reader.kept(f"counts by {facet}", scope.compile(query, most=MOST_VALUES), read)


def _count_listed(reader: Reader, names: Sequence[FacetName], scope: Scope) -> tuple[FacetCounts, list[str]]:
    """Count the passages in a scope that the store has to list."""
    units = list_units(reader, scope, MOST_LISTED)
    codes = reader.kg.search.load_codes([*units][:MOST_LISTED]) if units else {}
    counts = _count_units(reader, names, codes, more=False)
    if len(units) <= MOST_LISTED:
        return counts, []
    documents = count_by_document(reader, scope)
    counts.passages, counts.documents = sum(documents.values()), len({get_original(each) for each in documents})
    return counts, [f"facets: The numbers by facet are those of {MOST_LISTED:,} of the passages."]


def _count_units(reader: Reader, names: Sequence[FacetName], codes: Mapping[str, Codes], more: bool) -> FacetCounts:
    """Count some units, given with their codes, and their documents, by facet."""
    # Most units of a document have the same codes: they are counted together.
    alike: dict[int, tuple[Codes, list[str]]] = {}
    for iri, each in codes.items():
        alike.setdefault(id(each), (each, []))[1].append(iri)
    groups = [(each, units, _work_of(each)) for each, units in alike.values()]
    values: dict[FacetName, list[FacetValue]] = {}
    places = load_places(reader) if "place" in names else None
    for facet in names:
        fields = _FIELDS.get(facet, (facet,))
        passages: Counter[str] = Counter()
        documents: dict[str, set[str]] = defaultdict(set)
        listed = groups if facet in _FIELDS else _list_groups(reader, facet, codes)
        for combination, (number, works) in _add_up(listed, fields).items():
            for value in _values_of(places, fields, combination):
                passages[value] += number
                documents[value] |= works
        counted = {value: (count, len(documents[value])) for value, count in passages.items()}
        values[facet] = _name_values(reader, facet, counted, more)
    return FacetCounts(passages=len(codes), documents=len({work for _, _, work in groups}), more=more, values=values)


_Group = tuple[Codes, list[str], str]
"""Units with the same codes, and the original of their document."""


def _add_up(groups: Iterable[_Group], fields: Sequence[str]) -> dict[tuple[tuple[str, ...], ...], tuple[int, set[str]]]:
    """Count units and collect their documents, by the codes in `fields`, of which there are few combinations."""
    numbers: Counter[tuple[tuple[str, ...], ...]] = Counter()
    works: dict[tuple[tuple[str, ...], ...], set[str]] = defaultdict(set)
    for codes, units, work in groups:
        combination = tuple([tuple(codes.get(name, ())) for name in fields])
        numbers[combination] += len(units)
        works[combination].add(work)
    return {combination: (number, works[combination]) for combination, number in numbers.items()}


def _values_of(places: Places | None, fields: Sequence[str], combination: Sequence[Iterable[str]]) -> set[str]:
    """Get the values that units count for: each once."""
    return set().union(*(_add_wider(places, name, codes) for name, codes in zip(fields, combination, strict=True)))


def _work_of(codes: Codes) -> str:
    """Get the original of the document of a unit."""
    return get_original(codes["parent"][0])


def _list_groups(reader: Reader, facet: FacetName, codes: Mapping[str, Codes]) -> list[_Group]:
    """List units with their values of a facet that the index has no codes for."""
    if facet == "district":
        units = [iri for iri, each in codes.items() if "zoning" in each.get("domain", ())]
    else:
        units = [*codes]
    if not units:
        return []
    template = DISTRICTS if facet == "district" else MENTIONS

    def load(missing: list[str]) -> Mapping[str, list[str]]:
        query = bind(template, units=[NamedNode(iri) for iri in missing])
        found: dict[str, list[str]] = {iri: [] for iri in missing}
        for unit, value in reader.tuples(f"{facet}s of the passages", query):
            if isinstance(unit, NamedNode) and isinstance(value, NamedNode):
                found[unit.value].append(value.value)
        return found

    found = reader.kept_by_iri(f"{facet}s", units, load, query=template)
    return [({facet: values}, [iri], _work_of(codes[iri])) for iri, values in found.items() if values]


def _add_wider(places: Places | None, field_name: str, codes: Iterable[str]) -> set[str]:
    """Get the codes, and those that contain them: of places, and of languages, ``en`` of ``en-GB``, as filters do."""
    found = set(codes)
    if field_name == "languages":
        for tag in codes:
            parts = tag.split("-")
            found.update("-".join(parts[:number]) for number in range(1, len(parts)))
    if field_name == "place" and places is not None:
        for iri in codes:
            if (place := places.get(iri)) is not None:
                found.update(outer.iri for outer in places.get_chain(place))
    return found


def _name_values(
    reader: Reader, facet: FacetName, numbers: Mapping[str, tuple[int, int | None]], more: bool = False
) -> list[FacetValue]:
    """Name the values of a facet, those with most passages first; years and equal numbers by value."""
    if facet == "concept":  # texts of files mention entities too
        concepts = load_concepts(reader.kg)
        numbers = {code: counts for code, counts in numbers.items() if concepts.at(code) is not None}
    most = sorted(numbers.items(), key=lambda item: (-item[1][0], item[0]))[:MOST_VALUES]
    labels = _load_labels(reader, facet, [code for code, _ in most])
    values = [
        FacetValue(
            value=_value_of(reader, facet, code),
            label=labels[code],
            passages=passages,
            documents=documents,
            more=more,
        )
        for code, (passages, documents) in most
    ]
    return _sort_values(facet, values)


def _sort_values(facet: FacetName, values: Iterable[FacetValue]) -> list[FacetValue]:
    """Sort values by their passages, the most first, and years by themselves. The order of equal ones stays."""
    if facet == "year":
        return sorted(values, key=lambda each: each.value, reverse=True)
    return sorted(values, key=lambda each: -each.passages)


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
    return code_of(code) if facet in ("corpus_type", "party", "chamber") else code


def _load_labels(reader: Reader, facet: FacetName, codes: Sequence[str]) -> dict[str, str]:
    """Load the names of codes; a code without a name is its own."""
    if facet == "domain":
        return {code: DOMAIN_NAMES.get(code, code) for code in codes}
    if facet == "language":
        return {code: name_language(code) for code in codes}
    if facet == "place":
        return name_places(load_places(reader), codes)
    if facet == "concept":
        concepts = get_loaded_concepts(reader.kg) or load_concepts(reader.kg)
        return {code: concepts.label_of(code) or code_of(code) for code in codes}
    if facet == "year" or not codes:
        return {code: code for code in codes}

    def load(missing: list[str]) -> dict[str, str]:
        found = {code: code_of(code) for code in missing}
        rows = reader.rows("names of values", bind(NAMES, nodes=[NamedNode(code) for code in missing]))
        # The last row of a value names it: an English name before a name without a language, before others.
        for row in sorted(rows, key=lambda row: _rank_name(row["name"]), reverse=True):
            found[iri_of(row["node"])] = term_text(row["name"])
        return found

    names = reader.kept_by_iri("facet names", codes, load, query=NAMES)
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


def name_places(places: Places, iris: Iterable[str]) -> dict[str, str]:
    """Name places, and municipalities that share their name with others of them by what they are in too."""
    names = {iri: place.name if (place := places.get(iri)) else code_of(iri) for iri in iris}
    shared = {name for name, uses in Counter(names.values()).items() if uses > 1}
    for iri, name in names.items():
        place = places.get(iri)
        if name in shared and place is not None and place.kind == "municipality":
            outer = next((each.name for each in places.get_chain(place)), name)
            names[iri] = f"{name} ({outer if outer != name else place.kind})"
    return names


def _rank_name(name: Term) -> tuple[int, str]:
    """Rank a name of a value: English names first, then those without a language, then by text."""
    language = name.language if isinstance(name, Literal) else None
    return (2 if language and not language.startswith("en") else 0 if language else 1), term_text(name)
