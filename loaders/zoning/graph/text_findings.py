"""Findings in the text of a section as quads: rules, terms, where it applies, and claims about its citations.

The subject of a claim is the citing section. A claim whose target is unknown is stored with the words of the citation.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from pyoxigraph import NamedNode, Quad

from kg.vocabulary import DCTERMS, ELI, KG, RDF, mint_naming, mint_part
from loaders.citations.graph.claims import Claims, Evidence
from loaders.citations.relationships import find_relationships
from loaders.citations.section_citations import (
    THIS,
    UNRESOLVED,
    UNRESOLVED_WITHOUT_SEPARATOR,
    WITHOUT_SEPARATOR,
    find_citations,
)
from loaders.zoning.extraction.citation_resolution import Index, resolve, resolve_range, resolve_words
from loaders.zoning.extraction.districts import District, DistrictList, find_in_section
from loaders.zoning.extraction.facts import find_facts
from loaders.zoning.extraction.permission_matrices import is_legend
from loaders.zoning.extraction.section_scope import Scope
from loaders.zoning.graph.authorities import Authorities, Property
from loaders.zoning.graph.rule_quads import UNNAMED, Rules, unit
from loaders.zoning.readers.code_model import Section

T = TypeVar("T")

MAX_QUADS: Final = {"definitions": 15_000, "permissions": 50_000, "standards": 55_000, "citations": 15_000}
"""Quads of a section, of its rules or of its citations, after which no more findings of a kind are read from it. A
definition has about 13, a permission and a standard 15 to 20, and each quad takes 4 kB while it is committed."""

WHOLE_LIST: Final = 0.95
"""Confidence that a list read whole, with all districts that the code names, has all districts."""
_MOST_SCOPES: Final = 1_000
"""Scopes of a section after which the rest is unknown."""
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
    rules, iri = Rules(graph, shared, known), shared.section(section.key)
    facts = find_facts(section, known, above, find_legends(section, index), scopes)

    def evidence(start: int, end: int, confidence: float, method: str) -> list[Evidence]:
        return [Evidence(iri, start, end, section.text[start:end], confidence, method)]

    for place in find_in_section(section):
        # A district named in a heading only may be another name of one with a code. The best place is to be reviewed.
        best = known.get(place.code)
        if best and (best.section, best.start, best.method) == (place.section, place.start, place.method):
            district = rules.district(place.code)
            naming = (RDF.type, KG.DistrictNaming), (KG.namesDistrict, district), (KG.definedIn, iri)
            rules.add(
                mint_naming(district, section.key),
                naming,
                evidence(place.start or 0, place.end or 0, place.confidence, place.method),
            )
    for term in _bounded(facts.definitions, "definitions", section.key, rules.quads):
        words = evidence(term.term_start, max(term.term_end, term.end), term.confidence, term.method)
        rules.definition(term.term, term.text, section=iri, evidence=words)
    for permission in _bounded(facts.permissions, "permissions", section.key, rules.quads):
        review = resolve_words(permission.review, index, section.key, state) if permission.review else None
        rules.permission(
            rules.district(permission.district),
            shared.land_use(permission.use),
            permission.raw_level,
            permission.level,
            conditions=permission.conditions,
            review=None if review is None else shared.section(review),
            section=iri,
            column=permission.group or None,
            evidence=evidence(permission.start, permission.end, permission.confidence, permission.method),
        )
    for standard in _bounded(facts.standards, "standards", section.key, rules.quads):
        for code in standard.districts or (None,):
            rules.standard(
                None if code is None else rules.district(code),
                standard.type or UNNAMED,
                standard.raw,
                bound=standard.bound,
                value=standard.value,
                measure=None if standard.unit is None else unit(standard.unit),
                applies_to=standard.applies_to,
                conditions=standard.conditions,
                section=iri,
                column=standard.raw_type,
                evidence=evidence(standard.start, standard.end, standard.confidence, standard.method),
            )
    return rules.quads


def build_places(
    section: Section, scopes: Sequence[Scope], listed: DistrictList | None, rules: Rules
) -> Sequence[Quad]:
    """Build the scopes of a section with text, and the list of all districts if it is in this section."""
    iri = rules.shared.section(section.key)
    if len(scopes) > _MOST_SCOPES:
        scopes = [*scopes[:_MOST_SCOPES], Scope("none", (), scopes[_MOST_SCOPES].start, scopes[-1].end)]
    for number, scope in enumerate(scopes if section.text else ()):
        said: Sequence[Property] = [
            (RDF.type, KG.SectionScope),
            (DCTERMS.isPartOf, iri),
            (KG.start, scope.start),
            (KG.end, scope.end),
            (KG.scopeKind, scope.kind),
            *((KG.appliesIn, rules.district(code)) for code in scope.codes),
        ]
        rules.add(mint_part(iri, "scope", number), said)
    if listed is not None and listed.section == section.key:
        words = section.text[listed.start : listed.end]
        said = [
            (RDF.type, KG.DistrictList),
            (KG.jurisdiction, rules.shared.iri),
            (KG.definedIn, iri),
            *((KG.listsDistrict, rules.district(code)) for code in sorted(listed.codes)),
        ]
        evidence = [Evidence(iri, listed.start, listed.end, words, WHOLE_LIST, "list")]
        rules.add(mint_part(iri, "district-list", 0), said, evidence)
    return rules.quads


def build_claims(text: str, key: str, shared: Authorities, graph: NamedNode, index: Index, state: str) -> list[Quad]:
    """Build the claims about the citations in the section `key`, in a code with the sections of `index`."""
    own, section = index.sections.get(key), shared.section(key)
    cited_in = find_citations(text, state, own.number if own is not None else "")
    claims = Claims(text, section, graph)
    relationships = find_relationships(text, cited_in) if cited_in else ()
    for relationship in _bounded(relationships, "citations", key, claims.quads):
        citation, plain = relationship.citation, relationship.property == "cites"
        ranges = citation.through is not None
        keys = resolve_range(citation, index, key) if ranges else [resolve(citation, index, key)]
        targets: Sequence[NamedNode | None] = [shared.section(each) for each in keys if each is not None]
        if not targets and citation.law is not None:
            targets = [shared.law(citation.law)]
        # "This chapter" of a code without chapters, and "subsection 1 above", have no target to look for.
        is_own = bool(citation.levels) and citation.levels[-1][1] == THIS
        for target in targets or (() if is_own else (None,)):
            confidence = citation.confidence if plain else min(citation.confidence, relationship.confidence)
            if target is None and citation.internal:
                bare = citation.confidence == WITHOUT_SEPARATOR
                confidence = min(confidence, UNRESOLVED_WITHOUT_SEPARATOR if bare else UNRESOLVED)
            words, method = text[citation.start : citation.end], f"{citation.method}, {relationship.method}"
            if target != section:
                claims.add(
                    Evidence(section, citation.start, citation.end, words, confidence, method),
                    target,
                    citation.raw,
                    predicate=ELI.cites if plain else KG[relationship.property],
                    type_=relationship.type,
                    context=relationship.context,
                )
    return claims.quads
