"""Columns of printed pages: their order by white space, and where the file has another one."""

from __future__ import annotations

import random
from functools import cache
from textwrap import wrap

import pytest

from loaders.readers.page_text import parse_pages
from loaders.readers.pdf import PdfText, read_pdf
from tests.printed_pdf import PdfPrinter

WORDS = [
    "harbour", "board", "permit", "notice", "water", "level", "season", "record", "engine",
    "bridge", "shore", "canal", "tariff", "vessel", "anchor", "coast", "meadow", "timber",
    "orchard", "valley", "district", "council", "measure", "budget", "survey",
]  # fmt: skip
WIDTH, LEFT = 504.0, 54.0


def print_columns(
    printer: PdfPrinter, top: float, bottom: float, widths: list[float], gutter: float, order: str, tag: str = "a"
) -> list[str]:
    """Print paragraphs in columns, and return them in reading order."""
    draw = random.Random(f"{tag} {widths} {gutter}")
    lines: list[tuple[float, float, str]] = []
    written: list[str] = []
    x = LEFT
    for column, width in enumerate(widths):
        y = top
        while y > bottom + 40:
            text = " ".join([f"{tag}{column}n{len(written)}", *draw.choices(WORDS, k=draw.randint(12, 40))]) + "."
            kept = wrap(text, int(width / 4.2))[: int((y - bottom) / 11)]
            lines += [(x, y - 11 * number, line) for number, line in enumerate(kept)]
            written.append(" ".join(kept))
            y -= 11 * len(kept) + 6
        x += width + gutter
    if order == "rows":
        lines.sort(key=lambda line: (-line[1], line[0]))
    for left, y, line in lines:
        printer.add_text(line, left, y, 9)
    return written


@cache
def measure(word: str) -> float:
    printer = PdfPrinter()
    printer.add_page()
    return printer.add_text(f"x{word}x", 0, 0, 9) - printer.add_text("xx", 0, 0, 9)


def print_justified(
    printer: PdfPrinter, top: float, widths: list[float], gutter: float, order: str, tag: str
) -> list[str]:
    """Print columns of justified text, each word apart, and return the paragraphs in reading order."""
    draw = random.Random(f"{tag} {widths} {gutter}")
    placed: list[tuple[float, float, str]] = []
    written: list[str] = []
    for column, width in enumerate(widths):
        x, y = LEFT + sum(widths[:column]) + column * gutter, top
        while y > 100:
            words = [f"{tag}{column}n{len(written)}", *draw.choices(WORDS, k=draw.randint(12, 40))]
            lines: list[list[str]] = [[]]
            for word in words:
                if sum(measure(each) + 2.3 for each in [*lines[-1], word]) > width and lines[-1]:
                    lines.append([])
                lines[-1].append(word)
            lines = lines[: int((y - 60) / 11)]
            written.append(" ".join(word for line in lines for word in line))
            for line in lines:
                room = (width - sum(map(measure, line))) / max(1, len(line) - 1) if line is not lines[-1] else 2.3
                left = x
                for word in line:
                    placed.append((left, y, word))
                    left += measure(word) + room
                y -= 11
            y -= 6
    for left, y, word in placed if order == "columns" else sorted(placed, key=lambda each: (-each[1], each[0])):
        printer.add_text(word, left, y, 9)
    return written


def read(printer: PdfPrinter) -> tuple[str, PdfText, list[bool]]:
    pdf = read_pdf(printer.save(), "columns.pdf")
    paragraphs = parse_pages(pdf.text.split("\n"), printed=True).paragraphs
    disputed = [pdf.is_disputed(each.first, each.last) for each in paragraphs]
    return " ".join(" ".join(each.text for each in paragraphs).split()), pdf, disputed


def even(columns: int, gutter: float) -> list[float]:
    return [(WIDTH - gutter * (columns - 1)) / columns] * columns


@pytest.mark.parametrize("gutter", [9.0, 24.0])
@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("order", ["columns", "rows"])
def test_columns_are_read_one_after_the_other(columns: int, gutter: float, order: str) -> None:
    printer = PdfPrinter()
    printer.add_page()
    printer.add_text("A head over all columns of the page", 200, 760, 13)
    written = print_columns(printer, 735, 60, even(columns, gutter), gutter, order)
    text, _, disputed = read(printer)
    assert " ".join(written) in text
    # Where the file has them row by row, their order is not sure.
    assert any(disputed) == (order == "rows" and columns > 1)


@pytest.mark.parametrize("order", ["columns", "rows"])
@pytest.mark.parametrize(("columns", "gutter"), [(2, 9.0), (3, 18.0), (4, 12.0), (5, 12.0), (5, 24.0)])
def test_columns_of_justified_text_are_told_from_its_wide_spaces(columns: int, gutter: float, order: str) -> None:
    printer = PdfPrinter()
    printer.add_page()
    first = print_justified(printer, 745, [WIDTH], gutter, order, "whole") if columns == 2 else []
    printer.add_page()
    # A head that is no wider than the column below it.
    printer.add_text("Division Two", 285, 760, 12)
    second = print_justified(printer, 735, even(columns, gutter), gutter, order, "j")
    text, _, disputed = read(printer)
    assert " ".join([*first, "Division Two", *second]) in text
    assert any(disputed) == (order == "rows")


@pytest.mark.parametrize(("above", "below"), [(2, 3), (3, 2), (1, 4), (5, 3), (3, 3)])
def test_parts_of_a_page_have_columns_of_their_own(above: int, below: int) -> None:
    printer = PdfPrinter()
    printer.add_page()
    first = print_columns(printer, 735, 430, even(above, 18), 18, "columns")
    printer.add_text("A heading over all of the columns in the middle of this page", 120, 405, 13)
    second = print_columns(printer, 375, 60, even(below, 18), 18, "columns", "b")
    printer.add_text("17", 300, 30, 9)
    text, _, disputed = read(printer)
    assert " ".join(first) in text
    assert " ".join(second) in text
    assert text.index(first[-1]) < text.index("A heading over all") < text.index(second[0])
    assert not any(disputed)


def test_a_narrow_column_beside_a_wide_one_is_read_first() -> None:
    printer = PdfPrinter()
    printer.add_page()
    written = print_columns(printer, 735, 60, [120, WIDTH - 136], 16, "columns")
    text, _, disputed = read(printer)
    assert " ".join(written) in text
    assert not any(disputed)


def test_columns_that_white_space_does_not_show_are_disputed() -> None:
    printer = PdfPrinter()
    printer.add_page()
    for x, words in ((72, "Fee"), (320, "Term")):
        for number in range(12):
            printer.add_text(f"{words} {number}0", x, 700 - 14 * number, 10)
    _, pdf, disputed = read(printer)
    assert any(disputed)
    assert "line" in pdf.disputed.values()


def test_a_table_without_rules_keeps_its_rows() -> None:
    printer = PdfPrinter()
    printer.add_page()
    for number in range(14):
        for x, cell in ((72, f"District {number}"), (250, f"{number}0 feet"), (420, f"{number}5 feet")):
            printer.add_text(cell, x, 700 - 14 * number, 10)
    text, _, disputed = read(printer)
    assert "District 3 30 feet 35 feet" in text
    assert not any(disputed)
