"""Mappings of the columns of a file of districts to uses and dimensions, as TOML files that a user can write.

``loaders/zoning/mappings`` contains the bundled ones. A bundled mapping whose columns a table has is used by default::

    name = "example"                     # part of the names of the graphs, one per municipality

    [jurisdiction]                       # either columns of the table ...
    column = "Town"
    state_column = "State"               # ... or the same for all rows: name = "Example City", state = "UT"
                                         # (outside the United States a code of ISO 3166-2: state = "AU-VIC")
    county_column = "County"             # optional

    [district]
    code = "District"                    # columns
    name = "District Name"               # optional
    category = "Type"                    # optional
    facts = ["Acres", "Notes"]           # optional: stored unchanged, each with its column

    [levels]                             # meaning of the cells of use columns; other cells are stored as recorded
    "Allowed" = "byRight"                # byRight, conditional, byRightWithConditions, byRightOrConditional (the source
                                         # does not state which), notPermitted

    [[use]]
    column = "Duplex"
    name = "Two-family dwelling"         # optional: default is the name of the column
    category = "Residential"             # optional
    conditions = ["Duplex Owner Lives There"]

    [[standard]]
    column = "Min. Lot (acres)"
    type = "lot-area"                    # of the code list standardType, or another
    bound = "min"                        # optional: min or max
    unit = "AC"                          # optional: local name in QUDT, or in the code list unit
    applies_to = "Two-family dwelling"   # optional

A JSON file that is an object of objects has its keys in the column ``key_column``, by default ``key``.

A mapping next to its table under the same name, ``towns.toml`` next to ``towns.csv``, is also used by default. Next to
a code, such as ``title_17.html``, the file contains only ``[jurisdiction]`` with ``name`` and ``state``, for a code
that does not contain them; ``jurisdiction.toml`` contains them for all files in its folder.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from kg.errors import InvalidInputError, RecordError
from kg.text import quoted
from loaders.readers.toml_tables import TomlTable, read_toml
from loaders.zoning.graph.authorities import state_code
from loaders.zoning.graph.rule_quads import LEVELS, UNITS

OF_FOLDER: Final = "jurisdiction.toml"
"""In the folder of sources, the municipality of all of them."""

FOLDER: Final = Path(__file__).parent.parent / "mappings"

KEYS: Final = "\0"
"""The column with the keys of a JSON object of objects. No other column has this name."""
_CODE: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_NAME: Final = re.compile(r"[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*")
_BOUNDS: Final = ("min", "max")
_TABLE_KEYS: Final = frozenset(
    ("column", "state_column", "county_column", "name", "levels", "use", "standard", "key_column")
)
"""Keys which show that a file next to a source is meant as a mapping for a table."""
_NO_DISTRICT: Final = 'Missing [district]. A mapping needs code = "...", the column of districts.'


@dataclass(frozen=True, slots=True)
class Use:
    """A column that states how each district permits a use."""

    column: str
    name: str
    category: str | None = None
    conditions: Sequence[str] = ()
    """Columns with conditions of the use."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A column with a dimension that each district prescribes."""

    column: str
    type: str
    bound: str | None = None
    unit: str | None = None
    applies_to: str | None = None


@dataclass(frozen=True, slots=True)
class TableMapping:
    """How to parse a table."""

    name: str
    district: str
    """Column with the code of the district."""
    jurisdiction: str | None = None
    """Column with the municipality; `municipality` if all rows have the same."""
    municipality: str | None = None
    state_column: str | None = None
    state: str | None = None
    county_column: str | None = None
    district_name: str | None = None
    category: str | None = None
    facts: Sequence[str] = ()
    levels: Mapping[str, str] = field(default_factory=dict)
    uses: Sequence[Use] = ()
    standards: Sequence[Measure] = ()
    key_column: str = "key"

    @property
    def columns(self) -> Sequence[str]:
        """All columns that the mapping names, each once."""
        conditions = (condition for use in self.uses for condition in use.conditions)
        standards = (each.column for each in self.standards)
        named: Iterable[str | None] = (
            self.jurisdiction, self.state_column, self.county_column, self.district, self.district_name, self.category,
            *self.facts,
            *(use.column for use in self.uses), *conditions, *standards,
        )  # fmt: skip
        return list(dict.fromkeys(name for name in named if name is not None))

    def rename(self, columns: Iterable[str]) -> set[str]:
        """Get the columns of a table as in the mapping: keys are in its `key_column`."""
        return {self.key_column if name == KEYS else name for name in columns}

    def lacking(self, columns: Iterable[str]) -> Sequence[str]:
        """Find the missing columns of a table: those that place a row, and at least one column with a rule."""
        there = self.rename(columns)
        needed = (self.jurisdiction, self.state_column, self.district)
        absent = [name for name in needed if name is not None and name not in there]
        said = [*(use.column for use in self.uses), *(each.column for each in self.standards)]
        return absent or ([] if there & set(said) else said)


