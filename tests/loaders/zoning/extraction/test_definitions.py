"""The forms of definitions, with term and meaning verbatim. The texts are our own."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loaders.zoning.extraction.definitions import CUT, find_definitions
from loaders.zoning.readers.code_model import Section, Subsection
from tests.examples import dear


def section(text: str, title: str = "Definitions", subsections: tuple[Subsection, ...] = ()) -> Section:
    return Section("1", "1", title, "section", 1, None, 0, text, subsections)


def found(text: str, title: str = "Definitions") -> list[tuple[str, str]]:
    return [(each.term, each.text) for each in find_definitions(section(text, title))]


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        (
            "list",
            "Shed\nA small hut.\nBarn, Large\nmeans a hut for hay.",
            [("Shed", "A small hut."), ("Barn, Large", "means a hut for hay.")],
        ),
        ("quoted", "(1) “Shed” means a small hut.", [("Shed", "a small hut.")]),
        ("quoted", '"Shed" shall mean a small hut.', [("Shed", "a small hut.")]),
        ("two terms", "“Shed” or “hut” means a small house.", [("Shed", "a small house."), ("hut", "a small house.")]),
        ("no verb", '"Shed" Any small hut.', [("Shed", "Any small hut.")]),
        ("the term", "The term “shed” includes a hut.", [("shed", "includes a hut.")]),
        ("same meaning", "“Shed” has the same meaning as in § 3-1.", [("Shed", "has the same meaning as in § 3-1.")]),
        ("means", "(a) Shed means a small hut.", [("Shed", "a small hut.")]),
        ("headed", "1. Shed. A small hut.", [("Shed", "A small hut.")]),
        (
            "doubled letter",
            "AA. Shed: A small hut.\nBB. Barn: A large hut.",
            [("Shed", "A small hut."), ("Barn", "A large hut.")],
        ),
        ("colon", "Shed: a small hut.", [("Shed", "a small hut.")]),
    ],
)
def test_each_form_gives_term_and_meaning(form: str, text: str, expected: list[tuple[str, str]]) -> None:
    assert found(text) == expected, form


@pytest.mark.parametrize(
    "text",
    [
        "No owner may by any means enter a shed.",
        "Shed. The owner of a shed pays a fee.",
        "Fences\nA fence is of wood.",
        "The cheapest means of access is a gate.",
    ],
)
def test_sections_that_define_nothing_have_none(text: str) -> None:
    assert found(text, "Sheds and fences") == []


def test_a_sentence_of_another_section_defines_nothing() -> None:
    assert found("For the purposes of this section, “hut” means a shed.", "Sheds") == []


def test_a_line_can_open_definitions_in_any_section() -> None:
    text = "Sheds are good.\nC. Definitions. The following terms have these meanings.\n1. Hut. A small shed."
    assert found(text, "General") == [("Hut", "A small shed.")]


def test_a_meaning_goes_on_over_its_own_list_and_no_further() -> None:
    text = "“Shed” means:\na hut; or\na barn.\n“Hut” means a shed."
    assert [(term, meaning.strip()) for term, meaning in found(text)] == [
        ("Shed", "a hut; or\na barn."),
        ("Hut", "a shed."),
    ]


def test_a_meaning_ends_with_its_subsection() -> None:
    text = "(1) “Shed” means:\n(A) a hut; or\n(B) a barn.\n(2) “Hut” means a shed."
    parts = (Subsection(("1",), 0, 44), Subsection(("1", "A"), 19, 32), Subsection(("2",), 45, len(text)))
    assert next(each.text for each in find_definitions(section(text, subsections=parts))).endswith("a barn.")


LINES = st.sampled_from(
    [
        "Shed",
        "“Shed” means a hut.",
        "(1) ",
        "“",
        "”",
        "means",
        "Definitions.",
        "A hut.",
        ":",
        "The term ",
        "",
        "Shed: hut",
    ]
)


@given(st.lists(LINES, max_size=25).map("\n".join) | st.lists(LINES, max_size=25).map("".join) | st.text(max_size=200))
@settings(max_examples=dear(150))
def test_whatever_the_text_terms_and_meanings_stand_in_it(text: str) -> None:
    for each in find_definitions(section(text)):
        assert text[each.term_start : each.term_end] == each.term
        assert text[each.start : each.end] == each.text
        assert each.term.strip()
        assert each.text.strip()


@pytest.mark.measures_processor_time
@pytest.mark.parametrize(
    "unit", ["“Shed” means a hut.\n", "Shed\n", "“", "(a) (b) ", "Shed: ", "the term “", "Shed\nA hut.\n"]
)
def test_time_grows_with_the_length_and_no_faster(unit: str) -> None:
    def seconds(times: int) -> float:
        started = time.thread_time()
        find_definitions(section(unit * times))
        return time.thread_time() - started

    seconds(500)
    short = min(seconds(1_000) for _ in range(3))
    assert seconds(8_000) < 8 * 4 * max(short, 0.002)


def test_a_meaning_goes_on_with_lines_about_the_term() -> None:
    text = (
        "Area: The sum of these:\n1. Rooms;\n2. Halls.\nThe following may be left out: 1. Attics;\n2. Cellars.\n"
        "Barn: A shed.\nThe term does not include a stable.\nSee article IV."
    )
    assert [each.rpartition("\n")[2] for _, each in found(text)] == [
        "2. Cellars.",
        "The term does not include a stable.",
    ]


def test_two_terms_on_one_line_have_one_meaning() -> None:
    text = (
        'Review Board" or "RB\nA board that reviews plans of the town and of its parts for the council.\nShed\nA hut.'
    )
    assert [term for term, _ in found(text)] == ["Review Board", "RB", "Shed"]


def test_a_meaning_without_its_list_is_unsure() -> None:
    given = find_definitions(
        section("Old House\nmeans a house that is:\nPen\nA place for pigs of the town and others.")
    )
    assert [each.confidence == CUT for each in given] == [True, False]


def test_terms_in_quotes_are_defined_below_a_heading_of_definitions() -> None:
    made = section('"Shed" means a small hut.\nHut. A house.', "Sheds")
    assert find_definitions(made, [section("", "Uses")]) == []
    [shed] = find_definitions(made, [section("", "Chapter 7: Definitions")])
    assert (shed.term, shed.text) == ("Shed", "a small hut.")


def test_definitions_in_the_text_of_another_section_list_no_lines() -> None:
    assert found('Definition. "Shed" means a small hut.\nAny\nSheds built on a lot\nBarns', "Bulk Regulations") == []
