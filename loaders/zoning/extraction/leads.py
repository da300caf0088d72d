"""Lines and headings that give a dimension to the sentences below them, and the sentences of a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from loaders.zoning.extraction.dimension_names import Bound, Dimension, bound_of, find_dimensions
from loaders.zoning.extraction.measures import find_measures

FOR: Final = re.compile(
    r"\bfor (?:all |each |any |an? |the |every )?(?P<what>(?!purposes\b)(?!up\b"
    r"|(?!dwelling|building)\w+ing\b)[a-z][^.,;:()\n]{2,60}?)(?= shall\b| may\b| in\b| at\b| and\b| provided\b"
    r"| that\b| with\b| is\b| are\b| must\b| of\b|[.,;:()]|$)",
    re.IGNORECASE,
)
"""``for all one-family dwellings``: the use or building that a limit is for."""
LONGEST: Final = 1_200
"""Maximum code points of a sentence. Longer ones are skipped, to bound the time."""
_SENTENCE_END: Final = re.compile(r"(?<!\bsq)(?<!\bft)(?<!\bmin)(?<!\bmax)(?<!\bNo)\.(?= [A-Z(“\"])|;|\.$")
_HEAD: Final = re.compile(r"(?P<head>[A-Z“\"][^.:;\n]{2,70}?)(?:\.| [-–—]) (?=\S)")
_SAYS_AS_VERB: Final = re.compile(r"\b(?:shall|must|is|are|may)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Lead:
    """A line or heading that applies to the sentences after it: ``Setbacks shall be as follows:``."""

    type: Dimension
    raw: str
    """The words for the dimension, as recorded."""
    bound: Bound | None
    what: str | None
    """The use or building that the limits are for."""
    about: str = ""
    """Its own words and those of the heading above it."""


def split_clauses(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the offsets of sentences in [start, end) of a text, split at semicolons too.

    ``sq.``, ``ft.`` and ``No.`` do not end a sentence.
    """
    at = start
    for stop in _SENTENCE_END.finditer(text, start, end):
        if stop.end() > at:
            yield at, stop.end()
        at = stop.end()
    if at < end:
        yield at, end


def has_verb(words: str) -> bool:
    """Check whether some words are a statement. A heading is not."""
    return _SAYS_AS_VERB.search(words) is not None


def parse_lead(text: str, start: int, end: int, title: str) -> Lead | None:
    """Parse the last sentence of a line as a lead for the lines after it. None if it names no dimension.

    `title` is the heading above the line.
    """
    begin = max((first for first, _ in split_clauses(text, start, end)), default=start)
    words = text[begin:end]
    named = list(find_dimensions(text, begin, end)) if end - begin <= LONGEST else []
    if not named:
        return None
    what = FOR.search(words)
    general = next((each for each in named if each.type == "setback"), named[0])
    raw, applies = text[general.start : general.end], what["what"] if what else None
    return Lead(general, raw, bound_of(words), applies, f"{title} {words}")


def parse_head(text: str, start: int, end: int, about: str) -> Lead | None:
    """Parse the heading at the start of a line as a lead for its sentences: ``Lot area. Not less than an acre.``

    `about` is the heading above the line.
    """
    match = _HEAD.match(text, start, end)
    if match is None or has_verb(match["head"]) or any(find_measures(text, *match.span("head"))):
        return None
    named = list(find_dimensions(text, *match.span("head")))
    if not named:
        return None
    return Lead(named[-1], match["head"], bound_of(match["head"]), None, about=f"{about} {match['head']}")
