"""Speeches as chunks for search: by offsets, at sentence boundaries, with a small overlap."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

from loaders.readers.sentences import split_sentences

SIZE: Final = 800
"""Maximum size of a chunk, in code points."""
OVERLAP: Final = 150
"""Maximum overlap with the previous chunk, in code points: whole sentences, or words of a sentence that is longer than
a chunk.
"""

Span = tuple[int, int]

_LINES: Final = re.compile(r"[^\n]*\n\s*|[^\n]+")
_WORDS: Final = re.compile(r"[^ \t\n\r\f\v\u2028\u2029]*[ \t\n\r\f\v\u2028\u2029]+|[^ \t\n\r\f\v\u2028\u2029]+")
"""Words with the space after them; a no-break space joins two words."""
_BOUND_WORDS: Final = re.compile(r"\S*\s+|\S+")


def split_chunks(text: str, spans: Sequence[Span] = (), *, size: int = SIZE, overlap: int = OVERLAP) -> Iterator[Span]:
    """Yield the chunks of `text` as spans of code points, separately for each of `spans` (default: the whole text).

    The first chunk of a span starts where the span starts, the last ends where it ends, and each other chunk starts
    at or before the end of the previous one: concatenated by their offsets they are the spans. A chunk never begins
    or ends inside a sentence that fits into a chunk, or inside such a word. The space at a cut stays before it.

    """
    for start, end in spans or ((0, len(text)),):
        yield from _chunks(text, start, end, size, overlap)


def _chunks(text: str, start: int, end: int, size: int, overlap: int) -> Iterator[Span]:
    if end - start <= size:
        if end > start:
            yield start, end
        return
    atoms = list(_atoms(text, start, end, size))
    first = 0
    while True:
        last = first
        while last + 1 < len(atoms) and atoms[last + 1][1] - atoms[first][0] <= size:
            last += 1
        yield atoms[first][0], atoms[last][1]
        if last + 1 == len(atoms):
            return
        after = atoms[last + 1][1]
        first, edge = last + 1, atoms[last][1]
        while atoms[first - 1][0] >= max(edge - overlap, after - size) and edge > atoms[first - 1][0] > start:
            first -= 1


def _atoms(text: str, start: int, end: int, size: int) -> Iterator[Span]:
    """Return the spans that are not cut: sentences, the lines of a sentence that is too long, and the words of such a
    line.
    """
    for sentence in split_sentences(text, start, end):
        yield from _within(text, sentence, size, (_LINES, _WORDS, _BOUND_WORDS))


def _within(text: str, span: Span, size: int, levels: Sequence[re.Pattern[str]]) -> Iterator[Span]:
    start, end = span
    if end - start <= size:
        yield span
    elif levels:
        for match in levels[0].finditer(text, start, end):
            yield from _within(text, match.span(), size, levels[1:])
    else:
        yield from _pieces(text, start, end, size)


def _pieces(text: str, start: int, end: int, size: int) -> Iterator[Span]:
    """Cut text without spaces. A combining mark stays with its letter where possible."""
    while end - start > size:
        cut = start + size
        while cut > start and unicodedata.category(text[cut])[0] == "M":
            cut -= 1
        if cut == start:
            cut = start + size
        yield start, cut
        start = cut
    yield start, end
