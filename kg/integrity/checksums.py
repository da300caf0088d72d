"""The checksums of the files of a backup, recorded when it was written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kg.data_directory import DataDirectory
from kg.files import copy_with_holes, write_file


@dataclass(frozen=True, slots=True)
class FileSum:
    """The size of a file, and the SHA-256 of its bytes in hexadecimal."""

    bytes: int
    sha256: str


def list_files(folder: Path) -> Iterator[Path]:
    """Yield the files below `folder`, except the checksums and the lock, in the order of their names."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path not in (DataDirectory(folder).checksums, DataDirectory(folder).lock):
            yield path


def compute(path: Path) -> FileSum:
    """Read a file and compute its checksum."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return FileSum(file.tell(), digest)


def copy_folder(source: Path, target: Path) -> dict[str, FileSum]:
    """Copy a folder of files and return their checksums by their paths in it."""
    found = {}
    target.mkdir(parents=True)
    for path in list_files(source):
        name = path.relative_to(source)
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        digest = copy_with_holes(path, target / name)
        found[name.as_posix()] = FileSum((target / name).stat().st_size, digest)
    return found


def record(folder: Path, sums: Mapping[str, FileSum], about: Mapping[str, Any]) -> None:
    """Write the checksums of the files of `folder`, with other facts about the backup."""
    files = {name: asdict(each) for name, each in sorted(sums.items())}
    text = json.dumps({"version": DataDirectory.checksums.version, **about, "files": files}, indent=1)
    write_file(DataDirectory(folder).checksums, text, sync=True)


def verify(folder: Path) -> list[tuple[str, str]] | None:
    """Compare the files of `folder` with the recorded checksums.

    Returns the files that differ, each with the difference; None if nothing is recorded.
    """
    path = DataDirectory(folder).checksums
    try:
        recorded = json.loads(path.read_bytes())["files"]
        sums = {str(name): FileSum(int(each["bytes"]), str(each["sha256"])) for name, each in recorded.items()}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, ArithmeticError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return [(path.name, f"The list of checksums cannot be read: {error}.")]
    problems = []
    present = {found.relative_to(folder).as_posix() for found in list_files(folder)}
    for name, wanted in sums.items():
        if name not in present:
            problems.append((name, "The file is missing."))
            continue
        try:
            found = compute(folder / name)
        except OSError as error:
            problems.append((name, f"The file cannot be read: {error.strerror or error}."))
            continue
        if found.bytes != wanted.bytes:
            problems.append((name, f"The file has {found.bytes:,} bytes instead of {wanted.bytes:,}."))
        elif found != wanted:
            problems.append((name, f"The file has the SHA-256 {found.sha256} instead of {wanted.sha256}."))
    problems += [
        (name, "The file was not there when the backup was written.") for name in sorted(present - sums.keys())
    ]
    return problems
