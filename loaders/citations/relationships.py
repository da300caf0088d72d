"""Classification of citations by the sentence around them.

Type and direction are those of the citing section: "subject to section 5" makes the citing section subject to section
5, which constrains it. If the words reverse the direction ("is superseded by section 5") or negate it ("is not subject
to section 5"), the relationship is only a reference.
"""

from __future__ import annotations

import builtins
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from loaders.citations.section_citations import Citation
from loaders.readers.sentences import split_sentences

UNKNOWN: Final = "unknown"
CITES: Final = "cites"
"""The property of a citation without known words."""

_PROVIDED: Final = (
    r"(?:provided|prohibited|set forth|specified|stated|described|established|prescribed|noted"
    r"|listed|outlined|permitted|authorized"
    r"|allowed|required|defined|otherwise)"
)
_BEFORE: Final[Sequence[tuple[str, str, str]]] = (
    ("references", CITES, r"\b(?:superseded|repealed|replaced|supplemented|incorporated|governed|controlled) by\b"),
    (
        "excepts",
        "exceptAsProvidedIn",
        rf"\b(?:except|unless|other than)(?:,)? (?:as |where |when |to the extent )?(?:may be |is "
        rf"|are )?"
        rf"(?:otherwise )?(?:specifically |expressly )?(?:{_PROVIDED} )*(?:for )?(?:in"
        rf"|by|under|pursuant to|herein,? in)\b"
        r"|\bexempt(?:ed|ions?)? (?:from|under|by|in|pursuant to)\b|\bexceptions? (?:to|in|under"
        r"|provided in|set forth in)\b"
        r"|\bwith the exception of\b|\bexcept as(?:\s?$|(?: [a-z]+){1,5} (?:in|by|under)\s?$)"
        r"|\bexcept for (?:\w+ ){1,4}(?:in|of|by|under)\s?$",
    ),
    ("excepts", "notwithstanding", r"\bnotwithstanding\b|\bregardless of\b|\bin spite of\b"),
    (
        "supersedes",
        "supersedes",
        r"\b(?:supersedes|repeals|replaces|prevails? over|takes? precedence over|controls? over)\b",
    ),
    (
        "incorporates",
        "incorporates",
        r"\b(?:incorporat(?:es?|ing)|adopt(?:s|ing)? by reference)\b"
        r"|\b(?:hereby )?adopt(?:s|ing)\b(?= (?:the )?(?:provisions|standards|requirements) of)",
    ),
    (
        "supplements",
        "supplements",
        r"\b(?:in addition to|supplements?|supplementing|supplement(?:al|ary) to|as well as"
        r"|along with|in conjunction with|together with)\b",
    ),
    (
        "defines",
        "usesDefinitionIn",
        r"\b(?:as |are |is |term(?:s)? )?defined (?:in|by|under|at|pursuant to)\b"
        r"|\b(?:same )?meanings? (?:as |set forth |given |provided |specified |ascribed |assigned "
        r"|in )*(?:in|by|under|to)\b"
        r"|\bdefinitions? (?:of [^,;.]{1,60} )?(?:in|of|under|contained in|set forth in|provided in|at)\b",
    ),
    (
        "delegates",
        "defersTo",
        r"\b(?:determined|designated|delegated|assigned|appointed|calculated|computed|decided"
        r"|reviewed|approved|adjudicated|administered|processed|interpreted)(?: and \w+)? (?:by|in|under|pursuant to"
        r"|in accordance with|according to|as provided (?:in|by))\b",
    ),
    (
        "constrains",
        "subjectTo",
        r"\b(?:subject to|limited by|restricted by|limitations? (?:of|in|under|contained in"
        r"|set forth in)"
        r"|restrictions? (?:of|in|under|contained in|set forth in)|prohibited (?:by|under|in)"
        r"|constrained by|within the limits of|contrary to)\b",
    ),
    (
        "requires",
        "mustComplyWith",
        r"\b(?:compl(?:y|ies|ying|iance) (?:\w+ )?with|complied with|in accordance with"
        r"|accordance with"
        r"|in conform(?:ance|ity) (?:with|to)|conform(?:s|ing)? (?:to|with)|as required (?:by|in|under"
        r"|pursuant to)|required (?:by|in|under|pursuant to)"
        r"|requirements? (?:of|in|under|set forth in|contained in)|meets? (?:\w+ ){0,6}(?:of|in)"
        r"|consistent with|must (?:follow|satisfy)"
        r"|conditions of|satisf(?:y|ies)(?: \w+){0,5} of|standards (?:of|in|set forth in)|in compliance with)\b",
    ),
    (
        "authorizes",
        "authorizedBy",
        r"\b(?:pursuant to|under the (?:authority|provisions) of|by (?:authority|virtue) of"
        r"|authorized (?:by|under|in|pursuant to)"
        r"|authority (?:of|under|in|contained in|granted (?:by|in|under))|permitted (?:by|under|in"
        r"|pursuant to)|allowed (?:by|under|in|pursuant to)"
        r"|granted (?:by|under|in|pursuant to)|issued (?:under|by|pursuant to)|created (?:by|under"
        r"|pursuant to)|approved under|licensed under"
        r"|promulgated (?:under|pursuant to))\b",
    ),
    (
        "references",
        "references",
        r"\b(?:see(?: also)?|refer(?:s|red|ring)? to|reference(?:s|d)?(?: to| in)?"
        r"|as (?:further )?(?:described|set forth|provided"
        r"|specified|stated|prescribed|established|outlined|listed|shown|noted|identified|found"
        r"|contained|indicated)|(?:described|set forth|provided|specified|stated"
        r"|prescribed|established|outlined|listed|identified|found|contained|imposed|made|filed"
        r"|submitted|given) (?:in|by|under|at|for in|pursuant to)"
        r"|provisions? (?:of|in|under)|purposes of|under|accordance|procedures? (?:of|in|under)"
        r"|cf\.|e\.g\.)(?! \()(?:\b|(?<=\.))",
    ),
)
"""Type, property and words before a citation. Of matches that end at the same place, the first type is used."""
_AFTER: Final[Sequence[tuple[str, str, str]]] = (
    (
        "incorporates",
        "incorporates",
        r"\b(?:is|are|shall be) (?:hereby )?(?:adopted and )?(?:incorporated|adopted)(?: herein"
        r"| into [^.;]{1,40})?(?: by)? ?(?:this )?reference\b"
        r"|\b(?:is|are) (?:hereby )?incorporated\b",
    ),
    ("supersedes", "supersedes", r"\b(?:is|are) (?:hereby )?(?:superseded|repealed|replaced)\b"),
    ("excepts", "notwithstanding", r"^[ ,]*(?:to the contrary )?notwithstanding\b"),
    (
        "requires",
        "mustComplyWith",
        r"^(?:,? (?:as amended|et seq\.|above|below|hereof|herein|also|that),?)*"
        r" (?:(?:are|is|must be|shall be) (?:met|complied with|satisfied|followed)|(?:shall|must|may)? ?(?:also )?"
        r"(?:apply|govern|control)|applies)\b",
    ),
)
_PARTS: Final = (
    r"(?: (?:the |any |all )?(?:other |applicable )?(?:provisions?|requirements?|limitations?|conditions?"
    r"|restrictions?"
    r"|standards|terms|regulations|procedures?) (?:of|in|under|set forth in|contained in))?"
)
"""Words between these words and the citation: notwithstanding `the provisions of`."""
_NOT: Final = re.compile(r"\b(?:not|nor|neither|never|cannot)(?: (?!(?:exceed|than|only|until)\b)[\w-]+){0,2} $", re.I)
"""Words directly before those that state a type, which deny it."""
_EXEMPT: Final = re.compile(
    r"\b(?:not|nor|neither|never|cannot|without|exempt(?:ed|s|ions?)?|excused?|relieved?|waive[ds]?|waiver|waiving"
    r"|vary|varied|variances?|deviat(?:e|es|ions?)|depart(?:s|ures?)?)"
    r"(?: (?!(?:exceed|than|only|until|unless|except|but|granted|issued|made|approved)\b)[\w-]+){0,4} $",
    re.IGNORECASE,
)
"""Words directly before those of a requirement, which deny it or exempt from it."""
_NOTHING: Final = re.compile(
    r"\bnothing (?:herein|hereinafter|contained|in|within|about|of)\b|\b(?:is|are) not intended to\b", re.IGNORECASE
)
"""Words that deny all that follows, up to `_INTERRUPTED`."""
_INTERRUPTED: Final = re.compile(r"\b(?:except|unless|until|but|notwithstanding|other than)\b|;", re.IGNORECASE)
_NEGATED_AFTER: Final = re.compile(
    r"[^.;,:]{0,50}?\b(?:shall|does|do|did|will|may|is|are|has|have|need) not (?:be )?"
    r"(?:apply|applicable|required?|affect|changed|amended|affected|superseded|repealed|construed|prohibit|prevent)",
    re.IGNORECASE,
)
"""Words after a citation in the same clause, which deny the relation: ``section 5 shall not apply``."""
_OWN: Final = (
    r"(?:this|these) (?:[\w-]+ ){0,3}?(?:(?:sub)?(?:section|title|chapter|part|division)|article|code|ordinance"
    r"|resolution|rule|regulation|by-?law|standard|provision|act|plan|map)s?\b"
)
_MADE: Final = r"(?:enact|adopt|promulgat|ordain|establish|authoriz|issu|creat|prescrib|prepar|mad|pass)"
_ENACTED: Final = re.compile(
    rf"(?<!\bof )(?<!\bin )(?<!\bby )(?<!\bto )(?<!\bfor )(?<!\bunder )(?<!\bwith )(?<!\bfrom )\b{_OWN}"
    rf"(?: \([^()]*\))?,?(?: (?:is|are|was|were|has|have|been|being|shall|be|hereby|duly|and|[a-z]+ly))* {_MADE}e?d?\b"
    r"[^.;]{0,80}$",
    re.IGNORECASE,
)
"""``This chapter is adopted [pursuant to]``: the cited law is the authority for the citing text itself."""
_IT_IS_ENACTED: Final = re.compile(
    r"\bit (?:is|was) (?:hereby )?(?:enact|adopt|ordain|promulgat)ed\b[^.;]{0,80}$", re.IGNORECASE
)
"""``It is enacted``: "it" is the citing text, since nothing else that a law names is enacted in it."""
_ENACTS: Final = re.compile(rf"\b{_MADE}\w*(?: and \w+)? (?:the following|{_OWN})", re.IGNORECASE)
"""``[Under section 5], the council adopts this chapter``."""
_CUES: Final = [re.compile(f"(?:{pattern}){_PARTS}", re.IGNORECASE) for _, _, pattern in _BEFORE]
_TRAILING: Final = [re.compile(pattern, re.IGNORECASE) for _, _, pattern in _AFTER]
_REACH: Final = 160
"""Code points before a citation that are searched for these words."""
_BEHIND: Final = 90
_OTHER_WORD: Final = re.compile(
    r"(?<![\w(.§])(?!(?:of|and|or|the|to|through|thru|et|seq|this|that|any|other|an?|as|amended|approved|for|on|also"
    r"|(?:sub)?(?:title|chapter|part|section|paragraph|clause)s?|articles?|divisions?|units?|provisions?|requirements?"
    r"|[ivx]+|[a-z])\b)[a-z]+\b(?!\))"
)
"""A word that no list of citations has, so that words before it are not of the citation after it."""
_LONGEST: Final = 3_000
"""Maximum code points of a sentence. Tables and lists without full stops are not sentences."""
_NEAR: Final = 40
BY_NEAR_WORDS: Final = 0.96
"""The confidence of a type by words before the citation, at most `_NEAR` characters away: 1,035 of 1,061 in labelled
ordinances, 49 of 50 in real codes."""
BY_WORDS: Final = 0.9
"""The confidence of a type by words further before the citation, or after it. 58 of 58 in labelled ordinances, 11 of 12
in real codes."""
WITHOUT_WORDS: Final = 0.95
"""The confidence that the sentence states no relation. 303 of 310."""
_BROKEN: Final = re.compile(
    r"(?:U\.S\.C|C\.F\.R|D\.C|Stat|Pub|L|No|Nos|Sec|Secs|sec|secs|Ann|Art|Ch|Reg|Res|v|cf|e\.g|i\.e|et|sq|ft|§)\.\s*$"
)


