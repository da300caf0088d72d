"""The files of a store: the log on disk, flushing, damage, and counters after a restart."""

from __future__ import annotations

import io
import os
import shutil
import threading
from contextlib import suppress
from pathlib import Path

import pyoxigraph
import pytest
from pyoxigraph import RdfFormat

from kg.errors import StoreError
from kg.store.lock import find_holder
from kg.store.oxigraph import OxigraphStore
from tests.store.conftest import Statements, counters, recount, titles, values


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
        newest = max(store.directory.store.glob("*.log"), key=lambda path: int(path.stem))
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
            sizes[flush_quads] = log_bytes(store.directory.path)
    assert sizes[500] < sizes[1_000_000] / 4


def test_an_idle_store_flushes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with OxigraphStore(tmp_path, idle_s=0.01) as store:
        written, flushed = threading.Event(), threading.Event()
        real = store._flush

        def flush(engine: pyoxigraph.Store) -> None:
            assert written.wait(60)
            real(engine)
            flushed.set()

        monkeypatch.setattr(store, "_flush", flush)
        store.commit(dict([titles("a", *range(1000))]))
        before = len(list((tmp_path / "store").glob("*.sst")))
        written.set()
        assert flushed.wait(60)
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


@pytest.mark.parametrize("left", ["snapshots", "index"])  # a restored data directory has no snapshots at first
def test_a_store_folder_that_vanished_is_not_silently_empty(tmp_path: Path, left: str) -> None:
    with OxigraphStore(tmp_path) as store:
        store.commit(dict([titles("a", 1)]))
    (tmp_path / "store").rename(tmp_path / "elsewhere")
    shutil.rmtree(tmp_path / "snapshots")
    (tmp_path / left).mkdir()
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
