"""Uses in sentences and in lists within a line, parking in lines and tables, rules of kinds of development.

The texts are our own.
"""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loaders.zoning.extraction.districts import District
from loaders.zoning.extraction.permissions import find_permissions
from loaders.zoning.extraction.standards import find_standards
from loaders.zoning.extraction.use_sentences import split_list
from loaders.zoning.readers.code_model import Cell, Section, Table
from tests.examples import dear

KNOWN = {
    code: District(code, name, "0", None, None, 0.9, "list")
    for code, name in {
        "R-1": "Single Family Residential",
        "R-2": "Two Family Residential",
        "R-O": "Residential Office",
        "C-1": "Corner Commercial",
        "C-2": "General Commercial",
        "PD": "Planned Development",
    }.items()
}


def section(text: str, title: str, tables: tuple[Table, ...] = ()) -> Section:
    return Section("1", "1", title, "section", 1, None, 0, text, (), tables)


def uses(text: str, title: str = "R-1 Residential District") -> list[tuple[str, str, str]]:
    return [(each.district, each.use, each.level) for each in find_permissions(section(text, title), KNOWN)]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("A duplex may be allowed by special permit.", [("R-1", "duplex", "conditional")]),
        ("In R-2 districts, duplexes are permitted.", [("R-2", "duplexes", "byRight")]),
        ("Inns are permitted by right in the C-2 district only.", [("C-2", "Inns", "byRight")]),
        ("Duplexes are permitted in the R-2 district.", [("R-2", "Duplexes", "byRight")]),
        ("Duplexes are permitted in the General Commercial District.", [("C-2", "Duplexes", "byRight")]),
        (
            "Kennels shall be allowed as a conditional use in the C-1 and C-2 zones.",
            [("C-1", "Kennels", "conditional"), ("C-2", "Kennels", "conditional")],
        ),
        (
            "No kennel shall be permitted in any residential district.",
            [("R-1", "kennel", "notPermitted"), ("R-2", "kennel", "notPermitted")],
        ),
        ("In the R-2 district, duplexes are permitted by right.", [("R-2", "duplexes", "byRight")]),
        (
            "One-family dwellings are permitted in the R-1 district as of right.",
            [("R-1", "One-family dwellings", "byRight")],
        ),
        (
            "Bars are permitted in the C-2 district subject to a conditional use permit.",
            [("C-2", "Bars", "conditional")],
        ),
        (
            "Barns, sheds, and stables are permitted in this district.",
            [("R-1", use, "byRight") for use in ("Barns", "sheds", "stables")],
        ),
        (
            "Accessory dwelling units are permitted in the R-2 district.",
            [("R-2", "Accessory dwelling units", "byRight")],
        ),
    ],
)
def test_the_subject_of_a_sentence_is_the_use(sentence: str, expected: list[tuple[str, str, str]]) -> None:
    assert uses(sentence) == expected
    assert uses(f"(a) Purpose. {sentence}") == expected


@pytest.mark.parametrize(
    "sentence",
    [
        "Signs are permitted in the R-2 district.",
        "Such use is permitted in the R-2 district.",
        "It is permitted by right.",
        "The following are permitted in the R-2 district.",
        "No building permit shall be allowed.",
        "Home occupations may be permitted in the R-1 district.",
        "Kennels are prohibited in all districts except C-2.",
        "Kennels are permitted in districts other than the R-1 district.",
        "Kennels are permitted on lots abutting the R-1 district.",
        "Kennels are permitted in buildings within the R-1 district.",
        "Duplexes shall be permitted in neither the R-1 nor R-2 district.",
        "No more than one dwelling is permitted in the R-1 district.",
        "No use other than a farm shall be permitted in the R-1 district.",
        "Dwellings shall not be permitted on the ground floor in the C-1 district.",
        "Uses not listed are prohibited in this district.",
        "Inns are permitted only in the C-2 district.",
        "Inns are permitted in the C-2 district only.",
        "Reconstruction is permitted by right.",
        "All uses permitted in the R-1 district are permitted in the R-2 district.",
        "The use of barbed wire is prohibited in the R-1 district.",
        "Similar uses may be allowed by conditional use permit.",
        "Additional stories may be allowed by special permit.",
        "Apartments are permitted in the upper stories of buildings in the C-1 district.",
        "Taverns are prohibited within 100 feet of the R-1 district.",
        "A reduction of the yard may be allowed by special permit.",
        "Buildings taller than 35 feet may be allowed by special permit.",
        "Kennels are permitted in any industrial district.",
    ],
)
def test_a_sentence_about_something_else_permits_nothing(sentence: str) -> None:
    assert uses(sentence) == []


