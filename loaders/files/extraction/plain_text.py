"""The words of a text in the notation of Markdown, without the notation, each with its offset in the text."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from kg.text import find_sentence_ends
from loaders.files.readers.markdown import find_blocks
from loaders.files.readers.plain_pages import read_text
from loaders.files.readers.text_model import Block

# Each part stops soon where its end is missing: a text of starts without ends takes no longer than another.
_NOTATION: Final = re.compile(
    r"""
      (?:(?<!`)|(?<=\\`))(?P<ticks>`++)(?P<code>.{1,4000}?)(?<!`)(?P=ticks)(?!`)
    | !\[(?P<image>[^\[\]]*)\]\([^()]*\)
    | \[(?P<label>[^\[\]]+)\](?P<target>\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\[\]]*\])
    | (?P<tag><(?:/?[A-Za-z][^<>]*|!--(?:[^<]|<(?!!--))*?--)>)
    | (?P<escape>\\[!-/:-@\[-`{-~])
    | (?P<strong>\*\*|(?<!\w)__(?=\S)|(?<=\S)__(?!\w))
    | (?P<emphasis>(?<![\w*])\*(?=[^\s*])|(?<=[^\s*])\*(?![\w*])|(?<!\w)_(?=[^\W_])|(?<=[^\W_])_(?!\w)|(?<=[.)])_(?!\w))
    | (?P<quote>^[ \t]*(?:>[ \t]?)+)
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_DEEPEST: Final = 3
LONGEST: Final = 5_000
"""Maximum characters of a snippet. A search in one may take the square of its length, and parsing takes
memory for each character of those that are parsed together."""
_BULLET: Final = re.compile(
    r"^[ \t]*(?:>[ \t]*)?(?:(?P<number>\d{1,4}[.)])|[-*+\u2022])[ \t]+(?:\[[ xX]\][ \t]+)?", re.M
)
_STEP: Final = re.compile(r"^[ \t]*(?:step[ \t]+\d+\b|\d{1,3}[.)])[ \t:.)-]*", re.IGNORECASE)
_OPENING: Final = re.compile(r"[ \t]{0,3}#{1,6}[ \t]+")
_CLOSING: Final = re.compile(r"(?<![ \t])[ \t]++#++[ \t]*+$|\n[=~-]{3,}+[ \t]*+$")
_NUMBER: Final = re.compile(r"(?:\d+(?:\.\d+)*[.)]?|[A-Z][.)]|step \d+:?|chapter \d+:?)\s+", re.IGNORECASE)
_LINE: Final = re.compile(r"[^\n]+")
_CELL: Final = re.compile(r"(?:\\.|[^|\\])+")
_RULE: Final = re.compile(r"\|?[\s:|-]+\|?")

SnippetKind = Literal["heading", "paragraph", "item", "step", "cell"]
MarkKind = Literal["bold", "code", "link"]


@dataclass(frozen=True, slots=True)
class Mark:
    """Characters of a plain text that are bold, code or the label of a link."""

    kind: MarkKind
    start: int
    end: int


@dataclass(slots=True)
class PlainText:
    """A text without notation: `offsets` has the offset of each of its characters, and that of the end."""

    text: str = ""
    offsets: array[int] = field(default_factory=lambda: array("q"))
    marks: list[Mark] = field(default_factory=list)

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Return the offsets in the text with notation of the characters `start` to `end`."""
        return self.offsets[start], self.offsets[end - 1] + 1


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with the headings that it is below, from the highest; none before the first heading."""

    headings: Sequence[str]
    level: int = 0


@dataclass(frozen=True, slots=True)
class Snippet:
    """A heading, a paragraph, an item of a list, a numbered step or a cell of a table.

    `section` and `block` are numbers of those of the file; the cells of a row have the same `row`. A long one is
    continued by paragraphs of the same block.
    """

    plain: PlainText
    kind: SnippetKind
    section: int
    block: int
    row: int = 0


@dataclass(frozen=True, slots=True)
class Outline:
    """The sections and snippets of a file, in order. Blocks of code are left out."""

    sections: Sequence[Section]
    snippets: Sequence[Snippet]


def to_plain(text: str, start: int, end: int) -> PlainText:
    """Read ``text[start:end]`` without notation."""
    plain = PlainText()
    pieces: list[tuple[int, int]] = []
    marks: list[tuple[MarkKind, int, int]] = []
    _read_pieces(text, start, end, pieces, marks, 0)
    out: list[str] = []
    for first, last in pieces:
        out.append(text[first:last].replace("\n", " ").replace("\t", " "))
        plain.offsets.extend(range(first, last))
    plain.text = "".join(out)
    starts = plain.offsets
    for kind, first, last in marks:
        begin = _find_index(starts, first)
        stop = _find_index(starts, last)
        if begin < stop:
            plain.marks.append(Mark(kind, begin, stop))
    return plain


