"""Text as sentences, by offsets.

The boundaries of sentences are those of sentencex, which knows that "Mr." and "p.m." end none. It is asked about a copy
of the text in ASCII, one character for one: so its offsets are code points, whatever it counts, and characters of
several bytes, over which it stumbles, do not reach it.
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


def sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the sentences of the code points [start, end) of `text`, each with the white space after it."""
    plain = text[start:end]
    if not plain.isascii():
        plain = _BEYOND_ASCII.sub(lambda match: _ascii(match[0]), plain)
    edge = cut = 0
    for found in sentencex.get_sentence_boundaries("en", plain):
        if found["end_index"] <= cut:  # within space that was passed already
            continue
        cut = found["end_index"]
        while cut < len(plain) and plain[cut].isspace():
            cut += 1
        if plain[edge:cut].strip():
            yield start + edge, start + cut
            edge = cut
    if edge < len(plain):
        yield start + edge, start + len(plain)


@lru_cache(maxsize=4096)
def _ascii(character: str) -> str:
    """An ASCII character that means to a sentence what this one means."""
    code = ord(character)
    known = _QUOTES.get(code) or _STOPS.get(code)
    if known is not None:
        return known
    if character.isspace():
        return " "
    if character.isupper():
        return "E"
    return "e" if character.isalpha() or unicodedata.category(character)[0] == "M" else "-"
