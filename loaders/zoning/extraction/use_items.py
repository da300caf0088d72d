"""Items of lists of uses: the name of the use, its conditions, and the districts that it is limited to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from loaders.zoning.extraction import districts as naming
from loaders.zoning.extraction.districts import District
from loaders.zoning.extraction.measures import find_measures
from loaders.zoning.extraction.permission_levels import level_of

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
