"""Uses that districts permit or prohibit, in lists, in sentences, and in matrices of letters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Final, Self

from loaders.citations.section_citations import find_citations
from loaders.zoning.extraction import districts as naming
from loaders.zoning.extraction.clauses import has_verb
from loaders.zoning.extraction.districts import District, add_condition, development_of
from loaders.zoning.extraction.outline import Outline, find_label_end
from loaders.zoning.extraction.permission_levels import Level, find_review, is_conditional, level_of
from loaders.zoning.extraction.section_protocol import Cell, Section, Table
from loaders.zoning.extraction.use_sentences import (
    INHERITED,
    Inheritance,
    Statement,
    find_sentences,
    parse_sentence,
    split_alternatives,
    split_described,
    split_list,
    states_no_use,
    strip_brackets,
)

_USES: Final = re.compile(r"\b(?:uses?|activities|special exceptions?)\b", re.IGNORECASE)
_HEAD: Final = re.compile(
    r"(?:(?:principal|primary|main|accessory|temporary|land|and|or|permitted|allowed|allowable|prohibited|conditional"
    r"|special|specific|limited|by[- ]right|conditionally|uses?|buildings|structures|activities|exceptions?)"
    r"[,/]? ?){1,7}"
    r"(?P<rest>.*)",
    re.IGNORECASE,
)
_SAME: Final = re.compile(
    r"(?:(?:accessory|principal|other|main|primary|temporary|permitted)"
    r"(?: (?:accessory|principal|buildings|structures|and|or|uses?))+)(?: as follows)?",
    re.IGNORECASE,
)
"""Headings of parts of a list, which do not change its level: ``Accessory uses``."""
_GROUP_HEAD: Final = re.compile(
    r"[^,;:.()]{3,60}\b(?:uses|activities)\b[.:]?(?:,? (?:including|limited to|such as)(?: the following)?:)?"
)
"""A heading of part of a list: ``Residential uses``, with the uses below it."""
_ANNOUNCES: Final = re.compile(
    r"(?:the following(?: [\w-]+){0,3},? )?(?:when|if|on|upon|with|subject to)\b", re.IGNORECASE
)
"""``When authorized as a special exception:``, within a list of uses."""
_MIXED: Final = re.compile(
    r"\b(?:permitted|by right|principal|conditional|special|prohibited)(?: uses?| exceptions?)?(?:, | and |/| or | & )"
    r"(?:permitted|conditional|special|prohibited)\b",
    re.IGNORECASE,
)
_HEADING_CONDITION: Final = re.compile(r"\b(?:if|provided|only|subject to (?!cond)|when)\b.*", re.IGNORECASE)
_BARE_HEAD: Final = re.compile(
    r"(?:permitted|prohibited|conditional|not (?:permitted|allowed))|(?:(?:permitted|allowed) )?"
    r"(?:outright|(?:as of|by) "
    r"(?:right|(?:administrative )?(?:special|conditional)(?: use)? (?:permits?|exceptions?)))",
    re.IGNORECASE,
)
_ASIDE: Final = re.compile(r" ?\((?:see|as|in accordance|pursuant|refer|per)\b[^)]*\)?")
_PLACED: Final = re.compile(r" (?:in|within) (?:the )?(?P<where>[^:.;]{1,80})$")
_ENDING: Final = frozenset(
    re.findall(
        r"\w+",
        "standards requirements regulations review criteria setback setbacks height density findings procedure "
        "procedures purpose intent provisions restrictions limitations signs signage parking walls fences landscaping "
        "lighting application applications coverage",
    )
)
"""Last words of headings that end a list of uses."""
_ANNOUNCED: Final = re.compile(r"\b(?:following|these|as follows|listed below)\b", re.IGNORECASE)
_FOLLOWING: Final = re.compile(r"(?:the|these|all|any)\b", re.IGNORECASE)
_UNREAD: Final = re.compile(
    r"(?:\d+ )?(?:ARTICLE|CHAPTER|DIVISION|PART|TITLE|SECTION)\b\W+[\dIVXLC]|[^a-z]*[A-Z]{3}[^a-z]*"
)
"""A heading among lines of text: the reader did not understand it."""
_OF_LEVELS: Final = re.compile(r"\b(?:permits?|approvals?|prohibited|conditional|exceptions?)\b", re.IGNORECASE)
_NO_ITEM: Final = re.compile(
    r"\[|Any [^;:]*\b(?:is|are) prohibited from\b"
    r"|(?:No|Any(?: other)? uses?|Any (?:such|of)|Each|Every|Such|The following)\b"
)
_NO_NAME: Final = re.compile(r"\d|\b(?:minimum|maximum|least|most|only|feet|acres?|see|such)\b", re.IGNORECASE)
_LOOSE: Final = re.compile(r",? (?:but|for|of|with|on|to|in|and|or|at|by)$")
_CLOSING: Final = re.compile(r"(?:[;,.]| (?=and$|or$))(?: and| or)?[;, ]*$|[;, ]+(?:and|or)$")
_CUT: Final = re.compile(
    r"\.?[ ]?(?=\((?!\d+\)))|\. (?=[A-Z(])|,?[ ]?(?=,? ?\b(?:provided|if|so long as|as long as|subject to|must"
    r"|unless|pursuant to|in compliance|with the exception|limited to|as (?:regulated|permitted|provided)"
    r"|in accordance|under (?:[Ss]ection|[Aa]rticle|[Cc]hapter)"
    r"|not (?:taller|larger|over|more|less|exceeding|to exceed)|only|up to|with (?:no|not)|by (?:an?|the) \w+ who"
    r"|(?:but )?(?:by|on|upon|after|with) (?:an? )?(?:special|conditional)\b|but (?:only|without)|which need"
    r"|as (?:required|authorized) by"
    r"|but not|excluding|except(?:ing)?|other than|including|such as|(?<=s )licensed|permitted (?:by|under)"
    r"|as [A-Z.]+)\b)"
    r"|, (?=(?:when|where)\b)|; "
)
_LIMIT: Final = re.compile(
    r"(?:(?:not|no) (?:more|less|fewer|over) than|at least|one to|\d[\d,.]*"
    r"|(?:two|three|four|five|six|seven|eight|nine|ten)\b)"
    r"(?![ -]?(?:family|unit|storey|story))",
    re.IGNORECASE,
)
_BEFORE_LIMIT: Final = re.compile(r",? (?:on|with|for|to|in|having|not|of)\b(?! the)|, ")
_NO_CONDITION: Final = re.compile(
    r"\W*(?:(?:but not|excluding|except|excepting|other than|including|such as|licensed|permitted|as [A-Z.]+|see"
    r"|which need|as (?:required|authorized) by (?:[A-Z]\.|\d+ U))\b|$)"
)
_LONGEST_CLOSING: Final = 100
"""Maximum characters of the punctuation at the end of an item. A longer search would be repeated for each mark."""
_SUB: Final = re.compile(r",? (?:including|such as|limited to)(?: the following)?:?$|:$")
_ONLY: Final = re.compile(
    rf"(?:\bin the |\()(?P<codes>{naming.CODE}(?:(?:, (?:and |or )?| and | or ){naming.CODE}){{0,20}})"
    r" (?:zones?|districts?)(?P<only> only)?",
    re.IGNORECASE,
)
_HISTORY: Final = re.compile(r" [(\[](?:Ord\b|Ordinance|Added|Amended|Prior code)[^\n]*[)\]]$")
"""When a line was enacted: ``(Ord. 2001-4 § 2, 2001)``"""
_PERMIT: Final = re.compile(
    r"(?:but )?(?:only )?(?:by|on|upon|after|if|when|with|subject to|provided)\b(?!.*\bexcept\b)", re.IGNORECASE
)
_LEADING_PLACE: Final = re.compile(
    r"(?P<where>(?:in|within) [^,]{3,80}(?: and [^,]{1,40})? (?:districts?|zones?)), ", re.IGNORECASE
)
"""A place before a use: ``In the R-1 District, kennels``."""
_ACCESSORY: Final = re.compile(
    r"Accessory uses(?: customarily [^,;:]*)?, "
    r"(?:namely|which (?:shall|may) (?:be understood to )?include)(?: the following)?:? (?=\S)",
    re.IGNORECASE,
)
"""``Accessory uses, which shall include sheds and docks``"""
_TWO: Final = re.compile(r",? and/or |, and (?=[^,;]*$)")
_PREPOSITION: Final = re.compile(r" (?:of|for|with|in|on) ")
_WORDS_OF_ITEM: Final = 80
_WORDS_OF_LINE: Final = 14
_WORDS_OF_NAME: Final = 7


CONFIDENCE: Final = {"list": 0.94, "sentence": 0.98, "matrix": 0.98, "blank": 0.6}
"""The share of permissions that are right, by rule, as measured on labelled ordinances that the rules were not written
on. Blank cells were too few to measure."""


@dataclass(frozen=True, slots=True)
class UsePermission:
    """A use and its level in a district, as stated at the offsets [start, end) of the section's text."""

    district: str
    """Code of the district."""
    use: str
    """Verbatim, without its conditions."""
    level: Level
    raw_level: str
    """The words or letters of the source: ``Uses Subject to Conditions``, ``P``."""
    conditions: Sequence[str]
    """Verbatim."""
    review: str | None
    """The citation of the required review, verbatim: ``§15.3.08.060``."""
    start: int
    end: int
    confidence: float
    method: str
    """list, sentence, matrix."""


