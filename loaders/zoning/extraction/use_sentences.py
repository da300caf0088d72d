"""Uses in sentences, such as ``A duplex may be allowed by special permit in the R-2 district.``, and in lists on one
line.

The use is the subject of a sentence, a noun phrase. A sentence that does not parse to its end is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from loaders.zoning.extraction import districts as naming
from loaders.zoning.extraction.districts import District
from loaders.zoning.extraction.permission_levels import CONDITIONAL, Level, find_review, level_of

_SAYS: Final = re.compile(r"\b(?:permitted|allowed|authorized|prohibited|forbidden)\b")
_KIND: Final = r"(?i:districts?|zones?)\b"
_FIRST: Final = re.compile(rf"(?P<where>(?:In|Within) (?:(?:the|all|any|each|every|this) )?[^;:.]{{1,120}}?{_KIND}), ?")
_STATEMENT: Final = re.compile(
    r"(?:(?P<no>[Nn]o) |(?:[Aa]n?|[Tt]he|[Aa]ny|[Ee]ach|[Ee]very) )?(?P<use>[A-Za-z][^.;:\n]{2,80}?)"
    r" (?P<verb>(?P<modal>is|are|may|shall|will|must)(?: also)?(?: not)?(?: only)?(?: be)?"
    r"(?: (?:expressly|hereby|only|specifically|strictly))? (?:permitted|allowed|authorized|prohibited|forbidden))"
    r"(?P<tail>(?:[^.;:\n]|\.(?=\S)){0,300})(?:\.(?= |\n|$)|;|$)"
)
_HOW: Final = re.compile(
    r",? (?P<how>(?:only )?(?:(?:by|as|upon|with|on|through|under|after|subject to)(?: only)?"
    r"(?: (?:the )?(?:issuance|approval|granting|grant|receipt) of)?(?: an?| the)? "
    r"(?:right|matter of right|of right|(?:(?:conditional|special|specific|permitted|principal|primary|accessory)"
    r"(?: land)?(?: uses?)?(?: exceptions?| permits?| approval)?)|use permits?|conditions)|conditionally))\b"
    r"(?: (?:from|of|by|granted by|issued by) the [A-Za-z ]{3,50})?"
)
_WHERE: Final = re.compile(
    rf",? (?P<where>(?:only )?(?:in|within) (?:the |this |any |all |each |every |an? )?[^.;:]{{1,160}}?{_KIND})"
)
_CONDITIONS: Final = re.compile(
    r",? ?\(?(?:if|provided|when|where|with|subject to|pursuant to|under|in accordance with|so long as)\b|[ ]?\("
)
_OF_KIND: Final = re.compile(
    r"(?:only )?(?:in|within) (?:any|all|each|every) (?P<kind>residential|residence|commercial|industrial"
    r"|agricultural|business) (?:zoning )?(?:districts?|zones?)",
    re.IGNORECASE,
)
_KINDS: Final = re.compile(
    r"\b(?:residential|residence|commercial|industrial|agricultural|business|office|mixed|institutional|public)\b",
    re.IGNORECASE,
)
_NO_USE: Final = re.compile(
    r"\b(?:it|they|this|that|these|those|such|same|said|following|other|others|which|who|whom|whose|one(?!-)|ones|none|there"
    r"|nothing|anything|what|he|she|you|we|no|not|person|persons|people|owner|owners|applicant|applicants"
    r"|is|are|was|were|be|been|has|have|had|shall|must|may|will|can|does|do|means?|includes?|if|when|where|unless"
    r"|except|however|therefore|more|less|fewer|than|however|also|otherwise|furthermore|additionally"
    r"|notwithstanding|provided|approved|permitted|allowed|authorized|prohibited|listed|required|nonconforming|above|below|hereby|herein|to)\b|\d",
    re.IGNORECASE,
)
"""Words that a noun phrase for a use does not contain: pronouns, verbs, people, numbers."""
_NO_FIRST: Final = re.compile(
    r"(?:in|within|on|for|as|at|by|from|under|and|or|but|nor|each|any|all of|some|certain|limited|only)\b",
    re.IGNORECASE,
)
_NO_HEAD: Final = frozenset(
    re.findall(
        r"\w+",
        "signs sign signage fence fences fencing wall walls hedge hedges tree trees shrub shrubs plant plants "
        "planting plantings landscaping lighting lights light awning awnings canopy canopies banner banners "
        "flag flags window windows door doors roof roofs material materials color colors driveway driveways "
        "curb curbs cut cuts access parking space spaces stall stalls area areas entrance entrances yard "
        "yards lot lots parcel parcels building buildings structure structures height heights setback "
        "setbacks encroachment encroachments projection projections exception exceptions variance variances "
        "deviation deviations waiver waivers modification modifications adjustment adjustments reduction "
        "reductions increase increases extension extensions expansion alteration alterations change changes "
        "development developments subdivision subdivisions construction grading excavation fill grade grades "
        "slope slopes street streets road roads sidewalk sidewalks traffic vehicle vehicles truck trucks "
        "discharge emission emissions smoke noise odor odors dust glare vibration display displays "
        "merchandise goods outlet equipment density densities unit units permit permits approval approvals "
        "application applications amendment amendments transfer transfers credit credits fee fees combination "
        "combinations occupancy hours operation operations activity activities district districts zone zones "
        "item items matter matters sale sales time times method methods number width length depth design "
        "designs type types work accessories element elements feature features product products antenna "
        "antennas neighborhood neighborhoods project projects plan plans plat plats surface surfaces facade "
        "facades siding rooflines carpet turf condition conditions limits standards connection connections "
        "water sewer person persons delivery deliveries solicitation advertising dumping feeding hunting "
        "reconstruction restoration repair repairs replacement conversion conversions maintenance demolition "
        "enlargement relocation renovation remodeling rebuilding continuation resumption division deck decks "
        "porch porches balcony balconies patio patios stairs eaves smoking camping entry wire metal concrete "
        "block blocks brick vinyl glass stucco plastic wood link lane lanes speaker speakers loudspeakers "
        "music sound neon paint graffiti mulch gravel asphalt pavement paving splits gate gates bonus bonuses "
        "coverage story stories floor floors",
    )
)
"""Last words of noun phrases that are not land uses: parts of a site, actions, documents."""
_ONLY: Final = re.compile(r"\bonly\b")
_VAGUE: Final = re.compile(
    r"(?:(?:additional|similar|comparable|related|compatible|new|various|specific|conditional|special"
    r"|unlisted|all|land) )*"
    r"uses?",
    re.IGNORECASE,
)
"""Noun phrases for an unspecified use."""
_DWELLING: Final = re.compile(r"\b(?:dwelling|living) (?:units?|buildings?)$", re.IGNORECASE)
_JOINED: Final = re.compile(r" (?:of|for|in|on|with|from|at|by|within|along|without|serving|containing|under) ")
_MODAL: Final = re.compile(r"(?:is|are|may|shall|will|must)(?: also)?(?: only)? (?:be )?|(?<=not )be ")
_WORDS: Final = 8


@dataclass(frozen=True, slots=True)
class Statement:
    """A use, and the statement of the sentence [start, end) about it."""

    use: str
    """Verbatim, without its article."""
    level: Level
    raw: str
    """The words for the level."""
    conditions: Sequence[str]
    review: str | None
    districts: Sequence[str] | None
    """The districts that the sentence names. None if it names none."""
    start: int
    end: int


def find_statements(text: str, start: int, end: int, known: Mapping[str, District]) -> Iterator[Statement]:
    """Yield the permissions and prohibitions in the sentences in [start, end) of a text. `known` are the districts."""
    if not _SAYS.search(text, start, end):
        return
    for at, stop in _split(text, start, end):
        first = _FIRST.match(text, at, stop)
        match = _STATEMENT.match(text, first.end() if first else at, stop)
        if match is not None:
            yield from _parse_statement(match, first["where"] if first else "", at, known)


def _parse_statement(
    match: re.Match[str], where: str, start: int, known: Mapping[str, District]
) -> Iterator[Statement]:
    tail, how, conditions = match["tail"].rstrip(), "", ""
    for _ in range(2):
        if not how and (found := _HOW.match(tail)):
            how, tail = found["how"], tail[found.end() :]
        if not where and (found := _WHERE.match(tail)):
            where, tail = found["where"], tail[found.end() :]
    if tail.strip() not in ("", "only"):
        if not _CONDITIONS.match(tail):
            return
        conditions = tail.strip(" ,")
    verb = match["verb"]
    level = _level(match, how, conditions)
    if level == "byRight" and not how and _ONLY.search(f"{verb} {where} {tail}"):
        return  # It restricts where the use may be, not how it is permitted there.
    codes = _places(where, known) if where else None
    if level is None or (codes is not None and not codes):
        return
    review = find_review(f"{how} {conditions}") if level == "conditional" else None
    verb = f"{match['no']} ... {verb}" if match["no"] else verb
    said = [strip_brackets(conditions)] if conditions else []
    for use in _uses(match["use"]):
        yield Statement(use, level, _MODAL.sub("", f"{verb} {how}".strip()), said, review, codes, start, match.end())


def _level(match: re.Match[str], how: str, conditions: str) -> Level | None:
    """The level stated by a verb. ``may be permitted`` without a review states none, since it leaves the decision
    open."""
    verb = match["verb"]
    denied = re.search(r"\b(?:not|prohibited|forbidden)\b", verb) is not None
    if match["no"] or denied:
        single = bool(match["no"]) != denied and match["modal"] != "may"
        return "notPermitted" if single and not how and not conditions else None
    level = level_of(f"permitted {how} uses")
    if CONDITIONAL.search(conditions):
        level = "conditional"
    if match["modal"] == "may" and level != "conditional":
        return None
    return "byRightWithConditions" if level == "byRight" and "condition" in how else level


def _places(where: str, known: Mapping[str, District]) -> Sequence[str] | None:
    """The districts that some words name: by code, or all of a kind by name. None if they mean the current district."""
    if kind := _OF_KIND.fullmatch(where):
        word = kind["kind"].casefold()
        alike = ("residential", "residence") if word.startswith("residen") else (word,)
        named = {code: {each.casefold() for each in _KINDS.findall(each.name)} for code, each in known.items()}
        return [code for code, words in named.items() if words and words <= set(alike)]
    if codes := naming.parse_place(re.sub("^only ", "", where), known):
        return codes
    own = re.fullmatch(r"(?:only )?(?:in|within) (?:this|the) (?:zoning )?(?:district|zone)", where, re.IGNORECASE)
    return None if own else ()


def _uses(words: str) -> Iterator[str]:
    """Split the subject of a sentence into uses: one noun phrase, or an enumeration."""
    several = list(split_enumeration(words)) if "," in words else []
    names = [words[start:stop] for start, stop in several] or [words]
    if all(map(_is_use, names)):
        yield from names


def _is_use(words: str) -> bool:
    noun = _JOINED.split(words, maxsplit=1)[0].split(" (")[0]
    names = noun.split()
    return (
        "," not in words
        and 0 < len(names) <= _WORDS
        and len(words.split()) <= 2 * _WORDS
        and not _NO_USE.search(words.replace(" the same ", " "))
        and not _NO_FIRST.match(words)
        and (names[-1].casefold() not in _NO_HEAD or _DWELLING.search(noun) is not None)
        and not _VAGUE.fullmatch(noun)
    )


def strip_brackets(words: str) -> str:
    """Strip trailing punctuation, and brackets around all of the words."""
    words = words.strip().rstrip(".;, ")
    depth = 0
    for place, character in enumerate(words):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return words[1:-1] if place and place == len(words) - 1 else words
    return words


def _split(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    at = start
    for stop in re.finditer(r"\. (?=[A-Z])", text[start:end]):
        yield at, start + stop.start() + 1
        at = start + stop.end()
    yield at, end


_LABEL: Final = re.compile(r"(?:\([A-Za-z0-9]{1,3}\)|\d{1,2}[.)]) (?=\S)")
_SEMICOLON: Final = re.compile(r"; ?(?:(?:and|or|and/or) )?")
_COMMA: Final = re.compile(r",? (?:and|or) (?=[^,]*$)|, ?")
_HAS_VERB: Final = re.compile(
    r"\b(?:is|are|was|were|be|has|have|shall|must|may|will|can|does|do|means?|includes?|applies|apply)\b", re.IGNORECASE
)
_NO_ITEM: Final = re.compile(
    r"(?:(?:all|any|other)(?: other| such)?(?: permitted)? uses?(?: (?:permitted|allowed|listed)\b|$)"
    r"|same|those|these|this|that|such|see|as|uses?|none|no|not|the|only|provided|subject|if|when|where|except"
    r"|unless|but|and provided|minimum|maximum|including|must|up to|for|in|with|each|one|at least"
    r"|sections?|chapters?|articles?|tables?)\b|[^A-Za-z]|[A-Za-z]{1,4}-?\d|.{0,2}$|[^:=]*[:=]",
    re.IGNORECASE,
)
"""Starts of list members that are not uses, but conditions or references to other uses."""
_PREPOSITION: Final = re.compile(r" (?:of|for|in|on|with|from|at|by|to|within|without) ")
_CONDITION: Final = re.compile(
    r"\b(?:provided|subject|if|when|where|which|that|but|including|such as|except|other than|unless|limited|not|and|or"
    r"|see|section|per|accessory to)\b|[()]",
    re.IGNORECASE,
)
_PLURAL: Final = re.compile(r"[a-z]{2,}(?<![su])s|agriculture|forestry|horticulture|farming", re.IGNORECASE)
_SINGULAR: Final = frozenset(("business", "retail", "bus", "sales"))
_WORDS_OF_ITEM: Final = 5
_WORDS_OF_LONG: Final = 40

Span = tuple[int, int]


def split_list(words: str) -> Sequence[Span]:
    """Split a list into uses: at semicolons, or at commas if all members are plain.

    Empty for words that may be a sentence, or one use with its condition.
    """
    stop = len(words.rstrip(" .;"))
    words = words[:stop]
    start = stop - len(words.lstrip())
    if not words or words.endswith(":") or re.search(r"\. (?=[A-Z])", words):
        return []
    if ";" not in words:
        return list(split_enumeration(words)) or ([(start, stop)] if _is_plain(words[start:]) else [])
    found = list(_split_spans(words, _SEMICOLON))
    sound = all(_may_be_use(words[start:end]) for start, end in found)
    return found if sound and len(found) > 1 else []


def split_enumeration(words: str) -> Iterator[Span]:
    """Split an enumeration at commas, if all members are plain plural nouns."""
    found = list(_split_spans(words, _COMMA)) if "," in words else []
    if len(found) > 1 and all(_is_plain(words[start:end]) for start, end in found):
        yield from found


def split_alternatives(words: str) -> Sequence[Span]:
    """Split a line of a list that contains several uses at semicolons. Empty if it contains one."""
    stop = len(words.rstrip(" .;"))
    found = list(_split_spans(words[:stop], _SEMICOLON)) if ";" in words[:stop] else []
    return found if len(found) > 1 and all(_is_plain(words[start:end]) for start, end in found) else []


def _split_spans(words: str, pattern: re.Pattern[str]) -> Iterator[Span]:
    at = 0
    for start, end in [*((match.start(), match.end()) for match in pattern.finditer(words)), (len(words), len(words))]:
        first = at + len(words[at:start]) - len(words[at:start].lstrip())
        label = _LABEL.match(words, first, start)
        first = label.end() if label else first
        if words[first:start].strip():
            yield first, first + len(words[first:start].rstrip())
        at = end


def _may_be_use(words: str) -> bool:
    return len(words.split()) <= _WORDS_OF_LONG and not _NO_ITEM.match(words) and not _HAS_VERB.search(words)


def _is_plain(words: str) -> bool:
    """Whether some words are a short plural noun without anything that may be a condition."""
    names = _PREPOSITION.split(words, maxsplit=1)[0].split()
    last = names[-1].casefold() if names else ""
    return (
        len(words.split()) <= _WORDS_OF_ITEM
        and _may_be_use(words)
        and not _CONDITION.search(words)
        and _PLURAL.fullmatch(last.split("-")[-1]) is not None
        and last not in _SINGULAR
    )
