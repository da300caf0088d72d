"""Folders of backups: points, each with the files of a data directory at one time. Equal files are stored once.

A file is stored under its SHA-256, and a point is a list of names and hashes that is written last. So a point is
complete or does not exist, and a new one takes the room of the files that have changed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from kg.data_directory import DataDirectory
from kg.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    QuadciteError,
    StoreDamagedError,
    StoreVersionError,
)
from kg.files import copy_with_holes, write_file
from kg.interruption import temporary_folder
from kg.store.lock import sync_folder
from kg.text import join_first

VERSION: Final = 1
"""The version of the layout."""
_HASH: Final = re.compile(r"[0-9a-f]{64}")
_SHOWN: Final = 5
_BLOCK_BYTES: Final = 512


def _check_name(name: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or path.as_posix() != name or name == ".":
        raise ValueError(f"Invalid name {name!r}. Expected a path within the data directory.")
    return name


class StoredFile(BaseModel):
    """The size of a file, the SHA-256 of its bytes, and for a file that never changes where it was copied from."""

    model_config = ConfigDict(frozen=True)

    bytes: int = Field(ge=0)
    sha256: str = Field(pattern=_HASH.pattern)
    source: tuple[int, int] | None = None
    """The inode and the time of the source, in nanoseconds."""

    def has_equal_content(self, other: StoredFile) -> bool:
        """Return whether both have the same bytes."""
        return (self.bytes, self.sha256) == (other.bytes, other.sha256)


class Point(BaseModel):
    """The files of a data directory at one time, by their paths in it."""

    model_config = ConfigDict(frozen=True)

    number: int = Field(ge=1)
    generation: int = Field(ge=0)
    quads: int = Field(ge=0)
    written: datetime
    confirmed: datetime
    """The last time at which the data directory had these files."""
    quadcite: str
    """The version that wrote it."""
    server: str | None = None
    """The address of the server that wrote it."""
    read: bool
    """Whether the store was read through."""
    added: int = Field(ge=0)
    """Bytes of the files that no earlier point had."""
    files: Mapping[Annotated[str, AfterValidator(_check_name)], StoredFile]

    @property
    def bytes(self) -> int:
        """The bytes of all its files."""
        return sum(file.bytes for file in self.files.values())

    @property
    def has_index(self) -> bool:
        """Whether it has the search index."""
        return any(name.startswith(f"{DataDirectory.index.name}/") for name in self.files)

    def has_equal_files(self, files: Mapping[str, StoredFile]) -> bool:
        """Return whether `files` are the files of this point."""
        return self.files.keys() == files.keys() and all(
            self.files[name].has_equal_content(file) for name, file in files.items()
        )


@dataclass(frozen=True, slots=True)
class Retention:
    """Which points are kept: the newest ones, and the last one of each day and week. All are kept if all are 0."""

    newest: int = 0
    daily: int = 0
    weekly: int = 0

    def choose(self, points: Sequence[Point]) -> set[int]:
        """Return the numbers of the points to keep, of `points` in order of age, the oldest first."""
        latest = points[::-1]
        if not any((self.newest, self.daily, self.weekly)):
            return {point.number for point in latest}
        kept = {point.number for point in latest[: max(1, self.newest)]}
        by_day: dict[date, int] = {}
        by_week: dict[tuple[int, int], int] = {}
        for point in latest:
            year, week, _ = point.confirmed.isocalendar()
            by_day.setdefault(point.confirmed.date(), point.number)
            by_week.setdefault((year, week), point.number)
        return kept | {*[*by_day.values()][: self.daily]} | {*[*by_week.values()][: self.weekly]}


def compute(path: Path) -> StoredFile:
    """Read a file and compute its checksum. Raises OSError."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return StoredFile(bytes=file.tell(), sha256=digest)


def parse_point(text: bytes, where: str) -> Point:
    """Parse a point as `encode_point` writes it. Raises StoreDamagedError."""
    try:
        fields = json.loads(text)
        point = Point.model_validate(fields["point"])
        if fields["sha256"] == _sum_up(fields["point"]):
            return point
        problem = "its checksum differs"
    except ValidationError as error:
        problem = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:2])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        problem = f"{type(error).__name__}: {error}"
    raise StoreDamagedError(f"{where} is damaged: {problem}. Use another point.")


def encode_point(point: Point) -> bytes:
    """Write a point as JSON, with a checksum."""
    fields = point.model_dump(mode="json")
    return json.dumps({"sha256": _sum_up(fields), "point": fields}, indent=1).encode()


