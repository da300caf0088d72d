"""A plain dataset behind the endpoint's own routes: no union, no prefix declared beforehand, all may be written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import HttpUrl
from pyoxigraph import NamedNode
from starlette.testclient import TestClient

from kg.errors import UpstreamError
from kg.settings import Settings
from tests.conformance.plain_server import create_plain_app, expand
from tests.conformance.plain_store import PlainStore

TURTLE = {"Content-Type": "text/turtle"}
UPDATE = {"Content-Type": "application/sparql-update"}


def settings_of(*endpoints: str) -> Settings:
    allowed = [HttpUrl(endpoint) for endpoint in endpoints]
    return Settings(query_workers=1, service_endpoints=allowed, _env_file=None)  # type: ignore[call-arg]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with (
        PlainStore(tmp_path, base_iri="http://example.com/base") as store,
        TestClient(create_plain_app(store, settings_of())) as client,
    ):
        yield client


def ask(client: TestClient, query: str) -> bool:
    response = client.get("/sparql", params={"query": query})
    assert response.status_code == 200, response.text
    return bool(response.json()["boolean"])


def test_an_update_needs_no_token_and_the_next_query_sees_it(client: TestClient) -> None:
    update = "INSERT DATA { <s> <p> 1 . GRAPH <g> { <s> <p> 2 } }"
    assert client.post("/sparql", content=update, headers=UPDATE).status_code == 204
    assert ask(client, "ASK { <http://example.com/s> <p> 1 }")


def test_the_default_graph_is_a_graph_of_its_own(client: TestClient) -> None:
    client.post("/sparql", content="INSERT DATA { GRAPH <g> { <s> <p> 2 } }", headers=UPDATE)
    assert not ask(client, "ASK { ?s ?p ?o }")
    assert ask(client, "ASK { GRAPH <g> { ?s ?p ?o } }")


def test_no_prefix_is_declared_beforehand(client: TestClient) -> None:
    response = client.get("/sparql", params={"query": "ASK { ?s kg:score ?o }"})
    assert (response.status_code, response.json()["code"]) == (400, "query_syntax")


def test_graphs_are_put_posted_made_and_deleted(client: TestClient) -> None:
    path = "/graphs?graph=http://example.com/g"
    assert client.put(path, content="<a> <b> 1 .", headers=TURTLE).status_code == 201
    assert client.post(path, content="<a> <b> 2 .", headers=TURTLE).status_code == 204
    assert client.get(path, headers={"Accept": "application/n-triples"}).text.count("\n") == 2
    assert client.delete(path).status_code == 204
    assert client.delete(path).status_code == 404
    made = client.post("/graphs", content="<a> <b> [] .", headers=TURTLE)
    assert made.status_code == 201
    assert client.get("/graphs", params={"graph": made.headers["location"]}).status_code == 200


def test_each_graph_that_is_made_has_a_name_of_its_own() -> None:
    with PlainStore() as store:
        names = [store.create([]) for _ in range(2)]
        assert len(set(names)) == 2
        assert set(store.graphs()) == set(names)
        assert store.put(NamedNode("http://e/"), [])


def test_only_endpoints_that_the_setting_names_are_asked() -> None:
    refused = "SELECT * { SERVICE <http://127.0.0.1:9/sparql> { ?s ?p ?o } }"
    assert expand(settings_of(), refused) == refused
    with pytest.raises(UpstreamError, match=r"127\.0\.0\.1:9"):
        expand(settings_of("http://127.0.0.1:9/sparql"), refused)
    silent = expand(settings_of("http://127.0.0.1:9/sparql"), refused.replace("SERVICE", "SERVICE SILENT"))
    assert "SERVICE" not in silent


def test_service_is_refused_over_http(client: TestClient) -> None:
    response = client.get("/sparql", params={"query": "ASK { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }"})
    assert (response.status_code, response.json()["code"]) == (403, "query_forbidden")
