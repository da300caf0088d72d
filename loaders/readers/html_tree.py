"""HTML as a tree: parsing within limits, white space as shown by a browser, the text of elements, and tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Final

from lxml import etree

from kg.errors import SourceError
from loaders.readers.html import BLOCKS, HIDDEN
from loaders.readers.html_inline import rewrite
from loaders.readers.inline import LeftOut

_CELLS: Final = ("td", "th")
_WIDEST: Final = 100
_TALLEST: Final = 1_000
_MOST_ATTRIBUTES: Final = 10_000
"""Maximum attributes of an element. The parser takes time in proportion to the square of their number."""
_TAG: Final = re.compile(r"<[A-Za-z]")
_QUOTED: Final = re.compile(r"\"[^\"]*\"|'[^']*'")
_ROMAN: Final = tuple(
    zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        ("m", "cm", "d", "cd", "c", "xc", "l", "xl", "x", "ix", "v", "iv", "i"),
        strict=True,
    )
)


@dataclass(frozen=True, slots=True)
class Written:
    """A cell without offsets yet: its text, its raised words and its nested tables."""

    text: str
    colspan: int = 1
    rowspan: int = 1
    header: bool = False
    superscripts: Sequence[tuple[int, int]] = ()
    nested: Sequence[WrittenTable] = ()


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """A table without offsets yet."""

    rows: Sequence[Sequence[Written]]
    header_rows: int = 0
    caption: str | None = None


def parse_html(text: str, name: str, left_out: LeftOut) -> etree._Element | None:
    """Parse HTML, valid or not, and return its root as `html_inline.rewrite` leaves it. None if it is empty.

    Raises SourceError if elements nest so deeply that the parser would drop the rest, or have too many attributes.
    """
    for part in text.split(">"):
        if len(part) > 2 * _MOST_ATTRIBUTES and (tag := _TAG.search(part)) is not None:
            attributes = len(_QUOTED.sub("", part[tag.start() :]).split()) - 1
            if attributes > _MOST_ATTRIBUTES:
                raise SourceError(
                    f"{name}: An element has {attributes:,} attributes. At most {_MOST_ATTRIBUTES:,} are read."
                )
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=False, remove_pis=True)
    data = text.replace("\0", "\ufffd").encode("utf-8", errors="replace")
    try:
        root = etree.fromstring(data, parser) if data.strip() else None
    except etree.XMLSyntaxError:
        return None
    limits = [each.line for each in parser.error_log if each.type_name == "ERR_RESOURCE_LIMIT"]
    if limits:
        raise SourceError(f"{name}, line {limits[0]}: The elements nest too deeply. The rest cannot be read.")
    if root is not None:
        rewrite(root, left_out)
    return root


def normalize_space(text: str) -> str:
    """Normalize white space: each run, with no-break spaces, becomes one space."""
    return " ".join(text.split())


def text_of(element: etree._Element) -> str:
    """All text of an element on one line."""
    if len(element) == 0:
        return normalize_space(element.text or "")
    return normalize_space("".join(text_pieces(element)))


def text_pieces(element: etree._Element) -> Iterator[str]:
    """Yield the pieces of the text of an element, with spaces around blocks and line feeds for line breaks."""
    if element.text:
        yield element.text
    for child in element:
        tag = child.tag
        if tag == "br":
            yield "\n"
        elif tag in BLOCKS:
            yield " "
            yield from text_pieces(child)
            yield " "
        elif tag not in HIDDEN:
            yield from text_pieces(child)
        if child.tail:
            yield child.tail


def list_label(kind: str, number: int) -> str:
    """Build the label of a list item in HTML. The numbering type is 1, a, A, i or I."""
    if kind in "aA" and number > 0:
        letters = ""
        while number > 0:
            number, rest = divmod(number - 1, 26)
            letters = chr(97 + rest) + letters
        return letters.upper() if kind == "A" else letters
    if kind in "iI" and 0 < number < 4_000:
        roman = ""
        for value, sign in _ROMAN:
            count, number = divmod(number, value)
            roman += sign * count
        return roman.upper() if kind == "I" else roman
    return str(number)


def build_table(element: etree._Element) -> WrittenTable:
    """Build a table with its spans. Nested tables are separate from the text of their cell."""
    caption, rows, header_rows, leading = None, [], 0, True
    for row, in_head in _rows(element):
        cells = [_cell(cell) for cell in row]
        leading = leading and (in_head or all(cell.header for cell in cells))
        header_rows += leading
        rows.append(cells)
    for child in element:
        if child.tag == "caption":
            caption = text_of(child) or None
    return WrittenTable(rows, header_rows if header_rows < len(rows) else 0, caption)


def _rows(table: etree._Element) -> Iterator[tuple[Sequence[etree._Element], bool]]:
    """The cells of each row. Text outside of any cell, as in broken HTML, is a row of its own."""
    loose: list[etree._Element] = []
    waiting: list[tuple[etree._Element, bool]] = [(table, False)]
    while waiting:
        element, in_head = waiting.pop()
        inner: list[tuple[etree._Element, bool]] = []
        if element.tag == "tr":
            cells = [child if child.tag in _CELLS else _boxed(child) for child in element if child.tag not in HIDDEN]
            stray = [*_stray(element), *cells]
            if stray:
                yield stray, in_head
            continue
        if element.tag in _CELLS:
            loose.append(element)
            if not waiting or waiting[-1][0].tag not in _CELLS:
                yield loose, in_head
                loose = []
            continue
        for stray_cell in _stray(element):
            yield [stray_cell], in_head
        for child in element:
            if child.tag in ("thead", "tbody", "tfoot", "tr", *_CELLS):
                inner.append((child, in_head or child.tag == "thead"))
            elif child.tag not in HIDDEN and child.tag not in ("caption", "colgroup", "col"):
                inner.append((_boxed(child), in_head))
        waiting += inner[::-1]


def _stray(element: etree._Element) -> Iterator[etree._Element]:
    """Text directly in a table, table part or row, each as a cell."""
    for words in (element.text, *(child.tail for child in element)):
        if words and words.strip():
            cell = etree.Element("td")
            cell.text = words
            yield cell


def _boxed(element: etree._Element) -> etree._Element:
    tail, element.tail = element.tail, None
    cell = etree.Element("td")
    copied = copy(element)
    element.tail = tail
    cell.append(copied)
    return cell


def _cell(element: etree._Element) -> Written:
    header = element.tag == "th"
    colspan, rowspan = _span(element.get("colspan"), _WIDEST), _span(element.get("rowspan"), _TALLEST)
    if len(element) == 0:
        return Written(normalize_space(element.text or ""), colspan, rowspan, header)
    nested: list[etree._Element] = []
    words: list[str] = []
    raised: list[tuple[int, int]] = []

    def gather(inner: etree._Element) -> None:
        add(inner.text)
        for child in inner:
            if child.tag == "table":
                nested.append(child)
            elif child.tag == "sup":  # the mark of a note: exponents have another tag
                first = len(words)
                gather(child)
                if len(words) > first:
                    raised.append((first, len(words)))
            elif child.tag not in HIDDEN:
                gather(child)
                if child.tag in BLOCKS or child.tag == "br":
                    words.append(" ")
            add(child.tail)

    def add(text: str | None) -> None:
        if text:
            words.append(text)

    gather(element)
    text = normalize_space("".join(words))
    marks = []
    for first, last in raised:
        # Offsets of the raised words after white space is normalized.
        end = len(normalize_space("".join(words[:last])))
        marks.append((end - len(normalize_space("".join(words[first:last]))), end))
    inner = tuple(build_table(each) for each in nested)
    return Written(text, colspan, rowspan, header, marks, inner)


def _span(value: str | None, largest: int) -> int:
    return min(max(1, parse_whole(value, 1)), largest)


def parse_whole(value: str | None, default: int) -> int:
    """Parse the whole number in an attribute; `default` for any other value."""
    text = (value or "").strip()
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 7 else default


def number_items(element: etree._Element) -> dict[etree._Element, int]:
    """Number the items of a list as a browser does."""
    items = [child for child in element if child.tag == "li"]
    step = -1 if "reversed" in element.attrib else 1
    number = parse_whole(element.get("start"), len(items) if step < 0 else 1)
    numbers = {}
    for item in items:
        number = numbers[item] = parse_whole(item.get("value"), number)
        number += step
    return numbers
