"""The layouts of climate documents: the fields of a record, where each is in a table or a JSON object of the layout.

``layouts.toml`` contains the known ones, and describes their parts. A file of ``--mapping`` adds others.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from kg.errors import InvalidInputError, SourceError
from kg.text import join_first, quoted
from loaders.readers.tables import Column, Columns, Part, find_pattern_fault
from loaders.readers.toml_tables import Text, TomlTable, read_toml

HEAD: Final = (
    "slug", "document_id", "title", "description", "family_slug", "family_title", "family_id", "geographies",
    "geography_name", "languages", "translated", "corpus_type", "date", "year_passed", "last_change", "source_url",
    "sectors", "responses", "keywords", "instruments", "hazards", "frameworks", "metadata",
)  # fmt: skip
"""The fields of a document. ``metadata`` is an object with the lists of topics by name."""

BODY: Final = ("index", "text", "page", "type", "language")
"""The fields of a passage."""

_KNOWN: Final = Path(__file__).with_suffix(".toml")
_SHOWN: Final = 12


Fields = Mapping[str, str | None]
"""The fields of a document or passage by name."""


class UnknownLayoutError(SourceError):
    """A file has no record of a climate document, as far as its columns show."""


class LeftOutError(SourceError):
    """A file has records of layouts without fields alone, which are left out."""

    def __init__(self, path: Path, layouts: Iterable[Layout]) -> None:
        named = ", ".join(f"{quoted(each.name)}{each.description and f', {each.description}'}" for each in layouts)
        super().__init__(
            f"{path}: The file has no document and no passage: its records are left out, since their layout has no "
            f"fields ({named}). A layout of --mapping needs [layout.NAME.fields]."
        )


class Source(TomlTable):
    """A column, or the part of its value that the group of a regular expression matches."""

    column: Text
    match: str | None = None

    @field_validator("match")
    @classmethod
    def _require_group(cls, pattern: str) -> str:
        try:
            groups = re.compile(pattern).groups
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"Not a regular expression ({error}).") from error
        if groups != 1:
            raise ValueError(f"It has {groups} groups; exactly one is expected: the part of the value.")
        if (fault := find_pattern_fault(pattern)) is not None:
            raise ValueError(f"Not a regular expression of RE2 ({fault}).")
        return pattern


def _to_list(given: Any) -> Any:
    """Read a column as a list of one, and a name as a column."""
    sources = given if isinstance(given, list) else [given]
    return [{"column": each} if isinstance(each, str) else each for each in sources]


class Layout(TomlTable):
    """Where a file of this layout has each field. A row or an object has it if it has all `requires`."""

    name: str = ""
    description: str = ""
    requires: list[Text] = Field(min_length=1)
    records: list[Text] = Field([])
    key: Literal["slug", "document_id"] = "slug"
    link: bool = False
    translations: bool = False
    lines: bool = False
    law: bool = False
    like: Text | None = None
    fields: dict[str, Annotated[list[Source], BeforeValidator(_to_list)]] = Field({})
    values: dict[str, dict[str, str]] = Field({})

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        for name in (*self.fields, *self.values):
            if name not in (*HEAD, *BODY):
                raise ValueError(f"Unknown field {quoted(name)}. Available: {', '.join((*HEAD, *BODY))}.")
        return self

    @property
    def has_text(self) -> bool:
        """Whether its rows are passages. The others describe documents."""
        return "text" in self.fields

    @property
    def columns(self) -> Columns:
        """The layout as columns for `loaders.readers.tables`."""
        found: dict[str, Sequence[Column]] = {
            field: [each.column if each.match is None else Part(each.column, each.match) for each in sources]
            for field, sources in self.fields.items()
        }
        head = {name: names for name, names in found.items() if name in HEAD}
        body = {name: names for name, names in found.items() if name in BODY}
        return Columns(self.key, "translated", "text", head, body, "document_id" if self.link else None)

    def is_of(self, columns: Collection[str]) -> bool:
        """Whether a row or an object with these columns has this layout."""
        return all(map(columns.__contains__, self.requires))

    def replace(self, fields: Fields) -> Fields:
        """Replace the values that have another form in this layout."""
        if not self.values:
            return fields
        return {name: self.values.get(name, {}).get(value or "", value) for name, value in fields.items()}


class _Layouts(TomlTable):
    wrappers: list[Text] = Field([])
    layout: dict[str, Layout] = Field(min_length=1)


class Layouts:
    """The layouts that files may have, in the order in which they are tried."""

    def __init__(self, layouts: Mapping[str, Layout], wrappers: Collection[str]) -> None:
        self.by_name: Final = layouts
        self.wrappers: Final = wrappers

    def find(self, columns: Collection[str]) -> Layout | None:
        """Find the layout of a row or an object with these columns, None if it has none."""
        return next((layout for layout in self.by_name.values() if layout.is_of(columns)), None)

    def detect(self, path: Path, columns: Collection[str]) -> Layout:
        """Detect the layout of a file. Raises UnknownLayoutError with the columns that the closest one lacks."""
        if (found := self.find(columns)) is not None:
            return found
        known = [layout for layout in self.by_name.values() if layout.fields]
        nearest = max(known, key=lambda each: sum(name in columns for name in each.requires) / len(each.requires))
        missing = [name for name in nearest.requires if name not in columns]
        raise UnknownLayoutError(
            f"{path}: Unknown layout. Its fields: {join_first([*columns], _SHOWN) or 'none'}. Available layouts: "
            f"{', '.join(layout.name for layout in known)}. The closest one, {quoted(nearest.name)}, also needs "
            f"{', '.join(missing)}. --mapping FILE adds a layout."
        )


def load_layouts(mapping: str | None = None) -> Layouts:
    """Load the known layouts, after those of a mapping. Raises InvalidInputError for an invalid mapping."""
    known = _load_known()
    if mapping is None:
        return known
    path = Path(mapping)
    given = _Layouts.read(path, read_toml(path))
    added = _complete(path, given, known.by_name)
    return Layouts(
        added | {name: each for name, each in known.by_name.items() if name not in added},
        [*given.wrappers, *known.wrappers],
    )


@cache
def _load_known() -> Layouts:
    given = _Layouts.read(_KNOWN, read_toml(_KNOWN))
    return Layouts(_complete(_KNOWN, given, {}), given.wrappers)


def _complete(path: Path, given: _Layouts, known: Mapping[str, Layout]) -> dict[str, Layout]:
    """Add its name to each layout, and the fields of the one that it is like. Raises InvalidInputError."""
    found = {}
    for name, layout in given.layout.items():
        fields = layout.fields
        if layout.like is not None:
            of = {**known, **given.layout}.get(layout.like)
            if of is None or of.like is not None:
                fit = [each for each, other in {**known, **given.layout}.items() if other.like is None]
                raise InvalidInputError(f"{path}: layout {name}: Invalid like. Available: {', '.join(fit)}.")
            fields = of.fields | fields
        key = "document_id" if layout.link else layout.key
        if fields and (key not in fields or not (layout.law or fields.keys() & {"family_slug", "family_title"})):
            raise InvalidInputError(
                f"{path}: layout {name}: Missing in fields: {key}, or family_slug or family_title. A document has both."
            )
        found[name] = layout.model_copy(update={"name": name, "fields": fields})
    return found
