"""The confidence of a standard: how often standards of its form are right on labelled ordinances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

CONFIDENCE: Final = {
    "noun": 0.82, "behind": 0.88, "line": 0.82, "area": 0.75, "share": 0.75, "parking": 0.85, "list": 0.88,
    "table": 0.9,
}  # fmt: skip
"""By rule: the dimension is named by a noun, by the words behind the measure, by a line, or only by the unit. They are
what three ordinances showed before the rules were made to read them; on those read before, each is right more often."""
_OF_DISTRICT: Final = {"noun": 0.92, "behind": 0.9, "line": 0.9, "area": 0.85, "share": 0.85}
"""By rule, where the standard is one of a district and of no use or structure in it."""
UNSURE: Final = 0.5
"""The confidence of a standard whose subject or case is not understood. Tools list it as unsure."""


def find_confidence(
    rule: str, type_: str, districts: Sequence[str], what: str | None, conditions: Sequence[str]
) -> float:
    """Find the confidence of a standard from its rule, type, districts, subject and conditions.

    A floor area without a subject is that of the subject of the section: an accessory structure, a shop.

    A limit without a district and a subject is about the subject of its section, not about all lots: of 7 labelled
    ones none is right. Where a subject has a case, a noun or a line is often of something in that case: 5 of 16 are
    right, and 14 of 22 without a district.
    """
    if what is None:
        if type_ == "floor-area":
            return UNSURE
        return _OF_DISTRICT.get(rule, CONFIDENCE[rule]) if districts else UNSURE
    if conditions and (rule == "noun" or (rule == "line" and not districts)):
        return UNSURE
    return CONFIDENCE[rule]
