"""What the parsers of municipal codes yield, whatever the form of the file: a code, as sections in document order.

**Text.** A section's text is one string. Its paragraphs, list items, terms and definitions, and rows of tables are
lines of it, joined by U+000A; labels such as ``(a)`` stay in it; the cells of a row are joined by ``" | "``. A run of
white space, no-break or not, is one space. All offsets are code points of that string, ends excluded. The heading is
no part of it, nor are notes on the section's history, nor any markup.

**Keys.** Every level of the hierarchy is a section with a `key` that no other section of the code has, and that does
not depend on which other files are read:

* the number as recorded, where it says where it stands: ``15.1.04.010``, ``10-101``, and ``15.1.04`` for the chapter
  that it is in, and the bare number of a title: ``15``;
* else the key of its parent, ``|``, and its own kind and number: ``chapter 61|article II|division 4`` (a first level
  other than a title has no parent, so ``chapter 61``); in the D.C. Code numbers alone, as its own citations have them:
  ``8|2A|I``;
* where there is no number, the same with the heading in the number's place: ``chapter 61|article Purpose``;
* of a key of more than 400 characters the first 200 stand, then ``…`` and its hash;
* a section whose key another one has before it in the file gets ``~2``, ``~3``, ... added, and there is a warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

DOMAIN: Final = "zoning"
VERSION: Final = "2"
"""Version of what this package reads and extracts. A new version makes every record be read again."""

LARGEST_GRID: Final = 1_000_000
"""Places of the largest grid that a table is spread out to."""
HISTORY: Final = "History"
"""Kind of the notes that say which ordinances made and changed a section."""


@dataclass(frozen=True, slots=True)
class Citation:
    """What the markup of a source says that the words [start, end) of a text cite. At least one of the two is given."""

    start: int
    end: int
    path: str | None = None
    """Address in the code, as recorded: ``§8-231.01|(a)|(1)``, ``8|2A|I``."""
    document: str | None = None
    """Another document, as recorded: ``D.C. Law 13-312``."""


@dataclass(frozen=True, slots=True)
class Subsection:
    """A labelled part of a section: the code points [start, end) of its text, with its label and all that it holds."""

    path: tuple[str, ...]
    """Bare labels from the outermost: (a)(1)(A) is ``("a", "1", "A")``. No two of a section have the same; one that
    recurs there has ``~2`` added to its last label."""
    start: int
    end: int
    heading: str | None = None
    """Its own heading, where the source marks one; it stands in the text too."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table: the code points [start, end) of the section's text are its own `text`."""

    text: str
    start: int
    end: int
    colspan: int = 1
    rowspan: int = 1
    header: bool = False
    superscripts: Sequence[tuple[int, int]] = ()
    """Where in the section's text its raised words stand: marks of footnotes, mostly."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its rows are the lines of [start, end) of the section's text, its caption the line before."""

    start: int
    end: int
    rows: Sequence[Sequence[Cell]]
    """As the source has them: a cell that spans several places stands in the first."""
    header_rows: int = 0
    """How many of the first rows are its header."""
    caption: str | None = None
    within: tuple[int, int, int] | None = None
    """Of a nested table: index of the outer one in the section's tables, and row and cell there. Its lines follow the
    outer row's."""

    def grid(self) -> Sequence[Sequence[Cell | None]]:
        """Return the rows with all as many places, a spanning cell in each that it spans; None where there is none.

        A span ends with the table, whatever it says. One that spans more than `LARGEST_GRID` has none.
        """
        spread = 0
        for row, cells in enumerate(self.rows):
            spread += sum(cell.colspan * min(cell.rowspan, len(self.rows) - row) for cell in cells)
            if spread > LARGEST_GRID:
                return ()
        places: list[dict[int, Cell]] = [{} for _ in self.rows]
        for row, cells in enumerate(self.rows):
            column = 0
            for cell in cells:
                while column in places[row]:
                    column += 1
                for below in places[row : row + cell.rowspan]:
                    below.update((column + across, cell) for across in range(cell.colspan))
                column += cell.colspan
        width = max((column + 1 for row in places for column in row), default=0)
        if width * len(places) > LARGEST_GRID:
            return ()
        return [[row.get(column) for column in range(width)] for row in places]


