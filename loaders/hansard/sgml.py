"""A lenient parser for the SGML-like Hansard of 1981 to 1997, and for damaged XML.

It accepts the omissions that the DTD of that time allowed: end tags are implied by the tags around them, names are in
any case, named characters (``&mdash;``) need no declaration. Each repair is reported with its lines. The resulting
tree has the element names of schema 2.0, so that all later steps read one vocabulary. A file that ends within the
record is truncated and refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from html.parser import HTMLParser
from typing import Final

from lxml import etree
from lxml.etree import _Element

from kg.errors import SourceError
from loaders.hansard.paragraphs import describe_lines
from loaders.hansard.sgml_conversion import modernize

_NAME: Final = re.compile(r"[a-z][\w.-]*")
_UNKNOWN: Final = re.compile(r"&[A-Za-z]\w*;")
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_MAX_DEPTH: Final = 128
_CDATA: Final = re.compile(r"<!\[CDATA\[((?:[^<\]]++|<(?!!\[CDATA\[)|\](?!\]>))*+)\]\]>")

_INTERJECTIONS: Final = frozenset(("interject", "interjection"))
_VOID: Final = frozenset(("br", "break", "tab", "colspec", "spanspec", "graphic", "separator", "img", "hr"))
_TALK: Final = frozenset(
    ("name", "electorate", "role", "time.stamp", "from", "talker", "talk.start", "para", "inline", "title")
)
_TURN: Final = frozenset(("speech", "question", "answer"))
_CELLS: Final = frozenset(("entry", "para", "inline"))
_BLOCKS: Final = frozenset(
    (
        "interject",
        "interjection",
        "continue",
        "proctext",
        "question.block",
        "petition",
        "answer.to.qon",
        "sso",
        "debate.sub1",
        "debate.sub2",
        "debate.sub3",
        "subdebate.1",
        "subdebate.2",
        "subdebate.3",
    )
)
_SUBDEBATES: Final = {f"{name}{depth}": depth for name in ("debate.sub", "subdebate.") for depth in range(1, 5)}
_CLOSES: Final[dict[str, frozenset[str]]] = {
    "para": frozenset(("para",)),
    "talk.start": frozenset(("para", "talker", "talk.start")),
    "interject": _TALK | {"interject"},
    "interjection": _TALK | {"interjection", "continue"},
    "continue": _TALK | {"interjection", "continue"},
    "division": _TALK - {"title"},
    **dict.fromkeys(_TURN, _TALK | _TURN | {"interject", "interjection", "continue", "proctext"}),
    **{
        name: _TALK | _TURN | {"interject", "interjection", "continue", "proctext"} | {name}
        for name in ("question.block", "petition", "answer.to.qon")
    },
    **{
        name: _TALK
        | _TURN
        | {"interject", "interjection", "continue", "proctext", "question.block"}
        | {other for other, level in _SUBDEBATES.items() if level >= depth}
        for name, depth in _SUBDEBATES.items()
    },
    "debate": _TALK | _TURN | _BLOCKS | {"debate", "petition.grp", "petition.group", "qwn"},
    "row": _CELLS | {"row"},
    "entry": _CELLS,
    **{name: frozenset((name,)) for name in ("name", "electorate", "role", "time.stamp", "title")},
}
"""Elements that an element cannot contain, and that end it."""
_STRUCTURE: Final = _TURN | _BLOCKS | {"debate", "table", "division", "petition.grp", "petition.group", "qwn"}
_INLINE: Final = _TALK - {"talk.start"} | {"entry", "row"}


def parse_tree(text: str, name: str, first_line: int) -> tuple[_Element, list[str]]:
    """Parse a text that begins with its root element. Return the tree and the repairs.

    ``first_line``: the line of the text in its file. Raises SourceError for a truncated file: one that ends within
    the record, or, for XML, before the end of the root.
    """
    reader = _Reader(name, first_line)
    plain = _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    reader.feed(_CDATA.sub(lambda section: escape(section[1], quote=False), plain))
    reader.close()
    root = reader.finished(whole=text[:8].isupper() and text.rstrip().endswith(">"))
    warnings = [*reader.repaired(), *modernize(root)]
    if _CONTROL.search(text):
        warnings.insert(0, "control characters are removed")
    return root, warnings


class _Reader(HTMLParser):
    """Builds the tree and records its repairs."""

    CDATA_CONTENT_ELEMENTS = ()  # type: ignore[misc]  # final in the stubs alone: HTML's, and this is none
    RCDATA_CONTENT_ELEMENTS = ()  # type: ignore[misc]

    def __init__(self, name: str, first_line: int) -> None:
        super().__init__(convert_charrefs=True)
        self._name = name
        self._before = first_line - 1
        self._root: _Element | None = None
        self._open: list[_Element] = []
        self._last: _Element | None = None
        self._repairs: dict[str, list[int]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Start an element, and end those that it closes."""
        if not _NAME.fullmatch(tag):
            self.handle_data(self.get_starttag_text() or "")
            return
        if closes := _CLOSES.get(tag):
            self._imply(closes, tag)
        within = self._open[-1] if self._open else None
        if tag == "talk.start" and within is not None and within.tag in _INTERJECTIONS:
            self._pop(int(within.find("talk.start") is not None), f"before <{tag.upper()}>")
        element = etree.Element(
            tag, {key: _CONTROL.sub("", value or "") for key, value in attrs if _NAME.fullmatch(key)}
        )
        element.sourceline = self._line()  # type: ignore[assignment]  # the stubs do not say its type
        if self._open:
            self._open[-1].append(element)
        elif self._root is None:
            self._root = element
        else:
            raise SourceError(f"{self._name}, line {self._line()}: <{tag}> begins after the end of the record")
        if tag in _VOID:
            self._last = element
            return
        self._open.append(element)
        self._last = None
        if len(self._open) > _MAX_DEPTH:
            raise SourceError(f"{self._name}, line {self._line()}: elements are nested deeper than {_MAX_DEPTH}")

    def handle_endtag(self, tag: str) -> None:
        """End an element, and the open elements within it."""
        if tag in _VOID or not _NAME.fullmatch(tag):
            return
        for depth, element in enumerate(reversed(self._open), start=1):
            if element.tag == tag:
                self._pop(depth - 1, f"before </{tag.upper()}>")
                self._last = self._open.pop()
                return
            if tag in _INLINE and element.tag in _STRUCTURE:
                break
        self._repair(f"</{tag.upper()}> has no start tag and is skipped")

    def handle_data(self, data: str) -> None:
        """Append text at the current position."""
        if not self._open:
            if data.strip():
                raise SourceError(f"{self._name}, line {self._line()}: text after the end of the record")
            return
        data = _CONTROL.sub("", data)
        for unknown in _UNKNOWN.findall(data):
            self._repair(f"{unknown} is an unknown character reference: kept verbatim")
        if self._last is None:
            self._open[-1].text = (self._open[-1].text or "") + data
        else:
            self._last.tail = (self._last.tail or "") + data

    def finished(self, whole: bool) -> _Element:
        """Return the root. Raises SourceError for a truncated file unless it is ``whole``."""
        if self._root is None:
            raise SourceError(f"{self._name}: the file contains no element")
        if self._open and (not whole or [element.tag for element in self._open] != ["hansard"]):
            where = f"within <{self._open[-1].tag.upper()}>"
            raise SourceError(
                f"{self._name}: the file is truncated: it ends {where}, line {self._line()}. Get the complete file."
            )
        if self._open:
            self._pop(len(self._open), "at the end of the file")
        return self._root

    def repaired(self) -> Iterator[str]:
        """Yield each kind of repair with its lines."""
        for what, lines in self._repairs.items():
            yield f"{describe_lines(lines)}: {what}"

    def _imply(self, closes: frozenset[str], tag: str) -> None:
        """End the open elements that cannot contain an element of this name."""
        depth = 0
        for above, element in enumerate(reversed(self._open), start=1):
            if element.tag in closes:
                depth = above
            elif element.tag not in _INLINE:
                break
        self._pop(depth, f"before <{tag.upper()}>")

    def _pop(self, count: int, where: str) -> None:
        for _ in range(count):
            self._last = self._open.pop()
            self._repair(f"</{self._last.tag.upper()}> supplied {where}")

    def _repair(self, what: str) -> None:
        self._repairs.setdefault(what, []).append(self._line())

    def _line(self) -> int:
        return self._before + self.getpos()[0]
