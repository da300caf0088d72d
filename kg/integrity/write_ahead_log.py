"""The checksums of RocksDB's log files, which the engine uses to recover but does not report.

At the first damaged record of its write-ahead log the engine stops and opens the store as it was before that record,
so acknowledged commits are lost without an error. A log is a sequence of blocks of 32 KiB. Each block contains
fragments: a masked CRC-32C, a length, a type, with types above 4 the number of the log, and the data.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

_BLOCK: Final = 32_768
_HEADER: Final = struct.Struct("<IHB")
_RECYCLABLE: Final = range(5, 9)
_LARGEST_TYPE: Final = 11
_POLYNOMIAL: Final = 0x82F63B78
_MASK_DELTA: Final = 0xA282EAD8
_PIECE: Final = 128
"""Bytes of a piece of a text; the pieces are computed together."""
_SHORT: Final = 1_024
_START: Final = 0xFFFFFFFF


def _build_table() -> np.ndarray[Any, np.dtype[np.uint32]]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1).astype(np.uint32)
    return table


_TABLE: Final = _build_table()
_LIST: Final[list[int]] = _TABLE.tolist()


def _build_shifts() -> list[list[int]]:
    """Build the states that a state becomes after a piece of zeros, for each value of each of its four bytes."""
    places = np.array([[0], [8], [16], [24]], dtype=np.uint32)
    states = np.arange(256, dtype=np.uint32)[None, :] << places
    for _ in range(_PIECE):
        states = _TABLE[states & 0xFF] ^ (states >> 8)
    found: list[list[int]] = states.tolist()
    return found


_SHIFTS: Final = _build_shifts()


def find_damage(log: Path) -> int | None:
    """Return the offset of the first fragment whose checksum is wrong, or None.

    A crash can cut the last fragment. That is not damage, since its commit was not acknowledged.
    """
    for offset, stored, data in _read_fragments(log):
        computed = compute_crc32c(data)
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


def compute_crc32c(text: bytes) -> int:
    """Compute the CRC-32C of a byte string: of its pieces together, a byte of each at a time, then of the whole."""
    if len(text) < _SHORT:
        state = _START
        for byte in text:
            state = _LIST[(state ^ byte) & 0xFF] ^ (state >> 8)
        return state ^ _START
    # The start value is that of zero, added to the first four bytes; zeros before these do not change a state of zero.
    padded = bytearray(-len(text) % _PIECE) + text
    first = len(padded) - len(text)
    padded[first : first + 4] = bytes(byte ^ 0xFF for byte in text[:4])
    columns = np.ascontiguousarray(np.frombuffer(padded, dtype=np.uint8).reshape(-1, _PIECE).T)
    states = np.zeros(columns.shape[1], dtype=np.uint32)
    for column in columns:
        states = _TABLE[(states ^ column) & 0xFF] ^ (states >> 8)
    state = 0
    one, two, three, four = _SHIFTS
    pieces: list[int] = states.tolist()
    for piece in pieces:
        state = one[state & 0xFF] ^ two[(state >> 8) & 0xFF] ^ three[(state >> 16) & 0xFF] ^ four[state >> 24] ^ piece
    return state ^ _START
