"""Presentations and workbooks: what is read of them, what is left out and said, and what is refused."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.styles import Font
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.oxml.ns import qn
from pptx.util import Inches
from pyoxigraph import Literal

from kg.errors import SourceError
from kg.knowledge_graph import KnowledgeGraph
from kg.store.protocol import select, term_text
from kg.vocabulary import DCTERMS, SCHEMA, mint
from loaders.files import loader as files
from loaders.files.readers import office
from loaders.sources import load

LAYOUTS = {"title": 0, "content": 1, "section": 2, "blank": 6}


def saved(document: Any) -> bytes:
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def read(document: Any, ending: str) -> Any:
    return files.read_file(saved(document), ending, f"a{ending}")


def add_slide(deck: Any, layout: str, title: str = "", *lines: tuple[int, str]) -> Any:
    slide = deck.slides.add_slide(deck.slide_layouts[LAYOUTS[layout]])
    if title:
        slide.shapes.title.text = title
    frame = slide.placeholders[1].text_frame if lines else None
    for number, (level, text) in enumerate(lines):
        assert frame is not None
        paragraph = frame.paragraphs[0] if number == 0 else frame.add_paragraph()
        paragraph.text, paragraph.level = text, level
    return slide


def make_deck() -> Any:
    deck = Presentation()
    add_slide(deck, "title", "Tide pumps", (0, "Report of the harbour office"))
    slide = add_slide(
        deck, "content", "Starting a pump", (0, "Close the drain"), (1, "with the red lever"), (0, "Wait")
    )
    slide.notes_slide.notes_text_frame.text = "Say that the lever sticks."
    return deck


def test_slides_have_titles_as_headings_bullets_notes_and_their_numbers_as_pages() -> None:
    found = read(make_deck(), ".pptx")
    assert found.text == (
        "# Tide pumps\n\nReport of the harbour office\n\n## Starting a pump\n\n"
        "- Close the drain\n   - with the red lever\n- Wait\n\n### Notes\n\nSay that the lever sticks."
    )
    assert [block.kind for block in found.blocks] == ["heading", "paragraph", "heading", "list", "heading", "paragraph"]
    assert (found.title, found.pages) == ("Tide pumps", [0, found.text.index("## Starting")])
    assert found.warnings == []


def test_tables_bold_words_and_slides_without_title_are_read() -> None:
    deck = Presentation()
    slide = add_slide(deck, "blank")
    table = slide.shapes.add_table(3, 2, Inches(1), Inches(1), Inches(4), Inches(2)).table
    for y, row in enumerate([("gate", "width"), ("upper", "6 m"), ("lower", "")]):
        for x, words in enumerate(row):
            table.cell(y, x).text = words
    table.cell(1, 1).merge(table.cell(2, 1))
    box = slide.shapes.add_textbox(Inches(1), Inches(5), Inches(4), Inches(1)).text_frame.paragraphs[0]
    for words, bold in (("The ", False), ("Sluice Board", True), (" decides.", False)):
        run = box.add_run()
        run.text, run.font.bold = words, bold
    found = read(deck, ".pptx")
    assert found.text == (
        "## Slide 1\n\n| gate | width |\n| --- | --- |\n| upper | 6 m |\n| lower | 6 m |\n\n"
        "The **Sluice Board** decides."
    )


def test_automatic_numbers_of_slides_have_their_form_and_start_and_go_on_after_points_below() -> None:
    deck = Presentation()
    lines = ((0, "drain"), (1, "lever"), (0, "oil"), (0, "wait"), (0, "start"), (0, "look"))
    slide = add_slide(deck, "content", "Pump", *lines)
    third, letter = ("arabicPeriod", "3"), ("alphaLcParenR", None)
    numbers = (third, None, third, third, letter, letter)
    slide.placeholders[1].text_frame.paragraphs[2].runs[0].font._element.set("strike", "sngStrike")
    for paragraph, number in zip(slide.placeholders[1].text_frame.paragraphs, numbers, strict=True):
        if number is not None:
            mark = paragraph._p.get_or_add_pPr().makeelement(qn("a:buAutoNum"), {"type": number[0]})
            paragraph._p.pPr.append(mark)
            if number[1] is not None:
                mark.set("startAt", number[1])
    found = read(deck, ".pptx")
    assert found.text.split("\n\n", 1)[1] == "3. drain\n   - lever\n5. wait\na) start\nb) look"


def test_hidden_slides_and_shapes_are_left_out_and_charts_named() -> None:
    deck = make_deck()
    hidden = add_slide(deck, "content", "Not for the council", (0, "costs"))
    hidden._element.set("show", "0")
    charted = add_slide(deck, "content", "Levels", (0, "The tide rises."))
    data = CategoryChartData()
    data.categories = ["spring"]
    data.add_series("tide", (4.2,))
    charted.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, Inches(1), Inches(1), Inches(3), Inches(3), data)
    box = charted.shapes.add_textbox(Inches(1), Inches(5), Inches(4), Inches(1))
    box.text_frame.text = "an old remark"
    box._element.xpath(".//p:cNvPr")[0].set("hidden", "1")
    found = read(deck, ".pptx")
    assert "council" not in found.text
    assert "old remark" not in found.text
    assert len(found.pages) == 4
    assert found.text[found.pages[3] :].startswith("## Levels")
    assert ["slides" in each or "Hidden" in each for each in found.warnings] == [True, True, True]


def make_book() -> Workbook:
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "Pumps 2031"
    for row in (["Pumps of the harbour"], [], ["pump", "share", "since", "run"]):
        sheet.append(row)
    sheet.append(["north | east", 0.25, date(2029, 3, 1), True])
    sheet.append(["south\nwest", 0.1 + 0.2, datetime(2030, 5, 2, 6, 30), 7])
    sheet["B4"].number_format = "0%"
    return book


def test_sheets_are_headings_and_tables_with_values_as_they_are_shown() -> None:
    found = read(make_book(), ".xlsx")
    assert found.text == (
        "## Pumps 2031\n\nPumps of the harbour\n\n| pump | share | since | run |\n| --- | --- | --- | --- |\n"
        "| north \\| east | 25% | 2029-03-01 | TRUE |\n| south west | 0.3 | 2030-05-02 06:30:00 | 7 |"
    )
    assert [block.kind for block in found.blocks] == ["heading", "paragraph", "table"]


def test_hidden_sheets_rows_and_columns_are_left_out_and_counted() -> None:
    book = make_book()
    book.create_sheet("Salaries").append(["name", "pay"])
    book["Salaries"].sheet_state = "hidden"
    book["Pumps 2031"].row_dimensions[4].hidden = True
    book["Pumps 2031"].column_dimensions["D"].hidden = True
    found = read(book, ".xlsx")
    assert found.text.endswith(
        "| pump | share | since |\n| --- | --- | --- |\n| south west | 0.3 | 2030-05-02 06:30:00 |"
    )
    assert "Salaries" in found.warnings[0]
    assert "1 hidden rows and 1 hidden columns" in found.warnings[1]


def test_struck_and_raised_words_of_cells_and_slides_are_not_plain_text() -> None:
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    raised, struck = (
        TextBlock(InlineFont(vertAlign="superscript"), "1"),
        TextBlock(InlineFont(strike=True), "old words"),
    )
    sheet.append(["gate", CellRichText("25", raised, " ft ", struck)])
    sheet.append(["lock", "closed since May"])
    sheet["B2"].font = Font(strike=True)
    sheet.append(["weir", 4])
    sheet["B3"].number_format = ";;;"
    found = read(book, ".xlsx")
    assert found.text.split("\n")[2:] == ["| gate | 25\u00b9 ft |", "| --- | --- |", "| lock |  |", "| weir |  |"]
    assert [": 5." in found.warnings[0], ": 1." in found.warnings[1]] == [True, True]
    deck = Presentation()
    frame = add_slide(deck, "blank").shapes.add_textbox(Inches(1), Inches(1), Inches(4), Inches(1)).text_frame
    for words, form in (("25", {}), ("1", {"baseline": "30000"}), (" ft", {}), ("old", {"strike": "sngStrike"})):
        run = frame.paragraphs[0].add_run()
        run.text = words
        for name, value in form.items():
            run._r.get_or_add_rPr().set(name, value)
    found = read(deck, ".pptx")
    assert (found.text, [": 1." in each for each in found.warnings]) == ("## Slide 1\n\n25\u00b9 ft", [True])


def edit(content: bytes, changes: dict[bytes, bytes]) -> bytes:
    """Replace bytes in the sheets of a workbook."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(target, "w") as new:
        for part in old.infolist():
            data = old.read(part)
            for before, after in changes.items() if part.filename.startswith("xl/worksheets/") else ():
                data = data.replace(before, after)
            new.writestr(part, data)
    return target.getvalue()


