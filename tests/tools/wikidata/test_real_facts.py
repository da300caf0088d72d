"""Questions about real entities of Wikidata: each answer is checked against the JSON that Wikidata published."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kg.knowledge_graph import KnowledgeGraph
from kg.tools.wikidata.verify import verify_fact
from loaders.sources import load
from tests.conftest import opened

ENTITIES = ("Q2112", "Q217447", "Q22002395", "Q271094", "Q328212", "Q4132785", "Q571", "Q646148")

ANSWERED = (
    ("Where was Veronica Roth born?", "Q328212", "P19", {"Q60"}),
    ("Veronica Anne Roth's birthplace", "Q328212", "P19", {"Q60"}),
    ("When was Veronica Roth born?", "Q328212", "P569", {"1988-08-19"}),
    ("Veronica Roth was born on 19 August 1988", "Q328212", "P569", {"1988-08-19"}),
    ("Veronica Roth was born in August 1988", "Q328212", "P569", {"1988-08-19"}),
    ("What is Veronica Roth's nationality?", "Q328212", "P27", {"Q30"}),
    ("Which universities did Veronica Roth attend?", None, None, set()),
    ("Where was Veronica Roth educated?", "Q328212", "P69", {"Q309350", "Q4863671"}),
    ("Which language does Veronica Roth speak?", "Q328212", "P1412", {"Q1860"}),
    ("When did Henning Christophersen die?", "Q646148", "P570", {"2016-12-31"}),
    ("Henning Christophersen died in 2016", "Q646148", "P570", {"2016-12-31"}),
    ("Where did Henning Christophersen die?", "Q646148", "P20", {"Q240"}),
    ("Which political party was Henning Christophersen a member of?", "Q646148", "P102", {"Q217321"}),
    ("Which position did Henning Christophersen hold in 1983?", "Q646148", "P39", {"Q5449541", "Q64852347"}),
    ("Which year was Bielefeld founded?", "Q2112", "P571", {"1214"}),
    ("Bielefeld was founded in 1214.", "Q2112", "P571", {"1214"}),
    ("population of Bielefeld in 2011", "Q2112", "P1082", {"327199"}),
    ("How many people lived in Bielefeld in 2000?", "Q2112", "P1082", {"321758"}),
    ("What is the population of Bielefeld?", "Q2112", "P1082", {"334002"}),
    ("Bielefeld has about 334,000 inhabitants", "Q2112", "P1082", {"334002"}),
    ("Which country is Bielefeld in?", "Q2112", "P17", {"Q183"}),
    ("Which country was Bielefeld in in 1960?", "Q2112", "P17", {"Q713750"}),
    ("Who was the mayor of Bielefeld in 1996?", "Q2112", "P6", {"Q534246"}),
    ("What is the area of Bielefeld?", "Q2112", "P2046", {"258.82"}),
    ("Bielefeld covers an area of 258.82 km²", "Q2112", "P2046", {"258.82"}),
    ("Who wrote Bring the Jubilee?", "Q4132785", "P50", {"Q947986"}),
    ("When was Bring the Jubilee published?", "Q4132785", "P577", {"1953-09-21"}),
    ("In which language is Bring the Jubilee written?", "Q4132785", "P407", {"Q1860"}),
    ("Which country is Verla in?", "Q217447", "P17", {"Q33"}),
    ("What is the population of Neihu District in March 2001?", "Q271094", "P1082", {"253979"}),
    ("Which country does Neihu District belong to?", "Q271094", "P17", {"Q865"}),
    ("Who published Gewissensbisse?", "Q22002395", "P123", {"Q2448947"}),
)
"""Question, item, property, and the values of the claims that answer it; none for one that is not covered."""

CONTRADICTED = (
    ("Veronica Roth was born in 1989", "Q328212", "P569", {"1988-08-19"}),
    ("Bielefeld was founded in 1300", "Q2112", "P571", {"1214"}),
    ("Bielefeld has 327,199 inhabitants", "Q2112", "P1082", {"334002"}),  # which was so in 2011
    ("Henning Christophersen died on 1 January 2017", "Q646148", "P570", {"2016-12-31"}),
)

REFUSED = (
    "Where did Veronica Roth die?",
    "Where was Bielefeld born?",
    "What is the capital of Bielefeld?",
    "population of Bielefeld in 1850",
    "What is the population of Verla?",
    "When was Verla founded?",
    "Who is Henning Christophersen's mother?",
    "When did Bielefeld join the Hanseatic League?",
    "Why is Bielefeld said not to exist?",
    "Was Veronica Roth not born in New York?",
    "How many copies of Bring the Jubilee were sold?",
    "Which award did Henning Christophersen refuse?",
    "Who wrote Divergent?",
    "When was Albert Einstein born?",
    "books of the moon by Roth and sons",
)


@pytest.fixture(scope="module")
def real(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    folder = shared / "data" / "wikibase" / "json"
    with opened(tmp_path_factory.mktemp("facts") / "data") as graph:
        load(graph, "wikibase", [str(folder / f"{qid}.json") for qid in ENTITIES])
        yield graph


@pytest.fixture(scope="module")
def published(shared: Path) -> dict[str, dict[str, Any]]:
    found = {}
    for qid in ENTITIES:
        content = json.loads((shared / "data" / "wikibase" / "json" / f"{qid}.json").read_text("utf-8"))
        found[qid] = content.get("entities", {qid: content})[qid]
    return found


def value_of(snak: dict[str, Any]) -> str | None:
    if snak["snaktype"] != "value":
        return None
    value = snak["datavalue"]["value"]
    if isinstance(value, str):
        return value
    if "time" in value:
        length = {9: 4, 10: 7, 11: 10}[value["precision"]]
        return value["time"][1 : 1 + length]
    return value.get("id") or value.get("amount", "").removeprefix("+")


def find_published(entity: dict[str, Any], property_id: str, values: set[str]) -> dict[str, dict[str, Any]]:
    """The claims that are not deprecated, with one of the values, by GUID."""
    return {
        claim["id"]: claim
        for claim in entity["claims"][property_id]
        if claim["rank"] != "deprecated" and value_of(claim["mainsnak"]) in values
    }


@pytest.mark.parametrize(("question", "qid", "property_id", "values"), ANSWERED)
def test_the_claims_that_answer_are_those_that_wikidata_published(real, published, question, qid, property_id, values):
    result = verify_fact(real, question)
    if qid is None:
        assert result.verdict == "not found"
        return
    assert (result.verdict, result.read.item, result.read.property) == ("supported", qid, property_id)
    known = find_published(published[qid], property_id, values)
    assert {each.claim.value.value for each in result.results} == values
    for each in result.results:
        claim, found = known[each.claim.guid], each.metadata.wikidata
        assert (found.claimGuid, found.qid, found.rank) == (claim["id"], qid, claim["rank"])
        assert {one.hash for one in found.references} == {one["hash"] for one in claim.get("references", ())}
        assert each.proved


@pytest.mark.parametrize(("statement", "qid", "property_id", "values"), CONTRADICTED)
def test_the_claims_that_contradict_are_those_that_wikidata_published(
    real, published, statement, qid, property_id, values
):
    result = verify_fact(real, statement)
    assert result.verdict == "contradicted"
    known = find_published(published[qid], property_id, values)
    assert {each.claim.guid for each in result.results} <= known.keys()


@pytest.mark.parametrize("question", REFUSED)
def test_what_they_do_not_answer_is_not_found(real, question):
    result = verify_fact(real, question)
    assert (result.verdict, result.results) == ("not found", [])
    assert result.reason
