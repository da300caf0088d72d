"""The child process of `loaders.zoning.readers.pdf`: a task that reads a PDF by the places of its characters."""

from __future__ import annotations

import ctypes
import json
import math
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pypdfium2
from pypdfium2 import raw

from kg.processes import task
from loaders.zoning.readers.page_layout import Glyph, Page, build_page, to_lines
from loaders.zoning.readers.ruled_tables import MARKS, Rotated, Rule, Table, find_tables, write_tables

_HYPHENS: Final = frozenset({0x02, 0xAD, 0xFFFE})
"""What PDFium returns for a hyphen at the end of a line, and the soft hyphen."""
_TURN: Final = math.pi / 2
_UPRIGHT: Final = 0.09
"""Maximum angle of a character that is not rotated, in radians."""
_MOST_PAGES: Final = 20_000
_MOST_CHARACTERS: Final = 200_000
"""Maximum characters of a page."""
_MOST_OBJECTS: Final = 100_000
_MOST_SEGMENTS: Final = 20_000
_DEEPEST: Final = 8
_THIN: Final = 2.5
"""Maximum width of a filled rectangle that is a rule."""
_SAMPLE: Final = 16
"""One of this many characters is asked for its Unicode value."""
_UNKNOWN: Final = 0.3
"""Share of characters without a Unicode value from which the text is unreadable."""

_NO_TEXT: Final = "The pages are images without text. Run OCR first, for example with OCRmyPDF."
_NO_UNICODE: Final = (
    "Its fonts do not map their glyphs to characters. Run OCR first, for example with OCRmyPDF and --force-ocr."
)
_ERRORS: Final = {
    raw.FPDF_ERR_PASSWORD: "It is encrypted and needs a password. Remove it first, for example with qpdf --decrypt.",
    raw.FPDF_ERR_SECURITY: "It is encrypted in an unknown way. Remove the encryption first.",
    raw.FPDF_ERR_FORMAT: "It is damaged or not a PDF.",
}


class _UnreadableError(Exception):
    """The PDF has no text to read. The message is the cause."""


@dataclass(slots=True)
class _Report:
    """Pages and characters that were not read."""

    pages: int = 0
    without_text: list[int] = field(default_factory=list)
    unreadable: list[int] = field(default_factory=list)
    rotated: Counter[int] = field(default_factory=Counter)
    """Characters left out on each page, since they are rotated."""
    characters: int = 0
    unknown: int = 0


def work(settings: dict[str, Any], data: bytes) -> dict[str, Any]:
    """Read the PDF in `data` into the folder of `settings` and return the reply."""
    report = _Report()
    try:
        text = "\n\f".join("\n".join(lines) for lines in _read(data, report))
    except _UnreadableError as error:
        return {"kind": "invalid", "message": str(error)}
    encoded = text.encode("utf-8", "replace")
    if len(encoded) > settings["max_bytes"]:
        return {"kind": "size", "message": f"its text has more than {settings['max_bytes'] >> 20} MiB"}
    folder = Path(settings["folder"])
    (folder / settings["text"]).write_bytes(encoded)
    found = {
        "pages": report.pages,
        "without_text": report.without_text,
        "unreadable": report.unreadable,
        "rotated": sorted((page, count) for page, count in report.rotated.items() if count),
    }
    (folder / settings["report"]).write_text(json.dumps(found))
    return {}