@dataclass(frozen=True, slots=True)
class _Lead:
    """The level and conditions that a heading or sentence gives to the list below it."""

    level: Level | None
    raw: str
    conditions: Sequence[str] = ()
    review: str | None = None
    districts: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class _Above:
    """The level and districts that a line gives to the lines below it."""

    lead: _Lead | None
    districts: Sequence[str] | None = None


def find_permissions(
    section: Section, known: Mapping[str, District], above: Sequence[Section] = ()
) -> Sequence[UsePermission]:
    """Find the uses that a section permits or prohibits: in lists and sentences, then in matrices.

    `known` are the districts of the code. `above` are the ancestors of the section, innermost first.
    """
    in_matrices = [found for table in _join_tables(section, known) for found in _in_matrix(section, table, known)]
    return [*_Lines(section, known, above).read().permissions, *in_matrices]


def find_inherited(
    section: Section, known: Mapping[str, District], above: Sequence[Section] = ()
) -> Sequence[Inheritance]:
    """Find the statements that a district has the uses of another. The arguments are those of `find_permissions`."""
    return _Lines(section, known, above).read().inherited if INHERITED.search(section.text) else []


class _Lines:
    """Reader of the lists and sentences of a section.

    A line is below the nearest line with another style of label before it, as ``(1)`` is below ``(a)``. A use has the
    level and the districts of the lines above it, and none if one of these lines could not be read.
    """

    def __init__(self, section: Section, known: Mapping[str, District], above: Sequence[Section]) -> None:
        self.permissions: list[UsePermission] = []
        self.inherited: list[Inheritance] = []
        self._section, self._text, self._known, self._above = section, section.text, known, above
        self._around: tuple[str, ...] = tuple(naming.codes_of_section(section, known, above))
        self._root = _parse_heading(section.title.rstrip(" :"), known)
        self._outline = Outline[_Above]()
        self._listed = False
        """A list of uses began since the districts were named."""
        self._latest: Sequence[str] = ()
        """Districts of the sentence before, on the same line."""

    def read(self) -> Self:
        """Read all lines. Returns the reader itself."""
        text, section = self._text, self._section
        own = {start: (end, codes) for start, end, codes in naming.find_line_starts(text)}
        tables = [(table.start, table.end) for table in section.tables]
        lines = list(re.finditer(r" *([^\n]*\S)", text))
        lines = [line for line in lines if not any(first <= line.start(1) < last for first, last in tables)]
        for line, following in zip_longest(lines, lines[1:]):
            start, end = line.span(1)
            label = text[slice(following.start(1), find_label_end(text, *following.span(1)))] if following else ""
            stop, codes = own.get(line.start(), (start, ()))
            if codes := [code for code in codes if code in self._known]:
                # Consecutive lines for several districts belong together. A line after a list starts the next district.
                self._around = tuple(codes) if self._listed else tuple(dict.fromkeys((*self._around, *codes)))
                self._outline, self._root, self._listed = Outline(), None, False
                start = stop + len(text[stop:end]) - len(text[stop:end].lstrip(".: "))
            self._latest = ()
            self._read_line(start, end, label.strip())
        kind = development_of(section, self._known, self._above) if self.permissions else None
        if kind is not None:
            self.permissions = [_conditional(each, kind, self._known) for each in self.permissions]
        return self

    def _read_line(self, start: int, end: int, following: str) -> None:
        """Read the line [start, end). `following` is the label of the next one."""
        text, frames = self._text, self._outline.frames
        if note := _HISTORY.search(text, start, end):
            end = note.start()
        body = find_label_end(text, start, end)
        label, words = text[start:body].strip(), text[body:end]
        if label:
            self._outline.enter(label)
        elif frames and frames[-1].parent:
            self._outline.leave()  # The list is complete.
        above = frames[-1].value.lead if frames else self._root
        if (
            (codes := naming.parse_heading(words, self._known))
            and _parse_heading(words, self._known) is None
            and not parse_sentence(text, body, end, self._known)
        ):
            self._push(label, None, codes)
            return
        if not label and len(words) <= 100 and _UNREAD.match(words) and _parse_heading(words, self._known) is None:
            # Lines below a heading that was not read are not for the district of the section.
            if codes := naming.codes_in_title(words, self._known):
                self._around = tuple(codes)
            elif not words.isupper() or re.search(r"\b(?:DISTRICT|ZONE|ARTICLE|CHAPTER|DIVISION)\b", words):
                self._around = ()
            self._outline, self._root = Outline(), None
            return
        group = above is not None and _GROUP_HEAD.fullmatch(words) and level_of(words) is None
        if group and _parse_heading(words, self._known) is None and self._outline.is_parent(label, following):
            self._push(label, above)
            return
        if above is not None and states_no_use(words):
            if label:
                self._push(label, None)
            return
        below: _Lead | None = None
        announced: _Lead | None = None
        item = False
        sentences = list(find_sentences(text, body, end))
        for number, (first, last) in enumerate(sentences):
            if heading := self._read_heading(first, last, above):
                above = below = heading
                after = text.find(": ", first, last) + 2
                if after > 1 and (said := parse_sentence(text, after, last, self._known)):
                    below = self._read_statements(said, above)
                announced = below if _ANNOUNCED.search(text, first, last) else None
                continue
            if text[last - 1] == ":":
                # "The following are allowed indoors. Goods may be shown outside:" announces one list.
                below = announced if number and not _ANNOUNCED.search(text, first, last) else None
            if said := parse_sentence(text, first, last, self._known):
                lead = self._read_statements(said, above)
                below = lead or (below if below is announced else None)
                announced = lead if lead is not None and _ANNOUNCED.search(text, first, last) else announced
            elif above is not None and (
                self._is_item(first, last, label)
                if number == 0
                else (item or below is above) and self._is_name(first, last)
            ):
                others = sentences[number + 1 :]
                alone = not any(self._is_name(*each) or parse_sentence(text, *each, self._known) for each in others)
                item, below = True, self._read_item(first, end if alone else last, above)
                if alone:
                    break
        if label or not item:
            self._push(label, below)

    def _push(self, label: str, lead: _Lead | None, districts: Sequence[str] | None = None) -> None:
        if not label:
            self._outline.leave()
        self._outline.push(label, _Above(lead, districts))
        self._listed = self._listed or lead is not None

    def _place(self, given: Sequence[str] | None) -> Sequence[str]:
        """The districts of a statement that names these."""
        if given is not None:
            return given
        named = self._outline.find(lambda each: each.districts if each.lead is None else each.lead.districts)
        if named is not None:
            return named
        if self._latest and not set(self._latest) <= set(self._around):
            return () if self._around else self._latest
        return self._latest or self._around

    def _read_heading(self, start: int, end: int, above: _Lead | None) -> _Lead | None:
        """Read a heading, and the uses after it: ``Permitted uses: barns; sheds``"""
        given = _parse_heading(self._text[start:end], self._known)
        if given is None:
            return None
        given = replace(given, level=_settle(given.level, above) if given.level else above.level if above else None)
        if given.level is None:
            return given
        colon = self._text.find(":", start, end) + 1
        rest = self._text[colon:end]
        if listed := (split_list(rest) or (() if INHERITED.search(rest) else split_described(rest))) if colon else ():
            for first, last in listed:
                self._read_item(colon + first, colon + last, given)
        elif colon and (match := INHERITED.match(self._text, colon + 1, end)):
            self._inherit(match, end, given, self._place(given.districts))
        rest = rest.strip() if colon else ""
        if rest and not _FOLLOWING.match(rest):
            return replace(given, level=None)
        condition = _HEADING_CONDITION.search(rest) if given.level != "conditional" else None
        return replace(given, conditions=[condition[0].rstrip(" :.")]) if condition else given

    def _read_statements(self, said: Sequence[Statement], above: _Lead | None) -> _Lead | None:
        """Read the statements of a sentence. Returns its lead for the lines below it."""
        lead: _Lead | None = None
        for each in said:
            districts = self._latest if each.same and self._latest else self._place(each.districts)
            self._latest = districts if each.districts is not None else self._latest
            colon = self._text.find(": ", each.start, each.end)
            if not each.uses or 0 <= colon < each.uses[0][0]:
                level = _settle(each.level, above)
                lead = _Lead(level, each.raw, each.conditions, each.review, districts)
                if above is not None and each.raw in ("permitted", "allowed") and level == above.level:
                    lead = replace(lead, raw=above.raw, review=each.review or above.review)
                for first, last in each.uses:
                    self._read_item(first, last, lead)
                continue
            level = each.level
            if (
                above is not None
                and above.level in ("conditional", "notPermitted")
                and level not in (above.level, None)
            ):
                level = level if level in ("conditional", "notPermitted") else None
            if level is None:
                continue
            for first, last in each.uses:
                if match := INHERITED.match(self._text, first, last):
                    self._inherit(match, last, _Lead(level, each.raw), districts)
                    continue
                self.permissions += [
                    UsePermission(
                        code, self._text[first:last], level, each.raw, list(each.conditions), each.review,
                        each.start, each.end, CONFIDENCE["sentence"], "sentence",
                    )
                    for code in districts
                ]  # fmt: skip
        return lead

    def _is_name(self, start: int, end: int) -> bool:
        """Whether a sentence only names a use: one of a list with periods between its items."""
        words = self._text[start:end]
        plain = not (has_verb(words) or _NO_NAME.search(words) or _CUT.search(words))
        return plain and len(words.split()) <= _WORDS_OF_NAME and self._is_item(start, end, "")

    def _is_item(self, start: int, end: int, label: str) -> bool:
        """Whether a line below a lead is a use: labelled or short, and neither a sentence nor a heading."""
        words = self._text[start:end]
        name = re.split(r" (?:that|which|who|whose) ", words[: cut.start()] if (cut := _CUT.search(words)) else words)[
            0
        ]
        length = len(words.split())
        if (
            length > (_WORDS_OF_LINE if not label and not self._outline.frames else _WORDS_OF_ITEM)
            or has_verb(name)
            or (_NO_ITEM.match(words) and not INHERITED.match(words))
        ):
            return False
        last = re.split(r"[^\w/-]+", re.split(r" ?[(:]|\. |\.$", words, maxsplit=1)[0].rstrip(" .,"))[-1].split("/")[-1]
        heading = last.casefold() in _ENDING and len(name.split()) <= 6
        return not heading and (bool(label) or not (length <= 8 and _OF_LEVELS.search(name)))

    def _read_item(self, start: int, end: int, lead: _Lead) -> _Lead | None:
        """Read an item of a list, which may be several uses. Returns its lead for the lines below it."""
        text = self._text
        line = text[start:end].rstrip()
        if closing := _CLOSING.search(line, max(0, len(line) - _LONGEST_CLOSING)):
            line = line[: closing.start() + (line[closing.start()] == "." and not line[:-1].endswith("."))]
        if match := INHERITED.match(text, start, start + len(line)):
            self._inherit(match, start + len(line), lead, self._place(lead.districts))
            return None
        if (listed := _ACCESSORY.match(line)) and "not including" not in line:
            inner = line[listed.end() :]
            for first, last in split_alternatives(inner) or split_list(inner) or split_described(inner):
                self._add(start + listed.end() + first, inner[first:last], lead)
            return None
        sub = _SUB.search(line)
        if sub is not None and (_CUT.search(line[: sub.start()]) is None):
            below = replace(lead, conditions=())
            if sub[0] == ":" or sub[0] == "of the following":
                return below if len(line.split()) <= 8 else None
            line = line[: sub.start()] if "limited" not in sub[0] else line
        else:
            below = None
        if line.endswith(":") and not _CUT.search(line):
            return None
        parts = [(0, len(line))]
        if two := _TWO.search(line):
            # "Offices for surveyors and/or storage of instruments": the words after the preposition are one phrase.
            one_phrase = "/" in two[0] and _PREPOSITION.search(line[: two.start()])
            if "," not in line[: two.start()] and not one_phrase and not _CUT.search(line[: two.end()]):
                parts = [(0, two.start()), (two.end(), len(line))]
        elif several := split_alternatives(line):
            parts = list(several)
        for first, last in parts:
            self._add(start + first, line[first:last], lead)
        return below

    def _add(self, start: int, line: str, lead: _Lead) -> None:
        """Add the use of an item, once per district."""
        cut = _CUT.search(line)
        use = _LOOSE.sub("", (line[: cut.start()] if cut else line).strip(" .;,:"))
        cited = [(each.start, each.end) for each in find_citations(line)]
        limit = next((m for m in _LIMIT.finditer(use) if not any(a <= m.start() < b for a, b in cited)), None)
        before = [m for m in _BEFORE_LIMIT.finditer(use, 0, limit.start() + 1) if m.start()] if limit else []
        before = [m for m in before if m[0].strip() not in ("of", "not")] or before
        before = [m for m in before if not re.fullmatch(r"(?:the )?\w+(?:ing|age|al)", use[: m.start()], re.IGNORECASE)]
        rest = line[len(use) :]
        if before:
            use, rest = use[: before[-1].start()], line[before[-1].start() :]
        elif cut:
            rest = line[cut.end() :]
        conditioned = bool(
            not _NO_CONDITION.match(rest.lstrip(" (,."))
            or _HEADING_CONDITION.search(rest)
            or re.search(r" (?:where|when) ", use)
        )
        placed = _LEADING_PLACE.match(use)
        if placed is not None:
            use = re.sub(" as (?:an )?accessory uses?$", "", use[placed.end() :])
            lead = replace(lead, districts=naming.parse_place(placed["where"], self._known))
        said = rest.strip(" ,;.(")
        codes = list(self._place(lead.districts))
        only = _ONLY.search(line) if placed is None else None
        if only:
            told = naming.find_codes(only["codes"], self._known)
            named = [code for code in told if code in codes]
            codes = named or codes
            if not cut and only.start():
                use, rest = line[: only.start()].strip(" .;,("), line[only.start() :]
            elif use.endswith(only[0].strip()):
                use = use[: -len(only[0].strip())].strip(" .;,(")
            conditioned = conditioned and not named
        if not use or len(use) > 300 or lead.level is None:
            return
        level = lead.level
        if level in ("byRight", "byRightWithConditions") and _PERMIT.match(said) and is_conditional(said):
            level = "conditional"
        elif level == "byRight" and conditioned:
            level = "byRightWithConditions"
        conditions = [each for each in (strip_brackets(rest.lstrip(" ,;.")), *lead.conditions) if each]
        review = (find_review(rest) if rest and lead.level == "conditional" else None) or lead.review
        self.permissions += [
            UsePermission(
                code, use, level, lead.raw, conditions, review, start, start + len(line), CONFIDENCE["list"], "list"
            )
            for code in codes
        ]

    def _inherit(self, match: re.Match[str], end: int, lead: _Lead, districts: Sequence[str]) -> None:
        """Add a reference to the uses of another district."""
        sources = naming.find_codes(match["of"], self._known) or naming.parse_place(f"in {match['of']}", self._known)
        if lead.level is None or lead.level == "notPermitted":
            return
        raw = self._text[match.start() : end].rstrip(" .;,")
        end = match.start() + len(raw)
        self.inherited += [
            Inheritance(code, source, lead.level, raw, lead.raw, match.start(), end, 0.95)
            for code in districts
            for source in sources or (None,)
            if source != code
        ]


