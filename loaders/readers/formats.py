"""CSV, JSONL, JSON and xlsx as streams of rows of verbatim text: each cell is as in the file, or None.

The readers of DuckDB are not used, since they change text: they read an empty quoted cell as NULL, stop at long lines,
and reject a whole file for one lone surrogate.
"""

from __future__ import annotations

import codecs
import csv
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from kg.errors import SourceError
from kg.text import quoted
from loaders.readers.inline import LeftOut, lower_text, raise_text

_SAMPLE_ROWS: Final = 1000
_CHUNK: Final = 1 << 20
LONGEST_CELL: Final = 1 << 24
"""Maximum characters of a cell. In a longer one of CSV a quote is unclosed, or the file is not CSV."""
_LONGEST_LINE: Final = 1 << 26
"""Maximum bytes of a line of JSONL."""
_LARGEST_PART: Final = 1 << 28
"""Maximum bytes of a part of a workbook that openpyxl reads into memory, decompressed: all but the sheets."""
_LARGEST_SHEET: Final = 1 << 32
"""Maximum bytes of a sheet, decompressed. It is read as a stream."""
_STYLES: Final = "xl/styles.xml"
_LARGEST_STYLES: Final = 1 << 24
"""Maximum bytes of the styles, decompressed: openpyxl needs some 40 microseconds for each style."""
_MOST_RATIO: Final = 100
"""Maximum bytes of a part for each compressed byte, beyond `_SMALL_PART`, as in Apache POI."""
_SMALL_PART: Final = 1 << 26
_NOT_READ: Final = ("xl/pivotCache/", "xl/media/")
_MOST_ROWS: Final = 1_048_576
"""Maximum rows of a sheet, which is Excel's. openpyxl yields all rows up to any number that a row has."""
NO_OBJECT: Final = "is not a JSON object"
_SHIFTS: Final = {"superscript": raise_text, "subscript": lower_text}


@dataclass(frozen=True, slots=True)
class Row:
    """One data row. `cells` are in the order of the requested columns. `problem` is why the row is invalid."""

    number: int
    cells: Sequence[str | None]
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table: its columns (in JSONL, the keys of the first rows) and its rows, 1-based, without the header."""

    columns: Sequence[str]
    rows: Callable[[Sequence[str], str], Iterator[Row]]
    """Arguments: the columns to read, and the one of them whose cells must be text, not numbers."""
    warnings: Sequence[str] = ()


def open_sheet(path: Path) -> Sheet:
    """Open a CSV, JSONL or xlsx file by its extension. Raises SourceError if it is empty or not of its format."""
    if path.stat().st_size == 0:
        raise SourceError(f"{path}: the file is empty")
    ending = path.suffix.lower()
    if ending == ".csv":
        return _csv(path)
    if ending == ".xlsx":
        return _xlsx(path)
    return _jsonl(path)


def describe_long_cell(column: str, length: int) -> str:
    """Describe a cell of more than `LONGEST_CELL` characters, to follow the name of its row."""
    return f"has {length:,} characters in {quoted(column)}; the maximum is {LONGEST_CELL:,}"


def _require_short_cells(path: Path, number: int, columns: Sequence[str], cells: Sequence[str | None]) -> None:
    """Raise SourceError for a cell of more than `LONGEST_CELL` characters."""
    for column, cell in zip(columns, cells, strict=True):
        if cell is not None and len(cell) > LONGEST_CELL:
            raise SourceError(f"{path}: row {number} {describe_long_cell(column, len(cell))}")


def surrogate_in(text: str) -> str | None:
    """Find the first lone surrogate of `text`, as ``U+D800``. Text with one cannot be encoded in UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"U+{ord(text[error.start]):04X}"
    return None


# CSV


def _encoding(path: Path) -> str:
    with path.open("rb") as stream:
        start = stream.read(4)
        for bom, encoding in (
            (codecs.BOM_UTF8, "utf-8-sig"),
            (codecs.BOM_UTF16_LE, "utf-16"),
            (codecs.BOM_UTF16_BE, "utf-16"),
        ):
            if start.startswith(bom):
                return encoding
        decoder = codecs.getincrementaldecoder("utf-8")()
        stream.seek(0)
        try:
            while chunk := stream.read(_CHUNK):
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "cp1252"
    return "utf-8"


_BARE_RETURN: Final = "\udc0d"
"""Replaces U+000D while a line is parsed. Decoded text contains no lone surrogate."""


