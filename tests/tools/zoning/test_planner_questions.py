"""What planners ask of codes: uses in other words, what is not recorded, sources that differ, and what is repealed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg import bundle
from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.text import name_or_quote
from kg.tools.answers import content_of
from kg.tools.registry import TOOLS
from kg.tools.zoning.compare import compare_zoning, convert, get_quantity_kind
from kg.tools.zoning.ingest import (
    kg_ingest_code_section,
    kg_ingest_definitions,
    kg_ingest_dimensional_standards,
    kg_ingest_use_permissions,
)
from kg.tools.zoning.name_lookup import build_no_match, find_standard_types, get_section_key, parse_use_kinds
from kg.tools.zoning.provisions import kg_query_definition, kg_query_permissions, kg_query_standards
from kg.tools.zoning.sections import kg_find_related, kg_query_section, kg_traverse_hierarchy
from loaders.zoning.graph.rule_quads import UNITS
from tests.conftest import load_once
from tests.folders import open_graph

FIXTURES = bundle.folder("fixtures") / "zoning"
BEND = {"municipality": "Quarry Bend", "state": "UT"}
QUILL = {"municipality": "Lower Quill", "state": "CT"}
NEW = {"municipality": "Old Kiln", "state": "UT"}
AREAS = ("AC", "FT2", "HA", "M2", "MI2")


@pytest.fixture(scope="module")
def kg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    folder = load_once(tmp_path_factory, "utah")
    with open_graph(folder) as opened:
        yield opened


def asked(kg: KnowledgeGraph, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a client gets."""
    return content_of(next(each for each in TOOLS if each.name == tool).call(kg, arguments))


# Uses, districts and places by other words


@pytest.mark.parametrize(
    ("words", "use"),
    [
        ("house", "Single-family dwelling"), ("homes", "Single-family dwelling"),
        ("1-family", "Single-family dwelling"),
        ("SINGLE FAMILY HOUSES", "Single-family dwelling"), ("single-family", "Single-family dwelling"),
        ("two-family house", "Duplex"), ("2 family", "Duplex"), ("apartments", "Apartment building"),
        ("multi-family", "Apartment building"), ("childcare", "Day care center"), ("place of worship", "Church"),
    ],
)  # fmt: skip
def test_a_use_is_found_by_other_words_for_it_and_the_answer_says_so(kg, words, use):
    found = kg_query_permissions(kg, **BEND, use=words)
    assert {each.use for each in found.permissions} == {use}
    note, *others = found.notes
    assert all(each.startswith("Also recorded in the code, with words like these: ") for each in others)
    assert note.startswith(f"use: {words!r} ")
    assert note.endswith(f" {name_or_quote(use)}.")


def test_a_reference_to_the_uses_of_another_district_is_followed_or_told(kg):
    uses = [
        {"district": "C-1", "use": "Banks and savings institutions", "permission": "P"},
        {"district": "C-2", "use": "Any use permitted in the C-1 District, except inns", "permission": "P"},
        {"district": "C-2", "use": "Bank", "permission": "C"},
        {"district": "C-3", "use": "Any use permitted in the C-2 District", "permission": "P"},
        {"district": "C-4", "use": "All uses permitted in the preceding district", "permission": "P"},
        {"district": "C-5", "use": "Inn", "permission": "P"},
    ]
    kg_ingest_use_permissions(kg, "Ash Ferry", "UT", permissions=uses)

    def ask(district):
        found = kg_query_permissions(kg, "Ash Ferry", "UT", district=district, use="bank")
        return {(each.district, each.use) for each in found.permissions}, found.meta.completeness

    stated = {("C-1", "Banks and savings institutions"), ("C-2", "Bank")}
    by_reference = ("C-2", "Any use permitted in the C-1 District, except inns")
    assert ask("C-1") == ({("C-1", "Banks and savings institutions")}, "complete")
    assert ask("C-2") == ({*stated, by_reference}, "approximate")
    assert ask("C-3") == ({*stated, by_reference, ("C-3", "Any use permitted in the C-2 District")}, "approximate")
    assert ask("C-4") == ({("C-4", "All uses permitted in the preceding district")}, "approximate")
    assert ask("C-5") == (set(), "complete")


