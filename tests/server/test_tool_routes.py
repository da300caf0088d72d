"""The tools over plain HTTP: the same names, the same schemas, the same content as over MCP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from kg.access.actors import EVERYONE
from kg.server.app import create_app
from kg.tools.mounts import DOCUMENTS, WIKIDATA, ZONING
from kg.tools.registry import TOOLS


@pytest.fixture(scope="module")
def client(kg) -> Iterator[TestClient]:
    with TestClient(create_app(kg), base_url="http://127.0.0.1") as client:
        yield client


def test_the_listing_names_each_tool_with_its_schemas(client):
    tools = client.get("/tools").json()["tools"]
    assert [tool["name"] for tool in tools] == list(
        dict.fromkeys(each.alias for each in TOOLS if each.scope in EVERYONE.scopes)
    )
    for tool in tools:
        assert tool["description"]
        assert tool["input_schema"]["type"] == "object"
        assert tool["output_schema"]["type"] == "object"


def test_a_tag_means_the_tools_that_carry_it(client):
    tools = client.get("/tools", params={"tag": "research"}).json()["tools"]
    assert [(tool["name"], list(tool["input_schema"]["properties"])) for tool in tools] == [
        ("search", ["query"]), ("fetch", ["id"])]  # fmt: skip
    assert client.get("/tools", params={"tag": "nonsense"}).status_code == 404


ARGUMENTS = {
    "search": {"query": "solar"},
    "fetch": {"id": "cpr://doc/act-0_a1"},
    "family_overview": {"iso3": ["BRA"]},
    "jurisdiction_overview": {"iso3": "BRA"},
    "compare_jurisdictions": {"iso3_a": "BRA", "iso3_b": "DJI"},
    "policy_lineage": {"family_slug": "family-1"},
    "concept_find": {"q": "solar"},
    "concept_neighbors": {"qid": "Q1012"},
    "related": {"id": "Q1012"},
    "concept_mentions": {"qids": ["Q1012"]},
    "describe_schema": {"term": "kg:Passage"},
    "find_terms": {"text": "passage"},
    "sparql_examples": {"question": "how many laws"},
    "sparql": {"query": "SELECT ?d { ?d a kg:PolicyDocument }"},
    "validate": {"document": "cpr://doc/act-0_a1"},
    "search_speeches": {"query": "solar"},
    "citations": {"iri": "cpr://doc/act-0_a1"},
}
OF_SPEECHES = ("get_speech", "ingest_speech")
"""What takes a speech, which this graph has not; see test_parliament. For those of codes see test_zoning,
for those of Wikidata test_wikidata."""


@pytest.mark.parametrize(
    "tool",
    [
        tool
        for tool in TOOLS
        if tool.name not in OF_SPEECHES
        and not tool.tags <= {DOCUMENTS, ZONING}
        and WIKIDATA not in tool.tags
        and tool.scope in EVERYONE.scopes
    ],
    ids=lambda tool: f"{tool.name}-{'-'.join(sorted(tool.tags))}",
)
def test_every_tool_answers_with_its_content_and_meta(client, tool):
    tag = {"tag": next(iter(tool.tags))}
    whole = {} if tool.single else {"detail": "full"}
    answer = client.post(f"/tools/{tool.name}", params=tag, json={**ARGUMENTS.get(tool.name, {}), **whole})
    assert answer.status_code == 200, answer.text
    content = answer.json()
    meta = content.pop("meta")
    assert meta["snapshot"] >= 1
    tool.result.model_validate(content)


def test_the_rows_are_those_of_the_endpoint(client):
    query = "SELECT ?d ?t { ?d a kg:PolicyDocument ; dcterms:title ?t }"
    mine = client.post("/tools/sparql", json={"query": query}).json()["rows"]
    theirs = client.post("/sparql", data={"query": query}, headers={"Accept": "application/json"}).json()
    assert sorted(mine) == sorted([row["d"]["value"], row["t"]["value"]] for row in theirs["results"]["bindings"])


@pytest.mark.parametrize(
    ("path", "body", "status", "code", "says"),
    [
        ("/tools/serach", b"{}", 404, "not_found", "search"),
        ("/tools/search", b"{}", 400, "invalid_input", "query"),
        ("/tools/search", b'{"query": "x", "nonsense": 1}', 400, "invalid_input", "nonsense"),
        ("/tools/search", b"[1]", 400, "invalid_input", "object"),
        ("/tools/search", b"{", 400, "invalid_input", "not JSON"),
        ("/tools/search", b"\xff", 400, "invalid_input", "not JSON"),
        ("/tools/search", b"[" * 100_000, 400, "invalid_input", "JSON|nested"),
        ("/tools/sparql", b'{"query": "SELECT ?u { ?u a kgs2:P }"}', 400, "query_syntax", "kgs: "),
        ("/tools/sparql", b'{"query": "CLEAR ALL"}', 403, "query_forbidden", "read-only"),
        ("/tools/describe_schema", b'{"term": "kg:Pasage"}', 404, "not_found", "kg:Passage"),
        ("/tools/search", b" " * 2_000_000, 413, "body_too_large", "QUADCITE_MAX_BODY_BYTES"),
    ],
)
def test_an_error_has_a_status_a_code_and_what_would_be_valid(client, path, body, status, code, says):
    answer = client.post(path, content=body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert any(option in answer.json()["message"] for option in says.split("|"))


def test_other_methods_are_named(client):
    answer = client.get("/tools/search")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


def test_what_goes_wrong_inside_is_masked_and_logged_with_its_number(client, kg, monkeypatch, caplog):
    def failing(*_: object, **__: object) -> None:
        raise ValueError("secret of the house")

    monkeypatch.setattr(kg.search, "rank", failing)
    answer = client.post("/tools/search", json={"query": "solar"})
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "secret" not in answer.text
    assert answer.json()["message"].rsplit(" ", 1)[-1] in caplog.text
    assert "secret of the house" in caplog.text
