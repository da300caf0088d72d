"""Loads rules of codes (permissions, standards, definitions, citations) with their evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pydantic import Field
from pyoxigraph import NamedNode

from kg.retrieval.evidence import Descriptions, code_of, describe
from kg.retrieval.reader import Reader, iri_of
from kg.retrieval.token_budget import Lean
from kg.sparql.terms import bind
from kg.store.protocol import term_text
from kg.tools.zoning.municipalities import get_section_key, load_statuses
from kg.vocabulary import BASE, DCTERMS, EXTRACTED, KG, OA, PROV, QUDT, RDF

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
_NOTHING: Final[dict[str, list[str]]] = {}


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
class Rule:
    """The properties of a permission, standard, definition or citation."""

    iri: str
    graph: str
    said: dict[str, list[str]] = field(default_factory=dict)
    """Values by property."""
    parts: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """Properties of its quantity, spans and section, by IRI."""

    def all(self, name: NamedNode, of: str | None = None) -> list[str]:
        """Get the values of one property, sorted."""
        return sorted((self.said if of is None else self.parts.get(of, _NOTHING)).get(name.value, ()))

    def one(self, name: NamedNode, of: str | None = None) -> str | None:
        """Get the first value of one property."""
        found = (self.said if of is None else self.parts.get(of, _NOTHING)).get(name.value)
        return None if found is None else found[0] if len(found) == 1 else min(found)

    def code(self, name: NamedNode) -> str | None:
        """Get the code of a code-list value."""
        value = self.one(name)
        return None if value is None else code_of(value)

    def section(self, name: NamedNode) -> str | None:
        """Get the key of the section that is the value of a property."""
        value = self.one(name)
        return None if value is None else get_section_key(value)

    def quantity(self) -> tuple[float, str] | None:
        """Get the prescribed number and the code of its unit."""
        for part, said in self.parts.items():
            if QUDT.numericValue.value in said and (unit := self.one(QUDT.hasUnit, part)) is not None:
                return float(self.one(QUDT.numericValue, part) or 0), code_of(unit)
        return None

    def spans(self) -> list[Span]:
        """Get the text spans of its evidence."""
        found = [
            Span(
                start=int(self.one(KG.start, part) or 0),
                end=int(self.one(KG.end, part) or 0),
                text=self.one(OA.exact, part) or "",
            )
            for part, said in self.parts.items()
            if OA.exact.value in said
        ]
        return sorted(found, key=lambda span: (span.start, span.end))


def load_rules(reader: Reader, graphs: Mapping[str, str]) -> dict[str, Rule]:
    """Load rules by IRI. `graphs` gives the graph of each and the order of the result."""
    rules = [Rule(iri, graph) for iri, graph in graphs.items()]
    if rules:
        query = bind(RULES, rules=[(number, NamedNode(rule.iri)) for number, rule in enumerate(rules)])
        for number, part, name, value in reader.tuples("properties of the rules", query):
            if number is None or name is None or value is None:
                continue
            rule = rules[int(term_text(number))]
            said = rule.said if part is None else rule.parts.setdefault(iri_of(part), {})
            said.setdefault(iri_of(name), []).append(term_text(value))
    return {rule.iri: rule for rule in rules}


def is_reported(rule: Rule, threshold: float) -> bool:
    """Whether tools report a rule as law: its source states it, a person accepted it, or its confidence suffices."""
    confidence = rule.one(KG.confidence)
    return confidence is None or rule.one(KG.reviewStatus) is not None or float(confidence) >= threshold


def load_asserted(reader: Reader, claims: Iterable[Rule]) -> set[tuple[str, str, str]]:
    """Load those triples of `claims` that are edges of the graph."""
    triples = {(claim.one(RDF.subject), claim.one(RDF.predicate), claim.one(RDF.object)) for claim in claims}
    whole = sorted((s, p, o) for s, p, o in triples if s is not None and p is not None and o is not None)
    if not whole:
        return set()
    query = bind(ASSERTED, triples=[(NamedNode(s), NamedNode(p), NamedNode(o)) for s, p, o in whole])
    rows = reader.rows("asserted citations", query)
    return {(iri_of(row["citing"]), iri_of(row["predicate"]), iri_of(row["cited"])) for row in rows}


class Origin(NamedTuple):
    """The source of a graph, as far as it is recorded."""

    source: str | None = None
    sha256: str | None = None
    fetched_at: str | None = None
    sent_by: str | None = None


@dataclass(frozen=True, slots=True)
class Origins:
    """The sources of graphs."""

    descriptions: Descriptions

    def of(self, graph: str) -> Origin:
        """Get the source of a graph."""
        found = self.descriptions
        made_from = found.all(graph, PROV.wasDerivedFrom)
        behind = [each for each in made_from if each.startswith(_GRAPHS)]
        snapshots = [each for each in made_from if not each.startswith(_GRAPHS)]
        for other in behind:
            snapshots += [each for each in found.all(other, PROV.wasDerivedFrom) if not each.startswith(_GRAPHS)]
        if not snapshots:
            return Origin()
        sender = found.one(snapshots[0], PROV.wasAttributedTo)
        return Origin(
            found.one(snapshots[0], KG.location),
            found.one(snapshots[0], KG.sha256),
            found.one(snapshots[0], KG.retrievedAt),
            None if sender is None else code_of(sender),
        )


def load_origins(reader: Reader, graphs: Iterable[str]) -> Origins:
    """Load the sources of `graphs`. A graph of extracted rules has the source of the text."""
    wanted = set(graphs)
    first = describe(reader, (), wanted, rows=False)
    behind = {
        each
        for graph in wanted
        for each in first.all(graph, PROV.wasDerivedFrom)
        if each.startswith(_GRAPHS) and each not in wanted
    }
    more = describe(reader, (), behind, rows=False).said if behind else {}
    return Origins(Descriptions({**first.said, **more}))


def build_evidence(rule: Rule, origin: Origin, status: str | None = None) -> RuleEvidence:
    """Build the evidence of a rule from the source of its graph and the status of its section."""
    section = rule.one(KG.definedIn)
    confidence = rule.one(KG.confidence)
    return RuleEvidence(
        id=rule.iri,
        graph=rule.graph,
        section=None if section is None else rule.one(DCTERMS.title, section),
        section_iri=section,
        section_status=status,
        spans=rule.spans() or None,
        basis=_describe_basis(rule),
        recorded_in=rule.one(KG.recordedIn),
        method=rule.one(KG.method),
        confidence=None if confidence is None else float(confidence),
        review=rule.one(KG.reviewStatus),
        source=origin.source,
        sha256=origin.sha256,
        fetched_at=origin.fetched_at,
        sent_by=origin.sent_by,
    )


def _describe_basis(rule: Rule) -> str:
    if not rule.graph.startswith(EXTRACTED):
        return "stated"
    readers = (rule.one(KG.method) or "").partition("reading/")[2]
    if not readers:
        return "extracted"
    confirmed = rule.one(KG.reviewStatus) is not None or ", " in readers
    return f"read by {readers}" + ("" if confirmed else ", unconfirmed")


def load_evidence(reader: Reader, rules: Sequence[Rule]) -> list[RuleEvidence]:
    """Load the evidence of each of `rules`, in their order."""
    graphs = {rule.graph for rule in rules}
    known = load_origins(reader, graphs)
    by_graph = {graph: known.of(graph) for graph in graphs}
    sections = [rule.one(KG.definedIn) for rule in rules]
    statuses = load_statuses(reader, sections)
    return [
        build_evidence(rule, by_graph[rule.graph], statuses.get(section or ""))
        for rule, section in zip(rules, sections, strict=True)
    ]
