"""A PDF is read by the places of its characters: columns, tables with rules, raised marks, pages."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import Literal
from pypdfium2 import raw

from kg.errors import SourceError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.explanation import explain_iri
from kg.vocabulary import KG, SCHEMA, mint
from loaders.model import Rejection, Snapshot, SourceGraph
from loaders.readers import pdf_child
from loaders.readers.locations import File
from loaders.readers.page_layout import COLUMN, END
from loaders.readers.pdf import read_pdf
from loaders.sources import load
from loaders.zoning.loader import Reading
from loaders.zoning.readers import plain_text
from loaders.zoning.readers.code_model import Table
from tests.printed_pdf import TURNED, PdfPrinter, print_text

CODE = """ALDER ZONING CODE
1.1 Purpose
The purpose of this code is to guide the growth of the town and to keep its streets open to everybody who walks.
1.2 Districts
The town has the districts R-1, R-2 and C-1, which the zoning map shows.
1.3 Uses
The table shows the uses of each district."""

Read = Callable[[PdfPrinter], tuple[list[list[str]], dict[str, Any]]]


def work(data: bytes, folder: Path) -> tuple[str, dict[str, Any]]:
    """Read a PDF in this process: its text, and what was not read."""
    settings = {"folder": str(folder), "max_bytes": 1_000_000, "text": "text", "report": "report"}
    assert pdf_child.work(settings, data) == {}
    return (folder / "text").read_text(), json.loads((folder / "report").read_text())


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read a PDF in this process: the lines of its pages that are not blank, and what was not read."""

    def read(printer: PdfPrinter) -> tuple[list[list[str]], dict[str, Any]]:
        text, report = work(printer.save(), tmp_path)
        return [
            [line.strip(" " + COLUMN) for line in page.split("\n") if line.strip()] for page in text.split("\f")
        ], report

    return read


def print_lines(printer: PdfPrinter, lines: list[str], x: float = 72, y: float = 700, pitch: float = 12) -> None:
    for number, line in enumerate(lines):
        printer.add_text(line, x, y - pitch * number)


def fill(name: str, count: int) -> list[str]:
    return [f"Line {number} of the {name} column fills its whole width" for number in range(count)]


def test_a_pdf_is_read_as_sections_with_their_pages() -> None:
    body = "\n".join(
        f"{part}.{number} Rule {part} {number}\n"
        + f"Owners of lot {part}{number} keep the walk in front of it clear of snow. " * 9
        for part in (2, 3, 4)
        for number in range(1, 9)
    )
    code = plain_text.parse_pdf(print_text(f"{CODE}\n{body}", "TOWN OF ALDER"), "alder.pdf")
    sections = {each.number: each for each in code.sections if each.text}
    assert list(sections)[:4] == ["1.1", "1.2", "1.3", "2.1"]
    assert sections["1.1"].text.endswith("who walks.")
    assert (sections["1.1"].pages, sections["1.1"].lines) == ((1, 1), None)
    first, last = (sections[number].pages for number in ("2.1", "4.8"))
    assert first is not None
    assert last is not None
    assert first[0] == 1 < last[0] <= last[1] == 4
    assert not any("TOWN OF ALDER" in each.text for each in code.sections)


def test_columns_are_read_one_after_the_other(read: Read) -> None:
    printer = PdfPrinter()
    for number in range(1, 4):
        printer.add_page()
        printer.add_text("TOWN OF ALDER", 72, 760)
        printer.add_text(f"Zoning {number}", 480, 760)
        printer.add_text("2.1 A heading over the whole width of the page, with both of its columns below", 72, 720, 12)
        print_lines(printer, fill("left", 20), 72)
        print_lines(printer, fill("right", 20), 318, 697)
    pages, _ = read(printer)
    assert pages[1] == [
        "TOWN OF ALDER Zoning 2",
        "2.1 A heading over the whole width of the page, with both of its columns below",
        *fill("left", 20),
        *fill("right", 20),
    ]


