"""Dimensional standards in sentences, lists and tables. The texts are our own."""

from __future__ import annotations

import time
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loaders.zoning.extraction.districts import District
from loaders.zoning.extraction.sentence_standards import Standard
from loaders.zoning.extraction.standards import find_standards
from loaders.zoning.readers.code_model import Cell, Section, Subsection, Table
from tests.examples import dear

KNOWN = {code: District(code, "", "0", None, None, 0.9, "list") for code in ("R-1", "R-2")}
SURE = 0.7
"""The threshold of `QUADCITE_RULE_CONFIDENCE`, from which a standard is told as law."""
Found = tuple[str, str, str | None, str | None]


def section(text: str, title: str = "R-1 District", tables: tuple[Table, ...] = ()) -> Section:
    return Section("1", "1", title, "section", 1, None, 0, text, (), tables)


def short(found: list[Standard]) -> list[Found]:
    return [(each.type, each.bound, str(each.value) if each.value is not None else None, each.unit) for each in found]


def of(text: str) -> list[Found]:
    return short(list(find_standards(section(text), KNOWN)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The minimum lot area is 6,000 square feet.", ("lot-area", "min", "6000", "FT2")),
        ("Lots shall have a width of at least sixty (60) feet.", ("lot-width", "min", "60", "FT")),
        ("Minimum street frontage is eighty feet.", ("lot-frontage", "min", "80", "FT")),
        ("Building height shall not exceed thirty-five feet.", ("building-height", "max", "35", "FT")),
        ("The maximum height is 2 1/2 stories.", ("building-storeys", "max", "2.5", "storey")),
        ("A 25-foot rear setback is required.", ("rear-setback", "min", "25", "FT")),
        ("The side yard shall be no less than 10 feet.", ("side-setback", "min", "10", "FT")),
        ("Density shall not exceed 18 units per acre.", ("density", "max", "18", "dwelling-per-acre")),
        ("Lot coverage shall not exceed 40%.", ("lot-coverage", "max", "40", "PERCENT")),
        ("At least 20 percent of the site shall be open space.", ("open-space", "min", "20", "PERCENT")),
        ("Minimum parking is two and one-half (2.5) spaces for each unit.", ("parking", "min", "2.5", "space")),
        ("Density shall not exceed one dwelling unit per 20 acres.", ("density", "max", "0.05", "dwelling-per-acre")),
        ("20-foot maximum front setback.", ("front-setback", "max", "20", "FT")),
    ],
)
def test_sentences_say_what_how_much_and_which_bound(text: str, expected: Found) -> None:
    assert of(text) == [expected]


@pytest.mark.parametrize(
    ("text", "value", "applies_to", "condition"),
    [
        (
            "Lodges shall have a lot area of not less than 18,000 square feet, and 900 square feet for each bunk unit.",
            18000,
            "Lodges",
            "and 900 square feet for each bunk unit",
        ),
        (
            "Lodges shall have a lot area of not less than 18,000 square feet and 900 for each bunk unit.",
            18000,
            "Lodges",
            "and 900 for each bunk unit",
        ),
        (
            "Each side yard is not less than seven feet, and the two together are not less than seventeen feet.",
            7,
            None,
            "and the two together are not less than seventeen feet",
        ),
        (
            "The width of a lot shall be not less than 66 feet, or 88 feet for a corner lot.",
            66,
            None,
            "or 88 feet for a corner lot",
        ),
    ],
)
def test_a_further_requirement_of_the_sentence_is_a_condition(
    text: str, value: int, applies_to: str | None, condition: str
) -> None:
    first, *others = find_standards(section(text), KNOWN)
    assert (first.value, first.applies_to, list(first.conditions)) == (value, applies_to, [condition])
    assert all(each.confidence < SURE or each.applies_to == "corner lot" for each in others)


@pytest.mark.parametrize(
    "text",
    [
        "Where half of a block is built up, the yard shall be the average, but no front yard need exceed 44 feet.",
        "Parking areas shall be divided into bays of 14 spaces or fewer.",
        "A yard for trucks shall be screened from a residence district by a planted strip at least 18 feet deep.",
    ],
)
def test_what_limits_nothing_or_something_else_is_no_standard(text: str) -> None:
    assert not list(find_standards(section(text, "Parking"), KNOWN))


