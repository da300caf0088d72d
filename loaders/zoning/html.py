"""Codes in HTML: sections with headings, and a table of contents beside them.

The hierarchy is that of the numbers and of the headings of levels, wherever in the text those stand: 15.1.04.010 is
section 010 of chapter 04 of part 1 of title 15, and what a line ``15.3.08 Administration`` at the end of the section
before says is the title of that chapter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Final

from lxml import etree

from kg.errors import SourceError
from loaders.zoning import markup
from loaders.zoning.drafts import Draft, Drafts, named, same
from loaders.zoning.headings import SECTION, Heading, components, heading_of
from loaders.zoning.model import Code
from loaders.zoning.writing import Body

_LEGISLATION: Final = frozenset({"Legislation", "LegislationObject"})
_LONGEST_TITLE: Final = 120
_FIRST: Final = frozenset("0123456789TtSsCcAaDdPp")


@dataclass(frozen=True, slots=True)
class Entry:
    """What a table of contents says of one section."""

    id: str
    label: str


def contents_of(data: bytes, name: str) -> Sequence[Entry]:
    """Return the entries of a table of contents in JSON: ``{"sections": [{"id": ..., "label": ...}]}``.

    Raises SourceError for what is none.
    """
    try:
        sections = json.loads(markup.decoded(data, name)[0])["sections"]
        return [Entry(str(each["id"]), str(each["label"])) for each in sections]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SourceError(
            f"{name}: not a table of contents, which has 'sections', each with 'id' and 'label' ({error!r:.120})"
        ) from None


def contents_link(data: bytes) -> str | None:
    """Return the name of the table of contents that an HTML file says it has."""
    for match in re.finditer(rb"<link\s[^>]*>", data[:20_000]):
        link = match[0].decode("ascii", errors="replace")
        href = re.search(r"href\s*=\s*[\"']([^\"']+)", link)
        if href and "application/json" in link and "alternate" in link:
            return href[1]
    return None


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
    text, warnings = markup.decoded(data, name)
    try:
        root = markup.tree(text, name)
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
    apart: Set[etree._Element] = frozenset()
    """Elements within others that are sections of their own."""

    def code(self, municipality: str | None, state: str | None) -> Code:
        said = _said(self.root)
        self.labels = {entry.id: entry.label for entry in self.contents or ()}
        found = [(each, *self.heading(each)) for each in self.root.iter("section")]
        # One within another is a section of its own where it has a number.
        found = [each for each in found if (each[1] is not None and each[1].number) or not _is_within(each[0])]
        self.apart = {element for element, _, _ in found if _is_within(element)}
        self.numbers = _prefixes([heading.number for _, heading, _ in found if heading is not None])
        self.title(said)
        if found:
            for element, heading, first in found:
                self.section(element, heading, first)
        else:
            self.whole()
        self.warnings += self.drafts.warnings
        self.drafts.warnings = self.warnings
        if self.before:
            self.warnings.append(f"{self.name}: {len(self.before.lines)} lines stand before the first heading")
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
            heading = heading_of(markup.text_of(element))
            if heading is not None and heading.kind != SECTION and not heading.bare:
                self.current = self.drafts.add(heading, _line(element))
                return
        name = said.get("name")
        heading = heading_of(name) if isinstance(name, str) else None
        if heading is not None and heading.kind != SECTION and not heading.bare:
            self.current = self.drafts.add(heading)

    def heading(self, element: etree._Element) -> tuple[Heading | None, etree._Element | None]:
        """The heading of a ``<section>``, and the element that it is."""
        first = next((child for child in element.iter(*markup.HEADINGS)), None)
        if first is not None and next(first.iterancestors("section"), None) is element:
            text = markup.text_of(first)
            heading = heading_of(text)
            if heading is not None:
                return heading, first
            if first is element[0]:
                return Heading(SECTION, "", text), first
        label = self.labels.get(element.get("id") or "")
        heading = heading_of(markup.shown(label)) if label else None
        if heading is not None:
            self.warnings.append(
                f"{self.name}: section {element.get('id')!r}, line {element.sourceline}, has no heading; "
                f"the table of contents has {label!r}"
            )
        return heading, None

    def section(self, element: etree._Element, heading: Heading | None, first: etree._Element | None) -> None:
        if heading is None:
            heading = Heading(SECTION, "", "")
            self.warnings.append(
                f"{self.name}: section {element.get('id')!r}, line {element.sourceline}, has no heading with a number"
            )
        self.current = draft = self.drafts.add(heading, _line(element))

        def taken(text: str, inner: etree._Element) -> bool:
            return inner is first or self.is_level(text)

        markup.write(element, self.body, taken, self.apart)
        following = element.getnext()
        if draft.line is not None and following is not None:
            draft.last_line = max(draft.line, (_line(following) or 1) - 1)

    def whole(self) -> None:
        """Read a file without ``<section>``: each heading that has a number opens a level."""

        def taken(text: str, inner: etree._Element) -> bool:
            tag = inner.tag if isinstance(inner.tag, str) else ""
            if tag not in markup.HEADINGS:
                return False
            heading = heading_of(text)
            if heading is None:
                return False
            if tag == "h1" and self.current is not None and self.current.number == heading.number:
                return True
            self.current = self.drafts.add(heading, _line(inner))
            return True

        markup.write(self.root, self.body, taken)

    def body(self) -> Body:
        if self.current is None or self.current.body is None:
            return self.before
        return self.current.body

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


def differences(contents: Sequence[Entry], sections: Sequence[tuple[str, str, str]], name: str) -> Sequence[str]:
    """Return where a table of contents and the sections of a file (number, title, kind) disagree, in words."""
    listed: dict[str, str] = {}
    warnings = []
    for entry in contents:
        heading = heading_of(markup.shown(entry.label))
        if heading is None:
            warnings.append(f"{name}: the table of contents has {entry.label!r}, which is no heading with a number")
        else:
            listed.setdefault(heading.number, heading.title)
    found = {number: title for number, title, kind in reversed(sections) if kind == SECTION and number}
    every = {number for number, _, _ in sections}
    for number, title in listed.items():
        if number not in every:
            warnings.append(f"{name}: the table of contents has {number} {title!r}, and the text has no such section")
        elif number in found and not same(title, found[number]):
            warnings.append(f"{name}: {number} is {title!r} in the table of contents, {found[number]!r} in the text")
    warnings += [
        f"{name}: the text has {number} {title!r}, and the table of contents has not"
        for number, title in found.items()
        if number not in listed
    ]
    return warnings