def _settle(level: Level | None, above: _Lead | None) -> Level | None:
    """The level of a list below two headings. None where they contradict each other."""
    outer = above.level if above is not None else None
    if level is None or outer is None:
        return level or (outer if outer == "conditional" else None)
    if level == "byRight" and outer == "notPermitted":
        return None
    return outer if level == "byRight" else level


def _conditional(each: UsePermission, kind: str, known: Mapping[str, District]) -> UsePermission:
    """Add the condition that the use is part of a `kind` of development to a permission."""
    conditions = add_condition(each.conditions, kind, each.district, known)
    limited = each.level == "byRight" and conditions is not each.conditions
    return replace(each, level="byRightWithConditions" if limited else each.level, conditions=conditions)


def _parse_heading(line: str, known: Mapping[str, District]) -> _Lead | None:
    """Parse a line as the heading of a list of uses. None if it is not one, or a sentence."""
    named, colon, _ = line.strip().partition(":")
    words = _ASIDE.sub("", named).rstrip(". ")
    placed = _PLACED.search(words)
    codes = naming.find_codes(placed["where"], known) if placed else ()
    if placed and (codes or re.search(r"\b(?:district|zone)s?$", words)):
        words = words[: placed.start()]
    if colon and _ANNOUNCES.match(words) and (not has_verb(words) or is_conditional(words.partition(",")[0])):
        level = level_of(words)
        review = find_review(named) if level == "conditional" else None
        return _Lead(level if level == "conditional" else None, words, (), review)
    if len(words.split()) > 12 or has_verb(words) or ". " in words or _MIXED.search(words):
        return None
    districts = codes or naming.find_places(named, 0, len(named), known)
    districts = (
        list(known)
        if districts is not None and not districts and placed and not codes and "all" in named
        else districts
    )
    if _SAME.fullmatch(words):
        level = level_of(words) if "permitted" in words.casefold() else None
        return _Lead(level or ("byRight" if not colon else None), words, districts=districts or None)
    if not _BARE_HEAD.fullmatch(words) and not (_HEAD.fullmatch(words) and _USES.search(words)):
        return None
    level = level_of(words)
    if level is None or (INHERITED.fullmatch(named.rstrip(". ")) and not colon and not codes):
        return None
    conditional = level == "conditional"
    conditions = () if conditional else tuple(m[0].strip(" :.") for m in _HEADING_CONDITION.finditer(words))[:1]
    return _Lead(level, words, conditions, find_review(named) if conditional else None, districts or None)


