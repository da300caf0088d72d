from __future__ import annotations

import csv
import json
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from openpyxl import Workbook, load_workbook
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.styles import Font

from kg.errors import SourceError, StoreError
from loaders.model import Snapshot
from loaders.readers import formats, tables
from loaders.readers.formats import open_sheet
from loaders.readers.inline import LeftOut
from loaders.readers.locations import File, file_sha256
from loaders.readers.tables import Columns, Group, Tables
from tests.examples import dear

COLUMNS = Columns(
    "slug", "translated", "text", {"slug": ("slug",), "title": ("title", "name")}, {"index": ("i",), "text": ("text",)}
)


def as_file(path: Path) -> File:
    return File(path, Snapshot(file_sha256(path), str(path)), named=True)


def read(*paths: Path) -> list[Group]:
    with Tables(("slug", "title"), ("index", "text")) as opened:
        for path in paths:
            file = as_file(path)
            opened.add(file, "test", COLUMNS, opened.columns(file)[1])
        return list(opened.groups())


def write(path: Path, texts: Sequence[str], slug: str = "s") -> Path:
    rows = [{"slug": slug, "i": str(i), "text": text} for i, text in enumerate(texts)]
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as stream:
            table = csv.DictWriter(stream, ["slug", "i", "text"], quoting=csv.QUOTE_ALL)
            table.writeheader()
            table.writerows(rows)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def texts_of(groups: Sequence[Group]) -> list[str | None]:
    [group] = groups
    return [row.values[1] for row in sorted(group.rows, key=lambda row: row.row)]


# Without text there is no passage, so the empty string is left out: it comes back as nothing.
TEXTS = st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1, max_size=5)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@hypothesis_settings(max_examples=dear(15), suppress_health_check=[HealthCheck.function_scoped_fixture], database=None)
@given(texts=TEXTS)
def test_text_comes_back_character_for_character(ending: str, texts: list[str], tmp_path: Path) -> None:
    assert texts_of(read(write(tmp_path / f"t.{ending}", texts))) == texts


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_line_ends_nul_quotes_and_five_megabytes_survive(ending: str, tmp_path: Path) -> None:
    texts = ["a\r\nb\nc\rd", "nul \x00 here", 'she said "no"', "\ufeffmark", "NULL", " spaced ", "ü" * 5_000_000]
    assert texts_of(read(write(tmp_path / f"t.{ending}", texts))) == texts


def test_rows_of_one_key_come_together_from_all_files_and_formats(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{slug}.{ending}", ["x"], slug) for slug, ending in
             (("b", "csv"), ("a", "jsonl"), ("c", "parquet"))]  # fmt: skip
    paths.append(write(tmp_path / "more.csv", ["y", "z"], "a"))
    groups = read(*paths)
    assert [group.key for group in groups] == ["a", "b", "c"]
    assert sorted((row.file.path.name, row.row) for row in groups[0].rows) == [
        ("a.jsonl", 1), ("more.csv", 1), ("more.csv", 2),
    ]  # fmt: skip


def test_xlsx_rows_are_numbered_without_the_header(tmp_path: Path) -> None:
    book = Workbook()
    for row in (["slug", "name", "i", "text"], ["s", "Title", 0, "one"], ["s", None, 1, "two"]):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    [group] = read(tmp_path / "t.xlsx")
    assert sorted((row.row, row.values) for row in group.rows) == [(1, ("0", "one")), (2, ("1", "two"))]
    assert group.heads[0].values["title"] == "Title"


def test_workbook_is_opened_once_for_its_columns_and_first_reading_of_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[object] = []

    def open_once(*given: Any) -> object:
        opened.append(given)
        return open_workbook(*given)

    open_workbook = formats.open_workbook
    book = Workbook()
    for row in (["slug", "text"], [None, None], ["s", "one"]):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    monkeypatch.setattr(formats, "open_workbook", open_once)
    sheet = open_sheet(tmp_path / "t.xlsx")
    first = list(sheet.rows(["slug", "text"], "text"))
    assert ([(row.number, row.cells) for row in first], len(opened)) == ([(2, ["s", "one"])], 1)
    assert (list(sheet.rows(["slug", "text"], "text")), len(opened)) == (first, 2)