def test_formulas_have_their_stored_value_and_those_without_are_counted() -> None:
    book = make_book()
    book["Pumps 2031"].append(["all", "=SUM(B4:B5)", None, "=1+1"])
    found = files.read_file(
        edit(saved(book), {b"<f>1+1</f><v></v>": b"<f>1+1</f><v>2</v>", b"<f>1+1</f><v/>": b"<f>1+1</f><v>2</v>"}),
        ".xlsx",
        "a.xlsx",
    )
    assert found.text.endswith("| all |  |  | 2 |")
    assert "1 formulas" in found.warnings[0]


def test_merged_cells_are_repeated_and_a_merged_title_is_a_paragraph() -> None:
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (["Plan of the quay", None], ["berth", "boat"], ["one", "Wren"], [None, "Tern"]):
        sheet.append(row)
    sheet.merge_cells("A1:B1")
    sheet.merge_cells("A3:A4")
    found = files.read_file(edit(saved(book), {b"A3:A4": b"A3:A1048576"}), ".xlsx", "a.xlsx")
    assert found.text.endswith("Plan of the quay\n\n| berth | boat |\n| --- | --- |\n| one | Wren |\n| one | Tern |")


def encrypt(content: bytes) -> bytes:
    """Set the flags of encryption in a zip archive."""
    changed = bytearray(content)
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = changed.find(mark)
        while place >= 0:
            changed[place + flags] |= 1
            place = changed.find(mark, place + 4)
    return bytes(changed)


