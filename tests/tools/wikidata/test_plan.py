"""Plans: the tools for a scope in the right order, selected by their tags and scopes."""

from __future__ import annotations

import pytest

from kg.connectors.names import TOOLS
from kg.tools.wikidata.plan import build_steps, plan_facts


@pytest.mark.parametrize(
    ("scope", "tools"),
    [
        ("facts", ["wikidata_vector_search_items", "wikidata_get_claims", "wikidata_sparql"]),
        ("entities", ["wikidata_vector_search_items", "wikidata_get_claims"]),
        ("properties", ["wikidata_vector_search_properties"]),
    ],
)
def test_a_scope_selects_the_tools_in_order(wikidata, scope, tools):
    plan = plan_facts(wikidata, "Ilsabet Varrow's birthplace", scope=scope)
    assert [step.tool for step in plan.steps] == tools
    assert plan.properties == ["P19"]


def test_steps_name_the_item_and_the_properties_that_the_question_asks_for(wikidata):
    search, claims, proof = plan_facts(wikidata, "What was the population of Marrowick in 2011?").steps
    assert search.arguments["query"] == "marrowick"
    assert claims.arguments["properties"] == ["P1082"]
    assert "wikibase:DeprecatedRank" in proof.arguments["query"]


def test_a_question_without_a_form_is_searched_as_a_whole(wikidata):
    plan = plan_facts(wikidata, "something about tides")
    assert plan.steps[0].arguments["query"] == "something about tides"
    assert plan.notes


def test_a_kind_without_a_tool_has_no_step():
    tools = [tool for name, tool in TOOLS.items() if name != "wikidata.sparql"]
    assert [step.tool for step in build_steps(tools, "facts", "x", [])] == [
        "wikidata.vector_search_items",
        "wikidata.get_claims",
    ]
