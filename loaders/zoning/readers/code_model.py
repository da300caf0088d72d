"""The data model that all parsers of municipal codes produce: a code, as sections in document order.

**Text.** The text of a section is one string. Paragraphs, list items, terms, definitions and table rows are its lines,
joined by U+000A. Labels such as ``(a)`` are part of the text. The cells of a row are joined by ``" | "``. Any run of
white space is one space. All offsets are code points of that string, end-exclusive. The text contains no heading, no
notes on the section's history, and no markup.

**Keys.** Every level of the hierarchy is a section with a `key` that is unique in the code and does not depend on which
other files are read:

* the number as recorded, if it states its place: ``15.1.04.010``, ``10-101``, and ``15.1.04`` for the chapter above,
  and the bare number of a title: ``15``;
* else the key of its parent, ``|``, and its own kind and number: ``chapter 61|article II|division 4`` (a first level
  other than a title has no parent, so ``chapter 61``); in the D.C. Code only numbers, as in its own citations:
  ``8|2A|I``;
* without a number, the same with the heading instead of the number: ``chapter 61|article Purpose``;
* a key of more than 400 characters is cut to its first 200, then ``…`` and a hash;
* a section whose key occurs earlier in the file gets the suffix ``~2``, ``~3``, ..., and there is a warning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

DOMAIN: Final = "zoning"
VERSION: Final = "22"
"""Version of what this package reads and extracts. A new version makes every record be read again."""

LARGEST_GRID: Final = 1_000_000
"""Maximum places of a table that is expanded to a grid."""
HISTORY: Final = "History"
"""Kind of the notes on the ordinances that made and changed a section."""


@dataclass(frozen=True, slots=True)
class Citation:
    """A citation in the markup of a source. At least one of the two targets is set."""

    path: str | None = None
    """Address in the code, as recorded: ``§8-231.01|(a)|(1)``, ``8|2A|I``."""
    document: str | None = None
    """Another document, as recorded: ``D.C. Law 13-312``."""


@dataclass(frozen=True, slots=True)
class Subsection:
    """A labelled part of a section, with nested parts: the offsets [start, end) of its text, label included."""

    path: tuple[str, ...]
    """Bare labels, outermost first: (a)(1)(A) is ``("a", "1", "A")``. Unique in the section: a path that recurs gets
    ``~2`` after its last label."""
    start: int
    end: int
    heading: str | None = None
    """Its own heading, where the source marks one. It is also part of the text."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A table cell. Its `text` is at the offsets [start, end) of the section's text."""

    text: str
    start: int
    end: int
    colspan: int = 1
    rowspan: int = 1
    header: bool = False
    superscripts: Sequence[tuple[int, int]] = ()
    """Offsets of raised words in the section's text, mostly footnote marks."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table. Its rows are the lines in [start, end) of the section's text, after its caption.

    The lines of a nested table follow the line of the outer row.
    """

    start: int
    end: int
    rows: Sequence[Sequence[Cell]]
    """As in the source: a spanning cell is listed once, in its first row."""
    header_rows: int = 0
    """Number of header rows."""
    caption: str | None = None

    def grid(self) -> Sequence[Sequence[Cell | None]]:
        """Expand the rows to equal length. A spanning cell is repeated in each place; a place without a cell is None.

        A span ends with the table. A table with more than `LARGEST_GRID` places gives an empty grid.
        """
        spread = 0
        places: list[dict[int, Cell]] = [{} for _ in self.rows]
        for row, cells in enumerate(self.rows):
            column = 0
            for cell in cells:
                while column in places[row]:
                    column += 1
                spanned = places[row : row + cell.rowspan]
                spread += cell.colspan * len(spanned)
                if spread > LARGEST_GRID:
                    return ()
                for below in spanned:
                    below.update((column + across, cell) for across in range(cell.colspan))
                column += cell.colspan
        width = max((column + 1 for row in places for column in row), default=0)
        if width * len(places) > LARGEST_GRID:
            return ()
        return [[row.get(column) for column in range(width)] for row in places]


@dataclass(frozen=True, slots=True)
class Note:
    """Text about a section that is not law: its history, or another annotation."""

    text: str
    kind: str = HISTORY
    """As recorded: History, Editor's Notes, Emergency Legislation."""
    citations: Sequence[Citation] = ()
    """The first may be the document that the note is about."""
    effective: str | None = None
    """Effective date, as recorded."""


@dataclass(frozen=True, slots=True)
class Section:
    """One level of a code (title, chapter, article, part, division or section) with its own text."""

    key: str
    """Unique in the code; see the module docstring."""
    number: str
    """As recorded, without the word for its kind: ``15.1.04.010``, ``II``, ``10-101``. Empty if there is none."""
    title: str
    """Heading without the number. Empty if there is none, as for a level that is only implied by numbers."""
    kind: str
    """The word for its level, in lower case: title, subtitle, chapter, subchapter, article, part, division, section."""
    level: int
    """1 is the highest level of a code. Greater than the level of its parent."""
    parent: str | None
    """Key of the parent section, which comes earlier in the code."""
    order: int
    """Position among its siblings: from 0 in document order, or as given by the source."""
    text: str = ""
    """Verbatim; see the module docstring. Empty for a level without text of its own."""
    subsections: Sequence[Subsection] = ()
    """In text order, outer before inner."""
    tables: Sequence[Table] = ()
    """In text order, outer before inner."""
    citations: Sequence[Citation] = ()
    """Citations in the markup of the source."""
    notes: Sequence[Note] = ()
    status: str | None = None
    """Lower case, if not in force: repealed, reserved, expired, omitted, transferred."""
    lines: tuple[int, int] | None = None
    """First and last line in the file."""
    pages: tuple[int, int] | None = None
    """First and last page in a PDF, counted from 1, instead of lines."""
    file: str | None = None
    """Path of its file relative to the folder of the main file, where each section has its own file."""

    @property
    def history(self) -> Sequence[str]:
        """Notes on the ordinances that made and changed it."""
        return [note.text for note in self.notes if note.kind == HISTORY]


@dataclass(frozen=True, slots=True)
class UsePermission:
    """A use in a district, as stated in a source list. Every field is as recorded."""

    district: str
    use: str
    permission: str
    conditions: Sequence[str] = ()
    review_section: str | None = None
    section_ref: str | None = None


@dataclass(frozen=True, slots=True)
class DimensionalStandard:
    """A dimension for a district, as stated in a source list. Every field is as recorded."""

    district: str
    standard_type: str
    value: str
    """In the source's own words or digits."""
    unit: str = ""
    section_ref: str | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """A term and its meaning, as stated in a source list."""

    term: str
    definition_text: str
    section_ref: str | None = None


@dataclass(frozen=True, slots=True)
class Code:
    """The code in one file, or in one response of a service."""

    municipality: str | None
    """Name as recorded, e.g. Quarry Bend City. None if the source does not state it."""
    state: str | None
    """Two letters of a state of the United States, or a code of ISO 3166-2. None if the source does not state it."""
    sections: Sequence[Section]
    """In document order, so parents come before their children."""
    permissions: Sequence[UsePermission] = ()
    standards: Sequence[DimensionalStandard] = ()
    definitions: Sequence[Definition] = ()
    warnings: Sequence[str] = ()
    """Repairs, omissions and contradictions, each with its location."""
