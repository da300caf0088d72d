"""Words of a text as they are compared: in the index, in queries and in excerpts. Pure functions.

A word is a run of letters, digits and their marks, in lower case and compatibility forms (NFKC, ligatures as letters),
without characters that are not shown: soft hyphens, zero-width characters, byte order marks. Runs of scripts without
spaces, and Hangul, whose words have endings, are pairs of characters that overlap. Raised digits next to a number are
words of their own.

Some words are written in pieces, and then both the pieces and the whole are words of a text:

* numbers with groups of digits: 1,250,000, 1.250.000, 1 250 000, 12,50,000 and the same in digits of other scripts;
* words broken at the end of a line, also where the line is lost: ``calen-dar``. A compound such as ``low-income`` has a
  whole too, which no query asks for, so that it does no harm.

In a query, a grouped number is the whole, where the groups cannot be anything else. After a dot or a space, one group
may be a decimal or another number, so the pieces are the words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from operator import add
from typing import Final

from kg.fuzzy_names import separate_raised
from kg.words import UNSPACED

_HIDDEN: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
)
_HIDDEN_RUN: Final = re.compile(f"[{_HIDDEN}]+")
_GROUPED: Final = re.compile(
    r"\d(?<![^\W_]\d)(?<!\d[.,'\u2019]\d)\d{0,2}"
    r"(?:(?P<by>[.,'\u2019\u066c\u00a0\u2009\u202f ])\d{3}(?:(?P=by)\d{3}){0,8}+(?!(?P=by)\d)"
    r"|(?:,\d\d){1,9},\d{3}(?!,\d))"
    r"(?![^\W_])"
)
# A pattern that begins with a character, instead of a lookbehind, takes a third of the time.
_BROKEN: Final = re.compile(r"[-\u2010](?<=[^\W\d_].)(?:[^\S\n]*\n\s*)?([^\W\d_]{2,40})(?![^\W_])(?!-)")
_BEFORE: Final = re.compile(r"(?<![^\W_])(?<!-)[^\W\d_]{2,40}\Z")
_LONGEST: Final = 42
"""Characters before a hyphen that are read: those of the longest word, and the one before it."""
_UNSURE: Final = (".", " ")
_OTHER_DIGIT: Final = re.compile(r"(?![0-9])\d")
_IS_HIDDEN, _IS_RAISED, _IS_DIGIT, _IS_UNSPACED = 1, 2, 4, 8
_ASCII_WORD: Final = re.compile(r"[a-z0-9]+")
_MAY_BE_UNSPACED: Final = re.compile(f"[\u1100-\u11ff]|{UNSPACED.pattern}")
"""Also the letters that normalization composes to Hangul."""
_PLAIN: Final = re.compile(
    "[\0-\u00ac\u00ae-\u00b1\u00b4-\u00b8\u00ba\u00bb\u00bf-\u024f\u0370-\u0482\u048a-\u052f\u2010-\u2027\u20ac]+"
)
"""Latin, Greek and Cyrillic texts that need no step: one of these takes a ninth of the time of a set of characters."""


def normalize(text: str) -> str:
    """Normalize a text to compare its words: no hidden characters, compatibility forms, digits from 0 to 9, no case."""
    return _normalize(text)[0]


def _normalize(text: str) -> tuple[str, int]:
    """Normalize a text; return the steps that it needed, too."""
    if text.isascii():
        return text.lower(), 0
    kinds = _find_kinds(text)
    if kinds & _IS_HIDDEN:
        text = _HIDDEN_RUN.sub("", text)
    if kinds & _IS_RAISED:
        text = separate_raised(text)
    plain = unicodedata.normalize("NFKC", text).lower()
    if kinds & _IS_DIGIT:
        plain = _OTHER_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), plain)
    return plain, kinds


class _Kinds(dict[str, int]):
    """The steps that a character needs, computed at first use. To search each text for all of these takes longer."""

    def __missing__(self, character: str) -> int:
        is_number = character.isdigit() and not character.isdecimal()
        found = self[character] = (
            _IS_HIDDEN * bool(_HIDDEN_RUN.match(character))
            | _IS_RAISED * (is_number or unicodedata.category(character) == "No")
            | _IS_DIGIT * bool(_OTHER_DIGIT.match(unicodedata.normalize("NFKC", character)[0]))
            | _IS_UNSPACED * bool(_MAY_BE_UNSPACED.search(unicodedata.normalize("NFKC", character)))
        )
        return found


_KINDS: Final = _Kinds()


def _find_kinds(text: str) -> int:
    """Find the steps that a text needs."""
    if _PLAIN.fullmatch(text):
        return 0
    found = 0
    for character in set(text):
        found |= _KINDS[character]
    return found


def split_text(text: str) -> tuple[list[str], list[str]]:
    """Split a text into its words, and list the wholes of those that are written in pieces."""
    plain, kinds = _normalize(text)
    wholes = [_join(found[0]) for found in _GROUPED.finditer(plain)]
    wholes += [before + after for _, _, before, after in _find_broken(plain)]
    return _split(plain, kinds), wholes


def split_query(text: str) -> list[str]:
    """Split a query into its words."""
    return _split(_GROUPED.sub(lambda found: found[0] if _is_unsure(found) else _join(found[0]), normalize(text)))


def find_words(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield each word of a text, normalized, with its offsets in the text as it is; wholes of words in pieces too."""
    hidden = {at for found in _HIDDEN_RUN.finditer(text) for at in range(*found.span())}
    if not hidden:
        yield from _find_shown(text)
        return
    places = [at for at in range(len(text)) if at not in hidden]
    for start, end, word in _find_shown(_HIDDEN_RUN.sub("", text)):
        yield places[start], places[end - 1] + 1, word


