"""The start page, and the page of the terms."""

from __future__ import annotations

from typing import Final

from pyoxigraph import NamedNode
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from kg import __version__
from kg.knowledge_graph import KnowledgeGraph
from kg.server.html import formats, href_of, html
from kg.server.negotiation import GRAPH_TYPES, negotiate
from kg.server.resources import HTML, rdf, representation
from kg.sparql.terms import bind
from kg.tools.dereferencing import names_of, short_name
from kg.tools.reading import Reader, iri_of
from kg.tools.schema.measuring import measured
from kg.tools.schema.ontology import declared_terms, ontology
from kg.vocabulary import BASE, KG

CLASSES: Final = 12
"""Classes that the start page names."""


def terms(request: Request) -> Response:
    """Answer with the ontology: as RDF whole, as HTML its terms."""
    media_type = representation(request, (*GRAPH_TYPES, HTML))
    if media_type != HTML:
        return rdf((quad for quads in ontology().values() for quad in quads), media_type, {"Content-Location": "/ns"})
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for term in sorted(declared_terms().values(), key=lambda term: term.iri):
        titles = {"class": "Classes", "property": "Properties", "individual": "Codes and other things"}
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
    return html("terms.html", context)


EXAMPLE_CHARACTERS: Final = 70
"""Characters of an identifier that the start page shows."""

EXAMPLE: Final = """SELECT ?country (COUNT(DISTINCT ?document) AS ?documents) WHERE {
  ?document a kg:PolicyDocument ; kg:jurisdiction/skos:notation ?country
} GROUP BY ?country ORDER BY DESC(?documents)"""
"""The query that the form of the start page holds where there are documents."""

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
"""A query for each class that may be there; the form holds the first that has an answer."""

THERE: Final = "SELECT ?class WHERE { VALUES ?class { $classes } FILTER EXISTS { ?thing a ?class } }"

_ADDRESSES: Final = (
    ("/mcp", "MCP, for agents: tools that search, read and cite", False),
    ("/sparql", "SPARQL 1.1: without a query it describes itself", True),
    ("/sparql/check?query=", "What may be wrong with a query, without running it", False),
    ("/sparql/queries", "The queries that run and wait", True),
    ("/graphs", "The named graphs, to be read and written (Graph Store Protocol)", True),
    ("/shacl", "SHACL: validates what is stored, or what is sent by POST", False),
    ("/tools", "The tools of MCP over plain HTTP", True),
    ("/resolve?iri=", "All that is known of one IRI, as a page or as RDF", False),
    ("/.well-known/void", "What the data are made of: VoID and DCAT", True),
    ("/ns", "The terms that the data use, and what they mean", True),
    ("/prefixes", "The prefixes that a query need not declare", True),
    ("/health", "The state of this server", True),
)


def start(kg: KnowledgeGraph, request: Request) -> Response:
    """Answer with what this server is and holds, as a page or as JSON."""
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
    schema = measured(kg, wait_s=1.0)
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
        "example": _example(kg),
        "version": __version__,
        "quads": f"{counted.quads:,}",
        "graphs": f"{counted.graphs:,}",
        "passages": f"{kg.search.status().units:,}",
        "addresses": [{"path": path, "what": what, "href": path if page else None} for path, what, page in _ADDRESSES],
        "classes": rows,
        "generation": schema.generation,
        "unmeasured": counted.quads > 0,
    }
    return html("start.html", context)


def _example(kg: KnowledgeGraph) -> str:
    """Return the first of `EXAMPLES` that has an answer."""
    classes = [NamedNode(name) for name, _ in EXAMPLES]
    there = {iri_of(row["class"]) for row in Reader(kg).rows("classes", bind(THERE, classes=classes))}
    return next((query for name, query in EXAMPLES if name in there), EXAMPLE)


def _shortened(text: str) -> str:
    return text if len(text) <= EXAMPLE_CHARACTERS else text[:EXAMPLE_CHARACTERS] + "…"
