"""The page of a place: its laws, sitting days and codes, and the places around it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from kg.retrieval.facets import name_language
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
    context = {
        "place": place,
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
