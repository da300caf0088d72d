"""The page of an entity that files mention: its definitions, relations and files, each with the words that state it."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from kg.server.pages.reading import page_href, reading_page
from kg.server.pages.site import Site, ask, get_number
from kg.tools.documents.entities import explain_entity
from kg.tools.reading.targets import Target

RELATIONS: Final = 50
"""Relations on a page."""


def show(site: Site, request: Request, target: Target) -> Response:
    """Answer with the page of an entity."""
    number = get_number(request, "page")
    asked = ask(site.kg, explain_entity, entity_id=target.iri, hops=1, limit=RELATIONS, offset=(number - 1) * RELATIONS)
    entity = asked.result
    context = {
        "entity": entity,
        "heading": entity.name,
        "previous": page_href(target.iri, page=number - 1) if number > 1 else None,
        "next": page_href(target.iri, page=number + 1) if entity.next_offset else None,
    }
    return reading_page(
        request,
        "entity.html",
        context,
        iri=target.iri,
        generation=entity.meta.snapshot,
        queries=asked.queries,
    )