def test_an_adverb_is_no_subject() -> None:
    [found] = find_standards(section("The rear yard shall be 12 feet for only."), KNOWN)
    assert found.confidence < SURE


def test_the_height_of_an_enclosure_names_what_it_encloses() -> None:
    [found] = find_standards(section("A quarry pond shall be enclosed by a fence at least five feet high."), KNOWN)
    assert (found.bound, found.applies_to, list(found.conditions)) == (
        "min",
        "fence",
        ["A quarry pond shall be enclosed"],
    )


def test_a_share_of_something_else_stays_as_recorded() -> None:
    (found,) = find_standards(section("The rear setback shall be 10% of lot depth."), KNOWN)
    assert (found.raw, found.value, found.unit) == ("10% of lot depth", None, None)


def test_a_range_stays_as_recorded() -> None:
    (found,) = find_standards(section("The density is five to 12 dwelling units per acre."), KNOWN)
    assert (found.raw, found.value, found.unit) == ("five to 12 dwelling units per acre", None, None)


def test_several_in_one_sentence_are_each_their_own() -> None:
    assert of(
        "The minimum lot size is 9,000 square feet; the minimum lot width is 60 feet and the side setback 10 feet."
    ) == [
        ("lot-area", "min", "9000", "FT2"),
        ("lot-width", "min", "60", "FT"),
        ("side-setback", "min", "10", "FT"),
    ]
    assert of("Setbacks shall be 5 feet on the sides and 25 feet on the front and rear.")[1:] == [
        ("front-setback", "min", "25", "FT"),
        ("rear-setback", "min", "25", "FT"),
    ]


@pytest.mark.parametrize(
    ("text", "applies_to"),
    [
        ("Two parking spaces per dwelling unit shall be provided.", "dwelling unit"),
        ("A minimum of two parking spaces shall be provided per unit within the project.", "unit"),
        ("A garage and two (2) parking spaces per home are required.", "home"),
        ("A minimum of two parking spaces is required.", None),
    ],
)
def test_spaces_are_for_each_of_what_they_are_given_per(text: str, applies_to: str | None) -> None:
    [found] = find_standards(section(text), KNOWN)
    assert (found.type, found.value, found.applies_to) == ("parking", 2, applies_to)


def test_what_is_to_be_provided_is_no_proviso() -> None:
    [found] = find_standards(section("Two parking spaces shall be provided for each home."), KNOWN)
    assert (found.applies_to, found.conditions) == ("home", [])
    [found] = find_standards(
        section("Two parking spaces are required for each home, provided that one is covered."), KNOWN
    )
    assert found.conditions == ["provided that one is covered"]


def test_the_lines_of_a_list_are_what_its_heading_says() -> None:
    text = "Setbacks shall be as follows for main buildings:\nFront yard, 20 feet.\nSide yard, 10 feet."
    found = find_standards(section(text), KNOWN)
    assert short(list(found)) == [("front-setback", "min", "20", "FT"), ("side-setback", "min", "10", "FT")]
    assert {each.applies_to for each in found} == {"main buildings"}
    text = "Minimum living space shall be provided as follows:\nTwin home, 900 square feet.\nTownhome, 800 square feet."
    assert [(each.type, each.applies_to) for each in find_standards(section(text), KNOWN)] == [
        ("floor-area", "Twin home"),
        ("floor-area", "Townhome"),
    ]
    text = "Minimum living space shall be provided as follows:\nDuplex, 900 square feet, each side."
    assert [(each.type, each.applies_to) for each in find_standards(section(text), KNOWN)] == [("floor-area", "Duplex")]


def test_what_says_where_a_limit_holds_is_no_limit() -> None:
    (found,) = find_standards(section("The maximum height shall be 35 feet within 100 feet of the park."), KNOWN)
    assert found.raw == "35 feet"
    assert found.conditions == ["within 100 feet of the park"]


def test_a_sentence_may_name_its_district_and_its_building() -> None:
    text = "The minimum lot width in the R-2 zone is 50 feet for twin homes, except on corners."
    (found,) = find_standards(section(text), KNOWN)
    assert (found.districts, found.applies_to, found.conditions) == (("R-2",), "twin homes", ["except on corners"])
    assert text[found.start : found.end] == found.raw == "50 feet"