def _read(data: bytes, report: _Report) -> Iterator[list[str]]:
    """Yield the lines of each page. Raises _UnreadableError."""
    try:
        document = pypdfium2.PdfDocument(data)
        report.pages = len(document)
    except pypdfium2.PdfiumError as error:
        code = getattr(error, "err_code", None)
        raise _UnreadableError(_ERRORS.get(code, f"PDFium cannot open it ({error}).")) from None
    if report.pages > _MOST_PAGES:
        raise _UnreadableError(f"It has {report.pages:,} pages. At most {_MOST_PAGES:,} are read.")
    pages: list[Page] = []
    above: Table | None = None
    for number in range(report.pages):
        page, above = _read_page(document, number, above, report)
        pages.append(page)
    if report.characters == 0:
        failed = len(report.unreadable) == report.pages
        raise _UnreadableError("It is damaged: no page can be read." if failed else _NO_TEXT)
    if report.unknown > _UNKNOWN * (report.characters // _SAMPLE + 1):
        raise _UnreadableError(_NO_UNICODE)
    yield from to_lines(pages)


def _read_page(document: Any, number: int, above: Table | None, report: _Report) -> tuple[Page, Table | None]:
    """Read a page. `above` and the value returned are the last table before and after it."""
    page = text = None
    try:
        page = document[number]
        text = page.get_textpage()
        glyphs, rotated, turns = _read_glyphs(page, text.raw, number + 1, report)
        tables = find_tables(*_read_rules(page, turns)) if glyphs else []
    except pypdfium2.PdfiumError:
        report.unreadable.append(number + 1)
        return Page(), None
    finally:
        if text is not None:
            text.close()
        if page is not None:
            page.close()
    if not any(glyph.text != " " for glyph in glyphs):
        report.without_text.append(number + 1)
        return Page(), above
    written = write_tables(tables, glyphs, rotated, above)
    report.rotated[number + 1] += sum(each.glyph.text != " " for each in written.rotated)
    return build_page(written.glyphs, written.blocks), written.last


def _read_glyphs(page: Any, text: Any, number: int, report: _Report) -> tuple[list[Glyph], list[Rotated], int]:
    """Read the characters of a page: those with the rotation of most, the others, and that rotation in quarters.

    Characters at other angles than quarters are left out.
    """
    count = raw.FPDFText_CountChars(text)
    if count > _MOST_CHARACTERS:
        raise _UnreadableError(f"Page {number} has {count:,} characters. At most {_MOST_CHARACTERS:,} are read.")
    box, x, y = raw.FS_RECTF(), ctypes.c_double(), ctypes.c_double()
    found: list[tuple[str, int, float, float, float, float, float, float]] = []
    turns: Counter[int] = Counter()
    left, bottom, right, top = page.get_bbox()
    for index in range(max(count, 0)):
        if raw.FPDFText_IsGenerated(text, index) == 1:
            continue
        character = _to_text(raw.FPDFText_GetUnicode(text, index))
        if not character or not raw.FPDFText_GetLooseCharBox(text, index, box):
            continue
        if not raw.FPDFText_GetCharOrigin(text, index, x, y):
            continue
        values = (box.left, box.right, box.bottom, box.top, x.value, y.value)
        if not all(map(math.isfinite, values)) or not (
            left - 1 <= x.value <= right + 1 and bottom - 1 <= y.value <= top + 1
        ):
            continue
        if index % _SAMPLE == 0:
            report.unknown += raw.FPDFText_HasUnicodeMapError(text, index) == 1
        report.characters += character != " "
        angle = raw.FPDFText_GetCharAngle(text, index)
        turn = round(angle / _TURN)  # clockwise
        if abs(angle - turn * _TURN) <= _UPRIGHT:
            turns[-turn % 4] += character != " "
            found.append((character, -turn % 4, *values))
        else:
            report.rotated[number] += character != " "
    usual = max(turns, key=turns.__getitem__, default=0)
    glyphs: list[Glyph] = []
    rotated: list[Rotated] = []
    for character, own, x0, x1, y0, y1, origin_x, origin_y in found:
        one, other = _turn(x0, y0, own), _turn(x1, y1, own)
        height = abs(one[1] - other[1])
        if not height:
            continue
        base = _turn(origin_x, origin_y, own)[1]
        glyph = Glyph(character, min(one[0], other[0]), max(one[0], other[0]), base, height)
        if own == usual:
            glyphs.append(glyph)
        else:
            rotated.append(Rotated(*_turn((x0 + x1) / 2, (y0 + y1) / 2, usual), glyph))
    return glyphs, rotated, usual


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


def _read_rules(page: Any, turns: int) -> tuple[list[Rule], list[Rule]]:
    """Read the ruling lines of a page: across and down."""
    across: list[Rule] = []
    down: list[Rule] = []
    for x0, y0, x1, y1 in _read_segments(page):
        one, other = _turn(x0, y0, turns), _turn(x1, y1, turns)
        (left, right), (bottom, top) = sorted((one[0], other[0])), sorted((one[1], other[1]))
        if not all(map(math.isfinite, (left, right, bottom, top))):
            continue
        if top - bottom <= 1 < right - left:
            across.append(Rule((top + bottom) / 2, left, right))
        elif right - left <= 1 < top - bottom:
            down.append(Rule((left + right) / 2, bottom, top))
    return across, down


_Matrix = tuple[float, float, float, float, float, float]


def _read_segments(page: Any) -> Iterator[tuple[float, float, float, float]]:
    """Yield the straight lines of the paths of a page. Of a thin filled rectangle it is the middle."""
    left = _MOST_SEGMENTS
    for item, matrix in _read_paths(page):
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


def _read_paths(page: Any) -> Iterator[tuple[Any, _Matrix]]:
    """Yield the path objects of a page and of the forms in it, with the matrix that places them on the page."""
    waiting: list[tuple[Any, _Matrix, int]] = []
    whole: _Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
    count = raw.FPDFPage_CountObjects(page.raw)
    waiting = [(raw.FPDFPage_GetObject(page.raw, index), whole, 0) for index in range(min(count, _MOST_OBJECTS))]
    seen = 0
    while waiting and seen < _MOST_OBJECTS:
        item, matrix, depth = waiting.pop()
        seen += 1
        kind = raw.FPDFPageObj_GetType(item)
        if kind not in (raw.FPDF_PAGEOBJ_PATH, raw.FPDF_PAGEOBJ_FORM):
            continue
        own = raw.FS_MATRIX()
        if not raw.FPDFPageObj_GetMatrix(item, own):
            continue
        placed = _multiply((own.a, own.b, own.c, own.d, own.e, own.f), matrix)
        if kind == raw.FPDF_PAGEOBJ_PATH:
            yield item, placed
        elif depth < _DEEPEST:
            inner = min(raw.FPDFFormObj_CountObjects(item), _MOST_OBJECTS)
            waiting += [(raw.FPDFFormObj_GetObject(item, index), placed, depth + 1) for index in range(inner)]


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
