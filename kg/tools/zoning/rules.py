"""Finds and loads the rules of codes (permissions, standards, definitions, citations), each with its evidence.

A rule is reported as law if its source states it, if a person accepted it, or if it and its district were found in text
with a confidence of at least the setting ``rule_confidence``, and no rule of a source overrules it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from pydantic import Field
from pyoxigraph import NamedNode

from kg.fuzzy_names import fold
from kg.retrieval.choices import shorten
from kg.retrieval.evidence import Descriptions, code_of, describe
from kg.retrieval.reader import Reader, iri_of
from kg.retrieval.results import Lean
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
from kg.text import name_or_quote, quoted
from kg.tools.zoning.name_lookup import MEMBERS, Vocabulary, get_section_key, load_statuses
from kg.vocabulary import BASE, DCTERMS, EXTRACTED, KG, OA, PROV, QUDT, RDF, SKOS, SOURCED
from kg.zoning_summaries.use_names import parse_use_kinds

# Rows name a rule by its number: repeating its IRI in hundreds of rows is the largest cost.
# One property per row, after the lookup by subject: with OPTIONAL inside GRAPH the engine reads the whole store.
RULES: Final = """
SELECT ?number ?part ?property ?value WHERE {
  VALUES (?number ?rule) { $rules }
  { ?rule ?property ?value FILTER(?property NOT IN (rdf:type, kg:district, kg:landUse, kg:quantity, kg:evidence)) }
  UNION { { ?rule kg:quantity ?part } UNION { ?rule kg:evidence ?part } ?part ?property ?value
          FILTER(?property NOT IN (rdf:type, oa:hasSource)) }
  UNION { ?rule kg:definedIn ?part . ?part dcterms:title ?value BIND(dcterms:title AS ?property) }
}"""

ASSERTED: Final = """
SELECT DISTINCT ?citing ?predicate ?cited WHERE {
  VALUES (?citing ?predicate ?cited) { $triples } ?citing ?predicate ?cited
}"""

_GRAPHS: Final = BASE + "graph/"


class Span(Lean):
    """Text of the law: characters start to end of the section's text."""

    start: int
    end: int
    text: str


class RuleEvidence(Lean):
    """The source of a rule."""

    id: str
    graph: str
    section: str | None = None
    section_iri: str | None = None
    section_status: str | None = None
    spans: list[Span] | None = None
    basis: str = Field(description="stated (by the source), extracted (from text), or read by NAME, unconfirmed")
    recorded_in: str | None = Field(None, description="Column or row of a table")
    method: str | None = None
    confidence: float | None = None
    review: str | None = Field(None, description="accepted: a person compared it with the text")
    yields_to: str | None = Field(None, description="Rule that the source states, and that differs")
    source: str | None = None
    sha256: str | None = None
    fetched_at: str | None = None
    sent_by: str | None = None


@dataclass(slots=True)
class Node:
    """The properties of a node."""

    said: dict[str, list[str]] = field(default_factory=dict, kw_only=True)
    """Values by property."""

    def all(self, name: NamedNode) -> list[str]:
        """Get the values of one property, sorted."""
        return sorted(self.said.get(name.value, ()))

    def one(self, name: NamedNode) -> str | None:
        """Get the first value of one property."""
        return min(self.said.get(name.value, ()), default=None)

    def code(self, name: NamedNode) -> str | None:
        """Get the code of a code-list value."""
        value = self.one(name)
        return None if value is None else code_of(value)

    @property
    def place(self) -> tuple[int, int]:
        """Its characters in the text."""
        return int(self.one(KG.start) or 0), int(self.one(KG.end) or 0)


@dataclass(slots=True)
class Rule(Node):
    """The properties of a permission, standard, definition or citation."""

    iri: str
    graph: str
    parts: dict[str, Node] = field(default_factory=dict)
    """Its quantity, spans and section, by IRI."""

    @property
    def confidence(self) -> float | None:
        """None for a rule that a source states."""
        value = self.one(KG.confidence)
        return None if value is None else float(value)

    @property
    def edge(self) -> tuple[str, str, str]:
        """The triple that it claims, with empty strings for missing terms."""
        subject, predicate, value = (self.one(name) or "" for name in (RDF.subject, RDF.predicate, RDF.object))
        return subject, predicate, value

    def heading(self) -> str | None:
        """Get the heading of its section."""
        section = self.parts.get(self.one(KG.definedIn) or "")
        return None if section is None else section.one(DCTERMS.title)

    def section(self, name: NamedNode) -> str | None:
        """Get the key of the section that is the value of a property."""
        value = self.one(name)
        return None if value is None else get_section_key(value)

    def quantity(self) -> tuple[float, str] | None:
        """Get the prescribed number and the code of its unit."""
        for part in self.parts.values():
            if (number := part.one(QUDT.numericValue)) is not None and (unit := part.code(QUDT.hasUnit)) is not None:
                return float(number), unit
        return None

    def spans(self) -> list[Span]:
        """Get the text spans of its evidence."""
        words = [(part.place, text) for part in self.parts.values() if (text := part.one(OA.exact)) is not None]
        return [Span(start=start, end=end, text=text) for (start, end), text in sorted(words)]


