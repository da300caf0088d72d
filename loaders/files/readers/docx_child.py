"""The child process that reads a Word document: its paragraphs with their automatic numbers, lists and tables."""

from __future__ import annotations

import io
import json
import posixpath
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from lxml import etree

from kg.text import quoted
from loaders.files.readers import office_package
from loaders.files.readers.docx_numbering import Numbering
from loaders.files.readers.office_package import (
    Block,
    get_attribute,
    get_child,
    get_name,
    get_value,
    group_items,
    is_on,
    is_true,
)
from loaders.readers.formulas import write_formula
from loaders.readers.inline import CHECKED, UNCHECKED, LeftOut, Piece, join_pieces, raise_text

_HEADING: Final = re.compile(r"heading ([1-9])", re.IGNORECASE)
_DEEPEST_HEADING: Final = 6
_WRAPPERS: Final = frozenset(
    {"hyperlink", "fldSimple", "smartTag", "customXml", "ins", "moveTo", "dir", "bdo", "sdtContent", "rubyBase"}
)
"""Elements whose content is read as if they were not there."""
_DELETED: Final = frozenset({"del", "moveFrom"})
_SILENT: Final = frozenset(
    {"pPr", "rPr", "sdtPr", "sdtEndPr", "tblPr", "tblGrid", "tblPrEx", "trPr", "tcPr", "sectPr", "smartTagPr", "rubyPr"}
    | {"customXmlPr", "lastRenderedPageBreak", "proofErr", "bookmarkStart", "bookmarkEnd", "permStart", "permEnd"}
    | {"footnoteRef", "endnoteRef", "annotationRef", "separator", "continuationSeparator", "softHyphen", "fldData"}
    | {"commentRangeStart", "commentRangeEnd", "moveFromRangeStart", "moveFromRangeEnd", "moveToRangeStart"}
    | {"moveToRangeEnd", "pgNum", "rt", "delInstrText", "background", "customXmlInsRangeStart", "customXmlInsRangeEnd"}
    | {"customXmlDelRangeStart", "customXmlDelRangeEnd", "yearLong", "monthLong", "dayLong", "yearShort", "monthShort"}
    | {"dayShort", "contentPart"}
)
"""Elements without words of their own."""
_RAISED_BY: Final = 4
"""Minimum shift of a raised or lowered character, in half points."""
_TINY: Final = 2
"""Maximum size of characters that nobody reads, in half points."""
_FURTHEST: Final = 50
"""Styles that a style may be based on, one on the other."""
_SYMBOLS: Final = {
    "wingdings": {
        0x6F: UNCHECKED, 0xA8: UNCHECKED, 0xFE: CHECKED, 0xFD: CHECKED, 0xFC: "\u2713", 0xFB: "\u2717", 0xA7: "\u25aa",
        0xB7: "\u2022", 0xD8: "\u27a2", 0xE0: "\u2192", 0xE8: "\u2192", 0x6C: "\u25cf", 0x6E: "\u25a0", 0x9F: "\u2022",
        0x76: "\u2756",
    },
    "wingdings 2": {
        0x50: "\u2713", 0x4F: "\u2717", 0x52: CHECKED, 0x53: CHECKED, 0x54: CHECKED, 0xA3: UNCHECKED, 0x2A: UNCHECKED,
    },
    "symbol": {
        **{ord(one): other for one, other in zip(
            "abgdezhqiklmnxoprstufcywABGDEZHQIKLMNXOPRSTUFCYWV",
            "\u03b1\u03b2\u03b3\u03b4\u03b5\u03b6\u03b7\u03b8\u03b9\u03ba\u03bb\u03bc\u03bd\u03be\u03bf\u03c0\u03c1\u03c3"
            "\u03c4\u03c5\u03c6\u03c7\u03c8\u03c9\u0391\u0392\u0393\u0394\u0395\u0396\u0397\u0398\u0399\u039a\u039b\u039c"
            "\u039d\u039e\u039f\u03a0\u03a1\u03a3\u03a4\u03a5\u03a6\u03a7\u03a8\u03a9\u03c2",
            strict=True,
        )},
        0xA2: "\u2032", 0xA3: "\u2264", 0xA5: "\u221e", 0xAE: "\u2192", 0xB0: "\u00b0", 0xB1: "\u00b1", 0xB2: "\u2033",
        0xB3: "\u2265", 0xB4: "\u00d7", 0xB6: "\u2202", 0xB7: "\u2022", 0xB8: "\u00f7", 0xB9: "\u2260", 0xBA: "\u2261",
        0xBB: "\u2248", 0xD6: "\u221a", 0xE5: "\u2211", 0x2D: "\u2212", 0xDE: "\u21d2", 0xF2: "\u222b",
    },
}  # fmt: skip
"""Characters of fonts of symbols."""
_PRIVATE: Final = re.compile("[\uf020-\uf0ff]")


