"""Lines of a page from the places of its characters: words, columns in reading order, raised marks, blank lines.

Coordinates are points, from the lower left corner, after the page is turned so that its text is upright.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from statistics import median
from typing import Final, NamedTuple

_SAME_LINE: Final = 0.25
"""Maximum distance of the baselines of one line, in heights of its characters."""
_WORD_GAP: Final = 0.17
"""Minimum gap between two words, in heights, on a page whose spaces are no characters."""
_WORD_GAP_SPACED: Final = 0.25
"""The same on a page whose spaces are characters: a smaller gap is between letters that are set apart."""
_WORD_GAP_TIGHT: Final = 0.12
"""The same where the letters on both sides are not set apart: heights of fonts differ by a third."""
_TIGHT: Final = 0.05
"""Maximum gap of letters that are not set apart, in heights."""
_SPACED: Final = 0.05
"""Share of spaces from which they are characters."""
_TWIN: Final = 0.1
"""Maximum distance of two equal characters that are one, printed twice to look bold."""
_SMALL: Final = 0.82
"""Maximum height of a raised or lowered character, in heights of the line's."""
_MOST_RAISED: Final = 500
"""Maximum small characters of a page that may be between two characters of a line."""
_GUTTER: Final = 9.0
"""Minimum width of the white space between two columns."""
_LEAST_LINES: Final = 5
"""Minimum lines of a column of its own accord."""
_FILLED: Final = 0.6
"""Minimum length of a third of the lines of a column, in widths of the column. Cells of a table are shorter."""
_LEAST_CHARACTERS: Final = 18
"""Minimum median length of the lines of a column, in characters."""
_LETTERS: Final = 0.6
"""Minimum median share of letters in the lines of a column. Rows of figures have fewer."""
_BLANK: Final = 1.25
"""Minimum distance of two lines with a blank line between them, in usual distances."""
_APART: Final = 1.5
"""Minimum distance of a running head or foot from the text, in usual distances."""
_EDGE_SHARE: Final = 0.3
"""Minimum share of the pages that have a running head or foot at the same height."""
_STEP: Final = 3.0
"""Distance of the places at which a gutter is tried, and of two lines that are at the same height."""
_USUAL_GUTTER: Final = 3
"""Minimum pages with a gutter at which pages of short lines have one too."""
_SUPERSCRIPTS: Final = str.maketrans(
    "0123456789+-()abcdefghijklmnoprstuvwxyz",
    "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207a\u207b\u207d\u207e"
    "\u1d43\u1d47\u1d9c\u1d48\u1d49\u1da0\u1d4d\u02b0\u2071\u02b2\u1d4f\u02e1\u1d50\u207f\u1d52\u1d56\u02b3\u02e2\u1d57"
    "\u1d58\u1d5b\u02b7\u02e3\u02b8\u1dbb",
)
_ORDINALS: Final = frozenset({"st", "nd", "rd", "th"})
_SHORT: Final = 3
"""Characters of the shortest word that begins a line of its own."""
_FILLS: Final = 0.6
"""Maximum room at the end of a line of a cell for one more character, in heights."""
_SAME_RULE: Final = 6.0
"""Maximum distance of the rules down of two parts of a table, from its left side."""
END: Final = "\ufdd3\t\ufdd3"
"""Line between two tables that are no parts of one."""
COLUMN: Final = "\x1f"
"""Start of a column, or of lines over or below columns."""
BREAK: Final = "\ufdd4"
"""End of a line of a cell: a space, or nothing where the cell is too narrow for a word."""


class Glyph(NamedTuple):
    """A character with its left and right edge, its baseline and the height of its font."""

    text: str
    left: float
    right: float
    base: float
    height: float


@dataclass(slots=True)
class Word:
    """A word, or a block, which has lines of its own. `glued`: no space before it."""

    text: str
    left: float
    right: float
    base: float
    height: float
    glued: bool = False
    rules: Sequence[float] = ()
    """The rules down of a table, from the left. Only a table has them."""

    @property
    def block(self) -> bool:
        """Whether it is a block."""
        return bool(self.rules)


