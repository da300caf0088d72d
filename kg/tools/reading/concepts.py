"""A concept to be read about: names by language, statements with qualifiers and references, mentions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyoxigraph import Literal, NamedNode

from kg.calendar_dates import read_time
from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.concept_index import load_concepts
from kg.retrieval.evidence import build_evidence, load_units
from kg.retrieval.places import load_places
from kg.retrieval.reader import Reader, iri_of
from kg.retrieval.results import Evidence, Statement
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
from kg.text import quoted
from kg.tools.concepts.find import ConceptLink, FoundConcept, concept_find
from kg.tools.entities.dereference import names_of, short_name
from kg.vocabulary import RDFS, SKOS, WIKIBASE, XSD

MOST_STATEMENTS: Final = 1_500
"""Maximum statements on a page. Truncation is reported."""
MOST_ROWS: Final = 20_000
MENTIONS_COUNTED: Final = 20_000
"""Maximum number of mentioning passages that are counted by place and year. Truncation is reported."""
MENTIONS_SHOWN: Final = 20

NAMES: Final = """
SELECT DISTINCT ?property ?value WHERE {
  VALUES ?node { $nodes } ?node ?property ?value
  FILTER(?property IN (skos:prefLabel, skos:altLabel, skos:definition, schema:description, rdfs:label,
                       skos:exactMatch, skos:closeMatch, owl:sameAs))
}"""

STATEMENTS: Final = """
SELECT ?statement ?property ?value WHERE {
  { SELECT DISTINCT ?statement WHERE { $entity ?claim ?statement . ?statement a wikibase:Statement } LIMIT $most }
  ?statement ?property ?value
} LIMIT $rows"""

REFERENCES: Final = """
SELECT ?reference ?property ?value WHERE {
  VALUES ?reference { $references } ?reference ?property ?value
} LIMIT $rows"""

VALUES_OF: Final = """
SELECT ?node ?property ?value WHERE {
  VALUES ?node { $nodes } ?node ?property ?value
  FILTER(?property IN (wikibase:quantityUnit, wikibase:quantityAmount, wikibase:timePrecision, wikibase:timeValue,
                       wikibase:timeCalendarModel))
} LIMIT $rows"""

MENTIONING: Final = """
SELECT DISTINCT ?unit WHERE { ?unit kg:mentions $concept } LIMIT $most"""

BY_PLACE: Final = """
SELECT ?place ?year (COUNT(?unit) AS ?count) WHERE {
  { SELECT DISTINCT ?unit WHERE { ?unit kg:mentions $concept } LIMIT $most }
  OPTIONAL { ?unit dcterms:isPartOf ?whole } BIND(COALESCE(?whole, ?unit) AS ?document)
  OPTIONAL { ?document kg:jurisdiction ?place }
  OPTIONAL { ?document eli:date_document ?dated } OPTIONAL { ?document dcterms:date ?said }
  BIND(SUBSTR(STR(COALESCE(?dated, ?said)), 1, 4) AS ?year)
} GROUP BY ?place ?year"""

_RANKS: Final = {
    WIKIBASE.PreferredRank.value: "preferred",
    WIKIBASE.NormalRank.value: "normal",
    WIKIBASE.DeprecatedRank.value: "deprecated",
}
_PROV: Final = "http://www.w3.org/ns/prov#wasDerivedFrom"


@dataclass(frozen=True, slots=True)
class LanguageNames:
    """The names of a concept in a language."""

    language: str
    label: str | None
    description: str | None
    aliases: Sequence[str]


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a statement, qualifier or reference. Without `iri` it is text."""

    text: str
    iri: str | None = None
    language: str | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Property:
    """A property with its values."""

    iri: str
    label: str
    values: Sequence[Value]


@dataclass(frozen=True, slots=True)
class WikibaseStatement:
    """A statement as a Wikibase has it."""

    iri: str
    value: Value
    rank: str
    qualifiers: Sequence[Property]
    references: Sequence[Sequence[Property]]


