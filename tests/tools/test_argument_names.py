"""Names of arguments: one scheme, and the other names that calls may use."""

from __future__ import annotations

from typing import Any

import pytest

from kg.tools.argument_names import resolve_names
from kg.tools.registry import TOOLS
from kg.vocabulary import BASE, WD


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
