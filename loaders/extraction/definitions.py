"""Definitions of terms in a section."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loaders.extraction.sections import Section


@dataclass(frozen=True, slots=True)
class Definition:
    """A term and its meaning, each the code points [start, end) of the section's text."""

    term: str
    term_start: int
    term_end: int
    text: str
    start: int
    end: int
    confidence: float
    method: str
    """Which form it has: list, line, means."""


def definitions(section: Section) -> Sequence[Definition]:
    """Return the definitions of a section, in its order."""
    raise NotImplementedError