def test_capitals_and_hyphens_alone_are_not_told_as_other_words(kg):
    assert kg_query_permissions(kg, **BEND, use="dUPLEX").notes == kg_query_permissions(kg, **BEND, use="Duplex").notes
    told = list[str]()
    find_standard_types("lot area", ["lot-area"], "There", told)
    assert told == []


def test_uses_that_the_law_tells_apart_are_never_one():
    uses = (
        "single-family dwelling, duplex, accessory dwelling unit, townhouses, apartments, mobile home, boarding house"
    )
    assert len({parse_use_kinds(use) for use in uses.split(", ")}) == 7


@pytest.mark.parametrize(
    ("words", "types", "bound"),
    [
        ("yards", {"front-setback", "rear-setback"}, None), ("Front yard setbacks", {"front-setback"}, None),
        ("minimum lot size", {"lot-area"}, "min"), ("max. height of buildings", {"building-height"}, "max"),
        ("number of stories", {"building-storeys"}, None), ("FAR limit", {"floor-area-ratio"}, None),
    ],
)  # fmt: skip
def test_a_kind_of_standards_is_known_by_other_words(words, types, bound):
    codes = ["front-setback", "rear-setback", "lot-area", "building-height", "building-storeys", "floor-area-ratio"]
    assert find_standard_types(words, codes, "Quarry Bend, UT", []) == (types, bound)


@pytest.mark.parametrize("words", ["R-1", "r-1", "R-1 zone", "the R-1 district", "One-Family Residential District"])
def test_a_district_is_known_by_code_or_name_with_or_without_what_it_is_called(kg, words):
    assert {each.district for each in kg_query_permissions(kg, **BEND, district=words).permissions} == {"R-1"}


def test_a_town_in_the_wrong_state_is_told_with_the_right_one(kg):
    with pytest.raises(NotFoundError, match=r"'Quarry Bend' in 'CT'\. Available: 'Quarry Bend, Utah'"):
        kg_query_standards(kg, "Quarry Bend", "CT")


def test_a_comparison_shows_each_name_that_a_use_has_and_says_that_they_may_mean_the_same(kg):
    ford = {"municipality": "Kiln Ford", "state": "UT"}
    kg_ingest_use_permissions(kg, **ford, permissions=[{"district": "R", "use": "2-Family", "permission": "P"}])
    found = compare_zoning(kg, ["Quarry Bend, UT", "Kiln Ford, UT"], use="two-family house")
    assert {row.use: [bool(cell.districts) for cell in row.places] for row in found.uses} == {
        "Duplex": [True, False], "2-Family": [False, True],
    }  # fmt: skip
    [note] = found.notes
    assert note.startswith("use: 'two-family house' ")
    assert "'2-Family', 'Duplex'" in note
    one = compare_zoning(kg, ["Quarry Bend, UT", "Lower Quill, CT"], use="church")
    assert [row.use for row in one.uses] == ["Church"]
    assert [note.partition(":")[0] for note in one.notes] == ["'Lower Quill, Connecticut'"]
    with pytest.raises(NotFoundError, match="not necessarily prohibited"):
        compare_zoning(kg, ["Quarry Bend, UT", "Lower Quill, CT"], use="brewery")


def test_comparison_names_districts_with_conditions_and_places_without_a_record(kg):
    town = {"municipality": "Infill Ford", "state": "UT"}
    only = {"district": "I-F", "use": "Duplex", "permission": "P", "conditions": ["R-3 zone only"]}
    kg_ingest_use_permissions(kg, **town, permissions=[only, {"district": "R-5", "use": "Duplex", "permission": "P"}])
    other = {"district": "C", "use": "Quay", "permission": "P"}
    kg_ingest_use_permissions(kg, "Quay Ford", "UT", permissions=[other])
    found = compare_zoning(kg, ["Infill Ford, UT", "Quay Ford, UT"], use="duplex")
    [(first, second)] = [row.places for row in found.uses]
    assert sorted(code for codes in first.districts.values() for code in codes) == ["I-F", "R-5"]
    assert first.with_conditions == ["I-F"]
    assert (second.districts, second.with_conditions) == ({}, None)
    assert any(note.startswith("'Quay Ford, Utah': ") for note in found.notes)


# What is not recorded


