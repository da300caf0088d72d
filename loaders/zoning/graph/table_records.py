"""Tables of districts, with the uses and dimensions of each, as records: one per municipality and table.

The rows of a municipality may be anywhere in a table. They are grouped on disk before they are parsed, so memory is
bounded by the largest municipality, not by the table.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import RecordError, SourceError
from kg.text import join_first, quoted
from kg.vocabulary import KG, mint
from loaders.model import Notice, Origin, Rejection, SourceGraph
from loaders.readers.file_text import parse_json, read_file
from loaders.readers.formats import Row, Sheet, open_sheet, surrogate_in, text_of_cell
from loaders.readers.locations import File
from loaders.zoning.graph.authorities import Authorities, municipality_key
from loaders.zoning.graph.rule_quads import Rules, number_in, unit
from loaders.zoning.graph.table_mapping import TableMapping, find_bundled, load_bundled

FORMATS: Final = (".csv", ".xlsx", ".jsonl", ".ndjson", ".json")

_SHOWN: Final = 8

Item = SourceGraph | Rejection | Notice
Cells = Mapping[str, str | None]
Numbered = tuple[int, Cells, str | None]
"""Row number, cells, and the reason why the row cannot be trusted."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A table: its columns, and its numbered rows. `keyed`: each row has a key."""

    columns: Sequence[str]
    rows: Iterable[Numbered]
    """Streamed from the file on each iteration where the format allows."""
    keyed: bool = False
    warnings: Sequence[str] = ()


@dataclass(slots=True)
class _Municipality:
    shared: Authorities
    rules: Rules
    rows: list[int] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)
    digest: Any = field(default_factory=hashlib.sha256)
    """Hash of everything read."""


def read_records(
    domain: str, file: File, mapping: TableMapping | None, municipality: str | None, state: str | None
) -> Iterator[Item]:
    """Yield the records of a table, parsed by `mapping` or by the bundled mapping that fits.

    `municipality` and `state` apply where the table has no column for them. Raises SourceError for a file that is not a
    table or that fits no mapping.
    """
    table = open_table(file.path, mapping.key_column if mapping else None)
    chosen = mapping or find_bundled(table.columns, table.keyed)
    if chosen is None:
        names = ", ".join(each.name for each in load_bundled())
        raise SourceError(
            f"{file.path}: No mapping fits the columns {_some(table.columns)}. Available: {names}. "
            f"Write {file.path.stem}.toml next to the file, or pass --mapping FILE."
        )
    if table.keyed and mapping is None:
        table = open_table(file.path, chosen.key_column)
    if lacking := chosen.lacking(table.columns):
        raise SourceError(
            f"{file.path}: Mapping {quoted(chosen.name)} does not fit. Missing column: {_some(lacking)}. "
            f"Available: {_some(table.columns)}."
        )
    yield Notice(f"{file.snapshot.source}: Table parsed by mapping {quoted(chosen.name)}.")
    for warning in table.warnings:
        yield Notice(warning, warning=True)
    if absent := [name for name in chosen.columns if name not in table.columns]:
        yield Notice(f"{file.snapshot.source}: Missing column {_some(absent)}.", warning=True)
    yield from _records(file, table.rows, _TableReader(domain, chosen, municipality, state))


