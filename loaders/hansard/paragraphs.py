"""The words of Hansard markup as paragraphs.

Within a paragraph, white space that contains a line break is indentation of the markup and becomes one space. White
space at the edges of a paragraph is dropped. Every other character is kept. A list item begins with its label, and a
row of a table is one paragraph with tabs between the cells.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import time
from typing import Final

from lxml.etree import _Element, tostring

from kg.text import join_first

EDGES: Final = " \t\r\n"
_MOST_LINES: Final = 12
"""Maximum number of lines that a warning lists; further ones are counted."""
_BREAK: Final = re.compile(r"(?:(?<![ \t\r])[ \t\r]++)?\n[ \t\r\n]*+")
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


def squeeze(text: str) -> str:
    """Return the text of one paragraph without the indentation of the markup."""
    text = text.strip(EDGES)
    return _BREAK.sub(" ", text) if "\n" in text else text


def get_paragraphs(element: _Element) -> list[str]:
    """Return the non-empty paragraphs within an element."""
    found: list[str] = []
    _collect(element, found)
    return found


def _collect(element: _Element, found: list[str]) -> None:
    """Add the runs of words between the blocks in an element, and the paragraphs of the blocks."""
    run = element.text or ""
    tag = element.tag
    if not len(element) and tag != "item":
        if text := squeeze(run):
            found.append(text)
        return
    if tag in _ROWS:
        if row := "\t".join(map(to_line, element)).strip(EDGES):
            found.append(row)
        return
    before = len(found)
    for child in element:
        if child.tag in _BLOCKS or (len(child) and any(map(is_block, child))):
            if not run.isspace() and (text := squeeze(run)):
                found.append(text)
            run = ""
            _collect(child, found)
        elif len(child):
            run += get_run(child)
        elif words := child.text:
            run += words
        if tail := child.tail:
            run += tail
    if not run.isspace() and (text := squeeze(run)):
        found.append(text)
    if tag == "item" and (label := element.get("label")):
        found[before : before + 1] = [f"{label} {text}" for text in found[before : before + 1]] or [label]


def is_block(element: _Element) -> bool:
    """Whether an element is a block, or contains one."""
    return element.tag in _BLOCKS or (len(element) > 0 and any(map(is_block, element)))


def get_run(element: _Element) -> str:
    """Return the words within an element without blocks, with the white space of the markup."""
    return tostring(element, method="text", encoding="unicode", with_tail=False)


def to_line(element: _Element) -> str:
    """Return all words within an element as one paragraph."""
    return " ".join(get_paragraphs(element)) if len(element) else squeeze(element.text or "")


def clock(text: str | None) -> time | None:
    """Return the first time of day in a text ("09:31:00", "(14.05)", "2.05 p.m."), or None."""
    match = _CLOCK.search(text) if text else None
    if match is None:
        return None
    hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
    if match[4] and hour <= 12:
        hour = hour % 12 + (12 if match[4] == "p" else 0)
    return time(hour, minute, second) if hour < 24 and minute < 60 and second < 60 else None


def describe_lines(lines: Sequence[int]) -> str:
    """Describe lines of a file for a warning: ``line 3``, ``lines 3, 5 and 2 more``."""
    return f"line{'s' if len(lines) > 1 else ''} {join_first([str(line) for line in lines], _MOST_LINES)}"
