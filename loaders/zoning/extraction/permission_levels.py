"""Levels of permission and required reviews, by the words of a heading, a sentence or a legend."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from loaders.citations.section_citations import find_citations

Level = Literal["byRight", "byRightWithConditions", "byRightOrConditional", "conditional", "notPermitted"]


_CONFIDENCES: Final = {"matrix": 0.98, "list": 0.97, "closed list": 0.9, "reference": 0.9}
"""Of draws of at most 60 from each of four codes, one from a place, were right: 60 of 60 cells of matrices, and 175 of
180 items. The other forms were too few to measure."""
_BLANK: Final = 0.6
"""The confidence of the meaning of a blank cell."""
UNLISTED: Final = "Uses that are not listed"
"""The name of the uses that a closed list prohibits."""


@dataclass(frozen=True, slots=True)
class UsePermission:
    """A use and its level in a district, as stated at the offsets [start, end) of the section's text."""

    district: str
    """Code of the district."""
    use: str
    """Verbatim, without its conditions."""
    level: Level | None
    """None for a cell that is not exactly one level: it is recorded as its words."""
    raw_level: str
    """The words or letters of the source: ``Uses Subject to Conditions``, ``P``."""
    conditions: Sequence[str]
    """Verbatim."""
    review: str | None
    """The citation of the required review, verbatim: ``§15.3.08.060``."""
    start: int
    end: int
    method: str
    """list, reference, closed list, matrix."""
    group: str = ""
    """The headings of the group of rows of a matrix that the use is in, outermost first."""

    @property
    def confidence(self) -> float:
        """The share of permissions of its form that are right, as measured on codes as they come."""
        return _CONFIDENCES[self.method] if self.raw_level else _BLANK


def prohibit_unlisted(district: str, text: str, start: int, end: int) -> UsePermission:
    """Build the permission of the uses that a closed list prohibits, by the sentence at [start, end) of a text."""
    said = text[start:end].strip()
    return UsePermission(district, UNLISTED, "notPermitted", said, (), None, start, end, "closed list")


INHERITED: Final = re.compile(
    r"(?i)(?:(?:any|all|the|those|every) )?(?:other )?(?:of the )?(?:principal |accessory |land )?uses? "
    r"(?:that (?:is|are) )?(?:permitted|allowed|listed)(?: (?:by right|outright|as of right))? (?:in|within) "
    r"(?P<of>(?:(?:the )?(?-i:[A-Z])[\w-]{0,8}(?:, (?:and |or )?| and | or )){0,20}[^.;:,]{1,80}?)"
    r"(?=,? (?:except|excluding|other than|but|provided|is|are|may|shall|subject)\b|[.;,]|$)",
)
"""``any use permitted in the C-1 District``"""
NOT: Final = re.compile(
    r"(?i)\b(?:prohibited|forbidden)|\bnot (?:be )?(?:an? )?(?:permitted|allowed)|\bunpermitted"
    r"|\bno(?:t one)? of the following uses",
)
_CONDITIONAL: Final = re.compile(
    r"(?i)\bconditional(?:ly)?\b|\bspeci(?:al|fic) (?:land )?(?:uses?|exceptions?|permits?)"
    r"|\b(?:uses? )?(?:by|requiring a) special|\bdiscretionary uses?\b"
    r"|\buses? (?:permitted|allowed) (?:on|upon|by) (?:review|appeal|permit)|\buse permits?\b|\bspecial approval\b",
)
BOARD: Final = (
    r"(?:council|board|commission(?:ers)?|body|court|examiner|director|planner|manager|administrator|committee"
    r"|selectmen|trustees)\b"
)
"""Pattern of those who decide on a use."""
_DECIDED: Final = re.compile(
    rf"(?i)\b(?:permitted|allowed|authorized|approved|permits?|approval|authorization)\b[^.;]{{0,40}}\b(?:by|of|from)\b"
    rf"[^.;]{{0,40}}\b{BOARD}|\brequires? (?:an? )?(?:special|conditional|use) ",
)
_LIMITED: Final = re.compile(
    r"(?i)\b(?:subject to|with|under) (?:\w+ ){0,2}(?:conditions?|standards|limitations|restrictions|requirements)\b"
    r"|\blimited uses|\bsubject to\b",
)
_BY_RIGHT: Final = re.compile(
    r"(?i)\b(?:permitted|allowed|allowable|(?:by|as[- ]of|matter[- ]of)[- ]right|principal|primary)\b"
)
_REVIEWED: Final = re.compile(
    r"(?i)\b(?:subject to|pursuant to|under|in accordance with|as (?:provided|set forth|required|specified"
    r"|described) (?:in|by)|according to|in compliance with|conform\w* to|reviewed|approved|approval|\(?see|\(?per)\b"
    r"|\((?=§|[Ss]ec|[Cc]hap|[Aa]rt)",
)


_WITHOUT: Final = re.compile(r"(?i)\b(?:without|no|not requir\w+|not need)\b(?: \w+){0,2} ?$")
"""Words before a permit that is not required."""


def is_conditional(words: str) -> bool:
    """Check whether some words require a permit: not ``allowed without a special permit``."""
    return any(not _WITHOUT.search(words[: each.start()]) for each in _CONDITIONAL.finditer(words))


def level_of(words: str) -> Level | None:
    """Parse some words into a level: ``Uses subject to conditional use permit`` is conditional."""
    if NOT.search(words):
        return "notPermitted"
    if is_conditional(words) or _DECIDED.search(words):
        return "conditional"
    if _LIMITED.search(words):
        return "byRightWithConditions"
    return "byRight" if _BY_RIGHT.search(words) else None


def find_review(words: str) -> str | None:
    """Find the citation of the section by which a use is reviewed, verbatim."""
    said = _REVIEWED.search(words)
    found = (each.raw for each in find_citations(words[said.start() :]) if each.internal) if said else ()
    return next(iter(found), None)
