"""What the tools for codes of municipalities promise, on the fictional codes that ship, loaded as anybody does."""

from __future__ import annotations

import csv
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyoxigraph import NamedNode

from kg import bundle
from kg.errors import InvalidInputError, NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.explanation import explain_iri
from kg.store.protocol import Rows
from kg.tools.answers import content_of
from kg.tools.catalog.resources import list_resources
from kg.tools.registry import TOOLS, ZONING
from kg.tools.zoning.compare import compare_zoning
from kg.tools.zoning.provisions import kg_query_definition, kg_query_permissions, kg_query_standards
from kg.tools.zoning.sections import TYPES, kg_find_related, kg_query_section, kg_traverse_hierarchy
from kg.zoning_summaries.build import build
from loaders.sources import load
from loaders.zoning.graph import table_mapping as mapping_files
from tests.conftest import load_once
from tests.folders import open_graph

FIXTURES = bundle.folder("fixtures") / "zoning"
BEND = {"municipality": "Quarry Bend", "state": "UT"}
QUILL = {"municipality": "Lower Quill", "state": "CT"}
TEXT = "SELECT ?text WHERE { <%s> <http://schema.org/text> ?text }"


@pytest.fixture(scope="module")
def kg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    folder = load_once(tmp_path_factory, "utah")
    with open_graph(folder) as opened:
        yield opened


def rows() -> list[dict[str, str]]:
    with (FIXTURES / "towns.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def text_of(kg: KnowledgeGraph, section: str) -> str:
    result = kg.query(TEXT % section).result
    assert isinstance(result, Rows)
    return next(iter(result))["text"].value  # type: ignore[union-attr]


def test_all_tools_take_municipality_and_state_first_and_are_on_the_mount():
    tools = {tool.name: tool for tool in TOOLS if ZONING in tool.tags}
    assert set(tools) >= {
        "kg_ingest_code_section", "kg_ingest_use_permissions", "kg_ingest_dimensional_standards",
        "kg_ingest_definitions", "kg_build_summaries", "kg_rebuild_summary", "kg_query_section",
        "kg_query_permissions", "kg_query_standards", "kg_query_definition", "kg_traverse_hierarchy",
        "kg_find_related", "kg_search_by_topic", "compare_zoning",
    }  # fmt: skip
    for name, tool in tools.items():
        if name.startswith("kg_"):
            assert list(tool.arguments.model_fields)[:2] == ["municipality", "state"]
            assert (tool.scope == "write") == name.startswith(("kg_ingest", "kg_build", "kg_rebuild", "review"))


# Names


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("Quarry Bend", "UT"), ("Quarry Bend", "USA"), ("Quarry Bend", "Utah, United States"),
        ("quarry  bend", "Utah"), ("Quarry-Bend", "us-ut"), ("City of Quarry Bend", "utah"),
        ("us-ut-quarry-bend", "UT"), ("https://w3id.org/quadcite/id/municipality/us-ut-quarry-bend", "UT"),
    ],
)  # fmt: skip
def test_a_municipality_is_known_however_it_is_written(kg, name, state):
    assert kg_query_section(kg, name, state, "17").title == "Zoning"


@pytest.mark.parametrize(
    ("name", "state", "says"),
    [
        ("Quary Bend", "UT", "Available: 'Quarry Bend, Utah'"),
        ("Quarry Bend", "CT", "Quarry Bend, Utah"),
        ("", "UT", "municipality is empty"),
    ],
)
def test_one_that_there_is_not_is_told_with_what_is_near(kg, name, state, says):
    with pytest.raises((NotFoundError, InvalidInputError), match=says):
        kg_query_permissions(kg, name, state)


def test_districts_that_differ_in_a_hyphen_are_two_and_a_code_that_may_be_either_is_both(kg):
    def districts(code: str) -> tuple[set[str], list[str]]:
        found = kg_query_permissions(kg, **BEND, district=code, limit=200)
        return {each.district for each in found.permissions}, found.notes

    assert districts("R-2") == ({"R-2"}, [])
    assert districts("R2") == ({"R2"}, [])
    assert districts("r-2")[0] == {"R-2"}
    both, [note] = districts("R 2")
    assert both == {"R-2", "R2"}
    assert note.startswith("district: 'R 2' ")
    assert districts("Two-Family Residential")[0] == {"R-2"}


