"""The tools for Wikidata over MCP and HTTP: dotted names, their aliases, tags and scopes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from fastmcp import Client
from starlette.testclient import TestClient

from kg.knowledge_graph import KnowledgeGraph
from kg.server.app import create_app
from kg.server.instructions import build_instructions
from kg.server.mcp import build_mcp
from kg.tools.registry import TOOLS
from tests.conftest import load_once
from tests.folders import open_graph

NAMES = {
    "wikidata.vector_search_items",
    "wikidata.vector_search_properties",
    "wikidata.get_claims",
    "wikidata.sparql",
}
ALIASES = {name.replace(".", "_") for name in NAMES}
CALLS = {
    "wikidata.vector_search_items": {"query": "Ilsabet Varrow"},
    "wikidata.vector_search_properties": {"query": "lantern colour"},
    "wikidata.get_claims": {"qids": ["Q900000001"]},
    "wikidata.sparql": {"query": "ASK {}"},
    "plan_facts": {"question": "Where was Ilsabet Varrow born?"},
    "verify_fact": {"question": "Where was Ilsabet Varrow born?"},
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return load_once(tmp_path_factory, "wikidata")


@pytest.fixture(scope="module")
def facts(data: Path) -> Iterator[KnowledgeGraph]:
    with open_graph(data) as graph:
        yield graph


def list_names(kg: KnowledgeGraph, path: str) -> dict[str, dict]:
    async def work() -> dict[str, dict]:
        async with Client(build_mcp(kg, path)) as client:
            return {tool.name: tool.meta or {} for tool in await client.list_tools()}

    return anyio.run(work)


def call(kg: KnowledgeGraph, path: str, name: str) -> dict:
    async def work() -> dict:
        async with Client(build_mcp(kg, path)) as client:
            result = await client.call_tool(name, CALLS["wikidata.get_claims"])
            return result.structured_content

    return anyio.run(work)


@pytest.mark.parametrize(("setting", "names"), [("underscored", ALIASES), ("dotted", NAMES)])
@pytest.mark.parametrize("path", ["/mcp/wikidata", "/mcp/all"])
def test_tools_are_listed_with_tags_and_scopes_by_the_names_of_the_setting(facts, monkeypatch, path, setting, names):
    monkeypatch.setattr(facts, "settings", facts.settings.model_copy(update={"tool_names": setting}))
    listed = list_names(facts, path)
    assert {name for name in listed if name.startswith("wikidata")} == names
    (items,) = (meta for name, meta in listed.items() if name.endswith("vector_search_items"))
    assert items == {"tags": ["items", "vector", "wikidata"], "scopes": ["entities", "facts"]}


@pytest.mark.parametrize("path", ["/mcp/wikidata", "/mcp/all"])
@pytest.mark.parametrize("name", ["wikidata.get_claims", "wikidata_get_claims"])
def test_a_call_by_either_name_works(facts, path, name):
    assert call(facts, path, name)["entities"][0]["qid"] == "Q900000001"


def test_the_tools_answer_over_http_by_either_name(facts):
    with TestClient(create_app(facts), base_url="http://127.0.0.1") as client:
        for name, arguments in CALLS.items():
            for each in (name, name.replace(".", "_")):
                answer = client.post(f"/tools/{each}", json=arguments)
                assert answer.status_code == 200, answer.text
        tools = {tool["name"]: tool for tool in client.get("/tools").json()["tools"]}
        assert tools["wikidata_vector_search_items"]["scopes"] == ["entities", "facts"]
        assert "scopes" not in tools["wikidata_sparql"]


def test_instructions_name_the_tools_as_they_are_listed(facts):
    dotted = build_instructions(facts, "/mcp/wikidata", CALLS)
    assert "`wikidata.get_claims`" in dotted
    everything = build_instructions(facts, "/mcp/all", [tool.alias for tool in TOOLS])
    assert "`wikidata_get_claims`" in everything
    assert "`wikidata." not in everything
