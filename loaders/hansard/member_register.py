"""The loader ``members``: a dated register of the members of a parliament, one record per term of a member.

A register is a table, or several that are loaded together. Columns are found by name, in any order:

- ``name`` (required), ``from`` (required), ``to``, ``chamber``, ``seat``, ``state``, ``party``, ``person_id``,
  ``other_names`` (separated by semicolons). A change of party is a row of its own.
- A table with ``name`` and ``person_id`` but without ``from`` lists people: it gives identifiers and other names to the
  rows with that name. ``person_number`` in both tables identifies the person where several have one name.
- ``given_name`` and ``family_name`` in place of ``name``; ``born``, which separates people of one name.

The names of the register of openaustralia-parser (``Date of election``, ``aph id``, ...) are understood too, and a
mapping (`register_mapping`) names the columns of other registers. Dates are ``YYYY-MM-DD`` or ``D.M.YYYY``, or only a
month (``YYYY-MM``) or a year. Without ``to``, or with ``present`` or a dash there, a term has not ended. Empty rows,
and rows that begin with ``#``, are skipped. The chamber of a file without that column is given by ``--chamber`` or by
its name (``senators.csv``).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import InvalidInputError, RecordError, SourceError
from kg.partial_dates import find_bounds, find_period
from kg.vocabulary import KG, ORG, RDF, SCHEMA, XSD, mint, sha256
from loaders.hansard.authorities import Authorities, describe_unknown
from loaders.hansard.parliaments import AUSTRALIAN, NAMING, Parliament, find_code, is_australian
from loaders.hansard.person_names import fold_name, strip_titles
from loaders.hansard.register_mapping import RegisterMapping, load_mapping, open_parliament
from loaders.hansard.table_columns import JURISDICTION, chamber_of, plain
from loaders.model import Notice, Origin, Rejection, SourceGraph
from loaders.readers.cells import present, quote, to_slug
from loaders.readers.formats import csv_rows
from loaders.readers.locations import File

DOMAIN: Final = "members"
VERSION: Final = "2"
FORMATS: Final = (".csv",)

_COLUMNS: Final[Mapping[str, Sequence[str]]] = {
    "person_id": ("person_id", "aph id"),
    "person_number": ("person_number", "person count"),
    "name": ("name", "member"),
    "given_name": ("given_name", "first_name"),
    "family_name": ("family_name", "last_name", "surname"),
    "other_names": ("other_names", "alt name"),
    "born": ("born", "birthday", "date_of_birth"),
    "jurisdiction": JURISDICTION,
    "chamber": ("chamber",),
    "seat": ("seat", "electorate", "division"),
    "state": ("state", "state/territory"),
    "party": ("party", "most recent party"),
    "from": ("from", "date of election"),
    "to": ("to", "date ceased to be a member"),
}
_CHAMBER_OF_FILE: Final = {"senators": "Senate", "representatives": "House of Representatives"}
_DAY: Final = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")
_PARTIAL: Final = re.compile(r"\d{4}(?:-\d\d)?")
_TYPES: Final = {4: XSD.gYear, 7: XSD.gYearMonth, 10: XSD.date}
_OPEN: Final = frozenset(
    ("present", "current", "ongoing", "incumbent", "still_in_office", "now", "today", "-", "–", "—")
)
"""Cells of terms that have not ended."""
_NOBODY: Final = frozenset(("vacant", "vacancy", "unknown", "tba", "tbd", "n/a", "-", "–", "—", "?"))
"""Cells in place of a name."""
_MEMBER: Final = mint("code", "membershipRole", "member")

Item = SourceGraph | Rejection | Notice


class _Row(NamedTuple):
    """A row of a register, by field."""

    file: File
    number: int
    said: Mapping[str, str]
    other_names: Sequence[str]

    @property
    def origin(self) -> Origin:
        return Origin(self.file.snapshot, (self.number,))


@dataclass(slots=True)
class _People:
    """The people that a register lists, by number and by name."""

    by_number: dict[str, _Row] = field(default_factory=dict)
    by_name: dict[str, dict[str, _Row]] = field(default_factory=lambda: defaultdict(dict))

    def add(self, row: _Row) -> None:
        key = row.said.get("person_number") or f"{row.file.snapshot.source} {row.number}"
        self.by_number[key] = row
        for name in (row.said["name"], *row.other_names):
            self.by_name[fold_name(strip_titles(name))][key] = row

    def find(self, term: _Row) -> _Row | None:
        """Find the person of a term: by number, else by a name that no other person has."""
        if number := term.said.get("person_number"):
            return self.by_number.get(number)
        found = self.by_name.get(fold_name(strip_titles(term.said["name"])), {})
        return next(iter(found.values())) if len(found) == 1 else None


@dataclass(frozen=True, slots=True)
class Reading:
    """Reads the files of a register. `chamber` is that of files that name none."""

    chamber: str | None = None
    mapping: RegisterMapping = field(default_factory=RegisterMapping)
    jurisdiction: str | None = None
    """The code of the parliament of registers that do not name it."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Reading:
        """Build a reading from options.

        Raises InvalidInputError for an unknown country, an unknown chamber or a wrong mapping.
        """
        mapping, code = RegisterMapping(), None
        try:
            code = None if (place := options.get("jurisdiction")) is None else find_code(place)
        except RecordError as error:
            raise InvalidInputError(f"--jurisdiction: {error}") from error
        if (file := options.get("mapping")) is not None:
            mapping = load_mapping(Path(file), [*_COLUMNS])
        try:
            if (chamber := options.get("chamber")) is not None:
                if mapping.code is not None:
                    open_parliament(mapping, mapping.code, chamber)
                elif code in (None, AUSTRALIAN):
                    chamber_of(chamber)
        except RecordError as error:
            raise InvalidInputError(f"--chamber: {error}") from error
        return cls(chamber, mapping, code)

    def read(self, files: Sequence[File]) -> Iterator[Item]:
        """Yield the terms of a register, and notices about its files. A row that cannot be read is a Rejection."""
        people, terms = _People(), list[_Row]()
        codes: dict[File, str | None] = {}
        for file in files:
            try:
                columns, rows = _read_rows(file, self.mapping)
                codes[file] = self._find_code(file, columns, rows)
            except SourceError as error:
                yield Rejection(file.path.name, str(error), (Origin(file.snapshot),))
                continue
            yield Notice(
                f"{file.snapshot.source}: {'terms' if 'from' in columns else 'people'} of a register of members"
            )
            for row in rows:
                if "name" not in row.said:
                    yield Rejection(f"row {row.number}", f"row {row.number} names nobody", (row.origin,))
                elif "from" in columns:
                    terms.append(row)
                else:
                    people.add(row)
        unknown: dict[str, set[str]] = defaultdict(set)
        shared = self._find_shared_names(terms, people)
        for row in terms:
            try:
                if (at := (row.file, row.number)) in shared:
                    raise RecordError(
                        f"row {row.number} names no person_id, and another row of that name and chamber is of another "
                        f"seat in the same days ({shared[at]}). Give each person a person_id or a date of birth "
                        "('born'), or end the earlier term."
                    )
                yield self._build_record(row, people.find(row), codes[row.file], unknown)
            except RecordError as error:
                name = row.said.get("name", "")
                yield Rejection(f"{name} (row {row.number})", str(error), (row.origin,))
        for kind, forms in unknown.items():
            yield Notice(describe_unknown(kind, sorted(forms)), warning=True)

    def _find_shared_names(self, terms: Sequence[_Row], people: _People) -> Mapping[tuple[File, int], str]:
        """Find the rows without an identifier whose name two people have: their terms in two seats overlap."""
        by_name: dict[tuple[str | None, ...], list[tuple[str, str, str, _Row]]] = defaultdict(list)
        for row in terms:
            if row.said.get("person_id") or people.find(row) is not None:
                continue
            try:
                first, last = self._parse_day(row.said.get("from")), self._parse_day(row.said.get("to"))
            except RecordError:
                continue
            if first is not None and (area := row.said.get("seat") or row.said.get("state")):
                name = fold_name(strip_titles(row.said["name"]))
                # Only days on which both certainly are members show that two people have the name.
                period = find_period(first, last)
                told_apart = name, self._chamber_form(row), row.said.get("born")
                by_name[told_apart].append((period.first, period.last, fold_name(area), row))
        shared: dict[tuple[File, int], str] = {}
        for own in by_name.values():
            latest, held = "", ""
            for start, end, area, _ in sorted(own, key=lambda each: each[:3]):
                if area != held and start < min(latest, end):
                    shared.update(((row.file, row.number), f"from {start}") for *_, row in own)
                    break
                latest, held = max((latest, held), (end, area))
        return shared

    def _chamber_form(self, row: _Row) -> str | None:
        return row.said.get("chamber") or self.chamber or _CHAMBER_OF_FILE.get(row.file.path.stem.casefold())

    def _find_code(self, file: File, places: Mapping[str, int], rows: Sequence[_Row]) -> str | None:
        """Find the parliament of the rows of a file that name none. Raises SourceError if some row has none then."""
        code = self.mapping.code or self.jurisdiction
        if code is None and "from" in places and rows:
            header, _ = csv_rows(file.path)
            states = {row.said["state"] for row in rows if "state" in row.said}
            if is_australian([*map(plain, header)], states, register=True):
                return AUSTRALIAN
            if "jurisdiction" not in places:
                raise SourceError(f"{file.path}: the register names no parliament. {NAMING}")
        return code

    def _build_record(
        self, row: _Row, person: _Row | None, code: str | None, unknown: dict[str, set[str]]
    ) -> SourceGraph:
        said = row.said
        first, last = self._parse_day(said.get("from")), self._parse_day(said.get("to"), may_be_open=True)
        if first is None:
            raise RecordError(f"row {row.number} has no day in 'from'")
        if last is not None and find_bounds(last)[1] < find_bounds(first)[0]:
            raise RecordError(f"row {row.number} ends ({last}) before it begins ({first})")
        form = self._chamber_form(row)
        shared = self._open_parliament(row, code, form, last or first)
        names = list(dict.fromkeys([said["name"], *row.other_names]))
        if person is not None:
            names = list(dict.fromkeys([*names, person.said["name"], *person.other_names]))
        member = _member(shared, row, person, names)
        record = _Term(row, first, last, member, names, shared)
        quads = record.build_quads()
        for kind, forms in shared.unknown.items():
            unknown[kind].update(forms)
        origins = [row.origin] if person is None else [row.origin, person.origin]
        read = repr((sorted(said.items()), form, names, member.value, self.mapping))
        return SourceGraph(DOMAIN, record.key, record.iri, quads, origins, sha256(read), shared.graphs)

    def _open_parliament(self, row: _Row, code: str | None, form: str | None, day: str) -> Authorities | Parliament:
        if self.mapping.code is not None:
            return open_parliament(self.mapping, self.mapping.code, form)
        code = find_code(named) if (named := row.said.get("jurisdiction")) else code
        if code is None:
            raise RecordError(f"row {row.number} names no parliament. {NAMING}")
        if form is None:
            raise RecordError(f"row {row.number} names no chamber. Add a column 'chamber', or give --chamber.")
        if code != AUSTRALIAN:
            return Parliament.of_chamber(code, form)
        # A register lists the last party of a term.
        return Authorities(chamber_of(form), date.fromisoformat(find_bounds(day)[0]))

    def _parse_day(self, text: str | None, *, may_be_open: bool = True) -> str | None:
        """Parse a date to ISO 8601, as far as it is stated; None if there is none. Raises RecordError."""
        if text is None or (may_be_open and (text := text.strip()).casefold() in _OPEN | self.mapping.open):
            return None
        try:
            if (day := self.mapping.parse_day(text)) is not None:
                return day.isoformat()
            if _PARTIAL.fullmatch(text):
                return find_bounds(text)[0][: len(text)]
            if match := _DAY.fullmatch(text):
                return date(int(match[3]), int(match[2]), int(match[1])).isoformat()
            return date.fromisoformat(text).isoformat()
        except ValueError:
            raise RecordError(f"{quote(text)} is not a date. Use YYYY-MM-DD, D.M.YYYY, YYYY-MM or YYYY.") from None