_USUAL: Final[Mapping[str, Level]] = {
    "P": "byRight", "Y": "byRight", "YES": "byRight", "BR": "byRight", "PERMITTED": "byRight",
    "ALLOWED": "byRight", "✓": "byRight", "✔": "byRight", "•": "byRight", "●": "byRight", "■": "byRight",
    "C": "conditional", "CU": "conditional", "CUP": "conditional", "SU": "conditional",
    "SE": "conditional", "SP": "conditional", "SUP": "conditional", "SLU": "conditional", "CONDITIONAL": "conditional",
    "ZBA": "conditional", "BZA": "conditional",
    "P/C": "byRightOrConditional", "LIMITED": "byRightWithConditions",
    "N": "notPermitted", "NO": "notPermitted", "NP": "notPermitted", "-": "notPermitted", "–": "notPermitted",
    "—": "notPermitted", "--": "notPermitted", "PROHIBITED": "notPermitted", "NOT PERMITTED": "notPermitted",
}  # fmt: skip
"""Default meaning of letters, without a legend. X has two meanings; the other letters of the table decide."""
_MARK: Final = re.compile(
    r"(?P<letters>[A-Za-z]{1,4}-[A-Za-z]{1,4}|[A-Za-z/✓✔•●■○◯◐□☐–—-]{1,4}|\*{1,2}"
    r"|(?i:permitted|allowed|prohibited|conditional|limited|not permitted))"
    r"[ ]?(?P<notes>(?:[\[(]?[\d*†‡,]{1,5}[\])]?|\([a-z]\)(?:,? ?\([a-z]\))*)?)"
)
_SIGN: Final = re.compile(
    r"(?<![\w-])(?P<open>[“\"‘(\[]?)(?P<letter>[A-Z](?:[/-]?[A-Z]){0,6}\d?|[-–—✓✔•●■○◯◐□☐]|\*{1,2})[”\"’)\]]?"
    r"(?P<sign> ?(?:=|:| \||[-–—](?= )|,? ?\b(?:means?|indicates?|denotes?|is|are|shall mean|stands for"
    r"|signifies)\b)| (?=[A-Z]))"
)
"""Start of a letter's meaning in a legend: ``P = ``, ``"C" means``, ``(S) Special``, ``● Permitted``."""
_SIGNED: Final = re.compile(
    r"(?P<meaning>[^.;:\n|()“”\"]{3,80}?) [(“\"‘]{1,2}(?P<letter>[A-Z](?:/?[A-Z]){0,3}|[-–—✓✔•●■○◯◐□☐])[)”\"’]{1,2}"
)
"""A legend in reverse order: ``Conditional uses (C)``."""
_MEANING: Final = re.compile(r"[^;\n|]{3,120}?(?=[;\n|]|\. |\.$|$)|[^;\n|]{120}")
_BESIDE: Final = re.compile(r"\baccessory\b", re.IGNORECASE)
_BLANK: Final = re.compile(r"\b(?:blank|empty|no letter|no symbol)\b[^.\n]{0,80}", re.IGNORECASE)
_USE: Final = re.compile(r"\b(?:uses?|activit(?:y|ies))\b", re.IGNORECASE)
_NOTE: Final = re.compile(
    r"(?:\(?(?P<mark>\d{1,2}|[*†‡]{1,3})[.):]?|\((?P<letter>[a-z]{1,2})\)|(?P<plain>[a-z])[.)]) ?(?P<note>\S[^\n]*)"
)
_LETTERS_SHARE: Final = 0.6
"""Minimum share of letters among non-empty cells in a matrix of uses."""
_GROUP: Final = 80
"""Longest heading of a group of rows, in code points."""
_AROUND: Final = 4_000
"""Code points before and after a table that are searched for its legend and notes."""


