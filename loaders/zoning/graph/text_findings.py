"""Findings in the text of a section as quads: rules, terms, and claims about its citations.

The subject of a claim is the citing section. A claim whose target is unknown is stored with the words of the citation.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from pyoxigraph import NamedNode, Quad

from kg.vocabulary import ELI, KG
from loaders.citations.graph.claims import Claims, Evidence
from loaders.citations.relationships import Relationship, find_relationships
from loaders.citations.section_citations import (
    THIS,
    UNRESOLVED,
    UNRESOLVED_WITHOUT_SEPARATOR,
    WITHOUT_SEPARATOR,
    Citation,
    find_citations,
)
from loaders.zoning.extraction.citation_resolution import Index, resolve, resolve_range, resolve_words
from loaders.zoning.extraction.districts import District, find_in_section
from loaders.zoning.extraction.facts import find_facts
from loaders.zoning.extraction.permission_matrices import is_legend
from loaders.zoning.extraction.section_scope import Scope
from loaders.zoning.graph.authorities import Authorities
from loaders.zoning.graph.rule_quads import UNNAMED, Rules, unit
from loaders.zoning.readers.code_model import Section

T = TypeVar("T")

MAX_QUADS: Final = {"definitions": 15_000, "permissions": 50_000, "standards": 55_000, "citations": 15_000}
"""Quads of a section, of its rules or of its citations, after which no more findings of a kind are read from it. A
definition has about 13, a permission and a standard 15 to 20, and each quad takes 4 kB while it is committed."""

_NEAR: Final = 5
"""Maximum distance of a table to the section that explains its letters, in sections."""
_log: Final = logging.getLogger(__name__)


def find_legends(section: Section, index: Index) -> Sequence[Section]:
    """Find the sections near one with tables that may explain the letters of these tables."""
    return [each for each in find_near(section, index) if is_legend(each)] if section.tables else []


def find_near(section: Section, index: Index) -> Iterator[Section]:
    """Yield the sections with the same parent at most some places before or after one."""
    return (each for each in index.siblings(section.key) if abs(each.order - section.order) <= _NEAR)


def _bounded(found: Iterable[T], kind: str, section: str, quads: Sequence[Quad]) -> Iterator[T]:
    """Yield findings of a section of one kind as long as `quads` are not too many."""
    for number, each in enumerate(found):
        if len(quads) >= MAX_QUADS[kind]:
            _log.warning("Section %s has too many %s. Only the first %d are read.", section, kind, number)
            return
        yield each


def build_rules(
    section: Section,
    shared: Authorities,
    graph: NamedNode,
    known: Mapping[str, District],
    index: Index,
    above: Sequence[Section] = (),
    state: str | None = None,
    scopes: Sequence[Scope] | None = None,
) -> list[Quad]:
    """Build the definitions, permissions and standards found in a section of a code with these districts.

    `index` contains the sections of the code. `above` are the ancestors of the section, innermost first. `scopes` are
    those of the section.
    """
    rules, iri, text = Rules(graph, shared), shared.section(section.key), section.text
    facts = find_facts(section, known, above, find_legends(section, index), scopes)

    def evidence(start: int, end: int, confidence: float, method: str) -> Evidence:
        return Evidence(iri, start, end, text[start:end], confidence, method)

    for district in find_in_section(section):
        best = known.get(district.code)  # A district named in a heading only may be another name of one with a code.
        node = None if best is None else _district(district.code, shared, known)
        if best is not None and node is not None and _is_named_at(best, district):
            start, end = district.start or 0, district.end or 0
            rules.naming(node, section.key, iri, evidence(start, end, district.confidence, district.method))

    for term in _bounded(facts.definitions, "definitions", section.key, rules.quads):
        rests = evidence(term.term_start, max(term.term_end, term.end), term.confidence, term.method)
        rules.definition(term.term, term.text, section=iri, evidence=rests)
    for permission in _bounded(facts.permissions, "permissions", section.key, rules.quads):
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
            column=permission.group or None,
            evidence=rests,
        )
    for standard in _bounded(facts.standards, "standards", section.key, rules.quads):
        rests = evidence(standard.start, standard.end, standard.confidence, standard.method)
        for code in standard.districts or (None,):
            rules.standard(
                None if code is None else _district(code, shared, known),
                standard.type or UNNAMED,
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


def _is_named_at(best: District, place: District) -> bool:
    """Whether `place` is the best place that names a district: it is the one to be reviewed."""
    return (best.section, best.start, best.method) == (place.section, place.start, place.method)


def _district(code: str, shared: Authorities, known: Mapping[str, District]) -> NamedNode:
    district = known.get(code)
    return shared.district(code, district.name if district is not None else None)


def build_claims(text: str, key: str, shared: Authorities, graph: NamedNode, index: Index, state: str) -> list[Quad]:
    """Build the claims about the citations in the section `key`, in a code with the sections of `index`."""
    own = index.sections.get(key)
    found_in = find_citations(text, state, own.number if own is not None else "")
    section = shared.section(key)
    claims = Claims(text, section, graph)
    relationships = find_relationships(text, found_in) if found_in else ()
    for relationship in _bounded(relationships, "citations", key, claims.quads):
        targets = _targets(relationship.citation, key, shared, index)
        # "This chapter" of a code without chapters, and "subsection 1 above", have no target to look for.
        is_own = bool(relationship.citation.levels) and relationship.citation.levels[-1][1] == THIS
        for target in targets or (() if is_own else (None,)):
            if target != section:
                _add_claim(claims, relationship, target)
    return claims.quads


def _targets(citation: Citation, key: str, shared: Authorities, index: Index) -> Sequence[NamedNode]:
    keys = resolve_range(citation, index, key) if citation.through is not None else [resolve(citation, index, key)]
    sections = [shared.section(each) for each in keys if each is not None]
    return [shared.law(citation.law)] if not sections and citation.law is not None else sections


def _add_claim(claims: Claims, relationship: Relationship, target: NamedNode | None) -> None:
    citation = relationship.citation
    plain = relationship.property == "cites"
    confidence = citation.confidence if plain else min(citation.confidence, relationship.confidence)
    if target is None and citation.internal:
        bare = citation.confidence == WITHOUT_SEPARATOR
        confidence = min(confidence, UNRESOLVED_WITHOUT_SEPARATOR if bare else UNRESOLVED)
    evidence = Evidence(
        claims.unit,
        citation.start,
        citation.end,
        claims.text[citation.start : citation.end],
        confidence,
        f"{citation.method}, {relationship.method}",
    )
    claims.add(
        evidence,
        target,
        citation.raw,
        predicate=ELI.cites if plain else KG[relationship.property],
        type_=relationship.type,
        context=relationship.context,
    )