def _records(path: Path, encoding: str, newline: str, delimiter: str) -> Iterator[list[str]]:
    """Yield the rows of a file, including the header.

    If the header ends in a line feed, so do all rows: a single carriage return, which the csv module takes as the end
    of a row, is text. Many writers, such as pandas, do not quote it.
    """
    with path.open(encoding=encoding, newline=newline) as stream:
        lines = (re.sub(r"\r(?!\n)", _BARE_RETURN, line) if newline and "\r" in line else line for line in stream)
        table = csv.reader(lines, delimiter=delimiter, strict=True)
        try:
            for cells in table:
                yield [cell.replace(_BARE_RETURN, "\r") for cell in cells]
        except UnicodeError as error:
            raise SourceError(f"{path}: the text is neither UTF-8 nor Windows-1252 ({error})") from error
        except csv.Error as error:
            raise SourceError(f"{path}: not CSV at line {table.line_num} ({error})") from error


def csv_rows(path: Path) -> tuple[Sequence[str], Iterator[tuple[int, list[str]]]]:
    """Read the names of the columns, and the data rows with their numbers and all their cells."""
    header, _, table = _opened_csv(path)
    return header, table()


def _opened_csv(path: Path) -> tuple[list[str], str, Callable[[], Iterator[tuple[int, list[str]]]]]:
    encoding = _encoding(path)
    # A cell may be a whole document; the module's limit of 128 KiB is for another kind of table.
    csv.field_size_limit(LONGEST_CELL)

    with path.open(encoding=encoding, newline="") as stream:
        header, delimiter = _header(path, stream)
        stream.seek(0)
        newline = "" if stream.readline().endswith("\r") else "\n"

    def table() -> Iterator[tuple[int, list[str]]]:
        records = _records(path, encoding, newline, delimiter)
        next(records)
        return enumerate((cells for cells in records if cells), 1)

    return header, encoding, table


def _csv(path: Path) -> Sheet:
    header, encoding, table = _opened_csv(path)

    def rows(wanted: Sequence[str], verbatim: str) -> Iterator[Row]:
        places = [header.index(name) if name in header else None for name in wanted]
        for number, cells in table():
            problem = None
            if len(cells) != len(header):
                problem = f"has {len(cells)} cells where the header has {len(header)}"
            picked = [cells[place] if place is not None and place < len(cells) else "" for place in places]
            yield Row(number, [value or None for value in picked], problem)

    warnings = () if encoding.startswith("utf-8") else (f"{path}: read as {_NAMES[encoding]}, since it is not UTF-8",)
    return Sheet(header, rows, warnings)


def _header(path: Path, stream: IO[str]) -> tuple[list[str], str]:
    """Read the column names and the delimiter: the one that splits the header most (names with commas are quoted)."""
    headers = []
    for delimiter in ",;\t|":
        stream.seek(0)
        # Not strictly, for with the wrong delimiter a quoted name looks broken.
        try:
            headers.append((next(csv.reader(stream, delimiter=delimiter), []), delimiter))
        except (UnicodeError, csv.Error) as error:
            raise SourceError(f"{path}: the header is not CSV in UTF-8 or Windows-1252 ({error})") from error
    header, delimiter = max(headers, key=lambda each: len(each[0]))
    names = [name.strip() for name in header]
    if any("\0" in name for name in names):
        raise SourceError(f"{path}: the header has NUL characters; valid: UTF-8, or UTF-16 with its byte order mark")
    if not any(names):
        raise SourceError(f"{path}: the file has no header")
    return names, delimiter


_NAMES: Final = {"cp1252": "Windows-1252", "utf-16": "UTF-16"}


# JSONL