@pytest.mark.parametrize(
    ("line", "level", "found"),
    [
        (
            "(a) Permitted uses: single-family dwellings; parks; and schools.",
            "byRight",
            ["single-family dwellings", "parks", "schools"],
        ),
        ("Permitted in R-1: dwellings, parks.", "byRight", ["dwellings", "parks"]),
        (
            "Conditional uses: churches, schools, and day care centers.",
            "conditional",
            ["churches", "schools", "day care centers"],
        ),
        ("Conditional uses: churches, schools and parks.", "conditional", ["churches", "schools", "parks"]),
        ("Prohibited uses: junk yards.", "notPermitted", ["junk yards"]),
        ("Permitted uses: (1) dwellings; (2) parks.", "byRight", ["dwellings", "parks"]),
        ("Permitted uses: wholesale, retail and service establishments.", "byRight", []),
        ("Permitted uses: professional, business, and medical offices.", "byRight", []),
        ("Permitted uses: boarding, lodging, and rooming houses.", "byRight", []),
        ("Permitted uses: uses permitted in the R-2 district, dwellings.", "byRight", []),
        ("Prohibited uses: none.", "notPermitted", []),
        ("Conditional uses: section 3.1; section 3.2.", "conditional", []),
        ("Permitted uses: R-2; R-3.", "byRight", []),
        ("Permitted uses: P; conditional uses: C.", "byRight", []),
        ("Permitted uses: same as R-2.", "byRight", []),
    ],
)
def test_uses_may_follow_the_heading_in_its_own_line(line: str, level: str, found: list[str]) -> None:
    assert uses(f"{line}\nFront yard: 20 feet.") == [("R-1", use, level) for use in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Inns are allowed by right in the C-1 and C-2 districts and by special permit in the R-2 district;"
            " they are prohibited in the R-1 district.",
            [
                ("C-1", "Inns", "byRight"),
                ("C-2", "Inns", "byRight"),
                ("R-2", "Inns", "conditional"),
                ("R-1", "Inns", "notPermitted"),
            ],
        ),
        ("Inns are allowed by right or by special permit in the C-1 and C-2 districts.", []),
        ("Bars are not permitted by right in the C-1 district.", []),
        ("Bars are conditionally permitted in the C-1 district.", [("C-1", "Bars", "conditional")]),
        (
            "A conditional use permit is required for any kennel in the C-1 district.",
            [("C-1", "kennel", "conditional")],
        ),
        ("No conditional use permit is required for a shed.", []),
        ("Bars, inns and clubs are special uses.", [("R-1", use, "conditional") for use in ("Bars", "inns", "clubs")]),
        ("Barns are prohibited in the R-2.", [("R-2", "Barns", "notPermitted")]),
        (
            "Barns are allowed in R-1, R-2 and C-2 districts.",
            [("R-1", "Barns", "byRight"), ("R-2", "Barns", "byRight"), ("C-2", "Barns", "byRight")],
        ),
    ],
)
def test_each_district_of_a_sentence_has_its_own_level(text: str, expected: list[tuple[str, str, str]]) -> None:
    assert uses(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "(A) Permitted uses.\n(1) Residential uses.\n(a) Houses.\n(b) Cabins.\n(2) Public uses.\n(a) Parks.",
            [("Houses", "byRight"), ("Cabins", "byRight"), ("Parks", "byRight")],
        ),
        (
            "(A) Permitted uses.\n(1) Conditional uses.\n(a) Bars.\n(2) Uses by special approval.\n(a) Inns.",
            [("Bars", "conditional"), ("Inns", "conditional")],
        ),
        ("(A) Permitted uses.\n(1) Farm uses.\n(2) Parks.", [("Farm uses", "byRight"), ("Parks", "byRight")]),
        ("Property in this district shall be used only for the following purposes:\n1. Parks.", [("Parks", "byRight")]),
        (
            "No building or land shall be used, and no building shall be moved unless otherwise provided for herein,"
            " except for the following uses:\n1. Parks.",
            [("Parks", "byRight")],
        ),
        (
            "It is unlawful to use any land in this district for any purpose other than the following:\nParks\nSheds",
            [("Parks", "byRight"), ("Sheds", "byRight")],
        ),
        (
            "Premises may be used for the following purposes if a conditional use permit has been obtained:\n1. Bars.",
            [("Bars", "conditional")],
        ),
        ("No land shall be used for the following:\n1. Bars.", [("Bars", "notPermitted")]),
        ("By special permit: bars; inns.", [("bars", "conditional"), ("inns", "conditional")]),
        ("Not permitted: bars; inns.", [("bars", "notPermitted"), ("inns", "notPermitted")]),
        ("Permitted uses include:\n• Parks", [("Parks", "byRight")]),
        (
            "These uses are permitted:\n4.1 Parks.\n4.2 When authorized as a special exception:\na. Bars.\n4.3 Sheds.",
            [("Parks", "byRight"), ("Bars", "conditional"), ("Sheds", "byRight")],
        ),
        (
            "9.2 Conditional uses.\nThe following uses may be permitted after a hearing by the commission:\nA. Bars.\n"
            "9.3 All other matters, including but not limited to:\nA. Inns",
            [("Bars", "conditional")],
        ),
        (
            "Permitted uses:\nHouses. Public parks. Farms or orchards.",
            [(use, "byRight") for use in ("Houses", "Public parks", "Farms or orchards")],
        ),
        ("Permitted uses:\n1. Schools, but excluding colleges.", [("Schools", "byRight")]),
        ("Uses permitted without a conditional use permit:\n1. Sheds.", [("Sheds", "byRight")]),
        ("In this district the following is required:\nOpen space is not required.", []),
        (
            "Permitted uses:\n1. Mills, pursuant to Article 4.\n2. Sheds when beside a house.",
            [("Mills", "byRightWithConditions"), ("Sheds when beside a house", "byRightWithConditions")],
        ),
    ],
)
def test_the_uses_of_a_list_have_the_level_that_announces_them(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(use, level) for _, use, level in uses(text)] == expected


