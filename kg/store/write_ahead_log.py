"""The engine's write-ahead log, the log files of RocksDB: its sync to the disk, and its damage.

The engine uses the log to recover, but does not report damage: at the first damaged record it stops and opens the
store as it was before that record, so acknowledged commits are lost without an error. A log is a sequence of blocks of
32 KiB. Each block contains fragments: a masked CRC-32C, a length, a type, with recyclable types the number of the log,
and the data (https://github.com/facebook/rocksdb/wiki/Write-Ahead-Log-File-Format). The engine recycles files: behind
the last fragment of a log there may be bytes of an older log, from any place in its fragments. They are no damage. Nor
is the fragment that a kill cuts. Only the generation that was acknowledged distinguishes it from a damaged last one.
"""

from __future__ import annotations

import logging
import mmap
import os
import shutil
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import google_crc32c

from kg.data_directory import DataDirectory
from kg.store.lock import sync_folder

_log: Final = logging.getLogger(__name__)

_ACKNOWLEDGED: Final = "ACKNOWLEDGED"
"""The file in the folder of the engine with the generation of the last acknowledged commit."""

_BLOCK: Final = 32_768
_HEADER: Final = struct.Struct("<IHB")
_NUMBER: Final = struct.Struct("<I")
_WITHOUT_NUMBER: Final = range(1, 5)
_RECYCLABLE: Final = frozenset({5, 6, 7, 8, 11})
_LARGEST_TYPE: Final = 11
_MASK_DELTA: Final = 0xA282EAD8