@dataclass(slots=True)
class _Field:
    """A field that is open. Its result is read once it is `separated` from its instruction."""

    data: etree._Element | None = None
    instruction: str = ""
    separated: bool = False
    result: bool = False
    """Whether its result has words."""


@dataclass(slots=True)
class _Style:
    name: str = ""
    based_on: str | None = None
    paragraph: etree._Element | None = None
    run: etree._Element | None = None


@dataclass(slots=True)
class _Paragraph:
    """A paragraph that is read: its properties, its words, and the text boxes in it."""

    properties: etree._Element | None
    style: str | None
    pieces: list[Piece] = field(default_factory=list)
    boxes: list[etree._Element] = field(default_factory=list)


def convert(data: bytes) -> tuple[str, dict[str, Any]]:
    """Read a document as blocks."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        reading = _Reading(_Package(archive))
        blocks = list(reading.read())
    return json.dumps(blocks), {"warnings": reading.left_out.describe()}


class _Package:
    """The parts of a document."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.archive: Final = archive
        self.names: Final = frozenset(archive.namelist())
        main = next((target for kind, target in self.related("") if kind == "officeDocument"), "word/document.xml")
        self.main: Final = main if main in self.names else "word/document.xml"

    def related(self, part: str) -> Iterator[tuple[str, str]]:
        """Yield the kind and the name of each part that a part refers to."""
        folder, _, name = part.rpartition("/")
        path = f"{folder}/_rels/{name}.rels" if folder else f"_rels/{name}.rels"
        root = self.parse(path)
        for each in root if root is not None else ():
            target = each.get("Target") or ""
            if each.get("TargetMode") != "External" and target:
                whole = posixpath.normpath(posixpath.join("/", folder, target))
                yield (each.get("Type") or "").rpartition("/")[2], whole.lstrip("/")

    def parse(self, name: str) -> etree._Element | None:
        """Parse a part. None if there is none."""
        if name not in self.names:
            return None
        parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True, remove_comments=True)
        return etree.fromstring(self.archive.read(name), parser)


