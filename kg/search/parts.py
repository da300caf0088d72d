"""Parts of a long text: each is a point of the index of its own, and a text ranks by its best part. Pure.

The words and the vector of a long text are those of its topic as a whole. A question is about one or two sentences of
it. A text of at most `LONGEST` characters is one part. A longer one is divided at its headings, then between
paragraphs, items or rows, sentences, lines or words, whichever of these is found first.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from kg.text import HEADING_SEPARATOR

LONGEST: Final = 2_000
"""Maximum characters of a text that is one part."""
PART_CHARACTERS: Final = 1_000
"""Maximum characters of a part of a longer text, without the headings above it: the window of most embedding models.

Mean reciprocal rank on 72 questions to the chapters of this project (tests/benchmarks/questions.py), in chunks of up to
8,000 characters: 0.75 with 1,000 and 1,500, 0.74 with 600 and 2,000, 0.67 with 320; 0.73 with short sections joined.
"""
PARTS_VERSION: Final = 2
"""Raised when texts are divided in another way, so that they are indexed again."""
MOST_PARTS: Final = 1_024
"""Maximum number of parts of a text. Those of a text of more than half a million characters are longer."""

_HEADING: Final = re.compile(r"(#{1,6})[ \t]+(\S.*)")
_FENCE: Final = re.compile(r"[ \t]*(?:```|~~~)")
_BOUNDARIES: Final = (
    re.compile(r"\n[^\S\n]*\n\s*"),
    re.compile(r"\n(?=[^\S\n]*(?:[|*+\u2022\u2013-]|\(?\w{1,4}[.)]\s))"),
    re.compile(
        r"(?:[.:;?!\u061f\u06d4\u0964][)\"'*_\u201d\u00bb]*\s+(?=[^\sa-z])|[\u3002\uff01\uff1f\uff1b][\u300d\u300f\uff09]*)"
    ),
    re.compile(r"\n"),
    re.compile(r"\s+"),
)
"""Where a text may be divided, the best places first: paragraphs, items and rows, sentences, lines, words."""
_SHOWN_HEADING: Final = 80


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a text by its offsets, with the headings of the text that it is below."""

    start: int
    end: int
    headings: tuple[str, ...] = ()
    is_first: bool = False

    def build_text(self, text: str) -> str:
        """Build the searched text of the part: the headings above it and its words."""
        shown = HEADING_SEPARATOR.join(heading[:_SHOWN_HEADING] for heading in self.headings)
        return "\n".join(piece for piece in (shown, text[self.start : self.end].strip()) if piece)


def split_parts(text: str, most: int = PART_CHARACTERS, longest: int = LONGEST) -> tuple[Part, ...]:
    """Split a text in the notation of Markdown into parts of at most `most` characters.

    One of at most `longest`, and one without any words, is a single part.
    """
    if len(text) <= longest:
        return (Part(0, len(text)),)
    most = max(most, -(-2 * len(text) // (MOST_PARTS - 1)))
    found = [
        Part(first, last, headings)
        for start, end, headings in _find_sections(text)
        for first, last in _divide(text, start, end, most)
    ]
    if len(found) > MOST_PARTS:
        found = [*_join(found, most)]
    return (replace(found[0], is_first=True), *found[1:]) if found else (Part(0, len(text)),)


def _find_sections(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Find the spans between headings, without these. A heading with nothing below it is a span itself."""
    open_headings: list[tuple[int, str]] = []
    start = offset = heading_start = 0
    in_code = False
    for line in text.splitlines(keepends=True):
        if _FENCE.match(line):
            in_code = not in_code
        elif not in_code and (match := _HEADING.match(line)) is not None:
            if text[start:offset].strip():
                yield start, offset, tuple(title for _, title in open_headings)
            level = len(match[1])
            while open_headings and open_headings[-1][0] >= level:
                open_headings.pop()
            open_headings.append((level, match[2].strip()))
            heading_start, start = offset, offset + len(line)
        offset += len(line)
    if text[start:].strip():
        yield start, len(text), tuple(title for _, title in open_headings)
    elif open_headings:
        yield heading_start, len(text), tuple(title for _, title in open_headings[:-1])


def _divide(text: str, start: int, end: int, most: int) -> Iterator[tuple[int, int]]:
    """Divide a span into spans of at most `most` characters with words, none of them much shorter than the others."""
    while (left := end - start) > most:
        least = left // -(-left // most) // 2
        cut = _find_cut(text, start + least, min(start + most, end - least))
        if text[start:cut].strip():
            yield start, cut
        start = cut
    if text[start:end].strip():
        yield start, end


def _find_cut(text: str, low: int, high: int) -> int:
    """Find the last of the best places between two offsets at which to divide a text."""
    for boundary in _BOUNDARIES:
        if cuts := [match.end() for match in boundary.finditer(text, low, high)]:
            return cuts[-1]
    while high > low + 1 and is_mark(text[high]):
        high -= 1
    return high


def is_mark(character: str) -> bool:
    """Whether a character belongs to the one before it: an accent, a vowel sign."""
    return unicodedata.category(character).startswith("M")


def _join(parts: list[Part], most: int) -> Iterator[Part]:
    """Join parts that follow each other to at most `most` characters."""
    joined = parts[0]
    for part in parts[1:]:
        if part.end - joined.start <= most:
            joined = replace(joined, end=part.end)
        else:
            yield joined
            joined = part
    yield joined
