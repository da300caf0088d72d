"""A small file that is deep, or expands to much, is refused by name and place, and the other files are loaded."""

from __future__ import annotations

import gzip
import re
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from openpyxl import Workbook

from kg import bundle
from kg.errors import SourceError
from kg.knowledge_graph import KnowledgeGraph
from kg.settings import Settings
from loaders.load_report import LoadReport
from loaders.readers import json_stream, tables
from loaders.sources import load

_GOOD = {"hansard": "hansard/speeches.csv", "zoning": "zoning/upper_feign.json", "wikibase": "wikibase/concepts.json"}
_DEEP = 30_000


def _load(kg: KnowledgeGraph, domain: str, path: Path) -> LoadReport:
    good = bundle.folder("fixtures") / _GOOD[domain]
    return load(kg, domain, [str(path), str(good)], gate=False, index=False)


def _check_refused(report: LoadReport, *words: str) -> None:
    assert report.loaded
    [rejection] = report.rejections
    for word in words:
        assert word in rejection.reason


@pytest.mark.parametrize(
    ("domain", "name", "text", "place"),
    [
        ("hansard", "deep.jsonl", '{"text": ' + "[" * _DEEP + "]" * _DEEP + "}\n", "Line 1 nests"),
        ("hansard", "deep.json", '[\n{"text": ' + '{"a":' * _DEEP + "1" + "}" * _DEEP + "}]", "at line 2, column"),
        ("zoning", "deep.json", '{"\\"[": ' + "[" * _DEEP + "]" * _DEEP + "}", "at line 1, column 508"),
        ("zoning", "deep.html", "<p>a</p>\n" + "<div>" * _DEEP + "x", "deep.html, line 2"),
        ("wikibase", "deep.json", '{"id": "Q1", "labels": ' + "[" * _DEEP + "]" * _DEEP + "}\n", "element 1 nests"),
        ("wikibase", "deep.ttl", "<a:a> <a:a>\n" + "<<( <a:a> <a:a> " * _DEEP + "1" + " )>>" * _DEEP + " .", "line 2"),
        (
            "wikibase",
            "deep.nt",
            "<a:a> <a:a> " + "<<( <a:a> <a:a> " * _DEEP + "<a:a>" + " )>>" * _DEEP + " .",
            "line 1",
        ),
    ],
)
def test_deep_file_is_refused_by_place(
    open_graph: Callable[..., KnowledgeGraph], tmp_path: Path, domain: str, name: str, text: str, place: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    _check_refused(
        _load(open_graph(), domain, path), name if domain != "wikibase" or ".json" not in name else "", place
    )


def test_texts_with_marks_of_triple_terms_are_read(open_graph: Callable[..., KnowledgeGraph], tmp_path: Path) -> None:
    path = tmp_path / "marks.nt"
    path.write_text('<a:a> <a:a> "<<( )>>" .\n' * 2_000 + '<a:a> <a:a> "<<(" .\n' * 500)
    _check_refused(_load(open_graph(), "wikibase", path), "marks.nt", "contains no entity")


@pytest.mark.parametrize(
    ("domain", "name", "start"),
    [
        ("hansard", "large.xml", "<hansard>"),
        ("hansard", "large.json", '[{"text": "'),
        ("zoning", "large.html", "<p>"),
        ("zoning", "large.txt", ""),
    ],
)
def test_large_file_that_is_read_as_a_whole_is_refused(
    open_graph: Callable[..., KnowledgeGraph], tmp_path: Path, domain: str, name: str, start: str
) -> None:
    path = tmp_path / name
    path.write_text(start + "a" * (1 << 20) + "a")
    opened = open_graph()
    settings = Settings(_env_file=None, data_dir=opened.settings.data_dir, max_whole_file_mb=1)  # type: ignore[call-arg]
    _check_refused(_load(replace(opened, settings=settings), domain, path), name, "QUADCITE_MAX_WHOLE_FILE_MB")


@pytest.mark.parametrize("start", ['{"id": "Q1", "labels": "', '[\n{"id": "Q1",\n"labels": "'])
def test_entity_that_decompresses_to_too_much_ends_its_file(
    open_graph: Callable[..., KnowledgeGraph], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str
) -> None:
    monkeypatch.setattr(json_stream, "LARGEST_ELEMENT", 1 << 20)
    path = tmp_path / "large.json.gz"
    path.write_bytes(gzip.compress((start + "a" * (8 << 20)).encode(), 1))
    _check_refused(_load(open_graph(), "wikibase", path), "large.json.gz: element 1 has more than 1,048,576")


_ENTITIES = "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(9))
_LAUGHS = f'<?xml version="1.0"?>\n<!DOCTYPE r [<!ENTITY a0 "aaaaaaaaaa">{_ENTITIES}]>\n<r><p>&a9;</p></r>'


@pytest.mark.parametrize(("domain", "name"), [("hansard", "laughs.xml"), ("zoning", "laughs.xml")])
def test_entities_that_expand_to_much_are_refused(
    open_graph: Callable[..., KnowledgeGraph], tmp_path: Path, domain: str, name: str
) -> None:
    path = tmp_path / name
    path.write_text(_LAUGHS)
    _check_refused(_load(open_graph(), domain, path), name)


@pytest.mark.parametrize("ending", ["json", "nt"])
def test_compressed_file_that_is_cut_is_refused(
    open_graph: Callable[..., KnowledgeGraph], tmp_path: Path, ending: str
) -> None:
    path = tmp_path / f"cut.{ending}.gz"
    content = gzip.compress(b"\n".join(b"# %d" % (number**5) for number in range(9_000)))
    path.write_bytes(content[: len(content) // 2])
    _check_refused(_load(open_graph(), "wikibase", path), path.name)


def test_parquet_file_that_decodes_to_too_much_is_refused(
    open_graph: Callable[..., KnowledgeGraph], tmp_path: Path
) -> None:
    laws = bundle.folder("fixtures") / "climate" / "laws.csv"
    shutil.copy2(laws, tmp_path)
    law = f"SELECT * REPLACE (repeat('word ', 200000) AS description) FROM '{laws}' LIMIT 1"  # noqa: S608
    rows = f"SELECT law.* FROM ({law}) law, range(100)"  # noqa: S608
    path = tmp_path / "bomb.parquet"
    duckdb.sql(f"COPY ({rows}) TO '{path}' (FORMAT parquet, COMPRESSION zstd)")
    assert path.stat().st_size < 20_000
    _check_refused(load(open_graph(), "climate", [str(tmp_path)], gate=False, index=False), "bomb.parquet", "maximum")


def test_row_number_beyond_a_sheet_is_refused(open_graph: Callable[..., KnowledgeGraph], tmp_path: Path) -> None:
    path = tmp_path / "rows.xlsx"
    book = Workbook()
    book.active.append(["text", "speaker", "jurisdiction"])  # type: ignore[union-attr]
    book.save(path)
    with zipfile.ZipFile(path) as read:
        parts = {each: read.read(each) for each in read.namelist()}
    row = b'<row r="2000000000"><c r="A2000000000"><v>1</v></c></row></sheetData>'
    sheet = parts["xl/worksheets/sheet1.xml"].replace(b"</sheetData>", row)
    parts["xl/worksheets/sheet1.xml"] = re.sub(rb"<dimension[^>]*>", b"", sheet)
    with zipfile.ZipFile(path, "w") as written:
        for each, content in parts.items():
            written.writestr(each, content)
    _check_refused(_load(open_graph(), "hansard", path), "rows.xlsx", "1,048,576")


def test_rows_beyond_the_memory_of_the_reader_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "large.parquet"
    text = "CASE WHEN i = 3000 THEN repeat('x', 20000000) ELSE 'words' END"
    with duckdb.connect() as db:
        db.execute(
            f"COPY (SELECT i AS speech_id, {text} AS text FROM range(5000) t(i)) TO '{path}' "  # noqa: S608
            "(FORMAT parquet, ROW_GROUP_SIZE 2048)"
        )
    monkeypatch.setitem(tables._ENGINE, "memory_limit", "8MB")
    with pytest.raises(SourceError, match="'text' in rows 2,049 to 4,096"):
        list(tables.parquet_sheet(path).rows(["speech_id", "text"], "text"))
