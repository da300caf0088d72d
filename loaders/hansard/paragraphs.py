"""The words of Hansard markup as paragraphs.

Within a paragraph, white space with a line break in it is the indentation of the markup and becomes one space, and
white space at the edges of a paragraph is dropped; every other character stays as it is. A list item begins with its
label, and a row of a table is one paragraph with tabs between the cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import time
from typing import Final

from lxml.etree import _Element, tostring

EDGES: Final = " \t\r\n"
_BREAK: Final = re.compile(r"[ \t\r]*\n[ \t\r\n]*")
_CLOCK: Final = re.compile(r"(\d{1,2})[:.](\d{2})(?:[:.](\d{2}))?\s*([ap])?")
_ROWS: Final = frozenset(("row", "tr"))
_BLOCKS: Final = frozenset(
    (
        "para",
        "p",
        "br",
        "body",
        "table",
        "tgroup",
        "thead",
        "tbody",
        "row",
        "tr",
        "entry",
        "td",
        "th",
        "list",
        "item",
        "quote",
        "motion",
        "amendments",
        "amendment",
        "interrupt",
        "title",
        "subtitle",
        "names",
        "name.ids",
    )
)


def squeezed(text: str) -> str:
    """Return the text of one paragraph without what only indents the markup."""
    text = text.strip(EDGES)
    return _BREAK.sub(" ", text) if "\n" in text else text


def paragraphs(element: _Element) -> Iterator[str]:
    """Yield the paragraphs within an element; never an empty one."""
    tag = element.tag
    if tag in _ROWS:
        if row := "\t".join(" ".join(paragraphs(cell)) for cell in element).strip(EDGES):
            yield row
    elif tag == "item":
        label = element.get("label")
        for paragraph in _paragraphs(element):
            yield f"{label} {paragraph}" if label else paragraph
            label = None
        if label:
            yield label
    elif any(map(is_block, element)):
        yield from _paragraphs(element)
    elif text := run_of(element):
        yield text


def run_of(element: _Element) -> str:
    """Return the words within an element that has no blocks in it."""
    if not len(element):
        return squeezed(element.text or "")
    return squeezed(tostring(element, method="text", encoding="unicode", with_tail=False))


def _paragraphs(element: _Element) -> Iterator[str]:
    """Yield the runs of words between the blocks in an element, and the paragraphs of the blocks."""
    run = element.text or ""
    for child in element:
        if is_block(child):
            if text := squeezed(run):
                yield text
            run = ""
            yield from paragraphs(child)
        else:
            run += tostring(child, method="text", encoding="unicode", with_tail=False)
        if tail := child.tail:
            run += tail
    if text := squeezed(run):
        yield text


def is_block(element: _Element) -> bool:
    """Whether an element stands on lines of its own, or has one within that does."""
    return element.tag in _BLOCKS or any(map(is_block, element))


def one_line(element: _Element) -> str:
    """Return all words within an element as one paragraph."""
    return " ".join(paragraphs(element)) if len(element) else squeezed(element.text or "")


def words_beside(element: _Element, children: Iterable[_Element]) -> bool:
    """Whether words stand directly in an element, beside those of its children."""
    return bool(element.text and not element.text.isspace()) or any(
        child.tail and not child.tail.isspace() for child in children
    )


def clock(text: str | None) -> time | None:
    """Return the first time of day in a text ("09:31:00", "(14.05)", "2.05 p.m."), if any."""
    match = _CLOCK.search(text) if text else None
    if match is None:
        return None
    hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
    if match[4] and hour <= 12:
        hour = hour % 12 + (12 if match[4] == "p" else 0)
    return time(hour, minute, second) if hour < 24 and minute < 60 and second < 60 else None
