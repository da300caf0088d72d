"""Resolution of names of people and parties in any usual form to exact matches. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pyoxigraph import NamedNode

from kg.errors import NotFoundError
from kg.fuzzy_names import Names, fold
from kg.retrieval.choices import NEAREST, Choice
from kg.text import name_or_quote, quoted
from loaders.hansard.person_names import agree

TITLES: Final = frozenset(
    re.findall(
        r"\w+",
        "mr mrs ms miss dr prof professor sen senator hon honourable honorable rev sir dame the mp am ao ac oam cbe "
        "obe dbe kbe kcmg kc qc sc dsc dso mc",
    )
)
"""Titles and honours, which do not distinguish people."""
_COMMON: Final = frozenset({"party", "of", "and", "the", "for", "australia", "australian"})
"""Words in names of parties that do not distinguish them."""


def find_people(argument: str, text: str, choices: Sequence[Choice]) -> list[Choice]:
    """Find people by IRI or key, whole name, name in another order, initials, or surname.

    Raises NotFoundError with similar names.
    """
    found = _by_key(text, choices)
    if found:
        return found
    wanted = _words(text)
    whole = [choice for choice in choices if any(_words(name) == wanted for name in choice.names)]
    if whole and len(wanted) > 1:
        return whole
    found = [choice for choice in choices if wanted and any(_is_person(wanted, name) for name in choice.names)]
    return found or whole or _none(argument, text, choices)


def find_offices(text: str, recorded: Sequence[str]) -> list[str]:
    """Find the recorded names of an office: ``the speaker`` is ``The SPEAKER``, ``Mr SPEAKER``, but no deputy.

    With a holder in brackets, only that name. Empty for the name of a person.
    """
    if "(" in text:
        return [name for name in recorded if fold(name) == fold(text)]
    wanted = _office_words(text)
    return [name for name in recorded if wanted and _office_words(name) == wanted]


def find_parties(argument: str, text: str, choices: Sequence[Choice]) -> list[Choice]:
    """Find parties by IRI or code, name or abbreviation, or words of a name.

    Raises NotFoundError with similar names.
    """
    found = _by_key(text, choices)
    if found:
        return found
    wanted = fold(text)
    said = set(wanted.split()) - _COMMON
    whole = [choice for choice in choices if any(fold(name) == wanted for name in choice.names)]
    if whole or not said:
        return whole or _none(argument, text, choices)
    having = {choice: [set(fold(name).split()) for name in choice.names] for choice in choices}
    same = [choice for choice, names in having.items() if any(words - _COMMON == said for words in names)]
    within = [choice for choice, names in having.items() if any(words >= said for words in names)]
    return same or within or _none(argument, text, choices)


def _by_key(text: str, choices: Sequence[Choice]) -> list[Choice]:
    wanted = text.strip().strip("<>").casefold()
    return [
        choice
        for choice in choices
        if isinstance(choice.term, NamedNode)
        and wanted in (choice.term.value.casefold(), choice.term.value.rpartition("/")[2].casefold())
    ]


def _none(argument: str, text: str, choices: Sequence[Choice]) -> list[Choice]:
    if not choices:
        raise NotFoundError(f"{argument}: No match for {quoted(text)}: no speeches are loaded.")
    known = Names([(number, name) for number, choice in enumerate(choices) for name in (choice.label, *choice.names)])
    near = [choices[each.number].label for each in known.nearest(text, NEAREST)]
    if not near and len(choices) <= 2 * NEAREST:
        near = sorted(choice.label for choice in choices)
    meant = f"Similar: {'; '.join(map(name_or_quote, dict.fromkeys(near)))}. " if near else ""
    more = "speech_stats(group_by='party')" if argument == "party" else "list_speakers"
    raise NotFoundError(f"{argument}: No speech has {quoted(text)}. {meant}{more} lists all.")


def _office_words(name: str) -> list[str]:
    return [word for word in fold(name.partition("(")[0]).split() if word not in TITLES and word != "madam"]


def _words(name: str) -> tuple[str, ...]:
    """Split a person's name into words without titles, the surname last even if a comma follows it."""
    before, comma, after = name.partition(",")
    words = _plain(f"{after} {before}" if comma and _plain(after) else name)
    return tuple(words)


def _plain(name: str) -> list[str]:
    words = fold(re.sub(r"[’']", "", name)).split()
    return [word for word in words if word not in TITLES] or words


def _is_person(wanted: Sequence[str], name: str) -> bool:
    """Whether `wanted` has the surname of `name`, and otherwise only words of it or their initials."""
    words = _words(name)
    surname = _surname(name, words)
    return surname in wanted and all(any(agree(word, other) for other in words) for word in wanted)


def _surname(name: str, words: Sequence[str]) -> str:
    if "," in name:
        return words[-1]
    # "Coulter Sen J.R.": initials follow the surname
    whole = [word for word in words if len(word) > 1]
    return whole[-1] if whole else words[-1]
