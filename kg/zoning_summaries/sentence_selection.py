"""Sentences of a text, and those of them that can stand for it on their own. Pure.

A law is written in outlines: labels, headings that run into the text, terms above what they mean, lists whose items end
a sentence that began lines before. What is taken from it has to read as a sentence where it stands alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from kg.text import sentence_ends

LONGEST: Final = 700
"""Code points of a sentence that is shown beside others."""
LONGEST_ALONE: Final = 1_400
"""Code points of one that is shown whole where all are longer."""
LEFT_OUT: Final = " [...]"
"""What stands for the rest of a longer one."""

_LABEL: Final = re.compile(r"(?:\(\w{1,5}\)|\w{1,3}[.)])\s+")
_LABELS: Final = re.compile(rf"\s*(?:{_LABEL.pattern})+")
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_CELLS: Final = " | "

_GOES_ON: Final = re.compile(r"[^\W\dA-Z_]|[§\])},;:.%&]")
"""What no sentence begins with: a small letter, a section sign, a mark that closes."""
_ABBREVIATED: Final = re.compile(
    r"\b(?:secs?|arts?|chs?|nos?|paras?|subd|ann|stat|ords?|res|tit|pt|fig|ex|app|vol|pp?)\.$", re.IGNORECASE
)
"""An end after which a number belongs to what was said."""

_WHOLE: Final = re.compile(r"[.!?][\"'”’)\]]*$")
_ITEM_ENDS: Final = re.compile(r"(?:[;,]|[;,]?\s+(?:and|or|and/or))$")
_HALF: Final = re.compile(r"(?:shall|means?|must|may|is|are|was|were|has|have|includes?|and|or)\b", re.IGNORECASE)
"""Beginnings that lack what they speak of; a question apart."""
_VERBS: Final = frozenset(
    re.findall(
        r"\w+",
        "is are was were be been shall may must will can has have had does do means includes applies apply requires "
        "require cannot expires expire prohibited required allowed permitted forbidden",
    )
)
_FEWEST_WORDS: Final = 4
_TERM_WORDS: Final = 8
"""Words of a term that stands above its meaning, or of a heading that runs into the text, at most."""
_SMALL: Final = 3
"""Letters of the words that titles do not capitalize, at most."""


def split_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of each line of `text`, without the blanks around them."""
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
    # After a label in brackets no end is found at all.
    label = match.end() if (match := _LABELS.match(line)) else 0
    start = 0
    for found in sentence_ends(line[label:]):
        end = label + found
        if line[start:end].strip():
            yield line[start:end]
        start = max(start, end)
    if line[start:].strip():
        yield line[start:]


def find_key_sentences(text: str) -> list[str]:
    """Return the sentences of `text` that can stand for it, each once, without their labels.

    A list makes one sentence with what leads to it, and a term one with its meaning. Whole sentences of at most
    `LONGEST` code points are preferred to longer ones, which are cut, and these to fragments. A row of a table is none.
    """
    found = list(dict.fromkeys(each for each in _statements(text) if _WORD.search(each) and _CELLS not in each))
    whole = [each for each in found if is_whole(each)]
    for longest in (LONGEST, LONGEST_ALONE):
        if short := [each for each in whole if len(each) <= longest]:
            return short
    fragments = [each for each in found if not _is_heading(each)]
    return [shorten(each) for each in whole or fragments or found]


def find_table_header(text: str) -> list[str]:
    """Return the cells of the first row of a table that has words in it; none where there is no table."""
    for line in text.split("\n"):
        if _CELLS in line and (cells := [each.strip() for each in line.split("|") if _WORD.search(each)]):
            return cells
    return []


def is_whole(sentence: str) -> bool:
    """Say whether this reads as a sentence on its own: no heading, no item of a list, no row of a table."""
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
    """Return `sentence`, or its beginning up to a boundary with a mark for the rest."""
    if len(sentence) <= longest:
        return sentence
    head = sentence[:longest]
    for mark in ("; ", ", ", " "):
        cut = head.rfind(mark, longest // 2)
        if cut > 0:
            return head[:cut] + LEFT_OUT
    return head + LEFT_OUT


def _statements(text: str) -> Iterator[str]:
    """Yield sentences without labels, lists together with what leads to them."""
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
    """Return the items of a list that begins at a line, if it is one that ends the sentence before it."""
    found: list[str] = []
    for line in lines[start:]:
        if len(line) != 1 or line[0].endswith((":", "—", "–")):
            return []
        found.append(_strip_labels(line[0]))
        if not _ITEM_ENDS.search(line[0]):
            return found if len(found) > 1 and _WHOLE.search(line[0]) else []
    return []


def _is_heading(sentence: str) -> bool:
    """Say whether this is a heading that runs into the text: a few words, all that have any length capitalized."""
    words = sentence.rstrip(".:").split()
    long = [word for word in words if len(word) > _SMALL]
    return len(words) <= _TERM_WORDS and len(words) > 1 and all(not word[0].islower() for word in long)


def _strip_labels(sentence: str) -> str:
    while (label := _LABEL.match(sentence)) and label.end() < len(sentence):
        sentence = sentence[label.end() :]
    return sentence
