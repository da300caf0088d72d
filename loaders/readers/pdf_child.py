"""The child process of `loaders.readers.pdf`: a task that reads a PDF by the places of its characters."""

from __future__ import annotations

import ctypes
import json
import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

import pypdfium2
from pypdfium2 import raw

from kg.processes import task
from loaders.readers.page_layout import Glyph, Page, PageLine, build_page, to_lines
from loaders.readers.page_picture import draw
from loaders.readers.pdf_forms import read_annotations
from loaders.readers.ruled_tables import MARKS, Rotated, Rule, find_tables, without_struck, write_tables

_HYPHENS: Final = frozenset({0x02, 0xAD, 0xFFFE})
"""What PDFium returns for a hyphen at the end of a line, and the soft hyphen."""
_LIGATED: Final = frozenset("fijlt")
"""Letters after the first one of a ligature, such as ``ffi`` and ``st``."""
_TURN: Final = math.pi / 2
_UPRIGHT: Final = 0.09
"""Maximum angle of a character that is not rotated, in radians."""
_MOST_PAGES: Final = 20_000
_MOST_CHARACTERS: Final = 200_000
"""Maximum characters of a page."""
_MOST_OBJECTS: Final = 100_000
_MOST_SEGMENTS: Final = 20_000
_DEEPEST: Final = 8
_INVISIBLE: Final = frozenset({raw.FPDF_TEXTRENDERMODE_INVISIBLE, raw.FPDF_TEXTRENDERMODE_CLIP})
_THIN: Final = 2.5
"""Maximum width of a filled rectangle that is a rule."""
_SAMPLE: Final = 16
"""One of this many characters is asked for its Unicode value."""
_UNKNOWN: Final = 0.3
"""Share of characters without a Unicode value from which the text is unreadable."""

_LEAST_HIDDEN: Final = 2
"""Minimum characters in a row that the page does not show. A single one may lack a form in its font."""
_TINY: Final = 0.2
"""Maximum height of characters that nobody reads, in usual heights."""
_LAYER: Final = 0.9
"""Minimum share of invisible characters on a page whose text is a layer over an image, from OCR."""
_LAYER_OVER: Final = 0.5
"""Minimum share of the characters of such a layer where the page shows something."""

_NO_TEXT: Final = "The pages have no text. If they are images, run OCR first, for example with OCRmyPDF."
_NO_UNICODE: Final = (
    "Its fonts do not map their glyphs to characters. Run OCR first, for example with OCRmyPDF and --force-ocr."
)
_NO_VISIBLE: Final = (
    "The pages do not show its text: it is invisible, covered, clipped or outside of them. Run OCR to read them."
)
_ERRORS: Final = {
    raw.FPDF_ERR_PASSWORD: "It is encrypted and needs a password. Remove it first, for example with qpdf --decrypt.",
    raw.FPDF_ERR_SECURITY: "It is encrypted in an unknown way. Remove the encryption first.",
    raw.FPDF_ERR_FORMAT: "It is damaged or not a PDF.",
}


_Matrix = tuple[float, float, float, float, float, float]


@dataclass(slots=True)
class _Drawn:
    """The objects of a page: its paths, with the matrices that place them, the size of its images, invisible text."""

    paths: list[tuple[Any, _Matrix]] = field(default_factory=list)
    image_pixels: int = 0
    invisible: set[int | None] = field(default_factory=set)
    """Addresses of the objects of text that is not drawn."""


class _UnreadableError(Exception):
    """The PDF has no text to read. The message is the cause."""


