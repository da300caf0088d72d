"""The wire format between a process and its children. Standard library only: a worker has to start in milliseconds.

A frame is a kind (one byte), the length of its payload (four bytes, big endian) and the payload.
"""

from __future__ import annotations

import json
import struct
from typing import IO, Any, Final

HEADER: Final = struct.Struct(">cI")

Frame = tuple[bytes, bytes]
"""Kind and payload."""


def encode(kind: bytes, payload: bytes) -> bytes:
    """Encode one frame."""
    return HEADER.pack(kind, len(payload)) + payload


def encode_json(kind: bytes, value: Any) -> bytes:
    """Encode one frame whose payload is JSON. Raises UnicodeEncodeError for a lone surrogate."""
    return encode(kind, json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def read(stream: IO[bytes]) -> Frame | None:
    """Read one frame from a buffered stream; None at its end, also when it ends within a frame."""
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    kind, size = HEADER.unpack(header)
    payload = stream.read(size)
    return (kind, payload) if len(payload) == size else None
