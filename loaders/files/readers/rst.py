"""reStructuredText: the text of the file, with the sections, lists, tables and code that its form shows.

Directives and roles stay as they are written, except raised and lowered words, automatic numbers, and comments, which
leave the text. Lines keep their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from loaders.files.readers.text_model import Block, FileText, Kind, normalize_newlines
from loaders.readers.html_tree import list_label
from loaders.readers.inline import LeftOut, lower_text, raise_text

_RULE: Final = re.compile(r"([!-/:-@\[-`{-~])\1+")
_LEAST_RULE: Final = 3
_DIRECTIVE: Final = re.compile(r"\.\. (?:\|[^|]*\| )?(?P<name>[\w:.+-]+?):: ?")
_EXPLICIT: Final = re.compile(r"\.\.(?:\s|$)")
_KEPT: Final = re.compile(r"\.\. (?:_|\[[^\[\]]+\](?:\s|$)|\||[\w:.+-]+::)")
"""Starts of targets, notes, substitutions and directives. Any other explicit markup is a comment."""
_CODE: Final = frozenset(
    {"code", "code-block", "sourcecode", "parsed-literal", "highlight", "doctest", "testcode", "raw"}
)
_UNREAD: Final = {
    "image": "pictures", "figure": "pictures", "include": "included files", "literalinclude": "included files",
    "csv-table": "tables of other files", "graphviz": "drawings", "automodule": "generated texts",
    "autoclass": "generated texts", "autofunction": "generated texts", "toctree": "tables of contents",
}  # fmt: skip
"""Directives whose content is elsewhere."""
_ITEM: Final = re.compile(r"\s*(?P<label>[-*+\u2022]|#\.|\(#\)|\(?(?:\d{1,4}|[A-Za-z])[.)])\s+(?=\S)")
_NUMBERED: Final = re.compile(r"(?P<before>\s*\(?)#(?=[.)]\s)")
_TABLE: Final = re.compile(r"\s*(?:\+[-=+]{3,}|={2,}(?: +={2,})+\s*$)")
_ROLE: Final = re.compile(r"``|:(?P<role>sup|superscript|sub|subscript|del|strike)?:`(?P<text>[^`\n]*)`(?:\\ )?")


def read_rst(source: str, name: str) -> FileText:
    """Read a reStructuredText file. `name` is that of the file in messages."""
    left_out = LeftOut()
    lines = list(_rewrite(normalize_newlines(source).split("\n"), left_out))
    text = "\n".join(lines)
    blocks = list(_find_blocks(lines))
    return FileText(
        text,
        blocks,
        title=blocks[0].title if blocks and blocks[0].level == 1 else None,
        first_line=1,
        warnings=[f"{name}: {each}" for each in left_out.describe()],
    )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _find_end(lines: Sequence[str], start: int, indent: int) -> int:
    """Find the end of the lines after `start` that are indented more than `indent`, without blank ones at the end."""
    end = at = start + 1
    while at < len(lines) and (not lines[at].strip() or _indent(lines[at]) > indent):
        at += 1
        if lines[at - 1].strip():
            end = at
    return end


def _rewrite(lines: Sequence[str], left_out: LeftOut) -> Iterator[str]:
    """Yield the lines without comments, with automatic numbers and raised words written."""
    at = 0
    code = 0
    numbers: dict[int, tuple[str, int]] = {}
    """The kind and value of the last number of each open list, by its indentation."""
    while at < len(lines):
        line = lines[at]
        bare = line.lstrip()
        indent = len(line) - len(bare)
        if at < code or not bare:
            yield line
            at += 1
            continue
        if _EXPLICIT.match(bare) and not _KEPT.match(bare):
            end = (
                _find_end(lines, at, indent)
                if bare.strip() != ".." or (lines[at + 1 : at + 2] or [""])[0].strip()
                else at + 1
            )
            left_out.comments += bool("".join(lines[at:end]).strip(" ."))
            yield from [""] * (end - at)
            at = end
            continue
        if (directive := _DIRECTIVE.match(bare)) is not None:
            found = directive["name"].rpartition(":")[2].lower()
            if found in _UNREAD:
                left_out.unread[_UNREAD[found]] += 1
            if found in _CODE:
                code = _find_end(lines, at, indent)
        elif bare.rstrip().endswith("::"):
            code = _find_literal(lines, at, indent)
        numbered, item = _NUMBERED.match(line), _ITEM.match(line)
        if numbered is not None:
            kind, number = numbers.get(indent, ("1", 0))
            numbers[indent] = kind, number + 1
            line = f"{numbered['before']}{list_label(kind, number + 1)}{line[numbered.end() :]}"
        elif item is not None or not any(indent > depth for depth in numbers):
            numbers = {depth: last for depth, last in numbers.items() if depth < indent}
            if item is not None and (label := item["label"].strip("().")).isalnum():
                numbers[indent] = _read_number(label)
        yield _write_roles(line, left_out)
        at += 1


def _read_number(label: str) -> tuple[str, int]:
    """Read the kind and the value of a number that is written, after which automatic ones go on."""
    if label.isdigit():
        return "1", int(label)
    if label in "iI":
        return label, 1
    return ("a" if label.islower() else "A"), ord(label.lower()) - ord("a") + 1


def _find_literal(lines: Sequence[str], at: int, indent: int) -> int:
    """Find the end of the literal block after a paragraph that ends in two colons. It begins after a blank line."""
    following = lines[at + 1 : at + 2]
    return _find_end(lines, at, indent) if following and not following[0].strip() else at + 1


def _write_roles(line: str, left_out: LeftOut) -> str:
    if ":`" not in line:
        return line
    pieces: list[str] = []
    at = 0
    literal = False
    for match in _ROLE.finditer(line):
        if match[0] == "``":
            literal = not literal
        elif match["role"] and not literal:
            before = line[at : match.start()].removesuffix("\\ ")
            pieces.append(before)
            if match["role"] in ("del", "strike"):
                left_out.add_struck(match["text"])
            else:
                write = raise_text if match["role"].startswith("sup") else lower_text
                pieces.append(write(match["text"], before))
            at = match.end()
    return "".join((*pieces, line[at:]))


def _find_blocks(lines: Sequence[str]) -> Iterator[Block]:
    """Find the blocks: sections by the signs above and below their titles, in the order in which these come."""
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    whole = starts[-1] - 1
    styles: list[tuple[str, bool]] = []
    at = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        heading = _find_heading(lines, at)
        if heading is not None:
            title, style, end = heading
            if style not in styles:
                styles.append(style)
            yield Block("heading", starts[at], min(starts[end], whole), min(styles.index(style) + 1, 6), title)
            at = end
            continue
        kind, end = _find_kind(lines, at)
        parts = [starts[place] for place in range(at + 1, end) if kind != "paragraph" and _is_part(kind, lines[place])]
        yield Block(kind, starts[at], min(starts[end], whole), parts=parts)
        at = end


def _find_heading(lines: Sequence[str], at: int) -> tuple[str, tuple[str, bool], int] | None:
    """Find the title at a line, the style of its signs, and the line after it."""

    def rule(place: int, title: str) -> str | None:
        line = lines[place].rstrip() if place < len(lines) else ""
        is_long = len(line) >= len(title) or len(line) > _LEAST_RULE
        return line[0] if line and _RULE.fullmatch(line) and is_long else None

    title = lines[at + 1].strip() if at + 2 < len(lines) else ""
    above = rule(at, title) if title and not _RULE.fullmatch(title) else None
    if above is not None and len(lines[at].rstrip()) >= _LEAST_RULE and rule(at + 2, title) == above:
        return title, (above, True), at + 3
    title = lines[at].rstrip()
    if title[:1].isspace() or _RULE.fullmatch(title):
        return None
    below = rule(at + 1, title) if at + 1 < len(lines) and len(lines[at + 1].rstrip()) > 1 else None
    return (title.strip(), (below, False), at + 2) if below is not None else None


def _find_kind(lines: Sequence[str], at: int) -> tuple[Kind, int]:
    """Find the kind of the block at a line, and the line after it."""
    line = lines[at]
    indent = _indent(line)
    directive = _DIRECTIVE.match(line.lstrip())
    if directive is not None and directive["name"].rpartition(":")[2].lower() in _CODE:
        return "code", _find_end(lines, at, indent)
    if directive is None and line.rstrip().endswith("::") and (end := _find_literal(lines, at, indent)) > at + 1:
        return "code", end
    if _TABLE.match(line):
        end = at
        rules = 0
        is_grid = line.lstrip().startswith("+")
        while end < len(lines) and (lines[end].strip() if is_grid else rules < 3):
            rules += not is_grid and bool(_TABLE.match(lines[end]))
            end += 1
        return "table", end
    if (item := _ITEM.match(line)) is not None:
        end = at
        while end < len(lines):
            following = lines[end]
            is_outside = following.strip() and _indent(following) <= indent and not lines[end - 1].strip()
            if end > at and is_outside and (_ITEM.match(following) is None or _indent(following) < indent):
                break
            end += 1
        while not lines[end - 1].strip():
            end -= 1
        return ("list" if item["label"] in "-*+\u2022" else "steps"), end
    end = at + 1
    while end < len(lines) and lines[end].strip() and _find_heading(lines, end) is None:
        end += 1
    return "paragraph", end


def _is_part(kind: Kind, line: str) -> bool:
    return bool(line.strip()) and (_ITEM.match(line) is not None if kind in ("list", "steps") else True)