def test_a_use_that_is_not_recorded_is_not_told_to_be_prohibited(kg):
    with pytest.raises(NotFoundError, match=r"'brewery'.*not necessarily prohibited"):
        kg_query_permissions(kg, **BEND, use="brewery")
    found = kg_query_permissions(kg, **BEND, district="R-1", use="stable")
    assert (found.permissions, found.meta.total) == ([], 0)
    assert "not a prohibition" in found.notes[-1]


def test_a_town_of_which_nothing_is_recorded_says_so_in_every_tool(kg):
    kg_ingest_definitions(kg, **NEW, definitions=[{"term": "kiln", "definition_text": "an oven"}])
    for found in (kg_query_permissions(kg, **NEW), kg_query_standards(kg, **NEW)):
        assert found.meta.total == 0
        assert "Old Kiln, Utah" in found.notes[0]
    [note] = compare_zoning(kg, ["Old Kiln, UT", "Quarry Bend, UT"]).notes
    assert "Old Kiln, Utah" in note
    for call in (
        lambda: kg_query_permissions(kg, **NEW, use="duplex"),
        lambda: kg_query_standards(kg, **NEW, district="R-1"),
        lambda: kg_query_standards(kg, **NEW, standard_type="height"),
    ):
        with pytest.raises(NotFoundError, match="'Old Kiln, Utah' has no recorded"):
            call()
    with pytest.raises(NotFoundError, match="us-ut-old-kiln"):
        kg_traverse_hierarchy(kg, **NEW)


# What it rests on


def test_what_is_stated_is_told_from_what_was_extracted(kg):
    stated = kg_query_permissions(kg, **QUILL).permissions[0].evidence
    assert (stated.basis, stated.method) == ("stated", None)
    assert stated.recorded_in
    extracted = kg_query_permissions(kg, **BEND, district="R-1").permissions[0].evidence
    assert extracted.basis == "extracted"
    assert extracted.method
    assert extracted.confidence
    assert extracted.spans


def test_sources_that_differ_are_both_shown_and_the_difference_is_told(kg):
    kg_ingest_use_permissions(kg, **BEND, permissions=[{"district": "R-1", "use": "Kiln", "permission": "permitted"}])
    found = kg_query_permissions(kg, **BEND, district="R-1", use="Kiln")
    assert [(each.permission, each.evidence.basis) for each in found.permissions] == [("byRight", "stated")]
    assert {(each.permission, each.evidence.basis) for each in found.unsure} == {("notPermitted", "extracted")}
    assert len({each.evidence.source for each in (*found.permissions, *found.unsure)}) == 2
    assert "yields_to" in found.notes[-1]
    assert kg_query_permissions(kg, **BEND, district="R-1", use="Quarry").notes == []


def test_what_is_repealed_or_reserved_is_told_wherever_a_section_is_named(kg):
    kg_ingest_code_section(kg, **NEW, section_id="5", title="Fires", level=1, raw_content="")
    kg_ingest_code_section(
        kg, **NEW, section_id="5.1", title="Night fires [Repealed]", level=2, parent_id="5", raw_content=""
    )
    kg_ingest_code_section(
        kg,
        **NEW,
        section_id="5.2",
        title="Kilns",
        level=2,
        parent_id="5",
        raw_content="A kiln is subject to section 5.1.",
    )
    section = kg_query_section(kg, **NEW, section_id="5.1")
    assert section.status == "repealed"
    assert any("repealed" in note for note in section.notes)
    statuses = {each.section_id: each.status for each in kg_traverse_hierarchy(kg, **NEW, depth=2).sections}
    assert statuses == {"5": None, "5.1": "repealed", "5.2": None}
    [cited] = kg_find_related(kg, **NEW, section_id="5.2").related
    assert (cited.cited, cited.cited_status, cited.citing_status) == ("5.1", "repealed", None)
    assert kg_find_related(kg, **NEW, section_id="5.1").status == "repealed"


# Sections, and the properties of the specification