def test_a_condition_within_a_line_is_of_its_own_use() -> None:
    text = "Conditional uses (see § 3-1): kennels, if on ten acres; stables."
    found = find_permissions(section(text, "R-1 District"), KNOWN)
    assert [(each.use, list(each.conditions), each.review) for each in found] == [
        ("kennels", ["if on ten acres"], "§ 3-1"),
        ("stables", [], "§ 3-1"),
    ]
    assert [text[each.start : each.end] for each in found] == ["kennels, if on ten acres", "stables"]


def parking(text: str, title: str = "Off-street parking and loading") -> list[tuple[str | None, str, str | None]]:
    return [
        (each.applies_to, each.raw if each.value is None else format(each.value, "f"), each.unit)
        for each in find_standards(section(text, title), KNOWN)
        if each.type == "parking"
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Bakery – with seats 1:150 square feet", ("Bakery – with seats", "1:150 square feet", None)),
        (
            "Offices: 1 space per 200 sq. ft. of gross floor area",
            ("Offices", "1 space per 200 sq. ft. of gross floor area", None),
        ),
        ("(1) Cottages. Two (2) spaces per dwelling unit.", ("Cottages", "2", "space-per-dwelling")),
        ("Inns 1:room, plus 1:2 employees", ("Inns", "1:room, plus 1:2 employees", None)),
        (
            "Halls 1:4 seats or 1:100 square feet, whichever is greater",
            ("Halls", "1:4 seats or 1:100 square feet, whichever is greater", None),
        ),
        ("Chapels, one space per four seats", ("Chapels", "one space per four seats", None)),
        ("Shops\n1:300 square feet", ("Shops", "1:300 square feet", None)),
        (
            "One guest space is required for every three homes.",
            (None, "One guest space is required for every three homes", None),
        ),
    ],
)
def test_lines_of_a_schedule_prescribe_parking(line: str, expected: tuple[str | None, str, str | None]) -> None:
    assert parking(line) == [expected]


