"""The child process that reads the slides of a presentation, by python-pptx."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from pptx import Presentation
from pptx.enum.shapes import PP_PLACEHOLDER
from pptx.oxml.ns import qn
from pptx.slide import Slide
from pptx.table import Table

from kg.text import quoted
from loaders.files.readers import office_package
from loaders.files.readers.office_package import Block, UnreadableError, group_items, list_places
from loaders.readers.formulas import write_formula
from loaders.readers.html_tree import list_label, parse_whole
from loaders.readers.inline import LeftOut, Piece, join_pieces

_FURNITURE: Final = frozenset(
    {PP_PLACEHOLDER.FOOTER, PP_PLACEHOLDER.HEADER, PP_PLACEHOLDER.DATE, PP_PLACEHOLDER.SLIDE_NUMBER}
)
_TITLES: Final = frozenset({PP_PLACEHOLDER.TITLE, PP_PLACEHOLDER.CENTER_TITLE, PP_PLACEHOLDER.VERTICAL_TITLE})
_BULLETED: Final = frozenset({PP_PLACEHOLDER.BODY, PP_PLACEHOLDER.OBJECT, PP_PLACEHOLDER.VERTICAL_BODY})
"""Placeholders whose paragraphs have bullets, unless they state otherwise."""
_DEEPEST: Final = 20
_MOST_SLIDES: Final = 5_000

_KINDS: Final = {"arabic": "1", "alphaLc": "a", "alphaUc": "A", "romanLc": "i", "romanUc": "I"}
_SIGNS: Final = {"ParenBoth": "({})", "ParenR": "{})", "Period": "{}.", "Plain": "{}"}
_NUMBERED: Final = re.compile(rf"(?P<kind>{'|'.join(_KINDS)})(?P<signs>{'|'.join(_SIGNS)})")


def convert(data: bytes) -> tuple[str, dict[str, Any]]:
    """Read the slides as blocks, each with the number of its slide. Hidden slides are left out."""
    slides = list(Presentation(io.BytesIO(data)).slides)
    if len(slides) > _MOST_SLIDES:
        raise UnreadableError(f"It has {len(slides):,} slides. At most {_MOST_SLIDES:,} are read. Split it.")
    blocks: list[Block] = []
    hidden: list[int] = []
    left_out = LeftOut()
    drawn: list[int] = []
    for number, slide in enumerate(slides, 1):
        if slide._element.get("show") in ("0", "false"):
            hidden.append(number)
            continue
        reading = _Reading(left_out)
        own = list(reading.read_slide(slide, number))
        blocks += ({**block, "page": number} for block in own)
        if reading.has_drawing:
            drawn.append(number)
    warnings = [f"Hidden slides are left out: {list_places(hidden)}."] if hidden else []
    if drawn:
        warnings.append(f"Charts and diagrams are not read. They are on the slides {list_places(drawn)}.")
    return json.dumps(blocks), {"slides": len(slides), "warnings": [*warnings, *left_out.describe()]}


class _Reading:
    """Reads one slide. `has_drawing`: it has a chart or a diagram, whose text is not read."""

    def __init__(self, left_out: LeftOut) -> None:
        self.left_out: Final = left_out
        self.has_drawing = False

    def read_slide(self, slide: Slide, number: int) -> Iterator[Block]:
        """Yield the title, the content and the notes. A slide without a title has its number as title."""
        shapes = list(self.find_shapes(slide.shapes, 0))
        titles = [shape for shape in shapes if _get_type(shape) in _TITLES and _join(shape.text_frame.text)]
        content = [block for shape in shapes if shape not in titles[:1] for block in self.read_shape(shape)]
        notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
        noted = (
            list(group_items(_read_paragraphs(notes.paragraphs, self.left_out, bulleted=False)))
            if notes is not None
            else []
        )
        if titles or content or noted:
            title = _read_frame(titles[0].text_frame, self.left_out) if titles else f"Slide {number}"
            is_upper = bool(titles) and (
                _get_type(titles[0]) == PP_PLACEHOLDER.CENTER_TITLE
                or slide.slide_layout._element.get("type") == "secHead"
            )
            yield {"kind": "heading", "level": 1 if is_upper else 2, "text": title}
        yield from content
        if noted:
            yield {"kind": "heading", "level": 3, "text": "Notes"}
            yield from noted

    def find_shapes(self, shapes: Iterable[Any], depth: int) -> Iterator[Any]:
        """Yield the visible shapes with text or a table, also those of groups."""
        for shape in shapes:
            properties = shape._element.xpath(".//p:cNvPr")
            if properties and properties[0].get("hidden") in ("1", "true"):
                if shape.has_text_frame:
                    self.left_out.add_hidden(shape.text_frame.text)
                continue
            if _get_type(shape) in _FURNITURE:
                continue
            if hasattr(shape, "shapes"):
                if depth < _DEEPEST:
                    yield from self.find_shapes(shape.shapes, depth + 1)
            elif shape.has_text_frame or getattr(shape, "has_table", False):
                yield shape
            elif shape._element.tag == qn("p:graphicFrame"):
                self.has_drawing = True
            elif shape._element.tag == qn("p:pic"):
                self.left_out.unread["pictures"] += 1

    def read_shape(self, shape: Any) -> Iterator[Block]:
        """Yield the paragraphs, lists or table of a shape."""
        if getattr(shape, "has_table", False):
            yield {"kind": "table", "rows": _read_table(shape.table, self.left_out)}
        else:
            yield from group_items(
                _read_paragraphs(shape.text_frame.paragraphs, self.left_out, bulleted=_get_type(shape) in _BULLETED)
            )


def _get_type(shape: Any) -> Any:
    return shape.placeholder_format.type if shape.is_placeholder else None


def _read_table(table: Table, left_out: LeftOut) -> list[list[str]]:
    """Read the rows. A merged cell is repeated in all rows and columns that it spans."""
    rows = [[_read_frame(cell.text_frame, left_out) for cell in row.cells] for row in table.rows]
    for y, row in enumerate(table.rows):
        for x, cell in enumerate(row.cells):
            if cell.is_merge_origin:
                for down in range(y, min(y + cell.span_height, len(rows))):
                    for right in range(x, min(x + cell.span_width, len(rows[down]))):
                        rows[down][right] = rows[y][x]
    return rows


def _read_paragraphs(paragraphs: Iterable[Any], left_out: LeftOut, *, bulleted: bool) -> Iterator[Block]:
    """Yield the block of each paragraph. Each item of a list is a block of its own."""
    last: dict[int, tuple[tuple[str, int], int]] = {}
    """The form and start of the numbers of each depth, and the last number."""
    for paragraph in paragraphs:
        text = _write_runs(paragraph, left_out)
        if not text and not paragraph.text.strip():
            continue  # it has no number
        depth = paragraph.level
        properties = paragraph._p.pPr
        marks = {child.tag: child for child in properties} if properties is not None else {}
        numbered = marks.get(qn("a:buAutoNum"))
        last = {above: numbers for above, numbers in last.items() if above < depth + (numbered is not None)}
        if numbered is not None:
            form = numbered.get("type", ""), parse_whole(numbered.get("startAt"), 1)
            number = last[depth][1] + 1 if depth in last and last[depth][0] == form else form[1]
            last[depth] = form, number
            block = {"kind": "steps", "items": [(depth, _write_label(number, form[0], left_out), text)]}
        elif qn("a:buNone") in marks or not (bulleted or qn("a:buChar") in marks or qn("a:buBlip") in marks):
            block = {"kind": "paragraph", "text": text}
        else:
            block = {"kind": "list", "items": [(depth, "-", text)]}
        if text:
            yield block


def _write_label(number: int, form: str, left_out: LeftOut) -> str:
    """Write an automatic number in a form of presentations, such as ``alphaLcParenR``."""
    match = _NUMBERED.fullmatch(form)
    if match is None:
        left_out.unread[f"numbers in the format {quoted(form)}, written as decimal numbers"] += 1
        return f"{number}."
    return _SIGNS[match["signs"]].format(list_label(_KINDS[match["kind"]], number))


def _write_runs(paragraph: Any, left_out: LeftOut) -> str:
    """Write the text of a paragraph, bold words of it in the notation of Markdown."""
    pieces: list[Piece] = []
    for each in paragraph._p:
        name = str(each.tag).rpartition("}")[2]
        if name == "br":
            pieces.append(Piece(" "))
        elif name in ("r", "fld"):
            properties = each.find(qn("a:rPr"))
            form = properties.attrib if properties is not None else {}
            text = "".join(part.text or "" for part in each.iter(qn("a:t")))
            if form.get("strike", "noStrike") != "noStrike":
                left_out.add_struck(text)
                continue
            base = form.get("baseline", "0").rstrip("%")
            shift = "subscript" if base.startswith("-") else "superscript" if base.strip("0.") else ""
            pieces.append(Piece(text, form.get("b") in ("1", "true"), shift))
        elif any(str(inner.tag).rpartition("}")[2] == "oMath" for inner in each.iter()):
            formula = next(inner for inner in each.iter() if str(inner.tag).rpartition("}")[2] == "oMath")
            pieces.append(Piece(write_formula(formula)))
    text = join_pieces(pieces)
    return text.removeprefix("**").removesuffix("**") if text.count("**") == 2 and text[:2] == text[-2:] else text


def _read_frame(frame: Any, left_out: LeftOut) -> str:
    """Read a text frame as one line without notation."""
    return " ".join(filter(None, (_write_runs(each, left_out) for each in frame.paragraphs))).replace("**", "")


def _join(text: str) -> str:
    return " ".join(text.split())


def main() -> None:
    """Run the process."""
    office_package.run(convert, "ppt/presentation.xml", "a presentation (pptx)")