def _find_index(offsets: Sequence[int], offset: int) -> int:
    low, high = 0, len(offsets)
    while low < high:
        middle = (low + high) // 2
        if offsets[middle] < offset:
            low = middle + 1
        else:
            high = middle
    return low


def _read_pieces(
    text: str,
    start: int,
    end: int,
    pieces: list[tuple[int, int]],
    marks: list[tuple[MarkKind, int, int]],
    depth: int,
) -> None:
    """Collect the runs of characters that are not notation, and the marks, by their offsets in `text`."""
    at = start
    strong: int | None = None
    for found in _NOTATION.finditer(text, start, end):
        if found.start() < at:
            continue
        if found.start() > at:
            pieces.append((at, found.start()))
        at = found.end()
        kind = found.lastgroup
        if found["ticks"] is not None:
            first, last = found.span("code")
            pieces.append((first, last))
            marks.append(("code", first, last))
        elif found["label"] is not None:
            first, last = found.span("label")
            if depth < _DEEPEST:
                _read_pieces(text, first, last, pieces, marks, depth + 1)
            else:
                pieces.append((first, last))
            marks.append(("link", first, last))
        elif kind == "escape":
            pieces.append((at - 1, at))
        elif kind == "strong":
            if strong is None:
                strong = found.end()
            else:
                marks.append(("bold", strong, found.start()))
                strong = None
    if at < end:
        pieces.append((at, end))


def build_outline(text: str, media_type: str) -> Outline:
    """Divide the stored text of a file into its sections and snippets."""
    blocks = read_text(text).blocks if media_type == "text/plain" else find_blocks(text)
    sections = [Section(())]
    snippets: list[Snippet] = []
    open_headings: list[tuple[int, str]] = []
    for number, block in enumerate(blocks):
        if block.level:
            while open_headings and open_headings[-1][0] >= block.level:
                open_headings.pop()
            open_headings.append((block.level, block.title))
            sections.append(Section(tuple(title for _, title in open_headings), block.level))
        at = len(sections) - 1
        for kind, start, end, row in _divide(text, block):
            while start < end and text[start].isspace():
                start += 1
            while end > start and text[end - 1].isspace():
                end -= 1
            for first, last in _cut(text, start, end):
                own = kind if first == start or kind == "cell" else "paragraph"
                snippets.append(Snippet(to_plain(text, first, last), own, at, number, row))
    return Outline(sections, snippets)


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut characters into pieces of at most `LONGEST`: behind a sentence if possible, else behind a word."""
    while end - start > LONGEST:
        stop = start + LONGEST
        piece = text[start:stop].rstrip()
        ends = [at for at in find_sentence_ends(piece) if 0 < at < len(piece)]  # the last sentence goes on
        space = max(text.rfind(" ", start, stop), text.rfind("\n", start, stop))
        cut = start + ends[-1] if ends else space if space > start else stop
        yield start, start + len(text[start:cut].rstrip())
        start = cut
        while start < end and text[start].isspace():
            start += 1
    if start < end:
        yield start, end


def _divide(text: str, block: Block) -> list[tuple[SnippetKind, int, int, int]]:
    start, end = block.start, block.end
    if block.kind == "code":
        return []
    if block.kind == "heading":
        inner = text[start:end].rstrip("\n")
        first = found.end() if (found := _OPENING.match(inner)) else 0
        last = found.start() if (found := _CLOSING.search(inner)) else len(inner)
        if (numbered := _NUMBER.match(inner, first, last)) is not None:
            first = numbered.end()
        return [("heading", start + first, start + last, 0)]
    if block.kind == "table":
        return _divide_table(text, start, end)
    if block.kind in ("list", "steps", "definitions"):
        bullets = list(_BULLET.finditer(text, start, end))
        if not bullets:
            return [("paragraph", start, end, 0)]
        cuts: list[tuple[SnippetKind, int, int, int]] = []
        least = min(len(each[0]) - len(each[0].lstrip()) for each in bullets)
        for each, after in zip(bullets, [*(other.start() for other in bullets[1:]), end], strict=True):
            indent = len(each[0]) - len(each[0].lstrip())
            is_step = block.kind == "steps" and each["number"] is not None and indent == least
            cuts.append(("step" if is_step else "item", each.end(), after, 0))
        return cuts
    if (step := _STEP.match(text, start, end)) is not None:
        return [("step", step.end(), end, 0)]
    if (bullet := _BULLET.match(text, start, end)) is not None:
        return [("item", bullet.end(), end, 0)]
    return [("paragraph", start, end, 0)]


def _divide_table(text: str, start: int, end: int) -> list[tuple[SnippetKind, int, int, int]]:
    cells: list[tuple[SnippetKind, int, int, int]] = []
    row = 0
    for line in _LINE.finditer(text, start, end):
        if _RULE.fullmatch(line[0]):
            continue
        row += 1
        for cell in _CELL.finditer(text, line.start(), line.end()):
            cells.append(("cell", cell.start(), cell.end(), row))
    return cells
