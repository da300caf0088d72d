"""Builder for the body of a section: lines, tables with their offsets, and notes on history apart from the law.

The lines of HTML have white space as shown by a browser. An item has a bullet only in lists within lists, and without a
label of its own. So has one that a browser numbers: its number, which is recorded apart, does not show the depth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from lxml import etree

from loaders.readers import history_notes
from loaders.readers.html import BLOCKS, HIDDEN
from loaders.readers.html_tree import Written, WrittenTable, build_table, list_label, normalize_space, number_items
from loaders.zoning.readers.code_model import Cell, Citation, Note, Subsection, Table
from loaders.zoning.readers.outline import find_label_end, find_parts

_NOTES: Final = {
    "historynote": "History",
    "refeditor": "Editor's Note",
    "refcross": "Cross Reference",
    "refstate": "State Law Reference",
    "refcharter": "Charter Reference",
    "refother": "Reference",
}
"""Kinds of notes, by the prefix of their paragraph's class, in the markup of Municode."""
_LISTS: Final = ("ul", "ol")
_BULLETS: Final = "•◦▪–·"
"""By depth."""
_LABEL: Final = re.compile(r"incr\d{1,2}")
"""The class of a paragraph, in the markup of Municode, that is the label of the next one."""


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a section: its text, and everything with offsets in it."""

    text: str = ""
    subsections: Sequence[Subsection] = ()
    tables: Sequence[Table] = ()
    citations: Sequence[Citation] = ()
    notes: Sequence[Note] = ()


@dataclass(slots=True)
class Body:
    """The lines of a section being built. A line is one paragraph, item or row, with normalized white space."""

    lines: list[str] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    items: list[Subsection] = field(default_factory=list)
    """Parts whose markup gives their labels."""
    length: int = 0
    _starts: list[tuple[int, str]] = field(default_factory=list)
    _below: str | None = None
    """The heading "History" just above, empty after a note below it. None elsewhere."""

    def __bool__(self) -> bool:
        return bool(self.lines or self.notes or self.tables)

    @property
    def next_start(self) -> int:
        """Offset of the line that is added next."""
        return self.length + (1 if self.lines else 0)

    def add(self, line: str, bullet: str = "") -> None:
        """Add a line with its bullet, or to the notes if it is a note on the section's history."""
        if self._below is not None and history_notes.is_note_below(line):
            self._below = ""
            self.notes.append(Note(line))
            return
        self._end_history()
        if history_notes.is_note(line):
            self.notes.append(Note(line))
            return
        if (kind := history_notes.annotation_kind(line)) is not None:
            self.notes.append(Note(line, kind))
            return
        if history_notes.is_heading(line):
            self._below = line
            return
        line, note = history_notes.split_last(line)
        self._starts.append((self.write(bullet + line), line))
        if note is not None:
            self.notes.append(Note(note))

    def write(self, line: str) -> int:
        """Append a line unchanged and return its offset."""
        start = self.next_start
        self.lines.append(line)
        self.length = start + len(line)
        return start

    def table(self, table: WrittenTable) -> None:
        """Add a table: its caption, then its rows, each followed by the tables nested in it."""
        if table.caption:
            self.write(table.caption)
        index = len(self.tables)
        self.tables.append(Table(0, 0, ()))  # reserves its index before those of nested tables
        rows: list[Sequence[Cell]] = []
        first = None
        for row in table.rows:
            if any(cell.text for cell in row):
                start = self.write(" | ".join(cell.text for cell in row))
                first = start if first is None else first
            else:
                start = self.next_start if first is None else self.length
            rows.append(self._placed(row, start))
            for cell in row:
                for inner in cell.nested:
                    first = self.next_start if first is None else first
                    self.table(inner)
        if first is None:
            # A table without text is the empty span at the end of the text before it.
            first = self.length
            rows = [[replace(cell, start=first, end=first) for cell in row] for row in rows]
        self.tables[index] = Table(first, self.length, rows, table.header_rows, table.caption)

    def _placed(self, row: Sequence[Written], start: int) -> Sequence[Cell]:
        cells = []
        filled = any(cell.text for cell in row)
        for cell in row:
            end = start + len(cell.text)
            raised = [(start + one, start + other) for one, other in cell.superscripts]
            cells.append(Cell(cell.text, start, end, cell.colspan, cell.rowspan, cell.header, raised))
            start = end + 3 if filled else start
        return cells

    def _end_history(self) -> None:
        # No note followed the heading "History", so the heading is part of the law.
        if self._below:
            self._starts.append((self.write(self._below), self._below))
        self._below = None

    def content(self, citations: Iterable[Citation] = ()) -> Content:
        """Build the content, with the labelled parts."""
        self._end_history()
        text = "\n".join(self.lines)
        parts = find_parts(self._starts, len(text), self.items)
        return Content(text, parts, tuple(self.tables), tuple(citations), tuple(self.notes))


