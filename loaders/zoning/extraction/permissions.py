"""Uses that districts permit or prohibit: the items of lists, below a heading or a lead line that gives their level.

A sentence gives no level. Only a heading of closed form, ``Uses Permitted by Right``, or a sentence that announces a
list in closed form, ``The following uses are permitted in the R-1 District:``, gives a level to the items below it. A
restriction of the lead is a condition of each item. A line that is not exactly the name of a use with its conditions
is not a fact: an item with a dimension, a page number, an exception, a verb, or a reference to other uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from loaders.zoning.extraction import districts as naming
from loaders.zoning.extraction.confidence import get_confidence
from loaders.zoning.extraction.districts import District, add_condition, development_of
from loaders.zoning.extraction.lines import Line, parse_lines
from loaders.zoning.extraction.measures import find_measures
from loaders.zoning.extraction.permission_levels import (
    INHERITED,
    Level,
    UsePermission,
    find_review,
    is_conditional,
    level_of,
)
from loaders.zoning.extraction.permission_matrices import find_in_matrices
from loaders.zoning.extraction.places import Places
from loaders.zoning.extraction.section_protocol import Section
from loaders.zoning.extraction.section_scope import Scope

_WORD: Final = (
    r"(?:un)?(?:permitted|allowed|allowable|prohibited|permissible)|not|conditional(?:ly)?|special|specific|limited"
    r"|principal|primary|main|accessory|temporary|incidental|land|uses?|buildings?|structures?|activities|exceptions?"
    r"|permits?|required|requiring|subject|to|by|as|of|right|on|upon|with|under|only|review|approval|issuance"
    r"|authorized|conditions?|standards?|site|plan|zoning|board|planning|commission|city|council|and|or|and/or|the"
    r"|an?"
    r"|general|matter|administrative|outright|additional|other|use-by-right|discretionary|provisional|interim|which"
    r"|are|may|be|shall|require"
)
_HEADING: Final = re.compile(rf"(?:(?:{_WORD})(?:[,/&]|(?=[ -]|$)))(?:[ -]?(?:{_WORD}|&)(?:[,/]|(?=[ -]|$)))*+", re.I)
_OF_USES: Final = re.compile(r"\b(?:uses?|activities|exceptions?|structures|buildings|permitted|right)\b", re.I)
_ASIDE: Final = re.compile(r" ?[(\[][^()\[\]]{0,200}[)\]]")
_RESTRICTED: Final = re.compile(r" ?(?:[-–—:,(]|\b(?=on|above|below|within|in)\b) ?(?P<rest>\S.{2,120})")
_IN_DISTRICT: Final = re.compile(
    r"\b(?:in|within|for|of) (?:(?:the|an?|any|all|each"
    r"|this) )?(?P<place>(?:[\w./&-]+,? ){0,9}?(?:districts?|zones?)\b"
    rf"(?: ?\([\w-]{{1,10}}\))?|{naming.CODE}(?:(?:,? (?:and|or|&) |, ){naming.CODE}){{0,20}}(?=$|[:,]))",
    re.I,
)
_DISTRICT_FIRST: Final = re.compile(
    rf"^(?P<place>(?:[\w./&-]+,? ){{0,9}}?(?:districts?|zones?)(?: ?\([\w-]{{1,10}}\))?"
    rf"|{naming.CODE})(?:[:,]? ?[–—-]* |: ?)(?=\w)",
    re.I,
)
_MIXED: Final = re.compile(
    r"\b(?:permitted|by right|principal|conditional|special|prohibited|accessory)(?: uses?| exceptions?)?"
    r"(?:,? and/or |, | and |/| or | & )(?:permitted|conditional|special|prohibited)\b",
    re.I,
)
_PROCEDURE: Final = re.compile(r"(?:(?:special|conditional|administrative|use|the|an?|and|or)\W+)+permits?", re.I)
"""A heading about permits, and not about the uses that need one."""
_ACCESSORY: Final = re.compile(r"\b(?:accessory|temporary|incidental)\b", re.I)
_ACCESSORY_USES: Final = re.compile(r"(?:permitted )?accessory\b", re.I)
_NOT_USES: Final = re.compile(
    r"\b(?:bulk|dimension\w*|yards?|heights?|setbacks?|area regulations|lot (?:area|size|width)s?|coverage|density"
    r"|parking|loading|signs?|signage|landscap\w+|screening|buffer\w*|lighting|fences?|definitions?|purposes?|intent"
    r"|objectives?|procedures?|applications?|administration|enforcement|nonconform\w+|amendments?|appeals?|variances?"
    r"|fees?|penalt\w+|violations?|findings?|criteria|performance|design|streets?|utilities|projections?"
    r"|encroachments?|projects? into|index|contents|supplement\w*|(?:development|area|site|general) standards"
    r"|regulations|restrictions|requirements|provisions|limitations|guidelines)\b",
    re.I,
)
"""Words of headings whose lists are not of uses."""
_ANNOUNCES: Final = re.compile(
    r"\b(?:following|as follows|below|hereinafter (?:set forth|listed)|herein(?:after)?|the uses:|these uses)\b", re.I
)
_ABOUT_USES: Final = re.compile(r"\b(?:uses?|used|activities|purposes?|occupied|special exceptions?)\b", re.I)
_OTHER_LIST: Final = re.compile(
    r"\bfollowing (?:[\w-]+ ){0,3}?(?:standards?|conditions?|requirements?|regulations?|restrictions?|limitations?"
    r"|terms"
    r"|signs?|criteria|provisions?|information|factors?|findings?|definitions?|documents?|procedures?|words?|items?"
    r"|districts?|zones?|yards?|setbacks?)\b|\b(?:yards?|setbacks?|signs?|fences?|heights?|encroach\w*|projections?"
    r"|nonconforming|definitions?|parking)\b",
    re.I,
)
"""A sentence that announces a list of something else than uses."""
_FOLLOWING: Final = re.compile(r"\W*the following\b", re.I)
_NO: Final = re.compile(r"\b(?:no|nor|not|none)\b", re.I)
_EXCEPT: Final = re.compile(r"\b(?:except|other than|but|unless)\b", re.I)
_ONLY: Final = re.compile(r"\bonly\b(?! (?:if|when|where|upon|by|as|after|with|in)\b)|\bno others?\b", re.I)
_NO_OTHER: Final = re.compile(r" ?,? ?\b(?:and|but) no others?(?: uses?)?\b", re.I)
_PROHIBITS: Final = re.compile(
    r"\b(?:are|is|be|being)(?: \w+)? prohibited\b|\b(?:are|is|shall) not (?:be )?(?:permitted|allowed)\b"
    r"|\b(?:no|none) of the following(?: uses?)? (?:is|are|shall be) (?:permitted|allowed)\b|^prohibited\b",
    re.I,
)
_PERMITS: Final = re.compile(
    r"\b(?:permitted|allowed|authorized|by right|approved|may be used|shall be used|may be (?:located|established))\b",
    re.I,
)
_MAY_BE: Final = re.compile(r"\bmay(?: also| only)? be (?:\w+ )?(?:permitted|allowed|authorized|approved)\b", re.I)
_APPROVED: Final = re.compile(r"\b(?:permits?|approv\w+|hearings?|review\w*|authoriz\w+ by|exceptions?)\b", re.I)
_NEGATED: Final = re.compile(
    r"\b(?:no|not|nor|none|never|unless|except(?:ing|ed)?|without|excluding|other than|prohibit\w*)\b", re.I
)
_LEAD_LIMIT: Final = re.compile(
    r"\b(?:subject to|provided|if\b|when\b|where\b|only (?:if|when|as|in|within)|pursuant to|in accordance"
    r"|as accessory"
    r"|as (?:part|regulated)|upon\b|in conjunction|within (?:an? )?(?:enclosed|building)|incidental to|on lots?)\b"
    r"[^:]{0,400}",
    re.I,
)
_SUCH_USES: Final = re.compile(
    r"(?:.{0,60}\b(?:such|these|said|all|those|the following|permitted)(?: permitted| above| listed)? uses?\b"
    r"|.{0,30}\bthey\b)",
    re.I,
)
_SENTENCES: Final = re.compile(
    r"(?<=[a-z0-9)\]”\"]{2})[.](?= +[A-Z(“\"])(?<!\bSec\.)(?<!\bNo\.)(?<!\betc\.)(?<!\bArt\.)"
)
_VERB: Final = re.compile(
    r"\b(?:shall|must|may|will|can|cannot|should|is|are|was|were|has|have|had|does|do|applies|apply|means|requires?"
    r"|needs?)\b",
    re.I,
)
_BEGINS_NO_USE: Final = re.compile(
    r"(?:no|not|none|by|upon|such|the following|these|those|this|that|when|where|if|provided|except|unless|see|as"
    r"|in|on|for"
    r"|within|minimum|maximum|min|max|each|every|one (?:of|per|for)|all (?:other|such|of)|any (?:other|such|of"
    r"|and all)"
    r"|other|others|(?:all |any )?uses?|section|article|chapter|table|note|figure|page|subject|only|up to|at least"
    r"|more|less|fewer"
    r"|to|and|or|but|also|same|similar|reserved|repealed|deleted|n/a|ord|ordinance|amended|added)\b(?!-)|[^A-Za-z]",
    re.I,
)
_ANY_USE: Final = re.compile(
    r"\b(?:uses?|activities)(?: of (?:land|right))?,? (?:(?:that|which|as) )?(?:(?:is|are|is first|are first) )?"
    r"(?:permitted|allowed|listed|specified|authorized|set forth|enumerated|described|similar|of (?:a|the) same)\b"
    r"|\b(?:permitted|allowed|listed|first permitted)\b[^.;]{0,40}\b(?:districts?|zones?|sections?|above|article"
    r"|chapter)\b"
    r"|\bsimilar (?:to|uses?|in)\b|\buses?(?: and \w+)? not\b|\b(?:permitted|conditional|special|prohibited) uses?\b",
    re.I,
)
"""A reference to the uses of another place, or to uses like those listed."""
_PAGE: Final = re.compile(r"\.{3,}|[….] ?\d{1,4}$|(?<=[a-z]) \d{1,4}(?:[-–,] ?\d{1,4})*$")
_EXCEPTS: Final = re.compile(
    r"\b(?:except(?:ing|ed)?|excluding|other than|but not|but only|unless|excluded|exclusive of)\b", re.I
)
_DIMENSION: Final = re.compile(
    r"\b(?:lot (?:size|area|width|depth|coverage|frontage)|(?:building )?heights?|setbacks?"
    r"|(?:front|side|rear|required|corner) yards?|frontage|coverage|densit(?:y|ies)|floor area(?: ratio)?|size)s?$",
    re.I,
)
_UNITS: Final = frozenset(("FT", "FT2", "AC", "M", "M2", "MI", "MI2", "IN", "HA", "PERCENT", "storey", "DEG"))
_CUT: Final = re.compile(
    r"[,;]? ?(?=\((?!\d{1,2}\)|s\)|es\)))|[,;]?(?: -+| [–—]+)? (?=(?:provided|subject to|as (?:regulated|permitted"
    r"|described|defined"
    r"|set forth|provided|required|specified|approved|limited|authorized|governed|listed|per|outlined|prescribed|an?"
    r"|accessory|part of)\b|in (?:accordance|conformance|compliance|conformity|conjunction|connection"
    r"|association)\b|pursuant|if\b|only\b|so long as|as long as|not"
    r" (?:to )?(?:exceed\w*|more|less|over|including|involving)|not\b|with(?:out)? (?:an?|no|not|the|up)\b|having\b"
    r"|limited to|up to|at least|(?:no |not )?(?:more|less|fewer|greater)"
    r" than|includ(?:ing|es)\b|such as\b|but\b|see\b|per\b(?! lot\b)|under \d|over \d|containing|consisting|which\b"
    r"|that\b|who\b|whose\b"
    r"|upon\b|where\b|when\b|provided\b|accessory to\b|incidental to\b|located\b|conducted\b"
    r"|(?:for|in|on|of) (?:not|no|up to|at least|more|less|fewer) |on (?:an? |the )?(?:lots?|parcels?|tracts?"
    r"|sites?)\b"
    r"|within\b|for (?:an?|the) period))|: (?=\S)",
    re.I,
)
_MEMBERS: Final = re.compile(
    r"\W*(?:including|includes|such as|e\.g\.|i\.e\.|namely|like|for example|etc)\b(?! but only| only)",
    re.I,
)
_LIMITS: Final = re.compile(
    r"\b(?:shall|must|only|not|no|provided|subject|regulated|limited|accordance|pursuant|conducted|enclosed|requir\w+"
    r"|prohibit\w*|unless|when|where|if|within|compliance|see|section|chapter|article|sec|defined|described"
    r"|conform\w*"
    r"|accessory|incidental|approv\w+|permit\w*|may|minimum|maximum|per|under|standards|conditions?|days?|hours?)\b|§",
    re.I,
)
_HEAD_END: Final = re.compile(
    r"\b(?:standards?|requirements?|regulations?|review|criteria|findings?|procedures?|purpose|intent|provisions"
    r"|restrictions|limitations|applications?|conditions?)$",
    re.I,
)
_LIMITED: Final = re.compile(
    r"\b(?:limited to|only|provided|not (?:more|over|to exceed)|when|where|if|enclosed)\b", re.I
)
"""Words of the heading of a group of uses that limit all of them."""
_REQUIREMENTS: Final = re.compile(
    r"\b(?:requirements?|conditions?|standards?|provided|provisions|restrictions|limitations|criteria|subject to|if"
    r"|when"
    r"|regulations)\b[^.]{0,80}$",
    re.I,
)
_GROUPS: Final = re.compile(
    r"(?:\b(?:below|following|includ(?:ing|es)|such as|as follows|limited to|consist\w* of)\b[^.]{0,30}|:|\buses"
    r"|\bactivities)[.:]?$",
    re.I,
)
_HISTORY: Final = re.compile(r" ?[(\[](?:Ord\b|Ordinance|Added|Amended|Prior code)[^\n]{0,400}+$")
_ONLY_IN: Final = re.compile(
    rf"[(,]? ?(?:(?:permitted |allowed )?(?:only )?in (?:the )?)?"
    rf"(?P<codes>{naming.CODE}(?:(?:,? (?:and|or|&) |, ){naming.CODE}){{0,20}}) "
    r"(?i:zones?|districts?)(?P<only> only)?\)?"
)
_IN_PLACE: Final = re.compile(
    rf"In (?:the |an? |all )?(?P<codes>{naming.CODE}(?:(?:,? (?:and|or|&) "
    rf"|, ){naming.CODE}){{0,20}})(?:[ -](?i:zoning )?"
    r"(?i:districts?|zones?))(?: only)?(?: ?[:,]| ?[–—-]) ?"
)
_PLACE_WORD: Final = re.compile(r"\b(?:districts?|zones?)\b", re.I)
_SEMICOLON: Final = re.compile(r"; ?(?:(?:and|or|and/or) )?")
_COMMA: Final = re.compile(r",? (?:and|or) (?=[^,]{0,300}$)|, ?")
_PLURAL: Final = re.compile(r"[a-z]{2,}(?<![su])s|agriculture|forestry|horticulture|farming", re.I)
_ENDS: Final = " ;,."
_WORDS_OF_NAME: Final = 24
_LONGEST_ITEM: Final = 3_000
_LONGEST_REFERENCE: Final = 300
_LONGEST_LEAD: Final = 2_500
_UNLISTED: Final = "Uses that are not listed"
"""The name of the use that a closed list prohibits."""


@dataclass(frozen=True, slots=True)
class _Lead:
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


_BLOCKED: Final = _Lead(None, blocked=True)


@dataclass(slots=True)
class _List:
    """How completely the lists of a district were read."""

    told: int = 0
    missed: int = 0
    closes: set[tuple[int, int]] = field(default_factory=set)


def find_permissions(
    section: Section,
    known: Mapping[str, District],
    above: Sequence[Section] = (),
    legends: Sequence[Section] = (),
    scopes: Sequence[Scope] | None = None,
) -> Sequence[UsePermission]:
    """Find the uses that a section permits or prohibits: in lists, then in matrices.

    `known` are the districts of the code. `above` are the ancestors of the section, innermost first. `legends` are
    other sections that explain the letters of its matrices. `scopes` are those of the section.
    """
    places = Places(section, known, above, scopes)
    return [*_Lists(section, known, above, places).read(), *find_in_matrices(section, known, legends)]


class _Lists:
    """Reader of the lists of a section."""

    def __init__(
        self, section: Section, known: Mapping[str, District], above: Sequence[Section], places: Places
    ) -> None:
        self._section, self._text, self._known, self._above = section, section.text, known, above
        self._places = places
        self._found: list[UsePermission] = []
        self._lists: dict[str, _List] = {}
        self._kind = development_of(section, known, above)

    def read(self) -> Sequence[UsePermission]:
        """Read all lists."""
        if not self._known or not self._text:
            return []
        title = self._section.title.strip(" .:")
        root = self._parse_heading(title)
        if root is None and _NOT_USES.search(title) and not _is_of_district(title):
            root = _Lead(None, title)
        self._read_lines(parse_lines(self._section, self._places.starts), root, None)
        found = [each if self._kind is None else self._of_kind(each, self._kind) for each in self._found]
        return [*found, *self._close()]

    def _read_lines(self, lines: Sequence[Line], above: _Lead | None, lead: _Lead | None) -> None:
        """Read lines of one depth. `above` is the lead of the line above them, `lead` that of a list among them."""
        below: _Lead | None
        for line in lines:
            if line.breaks:
                lead = None
            current = lead or above
            own = None if current is not None and self._is_reference(line) else self._parse_lead(line, above)
            if own is not None:
                below = own
                lead = own if not line.label or not line.below else None
            elif not line.label and self._is_other_heading(line):
                lead = below = _BLOCKED
            elif current is None or current.level is None:
                below = current
            elif not line.label and (line.below or self._is_sentence(line)):
                below = self._read_paragraph(line, current)
            else:
                below = self._read_item(line, current)
            if line.below:
                self._read_lines(line.below, below, None)

    def _is_reference(self, line: Line) -> bool:
        """Whether a line in a list is a reference to other uses, and not a heading: ``Uses permitted in R-1``."""
        words = self._text[line.body : line.end]
        return not words.endswith(":") and INHERITED.fullmatch(words.rstrip(" .;")) is not None

    def _is_sentence(self, line: Line) -> bool:
        """Whether a line is a sentence, and not the name of a use with its conditions."""
        words = self._text[line.body : line.end]
        cut = next((each for each in _CUT.finditer(words) if each.start() > 2), None)
        return _VERB.search(_sentences_of(words)[0], 0, cut.start() if cut else len(words)) is not None

    def _read_paragraph(self, line: Line, lead: _Lead) -> _Lead | None:
        """Read a paragraph among the items of a list. Returns the lead of the lines below it.

        It may be an item that was not understood. Then neither it nor the lines below it are facts.
        """
        words = self._text[line.body : line.end]
        if not _VERB.search(words):
            self._miss(line.start, lead)
            return _BLOCKED
        limits = [each for each in _sentences_of(words) if _SUCH_USES.match(each)]
        announced = _ANNOUNCES.search(words) or words.endswith(":")
        return _BLOCKED if announced else replace(lead, conditions=(*lead.conditions, *limits))

    def _is_other_heading(self, line: Line) -> bool:
        """Whether an unlabelled line is a heading of something else than uses, which ends the list before it."""
        words = self._text[line.body : line.end]
        head = re.split(r"(?<=\w\w)[.:](?: |$)| ?\(", words, maxsplit=1)[0].strip()
        if len(head.split()) > 8 or _VERB.search(head):
            return False
        return bool(_NOT_USES.search(head) or _DIMENSION.search(head)) or (
            bool(_HEADING.fullmatch(head)) and bool(_OF_USES.search(head))
        )

    def _parse_lead(self, line: Line, above: _Lead | None) -> _Lead | None:
        """Parse a line as the lead of the lines below it. None if it is none."""
        text, start, end = self._text, line.body, line.end
        words = text[start:end]
        head = re.split(r"(?<=[a-z)]{2})[.:](?: |$)| ?[–—](?= ?\S)", words, maxsplit=1)[0]
        heading = self._parse_heading(head.strip(" .:")) if len(head) <= 160 else None
        rest = start + len(head) + len(words[len(head) :]) - len(words[len(head) :].lstrip(" .:–—"))
        if heading is None and (whole := self._parse_heading(words.strip(" .:"))) is not None:
            heading, rest = whole, end
        lead = None if heading is None else _settle(heading, above)
        sentence = self._parse_sentences(rest if heading else start, end, lead or above)
        if sentence is not None:
            return sentence
        if lead is None:
            if above is not None and above.level and line.below and self._is_labelled_group(words):
                return above
            if (
                line.label
                and line.below
                and _NOT_USES.search(head)
                and len(head.split()) <= 8
                and not _VERB.search(head)
            ):
                return _BLOCKED
            return None
        if rest < end:
            said = text[rest:end].strip()
            if not line.below and lead.level:
                return self._read_inline(rest, end, lead)
            if said.endswith(":") or not line.below:
                return lead
            return replace(lead, conditions=(*lead.conditions, said)) if _LIMITS.search(said) else lead
        return lead

    def _is_labelled_group(self, words: str) -> bool:
        """Whether a line with lines below it only groups uses, or names the districts that they are for."""
        name = words.strip(" .:")
        return bool(naming.parse_heading(words, self._known)) or (
            len(name.split()) <= 8
            and re.search(r"\b(?:uses|activities)$", name, re.I) is not None
            and not _VERB.search(name)
        )

    def _parse_heading(self, words: str) -> _Lead | None:
        """Parse some words as the heading of a list of uses."""
        words = words.strip(" .:")
        if not words or len(words) > 200:
            return None
        plain, districts = self._take_place(words)
        bare = _ASIDE.sub("", plain).strip(" .:;,")
        match = _HEADING.match(bare)
        if match is None or not _OF_USES.search(match[0]) or _PROCEDURE.fullmatch(match[0].strip()):
            return None
        rest = bare[match.end() :]
        conditions: tuple[str, ...] = ()
        if rest:
            limit = _RESTRICTED.fullmatch(rest)
            if (
                limit is None
                or _VERB.search(rest)
                or _NOT_USES.search(rest)
                or not match[0].strip().casefold().endswith(("uses", "use", "activities", "exceptions"))
            ):
                return None
            conditions = (limit["rest"].strip(" )"),)
        if _MIXED.search(match[0]) or (
            re.search(r"\bstandards?$|\bconditions?$", match[0], re.I)
            and not re.search(r"\b(?:subject to|with|under)\b", match[0], re.I)
        ):
            return None
        level = (
            level_of(match[0])
            if not re.fullmatch(
                r"(?:(?:principal|primary|main|accessory|temporary|and|or|land|buildings|structures|uses?)\W*)+",
                match[0],
                re.I,
            )
            else None
        )
        if level == "byRightWithConditions" and is_conditional(match[0]):
            level = "conditional"
        if _ACCESSORY.search(match[0]):
            conditions = (match[0].strip(), *conditions)
        if level is None and _ACCESSORY_USES.match(match[0]):
            level = "byRight"
        review = find_review(plain) if level == "conditional" else None
        if level is None and not re.search(r"\buses?\b|\bactivities\b|\bstructures\b", match[0], re.I):
            return None
        return _Lead(level, bare, conditions, review, districts)

    def _take_place(self, words: str) -> tuple[str, Sequence[str] | None]:
        """Take the districts that a heading names out of its words."""
        for pattern in (_IN_DISTRICT, _DISTRICT_FIRST):
            if placed := pattern.search(words):
                codes = naming.codes_in_title(placed["place"], self._known)
                plain = f"{words[: placed.start()]} {words[placed.end() :]}".strip(" ,:–—-")
                if plain and (codes or re.search(r"\b(?:districts?|zones?)\b", placed[0], re.I)):
                    return plain, codes or None
        return words, None

    def _parse_sentences(self, start: int, end: int, above: _Lead | None) -> _Lead | None:
        """Parse the sentence of a paragraph that announces a list of uses in closed form."""
        text = self._text
        if end <= start or end - start > _LONGEST_LEAD or not _ANNOUNCES.search(text, start, end):
            return None
        spans = list(_split_sentences(text, start, end))
        for number, (first, last) in enumerate(spans):
            said = text[first:last]
            if not _ANNOUNCES.search(said) or not (
                number == len(spans) - 1 or re.search(r"\b(?:below|following|as follows)\b", said, re.I)
            ):
                continue
            colon = said.find(": ") if number == len(spans) - 1 and not said.rstrip().endswith(":") else -1
            listed = above is not None and above.level is not None
            lead = self._parse_sentence(said[: colon + 1] if colon > 0 else said, first, last, listed=listed)
            if lead is None:
                continue
            if colon > 0:
                return self._read_inline(first + colon + 2, last, _settle(lead, above))
            after = [text[slice(*each)].strip(" .:") for each in spans[number + 1 :]]
            conditions = [each for each in after if _SUCH_USES.match(each)]
            return _settle(replace(lead, conditions=(*lead.conditions, *conditions)), above)
        return None

    def _parse_sentence(self, said: str, first: int, last: int, *, listed: bool) -> _Lead | None:
        """Parse a sentence that announces a list. With `listed`, it is itself in a list of uses."""
        if not (_ABOUT_USES.search(said) or (listed and _FOLLOWING.match(said))) or _OTHER_LIST.search(said):
            return None
        places = naming.find_places(said, 0, len(said), self._known)
        districts = list(self._known) if places is not None and not places else places
        limit = _LEAD_LIMIT.search(said)
        if limit is not None and _ANNOUNCES.search(limit[0][:30]):
            limit = None
        whole = _NO_OTHER.sub("", said)
        plain = whole if limit is None or _APPROVED.search(limit[0]) else whole.replace(limit[0], "")
        exclusive = _is_exclusive(plain)
        closes = (first, last) if exclusive or _ONLY.search(said) or whole != said else None
        if exclusive:
            level: Level | None = "conditional" if is_conditional(plain) else "byRight"
        elif _PROHIBITS.search(plain):
            if re.search(r"\b(?:except|unless|other than|but)\b", plain, re.I):
                return _BLOCKED
            return _Lead("notPermitted", said.strip(" .:"), (), None, districts)
        elif not (_PERMITS.search(plain) or is_conditional(plain)):
            return None
        elif _NEGATED.search(plain):
            return _BLOCKED
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
        return _Lead(
            level,
            said.strip(" .:"),
            conditions,
            find_review(said) if level == "conditional" else None,
            districts,
            closes,
        )

    def _read_inline(self, start: int, end: int, lead: _Lead) -> _Lead:
        """Read the uses behind a heading on its own line: ``Prohibited uses. Junkyards; outdoor storage.``"""
        spans = _split_inline(self._text, start, end)
        for first, last in spans:
            self._add(first, last, lead)
        if not spans:
            self._miss(start, lead)
        return lead

    def _read_item(self, line: Line, lead: _Lead) -> _Lead | None:
        """Read an item of a list. Returns the lead of the lines below it."""
        text, start = self._text, line.body
        note = _HISTORY.search(text, start, line.end)
        end = note.start() if note else line.end
        words = text[start:end].rstrip()
        if line.below:
            plain = all(self._is_plain(each) for each in line.below)
            tail = re.split(r"\. (?=[A-Z])", words)[-1]
            if _FOLLOWING.match(words) or (_VERB.search(words) and _BEGINS_NO_USE.match(words)):
                self._miss(start, lead)
                return _BLOCKED
            if _REQUIREMENTS.search(tail):
                self._add(start, end, lead, line.stop)
                return None
            if _GROUPS.search(words) or (plain and len(line.below) > 1):
                head, *more = _sentences_of(words)
                measured = any(each.unit in _UNITS for each in find_measures(head)) or _LIMITED.search(head)
                limits = [head.strip(" :")] if measured else []
                limits += [each.strip(" :") for each in more if _LIMITS.search(each)]
                if _EXCEPTS.search(words) or level_of(words) == "notPermitted":
                    return _BLOCKED
                return replace(lead, conditions=(*lead.conditions, *limits))
            self._add(start, end, lead, line.stop, below=text[line.below[0].start : line.stop].strip())
            return None
        spans: Sequence[tuple[int, int]] = [(start, end)]
        if ";" in words[:-2] and (parts := _split_inline(text, start, end, semicolons=True)):
            spans = parts
        for first, last in spans:
            self._add(first, last, lead)
        return None

    def _is_plain(self, line: Line) -> bool:
        words = self._text[line.body : line.end]
        return not (_VERB.search(words) or re.search(r"\d{2}", words)) and len(words.split()) <= 14

    def _miss(self, at: int, lead: _Lead) -> None:
        """Record that an item of a list was not understood, so that the list is not whole."""
        for code in lead.districts or self._places.at(at):
            self._lists.setdefault(code, _List()).missed += 1

    def _add(self, start: int, end: int, lead: _Lead, stop: int | None = None, below: str | None = None) -> None:
        """Add the use of an item, once per district."""
        item = self._parse_item(start, end, lead)
        codes = list(lead.districts or self._places.at(start))
        if lead.level is None or not codes:
            return
        if item is None:
            self._miss(start, lead)
            self._refer(start, end, lead, codes)
            return
        use, conditions, only = item
        if only is not None:
            codes = [code for code in only if code in codes or not codes]
        level: Level = lead.level
        conditions = [*conditions, *((below,) if below and len(below) <= _LONGEST_ITEM else ())]
        told = " ".join(conditions)
        if level in ("byRight", "byRightWithConditions") and is_conditional(told):
            level = "conditional"
        if level == "notPermitted" and conditions and any(not _MEMBERS.match(each) for each in conditions):
            self._miss(start, lead)
            return
        own = [each for each in conditions if each]
        if level == "byRight" and (own or any(not _ACCESSORY.match(each) for each in lead.conditions)):
            level = "byRightWithConditions"
        review = (find_review(told) if told and level == "conditional" else None) or lead.review
        conditions = list(dict.fromkeys([*own, *lead.conditions]))
        end = max(end, stop or end)
        length = len(self._text[start:end].rstrip())
        for code in codes:
            record = self._lists.setdefault(code, _List())
            record.told += 1
            if lead.closes:
                record.closes.add(lead.closes)
            self._found.append(
                UsePermission(
                    code, use, level, lead.raw, conditions, review, start, start + length,
                    get_confidence("permission", "list"), "list",
                )
            )  # fmt: skip

    def _refer(self, start: int, end: int, lead: _Lead, codes: Sequence[str]) -> None:
        """Add an item that is a reference to the uses of another district, as its words."""
        words = _strip_closing(self._text[start:end])
        if lead.level in (None, "notPermitted") or not INHERITED.match(words) or len(words) > _LONGEST_REFERENCE:
            return
        sure = get_confidence("permission", "reference")
        self._found += [
            UsePermission(
                code, words, lead.level, lead.raw, list(lead.conditions), lead.review, start, start + len(words), sure,
                "reference",
            )
            for code in codes
        ]  # fmt: skip

    def _parse_item(self, start: int, end: int, lead: _Lead) -> tuple[str, list[str], Sequence[str] | None] | None:
        """Parse an item into use, conditions and the districts that it is limited to. None if it is not a fact."""
        words = self._text[start:end].strip()
        if len(words) > _LONGEST_ITEM:
            return None
        only: Sequence[str] | None = None
        if match := _IN_PLACE.match(words):
            only = naming.find_codes(match["codes"], self._known)
            words = words[match.end() :].strip()
            if not only:
                return None
        elif match := _ONLY_IN.search(words):
            only = naming.find_codes(match["codes"], self._known)
            if not only:
                return None
        whole = _strip_closing(words)
        first, *others = _sentences_of(whole)
        name = first
        plain = _PLACE_CITED.sub("", first)
        if _EXCEPTS.search(first) or _PAGE.search(whole) or level_of(name) == "notPermitted":
            return None
        if any(each.unit in _UNITS for each in find_measures(whole)):
            return None
        cut = next((each for each in _CUT.finditer(name) if each.start() > 2), None)
        if cut and (bracket := _BRACKET.match(name, cut.end())) and not _LIMITS.search(bracket[0]):
            cut = next((each for each in _CUT.finditer(name, bracket.end())), None)
        use = _strip_closing(name[: cut.start()] if cut else name).strip(" ,:–—-")
        rest = name[cut.end() :].strip() if cut else ""
        if not self._is_use(use) or (_ANY_USE.search(plain) and not _REGULATED.search(plain)):
            return None
        if not only and _PLACE_WORD.search(whole):
            return None
        if re.search(r"\(", use) and use.count("(") != use.count(")"):
            return None
        conditions: list[str] = []
        if rest:
            members = _MEMBERS.match(rest)
            if not members or _LIMITS.search(rest):
                conditions.append(rest)
        conditions += [each for each in others if _LIMITS.search(each)]
        conditions = [each for each in conditions if not _SEE.fullmatch(each)]
        return (
            use,
            [each.strip(" ,;.") if each.count("(") == each.count(")") else each.strip(" ,;") for each in conditions],
            only,
        )

    def _is_use(self, use: str) -> bool:
        """Whether some words are the name of a use."""
        number = len(use.split())
        if number > _WORDS_OF_NAME or not re.search(r"[A-Za-z]{3}", use) or _VERB.search(use):
            return False
        if re.match(r"One \(1\) (?=[a-z])", use):
            return True
        return not (
            (_BEGINS_NO_USE.match(use) and not re.match(r"\d(?:[- ]family|-unit)|[“\"]", use))
            or _DIMENSION.search(use)
            or (re.fullmatch(r"(?:the )?\w+ing", use) is not None and use.casefold().startswith("the "))
            or _HEAD_END.search(use)
            or re.search(r"\bArticle\b|\bSection\b|§|\bOrd(?:inance)?\b|\d{3}", use)
            or (number > 1 and use.isupper() and _PLACE_WORD.search(use))
        )

    def _of_kind(self, each: UsePermission, kind: str) -> UsePermission:
        """Add the condition that the use is part of a `kind` of development to a permission."""
        conditions = add_condition(each.conditions, kind, each.district, self._known)
        limited = each.level == "byRight" and conditions is not each.conditions
        return replace(each, level="byRightWithConditions" if limited else each.level, conditions=conditions)

    def _close(self) -> Iterator[UsePermission]:
        """Yield the uses that a closed list prohibits, for each district whose lists in the section are read whole."""
        for code, each in self._lists.items():
            if not each.missed and each.told:
                for first, last in sorted(each.closes)[:1]:
                    said = self._text[first:last].strip()
                    sure = get_confidence("permission", "closed list")
                    yield UsePermission(
                        code, _UNLISTED, "notPermitted", said, (), None, first, last, sure, "closed list"
                    )


_SEE: Final = re.compile(r"\(? ?(?:see|cf)\b[^();]*+(?:\([^()]*\)[^();]*+)*\)?\W*", re.I)
"""A reference that limits nothing: ``(see § 3-2)``."""
_BRACKET: Final = re.compile(r"\([^()]{2,60}\)")
_REGULATED: Final = re.compile(
    r"\bas (?:regulated|described|provided|defined|specified|set forth|permitted under|permitted by"
    r"|required)\b[^.;]{0,100}(?:section|chapter|article|§|subsection)",
    re.I,
)
_PLACE_CITED: Final = re.compile(
    r"\bas (?:regulated|described|provided|defined|specified|set forth|required)\b[^.;]{0,100}", re.I
)


def _is_exclusive(said: str) -> bool:
    """Whether a sentence permits a list only: ``No building shall be used except for one of the following uses``."""
    cut = _EXCEPT.search(said)
    return cut is not None and bool(_NO.search(said, 0, cut.start()) and _ANNOUNCES.search(said, cut.end()))


def _is_of_district(title: str) -> bool:
    return bool(_PLACE_WORD.search(title))


def _settle(lead: _Lead, above: _Lead | None) -> _Lead:
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
        return (
            replace(made, level=level if not above.raw or above.closes else None)
            if _NOT_USES.search(above.raw) or not above.raw
            else made
        )
    if outer == "notPermitted" and level != "notPermitted":
        return replace(made, level=None)
    if outer == "conditional" and level in ("byRight", "byRightWithConditions"):
        return replace(made, level="conditional", raw=lead.raw)
    if level in ("conditional", "notPermitted") and outer != level:
        return replace(made, closes=lead.closes)
    return made


def _split_sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    at = start
    for stop in _SENTENCES.finditer(text, start, end):
        yield at, stop.end()
        at = stop.end()
    if text[at:end].strip():
        yield at, end


def _sentences_of(words: str) -> list[str]:
    """Split words into their sentences, without white space around them."""
    return [words[first:last].strip(" .") for first, last in _split_sentences(words, 0, len(words))] or [words]


def _split_inline(text: str, start: int, end: int, *, semicolons: bool = False) -> Sequence[tuple[int, int]]:
    """Split a list in a line at semicolons, or at commas if all members are plain plural nouns."""
    words = text[start:end]
    stop = len(_strip_closing(words))
    if re.search(r"\. (?=[A-Z])", words[:stop]) or words.rstrip().endswith(":"):
        return []
    pattern = _SEMICOLON if ";" in words[:stop] else _COMMA
    if semicolons and pattern is _COMMA:
        return []
    spans, at = list[tuple[int, int]](), len(words) - len(words.lstrip())
    for match in [*pattern.finditer(words, 0, stop), None]:
        last = match.start() if match else stop
        if words[at:last].strip():
            spans.append((start + at, start + last))
        at = match.end() if match else stop
    members = [text[first:last] for first, last in spans]
    if any(_VERB.search(each) or _BEGINS_NO_USE.match(each) for each in members):
        return []
    if pattern is _COMMA and len(spans) > 1 and not all(_is_plain_noun(each) for each in members):
        return []
    return spans if len(spans) > 1 or (not semicolons and len(words.split()) <= 12) else []


def _strip_closing(words: str) -> str:
    """Strip the punctuation at the end of an item, and the conjunction before the next one."""
    words = words.rstrip(_ENDS)
    for conjunction in (" and", " or"):
        words = words.removesuffix(conjunction).rstrip(_ENDS)
    return words


def _is_plain_noun(words: str) -> bool:
    names = re.split(r" (?:of|for|in|on|with|from|at|by|to) ", words, maxsplit=1)[0].split()
    return 0 < len(words.split()) <= 5 and bool(names) and _PLURAL.fullmatch(names[-1].split("-")[-1]) is not None
