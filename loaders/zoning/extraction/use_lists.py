"""Lists of uses: the headings and sentences that give them a level, in closed form, and their items.

An item is the name of a use, its conditions, and the districts that it is limited to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from loaders.zoning.extraction import districts as naming
from loaders.zoning.extraction.districts import District
from loaders.zoning.extraction.measures import find_measures
from loaders.zoning.extraction.permission_levels import NOT, Level, find_review, is_conditional, level_of
from loaders.zoning.extraction.section_scope import parse_scope

_SENTENCES: Final = re.compile(
    r"(?<=[a-z0-9)\]”\"]{2})[.](?= +[A-Z(“\"])(?<!\bSec\.)(?<!\bNo\.)(?<!\betc\.)(?<!\bArt\.)"
)
VERB: Final = re.compile(
    r"(?i)\b(?:shall|must|may|will|can|cannot|should|is|are|was|were|has|have|had|does|do|applies|apply|means|requires?"
    r"|needs?)\b",
)
BEGINS_NO_USE: Final = re.compile(
    r"(?i)(?:no|not|none|by|upon|such|the following|these|those|this|that|when|where|if|provided|except|unless|see|as"
    r"|in|on|for"
    r"|within|minimum|maximum|min|max|each|every|one (?:of|per|for)|all (?:other|such|of)|any (?:other|such|of|and all)"
    r"|other|others|(?:all |any )?uses?|section|article|chapter|table|note|figure|page|subject|only|up to|at least"
    r"|more|less|fewer"
    r"|to|and|or|but|also|including|same|similar|reserved|repealed|deleted|n/a|ord|ordinance|amended|added)\b(?!-)|[^A-Za-z]",
)
_ANY_USE: Final = re.compile(
    r"(?i)\b(?:uses?|activities)(?: of (?:land|right))?,? (?:(?:that|which|as) )?(?:(?:is|are|is first|are first) )?"
    r"(?:permitted|allowed|listed|specified|authorized|set forth|enumerated|described|similar|of (?:a|the) same)\b"
    r"|\b(?:permitted|allowed|listed|first permitted)\b[^.;]{0,40}\b(?:districts?|zones?|sections?|above|article"
    r"|chapter)\b"
    r"|\bsimilar (?:to|uses?|in)\b|\buses?(?: and \w+)? not\b|\b(?:permitted|conditional|special|prohibited) uses?\b",
)
"""A reference to the uses of another place, or to uses like those listed."""
_PAGE: Final = re.compile(r"\.{3,}|[….] ?\d{1,4}$|(?<=[a-z]) \d{1,4}(?:[-–,] ?\d{1,4})*$")
_CITED_LAST: Final = re.compile(
    r"(?i)\b(?:sections?|chapters?|articles?|parts?|titles?|tables?|divisions?) [\d.-]{1,12}(?:,? (?:and|or|through"
    r"|to) [\d.-]{1,12})?$",
)
_SECOND_LABEL: Final = re.compile(r"(?<!\d)[.;,] ?\(?\d{1,2}[.)] ?[A-Z]|[.;,] (?:\(?[a-z]|[A-Z])[.)] [A-Z]")
"""The label of another item in an item, of two joined lines or columns: ``Inns. 7. Substations``."""
EXCEPTS: Final = re.compile(
    r"(?i)\b(?:except(?:ing|ed)?|excluding|other than|but not|but only|unless|excluded|exclusive of)\b"
)
DIMENSION: Final = re.compile(
    r"(?i)\b(?:lot (?:size|area|width|depth|coverage|frontage)|(?:building )?heights?|setbacks?"
    r"|(?:front|side|rear|required|corner) yards?|frontage|coverage|densit(?:y|ies)|floor area(?: ratio)?|size)s?$",
)
UNITS: Final = frozenset(("FT", "FT2", "AC", "M", "M2", "MI", "MI2", "IN", "HA", "PERCENT", "storey", "DEG"))
CUT: Final = re.compile(
    r"(?i)[,;]? ?(?=\((?!\d{1,2}\)|s\)|es\)))|[,;]?(?: -+| [–—]+)? (?=(?:provided|subject to|as (?:regulated|permitted"
    r"|described|defined"
    r"|set forth|provided|required|specified|approved|limited|authorized|governed|listed|per|outlined|prescribed|an?"
    r"|accessory|part of)\b|in (?:accordance|conformance|compliance|conformity|conjunction|connection"
    r"|association)\b|pursuant|if\b|only\b|so long as|as long as|not"
    r" (?:to )?(?:exceed\w*|more|less|over|including|involving)|not\b|with(?:out)? (?:no|not|up)\b|having\b"
    r"|limited to|up to|at least|(?:no |not )?(?:more|less|fewer|greater)"
    r" than|includ(?:ing|es)\b|such as\b|but\b|see\b|per\b(?! lot\b)|under \d|over \d|containing|consisting|which\b"
    r"|that\b|who\b|whose\b|upon\b|where\b|when\b|provided\b|accessory to\b|incidental to\b|located\b|conducted\b"
    r"|(?:for|in|on|of) (?:not|no|up to|at least|more|less|fewer) |on (?:an? |the )?(?:lots?|parcels?|tracts?|sites?)\b"
    r"|within\b|for (?:an?|the) period))|: (?=\S)",
)
MEMBERS: Final = re.compile(
    r"(?i)\W{0,9}(?:including|includes|such as|e\.g\.|i\.e\.|namely|like|for example|etc)\b(?! but only| only)",
)
LIMITS: Final = re.compile(
    r"(?i)\b(?:shall|must|only|not|no|provided|subject|regulated|limited|accordance|pursuant|conducted|enclosed|requir\w+"
    r"|prohibit\w*|unless|when|where|if|within|compliance|see|section|chapter|article|sec|defined|described|conform\w*"
    r"|accessory|incidental|approv\w+|permit\w*|may|minimum|maximum|per|under|standards|conditions?|days?|hours?)\b|§",
)
_HEAD_END: Final = re.compile(
    r"(?i)\b(?:standards?|requirements?|regulations?|review|criteria|findings?|procedures?|purpose|intent|provisions"
    r"|restrictions|limitations|applications?|conditions?)$",
)
_ONLY_IN: Final = re.compile(
    rf"[(,]? ?(?:(?:permitted |allowed )?(?:only )?in (?:the )?)?"
    rf"(?P<codes>{naming.CODE}(?:(?:,? (?:and|or|&) |, ){naming.CODE}){{0,20}}) "
    r"(?i:zones?|districts?)(?P<only> only)?\)?"
)
_IN_PLACE: Final = re.compile(
    rf"In (?:the |an? |all )?(?P<codes>{naming.CODE}(?:(?:,? (?:and|or|&) "
    rf"|, ){naming.CODE}){{0,20}})(?:[ -](?i:zoning )?(?i:districts?|zones?))(?: only)?(?: ?[:,]| ?[–—-]) ?"
)
PLACE_WORD: Final = re.compile(r"(?i)\b(?:districts?|zones?)\b")
_SEMICOLON: Final = re.compile(r"; ?(?:(?:and|or|and/or) )?")
_COMMA: Final = re.compile(r",? (?:and|or) (?=[^,]{0,300}$)|, ?")
_PLURAL: Final = re.compile(r"(?i)[a-z]{2,}(?<![su])s|agriculture|forestry|horticulture|farming")
HISTORY_NOTE: Final = re.compile(r" ?[(\[](?:Ord\b|Ordinance|Added|Amended|Prior code)[^\n]{0,400}+$")
_ENDS: Final = " ;,."
_WORDS_OF_NAME: Final = 24
LONGEST_ITEM: Final = 3_000
_SEE: Final = re.compile(r"(?i)\(? ?(?:see|cf)\b[^();]*+(?:\([^()]*\)[^();]*+)*\)?\W*")
"""A reference that limits nothing: ``(see § 3-2)``."""
_COMPARES: Final = re.compile(r"(?i)(?:no|not|up to|less|more|fewer|greater|at least|limited to)\b")
_DANGLING: Final = re.compile(r"(?i),? (?:with|having|of|on|for) (?:an? |the )?[\w-]+$")
_BRACKET: Final = re.compile(r"\([^()]{2,60}\)")
_CITED_WITHIN: Final = re.compile(
    r"(?i)(?P<cited>as (?:regulated|described|provided|defined|specified|set forth|permitted|required)\b"
    r"[^,;]{0,80}?\d[\w.()-]*+"
    r"(?: of (?:this|the) [^,;.]{2,60}?\b(?:code|ordinance|chapter|title|article|resolution|bylaws?))?),? and "
    r"(?!(?:(?:sections?|chapters?|articles?|provided|subject|as|in|with|shall|if|when|where|only|not)\b|[\d§(]))"
    r"[^.;]+",
)
"""A reference in the middle of an item, with another use behind it: ``as regulated in Chapter 50, and flag poles``."""
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


def parse_item(
    text: str, start: int, end: int, known: Mapping[str, District]
) -> tuple[str, list[str], Sequence[str] | None] | None:
    """Parse an item into use, conditions and the districts that it is limited to. None if it is not a fact."""
    words = text[start:end].strip()
    if len(words) > LONGEST_ITEM:
        return None
    only: Sequence[str] | None = None
    if match := _IN_PLACE.match(words):
        only = naming.codes_in_title(match["codes"], known)
        words = words[match.end() :].strip()
        if not only:
            return None
    elif match := _ONLY_IN.search(words):
        only = naming.codes_in_title(match["codes"], known)
        if not only:
            return None
        if not match[0].strip().startswith("("):  # "(R-2 District only)" is a condition
            words = f"{words[: match.start()]} {words[match.end() :].lstrip()}".strip()
    whole = strip_closing(words)
    name, *others = sentences_of(whole)
    if (
        EXCEPTS.search(name)
        or (_PAGE.search(whole) and not _CITED_LAST.search(whole))
        or level_of(name) == "notPermitted"
        or _SECOND_LABEL.search(whole)
    ):
        return None
    if any(each.unit in UNITS for each in find_measures(whole)):
        return None
    cut = next((each for each in CUT.finditer(name) if each.start() > 2), None)
    if (
        cut
        and (bracket := _BRACKET.match(name, cut.end()))
        and (not LIMITS.search(bracket[0]) or re.match(r" (?:and|or)\b|,", name[bracket.end() :]))
    ):
        cut = next((each for each in CUT.finditer(name, bracket.end())), None)
    use = strip_closing(name[: cut.start()] if cut else name).strip(" ,:–—-")
    rest = name[cut.end() :].strip() if cut else ""
    if cut and cut[0].startswith(":") and not LIMITS.search(rest):
        return None  # "Residential: lofts": whether the group or a member is the use is not known
    if _COMPARES.match(rest) and (held := _DANGLING.search(use)):  # "Substations with a capacity not greater than"
        use, rest = use[: held.start()], name[held.start() :].strip(" ,")
    within = None if VERB.search(rest) else _CITED_WITHIN.fullmatch(rest)
    rest = within["cited"] if within else rest
    if not _is_use(use) or _ANY_USE.search(name):
        return None
    if not only and PLACE_WORD.search(whole):
        return None
    if use.count("(") != use.count(")"):
        return None
    conditions = [rest] if rest and (not MEMBERS.match(rest) or LIMITS.search(rest)) else []
    conditions += [each for each in others if LIMITS.search(each)]
    conditions = [each for each in conditions if not _SEE.fullmatch(each)]
    return (
        strip_closing(name) if within else use,
        [each.strip(" ,;.") for each in conditions],
        only,
    )


def _is_use(use: str) -> bool:
    """Whether some words are the name of a use."""
    number = len(use.split())
    if number > _WORDS_OF_NAME or not re.search(r"[A-Za-z]{3}", use) or VERB.search(use):
        return False
    return not (
        (BEGINS_NO_USE.match(use) and not re.match(r"\d(?:[- ]family|-unit)|[“\"]", use))
        or DIMENSION.search(use)
        or _HEAD_END.search(use)
        or re.search(r"\bArticle\b|\bSection\b|§|\bOrd(?:inance)?\b|\d{3}", use)
    )


def split_sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the offsets of the sentences in [start, end) of a text."""
    at = start
    for stop in _SENTENCES.finditer(text, start, end):
        yield at, stop.end()
        at = stop.end()
    if text[at:end].strip():
        yield at, end


