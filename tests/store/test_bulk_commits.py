"""Commits as table files write what a transaction writes, and a stop at any point leaves a whole commit or none."""

from __future__ import annotations

import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat

from kg.errors import StoreError, WriteUncertainError
from kg.store import bulk_commits
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import Patch, Rows
from kg.vocabulary import DCTERMS, KG, PROV_GRAPH, SCHEMA, mint

UNFINISHED = "unfinished-commit.json"
TIME = re.compile(rb'"[^"]*"\^\^<http://www.w3.org/2001/XMLSchema#dateTime>')


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write all commits that add only as table files."""
    monkeypatch.setattr(bulk_commits, "LEAST", 1)


def make_graph(name: str, count: int = 20) -> dict[NamedNode, list[Quad]]:
    graph, subject = mint("graph", "src", "test", name), mint("document", name)
    values = [
        Literal('"quoted"\n\\ \t \u0000 \U0001f600'),
        Literal("Gesetz", language="de-at"),
        Literal("0.90", datatype=NamedNode("http://www.w3.org/2001/XMLSchema#decimal")),
        Literal("nonsense", datatype=NamedNode("http://www.w3.org/2001/XMLSchema#integer")),
        *(Literal(number) for number in range(count)),
    ]
    return {graph: [Quad(subject, SCHEMA.position, value, graph) for value in values]}


def describe(name: str) -> Patch:
    """The end of a run, which replaces that of the commit before."""
    run = mint("run", "test")
    ends = {
        each: Quad(run, DCTERMS.modified, Literal(each), PROV_GRAPH) for each in ("first", "second", "third", "last")
    }
    return Patch(remove=frozenset(ends.values()) - {ends[name]}, add=frozenset({ends[name]}))


def dump(store: OxigraphStore) -> list[bytes]:
    output = io.BytesIO()
    store.dump(output, RdfFormat.N_QUADS)
    return sorted(TIME.sub(b"TIME", output.getvalue()).splitlines())


def count(store: OxigraphStore) -> list[int]:
    found = store.query("SELECT (COUNT(*) AS ?q) (COUNT(DISTINCT ?g) AS ?n) { GRAPH ?g { ?s ?p ?o } }")
    assert isinstance(found, Rows)
    return [int(term.value) for term in found.rows[0] if isinstance(term, Literal)]


def fail(*_: object) -> None:
    raise OSError("no space left")


def test_table_files_and_transactions_write_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = {}
    for least in (1, 10**9):
        monkeypatch.setattr(bulk_commits, "LEAST", least)
        with OxigraphStore(tmp_path / str(least)) as store:
            for name in ("first", "second", "third"):
                store.commit(make_graph(name, 400), lambda _, name=name: describe(name))  # type: ignore[misc]
            statistics = store.statistics()
            assert count(store) == [statistics.quads, statistics.graphs]
            assert sorted(map(str, store.graphs())) == sorted(
                map(str, [*(mint("graph", "src", "test", name) for name in ("first", "second", "third")), PROV_GRAPH])
            )
            written[least] = dump(store)
            logged = sum(path.stat().st_size for path in store.directory.store.glob("*.log"))
            assert (logged < 20_000) == (least == 1), "table files are not in the log"
    assert written[1] == written[10**9]


def test_no_flush_follows_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would wait for merges of table files, and the next commit for it."""
    with OxigraphStore(tmp_path, flush_quads=1, idle_s=3600) as store:
        flushed = []
        monkeypatch.setattr(store, "_flush", flushed.append)
        with monkeypatch.context() as patch:
            patch.setattr(bulk_commits, "LEAST", 1)
            for name in ("first", "second"):
                store.commit(make_graph(name), lambda _, name=name: describe(name))  # type: ignore[misc]
        assert not flushed
        store.commit(make_graph("third"))
        assert len(flushed) == 1


@pytest.mark.usefixtures("at_once")
def test_what_it_removed_is_flushed_at_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with OxigraphStore(tmp_path, idle_s=0.01) as store:
        flushed = threading.Event()
        monkeypatch.setattr(store, "_flush", lambda _: flushed.set())
        store.commit(make_graph("first"))
        assert flushed.wait(60)


@pytest.mark.usefixtures("at_once")
def test_commits_that_remove_or_replace_content_are_transactions(tmp_path: Path) -> None:
    with OxigraphStore(tmp_path) as store:
        store.commit(make_graph("first"))
        [(graph, quads)] = make_graph("first").items()
        for wanted in (quads[2:], []):
            store.commit({graph: wanted})
            assert set(store.graph(graph)) == {quad for quad in store.graph(graph) if wanted}
            assert len(list(store.graph(graph))) == len(wanted)
            assert count(store)[0] == store.statistics().quads


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("is_dropped", [False, True])
def test_a_stop_before_the_old_head_or_a_dropped_graph_is_removed_is_made_good_when_the_store_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_dropped: bool
) -> None:
    wanted = dict.fromkeys(make_graph("first"), ()) if is_dropped else make_graph("second")
    with OxigraphStore(tmp_path) as store:
        store.commit(make_graph("first"), lambda _: describe("first"))
        with monkeypatch.context() as patch:
            patch.setattr(bulk_commits, "_remove", fail)
            with pytest.raises(WriteUncertainError):
                store.commit(wanted, lambda _: describe("second"))
        assert store.statistics().generation == 2, "the head of the commit that is written"
        assert (tmp_path / UNFINISHED).exists()
    with OxigraphStore(tmp_path) as store:
        assert not (tmp_path / UNFINISHED).exists()
        statistics = store.statistics()
        assert statistics.generation == 2
        assert count(store) == [statistics.quads, statistics.graphs] == [statistics.quads, len(store.graphs())]
        ends = [quad.object for quad in store.graph(PROV_GRAPH) if quad.predicate == DCTERMS.modified]
        assert ends == [Literal("second")]
        assert store.commit(make_graph("third"), lambda _: describe("third")).generation == 3


