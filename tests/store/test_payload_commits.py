"""Large payloads are compared and written by other processes, with the same result as in this one."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import pytest
from pyoxigraph import Literal, NamedNode, Quad, Triple

from kg.errors import ConflictError, QueryMemoryError, QueryTimeoutError
from kg.store import oxigraph
from kg.store.difference import canonical_statements
from kg.store.ownership import HiddenGraphs
from kg.store.oxigraph import OxigraphStore
from kg.store.payloads import Payload
from kg.store.protocol import Content, GraphChange, Patch, Rows
from kg.store.statement_files import StatementFile, write_statements
from kg.vocabulary import DCTERMS, PROV_GRAPH, XSD, mint
from tests.store.conftest import counters, recount

GRAPH, OTHER = mint("graph", "user", "large"), mint("graph", "user", "other")
NODE = mint("document", "x")
ODD = [
    Literal('a\n\r\t"quoted"\\ \u2028\x0b\x00 é 😀'),
    Literal("007", datatype=XSD.integer),
    Literal("2026-01-01T00:00:00+00:00", datatype=XSD.dateTime),
    Literal("colour", language="en-GB"),
    NODE,
    Triple(NODE, DCTERMS.title, Literal("quoted")),
]


def payload(*values: object, graph: NamedNode = GRAPH) -> Payload:
    terms = [value if isinstance(value, (Literal, NamedNode, Triple)) else Literal(str(value)) for value in values]
    return Payload.build(graph, [Triple(NODE, DCTERMS.title, term) for term in terms])


def read(store: OxigraphStore, graph: NamedNode = GRAPH) -> set[str]:
    return {quad.object.value for quad in store.graph(graph) if isinstance(quad.object, Literal)}


def test_statement_file_is_a_mapping_like_a_dict(tmp_path: Path) -> None:
    wanted = canonical_statements(GRAPH, payload(*ODD, "other").quads())
    file = StatementFile(tmp_path / "file", GRAPH, write_statements(tmp_path / "file", sorted(wanted)))
    assert dict(file.items()) == wanted == dict(file)
    assert len(file) == len(wanted)
    assert set(file.values()) == set(wanted.values()) == set(file.as_set())
    assert all(line in file and file[line] == quad and quad in file.as_set() for line, quad in wanted.items())
    [quad] = payload("missing").quads()
    assert quad not in file.as_set()
    assert "" not in file
    assert "z" not in file
    assert next(payload(ODD[0], graph=OTHER).quads()) not in file.as_set()
    empty = StatementFile(tmp_path / "empty", GRAPH, write_statements(tmp_path / "empty", ()))
    assert not empty
    assert not list(empty.values())
    assert "a" not in empty


def test_large_payloads_have_the_same_result_as_others(tmp_path: Path) -> None:
    """Replaced, extended, removed: the same quads, counters, hashes and records."""
    steps: list[tuple[Sequence[object], bool]] = [((*ODD, 1, 2), False), ((2, 3), False), ((3, 4), True), ((), False)]
    seen: list[list[tuple[str | None, int, int]]] = [[], []]
    with OxigraphStore(tmp_path / "a") as here, OxigraphStore(tmp_path / "b") as elsewhere:
        for values, keep in steps:
            sent = payload(*values)

            def note(changes: Sequence[GraphChange], found: list[tuple[str | None, int, int]]) -> Patch:
                found += [
                    (change.content_sha256, len(set(change.added)), len(set(change.removed))) for change in changes
                ]
                return Patch()

            if keep:
                here.extend(GRAPH, sent.quads(), lambda changes: note(changes, seen[0]))
            else:
                here.commit({GRAPH: sent.quads()}, lambda changes: note(changes, seen[0]))
            before = elsewhere.count(GRAPH)
            commit, held = elsewhere.write_payload(sent, lambda changes: note(changes, seen[1]), keep=keep)
            assert held == before
            assert commit.generation == elsewhere.statistics().generation == here.statistics().generation
            assert set(elsewhere.graph(GRAPH)) == set(here.graph(GRAPH))
            assert counters(elsewhere) == counters(here) == recount(elsewhere)
            assert {quad.predicate for quad in elsewhere.graph(PROV_GRAPH)} == {
                quad.predicate for quad in here.graph(PROV_GRAPH)
            }
        assert not elsewhere.write_payload(payload())[0].changes
        assert GRAPH not in elsewhere.graphs()
        assert seen[0] == seen[1]
        elsewhere.commit({GRAPH: payload(1).quads()})
    with OxigraphStore(tmp_path / "b") as again:
        assert read(again) == {"1"}


def test_large_payload_does_not_repeat_other_graphs(store: OxigraphStore) -> None:
    store.commit({OTHER: payload(1, graph=OTHER).quads()})
    with pytest.raises(ConflictError):
        store.write_payload(payload(1, 2))
    assert not read(store)

    def take(_: Content) -> None:  # after the comparison, so it knows nothing of this triple
        store.commit({OTHER: payload(1, 3, graph=OTHER).quads()})

    with pytest.raises(ConflictError) as raised:
        store.write_payload(payload(2, 3), check=take)
    # The error is still there, and its frames referred to the engine, which is now closed.
    assert raised.value
    assert store.write_payload(payload(2))[0].changes


@pytest.mark.long
def test_large_payload_is_compared_again_after_other_writes(store: OxigraphStore) -> None:
    others = iter((3, 4))
    seen = []

    def interfere(content: Content) -> None:
        seen.append((content.before, content.after, len(set(content))))
        if (number := next(others, None)) is not None:
            store.extend(GRAPH, payload(number).quads())

    store.write_payload(payload(1, 2), check=interfere, keep=True)
    assert read(store) == {"1", "2", "3", "4"}
    assert seen == [(0, 2, 2), (1, 3, 3), (2, 4, 4)]


def test_commit_of_large_payload_that_fails_changes_nothing(
    store: OxigraphStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write_payload(payload(1))
    write = oxigraph.write_commit

    def fail(*_: object) -> None:
        raise QueryMemoryError("killed")

    def fail_late(*arguments: object) -> None:
        write(*arguments)  # type: ignore[arg-type]
        raise QueryTimeoutError("killed after the transaction")

    monkeypatch.setattr(oxigraph, "write_commit", fail)
    with pytest.raises(QueryMemoryError):
        store.write_payload(payload(2))
    assert read(store) == {"1"}
    store.commit({OTHER: payload(5, graph=OTHER).quads()})
    monkeypatch.setattr(oxigraph, "write_commit", fail_late)
    store.write_payload(payload(3))
    assert read(store) == {"3"}
    assert counters(store) == recount(store)
    # Nor can the engine open the files again, as on a full disk. The commit is there, so the answer says that.
    opening = oxigraph.pyoxigraph.Store

    class FullDisk:
        read_only = opening.read_only

        def __new__(cls, *_: object) -> Self:
            raise OSError("No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(oxigraph.pyoxigraph, "Store", FullDisk)
        store.write_payload(payload(4))
        assert store.problem is not None
    assert read(store) == {"4"}


@pytest.mark.long
def test_large_payload_is_written_while_others_read(store: OxigraphStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """No reader sees a part of it, and one that keeps the engine does not stop it."""
    values = [[f"{sent} {number}" for number in range(200)] for sent in range(2)]
    store.write_payload(payload(*values[1]))
    found: set[tuple[int, ...]] = set()
    end = threading.Event()
    query = f"SELECT ?t {{ GRAPH {GRAPH} {{ ?s ?p ?t }} }}"

    def poll() -> None:
        while not end.is_set():
            rows = store.query(query)
            assert isinstance(rows, Rows)
            starts = [row["t"].value[0] for row in rows if isinstance(row["t"], Literal)]
            end.wait(0.002)
            found.add((starts.count("0"), starts.count("1")))

    thread = threading.Thread(target=poll)
    thread.start()
    for sent in (0, 1):
        store.write_payload(payload(*values[sent]))
    end.set()
    thread.join()
    assert found <= {(200, 0), (0, 200)}
    monkeypatch.setattr(oxigraph, "_READERS_S", 0.01)
    with store._reading():
        store.write_payload(payload(1))
    assert read(store) == {"1"}


def test_hidden_graphs_take_bounded_memory(store: OxigraphStore) -> None:
    """Of properties and subjects that change with each write, nothing accumulates."""
    for sent in range(3):
        quads = [
            Quad(NamedNode(f"urn:s{sent}:{n}"), NamedNode(f"urn:p{sent}:{n}"), Literal(n), GRAPH) for n in range(300)
        ]
        store.commit({GRAPH: quads})
        assert store.pin().visibility.find_graphs({"urn:anything"}) == {GRAPH}
    statements = store._hidden_graphs
    assert isinstance(statements, HiddenGraphs)
    assert not statements._graphs
    store.commit({GRAPH: [], OTHER: payload(1, graph=OTHER).quads()})
    assert store.pin().visibility.find_graphs({"urn:anything"}) == set()
    assert store.pin().visibility.find_graphs({DCTERMS.title.value}) == {OTHER}
    store.commit({OTHER: []})
    assert not statements._graphs
