"""Splits the text of a zoning section into sentences, and selects those that can summarize it. Pure.

Laws are outlines: labels, headings that run into the text, terms above their definitions, lists whose items end a
sentence that began lines before. A selected sentence must be readable on its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from kg.text import find_sentence_ends

LONGEST: Final = 700
"""Maximum code points of a sentence among others."""
LONGEST_ALONE: Final = 1_400
"""Maximum code points of a whole sentence if all are longer than `LONGEST`."""
LEFT_OUT: Final = " [...]"
"""Marks the omitted rest of a sentence."""

_LABEL: Final = re.compile(r"(?:\(\w{1,5}\)|\w{1,3}[.)])\s+")
_LABELS: Final = re.compile(rf"\s*(?:{_LABEL.pattern})+")
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_CELLS: Final = " | "

_GOES_ON: Final = re.compile(r"[^\W\dA-Z_]|[§\])},;:.%&]")
"""Characters that cannot start a sentence: a lower-case letter, a section sign, a closing mark."""
_ABBREVIATED: Final = re.compile(
    r"\b(?:secs?|arts?|chs?|nos?|paras?|subd|ann|stat|ords?|res|tit|pt|fig|ex|app|vol|pp?)\.$", re.IGNORECASE
)
"""Abbreviations after which a number continues the sentence."""

_WHOLE: Final = re.compile(r"[.!?][\"'”’)\]]*$")
_ITEM_ENDS: Final = re.compile(r"(?:[;,]|(?<!\s)\s++(?:and/or|and|or))$")
_HALF: Final = re.compile(r"(?:shall|means?|must|may|is|are|was|were|has|have|includes?|and|or)\b", re.IGNORECASE)
"""First words of a sentence without a subject, unless it is a question."""
_VERBS: Final = frozenset(
    re.findall(
        r"\w+",
        "is are was were be been shall may must will can has have had does do means includes applies apply requires "
        "require cannot expires expire prohibited required allowed permitted forbidden",
    )
)
_FEWEST_WORDS: Final = 4
_TERM_WORDS: Final = 8
"""Maximum words of a term above its definition, or of a heading that runs into the text."""
_SMALL: Final = 3
"""Maximum letters of words that titles do not capitalize."""


def split_sentences(text: str) -> Iterator[str]:
    """Split each line of `text` into sentences, without surrounding blanks."""
    for line in text.split("\n"):
        pieces: list[str] = []
        for piece in _pieces(line):
            if pieces and (
                _GOES_ON.match(piece) or (piece[0].isdecimal() and _ABBREVIATED.search(pieces[-1].rstrip()))
            ):
                pieces[-1] += piece
            else:
                pieces.append(piece)
        yield from filter(None, map(str.strip, pieces))


def _pieces(line: str) -> Iterator[str]:
    # `find_sentence_ends` finds no end after a label in brackets.
    label = match.end() if (match := _LABELS.match(line)) else 0
    start = 0
    for found in find_sentence_ends(line[label:]):
        end = label + found
        if line[start:end].strip():
            yield line[start:end]
        start = max(start, end)
    if line[start:].strip():
        yield line[start:]


def find_key_sentences(text: str) -> list[str]:
    """Find the distinct sentences of `text` that can summarize it, without their labels.

    A list forms one sentence with its introduction, and a term one with its definition. Whole sentences of at most
    `LONGEST` code points are preferred to longer ones, which are cut, and these to fragments. Table rows are skipped.
    """
    found = list(dict.fromkeys(each for each in _statements(text) if _WORD.search(each) and _CELLS not in each))
    whole = [each for each in found if is_whole(each)]
    for longest in (LONGEST, LONGEST_ALONE):
        if short := [each for each in whole if len(each) <= longest]:
            return short
    fragments = [each for each in found if not _is_heading(each)]
    return [shorten(each) for each in whole or fragments or found]


def find_table_header(text: str) -> list[str]:
    """Find the first table row with words. Returns its cells, or an empty list."""
    for line in text.split("\n"):
        if _CELLS in line and (cells := [each.strip() for each in line.split("|") if _WORD.search(each)]):
            return cells
    return []


def is_whole(sentence: str) -> bool:
    """Check whether this is a readable sentence: not a heading, a list item or a table row."""
    if (
        _CELLS in sentence
        or LEFT_OUT in sentence
        or not _WHOLE.search(sentence)
        or _GOES_ON.match(sentence)
        or _is_heading(sentence)
    ):
        return False
    if _HALF.match(sentence) and not sentence.endswith("?"):
        return False
    words = _WORD.findall(sentence)
    return len(words) >= _FEWEST_WORDS or any(word.casefold() in _VERBS for word in words)


def shorten(sentence: str, longest: int = LONGEST) -> str:
    """Cut a sentence longer than `longest` at a boundary, and mark the omitted rest."""
    if len(sentence) <= longest:
        return sentence
    head = sentence[:longest]
    for mark in ("; ", ", ", " "):
        cut = head.rfind(mark, longest // 2)
        if cut > 0:
            return head[:cut] + LEFT_OUT
    return head + LEFT_OUT


def _statements(text: str) -> Iterator[str]:
    """Yield sentences without labels, and lists together with their introduction."""
    lines = [list(split_sentences(line)) for line in text.split("\n") if line.strip()]
    place = 0
    term = ""
    while place < len(lines):
        *before, last = map(_strip_labels, lines[place])
        place += 1
        if before and term and _HALF.match(before[0]):
            before[0] = f"{term}: {before[0]}"
        elif not before and term and _HALF.match(last):
            last = f"{term}: {last}"
        yield from before
        if last.endswith((":", "—", "–")):
            items = _find_list_items(lines, place)
            place += len(items)
            last = " ".join([last, *items])
        yield last
        term = last if not before and len(last.split()) <= _TERM_WORDS and last[-1].isalnum() else ""


def _find_list_items(lines: Sequence[Sequence[str]], start: int) -> list[str]:
    """Find the items of a list that starts at a line and completes the sentence before it."""
    found: list[str] = []
    for line in lines[start:]:
        if len(line) != 1 or line[0].endswith((":", "—", "–")):
            return []
        found.append(_strip_labels(line[0]))
        if not _ITEM_ENDS.search(line[0]):
            return found if len(found) > 1 and _WHOLE.search(line[0]) else []
    return []


def _is_heading(sentence: str) -> bool:
    """Check whether this is a heading that runs into the text: a few words, all longer ones capitalized."""
    words = sentence.rstrip(".:").split()
    long = [word for word in words if len(word) > _SMALL]
    return len(words) <= _TERM_WORDS and len(words) > 1 and all(not word[0].islower() for word in long)


def _strip_labels(sentence: str) -> str:
    while (label := _LABEL.match(sentence)) and label.end() < len(sentence):
        sentence = sentence[label.end() :]
    return sentence
