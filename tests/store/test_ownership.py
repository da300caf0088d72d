"""A triple stands in one content graph, whoever writes it and in whatever order; what yields is noted."""

from __future__ import annotations

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import ConflictError
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import GraphChange, Patch, Rows, select
from kg.vocabulary import DCTERMS, KG, PROV, PROV_GRAPH, RDF, SCHEMA, mint
from tests.store.conftest import titles

USER, CURATED = mint("graph", "user", "notes"), mint("graph", "cur", "decisions")
DOCUMENT = mint("document", "a")


def said(graph: NamedNode, *values: str) -> list[Quad]:
    return [Quad(DOCUMENT, DCTERMS.title, Literal(value), graph) for value in values]


def copies(store: OxigraphStore) -> int:
    """How many triples stand in more than one content graph."""
    rows = store.query(
        f"SELECT ?s {{ GRAPH ?g {{ ?s ?p ?o }} FILTER(?g != {PROV_GRAPH}) }} GROUP BY ?s ?p ?o HAVING (COUNT(?g) > 1)"
    )
    assert isinstance(rows, Rows)
    return len(rows)


@pytest.mark.parametrize("graph", [USER, CURATED])
def test_people_cannot_repeat_what_a_loader_says(store: OxigraphStore, graph: NamedNode) -> None:
    store.commit(dict([titles("a", *"abcde")]))
    before = set(store._opened())
    with pytest.raises(ConflictError, match=r"graph/src/test/a.*and more") as error:
        store.commit({graph: said(graph, *"abcde", "own")})
    assert str(error.value).count(" is in <") == 3
    assert set(store._opened()) == before


@pytest.mark.parametrize("graph", [USER, CURATED])
def test_what_a_loader_says_later_wins_and_is_noted(store: OxigraphStore, graph: NamedNode) -> None:
    hashes = Quad(graph, KG.contentSha256, Literal("old"), PROV_GRAPH)
    store.commit({graph: said(graph, "x", "own")}, lambda _: Patch(add=frozenset([hashes])))
    asked: list[GraphChange] = []

    def describe(changes: object) -> Patch:
        asked.extend(changes)  # type: ignore[arg-type]
        return Patch()

    commit = store.commit(dict([titles("a", "x", "y")]), describe)
    assert [change.graph for change in asked] == [titles("a")[0]], "who loads describes what it loads"
    assert {change.graph for change in commit.changes} == {titles("a")[0], graph}
    assert (store.graph(graph), copies(store)) == (said(graph, "own"), 0)
    prov = set(store.graph(PROV_GRAPH))
    [digest] = [change.content_sha256 for change in commit.changes if change.graph == graph]
    assert {quad.object for quad in prov if quad.subject == graph} == {Literal(digest or "")}
    [node] = [quad.subject for quad in prov if quad.object == KG.Cession]
    assert {(quad.predicate, quad.object) for quad in prov if quad.subject == node} == {
        (RDF.type, KG.Cession),
        (RDF.subject, DOCUMENT),
        (RDF.predicate, DCTERMS.title),
        (RDF.object, Literal("x")),
        (KG.cededBy, graph),
        (KG.cededTo, titles("a")[0]),
        (PROV.wasGeneratedBy, mint("commit", str(commit.generation))),
    }
    counted = store.query("SELECT (COUNT(*) AS ?q) (COUNT(DISTINCT ?g) AS ?n) { GRAPH ?g { ?s ?p ?o } }")
    assert isinstance(counted, Rows)
    statistics = store.statistics()
    assert [int(str(term).split('"')[1]) for term in counted.rows[0]] == [statistics.quads, statistics.graphs]


def test_a_graph_that_cedes_all_it_has_goes_with_its_description(store: OxigraphStore) -> None:
    about = Quad(USER, PROV.wasGeneratedBy, mint("run", "x"), PROV_GRAPH)
    store.commit({USER: said(USER, "x")}, lambda _: Patch(add=frozenset([about])))
    store.commit(dict([titles("a", "x")]))
    assert USER not in store.graphs()
    assert about not in store.graph(PROV_GRAPH)
    assert any(quad.object == KG.Cession for quad in store.graph(PROV_GRAPH))


