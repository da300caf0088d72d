"""Speeches in tables: one per row, or several rows per turn (`table_columns`)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, time
from pathlib import Path
from typing import Final, TypeVar

from kg.errors import InvalidInputError, RecordError, SourceError
from kg.text import quoted
from kg.vocabulary import mint, sha256
from loaders.hansard import parties
from loaders.hansard.authorities import Authorities
from loaders.hansard.identifiers import Identifiers, describe_doubtful
from loaders.hansard.parliaments import AUSTRALIAN, NAMING, Parliament, find_code, is_australian
from loaders.hansard.sitting_model import Speech, Utterance
from loaders.hansard.speech_records import Recorded, Writer, label_of
from loaders.hansard.table_columns import (
    COLUMNS,
    Cells,
    chamber_of,
    is_same,
    is_same_turn,
    iso_day,
    kind_of,
    page_of,
    plain,
)
from loaders.model import Notice, Origin, Rejection, SourceGraph
from loaders.readers.cells import parse_boolean, parse_integer, parse_items, parse_web_address, present, quote
from loaders.readers.formats import Sheet, json_sheet, open_sheet, surrogate_in
from loaders.readers.locations import File

QUALITIES: Final = ("verbatim", "edited", "summary")
WITHIN: Final = "speeches"
"""The member of a JSON object that contains the speeches."""

_PROCEDURE: Final = frozenset({"business start", "business end", "stage direction", "division"})
_SENATOR: Final = re.compile(r"\bsen(?:ator)?\b", re.IGNORECASE)
_NAMED: Final = 5
_SHOWN: Final = 200
"""Maximum characters of an id in a message about a refused row."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Given:
    """Options for values that the files lack."""

    chamber: str | None = None
    date: date | None = None
    jurisdiction: str | None = None
    """The code of the parliament."""


def open_table(path: Path) -> Sheet:
    """Open a table. Raises SourceError if it is empty, not in its format, or lacks columns for text or speakers."""
    ending = path.suffix.lower()
    if ending == ".parquet":
        from loaders.readers.tables import parquet_sheet  # loads DuckDB, which is slow

        return parquet_sheet(path)
    return json_sheet(path, WITHIN) if ending == ".json" else open_sheet(path)


def read(domain: str, file: File, given: Given, identifiers: Identifiers) -> Iterator[SourceGraph | Rejection | Notice]:
    """Yield the speeches of one file, in its order. Raises SourceError where it cannot be read any further, and for one
    that names no parliament or has no speech.
    """
    sheet = open_table(file.path)
    table = _Table(domain, file, sheet, given, identifiers)
    for warning in sheet.warnings:
        yield Notice(warning, warning=True)
    yield from table.notices()
    for turn in table.turns():
        yield table.record(turn)
    yield from table.summary()


