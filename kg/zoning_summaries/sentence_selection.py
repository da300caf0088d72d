"""Splits the text of a zoning section into sentences, and selects those that can summarize it. Pure.

Laws are outlines: labels, headings that run into the text, lists whose items end a sentence that began lines before. A
selected sentence must be readable on its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kg.text import find_sentence_ends
from kg.words import to_word_set

LONGEST: Final = 700
"""Maximum code points of a sentence."""
LEFT_OUT: Final = " [...]"
"""Marks the omitted rest of a sentence."""

_LABEL: Final = r"(?:(?:\(\w{1,5}\)|\w{1,3}[.)])[^\S\n]+)"
_LABELS: Final = re.compile(rf"^\s*{_LABEL}+(?=\S)")
_CELLS: Final = " | "
_GOES_ON: Final = re.compile(r"[^\W\dA-Z_]|[§\])},;:.%&]")
"""Characters that cannot start a sentence: a lower-case letter, a section sign, a closing mark."""
_ITEM: Final = r"[^\S\n]*\n(?:[^\n.]|\.(?=\d))*"
_ITEM_END: Final = r"(?:[;,]|\b(?:and|or))"
_LISTED: Final = re.compile(
    rf"(?:(?<=[:—–])(?={_ITEM}{_ITEM_END}\s*$)|(?:(?<=[;,])|(?<=\band)|(?<=\bor))(?={_ITEM}\.?$))\s*\n\s*{_LABEL}*",
    re.MULTILINE,
)
"""The break before an item of a list whose items end in semicolons or commas."""
_WHOLE: Final = re.compile(r"[.!?][\"'”’)\]]*$")
_HALF: Final = re.compile(r"(?:shall|means?|must|may|is|are|was|were|has|have|includes?|and|or)\b[^?]*$", re.IGNORECASE)
"""A sentence without a subject; a question may begin so."""
_VERBS: Final = to_word_set(
    "is are was were be shall may must will can has have does do means includes applies apply requires require allows "
    "allow permits permit provides provide prohibits prohibit contains contain establishes establish regulates "
    "identifies governs govern grants grant needs need shows show complies comply expires expire refer see"
)
"""A statement has one of them; an item of a list mostly has none."""


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
    longer ones, which are cut, and these to headings and other fragments. Table rows are skipped.
    """
    split = (_LABELS.sub("", each) for each in split_sentences(_LISTED.sub(" ", text)))
    found = list(dict.fromkeys(each for each in split if any(map(str.isalpha, each)) and _CELLS not in each))
    whole = [each for each in found if _is_whole(each)]
    return [shorten(each) for each in [each for each in whole if len(each) <= LONGEST] or whole or found]


def shorten(sentence: str) -> str:
    """Cut a sentence longer than `LONGEST` at a boundary, and mark the omitted rest."""
    if len(sentence) <= LONGEST:
        return sentence
    cuts = (sentence.rfind(mark, LONGEST // 2, LONGEST) for mark in ("; ", ", ", " "))
    return sentence[: next((cut for cut in cuts if cut > 0), LONGEST)] + LEFT_OUT


def _is_whole(sentence: str) -> bool:
    """Check whether this is a readable sentence: not a heading, a list item or the beginning of one."""
    is_part = LEFT_OUT in sentence or _GOES_ON.match(sentence) or _HALF.match(sentence)
    return bool(_WHOLE.search(sentence)) and not is_part and not _VERBS.isdisjoint(sentence.casefold().split())