def test_texts_of_a_workbook_are_those_that_openpyxl_reads(tmp_path: Path) -> None:
    texts = ["slug", " spaces  kept ", "a\nb", "_x005F_x0041_", "<&>", "", "\u00e9\U0001f300", "parts"]
    book = Workbook()
    for text in texts:
        book.active.append(["x", text])
    book.save(tmp_path / "whole.xlsx")
    path = tmp_path / "t.xlsx"
    runs = "<r><rPr><b/></rPr><t>pa</t></r><r><t>rts</t></r><rPh sb='0' eb='2'><t>not read</t></rPh>"
    with zipfile.ZipFile(tmp_path / "whole.xlsx") as whole, zipfile.ZipFile(path, "w") as other:
        for name in whole.namelist():
            content = whole.read(name).replace(b"<t>parts</t>", runs.encode()).replace(b"<t>slug</t>", b"<t/>")
            other.writestr(name, content)
    sheet = load_workbook(path, read_only=True).worksheets[0]
    expected = list(sheet.iter_rows(values_only=True))
    assert list(formats._table(path, LeftOut())) == list(enumerate(expected))
    assert ("x", "parts") in expected


def test_a_key_of_jsonl_that_first_occurs_far_down_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    rows = [{"slug": "s", "i": i, "text": "x"} for i in range(1500)] + [
        {"slug": "z", "title": "T", "i": 0, "text": "y"}
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read(path)[1].heads[0].values["title"] == "T"


def test_nested_objects_are_columns_with_dotted_names(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"doc": {"slug": "s"}, "block": {"i": 0, "text": "x"}}) + "\n")
    with Tables(("slug",), ("text",)) as tables:
        columns = Columns("slug", "", "text", {"slug": ("doc.slug",)}, {"text": ("block.text",)})
        file = as_file(path)
        tables.add(file, "test", columns, tables.columns(file)[1])
        [group] = tables.groups()
    assert (group.key, group.rows[0].values) == ("s", ("x",))


def test_types_of_parquet_become_text(tmp_path: Path) -> None:
    import datetime

    path = tmp_path / "t.parquet"
    moment = datetime.datetime(2020, 5, 17, 23, 30, tzinfo=datetime.UTC)
    table = pa.table(
        {"slug": ["s"], "i": [3], "text": [b"as bytes"], "title": pa.array([moment], pa.timestamp("us", "UTC"))}
    )
    pq.write_table(table, path)
    [group] = read(path)
    assert group.rows[0].values == ("3", "as bytes")
    assert group.heads[0].values["title"] == "2020-05-17T23:30:00Z"


def test_a_text_column_of_numbers_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"slug": ["s"], "i": [0], "text": [5]}), path)
    with pytest.raises(SourceError, match="'text' has type BIGINT"):
        read(path)