def _sum_up(fields: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


class BackupFolder:
    """A folder of backups. One process at a time writes to it (`writing`); others may read meanwhile (`reading`)."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self._about: Final = path / "backup.json"
        self._points: Final = path / "points"
        self._files: Final = path / "files"
        self._incoming: Final = path / "incoming"
        """Files that are being copied."""

    # Reading

    @property
    def exists(self) -> bool:
        """Whether a backup to it was begun."""
        return self._about.exists()

    def require(self) -> Self:
        """Raise InvalidInputError unless it is a folder of backups, StoreVersionError if a newer version wrote it."""
        try:
            version = json.loads(self._about.read_bytes())["version"]
        except FileNotFoundError:
            hint = " It is a data directory." if DataDirectory(self.path).format.is_file() else ""
            raise InvalidInputError(
                f"{self.path} is not a folder of backups: it has no {self._about.name}.{hint}"
            ) from None
        except OSError as error:
            raise InvalidInputError(f"Cannot read {self._about}: {error.strerror or error}.") from None
        except (ValueError, KeyError, TypeError):
            raise StoreDamagedError(f'{self._about} is damaged. Expected {{"version": {VERSION}}}.') from None
        if version != VERSION:
            raise StoreVersionError(
                f"{self.path} has the layout {version!r}, and this version of Quadcite reads {VERSION}. Upgrade "
                "Quadcite."
            )
        return self

    def list_points(self) -> list[Point]:
        """List the points, the oldest first, without damaged ones."""
        return [point for point, _ in self._load_points() if point is not None]

    def list_problems(self) -> list[str]:
        """List the problems of points that cannot be read."""
        return [problem for _, problem in self._load_points() if problem]

    def _load_points(self) -> Iterator[tuple[Point | None, str]]:
        for number in self._list_numbers():
            try:
                yield self.load(number), ""
            except NotFoundError:  # removed meanwhile
                continue
            except StoreDamagedError as error:
                yield None, str(error)

    def _list_numbers(self) -> list[int]:
        names = (path.stem for path in self._points.glob("*.json"))
        return sorted(int(name) for name in names if name.isascii() and name.isdigit())

    def load(self, number: int | None = None) -> Point:
        """Load a point, None: the newest. Raises NotFoundError, and StoreDamagedError if it is damaged."""
        numbers = self._list_numbers()
        if number is None and not numbers:
            raise NotFoundError(f"{self.path} has no point: no backup to it was completed.")
        chosen = numbers[-1] if number is None else number
        path = self._find_point(chosen)
        try:
            point = parse_point(path.read_bytes(), str(path))
        except FileNotFoundError:
            shown = join_first([str(each) for each in numbers[::-1]], _SHOWN) or "none"
            raise NotFoundError(f"{self.path} has no point {chosen}. Points, the newest first: {shown}.") from None
        except OSError as error:
            raise StoreDamagedError(f"Cannot read {path}: {error.strerror or error}. Use another point.") from error
        if point.number != chosen:
            raise StoreDamagedError(f"{path} is damaged: it is the point {point.number}. Use another point.")
        return point

    def find_file(self, file: StoredFile) -> Path:
        """Return the path of the bytes of a file."""
        return self._files / file.sha256

    def find_content(self, sha256: str) -> Path:
        """Return the path of the bytes with a hash. Raises NotFoundError."""
        path = self._files / sha256
        if not _HASH.fullmatch(sha256) or not path.is_file():
            raise NotFoundError(f"No file with the SHA-256 {sha256[:64]!r}.")
        return path

    def check(self, file: StoredFile) -> str | None:
        """Read the bytes of a file and describe the problem, None: there is none."""
        path = self.find_file(file)
        try:
            if path.is_symlink() or not path.is_file():
                return "Its content is missing." if not path.is_symlink() else "Its content is a symbolic link."
            found = compute(path)
        except OSError as error:
            return f"Its content cannot be read: {error.strerror or error}."
        if found.bytes != file.bytes:
            return f"Its content has {found.bytes:,} bytes instead of {file.bytes:,}."
        return None if found.has_equal_content(file) else f"Its content has the SHA-256 {found.sha256}."

    @contextmanager
    def open_point(self, point: Point) -> Iterator[DataDirectory]:
        """Provide the files of a point under their names, as links, to read."""
        with temporary_folder() as folder:
            for name, file in point.files.items():
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(self.find_file(file).absolute())
            yield DataDirectory(folder)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Keep all files in the block. On a disk that cannot be locked nobody removes files."""
        descriptor = -1
        with suppress(OSError):  # read-only, or without locks
            descriptor = os.open(self.path / "readers", os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        try:
            yield
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    # Writing

    @contextmanager
    def writing(self) -> Iterator[Self]:
        """Write in the block, alone; create the folder if it is missing or empty.

        Raises ConflictError while another process writes, InvalidInputError for a folder with other files, and OSError.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        present = {path.name for path in self.path.iterdir()}
        ours = {path.name for path in (self._points, self._files, self._incoming)} | {"lock", "readers"}
        if self._about.name in present:
            self.require()
        elif foreign := present - ours - {DataDirectory.lost_and_found.name, f"{self._about.name}.partial"}:
            raise InvalidInputError(
                f"{self.path} is not a folder of backups and is not empty ({join_first(sorted(foreign), 3)}). Name "
                "a new folder."
            )
        descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConflictError(
                    f"Another backup is being written to {self.path}. It goes on; this one wrote nothing."
                ) from None
            shutil.rmtree(self._incoming, ignore_errors=True)  # of a process that was killed
            for folder in (self._points, self._files, self._incoming):
                folder.mkdir(exist_ok=True)
            if self._about.name not in present:
                write_file(self._about, json.dumps({"version": VERSION}), sync=True)
                sync_folder(self.path)
            try:
                yield self
            finally:
                shutil.rmtree(self._incoming, ignore_errors=True)
        finally:
            os.close(descriptor)

    @property
    def incoming(self) -> Path:
        """A folder for files to `take`, which is removed at the end of `writing`."""
        return self._incoming

    def list_contents(self) -> set[str]:
        """List the hashes of the stored files."""
        with os.scandir(self._files) as entries:
            return {entry.name for entry in entries if _HASH.fullmatch(entry.name)}

    def add(self, source: Path) -> StoredFile:
        """Copy a file, unless its bytes are there. Raises StoreDamagedError for a wrong copy, and OSError."""
        target = self._incoming / "file"
        digest = copy_with_holes(source, target)
        return self.take(target, digest)

    def take(self, copied: Path, sha256: str) -> StoredFile:
        """Move a copy on the same disk in, of bytes with this hash. Raises StoreDamagedError if it has others."""
        found = compute(copied)
        if found.sha256 != sha256:
            raise StoreDamagedError(
                f"The copy of {copied.name} differs from its source. Check the disk of the backup, {self.path}."
            )
        copied.rename(self._files / sha256)
        return found

    def measure(self, sha256: str) -> int:
        """Measure the bytes that a file takes on the disk."""
        return (self._files / sha256).stat().st_blocks * _BLOCK_BYTES

    def has_content(self, file: StoredFile) -> bool:
        """Return whether the bytes of a file are there, by their size."""
        with suppress(OSError):
            return self.find_file(file).stat().st_size == file.bytes
        return False

    def next_number(self) -> int:
        """Return the number of the next point."""
        return max(self._list_numbers(), default=0) + 1

    def write(self, point: Point) -> None:
        """Write a point, whose files are there: it is complete on return, or does not exist."""
        sync_folder(self._files)
        write_file(self._find_point(point.number), encode_point(point), sync=True)
        sync_folder(self._points)

    def prune(self, retention: Retention) -> list[int]:
        """Remove the points that are not kept, and the files of no point. Nothing, while another process reads.

        Returns the numbers of the removed points. With a damaged point, no file is removed: it may have some of them.
        """
        descriptor = os.open(self.path / "readers", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return []
            points = self.list_points()
            kept = retention.choose(points)
            removed = [point.number for point in points if point.number not in kept]
            for number in removed:
                self._find_point(number).unlink()
            sync_folder(self._points)
            if not self.list_problems():
                used = {file.sha256 for point in points if point.number in kept for file in point.files.values()}
                self._remove_files(self.list_contents() - used)
            return removed
        finally:
            os.close(descriptor)

    def _remove_files(self, hashes: Collection[str]) -> None:
        for name in hashes:
            (self._files / name).unlink(missing_ok=True)

    def _find_point(self, number: int) -> Path:
        return self._points / f"{number}.json"


def require_outside(folder: Path, data_dir: Path) -> None:
    """Raise InvalidInputError if a folder of backups is inside the data directory, or that in it."""
    here, there = folder.resolve(), data_dir.resolve()
    if here.is_relative_to(there) or there.is_relative_to(here):
        raise InvalidInputError(f"{folder} and {data_dir} contain one another. Name a folder elsewhere for backups.")


def describe_error(error: OSError, doing: str) -> QuadciteError:
    """Build the error for a disk that cannot be written to."""
    return QuadciteError(f"Cannot {doing}: {error.strerror or error}.")
