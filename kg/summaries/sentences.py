"""Sentences of a text, verbatim. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import sentencex

LONGEST: Final = 360
"""Code points of a sentence that is shown whole."""
LEFT_OUT: Final = " [...]"
"""What stands for the rest of a longer one."""

_BEYOND_ASCII: Final = re.compile(r"[^\x00-\x7f]")
_QUOTES: Final = {0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"'}
_LABEL: Final = re.compile(r"(?:\(\w{1,5}\)|\w{1,3}[.)])\s+")
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_CELLS: Final = " | "
_FEWEST_WORDS: Final = 4
_ENDS: Final = (".", "!", "?", ";")


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of each line of `text`, without the blanks around them."""
    for line in text.split("\n"):
        # sentencex counts in bytes: it is asked about a copy in ASCII, one character for one.
        plain = line if line.isascii() else _BEYOND_ASCII.sub(lambda match: _ascii(match[0]), line)
        start = 0
        for found in sentencex.get_sentence_boundaries("en", plain):
            end = found["end_index"]
            if sentence := line[start:end].strip():
                yield sentence
            start = max(start, end)
        if rest := line[start:].strip():
            yield rest


def telling(text: str) -> list[str]:
    """Return the sentences of `text` that can stand for it, each once and cut to `LONGEST`, without their labels.

    Rows of tables and fragments of a few words are left out where there is anything else.
    """
    found = list(dict.fromkeys(shortened(_unlabelled(sentence)) for sentence in sentences(text)))
    said = [each for each in found if _WORD.search(each)]
    return [each for each in said if _is_whole(each)] or said


def shortened(sentence: str, longest: int = LONGEST) -> str:
    """Return `sentence`, or its beginning up to a boundary with a mark for the rest."""
    if len(sentence) <= longest:
        return sentence
    head = sentence[:longest]
    for mark in ("; ", ", ", " "):
        cut = head.rfind(mark, longest // 2)
        if cut > 0:
            return head[:cut] + LEFT_OUT
    return head + LEFT_OUT


def _is_whole(sentence: str) -> bool:
    words = len(_WORD.findall(sentence))
    return _CELLS not in sentence and (words >= _FEWEST_WORDS or (words > 1 and sentence.endswith(_ENDS)))


def _unlabelled(sentence: str) -> str:
    while (label := _LABEL.match(sentence)) and label.end() < len(sentence):
        sentence = sentence[label.end() :]
    return sentence


@lru_cache(maxsize=4096)
def _ascii(character: str) -> str:
    known = _QUOTES.get(ord(character))
    if known is not None:
        return known
    if character.isspace():
        return " "
    if character.isalpha():
        return "E" if character.isupper() else "e"
    return "1" if unicodedata.category(character) == "Nd" else ","
