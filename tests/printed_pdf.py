"""PDFs for tests, made by PDFium: text and rules at given places, and texts printed to pages."""

from __future__ import annotations

import ctypes
from io import BytesIO
from textwrap import wrap
from typing import Any, Final

import pypdfium2
from pypdfium2 import raw

UPRIGHT: Final = (1.0, 0.0, 0.0, 1.0)
TURNED: Final = (0.0, 1.0, -1.0, 0.0)
"""Text that runs up."""


class PdfPrinter:
    """A PDF in the making. Places are in points, from the lower left corner."""

    def __init__(self, width: float = 612, height: float = 792) -> None:
        self._size = width, height
        self._document = pypdfium2.PdfDocument.new()
        self._pages: list[Any] = []

    def add_page(self) -> None:
        """Begin a page."""
        self._pages.append(self._document.new_page(*self._size))

    @property
    def pages(self) -> int:
        """The number of pages."""
        return len(self._pages)

    def add_text(
        self,
        words: str,
        x: float,
        y: float,
        size: float = 10,
        turn: tuple[float, ...] = UPRIGHT,
        font: str = "Times-Roman",
    ) -> float:
        """Print words, and return where they end."""
        item = raw.FPDFPageObj_NewTextObj(self._document, font.encode(), size)
        units = words.encode("utf-16-le") + b"\0\0"
        buffer = ctypes.create_string_buffer(units, len(units))
        raw.FPDFText_SetText(item, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)))
        raw.FPDFPageObj_Transform(item, *turn, x, y)
        raw.FPDFPage_InsertObject(self._pages[-1], item)
        left, bottom, right, top = (ctypes.c_float() for _ in range(4))
        raw.FPDFPageObj_GetBounds(item, left, bottom, right, top)
        return right.value

    def style_text(self, *, mode: int | None = None, fill: tuple[int, int, int, int] | None = None) -> None:
        """Change how the last text is drawn: its rendering mode, its colour and opacity."""
        page = self._pages[-1].raw
        item = raw.FPDFPage_GetObject(page, raw.FPDFPage_CountObjects(page) - 1)
        if mode is not None:
            raw.FPDFTextObj_SetTextRenderMode(item, mode)
        if fill is not None:
            raw.FPDFPageObj_SetFillColor(item, *fill)

    def add_box(
        self, x: float, y: float, width: float, height: float, colour: tuple[int, int, int] = (0, 0, 0)
    ) -> None:
        """Draw a filled box."""
        item = raw.FPDFPageObj_CreateNewRect(x, y, width, height)
        raw.FPDFPageObj_SetFillColor(item, *colour, 255)
        raw.FPDFPath_SetDrawMode(item, raw.FPDF_FILLMODE_ALTERNATE, False)
        raw.FPDFPage_InsertObject(self._pages[-1].raw, item)

    def add_rule(self, x0: float, y0: float, x1: float, y1: float) -> None:
        """Draw a line."""
        item = raw.FPDFPageObj_CreateNewPath(x0, y0)
        raw.FPDFPath_LineTo(item, x1, y1)
        raw.FPDFPath_SetDrawMode(item, raw.FPDF_FILLMODE_NONE, True)
        raw.FPDFPage_InsertObject(self._pages[-1], item)

    def add_grid(self, columns: list[float], rows: list[float]) -> None:
        """Draw the rules of a table."""
        for x in columns:
            self.add_rule(x, rows[0], x, rows[-1])
        for y in rows:
            self.add_rule(columns[0], y, columns[-1], y)

    def turn_page(self, quarters: int) -> None:
        """Show the last page turned clockwise."""
        self._pages[-1].set_rotation(quarters * 90)

    def save(self) -> bytes:
        """Write the PDF."""
        for page in self._pages:
            page.gen_content()
        file = BytesIO()
        self._document.save(file)
        return file.getvalue()


class _Press:
    """Prints a text to pages of one or two columns."""

    def __init__(self, title: str, columns: int) -> None:
        self.printer = PdfPrinter()
        self._title, self._columns, self._column = title, columns, columns
        self.width = 468.0 if columns == 1 else 222.0
        self.characters, self.size = (95, 10.0) if columns == 1 else (43, 9.0)
        self._y = 0.0

    def advance(self, height: float) -> tuple[float, float]:
        """Move down, to the next column or page if need be, and return the place."""
        if self._y - height < 60 or not self.printer.pages:
            self._column += 1
            if self._column >= self._columns:
                self._column = 0
                self.printer.add_page()
                self.printer.add_text(self._title, 220, 760, 9)
                self.printer.add_text(str(self.printer.pages), 300, 30, 9)
            self._y = 735
        self._y -= height
        return 72 + self._column * 246.0, self._y

    def print_paragraph(self, text: str) -> None:
        for line in wrap(text, self.characters, break_long_words=False):
            x, y = self.advance(12.5)
            self.printer.add_text(line, x, y, self.size)
        self._y -= 4

    def print_table(self, rows: list[list[str]]) -> None:
        count = max(map(len, rows))
        width = self.width / count
        for row in rows:
            cells = [wrap(cell, int(width / 5.2)) for cell in row]
            height = 11.0 * max(1, *map(len, cells)) + 4
            x, y = self.advance(height)
            for place, lines in enumerate(cells):
                for number, line in enumerate(lines, 1):
                    self.printer.add_text(line, x + place * width + 3, y + height - 11 * number, 9)
            self.printer.add_grid([x + place * width for place in range(count + 1)], [y, y + height])


def print_text(text: str, title: str, columns: int = 1) -> bytes:
    """Print a text, one paragraph on a line and cells separated by tabs, with running heads and page numbers."""
    press = _Press(title, columns)
    rows: list[list[str]] = []
    for paragraph in [*text.split("\n"), ""]:
        if "\t" in paragraph:
            rows.append(paragraph.split("\t"))
            continue
        if rows:
            press.print_table(rows)
            rows = []
        if paragraph.strip():
            press.print_paragraph(paragraph)
        elif press.printer.pages:
            press.advance(8)
    return press.printer.save()
