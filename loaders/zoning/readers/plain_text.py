"""Codes as plain text, whose headings are numbered lines.

Lines whose cells are parted by tabs are rows of a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from loaders.zoning.readers.code_model import Code
from loaders.zoning.readers.contents_file import Entry, differences
from loaders.zoning.readers.html_lines import decoded, shown
from loaders.zoning.readers.numbered_lines import Numbered
from loaders.zoning.readers.section_builder import Draft, Drafts, named
from loaders.zoning.readers.text_builder import Body, Written, WrittenTable


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
    drafts = Drafts(warnings=[*warnings])
    numbered = Numbered(lines, drafts)
    before = Body()
    current: Draft | None = None
    for number, rows in _lines(lines):
        if rows:
            (before if current is None else current.writing).table(
                WrittenTable([[Written(cell) for cell in row] for row in rows])
            )
            continue
        for words in numbered.take(number - 1, number):
            current = drafts.latest
            (before if current is None else current.writing).add(words)
        if drafts.latest is not current:
            if current is not None:
                current.last_line = max(current.line or number, number - 1)
            current = drafts.latest
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


def _lines(lines: Sequence[str]) -> Iterator[tuple[int, Sequence[Sequence[str]]]]:
    """Yield the numbers of lines that say something, and tables as their rows."""
    rows: list[list[str]] = []
    start = 0
    for number, raw in enumerate(lines, 1):
        line = raw.strip()
        if "\t" in line:
            rows.append([shown(cell) for cell in line.split("\t")])
            start = start or number
            continue
        if rows:
            yield start, rows
            rows, start = [], 0
        if line:
            yield number, ()
    if rows:
        yield start, rows