def test_columns_of_short_paragraphs_are_read_one_after_the_other() -> None:
    names = ["Ash", "Birch", "Cedar", "Elm", "Fir", "Hazel", "Larch", "Maple", "Oak", "Pine", "Rowan", "Willow"]
    names = [f"{one}{other.casefold()}" for one in names for other in names[:3]]
    items = [
        f"2.{number} {name}\n\n(a) A shed in {name} shall be at least 2 m from the lot line of a lot.\n\n"
        f"(b) A fence of {name} may be 1.8 m high next to such a shed.\n\n(c) {name} is small."
        for number, name in enumerate(names, 1)
    ]
    code = plain_text.parse_pdf(print_text("\n\n".join(items), "TOWN OF ALDER", 2), "alder.pdf")
    sections = [each for each in code.sections if each.number.startswith("2.")]
    assert [(each.number, each.title) for each in sections] == [(f"2.{n}", name) for n, name in enumerate(names, 1)]
    assert all(each.text.count("shed in") == 1 and each.text.endswith("small.") for each in sections)


def test_a_list_with_wide_gaps_is_no_columns(read: Read) -> None:
    printer = PdfPrinter()
    printer.add_page()
    for number in range(20):
        printer.add_text(f"Use {number}", 72, 700 - 12 * number)
        printer.add_text(f"District {number}", 350, 700 - 12 * number)
    pages, _ = read(printer)
    assert pages == [[f"Use {number} District {number}" for number in range(20)]]


def test_rows_of_figures_are_not_columns(read: Read) -> None:
    printer = PdfPrinter()
    printer.add_page()
    rows = [f"District R-{n} {n},000 sq. ft. {n * 20} feet" for n in range(10, 30)]
    print_lines(printer, rows)
    print_lines(printer, [f"{n},500.0 {n * 10}.5 30.5 2{n}.25 1.25" for n in range(10, 30)], 280)
    assert read(printer)[0][0] == [f"{row} {n},500.0 {n * 10}.5 30.5 2{n}.25 1.25" for n, row in enumerate(rows, 10)]


def test_words_are_apart_where_their_letters_are_not(read: Read) -> None:
    printer = PdfPrinter()
    printer.add_page()
    print_lines(printer, fill("only", 3))
    end = printer.add_text("the key", 72, 600)
    printer.add_text("in a lock", end + 2.1, 600)
    for number, letter in enumerate("ZONES"):
        printer.add_text(letter, 72 + 8.4 * number, 580)
    assert read(printer)[0][0][3:] == ["the key in a lock", "ZONES"]


def build_ligature() -> bytes:
    """Build a file with a glyph that stands for two letters."""
    mapping = b"1 beginbfchar <41> <00660066> endbfchar"
    content = b"BT /F 12 Tf 72 700 Td (staA dierent) Tj ET"
    return build(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F 5 0 R >> >> >>",
        b"<< /Length %d >> stream\n%s\nendstream" % (len(content), content),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 6 0 R >>",
        b"<< /Length %d >> stream\n%s\nendstream" % (len(mapping), mapping),
    )


def test_both_letters_of_a_ligature_are_read() -> None:
    assert "staff dierent" in read_pdf(build_ligature(), "alder.pdf").text


def test_raised_marks_are_no_part_of_a_number(read: Read) -> None:
    printer = PdfPrinter()
    printer.add_page()
    end = printer.add_text("The height is at most 35", 72, 700)
    end = printer.add_text("1", end + 0.5, 704, 6)
    end = printer.add_text("feet (10.67 m).", end + 3, 700)
    printer.add_text("2", end + 0.5, 704, 6)
    end = printer.add_text("A rule of 1", 72, 680)
    end = printer.add_text("1", end + 0.5, 683, 6)
    printer.add_text("/2 acres after the 3rd year", end + 0.3, 680)
    pages, _ = read(printer)
    assert pages == [["The height is at most 35¹ feet (10.67 m).²", "A rule of 1 1/2 acres after the 3rd year"]]


def print_table(printer: PdfPrinter, rows: list[list[str]], y: float, columns: list[float]) -> float:
    rules = [y - 20 * number for number in range(len(rows) + 1)]
    printer.add_grid(columns, rules)
    for row, cells in enumerate(rows):
        for x, cell in zip(columns, cells, strict=False):
            if cell:
                printer.add_text(cell, x + 4, rules[row] - 14)
    return rules[-1]


