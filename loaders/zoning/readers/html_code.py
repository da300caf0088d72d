"""Parser for codes in HTML: by ``<section>`` and heading elements, else by numbered lines, else by ranks of headings.

The hierarchy comes from the numbers and from the headings of levels anywhere in the text: 15.1.04.010 is section 010 of
chapter 04 of part 1 of title 15, and a line ``15.3.08 Administration`` at the end of the preceding section is the title
of that chapter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from lxml import etree

from kg.errors import SourceError
from loaders.readers.file_text import decode
from loaders.readers.headings import LONGEST, SECTION, Heading, find_implied, find_status, parse_heading
from loaders.readers.history_notes import is_heading as is_history
from loaders.readers.history_notes import is_note
from loaders.readers.html import BLOCKS, HEADINGS
from loaders.readers.html_tree import normalize_space, parse_html, text_of
from loaders.readers.inline import LeftOut
from loaders.zoning.readers.code_model import Code
from loaders.zoning.readers.numbered_lines import Numbered
from loaders.zoning.readers.section_builder import Draft, Drafts, prefix_warnings
from loaders.zoning.readers.text_builder import Body, Writer

_LEGISLATION: Final = frozenset({"Legislation", "LegislationObject"})
_NOT_IN_HEADINGS: Final = BLOCKS - {"div", "p", "center"}
"""Elements that are inside a heading element only if that is never closed."""
_EMPHASES: Final = frozenset({"b", "strong", "u", "em", "i", "span"})
_CONTENTS: Final = re.compile(r"(?:table of )?contents\W*|index\W*|(?:in|on) this page\W*", re.IGNORECASE)
"""The heading of a part that lists others and is not law."""


def parse(data: bytes, name: str) -> Code:
    """Parse an HTML file into a code. `name` is the name of the file in warnings.

    Raises SourceError for a file that is not text or nests too deeply.
    """
    text, warnings = decode(data, name)
    left_out = LeftOut()
    reader = _HtmlReader()
    said: Mapping[str, Any] = {}
    try:
        root = parse_html(text, name, left_out)
        reader.drafts.warnings += [*warnings, *left_out.describe()]
        if root is not None:
            said = _get_metadata(root)
            reader.read(root)
    except RecursionError:
        raise SourceError(f"{name}: The elements of the HTML nest too deeply.") from None
    sections, told = reader.drafts.sections(), reader.drafts.warnings
    if all(section.kind != SECTION for section in sections):
        told.append("No section found.")
    jurisdiction = said.get("jurisdiction")
    called = jurisdiction.get("name") if isinstance(jurisdiction, dict) else None
    return Code(
        called if isinstance(called, str) else None,
        None,
        sections,
        warnings=prefix_warnings(told, name),
    )


class _HtmlReader(Writer):
    def __init__(self) -> None:
        super().__init__()
        self.drafts = Drafts()
        self.current: Draft | None = None
        """The level that receives text. None before the first heading."""
        self.opening: dict[etree._Element, tuple[Heading, etree._Element]] = {}
        """Elements that open a level: its heading, and its ``<section>`` or the element itself."""
        self.held: set[etree._Element] = set()
        """``<section>`` elements that are levels of their own."""
        self.outer: list[Draft | None] = []
        """The levels around the open ones of these."""
        self.begun: set[etree._Element] = set()
        """Heading elements whose first line was consumed."""
        self.numbers: set[str] = set()
        """Numbers of the levels that those of sections imply."""
        self.ranked: list[tuple[int, Draft]] | None = None
        """Open levels by the rank of their headings, where headings have no numbers."""
        self.numbered: Numbered | None = None
        """The lines, where headings are not marked."""
        self.place = 0

    def read(self, root: etree._Element) -> None:
        """Read all levels."""
        for each in root.iter(*HEADINGS):
            section = next(each.iterancestors("section"), None)
            heading = _heading_in(each)
            if section is None:
                if heading is not None:
                    self.opening[each] = heading, each
            elif section not in self.held:
                # Without a number it is the heading of a section that starts with it and is not within another.
                if heading is None and section[0] is each and next(section.iterancestors("section"), None) is None:
                    title = text_of(each)
                    heading = Heading(SECTION, "", title) if 0 < len(title) <= LONGEST else None
                if heading is not None:
                    self.held.add(section)
                    self.opening[each] = heading, section
        self.numbers = find_implied(heading.number for heading, holder in self.opening.values() if holder in self.held)
        if all(heading.kind != SECTION for heading, _ in self.opening.values()):
            self.opening = {}
            collected = _LineCollector()
            collected.write(root)
            self.numbered = Numbered(collected.lines, self.drafts)
            titles = [*root.iter(*HEADINGS)]
            if not self.numbered.opening and len(titles) > 1:
                self.numbered, self.ranked = None, []
                for each in titles:
                    heading = _heading_in(each) or Heading(SECTION, "", text_of(each))
                    self.opening[each] = heading, each
        before = self.body()
        self.write(root)
        if self.current is not None:
            self.drafts.warn_of_lines_before(before)

    def body(self) -> Body:
        """The body of the current level."""
        return self._body if self.current is None else self.current.body

    def enter(self, element: etree._Element) -> None:
        """Begin a ``<section>``."""
        if element in self.held:
            self.outer.append(self.current)

    def leave(self, element: etree._Element) -> None:
        """Return to the level around a ``<section>``."""
        if element in self.held:
            self.current = self.outer.pop() or self.current

    def is_layout(self, table: etree._Element) -> bool:
        """Check whether a table contains the heading of a section."""
        found = (self.opening[each][0] for each in table.iter() if each in self.opening)
        return any(each.kind == SECTION and each.number for each in found)

    def open(self, element: etree._Element) -> None:
        """Open the level of an element."""
        heading, holder = self.opening[element]
        self.begun.add(element)
        if self.ranked is None:
            self.current = draft = self.drafts.add(heading, _line(holder))
            if holder in self.held and draft.line is not None and (following := holder.getnext()) is not None:
                draft.last_line = max(draft.line, (_line(following) or 1) - 1)
            return
        rank = int(str(element.tag)[1])
        while self.ranked and self.ranked[-1][0] >= rank:
            self.ranked.pop()
        above = self.ranked[-1][1] if self.ranked else None
        self.current = Draft(heading.kind, heading.number, heading.title, above, line=_line(element))
        self.ranked.append((rank, self.current))
        if not _CONTENTS.fullmatch(heading.title):
            self.drafts.drafts.append(self.current)

    def take(self, text: str, inner: etree._Element) -> bool:
        """Consume a line that is a heading, or, where headings are not marked, any line."""
        if self.numbered is not None:
            for _ in _split_run_in(text, inner):
                for words in self.numbered.take(self.place, _line(inner)):
                    self.current = self.drafts.latest
                    self.body().add(words)
                self.place += 1
            self.current = self.drafts.latest
            return True
        element = _heading_around(inner)
        if element is None:
            return self.is_level(text)
        if element in self.begun:
            return True
        if element not in self.opening:
            return self.is_level(text) or self.is_title(element)
        if self.opening[element][1] is not element or not self.is_level(text):
            self.open(element)
        return True

    def is_title(self, element: etree._Element) -> bool:
        """Whether an element is the title of the heading just above, which has only a number."""
        draft = self.current
        if draft is None or draft.title or not draft.number or draft.body:
            return False
        text = text_of(element)
        if len(text) > LONGEST or _heading_in(element) or find_status(text) or is_note(text) or is_history(text):
            return False
        draft.title = text
        self.begun.add(element)
        return True

    def is_level(self, text: str) -> bool:
        """Whether a line within a section is the heading of an implied level."""
        heading = parse_heading(text) if self.numbers and text[-1] not in ".;:," else None
        if heading is None or not heading.title or (heading.kind == SECTION and not heading.bare):
            return False
        top = self.drafts.drafts[0].number if self.drafts.drafts else ""
        number, kind = (heading.number, None) if heading.bare else (f"{top}.{heading.number}", heading.kind)
        return number in self.numbers and self.drafts.entitle(number, heading.title, kind)


class _LineCollector(Writer):
    """Collects all lines that are not in tables."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def take(self, text: str, element: etree._Element) -> bool:
        self.lines += _split_run_in(text, element)
        return True


