"""Tables of districts, with the uses and dimensions of each, as records: one for each municipality and table.

The rows of a municipality may stand anywhere in a table. They are brought together on disk before they are read, so
that a load needs as much memory as the largest municipality takes, however long the table is.
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
from kg.vocabulary import KG, mint
from loaders.model import Notice, Origin, Rejection, SourceGraph
from loaders.readers.formats import Row, Sheet, open_sheet, surrogate_in, text_of_cell
from loaders.readers.locations import File
from loaders.zoning.graph.authorities import Authorities, municipality_key
from loaders.zoning.graph.rule_quads import Rules, number_in, unit
from loaders.zoning.graph.table_mapping import TableMapping, fitting, shipped
from loaders.zoning.readers.html_lines import decoded

FORMATS: Final = (".csv", ".xlsx", ".jsonl", ".ndjson", ".json")

_SHOWN: Final = 8

Item = SourceGraph | Rejection | Notice
Cells = Mapping[str, str | None]
Numbered = tuple[int, Cells, str | None]
"""Number of a row, its cells, and why it cannot be trusted."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A table: its columns, and its rows with their numbers, by column. `keyed`: its rows have keys."""

    columns: Sequence[str]
    rows: Iterable[Numbered]
    """Each time anew from the file where that is read as a stream."""
    keyed: bool = False
    warnings: Sequence[str] = ()


@dataclass(slots=True)
class _Municipality:
    shared: Authorities
    rules: Rules
    rows: list[int] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)
    digest: Any = field(default_factory=hashlib.sha256)
    """Of all that was read."""


def read(
    domain: str, file: File, mapping: TableMapping | None, municipality: str | None, state: str | None
) -> Iterator[Item]:
    """Yield the records of a table, with `mapping` or the shipped one that fits.

    What is given as its municipality and state goes where the table has no column for them. Raises SourceError for a
    file that is no table, or fits no mapping.
    """
    table = rows_of(file.path, mapping.key_column if mapping else None)
    chosen = mapping or fitting(table.columns, table.keyed)
    if chosen is None:
        names = ", ".join(each.name for each in shipped())
        raise SourceError(
            f"{file.path}: no mapping fits its columns {_some(table.columns)}; there are {names}; "
            f"{file.path.stem}.toml beside it, or --mapping FILE, gives another"
        )
    if table.keyed and mapping is None:
        table = rows_of(file.path, chosen.key_column)
    if lacking := chosen.lacking(table.columns):
        raise SourceError(
            f"{file.path}: mapping {chosen.name!r} does not fit, for there is no column {_some(lacking)}; "
            f"there are {_some(table.columns)}"
        )
    yield Notice(f"{file.snapshot.source}: a table, read by mapping {chosen.name!r}")
    for warning in table.warnings:
        yield Notice(warning, warning=True)
    if absent := [name for name in chosen.columns if name not in table.columns]:
        yield Notice(f"{file.snapshot.source}: there is no column {_some(absent)}", warning=True)
    yield from _records(file, table.rows, _Taking(domain, chosen, municipality, state))


def _records(file: File, rows: Iterable[Numbered], taking: _Taking) -> Iterator[Item]:
    from loaders.readers.tables import Columns, Tables  # and DuckDB, which takes long

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
            yield Notice(f"{file.snapshot.source}: the table has no rows", warning=True)
        yield from refused
        for group in staged.groups():
            one: _Municipality | None = None
            for each in sorted(group.rows, key=lambda row: row.row):
                cells = dict(zip(columns, json.loads(each.values[0] or "[]"), strict=True))
                one = one or taking.municipality(cells)
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


