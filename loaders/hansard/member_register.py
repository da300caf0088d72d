"""The loader ``members``: a dated register of the members of a parliament, one record per term of a member.

A register is a table, or several that are loaded together. Columns are found by name, in any order:

- ``name`` (required), ``from`` (required), ``to``, ``chamber``, ``seat``, ``state``, ``party``, ``person_id``,
  ``other_names`` (separated by semicolons). A change of party is a row of its own.
- A table with ``name`` and ``person_id`` but without ``from`` lists people: it gives identifiers and other names to the
  rows with that name. ``person_number`` in both tables identifies the person where several have one name.

The names of the register of openaustralia-parser (``Date of election``, ``aph id``, ...) are understood too. Days are
``YYYY-MM-DD`` or ``D.M.YYYY``. Without ``to`` a term has not ended. Empty rows, and rows that begin with ``#``, are
skipped. The chamber of a file without that column is given by ``--chamber`` or by its name (``senators.csv``).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final, NamedTuple

from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import InvalidInputError, RecordError, SourceError
from kg.vocabulary import KG, ORG, RDF, SCHEMA, XSD, mint, sha256
from loaders.hansard.authorities import Authorities
from loaders.hansard.person_names import fold_name, strip_titles
from loaders.hansard.table_columns import chamber_of, plain
from loaders.model import Notice, Origin, Rejection, SourceGraph
from loaders.readers.cells import present, quote, to_slug
from loaders.readers.formats import csv_rows
from loaders.readers.locations import File

DOMAIN: Final = "members"
VERSION: Final = "1"
FORMATS: Final = (".csv",)
_LISTED: Final = 12
"""Maximum number of unknown forms that a notice lists; further ones are counted."""

_COLUMNS: Final[Mapping[str, Sequence[str]]] = {
    "person_id": ("person_id", "aph id"),
    "person_number": ("person_number", "person count"),
    "name": ("name", "member"),
    "other_names": ("other_names", "alt name"),
    "chamber": ("chamber",),
    "seat": ("seat", "electorate", "division"),
    "state": ("state", "state/territory"),
    "party": ("party", "most recent party"),
    "from": ("from", "date of election"),
    "to": ("to", "date ceased to be a member"),
}
_CHAMBER_OF_FILE: Final = {"senators": "Senate", "representatives": "House of Representatives"}
_DAY: Final = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")
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

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Reading:
        """Build a reading from options. Raises InvalidInputError for an unknown chamber."""
        try:
            if (chamber := options.get("chamber")) is not None:
                chamber_of(chamber)
        except RecordError as error:
            raise InvalidInputError(f"--chamber: {error}") from error
        return cls(chamber)

    def read(self, files: Sequence[File]) -> Iterator[Item]:
        """Yield the terms of a register, and notices about its files. A row that cannot be read is a Rejection."""
        people, terms = _People(), list[_Row]()
        for file in files:
            try:
                columns, rows = _read_rows(file)
            except SourceError as error:
                yield Rejection(file.path.name, str(error), (Origin(file.snapshot),))
                continue
            yield Notice(
                f"{file.snapshot.source}: {'terms' if 'from' in columns else 'people'} of a register of members"
            )
            for row in rows:
                if "from" in columns:
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
                        f"seat in the same days ({shared[at]}). Give each person a person_id, or end the earlier term."
                    )
                yield self._build_record(row, people.find(row), unknown)
            except RecordError as error:
                name = row.said.get("name", "")
                yield Rejection(f"{name} (row {row.number})", str(error), (row.origin,))
        for kind, forms in unknown.items():
            listed = ", ".join(map(quote, sorted(forms)[:_LISTED]))
            more = f" and {len(forms) - _LISTED} more" if len(forms) > _LISTED else ""
            yield Notice(f"{kind} {listed}{more}: no known {kind}, so it is kept as recorded only", warning=True)

    def _find_shared_names(self, terms: Sequence[_Row], people: _People) -> Mapping[tuple[File, int], str]:
        """Find the rows without an identifier whose name two people have: their terms in two seats overlap."""
        by_name: dict[tuple[str, str | None], list[tuple[str, str, str, _Row]]] = defaultdict(list)
        for row in terms:
            if row.said.get("person_id") or people.find(row) is not None:
                continue
            try:
                first, last = _parse_day(row.said.get("from")), _parse_day(row.said.get("to"))
            except RecordError:
                continue
            if first is not None and (area := row.said.get("seat") or row.said.get("state")):
                name = fold_name(strip_titles(row.said["name"]))
                end = (last or date.max).isoformat()
                by_name[name, self._chamber_form(row)].append((first.isoformat(), end, fold_name(area), row))
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

    def _build_record(self, row: _Row, person: _Row | None, unknown: dict[str, set[str]]) -> SourceGraph:
        said = row.said
        first, last = _parse_day(said.get("from")), _parse_day(said.get("to"))
        if first is None:
            raise RecordError(f"row {row.number} has no day in 'from'")
        if last is not None and last < first:
            raise RecordError(f"row {row.number} ends ({last}) before it begins ({first})")
        form = self._chamber_form(row)
        if form is None:
            raise RecordError(f"row {row.number} names no chamber. Add a column 'chamber', or give --chamber.")
        chamber = chamber_of(form)
        names = list(dict.fromkeys([said["name"], *row.other_names]))
        if person is not None:
            names = list(dict.fromkeys([*names, person.said["name"], *person.other_names]))
        shared = Authorities(chamber, last or first)  # a register lists the last party of a term
        member = _member(shared, row, person, chamber, names)
        record = _Term(row, first, last, chamber, member, names, shared)
        quads = record.build_quads()
        for kind, forms in shared.unknown.items():
            unknown[kind].update(forms)
        origins = [row.origin] if person is None else [row.origin, person.origin]
        read = repr((sorted(said.items()), form, names, member.value))
        return SourceGraph(DOMAIN, record.key, record.iri, quads, origins, sha256(read), shared.graphs)


def _member(shared: Authorities, row: _Row, person: _Row | None, chamber: NamedNode, names: Sequence[str]) -> NamedNode:
    """Return the person of a term. Rows without an identifier are of one person if name and chamber are the same."""
    bare = [strip_titles(name) for name in names]
    identifier = row.said.get("person_id") or (person.said.get("person_id") if person is not None else None)
    if identifier:
        return shared.registered(bare, identifier.strip().upper())
    number = person.said.get("person_number") if person is not None else None
    told_apart = f"number {number}" if number else chamber.value
    main = strip_titles(person.said["name"]) if person is not None else bare[0]
    key = f"register-{to_slug(main)}-{sha256(f'{fold_name(main)} {told_apart}')[:8]}"
    return shared.registered(bare, None, key)


@dataclass(frozen=True, slots=True)
class _Term:
    """The term of a member, to be written as quads."""

    row: _Row
    first: date
    last: date | None
    chamber: NamedNode
    member: NamedNode
    names: Sequence[str]
    shared: Authorities

    @property
    def key(self) -> tuple[str, ...]:
        return self.chamber.value.rpartition("/")[2], self.member.value.rpartition("/")[2], self.first.isoformat()

    @property
    def iri(self) -> NamedNode:
        return mint("membership", self.key[1], "chamber", self.key[0], self.key[2])

    def build_quads(self) -> list[Quad]:
        said, graph = self.row.said, mint("graph", "src", DOMAIN, *self.key)
        quads = [*self._dated(self.iri, self.chamber, graph), Quad(self.iri, ORG.role, _MEMBER, graph)]
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
                node = mint("membership", self.key[1], "party", party.value.rpartition("/")[2], self.key[2])
                quads += self._dated(node, party, graph)
        return quads

    def _dated(self, node: NamedNode, organization: NamedNode, graph: NamedNode) -> Iterator[Quad]:
        yield Quad(node, RDF.type, ORG.Membership, graph)
        yield Quad(node, ORG.member, self.member, graph)
        yield Quad(node, ORG.organization, organization, graph)
        yield Quad(node, SCHEMA.startDate, Literal(self.first.isoformat(), datatype=XSD.date), graph)
        if self.last is not None:
            yield Quad(node, SCHEMA.endDate, Literal(self.last.isoformat(), datatype=XSD.date), graph)


def _read_rows(file: File) -> tuple[Mapping[str, int], list[_Row]]:
    """Read a file: the places of its columns by field, and its rows. Raises SourceError if it is not a register."""
    header, records = csv_rows(file.path)
    places: dict[str, int] = {}
    for place, column in enumerate(header):
        for name, forms in _COLUMNS.items():
            if plain(column) in map(plain, forms):
                places.setdefault(name, place)
    if "name" not in places or not {"from", "person_id"} & places.keys():
        raise SourceError(
            f"{file.path}: not a register of members. It needs the columns 'name' and 'from', or 'name' and "
            f"'person_id'. Available: {', '.join(filter(None, header))}."
        )
    rows = []
    for number, cells in records:
        if not any(cell.strip() for cell in cells) or cells[0].lstrip().startswith("#"):
            continue
        said = {name: text for name, place in places.items() if (text := _cell(cells, place))}
        if "name" not in said:
            continue
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


def _parse_day(text: str | None) -> date | None:
    """Parse a day. Raises RecordError for another form."""
    if text is None:
        return None
    try:
        if match := _DAY.fullmatch(text.strip()):
            return date(int(match[3]), int(match[2]), int(match[1]))
        return date.fromisoformat(text.strip())
    except ValueError:
        raise RecordError(f"{quote(text)} is not a day. Use YYYY-MM-DD or D.M.YYYY.") from None
