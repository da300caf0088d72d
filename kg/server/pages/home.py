"""The start page (``/``)."""

from __future__ import annotations

from typing import Final

from pyoxigraph import NamedNode
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kg import __version__
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.reader import Reader, iri_of
from kg.server.html import href_of, page
from kg.server.negotiation import negotiate
from kg.server.pages.site import Site
from kg.server.resources import HTML
from kg.sparql.terms import bind
from kg.tools.entities.dereference import names_of, short_name
from kg.tools.schema.schema_measurement import get_schema
from kg.vocabulary import KG

CLASSES: Final = 12
"""Classes on the start page."""
EXAMPLE_CHARACTERS: Final = 70
"""Maximum characters of an identifier on the start page."""

EXAMPLE: Final = """SELECT ?country (COUNT(DISTINCT ?document) AS ?documents) WHERE {
  ?document a kg:PolicyDocument ; kg:jurisdiction/skos:notation ?country
} GROUP BY ?country ORDER BY DESC(?documents)"""
"""The query in the form of the start page if there are documents."""

EXAMPLES: Final = (
    (KG.PolicyDocument.value, EXAMPLE),
    (
        KG.CodeSection.value,
        """SELECT ?town (COUNT(DISTINCT ?section) AS ?sections) WHERE {
  ?section a kg:CodeSection ; kg:jurisdiction/skos:prefLabel ?town
} GROUP BY ?town ORDER BY DESC(?sections)""",
    ),
    (
        KG.UsePermission.value,
        """SELECT ?town (COUNT(DISTINCT ?district) AS ?districts) WHERE {
  ?permission a kg:UsePermission ; kg:district ?district . ?district kg:jurisdiction/skos:prefLabel ?town
} GROUP BY ?town ORDER BY DESC(?districts)""",
    ),
    (
        KG.Speech.value,
        """SELECT ?speaker (COUNT(DISTINCT ?speech) AS ?speeches) WHERE {
  ?speech a kg:Speech ; kg:speakerAsRecorded ?speaker
} GROUP BY ?speaker ORDER BY DESC(?speeches) LIMIT 50""",
    ),
)
"""A query per class. The form contains the first one that has results."""

THERE: Final = "SELECT ?class WHERE { VALUES ?class { $classes } FILTER EXISTS { ?thing a ?class } }"

_ADDRESSES: Final = (
    ("/docs", "The documentation", True),
    ("/mcp", "MCP, for agents: tools that search, read and cite", False),
    ("/sparql", "SPARQL 1.1; without a query, the service description", True),
    ("/sparql/check?query=", "Likely mistakes in a query, without running it", False),
    ("/sparql/queries", "The running and waiting queries", True),
    ("/graphs", "The named graphs, for reading and writing (Graph Store Protocol)", True),
    ("/shacl", "SHACL validation of stored data, or of data sent by POST", False),
    ("/tools", "The tools of MCP over plain HTTP", True),
    ("/resolve?iri=", "All statements about one IRI, as a page or as RDF", False),
    ("/.well-known/void", "Description of the data: VoID and DCAT", True),
    ("/ns", "The terms of the ontology with their definitions", True),
    ("/prefixes", "The predeclared prefixes", True),
    ("/health", "The state of this server", True),
)


def routes(site: Site) -> list[Route]:
    """Build the route of the start page."""
    return [site.route("/", lambda request: start(site.kg, request))]


def start(kg: KnowledgeGraph, request: Request) -> Response:
    """Answer with the start page, as HTML or JSON."""
    counted = kg.store.statistics()
    if negotiate(request.headers.getlist("accept"), (HTML, "application/json")) == "application/json":
        content = {
            "name": "Quadcite",
            "version": __version__,
            "generation": counted.generation,
            "quads": counted.quads,
            "graphs": counted.graphs,
            "links": {path: what for path, what, _ in _ADDRESSES},
        }
        return JSONResponse(content, headers={"Vary": "Accept", "Cache-Control": "no-cache"})
    schema = get_schema(kg, wait_s=1.0)
    rows = []
    shown = list(schema.classes.values())[:CLASSES]
    names = names_of(kg, [use.example for use in shown if use.example])
    for use in shown:
        term = schema.terms.get(use.iri)
        name = names.get(use.example) or short_name(use.example) if use.example else ""
        example = {"href": href_of(use.example), "text": _shortened(name)} if use.example else None
        label = term.label if term else short_name(use.iri)
        rows.append({"href": href_of(use.iri), "label": label, "count": f"{use.entities:,}", "example": example})
    context = {
        "example": _find_example(kg),
        "version": __version__,
        "quads": f"{counted.quads:,}",
        "graphs": f"{counted.graphs:,}",
        "passages": f"{kg.search.status().units:,}",
        "addresses": [{"path": path, "what": what, "href": path if page else None} for path, what, page in _ADDRESSES],
        "classes": rows,
        "generation": schema.generation,
        "unmeasured": counted.quads > 0,
    }
    return page(request, "home.html", context)


def _find_example(kg: KnowledgeGraph) -> str:
    """Find the first of `EXAMPLES` that has results."""
    classes = [NamedNode(name) for name, _ in EXAMPLES]
    there = {iri_of(row["class"]) for row in Reader(kg).rows("classes", bind(THERE, classes=classes))}
    return next((query for name, query in EXAMPLES if name in there), EXAMPLE)


def _shortened(text: str) -> str:
    return text if len(text) <= EXAMPLE_CHARACTERS else text[:EXAMPLE_CHARACTERS] + "…"
