"""The lock and the version file of a data directory.

The lock is an advisory `flock` on the file ``lock``. The kernel releases it when its holder dies, so the file left by a
dead process is harmless. The text of the file only describes the holder to other processes.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shlex
import socket
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from kg.actors import TOKEN_FILE
from kg.errors import StoreError, StoreLockedError, StoreReadOnlyError, StoreVersionError
from kg.files import find_links, is_unwritable

FORMAT_VERSION: Final = 1
"""Format version of the data directory that this code writes, and the newest that it reads."""

CHECKSUMS: Final = "checksums.json"
"""The file of a backup with the checksums of its files. Opening the backup as a data directory makes them void."""

RESTORING: Final = ".restoring"
"""The folder of a data directory with the data of a restore in progress. Until the end there is no version file."""

REPLACED: Final = ".replaced"
"""The folder of a data directory with the replaced content, until the restore is complete."""

_MODELS: Final = "models"
"""A folder that may have links, as those of a model hub do: it is only read."""
_LINK_DEPTH: Final = 5
"""Levels in which links are looked for: down to the files of a shard of entities, and not to their many indexes."""
_LOCK: Final = "lock"
_FORMAT: Final = "format.json"
_READ_ONLY: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_IGNORED: Final = frozenset({"lost+found"})


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds the lock; `started` is in UTC, `address` the URL of its server, if any."""

    pid: int
    host: str
    command: str
    started: str
    address: str | None = None

    def __str__(self) -> str:
        serving = f", serving {self.address}" if self.address else ""
        return f"process {self.pid} on {self.host} ({self.command}) since {self.started}{serving}"


def find_holder(data_dir: Path) -> Holder | None:
    """Find the holder of the lock on `data_dir`; None if it is not locked, or the holder is unknown."""
    try:
        descriptor = os.open(data_dir / _LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_holder(descriptor)
    except OSError:
        return None
    else:
        return None
    finally:
        os.close(descriptor)


class DirectoryLock:
    """An exclusive lock on a data directory, from construction to `release`.

    Creates the directory and its version file if missing. With `reads`, it also locks a directory that cannot be
    written now: then the lock file does not name the holder, and `problem` has the reason. With `bare`, it neither
    reads nor writes the version file: for a restore, which replaces it, and for damaged directories.

    Raises StoreLockedError, StoreVersionError, StoreReadOnlyError, or StoreError for a folder that is not a data
    directory.
    """

    def __init__(self, data_dir: Path, address: str | None = None, *, reads: bool = False, bare: bool = False) -> None:
        self._data_dir: Final = data_dir
        self.problem: str | None = None
        """Why the lock file could not be written."""
        self._writable = True
        self._descriptor = -1
        try:
            data_dir.mkdir(parents=True, exist_ok=True)
            found = sorted(entry.name for entry in data_dir.iterdir())
        except (FileExistsError, NotADirectoryError):
            raise StoreError(f"{data_dir} is a file. A data directory is a folder.") from None
        except OSError as error:
            raise _unusable(data_dir, error) from error
        if not (bare and RESTORING in found):
            _reject_foreign_folder(data_dir, found)
        _reject_links(data_dir)
        if _FORMAT in found and not bare:
            require_known_version(data_dir)
        try:
            self._descriptor = self._open_file(reads and _FORMAT in found)
            self._take()
            self._started = datetime.now(UTC).isoformat(timespec="seconds")
            try:
                self.announce(address)
            except OSError as error:
                if not (reads and _FORMAT in found and is_unwritable(error)):
                    raise
                self.problem = error.strerror or str(error)
            if bare:
                return
            if not (data_dir / _FORMAT).exists():
                _write_version(data_dir)
            if CHECKSUMS in found and self._writable:
                (data_dir / CHECKSUMS).unlink(missing_ok=True)
        except OSError as error:
            self.release()
            raise _unusable(data_dir, error) from error
        except BaseException:
            self.release()
            raise

    def _open_file(self, reads: bool) -> int:
        """Open the lock file; with `reads` without writing if need be, or the folder if there is none."""
        path = self._data_dir / _LOCK
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            if not (reads and is_unwritable(error)):
                raise
            self._writable = False
            with suppress(FileNotFoundError):
                return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            return os.open(self._data_dir, os.O_RDONLY | os.O_CLOEXEC)

    def _find_file(self) -> os.stat_result:
        """Find the file that others would lock: the lock file, or the folder if there is none."""
        try:
            return os.stat(self._data_dir / _LOCK)
        except FileNotFoundError:
            return os.stat(self._data_dir)

    def _take(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(self._descriptor), self._find_file()):
                raise BlockingIOError  # its former holder has removed the data directory
        except BlockingIOError:
            who = _read_holder(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1
            instead = f"send requests to {who.address}" if who and who.address else "use its server"
            raise StoreLockedError(
                f"{self._data_dir} is locked by {who or 'an unknown process'}. Stop that process, {instead}, "
                "or choose another data directory."
            ) from None

    def announce(self, address: str | None) -> None:
        """Write the holder, with the URL of its server, into the lock file for other processes."""
        command = shlex.join([Path(sys.argv[0]).name or "python", *sys.argv[1:]]) if sys.argv else "python"
        who = Holder(os.getpid(), socket.gethostname(), command, self._started, address)
        text = json.dumps(asdict(who)).encode()
        if not self._writable:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self._data_dir / _LOCK))
        os.pwrite(self._descriptor, text, 0)
        os.ftruncate(self._descriptor, len(text))

    def release(self) -> None:
        """Release the lock. A second call does nothing."""
        if self._descriptor < 0:
            return
        try:
            with suppress(OSError):  # it only describes the holder
                os.ftruncate(self._descriptor, 0)
        finally:
            os.close(self._descriptor)
            self._descriptor = -1