@dataclass(slots=True)
class Page:
    """The words and blocks of a page, by line from the top."""

    rows: list[list[Word]] = field(default_factory=list)
    gutter: float | None = None
    """Middle of the white space between its columns."""


def build_page(glyphs: Sequence[Glyph], blocks: Iterable[Word] = ()) -> Page:
    """Build a page of its characters outside of `blocks`."""
    words = [*find_words(glyphs), *blocks]
    page = Page(to_rows(words))
    page.gutter = _find_gutter(page.rows)
    return page


def find_words(glyphs: Sequence[Glyph]) -> list[Word]:
    """Join characters to words. Raised and lowered words get the baseline of their line."""
    spaces = sum(glyph.text == " " for glyph in glyphs)
    least = _WORD_GAP_SPACED if spaces >= _SPACED * len(glyphs) else _WORD_GAP
    words: list[Word] = []
    usual = median(glyph.height for glyph in glyphs) if glyphs else 0.0
    raised = [glyph for glyph in glyphs if glyph.height <= _SMALL * usual and glyph.text != " "][:_MOST_RAISED]
    for row in _cluster(glyphs):
        last: Word | None = None
        twin: Glyph | None = None
        before: float | None = None
        glyphs_of_row = sorted(row, key=lambda each: each.left)
        for glyph, after in zip(glyphs_of_row, [*glyphs_of_row[1:], None], strict=True):
            if glyph.text == " ":
                last = None
                continue
            if twin is not None and twin.text == glyph.text and glyph.left - twin.left <= _TWIN * glyph.height:
                continue
            twin = glyph
            gap = None if last is None else (glyph.left - last.right) / max(glyph.height, last.height)
            near = gap is not None and gap <= least and not _is_apart(before, gap, glyph, after)
            before = gap
            if last is not None and near and glyph.left - last.right > _TWIN * glyph.height:
                between = (last.right + glyph.left) / 2
                near = not any(
                    each.left <= between <= each.right and 0 < each.base - glyph.base < glyph.height for each in raised
                )
            if last is not None and near and _SMALL < glyph.height / last.height < 1 / _SMALL:
                last.text += glyph.text
                last.right = max(last.right, glyph.right)
                continue
            # A small character that follows without a gap, such as small capitals, continues the word.
            last = Word(glyph.text, glyph.left, glyph.right, glyph.base, glyph.height, last is not None and near)
            words.append(last)
    return _place_raised(words)


def _is_apart(before: float | None, gap: float, glyph: Glyph, after: Glyph | None) -> bool:
    """Whether a gap too small for that on its own is between words: the letters next to it are not set apart.

    `before` is the gap before it, in heights.
    """
    if gap < _WORD_GAP_TIGHT:
        return False
    following = None if after is None or after.text == " " else (after.left - glyph.right) / glyph.height
    known = [each for each in (before, following) if each is not None and each <= _WORD_GAP_SPACED]
    return bool(known) and max(known) <= _TIGHT


def _cluster(glyphs: Iterable[Glyph]) -> Iterator[list[Glyph]]:
    """Group characters by baseline, from the top."""
    row: list[Glyph] = []
    for glyph in sorted(glyphs, key=lambda each: -each.base):
        if row and row[0].base - glyph.base > _SAME_LINE * min(row[0].height, glyph.height):
            yield row
            row = []
        row.append(glyph)
    if row:
        yield row


