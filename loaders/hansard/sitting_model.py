"""A sitting or single speeches as values, the same for every file format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, time
from typing import Literal

UtteranceKind = Literal["turn", "continuation", "interjection", "remark", "unattributed"]
"""A remark is the record's own text within a turn ("Opposition members interjecting—"), and unattributed are words of
which the speaker is uncertain: their ``talker`` is None.
"""
SpeechKind = Literal["speech", "question", "answer", "writtenQuestion", "writtenAnswer", "interjection", "motion"]
"""An interjection is a speech of its own where it is outside any turn (the chair between two speeches). A motion may be
moved without a speech, by a person whom the record only names.
"""
VoteValue = Literal["aye", "no", "pair"]


@dataclass(frozen=True, slots=True)
class Talker:
    """The speaker as recorded by the source, in every field."""

    name: str
    """As displayed ("Mr ABBOTT"), or the only recorded form."""
    full_name: str | None = None
    """The metadata form ("Abbott, Tony, MP")."""
    name_id: str | None = None
    electorate: str | None = None
    party: str | None = None
    state: str | None = None
    role: str | None = None
    in_government: bool | None = None
    first_speech: bool | None = None
    holder_id: str | None = None
    """The ``name_id`` of the holder of an office, where ``name_id`` is the office's own (10000) and the source names
    the holder.
    """


@dataclass(frozen=True, slots=True)
class Utterance:
    """Words of one person: the code points [start, end) of the speech's text; empty where they are not recorded."""

    kind: UtteranceKind
    start: int
    end: int
    talker: Talker | None = None
    time: time | None = None
    page: str | None = None
    by_form: bool = False
    """Whether no markup names the talker: the first paragraph begins with a name in bold."""


@dataclass(frozen=True, slots=True)
class Speech:
    """One turn of one speaker, including the interjections in it."""

    ordinal: int
    """Position of the turn in its file, from 1."""
    kind: SpeechKind
    talker: Talker
    text: str
    utterances: Sequence[Utterance]
    """In the order of the text, which they cover completely."""
    debate: tuple[int, ...] = ()
    """Path of its debate: (3, 1) is the first sub-debate of the third debate; () is none."""
    time: time | None = None
    page: str | None = None
    answers: int | None = None
    """Ordinal of the question that it answers."""
    lines: tuple[int, int] | None = None
    """First and last line in the file."""


@dataclass(frozen=True, slots=True)
class Debate:
    """A heading of the day with its contents."""

    path: tuple[int, ...]
    title: str | None = None
    """Its heading, None without one."""
    kind: str | None = None
    """As recorded: Bills, Questions Without Notice."""
    page: str | None = None
    bills: Sequence[str] = ()
    """Titles of the bills debated, as recorded."""
    bill_ids: Sequence[str | None] = ()
    """Their numbers in the source's register (R1359), in the same order."""
    venue: str | None = None
    """The part of the chamber that met apart: "Main Committee", "Federation Chamber"."""
    presenters: Sequence[Talker] = ()
    """The presenters of a petition."""
    signatures: int | None = None
    """Number of signatures of a petition, as recorded."""


@dataclass(frozen=True, slots=True)
class Procedure:
    """Text of the record without a speaker."""

    text: str
    ordinal: int
    """The ordinal of the turn before it (0: before all turns)."""
    debate: tuple[int, ...] = ()
    page: str | None = None
    lines: tuple[int, int] | None = None
    venue: str | None = None


@dataclass(frozen=True, slots=True)
class Vote:
    """One name in a division."""

    value: VoteValue
    name: str
    teller: bool = False
    name_id: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """The question that was put: the code points [start, end) of a text of the record."""

    text: str
    start: int
    end: int
    speech: int | None = None
    """The ordinal of the turn that has it."""
    procedure: int | None = None
    """Or the place of the procedural text that has it, from 0; else it is in the header of the division."""


@dataclass(frozen=True, slots=True)
class Division:
    """A vote by name."""

    debate: tuple[int, ...]
    header: str
    """The text before the names, verbatim."""
    votes: Sequence[Vote]
    ayes: int | None = None
    """As counted by the source."""
    noes: int | None = None
    result: str | None = None
    ordinal: int = 0
    """The ordinal of the turn before it."""
    time: time | None = None
    question: Question | None = None


@dataclass(frozen=True, slots=True)
class Sitting:
    """One chamber's record of one day, in the order of its file."""

    chamber: str
    """As recorded."""
    date: date
    parliament: str | None = None
    session: str | None = None
    period: str | None = None
    page: str | None = None
    proof: bool | None = None
    schema_version: str | None = None
    debates: Sequence[Debate] = ()
    speeches: Sequence[Speech] = ()
    procedures: Sequence[Procedure] = ()
    divisions: Sequence[Division] = ()
    warnings: Sequence[str] = field(default_factory=tuple)
    """Repairs and omissions, each with its place in the file."""
