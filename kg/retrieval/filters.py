"""Compilation of filters to SPARQL patterns. Values are checked against the graph; places are in `kg.retrieval.places`.

A filter of which the graph has no value is an error that names valid ones. If it has some of the values, their results
are returned, and a note names the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pyoxigraph import Literal, NamedNode

from kg.errors import IndexUnavailableError, InvalidInputError, NotFoundError
from kg.fuzzy_names import nearest
from kg.languages import UNKNOWN, find_primary, name_language, parse_language
from kg.retrieval.concept_index import Concept, check_item, load_concepts, one
from kg.retrieval.evidence import code_of
from kg.retrieval.notes import SEE_RESOURCES
from kg.retrieval.places import Place, Territory, find_place, load_territory
from kg.retrieval.reader import Reader, iri_of
from kg.retrieval.results import SearchFilters
from kg.search.index_sync import DOMAINS
from kg.search.protocol import Codes, Conditions
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
from kg.text import name_or_quote, quoted
from kg.vocabulary import KG, SCHEMA, mint

Terms = NamedNode | Literal

VALUES_IN_USE: Final = """
SELECT DISTINCT ?value WHERE { VALUES ?kind { kg:PolicyDocument kg:Speech } ?document a ?kind ; $property ?value }"""

NAMES: Final = """
SELECT ?value ?name WHERE { VALUES ?value { $values } ?value skos:prefLabel ?name }"""

LANGUAGES_PRESENT: Final = """
SELECT DISTINCT ?value WHERE { VALUES ?value { $values } FILTER EXISTS { ?unit schema:inLanguage ?value } }"""

FAMILIES_PRESENT: Final = """
SELECT DISTINCT ?family WHERE { VALUES ?family { $families } ?family a kg:PolicyFamily }"""

FAMILIES_LIKE: Final = """
SELECT DISTINCT ?family WHERE {
  ?family a kg:PolicyFamily OPTIONAL { ?family dcterms:title ?title }
  FILTER(CONTAINS(STR(?family), $fragment) || CONTAINS(LCASE(COALESCE(?title, "")), $fragment))
} LIMIT 200"""

_TOPIC: Final = "dcterms:subject|kg:sector|kg:response|kg:keyword|kg:instrument|kg:hazard|kg:framework"
TOPICS_IN_USE: Final = f"""
SELECT DISTINCT ?value WHERE {{ ?document {_TOPIC} ?value }}"""
TOPIC: Final = f"VALUES ?topic {{ $topics }} ?document {_TOPIC} ?topic ."

JURISDICTION: Final = "VALUES ?place { $places } ?document kg:jurisdiction ?place ."
STATE: Final = "VALUES ?place { $states } ?document kg:state ?place ."
# As a UNION, the engine would list all speeches of the states for each block of proposals.
JURISDICTION_OR_STATE: Final = "VALUES (?located ?place) { $places } ?document ?located ?place ."
DOMAIN: Final = "VALUES ?kind { $kinds } ?document a ?kind ."
CORPUS_TYPE: Final = "VALUES ?corpusType { $corpus_types } ?document kg:corpusType ?corpusType ."
FAMILY: Final = "VALUES ?family { $families } ?document eli:is_member_of ?family ."
UNIT_LANGUAGE: Final = """OPTIONAL { ?unit schema:inLanguage ?own }
  OPTIONAL { ?document schema:inLanguage ?declared }
  VALUES ?language { $languages } FILTER(COALESCE(?own, ?declared) = ?language)"""
LANGUAGE_ALONE: Final = """VALUES ?language { $languages }
  { ?unit schema:inLanguage ?language }
  UNION {
    ?document schema:inLanguage ?language . ?unit dcterms:isPartOf ?document .
    FILTER NOT EXISTS { ?unit schema:inLanguage ?own }
  }"""
BY_STATE: Final = (
    "Speeches count for a state by the seat of the speaker: the recorded state, else the state derived from the "
    "electorate in that year. Speeches with neither are left out."
)
"""Note for results that have speeches of a state."""
DATED: Final = """VALUES ?year { $years } ?document eli:date_document|dcterms:date ?dated
  FILTER(SUBSTR(STR(?dated), 1, 4) = ?year && !REGEX(STR(?dated), "^[0-9]{5}"))"""
OF_PARTY: Final = "VALUES ?party { $parties } ?document kg:party ?party ."
IN_CHAMBER: Final = "VALUES ?chamber { $chambers } ?document kg:chamber ?chamber ."
MENTIONING: Final = "VALUES ?mentioned { $mentioned } FILTER EXISTS { ?unit kg:mentions ?mentioned }"
MENTIONING_ALONE: Final = "VALUES ?mentioned { $mentioned } ?unit kg:mentions ?mentioned ."
IN_DISTRICT: Final = """VALUES ?district { $districts }
  FILTER EXISTS { ?rule kg:definedIn ?unit ; kg:district ?district }"""
IN_DISTRICT_ALONE: Final = "VALUES ?district { $districts } ?rule kg:district ?district ; kg:definedIn ?unit ."
DISTRICTS_PRESENT: Final = """
SELECT DISTINCT ?district WHERE { VALUES ?district { $districts } FILTER EXISTS { ?rule kg:district ?district } }"""
DOCUMENT_LANGUAGE: Final = "VALUES ?language { $languages } ?document schema:inLanguage ?language ."


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of a request in SPARQL: patterns on ?document, and patterns on ?unit that need its ?document.

    `terms` has the values of the $names in the patterns.
    """

    on_document: tuple[str, ...] = ()
    on_unit: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    """The same as `on_unit`, in a form that binds ?unit."""
    terms: Mapping[str, Sequence[Terms]] = field(default_factory=dict)
    lists: tuple[str, ...] = ()
    """Patterns that list the documents of which some unit passes `on_unit`, for queries without units."""

    def compile(self, query: str, **terms: object) -> str:
        """Replace ``#LIST``, ``#DOCUMENT``, ``#UNIT`` and ``#BEGIN`` in `query` by the patterns, and bind all terms.

        ``#BEGIN`` is for the patterns on ?unit in a query where nothing else binds it, ``#UNIT`` for any other query.
        """
        alone = self.on_unit if self.on_document else self.alone
        text = query
        for place, patterns in (
            ("#LIST", self.lists),
            ("#DOCUMENT", self.on_document),
            ("#UNIT", self.on_unit),
            ("#BEGIN", alone),
        ):
            text = text.replace(place, "\n  ".join(patterns))
        needed = {name: values for name, values in self.terms.items() if f"${name}" in text}
        return bind(text, **needed, **terms)  # type: ignore[arg-type]

    def without(self, *names: str) -> Scope:
        """Leave out the patterns with any of these terms."""

        def keep(patterns: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(
                each for each in patterns if not any(f"${name} " in each or f"${name})" in each for name in names)
            )

        rest = {name: values for name, values in self.terms.items() if name not in names}
        return Scope(keep(self.on_document), keep(self.on_unit), keep(self.alone), rest, keep(self.lists))

    def join(self, other: Scope) -> Scope:
        """Build the scope of the units that are in both. Raises InvalidInputError if both have the same filter."""
        if both := self.terms.keys() & other.terms.keys():
            raise InvalidInputError(f"Filters are given twice ({', '.join(sorted(both))}). Give each of them once.")
        return Scope(
            self.on_document + other.on_document,
            self.on_unit + other.on_unit,
            self.alone + other.alone,
            {**self.terms, **other.terms},
            self.lists + other.lists,
        )


def build_conditions(scope: Scope) -> tuple[Conditions, bool]:
    """Build the conditions on codes in the index for a scope, and whether they are the whole scope."""
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
            found.append({"domain": list(dict.fromkeys(DOMAINS[term.value] for term in terms))})
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


@dataclass(frozen=True, slots=True)
class _Filter:
    """A filter by values: the term that they are bound to, and its pattern on ?document or on ?unit, as in `Scope`."""

    term: str
    resolve: Callable[[Reader, Sequence[Any], list[str]], Sequence[Terms]]
    """Finds the terms that values denote, and adds a note for each value that denotes none."""
    on_document: str | None = None
    on_unit: str | None = None
    alone: str | None = None


_FILTERS: Final[Mapping[str, _Filter]] = {
    "domain": _Filter(
        "kinds", lambda _, wanted, notes: [NamedNode(kind) for kind, name in DOMAINS.items() if name in wanted], DOMAIN
    ),
    "corpus_type": _Filter("corpus_types", lambda *given: _known("corpus_type", KG.corpusType, *given), CORPUS_TYPE),
    "family_slug": _Filter("families", lambda *given: _families(*given), FAMILY),
    "topic": _Filter("topics", lambda *given: _topics(*given), TOPIC),
    "language": _Filter("languages", lambda *given: _languages(*given), on_unit=UNIT_LANGUAGE, alone=LANGUAGE_ALONE),
    "year": _Filter(
        "years", lambda _, wanted, notes: [Literal(f"{year:04d}") for year in dict.fromkeys(wanted)], DATED
    ),
    "party": _Filter("parties", lambda *given: _known("party", KG.party, *given), OF_PARTY),
    "chamber": _Filter("chambers", lambda *given: _known("chamber", KG.chamber, *given), IN_CHAMBER),
    "district": _Filter("districts", lambda *given: _districts(*given), on_unit=IN_DISTRICT, alone=IN_DISTRICT_ALONE),
    "concept": _Filter("mentioned", lambda *given: _mentioned(*given), on_unit=MENTIONING, alone=MENTIONING_ALONE),
}
"""The filters of `SearchFilters` except places, by name. Each is resolved and compiled on its own."""


def compile_scope(reader: Reader, filters: SearchFilters, *, speeches: bool = True) -> tuple[Scope, list[str]]:
    """Compile `filters` to a scope, with notes for the caller; `speeches`: whether its answer can have speeches.

    Raises NotFoundError with valid values for a filter of which no value is known, as all tools do.
    """
    on_document: list[str] = []
    on_unit: list[str] = []
    alone: list[str] = []
    terms: dict[str, Sequence[Terms]] = {}
    notes: list[str] = []
    if filters.iso3 or filters.place:
        pattern, of_places, by_state = _places(reader, filters, notes)
        if by_state and speeches and (not filters.domain or "parliament" in filters.domain):
            notes.append(BY_STATE)
        on_document.append(pattern)
        terms |= of_places
    for argument, each in _FILTERS.items():
        if not (wanted := getattr(filters, argument)):
            continue
        found = each.resolve(reader, wanted, notes)
        if found:
            terms[each.term] = found
            for patterns, own in ((on_document, each.on_document), (on_unit, each.on_unit), (alone, each.alone)):
                patterns += [own] if own is not None else []
        elif argument != "concept":  # without concepts it has no effect, as a note states
            raise NotFoundError(" ".join(note for note in notes if note.startswith(f"{argument}: ")))
    return Scope(tuple(on_document), tuple(on_unit), tuple(alone), terms), notes


def _districts(reader: Reader, wanted: Sequence[str], notes: list[str]) -> list[Terms]:
    """Find the districts ``TOWN/CODE`` that have rules; add a note for each without."""
    nodes = {mint("district", *value.strip().split("/", 1)): value for value in wanted}
    rows = reader.rows("districts named", bind(DISTRICTS_PRESENT, districts=list(nodes)))
    present = {iri_of(row["district"]) for row in rows}
    notes += (
        f"district: No rule is of {quoted(value)}. Give the key of the town and the code: us-ut-sandy/R-1-8."
        for node, value in nodes.items()
        if node.value not in present
    )
    return [node for node in nodes if node.value in present]


def resolve_concept_filter(
    reader: Reader, qids: Sequence[str], notes: list[str], argument: str = "concept_qids"
) -> list[Concept]:
    """Resolve a filter by concepts; add a note for each unknown concept.

    Raises InvalidInputError for an id that cannot be a concept, and NotFoundError if no concept is known.
    """
    concepts = load_concepts(reader.kg) if qids else None
    found: dict[str, Concept] = {}
    unknown: list[str] = []
    for qid in qids:
        try:
            if concepts is not None and not len(concepts):
                check_item(concepts, argument, qid)
                continue
            concept = one(reader, argument, qid)
            found[concept.iri] = concept
        except NotFoundError as error:
            unknown.append(str(error))
    if unknown and not found:
        raise NotFoundError(" ".join(unknown))
    notes += unknown
    if concepts is not None and not len(concepts):
        notes.append(f"{argument} ({', '.join(qids)}) had no effect: no concepts are loaded.")
    return list(found.values())


def _mentioned(reader: Reader, wanted: Sequence[str], notes: list[str]) -> list[NamedNode]:
    return [NamedNode(concept.iri) for concept in resolve_concept_filter(reader, wanted, notes, "concept")]


def _places(reader: Reader, filters: SearchFilters, notes: list[str]) -> tuple[str, dict[str, Sequence[Terms]], bool]:
    """Compile the filters ``iso3`` and ``place`` to a pattern: any of these places, or a place inside one.

    The last value is whether a place is a state whose speeches are found by the seats of the speakers. Adds a note for
    each unknown place, and for each without records. Raises InvalidInputError for an ambiguous name, and NotFoundError
    if no place is known.
    """
    found: list[Territory] = []
    known: list[Place] = []
    unknown: list[str] = []
    for argument, wanted in (("iso3", filters.iso3), ("place", filters.place)):
        places: list[Place] = []
        for text in wanted:
            try:
                places.append(find_place(reader, argument, text))
            except NotFoundError as error:
                unknown.append(str(error))
        known += places
        found.append(load_territory(reader, argument, places))
    if not known:
        raise NotFoundError(" ".join(unknown))
    notes += unknown
    for territory in found:
        notes.extend(territory.empty)
    return *_pattern_of_places(found), any(territory.states for territory in found)


def _pattern_of_places(territories: Sequence[Territory]) -> tuple[str, dict[str, Sequence[Terms]]]:
    """Compile territories to a pattern on ?document, with its terms."""
    # In order, so that the same places are the same query, whose result is cached.
    places = sorted({place for territory in territories for place in territory.jurisdictions}, key=str)
    states = sorted({state for territory in territories for state in territory.states}, key=str)
    if not states:
        return JURISDICTION, {"places": places}
    if not places:
        return STATE, {"states": states}
    both = [(KG.jurisdiction, place) for place in places] + [(KG.state, state) for state in states]
    return JURISDICTION_OR_STATE, {"places": both}  # type: ignore[dict-item]  # rows, which `bind` takes too


def compile_territory(territory: Territory) -> Scope:
    """Compile a territory to the scope of its records."""
    pattern, terms = _pattern_of_places([territory])
    return Scope((pattern,), terms=terms)


def find_family(reader: Reader, slug: str) -> NamedNode:
    """Find the family with a slug or an id. Raises NotFoundError with similar slugs."""
    notes: list[str] = []
    found = _families(reader, [slug], notes)
    if not found or not isinstance(found[0], NamedNode):
        raise NotFoundError(notes[0])
    return found[0]


def load_values_in_use(reader: Reader, name: NamedNode) -> dict[str, Terms]:
    """Load the values of a property of documents, by code in lower case. Cached until the next commit."""

    def by_code(rows: list[dict[str, Term]]) -> dict[str, Terms]:
        values: dict[str, Terms] = {}
        for row in rows:
            value = row["value"]
            if isinstance(value, NamedNode):
                values[code_of(value.value).casefold()] = value
            elif isinstance(value, Literal):
                values[value.value.casefold()] = value
        return values

    return reader.kept("values in use", bind(VALUES_IN_USE, property=name), by_code)


def _known(argument: str, name: NamedNode, reader: Reader, wanted: Sequence[str], notes: list[str]) -> list[Terms]:
    """Find the nodes with the codes `wanted`, in any case; add a note for each that no document has."""
    folded = {value.strip().casefold(): value for value in wanted}
    values = load_values_in_use(reader, name)
    codes = {code: code_of(iri_of(term)) for code, term in values.items()}
    unknown = {code: value for code, value in folded.items() if code not in values}
    labels = _codes_by_label(reader, values.values()) if unknown else {}
    found = [code for code in folded if code in values]
    for code, value in unknown.items():
        if code in labels:
            found.append(labels[code].casefold())
            continue
        named = nearest(code, labels, 1, least=80)
        meant = f"Did you mean {name_or_quote(labels[named[0]])}?" if named else f"{hint(code, codes)}."
        notes.append(f"{argument}: No document has {quoted(value)}. {meant}")
    return [values[code] for code in dict.fromkeys(found)]


def _topics(reader: Reader, wanted: Sequence[str], notes: list[str]) -> list[Terms]:
    """Find the topics of documents with the words `wanted`, in any case; add a note for each that no document has."""

    def by_words(rows: list[dict[str, Term]]) -> dict[str, list[Literal]]:
        topics: dict[str, list[Literal]] = {}
        for row in rows:
            if isinstance(row["value"], Literal):
                topics.setdefault(_plain(row["value"].value), []).append(row["value"])
        return topics

    topics = reader.kept("topics in use", bind(TOPICS_IN_USE), by_words)
    shown = {words: several[0].value for words, several in topics.items()}
    unknown = [value for value in wanted if _plain(value) not in topics]
    notes += (f"topic: No document has {quoted(value)}. {hint(value, shown)}." for value in unknown)
    return [topic for words in dict.fromkeys(map(_plain, wanted)) for topic in topics.get(words, ())]


def _plain(topic: str) -> str:
    return " ".join(topic.replace("_", " ").casefold().split())


def _codes_by_label(reader: Reader, terms: Iterable[Terms]) -> dict[str, str]:
    """Load the codes of those of `terms` that have a name, by the name in lower case."""
    nodes = [term for term in terms if isinstance(term, NamedNode)]
    rows = reader.rows("names of values", bind(NAMES, values=nodes)) if nodes else []
    return {term_text(row["name"]).casefold(): code_of(iri_of(row["value"])) for row in rows}


def hint(wanted: str, valid: Mapping[str, str] | Iterable[str], most: int = 8) -> str:
    """Suggest the values closest to `wanted`; few values are all listed."""
    names = dict(valid) if isinstance(valid, Mapping) else {value.casefold(): value for value in valid}
    if not names:
        return "The graph has no values for it"
    if len(names) <= 2 * most:
        return f"Available: {', '.join(map(name_or_quote, sorted(names.values())))}"
    close = nearest(wanted.casefold(), names, most, least=50)
    close += [key for key in sorted(names) if key.startswith(wanted[:1].casefold()) and key not in close]
    chosen = [name_or_quote(names[key]) for key in (close or sorted(names))[:most]]
    return f"Similar: {', '.join(chosen)} ({len(names)} in total{SEE_RESOURCES})"


def _languages(reader: Reader, wanted: Sequence[str], notes: list[str]) -> list[Literal]:
    """Find the language tags in use that match languages, by code or name (RFC 4647 basic filtering: en matches en-GB).

    Adds a note for each language without a match, and for each that is only found without its region or script.
    """
    found: dict[str, Literal] = {}
    declared = _load_tags(reader)
    for value in wanted:
        tag = _find_tag(declared, value.strip())
        matches = [] if tag is None else _find_tags(reader, declared, tag)
        primary = find_primary(tag)
        if not matches and primary != UNKNOWN and (matches := _find_tags(reader, declared, primary)):
            notes.append(f"language: No text is tagged {tag}. Those tagged {primary} are searched.")
        if not matches:
            tags = {key: f"{term_text(term)} ({name_language(term_text(term))})" for key, term in declared.items()}
            named = "" if tag in (None, value) else f" ({tag})"
            problem = (
                f"{quoted(value)} is not a language" if tag is None else f"No passage is in {quoted(value)}{named}"
            )
            valid = "Valid are codes (de, deu, pt-BR) and names (German)."
            notes.append(f"language: {problem}. {valid} {hint(value, tags)}.")
        found.update((literal.value, literal) for literal in matches)
    return [found[tag] for tag in sorted(found)]


def _load_tags(reader: Reader) -> dict[str, Terms]:
    """Load the tags of languages in use, of documents and of passages, by tag in lower case."""
    declared = load_values_in_use(reader, SCHEMA.inLanguage)
    try:
        indexed = reader.kg.search.count(["languages"]).by_field["languages"]
    except IndexUnavailableError:
        indexed = {}
    return {tag.casefold(): Literal(tag) for tag in indexed} | declared


def _find_tag(declared: Mapping[str, Terms], text: str) -> str | None:
    """Find the tag of a language by its code or name; any tag in use, and ``*``, is one. None for other text."""
    return text if text == "*" or text.casefold() in declared else parse_language(text)


def _find_tags(reader: Reader, declared: Mapping[str, Terms], wanted: str) -> list[Literal]:
    """Find the tags of documents, and of passages, that match a language range."""
    span = wanted.casefold()
    matches = [
        term
        for tag, term in declared.items()
        if isinstance(term, Literal)
        and (span in ("*", tag) or tag.startswith(f"{span}-") or (span != UNKNOWN and span == find_primary(tag)))
    ]
    # A passage may have a language that no document declares.
    forms = [Literal(form) for form in dict.fromkeys((wanted, span))]
    if matches or reader.rows("languages in use", bind(LANGUAGES_PRESENT, values=forms)):
        return [*matches, *forms]
    return []


def _families(reader: Reader, slugs: Sequence[str], notes: list[str]) -> list[Terms]:
    nodes = {mint("family", slug.removeprefix("cpr://family/")): slug for slug in slugs}
    rows = reader.rows("families named", bind(FAMILIES_PRESENT, families=list(nodes)))
    present = {iri_of(row["family"]) for row in rows}
    notes.extend(
        f"family_slug: Unknown family {quoted(slug)}. {_near_family(reader, slug)}."
        for node, slug in nodes.items()
        if node.value not in present
    )
    return [node for node in nodes if node.value in present]


def _near_family(reader: Reader, slug: str) -> str:
    word = max(re.split(r"[^a-z0-9]+", slug.casefold()), key=len)
    rows = reader.rows("families like it", bind(FAMILIES_LIKE, fragment=Literal(word))) if word else []
    close = [code_of(iri_of(row["family"])) for row in rows]
    if not close:
        return "family_overview lists the families"
    return "Similar: " + ", ".join(map(name_or_quote, nearest(slug, close, 5)))