@pytest.mark.parametrize(
    "line",
    [
        "Hours: 10:30 am to 5 pm",
        "Bicycle spaces: 1 per 10 units",
        "Slope 2:1 maximum",
        "Revised 1/2/2020",
        "One tree for each 8 stalls",
        "The board may reduce it by 1 per 10 units",
        "Loading:\nShops: 1 space per 10,000 square feet",
        "Loading:\nCommerce:\nShops: 1 space per 10,000 square feet",
    ],
)
def test_other_ratios_are_no_parking(line: str) -> None:
    assert parking(line) == []


def test_a_column_of_spaces_prescribes_parking() -> None:
    rows = [["Use", "Spaces required"], ["Cottages", "2 per dwelling unit"], ["Shops", "1:300 square feet"]]
    text = ""
    made: list[list[Cell]] = []
    for row in rows:
        text += "\n" if text else ""
        made.append([])
        for place, words in enumerate(row):
            text += " | " if place else ""
            made[-1].append(Cell(words, len(text), len(text) + len(words)))
            text += words
    found = find_standards(section(text, "Parking", (Table(0, len(text), made, 1),)), KNOWN)
    assert [(each.type, each.applies_to, each.raw, each.value, each.unit) for each in found] == [
        ("parking", "Cottages", "2 per dwelling unit", 2, "space-per-dwelling"),
        ("parking", "Shops", "1:300 square feet", None, None),
    ]


def test_rules_of_a_kind_of_development_say_what_they_are_for() -> None:
    text = "Kennels are permitted in the R-1 district.\nIn the R-1 and PD districts, the minimum lot area is one acre."
    made = section(text, "Planned unit developments")
    assert [(each.level, each.conditions) for each in find_permissions(made, KNOWN)] == [
        ("byRightWithConditions", ["Planned unit developments"])
    ]
    assert [(each.districts, each.conditions) for each in find_standards(made, KNOWN)] == [
        (("PD",), []),
        (("R-1",), ["Planned unit developments"]),
    ]


def test_a_kind_of_development_above_a_section_counts_where_no_district_stands_between() -> None:
    made, kind = section("The minimum lot area is one acre.", "Density"), section("", "Cluster developments")
    district = section("", "R-1 Residential District")
    assert [each.conditions for each in find_standards(made, KNOWN, [kind, district])] == [["Cluster developments"]]
    assert [each.conditions for each in find_standards(made, KNOWN, [district, kind])] == [[]]


@given(st.text(alphabet="ab;,.: ()1andor", max_size=60))
@settings(max_examples=dear(150))
def test_the_items_of_a_line_follow_one_another_within_it(words: str) -> None:
    at = 0
    for start, end in split_list(words):
        assert at <= start < end <= len(words)
        assert words[start:end] == words[start:end].strip()
        at = end


def test_condition_extends_to_the_end_of_its_sentence() -> None:
    text = (
        "A home office is permitted as of right in the R-1 District, provided that no more than 40 feet are for it, "
        "that not more than one person who is not a tenant of the house is employed there, and that no goods are shown."
    )
    [found] = find_permissions(section(text, "Home offices"), KNOWN)
    assert [each.split()[-3:] for each in found.conditions] == [["goods", "are", "shown"]]


