"""A code in plain text is split at the headings in its own style, and nowhere else."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.errors import SourceError
from loaders.readers.headings import Heading, parse_heading
from loaders.zoning.extraction.citation_resolution import Index, resolve_words
from loaders.zoning.readers import html_code, plain_text
from loaders.zoning.readers.code_model import Code, Subsection
from loaders.zoning.readers.outline import find_meanings, find_parts

WORDED = """\
TITLE 1. GENERAL
CHAPTER 61
ZONING
ARTICLE I. IN GENERAL
Sec. 61-1-1. Purpose.
Sec. 61-1-2. Scope.
ARTICLE II. DISTRICTS
Sec. 61-2-1. Uses.

CHAPTER 61
ZONING
ARTICLE I. IN GENERAL
Sec. 61-1-1. Purpose.
The purpose is order.
(Ord. No. 5, § 2, 1-1-1990)
Sec. 61-1-2. Scope.
Section 5 of this code applies to all. As to ponds, see
Sec. 61-2-1.
Article II is apart.
ARTICLE II. DISTRICTS
Division 1. Quiet
Sec. 61-2-1. Uses.
Use\tR1\tR2
Duplex\tP\tC
Farm\tC\tP
That is all.
"""


def parse(text: str) -> Code:
    return plain_text.parse(text.encode(), "code.txt")


def test_headings_with_words_make_levels_and_a_table_of_contents_none() -> None:
    code = parse(WORDED)
    assert [(s.level, s.key, s.title, s.text) for s in code.sections] == [
        (1, "1", "GENERAL", ""),
        (2, "1|chapter 61", "ZONING", ""),
        (3, "1|chapter 61|article I", "IN GENERAL", ""),
        (4, "61-1-1", "Purpose.", "The purpose is order."),
        (
            4,
            "61-1-2",
            "Scope.",
            "Section 5 of this code applies to all. As to ponds, see\nSec. 61-2-1.\nArticle II is apart.",
        ),
        (3, "1|chapter 61|article II", "DISTRICTS", ""),
        (4, "1|chapter 61|article II|division 1", "Quiet", ""),
        (5, "61-2-1", "Uses.", "Use | R1 | R2\nDuplex | P | C\nFarm | C | P\nThat is all."),
    ]
    assert [s.lines for s in code.sections if s.kind == "section"] == [(13, 15), (16, 19), (22, 26)]
    assert code.sections[3].history == ["(Ord. No. 5, § 2, 1-1-1990)"]
    (table,) = code.sections[-1].tables
    assert [[cell.text for cell in row] for row in table.rows][1] == ["Duplex", "P", "C"]


@pytest.mark.parametrize(
    ("line", "heading"),
    [
        ("Sec. 61-1-1. Purpose.", Heading("section", "61-1-1", "Purpose.")),
        ("SECTION 4. Short title", Heading("section", "4", "Short title")),
        ("§ 10-101. Title", Heading("section", "10-101", "Title")),
        ("§10-101 Title", Heading("section", "10-101", "Title")),
        ("ARTICLE II. - DISTRICTS", Heading("article", "II", "DISTRICTS")),
        ("Article VII-A. Sign Code", Heading("article", "VII-A", "Sign Code")),
        ("CHAPTER 3", Heading("chapter", "3", "")),
        ("Chapter 17.04 – Zoning", Heading("chapter", "17.04", "Zoning")),
        ("Division 4 Signs", Heading("division", "4", "Signs")),
        ("APPENDIX A - ZONING", Heading("appendix", "A", "ZONING")),
        ("1.04.010 Title", Heading("section", "1.04.010", "Title", bare=True)),
        ("10.12.030. - Speed limits; streets.", Heading("section", "10.12.030", "Speed limits; streets.", bare=True)),
        ("Title 15 – Land Use", Heading("title", "15", "Land Use")),
        ("Part 3 of this title is known as the code", None),
        ("Section 5 of this code applies.", None),
        ("Section 12.04.010, Utah Code, applies", None),
        ("Division of Water", None),
        ("1.5 acres", None),
        ("Section 5 Applies to barns. It does so always.", None),
        ("Chapter 3 " + "Words " * 60, None),
        ("", None),
    ],
)
def test_a_heading_is_told_from_a_sentence(line: str, heading: Heading | None) -> None:
    assert parse_heading(line) == heading


def test_bare_numbers_are_headings_in_the_style_of_the_code_alone() -> None:
    code = parse(
        "Title 7 – Land\n7.1.04.010 Aims\nOrder.\n1.5.2.3 Not Of This Title\n507.5 Hydrant systems.\n7.1.04.020 Size\n"
        "2.5 Acres\n7.1.08 Barns\n7.1.08.010 Rules\nPart 2 Trees\n7.2.04.010 Rows\n7.2.04.020 Is how this ends.\n"
    )
    assert [(s.key, s.title, s.text) for s in code.sections if s.text or s.kind != "section"] == [
        ("7", "Land", ""),
        ("7.1", "", ""),
        ("7.1.04", "", ""),
        ("7.1.04.010", "Aims", "Order.\n1.5.2.3 Not Of This Title\n507.5 Hydrant systems."),
        ("7.1.04.020", "Size", "2.5 Acres"),
        ("7.1.08", "Barns", ""),
        ("7.2", "Trees", ""),
        ("7.2.04", "", ""),
        ("7.2.04.010", "Rows", "7.2.04.020 Is how this ends."),
    ]


def test_a_section_of_another_law_opens_no_level_where_sections_have_numbers_of_two_parts() -> None:
    own = [f"Sec. 1-{number}. Rule {number}.\nText.\n" for number in range(1, 9)]
    code = parse("".join([*own[:3], "Section 5. Penalties.\nWho errs pays.\n", *own[3:]]))
    assert [section.key for section in code.sections] == [f"1-{number}" for number in range(1, 9)]
    assert "Section 5. Penalties.\nWho errs pays." in code.sections[2].text


def test_long_bare_numbers_are_the_sections_where_they_outnumber_those_with_a_word() -> None:
    act = "".join(f"Section {number}. Aim {number}.\nText.\n" for number in range(1, 5))
    code = parse(act + "".join(f"17.04.0{number}0 Rule {number}\nText.\n" for number in range(1, 9)))
    assert [section.key for section in code.sections if section.text] == [f"17.04.0{n}0" for n in range(1, 9)]


def test_numbers_that_start_anew_in_each_article_have_keys_by_their_path() -> None:
    code = parse(
        "ARTICLE 1. A\nSection 1. X\none\nSection 2. Y\ntwo\nARTICLE 2. B\nSection 1. X\nthree\nSection 1. X\nfour\n"
    )
    assert [(s.key, s.text) for s in code.sections if s.kind == "section"] == [
        ("article 1|section 1", "one"),
        ("article 1|section 2", "two"),
        ("article 2|section 1", "three"),
        ("article 2|section 1~2", "four"),
    ]
    assert any("~2" in each for each in code.warnings)


def test_sections_below_sections_and_chapters_with_their_own_numbers() -> None:
    code = parse("Title 1 A\nChapter 1.04 B\n1.04.010 C\nx\n1.04.020 D\ny\n1.08.010 E\nz\n")
    assert [(s.key, s.parent) for s in code.sections] == [
        ("1", None),
        ("1.04", "1"),
        ("1.04.010", "1.04"),
        ("1.04.020", "1.04"),
        ("1.08", "1"),
        ("1.08.010", "1.08"),
    ]
    code = parse("Section 5.1. A\nx\nSection 5.1.1. B\ny\nSection 5.2. C\nz\n")
    assert [(s.key, s.parent) for s in code.sections if s.kind == "section"][:2] == [
        ("5.1", "chapter 5"),
        ("5.1.1", "5.1"),
    ]


def test_parts_stand_above_chapters_or_below_them_as_the_code_has_it() -> None:
    first = "PART I\nCHAPTER 1. A\nSec. 1-1. A.\nx\nCHAPTER 2. B\nSec. 2-1. B.\ny\n"
    above = parse(first + "PART II\nCHAPTER 3. C\nSec. 3-1. C.\nz\n")
    assert [(s.key, s.level) for s in above.sections if s.kind != "section"] == [
        ("part I", 1),
        ("part I|chapter 1", 2),
        ("part I|chapter 2", 2),
        ("part II", 1),
        ("part II|chapter 3", 2),
    ]
    below = parse("CHAPTER 1. A\nPart A\nSec. 1-1. A.\nx.\nPart B\nSec. 1-2. B.\ny\nCHAPTER 2. C\nSec. 2-1. C.\nz\n")
    assert [(s.key, s.level) for s in below.sections if s.kind != "section"] == [
        ("chapter 1", 1),
        ("chapter 1|part A", 2),
        ("chapter 1|part B", 2),
        ("chapter 2", 1),
    ]


def test_what_holds_no_heading_is_told_and_what_is_no_text_refused() -> None:
    for text in ("", "\n \n", "Only words.\n"):
        code = parse(text)
        assert not code.sections
        assert any("heading" in each for each in code.warnings)
    with pytest.raises(SourceError, match="UTF-8"):
        plain_text.parse(b"\x00\xff\x81PK", "x.txt")


def test_windows_line_ends_and_encodings_make_the_same_sections() -> None:
    text = "§ 1-1. Café\nThe “barn”.\n(a) One – two\n"
    assert parse(text).sections == plain_text.parse(text.replace("\n", "\r\n").encode("cp1252"), "x").sections
    assert plain_text.parse(text.encode("cp1252"), "x").warnings == ("x: Not valid UTF-8. Read as Windows-1252.",)


# Labels


def found(text: str, items: tuple[Subsection, ...] = ()) -> list[str]:
    lines, start = [], 0
    for line in text.split("\n"):
        lines.append((start, line))
        start += len(line) + 1
    parts = find_parts(lines, len(text), items)
    assert all(text[part.start : part.end] for part in parts)
    return [".".join(part.path) for part in parts]


@pytest.mark.parametrize(
    ("labels", "paths"),
    [
        ("(a) (1) (A) (i) (ii) (B) (2) (b)", "a a.1 a.1.A a.1.A.i a.1.A.ii a.1.B a.2 b"),
        ("(g) (h) (j) (k)", ""),
        ("(a) (b) (c) (d) (e) (f) (g) (h) (i) (j)", "a b c d e f g h i j"),
        ("(a) (b) (c) (d) (e) (f) (g) (h) (i) (ii) (i)", "a b c d e f g h h.i h.ii i"),
        ("A. 1. a. b. 2. B. 1.", "A A.1 A.1.a A.1.b A.2 B B.1"),
        ("(1) (1A) (2) (3)", "1 1A 2 3"),
        ("(a) (a-1) (b)", "a a-1 b"),
        ("(z) (aa) (bb)", ""),
        ("(1) (2) (4) (5)", "1 2 4 5"),
        ("(1) (2) (1) (2)", "1 2 1~2 2~2"),
        ("(1) (2) (9)", "1 2"),
        ("B. C.", "B C"),
        ("No. Mr. mix.", ""),
        ("1) a) b) 2)", "1 1.a 1.b 2"),
        ("I. A. B. II. A.", "I I.A I.B II II.A"),
    ],
)
def test_labels_nest_by_the_sequences_that_they_continue(labels: str, paths: str) -> None:
    assert found("\n".join(f"{label} words" for label in labels.split())) == paths.split()


def test_labels_on_one_line_nest_and_a_list_that_a_colon_announces_is_below() -> None:
    assert found("(a)(1) x\n(2) y\n(b) z") == ["a", "a.1", "a.2", "b"]
    assert found("1. x\na. These:\n1. y\n2. z\nb. w") == ["1", "1.a", "1.a.1", "1.a.2", "1.b"]
    assert found("1. x\na. y\nFarms\n1. z") == ["1", "1.a", "1~2"]
    items = (Subsection(("1",), 6, 11), Subsection(("2",), 12, 18))
    assert found("(a) x\nfirst\nsecond\n(b) y", items) == ["a", "a.1", "a.2", "b"]


def test_a_label_may_be_a_letter_and_a_roman_numeral() -> None:
    assert find_meanings("i", "(") == [("(a", 9), ("(i", 1)]
    assert find_meanings("V", ".") == [(".A", 22), (".I", 5)]
    assert find_meanings("bb", "(") == [("(a", 28)]
    assert find_meanings("ab", "(") == []


@given(
    st.lists(st.sampled_from(["(a) x", "(i) y", "1. z", "B. w", "words", "(2)(b) v", "iv) u", "x: 1. t"]), min_size=1)
)
def test_labelled_parts_lie_within_each_other_and_have_paths_of_their_own(lines: list[str]) -> None:
    text = "\n".join(lines)
    starts = [sum(len(line) + 1 for line in lines[:number]) for number in range(len(lines))]
    parts = find_parts(list(zip(starts, lines, strict=True)), len(text))
    assert len({part.path for part in parts}) == len(parts)
    by_path = {part.path: part for part in parts}
    for part in parts:
        assert 0 <= part.start < part.end <= len(text)
        outer = by_path.get(part.path[:-1])
        assert outer is None or outer.start <= part.start < part.end <= outer.end


WORD = st.sampled_from(["barn", "of", "§ 5", "(a)", "yard", "1.", "Section", "7"])
# A line that ends in "Section" may be the begin of a citation which goes on in the next line, so it is ambiguous.
WORDS = st.lists(WORD, min_size=1, max_size=6).filter(
    lambda words: parse_heading(" ".join(words)) is None and words[-1] != "Section"
)


@given(st.lists(st.tuples(st.integers(1, 99), st.integers(1, 99), st.lists(WORDS, max_size=4)), min_size=1, max_size=6))
def test_what_is_written_as_a_code_is_read_as_that_code(sections: list[tuple[int, int, list[list[str]]]]) -> None:
    numbers = {f"{chapter}-{number}": [" ".join(words) for words in lines] for chapter, number, lines in sections}
    text = "".join(
        f"Sec. {number}. Heading.\n" + "".join(f"{line}\n" for line in lines) for number, lines in numbers.items()
    )
    code = parse(text)
    assert {s.key: (s.title, s.text) for s in code.sections} == {
        number: ("Heading.", "\n".join(lines)) for number, lines in numbers.items()
    }


def test_the_text_of_a_real_title_gives_the_sections_of_its_html(shared: Path) -> None:
    folder = shared / "data" / "zoning" / "spanish-fork"
    page = html_code.parse((folder / "title_15_land_use.html").read_bytes(), "html")
    text = plain_text.parse((folder / "text-files" / "title_15_land_use.txt").read_bytes(), "text")
    assert text.warnings == ()
    for one, other in zip(page.sections, text.sections, strict=True):
        assert (one.key, one.title, one.kind, one.level, one.parent, one.order, one.status, one.notes) == (
            other.key, other.title, other.kind, other.level, other.parent, other.order, other.status, other.notes
        )  # fmt: skip
        # The text file has lost that notes are raised.
        assert unicodedata.normalize("NFKC", one.text).split() == unicodedata.normalize("NFKC", other.text).split()
        # The text version has line breaks within table cells, which the HTML does not have.
        assert one.text == other.text or one.tables


NUMBERS = {
    "I.A.1": ["Section IV.A.1", "Section IV.A.2", "Section IV.B.1", "Section IV.B.2", "Section V.A.1", "Section V.A.2"],
    "I.A.1, bare": ["IV.A.1.", "IV.A.2.", "IV.B.1.", "IV.B.2.", "V.A.1.", "V.A.2."],
    "I-A": ["Section IV-A.", "Section IV-B.", "Section IV-C.", "Section V-A.", "Section V-B.", "Section VI-A."],
    "I.A": ["Section IV.A", "Section IV.B", "Section V.A", "Section V.B", "Section VI.A", "Section VI.B"],
    "1.A.1": ["§ 4.A.1", "§ 4.A.2", "§ 4.B.1", "§ 4.B.2", "§ 5.A.1", "§ 5.A.2"],
    "1-A-1": ["§ 4-A-1.", "§ 4-A-2.", "§ 4-B-1.", "§ 4-B-2.", "§ 5-A-1.", "§ 5-A-2."],
    "1.A": ["Section 4.A", "Section 4.B", "Section 5.A", "Section 5.B", "Section 6.A", "Section 6.B"],
    "I.1": ["Section IV.1", "Section IV.2", "Section IV.3", "Section V.1", "Section V.2", "Section V.3"],
    "I-1": ["Section IV-1.", "Section IV-2.", "Section V-1.", "Section V-2.", "Section VI-1.", "Section VI-2."],
    "A.1": ["Section A.1", "Section A.2", "Section B.1", "Section B.2", "Section C.1", "Section C.2"],
    "1-1.-": ["Sec. 30-114. -", "Sec. 30-115. -", "Sec. 30-116. -", "Sec. 31-1. -", "Sec. 31-2. -", "Sec. 32-1. -"],
    "1.1.1": ["17.24.030", "17.24.040", "17.24.050", "17.26.010", "17.26.020", "17.26.030"],
    "1-1-1:": ["9-4-1:", "9-4-2:", "9-4-3:", "9-5-1:", "9-5-2:", "9-5-3:"],
    "§1.1": ["§155.042", "§155.043", "§155.044", "§155.050", "§155.051", "§155.052"],
    "1-1.1": ["§ 130-12.1", "§ 130-12.2", "§ 130-12.3", "§ 130-13", "§ 130-13.1", "§ 130-14"],
    "1-1A-1": ["10-2A-1", "10-2A-2", "10-2A-3", "10-2B-1", "10-2B-2", "10-2B-3"],
    "1B.1.1": ["23B.32.010", "23B.32.020", "23B.32.030", "23B.34.010", "23B.34.020", "23B.34.030"],
    "1": ["Section 1.", "Section 2.", "Section 3.", "Section 4.", "Section 5.", "Section 6."],
    "SEC 1 –": ["SECTION 401 –", "SECTION 402 –", "SECTION 403 –", "SECTION 501 –", "SECTION 502 –", "SECTION 503 –"],
    "1.1 and 1.1.1": ["6.1", "6.2", "6.2.1", "6.2.2", "6.3", "6.3.1"],
}  # fmt: skip
"""Ways in which codes number their sections, by a pattern."""
TITLES = ("Purpose", "Residence Districts", "Permitted Uses", "Lot Requirements", "Signs", "Enforcement")


@pytest.mark.parametrize("numbers", NUMBERS.values(), ids=NUMBERS)
def test_a_number_is_read_whole_in_each_style(numbers: list[str]) -> None:
    lines = [
        f"{number} {title}\n\nA lot shall have {title} in it.\n" for number, title in zip(numbers, TITLES, strict=True)
    ]
    code = parse("TOWN OF NOWHERE\n\n" + "\n".join(lines))
    sections = [each for each in code.sections if each.text]
    whole = [re.sub(r"^(?:section|sec\.|§) ?|[ .:–-]+$", "", number, flags=re.IGNORECASE) for number in numbers]
    assert [(each.number, each.title) for each in sections] == list(zip(whole, TITLES, strict=True))
    assert not any("same number" in each for each in code.warnings)


@pytest.mark.parametrize("line", ["C-1 District", "I-1 Light Industry", "M.1", "IV. B. Lots", "4.A lots are dry"])
def test_a_code_of_a_district_or_a_label_is_no_bare_number(line: str) -> None:
    assert parse_heading(line) is None


@pytest.mark.parametrize("rest", ["", "Sec. 1-10. Barns.\nBarns are dry.\n"])
def test_notes_before_the_first_heading_are_reported(rest: str) -> None:
    code = plain_text.parse(f"(Ord. 1)\n(Ord. 2)\n{rest}".encode(), "t.txt")
    assert [each.number for each in code.sections] == (["1-10"] if rest else [])
    assert any("2 lines" in warning and "'(Ord. 1)'" in warning for warning in code.warnings)


LISTED = """\
CONTENTS
Section 1. Purpose . . . . . 1
Section 2. Uses . . . . . 3
Section 3. Appeals . . . . . 5
ARTICLE I. IN GENERAL
Section 1. Purpose
The purpose is order. Appeals are decided under Section 3.
ARTICLE II. DISTRICTS
Section 2. Uses
Mills are permitted.
ARTICLE III. PROCEDURE
Section 3. Appeals
The board decides.
"""


def test_contents_that_list_sections_without_their_articles_make_no_sections() -> None:
    sections = parse(LISTED).sections
    assert [each.key for each in sections if each.kind == "section"] == [
        "article I|section 1",
        "article II|section 2",
        "article III|section 3",
    ]
    index = Index(sections)
    assert not index.restarts
    assert resolve_words("Section 3", index, "article I|section 1") == "article III|section 3"


def test_short_numbers_that_restart_in_each_article_are_resolved_in_their_article_only() -> None:
    restarting = (
        LISTED.partition("ARTICLE I.")[2].replace("Section 2", "Section 1").replace("Section 3. A", "Section 2. A")
    )
    index = Index(parse("ARTICLE I." + restarting).sections)
    assert index.restarts
    assert resolve_words("Section 2", index, "article I|section 1") is None
    assert resolve_words("Section 2", index, "article III|section 2") == "article III|section 2"


def test_empty_cells_at_the_ends_of_rows_keep_their_columns() -> None:
    text = "Section 1.1 Table\n\tR-1\tC-1\nHeight\t35\t\nWidth\t\t60\nShade\t\t\nSection 1.2 End\nNo more.\n"
    code = plain_text.parse(text.encode(), "x")
    (table,) = (each for one in code.sections for each in one.tables)
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["", "R-1", "C-1"], ["Height", "35", ""], ["Width", "", "60"], ["Shade", "", ""],
    ]  # fmt: skip


def test_indentation_is_no_column() -> None:
    code = plain_text.parse(b"Section 1.1 Table\n\tUse\tR-1\n\tInns\tP\n\tJust a line.\n", "x")
    (table,) = (each for one in code.sections for each in one.tables)
    assert [[cell.text for cell in row] for row in table.rows] == [["Use", "R-1"], ["Inns", "P"]]


def test_the_share_of_read_text_counts_from_the_first_heading() -> None:
    words = "The purpose is order in all parts of the town. " * 20
    code = plain_text.parse(f"A note.\nSection 1.1 Purpose. {words}\nSection 1.2 Scope. {words}\n".encode(), "x")
    assert [each for each in code.warnings if "% of the text" in each and not each.startswith("x: 100 ")] == []


def test_a_heading_that_numbers_imply_below_an_article_is_a_level() -> None:
    text = (
        "ARTICLE 3 RESIDENCE DISTRICTS\n3.1 RA District\n3.1.1 Permitted uses\na. Inns.\n3.1.2 Height\nLow.\n"
        "3.2 RB District\n3.2.1 Permitted uses\na. Kennels.\nARTICLE 4 BUSINESS\n4.1 B District\n4.1.1 Height\nHigh.\n"
    )
    levels = {each.key: (each.title, each.parent) for each in plain_text.parse(text.encode(), "x").sections}
    assert levels["3.1"] == ("RA District", "article 3")
    assert [levels[key][1] for key in ("3.1.1", "3.1.2", "3.2.1", "4.1.1")] == ["3.1", "3.1", "3.2", "4.1"]
