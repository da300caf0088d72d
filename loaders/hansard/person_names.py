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


_PARTICLES: Final = frozenset(
    [
        "de",
        "da",
        "das",
        "do",
        "dos",
        "del",
        "della",
        "delle",
        "di",
        "du",
        "des",
        "la",
        "le",
        "van",
        "von",
        "der",
        "den",
        "ter",
        "ten",
        "zu",
        "zur",
        "af",
        "av",
        "el",
        "al",
        "bin",
        "ibn",
        "y",
        "e",
        "st",
    ]
)
_IDEOGRAPHS: Final = "\u2e80"
"""From here on a character may be a whole surname."""
_INITIALS: Final = re.compile(r"(?:[^\W\d_]\.)+|[^\W\d_]")
_BRACKETED: Final = re.compile(r"(?:(?<!\s)\s++)?[(\[][^()\[\]]*+[)\]]?")
_LETTERS: Final = str.maketrans(
    {"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ı": "i"}
)
"""Letters that Unicode does not decompose."""


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
    return "".join(
        each for each in unicodedata.normalize("NFKD", text.translate(_LETTERS)).casefold() if each.isalpha()
    )


def have_same_surname(one: str, other: str) -> bool:
    """Whether two names can have the same surname, in any usual form: ``Mr SWAN``, ``Swan, Wayne``, ``Wayne SWAN``.

    Part of a double surname agrees where the given names agree too: ``Quill-Reed, Ada`` and ``Reed, Ada``. Names
    in different scripts cannot be compared, so they count as agreeing.
    """
    first, second = _read_parts(one), _read_parts(other)
    if first.scripts.isdisjoint(second.scripts) or not (_has_word(first) and _has_word(second)):
        return True
    if first.surnames & second.surnames:
        return True
    given = first.given and second.given and not differ_in_given_names(one, other)
    return bool(given) and not first.parts.isdisjoint(second.parts)


def _has_word(parts: _Parts) -> bool:
    """Whether there is more than an initial in place of the surname."""
    return any(len(word) > 1 or word >= _IDEOGRAPHS for word in parts.words)


def have_same_script(one: str, other: str) -> bool:
    """Whether two names have letters of one script, so that they can be compared."""
    return not _find_scripts(one).isdisjoint(_find_scripts(other))


def _find_scripts(text: str) -> frozenset[str]:
    return frozenset(unicodedata.name(each, "?").partition(" ")[0] for each in text if each.isalpha())


def has_given_names(name: str) -> bool:
    """Whether the form of a name distinguishes given names or initials from the surname."""
    return bool(_read_parts(name).given)


def differ_in_given_names(one: str, other: str) -> bool:
    """Whether two names both have given names, which their form distinguishes from the surname, that do not agree."""
    first, second = _read_parts(one), _read_parts(other)
    if not first.given or not second.given or first.scripts.isdisjoint(second.scripts):
        return False
    return not all(agree(*pair) for pair in zip(first.given, second.given, strict=False))


class _Parts(NamedTuple):
    """The parts of a name that may be its surname."""

    words: Sequence[str]
    surnames: frozenset[str]
    """The folded surname, in each way in which the form may be read."""
    parts: frozenset[str]
    """The folded words of the surname, without particles."""
    given: Sequence[str]
    """The folded given names or initials, where the form distinguishes them from the surname."""
    scripts: frozenset[str]


@lru_cache(maxsize=16_384)
def _read_parts(name: str) -> _Parts:
    bare = _BRACKETED.sub(" ", strip_titles(name))
    scripts = _find_scripts(bare)
    before, comma, after = bare.partition(",")
    if comma and (given := _read_given(after)) is not None and before.strip():
        surname = strip_titles(before)
        return _build_parts([surname], surname.split(), given, scripts)
    words = [word for word in before.split() if fold_name(word)]
    while len(words) > 1 and fold_name(words[-1]) in _AFTER:
        words.pop()
    if (
        title := next((place for place, word in enumerate(words) if place and _TITLE.fullmatch(word)), None)
    ) is not None:
        # "Coulter Sen J.R."
        return _build_parts(
            [" ".join(words[:title])], words[:title], _read_given(" ".join(words[title:])) or (), scripts
        )
    named = [word for word in words if not _INITIALS.fullmatch(word)] or words
    capitals = [word for word in named if _is_capital(word)]
    if capitals and len(capitals) < len(named):
        first = named.index(capitals[0])
        while first and fold_name(named[first - 1]) in _PARTICLES:
            first -= 1
        last = named[first:]
        given = [fold_name(word) for word in named[:first]]
        return _build_parts([" ".join(last), " ".join(capitals)], last, given, scripts)
    # The surname is last, or first as in Hungarian, and may have several words.
    ends = [" ".join(named[place:]) for place in range(len(named))] + [
        " ".join(named[:place]) for place in range(1, len(named))
    ]
    initials = [part for word in words if word not in named for part in fold_name(word)]
    return _build_parts(ends, named if len(named) == 1 else (), initials if len(named) == 1 else (), scripts)


def _build_parts(
    surnames: Sequence[str], words: Sequence[str], given: Sequence[str], scripts: frozenset[str]
) -> _Parts:
    parts = {fold_name(each) for word in words for each in re.split(r"[-\u2010\u2011\u2013]", word)}
    folded = frozenset(filter(None, map(fold_name, surnames)))
    return _Parts(tuple(folded), folded, frozenset(parts - _PARTICLES - {""}), tuple(given), scripts)


def _read_given(text: str) -> Sequence[str] | None:
    """Return the given names after a comma, without titles and honours; None if there are none."""
    words = [word for word in _WORD.findall(strip_titles(text.partition(",")[0])) if word.casefold() not in _AFTER]
    return tuple(part for word in words for part in _split_initials(word)) if words else None


def _is_capital(word: str) -> bool:
    """Whether a word is written in capitals as a surname is: ``SWAN``, ``McEWEN``, but no initials."""
    letters = re.sub(r"^(?:Mc|Mac|O['’]|D['’]|[dl]['’])", "", word)
    return len(fold_name(letters)) > 1 and letters == letters.upper() and letters != letters.lower()


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
    if not other or not all(agree(*pair) for pair in zip(one, other, strict=False)):
        return Agreement.NONE
    return Agreement.WHOLE if len(one) == len(other) > 1 else Agreement.PART


def agree(one: str, other: str) -> bool:
    """Whether two words of names are equal, or one is the initial of the other."""
    return one == other or (min(len(one), len(other)) == 1 and one[0] == other[0])


def _split_initials(word: str) -> list[str]:
    if word.isupper() and len(word) <= _MOST_INITIALS:
        return list(fold_name(word))
    return [fold_name(word)]
