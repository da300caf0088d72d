"""Which uses the districts permit, from tables with a column or row for each district, and letters in the cells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from loaders.extraction import districts as naming
from loaders.extraction.districts import District
from loaders.extraction.permissions import Level, UsePermission, level_of
from loaders.extraction.sections import Cell, Section, Table

_USUAL: Final[Mapping[str, Level]] = {
    "P": "byRight", "Y": "byRight", "YES": "byRight", "BR": "byRight", "R": "byRight", "PERMITTED": "byRight",
    "ALLOWED": "byRight", "✓": "byRight", "✔": "byRight", "•": "byRight", "●": "byRight", "■": "byRight",
    "C": "conditional", "CU": "conditional", "CUP": "conditional", "S": "conditional", "SU": "conditional",
    "SE": "conditional", "SP": "conditional", "SUP": "conditional", "SLU": "conditional", "CONDITIONAL": "conditional",
    "L": "byRightWithConditions", "PC": "byRightWithConditions", "P/C": "byRightWithConditions",
    "PS": "byRightWithConditions", "A": "byRightWithConditions", "LIMITED": "byRightWithConditions",
    "N": "notPermitted", "NO": "notPermitted", "NP": "notPermitted", "-": "notPermitted", "–": "notPermitted",
    "—": "notPermitted", "--": "notPermitted", "PROHIBITED": "notPermitted", "NOT PERMITTED": "notPermitted",
}  # fmt: skip
"""What letters mean where no legend says otherwise. X stands for both, by what else the table has."""
_MARK: Final = re.compile(
    r"(?P<letters>[A-Za-z/✓✔•●■–—-]{1,4}|(?i:permitted|allowed|prohibited|conditional|limited|not permitted))"
    r"[ ]?(?P<notes>(?:[\[(]?[\d*†‡,]{1,5}[\])]?)?)"
)
_LEGEND: Final = re.compile(
    r"(?<![\w-])[“\"(]?(?P<letter>[A-Z](?:/?[A-Z]){0,3}|[-–—✓✔•●■])[”\")]? ?(?P<sign>=|:|-|–|—|means|indicates|is)+ ?"
    r"(?P<meaning>[^=;\n|]{3,80})",
)
_BLANK: Final = re.compile(r"\b(?:blank|empty|no letter|no symbol)\b[^.\n]{0,60}", re.IGNORECASE)
_NOTE: Final = re.compile(r"\(?(?P<mark>\d{1,2}|[*†‡]{1,3})[.):]? ?(?P<note>\S[^\n]*)")
_LETTERS_SHARE: Final = 0.6
"""Share of the cells with words that must be letters for a table to be a matrix of uses."""
_AROUND: Final = 4_000
"""Code points before and after a table where its legend and notes stand."""


def matrices(section: Section, known: Mapping[str, District]) -> Sequence[UsePermission]:
    """Return what the matrices of a section permit, in its order. A blank cell is a use that is not permitted."""
    return [found for table in section.tables for found in _matrix(section, table, known)]


def _matrix(section: Section, table: Table, known: Mapping[str, District]) -> Iterator[UsePermission]:
    grid = table.grid()
    columns = _columns(grid, known)
    if columns is None:
        turned = [
            [row[place] if place < len(row) else None for row in grid] for place in range(len(grid[0]) if grid else 0)
        ]
        columns = _columns(turned, known)
        if columns is None:
            return
        grid = turned
    header, districts = columns
    cells = [row[place] for row in grid[header + 1 :] for place in districts if place < len(row)]
    words = [cell.text for cell in cells if cell is not None and cell.text.strip()]
    if not words or sum(bool(_MARK.fullmatch(text.strip())) for text in words) < _LETTERS_SHARE * len(words):
        return
    legend, blank = _legend(section, table, words)
    notes = notes_of(section, table)
    for row in grid[header + 1 :]:
        use = row[0]
        if use is None or not use.text.strip() or all(each is use for each in row):
            continue
        for place, code in districts.items():
            cell = row[place] if place < len(row) else None
            if cell is not None and cell is not use:
                yield from _cell(section, use, cell, code, legend, blank, notes)


def _columns(
    grid: Sequence[Sequence[Cell | None]], known: Mapping[str, District]
) -> tuple[int, Mapping[int, str]] | None:
    """The row that names the districts, and the columns that they have."""
    for number, row in enumerate(grid[:4]):
        found: dict[int, str] = {}
        for place, cell in enumerate(row[1:], start=1):
            words = cell.text.strip() if cell is not None else ""
            if words in known or re.fullmatch(rf"{naming.CODE}(?: (?:District|Zone))?", words):
                found[place] = words.split(" ")[0] if words not in known else words
        if len(found) > 1 and len(found) * 2 >= sum(bool(cell and cell.text.strip()) for cell in row[1:]):
            return number, found
    return None


def _legend(section: Section, table: Table, words: Sequence[str]) -> tuple[Mapping[str, Level], Level | None]:
    """What the letters mean, and a blank cell: by the words around the table, or as is usual."""
    before = section.text[max(0, table.start - _AROUND) : table.start]
    after = section.text[table.end : table.end + _AROUND]
    legend = dict(_USUAL)
    letters = {_letters(word) for word in words}
    for around in (after, before):
        for match in _LEGEND.finditer(around):
            level = level_of(f"{match['meaning']} uses")
            if match["letter"].upper() in letters and level is not None:
                legend[match["letter"].upper()] = level
    if "X" in letters and "X" not in legend:
        legend["X"] = (
            "notPermitted" if any(legend.get(letter) == "byRight" for letter in letters - {"X"}) else "byRight"
        )
    said = _BLANK.search(before) or _BLANK.search(after)
    blank = level_of(said[0]) if said else None
    if blank is None and not any(legend.get(letter) == "notPermitted" for letter in letters):
        blank = "notPermitted"
    return legend, blank


def _letters(word: str) -> str:
    match = _MARK.fullmatch(word.strip())
    return match["letters"].upper() if match else word.strip().upper()


def notes_of(section: Section, table: Table) -> Mapping[str, str]:
    """The notes below a table by their marks: its subsections with those labels, or lines that begin with them."""
    notes: dict[str, str] = {}
    for each in section.subsections:
        if each.start >= table.end and len(each.path) == 1:
            notes.setdefault(each.path[0], section.text[each.start : each.end].strip())
    for line in section.text[table.end : table.end + _AROUND].split("\n"):
        if match := _NOTE.fullmatch(line.strip()):
            notes.setdefault(match["mark"], match["note"])
    return notes


def _cell(
    section: Section,
    use: Cell,
    cell: Cell,
    code: str,
    legend: Mapping[str, Level],
    blank: Level | None,
    notes: Mapping[str, str],
) -> Iterator[UsePermission]:
    name = without_marks(section, use).strip(" .;:")
    raw = without_marks(section, cell).strip()
    match = _MARK.fullmatch(cell.text.strip())
    marks = [section.text[start:end].strip() for start, end in (*use.superscripts, *cell.superscripts)]
    if match and match["notes"]:
        raw = match["letters"]
        marks += re.findall(r"\d+|[*†‡]+", match["notes"])
    conditions = list(dict.fromkeys(notes[mark] for mark in marks if mark in notes))
    if not raw:
        if blank is not None:
            yield UsePermission(code, name, blank, "", conditions, None, use.start, use.end, 0.6, "matrix")
        return
    level = legend.get(raw.upper())
    if level is not None:
        if level == "byRight" and conditions:
            level = "byRightWithConditions"
        yield UsePermission(code, name, level, raw, conditions, None, cell.start, cell.end, 0.9, "matrix")


def without_marks(section: Section, cell: Cell) -> str:
    """The words of a cell without its raised marks."""
    words, at = [], cell.start
    for start, end in sorted(cell.superscripts):
        words.append(section.text[at:start])
        at = max(at, end)
    return "".join([*words, section.text[at : cell.end]])
