"""A full disk refuses writes until it is freed, and reads go on; a disk that cannot be written is opened to be read."""

from __future__ import annotations

import time

import pyoxigraph
import pytest

from kg.errors import StoreError, StoreReadOnlyError
from kg.store.oxigraph import OxigraphStore
from tests.adversarial.small_disk import SmallDisk
from tests.store.conftest import counters, recount, titles, values
from tests.waiting import until

DISK_MB = 24

pytestmark = pytest.mark.long


def fill_until_refused(store: OxigraphStore, disk: SmallDisk) -> int:
    """Commit until the full disk refuses; return the last acknowledged number."""
    disk.fill()
    number = 0
    while True:
        try:
            store.commit(dict([titles("a", *(f"{number} {row}" * 20 for row in range(50)), number)]))
        except StoreError:
            return number - 1
        number += 1


@pytest.mark.parametrize("idle_s", [3600.0, 0.2], ids=["by the next write", "by itself"])
def test_a_store_writes_again_once_the_disk_is_freed(disk: SmallDisk, idle_s: float) -> None:
    with OxigraphStore(disk.folder / "data", idle_s=idle_s) as store:
        store.commit(dict([titles("a", "first")]))
        last = fill_until_refused(store, disk)
        assert store.problem is not None
        assert "No space" in store.problem
        with pytest.raises(StoreError, match="No space"):
            store.commit(dict([titles("b", "refused")]))
        kept = values(store, "a")
        assert (str(last) if last >= 0 else "first") in kept
        assert counters(store) == recount(store)
        disk.free()
        time.sleep(1)
        if idle_s < 1:
            until(lambda: store.problem is None)
        store.commit(dict([titles("b", "taken")]))
        assert store.problem is None
        assert (values(store, "a"), values(store, "b")) == (kept, {"taken"})
        assert counters(store) == recount(store)
        with store.snapshot(store.statistics().generation) as snapshot:
            assert not snapshot.is_live
    with OxigraphStore(disk.folder / "data") as store:
        assert (values(store, "a"), values(store, "b")) == (kept, {"taken"})


def test_no_table_is_written_to_a_full_disk(disk: SmallDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine would wait for space, and all writers for it."""
    with OxigraphStore(disk.folder / "data", idle_s=3600) as store:
        monkeypatch.setattr(pyoxigraph.Store, "flush", lambda store: pytest.fail("a table was written"), raising=False)
        store.commit(dict([titles("a", "first")]))
        disk.fill()
        store._flush(store._opened())
        assert "No space" in (store.problem or "")
        assert values(store, "a") == {"first"}


def test_a_full_disk_is_read_through_the_store_itself(disk: SmallDisk) -> None:
    with OxigraphStore(disk.folder / "data", idle_s=3600) as store:
        store.commit(dict([titles("a", "first")]))
        fill_until_refused(store, disk)
        with store.snapshot(store.statistics().generation) as snapshot:
            assert snapshot.generation == store.statistics().generation
            assert snapshot.is_live
        assert (store.directory.store / "CURRENT").exists(), "a release deletes no live folder"
        disk.free()
        time.sleep(1)
        store.require_writable()
        with store.snapshot(store.statistics().generation) as snapshot:
            assert not snapshot.is_live


def test_a_full_disk_is_opened_to_be_read_and_written_later(disk: SmallDisk) -> None:
    data = disk.folder / "data"
    with OxigraphStore(data) as store:
        store.commit(dict([titles("a", "first")]))
    disk.fill()
    with pytest.raises(StoreError):
        OxigraphStore(data)
    with OxigraphStore(data, reads=True, idle_s=3600) as store:
        assert store.problem is not None
        assert values(store, "a") == {"first"}
        with store.snapshot() as snapshot:
            assert snapshot.is_live
        with pytest.raises(StoreError):
            store.commit(dict([titles("a", "refused")]))
        disk.free()
        time.sleep(1)
        store.commit(dict([titles("a", "second")]))
        assert (store.problem, values(store, "a")) == (None, {"second"})


def test_a_read_only_disk_is_opened_to_be_read_and_locked(disk: SmallDisk) -> None:
    data = disk.folder / "data"
    with OxigraphStore(data) as store:
        store.commit(dict([titles("a", "first")]))
    disk.remount("ro")
    try:
        with pytest.raises(StoreReadOnlyError):
            OxigraphStore(data)
        with OxigraphStore(data, reads=True, idle_s=3600) as store:
            assert store.problem is not None
            assert values(store, "a") == {"first"}
            with pytest.raises(StoreError):
                store.commit(dict([titles("a", "refused")]))
            with pytest.raises(StoreError, match="locked"):
                OxigraphStore(data, reads=True)
    finally:
        disk.remount("rw")
