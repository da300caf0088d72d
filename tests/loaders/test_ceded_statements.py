"""A statement of a user that a load states too is reported, explained, and returned when the source drops it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Quad, Triple

from kg.access.actors import WRITE, Actor
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.explanation import explain_iri, explain_triple
from kg.store.protocol import Rows
from kg.user_graphs import UserGraphs
from kg.vocabulary import DCTERMS, KG, PROV, PROV_GRAPH, RDF, SCHEMA, mint
from loaders.sources import load

NOTES, OTHER = mint("graph", "user", "notes"), mint("graph", "user", "other")
SPEECH = mint("speech", "a")
HEAD = "speech_id,date,chamber,speaker,party,state,text,title,hansard_reference\n"
ALICE = Actor("Alice", frozenset({WRITE}))


def write(path: Path, title: str) -> str:
    path.write_text(f"{HEAD}a,2024-10-16,Senate,Fern Ashby,ALP,NSW,Quokkas graze.,{title},Made up\n", encoding="utf-8")
    return str(path)


def titles(*values: str) -> list[Triple]:
    return [Triple(SPEECH, DCTERMS.title, Literal(value)) for value in values]


def described(live: KnowledgeGraph, graph: NamedNode) -> set[object]:
    return {quad.predicate for quad in live.store.graph(PROV_GRAPH) if quad.subject == graph}


@pytest.mark.parametrize("own", [(), ("my own title",)])
def test_ceded_statements_are_reported_explained_and_returned(
    live: KnowledgeGraph, tmp_path: Path, own: tuple[str, ...]
) -> None:
    path = tmp_path / "speeches.csv"
    UserGraphs(live).put(NOTES, titles("On quokkas", *own), ALICE)
    before = described(live, NOTES)
    report = load(live, "hansard", [write(path, "On quokkas")])
    assert report.to_dict()["ceded"] == {NOTES.value: 1}
    assert any(NOTES.value in warning for warning in report.warnings)
    assert [quad.triple for quad in live.store.graph(NOTES)] == titles(*own)
    [why] = explain_triple(live.store.query, SPEECH, DCTERMS.title, Literal("On quokkas"))
    assert [(each.by, each.sent_by) for each in why.also_stated] == [(NOTES.value, ("Alice",))]
    assert "Alice" in str(why)
    [about] = explain_iri(live.store.query, NOTES)
    assert [(each.to, each.statements) for each in about.ceded] == [(why.graph, 1)]

    report = load(live, "hansard", [write(path, "On wallabies")])
    assert report.to_dict()["returned"] == {NOTES.value: 1}
    assert {quad.triple for quad in live.store.graph(NOTES)} == set(titles("On quokkas", *own))
    assert described(live, NOTES) == before
    assert not any(quad.object == KG.Cession for quad in live.store.graph(PROV_GRAPH))
    [why] = explain_triple(live.store.query, SPEECH, DCTERMS.title, Literal("On quokkas"))
    assert (why.graph, why.kind, why.sources[0].sent_by) == (NOTES.value, "user", "Alice")
    assert load(live, "hansard", [str(path)]).to_dict()["ceded"] == {}


def test_class_and_text_that_a_user_states_do_not_reject_a_record(live: KnowledgeGraph, tmp_path: Path) -> None:
    path = tmp_path / "speeches.csv"
    unit = NamedNode(f"{SPEECH.value}#p=0")
    said = [Triple(SPEECH, RDF.type, KG.Passage), Triple(SPEECH, RDF.type, RDF.Property)]
    live.store.commit({NOTES: [Quad(*each, NOTES) for each in (*said, Triple(unit, SCHEMA.text, Literal("forged")))]})
    report = load(live, "hansard", [write(path, "On quokkas")])
    assert (report.loaded, report.rejected) == (1, 0)
    texts = live.store.query("SELECT ?unit ?text ?graph { GRAPH ?graph { ?unit schema:text ?text } }")
    assert isinstance(texts, Rows)
    sourced = [row["text"] for row in texts if row["graph"] != NOTES]
    assert sourced == [Literal("Quokkas graze.")]
    again = load(live, "hansard", [write(path, "On wallabies")])
    assert (again.loaded, again.rejected) == (1, 0)


def test_statement_returns_after_a_restart(live: KnowledgeGraph, tmp_path: Path) -> None:
    path = tmp_path / "speeches.csv"
    UserGraphs(live).put(NOTES, titles("On quokkas"), ALICE)
    load(live, "hansard", [write(path, "On quokkas")])
    settings = live.settings
    live.close()
    with KnowledgeGraph.open(settings.data_dir, settings) as again:
        load(again, "hansard", [write(path, "On wallabies")])
        assert [quad.triple for quad in again.store.graph(NOTES)] == titles("On quokkas")


def test_statement_waits_while_another_graph_states_it(live: KnowledgeGraph) -> None:
    first, second = mint("graph", "src", "test", "1"), mint("graph", "src", "test", "2")
    [said] = titles("x")
    UserGraphs(live).put(NOTES, [said], ALICE)
    live.store.commit({first: [Quad(*said, first)]})
    live.store.commit({first: [], second: [Quad(*said, second)]})
    assert live.store.graph(NOTES) == []
    taken = [quad.object for quad in live.store.graph(PROV_GRAPH) if quad.predicate == KG.cededTo]
    assert taken == [second]
    live.store.commit({second: []})
    assert [quad.triple for quad in live.store.graph(NOTES)] == [said]


def test_text_of_a_user_returns_with_the_last_text_of_the_source(live: KnowledgeGraph) -> None:
    source, unit = mint("graph", "src", "test", "1"), mint("passage", "a", "0")
    own = Triple(unit, SCHEMA.text, Literal("own words"))
    UserGraphs(live).put(OTHER, [own, Triple(unit, RDF.value, Literal("kept"))], ALICE)
    for words in ("first", "second"):
        live.store.commit({source: [Quad(unit, SCHEMA.text, Literal(words), source)]})
        assert own not in [quad.triple for quad in live.store.graph(OTHER)]
    live.store.commit({source: []})
    assert own in [quad.triple for quad in live.store.graph(OTHER)]
    doubled = live.store.query(
        f"SELECT ?s {{ GRAPH ?g {{ ?s ?p ?o }} FILTER(?g != {PROV_GRAPH}) }} GROUP BY ?s ?p ?o HAVING (COUNT(?g) > 1)"
    )
    assert isinstance(doubled, Rows)
    assert len(doubled) == 0
    assert PROV.wasGeneratedBy in described(live, OTHER)


def test_statement_that_its_user_has_replaced_does_not_return(live: KnowledgeGraph) -> None:
    source = mint("graph", "src", "test", "1")
    [said, other] = titles("x", "y")
    UserGraphs(live).put(NOTES, [said], ALICE)
    live.store.commit({source: [Quad(*said, source)]})
    UserGraphs(live).put(NOTES, [other], ALICE)
    live.store.commit({source: []})
    assert [quad.triple for quad in live.store.graph(NOTES)] == [other]
