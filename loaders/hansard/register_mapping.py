"""Mappings of the columns of a register of members, as TOML files that a user can write.

::

    [columns]                     # the columns of the file; a field that is not named has its usual column
    given_name = "Vorname"        # or name = "..."
    family_name = "Nachname"
    from = "Beginn"
    to = "Ende"
    party = "Fraktion"
    chamber = "Gremium"           # optional, if there is one [[chamber]]
    person_id = "Kennung"         # also: person_number, other_names, born, seat, state

    [dates]
    formats = ["%d/%m/%Y"]        # optional: tried before YYYY, YYYY-MM, YYYY-MM-DD and D.M.YYYY
    open = ["laufend"]            # optional: cells of a term that has not ended

    [parliament]                  # optional: a parliament other than Australia's
    code = "QX"                   # the code of its ParlaMint corpus, which is its country (alpha-2) or region

    [[chamber]]
    cell = "NR"                   # the cell of the column
    id = "parliament.NR"          # as in the corpus; default: the cell
    name = "National Council"

    [[party]]                     # optional: other parties are kept as recorded
    cell = "Blue"
    id = "party.BL"
    name = "Blue List"

Members, chambers and parties have the identifiers of the corpus, so both can be loaded together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from kg.errors import InvalidInputError, RecordError
from kg.text import quoted
from loaders.hansard.parlamint_lists import PARLIAMENT, PARTY, Name, Organization
from loaders.hansard.parliaments import Parliament
from loaders.readers.cells import quote
from loaders.readers.toml_tables import Text, TomlTable, read_toml

_CODE: Final = re.compile(r"[A-Z]{2}(?:-[A-Z0-9]{1,3})?")
_TRIED: Final = datetime(2004, 11, 23, tzinfo=UTC)
"""A day whose year, month and day differ from those that a format without them reads."""
_ID: Final = re.compile(r"[^\s<>\"{}|\\^`/]+")


@dataclass(frozen=True, slots=True)
class RegisterMapping:
    """How to read a register."""

    columns: Mapping[str, str] = field(default_factory=dict)
    """The column of each field that has not its usual one."""
    formats: Sequence[str] = ()
    open: frozenset[str] = frozenset()
    """Cells of terms that have not ended, case-folded."""
    code: str | None = None
    """The code of the corpus of the parliament; None if the register has to name it."""
    chambers: Mapping[str, Organization] = field(default_factory=dict)
    parties: Mapping[str, Organization] = field(default_factory=dict)
    """By cell, case-folded."""

    def parse_day(self, text: str) -> date | None:
        """Parse a day by the formats of the mapping; None for another form."""
        for form in self.formats:
            try:
                return datetime.strptime(text, form).date()
            except ValueError:
                continue
        return None


def open_parliament(mapping: RegisterMapping, code: str, form: str | None) -> Parliament:
    """Open the chamber whose cell is `form`, or the only one. Raises RecordError for an unknown one."""
    known = mapping.chambers
    found = known.get(form.casefold()) if form else next(iter(known.values())) if len(known) == 1 else None
    if found is None:
        said = f"unknown chamber {quote(form)}" if form else "the row names no chamber"
        raise RecordError(f"{said}. Available: {', '.join(each.short_names[0] for each in known.values())}.")
    return Parliament(code, found, mapping.parties)


def _reads_back(form: str) -> bool:
    """Whether a format reads the day that it writes."""
    try:
        return datetime.strptime(_TRIED.strftime(form), form).date() == _TRIED.date()
    except (ValueError, re.error):  # re.error: a directive is there twice
        return False


def _check_format(form: str) -> str:
    if not _reads_back(form):
        raise ValueError("A format needs %d, %m (or %b, %B) and %Y, each once.")
    return form


def _check_code(code: str) -> str:
    if _CODE.fullmatch(code) is None:
        raise ValueError("Use the code of a corpus, as in AT or ES-GA.")
    return code


class _Dates(TomlTable):
    formats: list[Annotated[str, AfterValidator(_check_format)]] = Field([])
    open: list[Text] = Field([])


class _Parliament(TomlTable):
    code: Annotated[str, AfterValidator(_check_code)] | None = None


class _Organization(TomlTable):
    cell: Text
    id: Text | None = None
    name: Text | None = None

    @property
    def key(self) -> str:
        return self.id or self.cell


class _File(TomlTable):
    columns: dict[str, Text] = Field({})
    dates: _Dates = _Dates()
    parliament: _Parliament = _Parliament()
    chamber: list[_Organization] = Field([])
    party: list[_Organization] = Field([])


def load_mapping(path: Path, fields: Sequence[str]) -> RegisterMapping:
    """Parse a TOML file into a mapping of `fields`. Raises InvalidInputError for an unreadable or incomplete one."""
    given = _File.read(path, read_toml(path))
    if unknown := [name for name in given.columns if name not in fields]:
        raise InvalidInputError(f"{path}: Unknown {quoted(unknown[0])} in columns. Available: {', '.join(fields)}.")
    found = RegisterMapping(
        given.columns,
        given.dates.formats,
        frozenset(each.casefold() for each in given.dates.open),
        given.parliament.code,
        _build_organizations(path, given.chamber, PARLIAMENT),
        _build_organizations(path, given.party, PARTY),
    )
    if found.code is None and (found.chambers or found.parties):
        raise InvalidInputError(f"{path}: [[chamber]] and [[party]] need [parliament] with code.")
    if found.code is not None and not found.chambers:
        raise InvalidInputError(f"{path}: Missing [[chamber]], with cell, id and name.")
    return found


def _build_organizations(path: Path, given: Sequence[_Organization], role: str) -> dict[str, Organization]:
    found: dict[str, Organization] = {}
    for each in given:
        if _ID.fullmatch(each.key) is None:
            raise InvalidInputError(f"{path}: Invalid id {quoted(each.key)}. It has no spaces and no slash.")
        if each.cell.casefold() in found:
            raise InvalidInputError(f"{path}: The cell {quoted(each.cell)} is there twice.")
        names = (Name(each.name or each.cell, None),)
        found[each.cell.casefold()] = Organization(each.key, role, names, (each.cell,))
    return found