def test_a_section_goes_by_its_key_and_its_iri_in_every_answer(kg):
    [line] = kg_traverse_hierarchy(kg, **BEND, section_id="17.12.040", direction="up", depth=1).sections
    section = kg_query_section(kg, **BEND, section_id=line.iri)
    assert (section.section_id, section.iri) == (line.section_id, line.iri)
    related = kg_find_related(kg, **BEND, section_id="17.12.040", direction="outgoing")
    for each in related.related:
        assert each.citing == get_section_key(each.citing_iri)
        assert (each.cited is None) == (each.cited_iri is None)
    cited = next(each for each in related.related if each.cited)
    assert kg_query_section(kg, **BEND, section_id=cited.cited).iri == cited.cited_iri
    [term] = kg_query_definition(kg, **BEND, term="kiln").definitions
    assert kg_query_section(kg, **BEND, section_id=term.section_ref).iri == term.evidence.section_iri
    sent = kg_ingest_code_section(kg, **NEW, section_id="8", title="Ash", level=1, raw_content="Ash is kept.")
    assert kg_query_section(kg, **NEW, section_id=sent.iri).section_id == sent.section_id == "8"
    for section_id in (sent.iri, sent.section_id):
        for tool in ("kg_query_section", "kg_traverse_hierarchy", "kg_find_related", "kg_rebuild_summary"):
            assert asked(kg, tool, **NEW, section_id=section_id)


@pytest.mark.parametrize(
    ("tool", "arguments", "listed", "has"),
    [
        ("kg_query_section", {"section_id": "17.20.040"}, None, "section_id title level raw_content order fetched_at"),
        ("kg_query_permissions", {"use": "church", "district": "R-1"}, "permissions",
         "district use permission conditions review_section section_ref evidence"),
        ("kg_query_standards", {"district": "R-1"}, "standards",
         "district standard_type value unit section_ref evidence"),
        ("kg_query_definition", {"term": "kiln"}, "definitions", "term definition_text section_ref evidence"),
        ("kg_traverse_hierarchy", {"section_id": "17.20"}, "sections", "section_id title level order parent_id depth"),
        ("kg_find_related", {"section_id": "17.04.020", "relationship_type": "authorizes"}, "related",
         "citing cited relationship_type context raw_citation law_type"),
    ],
)  # fmt: skip
def test_answers_have_the_properties_of_the_specification(kg, tool, arguments: Mapping[str, Any], listed, has):
    content = asked(kg, tool, **BEND, **arguments)
    shown = content if listed is None else content[listed][0]
    assert set(has.split()) <= set(shown)


def test_a_section_has_its_summary_with_level_and_time_once_it_is_built(kg):
    asked(kg, "kg_build_summaries", **BEND, root_section="17.12")
    content = asked(kg, "kg_query_section", **BEND, section_id="17.12")
    assert content["summary"]
    assert (content["summary_level"], content["summary_built_at"][-1]) == (1, "Z")


@pytest.mark.parametrize(
    ("tool", "optional"),
    [
        ("kg_ingest_code_section", "section_id title level raw_content | parent_id order"),
        ("kg_ingest_use_permissions", "permissions |"),
        ("kg_ingest_dimensional_standards", "standards |"),
        ("kg_ingest_definitions", "definitions |"),
        ("kg_build_summaries", "| root_section mode"),
        ("kg_rebuild_summary", "section_id | summary"),
        ("kg_query_section", "section_id | include_children"),
        ("kg_query_permissions", "| district use"),
        ("kg_query_standards", "| district standard_type"),
        ("kg_query_definition", "term |"),
        ("kg_traverse_hierarchy", "| section_id direction depth"),
        ("kg_find_related", "section_id | relationship_type direction"),
        ("kg_search_by_topic", "query | top_k"),
    ],
)
def test_tools_take_the_arguments_of_the_specification(tool, optional):
    fields = next(each for each in TOOLS if each.name == tool).arguments.model_fields
    needed, _, more = optional.partition("|")
    assert [name for name, field in fields.items() if field.is_required()] == ["municipality", "state", *needed.split()]
    assert set(more.split()) <= set(fields)


def test_a_relationship_type_that_there_is_not_is_told_with_those_that_there_are(kg):
    with pytest.raises(NotFoundError, match=r"relationship_type: .* defines, constrains"):
        kg_find_related(kg, **BEND, section_id="17.12", relationship_type="")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("kenel", r"of 4: 'Kennels, shelters, and pounds'\.$"),
        ("helipad", "Available: 'Kennels, shelters, and pounds', 'Banks'"),
    ],
)
def test_only_what_is_alike_is_called_near(text: str, says: str) -> None:
    names = ["Kennels, shelters, and pounds", "Banks", "Extraction of sand, gravel, clay, or minerals", "RA"]
    assert re.search(says, str(build_no_match("district", text, names, "Bend")))


