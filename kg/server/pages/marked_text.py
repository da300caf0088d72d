"""Texts with marks, split into runs for HTML: highlighted words, links that do not nest, and notes between words."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import pairwise
from typing import Final

from markupsafe import Markup, escape

from kg.errors import InvalidInputError
from kg.text import quoted
from kg.tools.reading.marks import Mark
from kg.tools.zoning.sections import Cell, Table

_SPAN: Final = re.compile(r"(\d{1,9})-(\d{1,9})", re.ASCII)
_SEPARATORS: Final = (" | ", "\n")
"""The separators of the cells of a table in a text."""


@dataclass(frozen=True, slots=True)
class Span:
    """The code points `start` to `end` of a text, zero-based and end-exclusive."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Note:
    """A reference after words: its number and where it leads."""

    number: int
    href: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """Words with at most one link."""

    text: str
    mark: Mark | None = None


@dataclass(slots=True)
class Run:
    """Pieces that are all highlighted or all not, or the notes between such runs."""

    highlighted: bool = False
    first: bool = False
    """Whether the highlight begins here."""
    pieces: list[Piece] = field(default_factory=list)
    notes: Sequence[Note] = ()
    raised: bool = False
    """Whether the words are a footnote mark of the source."""


@dataclass(frozen=True, slots=True)
class MarkedCell:
    """A cell of a table with its text in runs."""

    cell: Cell
    runs: Sequence[Run]


@dataclass(frozen=True, slots=True)
class MarkedTable:
    """A table, row by row."""

    rows: Sequence[Sequence[MarkedCell]]


def parse_span(text: str, length: int) -> Span:
    """Parse ``a-b``: the code points a to b, end-exclusive, of a text of this length.

    Raises InvalidInputError for another form and for a span outside of the text.
    """
    found = _SPAN.fullmatch(text.strip())
    span = Span(int(found[1]), int(found[2])) if found else Span(0, 0)
    if not found or not span.start < span.end <= length:
        raise InvalidInputError(
            f"Invalid span {quoted(text)}. Valid: start-end, from 0, end-exclusive; the text has {length:,} characters."
        )
    return span


def split_text(
    text: str,
    marks: Iterable[Mark] = (),
    highlight: Span | None = None,
    notes: Mapping[int, Sequence[Note]] | None = None,
    *,
    start: int = 0,
    end: int | None = None,
) -> list[Run]:
    """Split the characters `start` to `end` of `text` into runs.

    Offsets of marks and of the highlight, and the places of notes, are those of the whole text. Of several marks at a
    place the longest is kept. Marks outside of the text are left out.
    """
    end = len(text) if end is None else min(end, len(text))
    inside = sorted(
        (max(mark.start, start), mark.start - mark.end, mark.kind, mark.claim, mark)
        for mark in marks
        if mark.start < mark.end and mark.start < end and start < mark.end <= len(text)
    ) if marks else []  # fmt: skip
    lit = Span(max(highlight.start, start), min(highlight.end, end)) if highlight else Span(start, start)
    placed = {place: each for place, each in (notes or {}).items() if start < place <= end}
    edges = {start, end, *placed}
    for _, _, _, _, mark in inside:
        edges |= {max(mark.start, start), min(mark.end, end)}
    if lit.start < lit.end:
        edges |= {lit.start, lit.end}
    ordered = sorted(edges)
    runs: list[Run] = []
    active: list[tuple[int, str, str, Mark]] = []  # the longest first
    at = 0
    for left, right in pairwise(ordered):
        while at < len(inside) and inside[at][0] <= left:
            _, size, kind, claim, mark = inside[at]
            heappush(active, (size, kind, claim, mark))
            at += 1
        while active and active[0][-1].end <= left:
            heappop(active)
        highlighted = lit.start <= left < lit.end
        if not runs or runs[-1].highlighted != highlighted or runs[-1].notes:
            runs.append(Run(highlighted, first=highlighted and left == lit.start))
        mark_here = active[0][-1] if active else None
        pieces = runs[-1].pieces
        if pieces and pieces[-1].mark is mark_here:
            pieces[-1] = Piece(pieces[-1].text + text[left:right], mark_here)
        else:
            pieces.append(Piece(text[left:right], mark_here))
        if right in placed:
            runs.append(Run(notes=placed[right]))
    return runs


