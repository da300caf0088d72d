"""The page of a place: its laws, sitting days and codes, and the places around it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from kg.languages import name_language
from kg.retrieval.notes import select_for_people
from kg.server.html import href_of
from kg.server.pages.reading import reading_page
from kg.server.pages.sections import number_of
from kg.server.pages.site import Site, get_number
from kg.tools.reading.places import FAMILIES, read_place
from kg.tools.reading.targets import Target
from kg.vocabulary import iri_prefix


def show(site: Site, request: Request, target: Target) -> Response:
    """Answer with the page of a place."""
    place = read_place(site.kg, target.iri, get_number(request, "page"))
    most = max((each.passages for each in place.overview.top_concepts), default=0)
    outside = [place.overview.name, *(outer.name for outer in place.overview.within)]
    coded = {code.iri for code in place.codes}
    context = {
        "place": place,
        "parts": [part for part in place.overview.parts if part.id not in coded],
        "name_inside": partial(_name_inside, outside),
        "overview": place.overview,
        "heading": place.overview.name,
        "pages": max(1, -(-place.families_total // FAMILIES)),
        "most": most,
        "notes": select_for_people(place.overview.notes),
        "is_municipality": target.iri.startswith(iri_prefix("municipality")),
        "name_language": name_language,
        "number_of": number_of,
        "concept_href": lambda qid: href_of(qid if ":" in qid else iri_prefix("concept") + qid),
    }
    return reading_page(
        request, "place.html", context, iri=target.iri, generation=place.generation, queries=place.queries
    )


def _name_inside(outside: Iterable[str], name: str) -> str:
    """Name a municipality on the page of a place, without the state if the page is in it: ``Clinton, Connecticut``."""
    return next((name.removesuffix(f", {outer}") for outer in outside if name.endswith(f", {outer}")), name)