def test_a_bank_is_a_financial_institution() -> None:
    assert parse_use_kinds("bank") == parse_use_kinds("Financial Institutions")
    assert parse_use_kinds("bank") != parse_use_kinds("river bank")
    assert parse_use_kinds("One (1) single residence dwelling per lot") == parse_use_kinds("single-family dwelling")


# Terms


def test_a_term_is_also_found_by_its_words(kg):
    ford = {"municipality": "Glaze Ford", "state": "UT"}
    terms = ["Dwelling, Row", "Dwelling, Multi-Family", "Cottage dwelling", "Dwelling hall", "Family", "Family (large)"]
    kg_ingest_definitions(
        kg, **ford, definitions=[{"term": term, "definition_text": f"What it is: {term}."} for term in terms]
    )

    def looked_up(term: str) -> tuple[list[str], list[str]]:
        found = kg_query_definition(kg, **ford, term=term)
        return [each.term for each in found.definitions], found.notes

    assert looked_up("Family") == (["Family"], [])
    assert looked_up("families") == (["Family"], ["term: 'families' was interpreted as 'Family'."])
    heads, [note] = looked_up("dwellings")
    assert heads == ["Cottage dwelling", "Dwelling hall", "Dwelling, Multi-Family", "Dwelling, Row"]
    assert "'dwellings'" in note
    assert "'Cottage dwelling', 'Dwelling hall'," in note
    words, [note] = looked_up("row")
    assert words == ["Dwelling, Row"]
    assert note == "term: 'row' was interpreted as 'Dwelling, Row'."
    with pytest.raises(NotFoundError, match="of 6: 'Cottage dwelling'"):
        looked_up("cottge dwellng")


# Units


def test_a_standard_is_compared_in_one_unit_and_what_is_recorded_stays(kg):
    standard = {"standard_type": "lot-area"}
    for place, values in (
        ("Acre Hill", [("A", "40", "acres"), ("B", "0.23", "AC")]),
        ("Foot Hill", [("R-1", "80,000", "sq ft"), ("R-2", "6,000", "sq ft"), ("R-3", "20", "percent")]),
        ("Yard Hill", [("R-1", "7,000", "square feet"), ("R-2", "as the board sees fit", "")]),
    ):
        sent = [standard | {"district": code, "value": value, "unit": unit} for code, value, unit in values]
        assert kg_ingest_dimensional_standards(kg, place, "UT", standards=sent).rejected == 0
    found = compare_zoning(kg, ["Acre Hill, UT", "Foot Hill, UT", "Yard Hill, UT"], standard_type="lot-area")
    area, percent = sorted(found.standards, key=lambda row: row.unit or "")
    acres, feet, yards = area.places
    assert (area.unit, percent.unit) == ("FT2", "PERCENT")
    assert (acres.lowest, acres.lowest_recorded, acres.highest, acres.highest_recorded, acres.highest_in) == (
        10018.8, "0.23 AC", 1742400.0, "40 AC", "A",
    )  # fmt: skip
    assert (feet.lowest, feet.highest, feet.highest_recorded, feet.districts) == (6000, 80000, None, 2)
    assert yards.not_numbers == ["R-2: as the board sees fit"]
    assert [cell.highest for cell in percent.places] == [None, 20, None]
    assert found.notes == []


@given(st.decimals(0, 10**6, places=4), st.sampled_from(AREAS), st.sampled_from(AREAS))
def test_a_number_that_is_converted_and_back_is_itself(number, unit, other):
    there = convert(float(number), unit, other)
    assert convert(there, other, unit) == pytest.approx(float(number))
    assert convert(float(number), unit, unit) == float(number)


def test_units_of_loaders_convert_as_far_as_they_measure_the_same():
    kinds: dict[str, set[str]] = {}
    for unit in UNITS:
        kinds.setdefault(get_quantity_kind(unit), set()).add(unit)
    assert {frozenset(each) for each in kinds.values() if len(each) > 1} == {
        frozenset({"FT", "IN", "YD", "MI", "M"}), frozenset({"FT2", "AC"}),
    }  # fmt: skip
    assert (convert(1, "AC", "FT2"), convert(1, "MI", "FT"), convert(1, "MI2", "AC")) == (43560, 5280, 640)
