"""The confidence of a fact: the share of facts of its form that are right, as measured on codes as they come."""

from __future__ import annotations

from typing import Final, Literal

Kind = Literal["permission", "standard", "definition"]

_MEASURED: Final[dict[tuple[Kind, str], float]] = {
    ("permission", "matrix"): 0.97,
    ("permission", "blank cell"): 0.6,
    ("permission", "list"): 0.95,
    ("permission", "closed list"): 0.9,
    ("permission", "reference"): 0.9,
    ("standard", "table"): 0.95,
    ("standard", "label"): 0.93,
    ("standard", "raw"): 0.95,
}


def get_confidence(kind: Kind, form: str) -> float:
    """Get the confidence of a fact of some kind and form. Raises KeyError for a form that was not measured."""
    return _MEASURED[kind, form]