def test_the_store_knows_the_graphs_of_people_after_it_is_opened_again(store: OxigraphStore) -> None:
    store.commit({USER: said(USER, "x", "own")})
    store.close()
    with OxigraphStore(store.directory.path) as again:
        again.commit(dict([titles("a", "x")]))
        assert again.graph(USER) == said(USER, "own")


def test_a_unit_has_the_text_that_its_loader_gave_it(store: OxigraphStore) -> None:
    graph, unit = titles("a")[0], mint("passage", "a", "0")
    forged = Quad(unit, SCHEMA.text, Literal("forged"), USER)
    store.commit({USER: [forged, *said(USER, "own")]})
    store.commit({graph: [Quad(unit, SCHEMA.text, Literal("verbatim"), graph)]})
    assert store.graph(USER) == said(USER, "own")
    with pytest.raises(ConflictError, match=f"another text of {unit} is in {graph}"):
        store.commit({USER: [forged]})


def test_a_triple_may_move_from_one_graph_of_people_to_another_in_one_commit(store: OxigraphStore) -> None:
    store.commit({USER: said(USER, "x", "y")})
    store.commit({USER: said(USER, "y"), CURATED: said(CURATED, "x")})
    assert copies(store) == 0
    third, fourth = mint("graph", "user", "third"), mint("graph", "user", "fourth")
    with pytest.raises(ConflictError):
        store.commit({third: said(third, "z"), fourth: said(fourth, "z")})


def test_queries_of_tools_do_not_read_an_invalidated_graph(store: OxigraphStore) -> None:
    graph, quads = titles("a", "x")
    query = "SELECT ?d { ?d dcterms:title ?t }"
    invalidated = [quad.predicate for quad in store.graph(PROV_GRAPH)].count(PROV.invalidatedAtTime)
    store.commit({graph: quads})
    with store.snapshot(store.statistics().generation) as before:
        store.commit(dict([titles("b", "y")]), lambda changes: Patch(invalidated=[graph, titles("none")[0]]))
        assert before.visibility.exclude(query) == query
    with store.snapshot(store.statistics().generation) as after:
        assert graph.value in after.visibility.exclude(query)
    assert store.find_invalidated_graphs() == [graph]
    assert len(select(store.query, query)) == 2
    assert len(select(store.query_sources, query)) == 1
    assert len(select(store.query_sources, "SELECT ?d { ?d dcterms:issued ?t }")) == 0
    store.close()
    with OxigraphStore(store.directory.path) as again:
        assert again.find_invalidated_graphs() == [graph]
        assert len(select(again.query_sources, query)) == 1
        again.commit({graph: ()})
        assert again.find_invalidated_graphs() == []
        assert [quad.predicate for quad in again.graph(PROV_GRAPH)].count(PROV.invalidatedAtTime) == invalidated
        assert len(select(again.query, query)) == 1


def test_an_invalidated_graph_that_is_written_is_valid(store: OxigraphStore) -> None:
    graph, quads = titles("a", "x")
    store.commit({graph: quads})
    store.commit({}, lambda changes: Patch(invalidated=[graph]))
    assert store.find_invalidated_graphs() == []  # a commit that changes nothing is none
    store.commit(dict([titles("b", "y")]), lambda changes: Patch(invalidated=[graph]))
    store.commit(dict([titles("a", "z")]))
    assert store.find_invalidated_graphs() == []
    assert len(select(store.query_sources, "SELECT ?d { ?d dcterms:title ?t }")) == 2
    again = titles("a", "z")
    for number, write in enumerate(  # as it is, by itself and as a derived graph
        (
            lambda: store.commit(dict([again])),
            lambda: store.commit(dict([titles("b", "w")]), lambda changes: Patch(graphs=dict([again]))),
        )
    ):
        store.commit(dict([titles("b", str(number))]), lambda changes: Patch(invalidated=[graph]))
        assert store.find_invalidated_graphs() == [graph]
        before = store.statistics().graphs
        write()
        assert store.find_invalidated_graphs() == []
        assert len(select(store.query_sources, "SELECT ?d { ?d dcterms:title ?t }")) == 2
        assert store.statistics().graphs == before