def make_bomb(part: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        with archive.open(part, "w") as inside:
            for _ in range(150):
                inside.write(b" " * (1 << 20))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("ending", "make", "words"),
    [
        (".pptx", lambda: encrypt(saved(make_deck())), "encrypted"),
        (".xlsx", lambda: encrypt(saved(make_book())), "encrypted"),
        (".xlsx", lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "encrypted"),
        (".pptx", lambda: b"PK\x03\x04nothing", "damaged"),
        (".xlsx", lambda: saved(make_book())[:3_000], "damaged"),
        (".pptx", lambda: saved(make_book()), "damaged or not a presentation"),
        (".xlsx", lambda: saved(make_deck()), "damaged or not a workbook"),
        (".pptx", lambda: make_bomb("ppt/slides/slide1.xml"), "At most"),
        (".xlsx", lambda: make_bomb("xl/worksheets/sheet1.xml"), "At most"),
        (".pptx", lambda: saved(Presentation()), "no text"),
        (".xlsx", lambda: saved(Workbook()), "no text"),
        (".md", lambda: saved(Workbook()), "Rename or convert"),
    ],
)
def test_office_file_that_cannot_be_read_is_refused_with_the_reason(
    ending: str, make: Callable[[], bytes], words: str
) -> None:
    with pytest.raises(SourceError, match=words):
        files.read_file(make(), ending, f"a{ending}")


@pytest.mark.long
def test_sheet_with_too_many_cells_is_refused() -> None:
    book = Workbook(write_only=True)
    sheet = book.create_sheet()
    for _ in range(5_001):
        sheet.append([1] * 100)
    with pytest.raises(SourceError, match="500,000 cells"):
        read(book, ".xlsx")


def test_missing_library_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(office, "find_spec", lambda name: None)
    with pytest.raises(SourceError, match=r"pip install 'quadcite\[office\]'"):
        read(make_deck(), ".pptx")


def test_office_files_are_loaded_with_pages_and_metadata(
    open_graph: Callable[..., KnowledgeGraph], tmp_path: Path
) -> None:
    kg = open_graph()
    deck = make_deck()
    deck.core_properties.keywords = "pumps, tide"
    deck.core_properties.language = "en"
    folder = tmp_path / "office"
    folder.mkdir()
    (folder / "deck.pptx").write_bytes(saved(deck))
    (folder / "book.xlsx").write_bytes(saved(make_book()))
    (folder / "bad.xlsx").write_bytes(b"PK\x03\x04")
    report = load(kg, "files", [str(folder)], index=False)
    assert (report.loaded, report.rejected) == (2, 1)
    iri = mint("file", "office", "deck.pptx")
    said = {
        q.predicate: q.object
        for q in kg.store.graph(mint("graph", "src", "files", "office", "deck.pptx"))
        if q.subject == iri
    }
    assert said[DCTERMS.title] == Literal("Tide pumps")
    assert said[SCHEMA.numberOfPages] == Literal(2)
    assert said[SCHEMA.inLanguage] == Literal("en")
    rows = select(
        kg.store.query, "SELECT ?path ?page WHERE { ?chunk kg:pageNumber ?page ; dcterms:isPartOf/kg:path ?path }"
    )
    assert {(term_text(row["path"]), term_text(row["page"])) for row in rows} == {("deck.pptx", "1")}
