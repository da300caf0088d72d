"""Paragraphs of a text that was extracted from the pages of a PDF or of a printout.

Such a text has page numbers and running heads between its lines, and a line break wherever the paper ended. Pages are
found by form feeds or by their numbers: lines of one number each, in ascending order and some lines apart. Lines
that recur at the head or foot of pages are removed with the numbers, and the lines of a paragraph are joined. Spaces
within words, which a program that extracts text adds where letters are apart, are removed: "establishm ent" where the
text also has "establishment". Apart from furniture, only white space and hyphens at the ends of lines differ from the
file.
"""

from __future__ import annotations

import re
from bisect import bisect, bisect_left
from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import inf
from statistics import median
from typing import Final, Literal, overload

from kg.words import FORMS
from loaders.readers import history_notes
from loaders.readers.headings import LEADERS, LONGEST_RUN_IN, is_unfinished, parse_heading
from loaders.readers.html_tree import normalize_space
from loaders.readers.page_layout import BREAK, COLUMN, END

_LEAST_PAGES: Final = 3
_LEAST_LINES: Final = 8
"""Minimum lines between two pages that are found by their numbers: the numbers of a list are closer."""
_MOST_LINES: Final = 400
_SKIPPED: Final = 12
"""Page numbers that may be missing in sequence: blank pages, and numbers on the line of other text."""
_REGULAR: Final = 0.2
"""Maximum usual difference between the lengths of numbered pages, as a share of the usual length."""
_LEAST_SHARE: Final = 0.5
"""Minimum share of the lines that the numbered pages must span."""
_LINES_OF_NOTE: Final = 8
"""Lines over which a note on the history of a section may go on before its bracket is closed."""
_EDGE: Final = 3
"""Lines at the head and foot of a page that may be furniture."""
_RECURS: Final = 3
"""Minimum pages at whose edges a line of furniture is."""
_COUNTING: Final = 0.7
"""Share of the steps from page to page in which the number in a running head grows by one a page."""
_FULL: Final = 0.7
"""Share of the usual width from which a line may be broken by the margin."""

_SHORT: Final = 40
_LEAST_RUN_IN: Final = 3
"""Minimum spaces in a sentence after a heading, where both are on one line."""
_WHOLE: Final = 2
"""How many times as often as broken the text must have a word whole, if one of its pieces may be a word."""
_LEAST_BROKEN: Final = 5
"""Minimum broken words that cannot be two words. With fewer, pairs that may be two words are kept apart."""
_LEAST_LETTERS: Final = 3
"""Minimum letters of a piece that may be a word of its own."""
_LONG: Final = 6
"""Minimum letters of a word that may be known by its other number."""
_PARTICLES: Final = frozenset({"back", "down", "off", "out", "over", "through", "way"})
"""Ends of nouns that are also words after a verb: ``runoff`` and ``run off``."""
_THOUSANDS: Final = 3
"""Figures after a comma in a number."""
_WITHIN: Final = 0.7
"""Share of the uses of a piece of a word in which it is a piece."""

