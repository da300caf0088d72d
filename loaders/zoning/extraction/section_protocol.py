"""What extraction reads of a section of a code: any object with these properties is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Cell(Protocol):
    """A cell of a table; its words are the code points [start, end) of the section's text."""

    @property
    def text(self) -> str:
        """Its words."""

    @property
    def start(self) -> int:
        """Where it starts."""

    @property
    def end(self) -> int:
        """Where it ends."""

    @property
    def superscripts(self) -> Sequence[tuple[int, int]]:
        """Where its raised words stand: marks of notes."""


class Table(Protocol):
    """A table in the code points [start, end) of the section's text."""

    @property
    def start(self) -> int:
        """Where it starts."""

    @property
    def end(self) -> int:
        """Where it ends."""

    @property
    def header_rows(self) -> int:
        """How many of the first rows are its header."""

    @property
    def caption(self) -> str | None:
        """Its caption."""

    def grid(self) -> Sequence[Sequence[Cell | None]]:
        """Return the rows with all as many places, a spanning cell in each that it spans."""


class Subsection(Protocol):
    """A labelled part of a section, in the code points [start, end) of its text."""

    @property
    def path(self) -> Sequence[str]:
        """Its labels, bare, from the outermost."""

    @property
    def start(self) -> int:
        """Where it starts."""

    @property
    def end(self) -> int:
        """Where it ends."""

    @property
    def heading(self) -> str | None:
        """Its own heading."""


class Section(Protocol):
    """One level of a code with the text that is its own."""

    @property
    def key(self) -> str:
        """Unique in the code."""

    @property
    def number(self) -> str:
        """As recorded, without the word for its kind."""

    @property
    def title(self) -> str:
        """Its heading, without the number."""

    @property
    def kind(self) -> str:
        """The word for its level, in lower case."""

    @property
    def parent(self) -> str | None:
        """Key of the section that it is part of."""

    @property
    def order(self) -> int:
        """Among the parts of that one."""

    @property
    def text(self) -> str:
        """Its words."""

    @property
    def subsections(self) -> Sequence[Subsection]:
        """In the order of the text, an outer one before those in it."""

    @property
    def tables(self) -> Sequence[Table]:
        """In the order of the text."""