def _find_shown(text: str) -> Iterator[tuple[int, int, str]]:
    """Find the words of a text without hidden characters."""
    for found in _GROUPED.finditer(text):
        yield found.start(), found.end(), "".join(_split(normalize(found[0])))
    for start, end, before, after in _find_broken(text):
        yield start, end, normalize(before + after)
    if text.isascii():
        for found in _ASCII_WORD.finditer(text.lower()):
            yield found.start(), found.end(), found[0]
        return
    for found in _word().finditer(text):
        for at, end, word in _find_in_word(found[0]):
            yield found.start() + at, found.start() + end, word


@lru_cache(maxsize=20_000)
def _find_in_word(text: str) -> Sequence[tuple[int, int, str]]:
    """Find the words in a run of letters and digits, which are several in scripts that are compared by pairs."""
    words: list[tuple[int, int, str]] = []
    at = 0
    for run in (*UNSPACED.finditer(text), None):
        end = len(text) if run is None else run.start()
        words += ((at, end, word) for word in _split(normalize(text[at:end])))
        if run is not None:
            at = run.end()
            for start, pair in enumerate(_to_pairs(run[0]), run.start()):
                words += ((start, start + len(pair), word) for word in _split(normalize(pair)))
    return words


def _find_broken(text: str) -> Iterator[tuple[int, int, str, str]]:
    """Find the words that have one hyphen: start, end, and the parts before and after it."""
    if "-" in text or "\u2010" in text:
        for found in _BROKEN.finditer(text):
            beginning = max(0, found.start() - _LONGEST)
            before = _BEFORE.search(text[beginning : found.start()])
            if before is not None:
                yield beginning + before.start(), found.end(), before[0], found[1]


def _split(plain: str, kinds: int | None = None) -> list[str]:
    """Split a normalized text into words. `kinds` are the steps that it needed, if they are known."""
    if plain.isascii():
        return _ASCII_WORD.findall(plain)
    find = _word().findall
    words: list[str] = []
    at = 0
    if (_find_kinds(plain) if kinds is None else kinds) & _IS_UNSPACED:
        for run in UNSPACED.finditer(plain):
            words += find(plain, at, run.start())
            at = run.end()
            pairs = _to_pairs(run[0])
            # A mark at the beginning of a pair is not part of a word.
            words += pairs if run[0].isalnum() else chain.from_iterable(map(find, pairs))
    words += find(plain, at)
    return words


def _to_pairs(run: str) -> list[str]:
    return [*map(add, run, run[1:])] or [run]


def _is_unsure(found: re.Match[str]) -> bool:
    by = found["by"]
    return by in _UNSURE and found[0].count(by) == 1


def _join(number: str) -> str:
    return "".join(filter(str.isdecimal, number))


@lru_cache(maxsize=1)
def _word() -> re.Pattern[str]:
    """Compile the pattern of a word, with the marks that are parts of words, such as vowel signs."""
    marks = "".join(mark for mark in map(chr, range(0x300, 0x10000)) if unicodedata.category(mark)[0] == "M")
    return re.compile(f"[^\\W_]++(?:[{marks}][^\\W_]*+)*+")
