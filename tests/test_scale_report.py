"""The curves and the plan of the chapter "Scaling"."""

from __future__ import annotations

import re

from tests.benchmarks.scale_report import CURVES, SIZES, draw, list_figures, list_plan, load_figures

NAMES = {name for curve in CURVES for name in curve.names}
FIGURES = {
    size: {
        **dict.fromkeys(NAMES, 10.0),
        "load: passages/s": 1_000.0,
        "index process: anonymous MiB": 40 + size * 100 / 2**20,
    }
    for size in (10_000, 100_000)
}


def test_every_curve_is_drawn_from_recorded_figures() -> None:
    assert all(each.keys() >= NAMES for each in load_figures().values())
    lines = re.findall(r'<polyline points="([^"]*)"', draw(FIGURES))
    assert len(lines) == sum(len(curve.names) for curve in CURVES)
    assert all(len(line.split()) == len(FIGURES) for line in lines)


def test_the_plan_grows_with_the_passages() -> None:
    head, *rows = list_plan(FIGURES)
    assert len(head) == 1 + len(SIZES)
    found = {row[0]: [float(cell.replace(",", "")) for cell in row[1:]] for row in rows}
    assert all(values == sorted(values) for values in found.values())
    assert found["load without vectors, hours"][0] == 0.3
    assert found["shards of the index"] == [8, 160, 1600]


def test_figures_are_a_column_for_each_size() -> None:
    head, *rows = list_figures(FIGURES)
    assert head == ("figure", "10,000", "100,000")
    assert len(rows) == len(FIGURES[10_000])