HEADER = ["Use", "R-1", "R-2", "C-1"]
COLUMNS = [72.0, 200.0, 290.0, 380.0, 470.0]


def read_tables(printer: PdfPrinter) -> list[Table]:
    code = plain_text.parse_pdf(printer.save(), "alder.pdf")
    return [table for section in code.sections for table in section.tables]


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def test_a_ruled_table_goes_on_over_the_page_without_its_second_header() -> None:
    printer = PdfPrinter()
    printer.add_page()
    print_lines(printer, CODE.split("\n")[1:], pitch=24)
    print_table(printer, [HEADER, ["Dwellings", "P", "P", ""], ["Shops", "", "C", "P"]], 400, COLUMNS)
    printer.add_page()
    end = print_table(printer, [HEADER, ["Inns", "", "", "C"]], 740, COLUMNS)
    print_table(printer, [["Lot", "Area"], ["R-1", "1 acre"]], end - 20, [72, 200, 330])
    [uses, lots] = read_tables(printer)
    assert texts(uses) == [HEADER, ["Dwellings", "P", "P", ""], ["Shops", "", "C", "P"], ["Inns", "", "", "C"]]
    assert texts(lots) == [["Lot", "Area"], ["R-1", "1 acre"]]


def test_merged_cells_span_their_places() -> None:
    printer = PdfPrinter()
    printer.add_page()
    print_lines(printer, CODE.split("\n")[1:], pitch=24)
    for x in (72, 200, 380):
        printer.add_rule(x, 400, x, 340)
    printer.add_rule(290, 380, 290, 340)
    for y in (400, 340):
        printer.add_rule(72, y, 380, y)
    printer.add_rule(200, 380, 380, 380)
    printer.add_rule(200, 360, 380, 360)
    for words, x, y in (
        ("Homes", 76, 366),
        ("Districts", 204, 386),
        ("R-1", 204, 366),
        ("R-2", 294, 366),
        ("P", 204, 346),
    ):
        printer.add_text(words, x, y)
    [table] = read_tables(printer)
    assert [[(cell.text, cell.colspan, cell.rowspan) for cell in row] for row in table.rows] == [
        [("Homes", 1, 3), ("Districts", 2, 1)],
        [("R-1", 1, 1), ("R-2", 1, 1)],
        [("P", 1, 1), ("", 1, 1)],
    ]


def test_a_table_without_rules_between_its_rows_is_split_by_its_first_column(read: Read) -> None:
    printer = PdfPrinter()
    printer.add_page()
    printer.add_grid([72, 200, 330], [400, 380, 300])
    for number, (use, level) in enumerate(
        [("Use", "R-1"), ("Homes", "P"), ("Inns and", "C"), ("hotels", ""), ("Shops", "-")]
    ):
        printer.add_text(use, 76, 386 - (14 * number + 6 * (number > 0)))
        printer.add_text(level or " ", 204, 386 - (14 * number + 6 * (number > 0)))
    pages, _ = read(printer)
    assert pages == [[END, "Use\tR-1", "Homes\tP", "Inns and hotels\tC", "Shops\t-"]]


def test_a_table_goes_on_in_the_next_column() -> None:
    printer = PdfPrinter()
    printer.add_page()
    words = fill("left", 30)
    print_lines(printer, ["1.1 Purpose", *words, "1.2 Uses"], 72, 740)
    columns = [72.0, 180.0, 290.0]
    print_table(printer, [["Use", "R-1"], ["Dwellings", "P"], ["Shops", "C"]], 340, columns)
    end = print_table(printer, [["Inns", "C"], ["Farms", "P"]], 740, [x + 246 for x in columns])
    print_lines(printer, ["1.3 Lots", *fill("right", 30)], 318, end - 20)
    [table] = read_tables(printer)
    assert texts(table) == [["Use", "R-1"], ["Dwellings", "P"], ["Shops", "C"], ["Inns", "C"], ["Farms", "P"]]


