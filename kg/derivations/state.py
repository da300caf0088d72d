"""The state of all derivations of a data directory, in one SQLite file.

Of each derivation it has the last commit that was looked at, the *table* that it compared with last, such as the names
of all concepts, and of each input graph the content that its output follows from, or why it is due. Due inputs are
recorded before anything is computed, together with the table, and outputs after their commit. So a kill at any time
leaves outputs that are computed again, and never one that is taken for current. Without the file everything is due
once, which commits nothing that is stored already.
"""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Final, Self

from pyoxigraph import NamedNode

from kg.data_directory import DataDirectory
from kg.errors import StoreError

log = logging.getLogger(__name__)

_FORMAT: Final = DataDirectory.derivations.version
_DAMAGED: Final = frozenset((sqlite3.SQLITE_OK, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB))
"""Error codes; OK for a text that is not UTF-8 and for another format, which have none."""
_UNWRITABLE: Final = frozenset((sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY))
_WAIT_S: Final = 60.0
_TABLES: Final = """
PRAGMA secure_delete = ON;
PRAGMA cache_spill = OFF; -- a transaction keeps readers out only while it is committed
CREATE TABLE IF NOT EXISTS derivations (
  name TEXT PRIMARY KEY, version TEXT NOT NULL, generation INTEGER NOT NULL, compared BLOB NOT NULL,
  latest INTEGER NOT NULL, committed TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS inputs (
  derivation TEXT NOT NULL, graph TEXT NOT NULL, hash TEXT, due TEXT, remembered BLOB, PRIMARY KEY (derivation, graph));
CREATE INDEX IF NOT EXISTS due_inputs ON inputs (derivation, graph) WHERE due IS NOT NULL;
"""
_LOAD: Final = "SELECT version, generation, compared, latest, committed FROM derivations WHERE name = ?"
_KEEP: Final = "INSERT OR REPLACE INTO derivations VALUES (?, ?, ?, ?, ?, ?)"
_MARK: Final = """
INSERT INTO inputs (derivation, graph, due) VALUES (?, ?, ?)
ON CONFLICT (derivation, graph) DO UPDATE SET due = excluded.due"""


@dataclass(frozen=True, slots=True)
class Known:
    """A derivation as of its last run: the generation up to which the changes of the store are known."""

    version: str
    generation: int
    compared: bytes
    latest: int
    """The generation of the last commit of the store when the state was written."""
    committed: str
    """The time of that commit. No other store has both."""


