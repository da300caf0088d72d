"""Each broken source in fixtures/malformed/climate, and what has to come of it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kg.errors import SourceError
from kg.knowledge_graph import KnowledgeGraph
from kg.vocabulary import KG, SCHEMA, mint
from loaders.load_report import LoadReport
from loaders.sources import load

pytestmark = pytest.mark.long

MALFORMED = Path(__file__).parent.parent.parent / "fixtures" / "malformed" / "climate"

UNREADABLE = {
    "missing-columns.csv": "published.*flat.*sample.*laws.*'sample', also needs geography_iso, block_index",
    "empty.csv": "the file is empty",
    "empty.jsonl": "the file is empty",
    "empty.parquet": "the file is empty",
    "truncated.parquet": "not a complete Parquet file",
    "unterminated-quote.csv": "not CSV at line 2",
    "not-a-workbook.xlsx": "not an xlsx workbook",
}
"""Files that are refused as a whole."""

REJECTED = {
    "wrong-types.jsonl": {
        "plan_0001": "row 1: the passage index 'first' is not a whole number",
        "page_0003": "row 3: the page number 'two' is not a whole number",
        "text_0004": "row 4 has 'text' of a wrong type",
        "list_0005": "row 5 has 'text' of a wrong type",
    },
    "duplicate-keys.csv": {"plan_0001": "index 1 in row 2 of .* and in row 3 of "},
    "lone-surrogate.jsonl": {"plan_0001": r"row 1 has the lone surrogate U\+D83D", r"slug_\udc00": r"row 3 .*U\+DC00"},
    "not-json.jsonl": {"not-json.jsonl": "row 2 is not JSON .*; row 3 is not a JSON object"},
    "ragged.csv": {"ragged_0007": "row 2 has 5 cells where the header has 12"},
    "no-family.jsonl": {"plan_0001": "Missing family"},
}
"""Records that are kept out while the others load."""


def loaded(kg: KnowledgeGraph, *names: str, **options: object) -> LoadReport:
    return load(kg, "climate", [str(MALFORMED / name) for name in names], **options)  # type: ignore[arg-type]


def texts(kg: KnowledgeGraph, slug: str) -> list[str]:
    graph = kg.store.graph(mint("graph", "src", "climate", slug))
    positions = {q.subject: int(q.object.value) for q in graph if q.predicate == SCHEMA.position}
    found = {positions[q.subject]: q.object.value for q in graph if q.predicate == SCHEMA.text}
    return [found[position] for position in sorted(found)]


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_named_file_that_cannot_be_read_stops_the_load_before_it_begins(name: str, kg: KnowledgeGraph) -> None:
    with pytest.raises(SourceError, match=UNREADABLE[name]):
        loaded(kg, name)
    assert kg.store.graphs() == []


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_named_file_that_cannot_be_read_is_rejected_beside_others(name: str, kg: KnowledgeGraph) -> None:
    report = loaded(kg, "null-text.csv", name)
    assert report.loaded == 1
    [rejection] = report.rejections
    assert Path(rejection.record).name == name
    assert re.search(UNREADABLE[name], rejection.reason)


@pytest.mark.parametrize("name", UNREADABLE)
def test_in_a_folder_it_is_rejected_and_the_rest_loads(name: str, kg: KnowledgeGraph, tmp_path: Path) -> None:
    for each in (name, "null-text.csv"):
        shutil.copy(MALFORMED / each, tmp_path)
    report = load(kg, "climate", [str(tmp_path)])
    assert report.loaded == 1
    assert [Path(rejection.record).name for rejection in report.rejections] == [name]


def test_a_folder_of_nothing_but_faults_loads_the_rest_whatever_fails_first(kg: KnowledgeGraph) -> None:
    report = load(kg, "climate", [str(MALFORMED)])
    unread = {Path(rejection.record).name for rejection in report.rejections if rejection.key is None}
    assert unread >= UNREADABLE.keys()
    assert report.loaded > len(REJECTED)


@pytest.mark.parametrize("name", REJECTED)
def test_a_bad_record_is_kept_out_with_its_reason_and_the_load_goes_on(name: str, kg: KnowledgeGraph) -> None:
    report = loaded(kg, name)
    assert report.loaded >= 1
    found = {Path(rejection.record).name: rejection.reason for rejection in report.rejections}
    assert found.keys() == REJECTED[name].keys()
    for record, reason in REJECTED[name].items():
        assert re.search(reason, found[record]), found[record]
    entries = [json.loads(path.read_text()) for path in kg.settings.data_dir.glob("quarantine/*.json")]
    assert {Path(entry["record"]).name for entry in entries} == found.keys()


def test_nothing_in_a_file_with_a_header_alone_is_nothing_loaded(kg: KnowledgeGraph) -> None:
    report = loaded(kg, "header-only.csv")
    assert (report.loaded, report.rejected, report.run) == (0, 0, None)


def test_a_row_without_text_is_left_out_and_white_space_is_text(kg: KnowledgeGraph) -> None:
    report = loaded(kg, "null-text.csv")
    assert texts(kg, "plan_0001") == ["This text is fictional.", " "]
    assert "plan_0001: row 2 without text skipped" in report.warnings


def test_any_slug_makes_identifiers_that_the_store_gives_back(kg: KnowledgeGraph) -> None:
    report = loaded(kg, "odd-slugs.jsonl")
    slugs = ["with space", "with|pipe", "with#hash", "weiß-naïve-計画", "a/b?c=d&e=%41", ".."]
    assert (report.loaded, report.rejected) == (len(slugs), 0)
    for slug in slugs:
        graph = kg.store.graph(mint("graph", "src", "climate", slug))
        assert mint("passage", slug, "0") in {quad.subject for quad in graph}
        assert slug in {quad.object.value for quad in graph if quad.predicate == KG.slug}


def test_the_same_passage_in_two_files_of_one_load_is_an_error_that_names_both(kg: KnowledgeGraph) -> None:
    report = loaded(kg, "null-text.csv", "duplicate-across.csv")
    [rejection] = report.rejections
    assert "row 1 of" in rejection.reason
    assert "null-text.csv" in rejection.reason
    assert "duplicate-across.csv" in rejection.reason
    assert report.loaded == 0


def test_the_same_slug_in_a_later_load_is_a_new_version(kg: KnowledgeGraph) -> None:
    loaded(kg, "null-text.csv")
    report = loaded(kg, "duplicate-across.csv")
    assert (report.loaded, report.rejected) == (1, 0)
    assert texts(kg, "plan_0001") == ["The same passage in another file."]


def test_nul_is_kept_and_survives_reopening(open_graph: Callable[..., KnowledgeGraph]) -> None:
    kg = open_graph()
    assert loaded(kg, "nul.jsonl").rejected == 0
    kg.store.close()
    assert texts(open_graph(), "plan_0001") == ["before\x00after"]


def test_an_escaped_pair_of_surrogates_is_one_character(kg: KnowledgeGraph) -> None:
    loaded(kg, "lone-surrogate.jsonl")
    assert texts(kg, "pair_0006") == ["whole \U0001f333 pair"]


def test_languages_are_per_passage_and_codes_whatever_the_source_writes(kg: KnowledgeGraph) -> None:
    report = loaded(kg, "mixed-languages.jsonl")
    graph = kg.store.graph(mint("graph", "src", "climate", "plan_0001"))
    spoken = {q.subject: q.object.value for q in graph if q.predicate == SCHEMA.inLanguage}
    passages = [spoken.get(mint("passage", "plan_0001", str(index))) for index in range(7)]
    assert passages == ["en", "fr", None, "pt", None, None, "zh-CN"]
    assert any("'Klingonese of Qo' (1 rows) is neither" in warning for warning in report.warnings)


@pytest.mark.parametrize(
    ("name", "text", "warned"),
    [
        ("windows-1252.csv", "Gebühren – “fiktiv” für 5 €", True),
        ("bom.csv", "Gebühren – fiktiv", False),
        ("utf-16.csv", "Gebühren – fiktiv", True),
    ],
)
def test_encodings_are_recognised_and_an_unusual_one_is_said(
    name: str, text: str, warned: bool, kg: KnowledgeGraph
) -> None:
    report = loaded(kg, name)
    assert texts(kg, "plan_0001") == [text]
    assert any("is not UTF-8" in warning for warning in report.warnings) == warned


def test_a_missing_geography_is_a_warning_and_page_minus_one_is_absent(kg: KnowledgeGraph) -> None:
    report = loaded(kg, "no-geography.jsonl")
    assert "plan_0001: has no geography" in report.warnings
    graph = kg.store.graph(mint("graph", "src", "climate", "plan_0001"))
    assert not [quad for quad in graph if quad.predicate == KG.jurisdiction]
    assert [q.subject for q in graph if q.predicate == KG.pageNumber] == [mint("passage", "plan_0001", "0")]


def test_rows_of_no_document_are_rejected_under_their_file(kg: KnowledgeGraph) -> None:
    report = loaded(kg, "no-slug.jsonl")
    assert report.loaded == 1
    assert {Path(rejection.record).name for rejection in report.rejections} == {"no-slug.jsonl"}
    assert sorted(row for rejection in report.rejections for row in rejection.rows) == [1, 2]
