"""What extraction reads of a section of a code: any object with these properties is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Cell(Protocol):
    """A cell of a table; its words are the code points [start, end) of the section's text."""

    @property
    def text(self) -> str: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def superscripts(self) -> Sequence[tuple[int, int]]: ...


class Table(Protocol):
    """A table in the code points [start, end) of the section's text."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def header_rows(self) -> int: ...
    @property
    def caption(self) -> str | None: ...
    def grid(self) -> Sequence[Sequence[Cell | None]]:
        """Return the rows with all as many places, a spanning cell in each that it spans."""


class Subsection(Protocol):
    """A labelled part of a section, in the code points [start, end) of its text."""

    @property
    def path(self) -> Sequence[str]: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def heading(self) -> str | None: ...


class Section(Protocol):
    """One level of a code with the text that is its own."""

    @property
    def key(self) -> str: ...
    @property
    def number(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def parent(self) -> str | None: ...
    @property
    def text(self) -> str: ...
    @property
    def subsections(self) -> Sequence[Subsection]: ...
    @property
    def tables(self) -> Sequence[Table]: ...
