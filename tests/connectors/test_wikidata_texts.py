"""Text answers of the published Wikidata MCP server: parsed, and their claims given GUIDs."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.connectors.client import RemoteServer
from kg.connectors.sparql import RemoteSparql, parse_csv
from kg.connectors.wikidata_texts import find_guids, get_remote_claims, parse_claims, parse_found
from kg.errors import InvalidInputError, UpstreamError
from tests.connectors.test_client import connect
from tests.connectors.wikidata_server import OWN, REAL, read_entities, serving

DETAILED = """\
Marit Osterlund (Q9100011): occupation (P106): surveyor (Q11) of (land) (Q12)
  Rank: preferred
  Qualifier:
    - start time (P580): 1979
    - point: in (P585): time: 3 (Q4)
  Reference 1:
    - stated in (P248): Who's Who (Q2567271)
    - quotation (P1683): first line
second line
  Reference 2:
    - reference URL (P854): https://example.org/a: b (c)

Marit Osterlund (Q9100011): motto (P1451): one
two: three
  Rank: deprecated
"""


def test_a_detailed_answer_has_ranks_qualifiers_and_references():
    first, second = parse_claims(DETAILED)
    assert (first.entity, first.snak.property, first.snak.value_id, first.rank) == (
        "Q9100011",
        "P106",
        "Q12",
        "preferred",
    )
    assert [(each.property, each.value, each.value_id) for each in first.qualifiers] == [
        ("P580", "1979", None),
        ("P585", "time: 3 (Q4)", "Q4"),
    ]
    assert [[each.property for each in reference] for reference in first.references] == [["P248", "P1683"], ["P854"]]
    assert first.references[0][1].value == "first line\nsecond line"
    assert first.references[1][0].value == "https://example.org/a: b (c)"
    assert (second.snak.value, second.rank) == ("one\ntwo: three", "deprecated")


def test_an_older_answer_has_qualifiers_in_the_line():
    [claim] = parse_claims("Douglas (Q42): job (P106): novelist (Q6625963) | start (P580): 1979 AD | end (P582): x | y")
    assert claim.snak.value_id == "Q6625963"
    assert [(each.property, each.value) for each in claim.qualifiers] == [("P580", "1979 AD"), ("P582", "x | y")]
    assert claim.rank is None


@pytest.mark.parametrize(
    "text", ["Entity Q99 not found. Try again.", "No statement found for Q1 with property P1.", ""]
)
def test_an_answer_without_claims_is_none(text):
    assert parse_claims(text) == []


@pytest.mark.parametrize(
    "text",
    ["Wikidata is currently unavailable. Please retry shortly.", "Unexpected server error while processing.",
     "<html><body>Log in</body></html>", '{"claims": []}', "I am a language model."],
)  # fmt: skip
def test_another_text_is_an_error_of_the_server_and_not_an_empty_answer(text):
    for parse in (parse_claims, parse_found):
        with pytest.raises(UpstreamError):
            parse(text)


def test_found_entities_have_label_and_description():
    found = parse_found("Q1: a: b — c — d\nQ2:  — \nnoise\nP3: e")
    assert [(each.id, each.label, each.description) for each in found] == [
        ("Q1", "a: b", "c — d"),
        ("Q2", "", ""),
        ("P3", "e", ""),
    ]
    assert parse_found("No matching items found. Try another query.") == []


@given(st.text(max_size=400))
def test_no_text_ends_with_another_error(text):
    for parse in (parse_claims, parse_found):
        with suppress(UpstreamError):
            parse(text)


def binding(property_id: str, guid: str, value: str | None, rank: str = "Normal", kind: str = "literal"):
    said = {
        "property": {"type": "literal", "value": property_id},
        "statement": {"type": "uri", "value": f"http://www.wikidata.org/entity/statement/{guid.replace('$', '-', 1)}"},
        "rank": {"type": "uri", "value": f"http://wikiba.se/ontology#{rank}Rank"},
    }
    return said if value is None else {**said, "value": {"type": kind, "value": value}}


@pytest.mark.parametrize(
    ("written", "value", "alike"),
    [
        ("14 March 1851", "1851-03-14T00:00:00Z", True),
        ("March 1851", "1851-03-01T00:00:00Z", True),
        ("1851", "1851-01-01T00:00:00Z", True),
        ("1851 AD", "1851-01-01T00:00:00Z", True),
        ("44 BC", "-0043-03-15T00:00:00Z", True),
        ("15 March 1851", "1851-03-14T00:00:00Z", False),
        ("1852", "1851-03-14T00:00:00Z", False),
        ("+1851-03-14T00:00:00Z", "1851-03-14T00:00:00Z", True),
        ("41,250", "+41250", True),
        ("41250 inhabitant", "41250", True),
        ("4125", "41250", False),
        ("1851", "1851x", False),
        ("no  value here", "no value here", True),
    ],
)
def test_a_value_agrees_with_the_statement_that_states_it(written, value, alike):
    [claim] = parse_claims(f"a (Q1): b (P1): {written}")
    [guided] = find_guids([claim], [binding("P1", "Q1$A", value)])
    assert (guided.guid == "Q1$A") is alike


def test_a_claim_that_could_be_two_statements_or_shares_one_has_no_guid():
    one, two = parse_claims("a (Q1): b (P1): x\na (Q1): b (P1): y")
    twice = [binding("P1", "Q1$A", "x"), binding("P1", "Q1$B", "x"), binding("P1", "Q1$C", "y")]
    assert [each.guid for each in find_guids([one, two], twice)] == [None, "Q1$C"]
    assert [each.guid for each in find_guids([two, two], twice)] == [None, None]


def test_the_rank_and_the_property_have_to_agree():
    [claim] = parse_claims("a (Q1): b (P1): x\n  Rank: preferred")
    assert find_guids([claim], [binding("P1", "Q1$A", "x")])[0].guid is None
    assert find_guids([claim], [binding("P2", "Q1$A", "x", "Preferred")])[0].guid is None
    assert find_guids([claim], [binding("P1", "Q1$A", "x", "Preferred")])[0].guid == "Q1$A"


def test_unknown_and_no_value_agree_with_their_statements():
    unknown, none = parse_claims("a (Q1): b (P1): unknown value\na (Q1): b (P1): no value")
    statements = [binding("P1", "Q1$A", "b7", kind="bnode"), binding("P1", "Q1$B", None)]
    assert [each.guid for each in find_guids([unknown, none], statements)] == ["Q1$A", "Q1$B"]


def statements_of(entity: dict) -> dict[str, dict]:
    return {each["id"]: each for group in entity["claims"].values() for each in group}


def compare_with_json(remote: RemoteServer, entity: dict) -> tuple[int, int]:
    """Check the claims of an answer against the JSON of their entity; return their number, and that of the GUIDs."""
    known = statements_of(entity)
    by_statement = {guid.casefold(): each for guid, each in known.items()}
    found = get_remote_claims(remote, entity["id"])
    for claim in found.claims:
        if claim.guid is not None:
            statement = by_statement[claim.guid.casefold()]
            snak = statement["mainsnak"]
            assert snak["property"] == claim.snak.property
            assert statement["rank"] != "deprecated"
            value = snak.get("datavalue", {}).get("value")
            if isinstance(value, dict) and "numeric-id" in value:
                assert claim.snak.value_id == value.get("id", f"Q{value['numeric-id']}")
            elif isinstance(value, str):
                assert claim.snak.value.split() == value.split()
    return len(found.claims), sum(claim.guid is not None for claim in found.claims)


def test_the_guids_are_those_of_the_entity(server, tmp_path):
    remote = connect(tmp_path, server.url)
    assert compare_with_json(remote, read_entities(OWN)["Q9100011"]) == (6, 6)
    found = get_remote_claims(remote, "Q9100010", ["P1082"])
    assert [(claim.snak.value, claim.rank, claim.guid[-1:]) for claim in found.claims] == [
        ("41250", "preferred", "2"),
        ("38000", "normal", "3"),
    ]
    assert found.claims[0].references[0][0].value == "https://census.example.org/2019: towns"
    assert found.problem is None
    assert get_remote_claims(remote, "Q424242").claims == []


def test_without_sparql_the_claims_have_no_guid_and_the_reason_is_stated(tmp_path):
    with serving(names="no sparql") as server:
        found = get_remote_claims(connect(tmp_path, server.url), "Q9100011", ["P19"])
        assert [claim.guid for claim in found.claims] == [None, None]
        assert "GUID" in (found.problem or "")


@pytest.mark.exhaustive
@pytest.mark.skipif(not REAL.is_dir(), reason="the real entities are not here")
@pytest.mark.parametrize("names", ["new", "old"])
def test_the_guids_are_those_of_real_entities(tmp_path, names):
    with serving(REAL, names) as server:
        remote = connect(tmp_path, server.url, connector_timeout_s=60.0)
        counts = [
            compare_with_json(remote, entity)
            for entity in server.known.entities.values()
            if isinstance(entity.get("claims"), dict)
        ]
    claims, guided = (sum(each) for each in zip(*counts, strict=True))
    print(f"{names}: {guided} of {claims} claims have a GUID")
    assert guided > claims / 2


def test_terms_keep_their_types_through_csv(server, tmp_path):
    query = """SELECT ?a ?b ?c ?d ?e WHERE {
      BIND(<http://www.wikidata.org/entity/Q5> AS ?a) BIND("x;\\n\\"y\\"" AS ?b) BIND("z"@en-GB AS ?c) BIND(1.50 AS ?d)
      OPTIONAL { <http://none.example.org/> ?p ?e } }"""
    answer = RemoteSparql.of(connect(tmp_path, server.url)).select(query)
    [found] = answer.bindings
    assert found["a"] == {"type": "uri", "value": "http://www.wikidata.org/entity/Q5"}
    assert found["b"] == {"type": "literal", "value": 'x;\n"y"'}
    assert found["c"]["value"] == "z"
    assert found["c"]["xml:lang"].lower() == "en-gb"
    assert found["d"]["datatype"] == "http://www.w3.org/2001/XMLSchema#decimal"
    assert "e" not in found
    assert not answer.truncated


def test_a_query_that_the_server_refuses_is_an_error(server, tmp_path):
    remote = RemoteSparql.of(connect(tmp_path, server.url))
    with pytest.raises(UpstreamError):
        remote.select("SELECT ?a WHERE { broken")
    with pytest.raises(InvalidInputError):
        remote.select("ASK { ?s ?p ?o }")
    assert remote.select("SELECT ?a WHERE { ?a <urn:none> 1 }").bindings == []


def test_columns_may_be_in_any_order_and_absent():
    text = ';b_term;a_term\n0;"x;\n""y""";z\n'
    assert parse_csv(text, ["a_term", "b_term", "c_term"]) == [["z", 'x;\n"y"', ""]]


@pytest.mark.parametrize(
    "text", ["", "Malformed query", ";a\n0", ";b_term\n0;x", json.dumps({"a": 1}), ';a_term\n0;"x']
)
def test_what_is_not_the_csv_is_refused(text):
    with pytest.raises(UpstreamError):
        parse_csv(text, ["a_term"])
