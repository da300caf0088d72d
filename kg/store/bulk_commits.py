"""Commits that add many quads, as table files that the engine takes over, instead of a transaction in its log.

A transaction takes three times the processor time: it writes each quad to the log, to memory and then to a table. The
engine takes over all table files of a commit in one step, but cannot remove quads in that step. So the few quads that
the commit removes from ``graph/prov`` (the head before it, the last end of the run) and from the catalog are removed
right after it, and are in a file until then. If a kill comes between, they are removed when the store is opened again.

A commit that drops graphs of many quads removes these in a transaction, and the names of the empty graphs right after,
in the same way. A transaction that drops them reads its own changes, which takes twice the processor time.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import chain
from tempfile import NamedTemporaryFile
from typing import Final

from pyoxigraph import NamedNode, QueryBoolean, RdfFormat, Store

from kg.data_directory import DataDirectory
from kg.files import write_file
from kg.processes.memory import release_memory
from kg.store.commits import Head, PreparedCommit
from kg.store.difference import build_update
from kg.store.lock import sync_folder
from kg.store.protocol import batched
from kg.store.write_ahead_log import WriteAheadLog
from kg.vocabulary import PROV, PROV_GRAPH, UNCOUNTED_GRAPHS, commit_iri

LEAST: Final = 20_000
"""Minimum number of quads: below it, a transaction is as fast as the table files, one for each index of the engine."""
MOST: Final = 500_000
"""Maximum number of quads: of more than a million, the engine takes over some table files before others."""
MOST_REMOVED: Final = 1_000

_TABLES: Final = "bulk-*.sst"
"""Table files that the engine writes, until it takes them over."""
_DESCRIBING: Final = UNCOUNTED_GRAPHS | {PROV_GRAPH}
"""Graphs that describe content. For a moment, they have both the added quads of a commit and the removed ones."""
_PORTION: Final = 2_048


@dataclass(frozen=True, slots=True)
class _Unfinished:
    """A commit that is written or was about to be, and the statements that remain to be removed, by IRI of graph."""

    head: Head
    time: str
    """The statement of the time of the commit, which shows whether a store contains it."""
    remove: Mapping[str, Sequence[str]] = field(default_factory=dict)
    drop: Sequence[str] = ()
    """The graphs to be dropped, which are empty."""

    def is_in(self, store: Store) -> bool:
        found = store.query(f"ASK {{ GRAPH {PROV_GRAPH} {{ {self.time} }} }}")
        return isinstance(found, QueryBoolean) and bool(found)


def is_bulk(prepared: PreparedCommit) -> bool:
    """Whether a commit adds many quads, drops no graph, and removes few quads, none of them content."""
    gone = {graph: len(statements) for graph, statements in prepared.remove.items() if statements}
    if prepared.drop or gone.keys() - _DESCRIBING or sum(gone.values()) > MOST_REMOVED:
        return False
    return LEAST <= sum(map(len, prepared.add.values())) <= MOST


def find_dropped(prepared: PreparedCommit) -> dict[NamedNode, Collection[str]]:
    """Find the graphs that a commit drops, with their statements, if these are many; else none."""
    found: dict[NamedNode, Collection[str]] = {
        delta.graph: delta.removed.keys() for delta in prepared.deltas if delta.graph in prepared.drop
    }
    return found if LEAST <= sum(map(len, found.values())) <= MOST else {}


def write_removals(
    store: Store,
    log: WriteAheadLog,
    directory: DataDirectory,
    prepared: PreparedCommit,
    dropped: Mapping[NamedNode, Collection[str]],
) -> None:
    """Write a commit with the graphs of `find_dropped`, as `write_bulk` does."""
    unfinished = _Unfinished(prepared.head, _get_time(prepared), drop=[graph.value for graph in dropped])
    _note(directory, unfinished)
    store.update(build_update({**prepared.remove, **dropped}, (), prepared.add))
    _remove(store, unfinished)
    log.sync()
    directory.unfinished_commit.unlink()


def write_bulk(store: Store, log: WriteAheadLog, directory: DataDirectory, prepared: PreparedCommit) -> None:
    """Write a commit for which `is_bulk` holds. It is on the disk when this returns.

    Raises OSError: then nothing is written, or all but what `finish_commit` does.
    """
    remove = {
        graph.value: sorted({*statements}.difference(prepared.add.get(graph, ())))
        for graph, statements in prepared.remove.items()
    }
    unfinished = _Unfinished(prepared.head, _get_time(prepared), remove)
    _note(directory, unfinished)
    # The statements are those of terms of the engine, so their IRIs are valid.
    # In memory the text would be there twice.
    with NamedTemporaryFile(dir=directory.path, prefix=DataDirectory.bulk_texts.prefix) as text:
        for part in _generate_lines(prepared.add):
            text.write(part.encode())
        text.flush()
        store.bulk_load(path=text.name, format=RdfFormat.N_QUADS, lenient=True)
    release_memory()
    _remove(store, unfinished)
    log.sync()
    directory.unfinished_commit.unlink()


def finish_commit(store: Store, directory: DataDirectory) -> None:
    """Finish the commit that was being written when the store was last closed or killed. Raises OSError."""
    unfinished = _load(directory)
    if unfinished is not None and unfinished.is_in(store):
        _remove(store, unfinished)
        store.flush()
    directory.unfinished_commit.unlink(missing_ok=True)


def find_unfinished_head(store: Store, directory: DataDirectory) -> Head | None:
    """Find the head of a commit that is written and not finished, while the store also contains the head before it."""
    unfinished = _load(directory)
    return unfinished.head if unfinished is not None and unfinished.is_in(store) else None


def remove_files(directory: DataDirectory) -> None:
    """Remove the files of a commit that was killed. Call it under the lock, before the engine opens."""
    for path in chain(directory.store.glob(_TABLES), directory.find(DataDirectory.bulk_texts)):
        with suppress(OSError):  # a disk that cannot be written now
            path.unlink()


def _get_time(prepared: PreparedCommit) -> str:
    begin = f"{commit_iri(prepared.head.generation)} {PROV.endedAtTime} "
    return next(line for line in prepared.add[PROV_GRAPH] if line.startswith(begin))


def _note(directory: DataDirectory, unfinished: _Unfinished) -> None:
    write_file(directory.unfinished_commit, json.dumps(asdict(unfinished)), sync=True)
    sync_folder(directory.path)


def _remove(store: Store, unfinished: _Unfinished) -> None:
    remove = {NamedNode(graph): gone for graph, gone in unfinished.remove.items()}
    store.update(build_update(remove, map(NamedNode, unfinished.drop), {}))


def _load(directory: DataDirectory) -> _Unfinished | None:
    try:
        found = json.loads(directory.unfinished_commit.read_bytes())
    except FileNotFoundError:
        return None
    return _Unfinished(Head(**found["head"]), found["time"], found["remove"], found.get("drop", ()))


def _generate_lines(added: Mapping[NamedNode, Collection[str]]) -> Iterator[str]:
    """Yield parts of the N-Quads of statements."""
    for graph, statements in added.items():
        tail = f" {graph} .\n"
        for portion in batched(statements, _PORTION):
            yield tail.join(portion)
            yield tail