def _records(file: File, rows: Iterable[Numbered], taking: _TableReader) -> Iterator[Item]:
    from loaders.readers.tables import Columns, Tables  # imports DuckDB, which is slow

    columns, refused = taking.mapping.columns, list[Rejection]()

    def refusal(row: int, error: RecordError) -> Rejection:
        return Rejection(f"row {row}", f"row {row}: {error}", (Origin(file.snapshot, (row,)),))

    def keyed(wanted: Sequence[str], verbatim: str) -> Iterator[Row]:
        for number, cells, problem in rows:
            row = file.rows[number - 1] if file.rows is not None and number <= len(file.rows) else number
            try:
                if problem is not None:
                    raise RecordError(problem)
                key = taking.key(cells)
            except RecordError as error:
                refused.append(refusal(row, error))
            else:
                yield Row(row, (key, json.dumps([cells.get(column) for column in columns])))

    with Tables(("key",), ("cells",)) as staged:
        layout = Columns("key", "", "cells", {"key": ["key"]}, {"cells": ["cells"]})
        staged.add(replace(file, rows=None), taking.mapping.name, layout, Sheet(["key", "cells"], keyed))
        if not staged.rows and not refused:
            yield Notice(f"{file.snapshot.source}: The table has no rows.", warning=True)
        yield from refused
        for group in staged.groups():
            one: _Municipality | None = None
            rows_of = sorted(group.rows, key=lambda row: row.row)
            all_cells = [dict(zip(columns, json.loads(each.values[0] or "[]"), strict=True)) for each in rows_of]
            for each, cells in zip(rows_of, all_cells, strict=True):
                one = one or taking.municipality(all_cells)
                try:
                    taking.take(one, each.row, cells)
                except RecordError as error:
                    yield refusal(each.row, error)
            if one is not None:
                yield SourceGraph(
                    taking.domain,
                    (one.shared.key, "table", taking.mapping.name),
                    one.rules.graph,
                    one.rules.quads,
                    (Origin(file.snapshot, tuple(one.rows)),),
                    one.digest.hexdigest(),
                    one.shared.graphs,
                )


class _TableReader:
    """Adds rows to the graphs of their municipalities."""

    def __init__(self, domain: str, mapping: TableMapping, municipality: str | None, state: str | None) -> None:
        self.domain: Final = domain
        self.mapping: Final = mapping
        self._given: Final = municipality or mapping.municipality, state or mapping.state
        self._keys: dict[tuple[str, str], str] = {}
        self._read_by: Final = repr(mapping).encode()

    def key(self, cells: Cells) -> str:
        """Get the key of a row's municipality. Raises RecordError for a row without municipality, state or district."""
        if any(surrogate_in(cell) for cell in cells.values() if cell):
            raise RecordError("A cell contains a lone surrogate, which is not a character.")
        name, state = where = self._where(cells)
        if name is None or state is None:
            what = "municipality" if name is None else "state"
            raise RecordError(f"No {what} in a column, in the mapping or in --{what}.")
        if _cell(cells, self.mapping.district) is None:
            raise RecordError(f"Column {quoted(self.mapping.district)} is empty, so the row has no district.")
        if where not in self._keys:
            self._keys[name, state] = municipality_key(name, state)
        return self._keys[name, state]

    def municipality(self, rows: Sequence[Cells]) -> _Municipality:
        """Start the graph of the municipality whose rows these are. It has a county if all rows name the same."""
        name, state = self._where(rows[0])
        column = self.mapping.county_column
        counties = {" ".join(county.split()) for cells in rows if (county := _cell(cells, column)) is not None}
        shared = Authorities(name or "", state or "", next(iter(counties)) if len(counties) == 1 else None)
        graph = mint("graph", "src", self.domain, shared.key, "table", self.mapping.name)
        one = _Municipality(shared, Rules(graph, shared))
        one.digest.update(self._read_by + repr(shared.name).encode())
        return one

    def take(self, one: _Municipality, row: int, cells: Cells) -> None:
        """Add one row. Raises RecordError for a district that an earlier row describes."""
        mapping = self.mapping
        code = _cell(cells, mapping.district) or ""
        if code in one.seen:
            raise RecordError(
                f"District {quoted(code)} of {self._where(cells)[0]} is already described in row {one.seen[code]}, "
                "which is kept."
            )
        one.seen[code] = row
        one.rows.append(row)
        one.digest.update(repr([cells.get(column) for column in mapping.columns]).encode())
        district = one.shared.district(code, _cell(cells, mapping.district_name), _cell(cells, mapping.category))
        _add_rules(one, district, cells, mapping)

    def _where(self, cells: Cells) -> tuple[str | None, str | None]:
        """The municipality and the state; the row's own columns take precedence."""
        name, state = self._given
        return _cell(cells, self.mapping.jurisdiction) or name, _cell(cells, self.mapping.state_column) or state


