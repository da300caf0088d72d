"""Findings in the text of a section as quads: rules, terms, and claims about its citations.

The subject of a claim is the citing section. A claim whose target is unknown is stored with the words of the citation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.vocabulary import ELI, KG, RDF, mint, sha256
from loaders.zoning.extraction.citation_relationships import Relationship, find_relationships
from loaders.zoning.extraction.citation_resolution import Index, resolve, resolve_range, resolve_words
from loaders.zoning.extraction.citations import Citation, find_citations
from loaders.zoning.extraction.definitions import find_definitions
from loaders.zoning.extraction.districts import District, find_in_section
from loaders.zoning.extraction.permissions import find_permissions
from loaders.zoning.extraction.section_protocol import Section
from loaders.zoning.extraction.standards import find_standards
from loaders.zoning.graph.authorities import Authorities
from loaders.zoning.graph.rule_quads import Evidence, Rules, evidence_quads, method_quads, unit

LAW_TYPES: Final = {
    "usc": "federalCode",
    "cfr": "federalRegulation",
    "public-law": "publicAct",
    "public-act": "publicAct",
    "law": "publicAct",
    "act": "publicAct",
    "regulations": "regulation",
    "ordinance": "ordinance",
}
"""The kind of a law by its numbering scheme. All others are laws of a state."""


def build_rules(
    section: Section,
    shared: Authorities,
    graph: NamedNode,
    known: Mapping[str, District],
    index: Index,
    above: Sequence[Section] = (),
    state: str | None = None,
) -> list[Quad]:
    """Build the definitions, permissions and standards found in a section of a code with these districts.

    `index` contains the sections of the code. `above` are the ancestors of the section, innermost first.
    """
    rules, iri, text = Rules(graph, shared), shared.section(section.key), section.text
    for district in find_in_section(section):
        _district(district.code, shared, known)

    def evidence(start: int, end: int, confidence: float, method: str) -> Evidence:
        return Evidence(iri, start, end, text[start:end], confidence, method)

    for term in find_definitions(section):
        rests = evidence(term.term_start, max(term.term_end, term.end), term.confidence, term.method)
        rules.definition(term.term, term.text, section=iri, evidence=rests)
    for permission in find_permissions(section, known, above):
        rests = evidence(permission.start, permission.end, permission.confidence, permission.method)
        review = resolve_words(permission.review, index, section.key, state) if permission.review else None
        rules.permission(
            _district(permission.district, shared, known),
            shared.land_use(permission.use),
            permission.raw_level,
            permission.level,
            conditions=permission.conditions,
            review=None if review is None else shared.section(review),
            section=iri,
            evidence=rests,
        )
    for standard in find_standards(section, known, above):
        rests = evidence(standard.start, standard.end, standard.confidence, standard.method)
        for code in standard.districts or (None,):
            rules.standard(
                None if code is None else _district(code, shared, known),
                standard.type,
                standard.raw,
                bound=standard.bound,
                value=standard.value,
                measure=None if standard.unit is None else unit(standard.unit),
                applies_to=standard.applies_to,
                conditions=standard.conditions,
                section=iri,
                column=standard.raw_type,
                evidence=rests,
            )
    return rules.quads


def _district(code: str, shared: Authorities, known: Mapping[str, District]) -> NamedNode:
    district = known.get(code)
    return shared.district(code, district.name if district is not None else None)


def build_claims(text: str, key: str, shared: Authorities, graph: NamedNode, index: Index, state: str) -> list[Quad]:
    """Build the claims about the citations in the section `key`, in a code with the sections of `index`."""
    found_in = find_citations(text, state)
    claims = _Claims(text, shared.section(key), graph)
    for relationship in find_relationships(text, found_in) if found_in else ():
        targets = _targets(relationship.citation, key, shared, index)
        for target in targets or (None,):
            if target != claims.section:
                claims.take(relationship, target)
    return claims.quads


def _targets(citation: Citation, key: str, shared: Authorities, index: Index) -> Sequence[NamedNode]:
    keys = resolve_range(citation, index, key) if citation.through is not None else [resolve(citation, index, key)]
    sections = [shared.section(each) for each in keys if each is not None]
    if not sections and (law := citation.law) is not None:
        return [shared.law(law.jurisdiction, law.scheme, law.citation, LAW_TYPES.get(law.scheme, "state"))]
    return sections


class _Claims:
    """The claims of one section: one per triple, however often the text repeats it."""

    def __init__(self, text: str, section: NamedNode, graph: NamedNode) -> None:
        self.text: Final = text
        self.section: Final = section
        self.graph: Final = graph
        self.quads: list[Quad] = []
        self.known: set[NamedNode] = set()

    def take(self, relationship: Relationship, target: NamedNode | None) -> None:
        """Add a claim that the section relates to `target`, or to the words of the citation if that is unknown."""
        citation, graph = relationship.citation, self.graph
        plain = relationship.property == "cites"
        predicate = ELI.cites if plain else KG[relationship.property]
        value = Literal(citation.raw) if target is None else target
        node = mint("statement", sha256(f"{self.section} {predicate} {value} {graph} .\n")[:32])
        evidence = Evidence(
            self.section,
            citation.start,
            citation.end,
            self.text[citation.start : citation.end],
            citation.confidence if plain else min(citation.confidence, relationship.confidence),
            f"{citation.method}, {relationship.method}",
        )
        if node not in self.known:
            self.known.add(node)
            said: list[tuple[NamedNode, NamedNode | Literal]] = [
                (RDF.type, KG.CrossReference),
                (RDF.subject, self.section),
                (RDF.predicate, predicate),
                *(() if target is None else ((RDF.type, KG.Statement), (RDF.object, target))),
                (KG.rawCitation, Literal(citation.raw)),
                (KG.contextSentence, Literal(relationship.context)),
                (KG.relationshipType, mint("code", "relationshipType", relationship.type)),
            ]
            self.quads += [Quad(node, said_of, value, graph) for said_of, value in said]
            self.quads += method_quads(node, evidence, graph)
        self.quads += evidence_quads(node, evidence, graph, self.known)