class Writer:
    """Writes elements as lines and tables of a body. A subclass may consume lines, and change the body."""

    def __init__(self) -> None:
        self._body = Body()
        self.labels: list[str] = []
        """Labels of the paragraph that follows."""
        self._items: dict[etree._Element, str] = {}
        """Labels that a browser gives to the items of the open lists."""
        self._path: tuple[str, ...] = ()
        """Labels of the open items."""
        self._begun: list[tuple[Body, int]] = []
        """Body of each of these, and where its first line starts."""
        self._depth = 0
        """Number of open lists, one of them in another."""
        self._bullet = ""
        """Bullet of the open item, until its first line."""
        self.run: list[str] = []
        """Text since the last line."""

    def body(self) -> Body:
        """Get the current body."""
        return self._body

    def take(self, text: str, element: etree._Element) -> bool:
        """Receive a line and the element that contains it, and return whether it is consumed."""
        return False

    def enter(self, element: etree._Element) -> None:
        """Called at the start of an element."""

    def leave(self, element: etree._Element) -> None:
        """Called at the end of an element."""

    def is_hidden(self, element: etree._Element) -> bool:
        """Check whether an element is left out."""
        return element.tag in HIDDEN

    def is_layout(self, table: etree._Element) -> bool:
        """Check whether a table is used for page layout, with sections in it."""
        return False

    def _lines(self, element: etree._Element) -> None:
        """Write the text collected between two blocks, which is a paragraph of its own."""
        text = "".join(self.run)
        self.run.clear()
        for part in text.split("\v"):
            if words := normalize_space(part):
                self._line(words, element)

    def _line(self, text: str, element: etree._Element) -> None:
        styles = (element.get("class") or "").split()
        kind = next((kind for start, kind in _NOTES.items() if any(each.startswith(start) for each in styles)), None)
        if kind is not None:
            self.body().notes.append(Note(text, kind))
        elif any(_LABEL.fullmatch(each) for each in styles):
            self.labels.append(text)
        else:
            text = " ".join((*self.labels, text)).rstrip()
            self.labels.clear()
            bullet, self._bullet = self._bullet, ""
            if not self.take(text, element):
                self.body().add(text, "" if find_label_end(text, 0, len(text)) else bullet)

    def write(self, root: etree._Element) -> None:
        """Write all content of an element."""
        walk = etree.iterwalk(root, events=("start", "end"))
        around = [root]
        for event, element in walk:
            tag = element.tag
            if tag in BLOCKS:
                self._lines(element if event == "end" else around[-1])
            if event == "end":
                around.pop()
                self._depth -= tag in _LISTS and self._depth > 0
                if tag == "li":
                    self._end_item(element)
                self.leave(element)
                if element is not root:
                    self.run.append(element.tail or "")
                continue
            around.append(element)
            if tag in _LISTS:
                self._depth += self._depth > 0 or next(element.iterdescendants(*_LISTS), None) is not None
            if tag == "ol":
                kind = element.get("type") or "1"
                for item, number in number_items(element).items():
                    self._items[item] = list_label(item.get("type") or kind, number)
            if tag == "li":
                self._begin_item(element)
            if self.is_hidden(element):
                walk.skip_subtree()
            elif tag == "br":
                self.run.append("\v")
            elif tag == "table" and not self.is_layout(element):
                self.end()
                self.body().table(build_table(element))
                walk.skip_subtree()
            else:
                self.enter(element)
                self.run.append(element.text or "")
        self._lines(root)
        self.end()

    def end(self) -> None:
        """Write the labels that no paragraph has followed."""
        if self.labels:
            self._line("", etree.Element("p"))

    def _begin_item(self, item: etree._Element) -> None:
        self._bullet = f"{_BULLETS[: self._depth][-1]} " if self._depth else ""
        if (label := self._items.get(item)) is not None:
            self._path = (*self._path, label)
            self._begun.append((self.body(), self.body().next_start))

    def _end_item(self, item: etree._Element) -> None:
        self._bullet = ""
        if item in self._items:
            body, start = self._begun.pop()
            if self.body() is body and body.length > start:
                body.items.append(Subsection(self._path, start, body.length))
            self._path = self._path[:-1]
