"""Parser for codes in HTML: sections with headings, optionally with a separate table of contents.

The hierarchy comes from the numbers and from the headings of levels anywhere in the text: 15.1.04.010 is section 010 of
chapter 04 of part 1 of title 15, and a line ``15.3.08 Administration`` at the end of the preceding section is the title
of that chapter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Final

from lxml import etree

from kg.errors import SourceError
from kg.text import quoted
from loaders.readers import html_tree
from loaders.readers.file_text import decode
from loaders.readers.headings import (
    LONGEST,
    SECTION,
    Heading,
    find_implied,
    find_status,
    parse_heading,
)
from loaders.readers.history_notes import is_heading as is_history
from loaders.readers.history_notes import is_note
from loaders.readers.html import HEADINGS
from loaders.readers.inline import LeftOut
from loaders.zoning.readers import html_lines
from loaders.zoning.readers.code_model import Code
from loaders.zoning.readers.contents_file import Entry, find_differences
from loaders.zoning.readers.numbered_lines import Numbered
from loaders.zoning.readers.section_builder import Draft, Drafts, prefix_warnings
from loaders.zoning.readers.text_builder import Body

_LEGISLATION: Final = frozenset({"Legislation", "LegislationObject"})
_WITHIN_HEADINGS: Final = frozenset(
    {"div", "p", "center", "a", "span", "b", "strong", "em", "i", "u", "sup", "sub", "small", "big", "font"}
)
_NOT_IN_HEADINGS: Final = frozenset(
    {
        "table",
        "section",
        "article",
        "ul",
        "ol",
        "dl",
        "blockquote",
        "pre",
        "details",
        "form",
        "figure",
        "fieldset",
        "hr",
    }
    | {"h1", "h2", "h3", "h4", "h5", "h6", "header", "footer", "main", "address", "aside", "li", "dd", "dt", "summary"}
    | {"tr", "td", "th", "tbody", "thead", "tfoot", "caption"}
)
"""Elements that are inside a heading element only if that is never closed."""
_EMPHASES: Final = frozenset({"b", "strong", "u", "em", "i", "span"})
_LONGEST_TITLE: Final = 120
_CONTENTS: Final = re.compile(r"(?:table of )?contents\W*|index\W*|(?:in|on) this page\W*", re.IGNORECASE)
"""The heading of a part that lists others and is not law."""
_FIRST: Final = frozenset("0123456789TtSsCcAaDdPp")


def parse(
    data: bytes,
    name: str,
    contents: Sequence[Entry] | None = None,
    *,
    municipality: str | None = None,
    state: str | None = None,
) -> Code:
    """Parse an HTML file into a code. `name` is the name of the file in warnings.

    The arguments override the municipality stated in the file. Raises SourceError for a file that is not text or nests
    too deeply.
    """
    text, warnings = decode(data, name)
    left_out = LeftOut()
    try:
        root = html_tree.parse_html(text, name, left_out)
        warnings = [*warnings, *left_out.describe()]
        if root is None:
            return Code(municipality, state, (), warnings=(*warnings, f"{name}: The file is empty."))
        return _HtmlReader(root, name, contents, list(warnings)).code(municipality, state)
    except RecursionError:
        raise SourceError(f"{name}: The elements of the HTML nest too deeply.") from None


@dataclass(slots=True)
class _HtmlReader:
    root: etree._Element
    name: str
    contents: Sequence[Entry] | None
    warnings: list[str]
    drafts: Drafts = field(default_factory=Drafts)
    current: Draft | None = None
    before: Body = field(default_factory=Body)
    """Text before the first heading."""
    numbers: Set[str] = frozenset()
    labels: Mapping[str, str] = field(default_factory=dict)
    apart: Mapping[etree._Element, tuple[Heading | None, etree._Element | None]] = field(default_factory=dict)
    """Elements that are sections of their own, each with its heading and the element of that."""
    open: list[tuple[etree._Element | None, Draft]] = field(default_factory=list)
    """Open sections: the element of the heading, and the draft that receives the text below it."""
    begun: set[etree._Element] = field(default_factory=set)
    """Heading elements whose first line was consumed."""

    def code(self, municipality: str | None, state: str | None) -> Code:
        said = _get_metadata(self.root)
        self.labels = {entry.id: entry.label for entry in self.contents or ()}
        found = [(each, *self.heading(each)) for each in self.root.iter("section")]
        # A section within a section counts as its own if it has a number.
        found = [each for each in found if (each[1] is not None and each[1].number) or not _is_within(each[0])]
        self.apart = {element: (heading, first) for element, heading, first in found}
        self.numbers = find_implied([heading.number for _, heading, _ in found if heading is not None])
        self.title(said)
        if not found and not self.has_headings():
            self.by_lines()
        else:
            html_lines.write(self.root, self.body, self.level, self)
        self.warnings += self.drafts.warnings
        self.drafts.warnings = self.warnings
        if self.before:
            self.warnings.append(
                f"{self.name}: {len(self.before.lines):,} lines before the first heading, "
                f"starting with {quoted(self.before.lines[0][:80] if self.before.lines else '')}."
            )
        sections = self.drafts.sections()
        if self.contents is not None:
            kept = [(draft.number, draft.title, draft.kind) for draft in self.drafts.drafts if draft.key]
            self.warnings += find_differences(self.contents, kept, self.name)
        if all(section.kind != SECTION for section in sections):
            self.warnings.append(f"{self.name}: No section found.")
        jurisdiction = said.get("jurisdiction")
        called = jurisdiction.get("name") if isinstance(jurisdiction, dict) else None
        updated = said.get("dateModified") or _meta(self.root, "last-updated")
        return Code(
            municipality or (called if isinstance(called, str) else None),
            state,
            sections,
            updated if isinstance(updated, str) else None,
            warnings=prefix_warnings(self.warnings, self.name),
        )

    def title(self, said: Mapping[str, Any]) -> None:
        """Open the level of the file, from its first heading or its metadata."""
        for element in self.root.iter("h1"):
            heading = _heading_in(element)
            if heading is not None and heading.kind != SECTION and not heading.bare:
                self.drafts.add(heading, _line(element))
                return
        name = said.get("name")
        heading = parse_heading(name) if isinstance(name, str) else None
        if heading is not None and heading.kind != SECTION and not heading.bare:
            self.current = self.drafts.add(heading)

    def heading(self, element: etree._Element) -> tuple[Heading | None, etree._Element | None]:
        """Find the heading of a ``<section>`` and its element."""
        first = next((child for child in element.iter(*HEADINGS)), None)
        if first is not None and next(first.iterancestors("section"), None) is element:
            heading = _heading_in(first)
            if heading is not None:
                return heading, first
            if first is element[0] and (title := _title_in(first)):
                return Heading(SECTION, "", title), first
        label = self.labels.get(element.get("id") or "")
        heading = parse_heading(html_tree.normalize_space(label)) if label else None
        if heading is not None:
            self.warnings.append(
                f"{self.name}: {_called(element)}, has no heading. It is {quoted(label)} in the table of contents."
            )
        return heading, None

    def enter(self, element: etree._Element) -> None:
        """Open the level of a ``<section>``, if it is a level of its own."""
        if element not in self.apart:
            return
        heading, first = self.apart[element]
        if heading is None:
            heading = Heading(SECTION, "", "")
            self.warnings.append(f"{self.name}: {_called(element)}, has no heading with a number.")
        outer, draft = self.current, self.drafts.add(heading, _line(element))
        following = element.getnext()
        if draft.line is not None and following is not None:
            draft.last_line = max(draft.line, (_line(following) or 1) - 1)
        after = draft
        if _is_within(element) and outer is not None:
            after = outer
        elif draft.kind == SECTION:
            # Later text belongs to the enclosing level.
            after = draft.parent or draft
        self.current = draft
        self.open.append((first, after))

    def leave(self, element: etree._Element) -> None:
        """Return to the level around a ``<section>``."""
        if element in self.apart:
            self.current = self.open.pop()[1]

    def in_table(self, table: etree._Element) -> bool:
        """Check whether a table contains sections or headings that open a level."""
        if any(element in self.apart for element in table.iter("section")):
            return True
        headings = (_heading_in(each) for each in table.iter(*HEADINGS))
        return not self.apart and any(each is not None and each.kind == SECTION for each in headings)

    def level(self, text: str, inner: etree._Element) -> bool:
        """Consume a line that is a heading. Outside of all ``<section>`` elements, one with a number opens a level."""
        element = _heading_around(inner)
        if self.open:
            is_heading = element is not None and element is self.open[-1][0] and self.is_in_title(element)
            return is_heading or self.is_level(text) or self.is_title(element)
        if element is None:
            return self.is_level(text)
        if element in self.begun:
            return self.is_in_title(element) or self.is_level(text)
        heading = _heading_in(element)
        if heading is None:
            return self.is_title(element)
        if self.is_level(text):
            return True
        self.begun.add(element)
        top = self.drafts.drafts[0] if self.drafts.drafts else None
        is_top = element.tag == "h1" and top is not None and (top.kind, top.number) == (heading.kind, heading.number)
        self.current = top if is_top else self.drafts.add(heading, _line(element))
        return True

    def is_in_title(self, element: etree._Element) -> bool:
        """Whether a line of a heading belongs to its title: all do, or only the first if the heading never ends."""
        if _is_whole(element):
            return True
        first = element not in self.begun
        self.begun.add(element)
        return first

    def is_title(self, element: etree._Element | None) -> bool:
        """Whether an element is the title of the heading just above, which has only a number."""
        draft = self.current
        if element is None or draft is None or draft.title or not draft.number or draft.writing:
            return False
        text = html_tree.text_of(element)
        if (
            not text
            or len(text) > LONGEST
            or _heading_in(element) is not None
            or find_status(text)
            or is_note(text)
            or is_history(text)
        ):
            return False
        draft.title = text
        self.begun.add(element)
        if self.open:
            self.open[-1] = (element, self.open[-1][1])
        return True

    def has_headings(self) -> bool:
        """Whether sections start with heading elements."""
        headings = (_heading_in(each) for each in self.root.iter(*HEADINGS))
        return any(each is not None and each.kind == SECTION for each in headings)

    def by_rank(self) -> None:
        """Parse a file whose headings have no numbers: each heading element is a section, below that of the next higher
        rank. A table of contents is left out."""
        opened = [(1, draft) for draft in self.drafts.drafts]
        top = {element for element in self.root.iter("h1") if opened and _line(element) == opened[0][1].line}
        contents = Body()

        def taken(text: str, inner: etree._Element) -> bool:
            element = _heading_around(inner)
            if element is None:
                return False
            if element in top:
                self.current = opened[0][1]
            if element in self.begun or element in top:
                return self.is_in_title(element)
            self.begun.add(element)
            rank = int(str(element.tag)[1])
            while opened and opened[-1][0] >= rank:
                opened.pop()
            draft = Draft(SECTION, "", _title_in(element), opened[-1][1] if opened else None, line=_line(element))
            if _CONTENTS.fullmatch(draft.title):
                draft.body = contents
            else:
                self.drafts.drafts.append(draft)
            opened.append((rank, draft))
            self.current = draft
            return True

        html_lines.write(self.root, self.body, taken)

    def by_lines(self) -> None:
        """Parse a file without numbers in its heading elements by its lines, or by its headings if no line is one."""
        top = self.drafts.latest
        given: list[str] = []
        taken_at: list[range] = []

        def collected(text: str, inner: etree._Element) -> bool:
            first = len(given)
            heading = parse_heading(text) if top is not None and inner.tag == "h1" else None
            if top is None or heading is None or (heading.kind, heading.number) != (top.kind, top.number):
                given.extend(_split_run_in(text, inner))
            taken_at.append(range(first, len(given)))
            return True

        html_lines.write(self.root, Body, collected)
        numbered = Numbered(given, self.drafts)
        if not numbered.has_headings and sum(1 for _ in self.root.iter(*HEADINGS)) > 1:
            self.by_rank()
            return
        places = iter(taken_at)

        def taken(text: str, inner: etree._Element) -> bool:
            for place in next(places):
                for words in numbered.take(place, _line(inner)):
                    self.current = self.drafts.latest
                    self.body().add(words)
            self.current = self.drafts.latest
            return True

        html_lines.write(self.root, self.body, taken)

    def body(self) -> Body:
        return self.before if self.current is None else self.current.writing

    def is_level(self, text: str) -> bool:
        """Whether a line within a section is the heading of an implied level."""
        if text[0] not in _FIRST or len(text) > _LONGEST_TITLE or text[-1] in ".;:," or not self.numbers:
            return False
        heading = parse_heading(text)
        if heading is None or not heading.title:
            return False
        if heading.bare:
            return heading.number in self.numbers and self.drafts.entitle(heading.number, heading.title, None)
        if heading.kind == SECTION:
            return False
        top = self.drafts.drafts[0].number if self.drafts.drafts else ""
        number = f"{top}.{heading.number}"
        return number in self.numbers and self.drafts.entitle(number, heading.title, heading.kind)


def _line(element: etree._Element) -> int | None:
    # The stubs give the wrong type for this property.
    line: object = element.sourceline
    return line if isinstance(line, int) else None


def _heading_in(element: etree._Element) -> Heading | None:
    """Parse an element as a heading, with or without white space between its child elements."""
    heading = parse_heading(_title_in(element))
    if heading is None and len(element) and _is_whole(element):
        heading = parse_heading(html_tree.normalize_space(" ".join(map(str, element.itertext()))))
    return heading


def _title_in(element: etree._Element) -> str:
    """The text of a heading element. Only its first line, if it contains elements that a heading cannot contain."""
    return html_tree.text_of(element) if _is_whole(element) else html_tree.first_line(element)


def _is_whole(element: etree._Element) -> bool:
    return len(element) == 0 or next(element.iterdescendants(*_NOT_IN_HEADINGS), None) is None


def _called(element: etree._Element) -> str:
    own = element.get("id")
    return f"<section{f' id={quoted(own)}' if own else ''}>, line {element.sourceline}"


def _heading_around(element: etree._Element) -> etree._Element | None:
    """Find the heading element that an element is or is inside."""
    around: etree._Element | None = element
    while around is not None and around.tag not in HEADINGS:
        around = around.getparent() if around.tag in _WITHIN_HEADINGS else None
    return around


def _split_run_in(text: str, element: etree._Element) -> Sequence[str]:
    """Split a line whose start is a heading in an element of its own, such as bold text."""
    first = next(iter(element), None)
    if first is None or first.tag not in _EMPHASES or (element.text or "").strip():
        return (text,)
    lead = html_tree.text_of(first)
    heading = parse_heading(lead)
    if heading is None or not heading.title or not text.startswith(lead) or len(text) == len(lead):
        return (text,)
    return lead, text[len(lead) :].strip()


def _is_within(element: etree._Element) -> bool:
    return next(element.iterancestors("section"), None) is not None


def _meta(root: etree._Element, name: str) -> str | None:
    return next((each.get("content") for each in _head(root).iter("meta") if each.get("name") == name), None)


def _head(root: etree._Element) -> etree._Element:
    head = root.find("head")
    return root if head is None else head


def _get_metadata(root: etree._Element) -> Mapping[str, Any]:
    """Get the metadata of a file (https://schema.org/Legislation)."""
    for element in _head(root).iter("script"):
        if element.get("type") != "application/ld+json":
            continue
        try:
            value = json.loads(element.text or "")
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and value.get("@type") in _LEGISLATION:
            return value
    return {}