def _place_raised(words: list[Word]) -> list[Word]:
    """Give raised and lowered words the baseline of the word next to them, and raised ones their own characters."""
    if not words:
        return words
    usual = median(word.height for word in words)
    small = [word for word in words if word.height <= _SMALL * max(usual, word.height) or len(word.text) <= 3]
    if not small:
        return words
    by_base = sorted(words, key=lambda word: word.base)
    bases = [word.base for word in by_base]
    for word in small:
        best: tuple[float, Word, bool] | None = None
        low = bisect_left(bases, word.base - usual * 1.5)
        for other in by_base[low:]:
            if other.base > word.base + usual:
                break
            shift = (word.base - other.base) / other.height
            if word.height > _SMALL * other.height or not (0.1 < shift < 0.7 or -0.4 < shift < -0.05):
                continue
            after, before = word.left - other.right, other.left - word.right
            for gap, follows in ((after, True), (before, False)):
                if -0.3 * other.height < gap < 0.3 * other.height and (best is None or gap < best[0]):
                    best = gap, other, follows
        if best is None:
            continue
        _, other, follows = best
        raised = word.base > other.base
        word.base = other.base
        after_digit = follows and other.text[-1:].isdigit()
        word.glued = follows
        if raised and (slash := _find_slash(word, words)) is not None:
            word.glued = follows and not other.text[-1:].isdigit()
            slash.glued = True
        elif raised and not (after_digit and word.text in _ORDINALS):
            word.text = word.text.translate(_SUPERSCRIPTS)
    return words


def _find_slash(word: Word, words: Sequence[Word]) -> Word | None:
    """Find the slash after a raised number: 1/2."""
    if not word.text.isdigit():
        return None
    return next(
        (
            other
            for other in words
            if other.text[0] in "/\u2044"
            and abs(other.left - word.right) < 0.3 * other.height
            and abs(other.base - word.base) < other.height
        ),
        None,
    )


def to_rows(words: Iterable[Word]) -> list[list[Word]]:
    """Group words by line, from the top, each from the left."""
    rows: list[list[Word]] = []
    for word in sorted(words, key=lambda each: -each.base):
        if rows and not word.block and not rows[-1][0].block:
            first = rows[-1][0]
            if first.base - word.base <= _SAME_LINE * min(first.height, word.height):
                rows[-1].append(word)
                continue
        rows.append([word])
    for row in rows:
        row.sort(key=lambda each: each.left)
    return rows


def _segments(row: Sequence[Word]) -> Iterator[list[Word]]:
    """Split a line at gaps as wide as a gutter."""
    part: list[Word] = []
    for word in row:
        if part and word.left - part[-1].right >= _GUTTER:
            yield part
            part = []
        part.append(word)
    if part:
        yield part


def _find_gutter(rows: Sequence[list[Word]]) -> float | None:
    """Find the middle of the white space between two columns of prose. None if the page has none."""
    segments = [(part[0].left, part[-1].right) for row in rows for part in _segments(row)]
    if len(segments) < 2 * _LEAST_LINES:
        return None
    start, end = min(left for left, _ in segments), max(right for _, right in segments)
    best: tuple[float, float] | None = None
    place = start + 0.2 * (end - start)
    while place < start + 0.8 * (end - start):
        low, high = place - _GUTTER / 2, place + _GUTTER / 2
        left = sum(right <= low for _, right in segments)
        right = sum(left >= high for left, _ in segments)
        score = 2 * min(left, right) - (len(segments) - left - right)
        # Of equal places the last one is next to the second column, which begins at the same place on many pages.
        if min(left, right) >= _LEAST_LINES and (best is None or score >= best[0]):
            best = score, place
        place += _STEP
    if best is None:
        return None
    zones = _split_zones(rows, best[1])
    return best[1] if any(columns and _is_prose(zone, best[1]) for zone, columns in zones) else None


def _split_zones(
    rows: Sequence[list[Word]], gutter: float, edges: frozenset[int] = frozenset()
) -> list[tuple[list[list[Word]], bool]]:
    """Split lines into those that leave a gutter free and those that do not. `edges` are lines outside of columns."""
    zones: list[tuple[list[list[Word]], bool]] = []
    for place, row in enumerate(rows):
        free = place not in edges and not any(part[0].left < gutter < part[-1].right for part in _segments(row))
        if zones and zones[-1][1] == free:
            zones[-1][0].append(row)
        else:
            zones.append(([row], free))
    return zones