@dataclass(slots=True)
class _Table:
    domain: str
    file: File
    sheet: Sheet
    given: Given
    identifiers: Identifiers
    code: str | None = field(init=False, default=None)
    """The code of the parliament of rows that name none."""
    doubtful: Counter[tuple[str, str]] = field(init=False, default_factory=Counter)
    """The records, by identifier and recorded name, whose identifier is that of another person."""
    places: dict[str, list[str]] = field(init=False)
    """The columns of this file for each field."""
    trusts_flag: bool = field(init=False, default=True)
    day: date | None = field(init=False, default=None)
    procedure: dict[str, list[int]] = field(init=False, default_factory=lambda: defaultdict(list))
    lacking: dict[str, list[str]] = field(init=False, default_factory=lambda: defaultdict(list))
    count: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        names = {plain(name): name for name in reversed(self.sheet.columns)}
        self.places = {
            field_: [names.get(plain(column), column) for column in columns] for field_, columns in COLUMNS.items()
        }
        missing = [
            " or ".join(map(repr, COLUMNS[name]))
            for name in ("text", "speaker")
            if not any(plain(column) in names for column in COLUMNS[name])
        ]
        if missing:
            seen = ", ".join(map(repr, self.sheet.columns))
            hint = ""
            if len(self.sheet.columns) == 1:
                hint = " The file has one column: separate the columns of a CSV file by a comma, semicolon, tab or |."
            raise SourceError(f"{self.file.path}: missing column {' and '.join(missing)}. Available: {seen}.{hint}")
        self.code = self.given.jurisdiction
        if self.code is None and is_australian(names.keys(), self._states()):
            self.code = AUSTRALIAN
        if self.code is None and not self._has("jurisdiction"):
            raise SourceError(f"{self.file.path}: the table names no parliament. {NAMING}")

    def _states(self) -> set[str]:
        """Return the states that the rows name."""
        return {row["state"] for row in self._rows(("state",)) if row["state"]} if self._has("state") else set()

    def _has(self, field_: str) -> bool:
        """Whether the file has a column of a field."""
        return any(column in self.sheet.columns for column in self.places[field_])

    @property
    def source(self) -> str:
        return self.file.snapshot.source

    def notices(self) -> Iterator[Notice]:
        """Yield notices about the columns, before the speeches."""
        known = {plain(column) for columns in COLUMNS.values() for column in columns}
        unread = [name for name in self.sheet.columns if plain(name) not in known]
        yield Notice(f"{self.source}: a table of speeches")
        if unread:
            yield Notice(f"{self.source}: unknown columns, skipped: {', '.join(map(repr, unread))}", warning=True)
        day = self._day_of_name() if self.given.date is None else None
        if day is not None and any(row["date"] is None for row in self._rows(("date",))):
            self.day = day
            yield Notice(f"{self.source}: rows without a date have the date {day} of the file name", warning=True)
        if self.given.chamber is None and self._is_flag_wrong():
            self.trusts_flag = False
            yield Notice(f"{self.source}: senate_flag is 0 in rows of senators, so it is ignored", warning=True)
        if self._has("name_id"):
            rows = self._rows(("speaker", "name_id", "jurisdiction"))
            self.identifiers.add(row.talker for row in rows if self._is_of_australia(row))

    def _is_of_australia(self, row: Cells) -> bool:
        try:
            return self._code(row) == AUSTRALIAN
        except RecordError:
            return False

    def _code(self, row: Cells) -> str:
        """Return the code of the parliament of a row. Raises RecordError if it names none that is known."""
        if (named := row["jurisdiction"]) is not None:
            try:
                return find_code(named)
            except RecordError:
                # A column "parliament" may have the number of one, or its name next to the option.
                if not named.strip().removesuffix(".0").isdecimal() and self.given.jurisdiction is None:
                    raise
        if self.code is None:
            raise RecordError(f"row {row.number} names no parliament. {NAMING}")
        return self.code

    def _day_of_name(self) -> date | None:
        try:
            return iso_day(Path(self.source).stem)
        except RecordError:
            return None

    def _is_flag_wrong(self) -> bool:
        rows = (row for row in self._rows(("chamber", "senate", "speaker")) if row["chamber"] is None)
        return any(row["senate"] in ("0", "0.0") and _SENATOR.search(row["speaker"] or "") for row in rows)

    def _rows(self, fields: Sequence[str] = tuple(COLUMNS)) -> Iterator[Cells]:
        """Yield the rows with the cells of `fields`."""
        text = next((name for name in self.places["text"] if name in self.sheet.columns), self.places["text"][0])
        columns = list(dict.fromkeys([text, *(each for name in fields for each in self.places[name])]))
        indexes = {name: [columns.index(each) for each in self.places[name]] for name in fields}
        for place, row in enumerate(self.sheet.rows(columns, text)):
            cells = row.cells
            said = {
                name: next((cell for each in at if present(cell := cells[each]) is not None), None)
                for name, at in indexes.items()
                if name != "text"
            }
            # Words are words, be they "None".
            said["text"] = next((cells[each] for each in indexes.get("text", ()) if cells[each] is not None), None)
            yield Cells(row.number if self.file.rows is None else self.file.rows[place], said, row.problem)

    def turns(self) -> Iterator[Sequence[Cells]]:
        """Yield the rows of each turn. Rows of procedure are set aside."""
        turn: list[Cells] = []
        for row in self._rows():
            name = (row["speaker"] or "").strip().casefold()
            if row.problem is None and (name in _PROCEDURE or (not name and row["division"] in ("1", "1.0", "true"))):
                self.procedure[name or "division"].append(row.number)
            elif turn and is_same_turn(turn, row):
                turn.append(row)
            else:
                if turn:
                    yield turn
                turn = [row]
        if turn:
            yield turn

    def record(self, rows: Sequence[Cells]) -> SourceGraph | Rejection:
        """Build the record of a turn, or a Rejection with the reasons."""
        head = rows[0]
        self.count += 1
        numbers = [row.number for row in rows]
        key = None
        try:
            if problems := [f"row {row.number} {row.problem}" for row in rows if row.problem]:
                raise RecordError("; ".join(problems[:_NAMED]))
            if (identifier := head.identifier) is not None:
                key = "speech", identifier
            head.check_words()
            recorded, shared, warnings = self._recorded(rows)
            key = "speech", recorded.id
            return self._graph(recorded, shared, rows, warnings)
        except (RecordError, InvalidInputError) as error:
            name = (head["id"] or f"{Path(self.source).name} row {numbers[0]}")[:_SHOWN]
            return Rejection(name, str(error), (Origin(self.file.snapshot, numbers),), key)

    def _graph(
        self, recorded: Recorded, shared: Authorities | Parliament, rows: Sequence[Cells], warnings: Sequence[str]
    ) -> SourceGraph:
        key = "speech", recorded.id
        writer = Writer(mint("graph", "src", self.domain, *key), shared)
        writer.speech(recorded)
        # Chunks, and so the rows that they come from, follow the utterances; there is at most one utterance per row.
        ends = [each.end for each in recorded.speech.utterances] or [len(recorded.speech.text)]
        numbers, place = [], 0
        for unit in writer.units:
            while int(unit.properties[0][1].value) >= ends[place]:
                place += 1
            numbers.append(rows[place].number)
        doubtful = []
        if isinstance(shared, Authorities):
            talkers = [row.talker for row in rows if row["name_id"]]
            doubtful = [(each.name_id or "", each.name) for each in talkers if not self.identifiers.is_of(each)]
            self.doubtful.update(doubtful)
        # The shapes do not miss these, which sittings often lack. They warn about other recommended fields.
        for name, value in (("title", rows[0]["title"]), ("hansard_reference", rows[0]["reference"])):
            if value is None:
                self.lacking[name].append(recorded.id)
        return SourceGraph(
            self.domain,
            key,
            recorded.iri,
            writer.quads,
            (Origin(self.file.snapshot, numbers),),
            sha256(repr((recorded, doubtful))),
            shared.graphs,
            [f"speech {recorded.id}: {warning}" for warning in (*warnings, *shared.warnings())],
            units=writer.units,
        )

    def summary(self) -> Iterator[Notice]:
        """Yield notices after the last row: fields that speeches lack, and rows that are not speeches."""
        if self.doubtful:
            yield Notice(f"{self.source}: {describe_doubtful(self.doubtful)}", warning=True)
        for name, ids in self.lacking.items():
            some = ", ".join(ids[:_NAMED]) + (", ..." if len(ids) > _NAMED else "")
            yield Notice(f"{self.source}: no {name} in {len(ids)} of {self.count} speeches ({some})", warning=True)
        for name, numbers in self.procedure.items():
            some = ", ".join(map(str, numbers[:_NAMED])) + (", ..." if len(numbers) > _NAMED else "")
            yield Notice(
                f"{self.source}: rows of procedure ({quoted(name)}), not loaded as speeches: {some}", warning=True
            )
        if not self.count:
            raise SourceError(f"{self.file.path}: the file contains no speeches.")

    def _recorded(self, rows: Sequence[Cells]) -> tuple[Recorded, Authorities | Parliament, Sequence[str]]:
        head = rows[0]
        warnings: list[str] = []
        on = iso_day(said) if (said := head["date"]) else self.given.date or self.day
        chamber_form = self._chamber_form(head)
        if on is None or chamber_form is None or head["speaker"] is None or head.text is None:
            has = {"text": head.text, "speaker": head["speaker"], "date": on, "chamber": chamber_form}
            missing = [name for name, value in has.items() if value is None]
            options = " and ".join(f"--{name}" for name in missing if name in ("date", "chamber"))
            hint = f". Give {options}." if options else ""
            raise RecordError(f"row {head.number} lacks {', '.join(missing)}{hint}")
        code = self._code(head)
        shared: Authorities | Parliament
        if code == AUSTRALIAN:
            shared = Authorities(chamber_of(chamber_form), on, self.identifiers.is_of)
        else:
            shared = Parliament.of_chamber(code, chamber_form)
        chamber = shared.chamber
        order = self._read(head, "order", parse_integer, warnings)
        speech = self._speech(rows, order, warnings)
        source = head["source"]
        address = parse_web_address(source) if source else None
        if source and address is None:
            warnings.append(f"the source {quote(source)} is not a web address")
        quality = (head["quality"] or "").strip().casefold() or None
        if quality is not None and quality not in QUALITIES:
            raise RecordError(f"unknown transcript quality {quote(quality)}. Available: {', '.join(QUALITIES)}.")
        fields = [on.isoformat(), chamber.value, speech.talker.name, "" if order is None else str(order), speech.text]
        made = sha256("\n".join(f"{len(each)}:{each}" for each in fields))[:24]
        recorded = Recorded(
            (head["id"] or made).strip(),
            speech,
            chamber,
            on,
            head["title"],
            chamber_form if head["chamber"] else None,
            parties.venue(chamber_form) if code == AUSTRALIAN else None,
            head["reference"],
            head["debate_type"],
            tuple(dict.fromkeys(parse_items(head["topics"], ",;|"))),
            quality,
            address,
            position=order,
        )
        return recorded, shared, warnings

    def _chamber_form(self, row: Cells) -> str | None:
        if form := row["chamber"]:
            return form
        if self.given.chamber is not None:
            return self.given.chamber
        if self.trusts_flag and (flag := row["senate"]) is not None:
            found = parties.chamber_of_flag(flag)
            return None if found is None else label_of(found)
        return None

    def _speech(self, rows: Sequence[Cells], order: int | None, warnings: list[str]) -> Speech:
        texts, utterances, start = [], [], 0
        for row in rows:
            if row.text is None:
                raise RecordError(f"row {row.number} lacks text")
            if (found := surrogate_in(row.text)) is not None:
                raise RecordError(f"row {row.number} has the lone surrogate {found}, which is not a character")
            texts.append(row.text)
            end = start + len(row.text) + (row is not rows[-1])
            own = is_same(rows[0], row)
            utterances.append(
                Utterance(
                    "turn" if row is rows[0] else "continuation" if own else "interjection",
                    start,
                    end,
                    row.talker,
                    self._read(row, "time", time.fromisoformat, warnings),
                    page_of(row["page"]),
                )
            )
            start = end
        head = rows[0]
        talker = replace(
            head.talker,
            in_government=self._read(head, "in_government", parse_boolean, warnings),
            first_speech=self._read(head, "first_speech", parse_boolean, warnings),
        )
        return Speech(
            0 if order is None else order,
            kind_of(head),
            talker,
            "\n".join(texts),
            tuple(utterances) if len(rows) > 1 else (),
            time=utterances[0].time,
            page=utterances[0].page,
        )

    def _read(self, row: Cells, name: str, parse: Callable[[str], T], warnings: list[str]) -> T | None:
        text = row[name]
        if text is None:
            return None
        try:
            return parse(text.strip())
        except (RecordError, ValueError):
            column = COLUMNS[name][0]
            warnings.append(f"{column} {quote(text)} in row {row.number} cannot be parsed and is skipped")
            return None
