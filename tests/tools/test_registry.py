"""What the list of tools promises: documented, bounded, and strict about arguments."""

from __future__ import annotations

import pytest

from kg.errors import InvalidInputError
from kg.tools import registry
from kg.tools.answers import content_of
from kg.tools.mounts import CORE, RESEARCH
from kg.tools.registry import TOOLS


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: f"{tool.name}-{'-'.join(sorted(tool.tags))}")
def test_a_tool_says_when_to_use_it_what_comes_back_and_what_next(tool):
    assert "Use " in tool.description
    assert "Example: " in tool.description
    assert "Next: " in tool.description
    assert len(tool.description) < 1_000
    assert tool.result.model_json_schema()["type"] == "object"


@pytest.mark.parametrize("tag", sorted({tag for tool in TOOLS for tag in tool.tags}))
def test_the_tools_of_a_tag_are_made_once(tag):
    first, second = registry.tagged(tag), registry.tagged(tag)
    assert all(one is other and one.arguments is other.arguments for one, other in zip(first, second, strict=True))


def test_the_research_pair_takes_exactly_one_argument_each():
    pair = {tool.name: list(tool.arguments.model_fields) for tool in TOOLS if RESEARCH in tool.tags}
    assert pair == {"search": ["query"], "fetch": ["id"]}


def test_lists_come_in_pages():
    # The schema, rows and findings are cut by size, examples and related texts are the few nearest, and health is no
    # list.
    sized = {"describe_schema", "sparql", "sparql_examples", "related", "validate", "health"}
    listing = [tool for tool in TOOLS if CORE in tool.tags and tool.name not in sized]
    assert all({"limit", "offset"} <= set(tool.arguments.model_fields) for tool in listing)


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("search", {}, "query"),
        ("search", {"query": "x", "frobnicate": 1}, "frobnicate"),
        (
            "search",
            {"query": "x", "filters": {"country": ["DJI"]}},
            r"filters\.country.*filters: iso3, place, language, ",
        ),
        ("search", {"query": "x", "limit": 1_000_000}, "limit"),
        ("search", {"query": "x" * 100_000}, "query"),
        ("search", {"query": ["x", "y"]}, "query"),
        ("search", {"query": "x", "filters": {"iso3": 3}}, r"filters\.iso3.* list"),
        ("fetch", {"ids": {"id": "cpr://doc/x"}}, "ids"),
        ("family_overview", {"iso3": ["X" * 400]}, "iso3"),
    ],
)
def test_wrong_arguments_are_named(kg, name, arguments, says):
    tool = next(tool for tool in TOOLS if tool.name == name)
    with pytest.raises(InvalidInputError, match=says) as caught:
        tool.call(kg, arguments)
    assert len(str(caught.value)) < 1_000


def test_what_is_absent_is_not_sent(kg):
    tool = next(tool for tool in TOOLS if tool.name == "search" and RESEARCH in tool.tags)
    assert set(content_of(tool.call(kg, {"query": "solar"}))) == {"uncovered_reason", "results"}
