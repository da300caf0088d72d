"""The vectors of texts by model and hash of the text, in a file: no text is embedded twice by one model.

The file is in the folder of the index, but no part of it: it stays when texts are indexed again, and is copied with the
index. It has vectors in half precision, which is what shards store, so a vector from here is the same as a new one.
"""

from __future__ import annotations

import logging
import shutil
import sqlite3
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kg.files import copy_with_holes

log = logging.getLogger(__name__)

FILE: Final = "vectors.sqlite"

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS models (
    id INTEGER PRIMARY KEY, slot INTEGER NOT NULL, name TEXT NOT NULL, dimensions INTEGER NOT NULL
);
"""
_VECTORS: Final = "CREATE TABLE IF NOT EXISTS vectors_{} (text_hash BLOB PRIMARY KEY, rows BLOB NOT NULL)"
"""The table of the vectors of a model, by its `id`."""
_FROM_ONE_MODEL: Final = """
BEGIN;
INSERT INTO models SELECT 1, 0, name, dimensions FROM space LIMIT 1;
ALTER TABLE vectors RENAME TO vectors_1;
DROP TABLE space;
COMMIT;
"""
"""Changes a file of earlier versions, which has the vectors of one model."""
_AT_ONCE: Final = 500
_DAMAGED: Final = frozenset((sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB))
"""Codes of errors of a file that cannot be read. Any other error leaves the file as it is."""
_FOREIGN: Final = _DAMAGED | {sqlite3.SQLITE_ERROR}
"""The same for a file that is opened: it may have other columns."""

Rows = NDArray[np.float16]
"""The vectors of a text: one for each window or part."""


class VectorCache:
    """The cache in a folder. Calls are safe from any thread. A damaged file is removed, and an empty one begun.

    While the file cannot be opened or written, as on a full disk, no vectors are found or kept; that is logged once.
    After `close` none are either, which is not logged. `copy` raises sqlite3.DatabaseError then.
    """

    def __init__(self, folder: Path) -> None:
        self._path: Final = folder / FILE
        self._lock: Final = Lock()
        self._models: dict[int, tuple[str, int]] = {}
        self._is_unusable = False
        self._is_closed = False
        self._database: sqlite3.Connection | None = None
        with self._tolerating(), self._writing():
            pass

    def use(self, slot: int, model: str, dimensions: int) -> None:
        """Keep vectors of a model from now on, in place of those of the model that had this slot.

        A model that has another slot changes it with the one that has this.
        """
        self._models[slot] = model, dimensions
        with self._tolerating(), self._writing() as database:
            self._use(database, slot, model, dimensions)

    def _use(self, database: sqlite3.Connection, slot: int, model: str, dimensions: int) -> None:
        known = database.execute(
            "SELECT id, slot FROM models WHERE name = ? AND dimensions = ?", (model, dimensions)
        ).fetchone()
        if known is not None:
            database.execute("UPDATE models SET slot = ? WHERE slot = ?", (known[1], slot))
            database.execute("UPDATE models SET slot = ? WHERE id = ?", (slot, known[0]))
        else:
            others = database.execute("SELECT id FROM models WHERE slot = ? OR name = ?", (slot, model)).fetchall()
            # First, since it opens the transaction that the others are part of.
            database.execute("DELETE FROM models WHERE slot = ? OR name = ?", (slot, model))
            for (number,) in others:
                database.execute(f"DROP TABLE vectors_{number}")
            made = database.execute("INSERT INTO models VALUES (NULL, ?, ?, ?)", (slot, model, dimensions))
            database.execute(_VECTORS.format(made.lastrowid))

    def get(self, hashes: Iterable[str], model: str) -> dict[str, Rows]:
        """Get the vectors by a model of the texts with these hashes, as far as they are known."""
        wanted = [bytes.fromhex(each) for each in hashes]
        found: dict[str, Rows] = {}
        with self._tolerating(), self._writing() as database:
            number, dimensions = _find_model(database, model)
            for start in range(0, len(wanted) if number else 0, _AT_ONCE):
                some = wanted[start : start + _AT_ONCE]
                marks = ",".join("?" * len(some))
                for key, rows in database.execute(
                    f"SELECT text_hash, rows FROM vectors_{number} WHERE text_hash IN ({marks})",  # noqa: S608
                    some,
                ):
                    found[key.hex()] = np.frombuffer(rows, np.float16).reshape(-1, dimensions)
        return found

    def put(self, model: str, vectors: Mapping[str, Rows]) -> None:
        """Add the vectors of texts by a model, by their hashes. Those of a model that has no slot are not kept."""
        with self._tolerating(), self._writing() as database:
            number, _ = _find_model(database, model)
            if number:
                database.executemany(
                    f"INSERT OR REPLACE INTO vectors_{number} VALUES (?, ?)",  # noqa: S608
                    [(bytes.fromhex(key), rows.astype(np.float16).tobytes()) for key, rows in vectors.items()],
                )

    def count(self, model: str) -> int:
        """Count the texts with vectors by a model."""
        number = 0
        with self._tolerating(), self._writing() as database:
            table, _ = _find_model(database, model)
            if table:
                [(number,)] = database.execute(f"SELECT count(*) FROM vectors_{table}")  # noqa: S608
        return int(number)

    def keep(self, hashes: Iterable[str]) -> None:
        """Write the file again with the vectors of these texts alone: after it, no file has those of others.

        A file that cannot be written again is removed.
        """
        try:
            self._keep(hashes)
        except sqlite3.DatabaseError as error:
            log.error("Cannot write %s again, and remove it: %s. New texts are embedded.", self._path, error)
            with self._lock:
                self._disconnect()
                self._remove()

    def _keep(self, hashes: Iterable[str]) -> None:
        partial = self._path.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        with self._writing() as database:
            database.execute("CREATE TEMP TABLE kept (text_hash BLOB PRIMARY KEY)")
            database.executemany("INSERT OR IGNORE INTO kept VALUES (?)", ((bytes.fromhex(each),) for each in hashes))
            for (number,) in database.execute("SELECT id FROM models").fetchall():
                database.execute(f"DELETE FROM vectors_{number} WHERE text_hash NOT IN kept")  # noqa: S608
            database.execute("DROP TABLE kept")
        with self._lock:
            database = self._get()
            database.execute("VACUUM INTO ?", (str(partial),))
            self._disconnect()
            # The file itself is replaced, and not removed before: a kill in between would cost all vectors.
            self._remove_logs()
            partial.replace(self._path)

    def copy(self, target: Path, known: Collection[str] = ()) -> dict[str, str]:
        """Copy the file into a folder, unless its SHA-256 is `known`; return the SHA-256 by path in it."""
        with self._lock:
            self._get().execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return {FILE: copy_with_holes(self._path, target / FILE, known)}

    def close(self) -> None:
        """Close the file. A thread that still embeds a batch may call `put` after it."""
        with self._lock:
            self._is_closed = True
            self._disconnect()

    def _disconnect(self) -> None:
        """Close the database if it is open. Call it with the lock."""
        if self._database is not None:
            self._database.close()
            self._database = None

    @contextmanager
    def _tolerating(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            if not self._is_unusable and not self._is_closed:
                log.warning("Cannot use %s: %s. Until it can be used, vectors are not kept.", self._path, error)
            self._is_unusable = True
        else:
            self._is_unusable = False

    def _get(self) -> sqlite3.Connection:
        """Get the open database. Call it with the lock. Raises sqlite3.OperationalError if it cannot be opened."""
        if self._is_closed:
            raise sqlite3.OperationalError(f"{self._path} is closed")
        if self._database is None:
            database = self._open()
            with database:
                for slot, (model, dimensions) in self._models.items():
                    self._use(database, slot, model, dimensions)
            self._database = database
        return self._database

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            database = self._get()
            try:
                with database:
                    yield database
            except sqlite3.DatabaseError as error:
                if not _has_code(error, _DAMAGED):
                    raise
                log.error("Cannot read %s (%s). Its texts are embedded again.", self._path, error)
                self._disconnect()
                self._remove()
                self._get()

    def _open(self) -> sqlite3.Connection:
        for is_last in (False, True):
            database = sqlite3.connect(self._path, check_same_thread=False)
            try:
                database.execute("PRAGMA journal_mode=WAL")
                database.execute("PRAGMA synchronous=NORMAL")
                database.executescript(_SCHEMA)
                if database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'space'").fetchall():
                    database.executescript(_FROM_ONE_MODEL)
                for number, _, _, _ in database.execute("SELECT id, slot, name, dimensions FROM models").fetchall():
                    database.execute(f"SELECT text_hash, rows FROM vectors_{number} LIMIT 1").fetchall()  # noqa: S608
            except sqlite3.DatabaseError as error:
                database.close()
                if is_last or not _has_code(error, _FOREIGN):
                    raise
                log.error("Cannot read %s (%s). Its texts are embedded again.", self._path, error)
                self._remove()
            else:
                return database
        raise AssertionError

    def _remove(self) -> None:
        if self._path.is_dir():
            shutil.rmtree(self._path)
        self._path.unlink(missing_ok=True)
        self._remove_logs()

    def _remove_logs(self) -> None:
        for suffix in ("-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)


def _find_model(database: sqlite3.Connection, model: str) -> tuple[int, int]:
    """Find the number of the table of a model, and the length of its vectors; zeros if there is none."""
    found: tuple[int, int] | None = database.execute(
        "SELECT id, dimensions FROM models WHERE name = ?", (model,)
    ).fetchone()
    return found or (0, 0)


def _has_code(error: sqlite3.DatabaseError, codes: Container[int]) -> bool:
    # The lower 8 bits are the code, the others detail it. Errors of Python's module have no code.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in codes
