"""The columns of tables of speeches: the meaning of a cell, and the rows that form one turn.

Two families of columns are known, in any mixture. With one row per speech, the columns describe it completely
(``speech_id``, ``speaker``, ``chamber``, ``text`` and so on). Research data sets have one row per stretch of words
(``name``, ``order``, ``speech_no``, ``interject``, ``body``): consecutive rows with one ``speech_no`` are one turn.
Its first row names who has the floor. Further rows of the same person are continuations, even if they are flagged as
interjections. Words of the chair, and flagged rows of another person, are interjections. An unflagged row of a third
person, or a row with other flags of question and answer, begins a new turn. Rows that nobody spoke ("stage
direction") are procedure, not speeches.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from pyoxigraph import NamedNode

from kg.errors import RecordError
from kg.text import quoted
from loaders.hansard import parties
from loaders.hansard.offices import identifier_of, office_of
from loaders.hansard.sitting_model import SpeechKind, Talker
from loaders.readers.cells import is_structure, parse_boolean, parse_integer, present, quote

JURISDICTION: Final = ("jurisdiction", "country", "country_code", "iso3country", "iso3", "parliament")
"""Columns that name the parliament of a row."""
COLUMNS: Final[Mapping[str, Sequence[str]]] = {
    "id": ("speech_id",),
    "title": ("title",),
    "speaker": ("speaker", "name"),
    "name_id": ("name_id",),
    "party": ("party",),
    "jurisdiction": JURISDICTION,
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
"""The columns of each field; the first with a value is used. Case and punctuation are ignored."""
_DAY: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?| 00:00:00(?:\.0+)?)?"
)
_PLAIN: Final = (
    "id", "title", "speaker", "jurisdiction", "name_id", "party", "electorate", "state", "role", "reference",
    "debate_type",
)  # fmt: skip
"""Fields that are words, never a list or an object."""
_LONGEST_ID: Final = 500
_EASTERNMOST: Final = timedelta(hours=14)


@dataclass(frozen=True, slots=True)
class Cells:
    """A row by field, with the parsed day and chamber."""

    number: int
    said: Mapping[str, str | None]
    problem: str | None = None

    @property
    def identifier(self) -> str | None:
        """Return the id that the source gives. Raises RecordError for an id that is too long or has invisible
        characters.
        """
        if self["id"] is None:
            return None
        self.check_words("id")
        identifier = self["id"].strip()
        if len(identifier) > _LONGEST_ID:
            raise RecordError(f"the id {quote(identifier)} is too long: the maximum is {_LONGEST_ID} characters.")
        if not all(character.isprintable() or character == " " for character in identifier):
            raise RecordError(f"the id {quoted(identifier)} contains an invisible character")
        return identifier

    def check_words(self, *names: str) -> None:
        """Raise RecordError if a list or an object is in place of words."""
        for name in names or _PLAIN:
            if is_structure((self[name] or "").strip()):
                column = COLUMNS[name][0]
                raise RecordError(f"row {self.number} has a list or an object in {quoted(column)}. Text is expected.")

    def __getitem__(self, name: str) -> str | None:
        return present(self.said.get(name))

    @property
    def text(self) -> str | None:
        """Its words, verbatim."""
        text = self.said.get("text")
        return text if text is not None and text.strip() else None

    @property
    def talker(self) -> Talker:
        """The speaker."""
        return Talker(
            self["speaker"] or "", None, self["name_id"], self["electorate"], self["party"], self["state"], self["role"]
        )


def iso_day(text: str) -> date:
    """Return the day of an ISO 8601 date or time.

    Raises RecordError for another format, and for a day that has not begun anywhere yet.
    """
    match = _DAY.fullmatch(text.strip())
    try:
        found = date.fromisoformat(match[1] if match else "")
    except ValueError:
        raise RecordError(f"the date {quote(text)} is not an ISO 8601 date, such as 2024-10-15") from None
    return not_in_future(found)


def not_in_future(day: date) -> date:
    """Return the day. Raises RecordError if it has not begun anywhere yet."""
    if day > (datetime.now(UTC) + _EASTERNMOST).date():
        raise RecordError(f"the date {day.isoformat()} is in the future")
    return day


def chamber_of(form: str) -> NamedNode:
    """Return the chamber that a form names. Raises RecordError with the valid names for an unknown form."""
    found = parties.chamber(form)
    if found is None:
        raise RecordError(f"unknown chamber {quote(form)}. Available: 'House of Representatives', 'Senate'.")
    return found


def is_same_turn(turn: Sequence[Cells], row: Cells) -> bool:
    """Whether a row belongs to the same turn as the rows before it."""
    head = turn[0]
    number = head["turn"]
    if number is None or row["turn"] != number or any(row[name] != head[name] for name in ("id", "date", "chamber")):
        return False
    if _is_flagged(row, "interjection") or office_of(row.talker) is not None:
        return True
    return is_same(head, row) and kind_of(row) == kind_of(head)


def is_same(head: Cells, row: Cells) -> bool:
    """Whether two rows have the same speaker: by id, or by name where one has no id."""
    one, other = head.talker, row.talker
    ids = identifier_of(one), identifier_of(other)
    if None not in ids:
        return ids[0] == ids[1]
    return " ".join(one.name.casefold().split()) == " ".join(other.name.casefold().split())


def kind_of(row: Cells) -> SpeechKind:
    """Return the kind of the turn that begins with this row."""
    written = _is_flagged(row, "written")
    if _is_flagged(row, "question"):
        return "writtenQuestion" if written else "question"
    if _is_flagged(row, "answer"):
        return "writtenAnswer" if written else "answer"
    return "interjection" if _is_flagged(row, "interjection") else "speech"


def _is_flagged(row: Cells, name: str) -> bool:
    try:
        return parse_boolean(row[name])
    except RecordError:
        return False


def page_of(text: str | None) -> str | None:
    """Return a page as printed: numbers may be given as ``8.0``."""
    if text is None:
        return None
    try:
        return str(parse_integer(text))
    except RecordError:
        return text.strip()


def plain(name: str) -> str:
    """Return the name of a column without case and punctuation."""
    return re.sub(r"[^a-z0-9]+", "", name.casefold())
