"""Text of anybody, made safe to print."""

from __future__ import annotations

import re
from typing import Final

_UNPRINTED: Final = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]")
_BREAKS: Final = re.compile(r"[\t\n\u2028\u2029]")

LONGEST_LINE: Final = 1_000
"""Characters of what is printed of a line that anybody may have written."""


def printable(text: str) -> str:
    """Return `text` with an escape for each character that makes a terminal do something, or that changes the order
    in which others are shown; tabs and line feeds stay.
    """
    return _UNPRINTED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def line(text: str, longest: int = LONGEST_LINE) -> str:
    """Return `text` as one line that is safe to print: what ends a line is escaped too, and of a long one the first
    `longest` characters are left, with how many there are.
    """
    shown = _BREAKS.sub(lambda found: _escaped(found[0]), printable(text[:longest]))
    return shown if len(text) <= longest else f"{shown}… ({len(text):,} characters)"


def _escaped(character: str) -> str:
    return {"\n": "\\n", "\t": "\\t"}.get(character) or f"\\u{ord(character):04x}"
