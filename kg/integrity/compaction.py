"""Compaction of a data directory: its files are written again, with the data of now, so that erased text is gone.

The engine keeps the terms of removed quads, and the search index the texts of removed units, for as long as their files
exist. So both are copied into new files, and the old ones are removed.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyoxigraph

from kg.data_directory import DataDirectory
from kg.derivations.aggregates import DEFINITIONS as AGGREGATES
from kg.derivations.state import State
from kg.errors import StoreDamagedError, StoreError, StoreLockedError
from kg.files import measure_disk
from kg.integrity.backups import list_known_backups
from kg.integrity.inspection import copy_store, inspect_logs
from kg.interruption import sweep_temporary_folders
from kg.processes import child, memory
from kg.store.commits import load_counters
from kg.store.engine import exchange_store, require_files
from kg.store.lock import DirectoryLock, require_known_version, sync_folder
from kg.store.ownership import find_invalidated_graphs
from kg.text import join_first
from kg.vocabulary import KG

_SHOWN: Final = 3
_STDERR: Final = 2


def compact(data_dir: Path) -> dict[str, Any]:
    """Write the store and the index of a data directory again, and remove caches; return the document of `kg compact`.

    A killed compaction leaves the old or the new files; run it again. Raises StoreLockedError while another process has
    the directory open, and StoreDamagedError, with nothing changed, if the store cannot be read.
    """
    started, directory = time.monotonic(), DataDirectory(data_dir)
    require_known_version(data_dir)
    try:
        lock = DirectoryLock(data_dir, bare=True)
    except StoreLockedError as error:
        raise StoreLockedError(
            f"{error} kg compact replaces files that it has open: stop it, run kg compact, and start it again."
        ) from None
    try:
        before = measure_disk(data_dir)
        require_files(directory, create=False)
        quads = _rewrite_store(directory)
        stored = time.monotonic()
        index = _rewrite_index(directory.index)
        if directory.derivations.exists():
            with State(data_dir) as state:
                state.forget(each.name for each in AGGREGATES)
        removed = list(_remove_caches(directory))
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
        "remains": [path.name for path in directory.find("kept")],
        "backups": list_known_backups(directory),
        "quarantined": sum(1 for _ in directory.quarantine.glob("*.json")),
        "store_seconds": round(stored - started, 1),
        "seconds": round(ended - started, 1),
    }


def _rewrite_store(directory: DataDirectory) -> int:
    """Copy the quads into a new store, which takes the place of the old one; return their number."""
    store, fresh = directory.store, directory.partial_store
    try:
        copied = copy_store(directory, whole=True)
        if copied.problems:
            shown = join_first([problem.message.rstrip(".") for problem in copied.problems], _SHOWN)
            raise StoreDamagedError(f"The store cannot be copied, and nothing was changed: {shown}. Run `kg doctor`.")
        written = pyoxigraph.Store.read_only(str(fresh))
        if inspect_logs(store, load_counters(written).get(KG.generation, 0)):
            raise StoreDamagedError("The write-ahead log is damaged, and nothing was changed. Run `kg doctor`.")
        _require_ended(written)
        del written  # closes its files
        exchange_store(directory, directory.replaced)
        shutil.rmtree(directory.replaced)
    finally:
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


def _remove_caches(directory: DataDirectory) -> Iterator[str]:
    """Remove files that are written again when they are needed, or that a killed process left; yield the names.

    They may be older than the store.
    """
    for path in (*directory.find("cache"), *directory.find("former"), *directory.find_half_rejected()):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        yield path.relative_to(directory.path).as_posix()