@dataclass(frozen=True, slots=True)
class StatementGroup:
    """The statements of one property."""

    property: str
    label: str
    statements: Sequence[WikibaseStatement]


@dataclass(frozen=True, slots=True)
class Count:
    """A number of passages for a place or a year."""

    label: str
    count: int
    iri: str | None = None


@dataclass(frozen=True, slots=True)
class ConceptPage:
    """A concept."""

    iri: str
    entity: str
    found: FoundConcept
    names: Sequence[LanguageNames]
    matches: Sequence[str]
    """IRIs of the same or a similar concept elsewhere."""
    groups: Sequence[StatementGroup]
    cut: bool
    """Whether it has more statements."""
    places: Sequence[Count]
    years: Sequence[Count]
    total: int
    """The number of passages that mention it, at most `MENTIONS_COUNTED`."""
    many: bool
    """Whether more mention it."""
    evidence: Sequence[Evidence]
    page: int
    more: bool
    generation: int
    queries: Sequence[Statement] = field(default_factory=list, repr=False)

    def links(self, name: str) -> Sequence[ConceptLink]:
        """Get the broader or narrower concepts, or the classes."""
        links: Sequence[ConceptLink] | None = getattr(self.found, name)
        return links or ()


def read_concept(kg: KnowledgeGraph, iri: str, page: int = 1) -> ConceptPage:
    """Load a concept, by its IRI or that of its entity. Raises NotFoundError for others."""
    concepts = load_concepts(kg)
    concept = concepts.at(iri) or load_concepts(kg, fresh=True).at(iri)
    if concept is None:
        raise NotFoundError(f"{quoted(iri)} is not a concept with a name.")
    reader = Reader(kg)
    described = concept_find(kg, qid=concept.iri)
    node, entity = NamedNode(concept.iri), NamedNode(concept.entity)
    names, matches = _load_names(reader, [node, entity])
    groups, cut = _load_statements(reader, entity)
    places, years, total = _count_mentions(reader, node)
    start = (page - 1) * MENTIONS_SHOWN

    def read(rows: list[dict[str, Term]]) -> list[str]:
        return sorted({iri_of(row["unit"]) for row in rows})

    mentioning = reader.kept(
        "passages that mention it", bind(MENTIONING, concept=node, most=MENTIONS_COUNTED + 1), read
    )
    shown = mentioning[start : start + MENTIONS_SHOWN]
    if page < 1 or (page > 1 and not shown):
        raise NotFoundError(f"Page {page} of the mentions does not exist.")
    units = load_units(reader, shown)
    return ConceptPage(
        iri=concept.iri,
        entity=concept.entity,
        found=described.concepts[0],
        names=names,
        matches=matches,
        groups=groups,
        cut=cut,
        places=places,
        years=years,
        total=min(total, MENTIONS_COUNTED),
        many=len(mentioning) > MENTIONS_COUNTED,
        evidence=build_evidence(reader, [units[each] for each in shown if each in units], mentioned=[concept.iri]),
        page=page,
        more=len(mentioning) > start + MENTIONS_SHOWN,
        generation=reader.kg.generation,
        queries=[*described.meta.sparql, *reader.ran],
    )


def _load_names(reader: Reader, nodes: Sequence[NamedNode]) -> tuple[list[LanguageNames], list[str]]:
    """Load the names by language, English first, and the IRIs of matching concepts elsewhere."""
    labels: dict[str, str] = {}
    about: dict[str, str] = {}
    aliases: dict[str, set[str]] = defaultdict(set)
    matches: set[str] = set()
    rows = reader.rows("its names", bind(NAMES, nodes=list(dict.fromkeys(nodes))))
    for row in sorted(rows, key=lambda row: str(row["value"])):
        name, value = NamedNode(iri_of(row["property"])), row["value"]
        if isinstance(value, NamedNode):
            matches.add(value.value)
        elif isinstance(value, Literal):
            language = value.language or ""
            if name in (SKOS.prefLabel, RDFS.label):
                labels.setdefault(language, value.value)
            elif name == SKOS.altLabel:
                aliases[language].add(value.value)
            else:
                about.setdefault(language, value.value)
    found = [
        LanguageNames(language, labels.get(language), about.get(language), sorted(aliases.get(language, ())))
        for language in {*labels, *about, *aliases}
    ]
    found.sort(key=lambda each: (each.language != "en", each.language == "", each.language))
    return found, sorted(matches - {node.value for node in nodes})


