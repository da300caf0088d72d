"""Each argument of each tool takes hostile values: each is answered, or refused with a code and a message that teaches.

The values are data: a new tool or argument is tested without a change here.
"""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from starlette.testclient import TestClient

from kg import bundle
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.results import SearchFilters
from kg.server.app import create_app
from kg.settings import Settings
from kg.tools.calls import Tool
from kg.tools.registry import TOOLS
from loaders.sources import load

pytestmark = pytest.mark.long

HOSTILE: Final[tuple[Any, ...]] = (
    None, True, -1, 10**30, 1.5, "", " ", "a\x00b", "\ud800", "\u202e\u2066x\u2069", "x" * 100_000,
    "<script>alert(1)</script>", "?x } UNION { ?s ?p ?o", '"""', "> } } DROP ALL #", "$graph", "(a+)+$", "[", "%zz",
    "../../../etc/passwd", "/proc/self/mem", "file:///etc/passwd", "http://127.0.0.1:1/", "cpr://doc/%00",
    "https://w3id.org/quadcite/id/speech/%zz", "https://w3id.org/quadcite/graph/prov", "graph/src/../prov", "kg:", ":",
    "wd:Q42", "Q" + "9" * 400, "0000-00-00", "9999-99-99", "1e400", "\n" * 1_000, "٣", "_:b", "<>", [], {}, [[]],
    [None], ["\ud800"], {"a": 1}, {"": ""}, ["a"] * 5_000,
)  # fmt: skip
EACH: Final = int(os.environ.get("QUADCITE_TEST_EACH_HOSTILE_VALUE", "24"))
"""An argument takes each of so many values, the next argument the ones after them. All with 1, which takes minutes."""
NOT_FINITE: Final = (float("nan"), float("inf"))
PATH: Final = re.compile(r"Traceback|site-packages|\.py\b|(?<![\w:/.])/(?:tmp|home|root|usr|work|var|etc|opt)/")
LONGEST_MESSAGE: Final = 3_000


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder: Path = tmp_path_factory.mktemp("hostile")
    inbox = folder / "inbox"
    inbox.mkdir()
    settings = Settings(  # type: ignore[call-arg]
        data_dir=folder / "data", models_dir=folder / "none", query_workers=1, ingest_folders=(inbox,), _env_file=None
    )
    fixtures = bundle.folder("fixtures")
    with KnowledgeGraph.open(folder / "data", settings) as kg:
        for domain in ("climate", "hansard", "zoning"):
            load(kg, domain, [str(fixtures / "joined" / domain)])
        load(kg, "wikibase", [str(fixtures / "wikibase")], base="climate")
        with TestClient(create_app(kg), base_url="http://127.0.0.1", raise_server_exceptions=False) as made:
            yield made


def example_of(tool: Tool) -> dict[str, Any]:
    [example] = re.findall(r"Example: (.+?)\.$", tool.description, re.MULTILINE | re.DOTALL)
    call = ast.parse(example, mode="eval").body
    assert isinstance(call, ast.Call)
    return {keyword.arg or "": ast.literal_eval(keyword.value) for keyword in call.keywords}


def calls(tool: Tool) -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
    """Yield the calls of a tool: the example with another value of one argument. All values are in some call."""
    example = example_of(tool)
    first = TOOLS.index(tool)
    for number, name in enumerate(tool.arguments.model_fields, first):
        for value in HOSTILE[number % EACH :: EACH]:
            yield name, value, {**example, name: value}
    for number, name in enumerate(
        SearchFilters.model_fields if "filters" in tool.arguments.model_fields else (), first
    ):
        for value in HOSTILE[number % EACH :: EACH]:
            yield f"filters.{name}", value, {**example, "filters": {name: value}}


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: f"{tool.name}-{'-'.join(sorted(tool.tags))}")
def test_each_argument_is_answered_or_refused_with_a_reason(client: TestClient, tool: Tool) -> None:
    wrong = []
    tag = "?tag=research" if tool.single else ""
    for name, value, arguments in calls(tool):
        answer = client.post(f"/tools/{tool.name}{tag}", content=json.dumps(arguments))
        text = answer.text
        problem = None
        if answer.status_code != 200:
            said = answer.json()
            if not (400 <= answer.status_code < 500 and 10 < len(said["message"]) < LONGEST_MESSAGE and said["code"]):
                problem = text
        leaked = PATH.search(text)
        if leaked is not None and not (isinstance(value, str) and leaked[0] in value):
            problem = text[max(0, leaked.start() - 100) :]
        if problem is not None:
            wrong.append((name, repr(value)[:60], answer.status_code, problem[:300]))
    assert wrong == []


@pytest.mark.parametrize("value", NOT_FINITE)
def test_a_number_that_is_not_finite_is_answered_or_refused(client: TestClient, value: float) -> None:
    for tool in TOOLS:
        for name in tool.arguments.model_fields:
            body = json.dumps({**example_of(tool), name: value})
            assert client.post(f"/tools/{tool.name}", content=body).status_code < 500


@pytest.mark.parametrize("path", ["/mcp/all", "/mcp/research"])
def test_calls_over_mcp_have_no_internal_error(client: TestClient, path: str) -> None:
    version = "2026-07-28"
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    for tool in TOOLS:
        if tool.single != (path == "/mcp/research"):
            continue
        for name, value, arguments in list(calls(tool))[:: 8 if tool.reads else 12]:
            params = {"name": tool.name, "arguments": arguments, "_meta": meta}
            answer = client.post(
                path,
                content=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}),
                headers={
                    "Content-Type": "application/json",
                    "Accept": "application/json, text/event-stream",
                    "MCP-Protocol-Version": version,
                    "Mcp-Method": "tools/call",
                    "Mcp-Name": tool.name,
                },
            )
            said = answer.json()
            assert answer.status_code == 200, (tool.name, name, value, said)
            error = said["result"].get("_meta", {}).get("error", {})
            assert error.get("code") != "internal", (tool.name, name, value, error)
