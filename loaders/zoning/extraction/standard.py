"""A dimensional standard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from loaders.zoning.extraction.dimension_names import Bound


@dataclass(frozen=True, slots=True)
class Standard:
    """A standard. Its value, with its unit, is at the offsets [start, end) of the section's text."""

    districts: Sequence[str]
    """Codes of its districts."""
    type: str | None
    """One of the types of the ontology: lot-area, front-setback, building-height. None for a cell that is recorded as
    its words: only its headers say what it limits."""
    raw_type: str
    """The words for the type, as recorded. Of a cell, the words of its headers."""
    bound: Bound | None
    raw: str
    """The value, verbatim: ``thirty-five (35) feet``, ``10% of lot depth``."""
    value: Decimal | None
    """None if the value is not one number in one unit."""
    unit: str | None
    """See `measures`. None without a value."""
    applies_to: str | None
    """The use or kind of building that it is for, verbatim, if stated."""
    conditions: Sequence[str]
    """Verbatim: notes, and cases."""
    start: int
    end: int
    confidence: float
    method: str
    """table, label, raw."""
