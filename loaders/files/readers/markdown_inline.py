"""The inline model of Markdown: struck and hidden words leave the text, raised ones become characters of their own.

All other notation stays as it is. Ends of lines are kept, so that the lines of the text are those of the file. In MDX,
imports, exports, tags of components and expressions leave the text, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from loaders.readers.css import parse_declarations
from loaders.readers.html import VOID
from loaders.readers.html_inline import UNREAD, find_form, find_shift, find_unseen, read_input
from loaders.readers.inline import LeftOut, lower_text, raise_text

_LINE: Final = re.compile(r"\n")
_MARK: Final = re.compile(
    r"\\.|(?P<ticks>`+)|(?P<comment><!--)|(?P<tag></?(?:[A-Za-z][\w.:-]*+|>))|(?P<tildes>~~+)|(?P<brace>\{)"
)
_ATTRIBUTE: Final = re.compile(r"([A-Za-z_:@][\w:.-]*)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'=<>`{}]+)))?")
_STRING: Final = re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`|[{}>]")
_NOTATION: Final = re.compile(r"<[^<>]*>|[*_`~]+")
_MODULE: Final = re.compile(r"(?:import|export)\b(?=[\s{*])")
_LONGEST_TAG: Final = 20_000
_LONGEST_SHIFT: Final = 200
_DROPPED: Final = frozenset({"script", "style"})


@dataclass(slots=True)
class _Open:
    """A tag that is open, and what becomes of its content."""

    name: str
    what: str
    start: int
    end: int


class _Edit(NamedTuple):
    """A part of the text that is replaced, and the struck and hidden words in it."""

    start: int
    end: int
    new: str = ""
    struck: str = ""
    hidden: str = ""


@dataclass(slots=True)
class _Rewriting:
    text: str
    left_out: LeftOut
    jsx: bool
    edits: list[_Edit] = field(default_factory=list)
    open: list[_Open] = field(default_factory=list)

    def scan(self, start: int, end: int, *, html: bool) -> None:
        """Find what leaves a part of the text; `html`: without the notation of Markdown."""
        text = self.text
        runs: dict[int, list[int]] = {}
        if not html:
            for match in re.finditer("`+", text[start:end]):
                runs.setdefault(len(match[0]), []).append(start + match.start())
        opened: int | None = None
        at = start
        while (mark := _MARK.search(text, at, end)) is not None:
            at = mark.end()
            kind = mark.lastgroup
            if kind == "ticks" and not html:
                following = runs.get(len(mark[0]), [])
                while following and following[0] <= mark.start():
                    following.pop(0)
                at = following[0] + len(mark[0]) if following else at
            elif kind == "comment":
                closed = text.find("-->", at, end)
                if closed >= 0:
                    self.left_out.comments += bool(text[at:closed].strip())
                    self.edits.append(_Edit(mark.start(), closed + 3))
                    at = closed + 3
            elif kind == "tag":
                at = self.read_tag(mark.start(), mark[0], end)
            elif kind == "brace" and self.jsx:
                closed = _find_close(text, mark.start(), end)
                if closed:
                    inner = text[at : closed - 1].strip()
                    if inner.startswith("/*"):
                        self.left_out.comments += 1
                    elif inner not in ("' '", '" "', "{' '}"):
                        self.left_out.unread["JSX expressions"] += 1
                    self.edits.append(_Edit(mark.start(), closed))
                    at = closed
            elif kind == "tildes" and not html and len(mark[0]) == 2:
                if opened is not None and not text[mark.start() - 1].isspace():
                    struck = _NOTATION.sub("", text[opened + 2 : mark.start()])
                    self.edits.append(_Edit(opened, at, struck=struck))
                    opened = None
                elif not text[at : at + 1].isspace():
                    opened = mark.start()

    def read_tag(self, start: int, begun: str, end: int) -> int:
        """Read a tag, and return its end, or that of its name if it is none."""
        name = begun.lstrip("</")
        closed = _find_tag_end(self.text, start + len(begun), end)
        if not closed:
            return start + len(begun)
        if self.jsx and (name in ("", ">") or not name.islower()):
            if not begun.startswith("</") and name not in ("", ">"):
                self.left_out.unread["JSX elements, whose content is read"] += 1
            end_of_tag = closed if name != ">" else start + len(begun)
            self.edits.append(_Edit(start, end_of_tag))
            return end_of_tag
        name = name.lower()
        if begun.startswith("</"):
            self.close(name, start, closed)
            return closed
        attributes = {
            match[1].lower(): next((each for each in match.groups()[1:] if each is not None), "")
            for match in _ATTRIBUTE.finditer(self.text, start + len(begun), closed)
        }
        style = {key: value for key, value, _ in parse_declarations(attributes.get("style", ""))}
        what: str = find_form(name, attributes, style) or ("hidden" if find_unseen(frozenset(), style) else "")
        if what:
            if name in VOID:
                self.edits.append(_Edit(start, closed))
        elif name == "input":
            self.edits.append(_Edit(start, closed, read_input(attributes, self.left_out)))
        elif name in UNREAD:
            self.left_out.unread[UNREAD[name]] += not (name == "img" and attributes.get("alt") == "")
            what = "" if name == "img" else "unread"
        elif name in _DROPPED:
            what = "unread"
        else:
            what = find_shift(name, style) or ""
        if what and name not in VOID and not self.text.endswith("/>", 0, closed):
            self.open.append(_Open(name, what, start, closed))
        return closed

    def close(self, name: str, start: int, end: int) -> None:
        """Close the last open tag with a name."""
        place = next((place for place in range(len(self.open) - 1, -1, -1) if self.open[place].name == name), None)
        if place is None:
            return
        opened = self.open[place]
        del self.open[place:]
        inner = self.text[opened.end : start]
        words = _NOTATION.sub("", inner)
        if opened.what == "struck":
            self.edits.append(_Edit(opened.start, end, struck=words))
        elif opened.what == "hidden":
            self.edits.append(_Edit(opened.start, end, hidden=words))
        elif opened.what == "unread":
            self.edits.append(_Edit(opened.start, end))
        elif "\n" not in inner and len(inner) <= _LONGEST_SHIFT:
            before = self.text[max(0, opened.start - 8) : opened.start]
            write = raise_text if opened.what == "sup" else lower_text
            self.edits.append(_Edit(opened.start, end, write(words, before)))

    def write(self) -> str:
        """Write the text with all changes. Of changes within another one only the outer one counts."""
        pieces: list[str] = []
        at = 0
        for start, end, new, struck, hidden in sorted(self.edits, key=lambda edit: (edit.start, -edit.end)):
            if start < at:
                continue
            self.left_out.add_struck(struck)
            self.left_out.add_hidden(hidden)
            pieces += (self.text[at:start], new, "\n" * self.text.count("\n", start, end))
            is_between = start == 0 or self.text[start - 1].isspace()
            at = end + (not new and is_between and self.text.startswith(" ", end))
        return "".join((*pieces, self.text[at:]))


def rewrite(text: str, parser: MarkdownIt, left_out: LeftOut, *, jsx: bool = False) -> str:
    """Return a text without its struck and hidden words, and count them. `parser` finds its blocks."""
    if "<" not in text and "~~" not in text and not jsx:
        return text
    rewriting = _Rewriting(text, left_out, jsx)
    lines = [0, *(match.end() for match in _LINE.finditer(text)), len(text)]
    for first, last, html in _find_parts(parser.parse(text)):
        start, end = lines[first], lines[min(last, len(lines) - 1)]
        if jsx and _MODULE.match(text, start):
            left_out.unread["imports and exports"] += 1
            rewriting.edits.append(_Edit(start, end - text.endswith("\n", 0, end)))
        else:
            rewriting.scan(start, end, html=html)
    for each in rewriting.open:
        if each.what in ("struck", "hidden"):
            left_out.unread[f"tags <{each.name}> without an end, so what they cross out or hide is kept"] += 1
    return rewriting.write()


def _find_parts(tokens: list[Token]) -> Iterator[tuple[int, int, bool]]:
    """Yield the lines of each part outside of code, in order, and whether it is HTML."""
    last = 0
    for token in tokens:
        if token.map is None or token.type not in ("inline", "html_block", "tr_open"):
            continue
        first, end = max(token.map[0], last), token.map[1]
        if first < end:
            yield first, end, token.type == "html_block"
            last = end


def _find_tag_end(text: str, start: int, end: int) -> int:
    """Find the end of a tag, with braces and strings in it. 0 if it has none."""
    depth = 0
    if text.startswith(">", start - 1):  # the fragment <>
        return start
    for match in _STRING.finditer(text, start, min(end, start + _LONGEST_TAG)):
        if match[0] == ">" and depth <= 0:
            return match.end()
        depth += {"{": 1, "}": -1}.get(match[0], 0)
    return 0


def _find_close(text: str, start: int, end: int) -> int:
    """Find the end of an expression in braces. 0 if it has none."""
    depth = 0
    for match in _STRING.finditer(text, start, min(end, start + _LONGEST_TAG)):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0 and match[0] == "}":
            return match.end()
    return 0
