"""Answers about districts: facts, then the law that governs, and references to the uses of other districts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.tools.zoning.compare import compare_zoning
from kg.tools.zoning.governing_passages import split_lines
from kg.tools.zoning.ingest import (
    kg_ingest_code_section,
    kg_ingest_use_permissions,
)
from kg.tools.zoning.provisions import kg_query_permissions, kg_query_standards
from kg.tools.zoning.topic_search import kg_search_by_topic
from tests.folders import open_graph

VALE: Any = {"municipality": "Hazel Vale", "state": "UT"}
SECTIONS = {
    "1": ("R-1 Cottage District", "Permitted uses:\n1. Cottages.\nThe minimum lot area is 7,000 square feet."),
    "2": (
        "R-2 Terrace District",
        "Permitted uses:\n1. Terraces.\nNo structure of any sort is ever to be allowed save by leave of the reeve.\n"
        "Benches stand 3 feet off the path.",
    ),
    "3": (
        "C-1 Corner District",
        "Permitted uses:\n1. Banks and financial institutions.\n2. Any use permitted in the R-1 District.",
    ),
    "4": (
        "C-2 Square District",
        "Permitted uses:\n1. Any use permitted in the C-1 District.\n2. Bank messenger offices.",
    ),
    "5": (
        "General",
        "One (1) single residence dwelling is kept on each lot.\nA mast is 40 feet tall at most.",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def kg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    folder: Path = tmp_path_factory.mktemp("coverage")
    with open_graph(folder) as opened:
        for number, (title, text) in SECTIONS.items():
            kg_ingest_code_section(opened, **VALE, section_id=number, title=title, level="section", raw_content=text)
        kg_ingest_use_permissions(
            opened, "Ash Dale", "UT", permissions=[{"district": "Z", "use": "Cottage", "permission": "P"}]
        )
        yield opened


def test_answer_has_the_passages_that_govern_verbatim_best_first(kg: KnowledgeGraph) -> None:
    found = kg_query_permissions(kg, **VALE, district="R-2", use="shed")
    assert (found.permissions, found.meta.completeness) == ([], "approximate")
    assert found.law[0].section_ref == "2"
    assert {each.section_ref for each in found.law} <= {"2", "5"}  # a section of another district does not govern
    texts = {number: text for number, (_, text) in SECTIONS.items()}
    for passage in found.law:
        assert passage.path.endswith(SECTIONS[passage.section_ref][0])
        for quote in passage.quotes:
            assert texts[passage.section_ref][quote.start : quote.end] == quote.text
        for start, end in passage.marks or ():
            assert any(quote.start <= start < end <= quote.end for quote in passage.quotes)
    assert found.coverage


@pytest.mark.parametrize(
    ("asked", "section", "words"),
    [
        ("single-family dwelling", "5", "One (1) single residence dwelling"),
        ("bench distance", "2", "Benches stand 3 feet"),
        ("mast height", "5", "A mast is 40 feet tall"),
    ],
)
def test_passage_is_found_by_other_words_for_what_was_asked(
    kg: KnowledgeGraph, asked: str, section: str, words: str
) -> None:
    ask = kg_query_permissions if asked.endswith("dwelling") else kg_query_standards
    passage = (
        ask(kg, **VALE, use=asked).law[0]
        if ask is kg_query_permissions
        else kg_query_standards(kg, **VALE, standard_type=asked).law[0]
    )
    assert passage.section_ref == section
    assert any(words in quote.text for quote in passage.quotes)


def test_unknown_district_is_no_error_where_the_law_may_have_it(kg: KnowledgeGraph) -> None:
    found = kg_query_permissions(kg, **VALE, district="M-7", use="terrace")
    assert found.permissions == []
    assert found.law
    with pytest.raises(NotFoundError):
        kg_query_permissions(kg, "Ash Dale", "UT", district="M-7")


def test_tables_alone_are_complete_and_quote_no_law(kg: KnowledgeGraph) -> None:
    found = kg_query_permissions(kg, "Ash Dale", "UT")
    assert (found.meta.completeness, found.law, found.coverage) == ("complete", [], None)


HALLS = "".join(
    f"{number}. Halls of sort {number}, which are kept for the use of the guild and its guests.\n"
    for number in range(2, 9)
)
ONLY = "Land shall be used by right for only the uses set forth below."


@pytest.mark.parametrize(
    ("before", "leads", "others", "item"),
    [
        ("", ["The following uses are prohibited:"], f"1. Mills.\n{HALLS}", "9. Kilns."),
        ("", ["Special Permit Required"], f"1. Inns.\n{HALLS}", "9. Kilns."),
        ("", [ONLY, "(a) Main Uses."], f"1. Mills.\n{HALLS}", "9. Kilns."),
        ("Permitted Uses:\nHomes.\n", ["Uses by permit:"], f"Inns.\n{HALLS.replace('. H', ' h')}", "Kilns."),
        ("", [], f"1. Mills.\n{HALLS}9. Public uses, including:\na. Inns.\n", "10. Kilns."),
    ],
)
def test_an_item_of_a_list_is_quoted_with_its_leads(
    kg: KnowledgeGraph, before: str, leads: list[str], others: str, item: str
) -> None:
    town: Any = {"municipality": "Lead Lea", "state": "UT"}
    text = before + "\n".join((*leads, others + item))
    kg_ingest_code_section(kg, **town, section_id="1", title="R-1 Cottage District", level=1, raw_content=text)
    [passage] = kg_query_permissions(kg, **town, district="R-1", use="kiln").law
    assert [quote.text for quote in passage.quotes] == [*leads, item]


def test_rules_for_other_cases_are_quoted_with_all_the_leads_of_their_lists(kg: KnowledgeGraph) -> None:
    town: Any = {"municipality": "Case Cairn", "state": "UT"}
    filler = "".join(
        f"{number}. Benches of sort {number} stand at the path, so that guests rest.\n" for number in "456"
    )
    leads = "The following apply to lots that:\n", "3. Abut one of these streets:\n", "In all other cases:\n"
    low, high = "A. A height of 20 feet.\n", "1. A height of 60 feet.\n"
    text = f"{leads[0]}1. Are small; and\n{leads[1]}Oak Street\n{low}{filler * 3}{leads[2]}{high}"
    kg_ingest_code_section(kg, **town, section_id="1", title="R-1 Cottage District", level=1, raw_content=text)
    [passage] = kg_query_standards(kg, **town, district="R-1", standard_type="height").law
    said = "\n".join(quote.text for quote in passage.quotes)
    assert all(each.strip() in said for each in (*leads, low, high))
    assert [quote.start for quote in passage.quotes] == sorted(quote.start for quote in passage.quotes)


@given(st.text(alphabet="ab.;:()1 \n", max_size=900))
def test_a_text_is_split_without_loss(text: str) -> None:
    pieces = list(split_lines(text))
    assert "".join("".join(text[start:end].split()) for start, end in pieces) == "".join(text.split())
    assert all(start <= end for start, end in pieces)


def test_cell_that_is_not_one_number_is_found_by_its_header(kg: KnowledgeGraph) -> None:
    town: Any = {"municipality": "Raw Rill", "state": "UT"}
    rows = (
        "<th>District</th><th>Minimum front setback</th>", "<td>R-1</td><td>15-25'</td>", "<td>R-2</td><td>20'</td>",
    )  # fmt: skip
    table = f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"
    for number, title in (("1", "R-1 Cottage District"), ("2", "R-2 Terrace District")):
        kg_ingest_code_section(kg, **town, section_id=number, title=title, level=1, raw_content="Maps.")
    kg_ingest_code_section(kg, **town, section_id="3", title="Dimensions", level=1, raw_content=table)
    found = [
        (each.district, each.raw_value)
        for code in ("R-1", "R-2")
        for each in kg_query_standards(kg, **town, district=code, standard_type="front yard").standards
    ]
    assert found == [("R-1", "15-25'"), ("R-2", "20'")]


def test_cell_is_not_found_by_words_of_different_headers(kg: KnowledgeGraph) -> None:
    town: Any = {"municipality": "Other Ombe", "state": "UT"}
    rows = (
        '<th colspan="2">Minimum setback (feet)</th>', "<th>Accessory use</th><th>To other lot line</th>",
        "<td>Surface parking area</td><td>5</td>", "<td>Drives</td><td>6</td>",
    )  # fmt: skip
    text = f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"
    kg_ingest_code_section(kg, **town, section_id="1", title="R-1 Cottage District", level=1, raw_content=text)
    found = {
        each: {rule.raw_value for rule in kg_query_standards(kg, **town, district="R-1", standard_type=each).standards}
        for each in ("setback", "lot area")
    }
    assert found == {"setback": {"5", "6"}, "lot area": set()}


def test_comparison_names_the_districts_without_a_rule(kg: KnowledgeGraph) -> None:
    places = ["Hazel Vale, UT", "Ash Dale, UT"]
    found = compare_zoning(kg, places)
    uses, standards = found.coverage
    assert found.meta.completeness == "approximate"
    assert {uses.municipality, standards.municipality} == {"Hazel Vale, Utah"}  # a table has no text
    assert uses.without_rule is None
    assert {"C-1", "C-2"} <= set(standards.without_rule or ())


def test_uses_of_the_underlying_zone_are_told_as_such(kg: KnowledgeGraph) -> None:
    town: Any = {"municipality": "Overlay Oaks", "state": "UT"}
    uses = "Permitted Uses:\nUses permitted in the underlying zone."
    for key, title, text in (
        ("1", "R-1 Cottage District", "Permitted uses:\n1. Cottages."),
        ("2", "River Storage Overlay", uses),
        (
            "3",
            "Mixed Homes Overlay",
            "Permitted Uses\nAll uses listed in R-1, Q-4, and Q-5 Districts, as limited there.",
        ),
    ):
        kg_ingest_code_section(kg, **town, section_id=key, title=title, level="section", raw_content=text)
    found = kg_query_permissions(kg, **town, district="River Storage Overlay", use="cottage")
    assert found.meta.completeness == "approximate"
    assert any("underlying zone" in note for note in found.notes)
    found = kg_query_permissions(kg, **town, district="Mixed Homes Overlay", use="cottage")
    assert {each.district for each in found.permissions} == {"R-1", "Mixed Homes Overlay"}


def test_use_is_found_in_the_name_of_another(kg: KnowledgeGraph) -> None:
    found = kg_query_permissions(kg, **VALE, district="C-1", use="bank")
    assert [each.use for each in found.permissions] == ["Banks and financial institutions"]
    found = kg_query_permissions(kg, **VALE, district="C-2", use="bank")
    assert any("Bank messenger offices" in note for note in found.notes)
    found = kg_query_permissions(kg, **VALE, district="R-1", use="bank")
    assert found.permissions == []


def test_comparison_follows_references(kg: KnowledgeGraph) -> None:
    places = ["Hazel Vale, UT", "Ash Dale, UT"]
    rows = {row.use: row.places[0] for row in compare_zoning(kg, places, use="bank").uses}
    assert rows["Banks and financial institutions"].by_reference == {"C-2": ["C-1"]}
    cells = {row.use: row.places[0].by_reference for row in compare_zoning(kg, places, use="cottage").uses}
    assert {"C-1": ["R-1"], "C-2": ["R-1"]} in cells.values()
    assert all(cell.by_reference is None for row in compare_zoning(kg, places).uses for cell in row.places)


def test_reference_that_excepts_the_use_is_not_followed(kg: KnowledgeGraph) -> None:
    town: Any = {"municipality": "Except Eyot", "state": "UT"}
    for number, title, uses in (
        ("1", "C-1 Corner District", "1. Theaters.\n2. Kilns.\n3. Two-family dwellings."),
        ("2", "C-2 Square District", "1. Any use permitted in the C-1 District, except theaters and duplexes."),
        ("3", "C-3 Row District", "1. Any use permitted in the C-2 District."),
    ):
        text = f"Permitted uses:\n{uses}"
        kg_ingest_code_section(kg, **town, section_id=number, title=title, level=1, raw_content=text)
    for code in ("C-2", "C-3"):
        for use in ("theater", "two-family dwelling"):
            found = kg_query_permissions(kg, **town, district=code, use=use)
            assert found.permissions == []
        assert "Kilns" in {each.use for each in kg_query_permissions(kg, **town, district=code, use="kiln").permissions}
    theaters = compare_zoning(kg, ["Except Eyot, UT", "Ash Dale, UT"], use="theater").uses
    assert [row.places[0].by_reference for row in theaters] == [None]


def test_a_table_with_a_column_of_another_district_governs_it(kg: KnowledgeGraph) -> None:
    town: Any = {"municipality": "Column Combe", "state": "UT"}
    kg_ingest_code_section(kg, **town, section_id="1", title="R-2 Terrace District", level=1, raw_content="Terraces.")
    rows = ("<th>Rule</th><th>R-1</th><th>R-2</th>", "<td>Height, maximum (ft)</td><td>30</td><td>40</td>")
    table = "".join(("<table>", *(f"<tr>{row}</tr>" for row in rows), "</table>"))
    kg_ingest_code_section(kg, **town, section_id="2", title="R-1 Cottage District", level=1, raw_content=table)
    found = kg_query_standards(kg, **town, district="R-2")
    assert [each.section_ref for each in found.standards] == ["2"]
    assert {each.section_ref for each in found.law} == {"1", "2"}


def test_the_table_of_a_standard_is_quoted_with_its_other_cases(kg: KnowledgeGraph) -> None:
    town: Any = {"municipality": "Garage Green", "state": "UT"}
    cells = (("th", "Rule", "R-1"), ("td", "Side yard, minimum (ft): each side", "3"), ("td", "total", "8"))
    rows = (f"<tr><{kind}>{head}</{kind}><{kind}>{words}</{kind}></tr>" for kind, head, words in cells)
    fences = "A fence in a side yard, or at the side of a yard, is no wall of that side yard. " * 16
    sections = {each: ("R-1 side yards: side yard", f"{each}. {fences}") for each in ("2", "3", "4")}
    sections["1"] = ("R-1 District", f"<table>{''.join(rows)}</table>")
    for number, (title, text) in sections.items():
        kg_ingest_code_section(kg, **town, section_id=number, title=title, level=1, raw_content=text)
    found = kg_query_standards(kg, **town, district="R-1", standard_type="side yard")
    assert [each.raw_value for each in found.standards] == ["3"]
    assert any("total | 8" in quote.text for each in found.law for quote in each.quotes)


@pytest.mark.parametrize(
    ("question", "sections", "left_out"),
    [
        ("Are terraces allowed in R2?", "2", {"1", "3", "4"}),
        ("cottages in the Cottage District", "1", {"2", "3", "4"}),
        ("May I open a bank", "3", set[str]()),
    ],
)
def test_a_district_of_a_question_limits_a_topic_search(
    kg: KnowledgeGraph, question: str, sections: str, left_out: set[str]
) -> None:
    found = [each.section_id for each in kg_search_by_topic(kg, **VALE, query=question).results]
    assert found[0] == sections
    assert left_out.isdisjoint(found)