def _add_rules(one: _Municipality, district: NamedNode, cells: Cells, mapping: TableMapping) -> None:
    rules, shared = one.rules, one.shared
    for column in mapping.facts:
        if (fact := _cell(cells, column)) is not None:
            rules.quads.append(Quad(district, KG.districtFact, Literal(_labelled(column, fact)), rules.graph))
    for use in mapping.uses:
        if (raw := _cell(cells, use.column)) is not None:
            conditions = [
                _labelled(column, given) for column in use.conditions if (given := _cell(cells, column)) is not None
            ]
            rules.permission(
                district,
                shared.land_use(use.name, use.category),
                raw,
                mapping.levels.get(raw.strip()),
                conditions=conditions,
                column=use.column,
            )
    for measure in mapping.standards:
        if (raw := _cell(cells, measure.column)) is not None:
            rules.standard(
                district,
                measure.type,
                raw,
                bound=measure.bound,
                value=number_in(raw),
                measure=None if measure.unit is None else unit(measure.unit),
                applies_to=measure.applies_to,
                column=measure.column,
            )


def _labelled(column: str, cell: str) -> str:
    return f"{column.strip()}: {cell}"


def _cell(cells: Cells, column: str | None) -> str | None:
    """Get a cell unchanged. None if it is empty or the table has no such column."""
    text = None if column is None else cells.get(column)
    return text if text is not None and text.strip() else None


def _some(names: Sequence[str]) -> str:
    return join_first([repr(name) for name in names], _SHOWN)


def open_table(path: Path, key_column: str | None = None) -> Rows:
    """Open a table: CSV, xlsx, JSON lines, a JSON list of objects, or a JSON object of objects.

    Raises SourceError for any other file.
    """
    if path.suffix.lower() == ".json":
        return _open_json(path, key_column)
    sheet = open_sheet(path)
    columns = list(sheet.columns)
    twice = [name for name, count in Counter(columns).items() if count > 1]
    told = [f"{path.name}: Duplicate column {_some(twice)}. The first one is used."] if twice else []
    return Rows(list(dict.fromkeys(columns)), _Streamed(sheet), warnings=[*sheet.warnings, *told])


@dataclass(frozen=True, slots=True)
class _Streamed:
    """The rows of a sheet, streamed from its file on each iteration."""

    sheet: Sheet

    def __iter__(self) -> Iterator[Numbered]:
        columns = list(self.sheet.columns)
        for row in self.sheet.rows(columns, columns[0] if columns else ""):
            # Reversed, so that the first of several columns with one name is the one that dict keeps.
            cells = dict(zip(columns[::-1], _filled(row.cells, len(columns))[::-1], strict=True))
            yield row.number, cells, row.problem


def _filled(cells: Sequence[str | None], count: int) -> Sequence[str | None]:
    return [*cells[:count], *[None] * (count - len(cells))]


def _open_json(path: Path, key_column: str | None) -> Rows:
    given, warnings = parse_json(read_file(path), path.name)
    keyed = isinstance(given, dict) and bool(given) and all(isinstance(each, dict) for each in given.values())
    if keyed:
        name = key_column or "key"
        entries: list[Any] = [{name: key, **each} for key, each in given.items()]
    elif isinstance(given, list):
        entries = given
    else:
        raise SourceError(f"{path}: Not a table. Supported: a list of objects, or an object of objects.")
    rows: list[tuple[int, Cells, str | None]] = []
    for number, entry in enumerate(entries, 1):
        if isinstance(entry, dict):
            rows.append((number, {str(key): _text(value) for key, value in entry.items()}, None))
        else:
            rows.append((number, {}, "Not a JSON object."))
    return Rows(list(dict.fromkeys(key for _, cells, _ in rows for key in cells)), rows, keyed, warnings)


def _text(value: object) -> str | None:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else text_of_cell(value)