class WriteAheadLog:
    """The write-ahead log of an engine: files named by rising numbers, in its folder."""

    def __init__(self, folder: Path) -> None:
        self._folder: Final = folder
        self._synced = -1

    def reset(self) -> None:
        """Forget which files are on the disk. Called after another engine has written."""
        self._synced = -1

    def sync(self) -> None:
        """Sync the log to the disk: every file since the last synced one."""
        numbers = sorted(int(path.stem) for path in self._folder.glob("*.log"))
        for number in numbers:
            if number < self._synced:
                continue
            try:
                descriptor = os.open(self._folder / f"{number:06d}.log", os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:  # its quads are now in a table file
                continue
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        if numbers and numbers[-1] != self._synced:
            sync_folder(self._folder)
            self._synced = numbers[-1]

    def acknowledge(self, generation: int) -> None:
        """Record the generation of a commit that is on the disk and about to be acknowledged.

        Not synced: after a power failure an older one may be recorded, which only makes the check at a start weaker.
        """
        with suppress(OSError):  # a disk that cannot be written now
            descriptor = os.open(self._folder / _ACKNOWLEDGED, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.pwrite(descriptor, b"%020d" % generation, 0)
            finally:
                os.close(descriptor)


def read_acknowledged(folder: Path) -> int | None:
    """Read the generation of the last acknowledged commit; None if it is not recorded."""
    try:
        return int((folder / _ACKNOWLEDGED).read_bytes())
    except (OSError, ValueError):
        return None


def list_damage(folder: Path, generation: int | None, logs: Sequence[Path] | None = None) -> list[tuple[Path, str]]:
    """List the damaged logs of a store that no process has open, with a description of the damage.

    `generation` is the one that the engine recovers, or None if it is unknown. `logs` are copies of the logs that were
    in the folder; by default, they are read there. If acknowledged commits are missing and no log shows why, all logs
    count as damaged.
    """
    acknowledged = read_acknowledged(folder)
    is_whole = generation is not None and acknowledged is not None and generation >= acknowledged
    logs = sorted(folder.glob("*.log")) if logs is None else logs
    damaged = []
    for log in logs:
        try:
            offset = find_damage(log)
            # The fragment that a kill has cut is the last one, and no acknowledged commit is missing.
            if offset is not None and not (is_whole and not has_fragments(log, offset + 1)):
                damaged.append((log, f"The write-ahead log is damaged at byte {offset:,}."))
        except OSError as error:
            damaged.append((log, f"The log cannot be read: {error.strerror or error}."))
    if damaged or is_whole or generation is None or acknowledged is None:
        return damaged
    missing = f"The commits {generation + 1:,} to {acknowledged:,} are missing."
    return [(log, missing) for log in logs or [folder / "missing.log"]]


def keep_logs(directory: DataDirectory) -> list[Path]:
    """Keep the logs of a store that is about to be opened, until `judge_logs`; return damaged ones that cannot be kept.

    The engine removes its own.
    """
    unkept = []
    for log in sorted(directory.store.glob("*.log")):
        kept = directory.name_now(DataDirectory.unjudged_logs, f"-{log.name}")
        try:
            os.link(log, kept)
        except OSError:  # a file system without links, or one that cannot be written
            with suppress(OSError):
                if find_damage(log) is None:
                    continue
            try:
                shutil.copyfile(log, kept)
            except OSError:
                unkept.append(log)
    return unkept


def judge_logs(directory: DataDirectory, generation: int | None) -> None:
    """Keep those of the kept logs that are damaged, and remove the others, once the engine has recovered `generation`.

    A damaged log stays in the data directory until a person removes it. If acknowledged commits are missing and no log
    shows why, all logs are kept.
    """
    kept = directory.find(DataDirectory.unjudged_logs)
    damaged = list_damage(directory.store, generation, kept)
    for log, damage in damaged:
        name = f"{DataDirectory.damaged_logs.prefix}{log.name.removeprefix(DataDirectory.unjudged_logs.prefix)}"
        _log.error("%s: %s The commits behind the damage are lost.", name, damage)
        lost = directory.path / name
        log.rename(lost) if log.exists() else lost.touch()
    for log in set(kept) - {log for log, _ in damaged}:
        log.unlink()


def describe_loss(log: Path) -> str:
    """Describe the loss that a kept log is a sign of, and how to end it."""
    return (
        f"{log.name}: This write-ahead log was damaged when the store was opened. The commits behind the damage are "
        f"lost. Load the latest sources again, or restore a backup. Then remove {log}."
    )


def find_damage(log: Path) -> int | None:
    """Return the offset of the first damaged fragment, or None.

    The log is read by the rules of the engine. Where it stops before the end of the file, that fragment is damaged if
    it has the number of this log, or if a valid one behind it has. Otherwise the log ends there. The name of the file
    ends in the number.
    """
    with _mapped(log) as content:
        number = _number_of(log)
        end = _find_end(content, number)
        if end is None or not content:
            return None
        is_recyclable = _HEADER.unpack_from(content)[2] not in _WITHOUT_NUMBER if len(content) >= _HEADER.size else True
        if not is_recyclable or _number_at(content, end) == number or _has_fragments(content, end + 1, number):
            return end
        return None


def has_fragments(log: Path, start: int) -> bool:
    """Return whether the log has a valid fragment of its own from `start` on."""
    with _mapped(log) as content:
        return _has_fragments(content, start, _number_of(log))


@contextmanager
def _mapped(log: Path) -> Iterator[mmap.mmap | bytes]:
    with log.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            yield b""
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            yield content


def _number_of(log: Path) -> int:
    stem = log.stem.rpartition("-")[2]
    return int(stem) if stem.isdecimal() else -1


def _number_at(content: mmap.mmap | bytes, at: int) -> int | None:
    at += _HEADER.size
    return _NUMBER.unpack_from(content, at)[0] if at + _NUMBER.size <= len(content) else None


def _find_end(content: mmap.mmap | bytes, number: int) -> int | None:
    """Return the offset of the fragment at which the engine stops; None if it reads to the end of the file."""
    at = 0
    while at + _HEADER.size <= len(content):
        block_end = at - at % _BLOCK + _BLOCK
        if at + _HEADER.size > block_end:
            at = block_end
            continue
        checksum, length, kind = _HEADER.unpack_from(content, at)
        if not checksum and not length and not kind:
            at = block_end  # the rest of the block is empty
            continue
        start = at + _HEADER.size + (_NUMBER.size if kind in _RECYCLABLE else 0)
        if kind > _LARGEST_TYPE or start + length > block_end:
            return at
        if start + length > len(content):  # cut by a crash
            return None
        if kind in _RECYCLABLE and _number_at(content, at) != number:
            return at
        if not _is_valid(content, at, start + length):
            return at
        at = start + length
    return None


def _has_fragments(content: mmap.mmap | bytes, start: int, number: int) -> bool:
    wanted = _NUMBER.pack(number & 0xFFFFFFFF)
    found = content.find(wanted, start + _HEADER.size)
    while found >= 0:
        at = found - _HEADER.size
        _, length, kind = _HEADER.unpack_from(content, at)
        end = found + _NUMBER.size + length
        is_inside = end <= min(len(content), at - at % _BLOCK + _BLOCK)
        if kind in _RECYCLABLE and is_inside and _is_valid(content, at, end):
            return True
        found = content.find(wanted, found + 1)
    return False


def _is_valid(content: mmap.mmap | bytes, at: int, end: int) -> bool:
    """Return whether the checksum of the fragment from `at` to `end` is right."""
    computed = google_crc32c.value(content[at + _HEADER.size - 1 : end])
    masked = (((computed >> 15) | (computed << 17)) + _MASK_DELTA) & 0xFFFFFFFF
    return bool(_HEADER.unpack_from(content, at)[0] == masked)
