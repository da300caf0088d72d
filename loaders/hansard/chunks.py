"""A speech in pieces that search can find: by offsets, at sentence boundaries, overlapping a little."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

from loaders.readers.sentences import split_sentences

SIZE: Final = 800
"""Code points that a chunk has at most."""
OVERLAP: Final = 150
"""Code points at most that a chunk repeats of the one before: whole sentences, or words of one that fits in none."""

Span = tuple[int, int]

_LINES: Final = re.compile(r"[^\n]*\n\s*|[^\n]+")
_WORDS: Final = re.compile(r"[^ \t\n\r\f\v\u2028\u2029]*[ \t\n\r\f\v\u2028\u2029]+|[^ \t\n\r\f\v\u2028\u2029]+")
"""Words with the space after them; a no-break space holds two together."""
_BOUND_WORDS: Final = re.compile(r"\S*\s+|\S+")


def chunks(text: str, spans: Sequence[Span] = (), *, size: int = SIZE, overlap: int = OVERLAP) -> Iterator[Span]:
    """Yield the chunks of `text` as spans of code points: those of each of `spans` (or of all of it) by itself.

    The first chunk of a span starts where it starts, the last ends where it ends, and each other starts at or before
    the end of the one before; so texts laid at their offsets give back all that the spans cover. A chunk never begins
    or ends inside a sentence that fits into one, nor inside a word that does; the space at a cut stays before it.
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
    """The spans that are not cut: sentences, and of one that is too long its lines, of such a line its words."""
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
    """What has no space to be cut at; a mark stays with the letter that it stands on, where that is possible."""
    while end - start > size:
        cut = start + size
        while cut > start and unicodedata.category(text[cut])[0] == "M":
            cut -= 1
        if cut == start:
            cut = start + size
        yield start, cut
        start = cut
    yield start, end
