"""What the server says of itself is true, complete, and small however large the store is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, Store, Triple, parse
from starlette.applications import Starlette
from starlette.testclient import TestClient

from kg.knowledge_graph import KnowledgeGraph
from kg.server import service_description as description
from kg.server.app import build_endpoint
from kg.server.endpoint import Endpoint
from kg.server.negotiation import GRAPH_TYPES
from kg.server.service_description import FUNCTIONS, build_catalogue, describe_service
from kg.tools.schema.schema_measurement import get_schema
from kg.vocabulary import DCAT, DCTERMS, KG, PREFIXES, RDF, SD, VOID

BASE_URL = "http://127.0.0.1:8000"
FORMATS = "http://www.w3.org/ns/formats/"


@pytest.fixture
def endpoint(kg: KnowledgeGraph) -> Endpoint:
    return build_endpoint(kg)


@pytest.fixture(scope="module")
def client(kg: KnowledgeGraph) -> Iterator[TestClient]:
    app = Starlette(routes=description.routes(kg, build_endpoint(kg)))
    with TestClient(app, base_url=BASE_URL) as http:
        yield http


def objects(triples: list[Triple], predicate: NamedNode) -> set[str]:
    return {triple.object.value for triple in triples if triple.predicate == predicate}  # type: ignore[union-attr]


def ask(triples: list[Triple], query: str) -> list[tuple]:
    store = Store()
    store.extend(Quad(*triple) for triple in triples)
    return [tuple(row) for row in store.query(query, prefixes=PREFIXES)]


# The service description.


def test_a_service_has_the_endpoint_that_was_asked(endpoint):
    [(found,)] = ask(describe_service(endpoint, BASE_URL), "SELECT ?e { ?s a sd:Service ; sd:endpoint ?e }")
    assert found.value == BASE_URL + "/sparql"


def test_what_is_said_conforms_to_the_schema_of_service_descriptions(endpoint):
    triples = describe_service(endpoint, BASE_URL)
    assert ask(triples, "SELECT ?d { ?s sd:defaultDataset ?d . ?d a sd:Dataset ; sd:defaultGraph ?g . ?g a sd:Graph }")
    services = {row[0] for row in ask(triples, "SELECT ?s { ?s sd:endpoint|sd:feature|sd:supportedLanguage ?x }")}
    assert services == {NamedNode(BASE_URL + "/sparql#service")}
    for predicate in (SD.endpoint, SD.feature, SD.supportedLanguage, SD.resultFormat, SD.extensionFunction):
        found = [triple.object for triple in triples if triple.predicate == predicate]
        assert len(found) == len(set(found))
        assert all(isinstance(value, NamedNode) for value in found)


def test_the_formats_are_those_that_the_endpoint_negotiates(endpoint):
    named = {name.removeprefix(FORMATS) for name in objects(describe_service(endpoint, BASE_URL), SD.resultFormat)}
    assert named == {
        "SPARQL_Results_JSON", "SPARQL_Results_XML", "SPARQL_Results_CSV", "SPARQL_Results_TSV",
        "Turtle", "N-Triples", "RDF_XML", "JSON-LD", "TriG", "N-Quads",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "predicate", "value", "expected"),
    [
        ({"union": True}, SD.feature, SD.UnionDefaultGraph, True),
        ({"union": False}, SD.feature, SD.UnionDefaultGraph, False),
        ({"update": None}, SD.supportedLanguage, SD.SPARQL11Update, False),
        ({"update": lambda request, actor: 1}, SD.supportedLanguage, SD.SPARQL11Update, True),
        ({"services": ()}, KG.answersService, KG.search, False),
        ({"services": (KG.search,)}, KG.answersService, KG.search, True),
        ({}, SD.feature, SD.BasicFederatedQuery, False),
    ],
)
def test_a_feature_is_named_where_the_endpoint_has_it(endpoint, change, predicate, value, expected):
    found = objects(describe_service(replace(endpoint, **change), BASE_URL), predicate)
    assert (value.value in found) == expected


def test_allowed_endpoints_make_it_federated(endpoint):
    settings = endpoint.settings.model_copy(update={"service_endpoints": ("http://example.org/sparql",)})
    triples = describe_service(replace(endpoint, settings=settings), BASE_URL)
    assert SD.BasicFederatedQuery.value in objects(triples, SD.feature)
    assert "http://example.org/sparql" in objects(triples, KG.answersService)


def test_the_limits_are_those_of_the_settings(endpoint):
    triples = describe_service(endpoint, BASE_URL)
    given = endpoint.settings
    assert {float(text) for text in objects(triples, KG.timeLimit)} == {given.query_timeout_s}
    assert objects(triples, KG.rowLimit) == {str(given.max_rows)}
    assert objects(triples, KG.memoryLimit) == {str(given.query_memory_mb * 1024 * 1024)}
    assert objects(triples, KG.requestLimit) == {str(given.max_body_bytes)}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_named_is_one_that_the_engine_has(name):
    function = f"<http://www.opengis.net/def/function/geosparql/{name}>"
    failures = []
    for arguments in ("1", "1, 2", "1, 2, 3"):
        try:
            Store().query(f"SELECT ({function}({arguments}) AS ?x) {{}}")
        except (ValueError, SyntaxError, OSError, RuntimeError) as error:
            failures.append(str(error))
    assert len(failures) < 3, failures


def test_no_graph_is_named_one_by_one(kg, endpoint):
    text = "\n".join(map(str, describe_service(endpoint, BASE_URL)))
    assert kg.store.statistics().graphs > 10
    assert not any(graph.value in text for graph in kg.store.graphs())


# VoID and DCAT.


def read(client: TestClient, media_type: str = "text/turtle", path: str = "/.well-known/void") -> list[Triple]:
    answer = client.get(path, headers={"Accept": media_type})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(media_type)
    return [quad.triple for quad in parse(answer.content, format=RdfFormat.from_media_type(media_type))]


@pytest.mark.parametrize("media_type", GRAPH_TYPES)
def test_the_catalogue_is_the_same_in_every_format(client, media_type):
    def query(media: str) -> list[tuple]:
        found = ask(read(client, media), "SELECT ?d ?n { ?d a void:Dataset ; void:triples ?n } ORDER BY ?d")
        return [tuple(map(str, row)) for row in found]

    assert query(media_type) == query("application/n-triples") != []


def test_its_counts_are_those_of_the_store(kg, client):
    triples = read(client)
    [(total,)] = ask(triples, "SELECT ?n { ?d void:subset ?x ; void:triples ?n } GROUP BY ?d ?n")
    distinct = kg.query("SELECT (COUNT(*) AS ?n) { { SELECT DISTINCT ?s ?p ?o { ?s ?p ?o } } }").result.rows[0][0]
    assert total.value == distinct.value
    parts = ask(triples, "SELECT ?n { [] void:subset ?d . ?d void:triples ?n }")
    assert sum(int(count.value) for (count,) in parts) == kg.store.statistics().quads
    [(passages,)] = ask(
        triples,
        """SELECT ?n { ?all void:subset ?x ; void:classPartition ?p . ?p void:class kg:Passage ; void:entities ?n ;
           void:propertyPartition [ void:property dcterms:isPartOf ; void:triples ?n ] } GROUP BY ?n""",
    )
    expected = kg.query("SELECT (COUNT(DISTINCT ?s) AS ?n) { ?s a kg:Passage }").result.rows[0][0]
    assert passages.value == expected.value


def test_each_family_is_a_dataset_of_the_catalogue_with_a_way_to_it(kg, client):
    rows = ask(
        read(client),
        """SELECT ?id ?url { ?c a dcat:Catalog ; dcat:dataset ?d . ?d a dcat:Dataset, void:Dataset ; dcterms:title ?t ;
           dcterms:identifier ?id ; dcat:distribution [ a dcat:Distribution ; dcat:accessURL ?url ] ;
           void:sparqlEndpoint ?url ; kg:generation ?g ; prov:generatedAtTime ?at }""",
    )
    assert {identifier.value for identifier, _ in rows} == set(get_schema(kg).graphs)
    assert {url.value for _, url in rows} == {BASE_URL + "/sparql"}


def test_what_is_put_out_is_about_the_generation_measured(kg, client):
    assert client.get("/.well-known/void").headers["quadcite-snapshot"] == str(get_schema(kg).generation)


def test_a_licence_stands_where_it_is_known(kg, endpoint):
    licence = "https://creativecommons.org/licenses/by/4.0/"
    triples = build_catalogue(get_schema(kg), endpoint, BASE_URL, {"src/climate": {licence}})
    [(dataset,)] = ask(triples, "SELECT ?i { ?d dcterms:license ?l ; dcterms:identifier ?i }")
    assert dataset.value == "src/climate"
    assert Triple(NamedNode(BASE_URL + "/.well-known/void#src/climate"), DCTERMS.license, NamedNode(licence)) in triples


def test_names_of_foreign_graphs_do_not_break_it(kg, endpoint):
    schema = get_schema(kg)
    held = next(iter(schema.holdings.values()))
    triples = build_catalogue(replace(schema, holdings={'urn:x:<"é #?': held}), endpoint, BASE_URL, {})
    assert Literal('urn:x:<"é #?') in {triple.object for triple in triples}
    assert sum(triple.object == DCAT.Dataset for triple in triples if triple.predicate == RDF.type) == 2
    assert all(triple.object.value for triple in triples if triple.predicate == VOID.subset)


@pytest.mark.parametrize("path", ["/.well-known/void", "/prefixes"])
def test_head_is_get_without_a_body_and_other_methods_are_named(client, path):
    assert client.head(path).status_code == 200
    assert client.head(path).headers["content-type"] == client.get(path).headers["content-type"]
    refused = client.post(path)
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
    assert client.options(path).headers["allow"] == "GET, HEAD, OPTIONS"


def test_a_format_that_is_none_is_said_so(client):
    assert client.get("/.well-known/void", headers={"Accept": "image/png"}).status_code == 406
    assert client.get("/.well-known/void?format=ttl").headers["content-type"].startswith("text/turtle")
    answer = client.get("/.well-known/void?format=sandwich")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")


# Prefixes.


def test_all_prefixes_come_as_one_object(client):
    assert client.get("/prefixes").json() == PREFIXES


def test_one_prefix_can_be_looked_up_and_an_iri_shortened(client):
    assert client.get("/prefixes", params={"prefix": "kg:"}).json() == {"kg": KG.iri}
    found = client.get("/prefixes", params={"iri": KG.Passage.value}).json()
    assert found == {"prefix": "kg", "namespace": KG.iri, "iri": KG.Passage.value, "short": "kg:Passage"}


@pytest.mark.parametrize(("query", "status"), [("prefix=nope", 404), ("iri=urn:x", 404), ("prefix=kg&iri=urn:x", 400)])
def test_what_no_prefix_is_for_is_said_so(client, query, status):
    assert client.get("/prefixes?" + query).status_code == status


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/plain; charset=utf-8"),
        ("text/html, text/turtle;q=0.5", "text/turtle; charset=utf-8"),
        ("*/*", "text/turtle; charset=utf-8"),
    ],
)
def test_a_browser_shows_what_it_would_else_save(client, accept, content_type):
    assert client.get("/.well-known/void", headers={"Accept": accept}).headers["content-type"] == content_type
