"""Laws that a title names as that of its document or policy family, for two questions.

`find_titled_law` finds the law that a document is, to link them: the title names it as a whole. ``Climate Change Act
2008 (c. 27)`` and ``Law 24/2013 on electricity`` do, while ``Climate Change Act 2008 (Amendment) Order 2011``, ``Draft
Climate Change Act 2008``, ``Energy Bill 2015`` and ``Rules under Law 24/2013`` name other documents.

`find_own_laws` finds the laws that a document does not cite, since it is these laws or may be: those, and more that
its titles name, such as bills, and laws without a link because their names have no year or number.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from loaders.citations import jurisdictions
from loaders.citations.act_titles import UNSURE
from loaders.citations.laws import BY_NUMBER, BY_TITLE, Context, LawCitation, find_laws
from loaders.citations.statutes import Law
from loaders.readers.cells import to_slug

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
    r"(?:,?\s*+[(\[](?:(?:(?:[Aa]ct|ACT|[Ll]aw|[Cc]hapter|[Cc]ap|[Cc]h?|[Ss]|S\.C|[Nn]o|NO|[Nn]umber|of|Coll|RA)(?![A-Za-z])"
    r"|[\d./:-]++|[A-Z](?=[a-z]*+[A-Z])[A-Za-z]++)[.,]*+\s*+)++[)\]])*+\.?"
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

_BEFORE_OWN: Final = re.compile(r"(?:The |A |An )?(?:Commission |Council )?(?:Implementing |Delegated )?")
_CONTAINED: Final = re.compile(r"\b(?:contain|compris|includ|consist)\w*\b[^()]*$", re.I)
_LISTED: Final = re.compile(r"(?:,|;|\s+and)\s+(?:and\s+)?")
_SHORT_TITLE: Final = re.compile(
    r"(?:The\s++)?(?P<name>.+?\b(?:Act|Ordinance|Regulations))s?(?=\s*(?:$|[(\[,;-]|No\b|Number\b|RA\b|\d))"
)
"""The name of an act in the title of a document, before its number."""
_NAME_OF_ACT: Final = re.compile(r"(?P<name>.+?)(?: \(No[^()]*\))? (?P<year>(?:1[6-9]|20)\d\d)\b.*", re.DOTALL)
_KINDS: Final = re.compile(
    r"(?:The |A |An )?(?P<kind>Royal Decree[- ]Law|Royal Decree|Decree[- ]Law|Law)\b(?!\W*(?:[Nn]|\d))"
)
"""The kind of a law at the beginning of a title that does not have its number."""
_NUMBER_AND_YEAR: Final = re.compile(r"(?<![\d/.-])\d{1,5}/(?:1[89]|20)\d\d(?![\d/])")
_RELATION: Final = re.compile(
    r"\b(?:amend|repeal|replac|revok|transpos|implement|supplement|contain|includ|regulated|pursuant|under|based)", re.I
)
"""Words after which a title names other laws."""
_IN_BRACKETS: Final = re.compile(r"(?:(?<!\s)\s++)?\([^()]*+\)\s*+$")
_OF_ANOTHER: Final = re.compile(
    r"\W{0,40}(?:\([^()]*+\)\W{0,40})?(?:[Aa]mendments?|Amending|Consequential|Regulations?|Rules?|Orders?|Bill|Act|Implement\w+"
    r"|Guidelines?|Reviews?|Reports?)\b"
)
"""Words after the name of a law in the title of another document."""


@lru_cache(maxsize=20_000)  # both questions are asked about the titles of each record
def _find_laws(title: str, context: Context) -> Sequence[LawCitation]:
    return find_laws(title, context)


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
            (_name(each, STATED) for each in _find_laws(title, context) if _is_whole(title, each, context)), None
        )
    if year is None:
        return None
    dated = f"{title} {year}"
    named = (each for each in _find_laws(dated, context) if each.method == BY_TITLE and _is_whole(dated, each, context))
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


@dataclass(frozen=True, slots=True)
class OwnLaws:
    """The laws that a document is itself by its titles, or may be."""

    laws: Collection[Law] = ()
    numbers: Collection[str] = ()
    """Numbers that the titles give it: ``123/2012`` of ``Gas Law no. 123/2012``."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Titles by the names of the acts in them."""
    kinds: Collection[str] = ()
    """Kinds of laws that titles begin with, without their numbers."""
    years: Collection[int] = ()
    """Years of the document."""

    def has(self, cited: LawCitation) -> bool:
        """Whether the document is the law that is cited."""
        if cited.law is not None and cited.law in self.laws:
            return True
        return cited.method == BY_NUMBER and cited.title.rpartition(" ")[2] in self.numbers

    def may_have(self, cited: LawCitation) -> bool:
        """Whether the document may be the law that is cited, or an earlier one of its name: a claim is not sure.

        ``Energy Act`` may be the ``Energy Act 2001`` that its text names, and ``Royal Decree on the climate office`` of
        2011 the ``Royal Decree 1886/2011``.
        """
        if cited.law is None:
            return False
        if cited.method == BY_NUMBER:
            year = cited.title.rpartition("/")[2]
            return cited.law.scheme in self.kinds and year.isdigit() and int(year) in self.years
        named = _NAME_OF_ACT.fullmatch(cited.title) if self.names else None
        title = self.names.get(_to_name(named["name"])) if named else None
        if named is None or title is None:
            return False
        stated = _YEAR.findall(title)
        return not stated or named["year"] in stated


