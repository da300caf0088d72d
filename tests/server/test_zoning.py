"""The tools for codes through a FastMCP client, as an agent uses them; who may write, and who is recorded to have."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from fastmcp import Client
from fastmcp.utilities.tests import ASGIServer
from starlette.testclient import TestClient

from kg.access.actors import READ, SEARCH, WRITE, Actor
from kg.knowledge_graph import KnowledgeGraph
from kg.server.app import create_app
from tests.accounts import SentBy
from tests.folders import open_graph

pytestmark = pytest.mark.long

FEIGN = {"municipality": "Upper Feign", "state": "CT"}
WRITING = [
    "kg_ingest_code_section", "kg_ingest_use_permissions", "kg_ingest_dimensional_standards", "kg_ingest_definitions",
    "kg_build_summaries", "kg_rebuild_summary",
]  # fmt: skip


@pytest.fixture
def kg(tmp_path: Path) -> Iterator[KnowledgeGraph]:
    with open_graph(tmp_path) as opened:
        yield opened


HOSTILE = [
    "", "\x00", "\ud800", "\u202e", "(?:a+)+$", "9" * 5_000, "?x } UNION { ?s ?p ?o", "<http://x/>", None, -1, 10**30,
    1.5, True, [], {}, [[]], {"a": 1}, ["a"], [None], "17.20", "extractive", "auto",
]  # fmt: skip
FUZZED: dict[str, dict[str, Any]] = {
    "kg_ingest_use_permissions": {"permissions": [{"district": "R", "use": "Kiln", "permission": "P"}]},
    "kg_build_summaries": {"root_section": "4", "mode": "extractive", "limit": 5},
    "kg_rebuild_summary": {
        "section_id": "4",
        "summary": "It is about kilns.",
        "inputs_sha256": "",
        "mode": "extractive",
    },
    "kg_search_by_topic": {"query": "kiln", "top_k": 3, "scorer": "auto"},
}


async def use_all(client: Client) -> None:
    """Send a small code, have it summarized, and ask for everything that was sent."""

    async def call(name: str, **arguments: Any) -> Any:
        return (await client.call_tool(name, {**FEIGN, **arguments})).structured_content

    for number, title, parent, text in (
        ("4", "Kilns", None, ""),
        ("4.1", "Words", "4", '"Kiln" means an oven for pots.'),
        ("4.2", "Fire", "4", "A kiln is subject to section 4.1. It is fired by day."),
    ):
        given = {"section_id": number, "title": title, "level": 1 if parent is None else 2, "raw_content": text}
        sent = await call("kg_ingest_code_section", **given, parent_id=parent)
        assert sent["stored"] == 1
    sent = await call(
        "kg_ingest_use_permissions", permissions=[{"district": "R-40", "use": "Kiln", "permission": "special permit"}]
    )
    assert (sent["stored"], sent["sent_by"]) == (1, "ada")
    await call(
        "kg_ingest_dimensional_standards",
        standards=[{"district": "R-40", "standard_type": "maximum height", "value": 35, "unit": "feet"}],
    )
    await call("kg_ingest_definitions", definitions=[{"term": "Glaze", "definition_text": "A coat of glass."}])
    assert (await call("kg_build_summaries"))["built"] == 3
    assert (await call("kg_rebuild_summary", section_id="4.1"))["summary"]
    read = await call("kg_query_section", section_id="4", include_children=True)
    assert [each["section_id"] for each in read["children"]] == ["4.1", "4.2"]
    assert read["summary_state"] == "current"
    answer = await call("kg_query_permissions", use="kiln")
    [permission] = answer["permissions"]
    source = answer["sources"][permission["evidence"]["source"]]
    assert (permission["permission"], source["sent_by"]) == ("conditional", "ada")
    [standard] = (await call("kg_query_standards", district="R-40"))["standards"]
    assert (standard["value"], standard["unit"], standard["bound"]) == (35, "FT", "max")
    [definition] = (await call("kg_query_definition", term="glaze"))["definitions"]
    assert definition["definition_text"] == "A coat of glass."
    assert len((await call("kg_traverse_hierarchy", depth=2))["sections"]) == 3
    [related] = (await call("kg_find_related", section_id="4.2", direction="outgoing"))["related"]
    assert (related["cited"], related["reads"]) == ("4.1", "subjectTo")
    assert (await call("kg_search_by_topic", query="fire"))["results"][0]["section_id"] == "4.2"
    compared = await client.call_tool(
        "compare_zoning", {"municipalities": ["Upper Feign, CT", "Nowhere, CT"]}, raise_on_error=False
    )
    assert "Available: 'Upper Feign, Connecticut'" in compared.content[0].text


def as_ada(kg: KnowledgeGraph, scopes: frozenset[str]) -> Any:
    return create_app(kg, accounts=SentBy(actor=Actor("ada", scopes)))


def test_an_agent_sends_a_code_and_asks_for_it_over_http(kg: KnowledgeGraph) -> None:
    async def work() -> None:
        app = as_ada(kg, frozenset({READ, SEARCH, WRITE}))
        async with app.router.lifespan_context(app):
            server = ASGIServer(url="http://127.0.0.1/mcp/zoning", app=app, transport_type="http")
            async with server.client() as client:
                await use_all(client)

    anyio.run(work)


def test_writing_takes_the_scope_of_it(kg: KnowledgeGraph) -> None:
    with TestClient(as_ada(kg, frozenset({READ})), base_url="http://127.0.0.1") as client:
        for name in WRITING:
            answer = client.post(f"/tools/{name}", json=FEIGN)
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": FEIGN}}
            headers = {"Accept": "application/json, text/event-stream"}
            said = client.post("/mcp/zoning", json=message, headers=headers).json()["result"]
            assert said["isError"]
            assert "scope 'write'" in said["content"][0]["text"]
    assert kg.store.statistics().quads == 0


@pytest.mark.long
def test_hostile_calls_are_answered_or_refused_with_a_reason(kg: KnowledgeGraph) -> None:
    """Never a 500: each of the tools that store what is sent or summarize it, with up to three hostile arguments."""
    chosen = random.Random(7)
    answers = []
    with TestClient(
        as_ada(kg, frozenset({READ, SEARCH, WRITE})), base_url="http://127.0.0.1", raise_server_exceptions=False
    ) as client:
        kiln = {**FEIGN, "section_id": "4", "title": "Kilns", "level": 1, "raw_content": "A kiln is fired by day."}
        assert client.post("/tools/kg_ingest_code_section", json=kiln).status_code == 200
        for number in range(240):
            name, own = chosen.choice(list(FUZZED.items()))
            given: dict[str, Any] = {**FEIGN, **own}
            for _ in range(chosen.randrange(1, 4)):
                given[chosen.choice(list(own if number % 3 else given))] = chosen.choice(HOSTILE)
            if name == "kg_ingest_use_permissions" and number % 4:
                entry = {"district": "R", "use": "Kiln", "permission": "P", "conditions": [], "section_ref": None}
                wrong = entry | {chosen.choice(list(entry)): chosen.choice(HOSTILE)}
                given["permissions"] = [wrong, chosen.choice(HOSTILE)]
            # With the escapes of JSON, so that a lone surrogate arrives.
            answers.append((given, client.post(f"/tools/{name}", content=json.dumps(given))))
    assert {answer.status_code for _, answer in answers} == {200, 400, 404, 409}
    for given, answer in answers:
        said = answer.json()
        assert answer.status_code == 200 or len(said["detail"]) > 15, given
        assert all(each["reason"] for each in said.get("entries", ()) if each["outcome"] == "rejected"), given


def test_a_body_that_is_wrong_is_told_with_what_is_right(kg: KnowledgeGraph) -> None:
    wrong = {
        "null": "null",
        "[1]": "an array",
        '{"municipality": "a", "state": "UT", "permissions": "by right"}': 'a list of objects is expected, as in [{"',
        '{"municipality": "a", "state": "UT", "permissions": [], "x": 1}': "x: unknown argument",
    }
    with TestClient(as_ada(kg, frozenset({READ, SEARCH, WRITE})), base_url="http://127.0.0.1") as client:
        for body, says in wrong.items():
            answer = client.post("/tools/kg_ingest_use_permissions", content=body)
            assert answer.status_code == 400
            assert says in answer.json()["detail"]
