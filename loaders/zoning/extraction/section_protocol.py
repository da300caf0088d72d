"""Protocols for the sections that extraction reads, so that it does not depend on the readers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Cell(Protocol):
    """A table cell. Its text is at the offsets [start, end) of the section's text."""

    @property
    def text(self) -> str:
        """Its text."""

    @property
    def start(self) -> int:
        """Start offset."""

    @property
    def end(self) -> int:
        """End offset."""

    @property
    def superscripts(self) -> Sequence[tuple[int, int]]:
        """Offsets of raised words, which are marks of notes."""


class Table(Protocol):
    """A table at the offsets [start, end) of the section's text."""

    @property
    def start(self) -> int:
        """Start offset."""

    @property
    def end(self) -> int:
        """End offset."""

    @property
    def header_rows(self) -> int:
        """Number of header rows."""

    @property
    def caption(self) -> str | None:
        """The caption."""

    def grid(self) -> Sequence[Sequence[Cell | None]]:
        """Expand the rows to equal length, with a spanning cell repeated in each place."""


class Subsection(Protocol):
    """A labelled part of a section, at the offsets [start, end) of its text."""

    @property
    def path(self) -> Sequence[str]:
        """Bare labels, outermost first."""

    @property
    def start(self) -> int:
        """Start offset."""

    @property
    def end(self) -> int:
        """End offset."""


class Section(Protocol):
    """One level of a code with its own text."""

    @property
    def key(self) -> str:
        """Unique in the code."""

    @property
    def number(self) -> str:
        """As recorded, without the word for its kind."""

    @property
    def title(self) -> str:
        """Heading, without the number."""

    @property
    def kind(self) -> str:
        """The word for its level, in lower case."""

    @property
    def parent(self) -> str | None:
        """Key of the parent section."""

    @property
    def order(self) -> int:
        """Position among its siblings."""

    @property
    def text(self) -> str:
        """The text, verbatim."""

    @property
    def subsections(self) -> Sequence[Subsection]:
        """In text order, outer before inner."""

    @property
    def tables(self) -> Sequence[Table]:
        """In text order."""
