"""Entities that another server answered with: what is stored, its provenance, and what a hostile answer cannot do."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg.connectors.sparql import RemoteSparql
from kg.errors import UpstreamError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.load_records import load_sources
from kg.remote.sparql import Answer
from kg.settings import Settings
from kg.vocabulary import OWL, RDFS, mint
from loaders.sources import load
from loaders.wikibase.graph.remote_entities import DOMAIN, store_entities
from tests.connectors.test_client import connect
from tests.connectors.wikidata_server import OWN, read_entities, serving

WD = "http://www.wikidata.org/"
PORT, MARIT = "Q9100010", "Q9100011"


def graph_of(entity_id: str) -> NamedNode:
    return mint("graph", "src", DOMAIN, entity_id)


@pytest.fixture(scope="module")
def upstream():
    with serving() as server:
        yield server


@pytest.fixture
def kg(tmp_path):
    settings = Settings(data_dir=tmp_path / "data", _env_file=None)
    with KnowledgeGraph.open(tmp_path / "data", settings) as graph:
        yield graph


@pytest.fixture
def endpoint(upstream, tmp_path):
    upstream.faults.mode = "normal"
    return RemoteSparql.of(connect(tmp_path, upstream.url))


def store(kg, endpoint, *ids, most=100):
    return store_entities(kg, endpoint, "wikidata", ids, most=most)


def statements(quads) -> set[str]:
    """The triples, with equal numbers written alike: the server writes them as its engine does."""
    return {f"{quad.subject} {quad.predicate} {quad.object}".replace('"+', '"') for quad in quads}


def test_an_entity_is_stored_as_it_would_be_from_a_file(kg, endpoint, tmp_path):
    assert store(kg, endpoint, MARIT, PORT).stored == [MARIT, PORT]
    remote = {each: statements(kg.store.graph(graph_of(each))) for each in (MARIT, PORT)}
    for entity_id, found in remote.items():
        file = tmp_path / f"{entity_id}.json"
        file.write_text(json.dumps(read_entities(OWN)[entity_id]))
        load(kg, "wikibase", [str(file)])
        assert statements(kg.store.graph(mint("graph", "src", "wikibase", "wikidata", entity_id))) == found


def test_its_provenance_has_the_address_and_the_time(kg, endpoint, upstream):
    before = datetime.now(UTC).replace(microsecond=0)
    store(kg, endpoint, MARIT)
    [sources] = load_sources(kg.store, [graph_of(MARIT)]).values()
    assert list(sources.values()) == [f"{upstream.url}#{MARIT}"]
    [time] = kg.store.query(f"SELECT ?t {{ ?of prov:specializationOf <{next(iter(sources))}> ; kg:retrievedAt ?t }}")
    assert datetime.fromisoformat(time["t"].value) >= before


@pytest.mark.long
def test_loading_the_entity_from_a_file_removes_the_remote_one(kg, endpoint, tmp_path):
    store(kg, endpoint, MARIT, PORT)
    file = tmp_path / "marit.json"
    file.write_text(json.dumps(read_entities(OWN)[MARIT]))
    load(kg, "wikibase", [str(file)])
    assert kg.store.graph(graph_of(MARIT)) == []
    assert kg.store.graph(graph_of(PORT)) != []


def test_an_unknown_entity_is_not_stored_and_an_unchanged_one_not_again(kg, endpoint):
    assert store(kg, endpoint, "Q424242").problems.keys() == {"Q424242"}
    store(kg, endpoint, MARIT)
    generation = kg.store.statistics().generation
    assert store(kg, endpoint, MARIT).stored == [MARIT]
    assert kg.store.statistics().generation == generation


@pytest.mark.long
def test_no_more_entities_are_stored_than_the_setting_allows(kg, endpoint):
    store(kg, endpoint, MARIT, most=1)
    assert store(kg, endpoint, PORT, most=1).problems.keys() == {PORT}
    assert kg.store.graph(graph_of(PORT)) == []
    assert store(kg, endpoint, MARIT, most=1).stored == [MARIT]


def test_a_server_that_fails_stores_nothing(kg, endpoint, upstream):
    store(kg, endpoint, MARIT)
    upstream.faults.mode = "busy"
    with pytest.raises(UpstreamError):
        store(kg, endpoint, PORT)
    assert kg.store.graph(graph_of(PORT)) == []


class Hostile:
    """An endpoint that adds triples to the answers of another."""

    def __init__(self, endpoint: RemoteSparql, entity_id: str, *triples: tuple[str, str, str]) -> None:
        self.url = endpoint.url
        self._endpoint, self._item, self._triples = endpoint, WD + "entity/" + entity_id, triples

    def select(self, query: str, *, stale: bool = True) -> Answer:
        answer = self._endpoint.select(query, stale=stale)
        more = [
            {name: {"type": "uri", "value": value} for name, value in zip("spo", triple, strict=True)}
            | {"item": {"type": "uri", "value": self._item}}
            for triple in self._triples
        ]
        return replace(answer, bindings=[*answer.bindings, *more])


@pytest.mark.parametrize(
    "triple",
    [
        (f"{WD}entity/{PORT}", f"{WD}prop/P19", f"{WD}entity/statement/{PORT}-1"),
        (f"{WD}entity/statement/{PORT}-11111111-AAAA-4AAA-8AAA-000000000001", f"{WD}prop/statement/P571", f"{WD}x"),
        (f"{WD}wiki/Special:EntityData/{PORT}", "http://schema.org/about", f"{WD}entity/{PORT}"),
        (f"{WD}prop/P19", "http://www.w3.org/2000/01/rdf-schema#label", f"{WD}x"),
    ],
)
def test_an_answer_cannot_describe_another_entity(kg, endpoint, triple):
    linked = (f"{WD}entity/{MARIT}", f"{WD}prop/P19", triple[0])
    outcome = store(kg, Hostile(endpoint, MARIT, triple, linked), MARIT)
    found = {str(quad.subject) for quad in kg.store.graph(graph_of(MARIT))}
    assert f"<{triple[0]}>" not in found
    assert kg.store.graph(graph_of(PORT)) == []
    assert outcome.stored == [] or not any(triple[0] in each for each in found)


class Redirecting:
    """An endpoint that says that an id was merged into another entity, with a birth place that it invented."""

    def __init__(self, endpoint: RemoteSparql, old: str, new: str) -> None:
        self.url = endpoint.url
        self._endpoint, self._old, self._new = endpoint, WD + "entity/" + old, WD + "entity/" + new

    def select(self, query: str, *, stale: bool = True) -> Answer:
        answer = self._endpoint.select(query, stale=stale)
        if f"<{self._old}>" in query:
            redirect = (self._old, self._old, OWL.sameAs.value, self._new)
            row = {
                name: {"type": "uri", "value": value} for name, value in zip(("item", *"spo"), redirect, strict=True)
            }
            return replace(answer, bindings=[row])
        # Of prop/statement/P19 and prop/direct/P19.
        invented = {"type": "uri", "value": f"{WD}entity/Q666"}
        return replace(
            answer,
            bindings=[row | {"o": invented} if row["p"]["value"].endswith("t/P19") else row for row in answer.bindings],
        )


@pytest.mark.long
@pytest.mark.parametrize("source", ["file", "server"])
def test_a_redirect_to_an_entity_that_is_here_changes_nothing_of_it(kg, endpoint, tmp_path, source):
    if source == "file":
        file = tmp_path / "marit.json"
        file.write_text(json.dumps(read_entities(OWN)[MARIT]))
        load(kg, "wikibase", [str(file)])
    else:
        store(kg, endpoint, MARIT)
    graphs = [graph_of(MARIT), mint("graph", "src", "wikibase", "wikidata", MARIT)]
    before = [set(kg.store.graph(graph)) for graph in graphs]
    outcome = store(kg, Redirecting(endpoint, "Q9100099", MARIT), "Q9100099")
    assert [set(kg.store.graph(graph)) for graph in graphs] == before
    assert set(outcome.stored) == {"Q9100099", MARIT}
    assert {quad.object for quad in kg.store.graph(graph_of("Q9100099"))} >= {NamedNode(f"{WD}entity/{MARIT}")}


def test_an_entity_of_a_file_is_not_stored_again(kg, endpoint, tmp_path):
    file = tmp_path / "marit.json"
    file.write_text(json.dumps(read_entities(OWN)[MARIT]))
    load(kg, "wikibase", [str(file)])
    assert store(kg, endpoint, MARIT).stored == [MARIT]
    assert kg.store.graph(graph_of(MARIT)) == []


@pytest.mark.parametrize("minted", ["graph/src/climate/a", "id/run/1", "ns#Passage"])
def test_an_answer_cannot_describe_records_of_quadcite(kg, endpoint, minted):
    subject = f"https://w3id.org/quadcite/{minted}"
    triples = [(subject, RDFS.label.value, f"{WD}x"), (f"{WD}entity/{MARIT}", f"{WD}prop/P19", subject)]
    store(kg, Hostile(endpoint, MARIT, *triples), MARIT)
    assert not list(kg.store.query(f"SELECT ?p {{ GRAPH ?g {{ <{subject}> ?p <{WD}x> }} }}"))


@pytest.mark.long
def test_values_that_are_here_already_are_not_changed(kg, endpoint):
    store(kg, endpoint, PORT)
    [value] = {
        quad.object.value
        for quad in kg.store.graph(graph_of(PORT))
        if quad.predicate.value == f"{WD}prop/statement/value/P571"
    }
    graph = mint("graph", "ref", "wikibase", "wikidata", "value", value.rpartition("/")[2])
    before = kg.store.graph(graph)
    assert before
    kg.store.commit({graph_of(PORT): [Quad(NamedNode("urn:a"), RDFS.label, Literal("kept"), graph_of(PORT))]})
    assert before == kg.store.graph(graph) or kg.store.graph(graph) == []
    hostile = Hostile(endpoint, PORT, (value, "http://wikiba.se/ontology#timeCalendarModel", f"{WD}entity/Q1985786"))
    kg.store.commit({graph: before})
    store(kg, hostile, PORT)
    assert set(kg.store.graph(graph)) == set(before)
