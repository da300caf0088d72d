"""The SPARQL 1.1 Protocol over a real store and pool, and its updates over a plain dataset."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad, QueryResultsFormat, RdfFormat, parse, parse_query_results
from starlette.applications import Starlette
from starlette.testclient import TestClient

from kg.access.actors import ADMIN, EVERYONE, HOLDER, Actor
from kg.errors import (
    ClientBusyError,
    ForbiddenError,
    GoneError,
    QuadciteError,
    QueryBusyError,
    QueryMemoryError,
    QueryTimeoutError,
    UpstreamError,
)
from kg.knowledge_graph import SENDER
from kg.queries.pool import QueryPool
from kg.server.auth import LocalToken
from kg.server.authentication import Accounts, Authentication
from kg.server.endpoint import Endpoint
from kg.server.negotiation import GRAPH_TYPES, RESULT_TYPES
from kg.server.sparql_protocol import routes
from kg.settings import Settings
from kg.store.oxigraph import OxigraphStore
from tests.conformance.plain_server import create_plain_app
from tests.conformance.plain_store import PlainStore
from tests.examples import dear

MAX_ROWS = 5_000
CROSS_JOIN = "SELECT (COUNT(*) AS ?n) { ?a ?p ?b . ?c ?q ?d . ?e ?r ?f . ?g ?h ?i }"
ONE, TWO = "https://w3id.org/quadcite/graph/src/test/one", "https://w3id.org/quadcite/graph/src/test/two"
SELECT = 'SELECT ?s { ?s ?p "value 7" }'
SEVEN = "http://example.org/7"
QUERY_TYPE, UPDATE_TYPE = {"Content-Type": "application/sparql-query"}, {"Content-Type": "application/sparql-update"}
POST = {"method": "POST", "url": "/sparql"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OxigraphStore]:
    p = NamedNode("http://example.org/p")
    one = [Quad(NamedNode(f"http://example.org/{i}"), p, Literal(f"value {i}"), NamedNode(ONE)) for i in range(500)]
    two = [Quad(NamedNode("http://example.org/other"), p, Literal("two"), NamedNode(TWO))]
    with OxigraphStore(tmp_path_factory.mktemp("protocol") / "data") as opened:
        opened.commit({NamedNode(ONE): one, NamedNode(TWO): two})
        yield opened


@pytest.fixture(scope="module")
def endpoint(store: OxigraphStore) -> Iterator[Endpoint]:
    settings = Settings(max_rows=MAX_ROWS, max_body_bytes=10_000, query_workers=2, query_queue=2)
    with PlainStore() as other, QueryPool(store, settings) as pool:
        yield Endpoint(
            settings=settings,
            pool=pool,
            generation=lambda: store.statistics().generation,
            actor=lambda request: EVERYONE,
            graphs=other,
            update=None,
        )


@pytest.fixture(scope="module")
def client(endpoint: Endpoint) -> Iterator[TestClient]:
    with TestClient(Starlette(routes=routes(endpoint))) as opened:
        yield opened


def rows(response: Any) -> list[dict[str, str]]:
    assert response.status_code == 200, response.text
    return [{name: term["value"] for name, term in row.items()} for row in response.json()["results"]["bindings"]]


@pytest.mark.parametrize("how", ["get", "form", "direct", "query", "query-form"])
def test_a_query_comes_in_by_each_way_of_the_protocol(client: TestClient, how: str) -> None:
    with_charset = {"Content-Type": "application/sparql-query; charset=utf-8"}
    response = {
        "get": lambda: client.get("/sparql", params={"query": SELECT}),
        "form": lambda: client.post("/sparql", data={"query": SELECT}),
        "direct": lambda: client.post("/sparql?timeout=3", content=SELECT, headers=with_charset),
        "query": lambda: client.request("QUERY", "/sparql?timeout=3", content=SELECT, headers=QUERY_TYPE),
        "query-form": lambda: client.request("QUERY", "/sparql", data={"query": SELECT, "timeout": "3"}),
    }[how]()
    assert rows(response) == [{"s": SEVEN}]
    assert response.headers["content-type"] == "application/sparql-results+json"
    assert response.headers["quadcite-truncated"] == "false"
    assert response.headers["quadcite-snapshot"] == "1"
    assert response.headers["vary"] == "Accept, Accept-Encoding"
    assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize("media_type", RESULT_TYPES)
def test_results_come_in_each_format(client: TestClient, media_type: str) -> None:
    response = client.get("/sparql", params={"query": SELECT}, headers={"Accept": media_type})
    assert response.headers["content-type"].partition(";")[0] == media_type
    if media_type == "text/csv":
        assert response.content == f"s\r\n{SEVEN}\r\n".encode()
    else:
        results = parse_query_results(response.content, format=QueryResultsFormat.from_media_type(media_type))
        assert [row["s"] for row in results] == [NamedNode(SEVEN)]


@pytest.mark.parametrize("media_type", RESULT_TYPES)
def test_a_select_without_rows_links_to_what_may_be_wrong_with_it(client: TestClient, media_type: str) -> None:
    none = "SELECT ?x { ?x <http://example.org/never> ?y }"
    accept = {"Accept": media_type}
    help_ = client.get("/sparql", params={"query": none}, headers=accept).headers["link"]
    assert help_.startswith("</sparql/check?query=SELECT+%3Fx")
    assert help_.endswith('>; rel="help"')
    assert "link" not in client.get("/sparql", params={"query": SELECT}, headers=accept).headers
    assert "link" not in client.get("/sparql", params={"query": none + "#" * 2_000}, headers=accept).headers


@pytest.mark.parametrize("media_type", RESULT_TYPES)
def test_ask_is_answered_in_each_format(client: TestClient, media_type: str) -> None:
    results = QueryResultsFormat.from_media_type(media_type)
    for query, expected in (("ASK {}", b"true"), ("ASK { <a:b> ?p ?o }", b"false")):
        asked = client.get("/sparql", params={"query": query}, headers={"Accept": media_type})
        assert asked.headers["content-type"].partition(";")[0] == media_type
        if media_type.startswith("text/"):
            assert asked.content == expected
        else:
            assert bool(parse_query_results(asked.content, format=results)) is (expected == b"true")


@pytest.mark.parametrize("media_type", GRAPH_TYPES)
@pytest.mark.parametrize("query", ["CONSTRUCT WHERE { ?s ?p 'value 7' }", f"DESCRIBE <{SEVEN}>"])
def test_graphs_come_in_each_format(client: TestClient, media_type: str, query: str) -> None:
    response = client.get("/sparql", params={"query": query}, headers={"Accept": media_type})
    assert response.headers["content-type"].partition(";")[0] == media_type
    quads = list(parse(response.content, format=RdfFormat.from_media_type(media_type)))
    assert [str(quad.object) for quad in quads] == ['"value 7"']


def test_what_rdf_xml_cannot_say_is_the_askers_to_change(client: TestClient) -> None:
    query = "CONSTRUCT { <urn:a> rdf:li 1 } WHERE {}"
    refused = client.get("/sparql", params={"query": query}, headers={"Accept": "application/rdf+xml"})
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_input")
    assert "reserved syntax term" in refused.json()["message"]
    assert client.get("/sparql", params={"query": query}, headers={"Accept": "text/turtle"}).status_code == 200


def test_a_parameter_names_the_format_where_no_header_can(client: TestClient) -> None:
    accept = {"Accept": "text/csv"}
    for name in ("format", "output"):
        response = client.get("/sparql", params={"query": SELECT, name: "xml"}, headers=accept)
        assert response.headers["content-type"] == "application/sparql-results+xml"
    graph = client.get("/sparql", params={"query": f"DESCRIBE <{SEVEN}>", "format": "json"})
    assert graph.headers["content-type"] == "application/ld+json"
    refused = client.get("/sparql", params={"query": SELECT, "format": "ttl"})
    assert (refused.status_code, "text/csv" in refused.json()["message"]) == (406, True)
    unknown = client.get("/sparql", params={"query": SELECT, "format": "html"})
    assert (unknown.status_code, "tsv" in unknown.json()["message"]) == (400, True)


def test_several_accept_headers_count_as_one(client: TestClient) -> None:
    headers = [("Accept", "text/csv;q=0.1"), ("Accept", "application/sparql-results+xml")]
    response = client.get("/sparql", params={"query": SELECT}, headers=headers)
    assert response.headers["content-type"] == "application/sparql-results+xml"


def test_a_request_names_its_dataset(client: TestClient) -> None:
    count = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"
    named = "SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }"
    assert rows(client.get("/sparql", params={"query": count, "default-graph-uri": TWO})) == [{"n": "1"}]
    both = client.post("/sparql", data={"query": count, "default-graph-uri": [ONE, TWO]})
    assert rows(both) == [{"n": "501"}]
    direct = client.post(f"/sparql?named-graph-uri={quote(TWO)}", content=named, headers=QUERY_TYPE)
    assert rows(direct) == [{"g": TWO}]
    # Section 2.1.4: the dataset of the request replaces that of the query.
    own = f"SELECT * FROM <{ONE}> {{ ?s ?p ?o }}"  # noqa: S608 -- SPARQL
    over = client.get("/sparql", params={"query": own, "default-graph-uri": TWO})
    assert [row["o"] for row in rows(over)] == ["two"]


def test_a_plus_is_a_space_and_an_escaped_one_is_not(client: TestClient) -> None:
    assert rows(client.get("/sparql?query=SELECT+(1%2B1+AS+?n)+{}")) == [{"n": "2"}]
    form = {"Content-Type": "application/x-www-form-urlencoded; charset=UTF-8"}
    assert rows(client.post("/sparql", content="query=SELECT+(1%2B1+AS+?n)+{}", headers=form)) == [{"n": "2"}]


def test_a_byte_order_mark_is_no_part_of_a_body(client: TestClient) -> None:
    assert rows(client.post("/sparql", content=b"\xef\xbb\xbf" + SELECT.encode(), headers=QUERY_TYPE))


def test_parameters_of_other_endpoints_are_left_alone(client: TestClient) -> None:
    assert rows(client.get("/sparql", params={"query": SELECT, "debug": "on", "results": "xml"})) == [{"s": SEVEN}]


def direct(body: str | bytes, content_type: str | None = "application/sparql-query", **more: Any) -> dict[str, Any]:
    headers = {} if content_type is None else {"Content-Type": content_type}
    return {**POST, "content": body, "headers": {**headers, **more.pop("headers", {})}, **more}


@pytest.mark.parametrize(
    ("request_", "status", "code", "message"),
    [
        ({"params": {"query": "SELECT * {\n  ?s ?p }"}}, 400, "query_syntax", "line 2, column"),
        ({"params": {"query": "ASK {}\0"}}, 400, "query_syntax", "line 1"),
        ({"params": {"query": "\ufeffASK {}"}}, 400, "query_syntax", "line 1, column 1"),
        ({"params": {"timeout": "1"}}, 400, "invalid_input", "0 queries"),
        ({"params": {"query": ""}}, 400, "invalid_input", "empty"),
        (direct(" \n"), 400, "invalid_input", "empty"),
        (direct("# nothing"), 400, "query_syntax", "SELECT, ASK"),
        ({"url": "/sparql?query=ASK{}&query=ASK{}"}, 400, "invalid_input", "2 queries"),
        (direct("ASK {}", url="/sparql?query=ASK{}"), 400, "invalid_input", "2 queries"),
        ({**POST, "data": {"query": "ASK {}", "update": "CLEAR ALL"}}, 400, "invalid_input", "2 queries"),
        ({"url": "/sparql?query=%FF"}, 400, "invalid_input", "UTF-8"),
        ({"url": "/sparql?query=ASK%2"}, 400, "invalid_input", "'%2' at byte 9"),
        ({**POST, "data": {f"x{i}": "y" for i in range(1)}}, 400, "invalid_input", "exactly one"),
        ({"params": {"query": "ASK {}", "timeout": "soon"}}, 400, "invalid_input", "seconds"),
        ({"params": {"query": "ASK {}", "timeout": "nan"}}, 400, "invalid_input", "seconds"),
        ({"params": {"query": "ASK {}", "timeout": ["1", "2"]}}, 400, "invalid_input", "2 times"),
        ({"params": {"query": "ASK {}", "snapshot": "-1"}}, 400, "invalid_input", "Quadcite-Snapshot"),
        ({"params": {"query": "ASK {}", "default-graph-uri": "data.ttl"}}, 400, "invalid_input", "default-graph-uri"),
        ({"params": {"query": "ASK {}", "named-graph-uri": "a b:c"}}, 400, "invalid_input", "named-graph-uri"),
        ({"params": {"query": "ASK {}", "using-graph-uri": "a:b"}}, 400, "invalid_input", "using-graph-uri"),
        (direct(b"\xff"), 400, "invalid_input", "UTF-8"),
        ({"params": {"query": "SELECT * { SERVICE <a:b> {} }"}}, 403, "query_forbidden", "SERVICE"),
        ({"params": {"query": "DROP ALL"}}, 403, "query_forbidden", "read-only"),
        ({"params": {"update": "DROP ALL"}}, 400, "invalid_input", "by POST"),
        ({"method": "QUERY", "url": "/sparql", "data": {"update": "DROP ALL"}}, 400, "invalid_input", "by POST"),
        ({**POST, "data": {"update": "DROP ALL"}}, 403, "query_forbidden", "QUADCITE_UPDATES"),
        (direct("DROP ALL", "application/sparql-update"), 403, "query_forbidden", "QUADCITE_UPDATES"),
        ({"method": "PUT", "url": "/sparql"}, 405, "method_not_allowed", "GET, HEAD, POST, QUERY"),
        ({"method": "PROPFIND", "url": "/sparql"}, 405, "method_not_allowed", "GET, HEAD, POST, QUERY"),
        ({"params": {"query": "ASK {}"}, "headers": {"Accept": "text/html"}}, 406, "not_acceptable", "json"),
        ({"params": {"query": "ASK {}"}, "headers": {"Accept": "*/*;q=0"}}, 406, "not_acceptable", "json"),
        ({"params": {"query": "DESCRIBE <a:b>"}, "headers": {"Accept": "text/csv"}}, 406, "not_acceptable", "turtle"),
        ({**POST, "data": {"query": "ASK {}" + " " * 10_000}}, 413, "body_too_large", "10000 bytes"),
        (direct(iter([b" " * 6_000] * 2)), 413, "body_too_large", "10000 bytes"),
        ({"params": {"query": "ASK {}" + " " * 10_000}}, 414, "uri_too_long", "by POST"),
        (direct("ASK {}", "text/plain"), 415, "unsupported_media_type", "application/sparql-query"),
        (direct(b"ASK {}", None), 415, "unsupported_media_type", "application/sparql-query"),
        (direct("ASK {}".encode("utf-16"), "application/sparql-query; charset=UTF-16"), 415, "unsupported_media_type",
         "UTF-16"),
        (direct(b"x", headers={"Content-Encoding": "gzip"}), 415, "unsupported_media_type", "gzip"),
        ({**direct("DROP ALL", "application/sparql-update"), "method": "QUERY"}, 415, "unsupported_media_type",
         "application/sparql-query"),
        ({"params": {"query": CROSS_JOIN, "timeout": "0.1"}}, 504, "query_timeout", "0.1 s"),
    ],
)  # fmt: skip
def test_errors_have_their_status_and_say_what_would_do(
    client: TestClient, request_: dict[str, Any], status: int, code: str, message: str
) -> None:
    response = client.request(**{"method": "GET", "url": "/sparql", **request_})
    assert (response.status_code, response.headers["content-type"]) == (status, "application/problem+json")
    body = response.json()
    assert (body["status"], body["code"], body["detail"]) == (status, code, body["message"])
    assert message in body["message"]
    assert (status == 405) == ("allow" in response.headers)
    assert (status == 415) == bool({"accept-post", "accept-encoding"} & set(response.headers))


def test_a_service_that_hangs_is_given_up_at_the_deadline(endpoint: Endpoint) -> None:
    held = threading.Event()
    told: list[float | None] = []

    def hang(query: str, timeout_s: float | None) -> str:
        told.append(timeout_s)
        held.wait(60)
        return query

    with TestClient(Starlette(routes=routes(replace(endpoint, expand=hang)))) as client:
        started = time.monotonic()
        response = client.get("/sparql", params={"query": "SELECT * { SERVICE <a:b> {} }", "timeout": "0.2"})
        took = time.monotonic() - started
        held.set()
    assert (response.status_code, response.json()["code"]) == (504, "query_timeout")
    assert took < 40
    assert told == [0.2]


@pytest.mark.parametrize(
    ("error", "status", "retry_after"),
    [
        (QueryBusyError, 503, "1"),
        (ClientBusyError, 429, "1"),
        (QueryMemoryError, 503, None),
        (QueryTimeoutError, 504, None),
        (GoneError, 410, None),
        (UpstreamError, 502, "1"),
    ],
)
def test_who_may_try_again_is_told_when(
    endpoint: Endpoint, error: type[QuadciteError], status: int, retry_after: str | None
) -> None:
    def refuse(query: str, timeout_s: float | None) -> str:
        raise error("not this time")

    with TestClient(Starlette(routes=routes(replace(endpoint, expand=refuse)))) as client:
        response = client.get("/sparql", params={"query": "SELECT * { SERVICE <a:b> {} }"})
    assert (response.status_code, response.headers.get("retry-after")) == (status, retry_after)
    assert response.json()["code"] == error.code


def test_services_are_answered_before_the_query_runs(endpoint: Endpoint) -> None:
    answering = replace(endpoint, expand=lambda query, timeout_s: query.replace("SERVICE <a:b> {}", "VALUES ?x { 7 }"))
    with TestClient(Starlette(routes=routes(answering))) as client:
        response = client.get("/sparql", params={"query": "SELECT ?x { SERVICE <a:b> {} }"})
    assert rows(response) == [{"x": "7"}]
    assert "etag" not in response.headers


def test_an_older_snapshot_can_be_asked(client: TestClient) -> None:
    assert client.get("/sparql", params={"query": "ASK {}", "snapshot": "1"}).headers["quadcite-snapshot"] == "1"
    never = client.get("/sparql", params={"query": "ASK {}", "snapshot": "99"})
    assert (never.status_code, "99" in never.json()["message"]) == (400, True)


def test_a_body_has_one_type(client: TestClient) -> None:
    types = [("Content-Type", "application/sparql-query"), ("Content-Type", "application/sparql-update")]
    refused = client.post("/sparql", content="ASK {}", headers=types)
    assert (refused.status_code, "Content-Type" in refused.json()["message"]) == (400, True)


_NAMES = ["query", "update", "format", "timeout", "snapshot", "default-graph-uri", "using-graph-uri", "x"]
_VALUES = ["ASK {}", "CLEAR ALL", "json", "0", "1", "1e999", "http://example.org/", "%", "%0", "\0", "\ud7ff", "&", "="]


@given(
    pairs=st.lists(st.tuples(st.sampled_from(_NAMES), st.sampled_from(_VALUES) | st.text(max_size=5)), max_size=4),
    raw=st.binary(max_size=12),
    method=st.sampled_from(["GET", "HEAD", "POST", "QUERY"]),
)
@settings(max_examples=dear(150))
def test_whatever_is_sent_is_answered(
    client: TestClient, pairs: list[tuple[str, str]], raw: bytes, method: str
) -> None:
    text = "&".join(f"{name}={quote(value, safe='%')}" for name, value in pairs).encode()
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    if method in ("GET", "HEAD"):
        response = client.request(method, "/sparql?" + text.decode())
    else:
        response = client.request(method, "/sparql", content=text + raw, headers=form)
    assert response.status_code in (200, 400, 403, 406, 410)


def test_a_request_has_a_bounded_number_of_parameters(endpoint: Endpoint) -> None:
    wide = replace(endpoint, settings=endpoint.settings.model_copy(update={"max_body_bytes": 1 << 20}))
    with TestClient(Starlette(routes=routes(wide))) as client:
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        refused = client.post("/sparql", content="query=ASK{}" + "&named-graph-uri=a:b" * 10_000, headers=form)
    assert (refused.status_code, "10000 parameters" in refused.json()["message"]) == (400, True)


def test_people_read_errors_as_text(client: TestClient) -> None:
    response = client.get("/sparql", params={"query": "ASK"}, headers={"Accept": "text/plain, */*;q=0.5"})
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.text.startswith("query_syntax: Invalid SPARQL: line 1")


def test_options_say_what_is_taken(client: TestClient) -> None:
    response = client.options("/sparql")
    assert (response.status_code, response.content) == (204, b"")
    assert response.headers["allow"] == "GET, HEAD, POST, QUERY, OPTIONS"
    assert response.headers["accept-query"] == "application/sparql-query, application/x-www-form-urlencoded"
    assert response.headers["accept-post"] == response.headers["accept-query"]  # no updates here


def test_without_a_query_the_service_is_described(client: TestClient) -> None:
    for how in ({}, {"headers": {"Accept": "application/rdf+xml"}}, {"params": {"format": "jsonld"}}):
        response = client.get("/sparql", **how)  # type: ignore[arg-type]
        rdf_format = RdfFormat.from_media_type(response.headers["content-type"])
        said = {
            (quad.predicate.value, getattr(quad.object, "value", "")) for quad in parse(response.content, rdf_format)
        }
        assert ("http://www.w3.org/ns/sparql-service-description#endpoint", "http://testserver/sparql") in said
    assert client.get("/sparql", headers={"Accept": "text/csv"}).status_code == 406


def test_head_is_get_without_the_body(client: TestClient) -> None:
    for query in (SELECT, "SELECT * { ?s ?p ?o }", "ASK", f"DESCRIBE <{SEVEN}>"):
        head, get = (client.request(method, "/sparql", params={"query": query}) for method in ("HEAD", "GET"))
        assert (head.status_code, dict(head.headers)) == (get.status_code, dict(get.headers))
    large = client.head("/sparql", params={"query": "SELECT * { ?a ?b ?c . ?d ?e ?f }"})
    assert (large.status_code, large.content) == (200, b"")


def test_an_answer_that_is_known_already_is_not_sent_again(client: TestClient) -> None:
    first = client.get("/sparql", params={"query": SELECT})
    tag = first.headers["etag"]
    assert tag.startswith('W/"1-')
    for known in (tag, tag.removeprefix("W/"), f'"other", {tag}'):
        again = client.get("/sparql", params={"query": SELECT}, headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    for changed in (
        {"params": {"query": SELECT + " "}},
        {"params": {"query": SELECT, "default-graph-uri": TWO}},
        {"params": {"query": SELECT, "named-graph-uri": TWO}},
        {"params": {"query": SELECT, "format": "csv"}},
    ):
        other = client.get("/sparql", headers={"If-None-Match": tag}, **changed)  # type: ignore[arg-type]
        assert (other.status_code, other.headers["etag"] == tag) == (200, False)
    for changing in ("SELECT (now() AS ?t) {}", "SELECT (RAND() AS ?t) {}", "SELECT (UUID() AS ?t) {}"):
        assert "etag" not in client.get("/sparql", params={"query": changing}).headers
    assert "etag" not in client.post("/sparql", data={"query": SELECT}).headers


def test_results_are_compressed_for_those_who_take_it(client: TestClient) -> None:
    many = {"query": "SELECT * { ?s ?p ?o }", "format": "csv"}
    plain = client.get("/sparql", params=many, headers={"Accept-Encoding": "gzip;q=0, *"})
    packed = client.get("/sparql", params=many, headers={"Accept-Encoding": "br;q=1, gzip;q=0.5"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < len(plain.content) / 4
    assert packed.content == plain.content
    for response in (plain, packed):
        assert response.headers["vary"] == "Accept, Accept-Encoding"
    small = client.get("/sparql", params={"query": "ASK {}"}, headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in small.headers


@pytest.fixture
def plain() -> Iterator[TestClient]:
    with PlainStore() as store, TestClient(create_plain_app(store, Settings(query_workers=1))) as opened:
        yield opened


def test_an_update_comes_in_by_each_way_of_the_protocol(plain: TestClient) -> None:
    insert = "INSERT DATA {{ <a:{0}> <a:p> <a:o> }}"
    form = plain.post("/sparql", data={"update": insert.format("form")})
    direct = plain.post("/sparql", content=b"\xef\xbb\xbf" + insert.format("direct").encode(), headers=UPDATE_TYPE)
    for generation, response in enumerate((form, direct), 1):
        assert (response.status_code, response.content) == (204, b"")
        assert response.headers["quadcite-snapshot"] == str(generation)
    # The next query sees both.
    answer = plain.get("/sparql", params={"query": "SELECT ?s { ?s ?p ?o }"})
    assert sorted(row["s"] for row in rows(answer)) == ["a:direct", "a:form"]
    assert answer.headers["quadcite-snapshot"] == "2"
    assert "application/sparql-update" in plain.options("/sparql").headers["accept-post"]


def test_an_update_takes_the_dataset_of_its_request(plain: TestClient) -> None:
    plain.post(
        "/sparql", data={"update": "INSERT DATA { GRAPH <g:1> { <a:1> <a:p> 1 } GRAPH <g:2> { <a:2> <a:p> 2 } }"}
    )
    copied = plain.post(
        "/sparql", data={"update": "INSERT { ?s <a:q> ?o } WHERE { ?s <a:p> ?o }", "using-graph-uri": "g:1"}
    )
    named = plain.post(
        "/sparql?using-named-graph-uri=g:2",
        content="INSERT { ?s <a:r> ?o } WHERE { GRAPH ?g { ?s <a:p> ?o } }",
        headers=UPDATE_TYPE,
    )
    assert (copied.status_code, named.status_code) == (204, 204)
    answer = plain.get("/sparql", params={"query": "SELECT ?s ?p { ?s ?p ?o }"})
    assert sorted(tuple(row.values()) for row in rows(answer)) == [("a:1", "a:q"), ("a:2", "a:r")]


@pytest.mark.parametrize(
    ("request_", "status", "message"),
    [
        ({"data": {"update": "CLEAR NAMED", "using-graph-uri": "g"}}, 400, "using-graph-uri 'g'"),
        ({"data": {"update": "CLEAR NAMED", "default-graph-uri": "g:1"}}, 400, "default-graph-uri"),
        ({"data": {"update": "CLEAR NAMED", "timeout": "1"}}, 400, "timeout"),
        ({"data": {"update": ["CLEAR NAMED", "CLEAR DEFAULT"]}}, 400, "2 queries"),
        ({"data": {"update": "CLEAR XYZ"}}, 400, "not a SPARQL update"),
        ({"data": {"update": "LOAD <http://example.org/>"}}, 403, "LOAD"),
        ({"url": "/sparql?update=CLEAR+ALL", "data": {}}, 400, "in the body"),
        ({"data": {"update": "WITH <g:1> DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }", "using-graph-uri": "g:1"}}, 400,
         "WITH"),
        ({"data": {"update": "DELETE { ?s ?p ?o } USING <g:1> WHERE { ?s ?p ?o }", "using-named-graph-uri": "g:1"}},
         400, "USING"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_update_is_said(
    plain: TestClient, request_: dict[str, Any], status: int, message: str
) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    response = plain.request(**{**POST, "headers": form, **request_})
    assert response.status_code == status
    assert message in response.json()["message"]


def test_an_update_takes_the_token(endpoint: Endpoint, tmp_path: Any) -> None:
    done: list[tuple[str, Actor]] = []

    def update(text: str, default_graphs: object, named_graphs: object, actor: Actor) -> int:
        actor.require(ADMIN, "an update")
        done.append((text, actor))
        return 42

    token = LocalToken(tmp_path)
    secret = (tmp_path / "token").read_text()
    with TestClient(
        Authentication(
            Starlette(routes=routes(replace(endpoint, actor=lambda request: SENDER.get(), update=update))),
            Accounts(token),
        )
    ) as client:
        clear = {"data": {"update": "CLEAR ALL"}}
        nobody = client.post("/sparql", **clear)
        wrong = client.post("/sparql", headers={"Authorization": "Bearer x"}, **clear)
        basic = client.get("/sparql", params={"query": "ASK {}"}, headers={"Authorization": "Basic eDp5"})
        assert not done
        holder = client.post("/sparql", headers={"Authorization": f"Bearer {secret}"}, **clear)
    assert (nobody.status_code, nobody.json()["code"]) == (403, "forbidden")
    assert "token" in nobody.json()["message"]
    for refused in (wrong, basic):
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith("Bearer ")
    assert (holder.status_code, holder.headers["quadcite-snapshot"]) == (204, "42")
    assert done == [("CLEAR ALL", HOLDER)]


def test_reading_takes_its_scope_too(endpoint: Endpoint) -> None:
    nobody = replace(endpoint, actor=lambda request: Actor("nobody", frozenset()))
    with TestClient(Starlette(routes=routes(nobody))) as client:
        assert client.get("/sparql", params={"query": "ASK {}"}).status_code == ForbiddenError.http_status


def test_the_row_limit_is_announced(client: TestClient) -> None:
    query = "SELECT (1 AS ?x) { ?a ?b ?c . ?d ?e ?f }"
    small = client.get("/sparql", params={"query": query}, headers={"Accept": "text/csv"})
    assert small.headers["quadcite-truncated"] == "true"
    assert small.headers["quadcite-row-limit"] == str(MAX_ROWS)
    assert len(small.text.splitlines()) == MAX_ROWS + 1
    large = client.get("/sparql", params={"query": "SELECT ?a ?c ?d ?f { ?a ?b ?c . ?d ?e ?f }"})
    assert "quadcite-truncated" not in large.headers
    assert len(large.json()["results"]["bindings"]) == MAX_ROWS
