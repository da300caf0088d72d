"""Finds the conditions of a use that are only in the words of its permission.

Only words next to the use, or after the permission of the whole sentence, count. They are quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kg.fuzzy_names import fold

_CLAUSE: Final = r"(?:[^.,;:]|[.,](?=\w))*"
_NEXT: Final = re.compile(
    r"\s*+(?:,\s*+)?"
    r"(?P<words>(?:of (?:not|no|up to|at (?:most|least)|more|less|fewer)|not (?:exceeding|more|less|over)|"
    r"no (?:more|larger)|limited to|containing|having|with\b|if\b|when\b|where\b|only\b|provided\b|except\b|"
    r"excluding\b|"
    r"unless\b|subject to\b|on (?:an?|lots?|parcels?|tracts?|sites?)\b|as (?:an? )?(?:accessory|incidental)\b|"
    r"(?:accessory|incidental|subordinate) to\b|in conjunction\b|for the (?:sole |exclusive )?use\b)"
    rf"{_CLAUSE})",
    re.IGNORECASE,
)
"""A condition that follows the name of a use."""
_PERMITTED: Final = re.compile(
    r"\b(?:(?:is|are|be|also|hereby|likewise) ){0,6}(?:permitted|allowed|approved|authorized|prohibited|forbidden|"
    r"established)\b",
    re.IGNORECASE,
)
_BEFORE: Final = re.compile(r"\b(?:new|existing|enclosed|unenclosed|indoor|outdoor) $", re.IGNORECASE)
"""A word before the name of a use that limits it."""
_OF: Final = re.compile(r"^of ", re.IGNORECASE)
_VERB: Final = re.compile(r"\b(?:is|are|may|shall|must|can|will)\b", re.IGNORECASE)
_ACCESSORY: Final = re.compile(
    r"\b(?:only )?as (?:an? )?(?:accessory|incidental|subordinate|temporary|secondary) "
    r"(?:uses?|buildings?|structures?)\b",
    re.IGNORECASE,
)
_LAST: Final = re.compile(
    r"\b(?:provided\b|if\b|unless\b|except\b|excluding\b|so long as\b|on condition\b|"
    r"but (?:only|not|may not|shall not)\b|other than\b)(?:[^.;:]|[.](?=\w))*",
    re.IGNORECASE,
)
"""A condition at the end of a sentence, which is of all its uses."""


def add_conditions(use: str, texts: Iterable[str], recorded: Sequence[str]) -> list[str]:
    """Add to the `recorded` conditions of a use those in the sentences that its permission rests on.

    One that is recorded in part is replaced by its whole.
    """
    found = list(recorded)
    for text in texts:
        for words in _find_in(use, text):
            shown = _OF.sub("", " ".join(words.split()).strip(" ,"))
            plain = f" {fold(shown)} "
            if shown and not any(plain in f" {fold(known)} " for known in (use, *found)):
                found = [known for known in found if f" {fold(known)} " not in plain] + [shown]
    return found


def _find_in(use: str, text: str) -> Iterator[str]:
    start = text.casefold().find(use.strip().casefold())
    if start < 0:
        return
    end = start + len(use.strip())
    if (match := _BEFORE.search(text, 0, start)) is not None:
        yield text[match.start() : end]
    if (match := _NEXT.match(text, end)) is not None:
        words = match["words"]
        verb = _VERB.search(words) if _PERMITTED.search(words) else None
        yield words if verb is None else words[: verb.start()]
    permitted = _PERMITTED.search(text, end)
    if permitted is None:
        return
    if (match := _ACCESSORY.search(text, permitted.end())) is not None:
        yield match[0]
    last = _LAST.search(text, permitted.end())
    # After another verb it is of another subject: "and piers are permitted if they are of stone".
    if last is not None and _VERB.search(text, permitted.end(), last.start()) is None:
        yield last[0]
