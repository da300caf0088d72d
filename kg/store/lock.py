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
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from kg.errors import StoreError, StoreLockedError, StoreReadOnlyError, StoreVersionError

FORMAT_VERSION: Final = 1
"""Format version of the data directory that this code writes, and the newest that it reads."""

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

    Creates the directory and its version file if missing. Raises StoreLockedError, StoreVersionError,
    StoreReadOnlyError, or StoreError for a folder that is not a data directory.
    """

    def __init__(self, data_dir: Path, address: str | None = None) -> None:
        self._data_dir: Final = data_dir
        self._descriptor = -1
        try:
            data_dir.mkdir(parents=True, exist_ok=True)
            found = sorted(entry.name for entry in data_dir.iterdir())
        except (FileExistsError, NotADirectoryError):
            raise StoreError(f"{data_dir} is a file. A data directory is a folder.") from None
        except OSError as error:
            raise _unusable(data_dir, error) from error
        _reject_foreign_folder(data_dir, found)
        if _FORMAT in found:
            _reject_newer_version(data_dir)
        try:
            self._descriptor = os.open(data_dir / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            self._take()
            self._started = datetime.now(UTC).isoformat(timespec="seconds")
            self.announce(address)
            if not (data_dir / _FORMAT).exists():
                _write_version(data_dir)
        except OSError as error:
            self.release()
            raise _unusable(data_dir, error) from error
        except BaseException:
            self.release()
            raise

    def _take(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
        os.pwrite(self._descriptor, text, 0)
        os.ftruncate(self._descriptor, len(text))

    def release(self) -> None:
        """Release the lock. A second call does nothing."""
        if self._descriptor < 0:
            return
        try:
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
    foreign = [name for name in found if name != _LOCK and not name.startswith(".") and name not in _IGNORED]
    if foreign:
        shown = ", ".join(foreign[:3]) + (", ..." if len(foreign) > 3 else "")
        raise StoreError(
            f"{data_dir} is not a Quadcite data directory: it has no {_FORMAT} and is not empty ({shown}). "
            "Choose an empty or a new folder."
        )


def _reject_newer_version(data_dir: Path) -> None:
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
