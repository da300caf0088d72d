"""Parsing of headings of municipal codes in their various styles, and of the place that their numbers state.

``Sec. 61-1-1. Purpose.``, ``§ 10-101. Title``, ``ARTICLE II. - DISTRICTS``, ``CHAPTER 3``, ``Division 4 Signs``,
``1.04.010 Title``, ``9-1-1: TITLE:``, ``Sec. 4A-3(b) Light``, ``10.12.030. - Speed limits.`` and ``Secs. 2-5--2-20.
Reserved.`` are headings. A sentence with such a start is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

SECTION: Final = "section"

RANKS: Final = {
    "title": 10,
    "appendix": 20,
    "subtitle": 20,
    "chapter": 40,
    "subchapter": 50,
    "article": 60,
    "subarticle": 65,
    "division": 70,
    "subdivision": 80,
}
"""Default rank of each kind of level, for a code that does not show another order. A part has no fixed rank."""

PART: Final = "part"
SUBPART: Final = "subpart"
KINDS: Final = frozenset((*RANKS, PART, SUBPART, SECTION))

_WORDS: Final = {"sec": SECTION, "sect": SECTION, "section": SECTION, "§": SECTION, "ch": "chapter", "art": "article"}
_DASHES: Final = "-\u2010-\u2015"
_DIGITS: Final = r"\d+[A-Za-z]{0,2}"
_LETTERS: Final = r"(?-i:[A-Z]{1,2}|[IVXLCDM]+)(?![A-Za-z])"
_COMPONENT: Final = rf"(?:{_DIGITS}|{_LETTERS})"
_NUMBER: Final = rf"{_DIGITS}(?:[.\-:]{_COMPONENT})*"
_WORDED: Final = re.compile(
    rf"(?P<word>titles?|subtitle|chapter|ch\.|subchapter|article|art\.|subarticle|division|subdivision|part|subpart"
    rf"|appendix|section|sec\.|sect\.|§)"
    rf"\s*(?P<number>{_NUMBER}(?:\([0-9A-Za-z]{{1,4}}\)){{0,4}}|[IVXLCDM]+(?:[.\-:]{_COMPONENT})*"
    rf"|[A-Z]{{1,2}}(?:-?\d+)?(?:[.\-:]{_COMPONENT})*)"
    rf"(?P<mark>\s*[.:]?\s+[{_DASHES}]+\s+|\s*[.:](?!\d)\s*|\s*[\u2010-\u2015]\s*|\s+|$)(?P<title>.*)",
    re.IGNORECASE | re.DOTALL,
)
_BARE: Final = re.compile(
    rf"(?P<number>(?:[IVXLC]+\.[A-Z]\.\d+|\d+[A-Za-z]?(?:[.\-](?:{_DIGITS}|[A-Z](?=[.\-]\d)))(?!\w))"
    rf"(?:[.\-]{_DIGITS}){{0,4}})"
    rf"(?P<mark>[.:]?\s+[{_DASHES}]+\s+|[.:]?\s+|[.:]?$)(?P<title>.*)",
    re.DOTALL,
)
_SEVERAL: Final = re.compile(
    rf"(?:sections|secs\.?|§§)\s*(?P<number>{_NUMBER}(?:\s*(?:[{_DASHES}]+|,|and|&|through|to)\s*{_NUMBER}){{1,20}})"
    rf"(?:\s*[.:]?\s+[{_DASHES}]+\s+|\s*[.:]?\s+)(?P<title>.*)",
    re.IGNORECASE | re.DOTALL,
)
_OPENING: Final = re.compile(r"[\"“”'‘(\[*]*[A-Z0-9]")
_STATUSES: Final = (
    "repealed|reserved|expired|omitted|transferred|renumbered|deleted|vacant|rescinded|superseded|not funded"
)
_STATUS: Final = re.compile(
    rf"(?:[\[(*]+\s*)?({_STATUSES})(?:\s+(?:by|on|effective|to|and)\b[^\])]{{0,80}})?\s*[\])*]*[.;]?",
    re.IGNORECASE,
)
_STATUS_AFTER: Final = re.compile(
    rf"[\[(]\s*({_STATUSES})\b[^\])]*[\])]\.?$",
    re.IGNORECASE,
)
LEADERS: Final = re.compile(r"(?<!\.)(?<!\. )(?: ?\.){4,}+\s*+\d{0,4}$")
"""Leader dots and page number in a table of contents."""
_SPACED_POINT: Final = re.compile(r"(?<!\s)\s++([.:])$")
_POINTED: Final = re.compile(rf"{_COMPONENT}(?:\.{_COMPONENT})+")
_LETTERED: Final = re.compile(rf"{_COMPONENT}[.\-:]{_LETTERS}[.\-:]\d.*|{_LETTERS}\.{_COMPONENT}.*", re.DOTALL)
"""A number with a component of letters before another component: 4-B-2, IV.B, A.1."""
_UNFINISHED: Final = re.compile(
    r"(?:,|[a-z]-|\b(?:of|in|to|see|and|or|nor|under|by|with|per|from|the|a|an|this|that|for|through|than|as|at|on|both|not"
    r"|be|is|are|shall|may|which|such|any|all|each|no|[Ss]ections?|[Ss]ubsections?|[Ss]ecs?\.)|\u00a7)$"
)
LONGEST: Final = 300
"""Maximum characters of a line that can be a heading."""
LONGEST_RUN_IN: Final = 160
"""Maximum characters of a heading with text after it on its line."""


@dataclass(frozen=True, slots=True)
class Heading:
    """The parts of a heading. `bare`: without a word for its kind, so only the context shows that it is a heading."""

    kind: str
    number: str
    title: str
    bare: bool = False


def parse_heading(line: str) -> Heading | None:
    """Parse a line as a heading. None if it cannot be one.

    A title starts with a capital. A title directly after the number, without any mark, must not end like a sentence.
    """
    line = line.strip()
    if not line or len(line) > LONGEST:
        return None
    if (several := _SEVERAL.fullmatch(line)) is not None and find_status(several["title"]) is not None:
        return Heading(SECTION, several["number"], several["title"].strip())
    match = _WORDED.match(line)
    if match is not None:
        word = match["word"].lower().rstrip(".")
        kind = _WORDS.get(word, word)
        if kind not in KINDS or not _is_number(match["number"], word):
            return None
        bare = False
    else:
        match = _BARE.match(line)
        if match is None:
            return None
        kind, bare = SECTION, True
    title, mark = LEADERS.sub("", match["title"].strip()), match["mark"].strip()
    # Text out of a PDF has spaces before points.
    title = _SPACED_POINT.sub(r"\1", title)
    if title and (not _OPENING.match(title) or (not mark and _is_sentence(title))):
        return None
    return Heading(kind, match["number"], title, bare)


def _is_number(number: str, word: str) -> bool:
    # "Division of", "Part In": two letters are a word rather than a number, unless they are all capitals.
    return number[0].isdigit() or number.isupper()


def _is_sentence(title: str) -> bool:
    return title[-1] in ".;,:" and (len(title) > 100 or title[-1] in ";," or title.count(". ") > 0)


def is_unfinished(line: str) -> bool:
    """Check whether a line ends within a sentence, so that the next line is not a heading."""
    return _UNFINISHED.search(line, max(0, len(line) - LONGEST)) is not None


def find_status(text: str) -> str | None:
    """Find the status of a section that is not in force (repealed, reserved) in a heading or a whole body."""
    words = text.strip()
    # Text in brackets at the end is at most this long. A longer search would be repeated for each bracket.
    match = _STATUS.fullmatch(words) or _STATUS_AFTER.search(words, max(0, len(words) - LONGEST))
    return match[1].lower() if match else None


def split_number(number: str) -> list[str]:
    """Split a number with points only into components: 15.1.04.010 has four, IV.B.2 three, 10-101 has one."""
    return number.split(".") if _POINTED.fullmatch(number) else [number]


def is_placed(number: str) -> bool:
    """Check whether a number states its place in the code: 1-3, 15.1.04 and IV.B.2 do; 12, II and II-A do not."""
    placed = number[:1].isdigit() and re.search(r"[.\-:]\d", number) is not None
    return placed or _LETTERED.fullmatch(number) is not None


def find_implied(numbers: Iterable[str]) -> set[str]:
    """Find the numbers of levels implied by those of sections, without the highest level."""
    given = set(numbers)
    return {".".join(parts[:count]) for parts in map(split_number, given) for count in range(2, len(parts))} - given
