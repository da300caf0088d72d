"""Parser for the D.C. Code in the XML that its council publishes (https://code.dccouncil.us/schemas/dc-library).

An index file contains the hierarchy of a title and includes one file per section. ``<para>`` nests as subsections do.
The targets of ``<cite>`` are kept with their offsets in the text or annotation. A ``<num>`` that is ``undesignated``
only groups its paragraphs: it is neither text of the law nor a label.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lxml import etree

from kg.errors import SourceError
from kg.text import quoted
from loaders.readers import html_tree
from loaders.readers.file_text import read_file
from loaders.readers.headings import SECTION, parse_heading
from loaders.readers.html_inline import rewrite
from loaders.readers.html_tree import WrittenTable
from loaders.readers.inline import LeftOut
from loaders.zoning.readers.code_model import HISTORY, Citation, Code, Note, Subsection
from loaders.zoning.readers.outline import make_unique
from loaders.zoning.readers.section_builder import Draft, build_sections, prefix_warnings
from loaders.zoning.readers.text_builder import Body, Content

NAMESPACE: Final = "https://code.dccouncil.us/schemas/dc-library"
MUNICIPALITY: Final = "District of Columbia"
STATE: Final = "DC"

_N: Final = f"{{{NAMESPACE}}}"
_SECTION, _CONTAINER, _PARA, _TEXT = f"{_N}section", f"{_N}container", f"{_N}para", f"{_N}text"
_NUM, _HEADING, _PREFIX, _REASON = f"{_N}num", f"{_N}heading", f"{_N}prefix", f"{_N}reason"
_SUBHEADING, _AFTERTEXT, _ANNOTATIONS = f"{_N}subheading", f"{_N}aftertext", f"{_N}annotations"
_ANNOTATION, _CITE, _TABLE = f"{_N}annotation", f"{_N}cite", f"{_N}table"
_INCLUDE: Final = "{http://www.w3.org/2001/XInclude}include"
_VALUE: Final = "{https://code.dccouncil.us/schemas/codify}value"
_LEVELS: Final = frozenset({_CONTAINER, _SECTION, _SUBHEADING, _INCLUDE})
"""Elements of a container with text of their own."""
_SAID: Final = frozenset({_NUM, _HEADING, _REASON})
"""Elements that describe a level, apart from its text."""
_OTHER_NOTE: Final = "Note"
_DEEPEST: Final = 200
"""Maximum depth of containers. The parser rejects a file whose elements nest more than 256 levels."""


def parse_xml(data: bytes, name: str) -> etree._Element:
    """Parse an XML file and return its root. Raises SourceError for invalid XML, or for a document type declaration."""
    # Entities and external declarations are the usual ways to attack an XML parser.
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True, remove_pis=True
    )
    if b"<!DOCTYPE" in data:
        raise SourceError(f"{name}: Document type declarations are rejected. The D.C. Code has none.")
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise SourceError(f"{name}: Not valid XML ({error}).") from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise SourceError(f"{name}: Document type declarations are rejected. The D.C. Code has none.")
    return root


def is_index(start: bytes) -> bool:
    """Check whether a file with this start is an index of the D.C. Code."""
    return NAMESPACE.encode() in start and b"<container" in start.partition(NAMESPACE.encode())[0]


def parse(index: Path) -> Code:
    """Parse the title in an index file, with the sections that it includes.

    Warnings report files in the folder that it does not include, files that are missing, broken or outside its folder,
    and files included twice. Raises SourceError for an unreadable index.
    """
    folder = os.path.abspath(index.parent)
    reading = _IndexReader(folder, folder)
    root = parse_xml(read_file(index), index.name)
    rewrite(root, reading.left_out)
    if root.tag != _CONTAINER:
        raise SourceError(f"{index}: The root is {root.tag}, not a container of the D.C. Code.")
    reading.included.add(os.path.abspath(index))
    try:
        reading.container(root, None, 0)
        reading.orphans()
    except RecursionError:
        raise SourceError(f"{index}: Elements and included files nest too deeply.") from None
    warnings = [*reading.warnings, *reading.left_out.describe()]
    sections = build_sections(reading.drafts, warnings)
    place = f"{os.path.basename(reading.folder)}/{index.name}"
    return Code(MUNICIPALITY, STATE, sections, warnings=prefix_warnings(warnings, place))


@dataclass(slots=True)
class _IndexReader:
    folder: str
    """Folder of the index. Nothing outside of it is read."""
    base: str
    """Folder of the current file, which its includes are relative to."""
    drafts: list[Draft] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    included: set[str] = field(default_factory=set)
    left_out: LeftOut = field(default_factory=LeftOut)

    def container(self, element: etree._Element, parent: Draft | None, depth: int) -> None:
        kind = _words(element, _PREFIX).lower() or "container"
        number, title = _words(element, _NUM), _words(element, _HEADING)
        above = parent
        while above is not None and above.kind == "subtitle":
            above = above.parent
        own = number or f"{kind} {title}"
        draft = Draft(kind, number, title, parent, base=own if above is None else f"{above.base}|{own}")
        draft.content = Content()
        self.drafts.append(draft)
        if depth > _DEEPEST:
            self.warnings.append(f"{draft.name}: Levels nested more than {_DEEPEST} deep are skipped.")
            return
        under = draft
        for child in element:
            if child.tag == _CONTAINER:
                self.container(child, under, depth + 1)
            elif child.tag == _INCLUDE:
                self.include(child.get("href") or "", under, depth + 1)
            elif child.tag == _SECTION:
                self.section(child, under, None)
            elif child.tag == _SUBHEADING:
                under = self.subheading(_all(child), draft)
        content = _split_content(element, _SAID | {_PREFIX}, _LEVELS)
        if content.text or content.notes:
            draft.content = content
        draft.status = _words(element, _REASON).lower() or None

    def subheading(self, text: str, draft: Draft) -> Draft:
        """Open the level of a heading between chapters."""
        heading = parse_heading(text)
        kind, number, title = (heading.kind, heading.number, heading.title) if heading else ("subtitle", "", text)
        between = Draft("subtitle" if heading is None else kind, number, title, draft)
        between.content = Content()
        between.base = f"{draft.base}|{kind} {number or title}"
        self.drafts.append(between)
        return between

    def include(self, href: str, parent: Draft, depth: int) -> None:
        path = os.path.normpath(os.path.join(self.base, href))
        if not path.startswith(self.folder.rstrip(os.sep) + os.sep):
            self.warnings.append(
                f"{parent.name} includes {quoted(href)}, which is outside of its folder and is skipped."
            )
        elif path in self.included:
            self.warnings.append(f"{parent.name} includes {quoted(href)}, which is also included elsewhere.")
        else:
            self.file(path, parent, depth)

    def file(self, path: str, parent: Draft | None, depth: int) -> None:
        self.included.add(path)
        name = os.path.relpath(path, self.folder).replace(os.sep, "/")
        try:
            data = read_file(path)
            root = parse_xml(data, name)
            rewrite(root, self.left_out)
        except SourceError as error:
            self.warnings.append(f"{error} It is skipped.")
            return
        if root.tag == _CONTAINER:
            outer, self.base = self.base, os.path.dirname(path)
            self.container(root, parent, depth)
            self.base = outer
        elif root.tag == _SECTION:
            draft = self.section(root, parent, name)
            draft.line, draft.last_line = 1, data.rstrip().count(b"\n") + 1
        else:
            self.warnings.append(f"{name}: The root is {root.tag}, not a section or container. It is skipped.")

    def section(self, element: etree._Element, parent: Draft | None, name: str | None) -> Draft:
        said = {tag: _words(element, tag) for tag in _SAID}
        draft = Draft(
            SECTION, said.get(_NUM, ""), said.get(_HEADING, ""), parent, content=_split_content(element), file=name
        )
        draft.status = said.get(_REASON, "").lower() or None
        self.drafts.append(draft)
        return draft

    def orphans(self) -> None:
        """Read the sections in the folder that the index does not include, and place them below its highest level."""
        top = self.drafts[0]
        for folder, folders, names in os.walk(self.folder):
            folders.sort()
            for name in sorted(names):
                path = os.path.join(folder, name)
                if name.endswith(".xml") and path not in self.included:
                    below = os.path.relpath(path, self.folder).replace(os.sep, "/")
                    self.warnings.append(f"{below}: No index includes it. It is placed below {top.name}.")
                    self.file(path, top, 0)


def _local(element: etree._Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _table(element: etree._Element) -> WrittenTable:
    for inner in element.iter():
        inner.tag = _local(inner)
    return html_tree.build_table(element)


def _words(element: etree._Element, tag: str) -> str:
    child = element.find(tag)
    return "" if child is None else _all(child)


def _all(element: etree._Element) -> str:
    if len(element) == 0:
        return html_tree.normalize_space(element.text or "")
    return html_tree.normalize_space("".join(map(str, element.itertext())))


def _split_content(element: etree._Element, said: Set[str] = _SAID, levels: Set[str] = frozenset()) -> Content:
    """The own content of an element without its description, each text once, and the levels in it.

    Text of unknown elements is kept.
    """
    apart = {element.find(tag) for tag in said}
    writing = _TextWriter()
    notes: list[Note] = []
    writing.loose(element.text)
    for child in element:
        tag = child.tag
        if tag == _PARA:
            writing.para(child, ())
        elif tag == _ANNOTATIONS:
            notes += _notes(child)
        elif tag not in levels and child not in apart:
            writing.text(child)
        writing.loose(child.tail)
    writing.end()
    body = writing.body
    found = sorted(writing.subsections, key=lambda each: (each.start, -each.end))
    return Content("\n".join(body.lines), make_unique(iter(found)), body.tables, writing.citations, notes)


def _rows(table: WrittenTable) -> Iterator[str]:
    """The rows of a table as text, each followed by the rows of the tables nested in it."""
    for row in table.rows:
        yield " | ".join(cell.text for cell in row)
        for nested in (nested for cell in row for nested in cell.nested):
            yield from _rows(nested)


def _notes(element: etree._Element) -> Iterator[Note]:
    if loose := html_tree.normalize_space(element.text or ""):
        yield Note(loose, _OTHER_NOTE)
    for child in element:
        text, citations, tables = _flatten(child)
        for table in tables:
            text = " ".join(filter(None, (text, *_rows(_table(table)))))
        document, path = child.get("doc"), child.get("path")
        if (document or path) and text:
            citations.insert(0, Citation(0, len(text), path, document))
        if text:
            kind = child.get("type") or (HISTORY if child.tag == _ANNOTATION else _OTHER_NOTE)
            yield Note(text, kind, citations, child.get("eff"))
        if loose := html_tree.normalize_space(child.tail or ""):
            yield Note(loose, _OTHER_NOTE)


@dataclass(slots=True)
class _TextWriter:
    """The text of a section while its paragraphs are visited."""

    body: Body = field(default_factory=Body)
    subsections: list[Subsection] = field(default_factory=list)
    citations: list[Citation] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    """Labels and headings of paragraphs that are joined with the next text on the same line."""

    def text(self, element: etree._Element) -> None:
        text, citations, tables = ("", [], [element]) if element.tag == _TABLE else _flatten(element)
        if not text and not tables:
            return
        if text or self.waiting:
            led = "".join(f"{each} " for each in self.waiting)
            self.waiting.clear()
            start = self.body.write(led + text if text else led[:-1]) + len(led)
            for each in citations:
                self.citations.append(Citation(start + each.start, start + each.end, each.path, each.document))
        for table in tables:
            self.end()
            self.body.table(_table(table))

    def loose(self, words: str | None) -> None:
        """Write text that is not in an element of its own."""
        if words and not words.isspace():
            led = "".join(f"{each} " for each in self.waiting)
            self.waiting.clear()
            self.body.write(led + html_tree.normalize_space(words))

    def para(self, element: etree._Element, path: tuple[str, ...]) -> None:
        start = None
        heading = None
        outer = path
        self.loose(element.text)
        for child in element:
            tag = child.tag
            if tag == _NUM:
                if child.get("undesignated") == "true":
                    self.loose(child.tail)
                    continue
                label = _all(child)
                if label:
                    path = (*path, label.strip("(). ") or label)
                    start = self.lead(label, start)
            elif tag == _PARA:
                self.para(child, path)
            elif tag == _PREFIX:
                start = self.lead(_all(child), start)
            elif tag == _HEADING:
                heading = _all(child)
                start = self.lead(heading, start)
            else:
                self.text(child)
            self.loose(child.tail)
        if start is not None and path != outer:
            self.end()
            self.subsections.append(Subsection(path, start, self.body.length, heading))

    def lead(self, words: str, start: int | None) -> int | None:
        """Queue words that start the next line. Return the offset of a paragraph without one so far."""
        if not words:
            return start
        if start is None:
            led = sum(len(each) + 1 for each in self.waiting)
            start = self.body.length + (1 if self.body.lines else 0) + led
        self.waiting.append(words)
        return start

    def end(self) -> None:
        if self.waiting:
            self.body.write(" ".join(self.waiting))
            self.waiting.clear()


def _flatten(element: etree._Element) -> tuple[str, list[Citation], Sequence[etree._Element]]:
    """Flatten an element to one line; return the text, its citations, and the tables in it, which are separate."""
    if len(element) == 0:
        return html_tree.normalize_space(element.text or ""), [], ()
    pieces: list[str] = []
    citations: list[Citation] = []
    tables: list[etree._Element] = []
    length = 0
    pending = False

    def add(words: str | None) -> None:
        nonlocal length, pending
        if not words:
            return
        shown = " ".join(words.split())
        if not shown:
            pending = pending or length > 0
            return
        if length and (pending or words[0].isspace()):
            pieces.append(" ")
            length += 1
        pieces.append(shown)
        length += len(shown)
        pending = words[-1].isspace()

    def walk(inner: etree._Element) -> None:
        add(inner.text)
        for child in inner:
            if child.tag == _TABLE:
                tables.append(child)
            elif child.tag == _CITE:
                before = len(pieces)
                walk(child)
                cited = "".join(pieces[before:])
                words = cited.lstrip(" ")
                path, document = child.get("path"), child.get("doc")
                if words and (path or document):
                    citations.append(Citation(length - len(words), length, path, document))
            else:
                if not len(child) and not child.text:
                    add(child.get(_VALUE))
                walk(child)
            add(child.tail)

    walk(element)
    return "".join(pieces), citations, tables
