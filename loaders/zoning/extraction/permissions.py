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

from loaders.zoning.extraction.districts import District
from loaders.zoning.extraction.measures import find_measures
from loaders.zoning.extraction.permission_levels import (
    INHERITED,
    Level,
    UsePermission,
    find_review,
    is_conditional,
    level_of,
    prohibit_unlisted,
)
from loaders.zoning.extraction.permission_matrices import find_in_matrices
from loaders.zoning.extraction.section_scope import Places, Scope
from loaders.zoning.extraction.use_lists import (
    ANNOUNCES,
    BEGINS_NO_USE,
    BLOCKED,
    CUT,
    DIMENSION,
    EXCEPTS,
    FOLLOWING,
    HEADING,
    HISTORY_NOTE,
    LIMITS,
    LONGEST_ITEM,
    MEMBERS,
    NOT_USES,
    OF_USES,
    PLACE_WORD,
    UNITS,
    VERB,
    Lead,
    parse_heading,
    parse_item,
    parse_sentence,
    sentences_of,
    settle,
    split_inline,
    split_sentences,
    strip_closing,
)
from loaders.zoning.readers.code_model import Section
from loaders.zoning.readers.outline import Line, parse_lines

_SUCH_USES: Final = re.compile(
    r"(?i)(?:.{0,60}\b(?:such|these|said|all|those|the following|permitted)(?: permitted| above| listed)? uses?\b"
    r"|.{0,30}\bthey\b)",
)
_LIMITED: Final = re.compile(r"(?i)\b(?:limited to|only|provided|not (?:more|over|to exceed)|when|where|if|enclosed)\b")
"""Words of the heading of a group of uses that limit all of them."""
_MERGED: Final = re.compile(r"\b[a-z]{3,} [A-Z][a-z]{2,}(?:,? [a-z]|$)")
"""Two items without the end of the line between them: ``Training schools Libraries``."""
_OTHER_HEADING: Final = re.compile(
    r"(?i)(?:[\w/&,-]+ ){0,7}(?:standards|requirements|regulations|restrictions|provisions|limitations|guidelines"
    r"|procedures?|review|design|criteria|conditions)"
    r"|(?:off-street |required )?(?:parking|loading)(?: and loading)?(?: spaces)?|signs?|signage|(?:landscap"
    r"|buffer)\w*(?:,? .*)?"
    r"|screening|(?:outdoor )?lighting|fences?(?: and walls)?|setbacks?|heights?|(?:front|side|rear|required) yards?"
    r"|bulk(?: .*)?|purposes?|intent|definitions?|density|coverage|projections?|utilities|nonconforming .*",
)
"""A heading of something else than uses, after a list of them."""
_REQUIREMENTS: Final = re.compile(
    r"(?i)\b(?:requirements?|conditions?|standards?|provided|provisions|restrictions|limitations|criteria|subject to|if"
    r"|when|regulations)\b[^.]{0,80}$",
)
_GROUPS: Final = re.compile(
    r"(?i)(?:\b(?:below|following|includ(?:ing|es)|such as|as follows|limited to|consist\w* of)\b[^.]{0,30}|:|\buses"
    r"|\bactivities)[.:]?$",
)
_LONGEST_REFERENCE: Final = 300
_LONGEST_LEAD: Final = 2_500


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
    return [*_Lists(section, known, places).read(), *find_in_matrices(section, known, legends)]


