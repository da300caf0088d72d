"""A statement of a user that a load states too is reported, explained, and returned when the source drops it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Quad, Triple

from kg.actors import WRITE, Actor
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.explanation import explain_iri, explain_triple
from kg.settings import Settings
from kg.store.protocol import Rows
from kg.user_graphs import UserGraphs
from kg.vocabulary import DCTERMS, KG, PROV, PROV_GRAPH, RDF, SCHEMA, mint
from loaders.sources import load

NOTES, OTHER = mint("graph", "user", "notes"), mint("graph", "user", "other")
SPEECH = mint("speech", "a")
HEAD = "speech_id,date,chamber,speaker,party,state,text,title,hansard_reference\n"
ALICE = Actor("Alice", frozenset({WRITE}))


@pytest.fixture
def kg(tmp_path: Path) -> Iterator[KnowledgeGraph]:
    folder = tmp_path / "data"
    given = Settings(data_dir=folder, models_dir=folder / "none", query_workers=1, _env_file=None)  # type: ignore[call-arg]
    with KnowledgeGraph.open(folder, given) as found:
        yield found


def write(path: Path, title: str) -> str:
    path.write_text(f"{HEAD}a,2024-10-16,Senate,Fern Ashby,ALP,NSW,Quokkas graze.,{title},Made up\n", encoding="utf-8")
    return str(path)


def titles(*values: str) -> list[Triple]:
    return [Triple(SPEECH, DCTERMS.title, Literal(value)) for value in values]


def described(kg: KnowledgeGraph, graph: NamedNode) -> set[object]:
    return {quad.predicate for quad in kg.store.graph(PROV_GRAPH) if quad.subject == graph}


@pytest.mark.parametrize("own", [(), ("my own title",)])
def test_ceded_statements_are_reported_explained_and_returned(
    kg: KnowledgeGraph, tmp_path: Path, own: tuple[str, ...]
) -> None:
    path = tmp_path / "speeches.csv"
    UserGraphs(kg).put(NOTES, titles("On quokkas", *own), ALICE)
    before = described(kg, NOTES)
    report = load(kg, "hansard", [write(path, "On quokkas")])
    assert report.to_dict()["ceded"] == {NOTES.value: 1}
    assert any(NOTES.value in warning for warning in report.warnings)
    assert [quad.triple for quad in kg.store.graph(NOTES)] == titles(*own)
    [why] = explain_triple(kg.store.query, SPEECH, DCTERMS.title, Literal("On quokkas"))
    assert [(each.by, each.sent_by) for each in why.also_stated] == [(NOTES.value, ("Alice",))]
    assert "Alice" in str(why)
    [about] = explain_iri(kg.store.query, NOTES)
    assert [(each.to, each.statements) for each in about.ceded] == [(why.graph, 1)]

    report = load(kg, "hansard", [write(path, "On wallabies")])
    assert report.to_dict()["returned"] == {NOTES.value: 1}
    assert {quad.triple for quad in kg.store.graph(NOTES)} == set(titles("On quokkas", *own))
    assert described(kg, NOTES) == before
    assert not any(quad.object == KG.Cession for quad in kg.store.graph(PROV_GRAPH))
    [why] = explain_triple(kg.store.query, SPEECH, DCTERMS.title, Literal("On quokkas"))
    assert (why.graph, why.kind, why.sources[0].sent_by) == (NOTES.value, "user", "Alice")
    assert load(kg, "hansard", [str(path)]).to_dict()["ceded"] == {}


def test_class_and_text_that_a_user_states_do_not_reject_a_record(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = tmp_path / "speeches.csv"
    unit = NamedNode(f"{SPEECH.value}#p=0")
    said = [Triple(SPEECH, RDF.type, KG.Passage), Triple(SPEECH, RDF.type, RDF.Property)]
    kg.store.commit({NOTES: [Quad(*each, NOTES) for each in (*said, Triple(unit, SCHEMA.text, Literal("forged")))]})
    report = load(kg, "hansard", [write(path, "On quokkas")])
    assert (report.loaded, report.rejected) == (1, 0)
    texts = kg.store.query("SELECT ?unit ?text ?graph { GRAPH ?graph { ?unit schema:text ?text } }")
    assert isinstance(texts, Rows)
    sourced = [row["text"] for row in texts if row["graph"] != NOTES]
    assert sourced == [Literal("Quokkas graze.")]
    again = load(kg, "hansard", [write(path, "On wallabies")])
    assert (again.loaded, again.rejected) == (1, 0)


def test_statement_returns_after_a_restart(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = tmp_path / "speeches.csv"
    UserGraphs(kg).put(NOTES, titles("On quokkas"), ALICE)
    load(kg, "hansard", [write(path, "On quokkas")])
    settings = kg.settings
    kg.close()
    with KnowledgeGraph.open(settings.data_dir, settings) as again:
        load(again, "hansard", [write(path, "On wallabies")])
        assert [quad.triple for quad in again.store.graph(NOTES)] == titles("On quokkas")


def test_statement_waits_while_another_graph_states_it(kg: KnowledgeGraph) -> None:
    first, second = mint("graph", "src", "test", "1"), mint("graph", "src", "test", "2")
    [said] = titles("x")
    UserGraphs(kg).put(NOTES, [said], ALICE)
    kg.store.commit({first: [Quad(*said, first)]})
    kg.store.commit({first: [], second: [Quad(*said, second)]})
    assert kg.store.graph(NOTES) == []
    taken = [quad.object for quad in kg.store.graph(PROV_GRAPH) if quad.predicate == KG.cededTo]
    assert taken == [second]
    kg.store.commit({second: []})
    assert [quad.triple for quad in kg.store.graph(NOTES)] == [said]


def test_text_of_a_user_returns_with_the_last_text_of_the_source(kg: KnowledgeGraph) -> None:
    source, unit = mint("graph", "src", "test", "1"), mint("passage", "a", "0")
    own = Triple(unit, SCHEMA.text, Literal("own words"))
    UserGraphs(kg).put(OTHER, [own, Triple(unit, RDF.value, Literal("kept"))], ALICE)
    for words in ("first", "second"):
        kg.store.commit({source: [Quad(unit, SCHEMA.text, Literal(words), source)]})
        assert own not in [quad.triple for quad in kg.store.graph(OTHER)]
    kg.store.commit({source: []})
    assert own in [quad.triple for quad in kg.store.graph(OTHER)]
    doubled = kg.store.query(
        f"SELECT ?s {{ GRAPH ?g {{ ?s ?p ?o }} FILTER(?g != {PROV_GRAPH}) }} GROUP BY ?s ?p ?o HAVING (COUNT(?g) > 1)"
    )
    assert isinstance(doubled, Rows)
    assert len(doubled) == 0
    assert PROV.wasGeneratedBy in described(kg, OTHER)


def test_statement_that_its_user_has_replaced_does_not_return(kg: KnowledgeGraph) -> None:
    source = mint("graph", "src", "test", "1")
    [said, other] = titles("x", "y")
    UserGraphs(kg).put(NOTES, [said], ALICE)
    kg.store.commit({source: [Quad(*said, source)]})
    UserGraphs(kg).put(NOTES, [other], ALICE)
    kg.store.commit({source: []})
    assert [quad.triple for quad in kg.store.graph(NOTES)] == [other]
