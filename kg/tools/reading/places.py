"""A place to be read about: the laws, sitting days and codes of it and of the places inside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyoxigraph import NamedNode

from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.evidence import code_of
from kg.retrieval.places import load_places
from kg.retrieval.reader import Reader, iri_of
from kg.retrieval.results import Statement
from kg.retrieval.speech_records import labels_of
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
from kg.text import natural_key, quoted
from kg.tools.climate.families import Family, family_overview
from kg.tools.climate.jurisdictions import JurisdictionResult, jurisdiction_overview
from kg.tools.zoning.name_lookup import load_places as load_municipalities
from kg.tools.zoning.sections import SectionLine, load_section_lines
from kg.vocabulary import SKOS, iri_prefix
from kg.zoning_summaries import code_tree

FAMILIES: Final = 30
"""Policy families on a page."""
DAYS: Final = 60
"""Sitting days that a page lists, the latest."""
CODES: Final = 200
"""Codes that a page lists."""
SECTIONS: Final = 200
"""Sections of the highest levels of a code that a page lists."""
FEW_ROOTS: Final = 10
"""Sections of the highest level below which a page lists those of the next level too."""
DISTRICTS: Final = 200

SITTINGS: Final = """
SELECT DISTINCT ?sitting ?date ?chamber WHERE {
  ?sitting a kg:Sitting ; kg:jurisdiction $place ; dcterms:date ?date OPTIONAL { ?sitting kg:chamber ?chamber }
}"""

ZONES: Final = """
SELECT DISTINCT ?district ?code ?name WHERE {
  ?district a kg:ZoningDistrict ; kg:jurisdiction $place
  OPTIONAL { ?district skos:notation ?code } OPTIONAL { ?district skos:prefLabel ?name }
}"""

_MUNICIPALITY: Final = iri_prefix("municipality")


@dataclass(frozen=True, slots=True)
class SittingDay:
    """A sitting day."""

    iri: str
    date: str
    chamber: str


@dataclass(frozen=True, slots=True)
class Code:
    """The code of a municipality."""

    iri: str
    name: str


@dataclass(frozen=True, slots=True)
class District:
    """A zoning district of a municipality."""

    iri: str
    code: str
    name: str


@dataclass(frozen=True, slots=True)
class PlacePage:
    """A place."""

    iri: str
    overview: JurisdictionResult
    families: Sequence[Family]
    families_total: int
    page: int
    days: Sequence[SittingDay]
    days_total: int
    codes: Sequence[Code]
    codes_total: int
    sections: Sequence[SectionLine]
    """If it is a municipality: the highest levels of its code."""
    sections_total: int
    districts: Sequence[District]
    generation: int
    queries: Sequence[Statement] = field(default_factory=list, repr=False)


def read_place(kg: KnowledgeGraph, iri: str, page: int = 1) -> PlacePage:
    """Load a place by IRI. Raises NotFoundError for others and for a page that does not exist."""
    reader = Reader(kg)
    place = load_places(reader).get(iri)
    if place is None:
        raise NotFoundError(f"{quoted(iri)} is not a place that is known.")
    overview = jurisdiction_overview(kg, place=iri)
    families = family_overview(kg, iso3=[iri], limit=FAMILIES, offset=(page - 1) * FAMILIES)
    if page > 1 and not families.families:
        raise NotFoundError(f"Page {page} of the laws does not exist.")
    node = NamedNode(iri)
    days = reader.kept("sitting days", bind(SITTINGS, place=node), list)
    chambers = labels_of(reader, {iri_of(row["chamber"]) for row in days if "chamber" in row})
    codes = [
        Code(each.iri, each.shown) for each in load_municipalities(reader) if iri in each.containing and each.iri != iri
    ]
    sections: list[SectionLine] = []
    total = 0
    if iri.startswith(_MUNICIPALITY):
        sections, total = _load_code(reader, iri)
    return PlacePage(
        iri=iri,
        overview=overview,
        families=families.families,
        families_total=families.meta.total or 0,
        page=page,
        days=_list_days(days, chambers)[:DAYS],
        days_total=len({iri_of(row["sitting"]) for row in days}),
        codes=codes[:CODES],
        codes_total=len(codes),
        sections=sections,
        sections_total=total,
        districts=_load_districts(reader, node) if iri.startswith(_MUNICIPALITY) else [],
        generation=kg.generation,
        queries=[*overview.meta.sparql, *families.meta.sparql, *reader.ran],
    )


def _load_code(reader: Reader, municipality: str) -> tuple[list[SectionLine], int]:
    """Load the highest levels of a code, and count them. A municipality of which only a table is loaded has none."""
    try:
        tree = code_tree.cached_tree(reader.kg, municipality)
    except NotFoundError:
        return [], 0
    listed: list[tuple[int | None, str]] = []
    for root in tree.roots:
        listed.append((1, root))
        if len(tree.roots) < FEW_ROOTS:
            listed += [(2, each) for each in tree.children.get(root, ())]
    return load_section_lines(reader, tree, listed[:SECTIONS]), len(listed)


def _list_days(rows: Sequence[Mapping[str, Term]], chambers: Mapping[str, Mapping[NamedNode, str]]) -> list[SittingDay]:
    """List sitting days, the latest first."""
    found = {}
    for row in rows:
        chamber = iri_of(row["chamber"]) if "chamber" in row else ""
        name = chambers.get(chamber, {}).get(SKOS.prefLabel, "")
        found[iri_of(row["sitting"])] = SittingDay(iri_of(row["sitting"]), term_text(row["date"]), name)
    return sorted(found.values(), key=lambda day: (day.date, day.chamber), reverse=True)


def _load_districts(reader: Reader, place: NamedNode) -> list[District]:
    found: dict[str, District] = {}
    for row in reader.rows("its zoning districts", bind(ZONES, place=place)):
        iri = iri_of(row["district"])
        code, name = (term_text(row[key]) if key in row else "" for key in ("code", "name"))
        if iri not in found or (name and not found[iri].name):
            found[iri] = District(iri, code or code_of(iri), name if name != code else "")
    return sorted(found.values(), key=lambda each: natural_key(each.code))[:DISTRICTS]
