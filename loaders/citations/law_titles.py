"""Laws that a title is the name of: those that a policy document is a text of, or that a policy family is named after.

A title names a law only as a whole: ``Climate Change Act 2008 (c. 27)`` and ``Law 24/2013 on electricity`` do, while
``Climate Change Act 2008 (Amendment) Order 2011``, ``Draft Climate Change Act 2008``, ``Energy Bill 2015`` and ``Rules
under Law 24/2013`` name other documents.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from loaders.citations import jurisdictions
from loaders.citations.act_titles import UNSURE
from loaders.citations.laws import BY_TITLE, Context, LawCitation, find_laws
from loaders.citations.statutes import Law

STATED: Final = "title with its year or number, and jurisdiction"
DATED: Final = "title, year of the date, and jurisdiction"
CONFIDENCES: Final = {STATED: "0.95", DATED: "0.85"}
"""Confidence by method, for a law that one family has the title of."""

_SCHEMES: Final = frozenset(
    {"act", "ordinance", "regulations", "law", "royal-decree-law", "decree-law", "directive", "regulation", "decision"}
)
"""The kinds of laws that their names identify: not bills, and not decrees, whose numbers several authorities give."""
_YEAR: Final = re.compile(r"(?<!\d)(?:1[6-9]|20)\d\d(?!\d)")
_ARTICLE: Final = re.compile(r"(?:The |A |An )?")
_DRAFT: Final = re.compile(r"\b(?:draft|proposed|proposal|exposure|model|preliminary|bill|consultation)\b", re.I)
_AFTER_TITLE: Final = re.compile(
    r"(?:,?\s*[(\[](?:(?:[Aa]ct|ACT|[Ll]aw|[Cc]hapter|[Cc]ap|[Cc]h?|[Ss]|S\.C|[Nn]o|NO|[Nn]umber|of|Coll|RA|[\d./:-]+"
    r"|[A-Z][A-Za-z]*[A-Z][A-Za-z]*)[.,]*\s*)+[)\]])*\.?"
)
"""What may follow the title of an act: its number, chapter or acronym, in brackets."""
_AFTER_NUMBER: Final = re.compile(
    r"(?:\s*\([^()]*\))?(?:,?\s+(?:of\s+\d|on|for|to|about|concerning|regarding|relating|laying|establishing|approving"
    r"|creating|promoting|providing|regulating|governing|amending)\b.*|\s*[:\u2013\u2014-]\s.*|,\s.*)?",
    re.S,
)
"""What may follow the number of a law: its date and its subject."""
_ABOUT_IT: Final = re.compile(
    r"\b(?:implementing|implementation|guidelines?|explanatory|memorandum|reviews?|reports?|summary|transposing)\b"
    r"|\band\s+(?:its\s+|the\s+|related\s+|accompanying\s+|implementing\s+)*"
    r"(?:amendments?|regulations?|rules?|orders?|decrees?|laws?|acts?|directives?)\b",
    re.I,
)
"""Words with a law's number in titles of texts about it, or of several laws."""
_SEVERAL: Final = re.compile(r"(?:Directive|Regulation|Decision|Law)s\b")
_EUROPEAN: Final = ("directive", "regulation", "decision")


class TitledLaw(NamedTuple):
    """A law that a title is the name of."""

    law: Law
    name: str
    """The title of the law with its year, or its number."""
    method: str


@lru_cache(maxsize=20_000)  # a commit asks about the titles of its families several times
def find_titled_law(title: str, jurisdiction: str | None, year: int | None) -> TitledLaw | None:
    """Find the law that a title in one line is the name of, for a document of one jurisdiction.

    A title without a year is that of an act of `year`, the year of the document.
    """
    if jurisdiction is None or not title or _DRAFT.search(title):
        return None
    context = Context(jurisdiction, year)
    if _YEAR.search(title):
        return next(
            (_name(each, STATED) for each in find_laws(title, context) if _is_whole(title, each, context)), None
        )
    if year is None:
        return None
    dated = f"{title} {year}"
    named = (each for each in find_laws(dated, context) if each.method == BY_TITLE and _is_whole(dated, each, context))
    return next((_name(each, DATED) for each in named), None)


def _name(found: LawCitation, method: str) -> TitledLaw:
    if found.law is None:
        raise TypeError(f"{found.title} has no known jurisdiction")
    return TitledLaw(found.law, found.title, method)


def _is_whole(title: str, found: LawCitation, context: Context) -> bool:
    """Whether the whole of a title is the name of `found`, a law of the jurisdiction of the document or within it."""
    law, end = found.law, max(found.end, found.whole)
    if law is None or found.confidence <= UNSURE or law.scheme not in _SCHEMES:
        return False
    if context.jurisdiction not in (law.jurisdiction, jurisdictions.country_of(law.jurisdiction)):
        return False
    if found.method == BY_TITLE:
        return bool(_ARTICLE.fullmatch(title, 0, found.start) and _AFTER_TITLE.fullmatch(title, end))
    if _ABOUT_IT.search(title):
        return False
    if _SEVERAL.match(title, found.start):
        return False
    if law.scheme in _EUROPEAN and title[: found.start].endswith("(") and title.endswith(")"):
        return True  # "Cogeneration (Directive 2004/8/EC on the promotion of cogeneration)"
    return bool(_ARTICLE.fullmatch(title, 0, found.start) and _AFTER_NUMBER.fullmatch(title, end))
