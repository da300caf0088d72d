"""Snapshots are immutable, numbered, counted while in use, few, and never older than asked for."""

from __future__ import annotations

import threading
from pathlib import Path

import pyoxigraph
import pytest

from kg.errors import InvalidInputError
from kg.store.oxigraph import OxigraphStore
from kg.store.snapshots import Snapshots
from tests.store.conftest import titles


def kept(store: OxigraphStore) -> list[int]:
    return sorted(int(path.name) for path in (store.data_dir / "snapshots").iterdir())


class Checkpoints:
    """Counts what `Snapshots` asks for; `generation` is the newest."""

    def __init__(self) -> None:
        self.generation = 1
        self.made: list[int] = []
        self.writing = False

    def __call__(self, folder: Path, wait: bool) -> int | None:
        if self.writing and not wait:
            return None
        (folder / str(self.generation)).mkdir()
        self.made.append(self.generation)
        return self.generation


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


def test_a_generation_that_does_not_exist_is_refused(store: OxigraphStore) -> None:
    with pytest.raises(InvalidInputError, match="no generation 5 yet; the newest is 0"):
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
    (store.data_dir / "snapshots").rmdir()
    (store.data_dir / "snapshots").touch()
    with pytest.raises(Exception, match="no checkpoint could be written"):
        store.snapshot()
    (store.data_dir / "snapshots").unlink()
    (store.data_dir / "snapshots").mkdir()
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
    assert {snapshot.path for snapshot in found} == {store.data_dir / "snapshots" / "1"}
    for snapshot in found:
        snapshot.release()
