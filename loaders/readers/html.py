"""The HTML of a description as a list of blocks of plain text, each to become a passage."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Final

_TITLES: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_BLOCKS: Final = _TITLES | frozenset(
    {"address", "article", "blockquote", "dd", "div", "dl", "dt", "figcaption", "figure", "footer", "header", "hr"}
    | {"li", "main", "ol", "p", "pre", "section", "table", "tbody", "td", "th", "thead", "tr", "ul"}
)
_UNSEEN: Final = frozenset({"script", "style", "template", "head"})


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, list item or heading. `kind` is ``Text``, ``List``, ``TableCell`` or ``Title``."""

    kind: str
    text: str


class _Blocks(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[Block] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.breaks = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "br":
            self.breaks += 1
            return
        if tag in _BLOCKS:
            self.flush()
        if tag in _BLOCKS | _UNSEEN and tag != "hr":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "br":
            self.breaks += 1
        elif tag in _BLOCKS:
            self.flush()

    def handle_endtag(self, tag: str) -> None:
        if tag in _BLOCKS:
            self.flush()
        if tag in self.open:
            del self.open[len(self.open) - 1 - self.open[::-1].index(tag) :]

    def handle_data(self, data: str) -> None:
        if any(tag in _UNSEEN for tag in self.open):
            return
        if self.breaks and data.strip():
            # One line break is a new line of the same paragraph, several set a new paragraph.
            if self.breaks > 1:
                self.flush()
            else:
                self.text.append("\n")
            self.breaks = 0
        self.text.append(data if "pre" in self.open else re.sub(r"[ \t\r\n\f]+", " ", data))

    def flush(self) -> None:
        lines = [re.sub(r" {2,}", " ", line).strip() for line in "".join(self.text).split("\n")]
        text = "\n".join(line for line in lines if line)
        self.text, self.breaks = [], 0
        if text:
            self.blocks.append(Block(self.kind(), text))

    def kind(self) -> str:
        for tag in reversed(self.open):
            if tag in _TITLES:
                return "Title"
            if tag in {"li", "dd", "dt"}:
                return "List"
            if tag in {"td", "th"}:
                return "TableCell"
        return "Text"


def blocks(html: str) -> Sequence[Block]:
    """Return the text of `html` block by block: entities decoded, white space as a browser would show it.

    Broken markup never fails: what cannot be a tag (``<10MW``) is text.
    """
    parser = _Blocks()
    parser.feed(html)
    parser.close()
    parser.flush()
    return parser.blocks