_PAGE_NUMBER: Final = re.compile(
    r"(?:page\s++)?[-\u2013\u2014|\[\s]*+(?P<number>\d{1,4})(?P<letter>[A-Z]?)(?:\s*+(?:of|/)\s*+\d{1,4})?[-\u2013\u2014|\]\s]*+",
    re.IGNORECASE,
)
_BROKEN_FIGURES: Final = re.compile(r"(?<![\d.,/$-])(\d{1,3}(?:,\d{3})*,(?:\d \d\d|\d\d \d)|\d{1,2} ,\d{3})(?![\d,])")
"""A number whose space is within a group of three figures: ``87,1 20``."""
_BROKEN_REFERENCE: Final = re.compile(
    r"\b(?:[Aa]rticles?|[Ss]ections?|[Cc]hapters?|[Ss]ecs?\.|\u00a7) ?(\d{1,3}\.) (\d{1,3})[A-Z]?(?![\w.])"
)
_BROKEN_NUMERAL: Final = re.compile(r"\b(?i:articles?|chapters?|parts?|titles?) ([IVXL]+) ([IVX]+)(?![\w.])")
_NUMERAL: Final = re.compile(r"(?:XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_OWN_NUMBER: Final = re.compile(r"\d{1,3}\.\d{1,3}(?=[A-Z]?(?:[ .]|$))")
_LED: Final = re.compile(r"(?P<number>\d{1,4})(?P<letter>[A-Z]?)\s+(?=\S)(?![-.:]\s?\d)")
_WORD: Final = re.compile(r"(?<![A-Za-z'\u2019])[A-Za-z]{2,}|(?<![A-Za-z'\u2019(])[A-Za-z](?![A-Za-z.)])")
"""A word, but not the label of an item."""
_LOWER: Final = re.compile(r"[a-z]+")
_PAIR: Final = re.compile(r"(?<![\w'\u2019.-])([A-Za-z]+)(?= ([A-Za-z]+)(?![\w'\u2019]))")
"""Two words with one space between them. The second is also the first of the next pair."""
_FIGURE_PIECES: Final = re.compile(rf"(?<=,)(\d{{0,2}}){BREAK}(\d{{1,3}})(?![\d,])")
_PIECES: Final = re.compile(rf"(?<![A-Za-z])[A-Za-z]+(?:{BREAK}[A-Za-z]+)+")
_BEFORE_HYPHEN: Final = re.compile(r"(?<=\w) -(?=\w)")
_AFTER_HYPHEN: Final = re.compile(r"(?<=[a-z])- (?!(?:and|or|to|nor|through)\b)(?=[a-z])|(?<=[A-Z0-9])- (?=\d)")
_RUN_IN: Final = re.compile(r"\s?[.:]\s+(?=[\"\u201c(]?[A-Z])")
_DIGITS: Final = re.compile(r"\d+")
_OUTER_NUMBER: Final = re.compile(r"^\d{1,4}\s++|(?<!\s)\s++\d{1,4}$")
_LABEL: Final = re.compile(
    r"(?:\([0-9A-Za-z]{1,4}\)|(?:[0-9]{1,3}|[A-Za-z]|[ivxlcIVXLC]{2,5})[.)])(?=\s|$)|[\u2022\u00b7\u25aa\u25cf\u25e6*\uf0b7](?=\s)|[-\u2013](?=\s)"
)
_FIRST_LABEL: Final = re.compile(r"(?:\([1aAi]\)|[1aA][.)]|[\u2022\u00b7\u25aa\u25cf\u25e6\uf0b7])(?=\s)")
_END: Final = re.compile(r"[.;:!?][\"\u201d\u2019')\]]*$")
_REFERS: Final = re.compile(
    r"(?:\b(?:sections?|secs?\.|subsections?|paragraphs?|articles?|chapters?|tables?)|\u00a7)$", re.I
)
_ABBREVIATED: Final = re.compile(
    r"(?:\b[A-Z]\.(?: ?[A-Z]\.){1,12}|\b(?:[Cc]|[Cc]h|[Nn]os?|[Aa]rt|[Tt]it|[Ss]ubd)\."
    r"|\d[^\s,;]{0,40} (?:and|or|to|through|[A-Z]{2,}))$"
)
"""End of a line before a number: ``K.S.A.``, ``M.G.L. c.``, ``42 CFR``, ``Sections 4-1 and``."""
_SPELLED: Final = re.compile(
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen"
    r"|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|hundred|thousand|percent|half)$",
    re.IGNORECASE,
)
"""End of a line before the number in figures: ``thirty`` before ``(30) feet``."""
_FIGURES: Final = re.compile(r"\(\d[\d,./]*%?\)")
_NUMBER_IN_SENTENCE: Final = re.compile(r"\d[\w.\-:]*(?:[,;)]|\.?\s+[a-z(])")
_MEASURE: Final = re.compile(
    r"\d\)?(?: ?%|[ -](?:feet|foot|ft|inch(?:es)?|percent|acres?|square|sq|stor(?:y|ies)|dwellings?|spaces?)\b)",
    re.IGNORECASE,
)
"""A number with its unit, which no running head has."""
_TERM: Final = re.compile(r"[A-Z\"\u201c][^.;:]{1,60}?\s?:\s")
"""Start of a definition or of an item with a heading."""
_BROKEN_WORD: Final = re.compile(r"(?<![A-Za-z])([A-Za-z]{2,})-$")
_ENDS_IN_HYPHEN: Final = re.compile(r"[^\W_]-$")
_HYPHENED: Final = re.compile(r"(?<![A-Za-z])[A-Za-z]+(?:-[A-Za-z]+)+")
_COMPOUND: Final = re.compile(r"(?<![\w-])(?=(\w+-\w+))")
_SPLIT_COMPOUND: Final = re.compile(r"(?<![\w-])(\w+)- (\w+)")
_SUSPENDED: Final = re.compile(r"(?:and|or|to|nor|through)\b")
"""Word after a hyphen before one that it does not belong to: ``front- and rear-loaded``."""
_NUMBERED: Final = re.compile(r"\d+(?:[.\-:]\d+)+[A-Za-z]?\.?(?=\s|$)")


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph or heading with its first and last line in the file, from 1."""

    text: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class PageText:
    """The paragraphs of a text of pages, and its furniture."""

    paragraphs: Sequence[Paragraph]
    pages: int
    furniture: Sequence[tuple[int, str]]
    """Removed lines with their numbers: page numbers, running heads and feet."""
    mended: Mapping[str, int]
    """Broken words that were joined, by how often: ``establishm ent``."""


@dataclass(slots=True)
class _Line:
    text: str
    number: int
    page: int
    part: int
    """The page or column, counted through the text."""
    after_blank: bool = False
    indent: int = 0

    @property
    def tabs(self) -> bool:
        return "\t" in self.text


@overload
def parse_pages(lines: Sequence[str], *, printed: Literal[True]) -> PageText: ...
@overload
def parse_pages(lines: Sequence[str]) -> PageText | None: ...
def parse_pages(lines: Sequence[str], *, printed: bool = False) -> PageText | None:
    """Parse the lines of a text into paragraphs. None if no pages are found, unless the text is known to be `printed`.

    `lines` keep their form feeds. Each character that is not white space or furniture is in one paragraph, in order.
    """
    starts = _find_pages(lines, printed)
    if starts is None:
        return None
    kept, furniture = _without_furniture(lines, starts, printed)
    paragraphs, mended = _mend_words(list(_join(kept, printed)))
    return PageText(paragraphs, len(starts) + 1, furniture, mended)


def group_rows(paragraphs: Sequence[Paragraph], *, paged: bool) -> Iterator[tuple[int, Sequence[Sequence[str]]]]:
    """Yield the places of paragraphs that are not empty, and tables as their rows.

    Cells are separated by tabs, and empty at the start and end of a line if another row has one there. With `paged`,
    the header that a table repeats after a page break is left out.
    """
    rows: list[list[str]] = []
    start = repeated = 0
    for place, each in enumerate(paragraphs):
        line, all_cells = each.text.strip(), each.text.strip(" \r\n").split("\t")
        if line != END and ("\t" in line or (line and rows and len(all_cells) == len(rows[0]) > 1)):
            start = start if rows else place
            cells = [normalize_space(cell) for cell in all_cells]
            # A table that continues on the next page repeats the rows of its header, in order.
            repeated = next((at + 1 for at in (repeated, 0) if paged and at < len(rows) and rows[at] == cells), 0)
            if not repeated:
                rows.append(cells)
            continue
        if rows:
            yield start, _drop_edges(rows)
            rows, repeated = [], 0
        if line and line != END:
            yield place, ()
    if rows:
        yield start, _drop_edges(rows)


def _drop_edges(rows: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
    """Drop the empty first and last cells that all rows have: indentation is not a column."""
    first = min(next((place for place, cell in enumerate(row) if cell), len(row)) for row in rows)
    width = max(len(row) - next((place for place, cell in enumerate(reversed(row)) if cell), len(row)) for row in rows)
    return [[*row[first:width], *[""] * (min(len(rows[0]), width) - len(row))] for row in rows]


@dataclass(frozen=True, slots=True)
class _PageNumber:
    """A page number with its line. `alone`: without other text on the line."""

    line: int
    number: int
    end: int
    alone: bool
    letter: str = ""

    @property
    def order(self) -> tuple[int, str]:
        """Its place among the pages: 27B is between 27 and 28."""
        return self.number, self.letter


def _find_pages(lines: Sequence[str], printed: bool) -> dict[int, int] | None:
    """Find the lines with page numbers, or after form feeds, by index: the characters of the number at their start.

    None if the text has no pages. A line with nothing but its number has all its characters as the number's.
    """
    feeds = [index for index, line in enumerate(lines) if "\f" in line]
    found = _find_numbers(lines)
    if found is None and len(feeds) < _LEAST_PAGES - 1 and not printed:
        return None
    starts = dict.fromkeys(feeds, 0)
    sure = printed or len(feeds) * 2 >= max(_LEAST_PAGES, len(found or ()))
    edges = _find_edges(lines, feeds) if sure else None
    for each in found or ():
        if edges is None or each.line in edges:
            starts[each.line] = each.end
    return starts


def _find_edges(lines: Sequence[str], feeds: Sequence[int]) -> set[int]:
    """Find the first and last lines of the pages that begin at `feeds`."""
    edges: set[int] = set()
    for start, end in pairwise([0, *feeds, len(lines)]):
        page = [index for index in range(start, end) if lines[index].strip()]
        edges.update(page[:_EDGE], page[-_EDGE:])
    return edges


def _find_numbers(lines: Sequence[str]) -> Sequence[_PageNumber] | None:
    """Find the page numbers: the longest ascending sequence of lines with one number each, then those in its gaps."""
    alone: list[_PageNumber] = []
    led: list[_PageNumber] = []
    for index, raw in enumerate(lines):
        line = raw.strip()
        if not line or not any(char.isdigit() for char in line[:12]):
            continue
        if (match := _PAGE_NUMBER.fullmatch(line)) is not None:
            alone.append(_PageNumber(index, int(match["number"]), len(raw), True, match["letter"]))
        elif (match := _LED.match(line)) is not None:
            end = len(raw) - len(raw.lstrip()) + match.end()
            led.append(_PageNumber(index, int(match["number"]), end, False, match["letter"]))
    chain = _longest_sequence(alone)
    if len(chain) < _LEAST_PAGES or chain[-1].line - chain[0].line < _LEAST_SHARE * len(lines):
        return None
    if not _number_pages(chain, lines):
        return None
    return _fill_gaps(chain, [*alone, *led], len(lines))


def _number_pages(chain: Sequence[_PageNumber], lines: Sequence[str]) -> bool:
    """Whether numbers are those of pages, not of the items of a list.

    Page numbers are about equally far apart, cut sentences, are next to running heads, or are written as such.
    """
    spans = [(b.line - a.line) / (b.number - a.number) for a, b in pairwise(chain)]
    usual = median(spans)
    if median(abs(span - usual) for span in spans) <= _REGULAR * usual:
        return True
    if sum(not lines[each.line].strip().isdigit() for each in chain) * 2 > len(chain):
        return True
    heads: Counter[str] = Counter()
    for each in chain:
        above = next(
            (line.strip() for line in reversed(lines[max(0, each.line - _EDGE) : each.line]) if line.strip()), ""
        )
        below = next((line.strip() for line in lines[each.line + 1 : each.line + 1 + _EDGE] if line.strip()), "")
        if above and below[:1].islower() and _END.search(above) is None:
            return True
        heads.update({_DIGITS.sub("#", normalize_space(line)) for line in (above, below) if line})
    return max(heads.values(), default=0) * 2 > len(chain)


def _follows(before: _PageNumber, after: _PageNumber) -> bool:
    pages, between = after.number - before.number, after.line - before.line
    return 0 < pages <= _SKIPPED and _LEAST_LINES * pages <= between <= _MOST_LINES * pages


def _longest_sequence(numbers: Sequence[_PageNumber]) -> Sequence[_PageNumber]:
    """Find the longest sequence of page numbers that follow each other."""
    best: list[int] = []
    previous: list[int | None] = []
    by_number: dict[int, list[int]] = {}
    for place, each in enumerate(numbers):
        before = [
            other
            for number in range(each.number - _SKIPPED, each.number)
            for other in by_number.get(number, ())[-50:]
            if _follows(numbers[other], each)
        ]
        # Of equally long sequences the one with the nearest number: fewer are skipped.
        chosen = max(before, key=lambda other: (best[other], numbers[other].number), default=None)
        best.append(1 + (best[chosen] if chosen is not None else 0))
        previous.append(chosen)
        by_number.setdefault(each.number, []).append(place)
    chain = []
    end: int | None = max(range(len(best)), key=best.__getitem__, default=None)
    while end is not None:
        chain.append(numbers[end])
        end = previous[end]
    return chain[::-1]


def _fill_gaps(chain: Sequence[_PageNumber], candidates: Sequence[_PageNumber], total: int) -> Sequence[_PageNumber]:
    """Add the numbers that the sequence lacks: those on a line with text, and repeated ones such as 27B.

    Inserted pages may have more numbers than there are up to the next page: 54, 55, 56 before 55.
    """
    usual = median([(b.line - a.line) / (b.number - a.number) for a, b in pairwise(chain)])
    ends = [
        _PageNumber(-1, chain[0].number - 1, 0, True),
        *chain,
        _PageNumber(total, chain[-1].number + 10_000, 0, True),
    ]
    taken = {each.line for each in chain}
    others = sorted((each for each in candidates if each.line not in taken), key=lambda each: each.line)
    lines = [each.line for each in others]
    found = list(chain)
    for before, after in pairwise(ends):
        last = before
        for each in others[bisect(lines, before.line) : bisect_left(lines, after.line)]:
            inserted = last is not before and each.number == last.number + 1 and not each.alone
            ascends = last.number < each.number <= last.number + _SKIPPED and (inserted or each.number < after.number)
            near = each.line - last.line < (_LEAST_LINES if each.number == last.number + 1 else usual * 0.4)
            near = near or (not inserted and after.line - each.line < usual * 0.25 and each.number != after.number - 1)
            repeats = bool(each.letter) and last.order <= each.order <= after.order
            if repeats or (ascends and not near):
                found.append(each)
                last = each
    return sorted(found, key=lambda each: each.line)


def _without_furniture(
    lines: Sequence[str], starts: dict[int, int], printed: bool
) -> tuple[Sequence[_Line], Sequence[tuple[int, str]]]:
    """Remove page numbers, and lines that recur at the edges of pages. Return both parts."""
    furniture: list[tuple[int, str]] = []
    pages: list[list[_Line]] = [[]]
    blank, parts = False, 0
    for index, raw in enumerate(lines):
        words = raw
        if starts.get(index):
            furniture.append((index + 1, raw[: starts[index]].strip()))
            # A number ends a page, unless form feeds surely do.
            ends = not printed or "\f" in raw[: starts[index]]
            words = ("\f" if ends else "") + raw[starts[index] :]
        for place, piece in enumerate(words.split("\f")):
            if place and pages[-1]:
                # A number is at the foot of its page or at the head of the next: its line begins the next.
                pages.append([])
            if not (text := _AFTER_HYPHEN.sub("-", _BEFORE_HYPHEN.sub("-", piece.strip()))):
                # Blank lines at the edge of a page are its margin, not the end of a paragraph.
                blank = bool(pages[-1])
                continue
            parts += piece.startswith(COLUMN)
            pages[-1].append(
                _Line(text, index + 1, len(pages) - 1, len(pages) + parts, blank and bool(pages[-1]), _indent(piece))
            )
            blank = False
    removed = _find_recurring(pages)
    kept = []
    for page in pages:
        furniture += [(line.number, line.text) for line in page if id(line) in removed]
        law = [line for line in page if id(line) not in removed]
        if law:
            law[0].after_blank = False
        kept += law
    return kept, sorted(furniture)


def _indent(text: str) -> int:
    text = text.removeprefix(COLUMN)
    return len(text) - len(text.lstrip(" "))


def _find_recurring(pages: Sequence[Sequence[_Line]]) -> set[int]:
    """Find the lines at the edges of pages that recur there, without those that the text itself may repeat.

    Each district of a code may begin on a page of its own, with the same items. Furniture is next to the edge of the
    page or to other furniture. Items and sentences are never furniture, nor are lines that recur within pages or lead
    to a list. Its numbers count pages where they differ.
    """
    edges = [[*page[:_EDGE], *page[max(_EDGE, len(page) - _EDGE) :]] for page in pages]
    on_pages = Counter(key for edge in edges for key in {_key(line) for line in edge})
    least = max(_RECURS, len(pages) // 10)
    frequent = {key for key, times in on_pages.items() if times >= least}
    texts = Counter(text for edge in edges for text in {_without_number(line.text) for line in edge})
    at_edges: dict[str, list[_Line]] = defaultdict(list)
    for edge in edges:
        for line in edge:
            if (key := _key(line)) in frequent:
                at_edges[key].append(line)
    counting = {key for key, lines in at_edges.items() if _counts_pages(lines)}
    within = Counter(_key(line) for page in pages for line in page[_EDGE:-_EDGE])
    leads = {line.number for line in _find_leads(pages, frequent)}
    of_text = {
        key
        for key, lines in at_edges.items()
        if key not in counting
        if within[key] * 2 >= on_pages[key] or sum(line.number in leads for line in lines) * 2 >= len(lines)
    }
    frequent -= of_text
    seen: set[str] = set()
    removed: set[int] = set()
    for page in pages:
        may_go: list[bool] = []
        for line in page:
            key = _key(line)
            first = key not in seen
            seen.add(key)
            may_go.append(
                key in frequent
                and _may_recur(line)
                and (key in counting or texts[_without_number(line.text)] >= _RECURS)
                and not _may_be_heading(line.text, first, texts, key in counting)
            )
        for order in (range(len(page)), range(len(page) - 1, -1, -1)):
            for place in order[:_EDGE]:
                if not may_go[place]:
                    break
                removed.add(id(page[place]))
    # A head that names the chapter recurs on a few pages in a row.
    for before, after in pairwise(pages):
        for at in (0, -1):
            if not (before and after and len(after) > 1 and after[at].text == before[at].text):
                continue
            if _may_head(after[at]) and _key(after[at]) not in of_text and after[at].number not in leads:
                removed.add(id(after[at]))
    return removed


def _find_leads(pages: Sequence[Sequence[_Line]], frequent: Container[str]) -> Iterator[_Line]:
    """Find the lines at the edges of pages that the text after them needs.

    The first item of a list follows, or after a page break a short line. Lines that may be furniture do not count.
    """
    width = _usual_width([line for page in pages for line in page])
    for place, page in enumerate(pages):
        following = pages[place + 1] if place + 1 < len(pages) else ()
        for at in {*range(min(_EDGE, len(page))), *range(max(0, len(page) - _EDGE), len(page))}:
            rest = [*page[at + 1 :], *following]
            after = next((line for line in rest if _key(line) not in frequent or not _may_recur(line)), None)
            if after is None:
                continue
            turned = after.page != page[at].page
            if _FIRST_LABEL.match(after.text) or (
                turned and len(after.text) < _FULL * width and after.text[0].isupper() and not _is_heading(after.text)
            ):
                yield page[at]


def _may_recur(line: _Line) -> bool:
    """Whether a line can be furniture: no item with words, measure, end of a sentence, or row of a table."""
    if line.tabs or _MEASURE.search(line.text) is not None:
        return False
    label = _LABEL.match(line.text)
    return (label is None or not any(map(str.isalpha, line.text[label.end() :]))) and _END.search(line.text) is None


def _may_be_heading(text: str, first: bool, texts: Mapping[str, int], counts: bool) -> bool:
    """Whether a line that recurs is a heading of the text here: the first of equal ones, or the only one."""
    if parse_heading(text) is None:
        return False
    bare = _without_number(text)
    return texts[bare] == 1 or (first and not (counts and bare != text))


def _without_number(text: str) -> str:
    """A running head without the number of the page before or after it. A heading keeps its own number."""
    bare = _OUTER_NUMBER.sub("", text)
    return text if bare != text and parse_heading(text) is not None and parse_heading(bare) is None else bare


def _counts_pages(lines: Sequence[_Line]) -> bool:
    """Whether one of the numbers in lines that differ only in numbers counts pages."""
    rows = [(line.page, list(map(int, _DIGITS.findall(line.text)))) for line in lines]
    steps = [
        (after[0] - before[0], [b - a for a, b in zip(before[1], after[1], strict=True)])
        for before, after in pairwise(rows)
    ]
    return any(
        sum(abs(numbers[place] - pages) <= pages // 4 for pages, numbers in steps) >= _COUNTING * len(steps)
        for place in range(len(rows[0][1]))
    )


def _may_head(line: _Line) -> bool:
    return len(line.text) > 3 and _LABEL.match(line.text) is None and _may_recur(line)


def _key(line: _Line) -> str:
    """A line without its numbers, as running heads differ by the number of the page or section."""
    return _DIGITS.sub("#", normalize_space(line.text).casefold())


def _join(lines: Sequence[_Line], printed: bool) -> Iterator[Paragraph]:
    """Join the lines of each paragraph."""
    width = _usual_width(lines)
    known = _known_words(lines)
    parts: list[str] = []
    first = last = 0
    for before, line in zip([None, *lines], lines, strict=False):
        glued = before is not None and not (before.tabs or line.tabs) and _is_fragment(before.text, line.text)
        if (
            before is not None
            and parts
            and not glued
            and not _continues(before, line, "".join(parts[:3]), width, printed)
            and not _continues_note(line, "".join(parts[-_LINES_OF_NOTE:]))
        ):
            yield from _split_run_in(Paragraph("".join(parts), first, last))
            parts = []
        if not parts:
            parts, first = [line.text], line.number
        elif glued:
            parts.append(line.text)
        else:
            _append(parts, line.text, known)
        last = line.number
    if parts:
        yield from _split_run_in(Paragraph("".join(parts), first, last))


def _split_run_in(paragraph: Paragraph) -> Iterator[Paragraph]:
    """Split the heading of a section from the text after it, which begins on the same line."""
    text = paragraph.text
    if _NUMBERED.match(text) is not None:
        for end in _RUN_IN.finditer(text, 0, LONGEST_RUN_IN):
            heading = parse_heading(normalize_space(text[: end.start() + 1]))
            rest = text[end.end() :]
            whole = paragraph.last > paragraph.first or (_END.search(rest) and rest.count(" ") >= _LEAST_RUN_IN)
            if heading is not None and heading.title and whole:
                yield Paragraph(text[: end.end()].strip(), paragraph.first, paragraph.first)
                yield Paragraph(rest, paragraph.first, paragraph.last)
                return
    yield paragraph


def _is_fragment(before: str, text: str) -> bool:
    """Whether a line is a piece of the line above, which was cut between two runs of letters."""
    if text[0] in ".,;:)" or (text[0] == "-" and text[1:2].isalpha()):
        return before[-1].isalnum() or before[-1] in ')"\u201d'
    return len(before) == 1 and before.isupper() and text[0].islower()


def _continues(before: _Line, line: _Line, paragraph: str, width: float, printed: bool) -> bool:
    """Whether a line continues the paragraph of the line above."""
    if before.tabs or line.tabs:
        return False
    if _LABEL.fullmatch(paragraph) is not None or LEADERS.match(line.text) is not None:
        return True
    if line.text.isdigit() and before.text.endswith(".") and LEADERS.search(before.text) is not None:
        return True
    if _starts_paragraph(line.text) and (
        line.after_blank or not _is_within_sentence(before.text, line.text, printed and line.part == before.part)
    ):
        return False
    lower = line.text[0].islower()
    if _is_heading(before.text, width) and not lower:
        if (
            printed
            and line.part == before.part
            and len(before.text) >= _FULL * width
            and len(paragraph) + len(line.text) < LONGEST_RUN_IN
        ):
            return not line.after_blank
        # " Special Uses" after "Granted" is the rest of a heading.
        return line.indent == 1 and before.indent == 0 and not line.after_blank and _is_short(before.text + line.text)
    if is_unfinished(before.text):
        # The end of a column may look like that of a paragraph.
        return not line.after_blank or lower or (line.part != before.part and before.text[-1] != ",")
    if line.after_blank:
        return False
    if line.part != before.part:
        return _END.search(before.text) is None and (lower or len(before.text) >= _FULL * width)
    if _END.search(before.text) is not None and _TERM.match(line.text) is not None:
        return False
    if line.indent == 1 and before.indent == 0 and _is_short(before.text):
        return True
    return lower or len(before.text) >= _FULL * width


def _continues_note(line: _Line, before: str) -> bool:
    """Whether a line continues a note on the history of a section, whose bracket is not closed yet."""
    return history_notes.is_within_note(before) and not _is_heading(line.text)


def _is_within_sentence(before: str, text: str, printed: bool) -> bool:
    """Whether a line that starts like an item or heading is the rest of a sentence: of a reference, or of a measure.

    `printed`: the two lines would be apart if a paragraph ended there.
    """
    if _FIGURES.match(text) is not None:
        return _SPELLED.search(before) is not None
    if _LABEL.match(text) is not None:
        return _REFERS.search(before) is not None
    if before[-1] == "," or (text[0].isdigit() and _REFERS.search(before) is not None):
        return True
    if not text[0].isdigit() or before.isupper():
        return False
    abbreviated = _ABBREVIATED.search(before) is not None
    if not abbreviated and _END.search(before) is not None:
        return False
    # A title would begin with a capital.
    return _NUMBER_IN_SENTENCE.match(text) is not None or (printed and (abbreviated or " " not in text))


def _is_short(text: str) -> bool:
    return len(text) <= _SHORT and _END.search(text) is None and not text.isupper()


def _starts_paragraph(text: str) -> bool:
    return _LABEL.match(text) is not None or _NUMBERED.match(text) is not None or _is_heading(text)


def _is_heading(text: str, width: float = inf) -> bool:
    heading = parse_heading(text)
    if heading is None or (len(text) >= _FULL * width and _RUN_IN.search(text, 0, LONGEST_RUN_IN) is not None):
        return False
    # "Section 5" may begin a line of a sentence. "ARTICLE V" and "SECTION 5" on a line of their own do not.
    return bool(heading.title) or text.isupper() or heading.bare


def _append(parts: list[str], text: str, known: Container[str]) -> None:
    """Append a line to a paragraph.

    A hyphen at the end of the line above is removed if that makes a known word.
    """
    if _ENDS_IN_HYPHEN.search(parts[-1]) is None or not text[0].isalnum() or _SUSPENDED.match(text) is not None:
        parts.append(" ")
    elif (broken := _BROKEN_WORD.search(parts[-1])) is not None and (rest := _LOWER.match(text)) is not None:
        word = broken[1].casefold(), rest[0]
        if "".join(word) in known and "-".join(word) not in known:
            parts[-1] = parts[-1][:-1]
    parts.append(text)


def _mend_words(paragraphs: Sequence[Paragraph]) -> tuple[Sequence[Paragraph], Mapping[str, int]]:
    """Remove the spaces within words. Return also the words that were broken."""
    words: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    compounds: set[str] = set()
    for each in paragraphs:
        found = [word.casefold() for word in _WORD.findall(_PIECES.sub("", each.text))]
        words.update(found)
        pairs.update((one[1].casefold(), one[2].casefold()) for one in _PAIR.finditer(each.text))
        compounds.update(one[1].casefold() for one in _COMPOUND.finditer(each.text))
    broken = _find_broken(words, pairs)
    mended: Counter[str] = Counter()

    def is_known(word: str) -> bool:
        return word.casefold() in words and (len(word) > 1 or word == "a")

    def join_figures(match: re.Match[str]) -> str:
        return match[1] + ("" if len(match[1] + match[2]) == _THOUSANDS else " ") + match[2]

    def join_pieces(match: re.Match[str]) -> str:
        pieces = match[0].split(BREAK)
        text = pieces[0]
        for place, (one, other) in enumerate(pairwise(pieces), 1):
            rest = accumulate(pieces[place:])
            whole = any((text.rpartition(" ")[2] + more).casefold() in words for more in rest)
            joined = whole and not (is_known(one) and is_known(other))
            if joined:
                mended[f"{one} {other}"] += 1
            text += other if joined else f" {other}"
        return text

    def is_compound(match: re.Match[str]) -> bool:
        return "-".join(match.groups()).casefold() in compounds

    taken = -1
    """Place of a piece that belongs to the word before it."""

    def join(match: re.Match[str]) -> str:
        nonlocal taken
        one, other = match[1].casefold(), match[2].casefold()
        if (one, other) not in broken or match.start(1) == taken:
            return match[1]
        after = _PAIR.match(match.string, match.start(2))
        if after is not None and (other, third := after[2].casefold()) in broken and one + other + third not in words:
            # "yard s hall": the piece belongs to the word without which another piece would be left, "hall", or to
            # the more frequent one.
            alone, left = words[one] > pairs[one, other], words[third] > pairs[other, third]
            if alone > left or (alone == left and words[one + other] < words[other + third]):
                return match[1]
            taken = match.start(2)
        mended[f"{match[1]} {match[2]}"] += 1
        return match[1] + "\0"

    numbers = frozenset(own[0] for each in paragraphs if (own := _OWN_NUMBER.match(each.text)))
    texts = []
    for each in paragraphs:
        taken = -1
        text = _PIECES.sub(join_pieces, _FIGURE_PIECES.sub(join_figures, each.text)).replace(BREAK, " ")
        text = _mend_numbers(text, numbers)
        text = _SPLIT_COMPOUND.sub(lambda match: "-".join(match.groups()) if is_compound(match) else match[0], text)
        texts.append(_PAIR.sub(join, text).replace("\0 ", ""))
    return [replace(each, text=text) for each, text in zip(paragraphs, texts, strict=True)], mended


def _find_broken(words: Counter[str], pairs: Counter[tuple[str, str]]) -> set[tuple[str, str]]:
    """Find the pairs of words that are one broken word, by how often the text has each word and each pair.

    Two words are one if the text has it whole more often, and one of the two nearly only so: "ent" is not a word of its
    own where it nearly always follows "establishm", "developm" and "requirem". Once is enough if neither is a word.
    """
    whole = {pair: _count_whole(*pair, words) for pair in pairs}
    likely = {pair: times for pair, times in pairs.items() if whole[pair] >= times}
    within: Counter[str] = Counter()
    for pair, times in likely.items():
        for word in set(pair):
            within[word] += times
    broken = set()
    for pair, times in likely.items():
        shares = sorted(within[word] / max(1, words[word]) for word in pair)
        if shares[0] >= 1 or (shares[1] >= _WITHIN and whole[pair] >= _WHOLE * times):
            broken.add(pair)
    # "set back" is two words, also where the text has "setback".
    broken = {pair for pair in broken if pair[1] not in _PARTICLES or len(pair[0]) < _LEAST_LETTERS}
    doubtful = {pair for pair in broken if _may_be_words(pair, pairs[pair], words)}
    return broken - doubtful if len(broken) - len(doubtful) < _LEAST_BROKEN else broken


def _mend_numbers(text: str, numbers: Container[str]) -> str:
    """Remove the spaces within numbers. `numbers` are those of the headings of the text."""

    def join_reference(match: re.Match[str]) -> str:
        return match[0].replace(". ", ".") if match[1] + match[2] in numbers else match[0]

    def join_numeral(match: re.Match[str]) -> str:
        joined = match[1] + match[2]
        return match[0][: match.start(1) - match.start()] + joined if _NUMERAL.fullmatch(joined) else match[0]

    text = _BROKEN_FIGURES.sub(lambda match: match[0].replace(" ", ""), text)
    return _BROKEN_NUMERAL.sub(join_numeral, _BROKEN_REFERENCE.sub(join_reference, text))


def _count_whole(one: str, other: str, words: Mapping[str, int]) -> int:
    """Count how often a text has two words as one, also in its other number: "states" where it has "state"."""
    word = one + other
    forms = FORMS["en"](word) if len(word) >= _LONG and other != "s" else ()
    alike = sum(words.get(form, 0) for form in forms if form.startswith(word[:-1]) or word.startswith(form))
    return words.get(word, 0) + alike + _WHOLE * bool(_SPELLED.fullmatch(word))


def _may_be_words(pair: tuple[str, str], times: int, words: Mapping[str, int]) -> bool:
    return min(map(len, pair)) >= _LEAST_LETTERS and any(words[word] > times for word in pair)


def _usual_width(lines: Sequence[_Line]) -> float:
    """The width of full lines: three in four are shorter. Lines that are paragraphs already do not count."""
    lengths = sorted(len(line.text) for line in lines if not line.tabs and len(line.text) <= 160)
    return lengths[len(lengths) * 3 // 4] if lengths else 0


def _known_words(lines: Sequence[_Line]) -> Container[str]:
    """Words that the text has whole on a line, with the compounds of them."""
    words: set[str] = set()
    for before, line in zip([None, *lines], lines, strict=False):
        text = line.text
        if (broken := _BROKEN_WORD.search(text)) is not None:
            text = text[: broken.start()]
        if before is not None and _BROKEN_WORD.search(before.text) is not None and text[:1].islower():
            text = text.partition(" ")[2]
        words.update(map(str.casefold, _WORD.findall(text)))
        words.update(map(str.casefold, _HYPHENED.findall(text)))
    return words