def split_blocks(
    text: str,
    marks: Sequence[Mark] = (),
    highlight: Span | None = None,
    notes: Mapping[int, Sequence[Note]] | None = None,
    tables: Sequence[Table] = (),
) -> list[list[Run] | MarkedTable]:
    """Split a text into runs and the tables in it.

    A table whose cells are not found in its words stays text if it has a mark, since the mark would be lost.
    """
    blocks: list[list[Run] | MarkedTable] = []
    done = 0
    for table in tables:
        if not done <= table.start <= table.end <= len(text):
            continue
        starts = find_cells(text, table)
        if starts is None and _is_marked(table, marks, highlight):
            continue
        if runs := _trimmed(text, marks, highlight, notes, done, table.start):
            blocks.append(runs)
        blocks.append(_mark_table(text, table, starts, marks, highlight, notes))
        done = table.end + (text[table.end : table.end + 1] == "\n")
    if runs := _trimmed(text, marks, highlight, notes, done, len(text)):
        blocks.append(runs)
    return blocks


def _trimmed(
    text: str,
    marks: Sequence[Mark],
    highlight: Span | None,
    notes: Mapping[int, Sequence[Note]] | None,
    start: int,
    end: int,
) -> list[Run]:
    """Split a part of a text without the line break before a table."""
    if not text[start:end].strip():
        return []
    while end > start and text[end - 1] == "\n" and (highlight is None or not highlight.start < end <= highlight.end):
        end -= 1
    return split_text(text, marks, highlight, notes, start=start, end=end)


def find_cells(text: str, table: Table) -> list[list[int]] | None:
    """Find the offsets of the cells of a table in the words of `text`. None if other words are between them."""
    found: list[list[int]] = []
    at = table.start
    for row in table.rows:
        starts = []
        for cell in row:
            words = "".join(piece for piece, _ in cell.words)
            begin = at
            while words and not text.startswith(words, begin):
                separator = next((each for each in _SEPARATORS if text.startswith(each, begin)), None)
                if separator is None or begin >= table.end:
                    return None
                begin += len(separator)
            if begin + len(words) > table.end:
                return None
            starts.append(begin)
            at = begin + len(words) if words else at
        found.append(starts)
    return found


def _is_marked(table: Table, marks: Sequence[Mark], highlight: Span | None) -> bool:
    spans = [(mark.start, mark.end) for mark in marks] + ([(highlight.start, highlight.end)] if highlight else [])
    return any(start < table.end and table.start < end for start, end in spans)


def _mark_table(
    text: str,
    table: Table,
    starts: Sequence[Sequence[int]] | None,
    marks: Sequence[Mark],
    highlight: Span | None,
    notes: Mapping[int, Sequence[Note]] | None,
) -> MarkedTable:
    own = [mark for mark in marks if mark.start < table.end and table.start < mark.end]
    places = sorted(place for place in notes or () if table.start < place <= table.end)
    rows = []
    for number, row in enumerate(table.rows):
        cells = []
        for place, cell in enumerate(row):
            words = "".join(piece for piece, _ in cell.words)
            start = 0 if starts is None else starts[number][place]
            here = places[bisect_right(places, start) : bisect_left(places, start + len(words) + 1)]
            some = {each: (notes or {})[each] for each in here}
            runs: list[Run] = []
            for piece, raised in cell.words:
                end = start + len(piece)
                if starts is None:
                    found = split_text(piece)
                else:
                    found = split_text(text, own, highlight, some, start=start, end=end)
                for run in found:
                    run.raised = raised and piece.isascii() and not run.notes  # not with raised characters of its own
                runs += found
                start = end
            cells.append(MarkedCell(cell, runs))
        rows.append(cells)
    return MarkedTable(rows)


_PARAGRAPH: Final = re.compile(r"(?<!\n)\n(?!\n)")


def verbatim(text: str) -> Markup:
    """Escape a text so that a browser shows exactly its characters: a carriage return would become a line feed.

    A single line break begins a paragraph: an element without text after it makes the space.
    """
    kept = str(escape(text)).replace("\r", "&#13;").replace("\0", "\N{REPLACEMENT CHARACTER}")
    return Markup(_PARAGRAPH.sub('\n<span class="gap"></span>', kept))  # noqa: S704
