"""Districts, and the uses that lists and matrices permit in them. The texts are our own."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loaders.zoning.extraction.districts import District
from loaders.zoning.extraction.permission_levels import UsePermission
from loaders.zoning.extraction.permissions import find_permissions
from loaders.zoning.extraction.section_scope import Scope
from loaders.zoning.extraction.standards import find_standards
from loaders.zoning.readers import html_code
from loaders.zoning.readers.code_model import Cell, Section, Subsection, Table
from tests.examples import dear
from tests.loaders.zoning.extraction.district_search import find_districts


def section(text: str, title: str = "", tables: tuple[Table, ...] = (), key: str = "1") -> Section:
    return Section(key, key, title, "section", 1, None, 0, text, (), tables)


def with_table(
    rows: list[list[str]], before: str = "", after: str = "", title: str = "Uses", header_rows: int = 1
) -> Section:
    """Build a section with a table. In a cell, the last word after ``^`` is raised."""
    text, made = before, []
    start = len(text)
    for number, row in enumerate(rows):
        text += "\n" if number and not text.endswith("\n") else ""
        cells = []
        for place, words in enumerate(row):
            text += " | " if place else ""
            plain, _, raised = words.partition("^")
            at = len(text)
            text += plain + (f" {raised}" if raised else "")
            marks = ((at + len(plain) + 1, len(text)),) if raised else ()
            cells.append(Cell(text[at:], at, len(text), superscripts=marks))
        made.append(cells)
    return section(text + after, title, (Table(start, len(text), made, header_rows),))


KNOWN = {
    code: District(code, name, "0", None, None, 0.9, "list")
    for code, name in {
        "R-1": "Single Residential",
        "R-2": "Two Residential",
        "C-1": "Shops",
        "R-10": "Large Lots",
    }.items()
}


def uses(text: str, title: str = "R-1 Residential District") -> list[tuple[str, str, str]]:
    return [(each.district, each.use, each.level) for each in find_permissions(section(text, title), KNOWN)]


def test_districts_are_named_in_headings_and_lists() -> None:
    found = find_districts(
        [
            section("The town has these districts:\nA-1 Farm District\nR-1 Single Residential\nOS Open Space", key="1"),
            section("Sheds.", "C-1 Corner Commercial District", key="2"),
            section("This district is public.", "Public Facilities (P-F)", key="3"),
        ]
    )
    assert {code: (each.name, each.method) for code, each in found.items()} == {
        "A-1": ("Farm District", "list"),
        "R-1": ("Single Residential", "list"),
        "OS": ("Open Space", "list"),
        "C-1": ("Corner Commercial District", "heading"),
        "P-F": ("Public Facilities", "heading"),
    }


def test_codes_that_differ_in_a_hyphen_are_two_districts() -> None:
    found = find_districts([section("Zoning districts:\nR-1A Single Residential\nR1A Old Residential")])
    assert sorted(found) == ["R-1A", "R1A"]


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (
            "These districts are established:\n(1) Residence A District;\n(2) Market District.",
            ["Market District", "Residence A District"],
        ),
        (
            "The town has the following districts: the Farm District, the Mill and Wharf District.",
            ["Farm District", "Mill and Wharf District"],
        ),
        ("The zones are: the AO Open and Farm Zone, the RE Ranch Zone.", ["AO", "RE"]),
        ("The county has these districts: the Farm District (FD), the Village District (VD).", ["FD", "VD"]),
        ("The districts are divided as follows:\nY - Permitted by right\nB - Special permit of the Business Board", []),
        ("These uses are for the district:\nA. Any use permitted in the R-1 District\nB. Two family dwellings", []),
    ],
)
def test_districts_without_codes_are_known_by_name_and_legends_are_none(text: str, codes: list[str]) -> None:
    assert sorted(find_districts([section(text, "Districts")])) == codes


def test_a_row_of_marks_is_no_header_of_districts() -> None:
    made = with_table([["Shed", "Y", "SP-PB", "N"], ["Barn", "SP-PB", "Y", "N"]], title="Districts")
    assert find_districts([made]) == {}


@pytest.mark.parametrize(
    ("heading", "level"),
    [
        ("Permitted Uses:", "byRight"),
        ("(b) Permitted principal uses.", "byRight"),
        ("Uses permitted by right", "byRight"),
        ("The following uses are permitted:", "byRight"),
        ("Uses Subject to Conditions:", "byRightWithConditions"),
        ("Conditional Uses:", "conditional"),
        ("Uses Subject to Conditional Use Permit (see § 3-1):", "conditional"),
        ("Uses permitted by special exception:", "conditional"),
        ("Prohibited uses:", "notPermitted"),
        ("The following uses are prohibited:", "notPermitted"),
    ],
)
def test_the_heading_of_a_list_says_the_level(heading: str, level: str) -> None:
    assert uses(f"{heading}\nSheds.\nBarns (see § 3-2).") == [("R-1", "Sheds", level), ("R-1", "Barns", level)]


@pytest.mark.parametrize(
    "lead",
    [
        "Uses permitted in other districts",
        "Conditional uses (repealed)",
        "Uses permitted in the Shoreland District",
        "The following uses are permitted in the Shoreland District:",
        "The following uses are permitted only in the R-2 District and shall not be permitted in the R-1 District:",
    ],
)
def test_a_list_for_another_district_says_nothing_about_that_of_its_section(lead: str) -> None:
    assert uses(f"{lead}\nSheds.\nBarns.") == []


def test_a_level_alone_is_the_heading_of_the_uses_behind_it() -> None:
    text = "Permitted: Inns, parks and mills.\nConditional: Barns; sheds.\nProhibited: Docks; piers."
    levels = dict.fromkeys(("Inns", "parks", "mills"), "byRight") | dict.fromkeys(("Barns", "sheds"), "conditional")
    levels |= dict.fromkeys(("Docks", "piers"), "notPermitted")
    assert uses(text) == [("R-1", use, level) for use, level in levels.items()]


def test_items_of_two_columns_on_a_line_are_no_use() -> None:
    text = "Permitted Uses:\n1. Inns. 1. Mills.\n2. Barns."
    assert uses(text) == [("R-1", "Barns", "byRight")]


def test_conditions_review_and_raw_level_are_kept() -> None:
    text = "Uses Subject to Conditional Use Permit (see § 3-1):\nBarns, provided that no hay is kept."
    (found,) = find_permissions(section(text, "R-1 District"), KNOWN)
    assert found == UsePermission(
        "R-1",
        "Barns",
        "conditional",
        "Uses Subject to Conditional Use Permit",
        ["provided that no hay is kept"],
        "§ 3-1",
        52,
        88,
        "list",
    )
    assert text[found.start : found.end] == "Barns, provided that no hay is kept."


def test_a_list_ends_with_the_heading_of_something_else() -> None:
    assert uses("Permitted Uses:\nSheds.\nDevelopment Standards (see Table 1).\nParking (see § 3-1).\nBarns.") == [
        ("R-1", "Sheds", "byRight")
    ]


def test_two_items_in_one_line_are_no_use() -> None:
    assert uses("Permitted Uses:\n1. Sheds.\n2. Barns. 3. Mills.\n4. Inns.") == [
        ("R-1", "Sheds", "byRight"), ("R-1", "Inns", "byRight"),
    ]  # fmt: skip


def test_an_item_may_be_for_some_of_the_districts_only() -> None:
    text = "Permitted Uses:\nSheds.\nBarns (R-2 District only)."
    found = find_permissions(section(text, "R-1 and R-2 Districts"), KNOWN)
    assert [(each.district, each.use) for each in found] == [("R-1", "Sheds"), ("R-2", "Sheds"), ("R-2", "Barns")]


def test_the_district_may_be_that_of_a_section_above() -> None:
    found = find_permissions(
        section("Permitted Uses:\nSheds.", "Uses"), KNOWN, [section("", "Chapter of the C-1 District")]
    )
    assert [each.district for each in found] == ["C-1"]


def test_without_a_district_nothing_is_permitted() -> None:
    assert uses("Permitted Uses:\nSheds.", "Sheds") == []


MATRIX = [["Use", "R-1", "R-2", "C-1"], ["Shed", "P", "C^1", "-"], ["Barn", "", "P", "N"]]


def permitted(made: Section) -> dict[tuple[str, str], tuple[str, str]]:
    return {(each.use, each.district): (each.level, each.raw_level) for each in find_permissions(made, KNOWN)}


def test_a_matrix_has_a_column_for_each_district() -> None:
    assert permitted(with_table(MATRIX)) == {
        ("Shed", "R-1"): ("byRight", "P"),
        ("Shed", "R-2"): ("conditional", "C"),
        ("Shed", "C-1"): ("notPermitted", "-"),
        ("Barn", "R-2"): ("byRight", "P"),
        ("Barn", "C-1"): ("notPermitted", "N"),
    }


def test_a_matrix_may_have_a_row_for_each_district() -> None:
    turned = [list(row) for row in zip(*MATRIX, strict=True)]
    assert permitted(with_table(turned)) == permitted(with_table(MATRIX))


def test_a_legend_says_what_the_letters_mean() -> None:
    made = with_table(
        [["Use", "R-1", "R-2"], ["Shed", "X", "S"], ["Barn", "C", ""]],
        "X = Permitted use; S = Special use permit; C = Prohibited. A blank cell is a use that is not permitted.\n",
    )
    assert permitted(made) == {
        ("Shed", "R-1"): ("byRight", "X"),
        ("Shed", "R-2"): ("conditional", "S"),
        ("Barn", "R-1"): ("notPermitted", "C"),
        ("Barn", "R-2"): ("notPermitted", ""),
    }


@pytest.mark.parametrize(
    "heading",
    [
        "(b) Accessory uses. Uses customarily incidental to those named in (a), including:",
        "(b) Accessory uses in the R-1 District:",
        "(b) Accessory uses:",
    ],
)
def test_a_list_of_accessory_uses_is_read_below_its_heading(heading: str) -> None:
    text = f"(a) Permitted uses:\n(1) Mills.\n{heading}\n(1) Sheds.\n(2) Docks, where no boat is let."
    assert uses(text) == [
        ("R-1", "Mills", "byRight"),
        ("R-1", "Sheds", "byRight"),
        ("R-1", "Docks", "byRightWithConditions"),
    ]


@pytest.mark.parametrize(
    ("letters", "key"),
    [
        ("P C -", "In the table, P is permitted, C is a conditional use, and - is not permitted."),
        ("Y S N", "Y means a use permitted by right, N means a prohibited use, and S means a use by special permit."),
        ("P S N", "A mark “P” is permitted by right, a mark “S” requires a special permit, and a mark “N” is"
            " prohibited."),
        ("P SP -", "“P” indicates a permitted use; “SP”, a use by special permit of the Board; and a dash, a prohibited"
            " use."),
        ("P S N", "Uses permitted as of right are shown by P, those with a special permit by S, and prohibited uses"
            " by N."),
        ("P C X", "The letter P designates a permitted use, C a conditional use, and X a prohibited use."),
        ("Y SP N", "Y (Yes) – permitted, SP – special permit, N (No) – prohibited"),
        ("Y SP N", "Where the letter Y appears, the use is permitted; where N appears, the use is prohibited; where SP"
            " appears, the use requires a special permit."),
        ("Y B N", "N-not permitted, Y-permitted, B-by special permit from the Board"),
        ("X O -", "An X in the table shows a permitted use, an O a use that needs a special permit, and a hyphen a"
            " prohibited use."),
        ("P S N", "Uses are permitted (P), allowed by special permit (S) or prohibited (N)."),
        ("N S P", "N stands for no review needed, use permitted; S for special permit; P for prohibited."),
        ("P S N", "Key: P Permitted by right / S Special permit required / N Not permitted"),
        ("R A X", "In the table R is a use of right, A is allowed only on a special permit, and X is forbidden."),
    ],
)  # fmt: skip
@pytest.mark.parametrize("below", [False, True])
def test_a_key_in_one_sentence_gives_each_letter_its_own_meaning(letters: str, key: str, below: bool) -> None:
    levels = dict(zip(letters.split(), ["byRight", "conditional", "notPermitted"], strict=True))
    for lacking in (*levels, ""):  # a letter that is in the tables of other sections only
        told = [letter for letter in levels if letter != lacking]
        rows = [["Use", "R-1", "R-2", "C-1"], *([f"Inn {each}", *[each] * 3] for each in told)]
        made = with_table(rows, after=f"\n{key}") if below else with_table(rows, before=f"{key}\n")
        found = [(each.use, each.level) for each in find_permissions(made, KNOWN)]
        assert found == [(f"Inn {each}", levels[each]) for each in told for _ in range(3)], lacking


@pytest.mark.parametrize(
    "condition", ["only as accessory to a dwelling", "if the lot has two acres", "provided it is small"]
)
def test_a_letter_permits_with_the_condition_of_its_key(condition: str) -> None:
    rows = [["Use", "R-1", "R-2"], ["Inns", "P", "A"], ["Mills", "A", "P"]]
    made = with_table(rows, before=f"P = permitted; A = permitted {condition}\n")
    found = [(each.raw_level, each.level, list(each.conditions)) for each in find_permissions(made, KNOWN)]
    right, limited = ("P", "byRight", []), ("A", "byRightWithConditions", [condition])
    assert found == [right, limited, limited, right]


def test_a_blank_cell_has_the_meaning_that_the_key_gives_it() -> None:
    rows = [["Use", "R-1", "R-2"], ["Inns", "P", ""], ["Mills", "", "P"]]
    made = with_table(rows, before="A “P” says that the use is permitted there; a blank, that it is prohibited.\n")
    assert [each.level for each in find_permissions(made, KNOWN)] == [
        "byRight", "notPermitted", "notPermitted", "byRight",
    ]  # fmt: skip


def test_a_column_of_numbers_before_the_uses_is_no_district() -> None:
    rows = [["No.", "USE", "R-1", "C-1"], ["1", "Inns", "P", "N"], ["2", "Mills", "N", "P"]]
    found = [(each.use, each.district, each.level) for each in find_permissions(with_table(rows), KNOWN)]
    assert found == [
        ("Inns", "R-1", "byRight"), ("Inns", "C-1", "notPermitted"),
        ("Mills", "R-1", "notPermitted"), ("Mills", "C-1", "byRight"),
    ]  # fmt: skip


def test_letters_in_brackets_in_an_announced_list_are_codes() -> None:
    text = "The town is divided into these districts:\nVillage (V)\nRural Homes (RH)\nShore (S)"
    assert {*find_districts([section(text, "Establishment of districts")])} == {"V", "RH", "S"}


def test_letters_are_read_by_the_legend_of_another_section() -> None:
    made = with_table([["Use", "R-1", "R-2"], ["Shed", "Y", "SPR"], ["Barn", "SPR", "N"], ["Kiln", "SP", "Q"]])
    key = section(
        "The symbols in the table mean:\n(1) Y: a use of right.\n(2) SPR: a use permitted of right, subject to plan"
        " review by the Planning Board under § 9.\n(3) SP: a use by special permit.",
        "Key to uses",
        key="2",
    )
    found = {(each.use, each.district): each for each in find_permissions(made, KNOWN, (), [key])}
    assert {place: each.level for place, each in found.items()} == {
        ("Shed", "R-1"): "byRight",
        ("Shed", "R-2"): "byRightWithConditions",
        ("Barn", "R-1"): "byRightWithConditions",
        ("Barn", "R-2"): "notPermitted",
        ("Kiln", "R-1"): "conditional",
    }
    plan = found["Shed", "R-2"]
    assert (plan.review, list(plan.conditions)) == ("§ 9", ["subject to plan review by the Planning Board under § 9"])
    other = section("SPR: a prohibited use.", "Legend", key="3")
    found = {(each.use, each.district): each for each in find_permissions(made, KNOWN, (), [key, other])}
    assert ("Barn", "R-1") not in found


def test_a_blank_cell_means_nothing_without_a_legend() -> None:
    made = with_table([["Use", "R-1", "R-2"], ["Shed", "C", "P"], ["Barn", "P", ""]])
    assert permitted(made) == {
        ("Shed", "R-1"): ("conditional", "C"),
        ("Shed", "R-2"): ("byRight", "P"),
        ("Barn", "R-1"): ("byRight", "P"),
    }


def test_an_x_without_a_legend_is_a_permission_unless_another_letter_is() -> None:
    assert permitted(with_table([["Use", "R-1", "R-2"], ["Shed", "X", "C"]]))["Shed", "R-1"] == ("byRight", "X")
    assert permitted(with_table([["Use", "R-1", "R-2"], ["Shed", "X", "P"]]))["Shed", "R-1"] == ("notPermitted", "X")


def test_a_table_goes_on_below_the_heading_of_a_group() -> None:
    first = with_table([["Use", "R-1", "R-2"], ["Shed", "Y", "SP-PB"]])
    start = len(first.text) + len("\nShops\n")
    rest = with_table([["Bank", "SP-PB", "N"]], first.text + "\nShops\n").tables[0]
    made = section(f"{first.text}\nShops\n{'Bank | SP-PB | N'}", "Uses", (*first.tables, rest))
    assert rest.start == start
    assert permitted(made) == {
        ("Shed", "R-1"): ("byRight", "Y"),
        ("Shed", "R-2"): ("conditional", "SP-PB"),
        ("Bank", "R-1"): ("conditional", "SP-PB"),
        ("Bank", "R-2"): ("notPermitted", "N"),
    }


def test_a_use_of_a_matrix_is_told_with_the_headings_of_its_rows() -> None:
    rows = [["Use", "R-1"], ["FARMS", ""], ["In the valley", ""], ["Hay", ""], ["By hand", "P"], ["Oats", ""]]
    rows += [["By hand", "X"], ["SHOPS", ""], ["Bakery", "P"]]
    found = find_permissions(with_table(rows), KNOWN)
    assert [(each.use, each.level, each.group) for each in found] == [
        ("By hand", "byRight", "FARMS | In the valley | Hay"),
        ("By hand", "notPermitted", "FARMS | In the valley | Oats"),
        ("Bakery", "byRight", "SHOPS"),
    ]


def test_a_use_in_the_first_column_ends_a_group_of_indented_uses() -> None:
    rows = [["Use", "Use", "R-1", "R-2"], ["MILLS", "", "", ""], ["Wind", "", "", ""], ["", "Towers", "P", "P"]]
    found = find_permissions(with_table([*rows, ["Water mills", "", "X", "P"]]), KNOWN)
    assert {(each.use, each.group) for each in found} == {("Towers", "MILLS | Wind"), ("Water mills", "MILLS")}


def test_a_digit_of_a_letter_that_the_legend_explains_is_no_note() -> None:
    made = with_table(
        [["Use", "R-1", "R-2"], ["Shed", "C2", "C3"]],
        "C2 means a minor conditional use and C3 a major one.\n",
        "\n2. Red.",
    )
    found = {each.district: (each.level, each.conditions) for each in find_permissions(made, KNOWN)}
    assert found == {"R-1": ("conditional", []), "R-2": ("conditional", [])}


def test_a_letter_without_a_legend_is_left_out() -> None:
    assert permitted(with_table([["Use", "R-1", "R-2"], ["Shed", "P", "A"], ["Barn", "R", "P"]])) == {
        ("Shed", "R-1"): ("byRight", "P"),
        ("Barn", "R-2"): ("byRight", "P"),
    }


def test_notes_are_conditions() -> None:
    made = with_table([["Use", "R-1", "R-2"], ["Shed", "P^1", "P"]], after="\n1. Only of wood.")
    found = {each.district: (each.level, each.conditions) for each in find_permissions(made, KNOWN)}
    assert found == {"R-1": ("byRightWithConditions", ["Only of wood."]), "R-2": ("byRight", [])}


def test_a_table_of_other_things_is_no_matrix() -> None:
    assert find_permissions(with_table([["District", "R-1", "R-2"], ["Height", "35 feet", "40 feet"]]), KNOWN) == []


LINES = st.sampled_from(
    [
        "Permitted Uses:",
        "Sheds.",
        "Conditional uses",
        "R-1: This district",
        "(a) Barns (R-1 only)",
        "Prohibited:",
        "Signs.",
        "(",
        "Uses",
        "Permitted Uses: The following",
    ]
)


@given(st.lists(LINES | st.text(max_size=30), max_size=25).map("\n".join))
@settings(max_examples=dear(150))
def test_whatever_the_text_uses_stand_in_it(text: str) -> None:
    for each in find_permissions(section(text, "R-1 District"), KNOWN):
        assert each.use in text[each.start : each.end]
        assert each.district in KNOWN
    assert isinstance(find_districts([section(text, "Districts")]), dict)


@pytest.mark.measures_processor_time
@pytest.mark.parametrize(
    "unit", ["Permitted Uses:\nSheds.\n", "Sheds (see § 3-1). ", "R-1, ", "permitted uses ", "Barns are permitted. "]
)
def test_time_grows_with_the_length_and_no_faster(unit: str) -> None:
    def seconds(times: int) -> float:
        started = time.thread_time()
        find_permissions(section(unit * times, "R-1 District"), KNOWN)
        find_districts([section(unit * times, "Districts")])
        return time.thread_time() - started

    seconds(300)
    assert min(seconds(8_000) for _ in range(2)) < 8 * 5 * max(min(seconds(1_000) for _ in range(3)), 0.004)


def test_subsections_of_a_table_are_its_notes() -> None:
    made = with_table([["Use", "R-1", "R-2"], ["Shed", "P^3", "P"]], after="\nOnly of stone.")
    start = made.text.index("Only")
    noted = Section(
        "1", "1", "Uses", "section", 1, None, 0, made.text, (Subsection(("3",), start, len(made.text)),), made.tables
    )
    assert [each.conditions for each in find_permissions(noted, KNOWN)] == [["Only of stone."], []]


def test_both_letters_in_a_cell_are_either_of_the_two() -> None:
    assert permitted(with_table([["Use", "R-1", "R-2"], ["Shed", "P/C", "P"]]))["Shed", "R-1"] == (
        "byRightOrConditional",
        "P/C",
    )


def test_no_district_is_carried_past_a_heading_that_was_not_read() -> None:
    made = section("Permitted Uses:\n(1) Sheds.\n70 ARTICLE XXI\nPermitted Uses:\n(1) Barns.", "R-1 District")
    assert [(each.district, each.use) for each in find_permissions(made, KNOWN)] == [("R-1", "Sheds")]


@pytest.mark.parametrize(
    "line",
    [
        "Reserved",
        "Including bakeries",
        "[Repealed].",
        "As listed in Table 4.",
        "All uses as specified in the schedule below.",
    ],
)
def test_a_line_without_a_use_is_no_use(line: str) -> None:
    assert uses(f"Permitted Uses:\nBakeries.\n{line}\nTailors.") == [
        ("R-1", "Bakeries", "byRight"),
        ("R-1", "Tailors", "byRight"),
    ]


def test_a_line_with_a_description_names_a_district() -> None:
    text = (
        "The town is divided into these districts:\nR-1 Residence District : A district for houses on large lots.\n"
        "C-2 Core Business District: A district for shops.\nD-O Design Overlay District - An overlay for the centre."
    )
    known = find_districts([section(text, "Districts")])
    assert {code: each.name for code, each in known.items()} == {
        "R-1": "Residence District",
        "C-2": "Core Business District",
        "D-O": "Design Overlay District",
    }
    place = known["C-2"]
    assert text[place.start : place.end] == "C-2 Core Business District"


def test_an_overlay_in_a_heading_is_a_district_beside_those_with_codes() -> None:
    known = find_districts(
        [
            section("", "R-1 Residential District"),
            section("", "Hillside Storage Overlay", key="2"),
            section("", "Uses in the Overlay", key="3"),
        ]
    )
    assert list(known) == ["Hillside Storage Overlay", "R-1"]


def test_a_code_that_looks_like_another_in_one_row_only_is_no_district() -> None:
    table = with_table([["District", "Lot area"], ["R-0", "6,000"], ["R-3", "7,000"]], title="Districts")
    named = [section("", "R-O Residential Office Zone", key="2"), section("", "R-1 Residential Zone", key="3")]
    assert "R-0" in find_districts([table])
    known = find_districts([table, *named])
    assert list(known) == ["R-1", "R-3", "R-O"]
    assert [(each.districts, each.raw) for each in find_standards(table, known)] == [(("R-3",), "7,000")]


@pytest.mark.parametrize(
    "heading", ["Street Design", "Moon Impact", "Project size. The least size is an acre.", "Lot size"]
)
def test_a_heading_ends_a_list_without_labels(heading: str) -> None:
    text = f"Permitted Uses\nBarns.\nInns.\n{heading}\nStreets shall be wide, so that carts may turn in them.\nSheds."
    assert [use for _, use, _ in uses(text)] == ["Barns", "Inns"]
    assert [use for _, use, _ in uses("Permitted Uses\nBarns.\nInns\nSheds.")] == ["Barns", "Inns", "Sheds"]


def test_a_dimension_of_uses_announces_no_uses() -> None:
    text = "For permitted uses in the R-1 District, the minimum yard width shall be as follows:\na. Barns, ten feet."
    assert uses(text) == []


def test_an_item_for_some_districts_stays_below_the_lines_that_its_label_is_below() -> None:
    text = (
        "Buildings shall be used by right for only the uses set forth below.\n(a) Main Uses.\n"
        "(1) In the R-1 District: barns.\n(2) In the R-2 District: inns\n(b) Accessory Uses.\n(1) Sheds."
    )
    starts = [0, text.index("(1) In"), text.index("(2)"), text.index("(b)"), len(text)]
    codes = [(), ("R-1",), ("R-2",), ()]
    scopes = [Scope("districts", *each) for each in zip(codes, starts, starts[1:], strict=False)]
    found = find_permissions(section(text, "Permitted uses"), KNOWN, scopes=scopes)
    assert [(each.district, each.use, each.level, list(each.conditions)) for each in found] == [
        ("R-1", "barns", "byRight", []),
        ("R-2", "inns", "byRight", []),
    ]  # Sheds are for a district that is not known, so that no list is closed.


def test_an_unlabelled_line_that_announces_another_list_ends_the_uses() -> None:
    text = "Permitted Uses:\nBarns.\nApplication: The plan shall have the following information:\nOwner of the land."
    assert uses(text) == [("R-1", "Barns", "byRight")]


@pytest.mark.parametrize(
    "link", [" as regulated in Chapter 50 of this Zoning Code, and ", ", as provided in § 5-2 and "]
)
def test_a_use_behind_the_reference_of_another_is_no_condition(link: str) -> None:
    [lamps, sheds] = find_permissions(section(f"Permitted Uses\n(1) Lamps{link}poles.\n(2) Sheds.", "R-1"), KNOWN)
    cited = link.removesuffix(" and ").strip(" ,")
    assert (lamps.use, list(lamps.conditions)) == (f"Lamps{link}poles", [cited])
    assert sheds.use == "Sheds"


@pytest.mark.parametrize(
    ("items", "told"),
    [
        (
            "<li>mills<ul><li>tide mills</li><li>windmills</li></ul></li><li>inns</li>",
            [("tide mills", "byRight"), ("windmills", "byRight"), ("inns", "byRight")],
        ),
        (
            "<li>Stores:<ul><li>bakeries</li><li>kilns<ul><li>brick kilns</li></ul></li></ul></li><li>Inns</li>",
            [("bakeries", "byRight"), ("kilns", "byRightWithConditions"), ("Inns", "byRight")],
        ),
        (
            "<li>Stores<ul><li>Not permitted:<ul><li>Gun shops</li></ul></li></ul></li><li>Inns</li>",
            [("Gun shops", "notPermitted"), ("Inns", "byRight"), ("Stores", "byRightWithConditions")],
        ),
        ("<li>(a) Inns</li><ul><li>coach inns</li></ul><li>(b) Mills</li>",
         [("Inns", "byRightWithConditions"), ("Mills", "byRight")]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("tag", ["ul", "ol"])
def test_the_items_of_a_list_within_a_list_are_apart(items: str, told: list[tuple[str, str]], tag: str) -> None:
    page = f"<h1>Chapter 1 Zoning</h1><h2>Sec. 1-1. C-1 Shops District.</h2><p>Permitted uses</p><ul>{items}</ul>"
    page = page.replace("ul>", f"{tag}>")
    read = next(each for each in html_code.parse(page.encode(), "code.html").sections if each.text)
    assert sorted((each.use, each.level) for each in find_permissions(read, KNOWN)) == sorted(told)


@pytest.mark.parametrize(
    ("item", "told"),
    [
        ("Residential: apartments, lofts", []),
        ("Residential uses: one seasonal dwelling", []),
        ("Inns: subject to site plan review", ["Inns"]),
    ],
)
def test_a_group_with_members_behind_a_colon_is_quoted_only(item: str, told: list[str]) -> None:
    page = (
        f"<h1>Chapter 1 Zoning</h1><h2>Sec. 1-1. C-1 Shops District.</h2><p>Permitted uses</p><ul><li>{item}</li></ul>"
    )
    read = next(each for each in html_code.parse(page.encode(), "code.html").sections if each.text)
    assert [each.use for each in find_permissions(read, KNOWN)] == told
