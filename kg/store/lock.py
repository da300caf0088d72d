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
from typing import Final, Self

from kg.data_directory import ENTRIES, DataDirectory
from kg.errors import StoreError, StoreLockedError, StoreReadOnlyError, StoreVersionError
from kg.files import find_links, is_unwritable, write_file

_LINK_DEPTH: Final = 5
"""Levels in which links are looked for: down to the files of a shard of entities, and not to their many indexes."""
_READ_ONLY: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


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
        descriptor = os.open(DataDirectory(data_dir).lock, os.O_RDONLY | os.O_CLOEXEC)
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


def find_address(data_dir: Path) -> str | None:
    """Find the address of the server on this machine that holds `data_dir`."""
    who = find_holder(data_dir)
    return who.address if who is not None and who.host == socket.gethostname() else None


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
        directory = DataDirectory(data_dir)
        self._file: Final = directory.lock
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
        if not (bare and directory.restoring.name in found):
            _reject_foreign_folder(directory, found)
        _reject_links(directory)
        has_version = directory.format.name in found
        if has_version and not bare:
            require_known_version(data_dir, exactly=True)
        try:
            self._descriptor = self._open_file(reads and has_version)
            self._take()
            self._started = datetime.now(UTC).isoformat(timespec="seconds")
            try:
                self.announce(address)
            except OSError as error:
                if not (reads and has_version and is_unwritable(error)):
                    raise
                self.problem = error.strerror or str(error)
            if bare:
                return
            if not directory.format.exists():
                version = json.dumps({"version": DataDirectory.format.version})
                write_file(directory.format, version, sync=True)
                sync_folder(data_dir)
        except OSError as error:
            self.release()
            raise _unusable(data_dir, error) from error
        except BaseException:
            self.release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _open_file(self, reads: bool) -> int:
        """Open the lock file; with `reads` without writing if need be, or the folder if there is none."""
        try:
            return os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            if not (reads and is_unwritable(error)):
                raise
            self._writable = False
            with suppress(FileNotFoundError):
                return os.open(self._file, os.O_RDONLY | os.O_CLOEXEC)
            return os.open(self._data_dir, os.O_RDONLY | os.O_CLOEXEC)

    def _find_file(self) -> os.stat_result:
        """Find the file that others would lock: the lock file, or the folder if there is none."""
        try:
            return os.stat(self._file)
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
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self._file))
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


def _reject_foreign_folder(directory: DataDirectory, found: list[str]) -> None:
    data_dir = directory.path
    if directory.format.name in found:
        return
    if directory.restoring.name in found:
        raise StoreError(f"A restore into {data_dir} was interrupted. Run `kg restore` again, with the same folder.")
    ignored = {directory.lock.name, directory.lost_and_found.name, f"{directory.format.name}.partial"}
    ignored |= {
        Path(entry.name).parts[0] for entry in ENTRIES if entry.kind in ("access", "log")
    }  # before the first start
    foreign = [name for name in found if not name.startswith(".") and name not in ignored]
    if foreign:
        shown = ", ".join(foreign[:3]) + (", ..." if len(foreign) > 3 else "")
        raise StoreError(
            f"{data_dir} is not a Quadcite data directory: it has no {directory.format.name} and is not empty "
            f"({shown}). Choose an empty or a new folder."
        )


def _reject_links(directory: DataDirectory) -> None:
    """Reject links: what they lead to would be written, and cleared, as if it were part of the data directory.

    A link in place of the token is replaced at each start.
    """
    if links := sorted(find_links(directory.path, _LINK_DEPTH, {directory.token, directory.models})):
        raise StoreError(
            f"{links[0]} is a symbolic link. A data directory contains none. Move what it leads to into its place, "
            "or make the whole data directory a link."
        )


def read_version(data_dir: Path) -> int:
    """Read the format of a data directory. Raises StoreError if its version file is damaged."""
    path, newest = DataDirectory(data_dir).format, DataDirectory.format.version
    try:
        version = json.loads(path.read_bytes())["version"]
        if not isinstance(version, int) or version < 1:
            raise ValueError
    except OSError as error:
        raise StoreError(f"Cannot read {path}: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError):
        raise StoreError(f'{path} is damaged. Expected {{"version": {newest}}}. Restore it from a backup.') from None
    return version


def require_known_version(data_dir: Path, *, exactly: bool = False) -> None:
    """Raise StoreVersionError if a newer Quadcite wrote `data_dir`, and with `exactly` for any other format.

    Raises StoreError if its version file is damaged.
    """
    version, newest = read_version(data_dir), DataDirectory.format.version
    if version > newest:
        raise StoreVersionError(
            f"{data_dir} has format {version}, written by a newer Quadcite. This version reads formats up to "
            f"{newest}. Upgrade Quadcite, or choose another data directory."
        )
    if exactly and version < newest:
        raise StoreVersionError(
            f"{data_dir} has format {version}, and this version of Quadcite writes {newest}. Run `kg upgrade`."
        )


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
