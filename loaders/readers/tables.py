"""Files of tables as one stream of records: the rows of each key together, across files and formats.

DuckDB reads, stages and sorts within a memory limit and spills to a temporary folder, so memory use does not depend on
the size of the source.
"""

from __future__ import annotations

import errno
import heapq
import os
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

import duckdb

from kg import interruption
from kg.errors import SourceError, StoreError
from kg.text import quoted
from loaders.readers.formats import LONGEST_CELL, Row, Sheet, describe_long_cell, open_sheet
from loaders.readers.locations import File

_MEMORY_LIMIT: Final = "384MB"
_ENGINE: Final[dict[str, str | bool | int | float | list[str]]] = {
    "memory_limit": _MEMORY_LIMIT,
    "threads": 2,
    # Extensions that are not built in would be fetched from the network.
    "autoinstall_known_extensions": "false",
}
_STAGED_ROWS: Final = 4096
_STAGED_CHARACTERS: Final = 8_000_000
_FETCHED_ROWS: Final = 256

_VECTOR_ROWS: Final = 2_048
"""Rows that DuckDB has in memory at a time, in any order."""
_LARGEST_ROWS: Final = 1 << 27
"""Maximum bytes of the `_VECTOR_ROWS` largest rows of a load, decoded."""
_MOST_RATIO: Final = 1_000
"""Maximum bytes of the rows of a file for each byte of the file, beyond `_SMALL_TABLE`."""
_SMALL_TABLE: Final = 1 << 26
_ROW_BYTES: Final = 16
"""Bytes that a row counts in addition to its text."""


class Part(NamedTuple):
    """The part of the cells of a column that the group of a regular expression (RE2) matches."""

    column: str
    pattern: str