@pytest.mark.measures_processor_time
@pytest.mark.parametrize(
    "unit",
    ["a barn is permitted in ", "barns, ", "barns; ", "1:100 ", "one space per ", "Kennels are allowed as a ", ": a"],
)
def test_time_grows_with_the_length_and_no_faster(unit: str) -> None:
    def seconds(times: int) -> float:
        text = f"Permitted uses: {unit * times}"
        started = time.thread_time()
        find_permissions(section(text, "R-1 District"), KNOWN)
        find_standards(section(text, "Parking"), KNOWN)
        return time.thread_time() - started

    seconds(200)
    assert min(seconds(4_000) for _ in range(2)) < 8 * 5 * max(min(seconds(500) for _ in range(3)), 0.004)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "In the R-1 District the following uses, and no others, shall be permitted:\n1. Barns.\n"
            "2. Sheds, as regulated in Section 4.",
            [("R-1", "Barns", "byRight"), ("R-1", "Sheds", "byRightWithConditions")],
        ),
        (
            "A. Permitted outright: toy shops; inns; and museums. (Ord. 1998-3 § 2, 1998)\n"
            "B. Allowed by administrative conditional use permit: hotels; mills; and one keeper's dwelling.",
            [
                ("R-1", "toy shops", "byRight"),
                ("R-1", "inns", "byRight"),
                ("R-1", "museums", "byRight"),
                ("R-1", "hotels", "conditional"),
                ("R-1", "mills", "conditional"),
                ("R-1", "one keeper's dwelling", "conditional"),
            ],
        ),
        (
            "In addition, the following are permitted by right in the C-2 District:\n(1) Inns.\n(2) Banks.",
            [("C-2", "Inns", "byRight"), ("C-2", "Banks", "byRight")],
        ),
        (
            "When the Town Board finds that the standards of § 12-3 are met, the following may be allowed:\n(1) Lofts.",
            [("R-1", "Lofts", "conditional")],
        ),
        (
            "The following uses are prohibited in the R-1 District: landfills; the storage of salt, unless under cover;"
            " and the dumping of snow.",
            [
                ("R-1", "landfills", "notPermitted"),
                ("R-1", "the storage of salt", "notPermitted"),
                ("R-1", "the dumping of snow", "notPermitted"),
            ],
        ),
        (
            "On special permit of the Town Board, and subject to such rules as the Board may impose: camps, kennels,"
            " and mills.",
            [("R-1", "camps", "conditional"), ("R-1", "kennels", "conditional"), ("R-1", "mills", "conditional")],
        ),
        (
            "The director may approve motels of not more than ten rooms, and garages, in the R-2 district by"
            " administrative conditional use permit.",
            [("R-2", "motels", "conditional"), ("R-2", "garages", "conditional")],
        ),
        (
            "In the R-1 District land shall be used only for the following uses: any use permitted in the R-2 District,"
            " inns, and clubs.",
            [("R-1", "inns", "byRight"), ("R-1", "clubs", "byRight")],
        ),
        (
            "Upon application to the Town Board, permits may be granted in the R-2 District for theatres and zoos.",
            [("R-2", "theatres", "conditional"), ("R-2", "zoos", "conditional")],
        ),
        (
            "Permitted uses:\n(1) Inns.\n(2) Accessory uses, which shall include barns, docks and the sale of fuel.",
            [
                ("R-1", "Inns", "byRight"),
                ("R-1", "barns", "byRight"),
                ("R-1", "docks", "byRight"),
                ("R-1", "the sale of fuel", "byRight"),
            ],
        ),
        (
            "The following uses are permitted:\n(a) Inns.\n"
            "(b) In the R-2 District, private docks as accessory uses, provided that each is lit.",
            [("R-1", "Inns", "byRight"), ("R-2", "private docks", "byRightWithConditions")],
        ),
        (
            "Prohibited uses:\n(1) Mills.\n(2) Any house in which rooms are let is prohibited from use as an inn.",
            [("R-1", "Mills", "notPermitted")],
        ),
        (
            "(1) Use. No building shall be used except for the following uses:\n(a) Inns.\n"
            "(b) Barns customarily incident to the above uses.\n(2) Area. The minimum lot area shall be 2 acres.",
            [("R-1", "Inns", "byRight"), ("R-1", "Barns customarily incident to the above uses", "byRight")],
        ),
        (
            "Accessory uses shall be as follows:\n(a) Sheds;\n(b) Pools, provided that they are fenced.",
            [("R-1", "Sheds", "byRight"), ("R-1", "Pools", "byRightWithConditions")],
        ),
        (
            "The following trades, and no others, may locate in the R-2 District:\n(1) Banks;\n(2) Inns.",
            [("R-2", "Banks", "byRight"), ("R-2", "Inns", "byRight")],
        ),
        (
            "With the approval of the Council, the following trades may operate in the R-2 District:\n(1) Banks.",
            [("R-2", "Banks", "conditional")],
        ),
        (
            "No use shall be permitted in the R-2 District except the following:\na. Inns.\nb. Mills.",
            [("R-2", "Inns", "byRight"), ("R-2", "Mills", "byRight")],
        ),
        (
            "No permit shall be issued in the R-1 District for any of the following uses until its place has been"
            " approved by the Board of Appeals:\n(a) Tanneries.\n(b) Stockyards.",
            [("R-1", "Tanneries", "conditional"), ("R-1", "Stockyards", "conditional")],
        ),
        (
            "The following small retail and service uses are permitted in the R-2 district:\n1. Banks;\n2. Inns.",
            [("R-2", "Banks", "byRight"), ("R-2", "Inns", "byRight")],
        ),
        (
            "The uses listed below shall be deemed conditional uses in the R-1 District:\n1. Inns.",
            [("R-1", "Inns", "conditional")],
        ),
        (
            "The Board may authorize mills and camps by special exception, upon proof that the roads are wide.",
            [("R-1", "mills", "conditional"), ("R-1", "camps", "conditional")],
        ),
        ("Stables are not permitted unless authorized by a special permit.", [("R-1", "Stables", "conditional")]),
        ("No building shall be used for a slaughterhouse.", [("R-1", "slaughterhouse", "notPermitted")]),
        ("No building used for homes in the R-1 District shall exceed two stories.", []),
        (
            "R-1: All barns are permitted in this zone.\nR-2: These homes are smaller.\nPermitted uses:\nInns.",
            [("R-1", "All barns", "byRight"), ("R-1", "Inns", "byRight"), ("R-2", "Inns", "byRight")],
        ),
        (
            "Permitted uses:\n1. Shops with an area of 800 square feet or less, for example:\na. Bakeries\n2. Inns",
            [
                ("R-1", "Shops", "byRightWithConditions"),
                ("R-1", "Bakeries", "byRightWithConditions"),
                ("R-1", "Inns", "byRight"),
            ],
        ),
        (
            "A. By right:\n(1) Inns.\nB. By conditional use when authorized by the Board in accordance with § 4-4:\n"
            "(1) Mills.",
            [("R-1", "Inns", "byRight"), ("R-1", "Mills", "conditional")],
        ),
        ("Land subdivisions and mills are prohibited. (Ord. 1998-3 § 2 (part), 1998)", [
            ("R-1", "Land subdivisions", "notPermitted"), ("R-1", "mills", "notPermitted")]),
    ],
)  # fmt: skip
def test_lists_and_their_leads_are_read(text: str, expected: list[tuple[str, str, str]]) -> None:
    assert uses(text) == expected


