"""Dimensional standards: how large, high, dense or far from the line a district lets things be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from loaders.extraction.permissions import District
from loaders.extraction.sections import Section


@dataclass(frozen=True, slots=True)
class Standard:
    """A standard; ``[start, end)`` of the section's text says so."""

    districts: Sequence[str]
    """Codes of the districts that it is for; none where the section is of no district."""
    type: str
    """Normalised, in lower case with hyphens, without its bound: ``lot-area``, ``front-setback``, ``building-height``."""
    raw_type: str
    """As recorded."""
    bound: Literal["min", "max"] | None
    raw: str
    """The value with its unit, verbatim."""
    value: Decimal | None
    """None for what is not one number with a unit: ``10% of lot depth``, a range."""
    unit: str | None
    """Local name in QUDT (FT, FT2, AC, PERCENT, IN, MI, YD), or of an own unit: dwelling-per-acre, storey, space."""
    applies_to: str | None
    """The use or kind of building, verbatim, where the text says."""
    conditions: Sequence[str]
    """Verbatim: footnotes, what follows with "if", "except", "where"."""
    start: int
    end: int
    confidence: float
    method: str
    """sentence, table."""


def standards(section: Section, known: Mapping[str, District]) -> Sequence[Standard]:
    """Return the standards that a section sets, in its order."""
    raise NotImplementedError
