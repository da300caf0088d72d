"""What a benchmark reports: our figure beside the alternative's, measured in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rich.table import Table

Asked = TypeVar("Asked")


@dataclass(frozen=True, slots=True)
class Comparison:
    """One line of the table. `theirs` is the alternative in the same run, None where only our figure counts.

    `target` says in words what is asked for (``>= 0.9 x``, ``<= 60 ms``) and `met` whether it was reached; None means
    that the line is for information.
    """

    name: str
    ours: float
    theirs: float | None
    unit: str
    target: str = ""
    met: bool | None = None

    @property
    def ratio(self) -> float | None:
        """`ours / theirs`, or None where there is nothing to divide by."""
        return self.ours / self.theirs if self.theirs else None

    @classmethod
    def at_least(cls, name: str, ours: float, theirs: float, unit: str, ratio: float) -> Comparison:
        """Return a line whose target is that `ours` is at least `ratio` times `theirs`."""
        return cls(name, ours, theirs, unit, f"ratio >= {ratio:g}", ours >= ratio * theirs)

    @classmethod
    def at_most(cls, name: str, ours: float, unit: str, limit: float, theirs: float | None = None) -> Comparison:
        """Return a line whose target is that `ours` is at most `limit`, in `unit`."""
        return cls(name, ours, theirs, unit, f"<= {limit:g} {unit}", ours <= limit)


def timed(ask: Callable[[Asked], object], questions: Iterable[Asked]) -> list[float]:
    """Return how long each question takes, in milliseconds, sorted."""
    times = []
    for question in questions:
        began = time.perf_counter()
        ask(question)
        times.append((time.perf_counter() - began) * 1000)
    return sorted(times)


def median(times: Sequence[float]) -> float:
    """Return the middle of sorted `times`."""
    return times[len(times) // 2]


def p95(times: Sequence[float]) -> float:
    """Return the 95th percentile of sorted `times`."""
    return times[int(len(times) * 0.95)]


def table(title: str, comparisons: Iterable[Comparison]) -> Table:
    """Return the table of one benchmark for a terminal or a pipe."""
    grid = Table("measure", "ours", "alternative", "ratio", "unit", "target", "", title=title, title_justify="left")
    for line in comparisons:
        grid.add_row(
            line.name,
            f"{line.ours:,.4g}" if abs(line.ours) < 1000 else f"{line.ours:,.0f}",
            "" if line.theirs is None else f"{line.theirs:,.4g}" if abs(line.theirs) < 1000 else f"{line.theirs:,.0f}",
            "" if line.ratio is None else f"{line.ratio:.2f}",
            line.unit,
            line.target,
            {True: "ok", False: "MISSED", None: ""}[line.met],
        )
    return grid
