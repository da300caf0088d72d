"""The store of a replica: the points of a primary, one after the other, read-only.

Requests read one generation from their beginning to their end, as in any store. The checkpoint of a generation is made
of links to the files of its point, so a new point can take the place of one that is still read.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NoReturn

import pyoxigraph

from kg.errors import ReplicaError, StoreError
from kg.store.commits import HEAD, Head, load_counters
from kg.store.oxigraph import OxigraphStore
from kg.store.protocol import Visibility
from kg.store.snapshots import Made
from kg.vocabulary import KG, PROV, PROV_GRAPH, commit_iri


class ReplicaStore(OxigraphStore):
    """A data directory whose store is in `folder`, and later in others (`switch`). Every write raises ReplicaError.

    `primary` returns the address of the server that takes writes.
    """

    def __init__(self, data_dir: Path, folder: Path, primary: Callable[[], str]) -> None:
        self._primary: Final = primary
        super().__init__(data_dir, folder=folder)

    def switch(self, folder: Path) -> None:
        """Read the store in another folder from here on, with the next request.

        Requests in progress go on reading the former one. Raises ReplicaError, with nothing changed, if the other is
        not a later state of the same store, and StoreError if it cannot be read.
        """
        store = open_read_only(folder)
        head = load_head(store)
        current = self._head
        if head.generation < current.generation or _load_time(store, current.generation) != self._load_own_time():
            raise ReplicaError(
                f"The primary has another history: its generation {head.generation} does not follow generation "
                f"{current.generation} of this replica."
            )
        with self._turn, self._write_lock:
            self._writer = threading.get_ident()
            try:
                with self._snapshots.changing():
                    self._store, self._folder = store, folder
                    self._hidden_graphs = None
                    self._changes.forget(head.generation)
                    self._head = head
            finally:
                self._writer = None

    def _load_own_time(self) -> str | None:
        with self._reading() as store:
            return _load_time(store, self._head.generation)

    @property
    def problem(self) -> str | None:
        """None: a replica is complete without writes."""
        return None

    def require_writable(self) -> None:
        """Raise ReplicaError."""
        raise self._refusal()

    def update(self, *_: Any, **__: Any) -> NoReturn:
        """Raise ReplicaError, before the update is evaluated."""
        raise self._refusal()

    def write_payload(self, *_: Any, **__: Any) -> NoReturn:
        """Raise ReplicaError, before the payload is compared."""
        raise self._refusal()

    def _refusal(self) -> ReplicaError:
        return ReplicaError(
            f"This server is a replica and takes no writes. Send them to its primary: {self._primary()}."
        )

    def _open(self) -> pyoxigraph.Store:
        self._unkept_logs: list[Path] = []
        self._problem = "a replica"
        return open_read_only(self._folder)

    def _load_head(self) -> Head:
        return load_head(self._opened())

    def _get_live(self) -> tuple[Path, Visibility] | None:
        return None

    def _committing(self) -> NoReturn:
        raise self._refusal()

    def _writing(self) -> NoReturn:
        raise self._refusal()

    def _flush_when_idle(self) -> None:
        """Nothing is flushed."""

    def _checkpoint(self, folder: Path, wait: bool, made: Made) -> None:
        """Link the files of the point to ``folder/{generation}`` and call `made`."""
        is_writer = self._writer == threading.get_ident()
        if not is_writer and not self._write_lock.acquire(blocking=wait):
            return
        try:
            generation = self._head.generation
            path = folder / str(generation)
            if path.exists():
                return
            try:
                link_files(self._folder, path)
            except OSError as error:
                shutil.rmtree(path, ignore_errors=True)
                raise StoreError(f"Cannot write a checkpoint to {path}: {error}") from error
            made(generation, self._load_hidden_graphs(self._opened()).get_state())
        finally:
            if not is_writer:
                self._write_lock.release()


def open_read_only(folder: Path) -> pyoxigraph.Store:
    """Open a store that nobody writes. Raises StoreError."""
    try:
        return pyoxigraph.Store.read_only(str(folder))
    except (OSError, RuntimeError) as error:
        raise StoreError(f"Cannot open {folder}: {error}.") from error


def load_head(store: pyoxigraph.Store) -> Head:
    """Load the counters of the last commit. Raises StoreError if they are damaged."""
    held = load_counters(store)
    if not held:
        return Head(0, 0, 0)
    try:
        return Head(held[KG.generation], held[KG.quadCount], held[KG.graphCount])
    except KeyError as error:
        raise StoreError(f"The point of the primary is damaged: {HEAD} has no {error}.") from None


def _load_time(store: pyoxigraph.Store, generation: int) -> str | None:
    """Load the time of a commit, which another history has at another time."""
    found = [
        str(quad.object) for quad in store.quads_for_pattern(commit_iri(generation), PROV.endedAtTime, None, PROV_GRAPH)
    ]
    return found[0] if found else None


def link_files(source: Path, target: Path) -> None:
    """Link the files of a folder into a new one, or copy them where the file system has no links. Raises OSError."""
    target.mkdir(parents=True)
    for path in source.iterdir():
        link_file(path, target / path.name)


def link_file(source: Path, target: Path) -> None:
    """Link a file, or copy it where the file system has no links. Raises OSError."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
