"""The data directory as a place that one process at a time may write: its lock and its version file.

The lock is an advisory `flock` on the file ``lock``, which the kernel lets go of when its holder dies, so what a dead
process left there is no obstacle. The file's text only tells others whom to ask.
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
"""Version of the layout of the data directory that this code writes, and the newest that it reads."""

_LOCK: Final = "lock"
_FORMAT: Final = "format.json"
_READ_ONLY: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_NOT_OURS_TO_MIND: Final = frozenset({"lost+found"})


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has a data directory open: `started` is when, in UTC; `address` is a URL if it serves one."""

    pid: int
    host: str
    command: str
    started: str
    address: str | None = None

    def __str__(self) -> str:
        serving = f", serving {self.address}" if self.address else ""
        return f"process {self.pid} on {self.host} ({self.command}) since {self.started}{serving}"


def find_holder(data_dir: Path) -> Holder | None:
    """Return who holds `data_dir` now, as far as it says so; None when nobody does."""
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
    """A data directory held for writing, from construction to `release`.

    Makes the directory and its version file where there are none. Raises StoreLockedError, StoreVersionError,
    StoreReadOnlyError, or StoreError for a folder that is something else.
    """

    def __init__(self, data_dir: Path, address: str | None = None) -> None:
        self._data_dir: Final = data_dir
        self._descriptor = -1
        try:
            data_dir.mkdir(parents=True, exist_ok=True)
            found = sorted(entry.name for entry in data_dir.iterdir())
        except (FileExistsError, NotADirectoryError):
            raise StoreError(f"{data_dir} is a file; a data directory is a folder") from None
        except OSError as error:
            raise _unusable(data_dir, error) from error
        _refuse_foreign(data_dir, found)
        if _FORMAT in found:
            _refuse_other_version(data_dir)
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
            raise StoreLockedError(
                f"{self._data_dir} is in use by {who or 'another process that has not said which it is'}; "
                f"stop it, ask it{' at ' + who.address if who and who.address else ''} instead, "
                "or choose another data directory"
            ) from None

    def announce(self, address: str | None) -> None:
        """Tell whoever finds the directory held at which URL the holder can be asked."""
        command = shlex.join([Path(sys.argv[0]).name or "python", *sys.argv[1:]]) if sys.argv else "python"
        who = Holder(os.getpid(), socket.gethostname(), command, self._started, address)
        text = json.dumps(asdict(who)).encode()
        os.pwrite(self._descriptor, text, 0)
        os.ftruncate(self._descriptor, len(text))

    def release(self) -> None:
        """Let go of the directory. A second call does nothing."""
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


def _refuse_foreign(data_dir: Path, found: list[str]) -> None:
    if _FORMAT in found:
        return
    foreign = [name for name in found if name != _LOCK and not name.startswith(".") and name not in _NOT_OURS_TO_MIND]
    if foreign:
        shown = ", ".join(foreign[:3]) + (", ..." if len(foreign) > 3 else "")
        raise StoreError(
            f"{data_dir} is not a Quadcite data directory (no {_FORMAT}) and is not empty either ({shown}); "
            "choose an empty or a new folder"
        )


def _refuse_other_version(data_dir: Path) -> None:
    path = data_dir / _FORMAT
    try:
        version = json.loads(path.read_bytes())["version"]
        if not isinstance(version, int) or version < 1:
            raise ValueError
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError):
        raise StoreError(
            f'{path} is damaged: it should read {{"version": {FORMAT_VERSION}}}; restore it from a backup'
        ) from None
    if version > FORMAT_VERSION:
        raise StoreVersionError(
            f"{data_dir} was written in format {version} by a newer Quadcite; this one reads formats up to "
            f"{FORMAT_VERSION}: upgrade it, or choose another data directory"
        )


def _write_version(data_dir: Path) -> None:
    """Write the version file whole or not at all."""
    partial = data_dir / f".{_FORMAT}.partial"
    with partial.open("w") as file:
        json.dump({"version": FORMAT_VERSION}, file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(data_dir / _FORMAT)
    sync_folder(data_dir)


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` survive a power loss."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unusable(data_dir: Path, error: OSError) -> StoreError:
    if error.errno in _READ_ONLY:
        return StoreReadOnlyError(
            f"{data_dir} cannot be written to ({error.strerror}); give this user write permission, "
            "copy the directory to a place that can be written to, or choose another data directory"
        )
    return StoreError(f"{data_dir} cannot be used as a data directory: {error.strerror or error}")
