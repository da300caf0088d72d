"""Charts as SVG that needs no script: horizontal bars, and columns by year.

Positions along the axis of a page's width are percentages, so that a chart fits any width and its text keeps its size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

COLUMNS_HEIGHT: Final = 240
"""Height of the plot of columns, in pixels, without its axis of years."""
BARS_WIDTH: Final = 86.0
"""Percentage of the width for the longest bar. The rest is for its number."""
LEAST_YEARS: Final = 12
MOST_LABELS: Final = 7
_STEPS: Final = (1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000)


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A value. `x` and `width` are percentages, `y` and `height` pixels; `series` is the number of its colour."""

    x: float
    y: float
    width: float
    height: float
    title: str
    series: int | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A label with its bars, one below the other."""

    label: str
    bars: Sequence[Rectangle]
    height: int


@dataclass(frozen=True, slots=True)
class Bars:
    """Horizontal bars with their numbers."""

    rows: Sequence[Row]
    series: Sequence[str]


@dataclass(frozen=True, slots=True)
class Columns:
    """Stacked columns by year. A tick is a pixel with its number; a label is a percentage with its year."""

    columns: Sequence[Rectangle]
    ticks: Sequence[tuple[float, str]]
    labels: Sequence[tuple[float, str]]
    series: Sequence[str]
    height: int = COLUMNS_HEIGHT


def draw_bars(rows: Sequence[Mapping[str, Any]], x: str, y: str, by: str | None) -> Bars:
    """Draw a bar for each row, with the number of column `y`. Rows with the same `x` are next to each other."""
    series = list(dict.fromkeys(str(row[by]) for row in rows)) if by else []
    most = max((row[y] for row in rows), default=0)
    of_label: dict[str, list[Rectangle]] = {}
    for row in rows:
        bars = of_label.setdefault(str(row[x]), [])
        width = BARS_WIDTH * row[y] / most if most else 0
        title = f"{row[x]}{f', {row[by]}' if by else ''}: {_format(row[y])}"
        colour = series.index(str(row[by])) if by else None
        bars.append(Rectangle(0, 2 + 20 * len(bars), round(width, 2), 16, title, colour, _format(row[y])))
    return Bars([Row(label, bars, 4 + 20 * len(bars)) for label, bars in of_label.items()], series)


def draw_columns(
    rows: Sequence[Mapping[str, Any]], x: str, y: str, by: str | None = None, series: Sequence[str] = ()
) -> Columns:
    """Draw the rows as columns by the year in column `x`, those of one year stacked in their order.

    `series` are the values of column `by`, in the order of their colours.
    """
    totals: dict[int, float] = {}
    for row in rows:
        totals[int(row[x])] = totals.get(int(row[x]), 0) + row[y]
    first, last = min(totals, default=0), max(totals, default=0)
    shown = max(last - first + 1, LEAST_YEARS)
    start = first - (shown - (last - first + 1)) // 2
    step = _find_step(max(totals.values(), default=0))
    top = max(step, -(-max(totals.values(), default=0) // step) * step)
    stacked: dict[int, float] = {}
    columns = []
    for row in rows:
        year, count = int(row[x]), row[y]
        below = stacked.get(year, 0.0)
        stacked[year] = below + count
        height = COLUMNS_HEIGHT * count / top
        columns.append(
            Rectangle(
                round(100 * (year - start + 0.05) / shown, 3),
                round(COLUMNS_HEIGHT * (1 - below / top) - height, 2),
                round(90 / shown, 3),
                round(height, 2),
                f"{year}{f', {row[by]}' if by else ''}: {_format(count)}",
                list(series).index(str(row[by])) if by else None,
            )
        )
    apart = next((each for each in _STEPS if shown / each <= MOST_LABELS), _STEPS[-1])
    years = [year for year in range(start, start + shown) if year % apart == 0]
    marks = [tick * step for tick in range(int(top / step) + 1)]
    return Columns(
        columns,
        [(round(COLUMNS_HEIGHT * (1 - mark / top), 2), _format(mark)) for mark in marks],
        [(round(100 * (year - start + 0.5) / shown, 3), str(year)) for year in years],
        series,
    )  # fmt: skip


def _find_step(most: float) -> float:
    """Find a step of 1, 2 or 5 times a power of ten, of which at most five reach `most`."""
    step = 1
    while most / step > 5:
        step = step * 5 // 2 if str(step)[0] == "2" else step * 2
    return step


def _format(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:,.10g}"
