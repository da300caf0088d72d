"""A text out of a PDF is read as its paragraphs, without the furniture of its pages."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loaders.readers.page_text import PageText, parse_pages
from loaders.zoning.readers import plain_text
from loaders.zoning.readers.outline import Candidate, parse_keys, parse_roman, select_ascending

WIDTH = 70
PEOPLE = ("owner", "tenant", "neighbour", "builder", "council", "agent", "planner", "clerk", "lender", "guest")
THINGS = ("lot", "barn", "fence", "wall", "yard", "shed", "porch", "drive", "roof", "garden")


def fill(sentences: int, seed: int = 0) -> str:
    """Make sentences that differ from each other."""
    return " ".join(
        f"The {PEOPLE[n % 10]} of a {THINGS[n // 10 % 10]} may by leave of the {PEOPLE[n // 7 % 10]} grant relief from"
        f" the terms of this part where the {THINGS[n // 3 % 10]} of kind {n} makes its use a hardship."
        for n in range(seed * 37 + 1, seed * 37 + 1 + sentences)
    )


def wrap(text: str) -> list[str]:
    lines, line = [], ""
    for word in text.split():
        if len(line) + len(word) + 1 > WIDTH:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return [*lines, line]


def print_pages(bodies: list[list[str]], head: str = "TOWN OF ALDER  ZONING", numbers: bool = True) -> list[str]:
    """Print bodies as pages: a running head, the lines, a page number."""
    lines: list[str] = []
    for number, body in enumerate(bodies, 1):
        lines += ([f"{head} {number}"] if head else []) + ["", *body, "", *([str(number)] if numbers else [])]
    return lines


def parse(lines: list[str]) -> PageText:
    pages = parse_pages(lines)
    assert pages is not None
    return pages


def words(pages: PageText) -> list[str]:
    return [each.text for each in pages.paragraphs]


def parse_within(given: list[str]) -> list[str]:
    """Parse lines that are the second of four pages into their paragraphs."""
    pages = parse(print_pages([wrap(fill(4)), given, wrap(fill(4, 1)), wrap(fill(4, 2))]))
    first, last = len(wrap(fill(4))) + 6, len(wrap(fill(4))) + len(given) + 6
    return [each.text for each in pages.paragraphs if first <= each.first <= last]


def test_a_paragraph_continues_over_lines_and_pages() -> None:
    text = wrap(fill(12).replace(". ", ", "))
    pages = parse(print_pages([text[start : start + 10] for start in range(0, len(text), 10)]))
    assert words(pages) == [" ".join(text)]
    assert (pages.paragraphs[0].first, pages.paragraphs[0].last) == (3, 3 + len(text) + 4 * (len(text) // 10) - 1)


def test_page_numbers_and_running_heads_are_furniture_and_keep_their_lines() -> None:
    pages = parse(print_pages([wrap(fill(4, seed)) for seed in range(4)], head="Chapter 12 Zoning, page"))
    assert [line for _, line in pages.furniture if not line.isdigit()] == [
        f"Chapter 12 Zoning, page {page}" for page in (1, 2, 3, 4)
    ]
    assert pages.furniture[0] == (1, "Chapter 12 Zoning, page 1")
    assert [line for _, line in pages.furniture if line.isdigit()] == ["1", "2", "3", "4"]
    assert not any("Zoning, page" in each for each in words(pages))


def test_a_page_number_on_the_line_of_a_heading_is_removed() -> None:
    lines = print_pages([wrap(fill(4, seed)) for seed in range(6)], head="")
    at = lines.index("4")
    lines[at : at + 2] = ["4 ARTICLE IX", "", "SIGNS"]
    assert "ARTICLE IX" in words(parse(lines))
    assert "SIGNS" in words(parse(lines))


def test_numbers_of_inserted_pages_are_removed_though_they_recur() -> None:
    lines = print_pages([wrap(fill(4, seed)) for seed in range(6)], head="")
    at = lines.index("4")
    lines[at] = "4 of the area,"
    lines[at + 1 : at + 1] = [*wrap(fill(4, 7)), "5 5.14 Penalties", *wrap(fill(4, 8))]
    lines[lines.index("3")] = "3 of the lot,"
    pages = parse(lines)
    assert "5.14 Penalties" in words(pages)
    assert [line for _, line in pages.furniture] == ["1", "2", "3", "4", "5", "5", "6"]


def test_a_letter_after_the_number_of_a_page_is_found_before_one_alone() -> None:
    lines = print_pages([wrap(fill(4, seed)) for seed in range(6)], head="")
    at = lines.index("3")
    lines[at + 1 : at + 1] = ["3B R-2 House Zone: A zone for houses.", *wrap(fill(4, 7)), "3B"]
    assert "R-2 House Zone: A zone for houses." in words(parse(lines))


@pytest.mark.parametrize("label", ["1. ", ""])
def test_a_heading_at_the_foot_of_pages_is_kept_where_a_list_follows(label: str) -> None:
    bodies = [[f"{label}{THINGS[n].title()}s", *wrap(fill(3, n)), "PROHIBITED USES"] for n in range(5)]
    pages = parse(print_pages([*bodies, [f"{label}Pens", *wrap(fill(3, 9))]]))
    assert "PROHIBITED USES" not in [line for _, line in pages.furniture]
    assert [line for _, line in pages.furniture if line.startswith("TOWN")]


def test_a_heading_that_recurs_within_pages_is_kept_at_their_edges() -> None:
    bodies = [[*wrap(fill(2, n)), "PROHIBITED USES", *wrap(fill(3, n + 9))] for n in range(4)]
    bodies[1:3] = [[*wrap(fill(5, n)), "PROHIBITED USES"] for n in (20, 25, 30)]
    assert "PROHIBITED USES" not in [line for _, line in parse(print_pages(bodies)).furniture]


def test_a_broken_number_of_a_heading_is_not_that_of_a_page() -> None:
    lines = print_pages([wrap(fill(4, seed)) for seed in range(6)], head="")
    at = lines.index("4")
    lines[at : at + 2] = ["4 -1 Intent:", ""]
    assert "4-1 Intent:" in words(parse(lines))


def test_a_letter_after_a_page_number_marks_inserted_pages() -> None:
    lines = print_pages([wrap(fill(4, seed)) for seed in range(6)], head="")
    at = lines.index("3")
    lines[at + 1 : at + 1] = [*wrap(fill(4, 7)), "3A", *wrap(fill(4, 8)), "3A of the area,"]
    pages = parse(lines)
    assert [line for _, line in pages.furniture] == ["1", "2", "3", "3A", "3A", "4", "5", "6"]
    assert any(each.startswith("of the area,") or " of the area," in each for each in words(pages))


@pytest.mark.parametrize(
    "lines",
    [
        ["1", "Barns", "2", "Sheds", "3", "Silos", "4", "Pens"],
        [*wrap(fill(1)), "30", "35", "40", *wrap(fill(1))],
        wrap(fill(10)),
        [],
    ],
    ids=["a list", "a table", "plain", "empty"],
)
def test_numbers_of_lists_and_tables_are_no_pages(lines: list[str]) -> None:
    assert parse_pages(lines) is None


def test_form_feeds_are_pages() -> None:
    lines = "\f".join("\n".join(["Code of Alder", "", *wrap(fill(3, seed))]) for seed in range(4)).split("\n")
    pages = parse(lines)
    assert pages.pages == 4
    assert [line for _, line in pages.furniture] == ["Code of Alder"] * 4


def test_items_headings_and_terms_begin_paragraphs() -> None:
    given = [
        "7.1 Permitted Uses",
        "    1. Dwellings for one family, in a building that stands alone on its",
        "lot.",
        "    2. Parks.",
        " Special Use Permit Required",
        "    1. Inns.",
        "Alley: A way to the rear of lots that is open to the public and no wider",
        "than twenty feet.",
        "Attic: The space below a roof.",
    ]
    assert parse_within(given) == [
        "7.1 Permitted Uses",
        "1. Dwellings for one family, in a building that stands alone on its lot.",
        "2. Parks.",
        "Special Use Permit Required",
        "1. Inns.",
        "Alley: A way to the rear of lots that is open to the public and no wider than twenty feet.",
        "Attic: The space below a roof.",
    ]


def test_pieces_of_lines_are_joined() -> None:
    given = [
        "4.7",
        "  ",
        "Existing",
        " Inns",
        "A",
        "n inn may",
        "remain",
        ".",
        "1",
        ".",
        "   ",
        "Repairs",
        ".",
        "Non",
        "-profit.",
    ]
    assert parse_within(given) == ["4.7", "Existing Inns", "An inn may remain.", "1. Repairs.", "Non-profit."]


def test_broken_words_are_joined_where_the_text_has_them_whole() -> None:
    whole = "An establishment is an establishment if the establishment has a licence as an establishment. "
    given = wrap(
        whole * 3 + "Each establishm ent of the R -1 and two- story kind is set back, or set far back. " + fill(2)
    )
    pages = parse(print_pages([given, wrap(fill(4, 1)), wrap(fill(4, 2))]))
    text = " ".join(words(pages))
    assert "Each establishment of the R-1 and two-story kind is set back, or set far back." in text
    assert pages.mended == {"establishm ent": 1}


@pytest.mark.parametrize(
    ("broken", "whole"),
    [
        ("see Section 1. 2A of it", "see Section 1.2A of it"),
        ("see Section 1. 9 of it", "see Section 1. 9 of it"),
        ("in Article XX V of it", "in Article XXV of it"),
        ("in Article IV V of it", "in Article IV V of it"),
        ("an area of 87,1 20 feet", "an area of 87,120 feet"),
        ("a fee of s eventy-five coins", "a fee of seventy-five coins"),
        ("a sale in S UMMER of it", "a sale in SUMMER of it"),
        ("for a re creation of it", "for a recreation of it"),
        ("TWO- TIER WALLS and HALF- TIER", "TWO-TIER WALLS and HALF- TIER"),
    ],
)
def test_broken_numbers_and_rare_words_are_joined(broken: str, whole: str) -> None:
    known = "A summer sale is a recreation. The recreation and creation are for two-tier walls."
    given = [*wrap(fill(2)), "", "1.2 Summer", *wrap(known), "", broken, "", *wrap(fill(3))]
    pages = parse(print_pages([given, wrap(fill(4, 1)), wrap(fill(4, 2))]))
    assert whole in words(pages)


def test_a_piece_between_two_words_belongs_to_the_more_frequent_one() -> None:
    given = wrap("The yards of barns and the yards of sheds shall be dry. " * 2 + fill(1))
    given += wrap("A barn shall be low. A shed shall be low. A wall shall be low. A roof shall be low.")
    given += wrap("A front yard s hall be clean.")
    text = " ".join(words(parse(print_pages([given, wrap(fill(4, 1)), wrap(fill(4, 2))]))))
    assert "A front yard shall be clean." in text


def test_two_words_that_are_also_one_are_kept() -> None:
    given = wrap("A setback is a yard. The setback, each setback and any setback is set by the code. " + fill(3))
    given += wrap("A barn is set back by ten feet, and a shed is set back by five.")
    pages = parse(print_pages([given, wrap(fill(4, 1)), wrap(fill(4, 2))]))
    assert pages.mended == {}
    assert "a shed is set back by five." in " ".join(words(pages))


def test_a_hyphen_at_the_end_of_a_line_is_removed_where_the_word_is_known() -> None:
    line = "Any regulation of use is a regulation of land, and a regulation has non-"
    given = [
        *wrap(fill(1)),
        "",
        line,
        "residential parts. The shape of each lot is subject to the general regu-",
        "lation of uses.",
    ]
    text = " ".join(parse_within(given))
    assert "has non-residential parts." in text
    assert "general regulation of uses." in text


@pytest.mark.parametrize(
    ("before", "after", "joined"),
    [
        ("The dwellings that are allowed in the district R-", "1 and in all of the others", "district R-1 and"),
        ("Each of the lots may have at most one building of the Two-", "Family kind", "the Two-Family kind"),
        ("The height of a building must not be more than thirty", "(30) feet above it", "thirty (30) feet"),
        ("The owner of each building has to comply with Section", "4.12 of this code", "Section 4.12 of"),
        ("The owner of each building has to comply with Sections 4.11,", "4.12 and 4.13", "4.11, 4.12 and"),
        ("The owner of each building has to comply with subsection", "(b) of this section", "subsection (b) of"),
        ("The area of each lot of a building with a barn is at least", "1.5 acres of land", "least 1.5 acres"),
        ("The owners of all lots that are next to the roads: front-", "and rear-loaded", "front- and rear-loaded"),
    ],
)
def test_a_line_that_begins_with_a_number_may_continue_a_sentence(before: str, after: str, joined: str) -> None:
    assert joined in " ".join(parse_within(["1.1 Uses", "", before, after + " of the town in which the owner lives."]))
    assert len(parse_within(["1.1 Uses", "", before, after + " of the town in which the owner lives."])) == 2


@pytest.mark.parametrize("last", ["The owner may keep barns and", "(a) Barns of the owner, or", "Lots have an owner;"])
def test_items_after_a_conjunction_begin_paragraphs(last: str) -> None:
    assert parse_within([last, "(b) Sheds of the owner."])[-1] == "(b) Sheds of the owner."


def test_numbers_of_long_items_are_no_pages() -> None:
    """Items whose lengths differ, each below its number."""
    lines = [line for number in range(1, 13) for line in (str(number), *wrap(fill(3 + number * 7 % 11, number)))]
    assert parse_pages(lines) is None


PIECES = st.sampled_from(
    [
        *wrap(fill(1)),
        "",
        " ",
        "1. Barns",
        "(a) Sheds;",
        "7.1 Uses",
        "ARTICLE VII",
        "12",
        "\f",
        "A\tB",
        "esta blish",
        "re-",
        ".",
    ]
)


@given(st.lists(st.lists(PIECES, min_size=9, max_size=12), min_size=4, max_size=6))
def test_no_letter_or_digit_is_lost_or_doubled(bodies: list[list[str]]) -> None:
    lines = print_pages(bodies)
    pages = parse_pages(lines)
    if pages is None:
        return

    def count(parts: list[str]) -> Counter[str]:
        return Counter(char for part in parts for char in part if char.isalnum())

    assert count([*words(pages), *(line for _, line in pages.furniture)]) == count(lines)
    assert all(1 <= each.first <= each.last <= len(lines) for each in pages.paragraphs)
    assert [each.first for each in pages.paragraphs] == sorted(each.first for each in pages.paragraphs)


CODE = [
    "ALDER ZONING ORDINANCE",
    "Ord. 14 10/17/88 Art. XXIII Signs",
    "20.4B",
    "Art. I I, XV - Inns",
    "ARTICLE I",
    "",
    "PURPOSE",
    "1.1 Title.",
    "This is the Alder code.",
    "1.2 Aims",
    *wrap(fill(3)),
    "ARTICLE II",
    "",
    "R-1 RESIDENCE DISTRICT",
    " 2.1   Permitted Uses",
    "    1.   Dwellings.",
    " Special Use Permit Required",
    "    1.   Inns.",
    "2.2 Bulk",
    "2.2.1 Yards",
    "A yard of 20 feet.",
    "2.2.2 Height",
    "1.5 Acres and 35 feet.",
    "2.2.3 Lots",
    "One acre.",
    *wrap(fill(2, 1)),
    "2.3 Signs : No sign is allowed that is larger than the door of the building",
    "at which it is.",
]


def test_headings_of_a_text_out_of_a_pdf_are_those_in_sequence() -> None:
    lines = print_pages([CODE[start : start + 12] for start in range(0, len(CODE), 12)])
    code = plain_text.parse("\n".join(lines).encode(), "alder.txt")
    assert [(each.kind, each.number, each.title) for each in code.sections] == [
        ("article", "I", "PURPOSE"),
        ("section", "1.1", "Title."),
        ("section", "1.2", "Aims"),
        ("article", "II", "R-1 RESIDENCE DISTRICT"),
        ("section", "2.1", "Permitted Uses"),
        ("section", "2.2", "Bulk"),
        ("section", "2.2.1", "Yards"),
        ("section", "2.2.2", "Height"),
        ("section", "2.2.3", "Lots"),
        ("section", "2.3", "Signs:"),
    ]
    assert [each.parent for each in code.sections if each.number.startswith("2.2.")] == ["2.2"] * 3
    assert code.sections[4].text == "1. Dwellings.\nSpecial Use Permit Required\n1. Inns."


def test_what_no_section_covers_is_reported() -> None:
    front = wrap(fill(6, 4))
    text = "\n".join(
        [
            *front,
            "",
            "1.1 Aims",
            fill(2),
            "1.2 Scope",
            fill(2, 1),
            "1.4 Yards",
            *(f"1.{n} Part {n}\nText." for n in range(5, 9)),
        ]
    )
    code = plain_text.parse(text.encode(), "alder.txt")
    assert [each.number for each in code.sections if each.kind == "section"] == [
        f"1.{n}" for n in (1, 2, 4, 5, 6, 7, 8)
    ]
    assert any("lines before the first heading" in each for each in code.warnings)


def test_few_long_numbers_do_not_outvote_many_short_ones() -> None:
    lines = [line for n in range(1, 30) for line in (f"{n}.1 Uses", f"Text {n}.", f"{n}.2 Bulk", "Yards.")]
    lines[lines.index("3.2 Bulk") : lines.index("3.2 Bulk")] = [
        "3.1.1 Inns",
        "One.",
        "3.1.2 Bars",
        "Two.",
        "3.1.3 Shops",
        "No.",
    ]
    code = plain_text.parse("\n".join(lines).encode(), "alder.txt")
    assert sum(each.kind == "section" for each in code.sections) == 61
    assert {each.parent for each in code.sections if each.number.startswith("3.1.")} == {"3.1"}


def test_a_title_is_found_below_blank_lines() -> None:
    code = plain_text.parse(b"ARTICLE VII\n\nR-1 RESIDENCE DISTRICT\n\nSection 7.1 Uses\nBarns.\n", "a.txt")
    assert [(each.kind, each.title) for each in code.sections] == [
        ("article", "R-1 RESIDENCE DISTRICT"),
        ("section", "Uses"),
    ]


@pytest.mark.parametrize(
    ("number", "value"), [("IV", 4), ("xiii", 13), ("XCIX", 99), ("IIII", None), ("A", None), ("", None)]
)
def test_parse_roman(number: str, value: int | None) -> None:
    assert parse_roman(number) == value


def select(*numbers: str, weight: float = 1) -> list[str]:
    return [
        numbers[place] for place in select_ascending([Candidate(key, weight) for key in parse_keys(numbers) if key])
    ]


def test_numbers_out_of_sequence_are_not_selected() -> None:
    assert select("1.1", "1.2", "43.1", "1.3", "0.5", "2.1", "2.10", "2.9") in (
        ["1.1", "1.2", "1.3", "2.1", "2.10"],
        ["1.1", "1.2", "1.3", "2.1", "2.9"],
    )
    assert select("1.1", "1.2", "1.3", "1.1", "1.2", "1.3") == ["1.1", "1.2", "1.3"] * 2
    assert select() == []


@given(st.lists(st.integers(1, 12), max_size=40))
def test_what_is_selected_weighs_most(numbers: list[int]) -> None:
    """Compared with the quadratic form of the same program."""
    keys = [((number, ""),) for number in numbers]

    def weigh(places: list[int]) -> float:
        total = 0.0
        for before, after in zip([None, *places], places, strict=False):
            total += 1
            if before is not None:
                step = numbers[after] - numbers[before]
                total += 0.5 if step == 1 else 0 if step > 0 else -1.5
        return total

    best = [0.0] * len(numbers)
    for after in range(len(numbers)):
        best[after] = 1 + max(
            [0.0]
            + [
                best[before]
                + (0.5 if numbers[after] - numbers[before] == 1 else 0 if numbers[after] > numbers[before] else -1.5)
                for before in range(after)
            ]
        )
    chosen = select_ascending([Candidate(key, 1) for key in keys])
    assert weigh(chosen) == pytest.approx(max(best, default=0.0))


def test_levels_are_nested_by_their_numbers() -> None:
    contents = "Article 2 Zones\nChapter 2.1 Homes\n2.1.1 Uses\nChapter 2.2 Shops\n2.2.1 Uses\n"
    body = contents.replace("Uses\n", "Uses\nBarns are permitted.\n")
    code = plain_text.parse(("Article 1 Aims\nChapter 1.1 Scope\n1.1.1 Scope\nAll land.\n" + body).encode(), "a.txt")
    assert [(each.key, each.parent) for each in code.sections if each.kind == "chapter"] == [
        ("1.1", "article 1"), ("2.1", "article 2"), ("2.2", "article 2"),
    ]  # fmt: skip


def test_a_section_and_not_its_entry_in_the_contents_is_above_those_below_it() -> None:
    contents = "SECTION 1. AIMS\n1.1 Scope\nSECTION 2. USES\n2.1 Homes\n2.2 Shops\n"
    body = "SECTION 1. AIMS\n1.1 Scope\nAll.\nSECTION 2. USES\n2.1 Homes\nYes.\n2.2 Shops\n"
    body += "2.2.1 Small\nYes.\n2.2.2 Big\nNo.\n2.2.3 Old\nNo.\n"
    code = plain_text.parse((contents + body).encode(), "a.txt")
    assert not [each.key for each in code.sections if "~" in each.key]
    assert {each.parent for each in code.sections if each.number.startswith("2.2.")} == {"2.2"}


@pytest.mark.parametrize("head", ["", "TOWN OF ALDER  ZONING", "Chapter 12 Zoning, page"])
def test_items_that_recur_at_the_edges_of_pages_are_kept(head: str) -> None:
    """Each district begins on a page of its own, with the same items first and last."""
    bodies = [
        [
            f"5.{n} R-{n} District",
            "(a) Single-family dwellings",
            f"(b) Minimum lot area: {n * 2},000 square feet",
            *wrap(fill(3, n)),
            "Accessory buildings must be behind the main building.",
            f"Lot width {n * 10} feet",
            f"(d) Maximum height: {n * 5} feet",
        ]
        for n in range(1, 7)
    ]
    pages = parse(
        "\f".join("\n".join(([f"{head} {n}"] if head else []) + body) for n, body in enumerate(bodies)).split("\n")
    )
    text = "\n".join(words(pages))
    assert [line for _, line in pages.furniture] == ([f"{head} {n}" for n in range(6)] if head else [])
    assert all(line in text for body in bodies for line in (*body[:3], *body[-3:]))


@pytest.mark.parametrize("rule", ["Maximum height 35 feet", "Lot coverage 40%", "Height: {} stories"])
def test_equal_measures_at_the_foot_of_each_page_are_kept(rule: str) -> None:
    bodies = [[f"5.{n} R-{n} District", *wrap(fill(3, n)), rule.format(n), f"{n}"] for n in range(1, 7)]
    pages = parse("\f".join("\n".join(body) for body in bodies).split("\n"))
    assert [line for _, line in pages.furniture] == [body[-1] for body in bodies]


def test_headings_with_a_number_alone_at_the_head_of_each_page_are_kept() -> None:
    bodies = [[f"SECTION {n}", f"{fill(1, n)[4:20].upper()}", *wrap(fill(3, n))] for n in range(1, 7)]
    pages = parse("\f".join("\n".join(body) for body in bodies).split("\n"))
    assert [each for each in words(pages) if each.startswith("SECTION")] == [f"SECTION {n}" for n in range(1, 7)]
