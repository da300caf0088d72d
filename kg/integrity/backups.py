"""Backups: verified copies of a data directory with the checksums of their files, and their restoration."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from kg import __version__
from kg.data_directory import DataDirectory
from kg.errors import (
    ConflictError,
    IndexUnavailableError,
    InvalidInputError,
    QuadciteError,
    StoreDamagedError,
    StoreError,
    StoreVersionError,
)
from kg.integrity import checksums
from kg.integrity.checksums import FileSum
from kg.integrity.inspection import Inspection, Problem, inspect_store
from kg.knowledge_graph import KnowledgeGraph
from kg.store.lock import DirectoryLock, require_known_version, sync_folder
from kg.text import join_first

_CORRUPTION: Final = "Corruption:"
"""How a message of the engine about a damaged block begins."""

_SHOWN: Final = 3


def write_backup(kg: KnowledgeGraph, folder: Path) -> dict[str, Any]:
    """Copy a data directory into the new folder `folder` and read the copy through.

    The store is a checkpoint, so others may write meanwhile. Without its process, the index is left out: it is derived
    from the store. Raises StoreDamagedError, which names the damage; then there is no folder.
    """
    data_dir = kg.settings.data_dir
    if folder.resolve().is_relative_to(data_dir.resolve()):
        raise InvalidInputError(f"{folder} is inside {data_dir} and would be lost with it. Name a folder elsewhere.")
    started = time.monotonic()
    try:
        with _reserve(folder) as partial:
            counted = kg.store.statistics()
            with kg.store.snapshot(counted.generation) as snapshot:
                sums = _copy_parts(kg.settings.directory, snapshot.path, partial)
            has_index = _copy_index(kg, partial, sums)
            inspection = _verify_copy(partial, sums)
            about = {
                "generation": snapshot.generation,
                "quads": inspection.counts["quads"],
                "written": datetime.now(UTC).isoformat(timespec="seconds"),
                "quadcite": __version__,
            }
            checksums.record(partial, sums, about)
            os.sync()  # all files are on the disk before the copy gets its name
            partial.rename(folder)
            sync_folder(folder.parent)
            _remember(kg.settings.directory, folder, about["written"])
    except StoreError as error:
        if isinstance(error, StoreDamagedError) or _CORRUPTION not in str(error):
            raise
        raise StoreDamagedError(f"No backup was written: the store is damaged. {error} Run `kg doctor`.") from error
    except OSError as error:
        raise QuadciteError(f"Cannot write a backup to {folder}: {error.strerror or error}.") from error
    return {
        "target": str(folder),
        **about,
        "index": has_index,
        "bytes": sum(each.bytes for each in sums.values()),
        "seconds": round(time.monotonic() - started, 1),
        "memory_mb": inspection.counts["memory_mb"],
    }


def _remember(directory: DataDirectory, folder: Path, written: str) -> None:
    """Record where a backup is, for `kg compact` to name it. On a disk that cannot be written it stays unknown."""
    with suppress(OSError), directory.backups.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"target": str(folder.resolve()), "written": written}) + "\n")


def list_known_backups(directory: DataDirectory) -> list[dict[str, str]]:
    """List the backups of a data directory that are still where they were written, the oldest first."""
    found: dict[str, dict[str, str]] = {}
    with suppress(FileNotFoundError):
        for line in directory.backups.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError, KeyError, TypeError):  # a line that a crash has cut
                each = json.loads(line)
                found[str(each["target"])] = {"target": str(each["target"]), "written": str(each["written"])}
    return [each for target, each in found.items() if DataDirectory(Path(target)).format.is_file()]


@contextmanager
def _reserve(folder: Path) -> Iterator[Path]:
    """Provide an empty folder next to `folder`, for one backup at a time, and remove it unless it was renamed.

    Raises ConflictError while another backup is written to `folder`, and InvalidInputError if `folder` exists.
    """
    partial = folder.with_name(folder.name + ".partial")
    partial.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(partial, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    locked = False

    def is_reserved() -> bool:
        return partial.is_dir() and os.path.samestat(os.fstat(descriptor), partial.stat())

    try:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            locked = is_reserved()
        if not locked:
            raise ConflictError(
                f"Another backup is being written to {folder}. It goes on; this one wrote nothing. Name another folder."
            )
        try:
            if folder.exists():
                raise InvalidInputError(f"{folder} already exists. Name a new folder.")
            for leftover in partial.iterdir():
                shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
            yield partial
        finally:
            if is_reserved():  # not renamed
                shutil.rmtree(partial, ignore_errors=True)
    finally:
        os.close(descriptor)


def _copy_parts(directory: DataDirectory, store: Path, partial: Path) -> dict[str, FileSum]:
    """Copy the content but for the index, with the checkpoint `store` as the store; return the checksums."""
    sums: dict[str, FileSum] = {}
    for path in directory.find("content"):
        target = partial / path.name
        if path.is_file():
            shutil.copy2(path, target)
            sums[path.name] = checksums.compute(target)
        elif path != directory.index:
            copied = checksums.copy_folder(store if path == directory.store else path, target)
            sums |= {f"{path.name}/{name}": each for name, each in copied.items()}
    return sums


def _copy_index(kg: KnowledgeGraph, partial: Path, sums: dict[str, FileSum]) -> bool:
    """Copy the index and add its checksums; return whether it could be copied."""
    target = DataDirectory(partial).index
    try:
        read = kg.search.copy(target)
    except IndexUnavailableError:
        shutil.rmtree(target, ignore_errors=True)
        return False
    for name, digest in read.items():
        sums[f"index/{name}"] = FileSum((target / name).stat().st_size, digest)
    return True


def _verify_copy(partial: Path, sums: dict[str, FileSum]) -> Inspection:
    """Compare the copied files with their sources, and read the copied store. Raises StoreDamagedError."""
    differing = [name for name, wanted in sums.items() if checksums.compute(partial / name) != wanted]
    if differing:
        raise StoreDamagedError(
            f"The copy differs from its source, in {join_first(differing, _SHOWN)}. Check the disk of the backup."
        )
    inspection = inspect_store(DataDirectory(partial), content=False)
    if inspection.problems:
        raise StoreDamagedError(
            f"No backup was written: the store is damaged. {_describe(inspection.problems)} `kg doctor` names all of "
            "it and what to do. Keep the earlier backups."
        )
    return inspection


def _describe(problems: Sequence[Problem]) -> str:
    # Messages of the engine have no full stop.
    shown = " ".join(f"{problem.where}: {problem.message.rstrip('. ')}." for problem in problems[:_SHOWN])
    return shown if len(problems) <= _SHOWN else f"{shown} And {len(problems) - _SHOWN} more."


def inspect_backup(folder: Path, *, content: bool = True) -> Inspection:
    """Verify the checksums of a backup and read its store.

    Raises InvalidInputError if it is not a backup, and StoreVersionError if a newer version of Quadcite wrote it.
    """
    copy = DataDirectory(folder)
    if not copy.format.is_file() or not copy.store.is_dir():
        raise InvalidInputError(f"{folder} is not a backup: it has no {copy.format.name} or no store.")
    differing = checksums.verify(folder)
    problems = _find_links(folder)
    try:
        require_known_version(folder)
    except StoreVersionError:
        raise
    except StoreError as error:
        problems.append(Problem("file", copy.format.name, str(error)))
    problems += [Problem("file", name, message) for name, message in differing or ()]
    found = inspect_store(copy, content=content)
    counts = {**found.counts, "checksums": "none" if differing is None else "verified" if not differing else "differ"}
    return Inspection([*problems, *found.problems], counts)


def _find_links(folder: Path) -> list[Problem]:
    """Find the symbolic links in a backup: what they lead to is not in it, and would not be restored."""
    links = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_symlink())
    return [Problem("file", name, "It is a symbolic link, and a backup has none.") for name in links]


def restore_backup(backup: Path, data_dir: Path, *, replace: bool = False) -> dict[str, Any]:
    """Copy a backup into `data_dir`, which is empty unless `replace`, after verifying it.

    The version file goes last, so that a directory that is restored half way is not taken for a data directory; another
    restore then completes it. Raises StoreDamagedError for a damaged backup, ConflictError without `replace`, and
    StoreLockedError while another process has `data_dir` open.
    """
    started, directory = time.monotonic(), DataDirectory(data_dir)
    here, there = backup.resolve(), data_dir.resolve()
    if here.is_relative_to(there) or there.is_relative_to(here):
        raise InvalidInputError(f"{backup} and {data_dir} contain one another. Move the backup elsewhere first.")
    inspection = inspect_backup(backup, content=False)
    if inspection.problems:
        raise StoreDamagedError(
            f"{backup} is damaged, and nothing was restored. {_describe(inspection.problems)} Use another backup."
        )
    try:
        with DirectoryLock(data_dir, bare=True):
            _copy_into(backup, directory, replace)
    except OSError as error:
        raise QuadciteError(f"Cannot restore into {data_dir}: {error.strerror or error}.") from error
    return {
        "data_dir": str(data_dir),
        "quads": inspection.counts["quads"],
        "checksums": inspection.counts["checksums"],
        "index": directory.index.is_dir(),
        "seconds": round(time.monotonic() - started, 1),
    }


def _copy_into(backup: Path, directory: DataDirectory, replace: bool) -> None:
    data_dir = directory.path
    interrupted = directory.restoring.exists() and not directory.format.exists()
    if directory.find_replaceable() and not replace and not interrupted:
        raise ConflictError(f"{data_dir} is not empty. To replace all that it contains by the backup, add --replace.")
    incoming, outgoing = directory.restoring, directory.replaced
    shutil.rmtree(incoming, ignore_errors=True)
    try:
        incoming.mkdir()
        copied = checksums.copy_folder(backup, incoming / "copy")
        for name, each in copied.items():
            if checksums.compute(incoming / "copy" / name) != each:
                raise StoreDamagedError(f"The copy of {name} differs from the backup. Check the disk of {data_dir}.")
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


def _move(entry: Path, folder: Path) -> None:
    target = folder / entry.name
    if target.is_dir():
        shutil.rmtree(target)
    entry.rename(target)
