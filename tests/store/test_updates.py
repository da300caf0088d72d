"""SPARQL updates of the store: atomic, recorded like commits, and refused where their graphs are unknown."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from pyoxigraph import Quad

from kg.errors import InvalidInputError, QueryForbiddenError, QuerySyntaxError
from kg.store import oxigraph
from kg.store.difference import content_sha256
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import Rows, Snapshot
from kg.vocabulary import KG, PROV_GRAPH, mint
from tests.store.conftest import counters, recount, titles


def test_an_update_that_others_keep_outdating_gets_its_turn(
    store: OxigraphStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, quads = titles("a", 1)
    store.commit({graph: quads})
    ran: list[threading.Thread] = []
    run = oxigraph.Update.run

    def outdated(self: oxigraph.Update, snapshot: Snapshot, *args: Any) -> Any:
        outcome = run(self, snapshot, *args)
        writer = threading.Thread(target=store.commit, args=(dict([titles("a", *range(len(ran) + 2))]),))
        ran.append(writer)
        writer.start()
        if len(ran) < 3:
            writer.join()  # commits at once, while the update believes in its snapshot
        return outcome

    monkeypatch.setattr(oxigraph.Update, "run", outdated)
    copy = titles("b", 0)[0]
    store.update(f"INSERT {{ GRAPH {copy} {{ ?s ?p ?o }} }} WHERE {{ GRAPH {graph} {{ ?s ?p ?o }} }}")
    ran[-1].join(10)
    assert len(ran) == 3
    assert len(store.graph(copy)) == 3  # what the third run saw, after two commits of two and of three titles
    assert len(store.graph(graph)) == 4


def test_extending_adds_to_what_a_graph_holds_by_then(store: OxigraphStore) -> None:
    graph, quads = titles("a", *range(4))
    assert store.extend(graph, quads[:2]).generation == 1
    commit = store.extend(graph, quads[1:])
    [change] = commit.changes
    assert (change.added, change.removed) == (frozenset(quads[2:]), frozenset())
    assert change.content_sha256 == content_sha256(store.graph(graph)) == content_sha256(quads)
    assert store.extend(graph, quads).changes == ()
    with pytest.raises(InvalidInputError, match="cannot be extended"):
        store.extend(PROV_GRAPH, [])
    assert counters(store) == recount(store)


def test_an_update_reports_its_changes_and_moves_the_generation(store: OxigraphStore) -> None:
    store.commit(dict([titles("a", 1), titles("b", 1)]))
    result = store.update(
        f"""PREFIX x: <https://w3id.org/quadcite/graph/src/test/> BASE <https://w3id.org/quadcite/graph/>
        DELETE {{ GRAPH x:a {{ ?s ?p ?o }} }} INSERT {{ GRAPH <src/test/c> {{ ?s ?p 2.50 }} }}
        WHERE {{ GRAPH x:a {{ ?s ?p ?o }} }} ;
        INSERT DATA {{ GRAPH <src/test/b> {{ {mint("document", "b")} dcterms:title 1 }} }}"""
    )
    assert result.generation == 2
    assert {change.graph: (len(change.added), len(change.removed)) for change in result.changes} == {
        titles("a")[0]: (0, 1),
        titles("c")[0]: (1, 0),
    }
    assert {change.content_sha256 for change in result.changes} == {None, content_sha256(store.graph(titles("c")[0]))}
    assert set(store.graphs()) == {titles("b")[0], titles("c")[0], PROV_GRAPH}
    rows = store.query(f"SELECT ?g {{ {mint('commit', '2')} kg:touched ?g }}")
    assert isinstance(rows, Rows)
    assert {graph for [graph] in rows.rows} == {titles("a")[0], titles("c")[0]}
    assert counters(store) == recount(store)
    assert [path.name for path in store.directory.snapshots.iterdir()] == ["1"], "its copy is gone"


def test_an_update_that_changes_nothing_moves_nothing(store: OxigraphStore) -> None:
    store.commit(dict([titles("a", 1)]))
    assert store.update(
        f"DROP SILENT GRAPH <urn:none> ; INSERT DATA {{ GRAPH {titles('a')[0]} {{ <cpr://doc/a> dcterms:title 1 }} }}"
    ) == store.update("CREATE GRAPH <urn:empty>")
    assert store.statistics().generation == 1
    assert len(store.graphs()) == 2


WRITES = "INSERT { GRAPH <urn:g> { ?s ?p 1 } } WHERE "


@pytest.mark.parametrize(
    ("update", "error", "message"),
    [
        ("INSERT DATA { <urn:s> <urn:p> 1 }", InvalidInputError, "default graph"),
        ("DELETE { GRAPH ?g { ?s ?p ?o } } WHERE { GRAPH ?g { ?s ?p ?o } }", InvalidInputError, r"variable graph \?g"),
        ("INSERT{GRAPH?g{?s ?p 1}}WHERE{GRAPH ?g{?s ?p ?o}}", InvalidInputError, r"variable graph \?g"),
        ("DELETE WHERE { GRAPH ?g { ?s ?p ?o } }", InvalidInputError, r"variable graph \?g"),
        ("CLEAR ALL", InvalidInputError, "ALL .*IRI of each graph"),
        ("DROP SILENT NAMED", InvalidInputError, "NAMED .*IRI of each graph"),
        ("CLEAR DEFAULT", InvalidInputError, "DEFAULT .*IRI of each graph"),
        ("CLEARALL", InvalidInputError, "CLEARALL .*spaces"),
        ("ADD GRAPH <cpr://x> TO DEFAULT", InvalidInputError, "DEFAULT"),
        ("DROP GRAPH <urn:none>", InvalidInputError, "urn:none"),
        ("INSERT { GRAPH <urn:g> {", QuerySyntaxError, "SPARQL update"),
        ("SELECT * { ?s ?p ?o }", QuerySyntaxError, "SPARQL update"),
        ("LOAD <http://127.0.0.1:9/x> INTO GRAPH <urn:g>", QueryForbiddenError, "LOAD"),
        (WRITES + "{ SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }", QueryForbiddenError, "SERVICE"),
        (WRITES + "{ BIND(true AS ?x)SERVICESILENT<http://127.0.0.1:9/>{} }", QueryForbiddenError, "SERVICE"),
        (WRITES + "{ BIND(true AS ?x) . ?s ?p trueSERVICE:x{} }", QueryForbiddenError, "SERVICE"),
        (f"DELETE WHERE {{ GRAPH {PROV_GRAPH} {{ {mint('commit', '1')} ?p ?o }} }}", InvalidInputError, "a commit"),
    ],
)  # fmt: skip
def test_an_update_that_cannot_be_described_changes_nothing(
    store: OxigraphStore, update: str, error: type[Exception], message: str
) -> None:
    store.commit(dict([titles("a", 1)]))
    before = set(store._opened())
    with pytest.raises(error, match=message):
        store.update(update)
    assert set(store._opened()) == before
    assert store.statistics().generation == 1


def test_an_update_of_graph_prov_is_recorded_too(store: OxigraphStore) -> None:
    result = store.update(f"INSERT DATA {{ GRAPH {PROV_GRAPH} {{ <urn:run> prov:used <urn:x> }} }}")
    assert (result.generation, result.changes) == (1, ())
    assert Quad(mint("commit", "1"), KG.touched, PROV_GRAPH, PROV_GRAPH) in store.graph(PROV_GRAPH)
    assert counters(store) == recount(store)
