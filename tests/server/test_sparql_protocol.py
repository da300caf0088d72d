"""The SPARQL 1.1 Protocol's query operation, over a real store and pool."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPResponse
from urllib.parse import quote

import pytest
import uvicorn
from pyoxigraph import Literal, NamedNode, Quad, QueryResultsFormat, RdfFormat, parse, parse_query_results
from starlette.applications import Starlette
from starlette.testclient import TestClient

from kg.knowledge_graph import KnowledgeGraph
from kg.server.sparql_protocol import GRAPH_TYPES, RESULT_TYPES, negotiate, routes
from kg.settings import Settings
from kg.store.oxigraph import OxigraphStore
from kg.store.sandbox import QueryPool

MAX_ROWS = 5_000
CROSS_JOIN = "SELECT (COUNT(*) AS ?n) { ?a ?p ?b . ?c ?q ?d . ?e ?r ?f . ?g ?h ?i }"


@pytest.fixture(scope="module")
def kg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    settings = Settings(max_rows=MAX_ROWS, max_body_bytes=10_000, query_workers=2, query_queue=2)
    graph, p = NamedNode("https://w3id.org/quadcite/graph/src/test/a"), NamedNode("http://example.org/p")
    quads = [Quad(NamedNode(f"http://example.org/{i}"), p, Literal(f"value {i}"), graph) for i in range(500)]
    with OxigraphStore(tmp_path_factory.mktemp("protocol") / "data") as store:
        store.commit({graph: quads})
        with QueryPool(store, settings) as pool:
            yield KnowledgeGraph(settings, store, None, pool)  # type: ignore[arg-type]  # the endpoint needs no index


@pytest.fixture(scope="module")
def client(kg: KnowledgeGraph) -> Iterator[TestClient]:
    with TestClient(Starlette(routes=routes(kg))) as opened:
        yield opened


SELECT = 'SELECT ?s { ?s ?p "value 7" }'
SEVEN = "http://example.org/7"


@pytest.mark.parametrize("how", ["get", "form", "direct"])
def test_a_query_comes_in_by_each_way_of_the_protocol(client: TestClient, how: str) -> None:
    response = {
        "get": lambda: client.get("/sparql", params={"query": SELECT}),
        "form": lambda: client.post("/sparql", data={"query": SELECT}),
        "direct": lambda: client.post(
            "/sparql?timeout=3", content=SELECT, headers={"Content-Type": "application/sparql-query; charset=utf-8"}
        ),
    }[how]()
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/sparql-results+json"
    assert response.json()["results"]["bindings"] == [{"s": {"type": "uri", "value": SEVEN}}]
    assert response.headers["quadcite-truncated"] == "false"
    assert response.headers["quadcite-snapshot"] == "1"
    assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize("media_type", RESULT_TYPES)
def test_results_come_in_each_format(client: TestClient, media_type: str) -> None:
    response = client.get("/sparql", params={"query": SELECT}, headers={"Accept": media_type})
    assert response.headers["content-type"].partition(";")[0] == media_type
    if media_type == "text/csv":
        assert response.content == f"s\r\n{SEVEN}\r\n".encode()
    else:
        rows = parse_query_results(response.content, format=QueryResultsFormat.from_media_type(media_type))
        assert [row["s"] for row in rows] == [NamedNode(SEVEN)]
    asked = client.get("/sparql", params={"query": "ASK {}"}, headers={"Accept": media_type})
    assert b"true" in asked.content


@pytest.mark.parametrize("media_type", GRAPH_TYPES)
@pytest.mark.parametrize("query", ["CONSTRUCT WHERE { ?s ?p 'value 7' }", f"DESCRIBE <{SEVEN}>"])
def test_graphs_come_in_each_format(client: TestClient, media_type: str, query: str) -> None:
    response = client.get("/sparql", params={"query": query}, headers={"Accept": media_type})
    quads = list(parse(response.content, format=RdfFormat.from_media_type(media_type)))
    assert [str(quad.object) for quad in quads] == ['"value 7"']


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", RESULT_TYPES[0]),
        ("*/*", RESULT_TYPES[0]),
        ("text/*", "text/csv"),
        ("text/csv;q=0.5, text/tab-separated-values", "text/tab-separated-values"),
        ("*/*;q=0.1, application/sparql-results+xml;q=0.2", "application/sparql-results+xml"),
        ("application/*, application/sparql-results+json;q=0", "application/sparql-results+xml"),
        ("application/json", "application/sparql-results+json"),
        ("TEXT/CSV ; Q=1", "text/csv"),
        ("text/html,application/xhtml+xml,*/*;q=0.8", RESULT_TYPES[0]),
        ("text/csv;q=0", None),
        ("text/html", None),
        ("text/csv;q=nonsense", None),
    ],
)
def test_the_accept_header_decides(accept: str, expected: str | None) -> None:
    assert negotiate(accept, RESULT_TYPES) == expected


POST = {"method": "POST", "url": "/sparql"}


@pytest.mark.parametrize(
    ("request_", "status", "code", "message"),
    [
        ({"params": {"query": "SELECT * {\n  ?s ?p }"}}, 400, "query_syntax", "line 2, column"),
        ({"params": {}}, 400, "invalid_input", "exactly one query"),
        ({"url": "/sparql?query=ASK{}&query=ASK{}"}, 400, "invalid_input", "not 2"),
        ({"url": "/sparql?query=%FF"}, 400, "invalid_input", "UTF-8"),
        ({"params": {"query": "ASK {}", "timeout": "soon"}}, 400, "invalid_input", "seconds"),
        ({"params": {"query": "ASK {}", "default-graph-uri": "a:b"}}, 400, "invalid_input", "default-graph-uri"),
        ({**POST, "content": b"\xff", "headers": {"Content-Type": "application/sparql-query"}}, 400, "invalid_input",
         "UTF-8"),
        ({"params": {"query": "SELECT * { SERVICE <a:b> {} }"}}, 403, "query_forbidden", "SERVICE"),
        ({"params": {"query": "DROP ALL"}}, 403, "query_forbidden", "read-only"),
        ({**POST, "data": {"update": "DROP ALL"}}, 403, "query_forbidden", "read-only"),
        ({**POST, "content": "DROP ALL", "headers": {"Content-Type": "application/sparql-update"}}, 403,
         "query_forbidden", "read-only"),
        ({"method": "PUT", "url": "/sparql"}, 405, "method_not_allowed", "GET, HEAD or POST"),
        ({"params": {"query": "ASK {}"}, "headers": {"Accept": "text/html"}}, 406, "not_acceptable", "text/csv"),
        ({"params": {"query": "DESCRIBE <a:b>"}, "headers": {"Accept": "text/csv"}}, 406, "not_acceptable", "turtle"),
        ({**POST, "data": {"query": "ASK {}" + " " * 10_000}}, 413, "body_too_large", "10000 bytes"),
        ({**POST, "content": "ASK {}", "headers": {"Content-Type": "text/plain"}}, 415, "unsupported_media_type",
         "application/sparql-query"),
        ({**POST, "content": "ASK {}"}, 415, "unsupported_media_type", "application/sparql-query"),
        ({"params": {"query": CROSS_JOIN, "timeout": "0.1"}}, 504, "query_timeout", "deadline of 0.1 s"),
    ],
)  # fmt: skip
def test_errors_have_their_status_and_say_what_would_do(
    client: TestClient, request_: dict[str, object], status: int, code: str, message: str
) -> None:
    response = client.request(**{"method": "GET", "url": "/sparql", **request_})
    assert response.status_code == status
    body = response.json()
    assert body["code"] == code
    assert message in body["message"]
    assert (status == 405) == ("allow" in response.headers)


def test_head_is_get_without_the_body(client: TestClient) -> None:
    response = client.head("/sparql", params={"query": SELECT})
    assert response.status_code == 200
    assert response.headers["quadcite-truncated"] == "false"
    large = client.head("/sparql", params={"query": "SELECT * { ?a ?b ?c . ?d ?e ?f }"})
    assert (large.status_code, large.content) == (200, b"")


def test_the_row_limit_is_announced(client: TestClient) -> None:
    query = "SELECT (1 AS ?x) { ?a ?b ?c . ?d ?e ?f }"
    small = client.get("/sparql", params={"query": query}, headers={"Accept": "text/csv"})
    assert small.headers["quadcite-truncated"] == "true"
    assert small.headers["quadcite-row-limit"] == str(MAX_ROWS)
    assert len(small.text.splitlines()) == MAX_ROWS + 1
    large = client.get("/sparql", params={"query": "SELECT ?a ?c ?d ?f { ?a ?b ?c . ?d ?e ?f }"})
    assert "quadcite-truncated" not in large.headers
    assert len(large.json()["results"]["bindings"]) == MAX_ROWS


@contextmanager
def served(kg: KnowledgeGraph) -> Iterator[int]:
    """The endpoint behind a real HTTP server on a free port."""
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes(kg)), port=0, log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


def connection(port: int, query: str, accept: str = "*/*", parameters: str = "") -> socket.socket:
    opened = socket.create_connection(("127.0.0.1", port), timeout=10)
    target = f"/sparql?query={quote(query)}{parameters}"
    opened.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n".encode())
    return opened


def until(condition: object) -> None:
    deadline = time.monotonic() + 5
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_client_that_goes_away_stops_its_query(kg: KnowledgeGraph) -> None:
    with served(kg) as port:
        client = connection(port, CROSS_JOIN)
        until(lambda: kg.pool._leases)
        client.close()
        until(lambda: not kg.pool._leases)


def test_a_client_that_goes_away_stops_its_stream(kg: KnowledgeGraph) -> None:
    unlimited = KnowledgeGraph(kg.settings.model_copy(update={"max_rows": 10**12}), kg.store, None, kg.pool)  # type: ignore[arg-type]
    kg.pool._settings, before = unlimited.settings, kg.pool._settings
    try:
        with served(unlimited) as port:
            client = connection(port, "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }", "text/csv")
            assert client.recv(65_536).startswith(b"HTTP/1.1 200")
            client.close()
            until(lambda: not kg.pool._leases)
    finally:
        kg.pool._settings = before


def test_a_result_that_meets_its_deadline_midway_never_looks_complete(
    kg: KnowledgeGraph, caplog: pytest.LogCaptureFixture
) -> None:
    # 500 rows at once, more than are held back; then the join finds no more, for ever.
    slow = (
        f"SELECT (REPLACE(?long, 'v', '{'x' * 200}') AS ?x) {{ {{ ?s ?p ?long }} UNION "
        "{ ?a ?p ?b . ?c ?q ?d . ?e ?r ?f FILTER(CONCAT(?b, ?d, ?f) = 'none') BIND(?b AS ?long) } }"
    )
    slow = slow.replace("?long, 'v'", "REPLACE(?long, '.', '" + "v" * 4 + "'), 'v'")
    caplog.set_level(logging.WARNING)
    with served(kg) as port, connection(port, slow, "text/csv", "&timeout=0.5") as client:
        received = b"".join(iter(lambda: client.recv(65_536), b""))
    assert received.startswith(b"HTTP/1.1 200")
    assert not received.endswith(b"0\r\n\r\n")
    assert "deadline of 0.5 s" in caplog.text


def test_a_client_that_sends_too_much_gets_to_read_why(kg: KnowledgeGraph) -> None:
    body = b" " * (32 << 20)
    with served(kg) as port, socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.sendall(
            b"POST /sparql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/sparql-query\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body)
        )
        client.sendall(body)
        assert client.recv(65_536).startswith(b"HTTP/1.1 413")


def test_too_many_queries_are_told_to_come_back(kg: KnowledgeGraph) -> None:
    with served(kg) as port, ExitStack() as stack:
        clients = [stack.enter_context(connection(port, CROSS_JOIN)) for _ in range(2)]
        until(lambda: len(kg.pool._leases) == 2)
        clients += [stack.enter_context(connection(port, CROSS_JOIN)) for _ in range(2)]
        until(lambda: len(kg.pool._waiting) == 2)
        with connection(port, "ASK {}") as refused, HTTPResponse(refused) as answer:
            answer.begin()
            body = answer.read()
        assert answer.status == 503
        assert answer.headers["retry-after"] == "1"
        assert json.loads(body)["code"] == "query_busy"
        for client in clients:
            client.close()
        until(lambda: not kg.pool._leases and not kg.pool._waiting)
