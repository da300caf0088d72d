"""Facts about entities that no local graph describes, from an MCP server on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kg.connectors.client import Connectors
from kg.connectors.service_map import build_service_map
from kg.connectors.wikidata_texts import parse_found
from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.observability import observe_call
from kg.tools.registry import get
from kg.vocabulary import mint
from loaders.sources import load
from tests.connectors.conftest import entry, settings_of
from tests.connectors.wikidata_server import OWN, REAL, WikidataServer, read_entities, serving
from tests.folders import open_graph

BORN = "Where was Marit Osterlund born?"
GUID = "Q9100011$22222222-AAAA-4AAA-8AAA-00000000000"


@pytest.fixture(scope="module")
def upstream() -> Iterator[WikidataServer]:
    with serving() as server:
        yield server


@pytest.fixture
def server(upstream: WikidataServer) -> WikidataServer:
    upstream.faults.mode = "normal"
    upstream.faults.requests.clear()
    return upstream


@contextmanager
def opened(folder: Path) -> Iterator[KnowledgeGraph]:
    """An empty graph that can store entities of servers."""
    with open_graph(folder / "data") as graph:
        yield graph


@pytest.fixture
def kg(tmp_path: Path) -> Iterator[KnowledgeGraph]:
    with opened(tmp_path) as graph:
        yield graph


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    """A graph for questions that do not depend on what was asked before."""
    with opened(tmp_path_factory.mktemp("asked")) as graph:
        yield graph


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    """A graph in which nothing is stored."""
    with opened(tmp_path_factory.mktemp("bare")) as graph:
        yield graph


def connect(kg: KnowledgeGraph, url: str, **settings) -> None:
    given = settings_of(kg.settings.data_dir.parent, entry(url), **{"connector_timeout_s": 30.0, **settings})
    kg.connectors = Connectors.from_settings(given)
    kg.settings = kg.settings.model_copy(
        update={name: getattr(given, name) for name in ("connector_timeout_s", "connector_entities")}
    )


def verify(kg: KnowledgeGraph, question: str) -> dict:
    return get("verify_fact").content(kg, {"question": question, "detail": "full"})


def claims_of(kg: KnowledgeGraph, **arguments) -> dict:
    return get("wikidata.get_claims").content(kg, {"detail": "full", **arguments})


def graph_of(entity_id: str):
    return mint("graph", "src", "wikibase-remote", entity_id)


def test_a_fact_that_only_a_server_knows_is_proved_and_local_the_next_time(kg, server):
    connect(kg, server.url)
    with observe_call("verify_fact", "test") as steps:
        found = verify(kg, BORN)
    assert found["verdict"] == "supported"
    [result] = found["results"]
    assert result["proved"]
    about = result["metadata"]["wikidata"]
    assert (about["qid"], about["claimGuid"], about["source"]) == ("Q9100011", GUID + "2", "remote")
    assert about["retrieved"]
    assert result["claim"]["value"]["label"] == "Port Elster"
    assert "degraded" not in found
    assert [step for step in steps if ":" not in step] == [
        "wikidata.vector_search_items",
        "wikidata.get_claims",
        "wikidata.sparql",
    ]
    assert steps[1:3] == ["wikidata:wikidata.vector_search_items", "wikidata:wikidata.sparql"]
    assert kg.store.graph(graph_of("Q9100011"))
    asked = len(server.calls())
    server.faults.mode = "busy"
    again = verify(kg, BORN)
    assert again["results"][0]["metadata"] == result["metadata"]
    assert "degraded" not in again
    assert len(server.calls()) == asked


def test_the_claim_is_explained_by_its_origin(kg, server):
    connect(kg, server.url)
    verify(kg, BORN)
    said = get("why").content(
        kg,
        {
            "triple": [
                "<http://www.wikidata.org/entity/Q9100011>",
                "<http://www.wikidata.org/prop/direct/P19>",
                "<http://www.wikidata.org/entity/Q9100010>",
            ]
        },
    )
    text = json.dumps(said)
    assert f"{server.url}#Q9100011" in text
    assert "wikibase-remote" in text


@pytest.mark.long
@pytest.mark.parametrize(
    ("question", "verdict"),
    [
        ("When was Marit Osterlund born?", "supported"),
        ("Marit Osterlund was born on 14 March 1851.", "supported"),
        ("Marit Osterlund was born on 15 March 1851.", "contradicted"),
        ("Marit Osterlund was born in Port Elster.", "supported"),
        ("Marit Osterlund was born in North Elster.", "not found"),
        ("What is the population of Port Elster?", "supported"),
        ("What was the population of Port Elster in 1990?", "supported"),
        ("When did Marit Osterlund die?", "not found"),
        ("Where was Nobody Atall born?", "not found"),
        ("What is the airspeed of an unladen swallow?", "not found"),
    ],
)
def test_questions_are_judged_as_if_the_entities_were_local(asked, server, question, verdict):
    connect(asked, server.url)
    found = verify(asked, question)
    assert found["verdict"] == verdict
    assert "degraded" not in found


@pytest.mark.parametrize("mode", ["busy", "html", "wrong", "huge", "cut"])
def test_a_server_that_fails_leaves_the_local_answer_and_a_note(bare, server, mode):
    connect(bare, server.url, connector_timeout_s=2.0)
    server.faults.mode = mode
    found = verify(bare, BORN)
    assert (found["verdict"], found["degraded"]) == ("not found", "local")
    assert any("remote server" in note for note in found["notes"])
    with pytest.raises(NotFoundError, match="remote server"):
        claims_of(bare, qids=["Q9100011"])


@pytest.mark.long
def test_a_server_that_is_down_and_back(kg, tmp_path):
    with serving() as server:
        connect(kg, server.url, connector_timeout_s=3.0)
        server.stop()
        assert verify(kg, BORN)["degraded"] == "local"
        server.start()
        assert verify(kg, BORN)["verdict"] == "supported"


def test_an_entity_that_is_local_is_not_asked_for(kg, server, tmp_path):
    file = tmp_path / "marit.json"
    file.write_text(json.dumps(read_entities(OWN)["Q9100011"]))
    load(kg, "wikibase", [str(file)])
    connect(kg, server.url)
    found = verify(kg, BORN)
    assert found["results"][0]["metadata"]["wikidata"]["source"] == "local"
    assert claims_of(kg, qids=["Q9100011"])["entities"][0]["source"] == "local"
    assert server.calls() == []


@pytest.mark.long
def test_claims_of_local_and_remote_entities_are_one_answer(kg, server, tmp_path):
    file = tmp_path / "port.json"
    file.write_text(json.dumps(read_entities(OWN)["Q9100010"]))
    load(kg, "wikibase", [str(file)])
    connect(kg, server.url)
    found = claims_of(kg, qids=["Q9100010", "Q9100011", "Q424242"])
    assert {each["qid"]: each["source"] for each in found["entities"]} == {"Q9100010": "local", "Q9100011": "remote"}
    assert {each["guid"][:8] for each in found["claims"]} == {"Q9100010", "Q9100011"}
    assert [each["id"] for each in found["not_found"]] == ["Q424242"]
    assert kg.store.graph(graph_of("Q9100010")) == []


@pytest.mark.long
@pytest.mark.parametrize("names", ["no sparql", "old"])
def test_claims_that_are_not_stored_are_stated_and_decide_nothing(kg, names):
    with serving(names=names) as server:
        connect(kg, server.url, connector_entities=0)
        found = claims_of(kg, qids=["Q9100011"], properties=["P19"])
        assert [each["value"]["value"] for each in found["claims"]] == ["Q9100010", "Q9100012"]
        assert [each["rank"] for each in found["claims"]] == ["normal", "deprecated"]
        assert found["entities"][0]["source"] == "remote"
        assert "graph" not in found["entities"][0]
        verdict = verify(kg, BORN)
        assert verdict["verdict"] == "not found"
        assert "results" not in verdict or verdict["results"] == []
        nearest = verdict["nearest"][0]
        assert not nearest["proved"]
        guid = None if names == "no sparql" else GUID + "2"
        assert nearest["metadata"]["wikidata"]["claimGuid"] == guid
        assert "sparql" not in nearest["metadata"]["wikidata"]
        assert nearest["metadata"]["wikidata"]["source"] == "remote"
        assert found["claims"][0]["guid"] == guid
        assert any("GUID" in note for note in found["notes"]) is (names == "no sparql")
        assert kg.store.graph(graph_of("Q9100011")) == []


def test_an_agent_plans_with_the_service_map_and_calls_what_it_names(kg, server):
    connect(kg, server.url)
    tools = build_service_map(kg.connectors.manifest, kg.settings)["connectors"][0]["remoteTools"]
    plan = [next(tool["name"] for tool in tools if tag in tool["tags"]) for tag in ("vector", "claims", "sparql")]
    assert plan == ["wikidata.vector_search_items", "wikidata.get_claims", "wikidata.sparql"]
    remote = kg.connectors.servers["wikidata"]
    [found] = parse_found(remote.call(plan[0], {"query": "Marit Osterlund"})[0].text)
    [claims] = remote.call(plan[1], {"qids": [found.id], "properties": ["P19"]})
    assert "Port Elster (Q9100010)" in claims.text
    [proof] = remote.call(plan[2], {"query": f"SELECT ?s {{ <http://www.wikidata.org/entity/{found.id}> ?p ?s }}"})
    assert found.id in proof.text
    assert next(tool["name"] for tool in tools if "properties" in tool.get("scopes", ())).endswith("properties")


def test_without_connectors_nothing_is_noted(bare):
    bare.connectors = Connectors()
    found = verify(bare, BORN)
    assert found["verdict"] == "not found"
    assert "degraded" not in found


ANSWERED = (
    ("Where was Veronica Roth born?", "Q328212", "P19"),
    ("When was Veronica Roth born?", "Q328212", "P569"),
    ("Veronica Roth was born on 19 August 1988.", "Q328212", "P569"),
    ("Veronica Roth was born in 1988.", "Q328212", "P569"),
    ("What is the population of Bielefeld?", "Q2112", "P1082"),
    ("What was the population of Bielefeld in 2013?", "Q2112", "P1082"),
    ("What is the area of Bielefeld?", "Q2112", "P2046"),
    ("In which country is Bielefeld?", "Q2112", "P17"),
    ("Who is the mayor of Bielefeld?", "Q2112", "P6"),
    ("What is the elevation of Bielefeld?", "Q2112", "P2044"),
    ("When was Henning Christophersen born?", "Q646148", "P569"),
    ("When did Henning Christophersen die?", "Q646148", "P570"),
    ("Where did Henning Christophersen die?", "Q646148", "P20"),
    ("Where was Henning Christophersen born?", "Q646148", "P19"),
    ("Henning Christophersen was born on 8 November 1939.", "Q646148", "P569"),
    ("Henning Christophersen died on 31 December 2016.", "Q646148", "P570"),
    ("In which country is Neihu District?", "Q271094", "P17"),
    ("What is the area of Neihu District?", "Q271094", "P2046"),
    ("Who wrote Bring the Jubilee?", "Q4132785", "P50"),
    ("When was Bring the Jubilee published?", "Q4132785", "P577"),
    ("In which country is Verla?", "Q217447", "P17"),
)
"""Questions that the real entities answer, with item and property."""
UNANSWERED = (
    "What is the capital of Bielefeld?",
    "Who is the spouse of Veronica Roth?",
    "When did Veronica Roth die?",
    "What is the population of Verla?",
    "What was the population of Bielefeld in 1734?",
    "Where was Zork Unknown born?",
    "Henning Christophersen was not born in 1939.",
    "Was ist die Einwohnerzahl von Bielefeld?",
    "Who wrote Bielefeld?",
    "Does Veronica Roth like lemons?",
)


@pytest.mark.exhaustive
@pytest.mark.skipif(not REAL.is_dir(), reason="the real entities are not here")
def test_real_entities_of_a_server_answer_with_the_claims_of_their_json(kg):
    with serving(REAL) as real:
        connect(kg, real.url, connector_timeout_s=120.0)
        wrong = []
        for question, qid, pid in ANSWERED:
            found = verify(kg, question)
            known = {each["id"]: each for each in real.known.entities[qid]["claims"].get(pid, ())}
            guids = [each["metadata"]["wikidata"]["claimGuid"] for each in found.get("results", ())]
            ranks = [known[guid]["rank"] for guid in guids if guid in known]
            if found["verdict"] != "supported" or not guids or len(ranks) != len(guids) or "deprecated" in ranks:
                wrong.append((question, found["verdict"], found["reason"], guids))
        refused = [(question, verify(kg, question)) for question in UNANSWERED]
        wrong += [(question, found["verdict"]) for question, found in refused if found["verdict"] != "not found"]
    assert wrong == []
