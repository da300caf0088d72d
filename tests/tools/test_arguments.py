"""Arguments as clients send them: other names; null for what is unused, JSON strings, one value in place of a list."""

from __future__ import annotations

import json
from typing import Annotated, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, WithJsonSchema

from kg.errors import InvalidInputError
from kg.tools.arguments import fit, resolve_names
from kg.tools.calls import Tool
from kg.tools.registry import TOOLS
from kg.vocabulary import BASE, WD

ENTRIES = {"type": "array", "items": {"type": "object", "properties": {"note": {"type": "string"}}}}


class Inner(BaseModel):
    codes: list[str] = []
    years: list[int] = []
    most: int | None = None


class Model(BaseModel):
    text: str = ""
    needed: str | None
    either: str | list[str] = ""
    texts: list[str] | None = None
    numbers: list[int] = []
    inner: Inner | None = None
    inners: list[Inner] = []
    free: dict[str, Any] = {}
    anything: Any = None
    entries: Annotated[list[Any], WithJsonSchema(ENTRIES)] = Field([])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"text": None, "texts": None, "needed": None}, {"needed": None}),
        ({"inner": {"codes": None, "most": None, "other": None}}, {"inner": {"other": None}}),
        ({"inner": '{"codes": "KEN", "years": 2020, "most": null}'}, {"inner": {"codes": ["KEN"], "years": [2020]}}),
        ({"inner": {"codes": '["KEN", "BRA"]'}}, {"inner": {"codes": ["KEN", "BRA"]}}),
        ({"inners": {"codes": "KEN"}}, {"inners": [{"codes": ["KEN"]}]}),
        ({"inners": '{"codes": []}'}, {"inners": [{"codes": []}]}),
        ({"inners": ['{"most": 3}']}, {"inners": [{"most": 3}]}),
        ({"inners": '["{\\"most\\": 3}"]'}, {"inners": [{"most": 3}]}),
        ({"texts": "solar", "numbers": 7}, {"texts": ["solar"], "numbers": [7]}),
        ({"numbers": "7"}, {"numbers": ["7"]}),
        ({"numbers": "[7, 8]"}, {"numbers": [7, 8]}),
        ({"text": ["solar"], "inner": [{"most": 3}]}, {"text": "solar", "inner": {"most": 3}}),
        ({"entries": '{"note": null, "more": "[1]"}'}, {"entries": [{"more": "[1]"}]}),
        ({"free": '{"a": "[1]"}', "anything": "[1]"}, {"free": {"a": "[1]"}, "anything": "[1]"}),
        # Texts, not JSON: where a text is declared, and in a list of texts what is not a list of texts.
        ({"text": '["a"]', "either": '["a"]'}, {"text": '["a"]', "either": '["a"]'}),
        ({"texts": "[sic]"}, {"texts": ["[sic]"]}),
        ({"texts": "[2020]"}, {"texts": ["[2020]"]}),
        ({"texts": '{"a": 1}'}, {"texts": ['{"a": 1}']}),
        # Left as they are, to be refused.
        ({"inner": "KEN", "inners": "KEN"}, {"inner": "KEN", "inners": "KEN"}),
        ({"numbers": {"a": 1}}, {"numbers": {"a": 1}}),
        ({"inner": "[" * 100_000}, {"inner": "[" * 100_000}),
    ],
)
def test_values_become_the_declared_types_at_all_levels(given, expected):
    assert fit(given, Model) == expected


TEXTS = st.text() | st.sampled_from(["[]", "{}", "null", "[1]", '["a"]', '{"a": 1}', '"a"'])
INNER = st.fixed_dictionaries(
    {}, optional={"codes": st.lists(TEXTS), "years": st.lists(st.integers()), "most": st.integers()}
)
ARGUMENTS = st.fixed_dictionaries(
    {"needed": TEXTS},
    optional={
        "text": TEXTS, "either": TEXTS | st.lists(TEXTS), "texts": st.lists(TEXTS), "numbers": st.lists(st.integers()),
        "inner": INNER, "inners": st.lists(INNER), "free": st.dictionaries(TEXTS, TEXTS), "anything": TEXTS,
    },
)  # fmt: skip