@pytest.mark.parametrize(
    "text",
    [
        "Adopted October 17, 1998. The floor area ratio of a lot is computed by the clerk on October 17.",
        "The rear yard may be reduced by not more than 5 feet.",
        "The limit of 35 feet shall not apply to spires.",
        "A porch may extend not more than 8 feet into a front yard.",
        "Eaves may project 2 feet into a required yard.",
        "The floor area of a store is its gross area minus 500 square feet.",
        "The side yard shall be the lesser of 8% of the lot width or 10 feet.",
        "Where a lot abuts an alley, the rear yard shall be 12 feet.",
        "If the building has a sprinkler, its height shall not exceed 60 feet.",
        "The side yard shall be at least 30 feet where the lot adjoins a school.",
        "A building more than 50 feet high needs a permit.",
        "The board may approve a height of up to 60 feet.",
        "A yard need not be more than 40 feet deep.",
        "No building shall be required to have more than one story.",
        "Notice is mailed within 300 feet of the lot.",
        "The berm shall be planted with evergreen trees a minimum of six feet tall.",
        "In the Q-9 District, the lot area shall be at least two acres.",
        "Parking lots shall have islands with a minimum of 108 square feet of planter area.",
        "Parking lots shall have islands, with a 90 square foot island for each row.",
        "Must maintain a minimum setback of five feet to the side or rear property line.",
        "Lawn shall not be installed on paths less than eight feet in width.",
        "A yard shall be enclosed by a wall six (6) feet in height.",
        "A house may be built, provided it conforms to these requirements:\na. The lot is at least 50 feet wide.",
        "All buildings, except barns, shall be at least 20 feet from the rear lot line.",
        "Sheds with a peak height of at most 12 feet may be built on the lot line.",
        "On any corner lot there shall be a yard of at least 40 feet from the street.",
        "A quarry may not be approved within 900 feet of Elm Street.",
        "Houses shall be set back at least 60 feet from Mill Road.",
        "No part of a cart may be within four feet of a street curb.",
        "At least 12 percent of the interior of a parking lot shall be landscaped.",
        "The top of all vents shall be no higher than two feet above grade.",
        "Where a lot adjoins a school, hedges shall be kept so:\n(a) Hedges shall be at least nine feet wide.",
        "In areas of sand, these are required:\n(a) Houses shall be at least 60 feet from the top of bank.",
        "Halls shall have a room of at least 900 square feet in size, or a minimum of one court.",
        "Lot size:\n30 beds or less - 2,000 square feet.",
        "Two additional parking spaces are required.",
    ],
)
def test_exceptions_reductions_and_conditions_are_not_standards(text: str) -> None:
    made = Section("1", "1", "Requirements", "section", 1, None, 0, text, (), ())
    found = [each for each in find_standards(made, KNOWN) if each.confidence >= SURE]
    assert [(each.raw, each.conditions) for each in found if not each.conditions] == []


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("Where a lot abuts an alley, the rear yard shall be 12 feet.", "Where a lot abuts an alley"),
        ("The side yard shall be at least 30 feet where the lot adjoins a school.", "where the lot adjoins a school"),
        ("A side yard adjoining a street shall be at least 20 feet wide.", "adjoining a street"),
        ("All buildings, except barns, shall be at least 20 feet from the rear lot line.", "except barns"),
        (
            "Where a lot adjoins a school, hedges shall be kept so:\n(a) Hedges shall be at least nine feet wide.",
            "Where a lot adjoins a school, hedges shall be kept so",
        ),
        ("Lot size:\nFor barns: 2 acres, and on an arterial street.", "and on an arterial street"),
        ("Fences on corner plots may be eight feet high, but only in Summer.", "but only in Summer"),
        ("Fences may be eight feet high in all non-industrial zones.", "in all non-industrial zones"),
        (
            "1. Minimum front yard depth: 30 feet. 1\n1 Where both neighbours are nearer, their average is enough.",
            "1 Where both neighbours are nearer, their average is enough.",
        ),
    ],
)
def test_a_limit_of_a_case_has_the_case_as_condition(text: str, condition: str) -> None:
    made = Section("1", "1", "Requirements", "section", 1, None, 0, text, (), ())
    assert [list(each.conditions) for each in find_standards(made, KNOWN)] == [[condition]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("No barn shall exceed 30 feet in height within 100 feet of a pond.", [("building-height", "30", "100 feet")]),
        (
            "No building within 200 feet of a school may be higher than 35 feet.",
            [("building-height", "35", "200 feet")],
        ),
        ("No barn shall be within 20 feet of a lot line.", [("setback", "20", "")]),
        (
            "A pool shall be at least 20 feet from any lot line and 30 feet from the top of a slope.",
            [("setback", "20", ""), ("setback", "30", "from the top of a slope")],
        ),
        (
            "Stables shall be at least 75 feet from any side lot line and 100 feet from the tracks of a railroad.",
            [("side-setback", "75", ""), ("setback", "100", "from the tracks of a railroad")],
        ),
    ],
)
def test_a_place_that_is_no_line_is_a_condition(text: str, expected: list[tuple[str, str, str]]) -> None:
    found = list(find_standards(section(text), KNOWN))
    assert [(each.type, str(each.value)) for each in found] == [(kind, value) for kind, value, _ in expected]
    for each, (_, _, words) in zip(found, expected, strict=True):
        assert words in " ".join(each.conditions)
        assert bool(words) == bool(each.conditions)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "No more than 10 percent of the lot shall be covered by buildings and no more than 15 percent by impervious"
            " surfaces.",
            [("lot-coverage", "10", None)],
        ),
        (
            "Density of townhouses shall not exceed eight units per acre, and that of garden apartments twelve units"
            " per acre.",
            [("density", "8", "townhouses"), ("density", "12", "garden apartments")],
        ),
        (
            "The lot width is at least 660 feet, but a lot of one acre shall be no less than 150 feet wide.",
            [("lot-width", "660", None), ("lot-width", "150", None)],
        ),
        ("No shed shall have a floor area greater than 900 square feet on a lot of less than two acres.",
            [("floor-area", "900", "shed")]),
        ("The Board may authorize a lot with not less than 40 feet of frontage.", []),
        ("The limits of height do not apply to spires, but no such structure shall be more than 75 feet high.", []),
    ],
)  # fmt: skip
def test_each_of_two_limits_has_its_own_dimension_and_subject(
    text: str, expected: list[tuple[str, str, str | None]]
) -> None:
    sure = [each for each in find_standards(section(text), KNOWN) if each.confidence >= SURE]
    assert [(each.type, str(each.value), each.applies_to) for each in sure] == expected


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("A lot of one acre shall be no less than 150 feet wide.", "lot of one acre"),
        ("Elsewhere the lot shall contain at least one acre.", "Elsewhere"),
        ("The front yard shall be a minimum of 50 feet from the right-of-way of a county road.", "county road"),
    ],
)
def test_a_limit_of_some_lots_or_roads_says_which(text: str, condition: str) -> None:
    found = list(find_standards(section(text), KNOWN))
    assert len(found) == 1
    assert condition in " ".join(found[0].conditions)