@dataclass(slots=True)
class _Report:
    """Pages and characters that were not read."""

    pages: int = 0
    without_text: list[int] = field(default_factory=list)
    unreadable: list[int] = field(default_factory=list)
    crowded: list[int] = field(default_factory=list)
    """Pages left out, since they have too many characters."""
    rotated: Counter[int] = field(default_factory=Counter)
    """Characters left out on each page, since they are rotated."""
    hidden: Counter[int] = field(default_factory=Counter)
    """Characters left out on each page, since the page does not show them."""
    struck: Counter[int] = field(default_factory=Counter)
    """Characters left out on each page, since they are struck out."""
    layers: list[int] = field(default_factory=list)
    """Pages whose text is invisible, over an image that shows it."""
    unread: Counter[str] = field(default_factory=Counter)
    """Annotations that are not read, by kind."""
    not_drawn: list[int] = field(default_factory=list)
    """Pages that were not searched for hidden characters."""
    characters: int = 0
    unknown: int = 0


def work(settings: dict[str, Any], data: bytes) -> dict[str, Any]:
    """Read the PDF in `data` into the folder of `settings` and return the reply."""
    report = _Report()
    try:
        pages = list(_read(data, report))
    except _UnreadableError as error:
        return {"kind": "invalid", "message": str(error)}
    text = "\n\f".join("\n".join(line.text for line in lines) for lines in pages)
    encoded = text.encode("utf-8", "replace")
    if len(encoded) > settings["max_bytes"]:
        return {"kind": "size", "message": f"its text has more than {settings['max_bytes'] >> 20} MiB"}
    folder = Path(settings["folder"])
    (folder / settings["text"]).write_bytes(encoded)
    found = {
        "pages": report.pages,
        "without_text": report.without_text,
        "unreadable": report.unreadable,
        "crowded": report.crowded,
        "rotated": sorted((page, count) for page, count in report.rotated.items() if count),
        "hidden": sorted((page, count) for page, count in report.hidden.items() if count),
        "struck": sorted((page, count) for page, count in report.struck.items() if count),
        "layers": report.layers,
        "not_drawn": report.not_drawn,
        "disputed": _list_disputed(pages),
        "unread": report.unread,
    }
    (folder / settings["report"]).write_text(json.dumps(found))
    return {}


def _list_disputed(pages: Sequence[Sequence[PageLine]]) -> list[tuple[int, int, str]]:
    """List the lines of the text, from 1, that the file has in another order, with their pages."""
    found: list[tuple[int, int, str]] = []
    number = 0
    for page, lines in enumerate(pages, 1):
        found += ((number + place, page, line.disputed) for place, line in enumerate(lines, 1) if line.disputed)
        number += max(1, len(lines))
    return found


