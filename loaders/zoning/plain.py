"""Codes as plain text, whose headings are numbered lines.

Which style of number a code's sections have shows in the text: ``Sec. 61-1-1. Purpose.``, ``§ 10-101. Title`` or
``1.04.010 Title``. Lines whose cells are parted by tabs are rows of a table.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Final

from loaders.zoning import history
from loaders.zoning.drafts import Draft, Drafts, named
from loaders.zoning.headings import SECTION, Heading, components, heading_of, is_placed
from loaders.zoning.html import Entry, differences
from loaders.zoning.markup import decoded, shown
from loaders.zoning.model import Code
from loaders.zoning.writing import Body, Written, WrittenTable

_LEAST_COMPONENTS: Final = 3
"""Components of a number that is a heading without a word for it, unless a code has none so long."""
_LEAST_SECTIONS: Final = 3
_LONGEST_TITLE: Final = 80
_FIRST: Final = frozenset("0123456789§TtSsCcAaDdPp")

_Candidate = tuple[int, Heading]


def parse(
    data: bytes,
    name: str,
    contents: Sequence[Entry] | None = None,
    *,
    municipality: str | None = None,
    state: str | None = None,
) -> Code:
    """Return what a text file holds of a code. `name` is what to call the file in warnings.

    Raises SourceError for a file that is no text.
    """
    text, warnings = decoded(data, name)
    lines = re.split(r"\r\n|\r|\n|\f", text.rstrip())
    found = _headings(lines)
    drafts = Drafts(warnings=[*warnings])
    before = Body()
    current: Draft | None = None
    title = ""
    for number, line, rows in _lines(lines, found):
        heading = found.opening.get(number)
        if heading is None:
            if number in found.naming and drafts.entitle(*found.named(number, title)):
                continue
            body = current.body if current is not None and current.body is not None else before
            if rows:
                body.table(WrittenTable([[Written(cell) for cell in row] for row in rows]))
            else:
                body.add(line)
            continue
        if current is not None:
            current.last_line = max(current.line or number, number - 1)
        title = heading.number if heading.kind == "title" else title
        current = drafts.add(heading, number)
    if current is not None:
        current.last_line = len(lines)
    if before:
        drafts.warnings.append(
            f"{name}: {len(before.lines):,} lines stand before the first heading, from {before.lines[0][:80]!r}"
        )
    sections = drafts.sections()
    if contents is not None:
        kept = [(draft.number, draft.title, draft.kind) for draft in drafts.drafts if draft.level]
        drafts.warnings += differences(contents, kept, name)
    if not sections:
        drafts.warnings.append(f"{name}: holds no heading with a number, so no section")
    return Code(municipality, state, sections, warnings=named(drafts.warnings, name))


@dataclass(slots=True)
class _Found:
    """Which lines of a file are headings, by number."""

    opening: dict[int, Heading] = field(default_factory=dict)
    """Those that open a level."""
    naming: dict[int, Heading] = field(default_factory=dict)
    """Those that name a level which the numbers of sections imply, and may stand anywhere."""
    titles: set[int] = field(default_factory=set)
    """Lines that are the title of the heading above."""

    def named(self, number: int, title: str) -> tuple[str, str, str | None]:
        """The number, title and kind of the level that a line names, within the title that is open."""
        heading = self.naming[number]
        if heading.bare:
            return heading.number, heading.title, None
        return f"{title}.{heading.number}", heading.title, heading.kind


def _lines(lines: Sequence[str], found: _Found) -> Iterator[tuple[int, str, Sequence[Sequence[str]] | None]]:
    """Yield the lines that say something with their numbers, and tables as their rows."""
    rows: list[list[str]] = []
    start = 0
    for number, raw in enumerate(lines, 1):
        line = raw.strip()
        if number in found.titles:
            continue
        if "\t" in line:
            rows.append([shown(cell) for cell in line.split("\t")])
            start = start or number
            continue
        if rows:
            yield start, "", rows
            rows, start = [], 0
        if line:
            yield number, shown(line), None
    if rows:
        yield start, "", rows


def _headings(lines: Sequence[str]) -> _Found:
    """Tell the headings: of bare numbers only those in the way that most sections have them."""
    worded: list[_Candidate] = []
    bare: list[_Candidate] = []
    for number, raw in enumerate(lines, 1):
        line = raw.strip()
        if not line or line[0] not in _FIRST or "\t" in line:
            continue
        heading = heading_of(shown(line))
        # A number alone that goes on with a sentence of the line above is the end of a reference.
        alone = heading is not None and not heading.title and number > 1 and not line.isupper()
        if heading is not None and not (alone and not _is_end(lines[number - 2].strip())):
            (bare if heading.bare else worded).append((number, heading))
    found = _Found()
    sections = _placed([each for each in worded if each[1].kind == SECTION])
    others = [each for each in worded if each[1].kind != SECTION]
    if len(sections) < max(_LEAST_SECTIONS, _sections_in(bare)):
        chosen, found.naming = _of_one_style(bare, {heading.number for _, heading in others if heading.kind == "title"})
        # "Section 5" at the start of a line is a reference, where sections are numbered without a word.
        sections = chosen if len(chosen) >= _LEAST_SECTIONS else [*sections, *chosen]
    implied = _implied(heading.number for _, heading in sections)
    title = ""
    for number, heading in others:
        title = heading.number if heading.kind == "title" else title
        if f"{title}.{heading.number}" in implied and heading.title:
            found.naming[number] = heading
        else:
            found.opening[number] = heading
    found.opening.update(sections)
    for number, heading in found.opening.items():
        if (
            not heading.title
            and number < len(lines)
            and not {number + 1} & (found.opening.keys() | found.naming.keys())
        ):
            title = _title(lines[number])
            if title:
                found.opening[number] = Heading(heading.kind, heading.number, title, heading.bare)
                found.titles.add(number + 1)
    return found


def _placed(sections: list[_Candidate]) -> list[_Candidate]:
    """Leave out "Section 5" where nearly all sections have numbers such as 1-3, for then it is one of another law."""
    placed = [each for each in sections if is_placed(each[1].number)]
    return placed if len(placed) * 5 > len(sections) * 4 else sections


def _is_end(line: str) -> bool:
    return not line or line[-1] in ".;:)]”\"'" or heading_of(line) is not None


def _sections_in(bare: Sequence[_Candidate]) -> int:
    return len({heading.number for _, heading in bare if len(components(heading.number)) >= _LEAST_COMPONENTS})


def _of_one_style(bare: Sequence[_Candidate], titles: Set[str]) -> tuple[list[_Candidate], dict[int, Heading]]:
    """Those of the most frequent number of components, and those that name the levels that these are in."""
    counts = Counter(_style(heading.number) for _, heading in bare)
    long = {style: count for style, count in counts.items() if style[1] >= _LEAST_COMPONENTS}
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
    return "" if history.is_note(title) or heading_of(title) is not None else title


def _implied(numbers: Iterable[str]) -> Set[str]:
    """The numbers of levels that those of sections imply, without the highest."""
    given = set(numbers)
    return {".".join(parts[:count]) for parts in map(components, given) for count in range(2, len(parts))} - given
