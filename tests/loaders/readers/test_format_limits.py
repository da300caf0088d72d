"""Files that are small on disk and large in memory are refused by name, before they are read."""

from __future__ import annotations

import json
import time
import zipfile
from pathlib import Path

import duckdb
import pytest
from openpyxl import Workbook

from kg.errors import SourceError
from loaders.readers import formats, tables
from loaders.readers.formats import open_sheet


@pytest.mark.parametrize("part", ["xl/sharedStrings.xml", "xl/worksheets/sheet1.xml"])
def test_workbook_that_decompresses_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    monkeypatch.setattr(formats, "_LARGEST_SHEET", 1 << 28)
    path = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as book, book.open(part, "w") as file:
        for _ in range(300):
            file.write(b" " * (1 << 20))
    assert path.stat().st_size < 2 << 20
    begun = time.process_time()
    with pytest.raises(SourceError, match=r"bomb\.xlsx: .*" + part):
        open_sheet(path)
    assert time.process_time() - begun < 1


@pytest.mark.parametrize(
    ("part", "limit"), [("xl/styles.xml", "_LARGEST_STYLES"), ("xl/worksheets/sheet1.xml", "_SMALL_PART")]
)
def test_workbook_with_a_part_that_is_compressed_extremely_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str, limit: str
) -> None:
    monkeypatch.setattr(formats, limit, 1 << 16)
    path = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr(part, "<xf/>" * 20_000)
    with pytest.raises(SourceError, match=r"bomb\.xlsx: .*" + part):
        open_sheet(path)


@pytest.mark.parametrize("dimension", ["A1", "A1:A3", "A1:XFD1048576"])
def test_rows_and_columns_outside_the_declared_dimension_are_read(tmp_path: Path, dimension: str) -> None:
    book = Workbook()
    for row in (("id", "text"), ("1", "one"), ("2", "two"), ("3", "three")):
        book.worksheets[0].append(row)
    whole, path = tmp_path / "whole.xlsx", tmp_path / "declared.xlsx"
    book.save(whole)
    with zipfile.ZipFile(whole) as parts, zipfile.ZipFile(path, "w") as target:
        for name in parts.namelist():
            content = parts.read(name).replace(b'ref="A1:B4"', f'ref="{dimension}"'.encode())
            target.writestr(name, content)
    sheet = open_sheet(path)
    assert list(sheet.columns) == ["id", "text"]
    assert [list(row.cells) for row in sheet.rows(["id", "text"], "text")] == [
        ["1", "one"], ["2", "two"], ["3", "three"],
    ]  # fmt: skip


def test_line_of_json_that_is_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "_LONGEST_LINE", 1_000)
    path = tmp_path / "long.jsonl"
    path.write_text('{"id": "a"}\n{"id": "' + "a" * 2_000 + '"}\n')
    with pytest.raises(SourceError, match=r"long\.jsonl: line 2 "):
        list(open_sheet(path).rows(["id"], "id"))


def test_cell_of_csv_that_is_too_long_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text('id,text\n1,short\n2,"' + "a\n" * (1 << 23) + 'a"\n')
    begun = time.process_time()
    with pytest.raises(SourceError, match=r"long\.csv: not CSV at line"):
        list(open_sheet(path).rows(["id", "text"], "text"))
    assert time.process_time() - begun < 20


def write_parquet(path: Path, rows: str) -> Path:
    duckdb.sql(f"COPY ({rows}) TO '{path}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 2048)")
    return path


def test_long_cell_of_json_lines_and_of_a_workbook_is_refused_with_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "LONGEST_CELL", 1_000)
    lines = tmp_path / "long.jsonl"
    lines.write_text("".join(json.dumps({"id": "a" * size}) + "\n" for size in (1_000, 1_001)))
    book = Workbook()
    for text in ("id", "a" * 1_000, "a" * 1_001):
        book.worksheets[0].append([text])
    book.save(tmp_path / "long.xlsx")
    for path in (lines, tmp_path / "long.xlsx"):
        with pytest.raises(SourceError, match=rf"{path.name}: row 2 .*'id'"):
            list(open_sheet(path).rows(["id"], "id"))


def test_long_cell_of_parquet_is_refused_with_its_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "LONGEST_CELL", 1_000)
    path = write_parquet(
        tmp_path / "long.parquet",
        "SELECT 'x' AS id, repeat('\u00fc', CASE i WHEN 7 THEN 1001 ELSE 1000 END) AS text FROM range(20) t(i)",
    )
    with pytest.raises(SourceError, match=r"long\.parquet: row 8 .*'text'"):
        list(tables.parquet_sheet(path).rows(["id", "text"], "text"))
