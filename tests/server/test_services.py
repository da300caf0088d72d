"""SERVICE over HTTP: the search within a query, endpoints that a setting names, and no others."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from pydantic import HttpUrl
from starlette.applications import Starlette
from starlette.testclient import TestClient

from kg.knowledge_graph import KnowledgeGraph
from kg.server.app import build_endpoint
from kg.server.sparql_protocol import routes
from kg.tools.sparql.local_services import expand_services
from tests.tools.made_up import Made


@pytest.fixture(scope="module")
def remote() -> Iterator[str]:
    """The address of an endpoint that knows one thing; at ``/broken`` it fails."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            values = [
                {"document": {"type": "uri", "value": "cpr://doc/act-3_a1"}, "n": {"type": "literal", "value": "7"}}
            ]
            body = json.dumps({"head": {"vars": ["document", "n"]}, "results": {"bindings": values}}).encode()
            self.send_response(200 if self.path == "/sparql" else 500)
            self.send_header("Content-Type", "application/sparql-results+json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="module")
def client(kg: KnowledgeGraph, remote: str) -> Iterator[TestClient]:
    endpoints = (HttpUrl(remote + "/sparql"), HttpUrl(remote + "/broken"))
    settings = kg.settings.model_copy(update={"service_endpoints": endpoints})
    endpoint = replace(build_endpoint(kg), expand=partial(expand_services, replace(kg, settings=settings)))
    with TestClient(Starlette(routes=routes(endpoint))) as opened:
        yield opened


def ask(client: TestClient, query: str) -> httpx.Response:
    return client.post("/sparql", content=query, headers={"Content-Type": "application/sparql-query"})


def test_a_search_joins_with_the_graph(client: TestClient, kg: KnowledgeGraph, corpus: list[list[Made]]) -> None:
    answer = ask(
        client,
        """SELECT ?unit ?document ?score WHERE {
             SERVICE kg:search { ?unit kg:matches "solar tariff" ; kg:score ?score ; kg:limit 10 }
             ?unit dcterms:isPartOf ?document .
           } ORDER BY DESC(?score) ?unit""",
    )
    assert answer.status_code == 200, answer.text
    rows = answer.json()["results"]["bindings"]
    documents = {passage.iri: passage.document for made in corpus for passage in made}
    expected = [candidate.iri for candidate in kg.search.rank("solar tariff", limit=10).candidates]
    assert [row["unit"]["value"] for row in rows] == expected
    assert [row["document"]["value"] for row in rows] == [documents[iri] for iri in expected]


@pytest.mark.parametrize(
    ("clause", "status", "code", "message"),
    [
        (
            "kg:search { ?unit kg:matches ?words }",
            400,
            "invalid_input",
            "line 2, column 39: kg:matches takes a constant",
        ),
        ("kg:search { ?unit kg:match 'x' }", 400, "invalid_input", "Did you mean kg:matches?"),
        (
            "<URL/other> { ?s ?p ?o }",
            403,
            "query_forbidden",
            "Available: kg:search, wikibase:label, <URL/sparql>, <URL/broken>",
        ),
        ("<http://localhost/sparql> { ?s ?p ?o }", 403, "query_forbidden", "line 2, column 2"),
        ("?where { ?s ?p ?o }", 403, "query_forbidden", "a variable is not available"),
        ("<URL/broken> { ?s ?p ?o }", 502, "upstream_unavailable", "returned status 500"),
    ],
)
def test_a_clause_that_cannot_be_answered_says_why_and_where(
    client: TestClient, remote: str, clause: str, status: int, code: str, message: str
) -> None:
    answer = ask(client, f"SELECT * {{\n SERVICE {clause} }}".replace("URL", remote))
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert message.replace("URL", remote) in answer.json()["message"]


def test_rows_of_a_named_endpoint_join_with_the_graph(client: TestClient, remote: str) -> None:
    clause = f"SERVICE <{remote}/sparql> {{ ?document <e:n> ?n }}"
    query = f"SELECT * {{ ?document a kg:PolicyDocument ; kg:slug ?slug {clause} }}"
    [row] = ask(client, query).json()["results"]["bindings"]
    assert (row["slug"]["value"], row["n"]["value"]) == ("act-3_a1", "7")


def test_after_silent_a_failure_is_one_empty_solution(client: TestClient, remote: str) -> None:
    query = f"SELECT * {{ VALUES ?x {{ 1 }} SERVICE SILENT <{remote}/broken> {{ ?document <e:n> ?n }} }}"
    assert len(ask(client, query).json()["results"]["bindings"]) == 1


def test_errors_behind_a_clause_keep_their_place(client: TestClient) -> None:
    query = 'SELECT * {\n SERVICE kg:search {\n  ?unit kg:matches "solar"\n } ?unit ?p }'
    assert "line 4, column 13" in ask(client, query).json()["message"]