def test_rotated_text_is_left_out_and_reported(read: Read) -> None:
    printer = PdfPrinter()
    printer.add_page()
    print_lines(printer, fill("only", 3))
    printer.add_text("DRAFT", 40, 300, 30, TURNED)
    pages, report = read(printer)
    assert pages == [fill("only", 3)]
    assert report["rotated"] == [[1, 5]]


def test_rotated_headers_of_a_table_are_read(read: Read) -> None:
    printer = PdfPrinter()
    printer.add_page()
    print_table(printer, [["Use", "", ""], ["Homes and gardens", "P", "C"]], 400, COLUMNS[:4])
    printer.add_text("R-1", 245, 381, 8, TURNED)
    printer.add_text("R-2", 335, 381, 8, TURNED)
    pages, report = read(printer)
    assert pages == [[END, "Use\tR-1\tR-2", "Homes and gardens\tP\tC"]]
    assert report["rotated"] == []


def test_a_page_whose_text_all_runs_up_is_turned(read: Read) -> None:
    printer = PdfPrinter()
    printer.add_page()
    for number, line in enumerate(fill("only", 3)):
        printer.add_text(line, 100 + 12 * number, 72, turn=TURNED)
    printer.turn_page(1)
    assert read(printer)[0] == [fill("only", 3)]


def hide(printer: PdfPrinter, how: str) -> str:
    """Print words that the page does not show, and return them."""
    words = f"Kennels are permitted {how}"
    x, size = (700.0 if how == "outside" else 72.0), (1.0 if how == "tiny" else 10.0)
    printer.add_text(words, x, 400, size)
    if how == "invisible":
        printer.style_text(mode=raw.FPDF_TEXTRENDERMODE_INVISIBLE)
    elif how == "white":
        printer.style_text(fill=(255, 255, 255, 255))
    elif how == "transparent":
        printer.style_text(fill=(0, 0, 0, 0))
    elif how == "covered":
        printer.add_box(60, 390, 300, 30)
    return words


@pytest.mark.parametrize("turns", [0, 1])
@pytest.mark.parametrize("how", ["outside", "tiny", "invisible", "white", "transparent", "covered"])
def test_text_that_a_page_does_not_show_is_left_out_and_reported(read: Read, how: str, turns: int) -> None:
    printer = PdfPrinter()
    printer.add_page()
    print_lines(printer, fill("only", 9))
    hidden = hide(printer, how)
    printer.add_box(60, 290, 300, 30, (0, 0, 255))
    printer.add_text("Inns are permitted", 72, 300)
    printer.style_text(fill=(97, 0, 0, 255))  # as dark as the box
    printer.turn_page(turns)
    pages, report = read(printer)
    assert pages == [[*fill("only", 9), "Inns are permitted"]]
    assert report["hidden"] == [[1, len(hidden.replace(" ", ""))]]


def test_text_that_is_struck_out_is_left_out_and_reported(read: Read) -> None:
    printer = PdfPrinter()
    printer.add_page()
    print_lines(printer, fill("only", 5))
    end = printer.add_text("The height is at most", 72, 600)
    start = end + 3
    end = printer.add_text("thirty-five feet", start, 600)
    printer.add_rule(start, 602.8, end, 602.8)
    start = end + 3
    end = printer.add_text("forty feet", start, 600)
    printer.add_rule(start, 598.5, end, 598.5)
    printer.add_rule(60, 603, 500, 603)
    pages, report = read(printer)
    assert pages == [[*fill("only", 5), "The height is at most forty feet"]]
    assert report["struck"] == [[1, len("thirty-fivefeet")]]


def test_an_invisible_layer_over_an_image_is_read_and_reported(read: Read) -> None:
    printer = PdfPrinter()
    printer.add_page()
    for line in range(20):  # bars as of letters
        for bar in range(90):
            printer.add_box(74 + 4 * bar, 700 - 12 * line, 2, 6)
    for number, line in enumerate(fill("only", 9)):
        printer.add_text(line, 72, 700 - 12 * number)
        printer.style_text(mode=raw.FPDF_TEXTRENDERMODE_INVISIBLE)
    pages, report = read(printer)
    assert pages == [fill("only", 9)]
    assert (report["layers"], report["hidden"]) == ([1], [])


