"""Where the sentences of a text end, as sentencex tells them, which knows that "Mr." and "p.m." end none.

It is asked about a copy of the text in ASCII, one character for one: so what it answers are code points, whatever it
counts, and characters of several bytes, over which it stumbles, do not reach it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
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


_BEYOND_ASCII: Final = re.compile(r"[^\x00-\x7f]")
_QUOTES: Final = {0x2018: "'", 0x2019: "'", 0x201A: "'", 0x201B: "'", 0x201C: '"', 0x201D: '"', 0x201E: '"'}
_STOPS: Final = {0x2026: ".", 0x3002: ".", 0xFF01: "!", 0xFF1F: "?"}


def sentence_ends(text: str) -> Iterator[int]:
    """Yield the code points of `text` at which a sentence ends, in order; that of the last is not always among them."""
    plain = text if text.isascii() else _BEYOND_ASCII.sub(lambda match: _ascii(match[0]), text)
    import sentencex  # loads for 0.1 s, and most of what prints a line splits no sentences

    for found in sentencex.get_sentence_boundaries("en", plain):
        yield found["end_index"]


@lru_cache(maxsize=4096)
def _ascii(character: str) -> str:
    """An ASCII character that means to a sentence what this one means."""
    code, category = ord(character), unicodedata.category(character)
    known = _QUOTES.get(code) or _STOPS.get(code)
    if known is not None:
        return known
    if character.isspace():
        return " "
    if character.isupper():
        return "E"
    if character.isalpha() or category[0] == "M":
        return "e"
    # A comma: no sentence begins with it, nor with a dash or a section sign.
    return "1" if category == "Nd" else ","
