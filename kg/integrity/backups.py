"""Backups: points in a folder that are copied while the data directory is open, verified, listed and restored."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pyoxigraph

from kg import __version__
from kg.data_directory import DataDirectory
from kg.errors import (
    ConflictError,
    IndexUnavailableError,
    QuadciteError,
    StoreDamagedError,
    StoreError,
    StoreVersionError,
)
from kg.files import copy_with_holes
from kg.integrity.backup_folder import (
    BackupFolder,
    Point,
    Retention,
    StoredFile,
    compute,
    describe_error,
    require_outside,
)
from kg.integrity.inspection import DAMAGE, Inspection, Problem, inspect_store
from kg.knowledge_graph import KnowledgeGraph
from kg.settings import Settings
from kg.store.commits import load_counters
from kg.store.lock import DirectoryLock, find_address, require_known_version, sync_folder
from kg.text import join_first
from kg.vocabulary import KG

_CORRUPTION: Final = "Corruption:"
"""How a message of the engine about a damaged block begins."""

_SHOWN: Final = 3
_TABLE: Final = ".sst"
"""The ending of the engine's table files, which never change."""
_NEVER: Final = Retention()


def write_backup(kg: KnowledgeGraph, path: Path, *, read: bool = True, retention: Retention = _NEVER) -> dict[str, Any]:
    """Add a point with the state of now to the folder of backups at `path`, unless nothing has changed since the last.

    The store is a checkpoint, so others may write meanwhile. Its table files that the folder has are not read again:
    they never change. With `read`, the store of the point is read through. Without its process, the index is left out:
    it is derived from the store. Afterwards the points that `retention` does not keep are removed.

    Raises StoreDamagedError, which names the damage, ConflictError while another backup is written to the folder, and
    QuadciteError if it cannot be written; then there is no new point.
    """

    def add(folder: BackupFolder, base: Point | None) -> _Added:
        with kg.store.snapshot(kg.store.statistics().generation) as snapshot:
            files = _add_parts(kg.settings.directory, snapshot.path, folder, base)
            quads = _count_quads(snapshot.path)
        return _Added(files | _add_index(kg, folder, base), snapshot.generation, quads)

    return _write_point(kg.settings.directory, path, add, read=read, retention=retention)


def write_closed_backup(directory: DataDirectory, path: Path) -> dict[str, Any]:
    """Add a point with the files of a data directory that no process has open, as they are, logs included.

    Call it under the lock. Raises the errors of `write_backup`; but graphs may differ from the rules of this version,
    since an earlier one may have written them.
    """

    def add(folder: BackupFolder, base: Point | None) -> _Added:
        files = _add_parts(directory, directory.store, folder, base)
        for file in sorted(directory.index.rglob("*")):
            if file.is_file():
                files[file.relative_to(directory.path).as_posix()] = folder.add(file)
        counters = load_counters(pyoxigraph.Store.read_only(str(directory.store)))
        return _Added(files, counters.get(KG.generation, 0), counters.get(KG.quadCount, 0))

    return _write_point(directory, path, add, read=True, refused=DAMAGE)


@dataclass(frozen=True, slots=True)
class _Added:
    """The files of a new point."""

    files: Mapping[str, StoredFile]
    generation: int
    quads: int


def _count_quads(checkpoint: Path) -> int:
    return load_counters(pyoxigraph.Store.read_only(str(checkpoint))).get(KG.quadCount, 0)


def _write_point(
    directory: DataDirectory,
    path: Path,
    add: Callable[[BackupFolder, Point | None], _Added],
    *,
    read: bool,
    retention: Retention = _NEVER,
    refused: Collection[str] | None = None,
) -> dict[str, Any]:
    """Add a point with the files that `add` adds. Problems of the kinds `refused`, by default all, refuse it."""
    require_outside(path, directory.path)
    started, now = time.monotonic(), datetime.now(UTC).replace(microsecond=0)
    try:
        with BackupFolder(path).writing() as folder:
            points = folder.list_points()
            base = points[-1] if points else None
            before = folder.list_contents()
            added = add(folder, base)
            is_new = base is None or not base.has_equal_files(added.files)
            if base is not None and not is_new:
                point = base.model_copy(update={"confirmed": now, "read": base.read or read})
            else:
                new = {file.sha256 for file in added.files.values()} - before
                point = Point(
                    number=folder.next_number(),
                    generation=added.generation,
                    quads=added.quads,
                    written=now,
                    confirmed=now,
                    quadcite=__version__,
                    server=find_address(directory.path),
                    read=read,
                    added=sum(folder.measure(sha256) for sha256 in new),
                    files=added.files,
                )
            if point.read and (base is None or is_new or not base.read):
                _require_readable(folder, point, refused)
            folder.write(point)
            removed = folder.prune(retention)
            _remember(directory, path)
    except StoreError as error:
        if isinstance(error, StoreDamagedError) or _CORRUPTION not in str(error):
            raise
        raise StoreDamagedError(f"No backup was written: the store is damaged. {error} Run `kg doctor`.") from error
    except OSError as error:
        raise describe_error(error, f"write a backup to {path}") from error
    return {
        "folder": str(path),
        **describe_point(point),
        "new": is_new,
        "removed": removed,
        "seconds": round(time.monotonic() - started, 2),
    }