def _member(shared: Authorities | Parliament, row: _Row, person: _Row | None, names: Sequence[str]) -> NamedNode:
    """Return the person of a term.

    Rows without an identifier are of one person if the name is the same, and the date of birth, or without one the
    chamber.
    """
    bare = [strip_titles(name) for name in names]
    identifier = row.said.get("person_id") or (person.said.get("person_id") if person is not None else None)
    if identifier:
        identifier = identifier.strip()
        return shared.registered(bare, identifier.upper() if isinstance(shared, Authorities) else identifier)
    number = person.said.get("person_number") if person is not None else None
    born = row.said.get("born") or (person.said.get("born") if person is not None else None)
    told_apart = f"number {number}" if number else f"born {born}" if born else shared.chamber.value
    main = strip_titles(person.said["name"]) if person is not None else bare[0]
    key = f"register-{to_slug(main)}-{sha256(f'{fold_name(main)} {told_apart}')[:8]}"
    return shared.registered(bare, None, key)


@dataclass(frozen=True, slots=True)
class _Term:
    """The term of a member, to be written as quads."""

    row: _Row
    first: str
    last: str | None
    member: NamedNode
    names: Sequence[str]
    shared: Authorities | Parliament

    @property
    def key(self) -> tuple[str, ...]:
        names = (unquote(each.value.rpartition("/")[2]) for each in (self.shared.chamber, self.member))
        return *names, self.first

    @property
    def iri(self) -> NamedNode:
        return mint("membership", self.key[1], "chamber", self.key[0], self.key[2])

    def build_quads(self) -> list[Quad]:
        said, graph = self.row.said, mint("graph", "src", DOMAIN, *self.key)
        quads = [*self._dated(self.iri, self.shared.chamber, graph), Quad(self.iri, ORG.role, _MEMBER, graph)]
        quads += [Quad(self.iri, KG.memberAsRecorded, Literal(name), graph) for name in self.names]
        state = self.shared.state(form) if (form := said.get("state")) else None
        seat = self.shared.electorate(said["seat"]) if said.get("seat") else None
        area = seat[0] if seat is not None else state
        if area is not None:
            quads.append(Quad(self.iri, KG.represents, area, graph))
        if state is not None:
            quads.append(Quad(self.iri, KG.representedState, state, graph))
        if form := said.get("party"):
            quads.append(Quad(self.iri, KG.affiliationAsRecorded, Literal(form), graph))
            if (party := self.shared.party(form)) is not None:
                node = mint("membership", self.key[1], "party", unquote(party.value.rpartition("/")[2]), self.key[2])
                quads += self._dated(node, party, graph)
        return quads

    def _dated(self, node: NamedNode, organization: NamedNode, graph: NamedNode) -> Iterator[Quad]:
        yield Quad(node, RDF.type, ORG.Membership, graph)
        yield Quad(node, ORG.member, self.member, graph)
        yield Quad(node, ORG.organization, organization, graph)
        yield Quad(node, SCHEMA.startDate, Literal(self.first, datatype=_TYPES[len(self.first)]), graph)
        if self.last is not None:
            yield Quad(node, SCHEMA.endDate, Literal(self.last, datatype=_TYPES[len(self.last)]), graph)


