"""Service metadata: SPARQL service description, VoID and DCAT, prefixes.

- the service description of ``/sparql`` (https://www.w3.org/TR/sparql11-service-description/);
- ``/.well-known/void``: a DCAT catalogue (https://www.w3.org/TR/vocab-dcat-3/) with a dataset for each family of named
  graphs, described by VoID (https://www.w3.org/TR/void/) as measured;
- ``/prefixes``: the prefixes that a query need not declare, as one JSON object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import quote

from pyoxigraph import BlankNode, Literal, NamedNode, Triple
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kg import __version__
from kg.errors import InvalidInputError, NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.server.endpoint import Endpoint
from kg.server.resources import browser_headers, choose_media_type, rdf_response, resource
from kg.sparql.measured_schema import Schema
from kg.store.protocol import Rows
from kg.store.protocol import Term as Node
from kg.text import quoted
from kg.tools.schema.schema_counts import get_family
from kg.tools.schema.schema_measurement import get_schema
from kg.vocabulary import DCAT, DCTERMS, FOAF, KG, PREFIXES, PROV, RDF, RDFS, SD, VOID, XSD, Namespace, curie

VOID_PATH: Final = "/.well-known/void"

_FORMATS: Final = Namespace("http://www.w3.org/ns/formats/")
_RESULTS: Final = (
    "SPARQL_Results_JSON", "SPARQL_Results_XML", "SPARQL_Results_CSV", "SPARQL_Results_TSV",
)  # fmt: skip
_GRAPHS: Final = ("Turtle", "N-Triples", "RDF_XML", "JSON-LD", "TriG", "N-Quads")

_GEOSPARQL: Final = Namespace("http://www.opengis.net/def/function/geosparql/")
FUNCTIONS: Final = (
    "area", "asGeoJSON", "centroid", "convexHull", "coordinateDimension", "difference", "dimension", "distance",
    "ehContains", "ehCoveredBy", "ehCovers", "ehDisjoint", "ehEquals", "ehInside", "ehMeet", "ehOverlap", "envelope",
    "getSRID", "intersection", "isEmpty", "isSimple", "length", "rcc8dc", "rcc8ec", "rcc8eq", "rcc8ntpp", "rcc8ntppi",
    "rcc8po", "rcc8tpp", "rcc8tppi", "relate", "sfContains", "sfCrosses", "sfDisjoint", "sfEquals", "sfIntersects",
    "sfOverlaps", "sfTouches", "sfWithin", "spatialDimension", "symDifference", "union",
)  # fmt: skip
"""The GeoSPARQL functions of Oxigraph, by local name."""

Statements = Iterator[Triple]


def describe_service(endpoint: Endpoint, base_url: str) -> list[Triple]:
    """Build the description of `endpoint`, with the server at `base_url` (without a trailing slash)."""
    return list(_service(endpoint, base_url))


def _service(endpoint: Endpoint, base_url: str) -> Statements:
    settings = endpoint.settings
    url = NamedNode(base_url + "/sparql")
    service, dataset, default = (NamedNode(f"{url.value}#{name}") for name in ("service", "dataset", "default-graph"))
    yield Triple(service, RDF.type, SD.Service)
    yield Triple(service, SD.endpoint, url)
    yield Triple(service, SD.supportedLanguage, SD.SPARQL11Query)
    if endpoint.update is not None:
        yield Triple(service, SD.supportedLanguage, SD.SPARQL11Update)
    for name in (*_RESULTS, *_GRAPHS):
        yield Triple(service, SD.resultFormat, _FORMATS[name])
    for name in _GRAPHS:
        yield Triple(service, SD.inputFormat, _FORMATS[name])
    if endpoint.union:
        yield Triple(service, SD.feature, SD.UnionDefaultGraph)
    if settings.service_endpoints:
        yield Triple(service, SD.feature, SD.BasicFederatedQuery)
    for name in FUNCTIONS:
        yield Triple(service, SD.extensionFunction, _GEOSPARQL[name])
        yield Triple(_GEOSPARQL[name], RDF.type, SD.Function)
    for other in (*endpoint.services, *(NamedNode(str(url)) for url in settings.service_endpoints)):
        yield Triple(service, KG.answersService, other)
        yield Triple(other, RDF.type, SD.Service)
    yield Triple(service, KG.timeLimit, Literal(f"{settings.query_timeout_s:f}", datatype=XSD.decimal))
    yield Triple(service, KG.memoryLimit, Literal(settings.query_memory_mb << 20))
    yield Triple(service, KG.rowLimit, Literal(settings.max_rows))
    yield Triple(service, KG.requestLimit, Literal(settings.max_body_bytes))
    yield Triple(service, SD.defaultEntailmentRegime, NamedNode("http://www.w3.org/ns/entailment/Simple"))
    yield Triple(service, SD.defaultDataset, dataset)
    yield Triple(dataset, RDF.type, SD.Dataset)
    yield Triple(dataset, SD.defaultGraph, default)
    yield Triple(default, RDF.type, SD.Graph)
    yield Triple(default, KG.generation, Literal(endpoint.generation()))
    # Named graphs are counted by family over there: there can be a million of them.
    yield Triple(dataset, RDFS.seeAlso, NamedNode(base_url + VOID_PATH))


def build_catalogue(
    schema: Schema, endpoint: Endpoint, base_url: str, licences: Mapping[str, set[str]]
) -> list[Triple]:
    """Build the VoID and DCAT description of a measured schema. `licences` are IRIs by family of graphs."""
    return list(_catalogue(schema, endpoint, base_url, licences))


def _catalogue(schema: Schema, endpoint: Endpoint, base_url: str, licences: Mapping[str, set[str]]) -> Statements:
    here = base_url + VOID_PATH
    document, catalog, whole, service = (
        NamedNode(here), *(NamedNode(f"{here}#{name}") for name in ("catalog", "dataset", "service")),
    )  # fmt: skip
    yield Triple(document, RDF.type, VOID.DatasetDescription)
    yield Triple(document, FOAF.primaryTopic, whole)
    yield Triple(catalog, RDF.type, DCAT.Catalog)
    yield Triple(catalog, DCTERMS.title, Literal("Data of this Quadcite server", language="en"))
    yield Triple(catalog, DCAT.service, service)
    yield Triple(service, RDF.type, DCAT.DataService)
    yield Triple(service, DCTERMS.title, Literal(f"Quadcite {__version__}: SPARQL 1.1 endpoint", language="en"))
    yield Triple(service, DCAT.endpointURL, NamedNode(base_url + "/sparql"))
    yield Triple(service, DCAT.endpointDescription, NamedNode(base_url + "/sparql"))
    yield Triple(service, DCTERMS.conformsTo, NamedNode("http://www.w3.org/TR/sparql11-protocol/"))
    yield from _dataset(whole, "All graphs", service, base_url, schema)
    yield Triple(catalog, DCAT.dataset, whole)
    yield Triple(whole, VOID.triples, Literal(schema.triples))
    yield Triple(whole, VOID.classes, Literal(len(schema.classes)))
    yield Triple(whole, VOID.properties, Literal(len(schema.properties)))
    yield Triple(whole, VOID.uriLookupEndpoint, NamedNode(base_url + "/resolve?iri="))
    for namespace in sorted(_vocabularies(schema)):
        yield Triple(whole, VOID.vocabulary, NamedNode(namespace))
    for number, use in enumerate(schema.classes.values()):
        part = BlankNode(f"class{number}")
        yield Triple(whole, VOID.classPartition, part)
        yield Triple(part, VOID["class"], NamedNode(use.iri))
        yield Triple(part, VOID.entities, Literal(use.entities))
        if use.example is not None and not use.example.startswith("_:"):
            yield Triple(part, VOID.exampleResource, NamedNode(use.example))
        for position, of_class in enumerate(use.properties.values()):
            inner = BlankNode(f"class{number}property{position}")
            yield Triple(part, VOID.propertyPartition, inner)
            yield Triple(inner, VOID.property, NamedNode(of_class.iri))
            yield Triple(inner, VOID.triples, Literal(of_class.triples))
            yield Triple(inner, VOID.distinctSubjects, Literal(of_class.subjects))
    for number, use_of in enumerate(schema.properties.values()):
        part = BlankNode(f"property{number}")
        yield Triple(whole, VOID.propertyPartition, part)
        yield Triple(part, VOID.property, NamedNode(use_of.iri))
        yield Triple(part, VOID.triples, Literal(use_of.triples))
        yield Triple(part, VOID.distinctSubjects, Literal(use_of.subjects))
    for number, (family, held) in enumerate(schema.holdings.items()):
        dataset = NamedNode(f"{here}#{quote(family, safe='/:')}")
        yield from _dataset(dataset, f"Graphs of {family}", service, base_url, schema)
        yield Triple(catalog, DCAT.dataset, dataset)
        yield Triple(whole, VOID.subset, dataset)
        yield Triple(dataset, DCTERMS.identifier, Literal(family))
        yield Triple(dataset, VOID.triples, Literal(held.quads))
        yield Triple(dataset, VOID.entities, Literal(held.entities))
        yield Triple(dataset, KG.graphCount, Literal(held.graphs))
        yield Triple(dataset, VOID.classes, Literal(len(held.classes)))
        yield Triple(dataset, VOID.properties, Literal(len(held.properties)))
        for licence in sorted(licences.get(family, ())):
            yield Triple(dataset, DCTERMS.license, NamedNode(licence))
        for kind, term, counted, counts in (
            ("class", VOID["class"], VOID.entities, held.classes),
            ("property", VOID.property, VOID.triples, held.properties),
        ):
            for position, (iri, count) in enumerate(counts.items()):
                part = BlankNode(f"family{number}{kind}{position}")
                yield Triple(dataset, VOID[kind + "Partition"], part)
                yield Triple(part, term, NamedNode(iri))
                yield Triple(part, counted, Literal(count))


def _dataset(dataset: NamedNode, title: str, service: NamedNode, base_url: str, schema: Schema) -> Statements:
    distribution = NamedNode(f"{dataset.value}/distribution")
    yield Triple(dataset, RDF.type, VOID.Dataset)
    yield Triple(dataset, RDF.type, DCAT.Dataset)
    yield Triple(dataset, DCTERMS.title, Literal(title, language="en"))
    yield Triple(dataset, VOID.sparqlEndpoint, NamedNode(base_url + "/sparql"))
    yield Triple(dataset, KG.generation, Literal(schema.generation))
    if schema.measured_at is not None:
        yield Triple(dataset, PROV.generatedAtTime, Literal(schema.measured_at, datatype=XSD.dateTime))
    yield Triple(dataset, DCAT.distribution, distribution)
    yield Triple(distribution, RDF.type, DCAT.Distribution)
    yield Triple(distribution, DCAT.accessURL, NamedNode(base_url + "/sparql"))
    yield Triple(distribution, DCAT.accessService, service)


def _vocabularies(schema: Schema) -> set[str]:
    """Collect the namespaces of the classes and properties in use, up to the last ``#`` or ``/``."""
    used = [*schema.classes, *schema.properties]
    return {iri[: max(iri.rfind("#"), iri.rfind("/")) + 1] for iri in used if iri.rfind("/") > iri.find("//") + 1}