def test_the_column_of_a_district_may_be_for_one_use_or_for_each_unit() -> None:
    rows = [["Requirement", "R-1", "R-2 (two-family)"], ["Lot area (sq. ft.)", "8,000", "3,000 per unit"]]
    made = find_standards(with_table(rows), KNOWN)
    assert [(each.type, each.districts, str(each.value), each.applies_to) for each in made] == [
        ("lot-area", ("R-1",), "8000", None), ("lot-area-per-unit", ("R-2",), "3000", "two-family"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "Stables shall be joined to the road by a track, of the grade of the road and no less than 20 feet wide.",
        "Stables shall have a painted door which provides a minimum height for carts of 11 feet.",
        "Wire shall not be used in a fence of the height of less than seven feet.",
    ],
)
def test_a_limit_whose_subject_is_not_understood_is_unsure(text: str) -> None:
    assert [each.raw for each in find_standards(section(text), KNOWN) if each.confidence >= SURE] == []


@pytest.mark.parametrize(
    ("text", "expected", "applies_to"),
    [
        ("The minimum front yard depth shall be thirty (30) feet.", ("front-setback", "min", "30", "FT"), None),
        ("A sign on a pole shall not be over 20 feet high.", ("building-height", "max", "20", "FT"), "sign on a pole"),
        ("Light poles must not be taller than 18 feet.", ("building-height", "max", "18", "FT"), "Light poles"),
        ("No fence shall exceed six feet in height.", ("building-height", "max", "6", "FT"), "fence"),
        ("Minimum lot area: 14,000 sq. ft. (1,300 sq. m.)", ("lot-area", "min", "14000", "FT2"), None),
        ("Minimum lot area: One (1 ) acre (43,560 sq. ft.) (4,047 sq. m.)", ("lot-area", "min", "1", "AC"), None),
        (
            "A maximum lot coverage of thirty-three and one-third percent (33 1/3%) applies.",
            ("lot-coverage", "max", "33.3333", "PERCENT"),
            None,
        ),
        ("Two buildings on a lot shall be at least 20 feet apart.", ("building-separation", "min", "20", "FT"), None),
        ("A kennel shall be on a lot of at least five acres.", ("lot-area", "min", "5", "AC"), "kennel"),
        ("Buildings shall cover not more than 25 percent of a lot.", ("lot-coverage", "max", "25", "PERCENT"), None),
        ("No shed shall be nearer to the rear lot line than 5 feet.", ("rear-setback", "min", "5", "FT"), "shed"),
        ("An aisle shall be at least 24 feet wide.", ("width", "min", "24", "FT"), "aisle"),
        ("Minimum lot width at the building setback line: 80 feet.", ("lot-width", "min", "80", "FT"), None),
        (
            "The height of a fence within a front yard shall not exceed 3 feet.",
            ("building-height", "max", "3", "FT"),
            "fence within a front yard",
        ),
        ("No fence shall exceed a height of 3 feet.", ("building-height", "max", "3", "FT"), "fence"),
        (
            "Houses shall have yards with a brick wall having a height of at least six feet.",
            ("building-height", "min", "6", "FT"),
            "brick wall",
        ),
        (
            "One-story sheds shall be at least three (3) feet (. 91 m.) from the side lot line.",
            ("side-setback", "min", "3", "FT"),
            "One-story sheds",
        ),
        (
            "Minimum lot sizes:\na. For barns or sheds: One and one-half (1 ½) acres (65,340 sq. ft.).",
            ("lot-area", "min", "1.5", "AC"),
            "barns or sheds",
        ),
        ("Front yard: twenty-five (25) foot minimum.", ("front-setback", "min", "25", "FT"), None),
        ("Each inn shall be on at least 2,000 square feet of land.", ("lot-area", "min", "2000", "FT2"), "inn"),
        (
            "(1) Kennels are allowed, if these are met:\n(a) The lot shall have an area of at least five acres.",
            ("lot-area", "min", "5", "AC"),
            "Kennels",
        ),
        ("The floor area ratio shall not exceed 40 percent.", ("floor-area-ratio", "max", "40", "PERCENT"), None),
        (
            "Houses that are empty shall be at least 20 feet from the side lot line.",
            ("side-setback", "min", "20", "FT"),
            "Houses that are empty",
        ),
        (
            "All buildings, including sheds, shall not cover more than 20 percent of the lot.",
            ("lot-coverage", "max", "20", "PERCENT"),
            None,
        ),
        ("The lot area per dwelling unit is 3,000 square feet.", ("lot-area-per-unit", "min", "3000", "FT2"), None),
    ],
)
def test_a_standard_has_the_dimension_and_subject_of_its_clause(
    text: str, expected: Found, applies_to: str | None
) -> None:
    found = list(find_standards(section(text), KNOWN))
    assert short(found) == [expected]
    assert found[0].applies_to == applies_to


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Front yards shall be at least 75 feet in the R-1 District and 60 feet in the R-2 District.",
            [("R-1", "75"), ("R-2", "60")],
        ),
        (
            "In the R-1 and R-2 Districts, no building shall exceed 22 and 35 feet in height, respectively.",
            [("R-1", "22"), ("R-2", "35")],
        ),
        (
            "A lot in the R-1 District shall be 90 feet wide and one in the R-2 District at least 70 feet wide.",
            [("R-1", "90"), ("R-2", "70")],
        ),
        (
            "The minimum lot areas in the R-1 and R-2 Districts are 20 acres and five acres, respectively.",
            [("R-1", "20"), ("R-2", "5")],
        ),
        (
            "In the R-1 District one sign is permitted. A sign shall not exceed four feet in height.",
            [("R-1", "4")],
        ),
        (
            "In the R-1 District, a yard shall be kept along the boundary of the R-2 District. The rear yard shall be"
            " at least 20 feet in the R-1 District.",
            [("R-1", "20")],
        ),
    ],
)
def test_each_measure_has_the_districts_named_with_it(text: str, expected: list[tuple[str, str]]) -> None:
    made = Section("1", "1", "Requirements", "section", 1, None, 0, text, (), ())
    found = [(code, str(each.value)) for each in find_standards(made, KNOWN) for code in each.districts]
    assert found == expected


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
    ["District", "Minimum Lot Area (sq. ft.)", "Front Setback", "Max Height", "Density Per Acre", "Depth"],
    ["R-1", "9,000", "15-25'^1", "35'", "4 units", "N/A"],
    ["R-2", "one acre", "10% of depth", "2 stories", "2 acres", "90 feet"],  # an area is no density
]


