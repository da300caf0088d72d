"""The page of a zoning district: the uses and the standards of it, each with its words, and how much was understood."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from kg.retrieval.places import load_places
from kg.retrieval.reader import Reader
from kg.server.html import href_of
from kg.server.pages.reading import passage_href, reading_page, why_href
from kg.server.pages.site import Site, ask
from kg.tools.reading.facts import read_district
from kg.tools.reading.targets import Target
from kg.tools.schema.term_index import split_words
from kg.tools.zoning.provisions import Permission, Standard, kg_query_permissions, kg_query_standards
from kg.vocabulary import iri_prefix, parts_of

RULES: Final = 200
"""Uses, and standards, on the page."""


def show(site: Site, request: Request, target: Target) -> Response:
    """Answer with the page of a district."""
    reader = Reader(site.kg)
    district = read_district(reader, target.iri)
    town = load_places(reader).get(district.municipality)
    name = town.name if town is not None else district.municipality
    asked = {"municipality": district.municipality, "state": district.state, "district": target.iri, "limit": RULES}
    uses = ask(site.kg, kg_query_permissions, **asked)
    standards = ask(site.kg, kg_query_standards, **asked)
    by_level: dict[str, list[dict[str, Any]]] = {}
    for each in uses.result.permissions:
        level = split_words(each.permission) if each.permission else each.as_recorded or "not stated"
        by_level.setdefault(level, []).append(_show_use(each))
    context = {
        "heading": f"{district.code}: {district.name}" if district.name not in ("", district.code) else district.code,
        "town": {"name": name, "href": href_of(district.municipality)},
        "category": district.category,
        "facts": district.facts,
        "levels": dict(sorted(by_level.items(), key=lambda level: _rank_level(level[0]))),
        "uses": len(uses.result.permissions),
        "standards": [_show_standard(each) for each in standards.result.standards],
        "unsure": [_show_use(each) for each in uses.result.unsure],
        "coverage": uses.result.coverage or standards.result.coverage,
        "more_uses": uses.result.next_offset is not None,
        "more_standards": standards.result.next_offset is not None,
        "sections": "/search?" + urlencode({"district": "/".join(parts_of(target.iri, iri_prefix("district")))}),
    }
    return reading_page(
        request,
        "district.html",
        context,
        iri=target.iri,
        generation=uses.result.meta.snapshot,
        queries=[*reader.ran, *uses.queries, *standards.queries],
    )


_UNITS: Final = {"FT": "feet", "FT2": "square feet", "AC": "acres", "PERCENT": "%"}
"""The words for units of QUDT, by their local names."""


def _show_use(each: Permission) -> dict[str, Any]:
    return {"use": each.use, "conditions": each.conditions, **_show_source(each)}


def _show_standard(each: Standard) -> dict[str, Any]:
    named = each.raw_unit or (_UNITS.get(each.unit or "", each.unit) if each.value is not None else None)
    # A value in words, such as "seventy feet", has its unit.
    unit = f" {named}" if named and not any(letter.isalpha() for letter in each.raw_value) else ""
    return {
        "name": split_words(each.standard_type),
        "bound": {"min": "at least", "max": "at most"}.get(each.bound or "", each.bound or ""),
        "value": each.raw_value + unit,
        "applies_to": each.applies_to,
        "conditions": each.conditions or [],
        **_show_source(each),
    }


def _show_source(each: Permission | Standard) -> dict[str, Any]:
    """Build the links to the words of a rule and to its explanation, and how it is known."""
    evidence = each.evidence
    span = (evidence.spans[0].start, evidence.spans[0].end) if evidence.spans else None
    if evidence.review == "accepted":
        state = "accepted"
    elif evidence.basis == "stated":
        state = "stated by the source"
    else:
        state = "found in the text" + ("" if evidence.confidence is None else f", {evidence.confidence}")
    return {
        "section": evidence.section or each.section_ref,
        "href": passage_href(evidence.section_iri, span) if evidence.section_iri else None,
        "state": state,
        "why": why_href(evidence.id),
    }


def _rank_level(level: str) -> int:
    """Rank a level of permission: uses by right are listed first, prohibited uses last."""
    return 0 if level == "by right" else 1 if level.startswith("by right") else 3 if level.startswith("not") else 2