def load_rules(reader: Reader, graphs: Mapping[str, str]) -> dict[str, Rule]:
    """Load rules by IRI. `graphs` gives the graph of each and the order of the result."""
    rules = [Rule(iri, graph) for iri, graph in graphs.items()]
    if rules:
        query = bind(RULES, rules=[(number, NamedNode(rule.iri)) for number, rule in enumerate(rules)])
        for number, part, name, value in reader.tuples("properties of the rules", query):
            if number is None or name is None or value is None:
                continue
            rule = rules[int(term_text(number))]
            about = rule if part is None else rule.parts.setdefault(iri_of(part), Node())
            about.said.setdefault(iri_of(name), []).append(term_text(value))
    return {rule.iri: rule for rule in rules}


def is_reported(rule: Rule, threshold: float) -> bool:
    """Whether tools report a rule as law: its source states it, a person accepted it, or its confidence suffices."""
    confidence = rule.confidence
    return confidence is None or rule.one(KG.reviewStatus) is not None or confidence >= threshold


def load_asserted(reader: Reader, claims: Iterable[Rule]) -> set[tuple[str, str, str]]:
    """Load those triples of `claims` that are edges of the graph."""
    whole = sorted({claim.edge for claim in claims if all(claim.edge)})
    if not whole:
        return set()
    query = bind(ASSERTED, triples=[(NamedNode(s), NamedNode(p), NamedNode(o)) for s, p, o in whole])
    return {
        (iri_of(row["citing"]), iri_of(row["predicate"]), iri_of(row["cited"]))
        for row in reader.rows("asserted citations", query)
    }


TARGETS: Final = """
SELECT ?node ?kind ?name ?type WHERE {
  VALUES ?node { $nodes } ?node a ?kind FILTER(?kind IN (kg:ExternalLaw, kg:PolicyFamily, kg:CodeSection))
  OPTIONAL { ?node dcterms:identifier ?number } OPTIONAL { ?node dcterms:title ?title }
  OPTIONAL { ?node kg:lawType ?type }
  BIND(COALESCE(?number, ?title) AS ?name)
}"""

_CITED: Final = {KG.ExternalLaw.value: "law", KG.PolicyFamily.value: "policy family", KG.CodeSection.value: "section"}


def load_targets(reader: Reader, cited: Collection[str]) -> dict[str, tuple[str | None, str | None, str | None]]:
    """Load the name, kind and type of law of each cited entity."""
    if not cited:
        return {}
    rows = reader.rows("cited laws and families", bind(TARGETS, nodes=[NamedNode(each) for each in sorted(cited)]))
    return {
        iri_of(row["node"]): (
            term_text(row["name"]) if "name" in row else None,
            _CITED[iri_of(row["kind"])],
            code_of(iri_of(row["type"])) if "type" in row else None,
        )
        for row in rows
    }


class Origin(NamedTuple):
    """The source of a graph, as far as it is recorded."""

    source: str | None = None
    sha256: str | None = None
    fetched_at: str | None = None
    sent_by: str | None = None


def load_origins(reader: Reader, graphs: Iterable[str]) -> dict[str, Origin]:
    """Load the sources of `graphs`. A graph of extracted rules has the source of the text."""
    origins = dict.fromkeys(graphs, Origin())
    own = describe(reader, (), origins, rows=False)
    made_from = {graph: own.all(graph, PROV.wasDerivedFrom) for graph in origins}
    texts = {each for several in made_from.values() for each in several if each.startswith(_GRAPHS)}
    said = Descriptions({**own.said, **describe(reader, (), texts, rows=False).said})
    for graph, several in made_from.items():
        behind = [found for each in several if each in texts for found in said.all(each, PROV.wasDerivedFrom)]
        for snapshot in [each for each in (*several, *behind) if not each.startswith(_GRAPHS)][:1]:
            sender = said.one(snapshot, PROV.wasAttributedTo)
            location, sha256, time = (said.one(snapshot, name) for name in (KG.location, KG.sha256, KG.retrievedAt))
            sent_by = None if sender is None else code_of(sender)
            origins[graph] = Origin(location, sha256, time, sent_by)
    return origins


