"""The embedded store: commits are atomic, minimal and counted, and results are complete."""

from __future__ import annotations

import errno
import io
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, Triple

from kg.errors import InvalidInputError, QuerySyntaxError, StoreError, WriteUncertainError
from kg.store import oxigraph
from kg.store.difference import canonical_statements, canonicalize, content_sha256
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import GraphChange, Patch, Rows
from kg.vocabulary import DCTERMS, KG, PROV, PROV_GRAPH, XSD, mint
from tests.store.conftest import counters, recount, titles, values

P = KG.relatesTo


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


@given(st.lists(TERMS, max_size=20))
def test_canonical_quads_are_what_an_engine_gives_back(terms: list[Literal | NamedNode]) -> None:
    graph, quads = titles("a", *terms)
    engine = pyoxigraph.Store()
    engine.extend(quads)
    canonical = canonicalize(quads)
    assert set(canonical) == set(engine)
    statements = {str(quad).removesuffix(f" {graph}"): quad for quad in engine}
    assert canonical_statements(graph, quads) == statements  # these are judged by their text
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


def test_provenance_alone_is_changed_by_a_commit(store: OxigraphStore) -> None:
    store.commit(dict([titles("a", "old")]))
    note = Quad(titles("a")[0], PROV.wasGeneratedBy, KG.run, PROV_GRAPH)
    for patch, holds in ((Patch(add=frozenset({note})), True), (Patch(remove=frozenset({note})), False)):
        generation = store.statistics().generation
        assert store.commit_provenance(patch).generation == generation + 1
        with store.snapshot(generation + 1) as after:
            assert (note in pyoxigraph.Store.read_only(str(after.path))) == holds
        assert store.commit_provenance(patch).generation == generation + 1
        assert counters(store) == recount(store)
    assert store.find_last_change(frozenset({PROV.wasGeneratedBy.value})) == 3


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


def test_write_that_is_stored_but_not_synced_is_named_as_uncertain(
    store: OxigraphStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    store.commit(dict([titles("a", 1)]))
    with monkeypatch.context() as patched:
        patched.setattr(store._log, "sync", fail)
        with pytest.raises(WriteUncertainError, match="generation 2"):
            store.commit(dict([titles("a", 2)]))
    assert store.statistics().generation == 2
    assert store.commit(dict([titles("a", 2)])).generation == 2, "a repetition changes nothing"
    assert counters(store) == recount(store)


def test_an_interrupt_after_the_engine_has_written_loses_no_count(
    store: OxigraphStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    store.commit(dict([titles("a", 1)]))
    with monkeypatch.context() as patched:
        patched.setattr(store._log, "sync", interrupted)
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
    with pytest.raises(InvalidInputError, match="Blank nodes"):
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