def _read(data: bytes, report: _Report) -> Iterator[list[PageLine]]:
    """Yield the lines of each page. Raises _UnreadableError."""
    try:
        document = pypdfium2.PdfDocument(data)
        report.pages = len(document)
        document.init_forms()
    except pypdfium2.PdfiumError as error:
        code = getattr(error, "err_code", None)
        raise _UnreadableError(_ERRORS.get(code, f"PDFium cannot open it ({error}).")) from None
    if report.pages > _MOST_PAGES:
        raise _UnreadableError(f"It has {report.pages:,} pages. At most {_MOST_PAGES:,} are read.")
    pages = [_read_page(document, number, report) for number in range(report.pages)]
    if report.characters == 0:
        raise _UnreadableError(_explain_empty(report))
    if report.unknown > _UNKNOWN * (report.characters // _SAMPLE + 1):
        raise _UnreadableError(_NO_UNICODE)
    yield from to_lines(pages)


def _explain_empty(report: _Report) -> str:
    if report.crowded:
        return f"Its pages have more than {_MOST_CHARACTERS:,} characters each. Print it to a PDF with smaller pages."
    if len(report.unreadable) == report.pages:
        return "It is damaged: no page can be read."
    return _NO_VISIBLE if report.hidden.total() else _NO_TEXT


def _read_page(document: Any, number: int, report: _Report) -> Page:
    """Read a page."""
    page = text = None
    try:
        page = document[number]
        text = page.get_textpage()
        count = raw.FPDFText_CountChars(text)
        if count > _MOST_CHARACTERS:
            report.crowded.append(number + 1)
            return Page()
        drawn = _read_objects(page)
        found = _read_characters(page, text.raw, max(count, 0), number + 1, report)
        found = _without_hidden(found, page, text.raw, drawn, number + 1, report)
        annotations = read_annotations(page, document.formenv)
        report.unread += annotations.unread
        report.characters += len(annotations.characters)
        found += [_Character(-1, each.text, 0, *each[1:5], each.left, each.base) for each in annotations.characters]
        glyphs, rotated, turns = _split_turns(found)
        across, down = _read_rules(drawn.paths, turns)
        if not turns:
            across += (Rule(*line) for line in annotations.lines)
        printed = sum(glyph.text != " " for glyph in glyphs)
        glyphs = without_struck(glyphs, across)
        report.struck[number + 1] += printed - sum(glyph.text != " " for glyph in glyphs)
        tables = find_tables(across, down) if glyphs else []
    except pypdfium2.PdfiumError:
        report.unreadable.append(number + 1)
        return Page()
    finally:
        if text is not None:
            text.close()
        if page is not None:
            page.close()
    if not any(glyph.text != " " for glyph in glyphs):
        if not report.hidden[number + 1] and not report.struck[number + 1]:
            report.without_text.append(number + 1)
        return Page()
    written = write_tables(tables, glyphs, rotated)
    report.rotated[number + 1] += sum(each.glyph.text != " " for each in written.rotated)
    return build_page(written.glyphs, written.blocks)


class _Character(NamedTuple):
    """A character in the coordinates of its page. `turn`: its rotation in quarters, counterclockwise."""

    place: int
    text: str
    turn: int
    left: float
    right: float
    bottom: float
    top: float
    x: float
    y: float


def _read_characters(page: Any, text: Any, count: int, number: int, report: _Report) -> list[_Character]:
    """Read the characters of a page. Those at other angles than quarters, or outside of the page, are left out."""
    box, x, y = raw.FS_RECTF(), ctypes.c_double(), ctypes.c_double()
    found: list[_Character] = []
    left, bottom, right, top = page.get_bbox()
    for index in range(count):
        if raw.FPDFText_IsGenerated(text, index) == 1:
            continue
        character = _to_text(raw.FPDFText_GetUnicode(text, index))
        if not character or not raw.FPDFText_GetLooseCharBox(text, index, box):
            continue
        if not raw.FPDFText_GetCharOrigin(text, index, x, y):
            continue
        values = (box.left, box.right, box.bottom, box.top, x.value, y.value)
        if not math.isfinite(sum(values)) or not (
            left - 1 <= x.value <= right + 1 and bottom - 1 <= y.value <= top + 1
        ):
            report.hidden[number] += character != " "
            continue
        if index % _SAMPLE == 0:
            report.unknown += raw.FPDFText_HasUnicodeMapError(text, index) == 1
        # The letters of a ligature have one place. Printed twice, a character is one only.
        if found and character in _LIGATED and (found[-1].place, found[-1][3:]) == (index - 1, values):
            found[-1] = found[-1]._replace(place=index, text=found[-1].text + character)
            continue
        angle = raw.FPDFText_GetCharAngle(text, index)
        turn = round(angle / _TURN)  # clockwise
        if abs(angle - turn * _TURN) <= _UPRIGHT:
            found.append(_Character(index, character, -turn % 4, *values))
        else:
            report.characters += character != " "
            report.rotated[number] += character != " "
    return found


def _without_hidden(
    found: Sequence[_Character], page: Any, text: Any, drawn: _Drawn, number: int, report: _Report
) -> list[_Character]:
    """Remove the characters that the page does not show. Text from OCR is kept: it is invisible over its image."""
    printed = [each for each in found if each.text != " "]
    if not printed:
        return list(found)
    usual = median(each.top - each.bottom if each.turn % 2 == 0 else each.right - each.left for each in printed)
    picture = draw(page, page.get_bbox(), max(usual, 0.1), drawn.image_pixels)
    if picture is None:
        report.not_drawn.append(number)
    shown = {
        each.place for each in printed if picture is None or picture.shows(each.left, each.bottom, each.right, each.top)
    }
    hidden: set[int] = set()
    run: list[int] = []
    for each in printed:
        if each.place not in shown or max(each.top - each.bottom, each.right - each.left) < _TINY * usual:
            run.append(each.place)
            continue
        hidden.update(run if len(run) >= _LEAST_HIDDEN else ())
        run = []
    hidden.update(run if len(run) >= _LEAST_HIDDEN else ())
    if drawn.invisible:
        invisible = {
            each.place
            for each in printed
            if ctypes.cast(raw.FPDFText_GetTextObject(text, each.place), ctypes.c_void_p).value in drawn.invisible
        }
        layer = len(invisible) >= _LAYER * len(printed) and len(invisible & shown) >= _LAYER_OVER * len(invisible)
        hidden = hidden - invisible if layer else hidden | invisible
        if layer:
            report.layers.append(number)
    report.hidden[number] += len(hidden)
    report.characters += len(printed) - len(hidden)
    return [each for each in found if each.place not in hidden]


def _split_turns(found: Sequence[_Character]) -> tuple[list[Glyph], list[Rotated], int]:
    """Split characters into those with the rotation of most, the others, and that rotation in quarters."""
    turns = Counter(each.turn for each in found if each.text != " ")
    usual = max(turns, key=turns.__getitem__, default=0)
    glyphs: list[Glyph] = []
    rotated: list[Rotated] = []
    for each in found:
        if each.turn == usual == 0:
            if each.top != each.bottom:
                left, right = min(each.left, each.right), max(each.left, each.right)
                glyphs.append(Glyph(each.text, left, right, each.y, abs(each.top - each.bottom), each.place))
            continue
        one, other = _turn(each.left, each.bottom, each.turn), _turn(each.right, each.top, each.turn)
        height = abs(one[1] - other[1])
        if not height:
            continue
        base = _turn(each.x, each.y, each.turn)[1]
        glyph = Glyph(each.text, min(one[0], other[0]), max(one[0], other[0]), base, height, each.place)
        if each.turn == usual:
            glyphs.append(glyph)
        else:
            middle = _turn((each.left + each.right) / 2, (each.bottom + each.top) / 2, usual)
            rotated.append(Rotated(*middle, glyph))
    return glyphs, rotated, usual


@cache
def _to_text(code: int) -> str:
    """The text of a character: a space for white space, letters for a ligature, nothing for a control character."""
    if code in _HYPHENS:
        return "-"
    if not 0x20 <= code < 0x110000 or 0xD800 <= code < 0xE000:
        return " " if code in (9, 10, 13) else ""
    character = chr(code)
    if character in MARKS or code & 0xFFFE == 0xFFFE or 0x7F <= code < 0xA0:
        return ""
    if character.isspace():
        return " "
    if 0xFB00 <= code <= 0xFB06:
        return unicodedata.normalize("NFKC", character)
    return "" if unicodedata.category(character) == "Cf" else character


def _turn(x: float, y: float, quarters: int) -> tuple[float, float]:
    """Turn a point clockwise, so that text that runs up runs to the right."""
    for _ in range(quarters):
        x, y = y, -x
    return x, y


def _read_rules(paths: Iterable[tuple[Any, _Matrix]], turns: int) -> tuple[list[Rule], list[Rule]]:
    """Read the ruling lines of a page: across and down."""
    across: list[Rule] = []
    down: list[Rule] = []
    for x0, y0, x1, y1 in _read_segments(paths):
        one, other = _turn(x0, y0, turns), _turn(x1, y1, turns)
        (left, right), (bottom, top) = sorted((one[0], other[0])), sorted((one[1], other[1]))
        if not all(map(math.isfinite, (left, right, bottom, top))):
            continue
        if top - bottom <= 1 < right - left:
            across.append(Rule((top + bottom) / 2, left, right))
        elif right - left <= 1 < top - bottom:
            down.append(Rule((left + right) / 2, bottom, top))
    return across, down


def _read_segments(paths: Iterable[tuple[Any, _Matrix]]) -> Iterator[tuple[float, float, float, float]]:
    """Yield the straight lines of paths. Of a thin filled rectangle it is the middle."""
    left = _MOST_SEGMENTS
    for item, matrix in paths:
        fill, stroke = ctypes.c_int(), ctypes.c_int()
        if not raw.FPDFPath_GetDrawMode(item, fill, stroke) or not (fill.value or stroke.value):
            continue
        count = raw.FPDFPath_CountSegments(item)
        left -= max(count, 0)
        if left < 0:
            return
        lines = list(_read_path(item, count, matrix))
        if stroke.value:
            yield from lines
            continue
        xs = [value for line in lines for value in line[::2]]
        ys = [value for line in lines for value in line[1::2]]
        if not xs:
            continue
        if max(ys) - min(ys) <= _THIN:
            middle = (max(ys) + min(ys)) / 2
            yield min(xs), middle, max(xs), middle
        elif max(xs) - min(xs) <= _THIN:
            middle = (max(xs) + min(xs)) / 2
            yield middle, min(ys), middle, max(ys)


def _read_objects(page: Any) -> _Drawn:
    """Read the objects of a page and of the forms in it."""
    drawn = _Drawn()
    whole: _Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
    count = raw.FPDFPage_CountObjects(page.raw)
    waiting = [(raw.FPDFPage_GetObject(page.raw, index), whole, 0) for index in range(min(count, _MOST_OBJECTS))]
    width, height, own = ctypes.c_uint(), ctypes.c_uint(), raw.FS_MATRIX()
    seen = 0
    while waiting and seen < _MOST_OBJECTS:
        item, matrix, depth = waiting.pop()
        seen += 1
        kind = raw.FPDFPageObj_GetType(item)
        if kind == raw.FPDF_PAGEOBJ_TEXT:
            if raw.FPDFTextObj_GetTextRenderMode(item) in _INVISIBLE:
                drawn.invisible.add(ctypes.cast(item, ctypes.c_void_p).value)
        elif kind == raw.FPDF_PAGEOBJ_IMAGE:
            if raw.FPDFImageObj_GetImagePixelSize(item, width, height):
                drawn.image_pixels += width.value * height.value
        elif kind in (raw.FPDF_PAGEOBJ_PATH, raw.FPDF_PAGEOBJ_FORM) and raw.FPDFPageObj_GetMatrix(item, own):
            placed = _multiply((own.a, own.b, own.c, own.d, own.e, own.f), matrix)
            if kind == raw.FPDF_PAGEOBJ_PATH:
                drawn.paths.append((item, placed))
            elif depth < _DEEPEST:
                inner = min(raw.FPDFFormObj_CountObjects(item), _MOST_OBJECTS)
                waiting += [(raw.FPDFFormObj_GetObject(item, index), placed, depth + 1) for index in range(inner)]
    return drawn


def _multiply(one: _Matrix, other: _Matrix) -> _Matrix:
    a, b, c, d, e, f = one
    p, q, r, s, t, u = other
    return a * p + b * r, a * q + b * s, c * p + d * r, c * q + d * s, e * p + f * r + t, e * q + f * s + u


def _read_path(item: Any, count: int, matrix: _Matrix) -> Iterator[tuple[float, float, float, float]]:
    a, b, c, d, e, f = matrix
    x, y = ctypes.c_float(), ctypes.c_float()
    start = last = (0.0, 0.0)
    for index in range(count):
        segment = raw.FPDFPath_GetPathSegment(item, index)
        if not raw.FPDFPathSegment_GetPoint(segment, x, y):
            continue
        point = (a * x.value + c * y.value + e, b * x.value + d * y.value + f)
        kind = raw.FPDFPathSegment_GetType(segment)
        if kind == raw.FPDF_SEGMENT_MOVETO:
            start = point
        elif kind == raw.FPDF_SEGMENT_LINETO:
            yield *last, *point
        last = point
        if raw.FPDFPathSegment_GetClose(segment) and last != start:
            yield *last, *start
            last = start


def main() -> None:
    """Run the process."""
    task.main(work)
