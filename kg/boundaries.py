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

import sentencex

_BEYOND_ASCII: Final = re.compile(r"[^\x00-\x7f]")
_QUOTES: Final = {0x2018: "'", 0x2019: "'", 0x201A: "'", 0x201B: "'", 0x201C: '"', 0x201D: '"', 0x201E: '"'}
_STOPS: Final = {0x2026: ".", 0x3002: ".", 0xFF01: "!", 0xFF1F: "?"}


def sentence_ends(text: str) -> Iterator[int]:
    """Yield the code points of `text` at which a sentence ends, in order; that of the last is not always among them."""
    plain = text if text.isascii() else _BEYOND_ASCII.sub(lambda match: _ascii(match[0]), text)
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