def build_hidden() -> bytes:
    printer = PdfPrinter()
    printer.add_page()
    for number, line in enumerate(fill("only", 9)):
        printer.add_text(line, 72, 700 - 12 * number)
        printer.style_text(mode=raw.FPDF_TEXTRENDERMODE_INVISIBLE)
    return printer.save()


def build_encrypted() -> bytes:
    """Build a file whose password nobody knows."""
    return build(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [] /Count 0 >>",
        b"<< /Filter /Standard /V 1 /R 2 /P -4 /O <" + b"41" * 32 + b"> /U <" + b"42" * 32 + b"> >>",
        trailer=b"/Encrypt 3 0 R /ID [<4141> <4141>]",
    )


def build(*objects: bytes, trailer: bytes = b"") -> bytes:
    """Build a file of objects, of which the first is its catalog."""
    data, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    return data + (
        b"xref\n0 %d\n0000000000 65535 f \n%strailer << /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF"
        % (size, table, size, trailer, len(data))
    )


def build_empty() -> bytes:
    printer = PdfPrinter()
    printer.add_page()
    printer.add_rule(0, 0, 100, 100)
    return printer.save()


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b"%PDF-1.7 nothing", "damaged"),
        (build_encrypted(), "password"),
        (build_empty(), "OCR"),
        (build_hidden(), "invisible"),
    ],
    ids=["damaged", "encrypted", "images", "hidden"],
)
def test_an_unreadable_pdf_is_refused_by_its_name(data: bytes, cause: str) -> None:
    with pytest.raises(SourceError) as caught:
        read_pdf(data, "alder.pdf")
    assert "alder.pdf" in str(caught.value)
    assert cause in str(caught.value)


def test_a_pdf_without_an_end_mark_is_read_and_reported() -> None:
    whole = build_page(WORDS)
    assert not read_pdf(whole, "alder.pdf").warnings
    cut = read_pdf(whole.replace(b"%%EOF", b""), "alder.pdf")
    assert "1.1 Purpose of the code" in cut.text
    assert any("end mark" in warning for warning in cut.warnings)


PAGE = b"<< /Type /Page /Parent 2 0 R /MediaBox %s /Contents 4 0 R /Resources << /Font << /F 5 0 R >> %s >> >>"
WORDS = b"BT /F 10 Tf 72 700 Td (1.1 Purpose of the code) Tj ET "


def build_page(content: bytes, box: bytes = b"[0 0 612 792]", resources: bytes = b"", *objects: bytes) -> bytes:
    """Build a file of one page. `objects` are numbered from 6."""
    return build(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        PAGE % (box, resources),
        b"<< /Length %d >> stream\n%s\nendstream" % (len(content), content),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        *objects,
    )


def build_huge_image() -> bytes:
    image = b"<< /Type /XObject /Subtype /Image /Width 60000 /Height 60000 /BitsPerComponent 1 /ColorSpace /DeviceGray"
    return build_page(
        WORDS + b"q 600 0 0 700 0 0 cm /I Do Q",
        b"[0 0 612 792]",
        b"/XObject << /I 6 0 R >>",
        image + b" /Length 1 >> stream\n0\nendstream",
    )


@pytest.mark.parametrize(
    "box", [b"[0 0 0 0]", b"[612 792 0 0]", b"[-1e30 -1e30 1e30 1e30]", b"[nan nan nan nan]", b"[0 0 1e9 1e9]"]
)
def test_a_page_of_any_size_is_read(tmp_path: Path, box: bytes) -> None:
    text, report = work(build_page(WORDS, box), tmp_path)
    assert text == "1.1 Purpose of the code"
    assert report["hidden"] == []


def test_clipped_text_is_left_out_and_reported(tmp_path: Path) -> None:
    clipped = b"q 0 0 50 50 re W n BT /F 10 Tf 72 600 Td (Kennels are permitted) Tj ET Q"
    text, report = work(build_page(WORDS + clipped), tmp_path)
    assert text == "1.1 Purpose of the code"
    assert report["hidden"] == [[1, len("Kennelsarepermitted")]]


