"""Lines of a page from the places of its characters: words, columns in reading order, raised marks, blank lines.

Columns are found by their white space: a page is cut at the gutter that most lines leave free, into the lines that span
it and those on its two sides, and each part again (recursive X-Y cut: G. Nagy and S. Seth, Hierarchical representation
of optically scanned documents, 1984). A line that the file has in another order is marked as disputed.

Coordinates are points, from the lower left corner, after the page is turned so that its text is upright.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from math import inf
from statistics import median
from typing import Final, Literal, NamedTuple

from loaders.readers.inline import ORDINALS, SUPERSCRIPTS, to_subscript

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
_GUTTER: Final = 0.65
"""Minimum width of the white space between two columns, in heights of the characters. Few spaces are as wide."""
_MARGIN: Final = 0.1
"""Share of the width of a part of a page on each side in which no gutter is tried."""
_DEEPEST: Final = 8
"""Maximum cuts of a part of a page within another one."""
_NEAR: Final = 8
"""Maximum distance of a word from the white space that it is next to, in widths of a gutter."""
_MOST_STRIPS: Final = 200
"""Maximum strips of white space that are followed down a page."""
_LEAST_LINES: Final = 5
"""Minimum lines of a column of its own accord."""
_FILLED: Final = 0.6
"""Minimum length of a third of the lines of a column, in widths of the column. Cells of a table are shorter."""
_LEAST_CHARACTERS: Final = 18
"""Minimum median length of the lines of a column, in characters."""
_RUNNING: Final = 0.5
"""Minimum share of lines that begin with a small letter, and so within a sentence, in a column of short lines."""
_LEAST_RUNNING: Final = 10
"""Minimum median length of such lines."""
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
_TRIED: Final = 12
"""Places for a gutter that are tried, the best first."""
_USUAL_GUTTER: Final = 3
"""Minimum pages with a gutter at which pages of short lines have one too."""
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
    place: int = -1
    """Its place in the order of the file."""


Dispute = Literal["", "line", "join"]
"""line: within a line the order of the file is another one; join: between it and the line before."""


class PageLine(NamedTuple):
    """A line of a page, and whether the file has its words in another order."""

    text: str
    disputed: Dispute = ""


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
    first: int = -1
    last: int = -1
    """The places of its first and last character in the order of the file; -1 for a block."""

    @property
    def block(self) -> bool:
        """Whether it is a block."""
        return bool(self.rules)


@dataclass(slots=True)
class Page:
    """The words and blocks of a page, by line from the top."""

    rows: list[list[Word]] = field(default_factory=list)
    gutters: tuple[float, ...] = ()
    """Middles of the white space between its columns, in the order in which they cut it."""


def build_page(glyphs: Sequence[Glyph], blocks: Iterable[Word] = ()) -> Page:
    """Build a page of its characters outside of `blocks`."""
    words = [*find_words(glyphs), *blocks]
    page = Page(to_rows(words))
    gutters: list[float] = []
    _cut(page.rows, frozenset(), gutters)
    page.gutters = tuple(gutters)
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
                last.last = glyph.place
                continue
            # A small character that follows without a gap, such as small capitals, continues the word.
            last = Word(
                glyph.text, glyph.left, glyph.right, glyph.base, glyph.height, last is not None and near,
                first=glyph.place, last=glyph.place,
            )  # fmt: skip
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
        elif not raised:
            word.text = to_subscript(word.text) or word.text
        elif not (after_digit and word.text in ORDINALS):
            word.text = word.text.translate(SUPERSCRIPTS)
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


def _split_rows(rows: Sequence[Sequence[Word]], gutter: float) -> list[list[Sequence[Word]]]:
    """Split lines at the white space between columns, `gutter` wide."""
    ends = [{0, len(row)} for row in rows]
    free = [_find_free(row, gutter) for row in rows]
    for strip in _find_strips(free, gutter):
        for number in range(strip.first, strip.last + 1):
            ends[number].update(at for left, right, at in free[number] if left <= strip.left and strip.right <= right)
    return [[row[start:end] for start, end in pairwise(sorted(own))] for row, own in zip(rows, ends, strict=True)]


class _Strip(NamedTuple):
    """White space in some lines in a row: its edges, its lines, and in how many of them it is next to words."""

    left: float
    right: float
    first: int
    last: int
    after: int
    before: int


def _find_strips(free: Sequence[Sequence[tuple[float, float, int]]], gutter: float) -> list[_Strip]:
    """Find the white space between columns from that of each line.

    The words of justified text have gaps as wide as a `gutter`, but not below one another in many lines.
    """
    found: list[_Strip] = []
    open_strips: dict[tuple[float, float], _Strip] = {}
    near = _NEAR * gutter
    for number, gaps in enumerate([*free, ()]):
        going: dict[tuple[float, float], _Strip] = {}
        starts = [_Strip(-inf, inf, number, number, 0, 0)]
        for strip in [*sorted(open_strips.values(), key=lambda each: each.first)[:_MOST_STRIPS], *starts]:
            for start, end, _ in gaps[max(0, bisect_right(gaps, (strip.left, inf, 0)) - 1) :]:
                left, right = max(strip.left, start), min(strip.right, end)
                if start > strip.right:
                    break
                if right - left >= gutter:
                    after, before = strip.after + (left - start < near), strip.before + (end - right < near)
                    going.setdefault((left, right), _Strip(left, right, strip.first, number, after, before))
        found += (
            strip
            for edges, strip in open_strips.items()
            if edges not in going and min(strip.after, strip.before) >= _LEAST_LINES
        )
        open_strips = going
    return found


def _find_free(row: Sequence[Word], gutter: float) -> list[tuple[float, float, int]]:
    """Find the white space of a line that is as wide as a `gutter`: its edges, and the word that it is before."""
    edges = [-inf, *accumulate((word.right for word in row), max)]
    lefts = [*(word.left for word in row), inf]
    return [(end, start, at) for at, (end, start) in enumerate(zip(edges, lefts, strict=True)) if start - end >= gutter]


def _leaves_free(row: Sequence[Word], gutter: float, least: float) -> bool:
    return any(left < gutter < right for left, right, _ in _find_free(row, least))


def _get_least_gutter(rows: Sequence[Sequence[Word]]) -> float:
    heights = [word.height for row in rows for word in row if not word.block]
    return _GUTTER * median(heights) if heights else inf


def _find_gutter(rows: Sequence[Sequence[Word]], least: float) -> float | None:
    """Find the middle of the white space between two columns of prose, `least` wide. None if the rows have none."""
    segments = [(part[0].left, part[-1].right) for parts in _split_rows(rows, least) for part in parts]
    if len(segments) < 2 * _LEAST_LINES:
        return None
    start, end = min(left for left, _ in segments), max(right for _, right in segments)
    margin = _MARGIN * (end - start)
    lefts, rights = sorted(left for left, _ in segments), sorted(right for _, right in segments)
    found: list[tuple[float, float]] = []
    strips = _find_strips([_find_free(row, least) for row in rows], least)
    for place in {round(strip.right / _STEP): strip.right - least / 2 for strip in strips}.values():
        left = bisect_right(rights, place - least / 2)
        right = len(lefts) - bisect_left(lefts, place + least / 2)
        if min(left, right) >= _LEAST_LINES and start + margin <= place <= end - margin:
            found.append((2 * min(left, right) - (len(segments) - left - right), place))
    # Of equal places the last one is next to the second column, which begins at the same place on many pages.
    for _, place in sorted(found, reverse=True)[:_TRIED]:
        if any(free and _is_prose(zone, place, least) for zone, free in _split_zones(rows, place, least)):
            return place
    return None


def _split_zones(
    rows: Sequence[Sequence[Word]], gutter: float, least: float, edges: frozenset[int] = frozenset()
) -> list[tuple[list[Sequence[Word]], bool]]:
    """Split lines into those that leave a gutter free and those that do not. `edges` are lines outside of columns.

    A few lines that leave it free within text that does not, such as the ends of paragraphs, belong to that text.
    """
    zones: list[tuple[list[Sequence[Word]], bool]] = []
    pitch = _find_pitch([rows])
    # The lines of two columns side by side may be closer than those of each.
    edges |= _find_heads(rows, gutter, _APART * max(pitch, least / _GUTTER))
    for row in rows:
        free = id(row) not in edges and _leaves_free(row, gutter, least)
        if zones and zones[-1][1] == free:
            zones[-1][0].append(row)
        else:
            zones.append(([row], free))
    merged: list[tuple[list[Sequence[Word]], bool]] = []
    for place, (zone, free) in enumerate(zones):
        within = 0 < place < len(zones) - 1 and free and len(zone) < _LEAST_LINES
        if within:
            above, below = zones[place - 1][0], zones[place + 1][0]
            within = (
                len(above) >= _LEAST_LINES
                and len(below) >= _LEAST_LINES
                and all(
                    one[-1][0].base - other[0][0].base <= _BLANK * pitch
                    for one, other in ((above, zone), (zone, below))
                )
            )
        free = free and not within
        if merged and merged[-1][1] == free:
            merged[-1][0].extend(zone)
        else:
            merged.append((list(zone), free))
    return merged


def _find_heads(rows: Sequence[Sequence[Word]], gutter: float, apart: float) -> frozenset[int]:
    """Find lines on one side of a gutter that are heads of both, by identity: they are `apart` from the other lines.

    The file has them after all lines above, and before all lines below.
    """
    places = [[word.first for word in row if word.first >= 0] for row in rows]
    above = [-1.0, *accumulate((max(each, default=-1) for each in places), max)]
    below = [*accumulate((min(each, default=inf) for each in reversed(places)), min, initial=inf)][::-1]
    starts = [at for at, (one, other) in enumerate(pairwise(rows), 1) if one[0].base - other[0].base > apart]
    heads: set[int] = set()
    for first, end in pairwise([0, *starts]):
        own = [word for row in rows[first:end] for word in row]
        one_sided = max(word.right for word in own) < gutter or min(word.left for word in own) > gutter
        if one_sided and above[first] < below[first] and above[end] < below[end]:
            heads.update(map(id, rows[first:end]))
    return frozenset(heads)


def _cut(
    rows: Sequence[Sequence[Word]],
    edges: frozenset[int],
    gutters: list[float],
    usual: Sequence[float] = (),
    depth: int = 0,
) -> list[list[Sequence[Word]]]:
    """Cut lines into regions in reading order: columns, and the lines above, below and between them.

    Appends the gutters found to `gutters`. `usual` are gutters to cut at where the lines show none. `edges` are the
    identities of lines outside of columns.
    """
    least = _get_least_gutter(rows)
    gutter = _find_gutter(rows, least) if depth < _DEEPEST else None
    if gutter is None:
        gutter = next(iter(usual), None)
        usual = usual[1:]
    else:
        gutters.append(gutter)
    if gutter is None:
        return [list(rows)]
    regions: list[list[Sequence[Word]]] = []
    if depth < _DEEPEST and (at := _find_section(rows, edges, depth)) is not None:
        for part in (rows[:at], rows[at:]):
            regions += _cut(part, edges, gutters, usual, depth + 1)
        return regions
    zones = _split_zones(rows, gutter, least, edges)
    for zone, free in zones:
        if not free:
            regions += _cut(zone, edges, gutters, (), depth + 1) if len(zones) > 1 else [zone]
            continue
        for side in _get_sides(zone):
            own = to_rows(word for row in zone for word in row if (word.left < gutter) == side)
            regions += _cut(own, frozenset(), gutters, usual, depth + 1) if own else []
    return regions


def _find_section(rows: Sequence[Sequence[Word]], edges: frozenset[int], depth: int) -> int | None:
    """Find the line from which on the columns are others: most lines on one side of a gap span gutters of the other."""
    apart = _APART * _find_pitch([rows])
    gaps = [(one[0].base - other[0].base, at) for at, (one, other) in enumerate(pairwise(rows), 1)]
    for gap, at in sorted(gaps, reverse=True)[:_TRIED]:
        if gap < apart or min(at, len(rows) - at) < _LEAST_LINES:
            continue
        for part, others in ((rows[:at], rows[at:]), (rows[at:], rows[:at])):
            found: list[float] = []
            least = _get_least_gutter(others)
            _cut(part, edges, found, (), max(depth + 1, _DEEPEST - 2))
            for gutter in found:
                if sum(not _leaves_free(row, gutter, least) for row in others) * 2 > len(others):
                    return at
    return None


def _get_sides(rows: Sequence[Sequence[Word]]) -> tuple[bool, bool]:
    """Return whether the left side is read first, and second: in text from right to left, the right one is."""
    text = "".join(word.text for row in rows for word in row)
    letters = sum(map(str.isalpha, text))
    reverse = sum(unicodedata.bidirectional(letter) in ("R", "AL") for letter in text)
    return (False, True) if 2 * reverse > letters else (True, False)


def _is_prose(rows: Sequence[Sequence[Word]], gutter: float, least: float) -> bool:
    """Whether both sides of a gutter have lines that fill them. Cells of a table and terms of a list do not.

    A side may have columns of its own, so its lines end at gaps as wide as a gutter.
    """
    for side in (True, False):
        own = [[word for word in row if (word.left < gutter) == side] for row in rows]
        lines = [part for parts in _split_rows([row for row in own if row], least) for part in parts]
        if len(lines) < _LEAST_LINES:
            return False
        lengths = sorted(line[-1].right - line[0].left for line in lines)
        # A running head over columns is wider than they are; the last lines of short paragraphs are half of them.
        if lengths[len(lengths) * 2 // 3] < _FILLED * lengths[len(lengths) * 9 // 10]:
            return False
        running = sum(line[0].text[0].islower() for line in lines) >= _RUNNING * len(lines)
        characters = median(sum(len(word.text) + 1 for word in line) for line in lines)
        if characters < (_LEAST_RUNNING if running else _LEAST_CHARACTERS):
            return False
        if median(_find_letters(line) for line in lines) < _LETTERS:
            return False
    return True


def _find_letters(line: Sequence[Word]) -> float:
    """The share of letters in a line."""
    text = "".join(word.text for word in line)
    return sum(map(str.isalpha, text)) / len(text)


def to_lines(pages: Sequence[Page]) -> Iterator[list[PageLine]]:
    """Yield the lines of each page in reading order.

    A page of short lines has the gutters that are usual in the document, where it leaves them free. Lines at the same
    place above or below the text of many pages are outside of its columns.
    """
    usual = Counter(tuple(round(each / _STEP) for each in page.gutters) for page in pages if page.gutters)
    common = next((places for places, times in usual.most_common(1) if times >= _USUAL_GUTTER), ())
    table: Word | None = None
    for page, outside in zip(pages, _find_edges(pages), strict=True):
        usually = () if page.gutters else tuple(place * _STEP for place in common)
        regions = _cut(page.rows, outside, [], usually)
        pitch = _find_pitch(regions)
        ranks = _rank(regions)
        lines: list[PageLine] = []
        last: Word | None = None
        for before, rows in zip([[], *regions], regions, strict=False):
            if before and rows and _is_ended(before[-1], rows[0], pitch, *_find_margins(before)):
                lines.append(PageLine(""))
            begun = len(lines)
            for text, row in _write(rows, pitch, table):
                lines.append(PageLine(text, _find_dispute(row, last, ranks)))
                last = next((word for word in reversed(row) if id(word) in ranks), last)
            if before and begun < len(lines):
                lines[begun] = lines[begun]._replace(text=COLUMN + lines[begun].text)
            table = next((row[0] for row in reversed(rows) if row[0].block), table)
        yield lines


def _rank(regions: Sequence[Sequence[Sequence[Word]]]) -> dict[int, int]:
    """Number the words of a page in the order of the file, by identity. Raised words are often printed apart."""
    words = [word for rows in regions for row in rows for word in row if word.first >= 0]
    usual = median(word.height for word in words) if words else 0.0
    words = [word for word in words if word.height > _SMALL * usual]
    return {id(word): rank for rank, word in enumerate(sorted(words, key=lambda each: each.first))}


def _find_dispute(row: Sequence[Word], before: Word | None, ranks: Mapping[int, int]) -> Dispute:
    """Find whether the file has the words of a line, or this line and the word `before` it, in another order."""
    own = [ranks[id(word)] for word in row if id(word) in ranks]
    if any(abs(after - one) > 1 for one, after in pairwise(own)):
        return "line"
    return "join" if own and before is not None and own[0] - ranks[id(before)] != 1 else ""


def _find_edges(pages: Sequence[Page]) -> list[frozenset[int]]:
    """Find the first and last lines that are apart from the text and outside of its columns, by identity.

    They are at the same height on many pages, or begin where no other line does, as a centred page number.
    """
    heights: Counter[int] = Counter()
    candidates: list[list[tuple[Sequence[Word], int]]] = []
    for page in pages:
        own: list[tuple[Sequence[Word], int]] = []
        rows = page.rows
        if len(rows) > 3:
            apart = _APART * _find_pitch(_cut(rows, frozenset(), []))
            if rows[0][0].base - rows[1][0].base > apart:
                own.append((rows[0], round(rows[0][0].base / _STEP)))
            if rows[-2][0].base - rows[-1][0].base > apart:
                own.append((rows[-1], round(rows[-1][0].base / _STEP)))
        heights.update(height for _, height in own)
        candidates.append(own)
    least = max(_USUAL_GUTTER, _EDGE_SHARE * sum(bool(page.rows) for page in pages))
    return [
        frozenset(id(row) for row, height in own if heights[height] >= least or not _is_aligned(row, page))
        for page, own in zip(pages, candidates, strict=True)
    ]


def _is_aligned(row: Sequence[Word], page: Page) -> bool:
    """Whether a line begins where others of its page do, those of a column or of the whole page."""
    split = zip(page.rows, _split_rows(page.rows, _get_least_gutter(page.rows)), strict=True)
    starts = (part[0].left for other, parts in split if other is not row for part in parts)
    return sum(abs(start - row[0].left) <= _STEP for start in starts) >= 2


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


def _write(rows: Sequence[Sequence[Word]], pitch: float, table: Word | None) -> Iterator[tuple[str, Sequence[Word]]]:
    """Write lines with their indentation, and a blank line where a paragraph ends. `table` is the last one before.

    Yields each line with its words, none for a blank line or a table.
    """
    margin, edge = _find_margins(rows)
    above: Sequence[Word] | None = None
    for row in rows:
        first = row[0]
        if above is not None and _is_ended(above, row, pitch, margin, edge):
            yield "", ()
        above = None if first.block else row
        if first.block:
            if table is None or not _is_continued(table, first):
                yield END, ()
            table = first
            yield from ((line, ()) for line in first.text.split("\n"))
            continue
        # One space would mean the rest of a word that a program cut off.
        indent = round((first.left - margin) / (0.5 * first.height))
        yield (" " * indent if indent > 1 else "") + join_words(row), row


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
