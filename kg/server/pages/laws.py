"""The page of a law or policy family: its documents, and the texts of all domains that cite it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from kg.languages import name_language
from kg.server.pages.reading import list_citing, page_href, reading_page
from kg.server.pages.site import Site, get_number
from kg.tools.reading.laws import DOCUMENTS, read_law
from kg.tools.reading.targets import Target


def show(site: Site, request: Request, target: Target) -> Response:
    """Answer with the page of a law or policy family."""
    law = read_law(site.kg, target.iri, get_number(request, "page"), get_number(request, "cited"))
    count = law.lineage.doc_count if law.lineage is not None else 0
    context = {
        "law": law,
        "heading": law.title,
        "citing": list_citing(law.cited_by),
        "count": count,
        "name_language": name_language,
        "previous": page_href(target.iri, page=law.page - 1) if law.page > 1 else None,
        "next": page_href(target.iri, page=law.page + 1) if count > law.page * DOCUMENTS else None,
    }
    return reading_page(request, "law.html", context, iri=target.iri, generation=law.generation, queries=law.queries)
