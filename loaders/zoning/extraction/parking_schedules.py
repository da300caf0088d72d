"""Parking spaces that a use must have, in the lines of a schedule: ``Restaurants 1:100 square feet``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from loaders.zoning.extraction import districts as naming
from loaders.zoning.extraction.dimension_names import Bound, bound_of
from loaders.zoning.extraction.districts import District
from loaders.zoning.extraction.leads import has_verb
from loaders.zoning.extraction.measures import NUMBER, parse_number
from loaders.zoning.extraction.outline import find_label_end
from loaders.zoning.extraction.section_protocol import Section
from loaders.zoning.extraction.sentence_standards import Standard
from loaders.zoning.extraction.standard_confidence import CONFIDENCE

_ABOUT: Final = re.compile(r"\bparking\b", re.IGNORECASE)
_SPACES_ONLY: Final = re.compile(r"\bspaces\b|\brequirements?\b|\bschedule\b|\brequired\b", re.IGNORECASE)
_OTHER: Final = re.compile(
    r"\b(?:bicycles?|bikes?|loading|stacking|queu\w+|electric|accessible|handicap\w*|disab\w+|width|depth|dimensions?|compact"
    r"|trees?|landscap\w*|islands?|fees?|fines?|slopes?|light\w*)\b",
    re.IGNORECASE,
)
"""Words for spaces that are not parking spaces of a use."""
_APART: Final = re.compile(
    r"\b(?:bicycles?|bikes?|electric|accessible|handicap\w*|disab\w+|dimensions?|compact|landscap\w*|fees?|fines?)\b",
    re.IGNORECASE,
)
"""Words in a heading about parking that is about other spaces, or about none."""
_SPACES: Final = (
    r"(?: (?:off-street|on-site|additional|guest|visitor|covered|enclosed|vehicle|vehicular|automobile))*"
    r"(?: (?:parking )?(?:spaces?|stalls?))"
)
RATE: Final = re.compile(
    rf"(?P<number>(?<![\w.,:/§$-]){NUMBER})"
    rf"(?:{_SPACES}? ?(?:per|for each|for every|/(?=[A-Za-z]|1,?000\b)) ?|{_SPACES} for (?=\d)| ?: ?)"
    r"(?P<each>(?=[\w(])[^|\n]{2,200})",
    re.IGNORECASE,
)
"""``1:100 square feet``, ``two (2) spaces per dwelling unit``, ``1 per 4 seats``."""
# "9:00 a.m." and "1:30 to 5" have the form of a rate.
_CLOCK: Final = re.compile(r"\d{2} ?(?:[ap]\.?m\b|$|[-–]|to )", re.IGNORECASE)
_NO_EACH: Final = re.compile(
    r"(?:[\d,.]+ ?)?(?:where|when|if|max\w*|min\w*|slopes?|ratio|horizontal|vertical|spaces?|stalls?|in|at|to|on|for"
    r"|the|hours?|days?|weeks?|months?|years?|miles?)\b|[\d,.]+$",
    re.IGNORECASE,
)
"""Text after a number and a colon, or after ``per``, that is not a rate of spaces."""
_DWELLING: Final = re.compile(
    r"(?:(?:residential|living|housing) unit|(?:single-family |multi-?family )?dwelling(?: unit)?|home|house|residence"
    r"|apartment|townhouse|d\.?u\.?)[. ]*",
    re.IGNORECASE,
)
_COLUMN: Final = re.compile(r"\b(?:spaces?|stalls?|ratio|required|requirements?)\b", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"\.(?= [A-Z])")
_NO_USE: Final = re.compile(
    r"\b(?:of|at least|than|minimum|maximum|plus|and|or|a|an|the|least|required|requires?|provide[ds]?|up to|see)$"
    r"|\b(?:required|provided|located|reduced|increased|ratio|rate|exceed\w*)\b",
    re.IGNORECASE,
)
_WHICHEVER: Final = re.compile(r"\bwhichever is\b", re.IGNORECASE)
_WORDS: Final = 24
_LONGEST: Final = 400


def is_about_parking(section: Section, above: Sequence[Section] = ()) -> bool:
    """Check whether a section is about parking, so that its lines may be a schedule: by its heading, or by one above it
    if its own is about spaces."""
    about = (section, *above) if _SPACES_ONLY.search(section.title) else (section,)
    return any(_ABOUT.search(each.title) for each in about) and not _APART.search(section.title)


class Schedule:
    """Parses the lines of a section about parking, in order."""

    def __init__(self, section: Section, known: Mapping[str, District]) -> None:
        self._text: Final = section.text
        self._known: Final = known
        self._before = ""
        self._other = False
        self._bound: Bound = "min"

    def is_other(self, words: str) -> bool:
        """Check whether a line, or the heading above it, is about other spaces than those that a use must have."""
        return self._other or is_other(words)

    def line(self, start: int, end: int, around: Sequence[str]) -> Standard | None:
        """Parse the line [start, end), in the districts `around`. None if it is not a row of a schedule.

        A line that is only a rate is for the use on the line before it.
        """
        text = self._text
        before, self._before = self._before, ""
        body = find_label_end(text, start, end)
        words = text[body:end].rstrip(" .;")
        rate = RATE.search(text, body, body + len(words)) if len(words) <= _LONGEST else None
        if rate is None or _NO_EACH.match(rate["each"]) or _CLOCK.match(rate["each"]):
            self._head(words)
            return None
        use = text[body : rate.start()].strip(" -–—:.|,") or before
        if (
            self._other
            or not _names_use(use)
            or has_verb(_WHICHEVER.sub("", rate["each"]))
            or _OTHER.search(f"{use} {rate[0]}")
        ):
            return None
        stop = next((cut.start() for cut in _SENTENCE.finditer(text, rate.start(), rate.end())), rate.end())
        raw = text[rate.start() : stop]
        value, unit = per_dwelling(rate["number"], text[rate.start("each") : stop])
        where = naming.find_places(text, body, end, self._known)
        codes = tuple(around if where is None else where)
        return Standard(
            codes,
            "parking",
            raw,
            self._bound,
            raw,
            value,
            unit,
            use,
            [],
            rate.start(),
            stop,
            CONFIDENCE["list"],
            "list",
        )

    def _head(self, words: str) -> None:
        """Process a line without a rate: the use of the next line, or a heading."""
        if has_verb(words) or not words or len(words.split()) > _WORDS:
            return
        if words.endswith(":") or _ABOUT.search(words) or _OTHER.search(words):
            about = _ABOUT.search(words) is not None
            self._bound = bound_of(words) or ("min" if about else self._bound)
            if about:
                self._other = _APART.search(words) is not None
            elif _OTHER.search(words):
                self._other = True
        elif not any(map(str.isdigit, words)):
            self._before = words


def _names_use(words: str) -> bool:
    return (
        words[:1].isalpha()
        and len(words.split()) <= _WORDS
        and not has_verb(words)
        and not _NO_USE.search(words)
        and ". " not in words
        and "; " not in words
    )


def parse_cell(words: str) -> tuple[Decimal | None, str | None]:
    """Parse a cell of a schedule into value and unit, if it is per dwelling."""
    rate = RATE.fullmatch(words)
    return per_dwelling(rate["number"], rate["each"]) if rate else (None, None)


def is_column(words: str) -> bool:
    """Check whether a column in a section about parking is for the spaces that a use must have."""
    return _COLUMN.search(words) is not None and not _OTHER.search(words)


def is_other(words: str) -> bool:
    """Check whether some words are about other spaces, such as for bicycles or loading."""
    return _OTHER.search(words) is not None


def per_dwelling(spaces: str, each: str) -> tuple[Decimal | None, str | None]:
    """Get value and unit if the spaces are per dwelling. Other rates have no unit."""
    value = parse_number(spaces) if _DWELLING.fullmatch(each) else None
    return value, None if value is None else "space-per-dwelling"
