"""Compaction of a data directory: its files are written again, with the data of now, so that erased text is gone.

The engine keeps the terms of removed quads, and the search index the texts of removed units, for as long as their files
exist. So both are copied into new files, and the old ones are removed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyoxigraph

from kg.errors import StoreDamagedError, StoreError, StoreLockedError
from kg.files import measure_disk
from kg.integrity.backups import list_known_backups
from kg.integrity.inspection import copy_store, inspect_logs
from kg.interruption import sweep_temporary_folders
from kg.processes import child, memory
from kg.store.commits import load_counters
from kg.store.engine import DAMAGED, PARTIAL, REBUILT, STORE, finish_rebuild
from kg.store.lock import REPLACED, RESTORING, DirectoryLock, require_known_version, sync_folder
from kg.store.ownership import find_invalidated_graphs
from kg.store.write_ahead_log import list_kept_logs
from kg.text import join_first
from kg.vocabulary import KG

CACHES: Final = ("snapshots", "fetched", "schema.json", "checked.json", RESTORING)
"""Data that is made again when it is needed, and may be older than the store."""
_QUARANTINE: Final = "quarantine"
_INDEX: Final = "index"
_SHOWN: Final = 3
_STDERR: Final = 2


def compact(data_dir: Path) -> dict[str, Any]:
    """Write the store and the index of a data directory again, and remove caches; return the document of `kg compact`.

    A killed compaction leaves the old or the new files; run it again. Raises StoreLockedError while another process has
    the directory open, and StoreDamagedError, with nothing changed, if the store cannot be read.
    """
    started = time.monotonic()
    require_known_version(data_dir)
    try:
        lock = DirectoryLock(data_dir, bare=True)
    except StoreLockedError as error:
        raise StoreLockedError(
            f"{error} kg compact replaces files that it has open: stop it, run kg compact, and start it again."
        ) from None
    try:
        before = measure_disk(data_dir)
        _finish_leftovers(data_dir)
        quads = _rewrite_store(data_dir)
        stored = time.monotonic()
        index = _rewrite_index(data_dir / _INDEX)
        removed = [*_remove_caches(data_dir), *_sweep_quarantine(data_dir / _QUARANTINE)]
        sync_folder(data_dir)
    except OSError as error:
        raise StoreError(f"Cannot compact {data_dir}: {error.strerror or error}. Run kg compact again.") from error
    finally:
        lock.release()
    sweep_temporary_folders()
    ended = time.monotonic()
    return {
        "data_dir": str(data_dir),
        "quads": quads,
        "index": index,
        "bytes_before": before,
        "bytes_after": measure_disk(data_dir),
        "removed": removed,
        "remains": [path.name for path in (*list_kept_logs(data_dir), *sorted(data_dir.glob(f"{DAMAGED}*")))],
        "backups": list_known_backups(data_dir),
        "quarantined": sum(1 for _ in (data_dir / _QUARANTINE).glob("*.json")),
        "store_seconds": round(stored - started, 1),
        "seconds": round(ended - started, 1),
    }


def _finish_leftovers(data_dir: Path) -> None:
    """Finish an exchange of the store that was killed, and remove its other folders."""
    finish_rebuild(data_dir)
    for leftover in (PARTIAL, REBUILT, REPLACED):
        shutil.rmtree(data_dir / leftover, ignore_errors=True)
    if not (data_dir / STORE / "CURRENT").exists():
        raise StoreError(f"{data_dir / STORE} is missing or incomplete. Restore the data directory from a backup.")


def _rewrite_store(data_dir: Path) -> int:
    """Copy the quads into a new store, which takes the place of the old one; return their number."""
    store, fresh, rebuilt = data_dir / STORE, data_dir / PARTIAL, data_dir / REBUILT
    try:
        copied = copy_store(store, fresh, data_dir=data_dir, whole=True)
        if copied.problems:
            shown = join_first([problem.message.rstrip(".") for problem in copied.problems], _SHOWN)
            raise StoreDamagedError(f"The store cannot be copied, and nothing was changed: {shown}. Run `kg doctor`.")
        written = pyoxigraph.Store.read_only(str(fresh))
        if inspect_logs(store, load_counters(written).get(KG.generation, 0)):
            raise StoreDamagedError("The write-ahead log is damaged, and nothing was changed. Run `kg doctor`.")
        _require_ended(written)
        del written  # closes its files
        os.sync()  # the new files are on the disk before the old ones go
        fresh.rename(rebuilt)
        store.rename(data_dir / REPLACED)
        sync_folder(data_dir)
        finish_rebuild(data_dir)
        shutil.rmtree(data_dir / REPLACED)
    finally:
        finish_rebuild(data_dir)
        shutil.rmtree(fresh, ignore_errors=True)
    quads: int = copied.counts["stored_quads"]
    return quads


def _require_ended(store: pyoxigraph.Store) -> None:
    """Raise StoreError for a store with a removal that has not ended: names of the removed text are elsewhere too."""
    if graphs := find_invalidated_graphs(store):
        shown = join_first([graph.value for graph in graphs], _SHOWN)
        raise StoreError(
            f"The removal of files was interrupted, and nothing was changed. Entities and claims of them remain: "
            f"{shown}. `kg serve` and `kg load files` complete the removal. Then run `kg compact` again."
        )


def _rewrite_index(folder: Path) -> str:
    """Copy the points of the index into a new one; if that fails, remove the index, which is derived from the store.

    Returns ``rewritten``, ``removed`` or ``absent``.
    """
    if not (folder / "index.json").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        return "absent"
    command = memory.prefer_jemalloc(child.command("kg.search.index_process", "compact", str(folder)))
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=_STDERR, check=False)
    if done.returncode == 0:
        return "rewritten"
    shutil.rmtree(folder)
    return "removed"


def _remove_caches(data_dir: Path) -> Iterator[str]:
    for name in CACHES:
        path = data_dir / name
        if path.is_dir() and not path.is_symlink():
            if any(path.iterdir()):
                yield name
            shutil.rmtree(path)
        elif path.exists():
            path.unlink()
            yield name
    for path in sorted(data_dir.glob("snapshots-*")):
        shutil.rmtree(path)
        yield path.name
    for path in sorted(data_dir.glob("*.partial")):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        yield path.name


def _sweep_quarantine(folder: Path) -> Iterator[str]:
    """Remove files of the quarantine that belong to no record: a killed load left them."""
    for path in sorted(folder.glob("*")):
        name = path.name.partition(".")[0]
        if path.is_file() and (path.suffix == ".partial" or not (folder / f"{name}.json").exists()):
            path.unlink()
            yield f"{folder.name}/{path.name}"
