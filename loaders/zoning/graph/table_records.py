"""Tables of districts, with the uses and dimensions of each, as records: one per municipality and table.

The rows of a municipality may be anywhere in a table. They are grouped on disk before they are parsed, so memory is
bounded by the largest municipality, not by the table.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from pyoxigraph import NamedNode

from kg.errors import RecordError, SourceError
from kg.text import join_first, quoted
from kg.vocabulary import KG, mint, sha256
from loaders.citations.graph.claims import describe
from loaders.model import Notice, Origin, Rejection, SourceGraph
from loaders.readers.file_text import parse_json, read_file
from loaders.readers.formats import Row, Sheet, objects_sheet, open_sheet, surrogate_in
from loaders.readers.locations import File
from loaders.zoning.graph.authorities import Authorities, municipality_key
from loaders.zoning.graph.rule_quads import Rules, number_in, unit
from loaders.zoning.graph.table_mapping import KEYS, TableMapping, find_bundled, load_bundled
from loaders.zoning.readers.code_model import DOMAIN

FORMATS: Final = (".csv", ".xlsx", ".jsonl", ".ndjson", ".json")

_SHOWN: Final = 8
_find_municipality: Final = lru_cache(municipality_key)

Item = SourceGraph | Rejection | Notice
Cells = Mapping[str, str | None]


def read_records(
    file: File, mapping: TableMapping | None, municipality: str | None, state: str | None
) -> Iterator[Item]:
    """Yield the records of a table, parsed by `mapping` or by the bundled mapping that fits.

    `municipality` and `state` apply where the table has no column for them. Raises SourceError for a file that is not a
    table or that fits no mapping.
    """
    sheet, source = open_table(file.path), file.snapshot.source
    chosen = mapping or find_bundled(sheet.columns)
    if chosen is None:
        names = ", ".join(each.name for each in load_bundled())
        raise SourceError(
            f"{file.path}: No mapping fits the columns {_some(sheet.columns)}. Available: {names}. "
            f"Write {file.path.stem}.toml next to the file, or pass --mapping FILE."
        )
    if lacking := chosen.lacking(sheet.columns):
        raise SourceError(
            f"{file.path}: Mapping {quoted(chosen.name)} does not fit. Missing column: {_some(lacking)}. "
            f"Available: {_some(sheet.columns)}."
        )
    yield Notice(f"{source}: Table parsed by mapping {quoted(chosen.name)}.")
    for warning in sheet.warnings:
        yield Notice(warning, warning=True)
    if absent := [name for name in chosen.columns if name not in sheet.columns]:
        yield Notice(f"{source}: Missing column {_some(absent)}.", warning=True)
    table = _Table(file, chosen, municipality or chosen.jurisdiction.name, state or chosen.jurisdiction.state)
    yield from table.read(sheet)


@dataclass(slots=True)
class _Table:
    file: File
    mapping: TableMapping
    municipality: str | None
    state: str | None

    def read(self, sheet: Sheet) -> Iterator[Item]:
        """Yield the records of all municipalities, and the rows that are rejected."""
        from loaders.readers.tables import Columns, Tables  # imports DuckDB, which is slow

        columns, refused, numbers = self.mapping.columns, list[Rejection](), self.file.rows

        def keyed(wanted: Sequence[str], verbatim: str) -> Iterator[Row]:
            for row in sheet.rows(columns, "\0"):
                number = numbers[row.number - 1] if numbers is not None and row.number <= len(numbers) else row.number
                try:
                    if row.problem is not None:
                        raise RecordError(row.problem)
                    key = self.find_key(dict(zip(columns, row.cells, strict=True)))
                except RecordError as error:
                    refused.append(self.reject(number, error))
                else:
                    yield Row(number, (key, json.dumps(row.cells)))

        with Tables(("key",), ("cells",)) as staged:
            layout = Columns("key", "", "cells", {"key": ["key"]}, {"cells": ["cells"]})
            staged.add(replace(self.file, rows=None), self.mapping.name, layout, Sheet(["key", "cells"], keyed))
            if not staged.rows and not refused:
                yield Notice(f"{self.file.snapshot.source}: The table has no rows.", warning=True)
            yield from refused
            for group in staged.groups():
                cells = {each.row: json.loads(each.values[0] or "") for each in group.rows}
                yield from self.build(
                    {number: dict(zip(columns, cells[number], strict=True)) for number in sorted(cells)}
                )

    def reject(self, row: int, error: RecordError) -> Rejection:
        """Reject a row."""
        return Rejection(f"row {row}", f"row {row}: {error}", (Origin(self.file.snapshot, (row,)),))

    def find_key(self, cells: Cells) -> str:
        """Get the key of a row's municipality. Raises RecordError for a row without municipality, state or district."""
        if any(surrogate_in(cell) for cell in cells.values() if cell):
            raise RecordError("A cell contains a lone surrogate, which is not a character.")
        name, state = self._where(cells)
        if name is None or state is None:
            what = "municipality" if name is None else "state"
            raise RecordError(f"No {what} in a column, in the mapping or in --{what}.")
        if _cell(cells, self.mapping.district.code) is None:
            raise RecordError(f"Column {quoted(self.mapping.district.code)} is empty, so the row has no district.")
        return _find_municipality(name, state)

    def build(self, rows: Mapping[int, Cells]) -> Iterator[Item]:
        """Build the record of the municipality with these rows by number. It has a county if all rows name the same."""
        mapping, first = self.mapping, next(iter(rows.values()))
        found = (_cell(cells, mapping.jurisdiction.county_column) for cells in rows.values())
        counties = {" ".join(county.split()) for county in found if county is not None}
        name, state = self._where(first)
        shared = Authorities(name or "", state or "", counties.pop() if len(counties) == 1 else None)
        key = (shared.key, "table", mapping.name)
        rules = Rules(mint("graph", "src", DOMAIN, *key), shared)
        seen: dict[str, int] = {}
        for number, cells in rows.items():
            code = _cell(cells, mapping.district.code) or ""
            try:
                if code in seen:
                    raise RecordError(
                        f"District {quoted(code)} of {self._where(first)[0]} is already described in row {seen[code]}, "
                        "which is kept."
                    )
                seen[code] = number
                name, category = _cell(cells, mapping.district.name), _cell(cells, mapping.district.category)
                _add_rules(rules, shared.district(code, name, category), cells, mapping)
            except RecordError as error:
                yield self.reject(number, error)
        origin = Origin(self.file.snapshot, tuple(seen.values()))
        digest = sha256(repr((mapping, shared.name, [list(rows[number].values()) for number in seen.values()])))
        yield SourceGraph(DOMAIN, key, rules.graph, rules.quads, (origin,), digest, shared.graphs)

    def _where(self, cells: Cells) -> tuple[str | None, str | None]:
        """The municipality and the state; the row's own columns take precedence."""
        where = self.mapping.jurisdiction
        return _cell(cells, where.column) or self.municipality, _cell(cells, where.state_column) or self.state