@pytest.mark.parametrize(
    ("item", "level"),
    [
        ("Inns, by special permit of the Town Board", "conditional"),
        ("Inns, but only after the Town Board has granted a special permit", "conditional"),
        ("Inns, as required by N.J.S.A. 40:55D-66.1", "byRight"),
        ("Inns, with not more than ten rooms", "byRightWithConditions"),
        ("Inns, but without a bar", "byRightWithConditions"),
        ("Inns, except those that need a special permit", "byRight"),
    ],
)
def test_an_item_has_the_level_that_its_condition_gives(item: str, level: str) -> None:
    assert uses(f"Permitted uses:\n(1) {item}.") == [("R-1", "Inns", level)]


def test_the_list_of_a_board_is_for_the_district_that_it_names() -> None:
    lead = "Upon application under Section 15, the Town Board may permit the following in the R-2 District:"
    assert uses(f"{lead}\n(a) Chapels.", "Special land uses of the R-1 and R-2 Districts") == [
        ("R-2", "Chapels", "conditional")
    ]


def test_a_use_is_for_no_district_if_its_place_is_not_read() -> None:
    said = "A relay mast may be allowed by special permit of the Town Board in the Lower Mill and Quarry Districts."
    assert uses(said) == []


def test_a_board_that_may_reduce_a_measure_permits_no_use() -> None:
    assert uses("The Town Board may by special permit reduce the number of spaces in the R-1 District.") == []


