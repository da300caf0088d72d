"""Errors that no route answers have the form of all others: problem details, or a line of text."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from kg.knowledge_graph import KnowledgeGraph
from kg.server.app import create_app


@pytest.fixture
def client(kg: KnowledgeGraph) -> Iterator[TestClient]:
    with TestClient(create_app(kg), base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("PUT", "/graphs/user/a%0Ab", 404, "not_found"),
        ("PUT", "/health", 405, "method_not_allowed"),
        ("GET", "/tools/load", 405, "method_not_allowed"),
        ("PATCH", "/tools", 405, "method_not_allowed"),
        ("GET", "/sparql/queries/1", 405, "method_not_allowed"),
    ],
)
def test_what_no_route_answers_is_a_problem_like_others(
    client: TestClient, method: str, path: str, status: int, code: str
) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert (answer.json()["code"], answer.json()["status"]) == (code, status)
    assert ("allow" in answer.headers) == (status == 405)
    text = client.request(method, path, headers={"Accept": "text/plain"})
    assert text.headers["content-type"].startswith("text/plain")
    assert text.text.startswith(code + ": ")


def test_a_fault_of_our_own_says_nothing_of_the_inside(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a secret of the inside")

    monkeypatch.setattr("kg.server.pages.thing.dereference", fail)
    answer = client.get("/resolve?iri=cpr://doc/x")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "secret" not in answer.text


def test_half_a_character_in_a_message_does_not_keep_it_from_being_sent(client: TestClient) -> None:
    answer = client.post("/tools/family_overview", content=b'{"iso3": "\\ud800"}')
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert "iso3" in answer.json()["message"]


def test_what_a_format_cannot_say_is_not_acceptable_in_it(client: TestClient) -> None:
    said = "<urn:s> <urn:p> <<( <urn:a> <urn:b> <urn:c> )>> ."
    client.put("/graphs/user/said", content=said, headers={"Content-Type": "text/turtle"})
    assert client.get("/resolve?iri=urn:s&format=ttl").status_code == 200
    answer = client.get("/resolve?iri=urn:s&format=jsonld")
    assert (answer.status_code, answer.json()["code"]) == (406, "not_acceptable")
