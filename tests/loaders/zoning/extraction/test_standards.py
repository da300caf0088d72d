"""Dimensional standards in label lines and tables. The texts are our own."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loaders.zoning.extraction.districts import District
from loaders.zoning.extraction.measures import parse_label
from loaders.zoning.extraction.section_scope import Scope
from loaders.zoning.extraction.standards import find_standards
from loaders.zoning.readers.code_model import Cell, Section, Subsection, Table
from tests.examples import dear

KNOWN = {code: District(code, "", "0", None, None, 0.9, "list") for code in ("R-1", "R-2")}


def section(text: str, title: str = "R-1 District", tables: tuple[Table, ...] = ()) -> Section:
    return Section("1", "1", title, "section", 1, None, 0, text, (), tables)


def told(made: Section) -> list[tuple[str | None, str]]:
    """The dimensions with their values, without the cells that are only quoted."""
    return [(each.type, f"{each.value} {each.unit}") for each in find_standards(made, KNOWN) if each.type]


@pytest.mark.parametrize(
    ("label", "group", "type_"),
    [
        ("Minimum Lot Area (sq. ft.)", "", "lot-area"),
        ("(b) Lot width at building line, minimum (ft)", "", "lot-width"),
        ("Front", "Minimum setbacks (feet)", "front-setback"),
        ("Front", "", None),
        ("Width", "Lot", "lot-width"),
        ("Stories", "Maximum height", "building-storeys"),
        ("1 - story building", "Dwelling unit area, minimum", "unit-size"),
        ("2 1/2 story building", "", None),
        ("To other lot line", "Minimum setback", None),
        ("Vending machine height", "", None),
        ("Sign area", "", None),
        ("Accessory building height", "", None),
    ],
)
def test_a_label_names_a_dimension_only_as_a_whole(label: str, group: str, type_: str | None) -> None:
    found = parse_label(label, group)
    assert (found and found.type) == type_


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Minimum lot area: 7,500 square feet.", [("lot-area", "7500 FT2")]),
        ("(1) A minimum lot width of sixty (60) feet (18.29 m.).", [("lot-width", "60 FT")]),
        ("(1) Minimum yards:\na. Front: 25 feet.\nb. Side: ten feet.",
            [("front-setback", "25 FT"), ("side-setback", "10 FT")]),
        ("2. A minimum lot size.\na. For houses: 7,260 sq. ft.", [("lot-area", "7260 FT2")]),
        ("Maximum height: 35 feet or 2 1/2 stories, whichever is less.",
            [("building-height", "35 FT"), ("building-storeys", "2.5 storey")]),
        # Prose, and what is not of the lot, its yards and its main building.
        ("The minimum lot area is 7,500 square feet.", []),
        ("Building height shall not exceed thirty-five feet.", []),
        ("A vending machine height: 7 feet.", []),
        ("(a) Accessory buildings.\n(1) Maximum height: 15 feet.", []),
        ("(a) Signs.\n(1) Setback: 10 feet.", []),
        ("Rear yard: 20 percent of the lot depth.", []),
        ("Minimum lot width: thirty (35) feet.", []),
        ("Maximum height: 5 feet per storey.", []),
        ("Minimum lot area: 40 feet.", []),
    ],
)  # fmt: skip
def test_a_label_line_is_a_standard_of_the_lot(text: str, expected: list[tuple[str, str]]) -> None:
    assert told(section(text)) == expected


def test_a_standard_with_an_alternative_has_it_as_a_condition() -> None:
    found = find_standards(section("Maximum height: 35 feet or 2 1/2 stories, whichever is less."), KNOWN)
    assert [list(each.conditions) for each in found] == [["35 feet or 2 1/2 stories", "whichever is less"]] * 2


@pytest.mark.parametrize("title", ["Signs in the R-1 District", "R-1 District: fences", "Parking in the R-1 District"])
def test_a_label_line_below_the_heading_of_something_else_is_none(title: str) -> None:
    assert told(section("Maximum height: 6 feet.", title)) == []


@pytest.mark.parametrize(("name", "codes"), [("R-1", [("R-1",)]), ("R-2", []), ("Kiln", [("R-1",)])])
def test_a_line_names_a_district_of_its_section_only(name: str, codes: list[tuple[str, ...]]) -> None:
    found = find_standards(section(f"Density:\n{name}: 10 dwelling units per acre maximum."), KNOWN)
    assert [tuple(each.districts) for each in found] == codes


@pytest.mark.parametrize(
    ("title", "of"),
    [
        ("Lot standards for lots recorded before 1960", "lots recorded before 1960"),
        ("Lot standards for the R-1 District", None),
        ("Lot standards for all buildings", None),
    ],
)
def test_a_title_for_some_lots_is_what_its_lines_are_for(title: str, of: str | None) -> None:
    scopes = [Scope("districts", ("R-1",), 0, 40)]
    found = find_standards(section("Lot width: 40 feet", title), KNOWN, (), scopes)
    assert [(each.raw, each.applies_to) for each in found] == [("40 feet", of)]


def test_the_use_and_the_case_of_a_line_are_kept() -> None:
    (found,) = find_standards(section("2. Minimum lot size.\na. For inns: 2 acres, on an arterial street."), KNOWN)
    assert (found.applies_to, list(found.conditions)) == ("inns", ["on an arterial street"])


def with_table(rows: list[list[str]], after: str = "", title: str = "Schedule", header_rows: int = 1) -> Section:
    """Build a section that is a table. In a cell, the word after ``^`` is raised."""
    text, made = "", []
    for row in rows:
        text += "\n" if text else ""
        cells = []
        for place, words in enumerate(row):
            text += " | " if place else ""
            plain, _, raised = words.partition("^")
            at = len(text)
            text += plain + (f" {raised}" if raised else "")
            marks = ((at + len(plain) + 1, len(text)),) if raised else ()
            cells.append(Cell(text[at:], at, len(text), superscripts=marks))
        made.append(cells)
    return section(text + after, title, (Table(0, len(text), made, header_rows),))


SCHEDULE = [
    ["District", "Minimum Lot Area (sq. ft.)", "Front Setback", "Max Height", "Density Per Acre", "Lot depth"],
    ["R-1", "9,000", "15-25'^1", "35'", "4 units per acre", "N/A"],
    ["R-2", "one acre", "10% of depth", "2 stories", "2 acres", "90 feet"],  # an area is no density
]
CELLS = [
    ("R-1", "lot-area", "9,000", 9000),
    ("R-1", None, "15-25' 1", None),
    ("R-1", "building-height", "35'", 35),
    ("R-1", "density", "4 units per acre", 4),
    ("R-2", "lot-area", "one acre", 1),
    ("R-2", None, "10% of depth", None),
    ("R-2", "building-storeys", "2 stories", 2),
    ("R-2", None, "2 acres", None),
    ("R-2", "lot-depth", "90 feet", 90),
]


def _raw(cell: tuple[object, ...]) -> str:
    return str(cell[2])


def in_table(made: Section) -> list[tuple[object, ...]]:
    return [(*each.districts, each.type, each.raw, each.value) for each in find_standards(made, KNOWN)]


@pytest.mark.parametrize("rows", [SCHEDULE, [list(row) for row in zip(*SCHEDULE, strict=True)]])
def test_a_cell_with_one_number_is_a_standard_and_any_other_is_quoted(rows: list[list[str]]) -> None:
    made = with_table(rows, "\n1. To the porch.")
    assert sorted(in_table(made), key=_raw) == sorted(CELLS, key=_raw)
    for each in find_standards(made, KNOWN):
        assert made.text[each.start : each.end] == each.raw
        assert (each.type is None) == (each.method == "raw")


def test_a_pair_is_divided_where_a_header_names_its_parts() -> None:
    rows = [["", "R-1", "R-2 1F/2F"], ["Lot size, minimum (sq. ft.)", "6,000", "6,000/8,000"]]
    rows.append(["Height", "30/40 feet", "20/30 feet"])
    found = [
        (*each.districts, each.type, each.applies_to, each.raw) for each in find_standards(with_table(rows), KNOWN)
    ]
    assert found == [
        ("R-1", "lot-area", None, "6,000"), ("R-2", "lot-area", "1F", "6,000"), ("R-2", "lot-area", "2F", "8,000"),
        ("R-1", None, None, "30/40 feet"), ("R-2", "building-height", "1F", "20"),
        ("R-2", "building-height", "2F", "30 feet"),
    ]  # fmt: skip


def test_a_number_below_a_header_with_two_units_is_told_with_its_own_only() -> None:
    rows = [["", "R-1", "R-2"], ["Height (ft./stories)", "35", "35/2.5"]]
    found = [(each.type, each.raw) for each in find_standards(with_table(rows), KNOWN)]
    assert found == [(None, "35"), (None, "35/2.5")]
    rows = [["District", "Height (ft./stories)"], ["R-1", "35 ft./2 stories"], ["R-2", "35 ft."]]
    found = [(each.type, each.raw) for each in find_standards(with_table(rows), KNOWN)]
    assert found == [(None, "35 ft./2 stories"), ("building-height", "35 ft.")]


def test_a_column_says_which_bound_its_values_are() -> None:
    rows = [["Standard", "Min.", "Maximum"], ["Height", "24 ft", "60 ft"], ["Front setback", "5 ft", "10 ft"]]
    found = find_standards(with_table(rows, title="R-1 District"), KNOWN)
    assert [(each.bound, each.raw) for each in found] == [
        ("min", "24 ft"), ("max", "60 ft"), ("min", "5 ft"), ("max", "10 ft"),
    ]  # fmt: skip


def test_a_row_below_a_group_row_takes_its_dimension_from_it() -> None:
    rows = [["", "R-1"], ["Dwelling unit area, minimum (sq. ft.)", ""], ["1 story", "800"], ["2 stories", "1,100"]]
    rows += [["Setbacks (ft.)", ""], ["Front", "20"], ["Rear", "30"], ["Lot coverage", "40%"], ["Corner", "5"]]
    found = [(each.type, each.applies_to, str(each.value)) for each in find_standards(with_table(rows), KNOWN)]
    assert found == [
        ("unit-size", "1 story", "800"), ("unit-size", "2 stories", "1100"), ("front-setback", None, "20"),
        ("rear-setback", None, "30"), ("lot-coverage", None, "40"), (None, None, "None"),
    ]  # fmt: skip


def test_notes_of_a_header_are_conditions_of_its_column_and_no_standards() -> None:
    made = with_table([["District", "Rear Setback^1"], ["R-1", "35'"]], "\n1. Maximum setback is 90 feet.")
    start = made.text.index("1. M")
    made = replace(made, subsections=(Subsection(("1",), start, len(made.text)),))
    [found] = find_standards(made, KNOWN)
    assert (found.raw, list(found.conditions)) == ("35'", ["1. Maximum setback is 90 feet."])


def test_a_row_for_a_case_has_it_as_condition() -> None:
    made = with_table([["Service", "Lot width"], ["Without public sewer", "100 feet"]], title="R-2 District")
    (found,) = find_standards(made, KNOWN)
    assert (found.applies_to, list(found.conditions)) == (None, ["Without public sewer"])


def test_a_mark_without_a_note_is_a_condition() -> None:
    made = with_table([["District", "Max Height (feet)"], ["R-1", "38 (2)"]], "\n(2) A mill may be 52 feet high.")
    assert [list(each.conditions) for each in find_standards(made, KNOWN)] == [["A mill may be 52 feet high."]]
    made = with_table([["District", "Rear Setback"], ["R-1", "35'^9"]])
    assert [list(each.conditions) for each in find_standards(made, KNOWN)] == [["9"]]


def test_rows_of_uses_are_for_the_district_of_the_section() -> None:
    made = with_table([["Use", "Lot width"], ["Barn", "100 feet"]], title="R-2 District")
    (found,) = find_standards(made, KNOWN)
    assert (found.districts, found.applies_to, found.value) == (("R-2",), "Barn", 100)


def test_a_column_of_an_unknown_district_is_not_read() -> None:
    rows = [["", "R-1", "Q-9"], ["Lot width (ft.)", "60", "80"]]
    assert in_table(with_table(rows)) == [("R-1", "lot-width", "60", 60)]


WORDS = st.sampled_from(
    ["minimum ", "lot area ", "setback ", "35 feet", "10% of ", "thirty-five (35) ", "height ", ". ", ":\n", "\n", ", "]
)


@given(st.lists(WORDS, max_size=40).map("".join) | st.text(max_size=200))
@settings(max_examples=dear(150))
def test_whatever_the_text_values_stand_in_it(text: str) -> None:
    for each in find_standards(section(text), KNOWN):
        assert text[each.start : each.end] == each.raw
        assert (each.value is None) == (each.unit is None)


@pytest.mark.measures_processor_time
@pytest.mark.parametrize(
    "unit",
    [
        "lot area 35 feet, ",
        "1234567890",
        "one hundred and ",
        "The setback is 5 feet.\n",
        "setback:\nside 5 feet\n",
        "5' ",
        "1/2 ",
    ],
)
def test_time_grows_with_the_length_and_no_faster(unit: str) -> None:
    def seconds(times: int) -> float:
        started = time.thread_time()
        find_standards(section(unit * times), KNOWN)
        return time.thread_time() - started

    seconds(300)
    assert min(seconds(3_200) for _ in range(2)) < 8 * 5 * max(min(seconds(400) for _ in range(3)), 0.004)


def test_a_row_that_names_no_use_has_none() -> None:
    rows = [["", "Lot area (sq. ft.)", "Height (ft.)"], ["Minimum", "9,000", "10"]]
    made = with_table(rows, title="R-1 District")
    assert [each.applies_to for each in find_standards(made, KNOWN)] == [None, None]


def test_a_table_whose_header_has_fewer_columns_than_its_rows_is_not_read() -> None:
    rows = [["District", "Lots", "Yards"], ["Width", "Depth", "Front"]]
    rows += [["R-1", "4 units", "75'", "90'", "25'"], ["R-2", "5 units", "60'", "90'", "20'"]]
    assert list(find_standards(with_table(rows, header_rows=2), KNOWN)) == []


def test_two_notes_on_a_line_are_for_two_cells() -> None:
    rows = [["", "R-1"], ["Side setback (ft.)", "10*"], ["Rear setback (ft.)", "20**"]]
    made = with_table(rows, "\n* but no less than a fifth of the width. ** but no less than a fifth of the depth.")
    assert [list(each.conditions) for each in find_standards(made, KNOWN)] == [
        ["but no less than a fifth of the width."],
        ["but no less than a fifth of the depth."],
    ]


def test_a_group_of_rows_with_the_name_of_a_district_may_be_of_uses() -> None:
    known = {"O": replace(KNOWN["R-1"], code="O", name="Office Building")}
    rows = [
        ["Use", "Spaces required"],
        ["Office Building", ""],
        ["Hotels", "1 space per room"],
        ["Clinics", "9 spaces"],
    ]
    assert list(find_standards(with_table(rows, title="Parking"), known)) == []


def test_the_digits_of_a_value_in_brackets_are_no_condition() -> None:
    [found] = find_standards(section("A maximum lot coverage of thirty-three and one-third percent (331/3%)."), KNOWN)
    assert list(found.conditions) == []


def test_columns_below_districts_are_cases_of_these() -> None:
    rows = [["", "R-1, R-2", ""], ["", "Interior lot", "Corner lot"], ["Lot area (sq. ft.)", "5,000", "6,000"]]
    made = with_table(rows, header_rows=2)
    made.tables[0].rows[0][1:] = [replace(made.tables[0].rows[0][1], colspan=2)]  # type: ignore[index]
    found = [(each.districts, each.value, each.conditions) for each in find_standards(made, KNOWN)]
    assert found == [(("R-1", "R-2"), 5000, ["Interior lot"]), (("R-1", "R-2"), 6000, ["Corner lot"])]