def in_table(made: Section) -> list[tuple[str, ...]]:
    return [
        (*each.districts, each.type, each.bound, each.raw, str(each.value), str(each.unit))
        for each in find_standards(made, KNOWN)
    ]


def test_the_lot_of_a_building_has_its_own_dimensions() -> None:
    text = "A house shall be on a lot having an area of at least 9,000 square feet and a width of at least 60 feet."
    found = list(find_standards(section(text), KNOWN))
    assert short(found) == [("lot-area", "min", "9000", "FT2"), ("lot-width", "min", "60", "FT")]


def test_a_clause_after_a_semicolon_has_the_subject_before_it() -> None:
    text = "A building shall not be nearer to the front lot line than 20 feet; shall have a side yard of 9 feet."
    assert [each[0] for each in of(text)] == ["front-setback", "side-setback"]


def test_lines_below_a_line_have_its_dimension() -> None:
    text = "1. A minimum lot width.\na. For houses: sixty (60) feet.\nb. For inns: 90 feet.\n2. Trees shall be kept."
    found = list(find_standards(section(text), KNOWN))
    assert [(each.type, each.applies_to, str(each.value)) for each in found] == [
        ("lot-width", "houses", "60"),
        ("lot-width", "inns", "90"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "1. A minimum lot size.\na. For camps: cabins and tents, (with at most one stove) 900 sq. ft. per tent;"
            " plus lodges, all with a minimum of three (3) acres.",
            [("900", "camps: cabins and tents"), ("3", "camps")],
        ),
        (
            "1. A minimum lot size.\na. For inns, and riding schools: O ne-half acre (21,780 sq. ft.).",
            [("0.5", "inns, and riding schools")],
        ),
        ("Permitted uses:\nInns. The minimum lot size is 9,700 square feet.", [("9700", "Inns")]),
    ],
)
def test_each_measure_of_an_item_has_the_use_of_the_item(text: str, expected: list[tuple[str, str]]) -> None:
    found = find_standards(section(text), KNOWN)
    assert [(str(each.value), each.applies_to) for each in found] == expected


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        (
            "Floor area ratio: 30 percent; provided, however, that this applies only to houses built after 1990.",
            "provided, however, that this applies only to houses built after 1990",
        ),
        (
            "The side yard shall be 9 feet, provided 18 feet exists between barns.",
            "provided 18 feet exists between barns",
        ),
        ("Streets shall not exceed 500 feet in length without a crossing street.", "without a crossing street"),
        ("Minimum lot size: 4,000 sq. ft., plus 900 sq. ft. for each stable.", "plus 900 sq. ft. for each stable"),
        ("Inns shall provide at least two parking spaces per guest room.", "per guest room"),
        ("The setback from Elm Street shall be at least 12 feet.", "from Elm Street"),
        ("Inns shall be at least 60 feet from any school.", "from any school"),
    ],
)
def test_a_standard_has_the_words_that_limit_it_as_condition(text: str, condition: str) -> None:
    [found] = find_standards(section(text), KNOWN)
    assert list(found.conditions) == [condition]


