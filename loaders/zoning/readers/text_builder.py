"""Builder for the body of a section: lines, tables with their offsets, and notes on history apart from the law."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from loaders.readers import history_notes
from loaders.readers.html_tree import Written, WrittenTable
from loaders.zoning.readers.code_model import Cell, Citation, Note, Subsection, Table
from loaders.zoning.readers.outline import find_parts


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
