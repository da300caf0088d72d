"""Parser for codes in plain text with numbered headings.

Lines with cells separated by tabs are rows of a table. A text that was extracted from pages is read by `page_text`
first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from loaders.zoning.readers.code_model import Code
from loaders.zoning.readers.contents_file import Entry, find_differences
from loaders.zoning.readers.file_text import decode
from loaders.zoning.readers.heading_sequences import find_missing_numbers
from loaders.zoning.readers.headings import SECTION
from loaders.zoning.readers.html_lines import normalize_space
from loaders.zoning.readers.numbered_lines import Numbered
from loaders.zoning.readers.page_text import PageText, Paragraph, parse_pages
from loaders.zoning.readers.section_builder import Draft, Drafts, prefix_warnings
from loaders.zoning.readers.text_builder import Body, Written, WrittenTable

_MOST_LISTED: Final = 20


def parse(
    data: bytes,
    name: str,
    contents: Sequence[Entry] | None = None,
    *,
    municipality: str | None = None,
    state: str | None = None,
) -> Code:
    """Parse a text file into a code. `name` is the name of the file in warnings.

    Raises SourceError for a file that is not text.
    """
    text, warnings = decode(data, name)
    drafts = Drafts(warnings=[*warnings])
    lines = re.split(r"\r\n|\r|\n", text.rstrip())
    pages = parse_pages(lines)
    if pages is not None:
        drafts.warnings.append(_describe_pages(pages))
        paragraphs = pages.paragraphs
    else:
        lines = re.split(r"\r\n|\r|\n|\f", text.rstrip())
        paragraphs = [Paragraph(line, number, number) for number, line in enumerate(lines, 1)]
    numbered = Numbered([each.text for each in paragraphs], drafts)
    before = Body()
    current: Draft | None = None
    for place, rows in _lines(paragraphs):
        first = paragraphs[place].first
        if rows:
            (before if current is None else current.writing).table(
                WrittenTable([[Written(cell) for cell in row] for row in rows])
            )
            continue
        for words in numbered.take(place, first):
            current = drafts.latest
            (before if current is None else current.writing).add(words)
        if drafts.latest is not current:
            if current is not None:
                current.last_line = max(current.line or first, first - 1)
            current = drafts.latest
    if current is not None:
        current.last_line = len(lines)
    opened = next((each.line for each in drafts.drafts if each.line), len(lines) + 1)
    _warn_uncovered(drafts, before, paragraphs, opened)
    sections = drafts.sections()
    if contents is not None:
        kept = [(draft.number, draft.title, draft.kind) for draft in drafts.drafts if draft.level]
        drafts.warnings += find_differences(contents, kept, name)
    if not sections:
        drafts.warnings.append(f"{name}: No section found. Sections need a heading with a number.")
    return Code(municipality, state, sections, warnings=prefix_warnings(drafts.warnings, name))


def _warn_uncovered(drafts: Drafts, before: Body, paragraphs: Sequence[Paragraph], first: int) -> None:
    """Add warnings of text before the first heading, and of numbers that the headings lack."""
    if before:
        above = [each for each in paragraphs if each.first < first and each.text.strip()]
        share = 1 - sum(len(each.text) for each in above) / sum(len(each.text) for each in paragraphs)
        drafts.warnings.append(
            f"{share:.0%} of the text is in sections.".replace("%", " %")
            + f" {len(before.lines):,} lines before the first heading are not loaded: lines {above[0].first}-"
            f"{above[-1].last}, starting with {before.lines[0][:80]!r}."
        )
    if missing := find_missing_numbers(each.number for each in drafts.drafts if each.kind == SECTION):
        more = f", and {len(missing) - _MOST_LISTED:,} more" if len(missing) > _MOST_LISTED else ""
        drafts.warnings.append(
            f"No heading has the numbers {', '.join(missing[:_MOST_LISTED])}{more}, which those of the other sections "
            "imply. Their text, if the file has it, is in the sections before them."
        )


def _describe_pages(pages: PageText) -> str:
    removed = Counter(words for _, words in pages.furniture if not words.isdigit())
    heads = "".join(f", {words[:60]!r} {times:,} times" for words, times in removed.most_common(3))
    words = "".join(f", {word!r}" for word, _ in Counter(pages.mended).most_common(5))
    mended = f" Broken words joined: {sum(pages.mended.values()):,}{words}." if pages.mended else ""
    return f"{pages.pages:,} pages: {len(pages.furniture):,} page numbers, heads and feet are left out{heads}.{mended}"


def _lines(paragraphs: Sequence[Paragraph]) -> Iterator[tuple[int, Sequence[Sequence[str]]]]:
    """Yield the places of paragraphs that are not empty, and tables as their rows."""
    rows: list[list[str]] = []
    start = 0
    for place, each in enumerate(paragraphs):
        line = each.text.strip()
        if "\t" in line:
            start = start if rows else place
            rows.append([normalize_space(cell) for cell in line.split("\t")])
            continue
        if rows:
            yield start, rows
            rows = []
        if line:
            yield place, ()
    if rows:
        yield start, rows
