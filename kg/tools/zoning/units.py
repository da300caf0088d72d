"""Units of one kind of quantity in each other, by the factors of QUDT in ``ontology/reference/units.ttl``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from functools import cache

from pyoxigraph import Literal, NamedNode, RdfFormat, parse

from kg import bundle
from kg.vocabulary import QUDT, UNIT


@cache
def _factors() -> Mapping[str, tuple[str, Fraction]]:
    """Return the kind of quantity of each unit, and what it is in the SI's unit of that kind, by local name."""
    kinds: dict[str, str] = {}
    factors: dict[str, Fraction] = {}
    for quad in parse((bundle.folder("ontology") / "reference" / "units.ttl").read_bytes(), format=RdfFormat.TURTLE):
        code = quad.subject.value.removeprefix(UNIT.iri) if isinstance(quad.subject, NamedNode) else ""
        if quad.predicate == QUDT.hasQuantityKind and isinstance(quad.object, NamedNode):
            kinds[code] = quad.object.value
        elif quad.predicate == QUDT.conversionMultiplier and isinstance(quad.object, Literal):
            factors[code] = Fraction(quad.object.value)
    return {code: (kind, factors[code]) for code, kind in kinds.items()}


def kind_of(unit: str) -> str:
    """Return what two units have in common that are converted into each other; of any other unit itself."""
    known = _factors().get(unit)
    return unit if known is None else known[0]


def converted(number: float, unit: str, into: str) -> float:
    """Return a number of `unit` in the unit `into`, which is of the same kind; exactly, but for the last rounding."""
    if unit == into or not math.isfinite(number):
        return number
    # By its shortest digits, which are those that were recorded: 0.23 acres are 10,018.8 square feet.
    return float(Fraction(repr(number)) * _factors()[unit][1] / _factors()[into][1])


def commonest(units: Counter[str]) -> str:
    """Return the unit that most values have; of several the first by name; an empty text where there is none."""
    return min(units, key=lambda unit: (-units[unit], unit), default="")
