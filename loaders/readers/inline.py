"""Words that are struck out, hidden, raised or lowered, and elements that are not read: one model for all formats.

Struck and hidden words are left out of the text and counted. Raised and lowered characters are written as those of
Unicode, so that no digit of a note or an exponent is read as one of the number before it: ``25\u00b9 feet``,
``m\u00b2``, ``CO\u2082``. Raised or lowered words without such characters are in brackets.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, NamedTuple

SUPERSCRIPTS: Final = str.maketrans(
    "0123456789+-\u2212\u2013=()abcdefghijklmnoprstuvwxyzABDEGHIJKLMNOPRTUVW",
    "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207a\u207b\u207b\u207b\u207c\u207d\u207e"
    "\u1d43\u1d47\u1d9c\u1d48\u1d49\u1da0\u1d4d\u02b0\u2071\u02b2\u1d4f\u02e1\u1d50\u207f\u1d52\u1d56\u02b3\u02e2\u1d57"
    "\u1d58\u1d5b\u02b7\u02e3\u02b8\u1dbb"
    "\u1d2c\u1d2e\u1d30\u1d31\u1d33\u1d34\u1d35\u1d36\u1d37\u1d38\u1d39\u1d3a\u1d3c\u1d3e\u1d3f\u1d40\u1d41\u2c7d\u1d42",
)
_SUBSCRIPTS: Final = str.maketrans(
    "0123456789+-\u2212\u2013=()aehijklmnoprstuvx",
    "\u2080\u2081\u2082\u2083\u2084\u2085\u2086\u2087\u2088\u2089\u208a\u208b\u208b\u208b\u208c\u208d\u208e"
    "\u2090\u2091\u2095\u1d62\u2c7c\u2096\u2097\u2098\u2099\u2092\u209a\u1d63\u209b\u209c\u1d64\u1d65\u2093",
)
_RAISED: Final = "".join(map(chr, SUPERSCRIPTS.values()))
_MARKS: Final = "\u00ba\u00aa"
"""Letters that are raised characters already."""
CHECKED: Final = "\u2611"
UNCHECKED: Final = "\u2610"
"""A box of a form that is checked, and one that is not, with any sign in the file."""
ORDINALS: Final = frozenset(
    {"st", "nd", "rd", "th", "er", "re", "e", "ers", "res", "es", "eme", "\u00e8me", "\u00e8re", "o", "os", "ra", "do"}
)
"""Ends of ordinal numbers, which are raised by custom: ``5th``."""
_SIGNS: Final = {"tm": "\u2122", "sm": "\u2120"}
_LONGEST: Final = 4
"""Maximum letters in a row of a note mark or exponent. Longer ones are words, and stay words."""
_WORD: Final = re.compile(rf"[^\W\d_]{{{_LONGEST},}}")
_BRACKETED: Final = re.compile(r"[\[(][^\[\]()]*[\])]")
_UNIT: Final = re.compile(r"(?<![^\W\d_])(?:[kcdm\u00b5]?m|ft|in|yd|mi|sec|s)$", re.IGNORECASE)
"""A unit whose exponent may follow."""


def raise_text(text: str, before: str = "") -> str:
    """Write raised words; `before` is the text before them."""
    bare = text.strip()
    if bare.casefold() in ORDINALS and before[-1:].isdigit():
        return text
    if (sign := _SIGNS.get(bare.casefold())) is not None:
        return text.replace(bare, sign)
    return _write_shifted(text, SUPERSCRIPTS, before)


def lower_text(text: str, before: str = "") -> str:
    """Write lowered words; `before` is the text before them."""
    return _write_shifted(text, _SUBSCRIPTS, before)


def to_superscript(text: str) -> str | None:
    """Convert a note mark or exponent to raised characters; None if some have none."""
    return _shift(text, SUPERSCRIPTS)


def to_subscript(text: str) -> str | None:
    """Convert an index to lowered characters; None if some have none."""
    return _shift(text, _SUBSCRIPTS)


def _shift(text: str, characters: dict[int, int]) -> str | None:
    shifted = text.translate(characters)
    pairs = zip(text, shifted, strict=True)
    return shifted if all(one != other or one in _MARKS or not one.isalnum() for one, other in pairs) else None


def _write_shifted(text: str, characters: dict[int, int], before: str) -> str:
    bare = text.strip()
    if not bare or _BRACKETED.fullmatch(bare):
        return text
    shifted = None if _WORD.search(bare) else _shift(text, characters)
    if shifted is None and before[-1:].isalnum() and text[0].isalnum():
        return text.replace(bare, f"[{bare}]")
    return text if shifted is None else shifted


class Piece(NamedTuple):
    """Words of a paragraph with the same form. `shift`: ``superscript``, ``subscript`` or nothing."""

    text: str
    bold: bool = False
    shift: str = ""


def join_pieces(pieces: Iterable[Piece]) -> str:
    """Join the words of a paragraph, with raised and lowered characters, and bold words in the notation of Markdown."""
    text = ""
    for (bold, shift), part in groupby(pieces, lambda piece: (piece.bold, piece.shift)):
        words = "".join(piece.text for piece in part)
        if shift:
            words = (raise_text if shift == "superscript" else lower_text)(words, text)
        bare = words.strip()
        if bold and not shift and bare and not any(sign in bare for sign in "*\n"):
            words = words.replace(bare, f"**{bare}**")
        text += words
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def to_plain_mark(text: str) -> str:
    """Return the mark of a note as its note has it: ``1`` for a raised one."""
    return unicodedata.normalize("NFKC", text).strip() if any(each in _RAISED for each in text) else text.strip()


def is_exponent(before: str) -> bool:
    """Whether a raised number after `before` is an exponent, not the mark of a note."""
    return _UNIT.search(before[-8:]) is not None


@dataclass(slots=True)
class LeftOut:
    """Counts the struck and hidden words and the elements that a reader leaves out of a file."""

    struck: int = 0
    hidden: int = 0
    comments: int = 0
    unread: Counter[str] = field(default_factory=Counter)
    """Elements that are not read, by a noun in the plural: ``pictures``."""

    def add_struck(self, text: str) -> None:
        """Count the words of a text that is struck out or deleted."""
        self.struck += len(text.split())

    def add_hidden(self, text: str) -> None:
        """Count the words of a text that is not shown."""
        self.hidden += len(text.split())

    def describe(self) -> list[str]:
        """Describe them, one sentence for each kind."""
        found = []
        if self.struck:
            found.append(
                f"Struck or deleted words are left out: {self.struck:,}. The file may be an amendment, not the text in "
                "force."
            )
        if self.hidden:
            found.append(f"Hidden words are left out: {self.hidden:,}.")
        if self.comments:
            found.append(f"Comments are left out: {self.comments:,}.")
        found += (f"Elements that are not read: {kind} ({count:,})." for kind, count in sorted(self.unread.items()))
        return found