# As resources.

LICENCES: Final = """
SELECT DISTINCT ?graph ?licence WHERE { GRAPH ?graph { ?of dcterms:license ?licence } FILTER(isIRI(?licence)) }
LIMIT 1000"""


def base_url_of(request: Request) -> str:
    """Get the address by which the client reached this server, without a trailing slash."""
    return str(request.base_url).rstrip("/")


def routes(kg: KnowledgeGraph, endpoint: Endpoint) -> list[Route]:
    """Build the routes ``/.well-known/void`` and ``/prefixes``."""

    def void(request: Request) -> Response:
        media_type = choose_media_type(request)
        with kg.reading():
            schema = get_schema(kg)
            licences = _licences(kg, schema)
        headers = {"Quadcite-Snapshot": str(schema.generation), **browser_headers(request, media_type)}
        return rdf_response(build_catalogue(schema, endpoint, base_url_of(request), licences), media_type, headers)

    return [resource(VOID_PATH, void), resource("/prefixes", _prefixes)]


def _licences(kg: KnowledgeGraph, schema: Schema) -> dict[str, set[str]]:
    if DCTERMS.license.value not in schema.properties:
        return {}
    found: dict[str, set[str]] = {}
    answer = kg.query(LICENCES)
    if isinstance(answer.result, Rows):
        for row in answer.result:
            found.setdefault(get_family(_value(row["graph"])), set()).add(_value(row["licence"]))
    return found


def _value(term: Node) -> str:
    return term.value if isinstance(term, NamedNode) else str(term)


def _prefixes(request: Request) -> Response:
    """Answer with all prefixes, one (``prefix=``), or the one that shortens an IRI (``iri=``)."""
    prefix, iri = request.query_params.get("prefix"), request.query_params.get("iri")
    if prefix is not None and iri is not None:
        raise InvalidInputError("Give `prefix` or `iri`, not both.")
    content: dict[str, str] = PREFIXES
    if prefix is not None:
        name = prefix.strip().rstrip(":")
        if name not in PREFIXES:
            raise NotFoundError(f"Unknown prefix {quoted(name)}. Available: {', '.join(PREFIXES)}.")
        content = {name: PREFIXES[name]}
    elif iri is not None:
        found = {name: start for name, start in PREFIXES.items() if iri.startswith(start)}
        if not found:
            raise NotFoundError(f"No prefix for {quoted(iri)}. Available: {', '.join(PREFIXES)}.")
        name = max(found, key=lambda name: len(found[name]))
        short = curie(iri)
        content = {"prefix": name, "namespace": found[name], "iri": iri, "short": short}
    return JSONResponse(content, headers={"Cache-Control": "max-age=3600"})