def _load_statements(reader: Reader, entity: NamedNode) -> tuple[list[StatementGroup], bool]:
    """Load the statements of an entity, grouped by property, and whether there are more."""
    query = bind(STATEMENTS, entity=entity, most=MOST_STATEMENTS + 1, rows=MOST_ROWS)
    said: dict[str, list[tuple[str, Term]]] = defaultdict(list)
    for row in reader.rows("its statements", query):
        said[iri_of(row["statement"])].append((iri_of(row["property"]), row["value"]))
    if not said:
        return [], False
    cited = {iri for each in said.values() for iri in _nodes_of(each, _PROV)}
    references: dict[str, list[tuple[str, Term]]] = defaultdict(list)
    for row in _rows(reader, "its references", REFERENCES, "references", cited):
        references[iri_of(row["reference"])].append((iri_of(row["property"]), row["value"]))
    everything = [*said.values(), *references.values()]
    nodes = {iri for each in everything for iri in _nodes_of(each, "/value/")}
    details: dict[str, dict[str, Term]] = defaultdict(dict)
    for row in _rows(reader, "units and precisions", VALUES_OF, "nodes", nodes):
        details[iri_of(row["node"])][iri_of(row["property"])] = row["value"]
    wording = _Wording(reader, everything, details)
    groups: dict[str, list[WikibaseStatement]] = defaultdict(list)
    for iri in sorted(said)[:MOST_STATEMENTS]:
        pairs = said[iri]
        main = wording.read(pairs, "/prop/statement/")
        if not main:
            continue
        ranks_of = [_RANKS[value.value] for _, value in pairs if isinstance(value, NamedNode) and value.value in _RANKS]
        sources = sorted(_nodes_of(pairs, _PROV))
        groups[main[0].iri].append(
            WikibaseStatement(
                iri=iri,
                value=main[0].values[0],
                rank=ranks_of[0] if ranks_of else "normal",
                qualifiers=wording.read(pairs, "/prop/qualifier/"),
                references=[wording.read(references[each], "/prop/reference/") for each in sources],
            )
        )
    ranks = ("preferred", "normal", "deprecated")
    found = [
        StatementGroup(
            name, wording.label_of(name), sorted(each, key=lambda one: (ranks.index(one.rank), one.value.text))
        )
        for name, each in groups.items()
    ]
    found.sort(key=lambda group: (len(group.property.rpartition("/")[2]), group.property))
    return found, len(said) > MOST_STATEMENTS


def _nodes_of(pairs: Sequence[tuple[str, Term]], part: str) -> list[str]:
    """List the nodes that are values of the properties with `part` in their IRIs."""
    return [value.value for name, value in pairs if part in name and isinstance(value, NamedNode)]


def _rows(reader: Reader, purpose: str, query: str, name: str, iris: set[str]) -> list[dict[str, Term]]:
    nodes = [NamedNode(iri) for iri in sorted(iris)]
    return reader.rows(purpose, bind(query, **{name: nodes}, rows=MOST_ROWS)) if nodes else []