class State:
    """The open file. If it is damaged, or another version of Quadcite wrote it in another format, it is removed.

    Everything is due then. StoreError if damage is found in use.

    Where it is not there and cannot be written, nothing is known, and nothing that is recorded remains.
    """

    def __init__(self, data_dir: Path) -> None:
        self._directory: Final = DataDirectory(data_dir)
        self._path: Final = self._directory.derivations
        try:
            self._database = self._open(self._path)
        except sqlite3.DatabaseError as error:
            is_unwritable = _get_code(error) in _UNWRITABLE and not self._is_damaged(error)
            if is_unwritable:
                log.warning("%s cannot be opened, so everything derived counts as unknown: %s", self._path, error)
            else:
                self._remove_damaged(error)
            self._database = self._open(":memory:" if is_unwritable else self._path)

    def _open(self, path: Path | str) -> sqlite3.Connection:
        database = sqlite3.connect(path, isolation_level=None, timeout=_WAIT_S)
        try:
            [[version]] = database.execute("PRAGMA user_version")
            if version not in (0, _FORMAT):
                raise sqlite3.DatabaseError(f"its format is {version}, and this version writes {_FORMAT}")
            database.executescript(_TABLES)
            if not version:  # new, or of the version that kept a part in other files
                self._remove_former()
                database.execute(f"PRAGMA user_version = {_FORMAT}")
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # a message may quote the damage
            database.close()
            raise error if isinstance(error, sqlite3.DatabaseError) else sqlite3.DatabaseError(str(error)) from error
        return database

    def _remove_former(self) -> None:
        directory = self._directory
        for former in (directory.mentions, directory.entities, directory.citations):
            shutil.rmtree(former, ignore_errors=True)
        for file in (directory.schema, directory.checked):
            with suppress(OSError):
                file.unlink()

    def _is_damaged(self, error: sqlite3.DatabaseError) -> bool:
        """Whether the content of the file causes an error; a damaged header may forbid to write a writable file."""
        code = _get_code(error)
        is_writable = os.access(self._path, os.W_OK) and os.access(self._path.parent, os.W_OK)
        return code in _DAMAGED or (code == sqlite3.SQLITE_READONLY and is_writable)

    def _remove_damaged(self, error: sqlite3.DatabaseError) -> None:
        if not self._is_damaged(error):
            raise StoreError(f"{self._path} cannot be used: {error}.") from error
        log.warning("%s is removed, and everything derived is computed again: %s.", self._path, error)
        self._path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._database.close()
        if isinstance(error, sqlite3.DatabaseError):
            self._remove_damaged(error)
            raise StoreError(f"{self._path} was damaged and is removed. Run the command again.") from error

    def load(self, name: str) -> Known | None:
        """Load the last run of a derivation; None if it has never run."""
        row = self._database.execute(_LOAD, (name,)).fetchone()
        return None if row is None else Known(*row)

    def save(self, name: str, known: Known) -> None:
        """Record a run of a derivation."""
        self._database.execute(_KEEP, (name, *astuple(known)))

    def forget(self, names: Iterable[str]) -> None:
        """Remove the last runs of derivations, and what they compared."""
        self._database.executemany("DELETE FROM derivations WHERE name = ?", ((name,) for name in names))

    def move(self, name: str, latest: int, committed: str) -> None:
        """Record the last commit of the store for a derivation."""
        self._database.execute(
            "UPDATE derivations SET latest = ?, committed = ? WHERE name = ?", (latest, committed, name)
        )

    def load_hashes(self, name: str, graphs: Iterable[NamedNode] | None = None) -> dict[NamedNode, str | None]:
        """Load the inputs among `graphs`, None: all, each with the hash of the content that its output follows from."""
        query = "SELECT graph, hash FROM inputs WHERE derivation = ?"
        if graphs is None:
            return {_to_node(graph): digest for graph, digest in self._database.execute(query, (name,))}
        found: dict[NamedNode, str | None] = {}
        for graph in graphs:
            row = self._database.execute(f"{query} AND graph = ?", (name, graph.value)).fetchone()
            if row is not None:
                found[graph] = row[1]
        return found

    def load_due(self, name: str) -> dict[NamedNode, str]:
        """Load the inputs that are due, each with the reason."""
        query = "SELECT graph, due FROM inputs WHERE derivation = ? AND due IS NOT NULL ORDER BY graph"
        return {_to_node(graph): due for graph, due in self._database.execute(query, (name,))}

    def iterate_finished(self, name: str) -> Iterator[tuple[NamedNode, bytes | None]]:
        """Yield the inputs that are not due, with the value that the derivation remembers of each."""
        query = "SELECT graph, remembered FROM inputs WHERE derivation = ? AND due IS NULL"
        return ((_to_node(graph), remembered) for graph, remembered in self._database.execute(query, (name,)))

    def mark_due(self, name: str, graphs: Iterable[NamedNode], reason: str) -> None:
        """Record that inputs are due, for a reason."""
        self._database.executemany(_MARK, ((name, graph.value, reason) for graph in graphs))

    def finish(self, name: str, graph: NamedNode, digest: str, remembered: bytes | None, *, keeps: bool) -> None:
        """Record that the output of an input with this hash is stored, and the value that the derivation remembers.

        `keeps`: only a part of the input was read, so that everything is remembered that was before.
        """
        self._database.execute(
            "UPDATE inputs SET hash = ?, due = NULL, remembered = CASE WHEN ? THEN remembered ELSE ? END "
            "WHERE derivation = ? AND graph = ?",
            (digest, keeps, remembered, name, graph.value),
        )

    def remove(self, name: str, graphs: Iterable[NamedNode]) -> None:
        """Remove inputs that the store no longer has, and whose output is removed."""
        self._database.executemany(
            "DELETE FROM inputs WHERE derivation = ? AND graph = ?", ((name, graph.value) for graph in graphs)
        )

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write all that is written meanwhile in one step."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")


def _get_code(error: sqlite3.DatabaseError) -> int:
    """Return the primary code of an error, OK if it has none."""
    return (getattr(error, "sqlite_errorcode", None) or sqlite3.SQLITE_OK) & 0xFF


def _to_node(graph: str) -> NamedNode:
    """Return the node of a stored name."""
    try:
        return NamedNode(graph)
    except ValueError as error:
        raise sqlite3.DatabaseError(f"it has an invalid name of a graph: {error}") from error
