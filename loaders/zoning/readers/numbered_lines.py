"""Recognition of headings among the lines of a code, where markup does not mark them.

The text shows the style of section numbers in a code: ``Sec. 61-1-1. Purpose.``, ``§ 10-101. Title`` or ``1.04.010
Title``. Where the text of a section follows its heading on the same line, the heading is the first sentence.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Container, Iterator, Sequence, Set
from dataclasses import replace
from math import inf
from typing import Final

from loaders.readers import history_notes
from loaders.readers.headings import (
    LONGEST,
    LONGEST_RUN_IN,
    RANKS,
    SECTION,
    Heading,
    find_implied,
    is_placed,
    parse_heading,
)
from loaders.readers.html_tree import normalize_space
from loaders.zoning.readers.outline import Candidate, parse_keys, select_ascending
from loaders.zoning.readers.section_builder import BACK_MATTER, Drafts

_LEAST_COMPONENTS: Final = 3
"""Minimum components of a bare number that is a heading, unless the code has none that long."""
_LEAST_SECTIONS: Final = 3
_LONGEST_TITLE: Final = 80
_START: Final = re.compile(r"title|sub|chapter|ch\.|art|div|part|app|sec|§|\d|[ivxlc]+\.[a-z]\.\d", re.IGNORECASE)
_PAGE_BEFORE: Final = re.compile(
    r"^\d{1,4}[A-Z]? (?=(?:title|chapter|article|part|division|appendix)\b)", re.IGNORECASE
)
_WHOLE_NUMBER: Final = re.compile(r"(?P<number>\d{1,4})(?P<point>[.:]?) (?P<title>[A-Z][^.;]{2,80})")
_NEAREST: Final = 3
"""Lines below a heading without a title in which its title may be, after blank lines."""
_RARE: Final = 4
"""Bare numbers with more components are the sections, unless there are this many times as many with fewer."""
_FITS: Final = 0.5
"""Weight added to the number of a section that continues that of the level above, and taken from any other."""
_LEAST_SPELLED: Final = 0.3
"""Weight of a level, to which the share of the levels of its kind with the same word is added: ARTICLE or Art."""
_TEXT: Final = "\v"
"""Prefix of a line that is not a heading, even if it looks like one."""
_SENTENCE: Final = re.compile(
    r"(?<!\b[A-Z])(?<!\b[SDM][trs])(?<!\bNo)\.(?:\s*[\u2013\u2014]\s*|\s+(?=[\"“(\[]?[A-Z0-9(]))"
)
"""End of the first sentence. Initials, St., Dr., Ms. and No. do not end one."""
_PARAGRAPHS: Final = re.compile(
    rf"\s{{4,}}|(?<=[.;:,])\s+(?=(?:\([0-9A-Za-z]{{1,4}}\)|[A-Z0-9]{{1,2}}\.)\s\s)|\s+(?={history_notes.ANNOTATION})"
)
"""Boundaries of paragraphs joined on one line: wide gaps, and labels with a gap after them."""
_Placed = tuple[int, Heading]
"""A line that looks like a heading: its index, and the heading."""


class Numbered:
    """Lines of a code in document order. Each opens a level, names a level, or is text."""

    def __init__(self, given: Sequence[str], drafts: Drafts) -> None:
        """`given` are all lines, unchanged. The lines that belong to `drafts` are passed to `take` one by one."""
        self._drafts: Final = drafts
        self._lines, self._starts = _split_lines(given)
        self.opening, self._naming = _find_headings(self._lines)
        """Headings that open a level, and those of levels that the numbers of sections imply, by index of the line."""
        left_out = _find_back_matter(self._lines, self.opening.keys())
        if left_out:
            drafts.warnings.append(f"{len(left_out):,} lines of an index or a table of ordinances are left out.")
        self._passed: Final = left_out | _add_titles(self.opening, self._naming, self._lines)

    def take(self, place: int, number: int | None) -> Iterator[str]:
        """Process the line at `place`, which is line `number` of the source: open its level, or yield its text.

        The text belongs to the level that is open then.
        """
        for index in range(self._starts[place], self._starts[place + 1]):
            if (heading := self.opening.get(index)) is not None:
                self._drafts.add(heading, number)
            elif index not in self._passed and not (
                index in self._naming and self._drafts.entitle(*self._naming[index])
            ):
                yield normalize_space(self._lines[index].removeprefix(_TEXT))


def _split_lines(given: Sequence[str]) -> tuple[list[str], list[int]]:
    """Split text after a heading onto lines of its own. Also return where each given line starts."""
    stripped = [raw.strip() for raw in given]
    run_in = [None if "\t" in line or _START.match(line) is None else _split_run_in(line) for line in stripped]
    alone = sum(
        parts is None and _START.match(line) is not None and _parse_section(line) is not None
        for line, parts in zip(stripped, run_in, strict=True)
    )
    # Two sentences on one line may be a title, unless most lines with the start of a section have text after it.
    usual = len(run_in) - run_in.count(None) > alone
    lines: list[str] = []
    starts = [0]
    for line, parts in zip(stripped, run_in, strict=True):
        if parts is not None and (usual or len(line) > LONGEST):
            lines += [parts[0], *(_TEXT + part for part in _PARAGRAPHS.split(parts[1]) if part.strip())]
        else:
            lines.append(line)
        starts.append(len(lines))
    return lines, starts


def _parse_section(line: str) -> Heading | None:
    """Parse the heading of a section with a title."""
    heading = parse_heading(normalize_space(line))
    return heading if heading is not None and heading.kind == SECTION and heading.title else None


def _split_run_in(line: str) -> tuple[str, str] | None:
    """Split a line into its heading and the text after it. None for other lines."""
    for end in _SENTENCE.finditer(line, 0, 2 * LONGEST):
        if end.start() >= LONGEST_RUN_IN:
            break
        if _parse_section(line[: end.start() + 1]) is not None:
            return line[: end.start() + 1], line[end.end() :]
    return None


def _find_headings(lines: Sequence[str]) -> tuple[dict[int, Heading], dict[int, tuple[str, str, str | None]]]:
    """Find the headings: of each kind those whose numbers ascend, and of bare numbers those in the code's own style.

    Returns those that open a level, and number, title and kind of the levels that the others only name.
    """
    given: list[_Placed] = []
    for index, line in enumerate(lines):
        if "\t" in line or _START.match(line) is None:
            continue
        heading = parse_heading(_without_page(normalize_space(line)))
        if heading and (heading.bare or not _is_reference(heading, line, lines[index - 1] if index else "")):
            given.append((index, heading))
    others = _ascending_levels([each for each in given if each[1].kind != SECTION], lines)
    bare = _ascending_sections([each for each in given if each[1].bare], others)
    sections = [each for each in given if each[1].kind == SECTION and not each[1].bare]
    placed = [each for each in sections if is_placed(each[1].number)]
    # "Section 5" is one of another law, where nearly all sections have numbers such as 1-3.
    sections = placed if len(placed) * 5 > len(sections) * 4 else sections
    naming: dict[int, tuple[str, str, str | None]] = {}
    inner = _find_below(sections, bare)
    if inner:
        sections += inner
    elif len({heading.number for _, heading in sections}) < max(_LEAST_SECTIONS, _sections_in(bare)):
        chosen, named = _of_one_style(bare, lines)
        naming = {index: (heading.number, heading.title, None) for index, heading in named}
        if len(chosen) < _LEAST_SECTIONS and len(_continuing(bare, others)) == len(bare):
            chosen = bare
        # "Section 5" at the start of a line is a reference, if sections are numbered without a word.
        sections = chosen if len(chosen) >= _LEAST_SECTIONS else [*sections, *chosen]
        sections = sorted([*sections, *_find_whole_numbers(sections, lines)], key=lambda each: each[0])
    implied = find_implied(heading.number for _, heading in sections)
    opening: dict[int, Heading] = {}
    title = ""
    for index, heading in others:
        title = heading.number if heading.kind == "title" else title
        if (number := f"{title}.{heading.number}") in implied and heading.title:
            naming[index] = number, heading.title, heading.kind
        else:
            opening[index] = heading
    return opening | dict(sections), naming


def _add_titles(opening: dict[int, Heading], naming: Container[int], lines: Sequence[str]) -> set[int]:
    """Add the titles on lines below headings, as in ``CHAPTER 3`` above ``ZONING``, and return these lines."""
    found = set()
    for index, heading in opening.items():
        below = _next_line(lines, index) if not heading.title else None
        if below is None or below > index + _NEAREST or below in opening or below in naming:
            continue
        title, ended = normalize_space(lines[below]), lines[below][-1:]
        is_sentence = ended == "." and not _is_capitalized(title)
        is_other = "\t" in lines[below] or history_notes.is_note(title) or parse_heading(title) is not None
        if len(title) <= _LONGEST_TITLE and ended not in ",;:" and title[0].isupper() and not (is_sentence or is_other):
            opening[index] = replace(heading, title=title)
            found.add(below)
    return found


def _find_back_matter(lines: Sequence[str], opening: Set[int]) -> set[int]:
    """Find the lines of an index or a table of ordinances: most of them end in a figure."""
    found: set[int] = set()
    end = 0
    for start, line in enumerate(lines):
        if start < end or start in opening or not line or not BACK_MATTER.fullmatch(normalize_space(line)):
            continue
        end = next((index for index in range(start + 1, len(lines)) if index in opening), len(lines))
        rest = [line for line in lines[start + 1 : end] if line.strip()]
        if rest and sum(line.rstrip()[-1].isdigit() for line in rest) * 2 >= len(rest):
            found.update(range(start, end))
    return found


def _without_page(line: str) -> str:
    """Remove the number of a page before the name of a level, as text out of a PDF has it: ``110 ARTICLE XXI``."""
    rest = _PAGE_BEFORE.sub("", line)
    heading = parse_heading(rest) if rest != line else None
    return rest if heading is not None and (rest.isupper() or heading.title) else line


def _ascending_levels(levels: Sequence[_Placed], lines: Sequence[str]) -> list[_Placed]:
    """Keep of each kind the levels whose numbers ascend, from the start again below the next higher level."""
    left: set[int] = set()
    for kind in dict.fromkeys(heading.kind for _, heading in levels):
        own = [each for each in levels if each[1].kind == kind]
        keys = parse_keys(heading.number for _, heading in own)
        if len(own) < _LEAST_SECTIONS or None in keys:
            continue
        higher = [index for index, each in levels if RANKS.get(each.kind, inf) < RANKS.get(kind, 0)]
        words = [lines[index].split()[0] for index, _ in own]
        spelled = Counter(words)
        candidates = []
        below = bisect(higher, own[0][0])
        for (index, _), key, word in zip(own, keys, words, strict=True):
            earlier, below = below, bisect(higher, index)
            candidates.append(Candidate(key or (), _LEAST_SPELLED + spelled[word] / len(own), below > earlier))
        left |= {index for index, _ in own} - {own[place][0] for place in select_ascending(candidates)}
    return [each for each in levels if each[0] not in left]


def _ascending_sections(bare: Sequence[_Placed], levels: Sequence[_Placed]) -> list[_Placed]:
    """Keep of each style the bare numbers that ascend. Where sections are numbered after the level above, as 7.1 in
    article VII, others weigh less."""
    continuing = {index for index, _ in _continuing(bare, levels)}
    kept: list[_Placed] = []
    styles: dict[tuple[str, int], list[_Placed]] = {}
    for each in bare:
        styles.setdefault(_style(each[1].number), []).append(each)
    for own in styles.values():
        keys = parse_keys(heading.number for _, heading in own)
        fits = [index in continuing for index, _ in own]
        follows = sum(fits) * 5 > len(own) * 3
        candidates = [
            Candidate(
                key or ((0, ""),),
                1.0 + (0 if not follows else _FITS if fit else -_FITS),
            )
            for key, fit in zip(keys, fits, strict=True)
        ]
        chosen = set(select_ascending(candidates))
        chosen |= {
            place
            for place, key in enumerate(keys)
            if key is not None and len(key) >= _LEAST_COMPONENTS
            if any(near in chosen and (keys[near] or ())[:-1] == key[:-1] for near in (place - 1, place + 1))
        }
        kept += [own[place] for place in chosen]
    return sorted(kept, key=lambda each: each[0])


def _continuing(bare: Sequence[_Placed], levels: Sequence[_Placed]) -> list[_Placed]:
    """Get the bare numbers that continue that of the level above, as 7.1 does in article VII."""
    places = [index for index, _ in levels]
    above = parse_keys(heading.number for _, heading in levels)
    found = []
    for each, key in zip(bare, parse_keys(heading.number for _, heading in bare), strict=True):
        at = bisect(places, each[0])
        level = above[at - 1] if at else None
        if key is not None and level is not None and len(key) > len(level) and key[: len(level)] == level:
            found.append(each)
    return found


def _find_whole_numbers(sections: Sequence[_Placed], lines: Sequence[str]) -> list[_Placed]:
    """Find the headings with a whole number above sections that continue it: ``501 Residential Zone`` above 501.1."""
    found: list[_Placed] = []
    earlier, last = "", -1
    for index, heading in sections:
        first = re.split(r"[.\-]", heading.number)[0]
        if heading.bare and first != heading.number and first != earlier:
            for at in range(index - 1, last, -1):
                match = _WHOLE_NUMBER.fullmatch(normalize_space(lines[at])) if lines[at].startswith(first) else None
                if match is not None and match["number"] == first and (not match["point"] or match["title"].isupper()):
                    found.append((at, Heading(SECTION, first, match["title"], bare=True)))
                    break
        earlier, last = first, index
    return found


def _is_reference(heading: Heading, line: str, before: str) -> bool:
    """Whether a line that looks like a heading continues a sentence of the line above."""
    alone = not heading.title and not line.isupper() and bool(before)
    return alone and before[-1] not in ".;:)]”\"'" and parse_heading(before) is None


def _find_below(sections: Sequence[_Placed], bare: Sequence[_Placed]) -> list[_Placed]:
    """Find bare numbers below sections that have a word: 1.1 and 1.2 between sections 1 and 2."""
    if not all(heading.number.isdigit() for _, heading in sections):
        return []
    found = _continuing(bare, sections)
    return found if len(found) * 5 > len(bare) * 4 else []


def _sections_in(bare: Sequence[_Placed]) -> int:
    return len({heading.number for _, heading in bare if _style(heading.number)[1] >= _LEAST_COMPONENTS})


def _of_one_style(bare: Sequence[_Placed], lines: Sequence[str]) -> tuple[list[_Placed], list[_Placed]]:
    """Find the headings with the most frequent number of components, and those that only name the levels above."""
    counts = Counter(_style(heading.number) for _, heading in bare)
    most = max(counts.values(), default=0)
    long = {style: count for style, count in counts.items() if style[1] >= _LEAST_COMPONENTS and count * _RARE >= most}
    style = max(long or counts, key=lambda each: (counts[each], each), default=None)
    if style is None or (not long and counts[style] < _LEAST_SECTIONS):
        return [], []
    chosen = [each for each in bare if _style(each[1].number) == style]
    if sum(heading.title.endswith(".") for _, heading in chosen) * 2 < len(chosen):
        chosen = [each for each in chosen if not each[1].title.endswith(".") or _is_capitalized(each[1].title)]
    return _with_other_depths(chosen, bare, style, lines)


def _with_other_depths(
    chosen: Sequence[_Placed], bare: Sequence[_Placed], style: tuple[str, int], lines: Sequence[str]
) -> tuple[list[_Placed], list[_Placed]]:
    """Add the sections with more or fewer components, as 5.2.1 below 5.2. Return also the headings that only name a
    level: the next heading follows at once."""
    mark, depth = style
    numbers = {heading.number for _, heading in chosen}
    implied = find_implied(numbers)
    starts = {index for index, _ in bare}
    others: dict[int, list[_Placed]] = {}
    for index, heading in bare:
        own_mark, own_depth = _style(heading.number)
        if own_mark == mark and own_depth != depth and heading.title and heading.title[-1] not in ";,":
            others.setdefault(own_depth, []).append((index, heading))
    added: list[_Placed] = []
    naming: list[_Placed] = []
    for own_depth, own in sorted(others.items()):
        if own_depth > depth:
            below = [each for each in own if each[1].number.rpartition(mark)[0] in numbers]
            numbers |= {heading.number for _, heading in below}
            added += below
            continue
        above = [each for each in own if each[1].number in implied]
        with_text = [each for each in own if _next_line(lines, each[0]) not in starts]
        if len(with_text) >= _LEAST_SECTIONS or any(each in above for each in with_text):
            added += own if len(with_text) >= _LEAST_SECTIONS else above
        else:
            naming += above
    return sorted([*chosen, *added], key=lambda each: each[0]), naming


def _next_line(lines: Sequence[str], index: int) -> int | None:
    return next((at for at in range(index + 1, len(lines)) if lines[at].strip()), None)


def _is_capitalized(title: str) -> bool:
    """Whether a line has the capitals of a title, as in ``Yards for Corner Lots.``"""
    return all(word[0].isupper() for word in re.findall(r"[A-Za-z]{4,}", title))


def _style(number: str) -> tuple[str, int]:
    mark = "." if "." in number and "-" not in number else "-"
    return mark, len(re.split(r"[.\-]", number))
