"""The blocks of text of a short description in HTML.

Whole documents are read by `loaders.readers.html_tree`, which needs lxml. Here the parser of the standard library is
used: it keeps text such as ``<10MW``, which lxml drops as a tag.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Final

from loaders.readers.css import parse_declarations
from loaders.readers.html import BLOCKS, HEADINGS, HIDDEN, VOID
from loaders.readers.html_inline import find_form, find_unseen
from loaders.readers.inline import LeftOut, lower_text, raise_text

_SPACES: Final = re.compile(r"[ \t\r\n\f]{2,}|[\t\r\n\f]")


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, list item or heading. `kind` is ``Text``, ``List``, ``TableCell`` or ``Title``."""

    kind: str
    text: str


class _BlockParser(HTMLParser):
    def __init__(self, left_out: LeftOut) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[Block] = []
        self.left_out = left_out
        self.open: list[tuple[str, str]] = []
        """The open elements, with what becomes of their words: ``struck``, ``hidden``, ``unread``, or nothing."""
        self.text: list[str] = []
        self.breaks = 0
        self.shifts: list[int] = []
        """Pieces of the text before each raised or lowered element that is open."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "br":
            self.breaks += 1
            return
        if tag in BLOCKS:
            self.flush()
        if tag in ("sup", "sub"):
            self.shifts.append(len(self.text))
        attributes = {name: value or "" for name, value in attrs}
        style = {name: value for name, value, _ in parse_declarations(attributes.get("style", ""))}
        form: str = "unread" if tag in HIDDEN else find_form(tag, attributes, style) or ""
        if not form and find_unseen(frozenset(), style):
            form = "hidden"
        if tag not in VOID and (form or tag in BLOCKS):
            self.open.append((tag, form))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "br":
            self.breaks += 1
        elif tag in BLOCKS:
            self.flush()

    def handle_endtag(self, tag: str) -> None:
        if tag in BLOCKS:
            self.flush()
        if tag in ("sup", "sub") and self.shifts:
            start = self.shifts.pop()
            write = raise_text if tag == "sup" else lower_text
            self.text[start:] = [write("".join(self.text[start:]), "".join(self.text[:start][-2:]))]
        place = next((at for at in range(len(self.open) - 1, -1, -1) if self.open[at][0] == tag), None)
        if place is not None:
            del self.open[place:]

    def handle_data(self, data: str) -> None:
        if (form := next((form for _, form in self.open if form), "")) != "":
            self.left_out.struck += len(data.split()) if form == "struck" else 0
            self.left_out.hidden += len(data.split()) if form == "hidden" else 0
            return
        if self.breaks and data.strip():
            # One line break begins a line of the same paragraph, several begin a paragraph.
            if self.breaks > 1:
                self.flush()
            else:
                self.text.append("\n")
            self.breaks = 0
        self.text.append(data if any(tag == "pre" for tag, _ in self.open) else _SPACES.sub(" ", data))

    def flush(self) -> None:
        lines = [re.sub(r" {2,}", " ", line).strip() for line in "".join(self.text).split("\n")]
        text = "\n".join(line for line in lines if line)
        self.text, self.shifts, self.breaks = [], [], 0
        if text:
            self.blocks.append(Block(self.kind(), text))

    def kind(self) -> str:
        for tag, _ in reversed(self.open):
            if tag in HEADINGS:
                return "Title"
            if tag in {"li", "dd", "dt"}:
                return "List"
            if tag in {"td", "th"}:
                return "TableCell"
        return "Text"


def parse_blocks(html: str, left_out: LeftOut) -> Sequence[Block]:
    """Parse HTML into its blocks of text, with entities decoded and white space collapsed as in a browser.

    `left_out` counts the struck and hidden words.

    Broken markup never fails: text that cannot be a tag (``<10MW``) is kept as text.
    """
    parser = _BlockParser(left_out)
    parser.feed(html)
    parser.close()
    parser.flush()
    return parser.blocks