@dataclass(frozen=True, slots=True)
class Relationship:
    """The relationship of the citing section to the cited one."""

    citation: Citation
    type: str
    """defines, constrains, requires, excepts, supersedes, authorizes, delegates, supplements, incorporates, references,
    unknown: the type in the source's own vocabulary. Some types describe the effect of the cited section on
    the citing one."""
    property: str
    """usesDefinitionIn, subjectTo, mustComplyWith, exceptAsProvidedIn, notwithstanding, supersedes, authorizedBy,
    defersTo, supplements, incorporates, references, or `CITES`: from the citing section to the cited one."""
    start: int
    """The sentence around the citation is at [start, end) of the text. A very long one is cut around the citation."""
    end: int
    cue: str
    """The words that state the type, verbatim. Empty for unknown."""
    confidence: float
    text: str = field(repr=False)
    """The text that contains the citation."""
    method: str = "sentence"

    @builtins.property
    def context(self) -> str:
        """The sentence, verbatim."""
        return self.text[self.start : self.end]


def find_relationships(text: str, citations: Sequence[Citation]) -> Sequence[Relationship]:
    """Classify each of `citations` in `text`, in their order."""
    found = []
    line, spans = (0, 0), [(0, 0)]
    for citation in citations:
        if not line[0] <= citation.start < line[1]:
            start = text.rfind("\n", line[1], citation.start) + 1 or line[1]
            end = text.find("\n", citation.end)
            line = (start, len(text) if end < 0 else end + 1)
            spans = _split_sentences(text, line)
        place = max(0, bisect_right(spans, (citation.start, len(text))) - 1)
        last = max(place, bisect_right(spans, (citation.end - 1, len(text))) - 1)
        found.append(_relationship(text, citation, spans[place][0], spans[last][1]))
    return found


