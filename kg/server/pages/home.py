"""The start page (``/``): search over all domains, counts, loads, health, and ways in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kg import __version__
from kg.errors import ForbiddenError, IndexUnavailableError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.reader import Reader
from kg.retrieval.results import FacetCounts, Statement
from kg.server.html import page
from kg.server.negotiation import negotiate
from kg.server.pages.site import Site, ask, list_queries
from kg.server.resources import HTML
from kg.tools.catalog.health import Health, health
from kg.tools.catalog.resources import Resource, datasets
from kg.tools.parliament.speech_filters import speakers
from kg.tools.search.passages import search
from kg.tools.zoning.name_lookup import load_places as load_municipalities

EXAMPLES: Final = 6
"""Searches that the page proposes."""
DATASETS: Final = 5
"""Datasets whose last change is shown."""

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
_UNITS: Final = {
    "climate": "passages of laws and policies",
    "parliament": "passages of speeches and debates",
    "zoning": "sections of codes",
    "files": "passages of files",
}
_WAYS: Final = (
    ("/places", "Places", "Countries, states and municipalities with their records"),
    ("/people", "People", "Speakers in parliament, with their parties and speeches"),
    ("/concepts", "Concepts", "Subjects that the texts mention, in all domains"),
    ("/documents", "Documents", "Laws and policies by family"),
    ("/codes", "Codes", "Municipal codes and their districts"),
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
    queries: list[Statement] = []
    facets: FacetCounts | None = None
    problem = None
    try:
        found = ask(kg, search, facets=["domain", "place", "concept"])
        facets = found.result.facets
        queries += found.queries
    except (IndexUnavailableError, ForbiddenError) as error:
        problem = str(error)
    reader = Reader(kg)
    loaded = datasets(reader)
    state = ask(kg, health).result
    domains = facets.values["domain"] if facets is not None else []
    context = {
        "domains": [
            {
                "label": each.label,
                "count": f"{each.passages:,}",
                "units": _UNITS.get(each.value, "passages"),
                "href": "/search?" + urlencode({"domain": each.value}),
            }
            for each in domains
        ],
        "examples": [
            {"text": text, "href": "/search?" + urlencode(state)} for text, state in _find_examples(reader, facets)
        ],
        "ways": [{"href": href, "text": text, "what": what} for href, text, what in _WAYS],
        "empty": counted.quads == 0 or (facets is not None and not facets.passages),
        "problem": problem,
        "quads": f"{counted.quads:,}",
        "graphs": f"{counted.graphs:,}",
        "datasets": _list_datasets(loaded),
        "health": state,
        "checks": _describe_checks(state),
        "addresses": [
            {"path": path, "what": what, "href": path if opens else None} for path, what, opens in _ADDRESSES
        ],
        "version": __version__,
        "generation": counted.generation,
        "queries": list_queries([*queries, *reader.ran]),
    }
    return page(request, "home.html", context)


def _find_examples(reader: Reader, facets: FacetCounts | None) -> list[tuple[str, dict[str, str]]]:
    """Find searches with results, each with its parameters: the concepts that most passages mention, and if they are
    few the places with most passages; without any, speakers and towns.
    """
    concepts = [each.label for each in facets.values["concept"] if each.passages > 1] if facets is not None else []
    # Several words say more of what can be asked than one.
    concepts.sort(key=lambda label: " " not in label)
    found = [(label, {"q": label}) for label in concepts]
    if facets is not None:
        found += [(each.label, {"place": each.value}) for each in facets.values["place"] if each.passages > 1]
    if not found:
        people = [each.label for each in speakers(reader)]
        towns = [town.name for town in load_municipalities(reader)[: EXAMPLES // 2]]
        found = [(label, {"q": label}) for label in (*people[: EXAMPLES // 2], *towns)]
    return found[:EXAMPLES]


def _list_datasets(resources: Sequence[Resource]) -> list[dict[str, Any]]:
    """List the largest datasets."""
    datasets = [each for each in resources if each.kind == "dataset" and len(each.values) == 3]
    datasets.sort(key=lambda each: (-(each.count or 0), each.title))
    return [
        {
            "title": each.title,
            "loader": each.values[0],
            "records": f"{each.count or 0:,}",
            "quads": each.values[1],
            "changed": each.values[2].removeprefix("last changed ")[:19].replace("T", " "),
        }
        for each in datasets[:DATASETS]
    ]


def _describe_checks(state: Health) -> str:
    """Describe the last check of the dataset shapes."""
    check = state.dataset_shapes
    if check is None or check.conforms is None:
        return "not run yet"
    if check.conforms:
        return "the data conforms to the shapes"
    return f"{check.violations:,} {'violation' if check.violations == 1 else 'violations'} of the shapes"
