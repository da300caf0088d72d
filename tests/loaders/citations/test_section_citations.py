"""Every pattern of citation, with its target and its offsets. The texts are our own."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loaders.citations.section_citations import Citation, find_citations
from loaders.zoning.extraction.citation_resolution import (
    Index,
    numbers_in,
    numbers_of,
    resolve,
    resolve_range,
)
from loaders.zoning.readers.code_model import Section
from tests.examples import dear


def keys(text: str, state: str | None = None) -> list[str]:
    return [each.key for each in find_citations(text, state)]


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        ("section", "as set out in Section 15.3.24.090(G)(2).", ["section 15.3.24.090(G)(2)"]),
        ("section range", "under §§ 10-113 to 10-116 of it", ["section 10-113", "section 10-116"]),
        ("section list", "Sections 3, 4(a) and 7 apply", ["section 3", "section 4(a)", "section 7"]),
        ("bare number", "refer to 15.3.24.090(A) for sheds", ["section 15.3.24.090(A)"]),
        ("subsection", "subsection (a)(1) of this section", ["section this(a)(1)"]),
        ("article", "by Article II of this chapter", ["chapter this|article II"]),
        ("division", "in Division 3 of Article IV", ["article IV|division 3"]),
        ("chapter", "see Chapter 5.04", ["chapter 5.04"]),
        ("this", "nothing in this title", ["title this"]),
        ("chapter of another law", "Chapter 41, Title 17, Utah Code Annotated", ["Utah Code Title 17, Chapter 41"]),
        ("U.S.C.", "42 U.S.C. § 1983 and 33 USC 1251(a)", ["42 U.S.C. § 1983", "33 U.S.C. § 1251(a)"]),
        ("CFR", "40 CFR Part 312; 40 C.F.R. § 403.5(b)", ["40 C.F.R. Part 312", "40 C.F.R. § 403.5(b)"]),
        ("state code", "MCL 125.3101 and Utah Code Ann. § 10-9a-103", ["MCL 125.3101", "Utah Code § 10-9a-103"]),
        (
            "public act",
            "Public Act 110 of 2006, 2008 PA 33, Pub. L. 91-190, D.C. Law 13-312",
            ["Public Act 110 of 2006", "Public Act 33 of 2008", "Pub. L. 91-190", "D.C. Law 13-312"],
        ),
    ],
)
def test_each_of_the_fourteen_patterns_is_read(form: str, text: str, expected: list[str]) -> None:
    assert keys(text) == expected, form


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Utah Code §§ 4-41a-601 through 603", ["Utah Code § 4-41a-601", "Utah Code § 4-41a-603"]),
        (
            "sections 307(b) and (c) of the Clean Water Act",
            ["section 307(b) of Clean Water Act", "section 307(c) of Clean Water Act"],
        ),
        ("Section 17-41-301, Utah Code Annotated, 1953", ["Utah Code § 17-41-301"]),
        ("Section 1983 of Title 42 of the United States Code", ["42 U.S.C. § 1983"]),
        ("40 CFR parts: 104-108", ["40 C.F.R. Part 104", "40 C.F.R. Part 108"]),
        ("subchapter I of Chapter 5 of Title 2 [§ 2-501 et seq.]", ["title 2|chapter 5|subchapter I", "section 2-501"]),
        ("Fairview Municipal Code §13.08.040", ["section 13.08.040"]),
        ("International Building Code Section 105", ["section 105 of International Building Code"]),
        ("Chapter 3 of the International Fire Code", ["chapter 3 of International Fire Code"]),
        ("D.C. Official Code § 8-231.01", ["D.C. Official Code § 8-231.01"]),
        ("clause (ii) of subsection (b)(3) of this section", ["section this(b)(3)(ii)"]),
        ("paragraph (2) of § 8-101(a)", ["section 8-101(a)(2)"]),
        ("Act 207 of the Public Acts of 1921", ["Public Act 207 of 1921"]),
        ("20 DCMR 700.1 et seq.", ["20 DCMR § 700.1"]),
        ("6-B DCMR §§ 809-810", ["6-B DCMR § 809", "6-B DCMR § 810"]),
        ("16 DCMR Ch. 1", ["16 DCMR Chapter 1"]),
        ("§§ 108, 900.7, and 1000 of 18 DCMR", ["18 DCMR § 108", "18 DCMR § 900.7", "18 DCMR § 1000"]),
        ("Sections 4.2 and 4.3, 2010 edition", ["section 4.2", "section 4.3"]),
        ("under 65 ILCS 5/11-13-1.", ["65 ILCS 5/11-13-1"]),
        ("40 CFR Part 60, § 60.2", ["40 C.F.R. Part 60", "40 C.F.R. § 60.2"]),
        ("see ch. 4, § 6", ["chapter 4|section 6"]),
        ("§ 6 of ch. 4; § 6, Ch. 4", ["chapter 4|section 6", "chapter 4|section 6"]),
        ("Tit. 5, ch. 3, art. II", ["title 5|chapter 3|article II"]),
        ("Title 5, Chapter 3, Section 12(a)(1)", ["title 5|chapter 3|section 12(a)(1)"]),
        ("Title I, Part B, section 3(3) of the Pension Act", ["title I|part B|section 3(3) of Pension Act"]),
        ("Unit A of Chapter 14 of Title 2", ["title 2|chapter 14|unit A"]),
        ("Chapter 5 or Chapter 6 of Title 20 DCMR", ["20 DCMR Chapter 5", "20 DCMR Chapter 6"]),
        ("section 5 or 6 of the Clean Air Act", ["section 5 of Clean Air Act", "section 6 of Clean Air Act"]),
        (
            "§ 2-1(b), and §§ 4-9(1), 4-11, and 4-12",
            ["section 2-1(b)", "section 4-9(1)", "section 4-11", "section 4-12"],
        ),
        ("§§ 28:2A-103(a) to 2A-107", ["section 28:2A-103(a)", "section 28:2A-107"]),
        ("Public Law 97-377, § 155", ["Pub. L. 97-377", "section 155 of Public Law 97-377"]),
        ("the Act of May 3, 1890, Chapter 12", ["chapter 12 of Act of May 3, 1890"]),
        ("(ch. 7, 26 Stat. 492)", ["chapter 7 of 26 Stat. 492"]),
        ("Article II of the amended compact", ["article II of amended compact"]),
    ],
)
def test_what_a_citation_is_of_may_stand_before_it_or_behind(text: str, expected: list[str]) -> None:
    assert keys(text) == expected


@pytest.mark.parametrize(
    ("texts", "law"),
    [
        (
            ("Conn. Gen. Stat. § 4-2", "C.G.S. § 4-2", "Section 4-2 of the Connecticut General Statutes",
             "Conn. Gen. Stat. Ann. § 4-2"),
            "Connecticut General Statutes § 4-2",
        ),
        (("Minn. Stat. § 46.57", "Minnesota Statutes § 46.57"), "Minnesota Statutes § 46.57"),
        (("Colo. Rev. Stat. § 31-23-3", "C.R.S. 31-23-3"), "Colorado Revised Statutes § 31-23-3"),
        (("W. Va. Code § 8-7-2", "West Virginia Code § 8-7-2"), "West Virginia Code § 8-7-2"),
        (
            ("Tex. Loc. Gov’t Code § 21.03", "Texas Local Government Code § 21.03"),
            "Texas Local Government Code § 21.03",
        ),
        (("Mich. Comp. Laws § 12.31", "MCL 12.31"), "MCL 12.31"),
        (("N.J.S.A. 40:55D-1 et seq.", "N.J. Stat. Ann. § 40:55D-1"), "New Jersey Statutes § 40:55D-1"),
        (("RSA 674:33", "N.H. Rev. Stat. Ann. § 674:33"), "New Hampshire Revised Statutes § 674:33"),
        (
            ("RCW 36.70A.070", "Revised Code of Washington 36.70A.070", "Revised Code of Washington (RCW) 36.70A.070",
             "Wash. Rev. Code § 36.70A.070", "Section 36.70A.070 of the Revised Code of Washington"),
            "RCW 36.70A.070",
        ),
        (("Va. Code Ann. § 15.2-2286", "Code of Virginia, § 15.2-2286"), "Virginia Code § 15.2-2286"),
        (
            ("M.G.L. c. 40A, § 3", "MGL Ch. 40A Sec. 3", "M.G.L.A. Chapter 40A, s. 3", "Mass. Gen. Laws ch. 40A, § 3",
             "Massachusetts General Laws, Chapter 40A, Section 3",
             "Section 3 of Chapter 40A of the Massachusetts General Laws"),
            "Massachusetts General Laws Chapter 40A, Section 3",
        ),
        (("N.Y. Town Law § 261", "Section 261 of the New York State Town Law"), "New York Town Law § 261"),
        (
            ("N.Y. Gen. Mun. Law § 239-m", "New York General Municipal Law § 239-m"),
            "New York General Municipal Law § 239-m",
        ),
        (("53 P.S. § 10603", "53 P. S. § 10603"), "53 P.S. § 10603"),
        (("O.C.G.A. § 36-66-4", "Official Code of Georgia Annotated § 36-66-4"), "O.C.G.A. § 36-66-4"),
    ],
)  # fmt: skip
def test_the_law_of_a_state_is_one_however_its_name_is_shortened(texts: Sequence[str], law: str) -> None:
    assert {key for text in texts for key in keys(f"as {text} says")} == {law}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("42 U.S.C. 1983, 40 CFR 52.21", ["42 U.S.C. § 1983", "40 C.F.R. § 52.21"]),
        ("44 CFR Chapter I, Section 65.12, of the rules", ["44 C.F.R. § 65.12"]),
        ("42 U.S.C. § 1983, and Section 4 of this code", ["42 U.S.C. § 1983", "section 4"]),
        ("Secs. 61-3-115 and 61-3-116", ["section 61-3-115", "section 61-3-116"]),
        (
            "M.G.L. c. 40A, §§ 3 and 6A(b), c. 41, § 81 and Chapter 12 of this code",
            [
                "Massachusetts General Laws Chapter 40A, Section 3",
                "Massachusetts General Laws Chapter 40A, Section 6A(b)",
                "Massachusetts General Laws Chapter 41, Section 81",
                "chapter 12",
            ],
        ),
        (
            "M.G.L. c. 131, § 40 and 310 CMR 10.00",
            ["Massachusetts General Laws Chapter 131, Section 40", "310 CMR 10.00"],
        ),
        ("K.A.R. 28-16-28 or 401 KAR 5:002", ["Kansas Administrative Regulations 28-16-28", "401 KAR 5:002"]),
        ("see 5.1.2 and 3 copies", ["section 5.1.2"]),
        (
            "Section 5. 5B, Section 5. 8 of this ordinance, Section 6. 30 units",
            ["section 5.5B", "section 5.8", "section 6"],
        ),
        ("under section\n4-63. The", ["section 4-63"]),
        ("C.R.S. Sec. 30-28-101; 30-28-102, C.R.S.", [f"Colorado Revised Statutes § 30-28-10{n}" for n in (1, 2)]),
        ("Title 14 CFR Part 77", ["14 C.F.R. Part 77"]),
        ("section 5 of Ordinance No. 402", ["section 5 of Ordinance No. 402"]),
        (
            "section 5 of the Wetlands Bylaw and Section 6 of the Zoning Regulations",
            ["section 5 of Wetlands Bylaw", "section 6"],
        ),
        ("(Ord. No. 88-14, § 1, 10-17-88)", []),
        ("[Amended 5-6-85 by L.L. No. 2-1985, § 3] (Code 1967, § 30-12; Ord. of 3-4-75, § 2) (see § 3)", ["section 3"]),
        ("Kansas City Code § 5-2", ["section 5-2"]),
        ("section 3 of the M.G.L.", ["section 3 of Massachusetts General Laws"]),
        ("New York Local Law § 5", ["section 5 of New York Local Law"]),
        ("New York City Charter § 197", ["section 197 of New York City Charter"]),
        (
            "N.Y. Gen. Mun. Law §§ 239-l and 239-m",
            ["New York General Municipal Law § 239-l", "New York General Municipal Law § 239-m"],
        ),
        ("Section 3-a and walls 5-ft high", ["section 3-a"]),
        ("Utah Code Annotated, '63 9 45 et seq.", []),
    ],
)
def test_a_list_has_the_sections_of_its_own_law_and_no_others(text: str, expected: list[str]) -> None:
    assert keys(text) == expected


@pytest.mark.parametrize(
    "text",
    ["M.G.L. c. 40A, § 6", "MGL ch. 40A § 6", "M.G.L. ch. 40A", "N.Y. Town Law § 261", "the General Statutes, § 8-2"],
)
def test_a_section_of_a_law_that_is_not_known_is_none_of_the_code(text: str) -> None:
    assert [each.internal for each in find_citations(text)] == [False]


@pytest.mark.parametrize(
    "text",
    [
        "within 3 feet of the 15.5 foot line",
        "on 12.31.2020",
        "Explosives of Class 1, Division 1.1",
        "ARTICLE I\nThe members shall",
        "version 3.2 of $10.5.3 million",
        "Section and article without numbers",
        "sections 2nd and 3rd",
        "the source has a Title V operating permit",
        "Unit 5 of the building, at pt. and art. fairs",
    ],
)
def test_what_is_no_citation_is_none(text: str) -> None:
    assert keys(text) == []


@pytest.mark.parametrize(
    ("state", "text", "expected"),
    [
        ("MD", "Land Use Article, §§ 4-101 and 4-102", [f"Maryland Land Use Article § 4-10{n}" for n in (1, 2)]),
        (None, "Land Use Article, § 4-102, of the Annotated Code of Maryland", ["Maryland Land Use Article § 4-102"]),
        ("MD", "Title 7, Chapter 200 of the Maryland Rules", ["Maryland Rules Title 7, Chapter 200"]),
        ("CT", "Chapter 12 of the Public Health Code", ["Connecticut Public Health Code Chapter 12"]),
        ("CT", "section 8-2 of the general statutes", ["Connecticut General Statutes § 8-2"]),
        ("MA", "Chapter 40A of the General Laws; 780 CMR", ["Massachusetts General Laws Chapter 40A", "780 CMR"]),
        ("ME", "5 CMR 10.2", ["5 Code of Maine Rules 10.2"]),
        ("OH", "R.C. 713.15", ["Ohio Code § 713.15"]),
        ("FL", "s. 163.01, F.S., and the Florida Building Code",
         ["Florida Statutes § 163.01", "Florida Building Code"]),
        ("CA", "Government Code § 65000", ["California Government Code § 65000"]),
        ("TX", "Government Code § 65.2", ["Texas Government Code § 65.2"]),
        ("UT", "R.C. 713.15, s. 5 and the Utah Code", []),
    ],
)  # fmt: skip
def test_names_of_codes_mean_those_of_the_state_of_the_text(state: str | None, text: str, expected: list[str]) -> None:
    assert keys(text, state) == expected


@pytest.mark.parametrize(
    ("number", "text", "expected"),
    [
        ("61-3-101", "see 61-1-5 and 61-1-6", ["section 61-1-5", "section 61-1-6"]),
        ("61-3-101", "see 62-1-5, by 10-12-2020, 61-1-7 feet", []),
        ("10-3-101", "in 10-12-20", []),
        ("5.1", "see 61-1-5", []),
        ("IV", "under Section II.B and Section V", ["section II.B", "section V"]),
        ("V-1", "as Section V-2 says, and § IV.C.2", ["section V-2", "section IV.C.2"]),
        ("1", "as Section V-2 says, and § IV.C.2", []),
        ("1", "as Section 6-B says", ["section 6-B"]),
        ("B", "Section A of this Article", ["article this|section A"]),
        ("5.1", "Section IV of the act and Section XX", []),
    ],
)
def test_a_number_without_a_word_has_the_form_of_the_own_one(number: str, text: str, expected: list[str]) -> None:
    assert [each.key for each in find_citations(text, None, number)] == expected


def test_a_list_ends_where_another_law_or_a_measure_begins() -> None:
    assert keys("40 C.F.R. § 403.5(a)(1) and (b), § 8-105.06 and 30 feet") == [
        "40 C.F.R. § 403.5(a)(1)",
        "40 C.F.R. § 403.5(b)",
        "section 8-105.06",
    ]
    assert keys("see § 8-101(a); and\n(2) The owner") == ["section 8-101(a)"]


def test_a_public_act_is_of_the_state_of_the_town() -> None:
    law = find_citations("Public Act 110 of 2006", "MI")[0].law
    assert law is not None
    assert (law.jurisdiction, law.scheme) == ("us-mi", "public-act")


def section(
    key: str, parent: str | None = None, kind: str = "section", text: str = "", number: str | None = None
) -> Section:
    number = key.rsplit("|", 1)[-1].split(" ")[-1] if number is None else number
    return Section(key, number, "", kind, 1, parent, 0, text)


TOWN = Index(
    [
        section("15", kind="title"),
        section("15.1", "15", "part"),
        section("15.1.04", "15.1", "chapter"),
        *(section(f"15.1.04.0{number}0", "15.1.04") for number in range(1, 6)),
        section("5", kind="title"),
        section("5.04", "5", "chapter"),
        section("5.04.110", "5.04"),
    ]
)
DISTRICT = Index(
    [
        section("8", kind="title"),
        section("8|2", "8", "chapter"),
        section("8|2|I", "8|2", "subchapter"),
        section("8-201", "8|2|I"),
        section("8|3", "8", "chapter"),
        section("8|3|I", "8|3", "subchapter"),
        section("8|3|A", "8|3", "unit"),
        section("8:2A-301", "8|3|A"),
        section("8-301", "8|3|I"),
    ],
    codes=["D.C. Official Code"],
)


@pytest.mark.parametrize(
    ("index", "text", "here", "expected"),
    [
        (TOWN, "Section 15.1.04.020(B)", None, "15.1.04.020"),
        (TOWN, "Chapter 5.04", "15.1.04.010", "5.04"),
        (TOWN, "Part 1 of this title", "15.1.04.010", "15.1"),
        (TOWN, "Part 1", "5.04.110", None),
        (TOWN, "this chapter", "15.1.04.010", "15.1.04"),
        (TOWN, "Title 59, Chapter 2", "15.1.04.010", None),
        (TOWN, "Section 15.1.04.990", None, None),
        (TOWN, "Section 15.1.04.020 of the State Fire Code", None, None),
        (DISTRICT, "subchapter I of Chapter 3 of Title 8", "8-201", "8|3|I"),
        (DISTRICT, "subchapter I of this chapter", "8-301", "8|3|I"),
        (DISTRICT, "Chapter 2 of this title", "8-301", "8|2"),
        (DISTRICT, "subchapter I", "8-201", "8|2|I"),
        (DISTRICT, "Unit A of Chapter 3 of Title 8", "8-201", "8|3|A"),
        (DISTRICT, "§ 8:2A-301(a)", "8-201", "8:2A-301"),
        (DISTRICT, "D.C. Official Code § 8-201", None, "8-201"),
        (DISTRICT, "Utah Code § 8-201", None, None),
    ],
)
def test_a_citation_resolves_to_the_section_it_is_of_or_to_none(
    index: Index, text: str, here: str | None, expected: str | None
) -> None:
    assert resolve(find_citations(text)[0], index, here) == expected


ARTICLES = Index(
    [
        section("article V|section 501", "article V", number="501"),
        section("article V", kind="article", number="V"),
        section("5.10", "article V"),
        section("5.2", "article V"),
        section("article VI", kind="article", number="VI"),
        section("article VI|A", "article VI", number="A"),
        section("article VI|B", "article VI", number="B"),
    ]
)


@pytest.mark.parametrize(
    ("text", "here", "expected"),
    [
        ("Article 5", "article VI", "article V"),
        ("Article 5.10", "article VI", "5.10"),
        ("Section 5.10D", "article VI", "5.10"),
        ("Section 5.11D", "article VI", None),
        ("Section 5.2 of the City Code", "5.10", None),
        ("Article VI, Section B", "5.10", "article VI|B"),
        ("Article V, Section B", "article VI|A", "article V"),
        ("Section VI.B", "article VI|A", "article VI|B"),
        ("Section A of this Article", "article VI|B", "article VI|A"),
        ("Article 9, Section 5", "5.10", None),
        ("Section 501", "article VI|A", "article V|section 501"),
        ("Section 501, Article VI", "5.10", "article V|section 501"),
    ],
)
def test_a_citation_resolves_however_its_number_is_written(text: str, here: str, expected: str | None) -> None:
    [citation] = find_citations(text, None, ARTICLES.sections[here].number)
    assert resolve(citation, ARTICLES, here) == expected
    if expected is not None and not citation.of_city:
        assert numbers_of(ARTICLES.sections[expected]) <= numbers_in(citation.raw)


def test_a_range_has_all_the_sections_between_its_ends() -> None:
    first, last = find_citations("Sections 15.1.04.020 through 15.1.04.040")
    assert resolve_range(first, TOWN) == ("15.1.04.020", "15.1.04.030", "15.1.04.040")
    assert resolve_range(last, TOWN) == ("15.1.04.040",)
    assert resolve_range(find_citations("Sections 15.1.04.020 to 15.1.04.990")[0], TOWN) == ("15.1.04.020",)


@pytest.mark.parametrize("words", ["see:8-301", "§ 8:2A-301", "§§ 8:2A-299 to 2A-301", "§§ 8-201-8-301"])
def test_the_numbers_in_words_are_those_of_the_sections_they_cite(words: str) -> None:
    key = "8:2A-301" if "2A" in words else "8-301"
    assert numbers_of(DISTRICT.sections[key]) <= numbers_in(words)


PIECES = st.sampled_from(
    [
        "§",
        "40 CFR parts ",
        "50–99",
        "§§ ",
        "Section ",
        "sections ",
        "3",
        "10-113",
        "28:2A-1",
        "ch. ",
        "15.1.04.010",
        "(a)",
        "(1)",
        ", ",
        " and ",
        " to ",
        "Title ",
        "Chapter 5",
        " of this ",
        "title",
        "U.S.C. ",
        "CFR ",
        "Utah Code ",
        "et seq. ",
        "[repealed]",
        "\n",
        "“",
        "subsection ",
        "(",
        ")",
        "Act",
        "é",
        " of the ",
    ]
)


@given(st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=200))
@settings(max_examples=dear(150))
def test_whatever_the_text_citations_stand_in_it_in_order(text: str) -> None:
    found = find_citations(text)
    assert all(text[each.start : each.end] and each.raw in text for each in found)
    assert all(one.end <= other.start for one, other in itertools.pairwise(found))


def seconds(text: str) -> float:
    started = time.thread_time()
    find_citations(text)
    return time.thread_time() - started


@pytest.mark.measures_processor_time
@pytest.mark.parametrize(
    "unit",
    [
        "§ 10-113, ",
        "(a)(1)(",
        "1.2.3.",
        "Section 3 and ",
        "of the Aa ",
        "1234567890",
        "Title 5, Chapter ",
        '[[(((“"',
        "12 U.S.C. § 1 to ",
        "ch. 1 or ",
        "Aa Code of Washington ",
    ],
)
def test_time_grows_with_the_length_and_no_faster(unit: str) -> None:
    short, long = unit * 2_000, unit * 16_000
    seconds(short)
    assert min(seconds(long) for _ in range(2)) < 8 * 5 * max(min(seconds(short) for _ in range(3)), 0.004)


def test_a_citation_is_a_value() -> None:
    assert find_citations("§ 3-1") == [Citation(0, 5, "§ 3-1", "section", (("section", "3-1"),))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("42 U.S.C. §§ 7401-7671q", ["42 U.S.C. § 7401", "42 U.S.C. § 7671q"]),
        # Two numbers whatever their order, but no number that no title has.
        ("42 U.S.C. §§ 7671q-7401", ["42 U.S.C. § 7671q", "42 U.S.C. § 7401"]),
        ("26 U.S.C. 48-45", ["26 U.S.C. § 48", "26 U.S.C. § 45"]),
        ("40 CFR 60.50-60.10", ["40 C.F.R. § 60.50", "40 C.F.R. § 60.10"]),
        ("42 U.S.C. 1395w-104", ["42 U.S.C. § 1395w-104"]),
        ("42 U.S.C. 300gg-111", ["42 U.S.C. § 300gg-111"]),
        ("10 U.S.C. chapters 41–43", ["10 U.S.C. Chapter 41", "10 U.S.C. Chapter 43"]),
        ("Chapter 41-43 of title 10 of the U.S. Code", ["10 U.S.C. Chapter 41", "10 U.S.C. Chapter 43"]),
        ("42 U.S.C. 7401 through 7671q", ["42 U.S.C. § 7401", "42 U.S.C. § 7671q"]),
        ("sections 7401–7671q of title 42, United States Code", ["42 U.S.C. § 7401", "42 U.S.C. § 7671q"]),
        ("18 U.S.C. §§ 1961-68", ["18 U.S.C. § 1961", "18 U.S.C. § 1968"]),
        ("42 U.S.C. §§ 2000d–2000d-7", ["42 U.S.C. § 2000d", "42 U.S.C. § 2000d-7"]),
        ("16 U.S.C. §§ 703-712, 715", ["16 U.S.C. § 703", "16 U.S.C. § 712", "16 U.S.C. § 715"]),
        ("42 U.S.C. § 2000e-5; 42 U.S.C. 300aa-34", ["42 U.S.C. § 2000e-5", "42 U.S.C. § 300aa-34"]),
        ("42 U.S.C. § 1983 note", ["42 U.S.C. § 1983 note"]),
        ("28 U.S.C. 1331 (notes)", ["28 U.S.C. § 1331 note"]),
        ("the note to 42 U.S.C. 1983", ["42 U.S.C. § 1983 note"]),
        ("42 U.S.C. § 1983 notes that it is so", ["42 U.S.C. § 1983"]),
        ("section 7401 note of title 42, United States Code", ["42 U.S.C. § 7401 note"]),
        ("50 U.S.C. App. 2401; 5 U.S.C. App. 3 § 6", ["50 U.S.C. App. 2401", "5 U.S.C. App. 3 § 6"]),
        ("40 CFR 60.1-60.19", ["40 C.F.R. § 60.1", "40 C.F.R. § 60.19"]),
        ("40 CFR 1500-1508", ["40 C.F.R. Part 1500", "40 C.F.R. Part 1508"]),
        ("21 CFR 201.56-57", ["21 C.F.R. § 201.56", "21 C.F.R. § 201.57"]),
        ("17 CFR 240.10b-5; 48 CFR 52.219-25", ["17 C.F.R. § 240.10b-5", "48 C.F.R. § 52.219-25"]),
        ("26 CFR 1.501(c)(3)-1(b)", ["26 C.F.R. § 1.501(c)(3)-1(b)"]),
        ("40 CFR Part 60, Subpart OOOOa", ["40 C.F.R. Part 60, Subpart OOOOa"]),
        ("40 CFR Part 60, App. A-7", ["40 C.F.R. Part 60, Appendix A-7"]),
        ("Appendix B to 40 CFR Part 60", ["40 C.F.R. Part 60, Appendix B"]),
        ("Minn. Stat. §§ 462.351-.364", ["Minnesota Statutes § 462.351", "Minnesota Statutes § 462.364"]),
        ("Tex. Loc. Gov't Code § 211.1-211.9", [
            "Texas Local Government Code § 211.1", "Texas Local Government Code § 211.9"]),
        ("Utah Code § 10-9a-103", ["Utah Code § 10-9a-103"]),
        ("Idaho Code §§ 67-6501", ["Idaho Code § 67-6501"]),
        ("M.G.L. c. 40A, §§ 1-17", [
            "Massachusetts General Laws Chapter 40A, Section 1", "Massachusetts General Laws Chapter 40A, Section 17"]),
        ("§§ 17.52.010-17.52.050; §§ 10-113–10-116", [
            "section 17.52.010", "section 17.52.050", "section 10-113", "section 10-116"]),
        ("26 U.S.C. 45Q. Id. § 45Q(b).", ["26 U.S.C. § 45Q"]),
        ("40 CFR parts 50–99 apply", ["40 C.F.R. Part 50", "40 C.F.R. Part 99"]),
        ("40 CFR Part 60 days later", []),
        ("sections 12-101 to and including 12-110", ["section 12-101", "section 12-110"]),
        ("20 U.S.C. 1681−1688", ["20 U.S.C. § 1681", "20 U.S.C. § 1688"]),
        ("17 CFR 240.14a-1 to 14b-2", ["17 C.F.R. § 240.14a-1"]),
        ("40 CFR 261, app. VIII", ["40 C.F.R. Part 261, Appendix VIII"]),
        ("Supplement I to 12 CFR Part 1026", ["12 C.F.R. Part 1026, Supplement I"]),
    ],
)  # fmt: skip
def test_ranges_notes_and_appendices_are_no_sections(text: str, expected: list[str]) -> None:
    assert keys(text) == expected


def test_a_number_that_may_be_a_range_is_not_sure() -> None:
    (found,) = find_citations("42 U.S.C. 4321-7 applies")
    assert found.confidence < 0.7


@given(st.integers(100, 9000), st.integers(1, 900), st.sampled_from(["-", "–", " to ", " through "]))
def test_the_ends_of_a_range_are_cited(first: int, further: int, joint: str) -> None:
    last = first + further
    found = find_citations(f"42 U.S.C. §§ {first}{joint}{last} apply")
    assert [each.key for each in found] == [f"42 U.S.C. § {first}", f"42 U.S.C. § {last}"]
    assert found[0].through == str(last)
