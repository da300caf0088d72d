"""Markdown: the text of the file, with the blocks that a CommonMark parser finds in it."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from kg.errors import SourceError
from loaders.files.readers.front_matter import parse_front_matter
from loaders.files.readers.markdown_inline import rewrite
from loaders.files.readers.text_model import Block, FileText, Kind, normalize_newlines
from loaders.readers.inline import LeftOut

_LONGEST_HEADING: Final = 1_000
"""Maximum characters of a heading whose notation is parsed. A longer one is shown as it is, up to this length."""
_KINDS: Final[dict[str, Kind]] = {
    "bullet_list_open": "list",
    "ordered_list_open": "steps",
    "table_open": "table",
    "fence": "code",
    "code_block": "code",
}
_PARTS: Final = {"list": "list_item_open", "steps": "list_item_open", "table": "tr_open"}
_LINE: Final = re.compile(r"\n")
_HTML_TAG: Final = re.compile(r"</?[A-Za-z][^<>]*>|<!--(?:[^<-]|<(?!!--)|-(?!->))*+-->", re.DOTALL)


@cache
def _block_parser() -> MarkdownIt:
    """Build the parser of blocks. It leaves the text within them alone, which would take most of the time."""
    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


@cache
def _heading_parser() -> MarkdownIt:
    return MarkdownIt("commonmark")


def read_markdown(source: str, name: str = "Markdown", *, jsx: bool = False) -> FileText:
    """Read a Markdown file. Lines keep their numbers; front matter is read and left out of the text.

    `name` is that of the file in messages. `jsx`: it is MDX.
    """
    source = normalize_newlines(source)
    front = parse_front_matter(source)
    left_out = LeftOut()
    text = rewrite(source[front.end :], _block_parser(), left_out, jsx=jsx)
    blocks = list(find_blocks(text))
    return FileText(
        text,
        blocks,
        title=front.one("title") or next((each.title for each in blocks if each.level == 1), None),
        language=front.one("lang", "language"),
        tags=front.all("tags", "keywords"),
        security=front.one("security", "classification"),
        first_line=1 + source.count("\n", 0, front.end),
        warnings=[f"{name}: {each}" for each in left_out.describe()],
    )


def read_notebook(source: str, name: str) -> FileText:
    """Read a Jupyter notebook: its cells of text, and those of code as code. Outputs are not read.

    Raises SourceError for a file that is not a notebook.
    """
    try:
        notebook = json.loads(source)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{name}: Not a notebook: it is not JSON ({error}).") from None
    sheets = notebook.get("worksheets") if isinstance(notebook, dict) else None
    holder = sheets[0] if isinstance(sheets, list) and sheets else notebook
    cells = holder.get("cells") if isinstance(holder, dict) else None
    if not isinstance(cells, list):
        raise SourceError(f"{name}: Not a notebook: it has no list of cells.")
    left_out = LeftOut()
    parts: list[str] = []
    for cell in (each for each in cells if isinstance(each, dict)):
        given = cell.get("source", cell.get("input", ""))
        text = "".join(map(str, given)) if isinstance(given, list) else str(given)
        text = normalize_newlines(text).strip("\n")
        if isinstance(outputs := cell.get("outputs"), list) and outputs:
            left_out.unread["outputs of code"] += len(outputs)
        if text.strip() and cell.get("cell_type") == "code":
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
            parts.append(f"{fence}\n{text}\n{fence}")
        elif text.strip():
            parts.append(text)
    text = rewrite("\n\n".join(parts), _block_parser(), left_out)
    blocks = list(find_blocks(text))
    return FileText(
        text,
        blocks,
        title=next((each.title for each in blocks if each.level == 1), None),
        warnings=[f"{name}: {each}" for each in left_out.describe()],
    )


def find_blocks(text: str) -> Iterator[Block]:
    """Find the blocks of a Markdown text, in order."""
    lines = [0, *(match.end() for match in _LINE.finditer(text)), len(text)]
    tokens = _block_parser().parse(text)
    for place, token in enumerate(tokens):
        if token.level or token.map is None:
            continue
        start, end = lines[token.map[0]], lines[min(token.map[1], len(lines) - 1)]
        if token.type == "heading_open":
            title = to_plain_text(tokens[place + 1].content)
            yield Block("heading", start, end, int(token.tag[1:]) if title else 0, title)
            continue
        kind = _KINDS.get(token.type, "paragraph")
        yield Block(kind, start, end, parts=_find_parts(tokens, place, kind, lines))


def _find_parts(tokens: Sequence[Token], place: int, kind: Kind, lines: Sequence[int]) -> Sequence[int]:
    """Find the offsets of the items of a list, the rows of a table, the lines of code."""
    token = tokens[place]
    first, last = token.map or (0, 0)
    if kind == "code":
        return lines[first + 1 : last]
    if (name := _PARTS.get(kind)) is None:
        return ()
    found: list[int] = []
    for each in tokens[place + 1 :]:
        if each.level <= token.level and each.nesting < 0:
            break
        if each.type == name and each.map is not None and (kind == "table" or each.level == token.level + 1):
            found.append(lines[each.map[0]])
    # The rule below the header of a table belongs to the header.
    return found[bisect_left(found, lines[first] + 1) :] if kind != "table" else found[2:]


def to_plain_text(content: str) -> str:
    """Return the words of a heading without notation: of a link its text, of code its characters."""
    if len(content) > _LONGEST_HEADING:
        return " ".join(content[:_LONGEST_HEADING].split())
    words: list[str] = []
    for token in _heading_parser().parseInline(content)[0].children or ():
        if token.type in ("text", "code_inline", "text_special"):
            words.append(token.content)
        elif token.type == "image":
            words += [child.content for child in token.children or ()]
        elif token.type in ("softbreak", "hardbreak"):
            words.append(" ")
    return " ".join(_HTML_TAG.sub("", "".join(words)).split())
