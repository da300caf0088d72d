"""The embedded store: commits are atomic, durable, minimal and counted; each test fails without the rule it states."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyoxigraph
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, Triple

from kg.errors import InvalidInputError, QueryForbiddenError, QuerySyntaxError, StoreError
from kg.store import oxigraph
from kg.store.difference import canonicalize, content_sha256
from kg.store.lock import find_holder
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import GraphChange, Patch, Rows, Snapshot
from kg.vocabulary import DCTERMS, KG, PROV, PROV_GRAPH, XSD, mint
from tests.store.conftest import titles

P = KG.relatesTo


def recount(store: OxigraphStore) -> tuple[int, int]:
    found = store.query("SELECT (COUNT(*) AS ?q) (COUNT(DISTINCT ?g) AS ?n) { GRAPH ?g { ?s ?p ?o } }")
    assert isinstance(found, Rows)
    [[quads, graphs]] = [[int(term.value) for term in row if isinstance(term, Literal)] for row in found.rows]
    return quads, graphs


def counters(store: OxigraphStore) -> tuple[int, int]:
    statistics = store.statistics()
    return statistics.quads, statistics.graphs


def values(store: OxigraphStore, name: str) -> set[str]:
    return {quad.object.value for quad in store.graph(titles(name)[0]) if isinstance(quad.object, Literal)}


def content(store: OxigraphStore) -> set[Quad]:
    """Everything but graph/prov."""
    return {quad for graph in store.graphs() if graph != PROV_GRAPH for quad in store.graph(graph)}


class Statements:
    """Stands before the engine and keeps the update strings that reach it."""

    def __init__(self, engine: pyoxigraph.Store) -> None:
        self._engine = engine
        self.updates: list[str] = []

    def update(self, text: str) -> None:
        self.updates.append(text)
        self._engine.update(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)

    def __contains__(self, quad: Quad) -> bool:
        return quad in self._engine


@pytest.fixture
def written(store: OxigraphStore, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    spy = Statements(store._opened())
    monkeypatch.setattr(store, "_store", spy)
    return spy.updates


# Canonical form


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (Literal("0.90", datatype=XSD.decimal), Literal("0.9", datatype=XSD.decimal)),
        (Literal("hello", language="en-GB"), Literal("hello", language="en-gb")),
        (Literal("100", datatype=XSD.byte), Literal("100", datatype=XSD.integer)),
        (Literal("300", datatype=XSD.byte), Literal("300", datatype=XSD.integer)),
        (
            Literal("2020-01-01T00:00:00+00:00", datatype=XSD.dateTime),
            Literal("2020-01-01T00:00:00Z", datatype=XSD.dateTime),
        ),
        (Literal("01", datatype=XSD.integer), Literal("1", datatype=XSD.integer)),
        (Literal("x" * 100, datatype=XSD.integer), Literal("x" * 100, datatype=XSD.integer)),
    ],
)
def test_a_literal_that_the_store_rewrites_is_no_difference_on_reload(
    store: OxigraphStore, written: list[str], given: Literal, kept: Literal
) -> None:
    graph, quads = titles("a", given)
    first = store.commit({graph: quads})
    assert store.graph(graph) == [Quad(mint("document", "a"), DCTERMS.title, kept, graph)]
    assert first.changes[0].added == frozenset(store.graph(graph))
    assert first.changes[0].content_sha256 == content_sha256(store.graph(graph)) == content_sha256(quads)
    again = store.commit({graph: quads})
    assert (again.generation, again.changes) == (first.generation, ())
    assert len(written) == 1


TERMS = st.one_of(
    st.text().map(Literal),
    st.builds(Literal, st.text(), language=st.sampled_from(["en-GB", "de", "zh-Hant-TW"])),
    st.builds(
        lambda text, kind: Literal(text, datatype=XSD[kind]),
        st.one_of(st.text(), st.integers().map(str), st.floats().map(str), st.decimals(allow_nan=False).map(str))
        | st.datetimes().map(lambda moment: moment.isoformat() + "+00:00"),
        st.sampled_from(["byte", "integer", "decimal", "double", "dateTime", "boolean", "date", "anyURI"]),
    ),
    st.text().map(lambda text: mint("place", text or "x")),
)


@settings(deadline=None)
@given(st.lists(TERMS, max_size=20))
def test_canonical_quads_are_what_an_engine_gives_back(terms: list[Literal | NamedNode]) -> None:
    _, quads = titles("a", *terms)
    engine = pyoxigraph.Store()
    engine.extend(quads)
    canonical = canonicalize(quads)
    assert set(canonical) == set(engine)
    assert len(canonical) == len(set(canonical))
    assert canonicalize(canonical) == canonical
    assert content_sha256(reversed(quads)) == content_sha256(list(engine))


@pytest.mark.parametrize(
    "text",
    [
        "nul \x00 inside",
        "\x00",
        "".join(map(chr, range(0x20))) + "\x7f\x85",
        "\\u0041 \\ \"\"\" ''' {}",
        "\ufffe\uffff\u2028",
        "𝔘\U0010ffff",
        "",
        "e\u0301 stays as it is",
    ],
)
def test_any_text_comes_back_verbatim(store: OxigraphStore, text: str) -> None:
    graph, quads = titles("a", text)
    store.commit({graph: quads})
    assert values(store, "a") == {text}
    assert store.commit({graph: quads}).changes == ()
    store.commit({graph: ()})
    assert store.graphs() == [PROV_GRAPH]


def test_a_text_of_five_megabytes_is_kept_and_compared(store: OxigraphStore) -> None:
    text = 'Ünïcode, "quoted"\n' * 280_000
    graph, quads = titles("big", text)
    assert len(text) > 5_000_000
    store.commit({graph: quads})
    assert values(store, "big") == {text}
    assert store.commit({graph: quads}).changes == ()


def test_a_lone_surrogate_never_reaches_the_store(store: OxigraphStore) -> None:
    with pytest.raises(ValueError):
        Literal("\ud800")
    with pytest.raises(QuerySyntaxError, match="lone surrogate"):
        store.update('INSERT DATA { GRAPH <urn:g> { <urn:s> <urn:p> "\ud800" } }')
    with pytest.raises(QuerySyntaxError, match="lone surrogate"):
        store.query('ASK { ?s ?p "\ud800" }')
    assert (store.statistics().generation, store.graphs()) == (0, [])


# Commits


def test_a_commit_writes_only_the_difference(store: OxigraphStore, written: list[str]) -> None:
    graph, quads = titles("a", *range(1000))
    store.commit({graph: quads})
    del written[:]
    result = store.commit({graph: [*quads[1:], *titles("a", "new")[1]]})
    assert (result.added, result.removed) == (1, 1)
    [text] = written
    assert text.count(str(DCTERMS.title)) == 2
    assert "DROP" not in text
    assert values(store, "a") == {*map(str, range(1, 1000)), "new"}


def test_many_graphs_and_their_provenance_are_one_update(store: OxigraphStore, written: list[str]) -> None:
    store.commit(dict([titles("a", 1), titles("b", 2)]))
    del written[:]

    def describe(changes: Sequence[GraphChange]) -> Patch:
        return Patch(add=frozenset(Quad(change.graph, PROV.wasGeneratedBy, KG.run, PROV_GRAPH) for change in changes))

    store.commit(dict([titles("a", 1), titles("b"), titles("c", 3)]), describe)
    assert len(written) == 1
    assert store.graphs().count(titles("b")[0]) == 0
    assert {quad.subject for quad in store.graph(PROV_GRAPH) if quad.predicate == PROV.wasGeneratedBy} == {
        titles("b")[0],
        titles("c")[0],
    }


def test_describe_sees_what_changes_and_its_patch_is_in_the_same_generation(store: OxigraphStore) -> None:
    store.commit(dict([titles("a", "old"), titles("same", "same")]))
    seen: list[GraphChange] = []
    note = Quad(titles("a")[0], PROV.wasGeneratedBy, KG.run, PROV_GRAPH)

    def describe(changes: Sequence[GraphChange]) -> Patch:
        seen.extend(changes)
        assert values(store, "a") == {"old"}, "asked before anything is written"
        return Patch(add=frozenset({note}))

    with store.snapshot() as before:
        result = store.commit(dict([titles("a", "new"), titles("same", "same")]), describe)
        assert note not in pyoxigraph.Store.read_only(str(before.path))
    assert seen == list(result.changes)
    assert [change.graph for change in seen] == [titles("a")[0]]
    assert (seen[0].added, seen[0].removed) == tuple(frozenset(titles("a", value)[1]) for value in ("new", "old"))
    with store.snapshot(result.generation) as after:
        assert note in pyoxigraph.Store.read_only(str(after.path))
        assert after.generation == result.generation == 2


def test_describe_is_not_asked_when_nothing_changes(store: OxigraphStore) -> None:
    store.commit(dict([titles("a", 1)]))

    def describe(_: Sequence[GraphChange]) -> Patch:
        raise AssertionError

    assert store.commit(dict([titles("a", 1), titles("none")]), describe).changes == ()


def fails(_: Sequence[GraphChange]) -> Patch:
    raise LookupError("no such run")


def strays(changes: Sequence[GraphChange]) -> Patch:
    return Patch(add=frozenset(changes[0].added))


def forges(_: Sequence[GraphChange]) -> Patch:
    return Patch(add=frozenset({Quad(mint("commit", "head"), KG.generation, Literal(99), PROV_GRAPH)}))


def blank(_: Sequence[GraphChange]) -> Patch:
    return Patch(add=frozenset({Quad(BlankNode(), KG.generation, Literal(99), PROV_GRAPH)}))


@pytest.mark.parametrize(
    ("describe", "error"), [(fails, LookupError), *((f, InvalidInputError) for f in (strays, forges, blank))]
)
def test_a_describe_that_fails_leaves_the_store_untouched(
    store: OxigraphStore, describe: Callable[[Sequence[GraphChange]], Patch], error: type[Exception]
) -> None:
    store.commit(dict([titles("a", 1)]))
    before = set(store._opened())
    with pytest.raises(error):
        store.commit(dict([titles("a", 2), titles("b", 2)]), describe)
    assert set(store._opened()) == before
    assert store.commit(dict([titles("a", 3)])).generation == 2


def test_a_write_that_the_engine_refuses_is_rolled_back_whole(
    store: OxigraphStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.commit(dict([titles("a", 1)]))
    before, counted = set(store._opened()), store.statistics()
    real = oxigraph.difference.build_update
    with monkeypatch.context() as patched:
        patched.setattr(
            oxigraph.difference, "build_update", lambda *parts: real(*parts) + "DROP GRAPH <urn:there-is-none>"
        )
        with pytest.raises(StoreError, match="Cannot write the commit"):
            store.commit(dict([titles("a", 2), titles("b", 2)]))
    assert set(store._opened()) == before
    assert store.statistics().generation == counted.generation
    assert store.commit(dict([titles("b", 2)])).generation == 2
    assert counters(store) == recount(store)


def test_an_interrupt_after_the_engine_has_written_loses_no_count(
    store: OxigraphStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    store.commit(dict([titles("a", 1)]))
    with monkeypatch.context() as patched:
        patched.setattr(store, "_sync_log", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.commit(dict([titles("a", 2)]))
    assert store.commit(dict([titles("a", 3)])).generation == 3
    assert counters(store) == recount(store)


def test_a_source_that_breaks_off_leaves_the_store_untouched(store: OxigraphStore) -> None:
    def broken() -> object:
        yield from titles("a", 1)[1]
        raise LookupError("truncated")

    with pytest.raises(LookupError):
        store.commit({titles("a")[0]: broken()})  # type: ignore[dict-item]
    assert store.graphs() == []


@pytest.mark.parametrize(
    "quad",
    [
        Quad(BlankNode(), P, Literal("x"), titles("a")[0]),
        Quad(KG.a, P, BlankNode(), titles("a")[0]),
        Quad(KG.a, P, Triple(KG.a, P, BlankNode()), titles("a")[0]),
    ],
)
def test_a_blank_node_is_refused_before_anything_is_written(store: OxigraphStore, quad: Quad) -> None:
    with pytest.raises(InvalidInputError, match="_:"):
        store.commit({titles("b")[0]: titles("b", 1)[1], titles("a")[0]: [quad]})
    assert store.graphs() == []


def test_quads_of_another_graph_and_of_graph_prov_are_refused(store: OxigraphStore) -> None:
    with pytest.raises(InvalidInputError, match="is in the graph"):
        store.commit({titles("a")[0]: titles("b", 1)[1]})
    with pytest.raises(InvalidInputError, match="is in the graph"):
        store.commit({KG.a: [Quad(KG.s, P, KG.a)]})
    with pytest.raises(InvalidInputError, match="cannot be replaced"):
        store.commit({PROV_GRAPH: []})


def test_a_commit_inside_a_commit_is_an_error_not_a_deadlock(store: OxigraphStore) -> None:
    def describe(_: Sequence[GraphChange]) -> Patch:
        store.commit(dict([titles("b", 1)]))
        return Patch()

    with pytest.raises(StoreError, match="Nested commit"):
        store.commit(dict([titles("a", 1)]), describe)
    store.commit(dict([titles("a", 1)]))


def test_each_generation_tells_what_it_touched(store: OxigraphStore) -> None:
    for number in range(1, 4):
        assert store.commit(dict([titles("a", number), titles(f"only{number}", 0)])).generation == number
    touched = store.query(
        "SELECT DISTINCT ?g { ?c a kg:Commit ; kg:generation ?n ; prov:endedAtTime ?t ; kg:touched ?g FILTER(?n > 1) }"
    )
    assert isinstance(touched, Rows)
    assert {graph for [graph] in touched.rows} == {titles(name)[0] for name in ("a", "only2", "only3")}


@pytest.mark.long
def test_no_update_is_lost_between_threads(store: OxigraphStore) -> None:
    store.commit(dict([titles("n", 0)]))
    document, graph = mint("document", "n"), titles("n")[0]
    increment = f"""WITH {graph} DELETE {{ {document} dcterms:title ?n }} INSERT {{ {document} dcterms:title ?m }}
        WHERE {{ {document} dcterms:title ?n BIND(?n + 1 AS ?m) }}"""

    def work(number: int) -> None:
        for step in range(5):
            store.commit(dict([titles(f"w{number}", *range(step + 1))]))
            store.update(increment)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values(store, "n") == {"20"}
    assert store.statistics().generation == 41
    assert counters(store) == recount(store)


def test_readers_in_other_threads_see_whole_commits(store: OxigraphStore) -> None:
    store.commit(dict([titles("a", 0), titles("b", 0)]))
    torn: list[Rows] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            rows = store.query("SELECT ?x ?y { GRAPH ?a { <cpr://doc/a> ?p ?x } GRAPH ?b { <cpr://doc/b> ?p ?y } }")
            assert isinstance(rows, Rows)
            torn.extend([rows] if len(rows) != 1 or rows.rows[0][0] != rows.rows[0][1] else [])

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(60):
        store.commit(dict([titles("a", number), titles("b", number)]))
    done.set()
    for reader in readers:
        reader.join()
    assert torn == []


# Updates


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
    assert [path.name for path in (store.data_dir / "snapshots").iterdir()] == ["1"], "its copy is gone"


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


# Shared graphs


def shared(name: str, *refers_to: str) -> tuple[NamedNode, list[Quad]]:
    graph = mint("graph", "ref", "place", name)
    place = mint("place", name)
    return graph, [
        Quad(place, DCTERMS.title, Literal(name), graph),
        *(Quad(place, P, mint("place", other), graph) for other in refers_to),
    ]


def record(name: str, *places: str) -> tuple[NamedNode, list[Quad]]:
    graph, quads = titles(name, name)
    return graph, [*quads, *(Quad(mint("document", name), P, mint("place", place), graph) for place in places)]


def shared_left(store: OxigraphStore) -> set[str]:
    return {graph.value.rpartition("/")[2] for graph in store.graphs() if "/graph/ref/" in graph.value}


def test_a_shared_graph_goes_with_its_last_reference_and_takes_its_provenance_along(store: OxigraphStore) -> None:
    place = shared("X")[0]
    node = mint("run", "derivation")

    def describe(_: Sequence[GraphChange]) -> Patch:
        return Patch(
            add=frozenset({
                Quad(place, PROV.wasGeneratedBy, KG.run, PROV_GRAPH),
                Quad(place, PROV.qualifiedDerivation, node, PROV_GRAPH),
                Quad(node, KG.sourceRows, Literal("1-3"), PROV_GRAPH),
                Quad(titles("a")[0], PROV.wasGeneratedBy, KG.run, PROV_GRAPH),
            })
        )  # fmt: skip

    store.commit(dict([shared("X"), record("a", "X"), record("b", "X")]), describe)
    store.commit(dict([record("a")]))
    assert shared_left(store) == {"X"}, "b still refers to it"
    result = store.commit({record("b")[0]: ()})
    assert shared_left(store) == set()
    assert {change.graph for change in result.changes} == {record("b")[0], place}
    assert [change.removed for change in result.changes if change.graph == place] == [frozenset(shared("X")[1])]
    about = {quad.subject for quad in store.graph(PROV_GRAPH) if quad.predicate != KG.touched}
    assert place not in about
    assert node not in about
    assert titles("a")[0] in about
    assert counters(store) == recount(store)


def test_a_reference_that_the_same_commit_puts_elsewhere_keeps_the_shared_graph(store: OxigraphStore) -> None:
    store.commit(dict([shared("X"), record("a", "X")]))
    store.commit(dict([record("a"), record("b", "X")]))
    assert shared_left(store) == {"X"}


def test_shared_graphs_go_in_chains_and_in_circles(store: OxigraphStore) -> None:
    store.commit(
        dict([shared("X", "Y"), shared("Y", "Z"), shared("Z", "Y"), shared("W"), record("a", "X"), record("b", "W")])
    )
    store.commit(dict([record("a", "Y")]))
    assert shared_left(store) == {"Y", "Z", "W"}, "only X lost its last reference"
    store.commit({record("a")[0]: ()})
    assert shared_left(store) == {"W"}, "Y and Z refer to each other alone"


def test_a_shared_graph_that_lives_keeps_alive_what_it_refers_to(store: OxigraphStore) -> None:
    links = [shared("X", "Y"), shared("Y", "Z"), shared("Z")]
    store.commit(dict([*links, record("a", "Y"), record("b", "X")]))
    store.commit(dict([record("a")]))
    assert shared_left(store) == {"X", "Y", "Z"}, "b refers to X, X to Y, Y to Z"


def test_what_graph_prov_says_keeps_no_shared_graph_alive(store: OxigraphStore) -> None:
    def describe(_: Sequence[GraphChange]) -> Patch:
        return Patch(add=frozenset({Quad(KG.run, PROV.used, mint("place", "X"), PROV_GRAPH)}))

    store.commit(dict([shared("X"), record("a", "X")]), describe)
    store.commit({record("a")[0]: ()})
    assert shared_left(store) == set()


def test_what_a_commit_says_of_a_shared_graph_itself_stands(store: OxigraphStore) -> None:
    store.commit(dict([shared("X"), shared("Y"), record("a", "X", "Y"), record("b", "Y")]))
    store.commit(dict([record("a"), shared("X"), (shared("Y")[0], [])]))
    assert shared_left(store) == {"X"}


def test_an_update_collects_what_it_orphans(store: OxigraphStore) -> None:
    store.commit(dict([shared("X"), record("a", "X")]))
    result = store.update(f"DROP GRAPH {record('a')[0]}")
    assert shared_left(store) == set()
    assert {change.graph for change in result.changes} == {record("a")[0], shared("X")[0]}


NAMES = st.sampled_from("abc")
PLACES = st.lists(st.sampled_from("VWXYZ"), max_size=3, unique=True)
STEPS = st.lists(
    st.one_of(
        st.dictionaries(NAMES, st.one_of(st.none(), PLACES), min_size=1).map(lambda step: ("records", step)),
        st.tuples(NAMES, st.integers(0, 3)).map(lambda step: ("update", step)),
    ),
    max_size=6,
)


@pytest.mark.long
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(links=st.dictionaries(st.sampled_from("VWXYZ"), PLACES), steps=STEPS)
def test_counters_and_shared_graphs_are_right_after_any_steps(
    tmp_path_factory: pytest.TempPathFactory, links: dict[str, list[str]], steps: list[tuple[str, object]]
) -> None:
    """Against a model: a shared graph lives if a record that ever stood here refers to it, directly or not, today."""
    with OxigraphStore(tmp_path_factory.mktemp("any")) as store:
        records: dict[str, list[str]] = {}
        for kind, step in steps:
            if kind == "update":
                name, number = step  # type: ignore[misc]
                store.update(f"INSERT DATA {{ GRAPH <urn:g{name}> {{ <urn:s> <urn:p> {number} }} }}")
                continue
            wanted = dict(step)  # type: ignore[call-overload]
            replace = {}
            for name, places in wanted.items():
                graph, quads = record(name, *(places or ()))
                replace[graph] = [] if places is None else quads
            reached = reachable([place for places in wanted.values() for place in places or ()], links)
            replace |= dict(shared(place, *links.get(place, ())) for place in reached)
            store.commit(replace)
            for name, places in wanted.items():
                records.pop(name, None)
                if places is not None:
                    records[name] = places
            assert shared_left(store) == reachable([place for places in records.values() for place in places], links)
        assert counters(store) == recount(store)
        before = store.statistics(), content(store)
        folder = store.data_dir
    with OxigraphStore(folder) as store:
        assert (store.statistics().generation, content(store)) == (before[0].generation, before[1])
        assert counters(store) == recount(store)


def reachable(places: list[str], links: dict[str, list[str]]) -> set[str]:
    found: set[str] = set()
    while places:
        place = places.pop()
        if place not in found:
            found.add(place)
            places.extend(links.get(place, ()))
    return found


# Reading


def test_results_are_finished_and_may_cross_threads(store: OxigraphStore) -> None:
    store.commit(dict([titles("a", *range(5))]))
    found: list[object] = []
    worker = threading.Thread(
        target=lambda: found.extend(
            [
                store.query("SELECT ?o { <cpr://doc/a> dcterms:title ?o } ORDER BY ?o", limit=2),
                store.query("ASK { ?s dcterms:title 3 }"),
                store.query("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o . ?s dcterms:title 1 }", limit=3),
            ]
        )
    )
    worker.start()
    worker.join()
    rows, asked, triples = found
    assert isinstance(rows, Rows)
    assert (rows.variables, rows.truncated) == (("o",), True)
    assert [row["o"] for row in rows] == [Literal(0), Literal(1)]
    assert asked is True
    assert isinstance(triples, list)
    assert len(triples) == 3


def test_a_limit_that_is_not_reached_cuts_nothing(store: OxigraphStore) -> None:
    store.commit(dict([titles("a", 1, 2)]))
    for limit in (2, 3, None):
        rows = store.query("SELECT ?o { <cpr://doc/a> ?p ?o }", limit=limit)
        assert isinstance(rows, Rows)
        assert (len(rows), rows.truncated) == (2, False)


def test_a_wrong_query_says_where(store: OxigraphStore) -> None:
    with pytest.raises(QuerySyntaxError, match=r"line 1, column \d+"):
        store.query("SELECT {")


def test_a_dump_has_all_quads_or_one_graph(store: OxigraphStore) -> None:
    store.commit(dict([titles("a", "x"), titles("b", "y")]))
    whole, one = io.BytesIO(), io.BytesIO()
    store.dump(whole, RdfFormat.N_QUADS)
    assert set(pyoxigraph.parse(whole.getvalue(), RdfFormat.N_QUADS)) == set(store._opened())
    store.dump(one, RdfFormat.TURTLE, titles("a")[0])
    assert [quad.object.value for quad in pyoxigraph.parse(one.getvalue(), RdfFormat.TURTLE)] == ["x"]
    with pytest.raises(InvalidInputError, match="N-Quads or TriG"):
        store.dump(io.BytesIO(), RdfFormat.TURTLE)


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = OxigraphStore(tmp_path)
    store.close()
    store.close()
    for call in (store.graphs, store.snapshot, lambda: store.commit({}), lambda: store.query("ASK {}")):
        with pytest.raises(StoreError, match="is closed"):
            call()


# The disk


def test_the_log_is_synchronized_before_a_commit_is_acknowledged(
    store: OxigraphStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        events.append(os.readlink(f"/proc/self/fd/{descriptor}") if os.path.exists("/proc/self/fd") else "log")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    spy = Statements(store._opened())
    monkeypatch.setattr(store, "_store", spy)
    for number in range(3):
        spy.updates.clear()
        events.clear()
        store.commit(dict([titles("a", number)]))
        assert len(spy.updates) == 1
        newest = max((store.data_dir / "store").glob("*.log"), key=lambda path: int(path.stem))
        assert str(newest) in events
    events.clear()
    store.commit(dict([titles("a", 2)]))
    assert events == [], "nothing written, nothing to synchronize"


def test_a_log_that_cannot_be_synchronized_is_an_error(store: OxigraphStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", broken)
        with pytest.raises(StoreError, match="Input/output error"):
            store.commit(dict([titles("a", 1)]))
    store.commit(dict([titles("a", 2)]))
    assert values(store, "a") == {"2"}
    assert counters(store) == recount(store)


def log_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in (folder / "store").glob("*.log"))


def test_flushing_bounds_the_log_that_a_reopening_has_to_replay(tmp_path: Path) -> None:
    sizes = {}
    for flush_quads in (500, 1_000_000):
        with OxigraphStore(tmp_path / str(flush_quads), flush_quads=flush_quads, idle_s=3600) as store:
            for number in range(40):
                store.commit(dict([titles(f"g{number}", *(f"{number} {row}" * 20 for row in range(300)))]))
            sizes[flush_quads] = log_bytes(store.data_dir)
    assert sizes[500] < sizes[1_000_000] / 4


def test_an_idle_store_flushes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with OxigraphStore(tmp_path, idle_s=0.01) as store:
        written, flushed = threading.Event(), threading.Event()
        real = store._flush

        def flush(engine: pyoxigraph.Store) -> None:
            assert written.wait(10)
            real(engine)
            flushed.set()

        monkeypatch.setattr(store, "_flush", flush)
        store.commit(dict([titles("a", *range(1000))]))
        before = len(list((tmp_path / "store").glob("*.sst")))
        written.set()
        assert flushed.wait(10)
        assert len(list((tmp_path / "store").glob("*.sst"))) > before


def test_a_flush_that_fails_costs_no_commit(
    store: OxigraphStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class NoFlush(Statements):
        def flush(self) -> None:
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(store, "_store", NoFlush(store._opened()))
        patched.setattr(store, "_flush_quads", 1)
        assert store.commit(dict([titles("a", 1)])).generation == 1
    assert "No space left" in caplog.text
    assert values(store, "a") == {"1"}


def test_a_damaged_store_says_so(tmp_path: Path) -> None:
    OxigraphStore(tmp_path).close()
    (tmp_path / "store" / "CURRENT").write_text("garbage\n")
    with pytest.raises(StoreError, match="CURRENT"):
        OxigraphStore(tmp_path)


def test_a_damaged_block_is_a_store_error_wherever_it_is_met(tmp_path: Path) -> None:
    with OxigraphStore(tmp_path) as store:
        store.commit(dict(titles(f"g{i}", i) for i in range(2000)))
    for table in (tmp_path / "store").glob("*.sst"):
        content = bytearray(table.read_bytes())
        if len(content) > 20_000:
            content[len(content) // 2] ^= 0xFF
            table.write_bytes(content)
    store = OxigraphStore(tmp_path)
    with pytest.raises(StoreError, match="checksum"):
        store.commit({graph: [] for graph, _ in (titles(f"g{i}", i) for i in range(2000))})
    with pytest.raises(StoreError, match="Cannot read"):
        store.dump(io.BytesIO(), RdfFormat.N_QUADS)
    with suppress(StoreError):
        store.close()
    assert find_holder(tmp_path) is None


def test_a_store_folder_that_vanished_is_not_silently_empty(tmp_path: Path) -> None:
    with OxigraphStore(tmp_path) as store:
        store.commit(dict([titles("a", 1)]))
    (tmp_path / "store").rename(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="missing or incomplete"):
        OxigraphStore(tmp_path)
    (tmp_path / "elsewhere").rename(tmp_path / "store")
    with OxigraphStore(tmp_path) as store:
        assert values(store, "a") == {"1"}


def test_a_store_that_lost_its_first_file_is_not_silently_begun_anew(tmp_path: Path) -> None:
    with OxigraphStore(tmp_path) as store:
        store.commit(dict([titles("a", 1)]))
    (tmp_path / "store" / "CURRENT").rename(tmp_path / "elsewhere")
    for _ in range(2):
        with pytest.raises(StoreError, match="missing or incomplete"):
            OxigraphStore(tmp_path)
    (tmp_path / "elsewhere").rename(tmp_path / "store" / "CURRENT")
    with OxigraphStore(tmp_path) as store:
        assert values(store, "a") == {"1"}


def test_quads_that_were_there_before_the_first_commit_are_counted_once(tmp_path: Path) -> None:
    OxigraphStore(tmp_path).close()
    engine = pyoxigraph.Store(tmp_path / "store")
    engine.extend([*titles("a", 1, 2)[1], *titles("b", 3)[1]])
    del engine
    with OxigraphStore(tmp_path) as store:
        assert counters(store) == (3, 2)
        store.commit(dict([titles("c", 1)]))
        assert counters(store) == recount(store)


def test_size_on_disk_is_that_of_the_files(store: OxigraphStore) -> None:
    store.commit(dict([titles("a", "x" * 100_000)]))
    assert store.statistics().bytes_on_disk > 100_000
