"""Values of the fields of a form in a PDF, words that annotations strike out, and annotations that are not read."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from pypdfium2 import raw

from loaders.readers.inline import CHECKED, UNCHECKED

_UNSEEN: Final = raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW
_PASSWORD: Final = 1 << 13
_UNREAD: Final = {
    raw.FPDF_ANNOT_TEXT: "comments",
    raw.FPDF_ANNOT_CARET: "comments",
    raw.FPDF_ANNOT_FREETEXT: "text boxes over the pages",
    raw.FPDF_ANNOT_STAMP: "stamps",
    raw.FPDF_ANNOT_FILEATTACHMENT: "attached files",
    raw.FPDF_ANNOT_SOUND: "recordings",
    raw.FPDF_ANNOT_MOVIE: "videos",
    raw.FPDF_ANNOT_RICHMEDIA: "videos",
}
_MOST: Final = 10_000
_LONGEST: Final = 100_000
_HEIGHT: Final = 12.0
"""Maximum height of a character of a value, in points."""
_WIDTH: Final = 0.5
"""Width of a character, in heights."""
_BASE: Final = 0.22
"""Place of the baseline above the lower edge of a character, in heights."""


class Placed(NamedTuple):
    """A character of a value at its place on the page."""

    text: str
    left: float
    right: float
    bottom: float
    top: float
    base: float


class Annotations(NamedTuple):
    """The additions of annotations to a page: characters, lines through words (y, left, right), and others."""

    characters: list[Placed]
    lines: list[tuple[float, float, float]]
    unread: Counter[str]


def read_annotations(page: Any, form: Any) -> Annotations:
    """Read the annotations of a page; `form` is the environment of the forms of the document, None without forms."""
    found = Annotations([], [], Counter())
    for index in range(min(raw.FPDFPage_GetAnnotCount(page.raw), _MOST)):
        annotation = raw.FPDFPage_GetAnnot(page.raw, index)
        if not annotation:
            continue
        try:
            kind = raw.FPDFAnnot_GetSubtype(annotation)
            if raw.FPDFAnnot_GetFlags(annotation) & _UNSEEN:
                continue
            if kind == raw.FPDF_ANNOT_WIDGET and form is not None:
                found.characters.extend(_read_field(annotation, form, found.unread))
            elif kind == raw.FPDF_ANNOT_STRIKEOUT:
                found.lines.extend(_read_lines(annotation))
            elif kind in _UNREAD:
                found.unread[_UNREAD[kind]] += 1
        finally:
            raw.FPDFPage_CloseAnnot(annotation)
    return found


def _read_field(annotation: Any, form: Any, unread: Counter[str]) -> Iterator[Placed]:
    kind = raw.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind in (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON):
        value = CHECKED if raw.FPDFAnnot_IsChecked(form, annotation) else UNCHECKED
    elif kind in (raw.FPDF_FORMFIELD_TEXTFIELD, raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX):
        if raw.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD:
            return
        value = _read_value(annotation, form)
    else:
        if kind == raw.FPDF_FORMFIELD_SIGNATURE:
            unread["signatures"] += 1
        return
    box = raw.FS_RECTF()
    if not value.strip() or not raw.FPDFAnnot_GetRect(annotation, box):
        return
    bottom, top = sorted((box.bottom, box.top))
    left, right = sorted((box.left, box.right))
    lines = value.splitlines()
    height = min(_HEIGHT, (top - bottom) / len(lines))
    if height <= 0:
        return
    # A single line is in the middle of its field, several begin at the top of it.
    upper = (top + bottom + height) / 2 if len(lines) == 1 else top
    for number, line in enumerate(lines):
        lower = upper - height * (number + 1)
        width = min(_WIDTH * height, (right - left) / max(len(line), 1))
        for place, character in enumerate(line):
            at = left + place * width
            yield Placed(character, at, at + width, lower, lower + height, lower + _BASE * height)


def _read_value(annotation: Any, form: Any) -> str:
    length = raw.FPDFAnnot_GetFormFieldValue(form, annotation, None, 0)
    if not 2 < length <= _LONGEST:
        return ""
    buffer = (ctypes.c_ushort * (length // 2))()
    raw.FPDFAnnot_GetFormFieldValue(form, annotation, buffer, length)
    return bytes(buffer).decode("utf-16-le", "replace").rstrip("\0").replace("\r\n", "\n").replace("\r", "\n")


def _read_lines(annotation: Any) -> Iterator[tuple[float, float, float]]:
    points = raw.FS_QUADPOINTSF()
    for index in range(min(raw.FPDFAnnot_CountAttachmentPoints(annotation), _MOST)):
        if raw.FPDFAnnot_GetAttachmentPoints(annotation, index, points):
            xs = (points.x1, points.x2, points.x3, points.x4)
            ys = (points.y1, points.y2, points.y3, points.y4)
            yield (min(ys) + max(ys)) / 2, min(xs), max(xs)