NO_LAWS: Final = OwnLaws()


def find_own_laws(titles: Collection[str], years: Collection[int], context: Context) -> OwnLaws:
    """Find the laws that a document with these titles is itself, or may be.

    ``Law 24/2013 on electricity`` and ``Energy labelling (Directive 2010/30/EU)`` are these laws, and a document of
    2015, ``Energy Act``, is the ``Energy Act 2015``; ``Finance Act 1992 (Amendment) Regulations`` are not. The number
    of ``Decree 17/2015 amending Law 8/1997`` is the first.
    """
    numbers: set[str] = set()
    names: dict[str, str] = {}
    kinds: set[str] = set()
    lines = {" ".join(title.split()) for title in titles}
    for line in lines:
        relation = _RELATION.search(line)
        numbers.update(_NUMBER_AND_YEAR.findall(line, 0, relation.start() if relation else len(line)))
        if named := _SHORT_TITLE.match(line):
            names[_to_name(named["name"])] = line
        if kind := _KINDS.match(line):
            kinds.add(to_slug(kind["kind"]))
    return OwnLaws({*_find_named(lines, context)}, numbers, names, kinds, frozenset(years))


def _find_named(lines: Collection[str], context: Context) -> Iterator[Law]:
    """Yield the laws that titles in one line name as those of their document."""
    for line in lines:
        if (titled := find_titled_law(line, context.jurisdiction, context.year)) is not None:
            yield titled.law
    dated = () if context.year is None else (f"{_IN_BRACKETS.sub('', line)} {context.year}" for line in lines)
    for title in {*lines, *dated}:
        before: LawCitation | None = None
        for each in _find_laws(title, context):
            listed = before is not None and _LISTED.fullmatch(title, max(before.end, before.whole), each.start)
            before = each if listed or _is_own(title, each) else None
            if before is not None and each.law is not None:
                yield each.law


def _is_own(title: str, law: LawCitation) -> bool:
    """Whether a title names `law` as that of its document: at its beginning, or by a number in brackets."""
    begins = _BEFORE_OWN.fullmatch(title, 0, law.start) is not None
    before = title[: law.start]
    bracketed = law.method != BY_TITLE and (before.endswith("(") or _CONTAINED.search(before) is not None)
    return (begins or bracketed) and _OF_ANOTHER.match(title, max(law.end, law.whole)) is None


def _to_name(text: str) -> str:
    return to_slug(text.removeprefix("The "))
