"""Splits the text of a zoning section into sentences, and selects those that can summarize it. Pure.

Laws are outlines: labels, headings that run into the text, lists whose items end a sentence that began lines before. A
selected sentence must be readable on its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from kg.text import find_sentence_ends
from kg.words import to_word_set

LONGEST: Final = 700
"""Maximum code points of a sentence."""
LEFT_OUT: Final = " [...]"
"""Marks the omitted rest of a sentence."""

_LABEL: Final = re.compile(r"(?:\(\w{1,5}\)|\w{1,3}[.)])\s+")
_LABELS: Final = re.compile(rf"\s*(?:{_LABEL.pattern})+")
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_CELLS: Final = " | "
_GOES_ON: Final = re.compile(r"[^\W\dA-Z_]|[§\])},;:.%&]")
"""Characters that cannot start a sentence: a lower-case letter, a section sign, a closing mark."""
_WHOLE: Final = re.compile(r"[.!?][\"'”’)\]]*$")
_LEADS: Final = (":", "—", "–")
_ITEM_ENDS: Final = re.compile(r"(?:[;,]|(?<!\s)\s++(?:and/or|and|or))$")
_HALF: Final = re.compile(r"(?:shall|means?|must|may|is|are|was|were|has|have|includes?|and|or)\b[^?]*$", re.IGNORECASE)
"""A sentence without a subject; a question may begin so."""
_VERBS: Final = to_word_set("is are was were shall may must will can has have does means includes applies requires")
_FEWEST_WORDS: Final = 4
"""Minimum words of a sentence without one of these verbs."""
_HEADING_WORDS: Final = range(2, 9)
_SMALL: Final = 3
"""Maximum letters of words that titles do not capitalize."""


def split_sentences(text: str) -> Iterator[str]:
    """Split each line of `text` into sentences, without surrounding blanks."""
    for line in text.split("\n"):
        # `find_sentence_ends` finds no end after a label in brackets.
        label = match.end() if (match := _LABELS.match(line)) else 0
        start = 0
        for end in (*(label + found for found in find_sentence_ends(line[label:])), len(line)):
            if _GOES_ON.match(line, end) is None and (sentence := line[start:end].strip()):
                yield sentence
                start = end


def find_key_sentences(text: str) -> list[str]:
    """Find the distinct sentences of `text` that can summarize it, without their labels.

    A list forms one sentence with its introduction. Whole sentences of at most `LONGEST` code points are preferred to
    longer ones, which are cut, and these to fragments. Table rows are skipped.
    """
    found = list(dict.fromkeys(each for each in _statements(text) if _WORD.search(each) and _CELLS not in each))
    whole = [each for each in found if is_whole(each)]
    fragments = [each for each in found if not _is_heading(each)]
    return [shorten(each) for each in [each for each in whole if len(each) <= LONGEST] or whole or fragments or found]


def is_whole(sentence: str) -> bool:
    """Check whether this is a readable sentence: not a heading, a list item or a table row."""
    is_part = _CELLS in sentence or LEFT_OUT in sentence or _GOES_ON.match(sentence) or _HALF.match(sentence)
    words = sentence.casefold().split()
    says = len(words) >= _FEWEST_WORDS or not _VERBS.isdisjoint(words)
    return bool(_WHOLE.search(sentence)) and says and not is_part and not _is_heading(sentence)


def shorten(sentence: str, longest: int = LONGEST) -> str:
    """Cut a sentence longer than `longest` at a boundary, and mark the omitted rest."""
    if len(sentence) <= longest:
        return sentence
    cuts = (sentence.rfind(mark, longest // 2, longest) for mark in ("; ", ", ", " "))
    return sentence[: next((cut for cut in cuts if cut > 0), longest)] + LEFT_OUT


def _statements(text: str) -> Iterator[str]:
    """Yield sentences without labels, and lists together with their introduction."""
    lines = [[_strip_labels(each) for each in split_sentences(line)] for line in text.split("\n") if line.strip()]
    place = 0
    while place < len(lines):
        *before, last = lines[place]
        place += 1
        yield from before
        if last.endswith(_LEADS):
            items = _find_list_items(lines, place)
            place += len(items)
            last = " ".join([last, *items])
        yield last


def _find_list_items(lines: Sequence[Sequence[str]], start: int) -> list[str]:
    """Find the items of a list that starts at a line and completes the sentence before it."""
    found: list[str] = []
    for line in lines[start:]:
        if len(line) != 1 or line[0].endswith(_LEADS):
            return []
        found += line
        if _ITEM_ENDS.search(line[0]) is None:
            return found if len(found) > 1 and _WHOLE.search(line[0]) else []
    return []


def _is_heading(sentence: str) -> bool:
    """Check whether this is a heading that runs into the text: a few words, all longer ones capitalized."""
    words = sentence.rstrip(".:").split()
    return len(words) in _HEADING_WORDS and not any(word[0].islower() for word in words if len(word) > _SMALL)


def _strip_labels(sentence: str) -> str:
    while (label := _LABEL.match(sentence)) and label.end() < len(sentence):
        sentence = sentence[label.end() :]
    return sentence
