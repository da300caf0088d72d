"""Excerpts: rows of a source file copied into a small file of the same format, for the same reader.

Nothing is converted: a line of JSONL keeps its bytes, a workbook its cell types, a ragged row of CSV its cells. Only
the row numbers are lost; `locations.File.rows` contains them.
"""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from kg.errors import SourceError
from loaders.file_formats import MARKUP, TABLES
from loaders.readers.formats import csv_rows, flatten, text_of_cell, workbook_rows

ROWS_AT_ONCE: Final = 20_000
"""Maximum rows in memory while excerpts are written. For more rows the file is read several times."""

Cut = Callable[[Path, Mapping[Path, Sequence[int]]], None]
"""Copies rows of a file into excerpts, as `cut` does for tables."""

_LINES: Final = {".json": ".jsonl", ".ttl": ".nt", ".nt": ".nt", ".nq": ".nt"} | {each: each for each in MARKUP}


def ending(path: str) -> str:
    """Return the extension of an excerpt: that of the file, or of its format with one record per line."""
    suffixes = [suffix for suffix in Path(path.lower()).suffixes if suffix not in (".gz", ".bz2")]
    last = suffixes[-1] if suffixes else ""
    return last if last in TABLES else _LINES.get(last, TABLES[0])


ENDINGS: Final = frozenset({*TABLES, *_LINES.values()})


def cut(path: Path, wanted: Mapping[Path, Sequence[int]]) -> None:
    """Copy the data rows of `path` with these numbers, in this order, into each target.

    A target has the extension of `path`. Raises SourceError if the file cannot be read or lacks a row, OSError if a
    target cannot be written.
    """
    part: dict[Path, Sequence[int]] = {}
    for target, numbers in wanted.items():
        part[target] = numbers
        if sum(map(len, part.values())) >= ROWS_AT_ONCE:
            _cut(path, part)
            part = {}
    if part:
        _cut(path, part)


def _cut(path: Path, wanted: Mapping[Path, Sequence[int]]) -> None:
    ending = path.suffix.lower()
    if ending == ".parquet":
        from loaders.readers.tables import copy_parquet  # loads DuckDB, which is slow

        copy_parquet(path, wanted)
        return
    numbers = {number for each in wanted.values() for number in each}
    header, rows = _sheet(path) if ending in (".csv", ".xlsx") else ((), _lines(path))
    found = _pick_rows(rows, numbers)
    if absent := numbers - found.keys():
        raise SourceError(f"{path}: no row {min(absent)} (any more)")
    for target, rows_of in wanted.items():
        cells = [found[number] for number in rows_of]
        if ending == ".csv":
            with target.open("w", encoding="utf-8", newline="") as output:
                csv.writer(output, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([header, *cells])
        elif ending == ".xlsx":
            _write_workbook(target, [header, *cells])
        else:
            target.write_bytes(b"".join(line.rstrip(b"\r\n") + b"\n" for line in cells))


def _sheet(path: Path) -> tuple[Sequence[str], Iterator[tuple[int, Sequence[Any]]]]:
    return csv_rows(path) if path.suffix.lower() == ".csv" else workbook_rows(path)


def _pick_rows(rows: Iterable[tuple[int, Any]], numbers: set[int]) -> dict[int, Any]:
    last = max(numbers)
    found = {}
    for number, row in rows:
        if number in numbers:
            found[number] = row
        if number >= last:
            break
    return found


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line


def _write_workbook(target: Path, rows: Iterable[Sequence[Any]]) -> None:
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    with closing(book):
        sheet = book.create_sheet()
        for row in rows:
            sheet.append(list(row))
        book.save(target)


def rows_in(path: Path, numbers: Sequence[int]) -> Iterator[tuple[int, Mapping[str, str | None] | str]]:
    """Yield the rows of an excerpt for display: the number of each, and its cells by column.

    A row without columns, such as a line of JSONL that is not JSON, is a string. Raises SourceError.
    """
    ending = path.suffix.lower()
    if ending == ".parquet":
        from loaders.readers.tables import read_parquet

        yield from zip(numbers, read_parquet(path), strict=False)
    elif ending in (".csv", ".xlsx"):
        header, rows = _sheet(path)
        for number, (_, cells) in zip(numbers, rows, strict=False):
            named = {str(name or ""): text_of_cell(cell) for name, cell in zip(header, cells, strict=False)}
            spare = {f"cell {place + 1}": text_of_cell(cells[place]) for place in range(len(header), len(cells))}
            yield number, {name: cell for name, cell in (named | spare).items() if name}
    else:
        for number, (_, line) in zip(numbers, _lines(path), strict=False):
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                value = None
            if isinstance(value, dict):
                yield number, {name: text_of_cell(cell) for name, cell in flatten(value) if not isinstance(cell, dict)}
            else:
                yield number, line.decode(errors="backslashreplace").rstrip("\r\n")
