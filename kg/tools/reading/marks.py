"""Marks in texts: the words that mention a concept or cite something, with the claim behind each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pyoxigraph import NamedNode

from kg.retrieval.evidence import load_concept_matches
from kg.retrieval.reader import Reader
from kg.tools.claims.citations import find_cited_by_units
from kg.tools.entities.dereference import worded_name
from kg.tools.zoning.rules import Span, load_asserted, load_rules, load_targets
from kg.vocabulary import KG, RDF, iri_prefix, mint_mention

MarkKind = Literal["mention", "citation"]

_CONCEPTS = iri_prefix("concept")


@dataclass(frozen=True, slots=True)
class Mark:
    """The code points `start` to `end` (zero-based, end-exclusive) of a text, and their meaning."""

    start: int
    end: int
    kind: MarkKind
    target: str | None
    """The IRI of the concept, or of the cited law or section; None if the citation was not resolved."""
    label: str
    claim: str
    """The IRI of the claim or mention."""

    def moved(self, by: int) -> Mark:
        """Move it by a number of characters: from a chunk to the text that the chunk is a part of."""
        return replace(self, start=self.start + by, end=self.end + by)


@dataclass(frozen=True, slots=True)
class Cited:
    """A citation in a text: its words, what they cite, and how."""

    claim: str
    unit: str
    words: str
    relation: str
    """The relation in words: "subject to"."""
    target: str | None
    """The cited law or section; None if it is not known."""
    name: str | None
    kind: str | None
    """``law``, ``policy family`` or ``section``."""
    asserted: bool
    """Whether it is an edge of the graph."""
    confidence: float
    spans: Sequence[Span]


@dataclass(frozen=True, slots=True)
class Mentioned:
    """A concept that some texts mention, with the number of mentions."""

    iri: str
    label: str
    count: int


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of texts, by the IRI of the text, in the order of the text."""

    by_unit: Mapping[str, Sequence[Mark]] = field(default_factory=dict)
    citations: Sequence[Cited] = ()
    mentioned: Sequence[Mentioned] = ()
    """The mentioned concepts, most frequent first."""

    def of(self, unit: str, shift: int = 0) -> list[Mark]:
        """Get the marks of a text, moved by `shift` characters."""
        return [mark.moved(shift) if shift else mark for mark in self.by_unit.get(unit, ())]


def load_marks(reader: Reader, texts: Mapping[str, str]) -> Marks:
    """Load the marks of text units, given with their texts."""
    if not texts:
        return Marks()
    found: dict[str, list[Mark]] = defaultdict(list)
    counts: dict[str, int] = defaultdict(int)
    labels: dict[str, str] = {}
    for unit, matches in load_concept_matches(reader, texts).items():
        for match in matches:
            concept = match.qid if ":" in match.qid else _CONCEPTS + match.qid
            labels[concept] = match.label
            counts[concept] += len(match.offsets)
            for start, end in match.offsets:
                claim = mint_mention(NamedNode(unit), start, end, NamedNode(concept))
                found[unit].append(Mark(start, end, "mention", concept, match.label, claim.value))
    citations = load_cited(reader, texts)
    for each in citations:
        said = f"{each.relation} {each.name or 'something that is not known here'}"
        for span in each.spans:
            found[each.unit].append(Mark(span.start, span.end, "citation", each.target, said, each.claim))
    for marks in found.values():
        marks.sort(key=lambda mark: (mark.start, -mark.end, mark.claim))
    ranked = sorted(counts, key=lambda iri: (-counts[iri], labels[iri].casefold(), iri))
    return Marks(found, citations, [Mentioned(iri, labels[iri], counts[iri]) for iri in ranked])


def load_cited(reader: Reader, units: Iterable[str]) -> list[Cited]:
    """Load the citations in text units, in the order of the units and of their words."""
    order = {unit: place for place, unit in enumerate(units)}
    found = find_cited_by_units(reader, order)
    if not found:
        return []
    claims = load_rules(reader, {each.claim: each.graph for each in found})
    targets = load_targets(reader, {each.cited for each in found if each.cited is not None})
    asserted = load_asserted(reader, claims.values())
    citations = []
    for each in sorted(found, key=lambda each: (order[each.unit], each.start, each.claim)):
        claim = claims[each.claim]
        predicate, target = claim.one(RDF.predicate) or "", claim.one(RDF.object)
        name, kind, _ = targets.get(target or "", (None, None, None))
        citations.append(
            Cited(
                claim=each.claim,
                unit=each.unit,
                words=claim.one(KG.rawCitation) or "",
                relation=worded_name(predicate),
                target=target,
                name=name,
                kind=kind,
                asserted=target is not None and (each.unit, predicate, target) in asserted,
                confidence=float(claim.one(KG.confidence) or 0),
                spans=claim.spans(),
            )
        )
    return citations