def _read_rows(file: File, mapping: RegisterMapping) -> tuple[Mapping[str, int], list[_Row]]:
    """Read a file: the places of its columns by field, and its rows. Raises SourceError if it is not a register."""
    header, records = csv_rows(file.path)
    known = {name: (mapping.columns[name],) if name in mapping.columns else forms for name, forms in _COLUMNS.items()}
    if absent := [column for column in mapping.columns.values() if plain(column) not in map(plain, header)]:
        raise SourceError(f"{file.path}: missing column {', '.join(map(repr, absent))} of the mapping.")
    taken = set(map(plain, mapping.columns.values()))
    places: dict[str, int] = {}
    for place, column in enumerate(header):
        for name, forms in known.items():
            if plain(column) in map(plain, forms) and (name in mapping.columns or plain(column) not in taken):
                places.setdefault(name, place)
    is_named = "name" in places or "family_name" in places
    if not is_named or not {"from", "person_id"} & places.keys():
        raise SourceError(
            f"{file.path}: not a register of members. It needs the columns 'name' and 'from', or 'name' and "
            f"'person_id'. Available: {', '.join(filter(None, header))}. --mapping gives other names of columns."
        )
    rows = []
    for number, cells in records:
        if not any(cell.strip() for cell in cells) or cells[0].lstrip().startswith("#"):
            continue
        said = {name: text for name, place in places.items() if (text := _cell(cells, place))}
        parts = [said[name] for name in ("given_name", "family_name") if name in said]
        if "name" not in said and "family_name" in said:
            said["name"] = " ".join(parts)
        if said.get("name", "-").casefold() in _NOBODY:
            said.pop("name", None)
        rows.append(_Row(file, number, said, _other_names(header, cells, places)))
    return places, rows


def _other_names(header: Sequence[str], cells: Sequence[str], places: Mapping[str, int]) -> list[str]:
    """Return the other names of a row. Columns without a name that follow theirs contain more of them."""
    place = places.get("other_names")
    if place is None:
        return []
    names = [name for each in cells[place : place + 1] for name in each.split(";")]
    for further in range(place + 1, len(cells)):
        if further < len(header) and header[further].strip():
            break
        names.append(cells[further])
    return [name.strip() for name in names if name.strip()]


def _cell(cells: Sequence[str], place: int) -> str | None:
    return present(cells[place].strip()) if place < len(cells) else None
