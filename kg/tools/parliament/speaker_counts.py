"""Which speeches there are by day, chamber and party: read once in each generation, for filters that leave many.

To list some thousand speeches takes SPARQL longer than to rank them; to count them here takes no time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from kg.retrieval.hybrid_search import Known
from kg.retrieval.reader import Reader, text_of
from kg.store.protocol import Term

# One row a group: a row for each speech takes thrice the time.
ROLL: Final = """
SELECT ?day ?chamber ?party (GROUP_CONCAT(STR(?document)) AS ?speeches) WHERE {
  ?document a kg:Speech
  OPTIONAL { ?document dcterms:date ?day }
  OPTIONAL { ?document kg:chamber ?chamber }
  OPTIONAL { ?document kg:party ?party }
} GROUP BY ?day ?chamber ?party"""


@dataclass(frozen=True, slots=True)
class Group:
    """Speeches of one day, chamber and party; None where the graph says none, or a day that is no plain date."""

    day: date | None
    chamber: str | None
    party: str | None
    speeches: Sequence[str]


def listed(reader: Reader, first: date | None, last: date | None, chamber: str | None, party: str | None) -> Known:
    """Return the speeches from `first` to `last` (both included) in `chamber` by members of `party`.

    What is None limits nothing. A speech whose day is written in an unusual form counts as of every day: whoever asks
    applies the filters to what comes of the list.
    """
    groups = reader.kept("speeches by day, chamber and party", ROLL, _groups)
    chosen = (
        group
        for group in groups
        if (group.day is None or ((first is None or group.day >= first) and (last is None or group.day <= last)))
        and (chamber is None or group.chamber == chamber)
        and (party is None or group.party == party)
    )
    speeches = list(dict.fromkeys(speech for group in chosen for speech in group.speeches))
    return Known(speeches, len(speeches) / max(1, len(speeches), sum(len(group.speeches) for group in groups)))


def _groups(rows: list[dict[str, Term]]) -> list[Group]:
    return [
        Group(_day(row), _text(row, "chamber"), _text(row, "party"), text_of(row["speeches"]).split(" "))
        for row in rows
        if text_of(row["speeches"])  # the one row of an empty GROUP BY has none
    ]


def _text(row: dict[str, Term], name: str) -> str | None:
    return text_of(row[name]) if name in row else None


def _day(row: dict[str, Term]) -> date | None:
    text = _text(row, "day")
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None
