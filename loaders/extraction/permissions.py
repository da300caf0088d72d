"""Districts, and which uses each permits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from loaders.extraction.sections import Section

Level = Literal["byRight", "byRightWithConditions", "conditional", "notPermitted"]


@dataclass(frozen=True, slots=True)
class District:
    """A district, and where a section names it."""

    code: str
    """As recorded: ``R-1-6``."""
    name: str
    section: str
    """Key of the section that names it."""
    start: int | None
    """Its code and name are the code points [start, end) of the section's text; None for those of its heading."""
    end: int | None
    confidence: float
    method: str
    """heading, line, list, table."""


@dataclass(frozen=True, slots=True)
class UsePermission:
    """A use and how a district permits it; ``[start, end)`` of the section's text says so."""

    district: str
    """Code of the district."""
    use: str
    level: Level
    raw_level: str
    """The words or letters of the source: Uses Subject to Conditions; P."""
    conditions: Sequence[str]
    """Verbatim."""
    review: str | None
    """What is cited as the review that is due, verbatim: ``§15.3.08.060``."""
    start: int
    end: int
    confidence: float
    method: str
    """list, matrix, sentence."""


def districts(sections: Iterable[Section]) -> Mapping[str, District]:
    """Return the districts that the sections of a code name, by code."""
    raise NotImplementedError


def permissions(section: Section, known: Mapping[str, District]) -> Sequence[UsePermission]:
    """Return the uses that a section permits in each district, in its order."""
    raise NotImplementedError
