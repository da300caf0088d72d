"""The rows of a record in the order of its text units: as text, in runs, and by the rank of a unit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kg.errors import InvalidInputError


def format_rows(rows: Sequence[int]) -> str:
    """Return row numbers as runs, in the order given: ``[1, 2, 3, 7, 5]`` is ``1-3,7,5``."""
    runs: list[list[int]] = []
    for row in rows:
        if row < 1:
            raise InvalidInputError(f"row {row} cannot be: data rows count from 1")
        if runs and row == runs[-1][1] + 1:
            runs[-1][1] = row
        else:
            runs.append([row, row])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def parse_rows(text: str) -> list[int]:
    """Return the row numbers that `format_rows` wrote."""
    rows: list[int] = []
    for run in text.split(",") if text else ():
        first, _, last = run.partition("-")
        rows.extend(range(int(first), int(last or first) + 1))
    return rows


def row_of(rank: int, parts: Iterable[Sequence[int]]) -> tuple[int, int] | None:
    """Return which part the text unit of this rank was read from, and its row there; None where no part has one.

    `rank` is the place of the unit, from 0, among those of its record. `parts` are the rows of each file that the
    record spans: together they follow the order of its units.
    """
    for number, rows in enumerate(parts):
        if rank < len(rows):
            return number, rows[rank]
        rank -= len(rows)
    return None