def test_a_table_has_a_row_for_each_district_and_a_column_for_each_dimension() -> None:
    made = with_table(SCHEDULE, "\n1. To the porch.")
    assert in_table(made) == [
        ("R-1", "lot-area", "min", "9,000", "9000", "FT2"),
        ("R-1", "front-setback", "min", "15-25'", "None", "None"),
        ("R-1", "building-height", "max", "35'", "35", "FT"),
        ("R-1", "density", "max", "4 units", "4", "dwelling-per-acre"),
        ("R-2", "lot-area", "min", "one acre", "1", "AC"),
        ("R-2", "front-setback", "min", "10% of depth", "None", "None"),
        ("R-2", "building-storeys", "max", "2 stories", "2", "storey"),
        ("R-2", "lot-depth", "min", "90 feet", "90", "FT"),
    ]
    assert [list(each.conditions) for each in find_standards(made, KNOWN)][1] == ["To the porch."]
    assert all(made.text[each.start : each.end] == each.raw for each in find_standards(made, KNOWN))


def test_notes_of_a_header_are_conditions_of_its_column_and_no_standards() -> None:
    made = with_table([["District", "Rear Setback^1"], ["R-1", "35'"]], "\n1. Maximum setback is 90 feet.")
    start = made.text.index("1. M")
    made = replace(made, subsections=(Subsection(("1",), start, len(made.text)),))
    [found] = find_standards(made, KNOWN)
    assert (found.raw, list(found.conditions)) == ("35'", ["1. Maximum setback is 90 feet."])