def load(path: Path) -> TableMapping:
    """Parse a TOML file into a mapping. Raises InvalidInputError for an unreadable or incomplete one."""
    return _mapping(TomlTable(str(path), read_toml(path)))


def _mapping(top: TomlTable) -> TableMapping:
    name = top.text("name") or Path(top.place).stem
    if _NAME.fullmatch(name) is None:
        raise InvalidInputError(
            f"{top.place}: Invalid name {quoted(name)}. Use letters and digits, with - or _ between them."
        )
    if "district" not in top.entries:
        raise InvalidInputError(f"{top.place}: {_NO_DISTRICT}")
    where, district, levels = top.table("jurisdiction"), top.table("district"), top.table("levels")
    found = TableMapping(
        name,
        district.needed("code").strip(),
        where.column("column"),
        where.text("name"),
        where.column("state_column"),
        where.text("state"),
        where.column("county_column"),
        district.column("name"),
        district.column("category"),
        district.texts("facts"),
        {cell: levels.needed(cell) for cell in list(levels.entries)},
        [_use(each) for each in top.tables("use")],
        [_measure(each) for each in top.tables("standard")],
        top.text("key_column") or "key",
    )
    for each in (where, district, levels, top):
        each.end()
    for level in found.levels.values():
        _check(levels.place, "level", level, LEVELS)
    _valid_state(found.state, where.place)
    if not found.uses and not found.standards:
        raise InvalidInputError(
            f"{top.place}: The mapping has no column for a use, [[use]], or a standard, [[standard]]."
        )
    return found


def _use(given: TomlTable) -> Use:
    column = given.needed("column").strip()
    return Use(column, given.text("name") or column, given.text("category"), given.texts("conditions"))


def _measure(given: TomlTable) -> Measure:
    found = Measure(
        given.needed("column").strip(),
        given.needed("type"),
        given.text("bound"),
        given.text("unit"),
        given.text("applies_to"),
    )
    if _CODE.fullmatch(found.type) is None:
        raise InvalidInputError(
            f"{given.place}: Invalid type {quoted(found.type)}. Use lower case with hyphens, as in lot-area."
        )
    _check(given.place, "bound", found.bound, _BOUNDS)
    _check(given.place, "unit", found.unit, UNITS)
    return found


def _check(place: str, name: str, value: str | None, known: Collection[str]) -> None:
    if value is not None and value not in known:
        raise InvalidInputError(f"{place}: Invalid {name} {quoted(value)}. Available: {', '.join(known)}.")


@dataclass(frozen=True, slots=True)
class FileSettings:
    """The settings in TOML files next to a source."""

    municipality: str | None = None
    state: str | None = None
    mapping: TableMapping | None = None
    """The mapping, if the file has one."""
    places: Sequence[Path] = ()
    """The files that the settings come from."""


def load_settings(path: Path) -> FileSettings:
    """Load the settings next to a file: those in the file of its name, else those of its folder.

    Raises InvalidInputError for an unreadable file.
    """
    found = FileSettings()
    for place in (path.with_suffix(".toml"), path.with_name(OF_FOLDER)):
        if place == path or not place.is_file():
            continue
        top, table = TomlTable(str(place), read_toml(place)), None
        if "district" in top.entries:
            table = _mapping(top)
            name, state = table.municipality, table.state
        else:
            where = top.table("jurisdiction")
            name, state = where.text("name"), where.text("state")
            _valid_state(state, where.place)
            hint = "" if _TABLE_KEYS.isdisjoint((*where.entries, *top.entries)) else f" {_NO_DISTRICT}"
            where.end(hint)
            top.end(hint)
        found = FileSettings(
            found.municipality or name, found.state or state, found.mapping or table, (*found.places, place)
        )
    return found


def _valid_state(state: str | None, place: str) -> None:
    if state is not None:
        try:
            state_code(state)
        except RecordError as error:
            raise InvalidInputError(f"{place}: {error}") from error


@cache
def load_bundled() -> Sequence[TableMapping]:
    """Load the bundled mappings."""
    return [load(path) for path in sorted(FOLDER.glob("*.toml"))]


def find_bundled(columns: Collection[str]) -> TableMapping | None:
    """Find the bundled mapping that fits a table with these columns best. None if none fits.

    The table must have the columns that place a row, and at least one with a use or standard.
    """
    found = [each for each in load_bundled() if not each.lacking(columns)]
    return max(found, key=lambda each: len(each.rename(columns) & set(each.columns)), default=None)
