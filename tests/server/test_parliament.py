"""The tools for speeches through FastMCP clients, over HTTP and over stdio; and who may use the one that writes."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.utilities.tests import ASGIServer
from starlette.testclient import TestClient

from kg import bundle
from kg.access.actors import READ, Actor
from kg.knowledge_graph import KnowledgeGraph
from kg.search.index_client import EdgeIndex
from kg.server.app import create_app
from kg.server.auth import LocalToken
from kg.server.authentication import Accounts
from kg.server.mcp import build_mcp
from kg.settings import Settings
from tests.accounts import SentBy
from tests.search import word_embedder

QUERY = {"query": "budget surplus", "party": "Labor", "date_from": "2024-01-01", "topics": ["budget", "health"]}

SERVE = """
import sys
from pathlib import Path
from kg.search.index_client import EdgeIndex
from kg.server.app import serve
from kg.settings import Settings
from tests.search import word_embedder
EdgeIndex.command = (sys.executable, word_embedder.__file__)
data, folder = map(Path, sys.argv[1:])
words = {"models_dir": data / "models", "model": "words/32"}
settings = Settings(data_dir=data, query_workers=1, ingest_folders=(folder,), _env_file=None, **words)
serve(data, settings, transport="stdio", mount="parliament")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(bundle.folder("fixtures") / "hansard", tmp_path_factory.mktemp("in") / "hansard"))


