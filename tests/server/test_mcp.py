"""What MCP clients see: the contract of each tool through a real client, over HTTP without a socket."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import anyio
import pytest
from fastmcp import Client
from fastmcp.exceptions import MCPError
from fastmcp.utilities.tests import ASGIServer

from kg import errors
from kg.access.actors import EVERYONE
from kg.errors import QueryBusyError
from kg.retrieval.reader import Reader
from kg.server import mcp
from kg.server.app import create_app
from kg.server.mcp import TOOL_CALLS, ToolThreads, build_mcp
from kg.tools.mounts import MOUNTS, find_mount
from kg.tools.registry import TOOLS, mounted

SHARED_TOOLS = [
    "search", "fetch", "related", "citations", "concept_find", "concept_mentions", "list_resources", "health",
]  # fmt: skip
CORE_TOOLS = [*SHARED_TOOLS, "describe_schema", "sparql_examples", "sparql"]
CLIMATE_TOOLS = [
    *SHARED_TOOLS, "concept_neighbors", "concept_properties", "family_overview", "jurisdiction_overview",
    "compare_jurisdictions", "policy_lineage",
]  # fmt: skip
ZONING_TOOLS = [
    "kg_ingest_code_section", "kg_ingest_use_permissions", "kg_ingest_dimensional_standards", "kg_ingest_definitions",
    "kg_build_summaries", "kg_rebuild_summary", "kg_query_section", "kg_query_permissions", "kg_query_standards",
    "kg_query_definition", "kg_traverse_hierarchy", "kg_find_related", "list_claims", "review_claim",
    "kg_search_by_topic", "zoning_reading_tasks", "compare_zoning",
]  # fmt: skip
DOCUMENTS_TOOLS = [
    "hybrid_query", "entity_lookup", "explain_entity", "ingest_docs", "extract_and_link", "status", "list_claims",
    "review_claim",
]  # fmt: skip
PARLIAMENT_TOOLS = ["search_speeches", "get_speech", "list_speakers", "speech_stats", "how_voted", "ingest_speech"]
WIKIDATA_TOOLS = ["vector_search_items", "vector_search_properties", "get_claims", "sparql"]
FACT_TOOLS = ["plan_facts", "verify_fact"]
OPERATIONS_TOOLS = ["submit_load", "load_status", "cancel_load"]
SCHEMA_TOOLS = ["describe_schema", "find_terms", "sparql_examples", "sparql", "validate"]


@asynccontextmanager
async def served(kg, path="/mcp"):
    app = create_app(kg)
    async with app.router.lifespan_context(app):
        yield ASGIServer(url=f"http://127.0.0.1{path}", app=app, transport_type="http")


def ask(kg, work: Callable[[Client], Awaitable[Any]], path="/mcp", **options: Any) -> Any:
    async def run() -> Any:
        async with served(kg, path) as server, server.client(**options) as client:
            return await work(client)

    return anyio.run(run)


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/mcp", CORE_TOOLS),
        ("/mcp/climate", CLIMATE_TOOLS),
        ("/mcp/parliament", [*PARLIAMENT_TOOLS, "fetch", "related", "citations", "list_resources", "health"]),
        ("/mcp/zoning", [*ZONING_TOOLS, "fetch", "related", "citations", "list_resources"]),
        ("/mcp/documents", [*DOCUMENTS_TOOLS, "search", "fetch", "related", "citations", "list_resources", "health"]),
        ("/mcp/wikidata", [*FACT_TOOLS, *(f"wikidata_{name}" for name in WIKIDATA_TOOLS)]),
        ("/mcp/sparql", [*SCHEMA_TOOLS, "list_resources", "health"]),
        ("/mcp/operations", [*OPERATIONS_TOOLS, "status", "health"]),
        (
            "/mcp/all",
            {
                *CLIMATE_TOOLS,
                *PARLIAMENT_TOOLS,
                *ZONING_TOOLS,
                *DOCUMENTS_TOOLS,
                *SCHEMA_TOOLS,
                *FACT_TOOLS,
                *OPERATIONS_TOOLS,
                *(f"wikidata_{name}" for name in WIKIDATA_TOOLS),
            },
        ),
        ("/mcp/research", ["search", "fetch"]),
    ],
)
def test_each_mount_serves_the_tools_of_its_tags(kg, path, names):
    async def work(client):
        return await client.list_tools()

    tools = ask(kg, work, path)
    assert sorted(tool.name for tool in tools) == sorted({*names} - OF_OTHERS)
    for tool in tools:
        writes = ("ingest_", "extract_", "kg_ingest_", "kg_build_", "kg_rebuild_", "review_", "submit_", "cancel_")
        assert tool.annotations.read_only_hint is not tool.name.startswith(writes)
        assert tool.title
        assert tool.output_schema["type"] == "object"


@pytest.mark.parametrize(
    ("path", "read", "whole"),
    [
        ("/mcp", 4_000, 6_000),
        ("/mcp/climate", 5_000, 7_000),
        ("/mcp/parliament", 5_000, 7_000),
        ("/mcp/zoning", 5_600, 8_500),
        ("/mcp/documents", 5_000, 7_400),
        ("/mcp/sparql", 5_000, 7_000),
    ],
)
def test_a_list_of_tools_keeps_to_its_tokens(kg, path, read, whole):
    """A token is four bytes: of what a model reads (descriptions, arguments), and of the whole answer.

    A twentieth is kept free, so that a new argument does not need another tool to be shortened.
    """

    async def work(client):
        return await client.list_tools_mcp()

    listed = ask(kg, work, path)
    schemas = [json.dumps(tool.input_schema, ensure_ascii=False, separators=(",", ":")) for tool in listed.tools]
    texts = [tool.name + tool.description + schema for tool, schema in zip(listed.tools, schemas, strict=True)]
    assert sum(len(text.encode()) for text in texts) / 4 <= 0.95 * read
    assert len(listed.model_dump_json(exclude_none=True, by_alias=True).encode()) / 4 <= 0.95 * whole
    assert all(tool.meta is None for tool in listed.tools)


OF_OTHERS = {tool.alias for tool in TOOLS if tool.scope not in EVERYONE.scopes}
"""The tools that everyone on the machine may not call, and does not see."""
TOOL_NAMES = {tool.name for tool in TOOLS}


@pytest.mark.parametrize("path", list(MOUNTS))
def test_a_description_names_the_mount_of_each_tool_that_is_not_here(kg, path):
    async def work(client):
        return await client.list_tools()

    tools = ask(kg, work, path)
    here = {tool.alias for tool in mounted(MOUNTS[path].tags)}
    for tool in tools:
        for found in re.finditer(r"`(\w+)`( \(on (/mcp[/a-z]*)\))?", tool.description):
            if found[1] in TOOL_NAMES and (found[1] not in here or found[3]):
                assert found[3], f"{tool.name} names {found[1]}"
                tags = MOUNTS[found[3]].tags
                assert found[1] not in here
                assert any(each.name == found[1] and each.tags & tags for each in TOOLS)


def test_remarks_and_errors_name_the_mount_of_a_tool_that_is_not_here(kg):
    async def work(client):
        missed = await client.call_tool("fetch", {"ids": ["cpr://concept/Q1010", "cpr://family/none-of-it"]})
        refused = await client.call_tool("fetch", {"id": "cpr://family/none-of-it"}, raise_on_error=False)
        unknown = await client.call_tool("family_overview", {}, raise_on_error=False)
        hints = [each["hint"] for each in missed.structured_content["not_found"]]
        return hints, refused.content[0].text, unknown.content[0].text

    (concept, family), refused, unknown = ask(kg, work)
    assert "(on /mcp/climate)" in unknown
    assert "Available: search, fetch" in unknown
    assert "(on " not in concept
    assert "family_overview (on /mcp/climate)" in family
    assert "family_overview (on /mcp/climate)" in refused


@pytest.mark.parametrize("path", [path for path in MOUNTS if path != "/mcp/research"])
def test_instructions_name_what_is_loaded_and_the_other_mounts(kg, path):
    async def work(client):
        return client.initialize_result.instructions

    text = ask(kg, work, path, mode="legacy")
    documents = next(iter(kg.query("SELECT (COUNT(DISTINCT ?d) AS ?n) { ?d a kg:PolicyDocument }").result))["n"].value
    assert f"{int(documents):,} laws and policies" in text
    assert len(text.encode()) / 4 <= 600 or path == "/mcp/all"
    if path != "/mcp/all":
        others = ("/mcp/climate", "/mcp/parliament", "/mcp/zoning", "/mcp/documents")
        assert all(other in text for other in others if other != path)


def test_the_research_pair_is_the_deep_research_contract(kg):
    async def work(client):
        tools = {tool.name: tool for tool in await client.list_tools()}
        found = await client.call_tool("search", {"query": "geothermal licence"})
        document = await client.call_tool("fetch", {"id": found.structured_content["results"][0]["id"]})
        return tools, found, document

    tools, found, document = ask(kg, work, "/mcp/research")
    assert list(tools["search"].input_schema["properties"]) == ["query"]
    assert list(tools["fetch"].input_schema["properties"]) == ["id"]
    assert set(found.structured_content) == {"results", "uncovered_reason"}
    assert all(set(hit) == {"id", "title", "url"} and hit["url"] for hit in found.structured_content["results"])
    assert set(document.structured_content) == {"id", "title", "text", "url", "metadata"}
    for answer in (found, document):
        (content,) = answer.content
        assert json.loads(content.text) == answer.structured_content


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_both_protocol_eras_get_cited_passages_and_only_those_asked_for(kg, corpus, mode):
    places = {passage.iri: passage.places for document in corpus for passage in document}

    async def work(client):
        asked = {"query": "geothermal", "filters": {"iso3": ["DJI"]}, "limit": 100, "max_tokens": 50_000}
        found = await client.call_tool("search", {**asked, "explain": True})
        return found, client.protocol_version

    found, version = ask(kg, work, mode=mode)
    hits = found.structured_content["results"]
    assert {hit["id"] for hit in hits} == {iri for iri, of in places.items() if "DJI" in of}
    sources = found.structured_content["sources"]
    assert all(sources[hit["provenance"]["source"]]["graph"] and hit["provenance"]["row"] for hit in hits)
    assert sources["s1"]["sha256"]
    assert found.meta["completeness"] == "complete"
    assert found.meta["total"] == len(hits)
    assert found.meta["snapshot"] >= 1
    assert "SELECT" in found.meta["sparql"][0]["sparql"]
    assert version == ("2025-11-25" if mode == "legacy" else "2026-07-28")


def test_every_core_tool_keeps_its_output_schema(kg, corpus):
    calls = [
        ("search", {"query": "solar", "explain": True, "filters": {"concept_qids": ["Q1010"]}}),
        ("fetch", {"ids": [corpus[0][0].iri, "cpr://doc/none#p=1"]}),
        ("fetch", {"id": corpus[0][0].document, "limit": 2}),
        ("family_overview", {"iso3": ["BRA"], "explain": True}),
        ("list_resources", {"limit": 3}),
        ("health", {}),
        ("concept_find", {"q": "solar", "limit": 2}),
        ("concept_find", {"qid": "Q1010", "explain": True}),
        ("concept_neighbors", {"qid": "Q1010", "direction": "out", "predicates": ["P2"], "hops": 2, "counts": True}),
        ("concept_properties", {"qid": "Q1010"}),
        ("concept_properties", {}),
        ("concept_mentions", {"qids": ["Q1010", "Q1012"], "iso3": ["BRA"], "narrower": True, "limit": 2}),
        ("family_overview", {"iso3": ["BRA"], "top_concepts": 2}),
        ("jurisdiction_overview", {"iso3": "BRA"}),
        ("compare_jurisdictions", {"iso3_a": "BRA", "iso3_b": "DJI", "by": "language"}),
        ("compare_jurisdictions", {"iso3_a": "BRA", "iso3_b": "DJI", "by": "concept", "limit": 1}),
        ("policy_lineage", {"family_slug": "family-1", "include_docs": True}),
    ]

    async def work(client):
        return [await client.call_tool(name, arguments) for name, arguments in calls]

    for answer in ask(kg, work, "/mcp/all"):
        assert not answer.is_error
        assert json.loads(answer.content[0].text) == answer.structured_content
        assert any(isinstance(value, list) for value in answer.structured_content.values()) or "status" in (
            answer.structured_content
        )


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("concept_neighbors", {"qid": "P2"}, "invalid_input: qid: P2 is a property, not an item"),
        ("concept_neighbors", {"qid": "Q1010", "predicates": ["Q1012"]}, "Q1012 is an item"),
        (
            "concept_mentions",
            {"qids": ["Q10100"]},
            "not_found: qids: Unknown concept 'Q10100'. Similar: Q1010 (",
        ),
        ("concept_mentions", {"qids": []}, "qids"),
        ("jurisdiction_overview", {"iso3": "BRX"}, "BRA"),
        ("compare_jurisdictions", {"iso3_a": "BRA", "iso3_b": "DJI", "by": "colour"}, "by"),
        ("policy_lineage", {"family_slug": "family-99"}, "Similar: 'family-"),
    ],
)
def test_an_error_about_concepts_and_countries_teaches(kg, name, arguments, says):
    async def work(client):
        return await client.call_tool(name, arguments, raise_on_error=False)

    answer = ask(kg, work, "/mcp/climate")
    assert answer.is_error
    assert says in answer.content[0].text


def test_the_sparql_of_an_answer_gives_the_same_rows_at_the_endpoint(kg):
    async def work():
        async with served(kg) as server, server.client() as client, server.http_client() as http:
            asked = {"query": "solar", "filters": {"iso3": ["BRA"]}, "limit": 200, "max_tokens": 50_000}
            found = await client.call_tool("search", {**asked, "explain": True})
            query = found.meta["sparql"][0]["sparql"]
            rows = await http.post("/sparql", data={"query": query}, headers={"Accept": "application/json"})
            return found, rows.json()

    found, rows = anyio.run(work)
    assert {row["unit"]["value"] for row in rows["results"]["bindings"]} == {
        hit["id"] for hit in found.structured_content["results"]
    }


@pytest.mark.parametrize(
    ("name", "arguments", "code", "says"),
    [
        ("search", {"query": "x", "unknown": 1}, "invalid_input", "unknown"),
        ("search", {}, "invalid_input", "query"),
        ("fetch", {"id": "cpr://doc/none"}, "not_found", "search"),
        ("serach", {"query": "x"}, "not_found", ": search, fetch, "),
    ],
)
def test_an_error_says_what_would_be_valid(kg, name, arguments, code, says):
    async def work(client):
        return await client.call_tool(name, arguments, raise_on_error=False)

    answer = ask(kg, work)
    assert answer.is_error
    assert answer.content[0].text.startswith(f"{code}: ")
    assert says in answer.content[0].text
    assert answer.meta["error"] == {"code": code, "message": answer.meta["error"]["message"], "retryable": False}


@pytest.fixture
def broken(kg, monkeypatch):
    """Makes every search of the index fail with the error given."""

    def failing(error: Exception) -> None:
        def rank(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr(kg.search, "rank", rank)

    return failing


def test_a_passing_trouble_is_marked_as_worth_another_try(kg, broken):
    broken(errors.QueryBusyError("the queue of queries is full"))

    async def work(client):
        return await client.call_tool("search", {"query": "solar"}, raise_on_error=False)

    answer = ask(kg, work)
    assert answer.meta["error"]["retryable"] is True
    assert "is full" in answer.content[0].text


def test_search_without_the_index_answers_from_the_store_and_says_so(kg, broken):
    broken(errors.IndexUnavailableError("the index process is being restarted"))
    texts = {row["unit"].value: row["text"].value for row in kg.store.query("SELECT * { ?unit schema:text ?text }")}
    counted = Counter(word for text in texts.values() for word in set(text.casefold().split()) if word.isalpha())
    word = min(counted, key=lambda word: (counted[word], -len(word)))

    async def work(client):
        return await client.call_tool("search", {"query": word, "limit": 50})

    found = ask(kg, work).structured_content
    assert found["degraded"] == "store"
    assert found["notes"]
    expected = {iri for iri, text in texts.items() if word in text.casefold().split()}
    assert set() != {hit["id"] for hit in found["results"]} <= expected


def test_what_goes_wrong_inside_is_masked_and_logged_with_its_number(kg, broken, caplog):
    broken(ValueError("secret of the house"))

    async def work(client):
        return await client.call_tool("search", {"query": "solar"}, raise_on_error=False)

    answer = ask(kg, work)
    assert answer.is_error
    assert "secret" not in str(answer)
    number = answer.content[0].text.rsplit(" ", 1)[-1]
    assert number in caplog.text
    assert "secret of the house" in caplog.text


def test_slow_calls_do_not_hold_up_health(kg, monkeypatch):
    release = threading.Event()
    started = threading.Semaphore(0)
    rank = kg.search.rank

    def slow(*args: Any, **kwargs: Any) -> Any:
        started.release()
        assert release.wait(90)
        return rank(*args, **kwargs)

    monkeypatch.setattr(kg.search, "rank", slow)

    async def work(client):
        async with anyio.create_task_group() as group:
            for _ in range(45):
                group.start_soon(client.call_tool, "search", {"query": "solar", "limit": 1})
            for _ in range(TOOL_CALLS[1]):
                await anyio.to_thread.run_sync(started.acquire)
            with anyio.fail_after(60):  # the slow calls are held until it is answered
                answer = await client.call_tool("health", {})
            release.set()
        return answer

    assert ask(kg, work).structured_content["status"] == "ok"


def test_a_call_that_takes_long_goes_on_and_the_same_call_gets_its_result(kg, monkeypatch):
    ended, ran = threading.Event(), []

    def work() -> str:
        ran.append("run")
        ended.wait(30)
        return "stored"

    async def call():
        threads = ToolThreads(kg)
        with pytest.raises(QueryBusyError, match="same arguments"):
            await threads.run_on("key", work, kind="long")
        ended.set()
        monkeypatch.setattr(mcp, "ANSWER_AFTER_S", 30.0)
        await anyio.sleep(0.5)
        return [
            await threads.run_on("key", work, kind="long"),
            len(ran),
            await threads.run_on("key", work, kind="long"),
        ]

    monkeypatch.setattr(mcp, "ANSWER_AFTER_S", 0.05)
    (kept, age), runs, (again, new) = anyio.run(call)
    assert (kept, runs, again, len(ran)) == ("stored", 1, "stored", 2)
    assert age > new


def test_resources_say_what_is_served(kg, corpus):
    iri = corpus[0][0].iri

    async def work(client):
        entity = f"kg://entity/{quote(iri, safe='')}"
        uris = ["cpr://status", "cpr://dataset/revision", entity, f"{entity}?format=json"]
        return [(await client.read_resource(uri))[0] for uri in uris]

    status, revision, turtle, entity = ask(kg, work)
    assert json.loads(status.text)["status"] == "ok"
    assert json.loads(revision.text)["sources"][0]["sha256"] == "ab" * 32
    assert corpus[0][0].text in turtle.text
    assert turtle.mime_type == "text/turtle"
    assert json.loads(entity.text)["iri"] == iri


@pytest.mark.parametrize("iri", ["c:thing", "urn:none", "not an iri", "../../etc/passwd", "/etc/passwd"])
def test_an_entity_that_is_not_there_is_an_error_and_no_path(kg, iri):
    async def work(client):
        with pytest.raises(MCPError, match=r"not_found|invalid_input"):
            await client.read_resource(f"kg://entity/{quote(iri, safe='')}")

    ask(kg, work)


def test_every_tool_is_mounted_somewhere():
    tags = [mount.tags for mount in MOUNTS.values() if mount.tags is not None]
    mounted = {tool.name for tool in TOOLS if any(map(tool.is_on, tags))}
    assert mounted == {tool.name for tool in TOOLS}


def test_a_mount_is_found_by_its_name_and_has_its_tools(kg):
    async def work(path):
        async with Client(build_mcp(kg, path)) as client:
            return {tool.name for tool in await client.list_tools()}

    assert find_mount("core") == "/mcp"
    names = anyio.run(work, find_mount("zoning"))
    assert names >= {"kg_query_section", "compare_zoning"}
    assert "sparql" not in names
    with pytest.raises(
        errors.InvalidInputError, match=r"Available: core, climate, parliament, .*, sparql, operations, all"
    ):
        find_mount("weather")


def test_instructions_follow_what_is_loaded_later(kg):
    async def work():
        async with served(kg) as server:
            async with server.client(mode="legacy") as client:
                before = client.initialize_result.instructions
            kg.store.update(
                "INSERT DATA { GRAPH <https://w3id.org/quadcite/graph/src/hansard/late> {"
                " <https://w3id.org/quadcite/id/speech/late> a <https://w3id.org/quadcite/ns#Speech> } }"
            )
            async with server.client(mode="legacy") as client:
                return before, client.initialize_result.instructions

    before, after = anyio.run(work)
    assert "speeches in parliament," not in before
    assert "1 speeches in parliament" in after


def test_servers_read_the_graph_when_a_client_connects_and_not_before(kg, monkeypatch):
    asked = []
    run = kg.pool.run
    monkeypatch.setattr(kg.pool, "run", lambda text, **options: asked.append(text) or run(text, **options))
    create_app(kg)
    servers = [build_mcp(kg, path) for path in MOUNTS]
    assert asked == []

    async def work(server):
        async with Client(server) as client:
            return client.instructions

    assert all("laws and policies on climate" in anyio.run(work, server) for server in servers)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_instructions_do_not_say_that_nothing_is_loaded_if_it_cannot_be_counted(kg, monkeypatch, mode):
    def fail(*_: Any, **__: Any) -> None:
        raise errors.QueryLimitError("The server is stopping.")

    async def work():
        async with served(kg) as server:
            with monkeypatch.context() as patch:
                patch.setattr(Reader, "kept", fail)
                async with server.client(mode=mode) as client:
                    before = client.instructions
            async with server.client(mode=mode) as client:
                return before, client.instructions

    before, after = anyio.run(work)
    assert "nothing is loaded" not in before
    assert "laws and policies on climate" not in before
    assert "/mcp/climate" in before
    assert "laws and policies on climate" in after


def test_a_server_without_http_answers_too(kg):
    async def work():
        async with Client(build_mcp(kg)) as client:
            return await client.call_tool("health", {})

    state = anyio.run(work).structured_content
    assert state["status"] == "ok", state["problems"]
