"""Headings and sentences that give a level to the list of uses below them, in closed form."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from loaders.zoning.extraction import districts as naming
from loaders.zoning.extraction.districts import District
from loaders.zoning.extraction.permission_levels import NOT, Level, find_review, is_conditional, level_of
from loaders.zoning.extraction.section_scope import parse_scope
from loaders.zoning.extraction.use_items import VERB

_WORD: Final = (
    r"(?:un)?(?:permitted|allowed|allowable|prohibited|permissible)|not|conditional(?:ly)?|special|specific|limited"
    r"|principal|primary|main|accessory|temporary|incidental|land|uses?|buildings?|structures?|activities|exceptions?"
    r"|permits?|required|requiring|subject|to|by|as|of|right|on|upon|with|under|only|review|approval|issuance"
    r"|authorized|conditions?|standards?|site|plan|zoning|board|planning|commission|city|council|and|or|and/or|the|an?"
    r"|general|matter|administrative|outright|additional|other|use-by-right|discretionary|provisional|interim|which"
    r"|are|may|be|shall|require"
)
HEADING: Final = re.compile(rf"(?i)(?:(?:{_WORD})(?:[,/&]|(?=[ -]|$)))(?:[ -]?(?:{_WORD}|&)(?:[,/]|(?=[ -]|$)))*+")
OF_USES: Final = re.compile(
    r"(?i)\b(?:uses?|activities|exceptions?|structures|buildings|permitted|right)\b"
    r"|^(?:conditional|prohibited)$"
)
_REPEALED: Final = re.compile(r"(?i)\b(?:repealed|deleted)\b")
_ASIDE: Final = re.compile(r" ?[(\[][^()\[\]]{0,200}[)\]]")
_RESTRICTED: Final = re.compile(r" ?(?:[-–—:,(]|\b(?=on|above|below|within|in)\b) ?(?P<rest>\S.{2,120})")
_IN_DISTRICT: Final = re.compile(
    r"(?i)\b(?:in|within|for|of) (?:(?:the|an?|any|all|each"
    r"|this) )?(?P<place>(?:[\w./&-]+,? ){0,9}?(?:districts?|zones?)\b"
    rf"(?: ?\([\w-]{{1,10}}\))?|{naming.CODE}(?:(?:,? (?:and|or|&) |, ){naming.CODE}){{0,20}}(?=$|[:,]))",
)
_MIXED: Final = re.compile(
    r"(?i)\b(?:permitted|by right|principal|conditional|special|prohibited|accessory)(?: uses?| exceptions?)?"
    r"(?:,? and/or |, | and |/| or | & )(?:permitted|conditional|special|prohibited)\b",
)
_KINDS_OF_USES: Final = re.compile(
    r"(?i)(?:(?:principal|primary|main|accessory|temporary|and|or|land|buildings|structures|uses?)\W*)+"
)
_PROCEDURE: Final = re.compile(r"(?i)(?:(?:special|conditional|administrative|use|the|an?|and|or)\W+)+permits?")
"""A heading about permits, and not about the uses that need one."""
ACCESSORY: Final = re.compile(r"(?i)\b(?:accessory|temporary|incidental)\b")
_ACCESSORY_USES: Final = re.compile(r"(?i)(?:permitted )?accessory\b")
NOT_USES: Final = re.compile(
    r"(?i)\b(?:bulk|dimension\w*|yards?|heights?|setbacks?|area regulations|lot (?:area|size|width)s?|coverage|density"
    r"|parking|loading|signs?|signage|landscap\w+|screening|buffer\w*|lighting|fences?|definitions?|purposes?|intent"
    r"|objectives?|procedures?|applications?|administration|enforcement|nonconform\w+|amendments?|appeals?|variances?"
    r"|fees?|penalt\w+|violations?|findings?|criteria|performance|design|streets?|utilities|projections?"
    r"|encroachments?|projects? into|index|contents|supplement\w*|(?:development|area|site|general) standards"
    r"|regulations|restrictions|requirements|provisions|limitations|guidelines)\b",
)
"""Words of headings whose lists are not of uses."""
ANNOUNCES: Final = re.compile(
    r"(?i)\b(?:following|as follows|below|hereinafter (?:set forth|listed)|herein(?:after)?|the uses:|these uses)\b"
)
_ABOUT_USES: Final = re.compile(r"(?i)\b(?:uses?|used|activities|purposes?|occupied|special exceptions?)\b")
_OTHER_LIST: Final = re.compile(
    r"(?i)\bfollowing (?:[\w-]+ ){0,3}?(?:standards?|conditions?|requirements?|regulations?|restrictions?|limitations?"
    r"|terms"
    r"|signs?|criteria|provisions?|information|factors?|findings?|definitions?|documents?|procedures?|words?|items?"
    r"|districts?|zones?|yards?|setbacks?)\b|\b(?:yards?|setbacks?|signs?|fences?|heights?|encroach\w*|projections?"
    r"|nonconforming|definitions?|parking)\b",
)
"""A sentence that announces a list of something else than uses."""
FOLLOWING: Final = re.compile(r"(?i)\W*the following\b")
_NO: Final = re.compile(r"(?i)\b(?:no|nor|not|none)\b")
_EXCEPT: Final = re.compile(r"(?i)\b(?:except|other than|but|unless)\b")
_ONLY: Final = re.compile(r"(?i)\bonly\b(?! (?:if|when|where|upon|by|as|after|with|in)\b)|\bno others?\b")
_NO_OTHER: Final = re.compile(r"(?i) ?,? ?\b(?:and|but) no others?(?: uses?)?\b")
_PROHIBITS: Final = re.compile(
    r"(?i)\b(?:are|is|be|being)(?: \w+)? prohibited\b|\b(?:are|is|shall) not (?:be )?(?:permitted|allowed)\b"
    r"|\b(?:no|none) of the following(?: uses?)? (?:is|are|shall be) (?:permitted|allowed)\b|^prohibited\b",
)
_PERMITS: Final = re.compile(
    r"(?i)\b(?:permitted|allowed|authorized|by right|approved|may be used|shall be used"
    r"|may be (?:located|established))\b",
)
_MAY_BE: Final = re.compile(r"(?i)\bmay(?: also| only)? be (?:\w+ )?(?:permitted|allowed|authorized|approved)\b")
_APPROVED: Final = re.compile(r"(?i)\b(?:permits?|approv\w+|hearings?|review\w*|authoriz\w+ by|exceptions?)\b")
_NEGATED: Final = re.compile(
    r"(?i)\b(?:no|not|nor|none|never|unless|except(?:ing|ed)?|without|excluding|other than|prohibit\w*)\b"
)
_LEAD_LIMIT: Final = re.compile(
    r"(?i)\b(?:subject to|provided|if\b|when\b|where\b|only (?:if|when|as|in|within)|pursuant to|in accordance"
    r"|as accessory|as (?:part|regulated)|upon\b|in conjunction|within (?:an? )?(?:enclosed|building)|incidental to"
    r"|on lots?)\b[^:]{0,400}",
)


@dataclass(frozen=True, slots=True)
class Lead:
    """The level that a heading or sentence gives to the list below it. Without one, these are not facts."""

    level: Level | None
    raw: str = ""
    conditions: Sequence[str] = ()
    review: str | None = None
    districts: Sequence[str] | None = None
    closes: tuple[int, int] | None = None
    """The sentence that prohibits all other uses."""
    blocked: bool = False
    """Its words give a level that is not understood, so that none above it counts."""


BLOCKED: Final = Lead(None, blocked=True)


def parse_heading(words: str, known: Mapping[str, District]) -> Lead | None:
    """Parse some words as the heading of a list of uses."""
    words = words.strip(" .:")
    if not words or len(words) > 200:
        return None
    plain, districts = _take_place(words, known)
    bare = _ASIDE.sub("", plain).strip(" .:;,")
    match = HEADING.match(bare)
    if match is None or not OF_USES.search(match[0]) or _PROCEDURE.fullmatch(match[0].strip()):
        return None
    if _REPEALED.search(words) or (not districts and _is_elsewhere(words, known)):
        return BLOCKED
    rest = bare[match.end() :]
    conditions: tuple[str, ...] = ()
    if rest:
        limit = _RESTRICTED.fullmatch(rest)
        if (
            limit is None
            or VERB.search(rest)
            or NOT_USES.search(rest)
            or not match[0].strip().casefold().endswith(("uses", "use", "activities", "exceptions"))
        ):
            return None
        conditions = (limit["rest"].strip(" )"),)
    if _MIXED.search(match[0]) or (
        re.search(r"(?i)\bstandards?$|\bconditions?$", match[0])
        and not re.search(r"(?i)\b(?:subject to|with|under)\b", match[0])
    ):
        return None
    level = None if _KINDS_OF_USES.fullmatch(match[0]) else level_of(match[0])
    if ACCESSORY.search(match[0]):
        conditions = (match[0].strip(), *conditions)
    if level is None and _ACCESSORY_USES.match(match[0]):
        level = "byRight"
    review = find_review(plain) if level == "conditional" else None
    return Lead(level, bare, conditions, review, districts)


def _is_elsewhere(words: str, known: Mapping[str, District]) -> bool:
    """Whether some words name a district that is not known: ``in other districts``."""
    place = _IN_DISTRICT.search(words)
    return place is not None and (
        "other" in place[0].casefold()
        or all(parse_scope(each, known) == ("none", ()) for each in place.group(0, "place"))
    )


def _take_place(words: str, known: Mapping[str, District]) -> tuple[str, Sequence[str] | None]:
    """Take the districts that a heading names out of its words."""
    if placed := _IN_DISTRICT.search(words):
        codes = naming.codes_in_title(placed["place"], known)
        plain = f"{words[: placed.start()]} {words[placed.end() :]}".strip(" ,:–—-")
        if plain and (codes or re.search(r"(?i)\b(?:districts?|zones?)\b", placed[0])):
            return plain, codes or None
    return words, None


def parse_sentence(said: str, first: int, last: int, known: Mapping[str, District], *, listed: bool) -> Lead | None:
    """Parse a sentence that announces a list. With `listed`, it is itself in a list of uses."""
    if not (_ABOUT_USES.search(said) or (listed and FOLLOWING.match(said))) or _OTHER_LIST.search(said):
        return None
    kind, codes = parse_scope(said, known) or ("none", ())
    districts = tuple(known) if kind == "all" else codes if kind == "districts" else None
    limit = _LEAD_LIMIT.search(said)
    if limit is not None and ANNOUNCES.search(limit[0][:30]):
        limit = None
    whole = _NO_OTHER.sub("", said)
    plain = whole if limit is None or _APPROVED.search(limit[0]) else whole.replace(limit[0], "")
    if (limit is not None and NOT.search(limit[0])) or (districts is None and _is_elsewhere(said, known)):
        return BLOCKED
    cut = _EXCEPT.search(plain)  # "No building shall be used except for one of the following uses"
    exclusive = cut is not None and _NO.search(plain, 0, cut.start()) and ANNOUNCES.search(plain, cut.end())
    closes = (first, last) if exclusive or _ONLY.search(said) or whole != said else None
    if exclusive:
        level: Level | None = "conditional" if is_conditional(plain) else "byRight"
    elif _PROHIBITS.search(plain):
        if re.search(r"(?i)\b(?:except|unless|other than|but)\b", plain):
            return BLOCKED
        return Lead("notPermitted", said.strip(" .:"), (), None, districts)
    elif not (_PERMITS.search(plain) or is_conditional(plain)):
        return None
    elif _NEGATED.search(plain):
        return BLOCKED
    else:
        level = None if _MIXED.search(plain) else level_of(plain)
        if level is None and re.search(r"\b(?:used|authorized)\b", plain):
            level = "byRight"
        if _MAY_BE.search(plain) and level in ("byRight", "byRightWithConditions"):
            level = "conditional" if _APPROVED.search(_MAY_BE.sub("", plain)) else None
    limited = limit is not None and not (
        level == "conditional" and (_APPROVED.search(limit[0]) or find_review(limit[0]))
    )
    conditions = (limit[0].strip(" .:,"),) if limit and limited else ()
    if level == "byRightWithConditions" and not conditions:
        level = "byRight"
    return Lead(
        level,
        said.strip(" .:"),
        conditions,
        find_review(said) if level == "conditional" else None,
        districts,
        closes,
    )


def settle(lead: Lead, above: Lead | None) -> Lead:
    """The lead of a list below another one. It has no level where the two contradict each other."""
    if above is None or lead.blocked:
        return lead
    outer, level = above.level, lead.level
    conditions = tuple(dict.fromkeys((*lead.conditions, *above.conditions)))
    made = replace(
        lead,
        conditions=conditions,
        districts=lead.districts or above.districts,
        closes=lead.closes or above.closes,
        review=lead.review or above.review,
    )
    if level is None:
        raw = (
            f"{above.raw}: {lead.raw}"
            if lead.raw and above.raw and lead.raw not in above.raw
            else above.raw or lead.raw
        )
        return replace(made, level=outer, raw=raw)
    if outer is None:
        return replace(made, level=None) if NOT_USES.search(above.raw) and not above.closes else made
    if outer == "notPermitted" and level != "notPermitted":
        return replace(made, level=None)
    if outer == "conditional" and level in ("byRight", "byRightWithConditions"):
        return replace(made, level="conditional", raw=lead.raw)
    if level in ("conditional", "notPermitted") and outer != level:
        return replace(made, closes=lead.closes)
    return made
