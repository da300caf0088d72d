"""Ruled tables of a page: the grids that its ruling lines make, and the text of their cells.

A row is one line of text with tabs between its cells. A cell that is merged with the one to its left or above, and a
blank one, are marked, since white space at the ends of a line has no meaning to later readers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from loaders.readers.page_layout import Glyph, Word, find_words, join_lines, to_rows

BLANK: Final = "\ufdd0"
LEFT: Final = "\ufdd1"
"""A place that belongs to the cell to its left."""
ABOVE: Final = "\ufdd2"
"""A place that belongs to the cell above."""
MARKS: Final = frozenset("\ufdd0\ufdd1\ufdd2\ufdd3\ufdd4")
"""Code points that Unicode reserves for use within a program. Text from a file has none of them."""

_NEAR: Final = 3.0
"""Maximum distance of rules that are one."""
_SHORTEST: Final = 8.0
_LEAST_STRUCK: Final = 2
_STRUCK: Final = (0.12, 0.45)
"""Where a rule through characters is, in heights above their baseline."""
_MOST_PAIRS: Final = 1_000_000
"""Maximum rules across times rules down. A page with more is a drawing."""
_MOST_PLACES: Final = 20_000
_MOST_LINES: Final = 30
"""Maximum lines of a cell. More are the text of a page within a frame."""
_LEAST_UNRULED: Final = 4
"""Minimum lines of a body without rules between its rows."""


class Rule(NamedTuple):
    """A line across or down: its place, and where it starts and ends."""

    place: float
    start: float
    end: float


class Rotated(NamedTuple):
    """A character that is rotated on its page: the place of its middle there, and the character turned upright."""

    x: float
    y: float
    glyph: Glyph


@dataclass(slots=True)
class Table:
    """A grid: its rules down from the left and across from the top, and the places that are merged with another."""

    downs: Sequence[float]
    acrosses: Sequence[float]
    merged: dict[tuple[int, int], str]

    def find_place(self, x: float, y: float) -> tuple[int, int] | None:
        """Find the row and column of the cell at a point."""
        if not (self.downs[0] <= x <= self.downs[-1] and self.acrosses[-1] <= y <= self.acrosses[0]):
            return None
        row = sum(y < each for each in self.acrosses[1:-1])
        column = sum(x > each for each in self.downs[1:-1])
        while (mark := self.merged.get((row, column))) is not None:
            row, column = (row, column - 1) if mark == LEFT else (row - 1, column)
        return row, column

    def find_edges(self, row: int, column: int) -> tuple[float, float]:
        """Find the left and right edge of a cell."""
        last = column
        while self.merged.get((row, last + 1)) == LEFT:
            last += 1
        return self.downs[column], self.downs[last + 1]


def without_struck(glyphs: list[Glyph], across: Iterable[Rule]) -> list[Glyph]:
    """Remove the characters that are struck out: a rule that is as long as they are runs through them."""
    rules = sorted(across)
    if not rules:
        return glyphs
    places = [rule.place for rule in rules]
    below: dict[Rule, list[int]] = {}
    for at, glyph in enumerate(glyphs):
        first = bisect_left(places, glyph.base + _STRUCK[0] * glyph.height)
        middle = (glyph.left + glyph.right) / 2
        for rule in rules[first : bisect_left(places, glyph.base + _STRUCK[1] * glyph.height, first)]:
            if rule.start <= middle <= rule.end:
                below.setdefault(rule, []).append(at)
    struck: set[int] = set()
    for rule, own in below.items():
        height = max(glyphs[at].height for at in own)
        left, right = min(glyphs[at].left for at in own), max(glyphs[at].right for at in own)
        if len(own) >= _LEAST_STRUCK and left - rule.start <= height and rule.end - right <= height:
            struck.update(own)
    return [glyph for at, glyph in enumerate(glyphs) if at not in struck] if struck else glyphs


def find_tables(across: Iterable[Rule], down: Iterable[Rule]) -> list[Table]:
    """Find the grids of at least two columns and two rows that rules make."""
    rows, columns = _join(across), _join(down)
    if len(rows) * len(columns) > _MOST_PAIRS:
        return []
    root = list(range(len(rows) + len(columns)))

    def find(one: int) -> int:
        while root[one] != one:
            root[one] = root[root[one]]
            one = root[one]
        return one

    for place, row in enumerate(rows):
        for other, column in enumerate(columns, len(rows)):
            if (
                row.start - _NEAR <= column.place <= row.end + _NEAR
                and column.start - _NEAR <= row.place <= column.end + _NEAR
            ):
                root[find(place)] = find(other)
    parts: dict[int, tuple[list[Rule], list[Rule]]] = {}
    for place, rule in enumerate([*rows, *columns]):
        parts.setdefault(find(place), ([], []))[place >= len(rows)].append(rule)
    return [table for own in parts.values() if (table := _build(*own)) is not None]


def _join(rules: Iterable[Rule]) -> list[Rule]:
    """Join the pieces of each line."""
    joined: list[Rule] = []
    lanes: list[list[Rule]] = []
    for rule in sorted(rules):
        if lanes and rule.place - lanes[-1][0].place <= _NEAR:
            lanes[-1].append(rule)
        else:
            lanes.append([rule])
    for lane in lanes:
        first: Rule | None = None
        for rule in sorted(lane, key=lambda each: each.start):
            if first is not None and rule.start <= first.end + _NEAR:
                first = Rule(first.place, first.start, max(first.end, rule.end))
                joined[-1] = first
            else:
                first = rule
                joined.append(rule)
    return [rule for rule in joined if rule.end - rule.start >= _SHORTEST]


def _build(rows: Sequence[Rule], columns: Sequence[Rule]) -> Table | None:
    if not rows or not columns:
        return None
    # A table may be open at its sides.
    ends = [min(rule.start for rule in rows), max(rule.end for rule in rows)]
    tops = [min(rule.start for rule in columns), max(rule.end for rule in columns)]
    downs = _distinct([*(rule.place for rule in columns), *ends])
    acrosses = _distinct([*(rule.place for rule in rows), *tops])[::-1]
    if len(downs) < 3 or len(acrosses) < 3 or len(downs) * len(acrosses) > _MOST_PLACES:
        return None
    merged: dict[tuple[int, int], str] = {}
    for row in range(len(acrosses) - 1):
        middle = (acrosses[row] + acrosses[row + 1]) / 2
        for column in range(len(downs) - 1):
            centre = (downs[column] + downs[column + 1]) / 2
            if column and not _is_ruled(columns, downs[column], middle):
                merged[row, column] = LEFT
            elif row and not _is_ruled(rows, acrosses[row], centre):
                merged[row, column] = ABOVE
    return Table(downs, acrosses, merged)


def _distinct(values: Iterable[float]) -> list[float]:
    kept: list[float] = []
    for value in sorted(values):
        if not kept or value - kept[-1] > 2 * _NEAR:
            kept.append(value)
    return kept


def _is_ruled(rules: Iterable[Rule], place: float, at: float) -> bool:
    return any(abs(rule.place - place) <= 2 * _NEAR and rule.start <= at <= rule.end for rule in rules)


@dataclass(slots=True)
class Written:
    """The tables of a page as blocks, and the characters outside of them."""

    blocks: list[Word]
    glyphs: Sequence[Glyph]
    rotated: Sequence[Rotated]


def write_tables(tables: Iterable[Table], glyphs: Sequence[Glyph], rotated: Sequence[Rotated]) -> Written:
    """Write the tables of a page as blocks.

    A grid with text in less than two columns or rows is a frame or a drawing: its text is not cells. Rotated text is
    read in cells that have no other, such as headers.
    """
    written = Written([], glyphs, rotated)
    for table in sorted(tables, key=lambda each: -each.acrosses[0]):
        cells: dict[tuple[int, int], list[Glyph]] = {}
        outside: list[Glyph] = []
        for glyph in written.glyphs:
            place = table.find_place((glyph.left + glyph.right) / 2, glyph.base + 0.3 * glyph.height)
            (outside if place is None else cells.setdefault(place, [])).append(glyph)
        upright = {place for place, own in cells.items() if any(glyph.text != " " for glyph in own)}
        left: list[Rotated] = []
        for each in written.rotated:
            place = table.find_place(each.x, each.y)
            if place is None or place in upright:
                left.append(each)
            else:
                cells.setdefault(place, []).append(each.glyph)
        words = {place: found for place, own in cells.items() if (found := find_words(own))}
        if len({row for row, _ in words}) < 2 or len({column for _, column in words}) < 2:
            continue
        rows = _split_body(table, words)
        if rows is None:
            if any(len(to_rows(own)) > _MOST_LINES for own in words.values()):
                continue
            texts = {place: join_lines(own, *table.find_edges(*place)) for place, own in words.items()}
            rows = [_row(table, texts, row) for row in range(len(table.acrosses) - 1)]
        written.glyphs, written.rotated = outside, left
        lines = ["\t".join(row) for row in rows if any(cell not in MARKS for cell in row)]
        block = Word("\n".join(lines), table.downs[0], table.downs[-1], table.acrosses[0], 10.0, rules=table.downs)
        written.blocks.append(block)
    return written


def _row(table: Table, texts: Mapping[tuple[int, int], str], row: int) -> list[str]:
    return [
        table.merged.get((row, column)) or texts.get((row, column), BLANK) for column in range(len(table.downs) - 1)
    ]


def _split_body(table: Table, cells: Mapping[tuple[int, int], list[Word]]) -> list[list[str]] | None:
    """Split the one body of a table without rules between its rows: a line whose first cell is filled begins a row."""
    if len(table.acrosses) != 3 or table.merged:
        return None
    columns = range(len(table.downs) - 1)
    body = [cells.get((1, column), []) for column in columns]
    bases: list[float] = []
    for word in sorted((word for own in body for word in own), key=lambda each: -each.base):
        if not bases or bases[-1] - word.base > 0.5 * word.height:
            bases.append(word.base)
    lines = [[[word for word in own if abs(word.base - base) <= 0.5 * word.height] for own in body] for base in bases]
    # Sentences that go on over several lines are one row.
    begun = sum(bool(line[0]) and any(line[1:]) and not line[0][0].text[0].islower() for line in lines)
    if len(lines) < _LEAST_UNRULED or begun * 5 < len(lines) * 3:
        return None
    rows = [[join_lines(cells.get((0, column), [])) or BLANK for column in columns]]
    for line in lines:
        texts = [join_lines(own) for own in line]
        if len(rows) > 1 and (not texts[0] or texts[0][0].islower()):
            rows[-1] = [_continue(one, other) for one, other in zip(rows[-1], texts, strict=True)]
        else:
            rows.append([text or BLANK for text in texts])
    return rows


def _continue(cell: str, more: str) -> str:
    if not more:
        return cell
    return more if cell == BLANK else f"{cell} {more}"