def choose_retention(
    settings: Settings, newest: int | None = None, daily: int | None = None, weekly: int | None = None
) -> Retention:
    """Choose how many points are kept: each number as given, else as the settings have it."""
    return Retention(
        settings.backup_keep if newest is None else newest,
        settings.backup_keep_daily if daily is None else daily,
        settings.backup_keep_weekly if weekly is None else weekly,
    )


def describe_point(point: Point) -> dict[str, Any]:
    """Describe a point without its files."""
    fields = point.model_dump(mode="json", exclude={"files"}, exclude_none=True)
    return {**fields, "index": point.has_index, "files": len(point.files), "bytes": point.bytes}


def list_backups(path: Path) -> dict[str, Any]:
    """List the points of a folder of backups, the newest first, and the problems of those that cannot be read."""
    folder = BackupFolder(path).require()
    points = [describe_point(point) for point in folder.list_points()[::-1]]
    return {"folder": str(path), "points": points, "problems": folder.list_problems()}


def _remember(directory: DataDirectory, path: Path) -> None:
    """Record where backups are, for `kg compact` to name them. On a disk that cannot be written it stays unknown."""
    if str(path.resolve()) in _list_targets(directory):
        return
    with suppress(OSError), directory.backups.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"target": str(path.resolve())}) + "\n")


def _list_targets(directory: DataDirectory) -> list[str]:
    targets: dict[str, None] = {}
    with suppress(OSError):
        for line in directory.backups.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError, KeyError, TypeError):  # a line that a crash has cut
                targets[str(json.loads(line)["target"])] = None
    return [*targets]


def list_known_backups(directory: DataDirectory) -> list[dict[str, str]]:
    """List the folders of backups of a data directory that are still there, with the time of their newest points."""
    found = []
    for target in _list_targets(directory):
        with suppress(QuadciteError):
            if points := BackupFolder(Path(target)).require().list_points():
                found.append({"target": target, "written": points[-1].written.isoformat()})
    return found


def _add_parts(
    directory: DataDirectory, store: Path, folder: BackupFolder, base: Point | None
) -> dict[str, StoredFile]:
    """Add the content but for the index, with the checkpoint `store` as the store; return the files by name."""
    files: dict[str, StoredFile] = {}
    for part in directory.find("content"):
        if part == directory.index:
            continue
        source = store if part == directory.store else part
        for path in sorted(source.rglob("*")) if source.is_dir() else [source]:
            if path.is_file():
                name = (Path(part.name) / path.relative_to(source)).as_posix()
                files[name] = _add_file(path, folder, None if base is None else base.files.get(name))
    return files


def _add_file(path: Path, folder: BackupFolder, earlier: StoredFile | None) -> StoredFile:
    """Add a file, unless it is a table file that the point before has and the folder still contains."""
    if path.suffix != _TABLE:
        return folder.add(path)
    found = path.stat()
    source = found.st_ino, found.st_mtime_ns
    is_earlier = earlier is not None and (earlier.source, earlier.bytes) == (source, found.st_size)
    if earlier is not None and is_earlier and folder.has_content(earlier):
        return earlier
    return folder.add(path).model_copy(update={"source": source})


def _add_index(kg: KnowledgeGraph, folder: BackupFolder, base: Point | None) -> dict[str, StoredFile]:
    """Add the files of the index; none if its process does not copy it."""
    target = DataDirectory(folder.incoming).index
    earlier = () if base is None else base.files.values()
    known = {file.sha256: file for file in earlier if folder.has_content(file)}
    try:
        read = kg.search.copy(target, known.keys())
    except IndexUnavailableError:
        return {}
    files = {}
    for name, digest in sorted(read.items()):
        copied = target / name
        stored = folder.take(copied, digest) if copied.exists() else known[digest]
        files[f"{DataDirectory.index.name}/{name}"] = stored
    return files


def _require_readable(folder: BackupFolder, point: Point, refused: Collection[str] | None) -> None:
    """Read the store of a point through. Raises StoreDamagedError for problems of the kinds `refused`; None: of any."""
    with folder.open_point(point) as copy:
        found = inspect_store(copy, content=False).problems
    problems = [problem for problem in found if refused is None or problem.kind in refused]
    if problems:
        raise StoreDamagedError(
            f"No backup was written: the store is damaged. {_describe(problems)} `kg doctor` names all of it and what "
            "to do. Keep the earlier backups."
        )


def _describe(problems: Sequence[Problem]) -> str:
    # Messages of the engine have no full stop.
    shown = " ".join(f"{problem.where}: {problem.message.rstrip('. ')}." for problem in problems[:_SHOWN])
    return shown if len(problems) <= _SHOWN else f"{shown} And {len(problems) - _SHOWN} more."


