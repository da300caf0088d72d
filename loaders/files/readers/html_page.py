"""HTML pages: the text of the document without navigation, banners, footers and tables of contents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from lxml import etree

from kg.errors import SourceError
from loaders.files.readers.text_model import FileText, TextWriter
from loaders.readers.html import BLOCKS, HEADINGS, HIDDEN
from loaders.readers.html_tree import (
    Written,
    WrittenTable,
    build_table,
    list_label,
    normalize_space,
    number_items,
    parse_html,
    text_of,
)
from loaders.readers.inline import LeftOut

_ASIDE: Final = frozenset({"aside", "footer", "header", "menu"})
"""Elements that are boilerplate outside of the main text."""
_ROLES: Final = frozenset(
    {"navigation", "banner", "contentinfo", "search", "complementary", "menu", "menubar", "dialog"}
)
_NAMES: Final = re.compile(
    r"(?:^|[\s_-])(?:nav|navbar|navigation|menu|sidebar|breadcrumbs?|footer|site-?header|masthead|toc|table-of-contents"
    r"|cookies?|banner|pagination|pager|skip-?links?|share|social|related-?links?|advert|ads?|newsletter|subscribe)"
    r"(?:$|[\s_-])",
    re.IGNORECASE,
)
"""Names of classes and identifiers of boilerplate, as whole words."""
_BOLD: Final = frozenset({"b", "strong"})
_CODE: Final = frozenset({"code", "kbd", "samp", "tt"})
_LAYOUT: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "table", "pre", "section", "article"})
"""Elements of which none is in a table of data."""
_LEAST_LINKS: Final = 3
"""Minimum items of a list of links to sections that is a table of contents."""
_SPACES: Final = re.compile(r"[ \t\r\n\f\u00a0]+")


def read_html(source: str, name: str) -> FileText:
    """Read an HTML page. `name` is that of the file in messages.

    Raises SourceError if its elements nest too deeply.
    """
    left_out = LeftOut()
    try:
        root = parse_html(source, name, left_out)
        return _read(root, name, left_out) if root is not None else FileText("", ())
    except RecursionError:
        raise SourceError(f"{name}: The elements nest too deeply.") from None


def _read(root: etree._Element, name: str, left_out: LeftOut) -> FileText:
    body = root.find(".//body")
    body = root if body is None else body
    warnings = [f"{name}: {each}" for each in left_out.describe()]
    page = _Page(whole=False)
    main = _find_main(body)
    page.left_out = len(text_of(body)) - len(text_of(main))
    page.inside(main)
    if not page.writer.blocks:
        # All of the text is in elements that look like boilerplate, so they are not.
        page = _Page(whole=True)
        page.inside(body)
    elif page.left_out:
        warnings.append(
            f"{name}: {page.left_out:,} characters in menus, banners, footers and tables of contents are left out, "
            f"and {page.writer.length:,} are kept."
        )
    titles = [text_of(each) for each in root.iter("title")][:1]
    heads = [each.title for each in page.writer.blocks if each.level == 1]
    return FileText(
        page.writer.text(),
        page.writer.blocks,
        title=next((title for title in (*heads[:1], *titles) if title), None),
        language=_first(root.get("lang"), _meta(root, "dc.language", "language")),
        tags=[tag for each in (_meta(root, "keywords"),) if each for part in each.split(",") if (tag := part.strip())],
        security=_meta(root, "security", "classification"),
        warnings=warnings,
    )


def _find_main(body: etree._Element) -> etree._Element:
    """Find the element with the main text: ``main``, or the only ``article``."""
    articles: list[etree._Element] = []
    for each in body.iter():
        if each.tag == "main" or each.get("role") == "main":
            return each
        if each.tag == "article":
            articles.append(each)
    return articles[0] if len(articles) == 1 else body


def _first(*values: str | None) -> str | None:
    return next((value.strip() for value in values if value and value.strip()), None)


def _meta(root: etree._Element, *names: str) -> str | None:
    """Get the content of the ``meta`` element with one of `names`."""
    for each in root.iter("meta"):
        if (each.get("name") or "").lower() in names and (content := each.get("content")):
            return content
    return None


class _Page:
    """Writes the blocks of a page. `left_out` counts the characters of boilerplate."""

    def __init__(self, *, whole: bool) -> None:
        self.writer: Final = TextWriter()
        self.whole: Final = whole
        self.left_out = 0

    def is_skipped(self, element: etree._Element, *, within: bool) -> bool:
        """Whether an element is not shown, or is boilerplate; `within`: it is in an article or section."""
        tag = element.tag
        if not isinstance(tag, str) or tag in HIDDEN:
            return True
        if self.whole or not _is_boilerplate(element, within=within):
            return False
        self.left_out += len(text_of(element))
        return True

    def inside(self, element: etree._Element, *, within: bool = False) -> None:
        """Write the content of an element."""
        within = within or element.tag in ("article", "main", "section")
        run: list[str] = []
        _extend(run, element.text)
        for child in element:
            if self.is_skipped(child, within=within):
                pass
            elif child.tag in BLOCKS or _has_blocks(child):
                self.paragraph(run)
                self.block(child, within=within)
            else:
                run.append(self.inline(child))
            _extend(run, child.tail)
        self.paragraph(run)

    def block(self, element: etree._Element, *, within: bool) -> None:
        """Write a block."""
        tag = str(element.tag)
        if tag in HEADINGS:
            self.writer.heading(int(tag[1]), normalize_space(self.plain(element)), text_of(element))
        elif tag in ("ul", "ol"):
            lines, items = self.list_lines(element)
            self.writer.add("steps" if tag == "ol" else "list", lines, group=items)
        elif tag == "dl":
            self.writer.add("definitions", self.definitions(element))
        elif tag == "pre":
            self.writer.add("code", ["```", *"".join(map(str, element.itertext())).strip("\n").split("\n"), "```"])
        elif tag == "table" and not _is_layout(element):
            self.table(build_table(element))
        elif tag != "hr":
            self.inside(element, within=within)

    def paragraph(self, run: list[str]) -> None:
        """Write the text collected between two blocks."""
        lines = _to_lines(run)
        run.clear()
        self.writer.add("paragraph", lines)

    def inline(self, element: etree._Element) -> str:
        """Write an element within a line, bold text and code in the notation of Markdown."""
        if self.is_skipped(element, within=True):
            return ""
        if element.tag == "br":
            return "\v"
        text = self.plain(element)
        bare = text.strip()
        if not bare or "\v" in bare:
            return text
        mark = "**" if element.tag in _BOLD else "`" if element.tag in _CODE else ""
        if mark and mark not in bare:
            return text.replace(bare, f"{mark}{bare}{mark}")
        return text

    def plain(self, element: etree._Element) -> str:
        """Write the content of an element on one line; line breaks are vertical tabs."""
        pieces = [element.text or ""]
        for child in element:
            pieces += (self.inline(child), child.tail or "")
        return _SPACES.sub(" ", "".join(pieces))

    def list_lines(self, element: etree._Element) -> tuple[list[str], list[int]]:
        """Write a list, and return the indexes of the lines of its items."""
        lines: list[str] = []
        items: list[int] = []
        numbers = number_items(element)
        for child in element:
            if self.is_skipped(child, within=True):
                continue
            if child.tag in ("ul", "ol"):  # in broken HTML, a list is directly in a list
                lines += [f"  {line}" for line in self.list_lines(child)[0]]
                continue
            is_numbered = element.tag == "ol" and child in numbers
            kind = child.get("type") or element.get("type") or "1"
            mark = f"{list_label(kind, numbers[child])}." if is_numbered else "-"
            inner = self.item_lines(child)
            if inner:
                items.append(len(lines))
                indent = " " * (len(mark) + 1)
                lines += [f"{mark} {inner[0]}", *(indent + line if line else "" for line in inner[1:])]
        return lines, items

    def item_lines(self, element: etree._Element) -> list[str]:
        """Write an item of a list as lines, with the blocks in it."""
        inner = _Page(whole=self.whole)
        inner.inside(element, within=True)
        self.left_out += inner.left_out
        return [line for line in inner.writer.text().split("\n") if line.strip()]

    def definitions(self, element: etree._Element) -> list[str]:
        """Write a list of terms and their definitions."""
        lines: list[str] = []
        for child in element.iter("dt", "dd"):
            inner = " ".join(self.item_lines(child))
            if inner and child.tag == "dd":
                lines.append(f": {inner}")
            elif inner:
                lines.append(inner if "**" in inner else f"**{inner}**")
        return lines

    def table(self, table: WrittenTable) -> None:
        """Write a table. A cell that spans several rows or columns is repeated, so that each row is complete."""
        if table.caption:
            self.writer.add("paragraph", [table.caption])
        self.writer.table(list(expand_cells(table.rows)))
        for row in table.rows:
            for cell in row:
                for inner in cell.nested:
                    self.table(inner)


def expand_cells(rows: Sequence[Sequence[Written]]) -> Iterator[list[str]]:
    """Yield the rows of a table with each cell in all rows and columns that it spans."""
    open_cells: dict[int, tuple[str, int]] = {}
    for row in rows:
        line: list[str] = []
        following: dict[int, tuple[str, int]] = {}
        cells = list(row)[::-1]
        while cells or any(column >= len(line) for column in open_cells):
            column = len(line)
            if (above := open_cells.pop(column, None)) is not None:
                line.append(above[0])
                if above[1] > 1:
                    following[column] = above[0], above[1] - 1
            elif cells:
                cell = cells.pop()
                for at in range(column, column + cell.colspan):
                    line.append(cell.text)
                    if cell.rowspan > 1:
                        following[at] = cell.text, cell.rowspan - 1
            else:
                line.append("")
        open_cells = following
        yield line


def _extend(run: list[str], words: str | None) -> None:
    if words:
        run.append(_SPACES.sub(" ", words))


def _to_lines(run: Sequence[str]) -> list[str]:
    return [line for part in "".join(run).split("\v") if (line := normalize_space(part))]


def _has_blocks(element: etree._Element) -> bool:
    """Whether an element that is usually within a line has blocks in it, as a link around a heading has."""
    return len(element) > 0 and any(each.tag in BLOCKS for each in element.iterdescendants())


def _is_layout(table: etree._Element) -> bool:
    """Whether a table only places parts of the page."""
    if table.get("role") in ("presentation", "none"):
        return True
    return any(each.tag in _LAYOUT for each in table.iterdescendants()) and not any(True for _ in table.iter("th"))


def _is_boilerplate(element: etree._Element, *, within: bool) -> bool:
    tag = str(element.tag)
    if (element.get("role") or "").lower() in _ROLES:
        return True
    if tag in _ASIDE and not (within and tag == "header"):
        return True
    if tag in ("main", "article", "body", *HEADINGS, "p"):
        return False
    if any(_NAMES.search(element.get(name) or "") for name in ("class", "id")):
        # An element around the main text may have any name.
        return not any(each.tag in ("main", "article") for each in element.iterdescendants())
    return tag in ("ul", "ol") and _is_contents(element)


def _is_contents(element: etree._Element) -> bool:
    """Whether a list only links to places on the same page."""
    links = list(element.iter("a"))
    if len(links) < _LEAST_LINKS or not all((link.get("href") or "").startswith("#") for link in links):
        return False
    return len(text_of(element).replace(" ", "")) == sum(len(text_of(link).replace(" ", "")) for link in links)
