"""Claims of entities: their values, ranks, qualifiers and references, and ids of every form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kg import bundle
from kg.errors import InvalidInputError, NotFoundError
from kg.tools.registry import TOOLS
from kg.tools.wikidata.entity_ids import parse_entity, parse_property
from kg.tools.wikidata.get_claims import get_claims

PERSON, TOWN, LIGHTHOUSE, MERGED = "Q900000001", "Q900000002", "Q900000006", "Q900000010"
FIXTURE = bundle.folder("fixtures") / "wikidata" / "entities.json"


def read_entities(path: Path = FIXTURE) -> dict[str, dict]:
    return {each["id"]: each for each in json.loads(path.read_text("utf-8")) if "id" in each}


def test_each_claim_has_its_guid_rank_qualifiers_and_references(wikidata):
    claims = {}
    for qid in (PERSON, TOWN, LIGHTHOUSE):
        result = get_claims(wikidata, [qid], limit=200)
        assert result.entities[0].qid == qid
        assert result.entities[0].source == "local"
        assert result.entities[0].retrieved
        claims |= {claim.guid: claim for claim in result.claims}
    entities = read_entities()
    raw = [
        statement
        for qid in (PERSON, TOWN, LIGHTHOUSE)
        for group in entities[qid]["claims"].values()
        for statement in group
    ]
    assert claims.keys() == {statement["id"] for statement in raw}
    for statement in raw:
        claim = claims[statement["id"]]
        assert claim.rank == statement["rank"]
        assert claim.property == statement["mainsnak"]["property"]
        assert {each.property for each in claim.qualifiers} == set(statement.get("qualifiers", {}))
        hashes = {reference["hash"] for reference in statement.get("references", ())}
        assert {reference.hash for reference in claim.references} == hashes
        kind = statement["mainsnak"]["snaktype"]
        assert (claim.value.type in ("somevalue", "novalue")) == (kind != "value")
        if kind != "value":
            assert claim.value.type == kind


def test_values_are_shown_as_far_as_they_are_known(wikidata):
    values = {claim.property: claim.value for claim in get_claims(wikidata, [LIGHTHOUSE], limit=50).claims}
    assert (values["P2048"].value, values["P2048"].unit, values["P2048"].lower) == ("38.5", "Q11573", "38")
    assert (values["P17"].value, values["P17"].label) == ("Q900000007", "Skarland")
    assert values["P571"].type == "somevalue"
    assert values["P900000001"].value == "red"
    born = get_claims(wikidata, [PERSON], properties=["P569", "P570"]).claims
    assert [(each.value.value, each.value.precision, each.rank, each.best) for each in born] == [
        ("1861-04-07", "day", "normal", True),
        ("1863", "year", "deprecated", False),
        ("1932", "year", "normal", True),
    ]


def test_a_preferred_rank_is_the_best_and_comes_first(wikidata):
    ranks = [(claim.rank, claim.best) for claim in get_claims(wikidata, [TOWN], properties=["P1082"]).claims]
    assert ranks == [("preferred", True), ("normal", False), ("normal", False)]
    assert len(get_claims(wikidata, [TOWN], properties=["P1082"], best=True).claims) == 1


def test_pages_neither_repeat_nor_omit_a_claim(wikidata):
    whole = [claim.guid for claim in get_claims(wikidata, [PERSON, TOWN], limit=200).claims]
    paged, offset = [], 0
    while offset is not None:
        result = get_claims(wikidata, [PERSON, TOWN], limit=7, offset=offset)
        paged += [claim.guid for claim in result.claims]
        offset = result.next_offset
    assert paged == whole
    assert len(set(whole)) == len(whole)


def test_a_merged_id_leads_to_its_target_and_says_so(wikidata):
    result = get_claims(wikidata, [MERGED], properties=["P19"])
    assert (result.entities[0].qid, result.entities[0].redirected_from) == (PERSON, MERGED)
    assert result.claims[0].qid == PERSON
    assert result.notes


def test_unknown_ids_are_named_and_others_answer(wikidata):
    result = get_claims(wikidata, [TOWN, "Q77"])
    assert [each.id for each in result.not_found] == ["Q77"]
    assert result.claims
    with pytest.raises(NotFoundError, match="Q77"):
        get_claims(wikidata, ["Q77"])


@pytest.mark.parametrize(
    "text",
    ["Q42", "q42", " Q42 ", "wd:Q42", "<http://www.wikidata.org/entity/Q42>", "https://www.wikidata.org/wiki/Q42"],
)
def test_forms_of_an_id_are_the_same_entity(text):
    assert parse_entity("qids", text) == "http://www.wikidata.org/entity/Q42"


@pytest.mark.parametrize(
    ("text", "advice"),
    [("Q 42", "Q42"), ("q 042", "Q42"), ("Douglas", "vector_search"), ("cpr://concept/Q1012", "concept_find")],
)
def test_other_ids_are_refused_with_what_is_valid(text, advice):
    with pytest.raises(InvalidInputError, match=advice):
        parse_entity("qids", text)


def test_an_item_is_no_property():
    assert parse_property("properties", "wdt:P19") == "P19"
    with pytest.raises(InvalidInputError, match="P31"):
        parse_property("properties", "Q19")


def test_an_iri_of_another_wikibase_stays():
    iri = "https://wikibase.example.org/entity/Q42"
    assert parse_entity("qids", iri) == iri


def test_canonical_tools_have_the_published_tags_and_scopes():
    published = {tool.name: (sorted(tool.tags), sorted(tool.fact_scopes)) for tool in TOOLS if tool.published}
    assert published == {
        "wikidata.vector_search_items": (["items", "vector", "wikidata"], ["entities", "facts"]),
        "wikidata.vector_search_properties": (["properties", "vector", "wikidata"], ["properties"]),
        "wikidata.get_claims": (["claims", "provenance", "wikidata"], []),
        "wikidata.sparql": (["provenance", "sparql", "wikidata"], []),
    }