def test_a_cell_may_have_a_value_for_each_bound_and_unit() -> None:
    rows = [["District", "Front Yard", "Maximum Height"], ["R-1", "5 ft. min, 15 ft. max", "3 stories or 42 ft."]]
    assert [(each[1], each[2], each[4]) for each in in_table(with_table(rows))] == [
        ("front-setback", "min", "5"),
        ("front-setback", "max", "15"),
        ("building-storeys", "max", "3"),
        ("building-height", "max", "42"),
    ]


def test_a_row_for_a_case_has_it_as_condition() -> None:
    made = with_table([["Service", "Lot width"], ["Without public sewer", "100 feet"]], title="R-2 District")
    (found,) = find_standards(made, KNOWN)
    assert (found.applies_to, list(found.conditions)) == (None, ["Without public sewer"])


def test_a_cell_with_a_mark_without_its_note_is_unsure() -> None:
    made = with_table([["District", "Rear Setback"], ["R-1", "35'^9"]])
    assert [each.confidence < SURE for each in find_standards(made, KNOWN)] == [True]


def test_a_number_in_brackets_behind_a_bare_number_is_the_mark_of_a_note() -> None:
    rows = [
        ["District", "Max Height (feet)", "Rear Yard (feet)", "Side Yard (feet)"],
        ["R-1", "38 (2)", "44 (3)(2)", "12 (11.5)"],
    ]
    made = with_table(rows, "\n(2) A mill may be 52 feet high.")
    found = list(find_standards(made, KNOWN))
    assert [(each.type, each.raw, each.value) for each in found] == [
        ("building-height", "38", 38),
        ("rear-setback", "44", 44),
        ("side-setback", "12 (11.5)", None),
    ]
    assert [list(each.conditions) for each in found[:2]] == [["A mill may be 52 feet high."]] * 2
    assert [each.confidence < SURE for each in found[:2]] == [False, True]  # there is no note (3)


def test_a_table_may_be_turned() -> None:
    turned = [list(row) for row in zip(*SCHEDULE, strict=True)]
    assert sorted(in_table(with_table(turned))) == sorted(in_table(with_table(SCHEDULE)))


def test_rows_of_uses_are_for_the_district_of_the_section() -> None:
    made = with_table([["Use", "Lot width"], ["Barn", "100 feet"]], title="R-2 District")
    (found,) = find_standards(made, KNOWN)
    assert (found.districts, found.applies_to, found.value) == (("R-2",), "Barn", Decimal(100))