@dataclass(frozen=True, slots=True)
class _Joined:
    """A table and its continuations, which have no header of their own."""

    start: int
    end: int
    rows: Sequence[Sequence[Cell | None]]

    def grid(self) -> Sequence[Sequence[Cell | None]]:
        return self.rows


def _join_tables(section: Section, known: Mapping[str, District]) -> Iterator[_Joined]:
    """Join the parts of a table that rows of one cell, such as ``Business uses``, divide."""
    joined: _Joined | None = None
    for table in section.tables:
        grid = table.grid()
        between = section.text[joined.end : table.start].strip() if joined else ""
        if (
            joined is not None
            and naming.find_columns(grid, known) is None
            and len(between) <= _GROUP
            and not re.search(r"[\n.:]", between)
            and len(grid[0] if grid else ()) == len(joined.rows[0] if joined.rows else ())
        ):
            joined = _Joined(joined.start, table.end, [*joined.rows, *grid])
            continue
        if joined is not None:
            yield joined
        joined = _Joined(table.start, table.end, grid)
    if joined is not None:
        yield joined


def _in_matrix(section: Section, table: _Joined, known: Mapping[str, District]) -> Iterator[UsePermission]:
    grid = table.grid()
    columns = naming.find_columns(grid, known)
    if columns is None:
        turned = [
            [row[place] if place < len(row) else None for row in grid] for place in range(len(grid[0]) if grid else 0)
        ]
        columns = naming.find_columns(turned, known)
        if columns is None:
            return
        grid = turned
    header, districts = columns
    cells = [row[place] for row in grid[header + 1 :] for place in districts if place < len(row)]
    words = [cell.text for cell in cells if cell is not None and cell.text.strip()]
    if not words or sum(bool(_MARK.fullmatch(text.strip())) for text in words) < _LETTERS_SHARE * len(words):
        return
    legend = _parse_legend(section, table, words)
    notes = find_notes(section, table)
    last, names = max(districts), _names(grid, header, min(districts))
    for row in grid[header + 1 :]:
        use = next((cell for place in names if (cell := row[place]) is not None and cell.text.strip()), None)
        own = [cell for place in districts if place < len(row) and (cell := row[place]) is not None and cell is not use]
        if use is None or not use.text.strip() or not any(cell.text.strip() for cell in own):
            continue  # a group heading, or a row without a mark for any district
        beside = [each.text.strip(" .") for each in row[last + 1 :] if each is not None and each not in own]
        told = [words for words in dict.fromkeys(beside) if any(map(str.isalnum, words))]
        for place, code in districts.items():
            cell = row[place] if place < len(row) else None
            if cell is not None and cell is not use:
                yield from _parse_cell(section, use, cell, code, legend, notes, told)


