"""A code in HTML becomes the sections of its headings and its table of contents, with every word once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from kg.errors import SourceError
from loaders.readers import html_tree
from loaders.readers.inline import LeftOut
from loaders.zoning.readers import html_code, input_files
from loaders.zoning.readers.code_model import Code, Section
from loaders.zoning.readers.text_builder import Body, Written, WrittenTable

HEAD = """<!DOCTYPE html><html><head><meta charset="utf-8"/><title>Title 7 | Fictional Code</title>
<script type="application/ld+json">{"@type": "Legislation", "name": "Title 7 – Land",
"jurisdiction": {"name": "Quillhaven"}, "dateModified": "2023-01-02"}</script></head><body><h1>Title 7 – Land</h1>"""

CODE = (
    HEAD
    + """
<section id="07_01_04_010"><h3>7.1.04.010 Purpose</h3>
<p>This title keeps the peace of Quillhaven.</p>
<h4>History</h4><ul><li>Amended by Ord. 3-2001 on 2/3/2001</li></ul></section>
<section id="07_01_04_020"><h3>7.1.04.020 Definitions</h3>
<dl><dt><dfn>Barn</dfn></dt><dd>a roof for <em>hay</em>.</dd><dt>Yard</dt><dd>open land.</dd></dl>
<p>(Ord. No. 12-09, Amended 08/04/2009)</p><h4>Part 2 Growing Things</h4><p>7.2.08 Orchards</p></section>
<section id="07_02_08_010"><h3>7.2.08.010 Trees</h3><p>Rules:</p>
<ul><li>A. Rows.</li><li>1. Straight.</li><li>2. Even.</li><li>B. Ditches.</li></ul>
<ol type="a"><li>First<ol><li>inner</li></ol></li><li>Second</li></ol></section>
<section id="07_02_08_020"><h3>7.2.08.020 Sheds (Reserved)</h3></section>
</body></html>"""
)


def parse(text: str) -> Code:
    return html_code.parse(text.encode(), "title_7.html")


def by_key(code: Code) -> dict[str, Section]:
    return {section.key: section for section in code.sections}


def test_the_numbers_make_the_hierarchy_and_headings_anywhere_name_its_levels() -> None:
    code = parse(CODE)
    assert [(s.key, s.kind, s.level, s.parent, s.order, s.title) for s in code.sections] == [
        ("7", "title", 1, None, 0, "Land"),
        ("7.1", "part", 2, "7", 0, ""),
        ("7.1.04", "chapter", 3, "7.1", 0, ""),
        ("7.1.04.010", "section", 4, "7.1.04", 0, "Purpose"),
        ("7.1.04.020", "section", 4, "7.1.04", 1, "Definitions"),
        ("7.2", "part", 2, "7", 1, "Growing Things"),
        ("7.2.08", "chapter", 3, "7.2", 0, "Orchards"),
        ("7.2.08.010", "section", 4, "7.2.08", 0, "Trees"),
        ("7.2.08.020", "section", 4, "7.2.08", 1, "Sheds (Reserved)"),
    ]
    assert (code.municipality, code.warnings) == ("Quillhaven", ())


def test_history_is_apart_from_the_law_wherever_it_stands() -> None:
    sections = by_key(parse(CODE))
    assert sections["7.1.04.010"].text == "This title keeps the peace of Quillhaven."
    assert sections["7.1.04.010"].history == ["Amended by Ord. 3-2001 on 2/3/2001"]
    assert sections["7.1.04.020"].text == "Barn\na roof for hay.\nYard\nopen land."
    assert sections["7.1.04.020"].history == ["(Ord. No. 12-09, Amended 08/04/2009)"]
    ended = parse(
        HEAD + "<section><h3>7.04.010 A</h3><p>It ends. (Ord. 9 § 1 (part), 1999)</p><p>As ordered (Ord. 9).</p>"
    )
    assert by_key(ended)["7.04.010"].text == "It ends.\nAs ordered (Ord. 9)."
    assert by_key(ended)["7.04.010"].history == ["(Ord. 9 § 1 (part), 1999)"]


def test_a_heading_history_without_any_note_below_is_a_word_of_the_law() -> None:
    code = parse(HEAD + "<section><h3>7.04.010 Town</h3><h4>History</h4><p>Its museum is open to all.</p></section>")
    assert by_key(code)["7.04.010"].text == "History\nIts museum is open to all."


def test_labels_make_subsections_and_so_do_the_numbers_that_a_browser_gives() -> None:
    section = by_key(parse(CODE))["7.2.08.010"]
    assert [(".".join(s.path), section.text[s.start : s.end]) for s in section.subsections] == [
        ("A", "A. Rows.\n1. Straight.\n2. Even."),
        ("A.1", "1. Straight."),
        ("A.2", "2. Even."),
        ("B", "B. Ditches.\n• First\n◦ inner\n• Second"),
        ("B.a", "• First\n◦ inner"),
        ("B.a.1", "◦ inner"),
        ("B.b", "• Second"),
    ]


def test_a_section_that_is_reserved_or_repealed_says_so() -> None:
    code = parse(
        HEAD
        + "<section><h3>7.04.010 Sheds (Reserved)</h3></section><section><h3>7.04.020 Barns</h3><h4>[Repealed]</h4>"
        "<h4>(Ord. No. 2-09, Repealed 08/04/2009)</h4></section><section><h3>7.04.030 Moved to 7.08.010</h3>"
        "<p>(Ord. No. 3-09, Repealed 08/04/2009)</p></section><section><h3>7.04.040 Repealed laws</h3><p>Stay so.</p>"
    )
    assert [s.status for s in code.sections if s.kind == "section"] == ["reserved", "repealed", "repealed", None]


def test_tables_keep_spans_header_caption_and_what_is_nested() -> None:
    code = parse(
        HEAD + "<section><h3>7.04.010 Lots</h3><p>See:</p><table><caption>Table 1</caption><thead>"
        "<tr><th rowspan=2>Zone</th><th colspan=2>Yard <sup>5</sup></th></tr>"
        "<tr><th>Front</th><th>Rear</th></tr></thead><tbody><tr><td>R-1</td><td>20<br>feet</td><td><table><tr><td>a</td><td>b</td></tr></table>see</td></tr>"
        "<tr><td></td><td></td><td></td></tr></tbody></table><p>End.</p></section>"
    )
    section = by_key(code)["7.04.010"]
    outer, inner = section.tables
    assert section.text == "See:\nTable 1\nZone | Yard \u2075\nFront | Rear\nR-1 | 20 feet | see\na | b\nEnd."
    assert section.text[outer.start : outer.end] == "Zone | Yard \u2075\nFront | Rear\nR-1 | 20 feet | see\na | b"
    assert section.text[inner.start : inner.end] == "a | b"
    assert (outer.header_rows, outer.caption) == (2, "Table 1")
    assert [[cell.text if cell else None for cell in row] for row in outer.grid()] == [
        ["Zone", "Yard \u2075", "Yard \u2075"],
        ["Zone", "Front", "Rear"],
        ["R-1", "20 feet", "see"],
        ["", "", ""],
    ]
    (mark,) = outer.rows[0][1].superscripts
    assert section.text[slice(*mark)] == "\u2075"
    for table in section.tables:
        for cell in (cell for row in table.rows for cell in row):
            assert section.text[cell.start : cell.end] == cell.text


def test_entries_of_a_table_of_contents_within_the_text_are_no_sections() -> None:
    empty = "<section><h3>7.04.010 Barns</h3></section><section><h3>7.04.020 Sheds</h3></section>"
    full = "<section><h3>7.04.010 Barns</h3><p>Tall.</p></section><section><h3>7.04.020 Huts</h3><p>Low.</p></section>"
    code = parse(HEAD + empty + full)
    assert [(s.key, s.text) for s in code.sections if s.kind == "section"] == [
        ("7.04.010", "Tall."),
        ("7.04.020", "Low."),
    ]


def test_a_number_that_recurs_with_other_text_keeps_both_and_a_repeated_section_is_one() -> None:
    one = "<section><h3>7.04.010 Barns</h3><p>Tall.</p></section>"
    code = parse(HEAD + one + one + "<section><h3>7.04.010 Barns</h3><p>Low.</p></section>")
    assert [(s.key, s.number, s.text) for s in code.sections if s.kind == "section"] == [
        ("7.04.010", "7.04.010", "Tall."),
        ("7.04.010~2", "7.04.010", "Low."),
    ]
    assert sum("word for word" in each for each in code.warnings) == 1
    assert any("7.04.010~2" in each for each in code.warnings)


def test_a_section_without_number_or_heading_or_of_another_title_is_kept_and_told() -> None:
    code = parse(
        HEAD + '<section id="7_04_010"><p>No head.</p></section><section><h3>Afterword</h3><p>Thanks.</p></section>'
        "<section><h3>9.04.010 Stray</h3><p>Far.</p></section>"
    )
    sections = by_key(code)
    assert [s.text for s in code.sections if not s.number] == ["Thanks."]
    assert next(s.key for s in code.sections if not s.number).endswith("|section Afterword")
    assert sections["9.04.010"].parent == "9.04"
    assert any("9.04.010" in each and "any level with a heading" in each for each in code.warnings)
    assert any("'Afterword'" in each and "no number" in each for each in code.warnings)


def test_html_without_section_elements_is_parted_by_its_headings() -> None:
    code = parse(
        "<h1>CHAPTER 3 - SIGNS</h1><h2>ARTICLE II. Size</h2><h3>Sec. 3-1. Small</h3>tiny<p>one</p><h3>Notes</h3>x"
    )
    assert [(s.key, s.title, s.text) for s in code.sections] == [
        ("chapter 3", "SIGNS", ""),
        ("chapter 3|article II", "Size", ""),
        ("3-1", "Small", "tiny\none\nNotes\nx"),
    ]


def test_sections_within_sections_are_apart_where_they_have_numbers() -> None:
    code = parse(
        "<h1>Title 7 Land</h1><section><h2>Chapter 1 - BARNS</h2><p>Before.</p><section><h3>Sec. 1-1. Tall</h3>"
        "<section><h4>Note</h4>up</section></section>After.<section><h3>Sec. 1-2. Low</h3>down</section></section>"
    )
    assert [(s.key, s.parent, s.text) for s in code.sections] == [
        ("7", None, ""),
        ("7|chapter 1", "7", "Before.\nAfter."),
        ("1-1", "7|chapter 1", "Note\nup"),
        ("1-2", "7|chapter 1", "down"),
    ]


def test_an_empty_code_is_no_error_and_is_told() -> None:
    for text in ("", "   ", HEAD.partition("<h1>")[0] + "</body></html>", "<p>Welcome.</p>"):
        code = parse(text)
        assert not any(section.text for section in code.sections)
        assert code.warnings


def test_the_encoding_is_what_the_bytes_are_rather_than_what_they_say() -> None:
    page = HEAD + "<section><h3>7.04.010 Café</h3><p>“Naïve” § 5</p></section>"
    for data, warned in (
        (page.encode(), False),
        (page.encode("utf-16"), False),
        (b"\xef\xbb\xbf" + page.encode(), False),
        (page.encode("cp1252"), True),
        (
            page.replace("utf-8", "iso-8859-15")
            .replace("–", "-")
            .encode("cp1252")
            .replace(b"iso-8859-15", b"windows-1252"),
            False,
        ),
        (page.replace("utf-8", "us-ascii").encode(), True),
    ):
        code = html_code.parse(data, "x.html")
        assert (by_key(code)["7.04.010"].title, by_key(code)["7.04.010"].text) == ("Café", "“Naïve” § 5")
        assert bool(code.warnings) == warned
    with pytest.raises(SourceError, match=r"x\.html: "):
        html_code.parse(b"\x89PNG\0\0\xff", "x.html")


def test_broken_html_loses_no_words() -> None:
    code = parse(
        HEAD + "<section><h3>7.04.010 A</h3><p>one <b>two<p>three</b> &amp; <10 feet<table><td>four<tr>five</section"
    )
    text = by_key(code)["7.04.010"].text
    assert [word for word in ("one", "two", "three", "four", "five") if word not in text] == []


def test_a_section_of_5_mb_and_elements_that_nest_deep_are_read_or_refused() -> None:
    words = "shall not be built " * 275_000
    code = parse(HEAD + f"<section><h3>7.04.010 A</h3><p>{words}</p></section>")
    assert len(by_key(code)["7.04.010"].text) == len(words) - 1
    deep = HEAD + "<section><h3>7.04.010 A</h3>%slow</section>"
    assert by_key(parse(deep % ("<div>" * 500)))["7.04.010"].text == "low"
    with pytest.raises(SourceError, match="nest too deep"):
        parse(deep % ("<div>" * 50_000))


def test_thousands_of_sections_with_one_number_are_kept_in_bounded_time() -> None:
    code = parse(HEAD + "".join(f"<section><h3>7.04.010 A</h3>{n}</section>" for n in range(3_000)))
    assert [s.key for s in code.sections][-1] == "7.04.010~3000"
    code = parse(HEAD + "<section><h3>7.04.010 A</h3></section>" * 3_000)
    assert [s.key for s in code.sections] == ["7", "7.04", "7.04.010"]


WORD = st.text(st.sampled_from("abcdeéß'§5"), min_size=1, max_size=6)
TREE = st.recursive(
    WORD.map(lambda word: f" {word} "),
    lambda inner: st.tuples(
        st.sampled_from(["p", "div", "ul", "li", "em", "b", "blockquote", "h4", "dl", "dd", "span"]),
        st.lists(inner, max_size=4),
    ).map(lambda each: f"<{each[0]}>{''.join(each[1])}</{each[0]}>"),
    max_leaves=25,
)


@given(st.lists(TREE, max_size=6))
def test_every_word_of_a_body_is_in_its_text_once_and_in_order(parts: list[str]) -> None:
    page = HEAD + "<section><h3>7.04.010 A</h3>" + "".join(parts) + "</section>"
    element = next(html_tree.parse_html(page, "page", LeftOut()).iter("section"))  # type: ignore[union-attr]
    words = " ".join(element.itertext()).split()[2:]
    section = next(s for s in parse(page).sections if s.key == "7.04.010")
    assert [word for word in section.text.split() if word not in "•◦▪–·"] == words


CELL = st.builds(Written, st.lists(WORD, max_size=2).map(" ".join), st.integers(1, 3), st.integers(1, 3))


@given(st.lists(st.lists(CELL, min_size=1, max_size=4), max_size=5), st.lists(WORD, max_size=3))
def test_a_table_and_its_cells_are_where_they_say(rows: list[list[Written]], lines: list[str]) -> None:
    body = Body()
    for line in lines:
        body.write(line)
    body.table(WrittenTable(rows))
    body.write("end")
    content = body.content()
    (table,) = content.tables
    for row, given_row in zip(table.rows, rows, strict=True):
        assert [content.text[cell.start : cell.end] for cell in row] == [cell.text for cell in given_row]
        assert all(table.start <= cell.start <= cell.end <= table.end for cell in row)
    grid = table.grid()
    assert len(grid) == len(rows)
    assert len({len(row) for row in grid}) <= 1
    assert {id(cell) for row in grid for cell in row if cell} == {id(cell) for row in table.rows for cell in row}


# The real files


@pytest.fixture(scope="module")
def spanish_fork(shared: Path) -> Path:
    return shared / "data" / "zoning" / "spanish-fork"


def real(folder: Path) -> dict[str, tuple[Code, etree._Element, list[str]]]:
    found = {}
    for each in input_files.find_codes(sorted(folder.glob("*"))).inputs:
        root = html_tree.parse_html(each.path.read_text(), each.path.name, LeftOut())
        assert root is not None
        labels = [
            entry["label"] for entry in json.loads((folder / f"toc_{each.path.stem}.json").read_bytes())["sections"]
        ]
        found[each.path.name] = (each.read(), root, labels)
    return found


def test_the_sections_of_the_real_files_are_those_of_their_tables_of_contents(spanish_fork: Path) -> None:
    for name, (code, _, contents) in real(spanish_fork).items():
        listed = {label.split()[0] for label in contents}
        sections = [section for section in code.sections if section.kind == "section"]
        assert {section.number for section in sections} == listed, name
        assert len(sections) == len(listed), name
        assert all(not section.tables or section.text for section in sections)
        by_number = {section.key: section for section in code.sections}
        assert all(s.parent is None or s.number.startswith(by_number[s.parent].number + ".") for s in sections), name


def test_every_word_of_the_real_files_is_in_a_text_or_a_note_once(spanish_fork: Path) -> None:
    for name, (code, root, _) in real(spanish_fork).items():
        by_number = {section.number: section for section in code.sections}
        names = Counter(
            word
            for s in code.sections
            if s.kind != "section"
            for word in f"{s.kind.title()} {s.number} {s.title}".split()
        )
        bags: dict[str, list[Counter[str]]] = {}
        for element in root.iter("section"):
            heading = " ".join("".join(element[0].itertext()).split())
            words = Counter(" ".join(element.itertext()).split()) - Counter(heading.split())
            if words:
                bags.setdefault(heading.split()[0], []).append(words)
        for number, found in bags.items():
            section = by_number[number]
            ours = Counter(section.text.replace(" | ", " ").split())
            for note in section.notes:
                ours += Counter(note.text.split())
            assert not ours - sum(found, Counter()), (name, number)
            for words in found:
                # The rest are headings: of levels, which are within the preceding sections, and of history.
                left = words - ours - Counter(["History", "HISTORY"] * 9)
                assert set(left) <= set(names) | {"Part", "2", "3", "4"}, (name, number, left)
        assert bags.keys() == {s.number for s in code.sections if s.kind == "section" and (s.text or s.notes)}, name


def test_the_table_of_standards_is_kept(spanish_fork: Path) -> None:
    code = real(spanish_fork)["title_15_land_use.html"][0]
    (table,) = by_key(code)["15.3.16.170"].tables
    grid = table.grid()
    assert (table.header_rows, len(grid), {len(row) for row in grid}) == (2, 18, {11})
    header = [" / ".join(dict.fromkeys(cell.text for cell in column if cell)) for column in zip(*grid[:2], strict=True)]
    assert header[5] == "Minimum Setback / Front \u2076"
    row = next(row for row in grid if row[0] is not None and row[0].text == "R-1-12")
    assert row[2] is not None
    assert row[2].text == "12,000 sf"
    json.dumps([[cell.text if cell else None for cell in line] for line in grid])


@pytest.mark.parametrize(
    ("heading", "is_law"),
    [
        ("No fence shall exceed six feet.", True),
        ("Maximum height: 35 feet", True),
        ("Fences and walls", False),
        ("Fences shall be low. (Reserved)", False),
    ],
)
def test_law_that_is_only_in_a_heading_is_the_text_of_its_section(heading: str, is_law: bool) -> None:
    page = f"<h1>Chapter 4 Fences</h1><h2>Sec. 4-1. {heading}</h2><h2>Sec. 4-2. Gates</h2><p>They may be high.</p>"
    section = by_key(parse(page))["4-1"]
    assert section.text == (section.title if is_law else "")
