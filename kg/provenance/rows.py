"""Row numbers as text: runs, in the order of the text units."""

from __future__ import annotations

from collections.abc import Sequence

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
