"""Reservations of claims: qualifiers that say how certain, how exact, or of which part a claim is true.

Which qualifiers do is decided by their meaning, in ``ontology/reference/wikidata-reservations.tsv``: by the ids of
Wikidata, and in another Wikibase, whose numbers mean something else, by the same labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from kg import bundle
from kg.fuzzy_names import fold

FILE: Final = "reference/wikidata-reservations.tsv"
"""Path of the table in the folder of the ontology."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of a property or a value for a statement, with its label."""

    kind: str
    """doubt, scope or certain."""
    label: str


@cache
def load_meanings() -> Mapping[str, Meaning]:
    """Load the meanings by id, and by folded label for properties (``P:``) and items (``Q:``)."""
    found: dict[str, Meaning] = {}
    for line in (bundle.folder("ontology") / FILE).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            name, kind, label = line.split("\t")
            if kind not in ("doubt", "scope", "certain"):
                raise ValueError(f"{FILE}: {name} has the meaning {kind!r}. Available: doubt, scope, certain")
            found[name] = found[f"{name[0]}:{fold(label)}"] = Meaning(kind, label)
    return found


def find_reservation(
    property_id: str, property_label: str | None, value_id: str | None, value_label: str | None, *, is_wikidata: bool
) -> str | None:
    """Describe the reservation of a qualifier, as in ``nature of statement: allegedly``; None if it is none.

    Labels are None where they are not known. `is_wikidata` is whether the ids are those of Wikidata.
    """
    known = load_meanings()
    of_property = known.get(property_id if is_wikidata else f"P:{fold(property_label or '')}")
    of_value = (known.get(value_id or "") if is_wikidata else None) or known.get(f"Q:{fold(value_label or '')}")
    if (of_value is not None and of_value.kind == "certain") or (of_property is None and of_value is None):
        return None
    shown = value_label or (of_value.label if of_value is not None else value_id) or "unknown"
    return f"{property_label or (of_property.label if of_property is not None else property_id)}: {shown}"
