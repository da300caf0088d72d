"""Headings of municipal codes in the styles that they come in, and what their numbers say of where they stand.

``Sec. 61-1-1. Purpose.``, ``§ 10-101. Title``, ``ARTICLE II. - DISTRICTS``, ``CHAPTER 3``, ``Division 4 Signs``,
``1.04.010 Title``, ``9-1-1: TITLE:``, ``Sec. 4A-3(b) Light`` and ``10.12.030. - Speed limits.`` are headings, and so is
``Secs. 2-5--2-20. Reserved.``; a sentence that starts like one is none.
"""

from __future__ import annotations

import re
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
"""How high a kind of level stands where a code does not show it otherwise. A part may stand anywhere."""

PART: Final = "part"
SUBPART: Final = "subpart"
KINDS: Final = frozenset((*RANKS, PART, SUBPART, SECTION))

_WORDS: Final = {"sec": SECTION, "sect": SECTION, "section": SECTION, "§": SECTION, "ch": "chapter", "art": "article"}
_DASHES: Final = "-\u2010-\u2015"
_NUMBER: Final = r"\d+[A-Za-z]{0,2}(?:[.\-:][0-9]+[A-Za-z]{0,2})*"
_WORDED: Final = re.compile(
    rf"(?P<word>titles?|subtitle|chapter|ch\.|subchapter|article|art\.|subarticle|division|subdivision|part|subpart"
    rf"|appendix|section|sec\.|sect\.|§)"
    rf"\s*(?P<number>{_NUMBER}(?:\([0-9A-Za-z]{{1,4}}\)){{0,4}}|[IVXLCDM]+(?:-[A-Z0-9]+)?|[A-Z]{{1,2}}(?:-?\d+)?)"
    rf"(?P<mark>\s*[.:]?\s+[{_DASHES}]+\s+|\s*[.:](?!\d)\s*|\s*[\u2010-\u2015]\s*|\s+|$)(?P<title>.*)",
    re.IGNORECASE | re.DOTALL,
)
_BARE: Final = re.compile(
    rf"(?P<number>\d+[A-Za-z]?(?:[.\-]\d+[A-Za-z]{{0,2}}){{1,5}})"
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
_LEADERS: Final = re.compile(r"(?: ?\.){4,} ?\d*$")
"""What leads to the page in a table of contents."""
_POINTED: Final = re.compile(r"\d+[A-Za-z]{0,2}(?:\.\d+[A-Za-z]{0,2})+")
LONGEST: Final = 300
"""Characters of the longest line that can be a heading."""


@dataclass(frozen=True, slots=True)
class Heading:
    """The parts of a heading. `bare`: there was no word for its kind, so only its context shows that it is one."""

    kind: str
    number: str
    title: str
    bare: bool = False


def heading_of(line: str) -> Heading | None:
    """Return what `line` says as a heading, None where it cannot be one.

    A title starts with a capital; one that follows its number without any mark does not end like a sentence.
    """
    line = line.strip()
    if not line or len(line) > LONGEST:
        return None
    if (several := _SEVERAL.fullmatch(line)) is not None and status_of(several["title"]) is not None:
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
    title, mark = _LEADERS.sub("", match["title"].strip()), match["mark"].strip()
    if title and (not _OPENING.match(title) or (not mark and _is_sentence(title))):
        return None
    return Heading(kind, match["number"], title, bare)


def _is_number(number: str, word: str) -> bool:
    # "Division of", "Part In": two letters are words rather than numbers, unless they are all capitals.
    return number[0].isdigit() or number.isupper()


def _is_sentence(title: str) -> bool:
    return title[-1] in ".;,:" and (len(title) > 100 or title[-1] in ";," or title.count(". ") > 0)


def status_of(text: str) -> str | None:
    """Return what `text`, a heading's or a whole body, says of a section that is not in force: repealed, reserved."""
    words = text.strip()
    # What is in brackets at the end can be no longer than this, and longer ones would be searched again and again.
    match = _STATUS.fullmatch(words) or _STATUS_AFTER.search(words, max(0, len(words) - LONGEST))
    return match[1].lower() if match else None


def components(number: str) -> list[str]:
    """Return the components of a number that is written with points alone: 15.1.04.010 has four, 10-101 has one."""
    return number.split(".") if _POINTED.fullmatch(number) else [number]


def is_placed(number: str) -> bool:
    """Return whether a number says where it stands in its code, as 1-3 and 15.1.04 do, and 12 and II do not."""
    return number[:1].isdigit() and re.search(r"[.\-:]\d", number) is not None
