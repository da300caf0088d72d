"""Names of people as records write them: surname and given names, and whether two names can be of one person.

A division lists ``Fennimore, TJ`` or ``Fennimore, T. J.``, a register ``Tobias James Fennimore``, a speech
``Fennimore, Tobias, MP``. Two names agree if the surnames are equal and the given names agree in order, an initial with
any name that it begins. Nothing is guessed: nicknames and misspellings do not agree, unless a source lists them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple

_TITLE: Final = re.compile(
    r"(?:(?:mr|mrs|ms|miss|dr|prof(?:essor)?|sen(?:ator)?|the|rt|hon(?:ou?rable)?|sir|dame|rev)\b\.?\s*)+",
    re.IGNORECASE,
)
_AFTER: Final = frozenset(("mp", "am", "ao", "ac", "oam", "qc", "kc", "sc", "obe", "cbe", "jr", "sr"))
"""What may follow a name: letters of office and honours."""
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*", re.UNICODE)
_MOST_INITIALS: Final = 4
"""Maximum letters of a word in capitals that is read as initials: ``AJGC``."""


class Agreement(IntEnum):
    """How far two names agree."""

    NONE = 0
    PART = 1
    """All given names that both have agree; one of them has more."""
    WHOLE = 2
    """All given names agree, as many as both have, and there are at least two."""


class Name(NamedTuple):
    """A way to read a name: the folded surname, and the folded given names or initials."""

    surname: str
    given: Sequence[str]


def fold_name(text: str) -> str:
    """Return the letters of `text` in one case, without accents."""
    return "".join(each for each in unicodedata.normalize("NFKD", text).casefold() if each.isalpha())


def strip_titles(name: str) -> str:
    """Return `name` without the titles before it."""
    match = _TITLE.match(name.strip())
    rest = name.strip()[match.end() :].strip() if match else name.strip()
    return rest or name.strip()


@lru_cache(maxsize=8_192)
def read_listed(name: str) -> Name:
    """Read a name in a list: the surname, a comma, then given names or initials, which may be written as one word."""
    surname, _, rest = name.partition(",")
    given = [part for word in _WORD.findall(rest.partition(",")[0]) for part in _split_initials(word)]
    return Name(fold_name(surname), tuple(given))


@lru_cache(maxsize=8_192)
def read_full(name: str) -> Sequence[Name]:
    """Read the name of a person in each possible way: where no comma is, the surname may have several words."""
    bare = strip_titles(name)
    if "," in bare:
        surname, rest, *_ = bare.split(",")
        given = [fold_name(word) for word in _WORD.findall(strip_titles(rest)) if word.casefold() not in _AFTER]
        return (Name(fold_name(surname), tuple(given)),) if given else ()
    words = bare.split()
    while len(words) > 2 and fold_name(words[-1]) in _AFTER:
        words.pop()
    return tuple(
        Name(
            fold_name("".join(words[place:])),
            tuple(fold_name(each) for word in words[:place] for each in _WORD.findall(word)),
        )
        for place in range(1, len(words))
    )


def compare(listed: Name, names: Iterable[str]) -> Agreement:
    """Compare a listed name with the names of a person; the best agreement counts."""
    found = Agreement.NONE
    for name in names:
        for each in read_full(name):
            if each.surname == listed.surname and listed.given:
                found = max(found, _compare_given(listed.given, each.given))
    return found


def _compare_given(one: Sequence[str], other: Sequence[str]) -> Agreement:
    if not other or not all(_agree(*pair) for pair in zip(one, other, strict=False)):
        return Agreement.NONE
    return Agreement.WHOLE if len(one) == len(other) > 1 else Agreement.PART


def _agree(one: str, other: str) -> bool:
    return one == other or (min(len(one), len(other)) == 1 and one[0] == other[0])


def _split_initials(word: str) -> list[str]:
    if word.isupper() and len(word) <= _MOST_INITIALS:
        return list(fold_name(word))
    return [fold_name(word)]
