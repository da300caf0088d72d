"""The SPARQL workbench: a page for browsers at the address of the protocol, and what its editor asks for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from kg.knowledge_graph import KnowledgeGraph
from kg.server import html
from kg.server.app import create_app
from kg.server.pages import workbench
from kg.server.static import find_file

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"}
TITLES = "SELECT ?d ?title WHERE { ?d kg:slug ?slug ; dcterms:title ?title } ORDER BY ?title"
MISSPELT = "SELECT ?d WHERE {\n  ?d a kg:PolicyDocument .\n  ?d kg:jurisdicton ?place\n}"


@pytest.fixture(scope="module")
def client(fixtures: KnowledgeGraph) -> Iterator[TestClient]:
    with TestClient(create_app(fixtures), base_url="http://127.0.0.1:8000") as client:
        yield client


def page_data(text: str) -> dict:
    block = re.search(r'<script type="application/json" id="workbench-data">(.*?)</script>', text, re.DOTALL)
    assert block is not None
    return json.loads(block[1])


def test_browsers_get_the_page_and_programs_the_protocol(client: TestClient) -> None:
    assert client.get("/sparql", headers=BROWSER).headers["content-type"].startswith("text/html")
    assert client.get("/sparql").headers["content-type"].startswith("text/turtle")
    assert client.get("/sparql", headers={"Accept": "text/turtle"}).headers["content-type"].startswith("text/turtle")
    query = {"query": "ASK {}"}
    assert client.get("/sparql", params=query, headers=BROWSER).headers["content-type"].startswith("text/html")
    results = client.get("/sparql", params={**query, "format": "json"}, headers=BROWSER)
    assert results.json()["boolean"] is True
    assert client.get("/sparql", params=query).json()["boolean"] is True
    sent = client.post("/sparql", data=query, headers=BROWSER)
    assert sent.headers["content-type"].startswith("application/sparql-results+")


def test_a_link_shows_the_query_and_does_not_run_it(client: TestClient) -> None:
    text = client.get("/sparql", params={"query": TITLES}, headers=BROWSER).text
    assert TITLES.replace("?", "?") in text
    assert 'id="server-result"' not in text


def test_the_server_renders_rows_with_labels_and_downloads(client: TestClient) -> None:
    found = client.get(
        "/sparql",
        params={"query": "SELECT ?d ?place WHERE { ?d a kg:PolicyDocument ; kg:jurisdiction ?place }", "run": "1"},
        headers=BROWSER,
    )
    assert found.status_code == 200
    assert re.search(r'<a href="/resolve\?iri=[^"]+FJI" title="[^"]+FJI" dir="auto">Fiji</a>', found.text)
    links = re.findall(r'href="(/sparql\?query=[^"]+format=\w+)"', found.text)
    assert len(links) == 4
    for link in links:
        assert client.get(link.replace("&amp;", "&"), headers=BROWSER).status_code == 200


def test_a_cut_is_announced(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbench, "ROWS", 3)
    text = client.get("/sparql", params={"query": TITLES, "run": "1"}, headers=BROWSER).text
    assert text.count("<tr>") == 4
    assert "Cut at 3 rows" in text


def test_errors_are_shown_at_their_line(client: TestClient) -> None:
    found = client.get("/sparql", params={"query": "SELECT ?x WHERE {\n  ?x kg:slug\n}", "run": "1"}, headers=BROWSER)
    assert found.status_code == 400
    assert 'class="marked"' in found.text
    assert 'role="alert"' in found.text


def test_hints_name_the_line_and_the_correction(client: TestClient) -> None:
    text = client.get("/sparql", params={"query": MISSPELT, "run": "check"}, headers=BROWSER).text
    assert "kg:jurisdiction</code>" in text
    assert '<li value="3" class="marked">' in text
    assert 'class="answer"' not in text


def test_hostile_literals_are_text(client: TestClient) -> None:
    query = 'SELECT ("<script>alert(1)</script>" AS ?x) (IRI("javascript:alert(1)") AS ?y) WHERE {}'
    text = client.get("/sparql", params={"query": query, "run": "1"}, headers=BROWSER).text
    assert "<script>alert" not in text
    assert 'href="javascript:' not in text
    assert page_data(text)["prefixes"]["kg"]
    given = client.get("/sparql", params={"query": "</script></textarea><script>alert(1)</script>"}, headers=BROWSER)
    assert "<script>alert" not in given.text


def test_a_query_that_may_not_run_is_explained(client: TestClient) -> None:
    for query, status in (("DELETE WHERE { ?s ?p ?o }", 403), ("SELECT * FROM", 400), ("x" * 200, 400)):
        found = client.get("/sparql", params={"query": query, "run": "1"}, headers=BROWSER)
        assert found.status_code == status
        assert 'role="alert"' in found.text
    assert (
        client.get("/sparql", params={"query": TITLES, "run": "1", "snapshot": "x"}, headers=BROWSER).status_code == 400
    )


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("kg:jur", "property", "kg:jurisdiction"),
        ("PolicyDoc", "class", "kg:PolicyDocument"),
        ("jurisdicton", "property", "kg:jurisdiction"),
        ("Fij", "individual", "FJI"),
    ],
)
def test_terms_complete_what_is_typed(client: TestClient, text: str, kind: str, name: str) -> None:
    terms = client.get("/sparql/terms", params={"text": text, "kind": kind}).json()["terms"]
    assert any(term.get("curie", term["iri"]).endswith(name) for term in terms)
    assert {term["kind"] for term in terms} == {kind}


def test_terms_refuse_other_kinds_and_no_text(client: TestClient) -> None:
    assert client.get("/sparql/terms", params={"text": "x", "kind": "thing"}).status_code == 400
    assert client.get("/sparql/terms", params={"text": "", "kind": "class"}).status_code == 400


def test_labels_of_iris(client: TestClient) -> None:
    iri = "https://w3id.org/quadcite/id/place/FJI"
    found = client.post("/sparql/labels", json={"iris": [iri, "http://example.org/unknown", "not an IRI"]})
    assert found.json() == {"labels": {iri: "Fiji"}}
    assert client.post("/sparql/labels", json={"iris": [iri] * 501}).status_code == 400
    assert client.get("/sparql/labels").status_code == 405


def test_a_row_is_explained_by_statements_and_traces(client: TestClient) -> None:
    query = "SELECT ?place (COUNT(DISTINCT ?d) AS ?n) WHERE { ?d kg:jurisdiction ?place } GROUP BY ?place"
    results = client.get("/sparql", params={"query": query}).json()
    row = results["results"]["bindings"][0]
    found = client.post("/sparql/why", json={"query": query, "row": row, "snapshot": None}).json()
    assert found["traces"][0]["sparql"]
    assert found["statements"][0]["object"]["value"] == row["place"]["value"]
    assert found["statements"][0]["why"].startswith("/why?")
    assert client.post("/sparql/why", json={"query": query, "row": 3}).status_code == 400


def test_every_example_opens_in_the_editor(client: TestClient) -> None:
    text = client.get("/sparql", headers=BROWSER).text
    links = re.findall(r'<a href="(/sparql\?query=[^"]+)" data-query=', text)
    assert len(links) > 50
    assert client.get(links[0].replace("&amp;", "&"), headers=BROWSER).status_code == 200
    assert quote("SELECT") in links[0] or quote("CONSTRUCT") in links[0] or "ASK" in links[0] or "DESCRIBE" in links[0]


def test_without_its_scripts_the_page_names_the_command_and_works(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "find_file", lambda name: find_file(name) if not name.startswith("built/") else None)
    page = client.get("/sparql", params={"query": "ASK {}", "run": "1"}, headers=BROWSER)
    assert "make assets" in page.text
    assert '<script type="module"' not in page.text
    assert "script-src" not in page.headers["content-security-policy"]
    assert '<p class="answer">Yes</p>' in page.text
