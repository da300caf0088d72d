"""Codes in HTML: sections with headings, and a table of contents beside them.

The hierarchy is that of the numbers and of the headings of levels, wherever in the text those stand: 15.1.04.010 is
section 010 of chapter 04 of part 1 of title 15, and what a line ``15.3.08 Administration`` at the end of the section
before says is the title of that chapter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from lxml import etree

from kg.errors import SourceError
from loaders.readers.html import HEADINGS
from loaders.zoning.readers import html_lines
from loaders.zoning.readers.code_model import Code
from loaders.zoning.readers.contents_file import Entry, differences
from loaders.zoning.readers.headings import LONGEST, SECTION, Heading, components, heading_of, status_of
from loaders.zoning.readers.history_notes import is_heading as is_history
from loaders.zoning.readers.history_notes import is_note
from loaders.zoning.readers.numbered_lines import Numbered
from loaders.zoning.readers.section_builder import Draft, Drafts, named
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
"""What stands in an element for a heading only where that is never closed."""
_EMPHASES: Final = frozenset({"b", "strong", "u", "em", "i", "span"})
_LONGEST_TITLE: Final = 120
_FIRST: Final = frozenset("0123456789TtSsCcAaDdPp")


def parse(
    data: bytes,
    name: str,
    contents: Sequence[Entry] | None = None,
    *,
    municipality: str | None = None,
    state: str | None = None,
) -> Code:
    """Return what an HTML file holds of a code. `name` is what to call the file in warnings.

    What the file itself says of its municipality goes where none is given. Raises SourceError for a file that is no
    text, or that nests so deep that it cannot be read.
    """
    text, warnings = html_lines.decoded(data, name)
    try:
        root = html_lines.tree(text, name)
        if root is None:
            return Code(municipality, state, (), warnings=(*warnings, f"{name}: the file is empty"))
        return _Reading(root, name, contents, list(warnings)).code(municipality, state)
    except RecursionError:
        raise SourceError(f"{name}: the elements of the HTML nest too deep to be read") from None


@dataclass(slots=True)
class _Reading:
    root: etree._Element
    name: str
    contents: Sequence[Entry] | None
    warnings: list[str]
    drafts: Drafts = field(default_factory=Drafts)
    current: Draft | None = None
    before: Body = field(default_factory=Body)
    """What stands before the first heading."""
    numbers: frozenset[str] = frozenset()
    labels: Mapping[str, str] = field(default_factory=dict)
    apart: Mapping[etree._Element, tuple[Heading | None, etree._Element | None]] = field(default_factory=dict)
    """The elements that are sections of their own, with their headings and the elements of those."""
    open: list[tuple[etree._Element | None, Draft]] = field(default_factory=list)
    """Of the sections that are open, the element of the heading, and what is written to below it."""
    begun: set[etree._Element] = field(default_factory=set)
    """Elements for headings, of which the first line was taken."""

    def code(self, municipality: str | None, state: str | None) -> Code:
        said = _said(self.root)
        self.labels = {entry.id: entry.label for entry in self.contents or ()}
        found = [(each, *self.heading(each)) for each in self.root.iter("section")]
        # One within another is a section of its own where it has a number.
        found = [each for each in found if (each[1] is not None and each[1].number) or not _is_within(each[0])]
        self.apart = {element: (heading, first) for element, heading, first in found}
        self.numbers = _prefixes([heading.number for _, heading, _ in found if heading is not None])
        self.title(said)
        if not found and not self.has_headings():
            self.by_lines()
        else:
            html_lines.write(self.root, self.body, self.level, self)
        self.warnings += self.drafts.warnings
        self.drafts.warnings = self.warnings
        if self.before:
            self.warnings.append(
                f"{self.name}: {len(self.before.lines):,} lines stand before the first heading, "
                f"from {self.before.lines[0][:80] if self.before.lines else ''!r}"
            )
        sections = self.drafts.sections()
        if self.contents is not None:
            kept = [(draft.number, draft.title, draft.kind) for draft in self.drafts.drafts if draft.key]
            self.warnings += differences(self.contents, kept, self.name)
        if all(section.kind != SECTION for section in sections):
            self.warnings.append(f"{self.name}: holds no section")
        jurisdiction = said.get("jurisdiction")
        called = jurisdiction.get("name") if isinstance(jurisdiction, dict) else None
        updated = said.get("dateModified") or _meta(self.root, "last-updated")
        return Code(
            municipality or (called if isinstance(called, str) else None),
            state,
            sections,
            updated if isinstance(updated, str) else None,
            warnings=named(self.warnings, self.name),
        )

    def title(self, said: Mapping[str, Any]) -> None:
        """Open the level that the file is: its first heading, or what its metadata say."""
        for element in self.root.iter("h1"):
            heading = _heading_in(element)
            if heading is not None and heading.kind != SECTION and not heading.bare:
                self.current = self.drafts.add(heading, _line(element))
                return
        name = said.get("name")
        heading = heading_of(name) if isinstance(name, str) else None
        if heading is not None and heading.kind != SECTION and not heading.bare:
            self.current = self.drafts.add(heading)

    def heading(self, element: etree._Element) -> tuple[Heading | None, etree._Element | None]:
        """The heading of a ``<section>``, and the element that it is."""
        first = next((child for child in element.iter(*HEADINGS)), None)
        if first is not None and next(first.iterancestors("section"), None) is element:
            heading = _heading_in(first)
            if heading is not None:
                return heading, first
            if first is element[0] and (title := _title_in(first)):
                return Heading(SECTION, "", title), first
        label = self.labels.get(element.get("id") or "")
        heading = heading_of(html_lines.shown(label)) if label else None
        if heading is not None:
            self.warnings.append(
                f"{self.name}: {_called(element)}, has no heading; the table of contents has {label!r}"
            )
        return heading, None

    def enter(self, element: etree._Element) -> None:
        """Open the level that a ``<section>`` is, if it is one of its own."""
        if element not in self.apart:
            return
        heading, first = self.apart[element]
        if heading is None:
            heading = Heading(SECTION, "", "")
            self.warnings.append(f"{self.name}: {_called(element)}, has no heading with a number")
        outer, draft = self.current, self.drafts.add(heading, _line(element))
        following = element.getnext()
        if draft.line is not None and following is not None:
            draft.last_line = max(draft.line, (_line(following) or 1) - 1)
        after = draft
        if _is_within(element) and outer is not None:
            after = outer
        elif draft.kind == SECTION:
            # What stands below it belongs to what it is in.
            after = draft.parent or draft
        self.current = draft
        self.open.append((first, after))

    def leave(self, element: etree._Element) -> None:
        """Return to what is below a ``<section>``."""
        if element in self.apart:
            self.current = self.open.pop()[1]

    def in_table(self, table: etree._Element) -> bool:
        """Return whether sections of their own, or headings that open one, are in a table."""
        if any(element in self.apart for element in table.iter("section")):
            return True
        headings = (_heading_in(each) for each in table.iter(*HEADINGS))
        return not self.apart and any(each is not None and each.kind == SECTION for each in headings)

    def level(self, text: str, inner: etree._Element) -> bool:
        """Take a line that is a heading; outside of every ``<section>``, one with a number opens a level."""
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
        if element.tag != "h1" or top is None or (top.kind, top.number) != (heading.kind, heading.number):
            self.current = self.drafts.add(heading, _line(element))
        return True

    def is_in_title(self, element: etree._Element) -> bool:
        """Whether a line of a heading is of its title: all are, or the first where the heading never ends."""
        if _is_whole(element):
            return True
        first = element not in self.begun
        self.begun.add(element)
        return first

    def is_title(self, element: etree._Element | None) -> bool:
        """Whether an element is the title of a heading just above, which has only a number."""
        draft = self.current
        if element is None or draft is None or draft.title or not draft.number or draft.writing:
            return False
        text = html_lines.text_of(element)
        if (
            not text
            or len(text) > LONGEST
            or _heading_in(element) is not None
            or status_of(text)
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
        """Whether the elements for headings are what sections start with."""
        headings = (_heading_in(each) for each in self.root.iter(*HEADINGS))
        return any(each is not None and each.kind == SECTION for each in headings)

    def by_lines(self) -> None:
        """Read a file that does not mark the headings of its sections, by what its lines say."""
        top = self.drafts.latest
        given: list[str] = []
        taken_at: list[range] = []

        def collected(text: str, inner: etree._Element) -> bool:
            first = len(given)
            heading = heading_of(text) if top is not None and inner.tag == "h1" else None
            if top is None or heading is None or (heading.kind, heading.number) != (top.kind, top.number):
                given.extend(_led(text, inner))
            taken_at.append(range(first, len(given)))
            return True

        html_lines.write(self.root, Body, collected)
        numbered = Numbered(given, self.drafts)
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
        """Whether a line within a section is the heading of a level of which only the numbers tell."""
        if text[0] not in _FIRST or len(text) > _LONGEST_TITLE or text[-1] in ".;:," or not self.numbers:
            return False
        heading = heading_of(text)
        if heading is None or not heading.title:
            return False
        if heading.bare:
            return heading.number in self.numbers and self.drafts.entitle(heading.number, heading.title, None)
        if heading.kind == SECTION:
            return False
        top = self.drafts.drafts[0].number if self.drafts.drafts else ""
        number = f"{top}.{heading.number}"
        return number in self.numbers and self.drafts.entitle(number, heading.title, heading.kind)


def _prefixes(numbers: Sequence[str]) -> frozenset[str]:
    """The numbers of levels that those of sections imply, without the highest."""
    prefixes = {".".join(parts[:count]) for parts in map(components, set(numbers)) for count in range(2, len(parts))}
    return frozenset(prefixes - set(numbers))


def _line(element: etree._Element) -> int | None:
    # The type that the stubs give is not that of the property.
    line: object = element.sourceline
    return line if isinstance(line, int) else None


def _heading_in(element: etree._Element) -> Heading | None:
    """The heading that an element is, with or without white space between the elements in it."""
    heading = heading_of(_title_in(element))
    if heading is None and len(element) and _is_whole(element):
        heading = heading_of(html_lines.shown(" ".join(map(str, element.itertext()))))
    return heading


def _title_in(element: etree._Element) -> str:
    """The words of an element for a heading: only its first line, where it holds what no heading does."""
    return html_lines.text_of(element) if _is_whole(element) else html_lines.first_line(element)


def _is_whole(element: etree._Element) -> bool:
    return len(element) == 0 or next(element.iterdescendants(*_NOT_IN_HEADINGS), None) is None


def _called(element: etree._Element) -> str:
    own = element.get("id")
    return f"<section{f' id={own!r}' if own else ''}>, line {element.sourceline}"


def _heading_around(element: etree._Element) -> etree._Element | None:
    """The element for a heading that another is, or stands in."""
    around: etree._Element | None = element
    while around is not None and around.tag not in HEADINGS:
        around = around.getparent() if around.tag in _WITHIN_HEADINGS else None
    return around


def _led(text: str, element: etree._Element) -> Sequence[str]:
    """A line, and where it starts with a heading that its element sets off, as in bold, that and the rest."""
    first = next(iter(element), None)
    if first is None or first.tag not in _EMPHASES or (element.text or "").strip():
        return (text,)
    lead = html_lines.text_of(first)
    heading = heading_of(lead)
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


def _said(root: etree._Element) -> Mapping[str, Any]:
    """What the metadata of a file say of it (https://schema.org/Legislation)."""
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
