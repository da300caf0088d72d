"""Uses that districts permit or prohibit, in lists, in sentences, and in matrices of letters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Final, Self

from loaders.citations.section_citations import find_citations
from loaders.zoning.extraction import districts as naming
from loaders.zoning.extraction.clauses import has_verb
from loaders.zoning.extraction.dimension_names import find_dimensions
from loaders.zoning.extraction.districts import District, add_condition, development_of
from loaders.zoning.extraction.outline import Outline, find_label_end
from loaders.zoning.extraction.permission_levels import (
    CONFIDENCE,
    Level,
    UsePermission,
    find_review,
    is_conditional,
    level_of,
)
from loaders.zoning.extraction.permission_matrices import find_in_matrices
from loaders.zoning.extraction.section_protocol import Section
from loaders.zoning.extraction.use_lists import INHERITED, split_alternatives, split_list, states_no_use
from loaders.zoning.extraction.use_sentences import (
    Inheritance,
    Statement,
    find_sentences,
    parse_sentence,
    split_described,
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
_BY_PERMIT: Final = re.compile(
    r"(?:By|Upon|On|With|Subject to|Under|After) (?:(?:the )?(?:issuance|granting|grant|approval) of )?(?:an? )?"
    r"(?:special|conditional)[^,:;.]{0,80}, (?:an? |the |one )?(?=[a-z])"
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
_BUT_NOT: Final = re.compile(r"\b(?:but not including|excluding|except(?:ing)?|other than)\b.*")
_HEADING_CONDITION: Final = re.compile(r"\b(?:if|provided|only|subject to (?!cond)|when)\b.*", re.IGNORECASE)
_BARE_HEAD: Final = re.compile(
    r"(?:permitted|prohibited|conditional|not (?:permitted|allowed))|(?:(?:permitted|allowed) )?"
    r"(?:outright|(?:as of|by) "
    r"(?:right|(?:administrative )?(?:special|conditional)(?: use)? (?:permits?|exceptions?)))",
    re.IGNORECASE,
)
_ASIDE: Final = re.compile(r" ?\((?:see|as|in accordance|pursuant|refer|per)\b[^)]*\)?")
_OF_DISTRICT: Final = re.compile(r"^[^:.]{1,60}\b(?:district|zone)s? ?(?:--|[–—]| - ) ?(?=[A-Z])", re.IGNORECASE)
"""The start of a heading that names its district: ``R-1 zone--Conditional uses``."""
_LISTED_BELOW: Final = re.compile(
    r"(?<=uses)(?: (?:are|shall be)(?: limited to)?)?(?: as follows| the following)?$", re.IGNORECASE
)
"""The end of a heading that announces a list: ``Accessory uses shall be as follows``."""
_PLACED: Final = re.compile(r" (?:in|within) (?:the )?(?P<where>[^:.;]{1,80})$")
_ENDING: Final = frozenset(
    re.findall(
        r"\w+",
        "standards requirements regulations review criteria findings procedure "
        "procedures purpose intent provisions restrictions limitations signs signage parking walls fences landscaping "
        "lighting application applications",
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
_OF_LIMIT: Final = re.compile(r" (?:of|to) (?:not|no) (?:more|less|fewer|over)\b")
_HOLDER: Final = re.compile(r",? (?:on|with|for|in|having|within) (?:an? |the )?(?:[\w-]+ )?[\w-]+$")
"""What has the limit behind it: ``on a lot`` of ``Golf courses, on a lot of not less than 50 acres``."""
_ACTION: Final = re.compile(r"(?:the )?\w+ing", re.IGNORECASE)
_LONGEST_CLOSING: Final = 100
"""Maximum characters of the punctuation at the end of an item. A longer search would be repeated for each mark."""
_SUB: Final = re.compile(r",? (?:including|such as|limited to|for example)(?: the following)?:?$|:$")
_ONLY: Final = re.compile(
    rf"(?:\bin the |\()(?P<codes>{naming.CODE}(?:(?:, (?:and |or )?| and | or ){naming.CODE}){{0,20}})"
    r" (?:zones?|districts?)(?P<only> only)?",
    re.IGNORECASE,
)
_HISTORY: Final = re.compile(r" [(\[](?:Ord\b|Ordinance|Added|Amended|Prior code)[^\n]{0,400}+(?<=[)\]])$")
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
_ACCESSORY_USES: Final = re.compile(r"accessory uses(?: as follows)?", re.IGNORECASE)
_ACCESSORY_TO: Final = re.compile(
    r"(?:uses|buildings|structures)\b(?>[^:;.]*?\b(?:accessory|incidental|subordinate) to\b)[^:;.]*+:"
    r"(?:(?<=\bincluding:)|(?<=\bsuch as:)|(?<=\bincluding the following:)|(?<=\bsuch as the following:))",
    re.IGNORECASE,
)
"""The words below ``Accessory uses.``: ``Uses customarily accessory to these, including:``"""
_TWO: Final = re.compile(r",? and/or |, and (?=[^,;]*$)")
_PREPOSITION: Final = re.compile(r" (?:of|for|with|in|on) ")
_USES_TOO: Final = frozenset({"parking", "open-space"})
"""Dimensions with names that uses have too."""
_MARKS: Final = frozenset(".;")
_WORDS_OF_ITEM: Final = 80
_WORDS_OF_LINE: Final = 14
_WORDS_OF_NAME: Final = 7


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
    section: Section,
    known: Mapping[str, District],
    above: Sequence[Section] = (),
    legends: Sequence[Section] = (),
) -> Sequence[UsePermission]:
    """Find the uses that a section permits or prohibits: in lists and sentences, then in matrices.

    `known` are the districts of the code. `above` are the ancestors of the section, innermost first. `legends` are
    other sections that explain the letters of its matrices.
    """
    return [*_Lines(section, known, above).read().permissions, *find_in_matrices(section, known, legends)]


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
        self._marked = False
        """The items of the current list without labels end with a mark."""

    def read(self) -> Self:
        """Read all lines. Returns the reader itself."""
        text, section = self._text, self._section
        own = {start: (end, codes) for start, end, codes in naming.find_line_starts(text)}
        tables = [(table.start, table.end) for table in section.tables]
        lines = list(re.finditer(r"^ *+([^\n]*\S)", text, re.MULTILINE))
        lines = [line for line in lines if not any(first <= line.start(1) < last for first, last in tables)]
        for line, following in zip_longest(lines, lines[1:]):
            start, end = line.span(1)
            label = text[slice(following.start(1), find_label_end(text, *following.span(1)))] if following else ""
            stop, codes = own.get(line.start(), (start, ()))
            together: tuple[str, ...] | None = None
            if codes := [code for code in codes if code in self._known]:
                # Consecutive lines for several districts belong together. A line after a list starts the next district.
                together = tuple(codes) if self._listed else tuple(dict.fromkeys((*self._around, *codes)))
                self._around = tuple(codes)
                self._outline, self._root, self._listed = Outline(), None, False
                start = stop + len(text[stop:end]) - len(text[stop:end].lstrip(".: "))
            self._latest = ()
            if self._ends_list(start, end, following[1] if following else ""):
                self._push("", None)
            else:
                self._read_line(start, end, label.strip())
            self._around = together or self._around
        kind = development_of(section, self._known, self._above) if self.permissions else None
        if kind is not None:
            self.permissions = [_conditional(each, kind, self._known) for each in self.permissions]
        return self

    def _ends_list(self, start: int, end: int, following: str) -> bool:
        """Whether a line is a heading after a list without labels: its items end with a mark, and the line does not.

        An item without its mark has another one after it, and a heading has none. ``Lot size.`` is a heading too.
        """
        line = self._text[start:end]
        frames = self._outline.frames
        if not (frames and frames[-1].value.lead) or find_label_end(line, 0, len(line)):
            return False
        if _names_dimension(line.partition(". ")[0].rstrip(".")):
            return True
        if not self._marked:
            return False
        listed = following[-1:] in _MARKS and len(following.split()) <= _WORDS_OF_LINE and not has_verb(following)
        return not (line[-1] in _MARKS or line[-1] in ":)" or listed or _parse_heading(line, self._known))

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
            if below is above and above is not None and _ACCESSORY_TO.fullmatch(text, first, last):
                continue  # The heading before it announces the list.
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
                self._marked = not label and text[end - 1] in _MARKS
                if alone:
                    break
        if label or not item:
            self._push(label, below)

    def _push(self, label: str, lead: _Lead | None, districts: Sequence[str] | None = None) -> None:
        if not label:
            self._outline.leave()
            self._marked = False
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
        level = given.level or ("byRight" if above is None and _ACCESSORY_USES.fullmatch(given.raw) else None)
        given = replace(given, level=_settle(level, above) if level else above.level if above else None)
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
        if rest and (but := _BUT_NOT.search(rest)):
            return replace(given, conditions=[*given.conditions, but[0].rstrip(" :.")])
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
        heading = (last.casefold() in _ENDING or _names_dimension(name)) and len(name.split()) <= 6
        return not heading and (bool(label) or not (length <= 8 and _OF_LEVELS.search(name)))

    def _read_item(self, start: int, end: int, lead: _Lead) -> _Lead | None:
        """Read an item of a list, which may be several uses. Returns its lead for the lines below it."""
        text = self._text
        if way := _BY_PERMIT.match(text, start, end):  # "By special permit, a mill", in a list of permitted uses
            level: Level | None = None if lead.level == "notPermitted" else "conditional"
            start, lead = way.end(), replace(lead, level=level, review=find_review(way[0]) or lead.review)
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
            limited = _LIMIT.search(line, 0, sub.start()) is not None
            below = replace(lead, conditions=[line[: sub.start()].rstrip(" ,")] if limited else ())
            below = replace(below, level="byRightWithConditions") if limited and lead.level == "byRight" else below
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
        elif cut and _OF_LIMIT.match(line, len(use)):
            if _ACTION.fullmatch(use):
                use, rest, cut = line.strip(" .;,:"), "", None
            elif held := _HOLDER.search(use):
                use, rest = use[: held.start()], line[held.start() :]
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


def _names_dimension(words: str) -> bool:
    """Whether some words are a dimension and no use: ``Project size``."""
    named = find_dimensions(words)
    return any(each.end == len(words) and each.type not in _USES_TOO and words[each.start :] != "lot" for each in named)


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
    line = _OF_DISTRICT.sub("", line.strip())
    named, colon, _ = line.partition(":")
    words = _LISTED_BELOW.sub("", _ASIDE.sub("", named).rstrip(". ")) if colon else _ASIDE.sub("", named).rstrip(". ")
    placed = _PLACED.search(words)
    codes = naming.find_codes(placed["where"], known) if placed else ()
    if placed and (codes or re.search(r"\b(?:district|zone)s?$", words)):
        words = words[: placed.start()]
    by_permit = words[:3].casefold() == "by " and is_conditional(words)
    if (
        colon
        and (_ANNOUNCES.match(words) or by_permit)
        and (not has_verb(words) or is_conditional(words.partition(",")[0]))
    ):
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
