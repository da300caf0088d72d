"""A plain dataset: every update as the standard has it, whole or not at all, and nothing asked of other servers."""

from __future__ import annotations

from pathlib import Path

import pyoxigraph
import pytest
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, Triple

from kg.errors import GoneError, InvalidInputError, NotFoundError, QueryForbiddenError, QuerySyntaxError, StoreError
from kg.sparql.dataset_clauses import add_dataset
from tests.conformance.plain_store import PlainStore

EX = "http://example.com/"
G, H = NamedNode(EX + "g"), NamedNode(EX + "h")


def triple(number: int) -> Triple:
    return Triple(NamedNode(EX + "s"), NamedNode(EX + "p"), Literal(number))


def test_every_operation_works_in_the_default_graph_too() -> None:
    with PlainStore(base_iri=EX) as store:
        store.update("INSERT DATA { <s> <p> 1 . [] <q> _:b . GRAPH <g> { <s> <p> 2 } } ; CREATE GRAPH <h>")
        assert len(store.graph(None)) == 2
        assert set(store.graphs()) == {G, H}
        store.update("COPY GRAPH <g> TO DEFAULT ; MOVE GRAPH <g> TO GRAPH <h> ; DELETE WHERE { ?s <q> ?o }")
        assert store.graph(None) == [triple(2)]
        assert store.graphs() == [H]
        store.update("DROP ALL")
        assert store.graphs() == []


def test_an_update_that_fails_midway_changes_nothing() -> None:
    with PlainStore() as store:
        store.put(None, [triple(1)])
        before = store.generation
        with pytest.raises(InvalidInputError, match="does not exist"):
            store.update(f"CLEAR DEFAULT ; INSERT DATA {{ {triple(2)} }} ; DROP GRAPH {G}")
        assert store.graph(None) == [triple(1)]
        assert store.generation == before


@pytest.mark.parametrize(
    ("update", "error"),
    [
        ("LOAD <http://127.0.0.1:9/>", QueryForbiddenError),
        ("LOAD SILENT <http://127.0.0.1:9/> INTO GRAPH <http://e/>", QueryForbiddenError),
        ("INSERT { ?s ?p ?o } WHERE { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }", QueryForbiddenError),
        ("INSERT DATA { ", QuerySyntaxError),
        ("INSERT DATA { <http://e/s> <http://e/p> '\ud800' }", QuerySyntaxError),
        ("SELECT * { ?s ?p ?o }", QuerySyntaxError),
        ("INSERT { ?s ?p ?o } WHERE " + "{ " * 5_000 + "}" * 5_000, QuerySyntaxError),
        ("INSERT DATA { kg:a kg:b kg:c }", QuerySyntaxError),
    ],
)
def test_what_is_no_update_or_asks_another_server_is_refused(update: str, error: type[Exception]) -> None:
    with PlainStore() as store:
        with pytest.raises(error):
            store.update(update)
        assert store.generation == 0


def test_a_graph_is_written_whole() -> None:
    with PlainStore() as store:
        for graph in (None, G):
            assert store.put(graph, [triple(1), triple(2)]) is (graph is G)
            assert store.put(graph, [triple(3)]) is False
            assert store.graph(graph) == [triple(3)]
            assert store.post(graph, [triple(4)]) is False
            assert set(store.graph(graph)) == {triple(3), triple(4)}
        assert store.post(H, []) is True
        assert store.holds(H)
        assert store.graph(H) == []
        store.delete(H)
        with pytest.raises(NotFoundError):
            store.delete(H)
        store.delete(None)
        assert store.graph(None) == []


def test_a_dataset_is_replaced_with_its_blank_nodes_shared_between_graphs() -> None:
    shared = BlankNode("shared")
    quads = [Quad(shared, NamedNode(EX + "p"), Literal(1), graph) for graph in (G, DefaultGraph())]
    with PlainStore() as store:
        store.put(NamedNode(EX + "old"), [triple(1)])
        store.replace(quads, [G, H])
        assert set(store.graphs()) == {G, H}
        [here], [there] = store.graph(None), store.graph(G)
        assert here.subject == there.subject


def test_every_write_makes_a_generation_that_a_snapshot_holds(tmp_path: Path) -> None:
    with PlainStore(tmp_path / "dataset") as store:
        for number in (1, 2, 3):
            store.put(None, [triple(number)])
            with store.snapshot(store.generation) as snapshot:
                assert snapshot.generation == number
                held = pyoxigraph.Store.read_only(str(snapshot.path))
                assert [quad.object for quad in held] == [Literal(number)]
                del held
        with pytest.raises(GoneError):
            store.snapshot(exactly=1)
        with pytest.raises(InvalidInputError):
            store.snapshot(99)


def test_a_folder_keeps_its_dataset_and_a_temporary_one_goes(tmp_path: Path) -> None:
    with PlainStore(tmp_path) as store:
        store.put(G, [triple(1)])
    with PlainStore(tmp_path) as store:
        assert store.graph(G) == [triple(1)]
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.put(G, [])
    temporary = PlainStore()
    with temporary.snapshot() as snapshot:
        folder = snapshot.path.parent.parent
    assert folder.exists()
    temporary.close()
    assert not folder.exists()


def test_a_folder_that_cannot_be_had_is_an_error_of_ours(tmp_path: Path) -> None:
    with PlainStore(tmp_path), pytest.raises(StoreError, match="cannot be opened"):
        PlainStore(tmp_path)


def test_the_graphs_of_a_request_are_those_that_where_is_asked_of() -> None:
    with PlainStore() as store:
        store.replace([Quad(*triple(1), G), Quad(*triple(2), H)])  # type: ignore[misc]
        store.update("INSERT { ?s <http://e/q> ?o } WHERE { ?s ?p ?o }", [G])
        assert [found.object for found in store.graph(None)] == [Literal(1)]
        store.update("DELETE { ?s ?p ?o } WHERE { ?s ?p ?o } ; INSERT DATA { <http://e/s> <http://e/p> 3 }", [H])
        store.update("INSERT { ?s <http://e/r> ?o } WHERE { GRAPH ?g { ?s ?p ?o } }", (), [H])
        assert {found.object for found in store.graph(None) if found.predicate.value == "http://e/r"} == {Literal(2)}


def test_delete_where_takes_the_graphs_of_a_request_too() -> None:
    using = add_dataset("DELETE WHERE { ?s ?p '}' } ; CLEAR ALL # WHERE", [G], [H])
    assert using == f"DELETE  {{ ?s ?p '}}' }} USING {G} USING NAMED {H} WHERE {{ ?s ?p '}}' }} ; CLEAR ALL # WHERE"
    with PlainStore() as store:
        store.put(None, [triple(1), triple(2)])
        store.put(G, [triple(1)])
        store.update("DELETE WHERE { ?s ?p ?o }", [G])
        assert store.graph(None) == [triple(2)]
