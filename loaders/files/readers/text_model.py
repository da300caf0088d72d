"""The text of a file with its structure, as every reader of a format returns it.

The text of a Markdown or plain text file is that of the file. The text of any other format is written in the notation
of Markdown: headings, lists, tables, code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

Kind = Literal["heading", "paragraph", "list", "steps", "table", "code", "definitions"]
"""The kind of a block. `steps` is a numbered list."""

_NEWLINES: Final = re.compile(r"\r\n?")
_LINE_SEPARATORS: Final = re.compile(r"(?<!\s)[^\S\n]*+\n\s*+")


@dataclass(frozen=True, slots=True)
class Block:
    """A block of the text, by its offsets. `parts` are the offsets at which a long block may be cut, without its own.

    `level` and `title` are those of a heading, the title without notation.
    """

    kind: Kind
    start: int
    end: int
    level: int = 0
    title: str = ""
    parts: Sequence[int] = ()
    disputed: bool = False
    """Whether the order of its words is not sure: the columns of its page and the file disagree."""


@dataclass(frozen=True, slots=True)
class FileText:
    """The text of a file, its blocks in order, and the statements of the file about itself.

    `first_line` is the line of the file at the start of the text, for formats whose lines are those of the text.
    `pages` are the offsets at which the pages of the file begin, for formats with pages.
    """

    text: str
    blocks: Sequence[Block]
    title: str | None = None
    language: str | None = None
    tags: Sequence[str] = ()
    security: str | None = None
    first_line: int | None = None
    pages: Sequence[int] = ()
    warnings: Sequence[str] = ()


@dataclass(slots=True)
class TextWriter:
    """Builds a text of blocks, with a blank line between two of them."""

    pieces: list[str] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    length: int = 0

    def add(
        self,
        kind: Kind,
        lines: Sequence[str],
        *,
        level: int = 0,
        title: str = "",
        group: Sequence[int] = (),
        disputed: bool = False,
    ) -> None:
        """Add a block of `lines`. `group` are the indexes of the lines at which it may be cut, by default all."""
        if not any(line.strip() for line in lines):
            return
        if self.pieces:
            self.pieces.append("\n\n")
            self.length += 2
        start = self.length
        starts = []
        at = start
        for line in lines:
            starts.append(at)
            at += len(line) + 1
        self.pieces.append("\n".join(lines))
        self.length = at - 1
        cuts = [starts[index] for index in (group or range(len(lines))) if index] if kind != "paragraph" else []
        self.blocks.append(Block(kind, start, self.length, level, title, cuts, disputed))

    def heading(self, level: int, words: str, title: str) -> None:
        """Add a heading. `words` may have notation, `title` has none."""
        if title:
            self.add("heading", [f"{'#' * level} {words}"], level=level, title=title)

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Add a table. Its first row is the header."""
        rows = [row for row in rows if any(cell.strip() for cell in row)]
        if not rows:
            return
        width = max(map(len, rows))
        lines = [format_row([*row, *[""] * (width - len(row))]) for row in rows]
        lines.insert(1, format_row(["---"] * width))
        self.add("table", lines, group=range(2, len(lines)))

    def text(self) -> str:
        """Join the text."""
        return "".join(self.pieces)


def format_row(cells: Sequence[str]) -> str:
    """Format the row of a table: ``| a | b |``."""
    return f"| {' | '.join(_LINE_SEPARATORS.sub(' ', cell).replace('|', chr(92) + '|') for cell in cells)} |"


def normalize_newlines(text: str) -> str:
    """Return `text` with line feeds as the only ends of lines."""
    return _NEWLINES.sub("\n", text)
