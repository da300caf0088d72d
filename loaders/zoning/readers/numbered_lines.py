"""Lines of a code told apart: which of them are headings, where markup does not say so.

Which style of number a code's sections have shows in the text: ``Sec. 61-1-1. Purpose.``, ``§ 10-101. Title`` or
``1.04.010 Title``. Where the words of a section follow its heading on the same line, the heading is its first sentence.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Final

from loaders.zoning.readers import history_notes
from loaders.zoning.readers.headings import LONGEST, SECTION, Heading, components, heading_of, is_placed
from loaders.zoning.readers.html_lines import shown
from loaders.zoning.readers.section_builder import Drafts

_LEAST_COMPONENTS: Final = 3
"""Components of a number that is a heading without a word for it, unless a code has none so long."""
_LEAST_SECTIONS: Final = 3
_LONGEST_TITLE: Final = 80
_LONGEST_RUN_IN: Final = 160
"""Characters of the longest heading that words follow on its line."""
_SHORTEST_WRAPPED: Final = 40
"""Characters of the shortest line that a sentence may go on from."""
_START: Final = re.compile(r"title|sub|chapter|ch\.|art|div|part|app|sec|§|\d", re.IGNORECASE)
_TEXT: Final = "\v"
"""What a line starts with that is no heading, whatever it looks like."""
_SENTENCE: Final = re.compile(
    r"(?<!\b[A-Z])(?<!\b[SDM][trs])(?<!\bNo)\.(?:\s*[\u2013\u2014]\s*|\s+(?=[\"“(\[]?[A-Z0-9(]))"
)
"""The end of a first sentence; initials, St., Dr., Ms. and No. are none."""
_LISTED: Final = re.compile(r"\s+(?=(?:Sec\.|§)\s*\d)|\s*(?=(?:\[\d{1,3}\] ?)?Footnotes:)")
_PARAGRAPHS: Final = re.compile(
    rf"\s{{4,}}|(?<=[.;:,])\s+(?=(?:\([0-9A-Za-z]{{1,4}}\)|[A-Z0-9]{{1,2}}\.)\s\s)|\s+(?={history_notes.ANNOTATION})"
)
"""Where paragraphs meet that were put on one line: at wide gaps, and before labels with a gap behind."""
_GOES_ON: Final = re.compile(
    r"(?:,|\b(?:of|in|to|see|and|or|nor|under|by|with|per|from|the|this|that|for|through|than|as|at|on|both|sections?))$",
    re.IGNORECASE,
)
"""The end of a line whose sentence the next one continues."""

_Candidate = tuple[int, Heading]


class Numbered:
    """Lines of a code in document order, each of which opens a level, names one, or is text."""

    def __init__(self, given: Sequence[str], drafts: Drafts) -> None:
        """`given` are all lines, as they stand; those that `drafts` take are `take`n one by one."""
        self._drafts: Final = drafts
        self._lines, self._starts = _parted(given)
        self._found: Final = _headings(self._lines)
        self._title = ""

    def take(self, place: int, number: int | None) -> Iterator[str]:
        """Have the line at `place`, in the source's line `number`, open what it opens; yield what is text of it.

        What is yielded stands below what is open then.
        """
        for index in range(self._starts[place], self._starts[place + 1]):
            if index in self._found.titles:
                continue
            heading = self._found.opening.get(index)
            if heading is not None:
                self._title = heading.number if heading.kind == "title" else self._title
                self._drafts.add(heading, number)
            elif not (index in self._found.naming and self._drafts.entitle(*self._found.named(index, self._title))):
                yield shown(self._lines[index].removeprefix(_TEXT))


def _parted(given: Sequence[str]) -> tuple[list[str], list[int]]:
    """The lines, with the words that follow a heading on lines of their own, and where each given one starts."""
    run_in: dict[int, tuple[str, str]] = {}
    alone = 0
    for place, raw in enumerate(given):
        line = raw.strip()
        if "\t" in line or _START.match(line) is None:
            continue
        if (parts := _run_in(line)) is not None:
            run_in[place] = parts
        elif (heading := heading_of(shown(line))) is not None and heading.kind == SECTION:
            alone += heading.title != ""
    # Two sentences on one line may be a title, unless most lines that start like a section go on.
    usual = len(run_in) > alone
    lines: list[str] = []
    starts = []
    for place, raw in enumerate(given):
        starts.append(len(lines))
        line = raw.strip()
        parts = run_in.get(place)
        if parts is not None and (usual or len(line) > LONGEST or not _is_section(parts[0])):
            lines.append(parts[0])
            lines += [_TEXT + part for part in _PARAGRAPHS.split(parts[1]) if part.strip()]
        elif usual and len(line) > LONGEST:
            lines += [part for part in _PARAGRAPHS.split(line) if part.strip()]
        else:
            lines.append(line)
    return lines, [*starts, len(lines)]


def _is_section(line: str) -> bool:
    heading = heading_of(shown(line))
    return heading is not None and heading.kind == SECTION


def _run_in(line: str) -> tuple[str, str] | None:
    """A heading and the words that follow it on its line; None where it is no such line."""
    start = line[: 2 * LONGEST]
    for end in _SENTENCE.finditer(start):
        if end.start() >= _LONGEST_RUN_IN:
            break
        heading = heading_of(shown(start[: end.start() + 1]))
        if heading is not None and heading.kind == SECTION and heading.title:
            return start[: end.start() + 1], line[end.end() :]
        if heading is not None and heading.kind != SECTION:
            break
    listed = _LISTED.search(start, 1)
    if listed is not None and (heading := heading_of(shown(start[: listed.start()]))) is not None:
        return (start[: listed.start()], line[listed.end() :]) if heading.kind != SECTION else None
    return None


@dataclass(slots=True)
class _Found:
    """Which lines are headings, by index."""

    opening: dict[int, Heading] = field(default_factory=dict)
    """Those that open a level."""
    naming: dict[int, Heading] = field(default_factory=dict)
    """Those that name a level which the numbers of sections imply, and may stand anywhere."""
    titles: set[int] = field(default_factory=set)
    """Lines that are the title of the heading above."""

    def named(self, index: int, title: str) -> tuple[str, str, str | None]:
        """The number, title and kind of the level that a line names, within the title that is open."""
        heading = self.naming[index]
        if heading.bare:
            return heading.number, heading.title, None
        return f"{title}.{heading.number}", heading.title, heading.kind


def _headings(lines: Sequence[str]) -> _Found:
    """Tell the headings: of bare numbers only those in the way that most sections have them."""
    worded: list[_Candidate] = []
    bare: list[_Candidate] = []
    for index, line in enumerate(lines):
        if "\t" in line or _START.match(line) is None:
            continue
        heading = heading_of(shown(line))
        if heading is not None and not _is_reference(heading, line, lines[index - 1] if index else ""):
            (bare if heading.bare else worded).append((index, heading))
    found = _Found()
    sections = _placed([each for each in worded if each[1].kind == SECTION], lines)
    inner = _below(sections, bare)
    others = [each for each in worded if each[1].kind != SECTION]
    if inner:
        sections = [*sections, *inner]
    elif len(sections) < max(_LEAST_SECTIONS, _sections_in(bare)):
        chosen, found.naming = _of_one_style(bare, {heading.number for _, heading in others if heading.kind == "title"})
        # "Section 5" at the start of a line is a reference, where sections are numbered without a word.
        sections = chosen if len(chosen) >= _LEAST_SECTIONS else [*sections, *chosen]
    implied = _implied(heading.number for _, heading in sections)
    title = ""
    for index, heading in others:
        title = heading.number if heading.kind == "title" else title
        if f"{title}.{heading.number}" in implied and heading.title:
            found.naming[index] = heading
        else:
            found.opening[index] = heading
    found.opening.update(sections)
    for index, heading in found.opening.items():
        below = index + 1
        if heading.title or below >= len(lines) or below in found.opening or below in found.naming:
            continue
        if title := _title(lines[below]):
            found.opening[index] = Heading(heading.kind, heading.number, title, heading.bare)
            found.titles.add(below)
    return found


def _is_reference(heading: Heading, line: str, before: str) -> bool:
    """Whether what looks like a heading goes on with a sentence of the line above."""
    if len(before) >= _SHORTEST_WRAPPED and _GOES_ON.search(before[-20:]) is not None and not before.isupper():
        return True
    alone = (not heading.title and not line.isupper()) or "(" in heading.number
    return alone and bool(before) and not _is_end(before)


def _below(sections: Sequence[_Candidate], bare: Sequence[_Candidate]) -> list[_Candidate]:
    """Those of bare numbers that stand below sections with a word for it: 1.1 and 1.2 between sections 1 and 2."""
    whole = [(index, heading.number) for index, heading in sections if heading.number.isdigit()]
    numbers = [int(number) for _, number in whole]
    if len(whole) < 2 or len(whole) < len(sections) or numbers != sorted(set(numbers)):
        return []
    chosen, _ = _of_one_style(bare, set(), least=2)
    found = []
    for index, heading in chosen:
        at = bisect(whole, (index,))
        if at and components(heading.number)[0] == whole[at - 1][1]:
            found.append((index, heading))
    return found if len(found) * 5 > len(chosen) * 4 else []


def _placed(sections: list[_Candidate], lines: Sequence[str]) -> list[_Candidate]:
    """Leave out "Section 5" where nearly all sections have numbers such as 1-3, for then it is one of another law.

    One that is spelled as they are stays: the charter before a code has sections of its own.
    """
    placed = [each for each in sections if is_placed(each[1].number)]
    if len(placed) * 5 <= len(sections) * 4:
        return sections
    spelled = Counter(_spelling(lines[index], heading) for index, heading in placed)
    usual = max(spelled, key=lambda each: spelled[each], default=None)
    kept = {index for index, _ in placed}
    return [each for each in sections if each[0] in kept or _spelling(lines[each[0]], each[1]) == usual]


def _spelling(line: str, heading: Heading) -> tuple[str, str]:
    """The word before the number of a heading, and the mark behind it."""
    before, _, after = shown(line).partition(heading.number)
    mark = after.removesuffix(heading.title) if heading.title else after
    return before.strip(), mark.strip()


def _is_end(line: str) -> bool:
    return not line or line[-1] in ".;:)]”\"'" or heading_of(line) is not None


def _sections_in(bare: Sequence[_Candidate]) -> int:
    return len({heading.number for _, heading in bare if len(components(heading.number)) >= _LEAST_COMPONENTS})


def _of_one_style(
    bare: Sequence[_Candidate], titles: Set[str], least: int = _LEAST_COMPONENTS
) -> tuple[list[_Candidate], dict[int, Heading]]:
    """Those of the most frequent number of components, and those that name the levels that these are in."""
    counts = Counter(_style(heading.number) for _, heading in bare)
    long = {style: count for style, count in counts.items() if style[1] >= least}
    style = max(long or counts, key=lambda each: (counts[each], each), default=None)
    if style is None or (not long and counts[style] < _LEAST_SECTIONS):
        return [], {}
    chosen = [each for each in bare if _style(each[1].number) == style]
    if titles and style[0] == ".":
        chosen = [each for each in chosen if components(each[1].number)[0] in titles]
    if sum(heading.title.endswith(".") for _, heading in chosen) * 2 < len(chosen):
        chosen = [each for each in chosen if not each[1].title.endswith(".")]
    implied = _implied(heading.number for _, heading in chosen)
    return chosen, {
        number: heading
        for number, heading in bare
        if heading.number in implied and heading.title and heading.title[-1] not in ".;,:"
    }


def _style(number: str) -> tuple[str, int]:
    mark = "." if "." in number and "-" not in number else "-"
    return mark, len(re.split(r"[.\-]", number))


def _title(raw: str) -> str:
    """The line below a heading without a title, where it is one, as in ``CHAPTER 3`` above ``ZONING``."""
    title = shown(raw.strip())
    if not title or len(title) > _LONGEST_TITLE or "\t" in raw or title[-1] in ".,;:" or not title[0].isupper():
        return ""
    return "" if history_notes.is_note(title) or heading_of(title) is not None else title


def _implied(numbers: Iterable[str]) -> Set[str]:
    """The numbers of levels that those of sections imply, without the highest."""
    given = set(numbers)
    return {".".join(parts[:count]) for parts in map(components, given) for count in range(2, len(parts))} - given
