"""Upgrade of a data directory to the formats of this version: older parts are named, backed up, and written again.

A part that follows from the store is removed and computed again: the index by `kg reindex`, derived graphs by `kg
derive`. The file ``upgrade.json`` is there from before the first change until the end, so that a killed upgrade is
continued, with the backup that it began with.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import pyoxigraph
from pyoxigraph import NamedNode

from kg import __version__
from kg.access.tokens import read_format
from kg.data_directory import DataDirectory
from kg.errors import InvalidInputError, StoreDamagedError, StoreError, require_known_format
from kg.files import measure_disk, write_file
from kg.integrity.backups import write_closed_backup
from kg.provenance.shipped import build_version
from kg.store.engine import require_files
from kg.store.lock import DirectoryLock, read_version, sync_folder
from kg.vocabulary import SCHEMA

STEPS: Final[Mapping[int, Callable[[DataDirectory], None]]] = {}
"""The step from each format of a data directory to the next. Format 1 is the first, so there is none yet.

Each step may be run again after a kill.
"""

_TEXTS_PER_S: Final = 1_000
"""Texts that are indexed in a second at least, with vectors that are there: a fifth of the measured rate."""
_GRAPHS_PER_S: Final = 5
"""Graphs that are derived in a second at least."""

Action = Literal["none", "rewrite", "rebuild", "remove"]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a data directory, the format that it has, and that of this version."""

    name: str
    found: str
    current: str
    action: Action = "none"
    seconds: int = 0
    """Estimated time."""
    bytes: int = 0
    """Room on the disk that is needed in addition."""
    removes: tuple[str, ...] = ()
    """The files and folders, by their paths in the data directory, that the upgrade removes."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The parts, and whether an upgrade was begun."""

    parts: tuple[Part, ...]
    begun: bool
    backup_bytes: int
    """Room that a first backup needs."""

    @property
    def is_due(self) -> bool:
        """Whether there is anything to do."""
        return self.begun or any(part.action != "none" for part in self.parts)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON types."""
        return {
            "due": self.is_due,
            "begun": self.begun,
            "parts": [asdict(part) for part in self.parts],
            "seconds": sum(part.seconds for part in self.parts),
            "bytes": sum(part.bytes for part in self.parts),
            "backup_bytes": self.backup_bytes,
        }


def plan_upgrade(directory: DataDirectory) -> Plan:
    """Compare the formats of a data directory with those of this version, without a change.

    Raises StoreVersionError, which names the part, if a newer version wrote any, StoreError if it cannot be read.
    """
    if directory.replica.exists():
        raise StoreError(f"{directory.path} is a replica. Upgrade its primary; the replica fetches a new point.")
    try:
        engine = pyoxigraph.Store.read_only(str(directory.store))
        texts = sum(1 for _ in engine.quads_for_pattern(None, SCHEMA.text, None, None))
        graphs = sum(1 for name in engine.named_graphs() if isinstance(name, NamedNode))
        is_current = build_version() in engine
    except (OSError, RuntimeError) as error:
        raise StoreDamagedError(f"Cannot read {directory.store}: {error}. Run `kg doctor`.") from error
    del engine
    parts = [_compare_directory(directory)]
    size = measure_disk(directory.store)
    shipped = Part("ontology, codes and shapes", "this version" if is_current else "another version", "this version")
    parts.append(shipped if is_current else _due(shipped, "rewrite", 10 + graphs // _GRAPHS_PER_S // 10, size // 2))
    parts += _compare_index(directory, texts)
    parts.append(_compare_derivations(directory, graphs))
    parts += _compare_kept(directory)
    if former := tuple(path.relative_to(directory.path).as_posix() for path in directory.find("former")):
        parts.append(Part("files of earlier versions", ", ".join(former[:5]), "none", "remove", removes=former))
    content = sum(measure_disk(path) for path in directory.find("content"))
    return Plan(tuple(parts), directory.upgrade.exists(), content)


def upgrade(directory: DataDirectory, backup_to: Path | None, finish: Callable[[], None]) -> dict[str, Any]:
    """Upgrade a data directory that no process has open, and return the plan with the backup.

    A point is added to the folder `backup_to` before anything is changed, unless that is None. `finish` opens the data
    directory and computes the missing parts. Raises the errors of `plan_upgrade`, of a backup, and StoreLockedError.
    """
    with DirectoryLock(directory.path, bare=True):
        require_files(directory, create=False)
        plan = plan_upgrade(directory)
        point: dict[str, Any] | None = _read_begun(directory).get("backup")
        if not plan.is_due:
            return {**plan.to_dict(), "backup": None}
        if not plan.begun:
            if backup_to is not None:
                done = write_closed_backup(directory, backup_to)
                point = {"folder": done["folder"], "point": done["number"]}
            begun = {"to": __version__, "backup": point}
            write_file(directory.upgrade, json.dumps(begun), sync=True)
            sync_folder(directory.path)
        _run_steps(directory)
        for name in (name for part in plan.parts for name in part.removes):
            path = directory.path / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    finish()
    with DirectoryLock(directory.path, bare=True):
        directory.upgrade.unlink(missing_ok=True)
        sync_folder(directory.path)
    return {**plan.to_dict(), "backup": point}


def _run_steps(directory: DataDirectory) -> None:
    """Run the steps from the format of the directory on. The format is written after each."""
    while (version := read_version(directory.path)) < DataDirectory.format.version:
        STEPS[version](directory)
        write_file(directory.format, json.dumps({"version": version + 1}), sync=True)
        sync_folder(directory.path)


def _read_begun(directory: DataDirectory) -> dict[str, Any]:
    try:
        begun = json.loads(directory.upgrade.read_bytes())
    except (OSError, ValueError):
        return {}
    return begun if isinstance(begun, dict) else {}


def _due(part: Part, action: Action, seconds: int, size: int = 0) -> Part:
    return Part(part.name, part.found, part.current, action, seconds, size)


def _compare_directory(directory: DataDirectory) -> Part:
    found, current = read_version(directory.path), DataDirectory.format.version
    require_known_format("The data directory", directory.path, found, current)
    missing = [step for step in range(found, current) if step not in STEPS]
    if missing:
        raise InvalidInputError(f"This version has no step from format {missing[0]}. Upgrade by a version before it.")
    part = Part("data directory", str(found), str(current))
    return part if found == current else _due(part, "rewrite", 60, measure_disk(directory.store))


def _compare_index(directory: DataDirectory, texts: int) -> Iterator[Part]:
    current = DataDirectory.index.version
    found = sorted({*_read_index_formats(directory)})
    for version in found:
        require_known_format("The search index", directory.index, version, current)
    shown = ", ".join(map(str, found)) or "none"
    part = Part("search index", shown, str(current))
    if (found and found[0] < current) or (texts and not found):
        part = _due(part, "rebuild", 5 + texts // _TEXTS_PER_S, measure_disk(directory.index))
    yield part


def _read_index_formats(directory: DataDirectory) -> Iterator[int]:
    for path in directory.index.glob("**/shard-*/index.json"):
        try:
            yield int(json.loads(path.read_bytes())["version"])
        except (OSError, ValueError, KeyError, TypeError):
            yield 0


def _compare_derivations(directory: DataDirectory, graphs: int) -> Part:
    current = DataDirectory.derivations.version
    found = _read_sqlite_format(directory.derivations)
    require_known_format("The state of derivations", directory.derivations, found, current)
    part = Part("state of derivations", str(found or "none"), str(current))
    if found == current or not graphs:
        return part
    return replace(
        part, action="rebuild", seconds=5 + graphs // _GRAPHS_PER_S, removes=(DataDirectory.derivations.name,)
    )


def _compare_kept(directory: DataDirectory) -> Iterator[Part]:
    """Compare the parts that cannot be computed again, which no upgrade has to change yet."""
    for name, path, found, current in (
        (
            "queue of loads",
            directory.load_queue,
            _read_sqlite_format(directory.load_queue),
            DataDirectory.load_queue.version,
        ),
        ("tokens", directory.tokens, read_format(directory.tokens), DataDirectory.tokens.version),
    ):
        require_known_format(f"The part {name!r}", path, found, current)
        yield Part(name, str(found or "none"), str(current))


def _read_sqlite_format(path: Path) -> int:
    """Read the format of a database, 0 without one or if it is damaged."""
    if not path.exists():
        return 0
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            [[found]] = database.execute("PRAGMA user_version")
    except sqlite3.DatabaseError:
        return 0
    return int(found)
