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

A JSON file that is an object of objects has its keys in the column ``key``.

A mapping next to its table under the same name, ``towns.toml`` next to ``towns.csv``, is also used by default. Next to
a code, such as ``title_17.html``, the file contains only ``[jurisdiction]`` with ``name`` and ``state``, for a code
that does not contain them; ``jurisdiction.toml`` contains them for all files in its folder.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from kg.errors import RecordError
from loaders.readers.toml_tables import Text, TomlTable, read_toml
from loaders.zoning.graph.authorities import state_code
from loaders.zoning.graph.rule_quads import LEVELS, UNITS

OF_FOLDER: Final = "jurisdiction.toml"
"""In the folder of sources, the municipality of all of them."""

FOLDER: Final = Path(__file__).parent.parent / "mappings"

KEYS: Final = "key"
"""The column with the keys of a JSON object of objects."""


def _one_of(known: Collection[str]) -> AfterValidator:
    def check(value: str) -> str:
        if value not in known:
            raise ValueError(f"Available: {', '.join(known)}.")
        return value

    return AfterValidator(check)


def _check_state(state: str) -> str:
    try:
        state_code(state)
    except RecordError as error:
        raise ValueError(str(error)) from error
    return state


class Use(TomlTable):
    """A column that states how each district permits a use."""

    column: Text
    name: Text | None = None
    """The name of the use. Default: that of the column."""
    category: Text | None = None
    conditions: list[Text] = Field([])
    """Columns with conditions of the use."""


class Measure(TomlTable):
    """A column with a dimension that each district prescribes."""

    column: Text
    type: Annotated[str, StringConstraints(pattern="^[a-z0-9]+(?:-[a-z0-9]+)*$")]
    bound: Literal["min", "max"] | None = None
    unit: Annotated[str, _one_of(UNITS)] | None = None
    applies_to: Text | None = None


class Place(TomlTable):
    """The municipality of all rows, or of a code."""

    name: Text | None = None
    state: Annotated[str, AfterValidator(_check_state)] | None = None


class Jurisdiction(Place):
    """The municipality of a table, or its columns."""

    column: Text | None = None
    state_column: Text | None = None
    county_column: Text | None = None


class DistrictColumns(TomlTable):
    """The columns with properties of the district."""

    code: Text
    name: Text | None = None
    category: Text | None = None
    facts: list[Text] = Field([])


class _Beside(TomlTable):
    """A file next to a code."""

    hint = ' Missing [district], if it is a mapping of a table: code = "...", the column of districts.'
    jurisdiction: Place = Place()


class TableMapping(TomlTable):
    """How to parse a table."""

    name: Annotated[str, StringConstraints(pattern="^[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*$")]
    jurisdiction: Jurisdiction = Jurisdiction()
    district: DistrictColumns
    levels: dict[str, Annotated[str, _one_of(LEVELS)]] = Field({})
    uses: list[Use] = Field([], alias="use")
    standards: list[Measure] = Field([], alias="standard")

    @model_validator(mode="after")
    def _require_rules(self) -> Self:
        if not self.uses and not self.standards:
            raise ValueError("The mapping has no column for a use, [[use]], or a standard, [[standard]].")
        return self

    @property
    def columns(self) -> Sequence[str]:
        """All columns that the mapping names, each once."""
        where, district = self.jurisdiction, self.district
        conditions = (condition for use in self.uses for condition in use.conditions)
        standards = (each.column for each in self.standards)
        named: Iterable[str | None] = (
            where.column, where.state_column, where.county_column, district.code, district.name, district.category,
            *district.facts, *(use.column for use in self.uses), *conditions, *standards,
        )  # fmt: skip
        return list(dict.fromkeys(name for name in named if name is not None))

    def lacking(self, columns: Iterable[str]) -> Sequence[str]:
        """Find the missing columns of a table: those that place a row, and at least one column with a rule."""
        there = set(columns)
        needed = (self.jurisdiction.column, self.jurisdiction.state_column, self.district.code)
        absent = [name for name in needed if name is not None and name not in there]
        said = [*(use.column for use in self.uses), *(each.column for each in self.standards)]
        return absent or ([] if there & set(said) else said)


def load(path: Path) -> TableMapping:
    """Parse a TOML file into a mapping. Raises InvalidInputError for an unreadable or incomplete one."""
    return TableMapping.read(path, {"name": path.stem} | read_toml(path))


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
        given = read_toml(place)
        table = load(place) if "district" in given else None
        where = table.jurisdiction if table is not None else _Beside.read(place, given).jurisdiction
        found = FileSettings(
            found.municipality or where.name,
            found.state or where.state,
            found.mapping or table,
            (*found.places, place),
        )
    return found


@cache
def load_bundled() -> Sequence[TableMapping]:
    """Load the bundled mappings."""
    return [load(path) for path in sorted(FOLDER.glob("*.toml"))]


def find_bundled(columns: Collection[str]) -> TableMapping | None:
    """Find the bundled mapping that fits a table with these columns best. None if none fits.

    The table must have the columns that place a row, and at least one with a use or standard.
    """
    found = [each for each in load_bundled() if not each.lacking(columns)]
    return max(found, key=lambda each: len(set(columns) & set(each.columns)), default=None)