def verify_backups(path: Path, number: int | None = None) -> Inspection:
    """Compare the files of all points, or of one, with their checksums, and read the store of the newest, or of that.

    Raises InvalidInputError if it is not a folder of backups, NotFoundError for an unknown point, StoreVersionError.
    """
    folder = BackupFolder(path).require()
    with folder.reading():
        chosen = [folder.load(number)] if number is not None else folder.list_points()
        problems = [] if number is not None else [Problem("file", path.name, each) for each in folder.list_problems()]
        problems += _check_files(folder, chosen)
        counts: dict[str, Any] = {"points": len(chosen)}
        counts["files"] = len({file.sha256 for point in chosen for file in point.files.values()})
        if chosen:
            found = _inspect_point(folder, chosen[-1], content=True)
            problems += found.problems
            counts |= {**found.counts, "point": chosen[-1].number}
    return Inspection(problems, counts)


def _check_files(folder: BackupFolder, points: Sequence[Point]) -> list[Problem]:
    """Read each file of the points once, and name those that differ."""
    names: dict[str, tuple[StoredFile, list[str]]] = {}
    for point in points:
        for name, file in point.files.items():
            names.setdefault(file.sha256, (file, []))[1].append(f"{name} of point {point.number}")
    problems = []
    for file, used in names.values():
        if (problem := folder.check(file)) is not None:
            remedy = f"Remove {folder.find_file(file)}, if it is there: the next backup writes it again, if it can."
            problems.append(Problem("file", join_first(used, _SHOWN), f"{problem} {remedy}"))
    return problems


def _inspect_point(folder: BackupFolder, point: Point, *, content: bool) -> Inspection:
    """Read the store of a point. Raises StoreVersionError if a newer version wrote it."""
    with folder.open_point(point) as copy:
        try:
            require_known_version(copy.path)
        except StoreVersionError:
            raise
        except StoreError as error:
            return Inspection([Problem("file", copy.format.name, str(error))])
        if not copy.store.is_dir():
            return Inspection([Problem("file", copy.store.name, f"Point {point.number} has no store.")])
        return inspect_store(copy, content=content)


def restore_backup(path: Path, data_dir: Path, *, number: int | None = None, replace: bool = False) -> dict[str, Any]:
    """Copy a point of a folder of backups, by default the newest, into `data_dir`, after verifying it.

    That is empty unless `replace`. The version file goes last, so that a directory that is restored half way is not
    taken for a data directory; another restore then completes it. Raises StoreDamagedError for a damaged point,
    ConflictError without `replace`, and StoreLockedError while another process has `data_dir` open.
    """
    started, directory = time.monotonic(), DataDirectory(data_dir)
    require_outside(path, data_dir)
    folder = BackupFolder(path).require()
    with folder.reading():
        point = folder.load(number)
        found = _check_files(folder, [point]) or _inspect_point(folder, point, content=False).problems
        # Graphs of an earlier version may differ from the rules of this one.
        if problems := [problem for problem in found if problem.kind in DAMAGE]:
            raise StoreDamagedError(
                f"Point {point.number} of {path} is damaged, and nothing was restored. {_describe(problems)} Use "
                "another point: `kg backup list`."
            )
        try:
            with DirectoryLock(data_dir, bare=True):
                _copy_into(folder, point, directory, replace)
        except OSError as error:
            raise describe_error(error, f"restore into {data_dir}") from error
    return {
        "data_dir": str(data_dir),
        "point": point.number,
        "generation": point.generation,
        "quads": point.quads,
        "index": directory.index.is_dir(),
        "problems": [problem.to_dict() for problem in found],
        "seconds": round(time.monotonic() - started, 1),
    }


def _copy_into(folder: BackupFolder, point: Point, directory: DataDirectory, replace: bool) -> None:
    data_dir = directory.path
    interrupted = directory.restoring.exists() and not directory.format.exists()
    if directory.find_replaceable() and not replace and not interrupted:
        raise ConflictError(f"{data_dir} is not empty. To replace all that it contains by the backup, add --replace.")
    incoming, outgoing = directory.restoring, directory.replaced
    shutil.rmtree(incoming, ignore_errors=True)
    try:
        copy_files({name: folder.find_file(file) for name, file in point.files.items()}, point, incoming / "copy")
        os.sync()
    except BaseException:
        shutil.rmtree(incoming, ignore_errors=True)
        raise
    outgoing.mkdir(exist_ok=True)
    # From here on the directory is not a data directory, until the version file is there again.
    for path in directory.find_replaceable():
        _move(path, outgoing)
        sync_folder(data_dir)
    for part in DataDirectory(incoming / "copy").find("content"):
        _move(part, data_dir)
        sync_folder(data_dir)
    shutil.rmtree(incoming)
    shutil.rmtree(outgoing)


def copy_files(sources: Mapping[str, Path], point: Point, target: Path) -> None:
    """Copy files of a point by name into a folder, and read the copies. Raises StoreDamagedError and OSError."""
    for name, source in sources.items():
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy_with_holes(source, copy)
        if not compute(copy).has_equal_content(point.files[name]):
            raise StoreDamagedError(f"The copy of {name} differs from the backup. Check the disk of {target}.")


def _move(entry: Path, folder: Path) -> None:
    target = folder / entry.name
    if target.is_dir():
        shutil.rmtree(target)
    entry.rename(target)
