"""Parser for the D.C. Code in the XML that its council publishes (https://code.dccouncil.us/schemas/dc-library).

An index file contains the hierarchy of a title and includes one file per section. ``<para>`` nests as subsections do.
The targets of ``<cite>`` are kept with their offsets in the text or annotation. A ``<num>`` that is ``undesignated``
only groups its paragraphs: it is neither text of the law nor a label. Text of unknown elements is kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from lxml import etree

from kg.errors import SourceError
from kg.text import quoted
from loaders.readers.file_text import read_file
from loaders.readers.headings import SECTION, Heading, parse_heading
from loaders.readers.html import BLOCKS
from loaders.readers.html_inline import rewrite
from loaders.readers.html_tree import build_table, normalize_space
from loaders.readers.inline import LeftOut
from loaders.zoning.readers.code_model import HISTORY, Citation, Code, Note, Subsection
from loaders.zoning.readers.outline import make_unique
from loaders.zoning.readers.section_builder import Draft, build_sections, prefix_warnings
from loaders.zoning.readers.text_builder import Body, Content

NAMESPACE: Final = "https://code.dccouncil.us/schemas/dc-library"

_VALUE: Final = "{https://code.dccouncil.us/schemas/codify}value"
_LEVELS: Final = frozenset({"container", "section", "subheading", "include"})
"""Elements of a container with text of their own."""
_SAID: Final = frozenset({"num", "heading", "reason"})
"""Elements that describe a level, apart from its text."""
_OTHER_NOTE: Final = "Note"


def is_index(start: bytes) -> bool:
    """Check whether a file with this start is an index of the D.C. Code."""
    return NAMESPACE.encode() in start and b"<container" in start.partition(NAMESPACE.encode())[0]


def parse(index: Path) -> Code:
    """Parse the title in an index file, with the sections that it includes.

    Warnings report files in the folder that it does not include, files that are missing, broken or outside its folder,
    and files included twice. Raises SourceError for an unreadable index.
    """
    folder = os.path.abspath(index.parent)
    reading = _IndexReader(folder, folder, included={os.path.abspath(index)})
    root = reading.parse_xml(read_file(index), index.name)
    if root.tag != "container":
        raise SourceError(f"{index}: The root is {root.tag}, not a container of the D.C. Code.")
    try:
        reading.container(root, None)
        reading.orphans()
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
    base: str
    """Folder of the current file, which its includes are relative to."""
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
        path = os.path.normpath(os.path.join(self.base, href))
        if not path.startswith(self.folder.rstrip(os.sep) + os.sep):
            self.warnings.append(
                f"{parent.name} includes {quoted(href)}, which is outside of its folder and is skipped."
            )
        elif path in self.included:
            self.warnings.append(f"{parent.name} includes {quoted(href)}, which is also included elsewhere.")
        else:
            self.file(path, parent)

    def file(self, path: str, parent: Draft) -> None:
        self.included.add(path)
        name = os.path.relpath(path, self.folder).replace(os.sep, "/")
        try:
            data = read_file(path)
            root = self.parse_xml(data, name)
        except SourceError as error:
            self.warnings.append(f"{error} It is skipped.")
            return
        if root.tag == "container":
            outer, self.base = self.base, os.path.dirname(path)
            self.container(root, parent)
            self.base = outer
        elif root.tag == "section":
            draft = self.level(SECTION, root, parent, _split_content(root))
            draft.file, draft.line, draft.last_line = name, 1, data.rstrip().count(b"\n") + 1
        else:
            self.warnings.append(f"{name}: The root is {root.tag}, not a section or container. It is skipped.")

    def orphans(self) -> None:
        """Read the sections in the folder that the index does not include, and place them below its highest level."""
        top = self.drafts[0]
        for path in sorted(map(str, Path(self.folder).rglob("*.xml"))):
            if path not in self.included:
                below = os.path.relpath(path, self.folder)
                self.warnings.append(f"{below}: No index includes it. It is placed below {top.name}.")
                self.file(path, top)


def _words(element: etree._Element, tag: str) -> str:
    child = element.find(tag)
    return "" if child is None else _all(child)


def _all(element: etree._Element) -> str:
    return normalize_space("".join(map(str, element.itertext())))


def _split_content(element: etree._Element, said: Set[str] = _SAID, levels: Set[str] = frozenset()) -> Content:
    """The own content of an element without its description, each text once, and the levels in it."""
    apart = {element.find(tag) for tag in said}
    writing = _TextWriter()
    notes: list[Note] = []
    writing.loose(element.text)
    for child in element:
        if child.tag == "para":
            writing.para(child, ())
        elif child.tag == "annotations":
            notes += _notes(child)
        elif child.tag not in levels and child not in apart:
            writing.text(child)
        writing.loose(child.tail)
    writing.end()
    found = sorted(writing.subsections, key=lambda each: (each.start, -each.end))
    text, tables = "\n".join(writing.body.lines), writing.body.tables
    return Content(text, make_unique(found), tables, writing.citations, notes)


def _notes(element: etree._Element) -> Iterator[Note]:
    for child in element:
        text, citations = _flatten(child)
        document, path = child.get("doc"), child.get("path")
        if text:
            if document or path:
                citations.insert(0, Citation(0, len(text), path, document))
            kind = child.get("type") or (HISTORY if child.tag == "annotation" else _OTHER_NOTE)
            yield Note(text, kind, citations, child.get("eff"))
    for loose in (element.text, *(child.tail for child in element)):
        if loose and (words := normalize_space(loose)):
            yield Note(words, _OTHER_NOTE)


@dataclass(slots=True)
class _TextWriter:
    """The text of a section while its paragraphs are visited."""

    body: Body = field(default_factory=Body)
    subsections: list[Subsection] = field(default_factory=list)
    citations: list[Citation] = field(default_factory=list)
    waiting: str = ""
    """Labels and headings of paragraphs that are joined with the next text on the same line."""

    def text(self, element: etree._Element) -> None:
        tables = [element] if element.tag == "table" else []
        if not tables:
            self.line(*_flatten(element, tables))
        for table in tables:
            self.end()
            self.body.table(build_table(table))

    def line(self, text: str, citations: Sequence[Citation] = ()) -> None:
        if text:
            led, self.waiting = self.waiting, ""
            at = self.body.write(led + text) + len(led)
            self.citations += [replace(each, start=at + each.start, end=at + each.end) for each in citations]

    def loose(self, words: str | None) -> None:
        """Write text that is not in an element of its own."""
        self.line(normalize_space(words or ""))

    def lead(self, words: str) -> int:
        """Put words at the start of the next line, and return their offset."""
        at = self.body.next_start + len(self.waiting)
        self.waiting += f"{words} "
        return at

    def end(self) -> None:
        if self.waiting:
            self.body.write(self.waiting[:-1])
            self.waiting = ""

    def para(self, element: etree._Element, path: tuple[str, ...]) -> None:
        start = heading = None
        outer = path
        self.loose(element.text)
        for child in element:
            if child.tag == "para":
                self.para(child, path)
            elif child.tag not in ("num", "prefix", "heading"):
                self.text(child)
            elif child.get("undesignated") != "true" and (words := _all(child)):
                at = self.lead(words)
                start = at if start is None else start
                if child.tag == "num":
                    path = (*path, words.strip("(). ") or words)
                elif child.tag == "heading":
                    heading = words
            self.loose(child.tail)
        if start is not None and path != outer:
            self.end()
            self.subsections.append(Subsection(path, start, self.body.length, heading))


def _flatten(element: etree._Element, tables: list[etree._Element] | None = None) -> tuple[str, list[Citation]]:
    """Flatten an element to one line, with its citations. The tables in it are added to `tables`, or are text."""
    pieces: list[str] = []
    cited: list[tuple[int, int, etree._Element]] = []

    def walk(inner: etree._Element) -> None:
        pieces.append(inner.text or "")
        for child in inner:
            gap = " " if child.tag in BLOCKS else ""
            if child.tag == "table" and tables is not None:
                tables.append(child)
            else:
                first = len(pieces)
                pieces.append(gap if len(child) or child.text else child.get(_VALUE) or gap)
                walk(child)
                if child.tag == "cite" and (child.get("path") or child.get("doc")):
                    cited.append((first, len(pieces), child))
            pieces.append(gap + (child.tail or ""))

    walk(element)
    ends = [0]
    """Length of the text up to each piece."""
    apart = False
    for piece in pieces:
        length = len(normalize_space(piece))
        apart = ends[-1] > 0 and (apart or piece[:1].isspace())
        ends.append(ends[-1] + (length + apart if length else 0))
        apart = piece[-1:].isspace() if length else apart
    citations = []
    for first, last, child in cited:
        if length := len(normalize_space("".join(pieces[first:last]))):
            citations.append(Citation(ends[last] - length, ends[last], child.get("path"), child.get("doc")))
    return normalize_space("".join(pieces)), citations