WORDS = st.sampled_from(
    [
        "minimum ",
        "lot area ",
        "setback ",
        "35 feet",
        "10% of ",
        "thirty-five (35) ",
        "height ",
        ". ",
        ":\n",
        "\n",
        ", ",
        "for sheds ",
        "acres ",
        "(",
        "’",
        "½ ",
    ]
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


def test_an_item_has_one_value_and_no_additions_to_it() -> None:
    text = (
        "A minimum lot size.\n"
        "a. For terraces: 3,000 sq. ft. per dwelling unit, plus an additional 1,000 sq. ft. for each unit which "
        "has more than two bedrooms, with a minimum lot size of 8,000 sq. ft.\n"
        "b. For almshouses: Flats , (with two bedrooms) 2,040 sq. ft. (189.52 sq. m .) per flat , minus 674 sq. ft. "
        "for a studio; plus Wards , 20 sq. ft. per bed, all with a minimum of two (2) acres (8,094 sq. m.) for each.\n"
        "c. For banks: O ne-half acre (21,780 sq. ft.) (2,023 sq. m.).\n"
        "d. For inns: Two  hundred s eventy -five (275 sq. ft.) (25.5 sq. m.) per room.\n"
        "e. For a care facility: 2 acres."
    )
    found = list(find_standards(section(text), KNOWN))
    assert [(each.applies_to, str(each.value), each.unit) for each in found] == [
        ("terraces", "3000", "FT2"),
        ("almshouses: Flats", "2040", "FT2"),
        ("banks", "0.5", "AC"),
        ("inns", "275", "FT2"),
        ("care facility", "2", "AC"),
    ]


def test_a_condition_is_whole_and_of_all_limits_before_it() -> None:
    text = "No building shall exceed 35 feet or 2 stories in height, except as provided in Section 4.2."
    found = list(find_standards(section(text), KNOWN))
    assert [(each.type, each.conditions) for each in found] == [
        ("building-height", ["except as provided in Section 4.2"]),
        ("building-storeys", ["except as provided in Section 4.2"]),
    ]


def test_a_yard_in_the_subject_is_a_condition() -> None:
    text = "No fence in a front yard shall exceed 4 feet in height. "
    text += "No fence in a side or rear yard shall exceed 6 feet in height."
    found = list(find_standards(section(text), KNOWN))
    assert [(str(each.value), each.conditions) for each in found] == [
        ("4", ["in a front yard"]),
        ("6", ["in a side or rear yard"]),
    ]


def test_columns_of_bounds_in_a_parking_schedule_are_its_rates() -> None:
    rows = [["Use", "Minimum", "Maximum"], ["Inn", "1 per room", "None"], ["Dwelling", "2 per unit", "3 per unit"]]
    found = find_standards(with_table(rows, title="Parking spaces required"), KNOWN)
    assert [(each.applies_to, each.bound, each.raw) for each in found] == [
        ("Inn", "min", "1 per room"), ("Dwelling", "min", "2 per unit"), ("Dwelling", "max", "3 per unit"),
    ]  # fmt: skip


def test_a_row_that_names_no_use_has_none() -> None:
    rows = [["", "Lot area (sq. ft.)", "Height (ft.)"], ["Minimum", "9,000", "10"]]
    assert [each.applies_to for each in find_standards(with_table(rows), KNOWN)] == [None, None]


def test_a_table_whose_header_has_fewer_columns_than_its_rows_is_not_read() -> None:
    rows = [["District", "Lots", "Yards"], ["Width", "Depth", "Front"]]
    rows += [["R-1", "4 units", "75'", "90'", "25'"], ["R-2", "5 units", "60'", "90'", "20'"]]
    assert list(find_standards(with_table(rows, header_rows=2), KNOWN)) == []


def test_the_fence_of_a_pool_is_that_of_a_pool() -> None:
    found = list(find_standards(section("A pool shall have a fence not less than four feet in height."), KNOWN))
    assert [(each.applies_to, list(each.conditions)) for each in found] == [("fence", ["A pool"])]
