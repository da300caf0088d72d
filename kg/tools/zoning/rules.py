"""What a code says of districts, uses and terms, read rule by rule with what each was read from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pydantic import Field
from pyoxigraph import NamedNode

from kg.sparql.terms import bind
from kg.store.protocol import Term
from kg.tools.budget import Lean
from kg.tools.hydration import Descriptions, code_of, describe
from kg.tools.reading import Reader, iri_of, text_of
from kg.tools.zoning.places import key_of
from kg.vocabulary import BASE, DCTERMS, KG, OA, PROV

# One property at a time, after the lookup by subject: OPTIONAL inside GRAPH has the engine read the whole store.
RULES: Final = """
SELECT ?rule ?property ?value WHERE {
  VALUES ?rule { $rules } ?rule ?property ?value
  FILTER(?property NOT IN (rdf:type, kg:district, kg:landUse))
}"""

PARTS: Final = """
SELECT ?part ?property ?value WHERE {
  { VALUES ?part { $parts } ?part ?property ?value FILTER(?property NOT IN (rdf:type, oa:hasSource)) }
  UNION { VALUES ?part { $sections } ?part dcterms:title ?value BIND(dcterms:title AS ?property) }
}"""

_GRAPHS: Final = BASE + "graph/"


class Span(Lean):
    """Words of the law: `text` is characters start to end of the section's text."""

    start: int
    end: int
    text: str


class RuleEvidence(Lean):
    """What a rule was read from."""

    id: str
    graph: str
    section: str | None = None
    spans: list[Span] | None = None
    recorded_in: str | None = Field(None, description="Column or row of a table")
    method: str | None = Field(None, description="How it was found; absent: the source states it")
    confidence: float | None = None
    source: str | None = None
    sha256: str | None = None
    fetched_at: str | None = None
    sent_by: str | None = None


@dataclass(slots=True)
class Rule:
    """All that is said of a permission, a standard or a definition."""

    iri: str
    graph: str
    said: dict[str, dict[str, list[Term]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    """By subject, the rule itself or what it rests on, and property."""

    def all(self, name: NamedNode, of: str | None = None) -> list[str]:
        """Return the values of one property, sorted."""
        return sorted(text_of(term) for term in self.said[of or self.iri].get(name.value, ()))

    def one(self, name: NamedNode, of: str | None = None) -> str | None:
        """Return the first value of one property."""
        return min((text_of(term) for term in self.said[of or self.iri].get(name.value, ())), default=None)

    def code(self, name: NamedNode) -> str | None:
        """Return the code that a property names in its list."""
        value = self.one(name)
        return None if value is None else code_of(value)

    def section(self, name: NamedNode) -> str | None:
        """Return the key of the section that a property names."""
        value = self.one(name)
        return None if value is None else key_of(value)

    def spans(self) -> list[Span]:
        """Return the words that it rests on."""
        found = [
            Span(
                start=int(self.one(KG.start, span) or 0),
                end=int(self.one(KG.end, span) or 0),
                text=self.one(OA.exact, span) or "",
            )
            for span in self.all(KG.evidence)
        ]
        return sorted(found, key=lambda span: (span.start, span.end))


def read_rules(reader: Reader, graphs: Mapping[str, str]) -> dict[str, Rule]:
    """Return the rules of these IRIs, each in its graph, in this order."""
    rules = {iri: Rule(iri, graph) for iri, graph in graphs.items()}
    if not rules:
        return rules
    query = bind(RULES, rules=[NamedNode(iri) for iri in rules])
    for rule, name, value in reader.tuples("what the rules say", query):
        if rule is not None and name is not None and value is not None:
            rules[iri_of(rule)].said[iri_of(rule)][iri_of(name)].append(value)
    holders: dict[str, list[Rule]] = defaultdict(list)
    for each in rules.values():
        for link in (KG.evidence, KG.quantity, KG.definedIn):
            for part in each.all(link):
                holders[part].append(each)
    sections = {part for each in rules.values() for part in each.all(KG.definedIn)}
    if holders:
        query = bind(
            PARTS,
            parts=[NamedNode(part) for part in holders if part not in sections],
            sections=[NamedNode(part) for part in sorted(sections)],
        )
        for node, name, value in reader.tuples("what they rest on", query):
            if node is not None and name is not None and value is not None:
                for each in holders[iri_of(node)]:
                    each.said[iri_of(node)][iri_of(name)].append(value)
    return rules


Origin = tuple[str | None, str | None, str | None, str | None]
"""Source, its hash, when it was read, and who sent it, where somebody did."""


@dataclass(frozen=True, slots=True)
class Origins:
    """Where graphs come from."""

    descriptions: Descriptions

    def of(self, graph: str) -> Origin:
        """Return where a graph comes from."""
        found = self.descriptions
        made_from = found.all(graph, PROV.wasDerivedFrom)
        behind = [each for each in made_from if each.startswith(_GRAPHS)]
        snapshots = [each for each in made_from if not each.startswith(_GRAPHS)]
        for other in behind:
            snapshots += [each for each in found.all(other, PROV.wasDerivedFrom) if not each.startswith(_GRAPHS)]
        if not snapshots:
            return None, None, None, None
        sender = found.one(snapshots[0], PROV.wasAttributedTo)
        return (
            found.one(snapshots[0], KG.location),
            found.one(snapshots[0], KG.sha256),
            found.one(snapshots[0], KG.retrievedAt),
            None if sender is None else code_of(sender),
        )


def origins(reader: Reader, graphs: Iterable[str]) -> Origins:
    """Return where `graphs` come from; what was found in a text comes from where the text does."""
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


def evidence_of(rule: Rule, origin: Origin) -> RuleEvidence:
    """Return what a rule was read from; `origin` is where its graph comes from."""
    source, digest, fetched, sender = origin
    section = rule.one(KG.definedIn)
    confidence = rule.one(KG.confidence)
    return RuleEvidence(
        id=rule.iri,
        graph=rule.graph,
        section=None if section is None else rule.one(DCTERMS.title, section),
        spans=rule.spans() or None,
        recorded_in=rule.one(KG.recordedIn),
        method=rule.one(KG.method),
        confidence=None if confidence is None else float(confidence),
        source=source,
        sha256=digest,
        fetched_at=fetched,
        sent_by=sender,
    )


def evidences(reader: Reader, rules: Sequence[Rule]) -> list[RuleEvidence]:
    """Return what each of `rules` was read from."""
    graphs = {rule.graph for rule in rules}
    known = origins(reader, graphs)
    by_graph = {graph: known.of(graph) for graph in graphs}
    return [evidence_of(rule, by_graph[rule.graph]) for rule in rules]
