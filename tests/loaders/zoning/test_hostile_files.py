"""Hostile or damaged files take time and memory linear in their size, and never stop a load."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from kg.errors import RecordError, SourceError
from loaders.readers import history_notes
from loaders.zoning.extraction.permissions import find_permissions
from loaders.zoning.graph import table_records
from loaders.zoning.readers import dc, html_code, input_files, json_entries, municode, plain_text
from loaders.zoning.readers.code_model import LARGEST_GRID, Cell, Code, Table
from loaders.zoning.readers.section_builder import LONGEST_KEY

HEAD = '<html><body><h1>Title 7 - Land</h1><section id="a"><h3>7.04.010 Barns</h3>'
BOUND_S = 10.0
"""Far more than the linear time of any of these files, and far less than the quadratic time."""


def text_of(page: bytes) -> str:
    code = html_code.parse(page, "page.html")
    return next(each.text for each in code.sections if each.number == "7.04.010")


def entry_code(sections: list[dict[str, object]]) -> Code:
    return json_entries.parse(
        json.dumps({"municipality": "Ebb", "state": "UT", "sections": sections}).encode(), "e.json"
    )


@pytest.mark.measures_processor_time
@pytest.mark.parametrize(
    "read",
    [
        lambda: plain_text.parse(("Sec. 1-1. A.\n" + ("(Ord. " + "1)" * 2_400 + "x\n") * 100).encode(), "t"),
        lambda: plain_text.parse(("Sec. 1-1. A.\n" + ("Law. " + "(Ord. 1; " * 500 + ")\n") * 100).encode(), "t"),
        lambda: plain_text.parse(("Sec. 1-1. A.\n" + ("amended by " + "1 " * 2_400 + "\n") * 100).encode(), "t"),
        lambda: plain_text.parse("".join(f"CHAPTER {n}\nTOWN {n}\n\n" for n in range(20_000)).encode(), "t"),
        lambda: plain_text.parse(("Sec. " + "1." * 145 + "\n" + ("Sec. " + "1a-" * 97 + " A\n") * 500).encode(), "t"),
        lambda: plain_text.parse(("1." * 148 + "x\n" + "Section " * 35 + "\n").encode() * 500, "t"),
        lambda: plain_text.parse(("Sec. 1-1. A.\n" + "1\f" * 9 + "a" * 100_000).encode(), "t"),
        lambda: find_permissions(
            entry_code([{"section_id": "1", "title": "Permitted uses", "raw_content": "," * 50_000 + "."}]).sections[0],
            {},
        ),
        lambda: entry_code([{"section_id": "1", "title": "(repealed " * 200_000}]),
        lambda: entry_code([{"section_id": str(n), "title": "A", "parent_id": str(n + 1)} for n in range(10_000)]),
    ],
)
def test_time_grows_with_length_and_not_with_its_square(read: Callable[[], object]) -> None:
    start = time.thread_time()
    read()
    assert time.thread_time() - start < BOUND_S


def test_notes_on_history_are_told_by_how_they_start_and_end() -> None:
    for note in ("(Ord. 5, § 2, 1-1-1990)", "[Amended 2001 .] .", "Amended by Ord. 3 of May", "History: 1999 c. 5"):
        assert history_notes.is_note(note)
    for words in ("(Ord. of the town)", "(Ord. 5 applies", "Amended plans are filed by 5.", "History: none"):
        assert not history_notes.is_note(words)


def test_notes_after_the_last_sentence_are_split_off() -> None:
    for note in (
        "(Ord. No. 84-12, § 2, 6-4-1984; Ord. No. 91-07, §§ 2, 3, 3-18-1991)",
        "(1993 Code, § 155.041) (Am. Ord. 96-20, § 5, passed 7-9-1996)",
        "[Amended 5-4-1998 ATM by Art. 22, § 3]",
        "(§ 2, Ord. 84-12, eff. 6-4-1984, as amended by § 4, Ord. 91-07)",
        "History: Ord. 12-84, § 2, eff. 6-4-1984",
    ):
        assert history_notes.split_last(f"Lots are dry. {note}") == ("Lots are dry.", note)
    for law in (
        "Lots are dry. (See § 5.)",
        "Lots are dry (Ord. 5 defines dry",
        "Lots. (Added to the roof.)",
    ):
        assert history_notes.split_last(law) == (law, None)


def test_labels_nest_to_a_depth_and_what_is_deeper_is_text_of_the_innermost() -> None:
    tracemalloc.start()
    code = html_code.parse((HEAD + "".join(f"<p>({'a1'[n % 2]}) w:</p>" for n in range(4_000))).encode(), "page.html")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    section = next(each for each in code.sections if each.number == "7.04.010")
    assert max(len(each.path) for each in section.subsections) <= 30
    assert peak < 100 << 20


def test_a_table_whose_spans_have_no_end_has_no_grid_and_keeps_its_words() -> None:
    wide = [Cell("a", 0, 1, colspan=100, rowspan=1_000)]
    assert Table(0, 1, [wide] * 1_000).grid() == ()
    assert Table(0, 1, [[Cell("a", 0, 1)] * LARGEST_GRID] + [[Cell("a", 0, 1)]] * 2).grid() == ()
    assert len(Table(0, 1, [wide] * 2).grid()[0]) == 200
    assert text_of((HEAD + "<table>" + "<tr><td rowspan=1000 colspan=100>a</td></tr>" * 3).encode()) == "a\na\na"


def test_sections_that_are_never_closed_are_read_to_the_last() -> None:
    page = "".join(f"<section><h3>7.04.{n} A</h3>w{n}" for n in range(900))
    assert [each.text for each in html_code.parse(page.encode(), "p").sections][-1] == "w899"


def test_keys_have_a_length() -> None:
    nodes = [
        {"Id": f"n{n}", "Heading": f"Level {n} of the town", "ParentId": f"n{n - 1}" if n else None} for n in range(300)
    ]
    code = municode.parse(json.dumps({"nodes": nodes, "docs": []}).encode(), "m.json")
    assert len({each.key for each in code.sections}) == 300
    assert max(len(each.key) for each in code.sections) <= LONGEST_KEY
    code = entry_code([{"section_id": "1" * (LONGEST_KEY + 1), "title": "A"}, {"section_id": "2", "title": "B"}])
    assert [each.key for each in code.sections] == ["2"]
    assert "401" in code.warnings[0]


@pytest.mark.parametrize("deep", ["<div>" * 5_000 + "w", "<p>x</p>" + "<table><tr><td>w" * 400])
def test_a_section_that_nests_too_deep_is_left_out_alone(deep: str) -> None:
    code = entry_code([{"section_id": "1", "raw_content": deep}, {"section_id": "2", "raw_content": "<p>kept</p>"}])
    assert [(each.key, each.text) for each in code.sections] == [("2", "kept")]
    assert "Entry 1 of 'sections'" in code.warnings[0]
    nodes = [{"Id": "a", "Heading": "Sec. 1-1. A"}, {"Id": "b", "Heading": "Sec. 1-2. B"}]
    docs = [{"Id": "a", "Content": deep}, {"Id": "b", "Content": "<p>kept</p>"}]
    code = municode.parse(json.dumps({"nodes": nodes, "docs": docs}).encode(), "m.json")
    assert [(each.key, each.text) for each in code.sections] == [("1-1", ""), ("1-2", "kept")]
    assert any("text of a" in each for each in code.warnings)


def test_lone_surrogates_of_a_service_are_replaced_and_told() -> None:
    given = {
        "nodes": [{"Id": "a", "Heading": "Sec. 1-1. A\ud800"}],
        "docs": [{"Id": "a", "Title": "Sec. 1-1. A\ud800", "Content": "<p>x\udfffy</p>"}],
    }
    code = municode.parse(json.dumps(given).encode(), "m.json")
    [section] = code.sections
    assert (section.title, section.text) == ("A\ufffd", "x\ufffdy")
    assert any("surrogates" in each for each in code.warnings)


def test_numbers_beyond_reason_and_what_is_no_number_are_left_out_or_empty() -> None:
    for part in ({"level": 10**30}, {"order": 10**30}, {"order": -1}):
        code = entry_code([{"section_id": "1", "title": "A", **part}])
        assert not code.sections
        assert "1,000,000,000" in code.warnings[0]
    code = json_entries.parse(b'{"sections": [{"section_id": "1", "title": NaN}]}', "e.json")
    assert code.sections[0].title == ""


def test_a_charset_that_no_page_has_is_not_believed() -> None:
    page = f"{HEAD}<p>Café “x” \\u0041</p>"
    for said in ("undefined", "idna", "unicode_escape", "utf-7", "punycode", "rot13", "utf-16", "utf-32"):
        assert text_of(f'<meta charset="{said}">{page}'.encode()) == "Café “x” \\u0041"
    for said in ("iso-8859-1", "us-ascii", "latin1"):
        assert text_of(f'<meta charset="{said}">{page}'.encode("cp1252")) == "Café “x” \\u0041"
    for encoding in ("utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"):
        assert text_of(page.encode(encoding)) == "Café “x” \\u0041"


def test_nul_is_replaced_and_told() -> None:
    code = plain_text.parse(b"Sec. 1-1. A.\nwo\0rd\n", "t.txt")
    assert code.sections[0].text == "wo\ufffdrd"
    assert "NUL" in code.warnings[0]


def test_an_empty_file_says_so_and_an_empty_code_is_one(tmp_path: Path) -> None:
    for name in ("a.html", "b.txt", "c.json"):
        (tmp_path / name).write_bytes(b" \n")
    (tmp_path / "d.json").write_text('{"municipality": "Nowhere", "state": "UT", "sections": []}')
    found = input_files.find_codes(sorted(tmp_path.iterdir()))
    assert [each.path.name for each in found.inputs] == ["a.html", "b.txt", "d.json"]
    for each in found.inputs[:2]:
        with pytest.raises(SourceError, match="file is empty"):
            each.read()
    assert found.inputs[2].read().municipality == "Nowhere"


def test_a_text_goes_with_the_page_of_its_name_only_where_that_is_near(tmp_path: Path) -> None:
    for name in ("elm/code.html", "elm/text/code.txt", "oak/code.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("w")
    found = input_files.find_codes(sorted(each for each in tmp_path.rglob("*") if each.is_file()))
    assert [each.path.relative_to(tmp_path).as_posix() for each in found.inputs] == ["elm/code.html", "oak/code.txt"]
    assert [each for each in found.warnings if "elm/text/code.txt: " in each]


def test_words_that_no_element_of_the_schema_holds_are_kept(tmp_path: Path) -> None:
    namespace = f'xmlns="{dc.NAMESPACE}"'
    (tmp_path / "index.xml").write_text(
        f"<container {namespace}><prefix>Title</prefix><num>9</num><heading>Odd</heading>loose<section><num>9-1</num>"
        "<heading>All</heading>stray<para><num>(a)</num><table><tr><td>cell</td><td>two</td></tr></table><note>aside</note>"
        "behind<text>own</text></para><table><tr><td>last</td></tr></table><form>sheet</form><annotations><annotation>"
        "Said <table><tr><td>x</td><td>y</td></tr></table></annotation></annotations></section></container>"
    )
    code = dc.parse(tmp_path / "index.xml")
    assert [each.text for each in code.sections] == [
        "loose",
        "stray\n(a)\ncell | two\naside\nbehind\nown\nlast\nsheet",
    ]
    assert [each.text for each in code.sections[1].notes] == ["Said x | y"]


def test_paragraphs_without_a_label_are_no_subsections_and_what_is_said_twice_is_text(tmp_path: Path) -> None:
    (tmp_path / "index.xml").write_text(
        f'<container xmlns="{dc.NAMESPACE}"><prefix>Title</prefix><num>9</num><heading>Odd</heading><section>'
        "<num>9-1</num><heading>One</heading><heading>Two</heading><prefix>Sub</prefix>"
        "<para><heading>First.</heading><text>a</text></para><para><heading>Second.</heading><text>b</text></para>"
        "<para><num>(a)</num><text>c</text></para><annotations>loose<annotation>Old</annotation>tail</annotations>"
        "</section></container>"
    )
    section = dc.parse(tmp_path / "index.xml").sections[1]
    assert (section.title, section.text) == ("One", "Two\nSub\nFirst. a\nSecond. b\n(a) c")
    assert [each.path for each in section.subsections] == [("a",)]
    assert [(each.kind, each.text) for each in section.notes] == [("History", "Old")]


def test_columns_of_one_name_and_tables_without_rows_are_told(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("Town,State,District,House,House\nElm,UT,R-1,P,N\n")
    table = table_records.open_table(path)
    assert [row.cells for row in table.rows(["House"], "")] == [["P"]]
    assert "'House'" in table.warnings[0]
    path = tmp_path / "t.json"
    path.write_text('[{"Town": "Elm", "District": NaN}]')
    [row] = table_records.open_table(path).rows(["Town", "District"], "")
    assert (row.number, row.cells, row.problem) == (1, ["Elm", None], None)


@pytest.mark.parametrize(
    ("given", "said"), [(["R-1"], "district is a list"), ({"code": "R-1"}, "district is an object")]
)
def test_what_is_no_text_is_named_in_the_words_of_json(given: object, said: str) -> None:
    with pytest.raises(RecordError, match=said):
        json_entries.parse_permission({"district": given, "use": "Kennel", "permission": "permitted"})
