"""Documents that text cites parts of, as it calls them: neither the code itself nor a law that `statutes` knows."""

from __future__ import annotations

import re
from typing import Final

_TITLE_WORD: Final = re.compile(r"(?:[A-Z][\w.&'’-]*|(?:of|and|for|the|to|on|in|a|an)\b|\d{4}\b),? ?")
_DOCUMENT: Final = re.compile(
    r"(?:Acts?|Codes?|Laws?|Ordinances?|Constitution|Regulations?|Rules|Standards?|Permit|Charter"
    r"|Statutes?|Manual|Plan"
    r"|Agreement|Lease|Contract|Compact|Resolution)\b"
)
_ACRONYM: Final = re.compile(r"[A-Z]{3,8}\b")
_LOWER_DOCUMENT: Final = re.compile(
    r"(?:(?:that|said|such|amended) )?(?:act|constitution|charter|compact|agreement|contract|lease|treaty|bylaws)\b"
)
_BEFORE: Final = re.compile(
    r"((?:[A-Z][\w.&'’-]* ){1,6}(?:Code|Act|Standards?|Regulations|Reg\.|Permit|Laws?|Statutes?|Stats?\.|Ann\.)"
    r"|(?:[A-Z]\.? ?){2,5} ?c(?:h(?:ap)?)?\. ?\d{1,4}[A-Z]{0,2}),? $"
)
_ENACTED: Final = re.compile(
    r"(?<!\w)(Pub(?:lic\s|\.\s?)L(?:aw\b|\.)\s?(?:No\.\s?)?\d{1,3}[-–]\d{1,4}"
    r"|D\.\s?C\. (?:Law|Act) \d{1,3}[A-Z]?-\d{1,4}|\d{1,3}A? Stat\. \d{1,4}"
    r"|Act of [A-Z][a-z]{2,8}\.? \d{1,2}, \d{4}|(?:[A-Z]\. ?){1,3}L\.(?: ?A\.)?|M?GLA?|\d{1,2} P\. ?S\.)"
    r"(?: \([^()]{0,40}\))?[,;]? $"
)
_STATUTES: Final = re.compile(r"[,;] (\d{1,3}A? Stat\. \d{1,4})\b")
_DOCUMENT_REACH: Final = 80
"""Code points before a citation in which the name of its document is looked for."""
_OWN: Final = re.compile(
    r"(?:Municipal|City|Town|Township|Village|County|Zoning|Land Use|Development) (?:[A-Z]\w+ )?(?:Code|Ordinance)"
    r"|Code of Ordinances|Ordinance Code|^(?:Code|Ordinance|Title|Codes? and)$"
)


def named_at(text: str, at: int, *, acronyms: bool) -> str | None:
    """Return the name of the document at `at`, if there is one and it is not the code itself."""
    if lower := _LOWER_DOCUMENT.match(text, at):
        return lower[0]
    end, place = None, at
    for _ in range(16):
        keyword = _DOCUMENT.match(text, place) or (_ACRONYM.match(text, place) if acronyms else None)
        if keyword is not None:
            end = keyword.end()
            if not text.startswith(" of ", end):
                break
        word = _TITLE_WORD.match(text, place)
        if word is None:
            break
        place = word.end()
    if end is None or _OWN.search(text[at:end]):
        return None
    return text[at:end]


def named_before(text: str, start: int) -> str | None:
    """Return what a section cited at `start` is of, by the words before: ``Conn. Agencies Reg. § 8``."""
    before = _BEFORE.search(text, max(0, start - _DOCUMENT_REACH), start)
    return before[1] if before and not _OWN.search(before[1]) else None


def enacted_before(text: str, start: int, end: int) -> str | None:
    """Return the numbered or dated law that the chapter or section cited in [start, end) is of.

    ``Public Law 97-377, § 155``, ``Act of May 3, 1890, Chapter 7``, ``26 Stat. 49, ch. 7`` and the other way round,
    ``M.G.L. ch. 40A``.
    """
    law = _ENACTED.search(text, max(0, start - _DOCUMENT_REACH), start) or _STATUTES.match(text, end)
    return law[1].strip() if law else None