def test_text_of_a_layer_that_is_off_is_left_out_and_reported(tmp_path: Path) -> None:
    layer = b"/OC /L BDC BT /F 10 Tf 72 600 Td (Kennels are permitted) Tj ET EMC"
    catalog = b"<< /Type /Catalog /Pages 2 0 R "
    off = b"/OCProperties << /OCGs [6 0 R] /D << /OFF [6 0 R] /Order [6 0 R] >> >> >>"
    data = build(
        catalog + off,
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        PAGE % (b"[0 0 612 792]", b"/Properties << /L 6 0 R >>"),
        b"<< /Length %d >> stream\n%s\nendstream" % (len(WORDS + layer), WORDS + layer),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Type /OCG /Name (Draft) >>",
    )
    text, report = work(data, tmp_path)
    assert text == "1.1 Purpose of the code"
    assert report["hidden"] == [[1, len("Kennelsarepermitted")]]


def test_a_page_that_cannot_be_drawn_is_read_and_reported(tmp_path: Path) -> None:
    text, report = work(build_huge_image(), tmp_path)
    assert (text, report["not_drawn"]) == ("1.1 Purpose of the code", [1])


def test_a_page_with_too_many_characters_is_left_out_and_reported(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_child, "_MOST_CHARACTERS", 100)
    printer = PdfPrinter()
    printer.add_page()
    print_lines(printer, fill("left", 9))
    printer.add_page()
    print_lines(printer, fill("only", 1))
    pages, report = read(printer)
    assert pages == [[], fill("only", 1)]
    assert report["crowded"] == [1]


DAMAGE = """
import random, sys
from pathlib import Path
from loaders.readers import pdf_child
folder, data, chance = sys.argv[1], Path(sys.argv[2]).read_bytes(), random.Random(3)
damaged = [data[: len(data) * tenth // 10] for tenth in range(10)]
for _ in range(150):
    flipped = bytearray(data)
    for _ in range(chance.choice((1, 5, 40))):
        flipped[chance.randrange(len(data))] = chance.randrange(256)
    damaged.append(bytes(flipped))
settings = {"folder": folder, "max_bytes": 1_000_000, "text": "text", "report": "report"}
print(sorted({pdf_child.work(settings, each).get("kind", "read") for each in damaged}))
"""


@pytest.mark.long
def test_a_damaged_pdf_is_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "alder.pdf"
    path.write_bytes(print_text(CODE, "TOWN OF ALDER"))
    done = subprocess.run(
        [sys.executable, "-c", DAMAGE, str(tmp_path), str(path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "['invalid', 'read']\n"), done.stderr


def test_other_files_load_beside_a_damaged_pdf(tmp_path: Path) -> None:
    (tmp_path / "bad.pdf").write_bytes(b"%PDF-1.7 nothing")
    (tmp_path / "good.txt").write_text(CODE)
    files = [
        File(path, Snapshot(hashlib.sha256(path.read_bytes()).hexdigest(), str(path)), True)
        for path in sorted(tmp_path.iterdir())
    ]
    items = list(Reading("Alder", "OH").read(files))
    assert [item.record for item in items if isinstance(item, Rejection)] == ["bad.pdf"]
    assert any(isinstance(item, SourceGraph) and item.key[-1] == "1.2" for item in items)


def test_why_names_the_pages_of_a_section(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = tmp_path / "alder.pdf"
    path.write_bytes(print_text(CODE, "TOWN OF ALDER"))
    load(kg, "zoning", [str(path)], municipality="Alder", state="OH")
    section = mint("section", "us-oh-alder", "1.2")
    said = {
        quad.predicate: quad.object for quad in kg.store.graph(mint("graph", "src", "zoning", "us-oh-alder", "1.2"))
    }
    assert said[SCHEMA.pagination] == Literal("1")
    assert KG.sourceLines not in said
    [source] = explain_iri(kg.store.query, section)[0].sources
    assert (source.pages, source.lines) == ("1", None)
    assert "pages     1" in str(explain_iri(kg.store.query, section)[0])
