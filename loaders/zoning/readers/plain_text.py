"""Parser for codes in plain text, or in a PDF, with numbered headings.

Lines with cells separated by tabs are rows of a table. A text that was extracted from pages is read by `page_text`
first.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Sequence
from dataclasses import replace

from loaders.readers.file_text import decode
from loaders.readers.html_tree import Written, WrittenTable
from loaders.readers.page_text import PageText, Paragraph, group_rows, parse_pages
from loaders.readers.pdf import read_pdf, warn_of_disputed
from loaders.readers.ruled_tables import ABOVE, LEFT, MARKS
from loaders.zoning.readers.code_model import Code, Section
from loaders.zoning.readers.numbered_lines import Numbered
from loaders.zoning.readers.section_builder import Drafts, prefix_warnings
from loaders.zoning.readers.text_builder import Body


def parse(data: bytes, name: str) -> Code:
    """Parse a text file into a code. `name` is the name of the file in warnings.

    Raises SourceError for a file that is not text.
    """
    text, warnings = decode(data, name)
    lines = re.split(r"\r\n|\r|\n", text.rstrip())
    drafts = Drafts(warnings=[*warnings])
    if (pages := parse_pages(lines)) is not None:
        drafts.warnings.append(_describe_pages(pages, pages.pages))
        sections = _read_sections(pages.paragraphs, drafts, paged=True)
    else:
        lines = re.split(r"\r\n|\r|\n|\f", text.rstrip())
        paragraphs = [Paragraph(line, number, number) for number, line in enumerate(lines, 1)]
        sections = _read_sections(paragraphs, drafts, paged=False)
    return Code(None, None, sections, warnings=prefix_warnings(drafts.warnings, name))


def parse_pdf(data: bytes, name: str) -> Code:
    """Parse a PDF into a code. Sections have their pages, counted from 1, instead of lines.

    Raises SourceError for a file that cannot be read.
    """
    pdf = read_pdf(data, name)
    lines = pdf.text.split("\n")
    starts = [number for number, line in enumerate(lines, 1) if line.startswith("\f")]
    pages = parse_pages(lines, printed=True)
    paragraphs = [
        Paragraph(each.text, bisect(starts, each.first) + 1, bisect(starts, each.last) + 1) for each in pages.paragraphs
    ]
    disputed = [
        paragraph.first
        for paragraph, each in zip(paragraphs, pages.paragraphs, strict=True)
        if pdf.is_disputed(each.first, each.last)
    ]
    warned = [*pdf.warnings, *warn_of_disputed(name, disputed), _describe_pages(pages, pdf.pages)]
    drafts = Drafts(warnings=warned, counted="page")
    sections = _read_sections(paragraphs, drafts, paged=True)
    sections = [replace(section, lines=None, pages=section.lines) for section in sections]
    return Code(None, None, sections, warnings=prefix_warnings(drafts.warnings, name))


def _read_sections(paragraphs: Sequence[Paragraph], drafts: Drafts, *, paged: bool) -> Sequence[Section]:
    """Read the sections of paragraphs. With `paged`, a header that a table repeats after a page break is left out."""
    numbered = Numbered([each.text for each in paragraphs], drafts)
    before = Body()
    for place, rows in group_rows(paragraphs, paged=paged):
        earlier, first = drafts.latest, paragraphs[place].first
        if rows:
            (earlier.body if earlier else before).table(_build_table(rows))
            continue
        for words in numbered.take(place, first):
            (drafts.latest.body if drafts.latest else before).add(words)
        if earlier is not None and drafts.latest is not earlier:
            earlier.last_line = max(earlier.line or first, paragraphs[place - 1].last)
    if drafts.latest is not None:
        drafts.latest.last_line = paragraphs[-1].last
    drafts.warn_of_lines_before(before)
    sections = drafts.sections()
    if not sections:
        drafts.warnings.append("No section found. Sections need a heading with a number.")
    return sections


def _describe_pages(pages: PageText, count: int) -> str:
    mended = f" Broken words joined: {sum(pages.mended.values()):,}." if pages.mended else ""
    return f"{count:,} pages: {len(pages.furniture):,} page numbers, heads and feet are left out.{mended}"


def _build_table(rows: Sequence[Sequence[str]]) -> WrittenTable:
    """Build a table of rows whose merged cells are marked."""
    owners: dict[tuple[int, int], tuple[int, int]] = {}
    sizes: dict[tuple[int, int], tuple[int, int]] = {}
    for row, cells in enumerate(rows):
        for column, cell in enumerate(cells):
            near = {LEFT: (row, column - 1), ABOVE: (row - 1, column)}.get(cell)
            row_of, column_of = owners[row, column] = owners.get(near, (row, column)) if near else (row, column)
            sizes[row_of, column_of] = (row - row_of + 1, column - column_of + 1)
    return WrittenTable(
        [
            [
                Written("" if cell in MARKS else cell, colspan=sizes[row, column][1], rowspan=sizes[row, column][0])
                for column, cell in enumerate(cells)
                if owners[row, column] == (row, column)
            ]
            for row, cells in enumerate(rows)
        ]
    )
