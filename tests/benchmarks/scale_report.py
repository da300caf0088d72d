"""What the recorded figures of ``make bench-scale`` say: the curves and tables of the chapter "Scaling".

``python -m tests.benchmarks.scale --json tests/benchmarks/scale_figures.json`` records them; ``make docs`` draws them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

FIGURES: Final = Path(__file__).with_name("scale_figures.json")
SIZES: Final = (1_000_000, 20_000_000, 200_000_000)
"""Numbers of passages that the plan is for."""

Figures = Mapping[str, float]


class Assumptions(NamedTuple):
    """What the plan assumes, beside the recorded figures."""

    machine_gib: float = 64.0
    """Memory of one machine."""
    used: float = 0.7
    """Share of its memory that is planned for."""
    shard: int = 125_000
    """Passages of one shard of the index."""
    distinct: float = 0.9
    """Share of the texts that differ from all others, since equal texts are embedded once."""
    cores: int = 8
    """Cores that embed."""
    per_core_s: float = 100.0
    """Passages that a core embeds a second with the built-in model, as ``make bench ARGS=embedding`` measures."""
    gpu_s: float = 2_500.0
    """Passages that a GPU embeds a second. Not measured."""
    machine_month: float = 350.0
    """US dollars for a machine a month."""
    disk_gib_month: float = 0.1
    """US dollars for a GiB of SSD a month."""
    gpu_hour: float = 1.0
    """US dollars for an hour of a GPU."""


ASSUMPTIONS: Final = Assumptions()


class Curve(NamedTuple):
    """One plot: its title, the figures that it shows, and their unit."""

    title: str
    names: Sequence[str]
    unit: str


CURVES: Final = (
    Curve("Load", ("load: passages/s",), "passages/s"),
    Curve("Disk", ("store: bytes on disk a passage", "index: bytes on disk a passage"), "bytes a passage"),
    Curve("Memory of the index process", ("index process: anonymous bytes a passage",), "bytes a passage"),
    Curve("Search by words", ("search, words: p50 ms", "search, words: p95 ms"), "ms"),
    Curve("Tools", ("tool search, no filter: p95 ms", "tool search, a quarter: p95 ms", "tool fetch: p95 ms"), "ms"),
    Curve(
        "SPARQL",
        ("SPARQL, one passage: p95 ms", "SPARQL, count by country: p95 ms", "SPARQL, count all passages: p95 ms"),
        "ms",
    ),
)

_WIDTH, _HEIGHT, _COLUMNS = 320, 240, 3
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 14, 30, 66
_COLORS: Final = ("#1f5f8b", "#b3541e", "#4d7c3a")


def load_figures(path: Path = FIGURES) -> dict[int, Figures]:
    """Load the recorded figures, by number of passages."""
    return {int(size): found for size, found in json.loads(path.read_text("utf-8")).items()}


def list_figures(found: Mapping[int, Figures]) -> Iterator[tuple[str, ...]]:
    """Yield the head and the rows of the table of all figures."""
    yield ("figure", *(f"{size:,}" for size in found))
    for name in next(iter(found.values())):
        yield (name, *(_format(each.get(name)) for each in found.values()))


def list_plan(found: Mapping[int, Figures], assumed: Assumptions = ASSUMPTIONS) -> Iterator[tuple[str, ...]]:
    """Yield the head and the rows of the plan: what each of `SIZES` takes, from the figures of the largest size.

    The memory of the index is a part for any index and one for each passage, from the two largest sizes.
    """
    less, most = sorted(found)[-2:]
    name = "index process: anonymous MiB"
    each = max(0.0, (found[most][name] - found[less][name]) * 2**20 / (most - less))
    yield ("", *(f"{size:,} passages" for size in SIZES))
    plans = [_plan(size, found[most], each, assumed) for size in SIZES]
    for name in plans[0]:
        yield (name, *(plan[name] for plan in plans))


def _plan(size: int, most: Figures, anonymous: float, assumed: Assumptions) -> dict[str, str]:
    store, index = most["store: bytes on disk a passage"], most["index: bytes on disk a passage"]
    vectors = 384 * 4 + 384  # as they were computed, and quantized for the search
    cached = 384 + index / 2  # what searches read again and again: the quantized vectors, and half of the words
    disk_gib = size * (store + index + vectors) / 2**30
    memory_gib = size * (anonymous + cached) / 2**30
    machines = max(1, math.ceil(memory_gib / (assumed.machine_gib * assumed.used)))
    load_h = size / most["load: passages/s"] / 3_600 / machines
    texts = size * assumed.distinct
    cpu_h = texts / (assumed.per_core_s * assumed.cores) / 3_600
    gpu_h = texts / assumed.gpu_s / 3_600
    month = machines * assumed.machine_month + disk_gib * assumed.disk_gib_month
    return {
        "shards of the index": f"{math.ceil(size / assumed.shard):,}",
        "memory for searches, GiB": f"{memory_gib:,.1f}",
        "disk, GiB": f"{disk_gib:,.0f}",
        "machines": f"{machines:,}",
        "load without vectors, hours": f"{load_h:,.1f}",
        f"vectors on {assumed.cores} cores, hours": f"{cpu_h:,.1f}",
        "vectors on one GPU, hours": f"{gpu_h:,.1f}",
        "a month, US dollars": f"{month:,.0f}",
        "vectors on GPUs once, US dollars": f"{gpu_h * assumed.gpu_hour:,.0f}",
    }


def _format(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.3g}" if abs(value) < 1_000 else f"{value:,.0f}"


def draw(found: Mapping[int, Figures]) -> str:
    """Draw all curves as one SVG, over a logarithmic number of passages."""
    rows = math.ceil(len(CURVES) / _COLUMNS)
    width, height = _WIDTH * _COLUMNS, _HEIGHT * rows
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        "<title>How each cost grows with the number of passages</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for number, curve in enumerate(CURVES):
        x, y = number % _COLUMNS * _WIDTH, number // _COLUMNS * _HEIGHT
        parts += [f'<g transform="translate({x} {y})">', *_draw_curve(curve, found), "</g>"]
    return "\n".join((*parts, "</svg>\n"))


def _draw_curve(curve: Curve, found: Mapping[int, Figures]) -> Iterator[str]:
    sizes = sorted(found)
    most = max((found[size].get(name, 0.0) for size in sizes for name in curve.names), default=1.0) or 1.0
    top = _round_up(most)
    inner_width, inner_height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    low, high = math.log10(sizes[0]), math.log10(sizes[-1])

    def x_of(size: int) -> float:
        return _LEFT + inner_width * ((math.log10(size) - low) / (high - low) if high > low else 0.5)

    def y_of(value: float) -> float:
        return _TOP + inner_height * (1 - value / top)

    yield f'<text x="{_LEFT}" y="18" font-weight="bold">{escape(curve.title)}, {escape(curve.unit)}</text>'
    for value in (0.0, top / 2, top):
        y = y_of(value)
        yield f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="#555">{_format(value)}</text>'
    for size in sizes:
        place = f'x="{x_of(size):.1f}" y="{_HEIGHT - _BOTTOM + 16}"'
        yield f'<text {place} text-anchor="middle" fill="#555">{_shorten(size)}</text>'
    for number, name in enumerate(curve.names):
        points = [(x_of(size), y_of(found[size][name])) for size in sizes if name in found[size]]
        color = _COLORS[number % len(_COLORS)]
        yield f'<polyline points="{_join(points)}" fill="none" stroke="{color}" stroke-width="2"/>'
        yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in points)
        y = _HEIGHT - _BOTTOM + 30 + 13 * number
        yield f'<rect x="{_LEFT}" y="{y - 8}" width="8" height="8" fill="{color}"/>'
        yield f'<text x="{_LEFT + 13}" y="{y}">{escape(name)}</text>'


def _join(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _round_up(value: float) -> float:
    """Round up to one, two or five times a power of ten."""
    power: float = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value)


def _shorten(size: int) -> str:
    return f"{size / 1e6:g}M" if size >= 1_000_000 else f"{size / 1e3:g}k"
