"""The engine's write-ahead log, the log files of RocksDB: its sync to the disk, and its damage.

The engine uses the log to recover, but does not report damage: at the first damaged record it stops and opens the
store as it was before that record, so acknowledged commits are lost without an error. A log is a sequence of blocks of
32 KiB. Each block contains fragments: a masked CRC-32C, a length, a type, with types above 4 the number of the log, and
the data.
"""

from __future__ import annotations

import logging
import os
import shutil
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import google_crc32c

from kg.store.engine import STORE
from kg.store.lock import sync_folder

_log: Final = logging.getLogger(__name__)

_KEPT: Final = "damaged-log-"
"""Prefix of the names of damaged logs that are kept in the data directory, since the engine removes them."""

_BLOCK: Final = 32_768
_HEADER: Final = struct.Struct("<IHB")
_RECYCLABLE: Final = range(5, 9)
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


def list_damage(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield each damaged log of a store that no process has open, with a description of the damage."""
    for log in sorted(folder.glob("*.log")):
        try:
            offset = find_damage(log)
        except OSError as error:
            yield log, f"The log cannot be read: {error.strerror or error}."
            continue
        if offset is not None:
            yield log, f"The write-ahead log is damaged at byte {offset:,}."


def keep_damaged_logs(data_dir: Path) -> list[Path]:
    """Keep the damaged logs of a store that is about to be opened; return those that cannot be kept.

    They stay in the data directory until a person removes them: the engine removes its own.
    """
    unkept = []
    for log, damage in list_damage(data_dir / STORE):
        _log.error("%s: %s The commits from there on are lost unless they are in tables too.", log, damage)
        kept = data_dir / f"{_KEPT}{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{log.name}"
        try:
            os.link(log, kept)
        except OSError:  # a file system without links
            try:
                shutil.copyfile(log, kept)
            except OSError:
                unkept.append(log)
    return unkept


def list_kept_logs(data_dir: Path) -> list[Path]:
    """List the damaged logs that were kept."""
    return sorted(data_dir.glob(f"{_KEPT}*"))


def describe_loss(log: Path) -> str:
    """Describe the loss that a kept log is a sign of, and how to end it."""
    return (
        f"{log.name}: This write-ahead log was damaged when the store was opened. The commits behind the damage are "
        f"lost. Load the latest sources again, or restore a backup. Then remove {log}."
    )


def find_damage(log: Path) -> int | None:
    """Return the offset of the first fragment whose checksum is wrong, or None.

    A crash can cut the last fragment. That is not damage, since its commit was not acknowledged.
    """
    for offset, stored, data in _read_fragments(log):
        computed = google_crc32c.value(data)
        masked = (((computed >> 15) | (computed << 17)) + _MASK_DELTA) & 0xFFFFFFFF
        if stored != masked:
            return offset
    return None


def _read_fragments(log: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield the offset, the stored checksum and the covered bytes of each fragment."""
    with log.open("rb") as file:
        start = 0
        while block := file.read(_BLOCK):
            at = 0
            while at + _HEADER.size <= len(block):
                checksum, length, kind = _HEADER.unpack_from(block, at)
                if not checksum and not length and not kind:
                    break  # the rest of the block is empty
                size = _HEADER.size + (4 if kind in _RECYCLABLE else 0)
                end = at + size + length
                if kind > _LARGEST_TYPE or end > _BLOCK:
                    yield start + at, -1, b""
                    return
                if end > len(block):
                    return
                yield start + at, checksum, block[at + 6 : end]
                at = end
            start += len(block)
