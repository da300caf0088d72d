"""Lines and headings whose words hold for the lines after them: ``Setbacks shall be as follows:``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from loaders.zoning.extraction.dimension_names import Bound, Dimension, bound_of, dimensions
from loaders.zoning.extraction.measures import measures

FOR: Final = re.compile(
    r"\bfor (?:all |each |any |an? |the |every )?(?P<what>(?!purposes\b)(?!up\b"
    r"|(?!dwelling|building)\w+ing\b)[a-z][^.,;:()\n]{2,60}?)(?= shall\b| may\b| in\b| at\b| and\b| provided\b"
    r"| that\b| with\b| is\b| are\b| must\b| of\b|[.,;:()]|$)",
    re.IGNORECASE,
)
"""``for all one-family dwellings``: what a limit is for."""
LONGEST: Final = 1_200
"""Code points of a sentence in which anything is looked for."""
_SENTENCE_END: Final = re.compile(r"(?<!\bsq)(?<!\bft)(?<!\bmin)(?<!\bmax)(?<!\bNo)\.(?= [A-Z(“\"])|;|\.$")
_HEAD: Final = re.compile(r"(?P<head>[A-Z“\"][^.:;\n]{2,70}?)(?:\.| [-–—]) (?=\S)")
_SAYS_AS_VERB: Final = re.compile(r"\b(?:shall|must|is|are|may)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Lead:
    """What the words before a sentence say of its limits."""

    type: Dimension
    raw: str
    """The words for the dimension, as recorded."""
    bound: Bound | None
    what: str | None
    """What the limits are for."""
    label: str = ""
    colon: bool = True
    """Whether it says itself that others follow."""
    about: str = ""
    """Its words, and those of the heading that it stands under itself."""


def clauses(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield where the sentences in [start, end) of a text stand, and what is between semicolons.

    ``sq.``, ``ft.`` and ``No.`` end none.
    """
    at = start
    for stop in _SENTENCE_END.finditer(text, start, end):
        if stop.end() > at:
            yield at, stop.end()
        at = stop.end()
    if at < end:
        yield at, end


def has_verb(words: str) -> bool:
    """Return whether some words say something, as a heading does not."""
    return _SAYS_AS_VERB.search(words) is not None


def lead(text: str, start: int, end: int, label: str, title: str) -> Lead | None:
    """Return what the last sentence of a line that heads others says of those after it; None where it limits nothing.

    `title` is the heading that the line stands under.
    """
    begin = max((first for first, _ in clauses(text, start, end)), default=start)
    words = text[begin:end]
    named = list(dimensions(text, begin, end)) if end - begin <= LONGEST else []
    if not named:
        return None
    what = FOR.search(words)
    general = next((each for each in named if each.type == "setback"), named[0])
    raw, applies = text[general.start : general.end], what["what"] if what else None
    return Lead(general, raw, bound_of(words), applies, label, words.rstrip().endswith(":"), f"{title} {words}")


def head(text: str, start: int, end: int, about: str) -> Lead | None:
    """Return what the heading that a line begins with says of its sentences: ``Lot area. Not less than an acre.``

    `about` is what the line stands under.
    """
    match = _HEAD.match(text, start, end)
    if match is None or has_verb(match["head"]) or any(measures(text, *match.span("head"))):
        return None
    named = list(dimensions(text, *match.span("head")))
    if not named:
        return None
    return Lead(named[-1], match["head"], bound_of(match["head"]), None, about=f"{about} {match['head']}")
