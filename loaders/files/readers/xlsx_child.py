"""The child process that reads the sheets of a workbook, by openpyxl."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import IO, Any, Final

from openpyxl.utils.cell import range_boundaries
from openpyxl.xml.constants import SHEET_MAIN_NS
from openpyxl.xml.functions import iterparse

from kg.text import quoted
from loaders.files.readers import office_package
from loaders.files.readers.office_package import UnreadableError
from loaders.readers.formats import CellFonts, open_workbook, read_runs
from loaders.readers.inline import LeftOut

_MOST_CELLS: Final = 500_000
"""Maximum number of cells with a value, and of those that merged cells fill."""
_MOST_PLACES: Final = 4 * _MOST_CELLS
"""Maximum number of rows of a table times its columns."""
_MOST_ROWS: Final = 1_048_576
"""Maximum rows of a sheet, as in Excel. openpyxl yields all rows up to any number that a row has."""
_NOTHING: Final = ";;;"
"""The format of cells that show nothing."""
_UNREAD: Final = {"xl/charts/chart": "charts", "xl/media/": "pictures", "xl/ctrlProps/": "fields of forms"}
"""Parts that are not read, by the start of their names."""
_COMMENT: Final = re.compile(rb"<(?:\w+:)?(?:comment|threadedComment)\s")
_LEVEL: Final = 2
"""Level of the heading of a sheet."""

_ROW, _CELL, _COLUMN, _FORMULA, _VALUE, _INLINE, _MERGED, _RUN = (
    f"{{{SHEET_MAIN_NS}}}{name}" for name in ("row", "c", "col", "f", "v", "is", "mergeCell", "r")
)


@dataclass(slots=True)
class _Layout:
    """What openpyxl does not report when it reads a sheet as a stream. Rows and columns are 1-based."""

    hidden_rows: set[int] = field(default_factory=set)
    hidden_columns: list[tuple[int, int]] = field(default_factory=list)
    merged: list[tuple[int, int, int, int]] = field(default_factory=list)
    """Merged cells: first column and row, last column and row."""
    inline: dict[str, str] = field(default_factory=dict)
    """The texts of cells that have them in runs of their own, by the name of the cell."""
    uncalculated: int = 0
    """Formulas without a stored value."""

    def is_hidden(self, column: int) -> bool:
        """Whether a column is hidden."""
        return any(first <= column <= last for first, last in self.hidden_columns)


def convert(data: bytes) -> tuple[str, dict[str, Any]]:
    """Read the sheets as blocks: a heading with the name of each, paragraphs, and tables."""
    blocks: list[dict[str, Any]] = []
    warnings: list[str] = []
    left_out = LeftOut()
    _count_unread(data, left_out)
    with closing(open_workbook(io.BytesIO(data), left_out)) as book:
        fonts = CellFonts.of(book)
        left = _MOST_CELLS
        hidden = [sheet.title for sheet in book.worksheets if sheet.sheet_state != "visible"]
        if hidden:
            warnings.append(f"Hidden sheets are left out: {', '.join(hidden[:10])} ({len(hidden):,}).")
        for sheet in book.worksheets:
            if sheet.sheet_state != "visible":
                continue
            with sheet._get_source() as stream:
                layout, cells = _read_layout(stream, left, left_out)
            left -= cells
            sheet.reset_dimensions()  # some writers declare less than they write
            rows = _read_rows(sheet, layout, fonts, left_out)
            _fill_merged(rows, layout)
            own = list(_divide(rows, layout))
            if own:
                blocks.append({"kind": "heading", "level": _LEVEL, "text": " ".join(sheet.title.split())})
                blocks += own
            warnings += _describe(sheet.title, layout)
    return json.dumps(blocks), {"warnings": [*warnings, *left_out.describe()]}


def _count_unread(data: bytes, left_out: LeftOut) -> None:
    """Count the parts of a workbook that are not read."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            kind = next((kind for start, kind in _UNREAD.items() if name.startswith(start)), None)
            if kind is not None and not name.endswith(".rels"):
                left_out.unread[kind] += 1
            elif name.startswith(("xl/comments", "xl/threadedComments/")):
                left_out.comments += len(_COMMENT.findall(archive.read(name)))
            elif name.startswith("xl/drawings/") and (boxes := archive.read(name).count(b":txBody>") // 2):
                left_out.unread["text boxes"] += boxes


def _read_layout(stream: IO[bytes], most: int, left_out: LeftOut) -> tuple[_Layout, int]:
    """Read the layout of a sheet, and count its cells. Raises UnreadableError if it has more than `most`."""
    layout, cells = _Layout(), 0
    has_formula = has_value = False
    place: str | None = None
    number = 0
    for event, node in iterparse(stream, events=("start", "end")):
        if event == "start":
            if node.tag == _ROW:
                number = int(node.get("r") or number + 1)
                if number > _MOST_ROWS:
                    raise UnreadableError(f"It has a row after row {_MOST_ROWS:,}, the last one of a sheet.")
                if node.get("hidden") in ("1", "true"):
                    layout.hidden_rows.add(number)
            elif node.tag == _COLUMN and node.get("hidden") in ("1", "true"):
                layout.hidden_columns.append((int(node.get("min")), int(node.get("max"))))
            elif node.tag == _MERGED:
                left, top, right, bottom = range_boundaries(node.get("ref"))
                if left and top and right and bottom:
                    layout.merged.append((left, top, right, bottom))
            elif node.tag == _CELL:
                has_formula = has_value = False
                place = node.get("r")
            continue
        if node.tag == _FORMULA:
            has_formula = True
        elif node.tag in (_VALUE, _INLINE):
            has_value = has_value or node.tag == _INLINE or bool(node.text)
            if node.tag == _INLINE and place and any(child.tag == _RUN for child in node):
                layout.inline[place] = read_runs(node, left_out)
        elif node.tag == _CELL:
            layout.uncalculated += has_formula and not has_value
            cells += has_value
            if cells > most:
                raise UnreadableError(f"It has more than {_MOST_CELLS:,} cells with a value. Split the workbook.")
        if node.tag in (_ROW, _MERGED):
            node.clear()
    return layout, cells


def _read_rows(sheet: Any, layout: _Layout, fonts: CellFonts, left_out: LeftOut) -> dict[int, dict[int, str]]:
    """Read the texts of the shown cells, by row and column. `left_out` counts those that are struck or not shown."""
    found: dict[int, dict[int, str]] = {}
    for cells in sheet.iter_rows():
        for cell in cells:
            if cell.value is not None and cell.row not in layout.hidden_rows and not layout.is_hidden(cell.column):
                value = layout.inline.get(cell.coordinate, cell.value) if layout.inline else cell.value
                text = " ".join(_write(value, cell.number_format).split())
                if (written := fonts.write(cell, text, left_out)) is None:
                    continue
                if cell.number_format.replace(" ", "") == _NOTHING:
                    left_out.add_hidden(text)
                elif text:
                    found.setdefault(cell.row, {})[cell.column] = written
    return found


def _fill_merged(rows: dict[int, dict[int, str]], layout: _Layout) -> None:
    """Repeat merged cells in the rows and columns that they span, as far as these have other cells."""
    last_column = max((column for row in rows.values() for column in row), default=0)
    last_row = max(rows, default=0)
    places = 0
    for left, top, right, bottom in layout.merged:
        text = rows.get(top, {}).get(left)
        if text is None:
            continue
        for number in range(top, min(bottom, last_row) + 1):
            row = rows.get(number)
            if row is None:
                continue
            for column in range(left, min(right, last_column) + 1):
                if not layout.is_hidden(column):
                    row.setdefault(column, text)
            places += min(right, last_column) - left + 1
            if places > _MOST_CELLS:
                raise UnreadableError(f"Its merged cells span more than {_MOST_CELLS:,} cells. Split the workbook.")


def _divide(rows: Mapping[int, Mapping[int, str]], layout: _Layout) -> Iterator[dict[str, Any]]:
    """Divide a sheet at empty rows into tables, and paragraphs: rows of one cell above or between the tables."""
    part: list[Mapping[int, str]] = []
    before = 0
    for number in sorted(rows):
        if part and not all(between in layout.hidden_rows for between in range(before + 1, number)):
            yield from _build_blocks(part)
            part = []
        part.append(rows[number])
        before = number
    yield from _build_blocks(part)


def _build_blocks(part: Sequence[Mapping[int, str]]) -> Iterator[dict[str, Any]]:
    """Build the paragraphs at the start of a part, which are its rows of one text, and the table of the others."""
    wide = next((place for place, row in enumerate(part) if len(set(row.values())) > 1), None)
    if wide is None:
        wide = 0 if len(part) > 1 else len(part)  # a table of one column, or a single line
    yield from ({"kind": "paragraph", "text": next(iter(row.values()))} for row in part[:wide])
    if rest := part[wide:]:
        columns = sorted({column for row in rest for column in row})
        if len(columns) * len(rest) > _MOST_PLACES:
            raise UnreadableError(f"A table of it has more than {_MOST_PLACES:,} places for cells. Split the workbook.")
        yield {"kind": "table", "rows": [[row.get(column, "") for column in columns] for row in rest]}


def _write(value: object, number_format: str) -> str:
    """Write a value as a spreadsheet shows it without rounding: percentages as such, dates in ISO 8601."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ", "seconds")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, int | float):
        if "%" in number_format:
            return f"{_write_number(value * 100)}%"
        return _write_number(value)
    return str(value)


def _write_number(value: float) -> str:
    """Write a number with the 15 digits that spreadsheets have."""
    if isinstance(value, int) or (abs(value) < 1e15 and value == int(value)):
        return str(int(value))
    return f"{value:.15g}"


def _describe(title: str, layout: _Layout) -> Iterator[str]:
    """Describe the parts of a sheet that are not read."""
    if layout.hidden_rows or layout.hidden_columns:
        rows = len(layout.hidden_rows)
        columns = sum(last - first + 1 for first, last in layout.hidden_columns)
        yield f"Sheet {quoted(title)}: {rows:,} hidden rows and {columns:,} hidden columns are left out."
    if layout.uncalculated:
        yield (
            f"Sheet {quoted(title)}: {layout.uncalculated:,} formulas have no stored value and are left out. Open the "
            "workbook in a spreadsheet program and save it."
        )


def main() -> None:
    """Run the process."""
    office_package.run(convert, "xl/workbook.xml", "a workbook (xlsx)")