def flatten(value: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield members of nested objects by dotted names: ``text_block.text`` for ``{"text_block": {"text": ...}}``."""
    for key, inner in value.items():
        if isinstance(inner, dict) and inner:
            yield from flatten(inner, f"{prefix}{key}.")
        yield f"{prefix}{key}", inner


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Yield the number and the object (or the problem) of each line. Only U+000A ends a line. Blank lines count."""
    with path.open("rb") as stream:
        number = 0
        while line := stream.readline(_LONGEST_LINE + 1):
            number += 1
            if len(line) > _LONGEST_LINE:
                raise SourceError(f"{path}: line {number} has more than {_LONGEST_LINE:,} bytes")
            if number == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            if not line.strip():
                continue
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                yield number, f"is not UTF-8 (byte {error.start} of the line)"
                continue
            del line  # a long line takes much memory as text and as its value
            try:
                value = json.loads(text)
            except RecursionError:
                yield number, describe_depth(text)
            except ValueError as error:  # also for numbers of thousands of digits
                yield number, f"is not JSON ({error})"
            else:
                yield number, value if isinstance(value, dict) else NO_OBJECT


def _objects(path: Path) -> Iterator[tuple[int, dict[str, Any] | str]]:
    for number, value in json_lines(path):
        yield number, value if isinstance(value, str) else dict(flatten(value))


_MARKS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
_DEEP: Final = 500


def describe_depth(text: str) -> str:
    """Describe where JSON nests too deeply for the parser, to follow the name of its place in a file."""
    depth = 0
    for mark in _MARKS.finditer(text):
        depth += (mark[0] in "{[") - (mark[0] in "}]")
        if depth > _DEEP:
            line, column = text.count("\n", 0, mark.start()) + 1, mark.start() - text.rfind("\n", 0, mark.start())
            return f"nests lists and objects deeper than {_DEEP} at line {line}, column {column}"
    return "nests lists and objects too deeply"


def _jsonl(path: Path) -> Sheet:
    sheet = objects_sheet(path, lambda: _objects(path))
    if not sheet.columns:
        number, problem = next(_objects(path), (1, NO_OBJECT))
        reason = problem if isinstance(problem, str) else "is an empty object"
        raise SourceError(f"{path}: none of the first lines is a JSON object with members. Line {number} {reason}.")
    return sheet


def json_sheet(path: Path, within: str) -> Sheet:
    """Open a JSON file with one array of objects, or one object with that array as its member `within`.

    The whole file is read into memory. Raises SourceError if it has another structure.
    """
    values = json_rows(path, within)
    sheet = objects_sheet(
        path, lambda: ((n, dict(flatten(v)) if isinstance(v, dict) else NO_OBJECT) for n, v in enumerate(values, 1))
    )
    if not sheet.columns:
        raise SourceError(f"{path}: the JSON contains no object")
    return sheet


def json_rows(path: Path, within: str) -> list[Any]:
    """Load the items of the array of such a file. Raises SourceError if there is none."""
    if path.stat().st_size == 0:
        raise SourceError(f"{path}: the file is empty")
    try:
        value = json.loads(path.read_bytes())
    except UnicodeDecodeError as error:
        raise SourceError(f"{path}: not UTF-8 (byte {error.start})") from error
    except RecursionError:
        text = path.read_text(encoding="utf-8", errors="replace")
        raise SourceError(f"{path}: {describe_depth(text)}") from None
    except ValueError as error:
        raise SourceError(f"{path}: not JSON ({error})") from error
    found = value.get(within) if isinstance(value, dict) else value
    if not isinstance(found, list):
        seen = "no array"
        if isinstance(value, dict):
            seen = f"an object with {', '.join(map(repr, [*value][:5])) or 'nothing'}"
            if within in value:
                seen = f"an object whose {quoted(within)} is not an array"
        raise SourceError(
            f"{path}: the JSON is {seen}; an array is expected, or an object with one as {quoted(within)}"
        )
    return found


def objects_sheet(path: Path, objects: Callable[[], Iterator[tuple[int, dict[str, Any] | str]]]) -> Sheet:
    """Open objects as rows, each with its number; a string in place of an object is its problem.

    The columns are the members of the first objects.
    """
    columns: dict[str, None] = {}
    for _, value in islice(objects(), _SAMPLE_ROWS):
        if isinstance(value, dict):
            columns.update(dict.fromkeys(value))

    def rows(wanted: Sequence[str], verbatim: str) -> Iterator[Row]:
        for number, value in objects():
            if isinstance(value, str):
                yield Row(number, [None] * len(wanted), value)
                continue
            problem = None
            if not isinstance(value.get(verbatim), str | None):
                problem = f"has {quoted(verbatim)} of a wrong type: text is expected"
            cells = [text_of_cell(value.get(name)) for name in wanted]
            yield build_json_row(path, number, wanted, cells, problem)

    return Sheet(list(columns), rows)


def build_json_row(
    path: Path, number: int, columns: Sequence[str], cells: list[str | None], problem: str | None
) -> Row:
    """Build a row of JSON. Lone surrogates are a problem of it; a cell that is too long raises SourceError."""
    _require_short_cells(path, number, columns, cells)
    for place, cell in enumerate(cells):
        if cell is not None and (found := surrogate_in(cell)) is not None:
            problem = f"has the lone surrogate {found}, which is not a character, in {quoted(columns[place])}"
            cells[place] = cell.encode(errors="backslashreplace").decode()
    return Row(number, cells, problem)


def text_of_cell(value: object) -> str | None:
    """Convert a cell to text: JSON for values other than text, numbers and dates."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


# xlsx


@contextmanager
def _workbook(path: Path, left_out: LeftOut) -> Iterator[Iterator[tuple[object, ...]]]:
    """Yield the rows of the first sheet, including the header. `left_out` counts struck words of cells."""
    from openpyxl.utils.exceptions import InvalidFileException

    # What openpyxl raises over a broken workbook: its parts are XML in a zip, and it trusts them.
    broken = (
        InvalidFileException, zipfile.BadZipFile, zlib.error, OSError, EOFError,
        ValueError, LookupError, AttributeError, TypeError, SyntaxError,
    )  # fmt: skip

    try:
        _require_bounded(path)
        with path.open("rb") as stream, closing(open_workbook(stream, left_out)) as book:
            if not book.worksheets:
                raise SourceError(f"{path}: the workbook has no sheet")
            sheet = book.worksheets[0]
            sheet.reset_dimensions()  # some writers declare less than they write, and the rest would be left out
            changed = {**_read_inline(sheet, left_out), **_read_styled(sheet, CellFonts.of(book), left_out)}
            rows = sheet.iter_rows(values_only=True)
            yield _replace_cells(rows, changed) if changed else rows
    except broken as error:
        raise SourceError(f"{path}: not an xlsx workbook, or a broken one ({error})") from error


def open_workbook(stream: IO[bytes], left_out: LeftOut) -> Any:
    """Open a workbook as `openpyxl.load_workbook` does, without the struck words of cells, which `left_out` counts.

    Its own reader of strings takes four times as long.
    """
    from openpyxl.reader.excel import ExcelReader
    from openpyxl.xml.constants import SHARED_STRINGS

    class Reader(ExcelReader):
        def read_strings(self) -> None:
            part = self.package.find(SHARED_STRINGS)  # type: ignore[no-untyped-call]
            if part is not None:
                with self.archive.open(part.PartName[1:]) as strings:
                    self.shared_strings = list(_read_strings(strings, left_out))

    reader = Reader(stream, read_only=True, data_only=True)
    reader.read()
    return reader.wb


class CellFonts(NamedTuple):
    """The numbers of the fonts of a workbook that strike out a cell, and of those that raise or lower it."""

    struck: frozenset[int]
    shifted: Mapping[int, str]

    @classmethod
    def of(cls, book: Any) -> CellFonts:
        """Find the fonts of a workbook."""
        return cls(
            frozenset(number for number, font in enumerate(book._fonts) if font.strike),
            {number: font.vertAlign for number, font in enumerate(book._fonts) if font.vertAlign in _SHIFTS},
        )

    def write(self, cell: Any, text: str, left_out: LeftOut) -> str | None:
        """Write the text of a cell; None if it is struck out, which `left_out` counts."""
        font = cell.style_array.fontId if self.struck or self.shifted else -1
        if font in self.struck:
            left_out.add_struck(text)
            return None
        shift = self.shifted.get(font)
        return text if shift is None else _SHIFTS[shift](text)


def _read_styled(sheet: Any, fonts: CellFonts, left_out: LeftOut) -> dict[tuple[int, int], str | None]:
    """Read the cells whose font changes their text, by row and column. None: struck out."""
    if not (fonts.struck or fonts.shifted):
        return {}
    return {
        (cell.row, cell.column): written
        for cells in sheet.iter_rows()
        for cell in cells
        if cell.value is not None
        and (written := fonts.write(cell, text_of_cell(cell.value) or "", left_out)) != text_of_cell(cell.value)
    }


def _read_inline(sheet: Any, left_out: LeftOut) -> dict[tuple[int, int], str]:
    """Read the texts of cells that have them in runs of their own, by row and column: openpyxl joins all runs."""
    from openpyxl.utils.cell import coordinate_to_tuple
    from openpyxl.xml.constants import SHEET_MAIN_NS
    from openpyxl.xml.functions import iterparse

    with sheet._get_source() as stream:
        if not any(b"<r>" in line or b":r>" in line for line in stream):
            return {}
    found: dict[tuple[int, int], str] = {}
    row = column = 0
    with sheet._get_source() as stream:
        for event, node in iterparse(stream, events=("start", "end")):
            kind = node.tag.removeprefix(f"{{{SHEET_MAIN_NS}}}")
            if event == "start":
                if kind == "row":
                    row, column = int(node.get("r") or row + 1), 0
                elif kind == "c":
                    place = node.get("r")
                    row, column = coordinate_to_tuple(place) if place else (row, column + 1)
            elif kind == "is" and any(child.tag.endswith("}r") for child in node):
                found[row, column] = read_runs(node, left_out)
            elif kind == "row":
                node.clear()
    return found


def _replace_cells(
    rows: Iterable[tuple[object, ...]], texts: Mapping[tuple[int, int], str | None]
) -> Iterator[tuple[object, ...]]:
    for number, row in enumerate(rows, 1):
        yield tuple(texts.get((number, place), value) for place, value in enumerate(row, 1))


def _read_strings(stream: IO[bytes], left_out: LeftOut) -> Iterator[str]:
    """Yield the texts of the cells of a workbook, which its sheets refer to by number."""
    from openpyxl.xml.constants import SHEET_MAIN_NS
    from openpyxl.xml.functions import iterparse

    for _, node in iterparse(stream):
        if node.tag == f"{{{SHEET_MAIN_NS}}}si":
            # As openpyxl reads the escape of an underscore.
            yield read_runs(node, left_out).replace("x005F_", "")
            node.clear()


def read_runs(item: Any, left_out: LeftOut) -> str:
    """Read the text of a cell: an element with its words, or with runs of words of the same form."""
    whole = ""
    for each in item:
        name = each.tag.rpartition("}")[2]
        parts = {part.tag.rpartition("}")[2]: part for part in each} if name == "r" else {name: each}
        if (text := parts.get("t")) is None:
            continue
        words = text.text or ""
        form = {each.tag.rpartition("}")[2]: each.get("val") for each in parts.get("rPr", ())}
        if form.get("strike", "0") not in ("0", "false"):
            left_out.add_struck(words)
            continue
        shift = _SHIFTS.get(form.get("vertAlign") or "")
        whole += shift(words, whole) if shift is not None else words
    return whole


def _require_bounded(path: Path) -> None:
    """Raise SourceError if a part of the workbook is too large. The decompression ends at the declared size."""
    size = path.stat().st_size
    with zipfile.ZipFile(path) as parts:
        for part in parts.infolist():
            most = _LARGEST_SHEET if part.filename.startswith("xl/worksheets/") else _LARGEST_PART
            if part.filename == _STYLES:
                most = _LARGEST_STYLES
            if not part.filename.startswith(_NOT_READ):
                most = min(most, max(min(part.compress_size, size) * _MOST_RATIO, _SMALL_PART))
            if part.file_size > most:
                raise SourceError(
                    f"{path}: {quoted(part.filename)} in the workbook has {part.file_size:,} bytes; "
                    f"the maximum is {most:,}"
                )


def workbook_rows(
    path: Path, left_out: LeftOut | None = None
) -> tuple[Sequence[str], Iterator[tuple[int, tuple[object, ...]]]]:
    """Read the names of the columns of the first sheet, and its data rows with their numbers, without empty ones."""
    table = _table(path, left_out or LeftOut())
    header = [str(name).strip() if name is not None else "" for name in next(table, (0, ()))[1]]
    if not any(header):
        raise SourceError(f"{path}: the first sheet has no header")
    return header, table


def _table(path: Path, left_out: LeftOut) -> Iterator[tuple[int, tuple[object, ...]]]:
    """Yield the rows of the first sheet that are not empty, with their numbers, after the header, which has 0."""
    with _workbook(path, left_out) as table:
        for number, cells in enumerate(table):
            if number >= _MOST_ROWS:
                raise SourceError(
                    f"{path}: the first sheet has a row after row {_MOST_ROWS:,}, the last one of a sheet"
                )
            if number == 0 or not all(cell is None for cell in cells):
                yield number, cells


def _xlsx(path: Path) -> Sheet:
    left_out = LeftOut()
    header, table = workbook_rows(path, left_out)
    # Opening a workbook reads the text of all its cells, so the first call goes on after the header.
    opened = [table]

    def rows(wanted: Sequence[str], verbatim: str) -> Iterator[Row]:
        places = [header.index(name) if name in header else None for name in wanted]
        for number, cells in opened.pop() if opened else workbook_rows(path)[1]:
            picked = [cells[place] if place is not None and place < len(cells) else None for place in places]
            problem = None
            if verbatim in header and not isinstance(picked[wanted.index(verbatim)], str | None):
                problem = f"has {quoted(verbatim)} of a wrong type: text is expected"
            texts = [text_of_cell(value) or None for value in picked]
            _require_short_cells(path, number, wanted, texts)
            yield Row(number, texts, problem)

    return Sheet(header, rows, [f"{path}: {each}" for each in left_out.describe()])