@pytest.mark.usefixtures("at_once")
def test_a_commit_whose_table_files_cannot_be_written_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OxigraphStore(tmp_path) as store:
        store.commit(make_graph("first"), lambda _: describe("first"))
        before = dump(store)
        with monkeypatch.context() as patch:
            patch.setattr(bulk_commits, "_generate_lines", fail)
            with pytest.raises(StoreError, match="Nothing was written"):
                store.commit(make_graph("second"), lambda _: describe("second"))
        assert dump(store) == before
        time.sleep(0.6)  # between two attempts to write again
        assert store.commit(make_graph("third"), lambda _: describe("third")).generation == 2
        assert not (tmp_path / UNFINISHED).exists()


@pytest.mark.usefixtures("at_once")
def test_what_is_left_of_a_commit_of_another_store_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OxigraphStore(tmp_path) as store:
        store.commit(make_graph("first"), lambda _: describe("first"))
        before = dump(store)
    statement = next(line for line in before if b"modified" in line).decode().rpartition(" <")[0]
    other = {
        "head": {"generation": 1, "quads": 9, "graphs": 9},
        "time": "<urn:a> <urn:b> <urn:c>",
        "remove": {PROV_GRAPH.value: [statement]},
    }
    (tmp_path / UNFINISHED).write_text(json.dumps(other))
    (tmp_path / "store" / "bulk-123.sst").write_bytes(b"half")
    (tmp_path / "bulk-commit-123.nq").write_bytes(b"half")
    with OxigraphStore(tmp_path) as store:
        assert dump(store) == before
        assert store.statistics().quads == count(store)[0]
    assert not (tmp_path / UNFINISHED).exists()
    assert not [*(tmp_path / "store").glob("bulk-*"), *tmp_path.glob("bulk-*")]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the threads of a process are listed by Linux")
def test_merges_of_table_files_yield_to_other_threads(tmp_path: Path) -> None:
    with OxigraphStore(tmp_path):
        levels = {
            os.getpriority(os.PRIO_PROCESS, int(task.name))
            for task in Path("/proc/self/task").iterdir()
            if (task / "comm").read_text().startswith("rocksdb:low")
        }
    assert levels
    assert min(levels) > os.getpriority(os.PRIO_PROCESS, 0)


WRITER = """
import sys
from pathlib import Path
from kg.store import bulk_commits
from kg.store.oxigraph import OxigraphStore
from tests.store.test_bulk_commits import describe, make_graph

bulk_commits.LEAST = 1
store = OxigraphStore(Path(sys.argv[1]), flush_quads=3_000, idle_s=0.005)
number = store.statistics().generation
while True:
    number += 1
    name = ("first", "second", "third")[number % 3]
    print(store.commit(make_graph(str(number), 400), lambda _: describe(name)).generation, flush=True)
    if number % 4 == 0:
        store.snapshot().release()
"""


@pytest.mark.long
def test_a_kill_leaves_the_last_acknowledged_commit_or_the_next_one(tmp_path: Path) -> None:
    chance = random.Random()
    for round_ in range(8):
        command = [sys.executable, "-c", WRITER, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            last = [process.stdout.readline() for _ in range(chance.randint(1, 6))][-1]
            time.sleep(chance.random() * 0.1)  # the moment of the kill is the point of the test
            os.kill(process.pid, signal.SIGKILL)
            acknowledged = int((process.stdout.read().rpartition("\n")[0] or last).split()[-1])
        with OxigraphStore(tmp_path) as store:
            statistics = store.statistics()
            at = statistics.generation
            where = f"round {round_}: {acknowledged} was acknowledged, {at} is there"
            assert at in (acknowledged, acknowledged + 1), where
            assert count(store) == [statistics.quads, statistics.graphs], where
            for number in range(1, at + 2):
                [(graph, quads)] = make_graph(str(number), 400).items()
                assert len(list(store.graph(graph))) == (len(quads) if number <= at else 0), where
            heads = [quad for quad in store.graph(PROV_GRAPH) if quad.predicate == KG.quadCount]
            ends = [quad for quad in store.graph(PROV_GRAPH) if quad.predicate == DCTERMS.modified]
            assert (len(heads), len(ends)) == (1, 1), where
