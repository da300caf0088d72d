"""HTML of codes as lines and tables, with white space as shown by a browser.

An item has a bullet only in lists within lists, and without a label of its own. So has one that a browser numbers: its
number, which is recorded apart, does not show the depth.
"""

from __future__ import annotations

import re
from typing import Final

from lxml import etree

from loaders.readers.html import BLOCKS, HIDDEN
from loaders.readers.html_tree import build_table, list_label, normalize_space, number_items
from loaders.zoning.readers.code_model import Note
from loaders.zoning.readers.outline import Item, find_label_end
from loaders.zoning.readers.text_builder import Body

_NOTES: Final = {
    "historynote": "History",
    "refeditor": "Editor's Note",
    "refcross": "Cross Reference",
    "refstate": "State Law Reference",
    "refcharter": "Charter Reference",
    "refother": "Reference",
}
"""Kinds of notes, by the prefix of their paragraph's class, in the markup of Municode."""
_BULLETS: Final = "•◦▪–·"
"""By depth."""
_LABEL: Final = re.compile(r"incr\d{1,2}")
"""The class of a paragraph, in the markup of Municode, that is the label of the next one."""


class Writer:
    """Writes elements as lines and tables of a body. A subclass may consume lines, and change the body."""

    def __init__(self) -> None:
        self._body = Body()
        self._labels: list[str] = []
        """Labels of the paragraph that follows."""
        self._path: tuple[str, ...] = ()
        """Labels of the open items of lists."""
        self._depth = 0
        """Number of open lists, one of them in another."""
        self._bullet = ""
        """Bullet of the open item, until its first line."""

    def body(self) -> Body:
        """Get the current body."""
        return self._body

    def take(self, text: str, element: etree._Element) -> bool:
        """Receive a line and the element that contains it, and return whether it is consumed."""
        return False

    def enter(self, section: etree._Element) -> None:
        """Called at the start of a ``<section>``."""

    def leave(self, section: etree._Element) -> None:
        """Called at the end of a ``<section>``."""

    def is_layout(self, table: etree._Element) -> bool:
        """Check whether a table is used for page layout, with sections in it."""
        return False

    def write(self, root: etree._Element) -> None:
        """Write all content of an element."""
        self._inside(root)
        if self._labels:
            self.body().add(" ".join(self._labels))

    def _lines(self, run: list[str], element: etree._Element) -> None:
        """Write the text collected between two blocks, which is a paragraph of its own."""
        text = "".join(run)
        run.clear()
        for part in text.split("\v"):
            if words := normalize_space(part):
                self._line(words, element)

    def _line(self, text: str, element: etree._Element) -> None:
        styles = (element.get("class") or "").split()
        kind = next((kind for start, kind in _NOTES.items() if any(each.startswith(start) for each in styles)), None)
        if kind is not None:
            self.body().notes.append(Note(text, kind))
        elif any(_LABEL.fullmatch(each) for each in styles):
            self._labels.append(text)
        else:
            text = " ".join((*self._labels, text))
            self._labels.clear()
            bullet, self._bullet = self._bullet, ""
            if not self.take(text, element):
                self.body().add(text, "" if find_label_end(text, 0, len(text)) else bullet)

    def _inside(self, root: etree._Element) -> None:
        run: list[str] = []
        walk = etree.iterwalk(root, events=("start", "end"))
        around = [root]
        for event, element in walk:
            tag = element.tag
            if tag in BLOCKS:
                self._lines(run, element if event == "end" else around[-1])
            if event == "end":
                around.pop()
                self._depth -= tag == "ul" and self._depth > 0
                self._bullet = "" if tag == "li" else self._bullet
                if tag == "section":
                    self.leave(element)
                if element is not root:
                    run.append(element.tail or "")
                continue
            around.append(element)
            if tag == "ul":
                self._depth += self._is_nested(element)
            if tag == "li" and element is not root:
                self._bullet = self._get_bullet() if around[-2].tag == "ul" else ""
            if tag in HIDDEN:
                walk.skip_subtree()
            elif tag == "br":
                run.append("\v")
            elif tag == "table" and not self.is_layout(element):
                self.body().table(build_table(element))
                walk.skip_subtree()
            elif tag == "ol":
                self._numbered(element)
                walk.skip_subtree()
            else:
                if tag == "section":
                    self.enter(element)
                run.append(element.text or "")
        self._lines(run, root)

    def _is_nested(self, element: etree._Element) -> bool:
        return self._depth > 0 or any(element.find(f".//{tag}") is not None for tag in ("ul", "ol"))

    def _get_bullet(self) -> str:
        return f"{_BULLETS[: self._depth][-1]} " if self._depth else ""

    def _numbered(self, element: etree._Element) -> None:
        """Write a list that a browser numbers, and record the label of each item."""
        numbers, outer, depth = number_items(element), self._path, self._depth
        self._depth += self._is_nested(element)
        self._lines([element.text or ""], element)
        for child in element:
            body = self.body()
            first, count, at = body.next_start, len(body.lines), len(body.items)
            if child.tag == "li":
                label = list_label(child.get("type") or element.get("type") or "1", numbers[child])
                self._path, self._bullet = (*outer, label), self._get_bullet()
            self._inside(child)
            if child.tag == "li" and self.body() is body and len(body.lines) > count:
                body.items.insert(at, Item(self._path, first, body.length))
            self._path = outer
            self._lines([child.tail or ""], element)
        self._depth = depth