class _Taking:
    """Takes rows, each into what is known of its municipality."""

    def __init__(self, domain: str, mapping: TableMapping, municipality: str | None, state: str | None) -> None:
        self.domain: Final = domain
        self.mapping: Final = mapping
        self._given: Final = municipality or mapping.municipality, state or mapping.state
        self._keys: dict[tuple[str, str], str] = {}
        self._read_by: Final = repr(mapping).encode()

    def key(self, cells: Cells) -> str:
        """Return the key of a row's municipality. Raises RecordError for one that does not say where it belongs."""
        if any(surrogate_in(cell) for cell in cells.values() if cell):
            raise RecordError("it holds a lone surrogate, which is not a character")
        name, state = where = self._where(cells)
        if name is None or state is None:
            what = "municipality" if name is None else "state"
            raise RecordError(f"no {what} is given, by a column, by the mapping or by --{what}")
        if _cell(cells, self.mapping.district) is None:
            raise RecordError(f"the column {self.mapping.district!r} is empty, so no district is named")
        if where not in self._keys:
            self._keys[name, state] = municipality_key(name, state)
        return self._keys[name, state]

    def municipality(self, cells: Cells) -> _Municipality:
        """Return what is known of the municipality whose first row this is: what it is called."""
        name, state = self._where(cells)
        shared = Authorities(name or "", state or "")
        graph = mint("graph", "src", self.domain, shared.key, "table", self.mapping.name)
        one = _Municipality(shared, Rules(graph, shared))
        one.digest.update(self._read_by + repr(shared.name).encode())
        return one

    def take(self, one: _Municipality, row: int, cells: Cells) -> None:
        """Take one row. Raises RecordError for a district that another has said all of."""
        mapping = self.mapping
        code = _cell(cells, mapping.district) or ""
        if code in one.seen:
            raise RecordError(
                f"district {code!r} of {self._where(cells)[0]} stands in row {one.seen[code]} already, and that one "
                "holds"
            )
        one.seen[code] = row
        one.rows.append(row)
        one.digest.update(repr([cells.get(column) for column in mapping.columns]).encode())
        district = one.shared.district(code, _cell(cells, mapping.district_name), _cell(cells, mapping.category))
        _say(one, district, cells, mapping)

    def _where(self, cells: Cells) -> tuple[str | None, str | None]:
        """The municipality and the state, by the row's own columns first."""
        name, state = self._given
        return _cell(cells, self.mapping.jurisdiction) or name, _cell(cells, self.mapping.state_column) or state


def _say(one: _Municipality, district: NamedNode, cells: Cells, mapping: TableMapping) -> None:
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
    """Return a cell as it is, None where it is empty or the table has no such column."""
    text = None if column is None else cells.get(column)
    return text if text is not None and text.strip() else None


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(map(repr, names[:_SHOWN])) + (f" and {more} more" if more > 0 else "")


def rows_of(path: Path, key_column: str | None = None) -> Rows:
    """Return the rows of a table: CSV, xlsx, JSON lines, a JSON list of objects, or a JSON object of objects.

    Raises SourceError for another file.
    """
    if path.suffix.lower() == ".json":
        return _json(path, key_column)
    sheet = open_sheet(path)
    columns = list(sheet.columns)
    twice = [name for name, count in Counter(columns).items() if count > 1]
    told = [f"{path.name}: the column {_some(twice)} stands there more than once; the first is read"] if twice else []
    return Rows(list(dict.fromkeys(columns)), _Streamed(sheet), warnings=[*sheet.warnings, *told])


@dataclass(frozen=True, slots=True)
class _Streamed:
    """The rows of a sheet, each time anew from its file."""

    sheet: Sheet

    def __iter__(self) -> Iterator[Numbered]:
        columns = list(self.sheet.columns)
        for row in self.sheet.rows(columns, columns[0] if columns else ""):
            # Of columns of one name the first holds, as dict has the last.
            cells = dict(zip(columns[::-1], _filled(row.cells, len(columns))[::-1], strict=True))
            yield row.number, cells, row.problem


def _filled(cells: Sequence[str | None], count: int) -> Sequence[str | None]:
    return [*cells[:count], *[None] * (count - len(cells))]


def _json(path: Path, key_column: str | None) -> Rows:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error.strerror})") from error
    text, warnings = decoded(data, path.name)
    try:
        # NaN is how programs write that there is nothing, and no JSON.
        given = json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{path}: is not JSON ({error!r:.120})") from None
    keyed = isinstance(given, dict) and bool(given) and all(isinstance(each, dict) for each in given.values())
    if keyed:
        name = key_column or "key"
        entries: list[Any] = [{name: key, **each} for key, each in given.items()]
    elif isinstance(given, list):
        entries = given
    else:
        raise SourceError(f"{path}: is no table: a list of objects, or an object of objects")
    rows: list[tuple[int, Cells, str | None]] = []
    for number, entry in enumerate(entries, 1):
        if isinstance(entry, dict):
            rows.append((number, {str(key): _text(value) for key, value in entry.items()}, None))
        else:
            rows.append((number, {}, "is not a JSON object"))
    return Rows(list(dict.fromkeys(key for _, cells, _ in rows for key in cells)), rows, keyed, warnings)


def _text(value: object) -> str | None:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else text_of_cell(value)
