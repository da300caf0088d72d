"""Texts as chunks for search: by offsets, at sentence boundaries, with a small overlap."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from loaders.readers.sentences import split_sentences

SIZE: Final = 800
"""Maximum size of a chunk, in code points."""
OVERLAP: Final = 150
"""Maximum overlap with the previous chunk, in code points: whole sentences, or words of a sentence that is longer than
a chunk.
"""

Span = tuple[int, int]
Measure = Callable[[int, int], int]
"""Returns the size of the span between two offsets."""
Divide = Callable[[str, int, int], Iterator[Span]]
"""Splits a span of a text into parts, without gaps."""

_LINES: Final = re.compile(r"[^\n]*\n\s*|[^\n]+")
_WORDS: Final = re.compile(r"[^ \t\n\r\f\v\u2028\u2029]*[ \t\n\r\f\v\u2028\u2029]+|[^ \t\n\r\f\v\u2028\u2029]+")
"""Words with the space after them; a no-break space joins two words."""
_BOUND_WORDS: Final = re.compile(r"\S*\s+|\S+")


def _count_code_points(start: int, end: int) -> int:
    return end - start


def split_chunks(
    text: str,
    spans: Sequence[Span] = (),
    *,
    size: int = SIZE,
    overlap: int = OVERLAP,
    measure: Measure = _count_code_points,
    divide: Divide = split_sentences,
) -> Iterator[Span]:
    """Yield the chunks of `text` as spans of code points, separately for each of `spans` (default: the whole text).

    The first chunk of a span starts where the span starts, the last ends where it ends, and each other chunk starts
    at or before the end of the previous one: concatenated by their offsets they are the spans. A chunk never begins
    or ends inside a sentence that fits into a chunk, or inside such a word. The space at a cut stays before it.

    `size` and `overlap` are in the unit of `measure`, which is code points by default and never gives more units than
    code points. `divide` splits a span into the parts that are kept whole where they fit.

    """
    for start, end in spans or ((0, len(text)),):
        yield from _chunks(_Cutter(text, size, measure, divide), start, end, overlap)


@dataclass(frozen=True, slots=True)
class _Cutter:
    text: str
    size: int
    measure: Measure
    divide: Divide

    def find_atoms(self, start: int, end: int) -> Iterator[Span]:
        """Find the spans that are not cut: sentences, the lines of a sentence that is too long, and the words of such
        a line.
        """
        for part in self.divide(self.text, start, end):
            yield from self._within(part, (_LINES, _WORDS, _BOUND_WORDS))

    def _within(self, span: Span, levels: Sequence[re.Pattern[str]]) -> Iterator[Span]:
        start, end = span
        if self.measure(start, end) <= self.size:
            yield span
        elif levels:
            for match in levels[0].finditer(self.text, start, end):
                yield from self._within(match.span(), levels[1:])
        else:
            yield from _pieces(self.text, start, end, self.size)


def _chunks(cutter: _Cutter, start: int, end: int, overlap: int) -> Iterator[Span]:
    size, measure = cutter.size, cutter.measure
    if measure(start, end) <= size:
        if end > start:
            yield start, end
        return
    atoms = list(cutter.find_atoms(start, end))
    first = 0
    while True:
        last = first
        while last + 1 < len(atoms) and measure(atoms[first][0], atoms[last + 1][1]) <= size:
            last += 1
        yield atoms[first][0], atoms[last][1]
        if last + 1 == len(atoms):
            return
        after = atoms[last + 1][1]
        first, edge = last + 1, atoms[last][1]
        while (
            edge > (before := atoms[first - 1][0]) > start
            and measure(before, edge) <= overlap
            and measure(before, after) <= size
        ):
            first -= 1


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
