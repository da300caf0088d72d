"""The D.C. Code in the XML that its council publishes (https://code.dccouncil.us/schemas/dc-library).

An index file holds the hierarchy of a title, and includes a file for each section. ``<para>`` nests as subsections do.
What ``<cite>`` marks is kept with its offsets, in the text or in the annotation that it stands in. A ``<num>`` that is
``undesignated`` only holds its paragraphs together: it is no word of the law, and no label either.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lxml import etree

from kg.errors import SourceError
from loaders.zoning.readers import html_lines
from loaders.zoning.readers.code_model import HISTORY, Citation, Code, Note, Subsection
from loaders.zoning.readers.headings import SECTION, heading_of
from loaders.zoning.readers.outline import unique
from loaders.zoning.readers.section_builder import Draft, finished, named
from loaders.zoning.readers.text_builder import Body, Content, WrittenTable

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
"""What a container holds that has words of its own."""
_SAID: Final = frozenset({_NUM, _HEADING, _REASON})
"""What says what a level is, beside its words."""
_OTHER_NOTE: Final = "Note"
_DEEPEST: Final = 200
"""Levels that containers nest at most. Elements nest to 256 levels, which is where the parser refuses a file."""


def document(data: bytes, name: str) -> etree._Element:
    """Return the root of an XML file. Raises SourceError for what is not XML, or has a document type declaration."""
    # Entities, and what a declaration has fetched, are the ways in which XML attacks its reader.
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True, remove_pis=True
    )
    if b"<!DOCTYPE" in data:
        raise SourceError(f"{name}: declares a document type, which is refused: the D.C. Code has none")
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise SourceError(f"{name}: is not XML ({error})") from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise SourceError(f"{name}: declares a document type, which is refused: the D.C. Code has none")
    return root


def is_index(start: bytes) -> bool:
    """Return whether a file that starts like this is an index of the D.C. Code."""
    return NAMESPACE.encode() in start and b"<container" in start.partition(NAMESPACE.encode())[0]


def read(index: Path) -> Code:
    """Return the title that an index file holds, with the sections that it includes.

    Files beside it that it does not include, those that are absent, broken or outside its folder, and those that are
    included twice are told in the warnings. Raises SourceError for an index that cannot be read.
    """
    folder = os.path.abspath(index.parent)
    reading = _Reading(folder, folder)
    root = document(_bytes(index), index.name)
    if root.tag != _CONTAINER:
        raise SourceError(f"{index}: its root is {root.tag}, not a container of the D.C. Code")
    reading.included.add(os.path.abspath(index))
    try:
        reading.container(root, None, 0)
        reading.orphans()
    except RecursionError:
        raise SourceError(f"{index}: what it holds and includes nests too deep to be read") from None
    warnings = reading.warnings
    sections = finished(reading.drafts, warnings)
    place = f"{os.path.basename(reading.folder)}/{index.name}"
    return Code(MUNICIPALITY, STATE, sections, warnings=named(warnings, place))


def _bytes(path: str | Path) -> bytes:
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error.strerror})") from error


@dataclass(slots=True)
class _Reading:
    folder: str
    """Of the index: nothing outside of it is read."""
    base: str
    """Folder of the file that is read, where what it includes is looked for."""
    drafts: list[Draft] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    included: set[str] = field(default_factory=set)

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
            self.warnings.append(f"{draft.name} holds levels nested deeper than {_DEEPEST}, which are left out")
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
        content = _content(element, _SAID | {_PREFIX}, _LEVELS)
        if content.text or content.notes:
            draft.content = content
        draft.status = _words(element, _REASON).lower() or None

    def subheading(self, text: str, draft: Draft) -> Draft:
        """Open the level that a heading between chapters sets apart."""
        heading = heading_of(text)
        kind, number, title = (heading.kind, heading.number, heading.title) if heading else ("subtitle", "", text)
        between = Draft("subtitle" if heading is None else kind, number, title, draft)
        between.content = Content()
        between.base = f"{draft.base}|{kind} {number or title}"
        self.drafts.append(between)
        return between

    def include(self, href: str, parent: Draft, depth: int) -> None:
        path = os.path.normpath(os.path.join(self.base, href))
        if not path.startswith(self.folder.rstrip(os.sep) + os.sep):
            self.warnings.append(f"{parent.name} includes {href!r}, which is outside of its folder and not read")
        elif path in self.included:
            self.warnings.append(f"{parent.name} includes {href!r}, which is included elsewhere too")
        else:
            self.file(path, parent, depth)

    def file(self, path: str, parent: Draft | None, depth: int) -> None:
        self.included.add(path)
        name = os.path.relpath(path, self.folder).replace(os.sep, "/")
        try:
            data = _bytes(path)
            root = document(data, name)
        except SourceError as error:
            self.warnings.append(f"{error}; it is left out")
            return
        if root.tag == _CONTAINER:
            outer, self.base = self.base, os.path.dirname(path)
            self.container(root, parent, depth)
            self.base = outer
        elif root.tag == _SECTION:
            draft = self.section(root, parent, name)
            draft.line, draft.last_line = 1, data.rstrip().count(b"\n") + 1
        else:
            self.warnings.append(f"{name}: its root is {root.tag}, neither a section nor a container; it is left out")

    def section(self, element: etree._Element, parent: Draft | None, name: str | None) -> Draft:
        said = {tag: _words(element, tag) for tag in _SAID}
        draft = Draft(SECTION, said.get(_NUM, ""), said.get(_HEADING, ""), parent, content=_content(element), file=name)
        draft.status = said.get(_REASON, "").lower() or None
        self.drafts.append(draft)
        return draft

    def orphans(self) -> None:
        """Read the sections beside the index that it does not include, below its highest level."""
        top = self.drafts[0]
        for folder, folders, names in os.walk(self.folder):
            folders.sort()
            for name in sorted(names):
                path = os.path.join(folder, name)
                if name.endswith(".xml") and path not in self.included:
                    below = os.path.relpath(path, self.folder).replace(os.sep, "/")
                    self.warnings.append(f"{below}: no index includes it; it stands below {top.name}")
                    self.file(path, top, 0)


def _local(element: etree._Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _table(element: etree._Element) -> WrittenTable:
    for inner in element.iter():
        inner.tag = _local(inner)
    return html_lines.table_of(element)


def _words(element: etree._Element, tag: str) -> str:
    child = element.find(tag)
    return "" if child is None else _all(child)


def _all(element: etree._Element) -> str:
    if len(element) == 0:
        return html_lines.shown(element.text or "")
    return html_lines.shown("".join(map(str, element.itertext())))


def _content(element: etree._Element, said: Set[str] = _SAID, levels: Set[str] = frozenset()) -> Content:
    """What an element holds of its own, beside what says what it is, each once, and the levels in it.

    The words of what is not known are words like others.
    """
    apart = {element.find(tag) for tag in said}
    writing = _Writing()
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
    return Content("\n".join(body.lines), unique(iter(found)), body.tables, writing.citations, notes)


def _rows(table: WrittenTable) -> Iterator[str]:
    """The rows of a table as text, and after each those of the tables in it."""
    for row in table.rows:
        yield " | ".join(cell.text for cell in row)
        for nested in (nested for cell in row for nested in cell.nested):
            yield from _rows(nested)


def _notes(element: etree._Element) -> Iterator[Note]:
    if loose := html_lines.shown(element.text or ""):
        yield Note(loose, _OTHER_NOTE)
    for child in element:
        text, citations, tables = _flat(child)
        for table in tables:
            text = " ".join(filter(None, (text, *_rows(_table(table)))))
        document, path = child.get("doc"), child.get("path")
        if (document or path) and text:
            citations.insert(0, Citation(0, len(text), path, document))
        if text:
            kind = child.get("type") or (HISTORY if child.tag == _ANNOTATION else _OTHER_NOTE)
            yield Note(text, kind, citations, child.get("eff"))
        if loose := html_lines.shown(child.tail or ""):
            yield Note(loose, _OTHER_NOTE)


@dataclass(slots=True)
class _Writing:
    """A section's text while its paragraphs are gone through."""

    body: Body = field(default_factory=Body)
    subsections: list[Subsection] = field(default_factory=list)
    citations: list[Citation] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    """Labels, and headings of paragraphs, that the next words follow on the same line."""

    def text(self, element: etree._Element) -> None:
        text, citations, tables = ("", [], [element]) if element.tag == _TABLE else _flat(element)
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
        """Write words that stand in no element of their own."""
        if words and not words.isspace():
            led = "".join(f"{each} " for each in self.waiting)
            self.waiting.clear()
            self.body.write(led + html_lines.shown(words))

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
        """Have words go before the next ones on their line; return where a paragraph starts that had no start."""
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


def _flat(element: etree._Element) -> tuple[str, list[Citation], Sequence[etree._Element]]:
    """The words of an element on one line, what its citations say of them, and the tables in it, which stand apart."""
    if len(element) == 0:
        return html_lines.shown(element.text or ""), [], ()
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
