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

    [parliament]                  # optional: without it, the parliament of Australia
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
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import InvalidInputError, RecordError
from kg.vocabulary import KG, RDF, SKOS, mint
from loaders.hansard.authorities import describe_person
from loaders.hansard.parlamint_entities import Entities
from loaders.hansard.parlamint_lists import PARLIAMENT, PARTY, Lists, Name, Organization, Person
from loaders.readers.cells import quote, to_slug
from loaders.readers.toml_tables import TomlTable, read_toml

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
    """The code of the corpus of the parliament; None for Australia's."""
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


class Parliament:
    """The shared graphs of one term of a parliament that a mapping describes, as `Authorities` has Australia's."""

    def __init__(self, mapping: RegisterMapping, code: str, form: str | None) -> None:
        """Open the chamber whose cell is `form`, or the only one. Raises RecordError for an unknown one."""
        known = mapping.chambers
        found = known.get(form.casefold()) if form else next(iter(known.values())) if len(known) == 1 else None
        if found is None:
            said = f"unknown chamber {quote(form)}" if form else "the row names no chamber"
            raise RecordError(f"{said}. Available: {', '.join(each.short_names[0] for each in known.values())}.")
        self.code: Final = code
        self.unknown: dict[str, dict[str, None]] = {}
        self._parties: Final = mapping.parties
        listed = {each.id: each for each in (*known.values(), *mapping.parties.values())}
        self._entities: Final = Entities(code, None, Lists(organizations=listed))
        self.chamber: Final = self._entities.organization(found.id)

    @property
    def graphs(self) -> dict[NamedNode, Sequence[Quad]]:
        """The graphs of the entities that were used."""
        return self._entities.graphs

    def registered(self, names: Sequence[str], identifier: str | None, key: str = "") -> NamedNode:
        """Return the person whom the register lists, by the identifier in the corpus, else by a `key` of its own."""
        if identifier is not None:
            self._entities.lists.people[identifier] = Person(identifier, name=names[0], other_names=tuple(names[1:]))
            return self._entities.person(identifier)
        iri, graph, said = describe_person(f"{self.code}.{key}", "unverified", names)
        self.graphs[graph] = said
        return iri

    def state(self, form: str) -> NamedNode | None:
        """Note the form and return None: states of other countries are not known."""
        self.unknown.setdefault("state", {})[form] = None
        return None

    def electorate(self, form: str) -> tuple[NamedNode, str]:
        """Return the electorate and its name."""
        key = self.code.casefold(), to_slug(form)
        iri, graph = mint("electorate", *key), mint("graph", "ref", "electorate", *key)
        self.graphs[graph] = [
            Quad(iri, RDF.type, KG.Electorate, graph),
            Quad(iri, SKOS.prefLabel, Literal(form), graph),
            Quad(iri, KG.within, self._entities.jurisdiction, graph),
        ]
        return iri, form

    def party(self, form: str) -> NamedNode | None:
        """Return the party of a cell. An unknown form is noted."""
        found = self._parties.get(form.casefold())
        if found is None:
            self.unknown.setdefault("party", {})[form] = None
            return None
        return self._entities.organization(found.id)


def load_mapping(path: Path, fields: Sequence[str]) -> RegisterMapping:
    """Parse a TOML file into a mapping of `fields`. Raises InvalidInputError for an unreadable or incomplete one."""
    top = TomlTable(str(path), read_toml(path))
    columns, dates, parliament = top.table("columns"), top.table("dates"), top.table("parliament")
    chosen = {name: column for name in fields if (column := columns.column(name)) is not None}
    code = parliament.text("code")
    if code is not None and _CODE.fullmatch(code) is None:
        raise InvalidInputError(f"{parliament.place}: Invalid code {code!r}. Use that of a corpus, as in AT or ES-GA.")
    formats = dates.texts("formats")
    for form in formats:
        if not _reads_back(form):
            raise InvalidInputError(
                f"{dates.place}: Invalid format {form!r}. It needs %d, %m (or %b, %B) and %Y, each once."
            )
    found = RegisterMapping(
        chosen,
        formats,
        frozenset(each.casefold() for each in dates.texts("open")),
        code,
        _read_organizations(top, "chamber", PARLIAMENT),
        _read_organizations(top, "party", PARTY),
    )
    for each in (columns, dates, parliament, top):
        each.end()
    if code is None and (found.chambers or found.parties):
        raise InvalidInputError(f"{path}: [[chamber]] and [[party]] need [parliament] with code.")
    if code is not None and not found.chambers:
        raise InvalidInputError(f"{path}: Missing [[chamber]], with cell, id and name.")
    return found


def _reads_back(form: str) -> bool:
    """Whether a format reads the day that it writes."""
    try:
        return datetime.strptime(_TRIED.strftime(form), form).date() == _TRIED.date()
    except (ValueError, re.error):  # re.error: a directive is there twice
        return False


def _read_organizations(top: TomlTable, name: str, role: str) -> dict[str, Organization]:
    found: dict[str, Organization] = {}
    for table in top.tables(name):
        cell = table.needed("cell").strip()
        identifier = table.text("id") or cell
        if _ID.fullmatch(identifier) is None:
            raise InvalidInputError(f"{table.place}: Invalid id {identifier!r}. It has no spaces and no slash.")
        if cell.casefold() in found:
            raise InvalidInputError(f"{table.place}: The cell {cell!r} is there twice.")
        found[cell.casefold()] = Organization(identifier, role, (Name(table.text("name") or cell, None),), (cell,))
    return found
