"""Speeches in tables: one a row, or the rows of one turn together.

Two families of columns are known, in any mixture. The columns of one speech a row say all of it (``speech_id``,
``speaker``, ``chamber``, ``text`` and so on). The columns of research data sets have a row for each stretch of words
(``name``, ``order``, ``speech_no``, ``interject``, ``body``): there the rows that follow each other under one
``speech_no`` are one turn. Its first row says who has the floor, further rows of the same person are continuations,
whether or not they are flagged as interjections, and what the chair or a flagged row of somebody else says is an
interjection. A row of a third person who is not flagged, or one whose flags of question and answer are others than
those of the turn, begins a turn of its own. Rows that nobody spoke ("stage direction") are procedure, not speeches.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Final, TypeVar

from pyoxigraph import NamedNode

from kg.errors import InvalidInputError, RecordError, SourceError
from kg.vocabulary import mint, sha256
from loaders.hansard import parties
from loaders.hansard.authorities import Authorities, identifier_of, office_of
from loaders.hansard.model import Speech, SpeechKind, Talker, Utterance
from loaders.hansard.speeches import Recorded, Writer, day_of, label_of
from loaders.model import Notice, Origin, Rejection, SourceGraph
from loaders.readers.cells import items, present, truth, web_address, whole_number
from loaders.readers.formats import Sheet, json_sheet, open_sheet, surrogate_in
from loaders.readers.locations import File
from loaders.readers.tables import parquet_sheet

COLUMNS: Final[Mapping[str, Sequence[str]]] = {
    "id": ("speech_id",),
    "title": ("title",),
    "speaker": ("speaker", "name"),
    "name_id": ("name_id",),
    "party": ("party",),
    "chamber": ("chamber",),
    "senate": ("senate_flag",),
    "electorate": ("electorate",),
    "state": ("state",),
    "role": ("role",),
    "in_government": ("in_gov",),
    "first_speech": ("first_speech",),
    "date": ("date",),
    "time": ("time_stamp",),
    "page": ("page_no",),
    "reference": ("hansard_reference",),
    "topics": ("topic_tags",),
    "debate_type": ("debate_type",),
    "source": ("source_url",),
    "quality": ("transcript_quality",),
    "order": ("order",),
    "turn": ("speech_no",),
    "question": ("question",),
    "answer": ("answer",),
    "written": ("q_in_writing",),
    "interjection": ("interject",),
    "division": ("div_flag",),
    "text": ("text", "body"),
}
"""Of each field the columns that hold it, of several the first with a value. Case and punctuation do not count."""
QUALITIES: Final = ("verbatim", "edited", "summary")
WITHIN: Final = "speeches"
"""The member of a JSON object that holds the speeches."""

_PROCEDURE: Final = frozenset({"business start", "business end", "stage direction", "division"})
_SENATOR: Final = re.compile(r"\bsen(?:ator)?\b", re.IGNORECASE)
_DAY: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?| 00:00:00(?:\.0+)?)?"
)
_NAMED: Final = 5
_EASTERNMOST: Final = timedelta(hours=14)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Given:
    """What whoever loads says of files that do not say it."""

    chamber: str | None = None
    date: date | None = None


@dataclass(frozen=True, slots=True)
class _Cells:
    """A row by field; `on` and `chamber` are worked out."""

    number: int
    said: Mapping[str, str | None]
    problem: str | None = None

    def __getitem__(self, name: str) -> str | None:
        return present(self.said.get(name))

    @property
    def text(self) -> str | None:
        """Its words, as they are."""
        text = self.said.get("text")
        return text if text is not None and text.strip() else None

    @property
    def talker(self) -> Talker:
        """Who speaks."""
        return Talker(
            self["speaker"] or "", None, self["name_id"], self["electorate"], self["party"], self["state"], self["role"]
        )


def iso_day(text: str) -> date:
    """Return the day that an ISO 8601 date (or time) is of.

    Raises RecordError for what is none, and for a day that has begun nowhere yet.
    """
    match = _DAY.fullmatch(text.strip())
    try:
        found = date.fromisoformat(match[1] if match else "")
    except ValueError:
        raise RecordError(f"the date {text!r} is not an ISO 8601 date, such as 2024-10-15") from None
    return not_in_future(found)


def not_in_future(day: date) -> date:
    """Return the day. Raises RecordError when it has begun nowhere yet."""
    if day > (datetime.now(UTC) + _EASTERNMOST).date():
        raise RecordError(f"the date {day.isoformat()} lies in the future")
    return day


def chamber_of(form: str) -> NamedNode:
    """Return the chamber that a form names. Raises RecordError, naming the valid ones, when it names none."""
    found = parties.chamber(form)
    if found is None:
        raise RecordError(f"the chamber {form!r} is neither 'House of Representatives' nor 'Senate'")
    return found


def opened(path: Path) -> Sheet:
    """Open a table. Raises SourceError when it is empty or not of its format, or has no words or no speakers."""
    ending = path.suffix.lower()
    if ending == ".parquet":
        return parquet_sheet(path)
    return json_sheet(path, WITHIN) if ending == ".json" else open_sheet(path)


def read(domain: str, file: File, given: Given) -> Iterator[SourceGraph | Rejection | Notice]:
    """Yield the speeches of one file, in its order. Raises SourceError when it cannot be read (further)."""
    sheet = opened(file.path)
    table = _Table(domain, file, sheet, given)
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
    places: dict[str, list[str]] = field(init=False)
    """Of each field the names of its columns in this file."""
    trusts_flag: bool = field(init=False, default=True)
    day: date | None = field(init=False, default=None)
    procedure: dict[str, list[int]] = field(init=False, default_factory=lambda: defaultdict(list))
    lacking: dict[str, list[str]] = field(init=False, default_factory=lambda: defaultdict(list))
    count: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        names = {_plain(name): name for name in reversed(self.sheet.columns)}
        self.places = {
            field_: [names.get(_plain(column), column) for column in columns] for field_, columns in COLUMNS.items()
        }
        missing = [
            " or ".join(map(repr, COLUMNS[name]))
            for name in ("text", "speaker")
            if not any(_plain(column) in names for column in COLUMNS[name])
        ]
        if missing:
            seen = ", ".join(map(repr, self.sheet.columns))
            hint = ""
            if len(self.sheet.columns) == 1:
                hint = "; that is one column: a comma, semicolon, tab or | separates the columns of a CSV file"
            raise SourceError(f"{self.file.path}: no column {' and no column '.join(missing)}; there is {seen}{hint}")

    @property
    def source(self) -> str:
        return self.file.snapshot.source

    def notices(self) -> Iterator[Notice]:
        """Yield what to say before the speeches: what is read, and what stands for what the file lacks."""
        known = {_plain(column) for columns in COLUMNS.values() for column in columns}
        unread = [name for name in self.sheet.columns if _plain(name) not in known]
        yield Notice(f"{self.source}: a table of speeches")
        if unread:
            yield Notice(f"{self.source}: columns that are not read: {', '.join(map(repr, unread))}", warning=True)
        day = self._day_of_name() if self.given.date is None else None
        if day is not None and any(row["date"] is None for row in self._rows()):
            self.day = day
            yield Notice(f"{self.source}: rows without a date are of {day}, for so the file is named", warning=True)
        if self.given.chamber is None and self._is_flag_wrong():
            self.trusts_flag = False
            yield Notice(
                f"{self.source}: senate_flag is 0 beside names of senators, so it is not relied on", warning=True
            )

    def _day_of_name(self) -> date | None:
        try:
            return iso_day(Path(self.source).stem)
        except RecordError:
            return None

    def _is_flag_wrong(self) -> bool:
        rows = (row for row in self._rows() if row["chamber"] is None)
        return any(row["senate"] in ("0", "0.0") and _SENATOR.search(row["speaker"] or "") for row in rows)

    def _rows(self) -> Iterator[_Cells]:
        columns = list(dict.fromkeys(name for names in self.places.values() for name in names))
        text = next((name for name in self.places["text"] if name in self.sheet.columns), self.places["text"][0])
        for place, row in enumerate(self.sheet.rows(columns, text)):
            cells = dict(zip(columns, row.cells, strict=True))
            said = {
                name: next((cells[each] for each in names if present(cells[each]) is not None), None)
                for name, names in self.places.items()
            }
            # Words are words, be they "None".
            said["text"] = next((cells[each] for each in self.places["text"] if cells[each] is not None), None)
            yield _Cells(row.number if self.file.rows is None else self.file.rows[place], said, row.problem)

    def turns(self) -> Iterator[Sequence[_Cells]]:
        """Yield the rows of each turn; those of procedure are put aside."""
        turn: list[_Cells] = []
        for row in self._rows():
            name = (row["speaker"] or "").strip().casefold()
            if row.problem is None and (name in _PROCEDURE or (not name and row["division"] in ("1", "1.0", "true"))):
                self.procedure[name or "division"].append(row.number)
            elif turn and _goes_on(turn, row):
                turn.append(row)
            else:
                if turn:
                    yield turn
                turn = [row]
        if turn:
            yield turn

    def record(self, rows: Sequence[_Cells]) -> SourceGraph | Rejection:
        """Return the record of a turn, or why there is none."""
        head = rows[0]
        self.count += 1
        numbers = [row.number for row in rows]
        said_id, key = head["id"], None
        try:
            if problems := [f"row {row.number} {row.problem}" for row in rows if row.problem]:
                raise RecordError("; ".join(problems[:_NAMED]))
            if said_id is not None:
                key = "speech", said_id.strip()
            recorded, warnings = self._recorded(rows)
            key = "speech", recorded.id
            return self._graph(recorded, rows, warnings)
        except (RecordError, InvalidInputError) as error:
            name = said_id or f"{Path(self.source).name} row {numbers[0]}"
            return Rejection(name, str(error), (Origin(self.file.snapshot, numbers),), key)

    def _graph(self, recorded: Recorded, rows: Sequence[_Cells], warnings: Sequence[str]) -> SourceGraph:
        key = "speech", recorded.id
        shared = Authorities(recorded.chamber, recorded.on)
        writer = Writer(mint("graph", "src", self.domain, *key), shared)
        writer.speech(recorded)
        # Chunks, and so the rows that they are read from, follow the utterances; there is one utterance a row, or none.
        ends = [each.end for each in recorded.speech.utterances] or [len(recorded.speech.text)]
        numbers, place = [], 0
        for unit in writer.units:
            while int(unit.properties[0][1].value) >= ends[place]:
                place += 1
            numbers.append(rows[place].number)
        # What the shapes cannot see, since something stands for it. They warn of the rest that is recommended.
        for name, value in (("title", rows[0]["title"]), ("hansard_reference", rows[0]["reference"])):
            if value is None:
                self.lacking[name].append(recorded.id)
        return SourceGraph(
            self.domain,
            key,
            recorded.iri,
            writer.quads,
            (Origin(self.file.snapshot, numbers),),
            sha256(repr(recorded)),
            shared.graphs,
            [f"speech {recorded.id}: {warning}" for warning in (*warnings, *shared.warnings())],
            units=writer.units,
        )

    def summary(self) -> Iterator[Notice]:
        """Yield what to say once all is read: what speeches lack, and which rows are none."""
        for name, ids in self.lacking.items():
            some = ", ".join(ids[:_NAMED]) + (", ..." if len(ids) > _NAMED else "")
            yield Notice(f"{self.source}: no {name} in {len(ids)} of {self.count} speeches ({some})", warning=True)
        for name, numbers in self.procedure.items():
            some = ", ".join(map(str, numbers[:_NAMED])) + (", ..." if len(numbers) > _NAMED else "")
            yield Notice(f"{self.source}: rows of procedure ({name!r}), which are no speeches: {some}", warning=True)

    def _recorded(self, rows: Sequence[_Cells]) -> tuple[Recorded, Sequence[str]]:
        head = rows[0]
        warnings: list[str] = []
        on = iso_day(said) if (said := head["date"]) else self.given.date or self.day
        chamber_form = self._chamber_form(head)
        if on is None or chamber_form is None or head["speaker"] is None or head.text is None:
            has = {"text": head.text, "speaker": head["speaker"], "date": on, "chamber": chamber_form}
            missing = [name for name, value in has.items() if value is None]
            options = " and ".join(f"--{name}" for name in missing if name in ("date", "chamber"))
            hint = f"; {options} can say it" if options else ""
            raise RecordError(f"row {head.number} lacks {', '.join(missing)}{hint}")
        chamber = chamber_of(chamber_form)
        order = self._read(head, "order", whole_number, warnings)
        speech = self._speech(rows, order, warnings)
        title = head["title"]
        source = head["source"]
        address = web_address(source) if source else None
        if source and address is None:
            warnings.append(f"the source {source!r} is no web address")
        quality = (head["quality"] or QUALITIES[0]).strip().casefold()
        if quality not in QUALITIES:
            raise RecordError(f"the transcript quality {quality!r} is none of {', '.join(QUALITIES)}")
        fields = [on.isoformat(), chamber.value, speech.talker.name, "" if order is None else str(order), speech.text]
        made = sha256("\n".join(f"{len(each)}:{each}" for each in fields))[:24]
        return Recorded(
            (head["id"] or made).strip(),
            speech,
            chamber,
            on,
            title or f"{speech.talker.name}, {label_of(chamber)}, {day_of(on)}",
            chamber_form if head["chamber"] else None,
            parties.venue(chamber_form),
            head["reference"],
            head["debate_type"],
            tuple(dict.fromkeys(items(head["topics"], ",;|"))),
            quality,
            address,
            position=order,
        ), warnings

    def _chamber_form(self, row: _Cells) -> str | None:
        if form := row["chamber"]:
            return form
        if self.given.chamber is not None:
            return self.given.chamber
        if self.trusts_flag and (flag := row["senate"]) is not None:
            found = parties.chamber_of_flag(flag)
            return None if found is None else label_of(found)
        return None

    def _speech(self, rows: Sequence[_Cells], order: int | None, warnings: list[str]) -> Speech:
        texts, utterances, start = [], [], 0
        for row in rows:
            if row.text is None:
                raise RecordError(f"row {row.number} lacks text")
            if (found := surrogate_in(row.text)) is not None:
                raise RecordError(f"row {row.number} has the lone surrogate {found}, which is not a character")
            texts.append(row.text)
            end = start + len(row.text) + (row is not rows[-1])
            own = _is_same(rows[0], row)
            utterances.append(
                Utterance(
                    "turn" if row is rows[0] else "continuation" if own else "interjection",
                    start,
                    end,
                    row.talker,
                    self._read(row, "time", time.fromisoformat, warnings),
                    _page(row["page"]),
                )
            )
            start = end
        head = rows[0]
        talker = replace(
            head.talker,
            in_government=self._read(head, "in_government", truth, warnings),
            first_speech=self._read(head, "first_speech", truth, warnings),
        )
        return Speech(
            0 if order is None else order,
            _kind(head),
            talker,
            "\n".join(texts),
            tuple(utterances) if len(rows) > 1 else (),
            time=utterances[0].time,
            page=utterances[0].page,
        )

    def _read(self, row: _Cells, name: str, parse: Callable[[str], T], warnings: list[str]) -> T | None:
        text = row[name]
        if text is None:
            return None
        try:
            return parse(text.strip())
        except (RecordError, ValueError):
            column = COLUMNS[name][0]
            warnings.append(f"{column} {text!r} in row {row.number} cannot be read and is left out")
            return None


def _goes_on(turn: Sequence[_Cells], row: _Cells) -> bool:
    """Whether a row belongs to the turn that the rows before it are."""
    head = turn[0]
    number = head["turn"]
    if number is None or row["turn"] != number or any(row[name] != head[name] for name in ("id", "date", "chamber")):
        return False
    if _is_flagged(row, "interjection") or office_of(row.talker) is not None:
        return True
    return _is_same(head, row) and _kind(row) == _kind(head)


def _is_same(head: _Cells, row: _Cells) -> bool:
    one, other = head.talker, row.talker
    ids = identifier_of(one), identifier_of(other)
    if None not in ids:
        return ids[0] == ids[1]
    return " ".join(one.name.casefold().split()) == " ".join(other.name.casefold().split())


def _kind(row: _Cells) -> SpeechKind:
    written = _is_flagged(row, "written")
    if _is_flagged(row, "question"):
        return "writtenQuestion" if written else "question"
    if _is_flagged(row, "answer"):
        return "writtenAnswer" if written else "answer"
    return "interjection" if _is_flagged(row, "interjection") else "speech"


def _is_flagged(row: _Cells, name: str) -> bool:
    try:
        return truth(row[name])
    except RecordError:
        return False


def _page(text: str | None) -> str | None:
    """A page as it is printed: numbers may come as ``8.0``."""
    if text is None:
        return None
    try:
        return str(whole_number(text))
    except RecordError:
        return text.strip()


def _plain(name: str) -> str:
    """The name of a column without what does not count."""
    return re.sub(r"[^a-z0-9]+", "", name.casefold())
