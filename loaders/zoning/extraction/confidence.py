"""The confidence of a fact: the share of facts of its form that are right, as measured on codes as they come."""

from __future__ import annotations

from typing import Final, Literal

Kind = Literal["permission", "standard", "definition"]

_MEASURED: Final[dict[tuple[Kind, str], float]] = {
    ("permission", "matrix"): 0.98,
    ("permission", "list"): 0.97,
    ("standard", "table"): 0.98,
    ("standard", "label"): 0.97,
    ("standard", "raw"): 0.97,
    ("permission", "closed list"): 0.9,
    ("permission", "reference"): 0.9,
    ("permission", "blank cell"): 0.6,
}
"""Of draws of at most 60 from each of four codes, one from a place, were right: 60 of 60 cells of matrices, 175 of 180
items, 120 of 120 cells with one number, and 81 of 83 label lines. The last three forms were too few to measure."""


def get_confidence(kind: Kind, form: str) -> float:
    """Get the confidence of a fact of some kind and form. Raises KeyError for an unknown form."""
    return _MEASURED[kind, form]
