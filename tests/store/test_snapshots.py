"""Snapshots are immutable, numbered, counted while in use, few, and never older than asked for."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pyoxigraph
import pytest

from kg.errors import GoneError, InvalidInputError, StoreError
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import Everything, Visibility
from kg.store.snapshots import Made, Snapshots
from tests.store.conftest import titles


def kept(store: OxigraphStore) -> list[int]:
    return sorted(int(path.name) for path in store.directory.snapshots.iterdir())


class Checkpoints:
    """Counts what `Snapshots` asks for; `generation` is the newest."""

    def __init__(self) -> None:
        self.generation = 1
        self.made: list[int] = []
        self.writing = False

    def __call__(self, folder: Path, wait: bool, made: Made) -> None:
        if self.writing and not wait:
            return
        (folder / str(self.generation)).mkdir()
        self.made.append(self.generation)
        made(self.generation, Everything())


def test_a_snapshot_does_not_change_while_the_store_does(store: OxigraphStore) -> None:
    store.commit(dict([titles("a", "first")]))
    with store.snapshot() as snapshot:
        reader = pyoxigraph.Store.read_only(str(snapshot.path))
        store.commit(dict([titles("a", "second"), titles("b", "new")]))
        reopened = pyoxigraph.Store.read_only(str(snapshot.path))
        for view in (reader, reopened):
            found = [quad.object.value for quad in view.quads_for_pattern(None, None, None, titles("a")[0])]
            assert found == ["first"]
            assert not view.contains_named_graph(titles("b")[0])
        assert snapshot.generation == 1


def test_a_snapshot_holds_exactly_its_generation_while_threads_commit(store: OxigraphStore) -> None:
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            store.commit(dict([titles("a", number)]))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(5):
            with store.snapshot(store.statistics().generation) as snapshot:
                view = pyoxigraph.Store.read_only(str(snapshot.path))
                [value] = [quad.object.value for quad in view.quads_for_pattern(None, None, None, titles("a")[0])] or [
                    "0"
                ]
                assert int(value) == snapshot.generation
                del view
    finally:
        stop.set()
        writer.join()


def test_an_unchanged_store_gives_the_same_snapshot_again(store: OxigraphStore) -> None:
    store.commit(dict([titles("a", 1)]))
    with store.snapshot() as first, store.snapshot() as second:
        assert first == second


def test_commits_leave_nothing_to_flush_to_who_waits_for_their_snapshot(store: OxigraphStore) -> None:
    def tables() -> set[Path]:
        return set(store.directory.store.glob("*.sst"))

    before = tables()
    store.commit(dict([titles("a", 1)]))
    assert tables() == before
    store.snapshot(1).release()
    wanted = tables()
    store.commit(dict([titles("a", 2)]))
    assert tables() - wanted


def test_two_are_kept_and_one_in_use_is_never_deleted(store: OxigraphStore) -> None:
    held = store.snapshot()
    for number in range(1, 5):
        store.commit(dict([titles("a", number)]))
        store.snapshot(number).release()
    assert kept(store) == [0, 3, 4]
    assert len(pyoxigraph.Store.read_only(str(held.path))) == 0
    held.release()
    assert kept(store) == [3, 4]


def test_a_second_release_takes_nobody_elses_snapshot(store: OxigraphStore) -> None:
    first, second = store.snapshot(), store.snapshot()
    first.release()
    first.release()
    for number in (1, 2, 3):
        store.commit(dict([titles("a", number)]))
        store.snapshot(number).release()
    assert second.path.is_dir()
    second.release()
    assert not second.path.exists()


def test_leftovers_are_removed_at_open_and_nothing_is_left_at_close(tmp_path: Path) -> None:
    OxigraphStore(tmp_path).close()
    (tmp_path / "snapshots" / "77").mkdir(parents=True)
    with OxigraphStore(tmp_path) as store:
        assert kept(store) == []
        store.snapshot().release()
        late = store.snapshot()
    assert late.path.is_dir(), "whoever still reads it may finish"
    late.release()
    assert not late.path.exists()


@pytest.mark.long
def test_a_store_opens_while_what_a_killed_one_started_still_writes_its_leftovers(tmp_path: Path) -> None:
    """An update runs in a process of its own, which may outlive its server for a moment."""
    with OxigraphStore(tmp_path):
        pass
    left = tmp_path / "snapshots" / "update-1"
    left.mkdir(parents=True)
    done = threading.Event()

    def write_on() -> None:
        number = 0
        while not done.is_set():
            number += 1
            with suppress(FileNotFoundError):
                (left / str(number)).write_bytes(b"quads")

    threads = [threading.Thread(target=write_on) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            with OxigraphStore(tmp_path):
                assert list((tmp_path / "snapshots").iterdir()) == []
            left.mkdir(parents=True, exist_ok=True)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    with OxigraphStore(tmp_path):
        assert [path.name for path in tmp_path.glob("snapshots*")] == ["snapshots"]


def test_a_generation_that_does_not_exist_is_refused(store: OxigraphStore) -> None:
    with pytest.raises(InvalidInputError, match=r"generation 5.*Newest: 0"):
        store.snapshot(5)


def test_under_write_load_checkpoints_are_spaced_unless_a_newer_one_is_demanded(tmp_path: Path) -> None:
    checkpoints = Checkpoints()
    snapshots = Snapshots(tmp_path / "s", checkpoints, lambda: checkpoints.generation, min_interval_s=3600)
    assert snapshots.take(0).generation == 1
    for checkpoints.generation in (2, 3, 4):
        assert snapshots.take(0).generation == 1
        assert snapshots.take(1).generation == 1
    assert checkpoints.made == [1]
    assert snapshots.take(3).generation == 4, "a demanded generation is served at once"
    assert checkpoints.made == [1, 4]


def test_after_the_interval_readers_get_what_is_new(tmp_path: Path) -> None:
    checkpoints = Checkpoints()
    snapshots = Snapshots(tmp_path / "s", checkpoints, lambda: checkpoints.generation, min_interval_s=0)
    snapshots.take(0)
    checkpoints.generation = 2
    assert snapshots.take(0).generation == 2


def test_a_reader_who_asks_for_nothing_new_never_waits_for_a_commit(tmp_path: Path) -> None:
    checkpoints = Checkpoints()
    snapshots = Snapshots(tmp_path / "s", checkpoints, lambda: checkpoints.generation, min_interval_s=0)
    snapshots.take(0)
    checkpoints.generation, checkpoints.writing = 2, True
    assert snapshots.take(0).generation == 1
    assert snapshots.take(2).generation == 2


def test_a_checkpoint_that_fails_leaves_no_trace(store: OxigraphStore) -> None:
    store.commit(dict([titles("a", 1)]))
    store.directory.snapshots.rmdir()
    store.directory.snapshots.touch()
    with pytest.raises(Exception, match="Cannot write a checkpoint"):
        store.snapshot()
    store.directory.snapshots.unlink()
    store.directory.snapshots.mkdir()
    with store.snapshot() as snapshot:
        assert snapshot.generation == 1


def test_many_threads_ask_for_one_generation_and_one_checkpoint_is_made(store: OxigraphStore) -> None:
    store.commit(dict([titles("a", 1)]))
    found = []
    threads = [threading.Thread(target=lambda: found.append(store.snapshot(1))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {snapshot.path for snapshot in found} == {store.directory.snapshots / "1"}
    for snapshot in found:
        snapshot.release()


def test_a_kept_generation_can_be_asked_for_and_one_that_is_gone_is_said_to_be(store: OxigraphStore) -> None:
    for number in (1, 2, 3):
        store.commit(dict([titles("a", number)]))
        store.snapshot(number).release()
    with store.snapshot(exactly=2) as snapshot:
        assert snapshot.generation == 2
        assert len(pyoxigraph.Store.read_only(str(snapshot.path))) > 0
    with pytest.raises(GoneError, match=r"generation 1 .*Available: 2, 3"):
        store.snapshot(exactly=1)
    with pytest.raises(InvalidInputError, match=r"generation 9.*Newest: 3.*2, 3"):
        store.snapshot(exactly=9)
    store.commit(dict([titles("a", 4)]))
    with store.snapshot(exactly=4) as newest:
        assert newest.generation == 4
    assert kept(store) == [3, 4]


FEW_FILES = """
import resource, sys, threading
from pathlib import Path
from pyoxigraph import Literal, NamedNode, Quad
from kg.settings import Settings
from kg.store.oxigraph import OxigraphStore
from kg.queries.pool import QueryPool
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
name = NamedNode("http://example.org/g")
def rows(n):
    return [Quad(NamedNode(f"http://example.org/{n}/{i}"), name, Literal(f"{n} {i}"), name) for i in range(2000)]
