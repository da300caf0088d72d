"""Parser for the D.C. Code in the XML that its council publishes (https://code.dccouncil.us/schemas/dc-library).

An index file contains the hierarchy of a title and includes one file per section. ``<para>`` nests as subsections do.
The targets of ``<cite>`` are kept with the section or annotation that has them. A ``<num>`` that is ``undesignated``
only groups its paragraphs: it is neither text of the law nor a label. Text of unknown elements is kept.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from lxml import etree

from kg.errors import SourceError
from kg.text import quoted
from loaders.readers.file_text import read_file
from loaders.readers.headings import SECTION, Heading, parse_heading
from loaders.readers.html_inline import rewrite
from loaders.readers.html_tree import normalize_space
from loaders.readers.inline import LeftOut
from loaders.zoning.readers.code_model import HISTORY, Citation, Code, Note, Subsection
from loaders.zoning.readers.section_builder import Draft, build_sections, prefix_warnings
from loaders.zoning.readers.text_builder import Content, Writer

NAMESPACE: Final = "https://code.dccouncil.us/schemas/dc-library"

_VALUE: Final = "{https://code.dccouncil.us/schemas/codify}value"
_LEVELS: Final = frozenset({"container", "section", "subheading", "include"})
"""Elements of a container with text of their own."""
_NAMES: Final = ("num", "prefix", "heading")
"""Elements of a paragraph that are the start of its text."""
_SAID: Final = frozenset({"num", "heading", "reason"})
"""Elements that describe a level, apart from its text."""


def is_index(start: bytes) -> bool:
    """Check whether a file with this start is an index of the D.C. Code."""
    return NAMESPACE.encode() in start and b"<container" in start.partition(NAMESPACE.encode())[0]


def parse(index: Path) -> Code:
    """Parse the title in an index file, with the sections that it includes.

    Warnings report files in the folder that it does not include, files that are missing, broken or outside its folder,
    and files included twice. Raises SourceError for an unreadable index.
    """
    folder = os.path.abspath(index.parent)
    reading = _IndexReader(folder, included={os.path.abspath(index)})
    root = reading.parse_xml(read_file(index), index.name)
    if root.tag != "container":
        raise SourceError(f"{index}: The root is {root.tag}, not a container of the D.C. Code.")
    try:
        reading.container(root, None)
        reading.warn_of_orphans()
    except RecursionError:
        raise SourceError(f"{index}: Elements and included files nest too deeply.") from None
    warnings = [*reading.warnings, *reading.left_out.describe()]
    sections = build_sections(reading.drafts, warnings)
    place = f"{os.path.basename(folder)}/{index.name}"
    return Code("District of Columbia", "DC", sections, warnings=prefix_warnings(warnings, place))


@dataclass(slots=True)
class _IndexReader:
    folder: str
    """Folder of the index. Nothing outside of it is read."""
    included: set[str]
    drafts: list[Draft] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    left_out: LeftOut = field(default_factory=LeftOut)

    def parse_xml(self, data: bytes, name: str) -> etree._Element:
        """Parse a file into elements without namespace. Raises SourceError for invalid XML, or a document type."""
        # Entities and external declarations are the usual ways to attack an XML parser.
        parser = etree.XMLParser(
            resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True
        )
        try:
            root = etree.fromstring(data, parser)
        except (etree.XMLSyntaxError, ValueError) as error:
            raise SourceError(f"{name}: Not valid XML ({error}).") from None
        if root.getroottree().docinfo.internalDTD is not None:
            raise SourceError(f"{name}: Document type declarations are rejected. The D.C. Code has none.")
        rewrite(root, self.left_out)
        for element in root.iter():
            element.tag = str(element.tag).rpartition("}")[2]
            if not len(element):
                element.text = element.text or element.get(_VALUE)
        return root

    def container(self, element: etree._Element, parent: Draft | None) -> None:
        kind = _words(element, "prefix").lower() or "container"
        under = draft = self.level(kind, element, parent, _split_content(element, _SAID | {"prefix"}, _LEVELS))
        above, own = parent, draft.number or f"{kind} {draft.title}"
        while above is not None and above.kind == "subtitle":
            above = above.parent
        draft.base = own if above is None else f"{above.base}|{own}"
        for child in element:
            if child.tag == "container":
                self.container(child, under)
            elif child.tag == "include":
                self.include(child.get("href") or "", under)
            elif child.tag == "section":
                self.level(SECTION, child, under, _split_content(child))
            elif child.tag == "subheading":
                # The level of a heading between chapters.
                heading = parse_heading(text := _all(child)) or Heading("subtitle", "", text)
                under = Draft(heading.kind, heading.number, heading.title, draft, content=Content())
                under.base = f"{draft.base}|{under.kind} {under.number or under.title}"
                self.drafts.append(under)

    def level(self, kind: str, element: etree._Element, parent: Draft | None, content: Content) -> Draft:
        draft = Draft(kind, _words(element, "num"), _words(element, "heading"), parent, content=content)
        draft.status = _words(element, "reason").lower() or None
        self.drafts.append(draft)
        return draft

    def include(self, href: str, parent: Draft) -> None:
        path = os.path.normpath(os.path.join(self.folder, href))
        if not path.startswith(self.folder.rstrip(os.sep) + os.sep):
            self.warnings.append(
                f"{parent.name} includes {quoted(href)}, which is outside of its folder and is skipped."
            )
        elif path in self.included:
            self.warnings.append(f"{parent.name} includes {quoted(href)}, which is also included elsewhere.")
        else:
            self.included.add(path)
            name = os.path.relpath(path, self.folder).replace(os.sep, "/")
            try:
                data = read_file(path)
                root = self.parse_xml(data, name)
                if root.tag != SECTION:
                    raise SourceError(f"{name}: The root is {root.tag}, not a section.")
                draft = self.level(SECTION, root, parent, _split_content(root))
                draft.file, draft.line, draft.last_line = name, 1, data.rstrip().count(b"\n") + 1
            except SourceError as error:
                self.warnings.append(f"{error} It is skipped.")

    def warn_of_orphans(self) -> None:
        """Report the files in the folder that the index does not include."""
        for path in sorted(map(str, Path(self.folder).rglob("*.xml"))):
            if path not in self.included:
                self.warnings.append(f"{os.path.relpath(path, self.folder)}: No index includes it. It is skipped.")


def _words(element: etree._Element, tag: str) -> str:
    child = element.find(tag)
    return "" if child is None else _all(child)


def _all(element: etree._Element) -> str:
    return normalize_space("".join(map(str, element.itertext())))


def _split_content(element: etree._Element, said: Set[str] = _SAID, levels: Set[str] = frozenset()) -> Content:
    """The own content of an element without its description, each text once, and the levels in it."""
    apart = {element.find(tag) for tag in said} | {child for child in element if child.tag in levels}
    writer = _TextWriter(apart)
    writer.divide(element)
    writer.write(element)
    return writer.body().content(writer.citations)


def _notes(element: etree._Element) -> Iterator[Note]:
    for child in element:
        writer = _TextWriter()
        writer.write(child)
        text, citations = " ".join(writer.body().lines), writer.citations
        document, path = child.get("doc"), child.get("path")
        if text:
            if document or path:
                citations.insert(0, Citation(path, document))
            kind = child.get("type") or (HISTORY if child.tag == "annotation" else "Note")
            yield Note(text, kind, citations, child.get("eff"))


class _TextWriter(Writer):
    """Writes the text of a level or a note. `apart` are the elements that are left out."""

    def __init__(self, apart: Container[etree._Element | None] = ()) -> None:
        super().__init__()
        self.citations: list[Citation] = []
        self._apart = apart
        self._parts: dict[etree._Element, Subsection] = {}
        """The paragraphs that are begun or will be, with their labels."""

    def divide(self, element: etree._Element, path: tuple[str, ...] = ()) -> None:
        """Make each child of a level or paragraph a line, but the names of a paragraph the start of the next one."""
        for child in element:
            if child in self._apart or child.tag in ("annotations", "table"):
                continue
            tag, child.tag = child.tag, "p"
            if tag in _NAMES and element.tag == "p":
                child.set("class", "incr0")
            elif tag == "para":
                nums = [each for each in child.iterfind("num") if each.get("undesignated") != "true"]
                if nums:
                    labels = [_all(each).strip("(). ") or _all(each) for each in nums]
                    self._parts[child] = Subsection((*path, *labels), 0, 0, _words(child, "heading") or None)
                else:
                    self.divide(child, path)

    def is_hidden(self, element: etree._Element) -> bool:
        """Collect annotations as notes."""
        if element.tag == "annotations":
            self.body().notes += _notes(element)
            return True
        return element in self._apart or element.get("undesignated") == "true"

    def enter(self, element: etree._Element) -> None:
        """Begin a paragraph, or keep a citation."""
        if (part := self._parts.get(element)) is not None:
            start = self.body().next_start + sum(len(label) + 1 for label in self.labels)
            self._parts[element] = replace(part, start=start)
            self.divide(element, part.path)
        elif element.tag == "cite":
            path, document = element.get("path"), element.get("doc")
            if (path or document) and _all(element):
                self.citations.append(Citation(path, document))

    def leave(self, element: etree._Element) -> None:
        """End a paragraph."""
        if (part := self._parts.get(element)) is not None:
            self.end()
            self.body().items.append(replace(part, end=self.body().length))

    def take(self, text: str, element: etree._Element) -> bool:
        """Write a line unchanged."""
        self.body().write(text)
        return True
