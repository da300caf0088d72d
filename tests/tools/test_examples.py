"""What the descriptions of the tools show as an example works as it stands, on the fixtures that ship with kg."""

from __future__ import annotations

import ast
import re

import pytest

from kg.knowledge_graph import KnowledgeGraph
from kg.tools.registry import TOOLS, Tool, content_of

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
)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: f"{tool.name}-{'-'.join(sorted(tool.tags))}")
def test_the_example_of_a_tool_answers_with_something(fixtures: KnowledgeGraph, tool: Tool) -> None:
    [example] = re.findall(r"Example: (.+)\.$", tool.description, re.MULTILINE)
    call = ast.parse(example, mode="eval").body
    assert isinstance(call, ast.Call)
    assert ast.unparse(call.func) == tool.name
    arguments = {keyword.arg or "": ast.literal_eval(keyword.value) for keyword in call.keywords}
    content = content_of(tool.call(fixtures, arguments))
    listed = [content[name] for name in LISTS if name in content]
    assert all(listed)
    assert listed or content.get("text") or content.get("status") or content.get("checked")
