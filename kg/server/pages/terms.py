"""The terms of the ontology (``/ns``), as a page or as RDF."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kg.ontology import load_declared_terms, load_ontology
from kg.server.html import formats, href_of, page
from kg.server.negotiation import GRAPH_TYPES
from kg.server.pages.site import Site
from kg.server.resources import HTML, choose_media_type, rdf_response
from kg.tools.entities.dereference import short_name
from kg.vocabulary import BASE, KG


def routes(site: Site) -> list[Route]:
    """Build the route of the terms."""
    return [site.route("/ns", terms, ("format",))]


def terms(request: Request) -> Response:
    """Answer with the ontology: all of it as RDF, its terms as HTML."""
    media_type = choose_media_type(request, (*GRAPH_TYPES, HTML))
    if media_type != HTML:
        return rdf_response(
            (quad for quads in load_ontology().values() for quad in quads), media_type, {"Content-Location": "/ns"}
        )
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for term in sorted(load_declared_terms().values(), key=lambda term: term.iri):
        titles = {"class": "Classes", "property": "Properties", "individual": "Codes and other individuals"}
        groups.setdefault((titles[term.kind], term.domain or ""), []).append(
            {
                "anchor": term.iri.removeprefix(KG.iri) if term.iri.startswith(KG.iri) else term.iri.removeprefix(BASE),
                "href": href_of(term.iri),
                "short": short_name(term.iri),
                "label": term.label,
                "definition": term.definition or "",
            }
        )
    shown = [{"title": f"{title}: {part}", "terms": terms} for (title, part), terms in sorted(groups.items())]
    context = {"groups": shown, "iri": BASE + "ns", "formats": formats(lambda form: "/ns?format=" + form)}
    return page(request, "terms.html", context)
