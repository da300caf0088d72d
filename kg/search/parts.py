"""Parts of a long text, each of which gets a vector of its own: some sentences, items or rows below one heading. Pure.

The vector of a long text is near to its topic as a whole. A question is about one or two sentences of it, whose own
vector is nearer to the question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kg.text import HEADING_SEPARATOR

PART_CHARACTERS: Final = 320
"""Maximum characters of a part, not counting the headings above it: less than an embedding model reads at once."""
PARTS_VERSION: Final = 1
"""Raised when texts are divided in another way, so that they are indexed again."""
MOST_PARTS: Final = 64
"""Maximum number of parts of a text. Those of a longer text are longer."""

_HEADING: Final = re.compile(r"(#{1,6})[ \t]+(\S.*)")
_FENCE: Final = re.compile(r"[ \t]*(?:```|~~~)")
_SENTENCE_END: Final = re.compile(r"[.:;?!][)\"'*_]*\s+(?=[^\sa-z])")
_SHOWN_HEADING: Final = 80


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a text by its offsets, with the headings of the text that it is below."""

    start: int
    end: int
    headings: tuple[str, ...] = ()


def split_parts(text: str) -> tuple[Part, ...]:
    """Split a text in the notation of Markdown. A text without any words has one part."""
    most = max(PART_CHARACTERS, -(-2 * len(text) // MOST_PARTS))
    found: list[Part] = []
    for start, end, headings in _find_sections(text):
        found += _pack(text, start, end, headings, most)
    return tuple(found) or (Part(0, len(text)),)


def build_part_texts(prelude: str, text: str) -> list[str]:
    """Build the texts that the vectors of the parts of a text are computed from, each with the prelude."""
    return [build_part_text(prelude, text, part) for part in split_parts(text)]


def build_part_text(prelude: str, text: str, part: Part) -> str:
    """Build the text of the vector of a part: the prelude of the whole text, the headings of the part, its words."""
    shown = HEADING_SEPARATOR.join(heading[:_SHOWN_HEADING] for heading in part.headings)
    return "\n".join(piece for piece in (prelude, shown, text[part.start : part.end].strip()) if piece)


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


def _pack(text: str, start: int, end: int, headings: tuple[str, ...], most: int) -> Iterator[Part]:
    """Pack the lines and sentences of a span into parts of at most `most` characters."""
    first = last = start
    for cut in _find_cuts(text, start, end, most):
        if cut - first > most and text[first:last].strip():
            yield Part(first, last, headings)
            first = last
        last = cut
    if text[first:end].strip():
        yield Part(first, end, headings)


def _find_cuts(text: str, start: int, end: int, most: int) -> Iterator[int]:
    """Find the ends of lines and sentences in a span, and of words where a sentence is longer than a part."""
    before = start
    for match in re.finditer(r"\n+|$", text[start:end]):
        line_end = start + match.end()
        edges = (
            [each.end() for each in _SENTENCE_END.finditer(text, before, line_end)] if line_end - before > most else []
        )
        for edge in (*edges, line_end):
            while edge - before > most:
                blank = text.rfind(" ", before + most // 2, before + most)
                before = blank + 1 if blank > 0 else before + most
                yield before
            if edge > before:
                yield edge
                before = edge