@dataclass(frozen=True, slots=True)
class _Legend:
    """Meanings of letters and of a blank cell."""

    levels: Mapping[str, Level]
    blank: Level | None
    reviews: Mapping[str, str]
    """Citations of the review for a use, by letter."""
    words: Set[str]
    """Words around the table."""


def _parse_legend(section: Section, table: _Joined, words: Sequence[str]) -> _Legend:
    """Parse the meaning of letters from the text around the table, with defaults."""
    before = section.text[max(0, table.start - _AROUND) : table.start]
    after = section.text[table.end : table.end + _AROUND]
    legend, reviews = dict(_USUAL), dict[str, str]()
    letters = {each for word in words for each in (_letters(word), word.strip().upper())}
    own: set[str] = set()
    for around in (after, before):
        for letter, meaning in _meanings(around, letters):
            level = level_of(f"{meaning} uses") or ("byRightWithConditions" if _BESIDE.search(meaning) else None)
            if level is not None:
                legend[letter] = level
                own.add(letter)
                if level == "conditional" and (review := find_review(meaning)):
                    reviews[letter] = review
    if "X" in letters and "X" not in own:
        legend["X"] = (
            "notPermitted" if any(legend.get(letter) == "byRight" for letter in letters - {"X"}) else "byRight"
        )
    said = _BLANK.search(before) or _BLANK.search(after)
    blank = level_of(said[0]) if said else None
    return _Legend(legend, blank, reviews, {*re.findall(r"\b[A-Z]{1,3}\d\b", before + after)})