def test_a_use_is_found_by_its_plural_and_by_a_word_of_it(kg):
    assert {each.use for each in kg_query_permissions(kg, **BEND, use="duplexes").permissions} == {"Duplex"}
    found = kg_query_permissions(kg, **QUILL, use="dwelling")
    assert {each.use for each in found.permissions} == {"Single-family dwelling"}
    assert found.notes == ["use: 'dwelling' was interpreted as 'Single-family dwelling'."]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda kg: kg_query_permissions(kg, **QUILL, district="RB"), "district: .*Lower Quill.* R"),
        (lambda kg: kg_query_permissions(kg, **QUILL, use="duplx"), "use: .*Duplex"),
        (lambda kg: kg_query_standards(kg, **QUILL, standard_type="wobble"), "standard_type: .*front-setback"),
        (lambda kg: kg_query_definition(kg, **BEND, term="kilnn"), "term: .*Kiln"),
        (lambda kg: kg_query_definition(kg, **QUILL, term="kiln"), "Lower Quill, .* no recorded term"),
        (lambda kg: kg_query_section(kg, **BEND, section_id="17.20.04"), "Similar: 17.20.040"),
        (lambda kg: kg_query_section(kg, **BEND, section_id="17.04.010(z)"), r"Unknown subsection \(z\)"),
        (lambda kg: kg_query_section(kg, **QUILL, section_id="1"), "us-ct-lower-quill"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(kg, call, says):
    with pytest.raises(NotFoundError, match=says):
        call(kg)


# Permissions, standards, definitions


def test_every_cell_of_a_table_is_answered_as_it_is(kg):
    levels = {"Allowed": "byRight", "Special Permit": "conditional", "Prohibited": "notPermitted", "Overlay": None}
    for row in rows():
        place = {"municipality": row["Town"], "state": row["State"], "district": row["District"]}
        found = {
            each.evidence.recorded_in: each
            for each in kg_query_permissions(kg, **place).permissions
            if each.evidence.recorded_in
        }
        for column in ("House", "Two-Family House"):
            assert found[column].as_recorded == row[column]
            assert found[column].permission == levels[row[column]]
            assert found[column].evidence.source.endswith("towns.csv")
        owner = row["Owner Must Live There"]
        assert found["Two-Family House"].conditions == ([f"Owner Must Live There: {owner}"] if owner else [])
        standards = {each.evidence.recorded_in: each for each in kg_query_standards(kg, **place).standards}
        for column, bound in (("Front Setback (ft)", "min"), ("Max. Height (ft)", "max")):
            if not row[column]:
                assert column not in standards
                continue
            assert (standards[column].raw_value, standards[column].bound) == (row[column], bound)
            number = float(row[column]) if row[column].replace(".", "").isdecimal() else None
            assert (standards[column].value, standards[column].unit) == (number, "FT" if number is not None else None)


def test_every_cell_of_a_real_table_is_answered_as_it_is(shared, tmp_path):
    """A few jurisdictions of Connecticut, with whatever columns the shipped mapping names."""
    mapping = tomllib.loads((mapping_files.FOLDER / "connecticut.toml").read_text(encoding="utf-8"))
    with (shared / "data" / "zoning" / "ct_town_data_2022.csv").open(encoding="utf-8-sig", newline="") as file:
        table = list(csv.DictReader(file))
    towns = sorted({row["Jurisdiction"].strip() for row in table})[::23]
    chosen = [row for row in table if row["Jurisdiction"].strip() in towns]
    with (tmp_path / "towns.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(chosen)
    folder = tmp_path / "data"
    with open_graph(folder) as kg:
        assert load(kg, "zoning", [str(tmp_path / "towns.csv")], index=False).rejections == []
        cells: dict[tuple[str, str | None], dict[str | None, str | None]] = defaultdict(dict)
        for town in towns:
            for each in every(lambda offset, town=town: kg_query_permissions(kg, town, "CT", limit=200, offset=offset)):
                cells[town, each.district][each.evidence.recorded_in] = each.as_recorded
            for each in every(lambda offset, town=town: kg_query_standards(kg, town, "CT", limit=200, offset=offset)):
                cells[town, each.district][each.evidence.recorded_in] = each.raw_value
    columns = {each["column"] for kind in ("use", "standard") for each in mapping[kind]}
    for row in chosen:
        recorded = {name.strip(): cell for name, cell in row.items() if name.strip() in columns and cell.strip()}
        assert cells[row["Jurisdiction"].strip(), row["AbbreviatedDistrict"]] == recorded


def every(ask: Callable[[int], Any]) -> Iterator[Any]:
    """Everything on all pages."""
    offset: int | None = 0
    while offset is not None:
        page = ask(offset)
        yield from getattr(page, "permissions", None) or getattr(page, "standards", ())
        offset = page.next_offset


def test_what_was_found_in_text_stands_there_word_for_word(kg):
    found = kg_query_permissions(kg, **BEND, limit=200)
    in_text = [each for each in found.permissions if each.evidence.spans]
    assert len(in_text) > 20
    for each in in_text:
        text = text_of(kg, f"https://w3id.org/quadcite/id/section/us-ut-quarry-bend/{each.section_ref}")
        assert all(text[span.start : span.end] == span.text for span in each.evidence.spans)
        assert each.evidence.method
        assert each.evidence.confidence > 0
        assert each.evidence.source.endswith("title_17_zoning.html")
        assert each.evidence.fetched_at.endswith("Z")
    corner = [each for each in in_text if (each.district, each.use) == ("R-1", "Duplex")]
    assert {each.permission for each in corner} == {"conditional"}
    assert ["only on a corner lot"] in [each.conditions for each in corner]
    assert found.meta.total == len(found.permissions)


def test_answers_come_in_pages_in_one_order(kg):
    whole = kg_query_standards(kg, **QUILL, limit=200).standards
    paged: list[Any] = []
    offset: int | None = 0
    while offset is not None:
        page = kg_query_standards(kg, **QUILL, limit=4, offset=offset)
        assert page.meta.total == len(whole)
        paged, offset = [*paged, *page.standards], page.next_offset
    assert paged == whole
    assert [each.district for each in whole] == sorted((each.district for each in whole), key=["R-A", "RA", "VC"].index)


def test_a_kind_of_standard_is_asked_for_in_words(kg):
    def types(words: str) -> set[tuple[str, str | None]]:
        return {
            (each.standard_type, each.bound) for each in kg_query_standards(kg, **QUILL, standard_type=words).standards
        }

    assert types("setback") == {("front-setback", "min")}
    assert types("maximum height") == {("building-height", "max")}
    assert types("lot size") == {("lot-area", "min")}
    assert types("min height") == set()


def test_a_term_is_looked_up_whatever_its_case_and_number(kg):
    [kiln] = kg_query_definition(kg, **BEND, term="KILNS").definitions
    assert kiln.term == "Kiln"
    assert kiln.section_ref == "17.08.010"
    assert kiln.definition_text in kiln.evidence.spans[0].text


# Sections


@pytest.mark.parametrize(
    "section_id",
    [
        "17.20.040", "§ 17.20.040", "Section 17.20.040", "sec. 17.20.040",
        "https://w3id.org/quadcite/id/section/us-ut-quarry-bend/17.20.040",
    ],
)  # fmt: skip
def test_a_section_is_read_word_for_word(kg, section_id):
    found = kg_query_section(kg, **BEND, section_id=section_id)
    assert found.raw_content == text_of(kg, found.evidence.id)
    assert (found.section_id, found.title, found.level, found.parent_id) == (
        "17.20.040", "Dimensional Standards", 3, "17.20",
    )  # fmt: skip
    assert found.history == ["(Adopted by Ord. 2019-04 on 3/5/2019)"]
    assert set(content_of(found)) >= {"fetched_at", "level", "order", "raw_content", "evidence"}


def test_a_part_of_a_section_is_read_by_its_labels(kg):
    tree = kg_traverse_hierarchy(kg, **BEND, depth=3, limit=200).sections
    whole = next(
        found for each in tree if (found := kg_query_section(kg, **BEND, section_id=each.section_id)).subsections
    )
    part = whole.subsections[0]
    found = kg_query_section(kg, **BEND, section_id=f"{whole.section_id}{part.label}")
    assert found.subsection == part
    assert found.raw_content == whole.raw_content[part.start : part.end]


def test_a_long_text_comes_in_pieces(kg):
    whole = kg_query_section(kg, **BEND, section_id="17.20.040").raw_content
    [tool] = [each for each in TOOLS if each.name == "kg_query_section"]
    pieces, start, calls = "", 0, 0
    while start < len(whole):
        asked = {**BEND, "section_id": "17.20.040", "text_from": start, "max_tokens": 200}
        found = tool.answer(kg, asked).content
        assert found["raw_content"]
        pieces += found["raw_content"]
        start += len(found["raw_content"])
        calls += 1
        named = [note for note in found.get("notes", ()) if f"text_from={start}" in note]
        assert bool(named) == (start < len(whole))
    assert pieces == whole
    assert calls > 1
    with pytest.raises(InvalidInputError, match="text_from"):
        kg_query_section(kg, **BEND, section_id="17.20.040", text_from=10_000)


def test_summaries_and_children_are_shown_where_there_are_any(kg):
    build(kg, "https://w3id.org/quadcite/id/municipality/us-ut-quarry-bend", None)
    found = kg_query_section(kg, **BEND, section_id="Chapter 17.20", include_children=True, limit=2)
    assert found.summary
    assert (found.summary_level, found.summary_state) == (1, "current")
    assert found.summary_built_at.endswith("Z")
    assert [each.section_id for each in found.children] == ["17.20.010", "17.20.020"]
    assert found.next_offset == 2
    assert all(each.summary and each.summary_level == 0 for each in found.children)


def test_the_tree_is_walked_down_and_up(kg):
    top = kg_traverse_hierarchy(kg, **BEND)
    assert [each.section_id for each in top.sections] == ["17"]
    whole = kg_traverse_hierarchy(kg, **BEND, depth=20, limit=200)
    assert whole.meta.total == 61 + 1 + top.sections[0].children
    assert [each.order for each in whole.sections if each.depth == 2] == list(range(top.sections[0].children))
    up = kg_traverse_hierarchy(kg, **BEND, section_id="17.20.040", direction="up", depth=5)
    assert [(each.section_id, each.depth) for each in up.sections] == [("17.20", 1), ("17", 2)]


# Citations


def test_a_citation_is_found_from_both_sides_and_read_from_the_citing_one(kg):
    [out] = [
        each
        for each in kg_find_related(kg, **BEND, section_id="17.56.030", direction="outgoing").related
        if each.cited == "17.20.040"
    ]
    [back] = kg_find_related(kg, **BEND, section_id="17.20.040", direction="incoming").related
    assert out == back
    assert (out.citing, out.relationship_type, out.reads, out.asserted) == (
        "17.56.030", "excepts", "notwithstanding", True,
    )  # fmt: skip
    text = text_of(kg, "https://w3id.org/quadcite/id/section/us-ut-quarry-bend/17.56.030")
    assert all(text[span.start : span.end] == span.text for span in out.spans)
    assert out.raw_citation in out.context
    assert out.context in text


def test_types_narrow_and_laws_beside_the_code_are_among_what_is_cited(kg):
    found = kg_find_related(kg, **BEND, section_id="17.04.020", relationship_type="authorizes").related
    assert [(each.cited, each.reads) for each in found] == [("Utah Code § 10-9a-101", "authorizedBy")]
    assert kg_find_related(kg, **BEND, section_id="17.04.020", relationship_type="delegates").related == []
    with pytest.raises(NotFoundError, match=", ".join(TYPES[:3])):
        kg_find_related(kg, **BEND, section_id="17.04.020", relationship_type="likes")


def test_what_a_citation_of_nothing_known_means_is_left_open(kg):
    everything = [
        each
        for line in kg_traverse_hierarchy(kg, **BEND, depth=3, limit=200).sections
        for each in kg_find_related(kg, **BEND, section_id=line.section_id, direction="outgoing", limit=200).related
    ]
    unknown = [each for each in everything if each.cited is None]
    assert unknown
    assert not any(each.asserted for each in unknown)
    assert all(each.raw_citation for each in everything)


# Side by side


def test_municipalities_stand_side_by_side(kg):
    found = compare_zoning(kg, ["Lower Quill, CT", "Upper Feign, Connecticut", "Quarry Bend, UT"], limit=200)
    duplex = next(row for row in found.uses if row.use.casefold() == "duplex")
    assert [cell.municipality for cell in duplex.places] == [
        "Lower Quill, Connecticut", "Upper Feign, Connecticut", "Quarry Bend, Utah",
    ]  # fmt: skip
    assert duplex.places[0].districts == {"conditional": ["RA"], "notPermitted": ["R-A"], "Overlay": ["VC"]}
    assert duplex.places[2].districts["conditional"] == ["R-1"]
    height = next(row for row in found.standards if (row.standard_type, row.bound) == ("building-height", "max"))
    quill, feign = height.places[:2]
    assert (quill.lowest, quill.lowest_in, quill.median, quill.highest, quill.highest_in) == (35, "R-A", 35, 45, "VC")
    assert (feign.highest, feign.not_numbers) == (50, ["R-40: 2.5 stories"])
    assert all(cell.rules for row in found.standards for cell in row.places if cell.districts)


def test_a_comparison_is_narrowed_and_its_places_are_checked(kg):
    both = ["Lower Quill, CT", "Upper Feign, CT"]
    uses = compare_zoning(kg, both, use="kiln")
    assert ([row.use for row in uses.uses], uses.standards) == (["Kiln"], [])
    standards = compare_zoning(kg, both, standard_type="setback")
    assert standards.uses == []
    assert {row.standard_type for row in standards.standards} <= {"front-setback", "rear-setback", "side-setback"}
    for places, says in (
        (["Lower Quill", "Upper Feign, CT"], "Name, State"),
        (["Lower Quill, CT", "lower quill, Connecticut"], "named twice"),
        (["Lower Quill, CT"], "2 to 10"),
    ):
        with pytest.raises(InvalidInputError, match=says):
            compare_zoning(kg, places)


def test_the_municipalities_are_listed(kg):
    [listed] = [each for each in list_resources(kg).resources if each.title.startswith("Municipalities")]
    assert listed.values == ["Lower Quill, Connecticut", "Upper Feign, Connecticut", "Quarry Bend, Utah"]


@pytest.mark.parametrize("text", ['") } #', "x\n} DELETE", "\\", "<>", "'; SELECT", "\u202e", "a" * 200])
def test_what_is_asked_never_becomes_part_of_a_query(kg, text):
    for call in (
        lambda: kg_query_permissions(kg, **QUILL, district=text),
        lambda: kg_query_permissions(kg, text, "UT"),
        lambda: kg_query_section(kg, **BEND, section_id=text),
        lambda: kg_query_definition(kg, **BEND, term=text),
    ):
        with pytest.raises((NotFoundError, InvalidInputError)):
            call()


def test_a_rule_found_in_text_is_explained_by_its_words_and_the_lines_of_the_file(kg):
    [first, *_] = kg_query_permissions(kg, **BEND, district="R-2", use="Church").permissions
    [found] = explain_iri(kg.store.query, NamedNode(first.evidence.id))
    assert [words.text for words in found.words] == ["Church."]
    assert found.words[0].verified
    [source] = found.sources
    [origin] = source.origin
    assert origin.locations[0].endswith("title_17_zoning.html")
    assert origin.lines
    assert "title_17_zoning.html" in str(found)
    assert "in words    Church." in str(found)