@given(ARGUMENTS)
def test_arguments_of_the_declared_types_are_unchanged_and_their_json_becomes_them(arguments):
    assert fit(arguments, Model) == arguments
    as_json = {
        name: json.dumps(value) if name in {"inner", "inners", "texts", "numbers", "free"} else value
        for name, value in arguments.items()
    }
    assert fit(as_json, Model) == arguments


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: f"{tool.name}-{sorted(tool.tags)[0]}")
def test_null_of_each_optional_argument_of_a_tool_is_absent(tool: Tool):
    model = tool.arguments
    optional = {name: None for name, field in model.model_fields.items() if not field.is_required()}
    assert (fit if tool.single else resolve_names)(optional, model) == {}


@pytest.mark.parametrize("name", ["top_k", "country", "lang", "max_passages_per_doc"])
def test_null_under_another_name_is_absent(name):
    (search,) = (tool for tool in TOOLS if tool.name == "search" and not tool.single)
    given = {"query": "storm", "limit": 3, "filters": '{"iso3": "KEN", "language": ["en"]}', name: None}
    expected = {"query": "storm", "limit": 3, "filters": {"iso3": ["KEN"], "language": ["en"]}}
    assert resolve_names(given, search.arguments) == expected
    assert resolve_names({"query": "storm", "country": "KEN", "filters": "{}"}, search.arguments) == {
        "query": "storm",
        "filters": {"iso3": ["KEN"]},
    }
    assert "unheard_of" in resolve_names({"query": "storm", "unheard_of": None}, search.arguments)


@pytest.mark.parametrize("filters", ["KEN", ["KEN"], 5])
def test_filters_that_are_no_object_are_refused_with_an_example(filters: Any) -> None:
    search = next(tool for tool in TOOLS if tool.name == "search")
    with pytest.raises(InvalidInputError, match=r'filters: an object is expected, as in \{"iso3": \["[^"]+"\]\}'):
        search.content(cast("Any", None), {"query": "x", "filters": filters})


def resolved(name: str, **given: Any) -> dict[str, Any]:
    tool = next(tool for tool in TOOLS if tool.name == name)
    return resolve_names(given, tool.arguments)


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("search", {"query": "x", "iso3": "BRA"}, {"query": "x", "filters": {"iso3": ["BRA"]}}),
        ("search", {"q": "x", "place": "BRA"}, {"query": "x", "filters": {"place": ["BRA"]}}),
        (
            "search",
            {"query": "x", "filters": {"iso3": ["BRA"]}, "language": "en"},
            {"query": "x", "filters": {"iso3": ["BRA"], "language": ["en"]}},
        ),
        ("search_speeches", {"query": "x", "limit": 3}, {"query": "x", "top_k": 3}),
        ("search_speeches", {"query": "x", "since": "2024-01-01"}, {"query": "x", "date_from": "2024-01-01"}),
        ("sparql", {"query": "ASK {}", "max_rows": 7}, {"query": "ASK {}", "limit": 7}),
        ("concept_find", {"query": "solar"}, {"q": "solar"}),
        ("concept_mentions", {"qid": "Q1"}, {"qids": ["Q1"]}),
        ("fetch", {"iri": "cpr://doc/x"}, {"id": "cpr://doc/x"}),
        ("fetch", {"id": "id/speech/1"}, {"id": f"{BASE}id/speech/1"}),
        ("concept_neighbors", {"id": "wd:Q42"}, {"qid": f"{WD.iri}Q42"}),
        ("policy_lineage", {"slug": "a-family"}, {"family_slug": "a-family"}),
        ("jurisdiction_overview", {"country": "BRA"}, {"iso3": "BRA"}),
        (
            "kg_query_section",
            {"place": "Quarry Bend, UT", "id": "17.12"},
            {"municipality": "Quarry Bend", "state": "UT", "section_id": "17.12"},
        ),
    ],
)
def test_other_names_of_arguments_are_accepted(name, given, expected):
    assert resolved(name, **given) == expected


def test_an_argument_under_two_names_is_refused():
    assert resolved("sparql", query="x", limit=3, max_rows=4) == {"query": "x", "limit": 3, "max_rows": 4}
    given = {"query": "x", "filters": {"iso3": ["BRA"]}, "iso3": "DJI"}
    assert resolved("search", **given) == given


def test_ids_of_documents_and_speeches_are_unchanged():
    ids = ["cpr://doc/x#p=3", "b6272e0d-afe9-42b1", "https://example.org/a", "17.12.040(a)"]
    assert resolved("fetch", ids=ids) == {"ids": ids}


def test_every_tool_lists_the_same_name_for_the_size_of_a_page():
    for tool in TOOLS:
        assert not {"max_rows", "max_results", "page_size"} & set(tool.arguments.model_fields)
