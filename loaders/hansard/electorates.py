"""The state or territory of an electoral division of the House of Representatives in a year.

The table with its source is ``ontology/reference/electorates.tsv``. Nothing is guessed: a division that is not in the
table, or not in that year, has no state.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from pyoxigraph import NamedNode

from kg import bundle
from kg.vocabulary import mint

_FILE: Final = bundle.folder("ontology") / "reference" / "electorates.tsv"
_EXISTS: Final = 9999
"""The last year of a division that still exists."""


class _Period(NamedTuple):
    state: NamedNode
    first: int
    last: int


def find_state(electorate: str, year: int) -> NamedNode | None:
    """Find the state of the division with this name, or the last segment of its IRI, in `year`; None if unknown."""
    found = {each.state for each in _load_periods().get(_key(electorate), ()) if each.first <= year <= each.last}
    return next(iter(found)) if len(found) == 1 else None


def _key(name: str) -> str:
    """Normalize a name: letters and digits in one case, so that Eden-Monaro is also ``eden monaro``."""
    return "".join(character for character in name.casefold() if character.isalnum())


@cache
def _load_periods() -> Mapping[str, Sequence[_Period]]:
    periods: dict[str, list[_Period]] = defaultdict(list)
    lines = [line for line in _FILE.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    for line in lines[1:]:
        name, state, first, last = line.split("\t")
        periods[_key(name)].append(_Period(mint("place", f"AU-{state}"), int(first), int(last or _EXISTS)))
    return periods