def load_evidence(reader: Reader, rules: Sequence[Rule]) -> list[RuleEvidence]:
    """Load the evidence of each of `rules`, in their order."""
    origins = load_origins(reader, {rule.graph for rule in rules})
    sections = [rule.one(KG.definedIn) for rule in rules]
    statuses = load_statuses(reader, sections)
    return [
        RuleEvidence(
            id=rule.iri,
            graph=rule.graph,
            section=rule.heading(),
            section_iri=section,
            section_status=statuses.get(section or ""),
            spans=rule.spans() or None,
            basis=_describe_basis(rule),
            recorded_in=rule.one(KG.recordedIn),
            method=rule.one(KG.method),
            confidence=rule.confidence,
            review=rule.one(KG.reviewStatus),
            **origins[rule.graph]._asdict(),
        )
        for rule, section in zip(rules, sections, strict=True)
    ]


def _describe_basis(rule: Rule) -> str:
    if not rule.graph.startswith(EXTRACTED):
        return "stated"
    readers = (rule.one(KG.method) or "").partition("reading/")[2]
    if not readers:
        return "extracted"
    confirmed = rule.one(KG.reviewStatus) is not None or ", " in readers
    return f"read by {readers}" + ("" if confirmed else ", unconfirmed")


RULES_OF_CODE: Final = """
SELECT ?rule ?graph ?district ?about ?confidence ?review WHERE {
  VALUES ?district { $districts } GRAPH ?graph { ?rule kg:district ?district ; $about ?about }
  OPTIONAL { ?rule kg:confidence ?confidence } OPTIONAL { ?rule kg:reviewStatus ?review }
}"""


DEFINITIONS: Final = """
SELECT ?rule ?graph ?about ?confidence ?review WHERE {
  ?rule kg:jurisdiction $municipality ; a kg:Definition GRAPH ?graph { ?rule skos:prefLabel ?about }
  OPTIONAL { ?rule kg:confidence ?confidence } OPTIONAL { ?rule kg:reviewStatus ?review }
}"""


class Found(NamedTuple):
    """A rule that was found and is not loaded yet."""

    iri: str
    graph: str
    district: str | None
    """None for a definition."""
    about: str
    """Its use or type of standard, or the term that it defines."""
    confidence: float | None
    """None for a rule that a source states."""
    is_accepted: bool

    @property
    def is_stated(self) -> bool:
        """Whether a source states it."""
        return self.graph.startswith(SOURCED)


class Candidates(NamedTuple):
    """Rules that match a call: those reported as law, and the unsure ones, the surest first."""

    reported: list[Found]
    unsure: list[Found]


RuleKind = Literal["permission", "standard", "definition"]


def find_rules(reader: Reader, kind: RuleKind, words: Vocabulary) -> Candidates:
    """Find all rules of a kind in a code."""
    if kind == "definition":
        query = bind(DEFINITIONS, municipality=NamedNode(words.place.iri))
    else:
        about = KG.landUse if kind == "permission" else KG.standardType
        query = bind(RULES_OF_CODE, districts=[NamedNode(iri) for iri in words.districts], about=about)
    least = reader.kg.settings.rule_confidence
    reported: list[Found] = []
    unsure: list[Found] = []
    for each in reader.kept(f"{kind}s", query, _read_found):
        is_unsure = each.confidence is not None and (each.confidence < least or each.district in words.unsure)
        (unsure if is_unsure and not each.is_accepted else reported).append(each)
    return Candidates(reported, sorted(unsure, key=lambda each: (-(each.confidence or 0), each.iri)))


def _read_found(rows: Sequence[Mapping[str, Term]]) -> list[Found]:
    """Read the rows of a query for rules."""
    return [
        Found(
            iri_of(row["rule"]),
            iri_of(row["graph"]),
            iri_of(row["district"]) if "district" in row else None,
            term_text(row["about"]),
            float(term_text(row["confidence"])) if "confidence" in row else None,
            "review" in row,
        )
        for row in rows
    ]


def find_overruled(
    reader: Reader, rules: Iterable[Found], among: Iterable[Found], to_subject: Callable[[str], object]
) -> dict[str, str]:
    """Find those of `rules` found in text from which all rules differ that sources state about the same in `among`.

    Returns one of the latter for each, by IRI. `to_subject` builds the key by which uses, types or terms are compared.
    """
    stated: dict[object, list[Found]] = defaultdict(list)
    for each in among:
        if each.is_stated:
            stated[each.district, to_subject(each.about)].append(each)
    pairs = [
        (each, stated[scope])
        for each in rules
        if not each.is_stated and (scope := (each.district, to_subject(each.about))) in stated
    ]
    loaded = load_rules(reader, {each.iri: each.graph for one, others in pairs for each in (one, *others)})
    overruled: dict[str, str] = {}
    for each, others in pairs:
        case, value = _read_provision(loaded[each.iri])
        same = {iri: of for iri in (other.iri for other in others) if (of := _read_provision(loaded[iri]))[0] == case}
        if same and all(other != value for _, other in same.values()):
            overruled[each.iri] = next(iter(same))
    return overruled