def _read_holder(descriptor: int) -> Holder | None:
    try:
        return Holder(**json.loads(os.pread(descriptor, 65_536, 0)))
    except (ValueError, TypeError, OSError):
        return None


def _reject_foreign_folder(data_dir: Path, found: list[str]) -> None:
    if _FORMAT in found:
        return
    if RESTORING in found:
        raise StoreError(f"A restore into {data_dir} was interrupted. Run `kg restore` again, with the same folder.")
    foreign = [name for name in found if name != _LOCK and not name.startswith(".") and name not in _IGNORED]
    if foreign:
        shown = ", ".join(foreign[:3]) + (", ..." if len(foreign) > 3 else "")
        raise StoreError(
            f"{data_dir} is not a Quadcite data directory: it has no {_FORMAT} and is not empty ({shown}). "
            "Choose an empty or a new folder."
        )


def _reject_links(data_dir: Path) -> None:
    """Reject links: what they lead to would be written, and cleared, as if it were part of the data directory.

    A link in place of the token is replaced at each start.
    """
    if links := sorted(find_links(data_dir, _LINK_DEPTH, {data_dir / TOKEN_FILE, data_dir / _MODELS})):
        raise StoreError(
            f"{links[0]} is a symbolic link. A data directory contains none. Move what it leads to into its place, "
            "or make the whole data directory a link."
        )


def require_known_version(data_dir: Path) -> None:
    """Raise StoreVersionError if a newer Quadcite wrote `data_dir`, StoreError if its version file is damaged."""
    path = data_dir / _FORMAT
    try:
        version = json.loads(path.read_bytes())["version"]
        if not isinstance(version, int) or version < 1:
            raise ValueError
    except OSError as error:
        raise StoreError(f"Cannot read {path}: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError):
        raise StoreError(
            f'{path} is damaged. Expected {{"version": {FORMAT_VERSION}}}. Restore it from a backup.'
        ) from None
    if version > FORMAT_VERSION:
        raise StoreVersionError(
            f"{data_dir} has format {version}, written by a newer Quadcite. This version reads formats up to "
            f"{FORMAT_VERSION}. Upgrade Quadcite, or choose another data directory."
        )


def _write_version(data_dir: Path) -> None:
    """Write the version file atomically."""
    partial = data_dir / f".{_FORMAT}.partial"
    with partial.open("w") as file:
        json.dump({"version": FORMAT_VERSION}, file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(data_dir / _FORMAT)
    sync_folder(data_dir)


def sync_folder(folder: Path) -> None:
    """Sync the entries of `folder` to disk, so that new and renamed files survive a power loss."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unusable(data_dir: Path, error: OSError) -> StoreError:
    if error.errno in _READ_ONLY:
        return StoreReadOnlyError(
            f"{data_dir} is not writable: {error.strerror}. Grant this user write permission, copy the directory to a "
            "writable place, or choose another data directory."
        )
    return StoreError(f"Cannot use {data_dir} as a data directory: {error.strerror or error}.")
