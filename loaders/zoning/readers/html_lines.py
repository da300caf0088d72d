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
from loaders.zoning.readers.code_model import Note, Subsection
from loaders.zoning.readers.outline import find_label_end
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
_LISTS: Final = ("ul", "ol")
_BULLETS: Final = "•◦▪–·"
"""By depth."""
_LABEL: Final = re.compile(r"incr\d{1,2}")
"""The class of a paragraph, in the markup of Municode, that is the label of the next one."""


class Writer:
    """Writes elements as lines and tables of a body. A subclass may consume lines, and change the body."""

    def __init__(self) -> None:
        self._body = Body()
        self.labels: list[str] = []
        """Labels of the paragraph that follows."""
        self._items: dict[etree._Element, str] = {}
        """Labels that a browser gives to the items of the open lists."""
        self._path: tuple[str, ...] = ()
        """Labels of the open items."""
        self._begun: list[tuple[Body, int]] = []
        """Body of each of these, and where its first line starts."""
        self._depth = 0
        """Number of open lists, one of them in another."""
        self._bullet = ""
        """Bullet of the open item, until its first line."""
        self.run: list[str] = []
        """Text since the last line."""

    def body(self) -> Body:
        """Get the current body."""
        return self._body

    def take(self, text: str, element: etree._Element) -> bool:
        """Receive a line and the element that contains it, and return whether it is consumed."""
        return False

    def enter(self, element: etree._Element) -> None:
        """Called at the start of an element."""

    def leave(self, element: etree._Element) -> None:
        """Called at the end of an element."""

    def is_hidden(self, element: etree._Element) -> bool:
        """Check whether an element is left out."""
        return element.tag in HIDDEN

    def is_layout(self, table: etree._Element) -> bool:
        """Check whether a table is used for page layout, with sections in it."""
        return False

    def _lines(self, element: etree._Element) -> None:
        """Write the text collected between two blocks, which is a paragraph of its own."""
        text = "".join(self.run)
        self.run.clear()
        for part in text.split("\v"):
            if words := normalize_space(part):
                self._line(words, element)

    def _line(self, text: str, element: etree._Element) -> None:
        styles = (element.get("class") or "").split()
        kind = next((kind for start, kind in _NOTES.items() if any(each.startswith(start) for each in styles)), None)
        if kind is not None:
            self.body().notes.append(Note(text, kind))
        elif any(_LABEL.fullmatch(each) for each in styles):
            self.labels.append(text)
        else:
            text = " ".join((*self.labels, text)).rstrip()
            self.labels.clear()
            bullet, self._bullet = self._bullet, ""
            if not self.take(text, element):
                self.body().add(text, "" if find_label_end(text, 0, len(text)) else bullet)

    def write(self, root: etree._Element) -> None:
        """Write all content of an element."""
        walk = etree.iterwalk(root, events=("start", "end"))
        around = [root]
        for event, element in walk:
            tag = element.tag
            if tag in BLOCKS:
                self._lines(element if event == "end" else around[-1])
            if event == "end":
                around.pop()
                self._depth -= tag in _LISTS and self._depth > 0
                if tag == "li":
                    self._end_item(element)
                self.leave(element)
                if element is not root:
                    self.run.append(element.tail or "")
                continue
            around.append(element)
            if tag in _LISTS:
                self._depth += self._depth > 0 or next(element.iterdescendants(*_LISTS), None) is not None
            if tag == "ol":
                kind = element.get("type") or "1"
                for item, number in number_items(element).items():
                    self._items[item] = list_label(item.get("type") or kind, number)
            if tag == "li":
                self._begin_item(element)
            if self.is_hidden(element):
                walk.skip_subtree()
            elif tag == "br":
                self.run.append("\v")
            elif tag == "table" and not self.is_layout(element):
                self.end()
                self.body().table(build_table(element))
                walk.skip_subtree()
            else:
                self.enter(element)
                self.run.append(element.text or "")
        self._lines(root)
        self.end()

    def end(self) -> None:
        """Write the labels that no paragraph has followed."""
        if self.labels:
            self._line("", etree.Element("p"))

    def _begin_item(self, item: etree._Element) -> None:
        self._bullet = f"{_BULLETS[: self._depth][-1]} " if self._depth else ""
        if (label := self._items.get(item)) is not None:
            self._path = (*self._path, label)
            self._begun.append((self.body(), self.body().next_start))

    def _end_item(self, item: etree._Element) -> None:
        self._bullet = ""
        if item in self._items:
            body, start = self._begun.pop()
            if self.body() is body and body.length > start:
                body.items.append(Subsection(self._path, start, body.length))
            self._path = self._path[:-1]
