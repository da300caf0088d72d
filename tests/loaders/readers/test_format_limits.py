"""Files that are small on disk and large in memory are refused by name, before they are read."""

from __future__ import annotations

import time
import zipfile
from pathlib import Path

import pytest

from kg.errors import SourceError
from loaders.readers import formats
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
