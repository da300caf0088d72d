"""Messages between the index process and its client: length-prefixed JSON objects over a byte stream."""

from __future__ import annotations

import json
import struct
from typing import IO, Any

from kg.errors import InvalidInputError

_LENGTH = struct.Struct(">I")


def encode(message: dict[str, Any]) -> bytes:
    """Return one message as bytes. Raises InvalidInputError for text that is not Unicode (a lone surrogate)."""
    try:
        body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"the text holds a lone surrogate (U+{ord(error.object[error.start]):04X}), which is no character"
        ) from None
    return _LENGTH.pack(len(body)) + body


def receive(stream: IO[bytes]) -> dict[str, Any] | None:
    """Read one message; None when the other side is gone, also in the middle of a message."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    body = stream.read(length)
    if len(body) < length:
        return None
    message: dict[str, Any] = json.loads(body)
    return message