with OxigraphStore(Path(sys.argv[1])) as store:
    store.commit({name: rows(0)})
    with QueryPool(store, Settings(query_workers=1, query_timeout_s=60)) as pool:
        many = "SELECT ?s ?o { ?s <http://example.org/g> ?o . ?a ?b ?c } LIMIT 200000"
        count = "SELECT (COUNT(*) AS ?n) { ?s <http://example.org/g> ?o }"
        reading = pool.stream(many, media_type="text/csv", limit=200000)
        first = next(reading)
        for n in range(1, 6):
            store.commit({name: rows(n)})
            assert pool.run(count, at_least=n + 1).result.rows == [(Literal(2000),)]
        lines = (first + b"".join(reading)).split(b"\\r\\n")[1:-1]
        print(len(lines), len(set(lines)), all(b",0 " in line for line in lines))
"""


def test_a_pin_that_fails_leaves_nothing_pinned(tmp_path: Path) -> None:
    def fail() -> Visibility:
        raise StoreError("the disk does not answer")

    checkpoints = Checkpoints()
    snapshots = Snapshots(tmp_path / "s", checkpoints, lambda: checkpoints.generation, min_interval_s=3600)
    with pytest.raises(StoreError):
        snapshots.pin(None, fail)
    with snapshots.changing():
        assert checkpoints.made == []


@pytest.mark.long
def test_no_generation_is_deleted_under_a_reader_however_few_files_may_be_open(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FEW_FILES, str(tmp_path / "data")]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False, timeout=90
    )
    lines, distinct, of_the_first = done.stdout.split() or (done.stderr,) * 3
    assert (lines, of_the_first) == ("200000", "True")
    assert 0 < int(distinct) <= 2000


def test_a_pinned_generation_gets_a_checkpoint_with_the_next_commit_only(store: OxigraphStore) -> None:
    store.commit(dict([titles("a", "first")]))
    with store.pin() as pinned, store.pin(exactly=1):
        assert pinned.generation == 1
        assert kept(store) == []
        for number in range(4):
            store.commit(dict([titles("a", f"other {number}")]))
        assert kept(store) == [1]
        with store.snapshot(exactly=1) as snapshot:
            found = pyoxigraph.Store.read_only(str(snapshot.path)).quads_for_pattern(None, None, None, titles("a")[0])
            assert [quad.object.value for quad in found] == ["first"]
    with store.pin(exactly=1), pytest.raises(GoneError):
        store.pin(exactly=2)
    store.commit(dict([titles("a", "last")]))
    assert kept(store) == [1], "of a generation that nobody reads none is written"


def test_a_pinned_generation_can_be_read_beside_commits(store: OxigraphStore) -> None:
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            store.commit(dict([titles("a", number), titles("user", number)]))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(200):
            with store.pin() as pinned, store.snapshot(exactly=pinned.generation) as snapshot:
                assert snapshot.generation == pinned.generation
    finally:
        stop.set()
        writer.join()
