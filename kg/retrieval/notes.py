"""Words of the server in results, such as notes: names from the data are apart from them, and people read other words
where a note names a tool.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final

from pydantic import PlainSerializer, SerializationInfo, WrapValidator

SEE_RESOURCES: Final = ": see list_resources"
"""The end of a list of values that is not complete, in notes and in errors."""
SEE_SECTIONS: Final = " kg_search_by_topic finds the sections about it."
"""Where the text about something without a rule is found, in notes and in errors."""


class Note(str):
    """A note with other words for people; without any, it is for agents only."""

    __slots__ = ("people",)

    people: str

    def __new__(cls, text: str, people: str = "") -> Note:
        """Make a note from the words for agents and those for people."""
        note = super().__new__(cls, text)
        note.people = people
        return note


def _write(text: str, info: SerializationInfo) -> str:
    return info.context(text) if callable(info.context) else text


NoteText = Annotated[
    str,
    WrapValidator(lambda value, validate: value if isinstance(value, Note) else validate(value)),
    PlainSerializer(_write, return_type=str),
]
"""The type of the server's own words in results: notes, hints, reasons.

It keeps the words for people. The context of the serialization, a function, rewrites the text.
"""


def word_for_people(text: str) -> str:
    """Word a note or the message of an error for people; empty if it is for agents only."""
    return text.people if isinstance(text, Note) else text.replace(SEE_RESOURCES, "").replace(SEE_SECTIONS, "")


def select_for_people(notes: Iterable[str]) -> list[str]:
    """Select the notes that are for people, in their words."""
    return [words for note in notes if (words := word_for_people(note))]
