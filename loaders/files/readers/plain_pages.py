"""Plain text and PDFs: paragraphs, and the headings, lists and tables among them that their form shows."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator, Sequence
from typing import Final

from loaders.files.readers.text_model import Block, FileText, TextWriter, normalize_newlines
from loaders.readers.headings import parse_heading
from loaders.readers.page_text import group_rows, parse_pages
from loaders.readers.pdf import read_pdf, warn_of_disputed
from loaders.readers.ruled_tables import ABOVE, LEFT, MARKS

_LONGEST_HEADING: Final = 100
_LEAST_STEPS: Final = 2
_PARAGRAPH: Final = re.compile(r"(?:(?<![^\S\n])[^\S\n]++)?\S[^\n]*+(?:\n[^\S\n]*+\S[^\n]*+)*+(?:\n|\Z)")
_UNDERLINE: Final = re.compile(r"(?P<title>[^\n]+)\n(?P<rule>={3,}|-{3,}|~{3,})\s*")
_NUMBERED: Final = re.compile(r"(?P<number>\d{1,3}(?:\.\d{1,3}){0,5})\.?\s+(?P<title>[A-Z\"\u201c].*)", re.DOTALL)
_STEP: Final = re.compile(r"^[ \t]*(?:(?P<number>\d{1,3})[.)]|[Ss]tep (?P<step>\d{1,3})\b)[ \t:.]*(?=\S)", re.MULTILINE)
_BULLET: Final = re.compile(r"^[ \t]*[-*\u2022\u00b7\u25aa\u25cf\u25e6][ \t]+(?=\S)", re.MULTILINE)
_SENTENCE: Final = re.compile(r"[.;:,?!]$")
_RANKS: Final = {"part": 1, "title": 1, "chapter": 1, "appendix": 1, "article": 2, "division": 2}


def read_text(source: str) -> FileText:
    """Read a plain text file. Its lines keep their numbers."""
    text = normalize_newlines(source)
    blocks = list(_find_blocks(text))
    ruled = bool(blocks) and blocks[0].level == 1 and _UNDERLINE.match(text, blocks[0].start) is not None
    return FileText(text, blocks, title=blocks[0].title if ruled else None, first_line=1)


def _find_blocks(text: str) -> Iterator[Block]:
    for match in _PARAGRAPH.finditer(text):
        paragraph, start, end = match[0].rstrip("\n"), match.start(), match.end()
        if (ruled := _UNDERLINE.fullmatch(paragraph)) is not None:
            title = ruled["title"].strip()
            yield Block("heading", start, end, {"=": 1, "-": 2}.get(ruled["rule"][0], 3), title)
        elif "\n" not in paragraph and (level := find_level(paragraph)):
            yield Block("heading", start, end, level, paragraph.strip())
        else:
            yield _find_list(paragraph, start, end)


def _find_list(paragraph: str, start: int, end: int) -> Block:
    """Build the block of a paragraph, which is a list if its first line is an item."""
    steps = list(_STEP.finditer(paragraph))
    if len(steps) >= _LEAST_STEPS and steps[0].start() == 0 and _ascend(steps):
        return Block("steps", start, end, parts=[start + each.start() for each in steps[1:]])
    bullets = list(_BULLET.finditer(paragraph))
    if len(bullets) > 1 and bullets[0].start() == 0:
        return Block("list", start, end, parts=[start + each.start() for each in bullets[1:]])
    return Block("paragraph", start, end)


def _ascend(steps: Sequence[re.Match[str]]) -> bool:
    numbers = [int(each["number"] or each["step"]) for each in steps]
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def find_level(line: str) -> int:
    """Find the level of a line that is a heading by its number: ``2.1 Scope`` has 2. 0 for any other line."""
    line = line.strip()
    if not line or len(line) > _LONGEST_HEADING or _SENTENCE.search(line):
        return 0
    if (numbered := _NUMBERED.fullmatch(line)) is not None:
        return 1 + numbered["number"].count(".")
    heading = parse_heading(line)
    return _RANKS.get(heading.kind, 3) if heading is not None and not heading.bare and heading.title else 0


def read_pdf_file(data: bytes, name: str) -> FileText:
    """Read a PDF without the furniture of its pages. Raises SourceError for a file that cannot be read."""
    pdf = read_pdf(data, name)
    lines = pdf.text.split("\n")
    starts = [number for number, line in enumerate(lines, 1) if line.startswith("\f")]
    paragraphs = parse_pages(lines, printed=True).paragraphs
    writer = TextWriter()
    pages: list[int] = [0]
    disputed: list[int] = []
    for place, rows in group_rows(paragraphs, paged=True):
        at = writer.length + (2 if writer.pieces else 0)
        pages += [at] * (bisect(starts, paragraphs[place].first) + 1 - len(pages))
        if rows:
            writer.table(_fill_merged(rows))
        else:
            each = paragraphs[place]
            is_disputed = pdf.is_disputed(each.first, each.last)
            disputed += [len(pages)] if is_disputed else []
            _add_paragraph(writer, each.text.strip(), disputed=is_disputed)
    pages += [writer.length] * (pdf.pages - len(pages))
    warnings = [*pdf.warnings, *warn_of_disputed(name, disputed)]
    return FileText(writer.text(), writer.blocks, pages=pages, warnings=warnings)


def _add_paragraph(writer: TextWriter, text: str, *, disputed: bool) -> None:
    if level := find_level(text):
        writer.add("heading", [text], level=level, title=text, disputed=disputed)
    else:
        # Each item is a paragraph of its own.
        writer.add("paragraph", [text], disputed=disputed)


def _fill_merged(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Repeat merged cells in all rows and columns that they span."""
    filled: list[list[str]] = []
    for row in rows:
        line: list[str] = []
        for column, cell in enumerate(row):
            if cell == LEFT and line:
                line.append(line[-1])
            elif cell == ABOVE and filled and column < len(filled[-1]):
                line.append(filled[-1][column])
            else:
                line.append("" if cell in MARKS else cell)
        filled.append(line)
    return filled
