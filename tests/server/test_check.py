"""``/sparql/check`` says what may be wrong with a query, and runs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from kg.knowledge_graph import KnowledgeGraph
from kg.server.check import PATH, routes
from kg.server.mcp import Threads
from kg.settings import Settings
from loaders.pipeline import load

ROOT = Path(__file__).parent.parent.parent
QUERY = "PREFIX x: <http://x/> SELECT * { ?d dcterms:titel ?t ; foo:bar ?u ; x:y ?z }"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("data")
    with KnowledgeGraph.open(folder, Settings(data_dir=folder, _env_file=None)) as kg:  # type: ignore[call-arg]
        load(kg, "climate", [str(ROOT / "fixtures" / "climate")])
        yield TestClient(Starlette(routes=routes(kg, Threads())))


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
    assert (content["form"], content["read"], content["hints"]) == (None, False, [])
