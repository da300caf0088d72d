"""Excerpts of a text for a query: around the window with most of its words, cut at word boundaries. Pure.

Offsets are those of the text as it is stored.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container
from dataclasses import dataclass
from typing import Final

from kg.search import tokenization
from kg.search.parts import Part, is_mark, split_parts
from kg.search.tokenization import split_query
from kg.search.word_overlap import parse_question, to_stem
from kg.words import UNSPACED, is_stop_word

SNIPPET_CHARACTERS: Final = 240
"""Maximum characters of a result of `search`."""
LONG_SNIPPET_CHARACTERS: Final = 320
"""Maximum characters of a text of a file in a result of `hybrid_query`."""
WINDOW_CHARACTERS: Final = 400
"""Maximum characters of a passage in a list: a window around what matched."""
EXCERPT_CHARACTERS: Final = 500
"""Maximum characters of the excerpt of a speech."""
CONSIDERED: Final = 400
"""Maximum number of matching words that are compared."""
_CLOSE: Final = 320
"""Maximum characters of the sentences that are compared as a whole to choose an excerpt among them."""
_BEFORE: Final = 40
"""Characters before the first word that matched."""
_SEARCHED: Final = 50_000
"""Characters of a text without a best part in which the place of an excerpt is searched."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Words of a text on one line, with their offsets, and an ellipsis on each side where the text has more words."""

    words: str
    start: int
    end: int
    headings: tuple[str, ...] = ()
    """The headings in the text that it is below, from the top."""


def cut_excerpt(text: str, query: str, most: int = SNIPPET_CHARACTERS, span: tuple[int, int] | None = None) -> Excerpt:
    """Cut `text` to `most` characters around the words of a query.

    `span` are the offsets of the part of the text that ranked it: the excerpt is from there.
    """
    first, last = trim_to_words(text, 0, len(text))
    if len(line := " ".join(text.split())) <= most:
        return Excerpt(line, first, last)
    part = _find_close_part(text, query, find_part(text, span))
    width = most - 2
    start, end = trim_to_words(text, part.start, part.end)
    if end - start > width:
        place = best_window(text[start:end], query, width)
        start = max(start, min(start + (place[0] if place else 0) - _BEFORE, end - width))
        start, end = trim_to_words(text, start, min(end, start + width))
    opening, closing = "…" if start > first else "", "…" if end < last else ""
    return Excerpt(f"{opening}{' '.join(text[start:end].split())}{closing}", start, end, part.headings)


def find_part(text: str, span: tuple[int, int] | None) -> Part:
    """Find the part of a text at some offsets; the whole text without them, or if it has changed since."""
    whole = Part(0, min(len(text), _SEARCHED))
    return next((part for part in split_parts(text) if (part.start, part.end) == span), whole) if span else whole


def _find_close_part(text: str, query: str, part: Part) -> Part:
    """Find the sentences below one heading, in a part of a text, that have most words of a query."""
    words = text[part.start : part.end]
    close = split_parts(words, _CLOSE, _CLOSE)
    best = 0
    if len(close) > 1:
        overlaps = parse_question(query).measure([each.build_text(words) for each in close])
        best = max(range(len(close)), key=lambda number: (overlaps[number].words, overlaps[number].pairs, -number))
    found = close[best]
    return Part(part.start + found.start, part.start + found.end, (*part.headings, *found.headings))


def best_window(text: str, query: str, width: int) -> tuple[int, int] | None:
    """Find the window of `width` characters with most words of `query`: start of the first word, end of the last.

    Distinct words count first, then all words; on a tie, the first window. None if `text` has none of the words.
    """
    wanted = {to_stem(word) for word in split_query(query) if len(word) > 2 or UNSPACED.search(word)}
    places = _find_stems(text, wanted)[:CONSIDERED]
    best: tuple[int, int, int] | None = None
    found: tuple[int, int] | None = None
    ends = [end for _, end, _ in places]
    for number, (start, _, _) in enumerate(places):
        inside = places[number : max(number + 1, bisect_left(ends, start + width + 1))]
        rank = (len({each for _, _, each in inside}), len(inside), -start)
        if best is None or rank > best:
            best, found = rank, (start, inside[-1][1])
    return found


def find_words(text: str, query: str) -> list[tuple[int, int]]:
    """Find the words of `text` that are words of `query` in any form, as offsets, end-exclusive, without overlaps.

    Words are compared as in the index: also broken ones, numbers in groups, and pairs of scripts without spaces.
    """
    words = [word for word in split_query(query) if not is_stop_word(word, "en")]
    wanted = {to_stem(word) for word in words if len(word) > 1 or UNSPACED.search(word)}
    merged: list[tuple[int, int]] = []
    for low, high, _ in _find_stems(text, wanted):
        if merged and low <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return merged


def _find_stems(text: str, wanted: Container[str]) -> list[tuple[int, int, str]]:
    """Find the words of a text with these stems, in order: start, end, stem."""
    found = ((start, end, to_stem(word)) for start, end, word in tokenization.find_words(text))
    return sorted(each for each in found if each[2] in wanted)


def window(low: int, high: int, first: int, last: int, width: int) -> tuple[int, int]:
    """Center `first` to `last` in a window of `width` characters between `low` and `high`."""
    start = (first + last - width) // 2
    start = max(low, min(start, high - width))
    return start, min(high, start + width)


def trim_to_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Move `start` and `end` inwards to word boundaries of `text`, without spaces at the edges.

    If that leaves nothing, as inside one very long word, they are only moved so that no mark loses its letter.
    """
    first, last = start, end
    if first and not text[first - 1].isspace():
        while first < last and not text[first].isspace():
            first += 1
    if last < len(text) and not text[last].isspace():
        while last > first and not text[last - 1].isspace():
            last -= 1
    while first < last and text[first].isspace():
        first += 1
    while last > first and text[last - 1].isspace():
        last -= 1
    if first < last:
        return first, last
    while start < end and is_mark(text[start]):
        start += 1
    while start < end < len(text) and is_mark(text[end]):
        end -= 1
    return start, end