Column = str | Part


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a file for each field of a record. Of several columns the first with a value is used.

    Rows are grouped by the field `key`. `head` fields belong to the record (read from its first row), `body` fields to
    each row. `text` is the body field that must be text and is kept verbatim. Rows without a key have that of the rows,
    of any file, with the same value of the head field `link`; if there is none, this value is their key.
    """

    key: str
    split: str
    text: str
    head: Mapping[str, Sequence[Column]]
    body: Mapping[str, Sequence[Column]]
    link: str | None = None

    def names(self) -> list[str]:
        """Return all column names."""
        fields = (*self.head.values(), *self.body.values())
        return list(dict.fromkeys(_name(column) for columns in fields for column in columns))


@dataclass(frozen=True, slots=True)
class BodyRow:
    """The fields of a row, with its file and 1-based data row."""

    file: File
    row: int
    layout: str
    problem: str | None
    split: str | None
    values: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Head:
    """The fields of a record by name, from its first row with this `layout` and `split`."""

    layout: str
    split: str | None
    values: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Group:
    """All rows of one key, unordered, with the fields of the record."""

    key: str | None
    heads: Sequence[Head]
    rows: Sequence[BodyRow]


class Tables:
    """Context manager that reads files with their columns, and yields their rows grouped by key."""

    def __init__(self, head: Sequence[str], body: Sequence[str]) -> None:
        """`head` and `body` are the names of the fields, in the order of the results."""
        self.head = tuple(head)
        self.body = tuple(body)
        self.files: list[File] = []
        self.layouts: list[str] = []
        self.selects: list[str] = []
        self.links: dict[str, str] = {}
        """The layouts whose rows may have the key of other rows, each with the field that both have."""
        self.rows = 0
        """Number of data rows of the files added so far."""
        self._largest: list[int] = []
        """The bytes of the largest rows so far."""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            folder = stack.enter_context(interruption.temporary_folder())
            self.db = stack.enter_context(
                duckdb.connect(
                    folder / "staging.duckdb",
                    config={**_ENGINE, "temp_directory": str(folder), "preserve_insertion_order": "false"},
                )
            )
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.__exit__(kind, error, at)

    def columns(self, file: File) -> tuple[Sequence[str], Sheet | None]:
        """Read the column names of a file, and open it as a sheet if it is not Parquet.

        Raises SourceError if the file is empty, truncated or not of its format.
        """
        if file.path.suffix.lower() != ".parquet":
            sheet = open_sheet(file.path)
            return sheet.columns, sheet
        return [name for name, _ in self._parquet(file)], None

    def add(self, file: File, layout: str, columns: Columns, sheet: Sheet | None) -> None:
        """Add the rows of `file` to those that `groups` yields, and count them.

        Raises SourceError if any part of the file is damaged (every row is decoded), or if its rows are too large.
        """
        number = len(self.files)
        if sheet is None:
            types = dict(self._parquet(file))
            column = _first(columns.body.get(columns.text, ()), types)
            if columns.text in columns.body and types.get(column) != "VARCHAR":
                raise SourceError(f"{file.path}: column {quoted(column)} has type {types.get(column)} instead of text")
            source = _parquet(file.path, "file_row_number = true")
            row, problem = "file_row_number + 1", "NULL::VARCHAR"
            if file.rows is not None:
                row = f"({list(file.rows)})[{row}]"
        else:
            # All columns of the layout: in JSONL, a key may first occur in a late row.
            types = dict.fromkeys(columns.names(), "VARCHAR")
            source, row, problem = f"staged_{number}", "row_number", "problem"
            try:
                with _engine(f"{file.path}: cannot be read"):
                    self._stage(
                        file, source, sheet, list(types), _first(columns.body.get(columns.text, ()), sheet.columns)
                    )
            except SourceError:  # the next file reuses the name
                self.db.execute(f"DROP TABLE IF EXISTS {source}")
                raise

        # Staged columns have numbers: to DuckDB, names that differ in case are the same.
        places = {} if sheet is None else {name: f"c{place}" for place, name in enumerate(types)}
        cells = {name: _as_text(places.get(name, name), types[name]) for name in columns.names() if name in types}

        def field(names: Sequence[Column]) -> str:
            found = [_cut_cell(cells[_name(name)], name) for name in names if _name(name) in cells]
            return f"COALESCE({', '.join(found)})" if found else "NULL::VARCHAR"

        fields = [f"{field(columns.head.get(name, ()))} AS h{i}" for i, name in enumerate(self.head)]
        fields += [f"{field(columns.body.get(name, ()))} AS b{i}" for i, name in enumerate(self.body)]
        key = field(columns.head[columns.key])
        split = field(columns.head.get(columns.split, ()))
        where = f"{number}::BIGINT AS file, ({row})::BIGINT AS row, {_string(layout)} AS layout, {problem} AS problem"
        select = f"SELECT {key} AS key, {split} AS split, {where}, {', '.join(fields)} FROM {source}"  # noqa: S608
        with _engine(f"{file.path}: cannot be read completely", file.path if sheet is None else None):
            largest = _measure_rows(self.db, file.path, source, row, cells, self._largest, packed=sheet is None)
            # Hashing decodes every cell, so that damage is detected here, where the file is known.
            [(rows, _)] = self.db.execute(f"SELECT count(*), bit_xor(hash(t)) FROM ({select}) t").fetchall()  # noqa: S608
        self.rows += rows
        self._largest = largest
        self.files.append(file)
        self.layouts.append(layout)
        self.selects.append(select)
        if columns.link is not None:
            self.links[layout] = columns.link

    def groups(self) -> Iterator[Group]:
        """Yield the rows of all files by key, in the order of keys (first the rows without one).

        Raises SourceError if a file is damaged.
        """
        if not self.selects:
            return
        source = " UNION ALL ".join(self.selects)
        for layout, link in self.links.items():
            source = _link_rows(source, layout, f"h{self.head.index(link)}")
        heads = ", ".join(f"'h{i}': h{i}" for i in range(len(self.head)))
        bodies = ", ".join(f"b{i}" for i in range(len(self.body)))
        # Every row repeats the fields of the record: they are read separately, so that sorting does not move them.
        head = self._rows(
            f"SELECT key, layout, split, arg_min({{{heads}}}, file * {1 << 40} + row) FROM ({source}) "  # noqa: S608
            "GROUP BY key, layout, split ORDER BY key NULLS FIRST, layout, split NULLS FIRST"
        )
        body = self._rows(
            f"SELECT key, split, file, row, layout, problem, {bodies} FROM ({source}) "  # noqa: S608
            "ORDER BY key NULLS FIRST"
        )
        pending = next(head, None)
        first = next(body, None)
        while first is not None:
            key = first[0]
            rows = []
            row: tuple[Any, ...] | None = first
            while row is not None and row[0] == key:
                rows.append(BodyRow(self.files[row[2]], row[3], row[4], row[5], row[1], row[6:]))
                row = next(body, None)
            first = row
            heads_of_key = []
            while pending is not None and pending[0] == key:
                fields = dict(zip(self.head, pending[3].values(), strict=True))
                heads_of_key.append(Head(pending[1], pending[2], fields))
                pending = next(head, None)
            yield Group(key, heads_of_key, rows)

    def find_unlinked(self) -> list[str]:
        """Find the values by which rows refer to rows with a key that no file has."""
        source = " UNION ALL ".join(self.selects)
        found: set[str] = set()
        for layout, field in self.links.items():
            link = f"h{self.head.index(field)}"
            known = f"SELECT {link} FROM ({source}) WHERE key IS NOT NULL AND {link} IS NOT NULL"  # noqa: S608
            mine = f"layout = {_string(layout)} AND key IS NULL AND {link} NOT IN ({known})"
            found.update(value for (value,) in self._rows(f"SELECT DISTINCT {link} FROM ({source}) WHERE {mine}"))  # noqa: S608
        return sorted(found)

    def fields(self, layout: str, names: Sequence[str]) -> Iterator[tuple[File, int, tuple[str | None, ...]]]:
        """Yield the file, row number and some head fields of each row of the files with this layout."""
        mine = [select for select, of in zip(self.selects, self.layouts, strict=True) if of == layout]
        if mine:
            picked = ", ".join(f"h{self.head.index(name)}" for name in names)
            for number, row, *said in self._rows(f"SELECT file, row, {picked} FROM ({' UNION ALL '.join(mine)})"):  # noqa: S608
                yield self.files[number], row, tuple(said)

    def _rows(self, query: str) -> Iterator[tuple[Any, ...]]:
        with self.db.cursor() as cursor, _engine("a source file is damaged"):
            cursor.execute(query)
            while rows := cursor.fetchmany(_FETCHED_ROWS):
                yield from rows

    def _parquet(self, file: File) -> list[tuple[str, str]]:
        if file.path.stat().st_size == 0:
            raise SourceError(f"{file.path}: the file is empty")
        with _engine(f"{file.path}: not a complete Parquet file"):
            described = self.db.execute(f"DESCRIBE SELECT * FROM {_parquet(file.path)}").fetchall()  # noqa: S608
        return [(name, kind) for name, kind, *_ in described]

    def _stage(self, file: File, table: str, sheet: Sheet, columns: list[str], text: str) -> None:
        names = [f"c{i}" for i in range(len(columns))]
        declared = ", ".join(f"{name} VARCHAR" for name in names)
        self.db.execute(f"CREATE TABLE {table} ({declared}, row_number BIGINT, problem VARCHAR)")
        batch: list[tuple[str | None, ...]] = []
        numbers: list[int] = []
        characters = total = 0

        def insert() -> None:
            import numpy as np  # slow to import, and not needed for Parquet

            columns_of_cells = zip([*names, "p"], zip(*batch, strict=True), strict=True)
            arrays = {name: np.array(cells, dtype=object) for name, cells in columns_of_cells}
            arrays["n"] = np.array(numbers, dtype=np.int64)
            self.db.register("staged_batch", arrays)
            self.db.execute(f"INSERT INTO {table} SELECT {', '.join([*names, 'n', 'p'])} FROM staged_batch")  # noqa: S608
            self.db.unregister("staged_batch")

        for row in sheet.rows(columns, text):
            batch.append((*row.cells, row.problem))
            numbers.append(row.number if file.rows is None else file.rows[row.number - 1])
            characters += sum(len(cell) for cell in row.cells if cell is not None)
            if len(batch) >= _STAGED_ROWS or characters >= _STAGED_CHARACTERS:
                insert()
                total += characters
                _require_ratio(file.path, total)
                batch, numbers, characters = [], [], 0
        if batch:
            insert()


def copy_parquet(path: Path, wanted: Mapping[Path, Sequence[int]]) -> None:
    """Copy the rows of a Parquet file with these numbers, in this order, into each target. Raises SourceError."""
    numbers = sorted({number - 1 for each in wanted.values() for number in each})
    with (
        interruption.temporary_folder() as folder,
        duckdb.connect(folder / "rows.duckdb", config={**_ENGINE, "temp_directory": str(folder)}) as db,
        _engine(f"{path}: cannot copy rows"),
    ):
        source = _parquet(path, "file_row_number = true")
        db.execute(f"CREATE TABLE picked AS SELECT * FROM {source} WHERE file_row_number IN {tuple(numbers)}")  # noqa: S608
        for target, rows in wanted.items():
            places = f"list_position({[number - 1 for number in rows]}, file_row_number)"
            [(count,)] = db.execute(f"SELECT count(*) FROM picked WHERE {places} IS NOT NULL").fetchall()  # noqa: S608
            if count < len(rows):
                raise SourceError(f"{path}: a row is missing (the file may have changed)")
            query = f"SELECT * EXCLUDE (file_row_number) FROM picked WHERE {places} IS NOT NULL ORDER BY {places}"  # noqa: S608
            db.execute(f"COPY ({query}) TO {_string(str(target))} (FORMAT parquet)")


def find_pattern_fault(pattern: str) -> str | None:
    """Find why a pattern is not one that `Part` can have; None if it is."""
    with duckdb.connect(config=_ENGINE) as db:
        try:
            db.execute(f"SELECT regexp_extract('', {_string(pattern)}, 1)")
        except duckdb.Error as error:
            return str(error).partition("\n")[0]
    return None


def parquet_sheet(path: Path) -> Sheet:
    """Open a Parquet file as a stream of rows of text. Raises SourceError, also on iteration, if it is damaged."""
    if path.stat().st_size == 0:
        raise SourceError(f"{path}: the file is empty")
    with duckdb.connect(config=_ENGINE) as db, _engine(f"{path}: not a complete Parquet file"):
        kinds = {name: kind for name, kind, *_ in db.execute(f"DESCRIBE SELECT * FROM {_parquet(path)}").fetchall()}  # noqa: S608

    def rows(wanted: Sequence[str], verbatim: str) -> Iterator[Row]:
        if kinds.get(verbatim, "VARCHAR") != "VARCHAR":
            raise SourceError(f"{path}: column {quoted(verbatim)} has type {kinds[verbatim]} instead of text")
        cells = ", ".join(_as_text(name, kinds[name]) if name in kinds else "NULL" for name in wanted)
        read = {name: _as_text(name, kinds[name]) for name in wanted if name in kinds}
        with duckdb.connect(config=_ENGINE) as db, _engine(f"{path}: cannot be read completely", path):
            numbered = _parquet(path, "file_row_number = true")
            _measure_rows(db, path, numbered, "file_row_number + 1", read, (), packed=True)
            found = db.execute(f"SELECT {cells} FROM {_parquet(path)}")  # noqa: S608
            number = 0
            while batch := found.fetchmany(_FETCHED_ROWS):
                for row in batch:
                    number += 1
                    yield Row(number, row)

    return Sheet([*kinds], rows)


def read_parquet(path: Path) -> Iterator[dict[str, str | None]]:
    """Yield the rows of a small Parquet file as text by column. Raises SourceError."""
    with duckdb.connect(config=_ENGINE) as db, _engine(f"{path}: not a complete Parquet file"):
        kinds = db.execute(f"DESCRIBE SELECT * FROM {_parquet(path)}").fetchall()  # noqa: S608
        cells = ", ".join(_as_text(name, kind) for name, kind, *_ in kinds)
        for row in db.execute(f"SELECT {cells} FROM {_parquet(path)}").fetchall():  # noqa: S608
            yield dict(zip((name for name, *_ in kinds), row, strict=True))


def _measure_rows(
    db: duckdb.DuckDBPyConnection,
    path: Path,
    source: str,
    row: str,
    cells: Mapping[str, str],
    largest: Iterable[int],
    *,
    packed: bool,
) -> list[int]:
    """Measure the rows of a file without copying their text; return the bytes of the largest of them and of `largest`.

    `source` is the SQL of the rows, `row` of their numbers, `cells` of the text of each column. With `packed`, the file
    is compressed. Raises SourceError if a cell or the rows are too large.
    """
    if not cells:
        return list(largest)
    if packed:
        [(number,)] = db.execute(f"SELECT num_rows FROM parquet_file_metadata({_pattern(path)})").fetchall()  # noqa: S608
        _require_ratio(path, number * _ROW_BYTES)
    sizes = [f"COALESCE(strlen({cell}), 0)" for cell in cells.values()]
    measured = f"SELECT greatest({', '.join(sizes)}) AS cell, {' + '.join(sizes)} + {_ROW_BYTES} AS size FROM {source}"  # noqa: S608
    query = f"SELECT max(cell), sum(size)::BIGINT, max(size, {_VECTOR_ROWS}) FROM ({measured})"  # noqa: S608
    [(longest, total, found)] = db.execute(query).fetchall()
    if longest is not None and longest > LONGEST_CELL:
        _require_short_cells(db, path, source, row, cells)
    if packed:
        _require_ratio(path, total or 0)
    merged = heapq.nlargest(_VECTOR_ROWS, [*largest, *(found or ())])
    if sum(merged) > _LARGEST_ROWS:
        raise SourceError(
            f"{path}: the {len(merged):,} largest rows of the tables so far have {sum(merged):,} bytes; the maximum is "
            f"{_LARGEST_ROWS:,}. Load the file without the others, or divide its rows."
        )
    return merged


def _require_ratio(path: Path, size: int) -> None:
    packed = path.stat().st_size
    most = max(_SMALL_TABLE, packed * _MOST_RATIO)
    if size > most:
        raise SourceError(
            f"{path}: the rows have {size:,} bytes, in a file of {packed:,}; the maximum is {most:,}, "
            f"{_MOST_RATIO:,} times the file or {_SMALL_TABLE >> 20} MiB"
        )


def _require_short_cells(
    db: duckdb.DuckDBPyConnection, path: Path, source: str, row: str, cells: Mapping[str, str]
) -> None:
    """Raise SourceError for the first cell of more than `LONGEST_CELL` characters."""
    lengths = [f"COALESCE(length({cell}), 0)" for cell in cells.values()]
    is_long = " OR ".join(f"{length} > {LONGEST_CELL}" for length in lengths)
    found = db.execute(
        f"SELECT {row}, {', '.join(lengths)} FROM {source} WHERE {is_long} ORDER BY 1 LIMIT 1"  # noqa: S608
    ).fetchall()
    for number, *measured in found:
        column, length = next(pair for pair in zip(cells, measured, strict=True) if pair[1] > LONGEST_CELL)
        raise SourceError(f"{path}: row {number} {describe_long_cell(column, length)}")


_INTERRUPTED: Final = ("Query interrupted", "INTERRUPT Error", "KeyboardInterrupt", "SystemExit")
"""Prefixes of the errors that DuckDB raises after a signal."""


@contextmanager
def _engine(blame: str, parquet: Path | None = None) -> Iterator[None]:
    """Convert errors of DuckDB to SourceError with the prefix `blame`, or StoreError if the disk is full.

    `parquet` is the file that is read; if its rows do not fit into memory, the error names the largest ones.
    """
    try:
        yield
    except (duckdb.Error, RuntimeError) as error:
        reason = str(error).partition("\n")[0]
        if reason.startswith(_INTERRUPTED):
            raise KeyboardInterrupt from error
        if not isinstance(error, duckdb.Error):
            raise
        is_memory = isinstance(error, duckdb.OutOfMemoryException)
        if is_memory and "offload" not in reason:  # which it is for a full folder
            largest = "" if parquet is None else f". {_describe_largest_chunk(parquet)}"
            raise SourceError(
                f"{blame}: the rows are too large for {_MEMORY_LIMIT}, the memory in which a load sorts "
                f"({reason}){largest}"
            ) from error
        if is_memory or os.strerror(errno.ENOSPC) in reason:
            raise StoreError(
                f"{tempfile.gettempdir()} has no free space for the load's temporary files. Free some space, or set "
                f"TMPDIR to a larger volume. ({reason})"
            ) from error
        raise SourceError(f"{blame} ({reason})") from error


def _describe_largest_chunk(path: Path) -> str:
    """Describe the largest column of a row group, by the metadata of a Parquet file: no cell is read."""
    query = f"""
        SELECT row_group_id, row_group_num_rows, path_in_schema, total_uncompressed_size
        FROM parquet_metadata({_pattern(path)}) ORDER BY row_group_id"""  # noqa: S608
    with duckdb.connect(config=_ENGINE) as db:
        chunks = db.execute(query).fetchall()
    group, rows, column, size = max(chunks, key=lambda chunk: chunk[3])
    before = sum({number: count for number, count, *_ in chunks if number < group}.values())
    return f"Largest: {quoted(column)} in rows {before + 1:,} to {before + rows:,}, with {size:,} bytes"


def _name(column: Column) -> str:
    return column if isinstance(column, str) else column.column


def _first(names: Sequence[Column], columns: Collection[str]) -> str:
    return next((_name(name) for name in names if _name(name) in columns), "")


def _cut_cell(cell: str, column: Column) -> str:
    """Build the SQL of the part of a cell that a column is. NULL if there is no such part."""
    return cell if isinstance(column, str) else f"NULLIF(regexp_extract({cell}, {_string(column.pattern)}, 1), '')"


def _link_rows(source: str, layout: str, link: str) -> str:
    """Build the SQL of rows in which those of a layout without a key have that of a row with the same `link`."""
    keys = f"SELECT {link} AS id, min(key) AS key FROM ({source}) WHERE key IS NOT NULL GROUP BY {link}"  # noqa: S608
    mine = f"rows.key IS NULL AND rows.layout = {_string(layout)}"
    found = f"CASE WHEN {mine} THEN COALESCE(keys.key, rows.{link}) ELSE rows.key END"
    return f"SELECT rows.* REPLACE ({found} AS key) FROM ({source}) rows LEFT JOIN ({keys}) keys ON {mine} AND keys.id = rows.{link}"  # noqa: S608, E501


def _parquet(path: Path, *options: str) -> str:
    """Build the SQL for one file as a table, without columns from names of folders."""
    given = ("hive_partitioning = false", "binary_as_string = true", *options)
    return f"read_parquet({_pattern(path)}, {', '.join(given)})"


def _pattern(path: Path) -> str:
    """Build the SQL of a glob pattern that matches one file."""
    return _string(re.sub(r"[*?\[]", r"[\g<0>]", str(path)))


def _as_text(column: str, kind: str) -> str:
    name = _identifier(column)
    if kind == "VARCHAR":
        return name
    if kind.endswith("[]") or kind.startswith(("STRUCT", "MAP")):
        return f"to_json({name})::VARCHAR"
    if kind == "TIMESTAMP WITH TIME ZONE":  # in UTC, independent of the time zone of the process
        return f"strftime(make_timestamp(epoch_us({name})), '%Y-%m-%dT%H:%M:%SZ')"
    return f"{name}::VARCHAR"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
