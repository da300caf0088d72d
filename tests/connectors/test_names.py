"""Names of tools and arguments, translated both ways."""

from __future__ import annotations

import pytest

from kg.connectors.names import TOOLS, RemoteSchema, to_canonical, to_canonical_arguments, translate

NEW = [
    RemoteSchema("search_items", ["query", "lang"], ["query"]),
    RemoteSchema("search_properties", ["query", "lang"], ["query"]),
    RemoteSchema("get_statements", ["entity_id", "include_external_ids", "lang"], ["entity_id"]),
    RemoteSchema("get_statement_values", ["entity_id", "property_id", "lang"], ["entity_id", "property_id"]),
    RemoteSchema("execute_sparql", ["sparql", "K"], ["sparql"]),
]
OLD = [
    RemoteSchema("vector_search_items", ["query", "lang"], ["query"]),
    RemoteSchema("keyword_search_items", ["query", "lang"], ["query"]),
    RemoteSchema("get_entity_claims", ["entity_id", "lang"], ["entity_id"]),
    RemoteSchema("get_claim_values", ["entity_id", "property_id", "lang"], ["entity_id", "property_id"]),
]
OWN = [RemoteSchema("wikidata_get_claims", ["qids", "properties"], ["qids"], ["qids", "properties"])]


@pytest.mark.parametrize(
    ("variant", "name"),
    [
        ("get_entity_claims", "wikidata.get_claims"),
        ("get_statements", "wikidata.get_claims"),
        ("get_statement_values", "wikidata.get_claims"),
        ("get_claim_values", "wikidata.get_claims"),
        ("get_claims", "wikidata.get_claims"),
        ("wikidata.get_claims", "wikidata.get_claims"),
        ("wikidata_get_claims", "wikidata.get_claims"),
        ("wikidata-execute_sparql", "wikidata.sparql"),
        ("execute_sparql", "wikidata.sparql"),
        ("search_items", "wikidata.vector_search_items"),
        ("vector_search_items", "wikidata.vector_search_items"),
        ("search_properties", "wikidata.vector_search_properties"),
        ("delete_everything", "delete_everything"),
        ("wikidata.delete_everything", "wikidata.delete_everything"),
        ("get_claims_of_a_lawyer", "get_claims_of_a_lawyer"),
    ],
)
def test_a_variant_has_its_canonical_name_and_an_unknown_name_its_own(variant, name):
    assert to_canonical(variant) == name


def test_no_variant_belongs_to_two_tools():
    names = [variant for tool in TOOLS.values() for variant in (tool.name, *tool.variants)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("listed", "arguments", "calls"),
    [
        (
            NEW,
            {"qids": ["Q1", "Q2"]},
            [("get_statements", {"entity_id": "Q1"}), ("get_statements", {"entity_id": "Q2"})],
        ),
        (OLD, {"qids": ["Q1"]}, [("get_entity_claims", {"entity_id": "Q1"})]),
        (
            NEW,
            {"qids": ["Q1"], "properties": ["P1", "P2"]},
            [
                ("get_statement_values", {"entity_id": "Q1", "property_id": "P1"}),
                ("get_statement_values", {"entity_id": "Q1", "property_id": "P2"}),
            ],
        ),
        (
            OLD,
            {"entity_id": "Q1", "property_id": "P1"},
            [("get_claim_values", {"entity_id": "Q1", "property_id": "P1"})],
        ),
        (OLD[:3], {"qids": ["Q1"], "properties": ["P1"]}, [("get_entity_claims", {"entity_id": "Q1"})]),
        (OWN, {"qids": ["Q1", "Q2"]}, [("wikidata_get_claims", {"qids": ["Q1", "Q2"]})]),
        (OLD[3:], {"qids": ["Q1"]}, None),
        ([], {"qids": ["Q1"]}, None),
    ],
)
def test_a_call_of_get_claims_is_translated_to_what_the_server_lists(listed, arguments, calls):
    found = translate("wikidata.get_claims", arguments, listed)
    assert (None if found is None else [(call.tool, dict(call.arguments)) for call in found]) == calls


def test_arguments_that_only_limit_are_left_out_and_others_are_not():
    [call] = translate("wikidata.sparql", {"query": "SELECT 1", "limit": 5}, NEW)
    assert dict(call.arguments) == {"sparql": "SELECT 1", "K": 5}
    [call] = translate("wikidata.vector_search_items", {"query": "x", "limit": 5}, OLD)
    assert (call.tool, dict(call.arguments)) == ("vector_search_items", {"query": "x"})
    assert translate("wikidata.vector_search_items", {"query": "x"}, [RemoteSchema("search_items", ["name"])]) is None


def test_arguments_of_the_server_are_translated_back():
    assert to_canonical_arguments("get_entity_claims", {"entity_id": "Q937", "lang": "de", "odd": 1}) == {
        "qids": ["Q937"],
        "language": "de",
        "odd": 1,
    }
    assert to_canonical_arguments("execute_sparql", {"sparql": "ASK {}", "K": 3}) == {"query": "ASK {}", "limit": 3}
    assert to_canonical_arguments("other", {"entity_id": "Q1"}) == {"entity_id": "Q1"}


@pytest.mark.parametrize("tool", TOOLS)
def test_translation_there_and_back_keeps_the_call(tool):
    arguments = {"wikidata.get_claims": {"qids": ["Q1"], "properties": ["P1"]}, "wikidata.sparql": {"query": "ASK {}"}}
    given = arguments.get(tool, {"query": "x"})
    [call] = translate(tool, given, NEW)
    assert to_canonical(call.tool) == tool
    assert to_canonical_arguments(call.tool, call.arguments) == given