def sentences_of(words: str) -> list[str]:
    """Split words into their sentences, without white space around them."""
    return [words[first:last].strip(" .") for first, last in split_sentences(words, 0, len(words))] or [words]


def split_inline(text: str, start: int, end: int) -> Sequence[tuple[int, int]]:
    """Split a list in a line at semicolons, or at commas if all members are plain plural nouns."""
    words = text[start:end]
    stop = len(strip_closing(words))
    if re.search(r"\. (?=[A-Z])", words[:stop]) or words.rstrip().endswith(":"):
        return []
    pattern = _SEMICOLON if ";" in words[:stop] else _COMMA
    spans, at = list[tuple[int, int]](), len(words) - len(words.lstrip())
    for match in [*pattern.finditer(words, 0, stop), None]:
        last = match.start() if match else stop
        if words[at:last].strip():
            spans.append((start + at, start + last))
        at = match.end() if match else stop
    members = [text[first:last] for first, last in spans]
    if any(VERB.search(each) or BEGINS_NO_USE.match(each) for each in members):
        return []
    if pattern is _COMMA and len(spans) > 1 and not all(_is_plain_noun(each) for each in members):
        return []
    return spans if len(spans) > 1 or len(words.split()) <= 12 else []


def strip_closing(words: str) -> str:
    """Strip the punctuation at the end of an item, and the conjunction before the next one."""
    words = words.rstrip(_ENDS)
    for conjunction in (" and", " or"):
        words = words.removesuffix(conjunction).rstrip(_ENDS)
    return words


def _is_plain_noun(words: str) -> bool:
    names = re.split(r" (?:of|for|in|on|with|from|at|by|to) ", words, maxsplit=1)[0].split()
    return 0 < len(words.split()) <= 5 and bool(names) and _PLURAL.fullmatch(names[-1].split("-")[-1]) is not None


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