class _Reading:
    def __init__(self, package: _Package) -> None:
        self.package: Final = package
        self.left_out: Final = LeftOut()
        self.parts: dict[str, list[str]] = {}
        for kind, name in package.related(package.main):
            self.parts.setdefault(kind, []).append(name)
        self.styles, self.default, self.usual = _read_styles(self.part("styles"))
        self.numbering: Final = Numbering.of(self.part("numbering"))
        self.fields: list[_Field] = []
        self.whole_fields: set[etree._Element] = set()
        """The starts of fields that have an end."""
        self.notes: list[tuple[str, str, str]] = []
        """The kind, the identifier and the mark of each note, in the order of the text."""
        self.carried: list[Piece] = []
        """The words of a paragraph whose end is deleted: the next one begins with them."""
        self.within = 0
        """Tables and text boxes around the text."""
        self.find = cache(self._find)

    def part(self, kind: str) -> etree._Element | None:
        """Parse the part of a kind."""
        return self.package.parse(next(iter(self.parts.get(kind, ())), f"word/{kind}.xml"))

    def read(self) -> Iterator[Block]:
        """Yield the blocks of the document, and then its notes."""
        root = self.package.parse(self.package.main)
        body = next((each for each in root if get_name(each) == "body"), None) if root is not None else None
        if body is None:
            raise office_package.UnreadableError("It is damaged: it has no body.")
        self.find_whole_fields(body)
        yield from group_items(self.blocks(body))
        if self.carried:
            yield {"kind": "paragraph", "text": join_pieces(self.carried)}
        yield from self.read_notes()
        around = [name for kind in ("header", "footer") for name in self.parts.get(kind, ())]
        roots = [root for name in around if (root := self.package.parse(name)) is not None]
        if count := sum(bool(_all_text(root).strip()) for root in roots):
            self.left_out.unread["headers and footers"] += count
        for form in sorted(self.numbering.unknown):
            self.left_out.unread[f"numbers in the format {quoted(form)}, written as decimal numbers"] += 1

    def read_notes(self) -> Iterator[Block]:
        """Yield the notes of the document in the order of their marks."""
        texts: dict[tuple[str, str], etree._Element] = {}
        for kind in ("footnote", "endnote"):
            root = self.part(f"{kind}s")
            if root is not None:
                self.find_whole_fields(root)
            for each in root if root is not None else ():
                texts[kind, get_attribute(each, "id") or ""] = each
        for kind, ident, mark in self.notes:  # a note may refer to another one
            element = texts.get((kind, ident))
            if element is not None:
                text = " ".join(_to_lines(self.blocks(element)))
                yield {"kind": "paragraph", "text": f"{mark} {text}".strip()}

    def blocks(self, element: etree._Element) -> Iterator[Block]:
        """Yield the blocks in an element. Each item of a list is a block of its own."""
        for child in element:
            name = get_name(child)
            if name == "p":
                yield from self.read_paragraph(child)
            elif name == "tbl":
                yield from self.read_table(child)
            elif name == "sdt":
                yield from self.read_control(child)
            elif name in _WRAPPERS:
                yield from self.blocks(child)
            elif name in _DELETED:
                self.left_out.add_struck(_all_text(child))
            elif name == "AlternateContent":
                yield from self.blocks(_choose(child))
            elif name in ("oMathPara", "oMath"):
                yield {"kind": "paragraph", "text": write_formula(child)}
            elif name in ("altChunk", "subDoc"):
                self.left_out.unread["embedded documents"] += 1
            elif name and name not in _SILENT:
                self.left_out.unread[f"<{name}>"] += 1

    def read_control(self, element: etree._Element) -> Iterator[Block]:
        """Yield the blocks of a content control."""
        mark, is_empty = _read_control(element)
        if is_empty:
            self.left_out.unread["empty form fields"] += 1
        elif mark is not None:
            yield {"kind": "paragraph", "text": mark}
        else:
            for child in element:
                if get_name(child) == "sdtContent":
                    yield from self.blocks(child)

    # Paragraphs

    def read_paragraph(self, element: etree._Element) -> Iterator[Block]:
        """Yield the block of a paragraph, and those of the text boxes in it."""
        properties = get_child(element, "pPr")
        style = get_value(properties, "pStyle") or self.default
        paragraph = _Paragraph(properties, style, self.carried)
        self.carried = []
        self.read_runs(element, paragraph)
        mark = get_child(properties, "rPr")
        text = join_pieces(paragraph.pieces)
        if mark is not None and get_child(mark, "del") is not None:
            self.carried = paragraph.pieces
        else:
            yield from self.write_paragraph(paragraph, text, mark)
        for box in paragraph.boxes:
            self.within += 1
            yield from self.blocks(box)
            self.within -= 1

    def write_paragraph(self, paragraph: _Paragraph, text: str, mark: etree._Element | None) -> Iterator[Block]:
        level = self.find_heading(paragraph)
        numbered = self.find_list(paragraph)
        if not text and mark is not None and is_on(get_child(mark, "vanish")):
            return  # a hidden paragraph has no number
        label = self.numbering.number(*numbered) if numbered is not None else None
        if not text:
            return
        if level:
            plain = join_pieces([piece._replace(bold=False) for piece in paragraph.pieces]).replace("\n", " ")
            yield {"kind": "heading", "level": level, "text": f"{label} {plain}" if label and label != "-" else plain}
        elif label is not None and numbered is not None:
            kind = "list" if label == "-" else "steps"
            yield {"kind": kind, "items": [(numbered[1], label, text.replace("\n", " "))]}
        else:
            yield {"kind": "paragraph", "text": text}

    def chain(self, style: str | None) -> Iterator[_Style]:
        """Yield a style and those that it is based on."""
        for _ in range(_FURTHEST):
            found = self.styles.get(style or "")
            if found is None:
                return
            yield found
            style = found.based_on

    def find_heading(self, paragraph: _Paragraph) -> int:
        """Find the level of a heading. 0 for a paragraph that is none."""
        stated = get_value(paragraph.properties, "outlineLvl")
        for style in self.chain(paragraph.style):
            if stated is not None:
                break
            if (match := _HEADING.fullmatch(style.name)) is not None:
                stated = str(int(match[1]) - 1)
            elif style.name.lower() == "title":
                stated = "0"
            else:
                stated = get_value(style.paragraph, "outlineLvl")
        level = int(stated) + 1 if stated is not None and stated.isdecimal() and len(stated) == 1 else 10
        return min(level, _DEEPEST_HEADING) if level < 10 else 0

    def find_list(self, paragraph: _Paragraph) -> tuple[str, int] | None:
        """Find the list that a paragraph is in, and its level."""
        ident = place = None
        styled: str | None = None
        sources: list[tuple[str | None, etree._Element | None]] = [(None, paragraph.properties)]
        at = paragraph.style
        for style in self.chain(paragraph.style):
            sources.append((at, style.paragraph))
            at = style.based_on
        for name, properties in sources:
            numbers = get_child(properties, "numPr")
            if numbers is None:
                continue
            place = get_value(numbers, "ilvl") if place is None else place
            if ident is None and (ident := get_value(numbers, "numId")) is not None:
                styled = name
        if ident is None or ident == "0":
            return None
        level = self.numbering.find_level(ident, styled)
        if level is None:
            level = int(place) if place is not None and place.isdecimal() and len(place) == 1 else 0
        return ident, level

    # Runs

    def read_runs(self, element: etree._Element, paragraph: _Paragraph) -> None:
        """Read the runs in an element."""
        for child in element:
            name = get_name(child)
            if name == "r":
                self.read_run(child, paragraph)
            elif name == "sdt":
                mark, is_empty = _read_control(child)
                if is_empty:
                    self.left_out.unread["empty form fields"] += 1
                elif mark is not None:
                    paragraph.pieces.append(Piece(mark))
                else:
                    self.read_runs(child, paragraph)
            elif name in _WRAPPERS:
                self.read_runs(child, paragraph)
            elif name in _DELETED:
                self.left_out.add_struck(_all_text(child))
            elif name == "AlternateContent":
                self.read_runs(_choose(child), paragraph)
            elif name in ("oMath", "oMathPara"):
                paragraph.pieces.append(Piece(write_formula(child)))
            elif name and name not in _SILENT:
                self.left_out.unread[f"<{name}>"] += 1

    def read_run(self, element: etree._Element, paragraph: _Paragraph) -> None:
        """Read a run: words of one form."""
        properties = get_child(element, "rPr")
        pieces = list(self.read_content(element, properties, paragraph))
        text = "".join(pieces)
        if not text:
            return
        if self.is_on("strike", properties, paragraph) or self.is_on("dstrike", properties, paragraph):
            self.left_out.add_struck(text)
        elif self.is_hidden(properties, paragraph):
            self.left_out.add_hidden(text)
        else:
            for each in self.fields:
                each.result = True
            shift = self.find_shift(properties, paragraph)
            paragraph.pieces.append(Piece(text, self.is_on("b", properties, paragraph), shift))

    def read_content(
        self, element: etree._Element, properties: etree._Element | None, paragraph: _Paragraph
    ) -> Iterator[str]:
        """Yield the words in a run."""
        for child in element:
            name = get_name(child)
            if name == "fldChar":
                yield from self.read_field(child)
            elif name == "instrText":
                if self.fields:
                    self.fields[-1].instruction += child.text or ""
            elif any(not each.separated for each in self.fields) or name in _SILENT:
                continue
            elif name == "t":
                yield self.read_symbols(child.text or "", properties)
            elif name == "sym":
                code = get_attribute(child, "char") or ""
                font = (get_attribute(child, "font") or "").lower()
                yield self.read_symbol(int(code, 16), font) if re.fullmatch("[0-9A-Fa-f]{2,5}", code) else ""
            elif name in ("tab", "ptab"):
                yield " "
            elif name in ("br", "cr"):
                yield "\n"
            elif name == "noBreakHyphen":
                yield "-"
            elif name == "delText":
                self.left_out.add_struck(child.text or "")
            elif name in ("footnoteReference", "endnoteReference"):
                yield self.read_note(child, name.removesuffix("Reference"))
            elif name == "commentReference":
                self.left_out.comments += 1
            elif name == "ruby":
                base = get_child(child, "rubyBase")
                if base is not None:
                    self.read_runs(base, paragraph)
            elif name == "AlternateContent":
                yield from self.read_content(_choose(child), properties, paragraph)
            elif name in ("drawing", "pict", "object"):
                self.read_drawing(child, paragraph)
            else:
                self.left_out.unread[f"<{name}>"] += 1

    def read_note(self, element: etree._Element, kind: str) -> str:
        """Read the reference to a note: its mark, unless that follows as words."""
        number = sum(each == kind for each, _, _ in self.notes) + 1
        mark = (
            ""
            if is_true(get_attribute(element, "customMarkFollows"))
            else raise_text(self.numbering.write(number, "lowerRoman" if kind == "endnote" else "decimal"))
        )
        self.notes.append((kind, get_attribute(element, "id") or "", mark))
        return mark

    def find_whole_fields(self, root: etree._Element) -> None:
        """Find the fields with an end. One without would take all the text after it for its instruction."""
        started: list[etree._Element] = []
        for each in root.iter("{*}fldChar"):
            kind = get_attribute(each, "fldCharType")
            if kind == "begin":
                started.append(each)
            elif kind == "end" and started:
                self.whole_fields.add(started.pop())
        if started:
            self.left_out.unread["fields without an end"] += len(started)

    def read_field(self, element: etree._Element) -> Iterator[str]:
        """Follow the start, middle and end of a field. Yield the value of one of a form."""
        kind = get_attribute(element, "fldCharType")
        if kind == "begin" and element in self.whole_fields:
            self.fields.append(_Field(get_child(element, "ffData")))
        elif kind == "separate" and self.fields:
            self.fields[-1].separated = True
        elif kind == "end" and self.fields:
            ended = self.fields.pop()
            words = ended.instruction.split()
            name = words[0].upper() if words else ""
            if any(not each.separated for each in self.fields):
                return
            if name in ("LISTNUM", "AUTONUM", "AUTONUMLGL", "AUTONUMOUT") and not ended.result:
                self.left_out.unread[f"{name} fields"] += 1
            elif not ended.result and ended.data is not None:
                yield _read_form_field(ended.data)

    def read_drawing(self, element: etree._Element, paragraph: _Paragraph) -> None:
        """Note the text boxes in a drawing, and count what else it has."""
        names = {get_name(each) for each in element.iter()}
        properties = next((each for each in element.iter() if get_name(each) == "docPr"), None)
        boxes = [each for each in element.iter() if get_name(each) == "txbxContent"]
        if properties is not None and is_true(get_attribute(properties, "hidden")):
            self.left_out.add_hidden(" ".join(map(_all_text, boxes)))
            return
        # A text box within another one is read with that one.
        inner = {each for box in boxes for each in box.iterdescendants() if get_name(each) == "txbxContent"}
        paragraph.boxes += (box for box in boxes if box not in inner)
        if get_name(element) == "object":
            self.left_out.unread["embedded objects"] += 1
        elif "chart" in names:
            self.left_out.unread["charts"] += 1
        elif "relIds" in names:
            self.left_out.unread["diagrams"] += 1
        elif names & {"pic", "imagedata"} and "decorative" not in names:
            self.left_out.unread["pictures"] += 1
        elif not boxes and "textpath" in names:
            self.left_out.unread["drawn words"] += 1

    def read_symbols(self, text: str, properties: etree._Element | None) -> str:
        """Read text, with the characters of fonts of symbols in it."""
        if _PRIVATE.search(text) is None:
            return text
        fonts = get_child(properties, "rFonts")
        font = (get_attribute(fonts, "ascii") or "").lower() if fonts is not None else ""
        return _PRIVATE.sub(lambda match: self.read_symbol(ord(match[0]), font), text)

    def read_symbol(self, code: int, font: str) -> str:
        """Read a character of a font."""
        symbols = _SYMBOLS.get(font)
        if symbols is None and not 0xF000 <= code < 0xF100:
            return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else ""
        plain = code & 0xFF
        found = (symbols or {}).get(plain)
        if found is None and font == "symbol" and 0x20 <= plain < 0x7F:
            found = chr(plain)  # digits and signs
        if found is None:
            self.left_out.unread[f"symbols of the font {quoted(font or 'unknown')}"] += 1
        return found or ""

    # Properties

    def _find(self, name: str, run_style: str | None, paragraph_style: str | None) -> etree._Element | None:
        """Find a property of runs in their styles."""
        for style in (*self.chain(run_style), *self.chain(paragraph_style)):
            if (found := get_child(style.run, name)) is not None:
                return found
        return get_child(self.usual, name)

    def get(self, name: str, properties: etree._Element | None, paragraph: _Paragraph) -> etree._Element | None:
        """Get a property of a run: its own, or that of its styles."""
        own = get_child(properties, name)
        return own if own is not None else self.find(name, get_value(properties, "rStyle"), paragraph.style)

    def is_on(self, name: str, properties: etree._Element | None, paragraph: _Paragraph) -> bool:
        if name == "b" and get_child(properties, "b") is None:
            return is_on(self.find("b", get_value(properties, "rStyle"), None))  # not that of headings
        return is_on(self.get(name, properties, paragraph))

    def is_hidden(self, properties: etree._Element | None, paragraph: _Paragraph) -> bool:
        """Whether a run is not shown: hidden, tiny, or white on white."""
        if self.is_on("vanish", properties, paragraph):
            return True
        size = get_value(properties, "sz")
        if size is not None and size.isdecimal() and int(size) <= _TINY:
            return True
        color = self.get("color", properties, paragraph)
        if self.within or color is None or (get_attribute(color, "val") or "").upper() != "FFFFFF":
            return False
        behind = [self.get("shd", properties, paragraph), get_child(paragraph.properties, "shd")]
        behind += [get_child(style.paragraph, "shd") for style in self.chain(paragraph.style)]
        return all(each is None for each in (*behind, self.get("highlight", properties, paragraph)))

    def find_shift(self, properties: etree._Element | None, paragraph: _Paragraph) -> str:
        """Find whether a run is raised or lowered."""
        align = self.get("vertAlign", properties, paragraph)
        if align is not None:
            value = get_attribute(align, "val") or ""
            return value if value in ("superscript", "subscript") else ""
        moved = get_value(properties, "position") or "0"
        points = int(moved) if re.fullmatch(r"-?\d{1,4}", moved) else 0
        return "superscript" if points >= _RAISED_BY else "subscript" if points <= -_RAISED_BY else ""

    # Tables

    def read_table(self, element: etree._Element) -> Iterator[Block]:
        """Yield a table, and then those in its cells. A table of one cell is a frame around its content."""
        self.within += 1
        rows: list[list[str]] = []
        following: list[Block] = []
        above: list[str] = []
        cells = 0
        content: list[Block] = []
        for row in _find(element, "tr"):
            properties = get_child(row, "trPr")
            if get_child(properties, "del") is not None:
                self.left_out.add_struck(_all_text(row))
                continue
            if is_on(get_child(properties, "hidden")):
                self.left_out.add_hidden(_all_text(row))
                continue
            line = [""] * _count(properties, "gridBefore", 0)
            for cell in _find(row, "tc"):
                cells += 1
                own = get_child(cell, "tcPr")
                content = [] if get_child(own, "cellDel") is not None else list(self.blocks(cell))
                if get_child(own, "cellDel") is not None:
                    self.left_out.add_struck(_all_text(cell))
                tables = [block for block in content if block["kind"] == "table"]
                text = " ".join(_to_lines(block for block in content if block["kind"] != "table"))
                following += tables
                merge = get_child(own, "vMerge")
                if merge is not None and get_attribute(merge, "val") != "restart" and len(line) < len(above):
                    text = above[len(line)]
                line += [text] * _count(own, "gridSpan", 1)
            rows.append(line)
            above = line
        self.within -= 1
        if cells == 1:
            yield from content
            return
        yield {"kind": "table", "rows": rows}
        yield from following


