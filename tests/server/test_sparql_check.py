"""``/sparql/check`` says what may be wrong with a query, and runs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from kg.server.mcp import ToolThreads
from kg.server.sparql_check import PATH, routes
from tests.conftest import load_once
from tests.folders import open_graph

ROOT = Path(__file__).parent.parent.parent
QUERY = "PREFIX x: <http://x/> SELECT * { ?d dcterms:titel ?t ; foo:bar ?u ; x:y ?z }"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = load_once(tmp_path_factory, "climate")
    with open_graph(folder) as kg:  # type: ignore[call-arg]
        yield TestClient(Starlette(routes=routes(kg, ToolThreads(kg))))


def test_hints_and_prefixes_are_given_in_json(client: TestClient) -> None:
    answer = client.get(PATH, params={"query": QUERY})
    assert answer.status_code == 200
    content = answer.json()
    assert (content["form"], content["read"]) == ("SELECT", True)
    assert content["generation"] >= 1
    assert content["prefixes"] == {"dcterms": "http://purl.org/dc/terms/", "foo": None, "x": "http://x/"}
    first = content["hints"][0]
    assert (first["code"], first["found"], first["suggestions"]) == (
        "unknown_property", "dcterms:titel", ["dcterms:title"],
    )  # fmt: skip
    assert (first["line"], first["column"]) == (1, 37)


def test_a_query_can_be_posted(client: TestClient) -> None:
    expected = client.get(PATH, params={"query": QUERY}).json()
    assert client.post(PATH, data={"query": QUERY}).json() == expected
    headers = {"Content-Type": "application/sparql-query; charset=utf-8"}
    assert client.post(PATH, content=QUERY, headers=headers).json() == expected


@pytest.mark.parametrize(
    ("method", "arguments", "status"),
    [
        ("GET", {}, 400),
        ("GET", {"params": [("query", "a"), ("query", "b")]}, 400),
        ("POST", {"content": "SELECT", "headers": {"Content-Type": "text/plain"}}, 415),
        ("POST", {"content": b"\xff", "headers": {"Content-Type": "application/sparql-query"}}, 400),
        ("POST", {"content": b" " * 1_048_577, "headers": {"Content-Type": "application/sparql-query"}}, 413),
        ("DELETE", {}, 405),
        ("GET", {"params": {"query": "INSERT DATA { <a:a> <a:a> <a:a> }"}}, 403),
    ],
)
def test_other_requests_are_refused(method: str, arguments: dict[str, object], status: int, client: TestClient) -> None:
    assert client.request(method, PATH, **arguments).status_code == status  # type: ignore[arg-type]


def test_what_is_no_query_was_not_read(client: TestClient) -> None:
    content = client.get(PATH, params={"query": "hello"}).json()
    assert (content["form"], content["read"]) == (None, False)
    assert [hint["code"] for hint in content["hints"]] == ["syntax"]


@pytest.mark.parametrize(
    ("query", "line", "column", "said"),
    [
        ("SELECT ?d WHERE { ?d a kg:PolicyDocument ", 1, 42, "end of the query"),
        ("SELECT ?d {\n ?d ?p ?o ?x }", 2, 11, "unexpected '?x'"),
        ("SELECT ?c (COUNT(?d) AS ?n) { ?d kg:jurisdiction ?c }", 1, None, "SAMPLE(?x)"),
        ('SELECT ?d { SERVICE kg:search { ?d kg:matches "x" } ?d ?p ?o ?x }', 1, 62, "unexpected '?x'"),
    ],
)
def test_what_the_parser_refuses_is_said_where_it_stands(
    query: str, line: int, column: int | None, said: str, client: TestClient
) -> None:
    (hint,) = client.get(PATH, params={"query": query}).json()["hints"]
    assert (hint["code"], hint["line"]) == ("syntax", line)
    assert column is None or hint["column"] == column
    assert said in hint["message"]


def test_an_undeclared_prefix_is_said_once(client: TestClient) -> None:
    hints = client.get(PATH, params={"query": "SELECT ?d { ?d dct:title ?t }"}).json()["hints"]
    assert [hint["code"] for hint in hints] == ["undeclared_prefix"]


def test_a_query_that_searches_is_checked_like_any_other(client: TestClient) -> None:
    query = 'SELECT ?t { SERVICE kg:search { ?p kg:matches "solar" ; kg:score ?s } ?p schema:txt ?t }'
    (hint,) = client.get(PATH, params={"query": query}).json()["hints"]
    assert (hint["code"], hint["found"], hint["suggestions"][0]) == ("unknown_property", "schema:txt", "schema:text")


def test_a_clause_that_is_not_answered_is_refused_as_when_it_is_run(client: TestClient) -> None:
    refused = client.get(PATH, params={"query": "ASK { SERVICE <http://example.org/sparql> { ?s ?p ?o } }"})
    assert (refused.status_code, refused.json()["code"]) == (403, "query_forbidden")
    assert "Available: kg:search" in refused.json()["message"]
    wrong = client.get(PATH, params={"query": 'ASK { SERVICE kg:search { ?s kg:match "heat" } }'})
    assert wrong.status_code == 400
    assert "Did you mean kg:matches? Valid form" in wrong.json()["message"]