def _line(element: etree._Element) -> int | None:
    # The stubs give the wrong type for this property.
    line: object = element.sourceline
    return line if isinstance(line, int) else None


def _heading_in(element: etree._Element) -> Heading | None:
    """Parse an element as a heading, with or without white space between its child elements."""
    if next(element.iterdescendants(*_NOT_IN_HEADINGS), None) is not None:
        return None
    return parse_heading(text_of(element)) or parse_heading(normalize_space(" ".join(map(str, element.itertext()))))


def _heading_around(element: etree._Element) -> etree._Element | None:
    """Find the heading element that an element is or is inside."""
    return element if element.tag in HEADINGS else next(element.iterancestors(*HEADINGS), None)


def _split_run_in(text: str, element: etree._Element) -> Sequence[str]:
    """Split a line whose start is a heading in an element of its own, such as bold text."""
    first = next(iter(element), None)
    if first is None or first.tag not in _EMPHASES or (element.text or "").strip():
        return (text,)
    lead = text_of(first)
    heading = parse_heading(lead)
    if heading is None or not heading.title or not text.startswith(lead) or len(text) == len(lead):
        return (text,)
    return lead, text[len(lead) :].strip()


def _get_metadata(root: etree._Element) -> Mapping[str, Any]:
    """Get the metadata of a file (https://schema.org/Legislation)."""
    for element in root.iterfind(".//script[@type='application/ld+json']"):
        try:
            value = json.loads(element.text or "")
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and value.get("@type") in _LEGISLATION:
            return value
    return {}
