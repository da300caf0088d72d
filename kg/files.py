"""Files that are replaced as a whole, so that readers and a crash meet the old or the new content, and copies."""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Final

_PIECE_BYTES: Final = 1 << 18
_UNWRITABLE: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT})
_RUST_ERROR: Final = re.compile(r"\(os error (\d+)\)")


def is_unwritable(error: BaseException) -> bool:
    """Return whether an error is that of a disk that is full or cannot be written to.

    Libraries in Rust raise a plain Exception whose message ends with the number of the system's error.
    """
    if isinstance(error, OSError):
        return error.errno in _UNWRITABLE
    return any(int(number) in _UNWRITABLE for number in _RUST_ERROR.findall(str(error)))


def find_links(folder: Path, depth: int, excluded: Collection[Path] = ()) -> Iterator[Path]:
    """Find the symbolic links in a folder and in so many levels of it, except in paths that are excluded.

    A folder that is not there or cannot be listed, such as ``lost+found``, has none.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if (path := folder / entry.name) in excluded:
                continue
            if entry.is_symlink():
                yield path
            elif depth > 1 and entry.is_dir(follow_symlinks=False):
                yield from find_links(path, depth - 1, excluded)


def write_file(path: Path, content: str | bytes, *, sync: bool = False) -> None:
    """Write `content` in place of the file at `path`; with `sync` it is on the disk before it gets its name.

    Only one process may write the file at a time. Raises OSError.
    """
    partial = path.with_name(f"{path.name}.partial")
    with partial.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        if sync:
            file.flush()
            os.fsync(file.fileno())
    partial.replace(path)


def copy_with_holes(source: str | Path, target: str | Path, known: Collection[str] = ()) -> str:
    """Copy a file to the disk, unless its SHA-256 is `known`; return the SHA-256 of the bytes read, in hexadecimal.

    Pieces of zeros become holes: Qdrant Edge allocates much more than it fills. Raises OSError.
    """
    if known:
        with open(source, "rb") as file:
            if (found := hashlib.file_digest(file, "sha256").hexdigest()) in known:
                return found
    digest = hashlib.sha256()
    size = 0
    with open(source, "rb") as old, open(target, "wb") as new:
        while piece := old.read(_PIECE_BYTES):
            digest.update(piece)
            size += len(piece)
            if piece.count(0) == len(piece):
                new.seek(size)
            else:
                new.write(piece)
        new.truncate(size)
        new.flush()
        os.fsync(new.fileno())
    return digest.hexdigest()


def get_folder_bytes(folder: Path) -> int:
    """Get the size of the files in a folder, but not of those in folders below it, while others may remove some."""
    total = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # removed by a compaction in the meantime
                total += entry.stat().st_size
    return total


def measure_disk(path: Path) -> int:
    """Measure the bytes that a file or a folder takes on the disk, without holes, while others may remove some."""
    # The walk skips folders that were removed, where `Path.rglob` raises.
    below = (os.path.join(folder, name) for folder, folders, files in os.walk(path) for name in (*folders, *files))
    total = 0
    for each in chain([str(path)], below):
        with suppress(FileNotFoundError):
            total += os.lstat(each).st_blocks * 512
    return total
