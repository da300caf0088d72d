"""HTML as plain text: the elements that begin a line or are hidden, and the blocks of text of a short description.

Whole documents are read by `loaders.readers.html_tree`, which needs lxml. Here the parser of the
standard library is used: it keeps text such as ``<10MW``, which lxml drops as a tag.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Final

from loaders.readers.inline import lower_text, raise_text

HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
BLOCKS: Final = HEADINGS | frozenset(
    {"address", "article", "aside", "blockquote", "caption", "center", "dd", "details", "div", "dl", "dt", "fieldset"}
    | {"figcaption", "figure", "footer", "form", "header", "hr", "li", "main", "ol", "p", "pre", "section", "summary"}
    | {"table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul", "body", "html"}
)
"""Elements that begin a new line."""
HIDDEN: Final = frozenset({"script", "style", "template", "head", "nav", "noscript", "title", "meta", "link"})
"""Elements of which no text is shown, or none that belongs to the document."""
_VOID: Final = frozenset({"hr", "meta", "link"})
"""Those of them that have no end tag."""
STRUCK: Final = frozenset({"s", "strike", "del"})
"""Elements whose words are struck out."""
_UNREAD: Final = HIDDEN | STRUCK
_OPENED: Final = (BLOCKS | _UNREAD) - _VOID
_SPACES: Final = re.compile(r"[ \t\r\n\f]{2,}|[\t\r\n\f]")


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, list item or heading. `kind` is ``Text``, ``List``, ``TableCell`` or ``Title``."""

    kind: str
    text: str


class _BlockParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[Block] = []
        self.open: list[str] = []
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
        if tag in _OPENED:
            self.open.append(tag)

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
        if tag in self.open:
            del self.open[len(self.open) - 1 - self.open[::-1].index(tag) :]

    def handle_data(self, data: str) -> None:
        if not _UNREAD.isdisjoint(self.open):
            return
        if self.breaks and data.strip():
            # One line break begins a line of the same paragraph, several begin a paragraph.
            if self.breaks > 1:
                self.flush()
            else:
                self.text.append("\n")
            self.breaks = 0
        self.text.append(data if "pre" in self.open else _SPACES.sub(" ", data))

    def flush(self) -> None:
        lines = [re.sub(r" {2,}", " ", line).strip() for line in "".join(self.text).split("\n")]
        text = "\n".join(line for line in lines if line)
        self.text, self.shifts, self.breaks = [], [], 0
        if text:
            self.blocks.append(Block(self.kind(), text))

    def kind(self) -> str:
        for tag in reversed(self.open):
            if tag in HEADINGS:
                return "Title"
            if tag in {"li", "dd", "dt"}:
                return "List"
            if tag in {"td", "th"}:
                return "TableCell"
        return "Text"


def parse_blocks(html: str) -> Sequence[Block]:
    """Parse HTML into its blocks of text, with entities decoded and white space collapsed as in a browser.

    Broken markup never fails: text that cannot be a tag (``<10MW``) is kept as text.
    """
    parser = _BlockParser()
    parser.feed(html)
    parser.close()
    parser.flush()
    return parser.blocks
