"""What the descriptions of the tools show as an example works as it stands, on the fixtures that ship with kg."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kg import bundle
from kg.knowledge_graph import KnowledgeGraph
from kg.settings import Settings
from kg.tools.registry import CLIMATE, CORE, RESEARCH, TOOLS, Tool, content_of
from loaders.pipeline import load

LISTS = (
    "results",
    "evidence",
    "families",
    "resources",
    "properties",
    "terms",
    "examples",
    "rows",
    "concepts",
    "by_predicate",
    "bins",
    "documents",
    "speakers",
    "groups",
)


@pytest.fixture(scope="module")
def speeches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    """The speeches that ship with kg, loaded, and their folder open to the tool that takes them in."""
    data: Path = tmp_path_factory.mktemp("speeches")
    folder = bundle.folder("fixtures") / "hansard"
    settings = Settings(data_dir=data, models_dir=data / "none", ingest_folders=(folder,), _env_file=None)  # type: ignore[call-arg]
    with KnowledgeGraph.open(data, settings) as opened:
        load(opened, "hansard", [str(folder)])
        opened.load = load
        yield opened


SHOWN = [tool for tool in TOOLS if "zoning" not in tool.tags or tool.tags & {CORE, CLIMATE}]
"""The tools for codes show real towns, which no fixture has; tests/tools/test_zoning_tools.py calls them all."""


@pytest.mark.parametrize("tool", SHOWN, ids=lambda tool: f"{tool.name}-{'-'.join(sorted(tool.tags))}")
def test_the_example_of_a_tool_answers_with_something(request: pytest.FixtureRequest, tool: Tool) -> None:
    kg: KnowledgeGraph = request.getfixturevalue("fixtures" if tool.tags & {CORE, CLIMATE, RESEARCH} else "speeches")
    [example] = re.findall(r"Example: (.+)\.$", tool.description, re.MULTILINE)
    call = ast.parse(example, mode="eval").body
    assert isinstance(call, ast.Call)
    assert ast.unparse(call.func) == tool.name
    arguments = {keyword.arg or "": ast.literal_eval(keyword.value) for keyword in call.keywords}
    content = content_of(tool.call(kg, arguments))
    listed = [content[name] for name in LISTS if name in content]
    assert all(listed)
    assert (
        listed
        or content.get("text")
        or content.get("status")
        or content.get("checked")
        or content.get("full_text")
        or content.get("duplicates_skipped")
    )
