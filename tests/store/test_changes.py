"""The store knows the last commit that changed statements with some properties, in sources and in user graphs."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import StoreError
from kg.provenance.shipped import infer_graphs
from kg.sparql.graph_exclusion import type_key
from kg.store import changes
from kg.store.oxigraph import OxigraphStore
from kg.store.payloads import Payload
from kg.store.protocol import Patch
from kg.vocabulary import DCTERMS, KG, PROV_GRAPH, RDF, SCHEMA, mint
from tests.store.conftest import titles

SOURCE, USER, CURATED = mint("graph", "src", "a"), mint("graph", "user", "a"), mint("graph", "cur", "a")
TITLE = frozenset({DCTERMS.title.value})
SPEECHES, FILES = frozenset({type_key(KG.Speech.value)}), frozenset({type_key(KG.File.value)})
TYPES = frozenset({RDF.type.value})


def said(graph: NamedNode, name: NamedNode, value: NamedNode | Literal) -> Quad:
    return Quad(NamedNode("urn:a"), name, value, graph)


def test_a_commit_changes_the_properties_of_what_it_adds_and_removes(store: OxigraphStore) -> None:
    first = store.commit(dict([titles("a", "x"), titles("b", "y")])).generation
    assert store.find_last_change(TITLE) == first
    added = store.commit({SOURCE: [said(SOURCE, KG.keyword, Literal("k"))]}).generation
    assert (store.find_last_change(TITLE), store.find_last_change({KG.keyword.value})) == (first, added)
    assert store.find_last_change(TITLE | {KG.keyword.value}) == store.find_last_change(None) == added
    removed = store.commit({titles("a")[0]: []}).generation  # a whole graph
    assert store.find_last_change(TITLE) == removed
    replaced = store.commit(dict([titles("b", "z")])).generation
    assert store.find_last_change(TITLE) == replaced
    store.commit(dict([titles("b", "z")]))  # nothing
    assert store.find_last_change(None) == replaced
    updated = store.update(f"DELETE WHERE {{ GRAPH {titles('b')[0]} {{ ?s dcterms:title ?o }} }}").generation
    assert (store.find_last_change(TITLE), store.find_last_change({KG.keyword.value})) == (updated, added)


def test_statements_of_classes_are_told_apart(store: OxigraphStore) -> None:
    speech = store.commit({SOURCE: [said(SOURCE, RDF.type, KG.Speech)]}).generation
    file = store.extend(SOURCE, [said(SOURCE, RDF.type, KG.File)]).generation
    assert [store.find_last_change(each) for each in (SPEECHES, FILES, TYPES)] == [speech, file, file]


@pytest.mark.parametrize("graph", [USER, CURATED])
def test_user_graphs_count_where_they_are_read(store: OxigraphStore, graph: NamedNode) -> None:
    first = store.commit(dict([titles("a", "x")])).generation
    own = store.commit({graph: [said(graph, DCTERMS.title, Literal("own"))]}).generation
    assert (store.find_last_change(TITLE), store.find_last_change(TITLE, users=True)) == (first, own)
    ceded = store.commit({SOURCE: [said(SOURCE, DCTERMS.title, Literal("own"))]}).generation
    assert store.find_last_change(TITLE) == store.find_last_change(TITLE, users=True) == ceded


def test_reviews_are_read_by_all(store: OxigraphStore) -> None:
    store.commit(dict([titles("a", "x")]))
    review = store.commit({CURATED: [said(CURATED, KG.accepts, NamedNode("urn:claim"))]}).generation
    assert store.find_last_change({KG.accepts.value}) == review


def test_provenance_derived_and_inferred_graphs_count(tmp_path: Path) -> None:
    derived = mint("graph", "der", "a")
    with OxigraphStore(tmp_path / "data", infer=infer_graphs) as store:
        unit = [said(SOURCE, RDF.type, KG.Chunk), said(SOURCE, SCHEMA.text, Literal("text"))]
        quads = [said(derived, KG.year, Literal(1990))]
        patch = Patch(add=frozenset([said(PROV_GRAPH, KG.method, Literal("rule"))]), graphs={derived: quads})
        generation = store.commit({SOURCE: unit}, lambda _: patch).generation
        for name in (KG.year.value, KG.method.value, type_key(KG.TextUnit.value), KG.touched.value):
            assert store.find_last_change({name}) == generation
        assert store.find_last_change({KG.keyword.value}) < generation


def test_an_invalidated_graph_changes_everything(store: OxigraphStore) -> None:
    graph, quads = titles("a", "x")
    store.commit({graph: quads})
    generation = store.commit({SOURCE: [said(SOURCE, KG.keyword, Literal("k"))]}, lambda _: Patch(invalidated=[graph]))
    assert store.find_last_change(TITLE) == generation.generation


@pytest.mark.parametrize("title", ["x", "other"])
def test_an_invalidated_graph_that_is_written_changes_everything(store: OxigraphStore, title: str) -> None:
    graph, quads = titles("a", "x")
    kept = said(graph, KG.keyword, Literal("k"))
    store.commit({graph: [*quads, kept]})
    store.commit(dict([titles("b", "y")]), lambda _: Patch(invalidated=[graph]))
    generation = store.commit({graph: [*titles("a", title)[1], kept]}).generation
    # Queries read the keyword again, though this commit did not write it.
    assert store.find_last_change({KG.keyword.value}) == generation
    store.commit(dict([titles("b", "z")]), lambda _: Patch(invalidated=[graph]))
    removed = store.commit({graph: []}).generation
    assert store.find_last_change({KG.keyword.value}) == removed


def test_payloads_count(store: OxigraphStore) -> None:
    store.commit({SOURCE: [said(SOURCE, KG.keyword, Literal("k"))]})
    payload = Payload.build(SOURCE, [said(SOURCE, DCTERMS.title, Literal("x")).triple])
    generation = store.write_payload(payload)[0].generation
    assert store.find_last_change(TITLE) == store.find_last_change({KG.keyword.value}) == generation


def test_commits_before_the_start_and_very_large_ones_change_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OxigraphStore(tmp_path / "data") as store:
        store.commit(dict([titles("a", "x")]))
    with OxigraphStore(tmp_path / "data") as store:
        assert store.find_last_change({"urn:p"}) == store.statistics().generation > 0
        for limit in ("_MOST_STATEMENTS", "_MOST_NAMES"):
            with monkeypatch.context() as patch:
                patch.setattr(changes, limit, -1)
                generation = store.commit(dict([titles("a", limit)])).generation
            assert store.find_last_change({"urn:p"}) == generation


def test_a_write_of_unknown_outcome_changes_everything(store: OxigraphStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.commit(dict([titles("a", "x")]))

    def fail(_: object) -> None:
        raise OSError("no space")

    with monkeypatch.context() as patch:
        patch.setattr(store, "_write_here", fail)
        with pytest.raises(StoreError):
            store.commit(dict([titles("a", "y")]))
    assert store.find_last_change({"urn:p"}) == store.statistics().generation


def test_subjects_are_told_apart_up_to_a_number(store: OxigraphStore, monkeypatch: pytest.MonkeyPatch) -> None:
    first = store.commit(dict([titles("a", "x"), titles("b", "y")])).generation
    second = store.commit(dict([titles("b", "z")])).generation
    known = [mint("document", name).value for name in "ab"]
    assert [store.find_last_change_of(each) for each in known] == [first, second]
    own = store.commit({USER: [said(USER, DCTERMS.title, Literal("own"))]}).generation
    assert [store.find_last_change_of(each) for each in (*known, "urn:a")] == [first, second, own]
    removed = store.commit({titles("a")[0]: []}).generation
    assert [store.find_last_change_of(each) for each in known] == [removed, second]
    monkeypatch.setattr(changes, "_MOST_SUBJECTS", 2)
    last = store.commit(dict([titles("c", "x")])).generation
    assert [store.find_last_change_of(each) for each in (*known, "urn:never")] == [last, last, last]