def _read_provision(rule: Rule) -> tuple[object, object]:
    """Read in which case and unit a rule applies, and its value."""
    number, unit = rule.quantity() or (None, "")
    case = rule.code(KG.bound), fold(rule.one(KG.appliesTo) or ""), tuple(rule.all(KG.condition)), unit
    words = next(filter(None, map(rule.one, (KG.rawLevel, KG.rawValue, SKOS.definition))), "")
    return case, rule.code(KG.permissionLevel) or (fold(words) if number is None else number)


_REFERENCE: Final = re.compile(
    r"(?:(?:any|all|the|those|every) )?(?:[a-z]+ )?(?:of the )?uses? (?:that (?:is|are) )?(?:permitted|allowed|listed)"
    r"(?: (?:by right|outright|as of right))? (?:in|within) "
    r"(?P<of>(?:(?:the )?(?-i:[A-Z])[\w-]{0,8}(?:, (?:and |or )?| and | or )){0,20}[^.;:,]{1,80})",
    re.IGNORECASE,
)
"""A use that refers to another district: ``Any use permitted in the C-1 District, except theaters``."""
_EXCEPTED: Final = re.compile(r"\b(?:except(?:ing)?(?: for)?|excluding|other than|but not) (?P<what>.+)", re.IGNORECASE)


class References(NamedTuple):
    """References of districts to the uses of others."""

    found: list[Found]
    led: dict[str, set[str]]
    """The districts with a permission that they lead to, by the district that refers."""
    notes: list[str]


def follow_references(
    words: Vocabulary,
    districts: Collection[str],
    reported: Iterable[Found],
    stated: Container[str | None],
    use: str,
) -> References:
    """Follow the references of `districts` to the districts in `stated`, which have a permission for the use asked for.

    A reference that names no known district may lead to a permission: it is always part of the result. One that excepts
    the `use` is not followed.
    """
    targets = {
        iri: _find_districts_in(match["of"], words)
        for iri, each in words.uses.items()
        if (match := _REFERENCE.match(each.name)) and not _is_excepted(use, each.name)
    }
    referring: dict[str | None, list[Found]] = defaultdict(list)
    for each in reported:
        if each.about in targets:
            referring[each.district].append(each)
    found: dict[str, Found] = {}
    led: dict[str, set[str]] = {}
    notes: list[str] = []
    for iri in districts if referring else ():
        reached, way = {iri: None}, list[Found]()
        pending = [iri]
        for other in pending:
            way += referring[other]
            new = [each for rule in referring[other] for each in targets[rule.about] if each not in reached]
            reached |= dict.fromkeys(new)
            pending += dict.fromkeys(new)
        code = name_or_quote(words.districts[iri].code)
        if into := {other for other in reached if other in stated} - {iri}:
            led[iri] = into
            codes = shorten([known.code for other, known in words.districts.items() if other in into])
            notes.append(
                f"{code} refers to uses of {codes}. Read the words of the reference: they may except this use, and "
                "need not include uses that are conditional or prohibited there."
            )
        for each in way:
            # Of all districts, a reference that could lead anywhere does not answer a use.
            is_lost = not targets[each.about] and len(districts) < len(words.districts)
            if into or is_lost:
                found[each.iri] = each
            if is_lost:
                notes.append(
                    f"{code} also refers to the uses of another district, which differs from lot to lot or could not "
                    f"be identified: {quoted(words.uses[each.about].name)}. Read that section."
                )
    return References([*found.values()], led, notes)


def _is_excepted(use: str, reference: str) -> bool:
    """Whether a reference excepts a use: ``Any use permitted in C-1, except theaters``."""
    match = _EXCEPTED.search(reference)
    kinds = parse_use_kinds(use)
    return match is not None and any(kinds == parse_use_kinds(part) for part in MEMBERS.split(match["what"]))


def is_reference(use: str) -> bool:
    """Whether the name of a use refers to the uses of another district."""
    return _REFERENCE.match(use) is not None


def _find_districts_in(text: str, words: Vocabulary) -> list[str]:
    """Find the districts that some words name, by code or name."""
    plain = f" {fold(text)} "
    return [
        iri
        for iri, each in words.districts.items()
        if re.search(rf"(?<![\w-]){re.escape(each.code)}(?![\w-])", text)
        or (each.name != each.code and f" {fold(each.name)} " in plain)
    ]