def test_damage_inside_a_parquet_file_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", [f"text {i} " * 50 for i in range(500)])
    data = bytearray(path.read_bytes())
    data[200:4000] = bytes(3800)
    path.write_bytes(data)
    with pytest.raises(SourceError):
        read(path)


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_other_delimiters_are_recognised_by_the_header(delimiter: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(delimiter.join(["slug", "i", "text"]) + "\n" + delimiter.join(["s", "0", "one, two"]) + "\n")
    assert texts_of(read(path)) == ["one, two"]


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_carriage_return_that_a_csv_file_does_not_quote_is_text(ends: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(f'slug,i,text{ends}s,0,one\rtwo{ends}s,1,"a\r\nb\rc"{ends}'.encode())
    assert texts_of(read(path)) == ["one\rtwo", "a\r\nb\rc"]


def test_a_csv_file_may_end_its_rows_in_carriage_returns_alone(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b's,i,text\rs,0,one\rs,1,"a\rb"\r'.replace(b"s,i", b"slug,i"))
    assert texts_of(read(path)) == ["one", "a\rb"]


@pytest.mark.parametrize("name", ["t*", "t?", "[tu]", "t[!u]*", "it's"])
def test_a_file_is_read_by_its_very_name_even_beside_others_that_the_name_would_match(
    name: str, tmp_path: Path
) -> None:
    for other in ("t", "u", "tv"):
        write(tmp_path / f"{other}.parquet", ["another file"])
    assert texts_of(read(write(tmp_path / f"{name}.parquet", ["this file"]))) == ["this file"]


def test_the_name_of_a_folder_is_no_column(tmp_path: Path) -> None:
    (tmp_path / "slug=other").mkdir()
    [group] = read(write(tmp_path / "slug=other" / "t.parquet", ["x"]))
    assert group.key == "s"


def test_a_number_of_thousands_of_digits_spoils_its_line_alone(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"slug": "s", "i": ' + "9" * 5000 + ', "text": "x"}\n{"slug": "s", "i": 1, "text": "y"}\n')
    whole, broken = sorted(read(path), key=lambda group: group.key or "", reverse=True)
    assert texts_of([whole]) == ["y"]
    assert (broken.key, broken.rows[0].problem is None) == (None, False)


@pytest.mark.parametrize(
    "stopped",
    [
        RuntimeError("Query interrupted"),
        duckdb.InterruptException("INTERRUPT Error: Interrupted!"),
        duckdb.InvalidInputException("KeyboardInterrupt: \nAt:\n  somewhere"),
    ],
)
def test_an_interrupt_inside_the_engine_is_an_interrupt_and_no_fault_of_the_file(stopped: Exception) -> None:
    with pytest.raises(KeyboardInterrupt), tables._engine("t.csv"):
        raise stopped


def test_rows_that_do_not_fit_in_memory_are_a_fault_of_the_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few KB of Parquet can be GB of text. The disk is not full then."""
    path = tmp_path / "bomb.parquet"
    rows = "SELECT 's' AS slug, repeat('word ', 200000) AS text FROM range(100)"
    duckdb.sql(f"COPY ({rows}) TO '{path}' (FORMAT parquet, COMPRESSION zstd)")
    monkeypatch.setitem(tables._ENGINE, "memory_limit", "20MB")
    with pytest.raises(SourceError):
        read(path)


BOMBS = {
    # a file of a few KB; the text is in it once, and each row refers to it
    "text": "SELECT 's' || i AS slug, repeat('word ', 200000) AS text FROM range(100) t(i)",
    "title": "SELECT 's' || i AS slug, repeat('word ', 200000) AS title, 'x' AS text FROM range(100) t(i)",
    "rows": "SELECT 's' AS slug, NULL AS i, 'x' AS text FROM range(5000000)",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_parquet_file_that_decodes_to_too_much_is_refused_by_name_and_others_are_read(
    bomb: str, tmp_path: Path
) -> None:
    path = tmp_path / "bomb.parquet"
    duckdb.sql(f"COPY ({BOMBS[bomb]}) TO '{path}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 1000000)")
    assert path.stat().st_size < 100_000
    good = as_file(write(tmp_path / "good.parquet", ["one", "two"]))
    begun = time.process_time()
    with Tables(("slug", "title"), ("index", "text")) as opened:
        with pytest.raises(SourceError, match=r"bomb\.parquet: .*maximum"):
            opened.add(as_file(path), "test", COLUMNS, None)
        opened.add(good, "test", COLUMNS, None)
        assert texts_of(list(opened.groups())) == ["one", "two"]
    assert time.process_time() - begun < 10


def test_the_largest_rows_of_all_files_together_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorted by their keys they may meet in one vector, from whichever file."""
    monkeypatch.setattr(tables, "_LARGEST_ROWS", 100_000)
    one, two = (write(tmp_path / f"{name}", ["a" * 1_000] * 60) for name in ("one.parquet", "two.csv"))
    with Tables(("slug", "title"), ("index", "text")) as opened:
        opened.add(as_file(one), "test", COLUMNS, None)
        file = as_file(two)
        with pytest.raises(SourceError, match=r"two\.csv"):
            opened.add(file, "test", COLUMNS, opened.columns(file)[1])
        assert len(texts_of(list(opened.groups()))) == 60


def test_workbook_whose_cells_repeat_a_long_text_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workbook contains a text once, and each cell refers to it."""
    monkeypatch.setattr(tables, "_SMALL_TABLE", 1 << 20)
    monkeypatch.setattr(tables, "_MOST_RATIO", 10)
    book = Workbook()
    for number in range(2_000):
        book.worksheets[0].append(["slug", "i", "text"] if not number else ["s", str(number), "a" * 1_000])
    path = tmp_path / "bomb.xlsx"
    book.save(path)
    monkeypatch.setattr(tables, "_STAGED_ROWS", 100)
    with pytest.raises(SourceError, match=r"bomb\.xlsx: .*maximum"):
        read(path)


def test_a_full_disk_is_no_fault_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise duckdb.IOException('IO Error: Could not write file "x.wal": No space left on device')

    monkeypatch.setattr(Tables, "_stage", full)
    with pytest.raises(StoreError, match=r"no free space for the load's temporary files.*TMPDIR"):
        read(write(tmp_path / "t.csv", ["x"]))


@pytest.mark.parametrize(
    ("part", "content"),
    [
        ("xl/worksheets/sheet1.xml", b"<worksheet><sheetData><row r='1'><c r='A1' t='inlineStr'><is><t>slug"),
        ("xl/workbook.xml", b"garbage"),
        ("xl/styles.xml", b"garbage"),
    ],
)
def test_a_workbook_that_is_broken_inside_is_named(part: str, content: bytes, tmp_path: Path) -> None:
    book = Workbook()
    assert book.active is not None
    book.active.append(["slug", "i", "text"])
    book.active.append(["s", 0, "x"])
    book.save(tmp_path / "whole.xlsx")
    path = tmp_path / "t.xlsx"
    with zipfile.ZipFile(tmp_path / "whole.xlsx") as whole, zipfile.ZipFile(path, "w") as broken:
        for name in whole.namelist():
            broken.writestr(name, content if name == part else whole.read(name))
    with pytest.raises(SourceError, match=r"t\.xlsx: not an xlsx workbook, or a broken one"):
        read(path)


def test_a_cell_that_is_struck_out_is_empty_and_counted(tmp_path: Path) -> None:
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (("use", "level"), ("inn", "permitted"), ("mill", "permitted")):
        sheet.append(row)
    sheet["B3"].font = Font(strike=True)
    book.save(tmp_path / "a.xlsx")
    found = open_sheet(tmp_path / "a.xlsx")
    assert [row.cells for row in found.rows(("use", "level"), "use")] == [["inn", "permitted"], ["mill", None]]
    assert len(found.warnings) == 1


def test_struck_words_of_a_cell_with_its_own_runs_are_left_out_and_counted(tmp_path: Path) -> None:
    book = Workbook()
    assert book.active is not None
    book.active.append(["slug", "text"])
    struck, raised = InlineFont(strike=True), InlineFont(vertAlign="superscript")
    book.active.append(["s", CellRichText(TextBlock(struck, "20 feet "), "25", TextBlock(raised, "1"), " feet")])
    path = tmp_path / "t.xlsx"
    book.save(path)
    with zipfile.ZipFile(path) as archive:
        assert b"inlineStr" in archive.read("xl/worksheets/sheet1.xml")
    table = open_sheet(path)
    assert [row.cells for row in table.rows(["text"], "text")] == [["25¹ feet"]]
    assert len(table.warnings) == 1