def _add_rules(rules: Rules, district: NamedNode, cells: Cells, mapping: TableMapping) -> None:
    def labelled(columns: Sequence[str]) -> list[str]:
        filled = ((column, _cell(cells, column)) for column in columns)
        return [f"{column.strip()}: {cell}" for column, cell in filled if cell is not None]

    rules.quads += describe(
        district, rules.graph, ((KG.districtFact, fact) for fact in labelled(mapping.district.facts))
    )
    for use in mapping.uses:
        if (raw := _cell(cells, use.column)) is not None:
            rules.add_rule(
                "permission",
                district=district,
                landUse=rules.shared.land_use(use.name or use.column, use.category),
                rawLevel=raw,
                permissionLevel=mapping.levels.get(raw.strip()),
                condition=tuple(labelled(use.conditions)),
                recordedIn=use.column,
            )
    for measure in mapping.standards:
        if (raw := _cell(cells, measure.column)) is not None:
            rules.add_rule(
                "standard",
                quantity=(number_in(raw), None if measure.unit is None else unit(measure.unit)),
                district=district,
                standardType=measure.type,
                rawValue=raw,
                bound=measure.bound,
                appliesTo=measure.applies_to,
                recordedIn=measure.column,
            )


def _cell(cells: Cells, column: str | None) -> str | None:
    """Get a cell unchanged. None if it is empty or the table has no such column."""
    text = None if column is None else cells.get(column)
    return text if text is not None and text.strip() else None


def _some(names: Sequence[str]) -> str:
    return join_first([*map(repr, names)], _SHOWN)


def open_table(path: Path) -> Sheet:
    """Open a table: CSV, xlsx, JSON lines, a JSON list of objects, or a JSON object of objects with keys in `KEYS`.

    Raises SourceError for any other file.
    """
    if path.suffix.lower() == ".json":
        return _open_json(path)
    sheet = open_sheet(path)
    twice = [name for name, count in Counter(sheet.columns).items() if count > 1]
    told = [f"{path.name}: Duplicate column {_some(twice)}. The first one is used."] if twice else []
    return Sheet(list(dict.fromkeys(sheet.columns)), sheet.rows, [*sheet.warnings, *told])


def _open_json(path: Path) -> Sheet:
    given, warnings = parse_json(read_file(path), path.name)
    entries: Sequence[Any] = given if isinstance(given, list) else ()
    if isinstance(given, dict) and given and all(isinstance(each, dict) for each in given.values()):
        entries = [{KEYS: key, **each} | {KEYS: key} for key, each in given.items()]
    elif not isinstance(given, list):
        raise SourceError(f"{path}: Not a table. Supported: a list of objects, or an object of objects.")

    problem = "Not a JSON object."
    numbered = [(number, each if isinstance(each, dict) else problem) for number, each in enumerate(entries, 1)]
    sheet = objects_sheet(path, lambda: iter(numbered))
    return Sheet(sheet.columns, sheet.rows, warnings)