def _to_lines(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield the lines of blocks, for a cell or a note."""
    for block in blocks:
        if "items" in block:
            yield from (f"{mark} {text}" for _, mark, text in block["items"])
        elif "rows" in block:
            yield from (" | ".join(row) for row in block["rows"])
        else:
            yield block["text"].replace("\n", " ")


def _read_control(element: etree._Element) -> tuple[str | None, bool]:
    """Read a content control: the mark of a box to check, and whether it only shows what to enter."""
    properties = get_child(element, "sdtPr")
    box = get_child(properties, "checkbox")
    if box is not None:
        checked = get_child(box, "checked")
        return CHECKED if checked is not None and is_on(checked) else UNCHECKED, False
    return None, is_on(get_child(properties, "showingPlcHdr"))


def _read_form_field(data: etree._Element) -> str:
    """Read the value of a field of a form of earlier versions."""
    if (box := get_child(data, "checkBox")) is not None:
        checked = get_child(box, "checked")
        return CHECKED if is_on(checked if checked is not None else get_child(box, "default")) else UNCHECKED
    if (choices := get_child(data, "ddList")) is not None:
        entries = [get_attribute(each, "val") or "" for each in choices if get_name(each) == "listEntry"]
        chosen = get_value(choices, "result") or get_value(choices, "default") or "0"
        return entries[int(chosen)] if chosen.isdecimal() and int(chosen) < len(entries) else ""
    return get_value(get_child(data, "textInput"), "default") or ""


def _choose(element: etree._Element) -> etree._Element:
    """Choose a form of content that has several: the first one, as newer versions of Word do."""
    return next((each for each in element if get_name(each) == "Choice"), element[0] if len(element) else element)


def _read_styles(
    root: etree._Element | None,
) -> tuple[Mapping[str, _Style], str | None, etree._Element | None]:
    """Read the styles by identifier, the one of paragraphs without any, and the usual properties of runs."""
    styles: dict[str, _Style] = {}
    default: str | None = None
    usual: etree._Element | None = None
    for each in root if root is not None else ():
        if get_name(each) == "docDefaults":
            usual = get_child(get_child(each, "rPrDefault"), "rPr")
        if get_name(each) != "style":
            continue
        ident = get_attribute(each, "styleId") or ""
        styles[ident] = _Style(
            get_value(each, "name") or "", get_value(each, "basedOn"), get_child(each, "pPr"), get_child(each, "rPr")
        )
        if get_attribute(each, "type") == "paragraph" and is_true(get_attribute(each, "default")):
            default = ident
    return styles, default, usual


def _find(element: etree._Element, name: str) -> Iterator[etree._Element]:
    """Yield the rows of a table or the cells of a row, also those in content controls."""
    for child in element:
        own = get_name(child)
        if own == name:
            yield child
        elif own == "sdt" or own in _WRAPPERS:
            yield from _find(child, name)


def _count(element: etree._Element | None, name: str, default: int) -> int:
    value = get_value(element, name) or ""
    return min(int(value), 100) if value.isdecimal() and len(value) < 4 else default


def _all_text(element: etree._Element) -> str:
    words = {"t", "delText"}
    return "".join(
        (each.text or "") if get_name(each) in words else " " * (get_name(each) == "p") for each in element.iter()
    )


def main() -> None:
    """Run the process."""
    office_package.run(convert, "word/document.xml", "a Word document (docx)")