def _split_sentences(text: str, line: tuple[int, int]) -> list[tuple[int, int]]:
    """Split a line into sentences. Legal abbreviations and a following lower-case letter do not end one."""
    merged: list[tuple[int, int]] = []
    for start, end in split_sentences(text, *line):
        goes_on = (
            text[start : start + 1].islower() or text[start : start + 1] in "§[" or text[start : start + 1].isdigit()
        )
        if merged and (goes_on or _BROKEN.search(text, max(merged[-1][0], start - 12), start)):
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return merged or [line]


def _relationship(text: str, citation: Citation, start: int, end: int) -> Relationship:
    while end > start and text[end - 1].isspace():
        end -= 1
    end = max(end, citation.end)
    if end - start > _LONGEST:
        start = max(start, _find_word_start(text, citation.start - _LONGEST // 2, citation.start))
        end = min(end, max(citation.end, text.rfind(" ", citation.end, citation.end + _LONGEST // 2)))
    first = text.find(citation.raw, max(start, citation.end - len(citation.raw)), citation.start + len(citation.raw))
    first = citation.start if first < 0 else min(first, citation.start)
    type_, property_, cue, confidence = (
        _find_cue_before(text, start, first)
        or _find_cue_after(text, citation, end)
        or (UNKNOWN, CITES, "", WITHOUT_WORDS)
    )
    if property_ == "authorizedBy" and not _enacts_itself(text, cue, start, first, end):
        type_, property_ = "references", "references"
    if property_ != CITES and _is_denied(text, citation, property_, cue, start, first, end):
        type_, property_ = "references", CITES
    return Relationship(citation, type_, property_, start, end, cue, confidence, text)


def _enacts_itself(text: str, cue: str, start: int, first: int, end: int) -> bool:
    """Whether a sentence states by what authority the citing text is enacted.

    ``Applications pursuant to section 4`` are authorized by it, and the text that names them is not.
    """
    said = text[start : text.rfind(cue, start, first) + len(cue)]
    enacted = _ENACTED.search(said) is not None or _IT_IS_ENACTED.search(said) is not None
    return enacted or _ENACTS.search(text, start, end) is not None


def _is_denied(text: str, citation: Citation, property_: str, cue: str, start: int, first: int, end: int) -> bool:
    """Whether the sentence denies the relationship: ``nothing herein requires compliance with section 5``.

    An exception is not denied by a negation before it: ``no sign is allowed, except as provided in section 5``.
    """
    if property_ == "notwithstanding" or (property_ == "exceptAsProvidedIn" and not cue.lower().startswith("exempt")):
        return False
    if _NEGATED_AFTER.match(text, citation.end, end):
        return True
    at = text.rfind(cue, start, first)
    if at < 0:
        return False
    before = text[start:at]
    if (_EXEMPT if property_ == "mustComplyWith" else _NOT).search(before):
        return True
    nothing = max((each.end() for each in _NOTHING.finditer(before)), default=-1)
    return nothing >= 0 and _INTERRUPTED.search(before, nothing) is None


def _find_word_start(text: str, at: int, before: int) -> int:
    """Find the start of the first word after `at`."""
    place = text.find(" ", max(0, at), before)
    return before if place < 0 else place + 1


def _find_cue_before(text: str, start: int, first: int) -> tuple[str, str, str, float] | None:
    """Find the words nearest before a citation. Of those that end together, the longest are used."""
    return _find_last_cue(text[max(start, first - _REACH) : first])


@lru_cache(maxsize=256)
def _find_last_cue(text: str) -> tuple[str, str, str, float] | None:
    """Find the words at the end of `text`. Cached, since the members of a list share the text before them."""
    window, first = 0, len(text)
    best: tuple[int, int, int] | None = None
    found: re.Match[str] | None = None
    for place, pattern in enumerate(_CUES):
        for match in pattern.finditer(text, window, first):
            rank = (match.end(), match.start() - match.end(), place)
            nearer = best is None or rank[0] > best[0] + 2
            longer = best is not None and abs(rank[0] - best[0]) <= 2 and rank[1] < best[1]
            if nearer or longer:
                best, found = rank, match
    if best is None or found is None:
        return None
    gap = text[found.end() : first]
    if ";" in gap or "\n" in gap:
        return None
    type_, property_, _ = _BEFORE[best[2]]
    if len(gap) <= _NEAR:
        return type_, property_, found[0], BY_NEAR_WORDS
    # Only other citations may be between. In "pursuant to § 5 and to enforce this chapter", the words are of § 5 alone.
    return None if _OTHER_WORD.search(gap) else (type_, property_, found[0], BY_WORDS)


def _find_cue_after(text: str, citation: Citation, end: int) -> tuple[str, str, str, float] | None:
    until = min(end, citation.end + _BEHIND)
    for (type_, property_, _), pattern in zip(_AFTER, _TRAILING, strict=True):
        if match := pattern.search(text[citation.end : until]):
            return type_, property_, match[0].strip(" ,"), BY_WORDS
    return None