class _Lists:
    """Reader of the lists of a section."""

    def __init__(self, section: Section, known: Mapping[str, District], places: Places) -> None:
        self._section, self._text, self._known = section, section.text, known
        self._places = places
        self._found: list[UsePermission] = []
        self._lists: dict[str, _List] = {}
        self._open: set[tuple[int, int]] = set()
        """Sentences that close lists with items for districts that are not known."""

    def read(self) -> Sequence[UsePermission]:
        """Read all lists."""
        title = self._section.title.strip(" .:")
        root = parse_heading(title, self._known)
        if root is None and NOT_USES.search(title) and not PLACE_WORD.search(title):
            root = Lead(None, title)
        self._read_lines(parse_lines(self._section, self._places.starts), root, None)
        return [*self._found, *self._close()]

    def _read_lines(self, lines: Sequence[Line], above: Lead | None, lead: Lead | None) -> None:
        """Read lines of one depth. `above` is the lead of the line above them, `lead` that of a list among them."""
        below: Lead | None
        for number, line in enumerate(lines):
            if line.breaks:
                lead = None
            current = lead or above
            own = None if current is not None and self._is_reference(line) else self._parse_lead(line, above)
            if own is not None:
                below = own
                lead = own if not line.label or not line.below else None
            elif not line.label and (self._is_other_heading(line) or self._heads_sentence(lines, number)):
                lead = below = BLOCKED
            elif current is None or current.level is None:
                below = current
            elif not line.label and (line.below or self._is_sentence(line)):
                if not VERB.search(line.words):
                    self._miss(line.start, current)  # it may be an item that was not understood
                below = BLOCKED
            else:
                below = self._read_item(line, current)
            if line.below:
                self._read_lines(line.below, below, None)
            elif own is None and not line.label and line.words.endswith(":"):
                lead = BLOCKED  # The list that it announces is of something else. Without labels it is not below it.

    def _is_reference(self, line: Line) -> bool:
        """Whether a line in a list is a reference to other uses, and not a heading: ``Uses permitted in R-1``."""
        return not line.words.endswith(":") and INHERITED.fullmatch(line.words.rstrip(" .;")) is not None

    def _is_sentence(self, line: Line) -> bool:
        """Whether a line is a sentence, and not the name of a use with its conditions."""
        cut = next((each for each in CUT.finditer(line.words) if each.start() > 2), None)
        return VERB.search(sentences_of(line.words)[0], 0, cut.start() if cut else len(line.words)) is not None

    def _is_other_heading(self, line: Line) -> bool:
        """Whether an unlabelled line is a heading of something else than uses, which ends the list before it."""
        head = re.split(r"(?<=\w\w)[.:](?: |$)| ?\(", line.words, maxsplit=1)[0].strip()
        if HEADING.fullmatch(head) and OF_USES.search(head):
            return True
        return _OTHER_HEADING.fullmatch(head) is not None or bool(DIMENSION.search(head))

    def _heads_sentence(self, lines: Sequence[Line], number: int) -> bool:
        """Whether a line without a full stop, below an item with one, is the heading of the sentence below it."""
        around = [*lines[max(number - 1, 0) : number], *lines[number + 1 : number + 2]]
        return (
            len(around) == 2
            and self._text[lines[number].end - 1].isalpha()
            and self._text[around[0].end - 1] in ".;"
            and not any(each.label or each.below for each in around)
            and self._is_sentence(around[1])
        )

    def _parse_lead(self, line: Line, above: Lead | None) -> Lead | None:
        """Parse a line as the lead of the lines below it. None if it is none."""
        text, start, end, words = self._text, line.body, line.end, line.words
        head = re.split(r"(?<=[a-z)]{2})[.:](?: |$)| ?[–—](?= ?\S)", words, maxsplit=1)[0]
        heading = parse_heading(head.strip(" .:"), self._known) if len(head) <= 160 else None
        rest = start + len(head) + len(words[len(head) :]) - len(words[len(head) :].lstrip(" .:–—"))
        lead = None if heading is None else settle(heading, above)
        sentence = self._parse_sentences(rest if heading else start, end, lead or above)
        if sentence is not None:
            return sentence
        if lead is None:
            if line.label and line.below and NOT_USES.search(head) and len(head.split()) <= 8 and not VERB.search(head):
                return BLOCKED
            return None
        if rest < end:
            said = text[rest:end].strip()
            if not line.below and lead.level:
                return self._read_inline(rest, end, lead)
            if said.endswith(":") or not line.below:
                return lead
            return replace(lead, conditions=(*lead.conditions, said)) if LIMITS.search(said) else lead
        return lead

    def _parse_sentences(self, start: int, end: int, above: Lead | None) -> Lead | None:
        """Parse the sentence of a paragraph that announces a list of uses in closed form."""
        text = self._text
        if end <= start or end - start > _LONGEST_LEAD or not ANNOUNCES.search(text, start, end):
            return None
        spans = list(split_sentences(text, start, end))
        for number, (first, last) in enumerate(spans):
            said = text[first:last]
            if not ANNOUNCES.search(said) or not (
                number == len(spans) - 1 or re.search(r"(?i)\b(?:below|following|as follows)\b", said)
            ):
                continue
            colon = said.find(": ") if number == len(spans) - 1 and not said.rstrip().endswith(":") else -1
            listed = above is not None and above.level is not None
            lead = parse_sentence(said[: colon + 1] if colon > 0 else said, first, last, self._known, listed=listed)
            if lead is None:
                continue
            if colon > 0:
                return self._read_inline(first + colon + 2, last, settle(lead, above))
            after = [text[slice(*each)].strip(" .:") for each in spans[number + 1 :]]
            conditions = [each for each in after if _SUCH_USES.match(each)]
            return settle(replace(lead, conditions=(*lead.conditions, *conditions)), above)
        return None

    def _read_inline(self, start: int, end: int, lead: Lead) -> Lead:
        """Read the uses behind a heading on its own line: ``Prohibited uses. Junkyards; outdoor storage.``"""
        spans = split_inline(self._text, start, end)
        for first, last in spans:
            self._add(first, last, lead)
        if not spans:
            self._miss(start, lead)
        return lead

    def _read_item(self, line: Line, lead: Lead) -> Lead | None:
        """Read an item of a list. Returns the lead of the lines below it."""
        text, start = self._text, line.body
        note = HISTORY_NOTE.search(text, start, line.end)
        end = note.start() if note else line.end
        words = text[start:end].rstrip()
        if line.below:
            plain = all(self._is_plain(each) for each in line.below)
            tail = re.split(r"\. (?=[A-Z])", words)[-1]
            if FOLLOWING.match(words) or (VERB.search(words) and BEGINS_NO_USE.match(words)):
                self._miss(start, lead)
                return BLOCKED
            if _REQUIREMENTS.search(tail):
                self._add(start, end, lead, line.stop)
                return None
            if _GROUPS.search(words) or (plain and len(line.below) > 1):
                head, *more = sentences_of(words)
                measured = any(each.unit in UNITS for each in find_measures(head)) or _LIMITED.search(head)
                limits = [head.strip(" :")] if measured else []
                limits += [each.strip(" :") for each in more if LIMITS.search(each)]
                if EXCEPTS.search(words) or level_of(words) == "notPermitted":
                    return BLOCKED
                return replace(lead, conditions=(*lead.conditions, *limits))
            self._add(start, end, lead, line.stop, below=text[line.below[0].start : line.stop].strip())
            return None
        if not line.label and _MERGED.search(words):
            self._miss(start, lead)
            return None
        self._add(start, end, lead)
        return None

    def _is_plain(self, line: Line) -> bool:
        return not (VERB.search(line.words) or re.search(r"\d{2}", line.words)) and len(line.words.split()) <= 14

    def _miss(self, at: int, lead: Lead) -> None:
        """Record that an item of a list was not understood, so that the list is not whole."""
        codes = lead.districts or self._places.at(at)
        if lead.closes and not codes:
            self._open.add(lead.closes)
        for code in codes:
            self._lists.setdefault(code, _List()).missed += 1

    def _add(self, start: int, end: int, lead: Lead, stop: int | None = None, below: str | None = None) -> None:
        """Add the use of an item, once per district."""
        item = parse_item(self._text, start, end, self._known)
        codes = list(lead.districts or self._places.at(start))
        if lead.level is None or not codes:
            self._miss(start, lead)
            return
        if item is None:
            self._miss(start, lead)
            self._refer(start, end, lead, codes)
            return
        use, conditions, only = item
        if only is not None:
            codes = [code for code in only if code in codes]
        level: Level = lead.level
        conditions = [*conditions, *((below,) if below and len(below) <= LONGEST_ITEM else ())]
        told = " ".join(conditions)
        if level in ("byRight", "byRightWithConditions") and is_conditional(told):
            level = "conditional"
        if level == "notPermitted" and any(not MEMBERS.match(each) for each in conditions):
            self._miss(start, lead)
            return
        own = [each for each in conditions if each]
        if level == "byRight" and own:
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
                    code, use, level, lead.raw, conditions, review, start, start + length, "list",
                )
            )  # fmt: skip

    def _refer(self, start: int, end: int, lead: Lead, codes: Sequence[str]) -> None:
        """Add an item that is a reference to the uses of another district, as its words."""
        words = strip_closing(self._text[start:end])
        if lead.level in (None, "notPermitted") or not INHERITED.match(words) or len(words) > _LONGEST_REFERENCE:
            return
        self._found += [
            UsePermission(
                code, words, lead.level, lead.raw, list(lead.conditions), lead.review, start, start + len(words),
                "reference",
            )
            for code in codes
        ]  # fmt: skip

    def _close(self) -> Iterator[UsePermission]:
        """Yield the uses that a closed list prohibits, for each district whose lists in the section are read whole."""
        for code, each in self._lists.items():
            if not each.missed and each.told:
                for sentence in sorted(each.closes - self._open)[:1]:
                    yield prohibit_unlisted(code, self._text, *sentence)