@dataclass(frozen=True, slots=True)
class Note:
    """Words about a section that are not law: its history, or an annotation of another kind."""

    text: str
    kind: str = HISTORY
    """As recorded: History, Editor's Notes, Emergency Legislation."""
    citations: Sequence[Citation] = ()
    """In the text of the note; one of all of it says what document the note is about."""
    effective: str | None = None
    """Date from which what it says holds, as recorded."""


@dataclass(frozen=True, slots=True)
class Section:
    """One level of a code: a title, chapter, article, part, division or section, with the text that is its own."""

    key: str
    """Unique in the code; see above."""
    number: str
    """As recorded, without the word for its kind: ``15.1.04.010``, ``II``, ``10-101``. Empty where there is none."""
    title: str
    """Its heading, without the number. Empty where there is none, as for a level that only the numbers imply."""
    kind: str
    """The word for its level, in lower case: title, subtitle, chapter, subchapter, article, part, division, section."""
    level: int
    """1 is the highest in its code; the level of its parent and at least one more."""
    parent: str | None
    """Key of the section that it is part of; that one stands before it."""
    order: int
    """Among the parts of its parent: from 0 in document order, or as the source says."""
    text: str = ""
    """Verbatim; see above. Empty for a level that has none of its own."""
    subsections: Sequence[Subsection] = ()
    """In the order of the text, an outer one before those in it."""
    tables: Sequence[Table] = ()
    """In the order of the text, an outer one before those in it."""
    citations: Sequence[Citation] = ()
    """What the source's markup says that the text cites."""
    notes: Sequence[Note] = ()
    status: str | None = None
    """In lower case, where it is not in force as it stands: repealed, reserved, expired, omitted, transferred."""
    lines: tuple[int, int] | None = None
    """First and last line in the file."""
    file: str | None = None
    """Path of that file from the folder of the one that was read, where a code has one for each section."""

    @property
    def repealed(self) -> bool:
        """Whether the source says that it is repealed."""
        return self.status == "repealed"

    @property
    def history(self) -> Sequence[str]:
        """The notes on which ordinances made and changed it."""
        return [note.text for note in self.notes if note.kind == HISTORY]


@dataclass(frozen=True, slots=True)
class UsePermission:
    """What a source states of a use in a district, every field as recorded."""

    district: str
    use: str
    permission: str
    conditions: Sequence[str] = ()
    review_section: str | None = None
    section_ref: str | None = None


@dataclass(frozen=True, slots=True)
class DimensionalStandard:
    """A measure that a source states for a district, every field as recorded."""

    district: str
    standard_type: str
    value: str
    """In the source's own words or digits."""
    unit: str
    section_ref: str | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """A term that a source states the meaning of."""

    term: str
    definition_text: str
    section_ref: str | None = None


@dataclass(frozen=True, slots=True)
class Code:
    """What one file, or one answer of a service, holds of a municipality's code."""

    municipality: str | None
    """Its name as recorded: Quarry Bend City. None where the source does not say."""
    state: str | None
    """Two letters. None where the source does not say."""
    sections: Sequence[Section]
    """In document order, so a parent stands before its parts."""
    updated: str | None = None
    """Date of the text, as recorded."""
    permissions: Sequence[UsePermission] = ()
    standards: Sequence[DimensionalStandard] = ()
    definitions: Sequence[Definition] = ()
    warnings: Sequence[str] = field(default_factory=tuple)
    """What was repaired, is missing or contradicts itself, each with its place."""

    def leaves(self) -> Iterator[Section]:
        """Yield the sections that no other is part of."""
        parents = {section.parent for section in self.sections}
        return (section for section in self.sections if section.key not in parents)