def _meanings(around: str, letters: Set[str]) -> Iterator[tuple[str, str]]:
    """Yield letters and their meanings. A meaning ends where the next letter is explained."""
    for match in _SIGNED.finditer(around):
        if match["letter"].upper() in letters:
            yield match["letter"].upper(), match["meaning"]
    signs = [
        match
        for match in _SIGN.finditer(around)
        if match["letter"].upper() in letters
        and (
            match["sign"].strip()
            or match["open"]
            or not match["letter"].isalpha()
            or around[match.start() - 1 : match.start()] in ("", "\n")
        )
    ]
    for place, match in enumerate(signs):
        until = signs[place + 1].start() if place + 1 < len(signs) else len(around)
        if meaning := _MEANING.match(around, match.end(), until):
            yield match["letter"].upper(), meaning[0]


def _names(grid: Sequence[Sequence[Cell | None]], header: int, first: int) -> Sequence[int]:
    """The columns before the first district that may contain the name of a use, best first."""
    heads = [" ".join(cell.text for row in grid[: header + 1] if (cell := row[place])) for place in range(first)]
    named = [place for place, words in enumerate(heads) if _USE.search(words)]
    column = named[-1] if named else 0
    return range(column, -1, -1)


def _letters(word: str) -> str:
    match = _MARK.fullmatch(word.strip())
    return match["letters"].upper() if match else word.strip().upper()