class _Wording:
    """Words the properties and values of statements."""

    def __init__(
        self,
        reader: Reader,
        everything: Sequence[Sequence[tuple[str, Term]]],
        details: Mapping[str, Mapping[str, Term]],
    ) -> None:
        self._details = details
        values = {value.value for each in everything for _, value in each if isinstance(value, NamedNode)}
        values |= {value.value for each in details.values() for value in each.values() if isinstance(value, NamedNode)}
        properties = {_entity_of(name) for each in everything for name, _ in each} - {None}
        items = {value for value in values if "/entity/" in value and "/statement/" not in value}
        self._names = names_of(reader.kg, {*items, *(name for name in properties if name)})

    def label_of(self, name: str) -> str:
        """Get the label of a property of a Wikibase."""
        return self._names.get(_entity_of(name) or "") or name.rpartition("/")[2]

    def read(self, pairs: Sequence[tuple[str, Term]], kind: str) -> list[Property]:
        """Word the properties of one kind, such as ``/prop/qualifier/``, with their values."""
        found: dict[str, list[Value]] = defaultdict(list)
        simple = dict(pairs)
        for name, value in pairs:
            start, own, number = name.partition(kind)
            if own and "/" not in number:
                node = simple.get(f"{start}{kind}value/{number}")
                detail = self._details.get(node.value, {}) if isinstance(node, NamedNode) else {}
                found[name].append(self._word(value, detail))
        # A statement without a value has a class instead of one.
        if not found and kind == "/prop/statement/":
            for _, value in pairs:
                if isinstance(value, NamedNode) and "/prop/novalue/" in value.value:
                    found[value.value.replace("/novalue/", "/statement/")].append(Value("no value"))
        return [Property(name, self.label_of(name), values) for name, values in sorted(found.items())]

    def _word(self, value: Term, detail: Mapping[str, Term]) -> Value:
        if isinstance(value, NamedNode):
            if "/.well-known/genid/" in value.value or "/skolem/" in value.value:
                return Value("unknown value")
            return Value(self._names.get(value.value) or short_name(value.value), value.value)
        if not isinstance(value, Literal):
            return Value("unknown value")
        unit = detail.get(WIKIBASE.quantityUnit.value)
        precision = detail.get(WIKIBASE.timePrecision.value)
        if isinstance(unit, NamedNode) and not unit.value.endswith("/Q199"):
            return Value(f"{value.value.removeprefix('+')} {self._names.get(unit.value) or short_name(unit.value)}")
        if precision is not None:
            model = (
                term_text(detail[WIKIBASE.timeCalendarModel.value])
                if WIKIBASE.timeCalendarModel.value in detail
                else ""
            )
            date = read_time(
                value.value,
                int(term_text(precision)),
                model.rpartition("/")[2],
                is_date_time=value.datatype == XSD.dateTime,
            )
            return Value(str(date) if date is not None else value.value)
        return Value(value.value, language=value.language)


def _entity_of(name: str) -> str | None:
    """Get the IRI of the property that a predicate of a Wikibase belongs to."""
    base, own, number = name.partition("/prop/")
    return f"{base}/entity/{number.rpartition('/')[2]}" if own else None


def _count_mentions(reader: Reader, concept: NamedNode) -> tuple[list[Count], list[Count], int]:
    """Count the mentioning passages by place and by year. Cached until the next commit."""

    def read(rows: list[dict[str, Term]]) -> tuple[dict[str, int], dict[str, int], int]:
        places: dict[str, int] = defaultdict(int)
        years: dict[str, int] = defaultdict(int)
        total = 0
        for row in rows:
            count = int(term_text(row["count"]))
            total += count
            places[term_text(row["place"]) if "place" in row else ""] += count
            years[term_text(row["year"]) if "year" in row else ""] += count
        return places, years, total

    query = bind(BY_PLACE, concept=concept, most=MENTIONS_COUNTED)
    places, years, total = reader.kept("mentions by place and year", query, read)
    known = load_places(reader)

    def name_of(iri: str) -> str:
        place = known.get(iri)
        return place.name if place is not None else short_name(iri) if iri else "no place recorded"

    by_place = [Count(name_of(iri), count, iri or None) for iri, count in places.items() if count]
    dated = sorted(years.items(), key=lambda item: (item[0] == "", item[0]))
    by_year = [Count(year or "no date recorded", count) for year, count in dated if count]
    return sorted(by_place, key=lambda each: (-each.count, each.label)), by_year, total