def test_a_use_of_the_overlay_above_has_no_condition() -> None:
    of_code = {"HR": District("HR", "Harbor Reach", "0", None, None, 0.9, "list")}
    above = [section("", "HR Harbor Reach Overlay")]
    found = find_permissions(section("Docks are allowed in the HR Overlay.", "Uses in the Overlay"), of_code, above)
    assert [(each.use, each.level) for each in found] == [("Docks", "byRight")]


def test_a_prohibition_with_an_exception_keeps_it() -> None:
    [found] = find_permissions(
        section("No kennels shall be permitted, except as accessory to a farm.", "R-1 District"), KNOWN
    )
    assert (found.level, found.conditions) == ("notPermitted", ["except as accessory to a farm"])


@pytest.mark.parametrize(
    "sentence",
    [
        "The Council may grant exceptions to this rule for:\nTall barns of a farm.",
        "Signage is permitted as the code of signs states.",
        "Shop windows that are two feet deep are permitted.",
        "Animals are permitted with no limit on their number.",
    ],
)
def test_parts_of_buildings_and_exceptions_to_rules_are_no_uses(sentence: str) -> None:
    assert uses(sentence) == []


def test_what_is_prohibited_in_any_and_all_districts_is_prohibited_in_each() -> None:
    found = uses("Kennels are prohibited in any and all zoning districts.", "Kennels")
    assert found == [(code, "Kennels", "notPermitted") for code in KNOWN]


@pytest.mark.parametrize(
    "sentence",
    [
        "Stills are hereby prohibited uses in any and all zoning districts within the corporate limits of the Town.",
        "That stills as defined in the Still Act, which includes presses, are prohibited in all zoning districts.",
        "Stills shall be prohibited in every district in the Town.",
    ],
)
def test_a_prohibition_for_all_districts_is_one_for_each(sentence: str) -> None:
    found = find_permissions(Section("1", "1", "Stills", "section", 1, None, 0, sentence), KNOWN)
    assert {(each.use.casefold(), each.level) for each in found} == {("stills", "notPermitted")}
    assert {each.district for each in found} == set(KNOWN)


@pytest.mark.parametrize(
    "sentence",
    [
        "No stills as defined in section 2, which includes presses, are prohibited in all zoning districts.",
        "Stills as defined in section 2, which are prohibited by law, are permitted in all zoning districts.",
        "Modifications to the design rules of a house may be allowed as conditional uses in the R-1 district.",
    ],
)
def test_a_sentence_that_is_not_understood_states_no_use(sentence: str) -> None:
    assert not find_permissions(Section("1", "1", "Stills", "section", 1, None, 0, sentence), KNOWN)


@pytest.mark.parametrize(
    ("item", "use", "conditions"),
    [
        ("Golf links, on a lot of not less than 50 acres.", "Golf links", ["on a lot of not less than 50 acres"]),
        ("Terraces, in groups of not more than six.", "Terraces", ["in groups of not more than six"]),
        ("The keeping of not more than six hens.", "The keeping of not more than six hens", []),
    ],
)
def test_a_limit_takes_what_it_limits_into_the_condition(item: str, use: str, conditions: list[str]) -> None:
    found = find_permissions(section(f"Permitted uses:\n(1) {item}", "R-1 District"), KNOWN)
    assert [(each.use, list(each.conditions)) for each in found] == [(use, conditions)]


def test_what_a_heading_excludes_is_a_condition_of_its_list() -> None:
    text = "A. Permitted uses are: any use of this nature, but not including any use that smells:\n(1) Laboratory."
    found = find_permissions(section(text, "R-1 District"), KNOWN)
    assert [(each.use, list(each.conditions)) for each in found] == [
        ("Laboratory", ["but not including any use that smells"])
    ]