def find_notes(section: Section, table: Table | _Joined) -> Mapping[str, str]:
    """Find the notes below a table by mark: subsections with such labels, or lines that start with them."""
    notes: dict[str, str] = {}
    for each in section.subsections:
        if each.start >= table.end and len(each.path) == 1:
            notes.setdefault(each.path[0], section.text[each.start : each.end].strip())
    for line in section.text[table.end : table.end + _AROUND].split("\n"):
        if match := _NOTE.fullmatch(line.strip()):
            notes.setdefault(match["mark"] or match["letter"] or match["plain"], match["note"])
    return notes


def _parse_cell(
    section: Section,
    use: Cell,
    cell: Cell,
    code: str,
    legend: _Legend,
    notes: Mapping[str, str],
    told: Sequence[str],
) -> Iterator[UsePermission]:
    name = strip_marks(section, use).strip(" .;:")
    name = name[find_label_end(name, 0, len(name)) :]
    raw = strip_marks(section, cell).strip()
    match = _MARK.fullmatch(raw) if raw.upper() not in legend.levels and raw not in legend.words else None
    marks = [section.text[start:end].strip() for start, end in (*use.superscripts, *cell.superscripts)]
    if match and match["notes"]:
        raw = match["letters"]
        marks += re.findall(r"\d+|[*†‡]+|[a-z]+", match["notes"])
    conditions = list(dict.fromkeys(notes[mark] for mark in marks if mark in notes))
    usual = None if raw.upper() in legend.levels else re.match(r"(SP|SE|SUP|CUP|C)(?=-[A-Z]|\d)", raw)
    level = legend.levels.get(usual[1] if usual else raw.upper()) if raw else legend.blank
    if level is None:
        return
    if not raw:
        yield UsePermission(code, name, level, "", conditions, None, use.start, use.end, CONFIDENCE["blank"], "matrix")
        return
    if level == "byRight" and conditions:
        level = "byRightWithConditions"
    review = legend.reviews.get(raw.upper()) if level == "conditional" else None
    conditions += told if level != "notPermitted" else ()
    yield UsePermission(
        code, name, level, raw, conditions, review, cell.start, cell.end, CONFIDENCE["matrix"], "matrix"
    )


def strip_marks(section: Section, cell: Cell) -> str:
    """Get the words of a cell without its raised marks."""
    words, at = [], cell.start
    for start, end in sorted(cell.superscripts):
        words.append(section.text[at:start])
        at = max(at, end)
    return "".join([*words, section.text[at : cell.end]])