@pytest.fixture(scope="module")
def kg(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[KnowledgeGraph]:
    data: Path = tmp_path_factory.mktemp("parliament")
    settings = Settings(  # type: ignore[call-arg]
        data_dir=data, models_dir=data / "models", model="words/32", query_workers=1, ingest_folders=(folder,),
        _env_file=None,
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EdgeIndex, "command", (sys.executable, word_embedder.__file__))
        with KnowledgeGraph.open(data, settings) as opened:
            yield opened


async def use_all(client: Client) -> None:
    """Use every tool as an agent would: take speeches in, find one, read it, see who speaks, and how often."""
    names = {tool.name for tool in await client.list_tools()}
    assert names >= {"ingest_speech", "search_speeches", "get_speech", "list_speakers", "speech_stats"}
    for name, form in (("speeches.csv", "csv"), ("speeches.json", "json")):
        taken = (await client.call_tool("ingest_speech", {"file_path": name, "format": form})).structured_content
        assert taken["errors"] == []
        assert taken["speeches_processed"] > 0
        assert taken["vectors_stored"] == taken["chunks_created"]
    found = await client.call_tool("search_speeches", {**QUERY, "explain": True, "max_tokens": 8_000})
    results = found.structured_content["results"]
    assert results
    assert {result["party"] for result in results} == {"Labor"}
    assert {"budget", "health"} & set(results[0]["topic_tags"])
    assert "SELECT" in found.meta["sparql"][0]["sparql"]
    read = await client.call_tool("get_speech", {"speech_id": results[0]["speech_id"], "include_context": True})
    speech, evidence = read.structured_content, results[0]["evidence"]
    assert speech["full_text"][evidence["start"] : evidence["end"]] == results[0]["excerpt"]
    assert speech["hansard_reference"] == results[0]["hansard_reference"]
    assert {"electorate", "source_url", "context_before", "context_after"} <= speech.keys()
    chunk = await client.call_tool("fetch", {"id": evidence["id"]})
    assert speech["hansard_reference"] in chunk.structured_content["title"]
    speakers = (await client.call_tool("list_speakers", {"chamber": "Senate"})).structured_content["speakers"]
    assert {chamber for one in speakers for chamber in one["chambers"]} == {"Senate"}
    stats = (await client.call_tool("speech_stats", {"group_by": "year"})).structured_content
    assert sum(group["speeches"] for group in stats["groups"]) == stats["totals"]["speeches"] > 10
    held = (await client.call_tool("list_resources", {})).structured_content["resources"]
    assert next(each for each in held if each["title"].startswith("Filter topics"))["count"] > 5
    refused = await client.call_tool("search_speeches", {"query": "x", "chamber": "Lords"}, raise_on_error=False)
    assert refused.is_error
    assert "Available: House of Representatives, Senate" in refused.content[0].text


@pytest.mark.parametrize("path", ["/mcp/parliament", "/mcp/all"])
def test_a_client_uses_all_tools_over_http(kg: KnowledgeGraph, path: str) -> None:
    async def work() -> None:
        app = create_app(kg)
        async with app.router.lifespan_context(app):
            server = ASGIServer(url=f"http://127.0.0.1{path}", app=app, transport_type="http")
            async with server.client() as client:
                await use_all(client)

    anyio.run(work)


@pytest.mark.exhaustive
def test_a_client_uses_all_tools_over_stdio(tmp_path: Path, folder: Path) -> None:
    root = Path(__file__).parent.parent.parent
    transport = StdioTransport(sys.executable, ["-c", SERVE, str(tmp_path / "data"), str(folder)], cwd=str(root))

    async def work() -> None:
        async with Client(transport) as client:
            await use_all(client)

    anyio.run(work)


def test_the_tool_that_writes_says_so_and_carries_the_tags_of_the_specification(kg: KnowledgeGraph) -> None:
    with TestClient(create_app(kg), base_url="http://127.0.0.1") as client:
        tools = {tool["name"]: tool for tool in client.get("/tools", params={"tag": "parliament"}).json()["tools"]}
        assert client.get("/tools", params={"tag": "ingestion"}).json()["tools"] == [tools["ingest_speech"]]
    specified = ("ingest_speech", "search_speeches", "get_speech")
    assert {name: set(tools[name]["tags"]) - {"parliament"} for name in specified} == {
        "ingest_speech": {"ingestion", "admin", "stable"},
        "search_speeches": {"search", "rag", "stable"},
        "get_speech": {"retrieve", "rag", "stable"},
    }  # fmt: skip

    async def work() -> dict[str, Any]:
        async with Client(build_mcp(kg)) as client:
            return {tool.name: tool.annotations for tool in await client.list_tools()}

    given = anyio.run(work)
    assert (given["ingest_speech"].read_only_hint, given["ingest_speech"].destructive_hint) == (False, True)
    assert (given["get_speech"].read_only_hint, given["get_speech"].destructive_hint) == (True, False)


def call(kg: KnowledgeGraph, accounts: Accounts, headers: dict[str, str]) -> tuple[int, dict[str, Any], Any]:
    """Call `ingest_speech` as a plain request and over MCP; return status and body of the one, words of the other."""
    arguments = {"file_path": "nothing.json"}
    app = create_app(kg, accounts=accounts)
    with TestClient(app, base_url="http://127.0.0.1", headers=headers) as client:
        plain = client.post("/tools/ingest_speech", json=arguments)
        message = {
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "ingest_speech", "arguments": arguments},
        }  # fmt: skip
        mcp = client.post("/mcp/parliament", json=message, headers={"Accept": "application/json, text/event-stream"})
    return plain.status_code, plain.json(), mcp.json()["result"]["content"][0]["text"]


STRANGER = SentBy(actor=Actor("stranger", frozenset({READ})))


def test_writing_takes_the_scope_of_it(kg: KnowledgeGraph, tmp_path: Path) -> None:
    status, body, said = call(kg, STRANGER, {})
    assert (status, body["code"]) == (403, "forbidden")
    assert "scope 'write'" in said
    token = LocalToken(tmp_path)
    secret = (tmp_path / "token").read_text()
    for headers in ({}, {"Authorization": f"Bearer {secret}"}):
        status, body, said = call(kg, Accounts(token), headers)
        assert (status, body["code"]) == (404, "not_found")
        assert said.startswith("not_found")


@pytest.mark.parametrize("origin", ["https://example.org", "null"])
def test_a_page_of_another_site_cannot_have_files_read(kg: KnowledgeGraph, origin: str) -> None:
    with TestClient(create_app(kg), base_url="http://127.0.0.1", headers={"Origin": origin}) as client:
        assert client.post("/tools/ingest_speech", json={"file_path": "speeches.json"}).status_code == 403
