"""Parser for codes in plain text with numbered headings.

Lines with cells separated by tabs are rows of a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from loaders.zoning.readers.code_model import Code
from loaders.zoning.readers.contents_file import Entry, find_differences
from loaders.zoning.readers.file_text import decode
from loaders.zoning.readers.html_lines import normalize_space
from loaders.zoning.readers.numbered_lines import Numbered
from loaders.zoning.readers.section_builder import Draft, Drafts, prefix_warnings
from loaders.zoning.readers.text_builder import Body, Written, WrittenTable


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
            f"{name}: {len(before.lines):,} lines before the first heading, starting with {before.lines[0][:80]!r}."
        )
    sections = drafts.sections()
    if contents is not None:
        kept = [(draft.number, draft.title, draft.kind) for draft in drafts.drafts if draft.level]
        drafts.warnings += find_differences(contents, kept, name)
    if not sections:
        drafts.warnings.append(f"{name}: No section found. Sections need a heading with a number.")
    return Code(municipality, state, sections, warnings=prefix_warnings(drafts.warnings, name))


def _lines(lines: Sequence[str]) -> Iterator[tuple[int, Sequence[Sequence[str]]]]:
    """Yield the numbers of non-empty lines, and tables as their rows."""
    rows: list[list[str]] = []
    start = 0
    for number, raw in enumerate(lines, 1):
        line = raw.strip()
        if "\t" in line:
            rows.append([normalize_space(cell) for cell in line.split("\t")])
            start = start or number
            continue
        if rows:
            yield start, rows
            rows, start = [], 0
        if line:
            yield number, ()
    if rows:
        yield start, rows