def _is_prose(rows: Sequence[Sequence[Word]], gutter: float) -> bool:
    """Whether both sides of a gutter have lines that fill them. Cells of a table and terms of a list do not."""
    for side in (True, False):
        lines = [own for row in rows if (own := [word for word in row if (word.left < gutter) == side])]
        if len(lines) < _LEAST_LINES:
            return False
        # A running head over both columns is wider than they are.
        right = sorted(line[-1].right for line in lines)[len(lines) * 9 // 10]
        width = right - min(line[0].left for line in lines)
        lengths = sorted(line[-1].right - line[0].left for line in lines)
        if lengths[len(lengths) * 2 // 3] < _FILLED * width:  # the last lines of short paragraphs are half of them
            return False
        if median(sum(len(word.text) + 1 for word in line) for line in lines) < _LEAST_CHARACTERS:
            return False
        if median(_find_letters(line) for line in lines) < _LETTERS:
            return False
    return True


def _find_letters(line: Sequence[Word]) -> float:
    """The share of letters in a line."""
    text = "".join(word.text for word in line)
    return sum(map(str.isalpha, text)) / len(text)


def to_lines(pages: Sequence[Page]) -> Iterator[list[str]]:
    """Yield the lines of each page in reading order.

    A page of short lines has the gutter that is usual in the document, where it leaves that free. Lines at the same
    place above or below the text of many pages are outside of its columns.
    """
    usual = Counter(round(page.gutter / _STEP) for page in pages if page.gutter is not None)
    common = next((place * _STEP for place, times in usual.most_common(1) if times >= _USUAL_GUTTER), None)
    for page in pages:
        page.gutter = common if page.gutter is None else page.gutter
    table: Word | None = None
    for page, outside in zip(pages, _find_edges(pages), strict=True):
        regions = _find_regions(page, outside)
        pitch = _find_pitch(regions)
        lines: list[str] = []
        for before, rows in zip([[], *regions], regions, strict=False):
            if before and rows and _is_ended(before[-1], rows[0], pitch, *_find_margins(before)):
                lines.append("")
            begun = len(lines)
            lines += _write(rows, pitch, table)
            if before and begun < len(lines):
                lines[begun] = COLUMN + lines[begun]
            table = next((row[0] for row in reversed(rows) if row[0].block), table)
        yield lines


def _find_edges(pages: Sequence[Page]) -> list[frozenset[int]]:
    """Find the first and last lines that are apart from the text, at the same height on many pages."""
    heights: Counter[int] = Counter()
    candidates: list[list[tuple[int, int]]] = []
    for page in pages:
        own: list[tuple[int, int]] = []
        bases = [row[0].base for row in page.rows]
        if len(bases) > 3:
            apart = _APART * _find_pitch(_find_regions(page, frozenset()))
            if bases[0] - bases[1] > apart:
                own.append((0, round(bases[0] / _STEP)))
            if bases[-2] - bases[-1] > apart:
                own.append((len(bases) - 1, round(bases[-1] / _STEP)))
        heights.update(height for _, height in own)
        candidates.append(own)
    least = max(_USUAL_GUTTER, _EDGE_SHARE * sum(bool(page.rows) for page in pages))
    return [frozenset(place for place, height in own if heights[height] >= least) for own in candidates]


def _find_regions(page: Page, outside: frozenset[int]) -> list[list[list[Word]]]:
    """Split a page into regions of lines in reading order: columns, and the lines above, below and between them."""
    if page.gutter is None:
        return [page.rows]
    regions: list[list[list[Word]]] = []
    for rows, free in _split_zones(page.rows, page.gutter, outside):
        if free:
            for side in (True, False):
                own = to_rows(word for row in rows for word in row if (word.left < page.gutter) == side)
                regions += [own] if own else []
        else:
            regions.append(rows)
    return regions


def _find_pitch(regions: Sequence[Sequence[Sequence[Word]]]) -> float:
    """The distance of two lines of a paragraph: one in five is smaller, as between short paragraphs many are larger."""
    heights = [row[0].height for rows in regions for row in rows if not row[0].block]
    if not heights:
        return 12.0
    height = median(heights)
    steps = sorted(
        one[0].base - other[0].base
        for rows in regions
        for one, other in pairwise(rows)
        if not (one[0].block or other[0].block) and one[0].base - other[0].base > 0.6 * height
    )
    return steps[len(steps) // 5] if steps else 1.2 * height


def _write(rows: Sequence[Sequence[Word]], pitch: float, table: Word | None) -> Iterator[str]:
    """Write lines with their indentation, and a blank line where a paragraph ends. `table` is the last one before."""
    margin, edge = _find_margins(rows)
    above: Sequence[Word] | None = None
    for row in rows:
        first = row[0]
        if above is not None and _is_ended(above, row, pitch, margin, edge):
            yield ""
        above = None if first.block else row
        if first.block:
            if table is None or not _is_continued(table, first):
                yield END
            table = first
            yield from first.text.split("\n")
            continue
        # One space would mean the rest of a word that a program cut off.
        indent = round((first.left - margin) / (0.5 * first.height))
        yield (" " * indent if indent > 1 else "") + join_words(row)


def _is_continued(table: Word, after: Word) -> bool:
    """Whether two tables have the same columns. The columns of text or the pages that they are in may differ."""
    shift = after.left - table.left
    return len(table.rules) == len(after.rules) and all(
        abs(other - one - shift) <= _SAME_RULE for one, other in zip(table.rules, after.rules, strict=True)
    )


def _find_margins(rows: Sequence[Sequence[Word]]) -> tuple[float, float]:
    """Find where lines begin and full lines end."""
    starts = [row[0].left for row in rows if not row[0].block]
    ends = sorted(row[-1].right for row in rows if not row[0].block)
    return (min(starts), ends[len(ends) * 9 // 10]) if starts else (0.0, 0.0)


def _is_ended(above: Sequence[Word], row: Sequence[Word], pitch: float, margin: float, edge: float) -> bool:
    """Whether a paragraph ends with the line `above`.

    It does if the next line is further below than usual, if its first word had room on the line, or if it is indented
    after a sentence. A short word is kept with the next one: ``§ 3``.
    """
    first = row[0]
    if above[0].base - first.base > _BLANK * pitch:
        return True
    if first.block or first.text[0].islower():
        return False
    kept = row[1] if len(first.text) < _SHORT and len(row) > 1 else first
    if above[-1].right + 0.8 * first.height + kept.right - first.left <= edge:
        return True
    indented = first.left - above[0].left > first.height and above[0].left - margin < first.height
    return indented and above[-1].text[-1] in ".;:" and above[0].text[-1] not in ".)"


def join_words(row: Sequence[Word]) -> str:
    """Join the words of a line."""
    return "".join(word.text if not place or word.glued else f" {word.text}" for place, word in enumerate(row))


def join_lines(words: Iterable[Word], left: float = -inf, right: float = inf) -> str:
    """Join the words of a cell, line by line. `left` and `right` are the edges of the cell.

    A hyphen at the end of a line is kept without a space after it.
    """
    text = ""
    above: Sequence[Word] = ()
    for row in to_rows(words):
        line = join_words(row)
        if above:
            last = above[-1]
            filled = right - (above[0].left - left) - last.right < _FILLS * last.height
            hyphened = len(text) > 1 and text[-1] == "-" and text[-2].isalnum() and line[0].isalnum()
            text += "" if hyphened or (filled and line[0] == "-") else BREAK
        text += line
        above = row
    return text
