"""Text of anybody, made safe to print."""

from __future__ import annotations

import re
from typing import Final

_UNPRINTED: Final = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]")


def printable(text: str) -> str:
    """Return `text` with an escape for each character that makes a terminal do something, or that changes the order
    in which others are shown; tabs and line feeds stay.
    """
    return _UNPRINTED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
