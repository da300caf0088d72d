"""Where the text of a section applies, and the list of all districts, as quads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.vocabulary import DCTERMS, KG, RDF, mint_part
from loaders.citations.graph.claims import Evidence, evidence_quads, method_quads
from loaders.model import Property
from loaders.zoning.extraction.districts import District, DistrictList
from loaders.zoning.extraction.section_scope import Scope
from loaders.zoning.graph.authorities import Authorities
from loaders.zoning.readers.code_model import Section

_MOST: Final = 1_000
"""Scopes of a section after which the rest is unknown."""
_WHOLE: Final = 0.95
"""Confidence that a list read whole, with all districts that the code names, has all districts."""


def build_scopes(
    section: Section,
    scopes: Sequence[Scope],
    shared: Authorities,
    graph: NamedNode,
    known: Mapping[str, District],
) -> list[Quad]:
    """Build the scopes of a section with text."""
    iri = shared.section(section.key)
    quads: list[Quad] = []
    if len(scopes) > _MOST:
        scopes = [*scopes[:_MOST], Scope("none", (), scopes[_MOST].start, scopes[-1].end)]
    for number, scope in enumerate(scopes if section.text else ()):
        node = mint_part(iri, "scope", number)
        stated: list[Property] = [
            (RDF.type, KG.SectionScope),
            (DCTERMS.isPartOf, iri),
            (KG.start, Literal(scope.start)),
            (KG.end, Literal(scope.end)),
            (KG.scopeKind, Literal(scope.kind)),
            *((KG.appliesIn, _district(code, shared, known)) for code in scope.codes),
        ]
        quads += [Quad(node, predicate, value, graph) for predicate, value in stated]
    return quads


def build_district_list(
    section: Section,
    listed: DistrictList,
    shared: Authorities,
    graph: NamedNode,
    known: Mapping[str, District],
) -> list[Quad]:
    """Build the list of all districts, with the words that establish it."""
    iri = shared.section(section.key)
    node = mint_part(iri, "district-list", 0)
    evidence = Evidence(iri, listed.start, listed.end, section.text[listed.start : listed.end], _WHOLE, "list")
    stated: list[Property] = [
        (RDF.type, KG.DistrictList),
        (KG.jurisdiction, shared.iri),
        (KG.definedIn, iri),
        *((KG.listsDistrict, _district(code, shared, known)) for code in sorted(listed.codes)),
    ]
    quads = [Quad(node, predicate, value, graph) for predicate, value in stated]
    return quads + method_quads(node, evidence, graph) + evidence_quads(node, evidence, graph, set())


def _district(code: str, shared: Authorities, known: Mapping[str, District]) -> NamedNode:
    return shared.district(code, known[code].name or None)
