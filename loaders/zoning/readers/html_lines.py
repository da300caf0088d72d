"""HTML of codes as lines and tables, with white space as shown by a browser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from lxml import etree

from loaders.readers.html import BLOCKS, HIDDEN
from loaders.readers.html_tree import build_table, list_label, normalize_space, number_items, text_pieces
from loaders.zoning.readers.code_model import Note
from loaders.zoning.readers.outline import Item
from loaders.zoning.readers.text_builder import Body


class Sections(Protocol):
    """Receiver of the start and the end of each ``<section>``."""

    def enter(self, element: etree._Element) -> None:
        """Called at the start of an element."""

    def leave(self, element: etree._Element) -> None:
        """Called at the end of an element."""

    def in_table(self, table: etree._Element) -> bool:
        """Check whether a table is used for page layout, with sections in it."""


Line = Callable[[str, etree._Element], bool]
"""Receives a line and the element that contains it, and returns whether it has consumed the line."""


def write(
    element: etree._Element,
    body: Callable[[], Body],
    taken: Line,
    sections: Sections | None = None,
) -> None:
    """Write the content of an element to the current body, except the lines that `taken` consumes.

    `sections` is called for each ``<section>`` in it.
    """
    writer = _Writer(body, taken, sections)
    writer.inside(element)
    if writer.labels:
        body().add(" ".join(writer.labels))


_NOTES: Final = {
    "historynote": "History",
    "refeditor": "Editor's Note",
    "refcross": "Cross Reference",
    "refstate": "State Law Reference",
    "refcharter": "Charter Reference",
    "refother": "Reference",
}
"""Kinds of notes, by the prefix of their paragraph's class, in the markup of Municode."""
_LABEL: Final = re.compile(r"incr\d{1,2}")
"""The class of a paragraph, in the markup of Municode, that is the label of the next one."""


def _extend(run: list[str], words: str | None) -> None:
    # White space before the first word of a run is not part of it.
    if words and (run or not words.isspace()):
        run.append(words)


class _Writer:
    def __init__(self, body: Callable[[], Body], taken: Line, sections: Sections | None) -> None:
        self.body, self.taken, self.sections = body, taken, sections
        self.labels: list[str] = []
        """Labels of the paragraph that follows."""

    def line(self, text: str, element: etree._Element) -> None:
        if not text:
            return
        styles = (element.get("class") or "").split()
        kind = next((kind for start, kind in _NOTES.items() if any(each.startswith(start) for each in styles)), None)
        if kind is not None:
            self.body().notes.append(Note(text, kind))
        elif any(_LABEL.fullmatch(each) for each in styles):
            self.labels.append(text)
        else:
            text = " ".join((*self.labels, text))
            self.labels.clear()
            if not self.taken(text, element):
                self.body().add(text)

    def lines(self, run: list[str], element: etree._Element) -> None:
        """Write the text collected between two blocks."""
        text = "".join(run)
        run.clear()
        for part in text.split("\v"):
            self.line(normalize_space(part), element)

    def inside(self, element: etree._Element) -> None:
        """Write the content of an element. Text between blocks is a paragraph of its own."""
        # An explicit stack: broken HTML nests more deeply than Python's recursion limit.
        waiting: list[tuple[etree._Element, Iterator[etree._Element]]] = [(element, iter(element))]
        run: list[str] = []
        _extend(run, element.text)
        while waiting:
            parent, children = waiting[-1]
            child = next(children, None)
            if child is None:
                waiting.pop()
                if run and parent.tag in BLOCKS:
                    self.lines(run, parent)
                if parent.tag == "section" and self.sections is not None and waiting:
                    self.sections.leave(parent)
                if waiting:
                    _extend(run, parent.tail)
                continue
            tag = child.tag
            if tag in BLOCKS:
                if run:
                    self.lines(run, parent)
                if tag == "section" and self.sections is not None:
                    self.sections.enter(child)
                    _extend(run, child.text)
                    waiting.append((child, iter(child)))
                    continue
                if tag == "table" and (self.sections is None or not self.sections.in_table(child)):
                    self.body().table(build_table(child))
                elif tag == "ol":
                    self.numbered(child, ())
                elif len(child) == 0:
                    if child.text:
                        self.line(normalize_space(child.text), child)
                else:
                    _extend(run, child.text)
                    waiting.append((child, iter(child)))
                    continue
            elif tag == "br":
                run.append("\v")
            elif tag not in HIDDEN:
                run.append(child.text or "")
                if len(child):
                    waiting.append((child, iter(child)))
                    continue
            _extend(run, child.tail)
        if run:
            self.lines(run, element)

    def numbered(self, element: etree._Element, path: tuple[str, ...]) -> None:
        """Write a list that a browser numbers, and record the label of each item."""
        numbers = number_items(element)
        self.line(normalize_space(element.text or ""), element)
        for child in element:
            if child.tag != "li":
                if child.tag == "ol":
                    self.numbered(child, path)
                elif child.tag not in HIDDEN:
                    self.wrapped(child, path)
                self.line(normalize_space(child.tail or ""), element)
                continue
            body = self.body()
            first, count = body.length + (1 if body.lines else 0), len(body.lines)
            at = len(body.items)
            own = (*path, list_label(child.get("type") or element.get("type") or "1", numbers[child]))
            self.wrapped(child, own)
            if self.body() is body and len(body.lines) > count:
                body.items.insert(at, Item(own, first, body.length))
            self.line(normalize_space(child.tail or ""), element)

    def wrapped(self, element: etree._Element, path: tuple[str, ...]) -> None:
        if not any(child.tag == "ol" for child in element):
            self.inside(element)
            return
        run = [element.text or ""]
        for child in element:
            if child.tag == "ol":
                self.lines(run, element)
                self.numbered(child, path)
            elif child.tag in BLOCKS:
                self.lines(run, element)
                self.inside(child)
            elif child.tag not in HIDDEN:
                run += text_pieces(child)
            run.append(child.tail or "")
        self.lines(run, element)
