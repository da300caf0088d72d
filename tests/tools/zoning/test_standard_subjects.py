"""A standard for a subject or a case of its own does not answer a question about the district."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.settings import Settings
from kg.tools.zoning.compare import compare_zoning
from kg.tools.zoning.ingest import kg_ingest_code_section, kg_ingest_dimensional_standards
from kg.tools.zoning.provisions import kg_query_standards
from kg.tools.zoning.standard_subjects import is_general
from loaders.zoning.graph.ingest import ingest

MERE: Any = {"municipality": "Subject Mere", "state": "UT"}
SECTIONS = {
    "R-1 Cottage District": "Permitted uses:\n1. Cottages.\nThe maximum height of a fence is 6 feet.\n"
    "The minimum lot area for cottages is 7,000 square feet.\n"
    "On corner lots, the minimum front setback is 15 feet.",
    "R-2 Terrace District": "The maximum height of a principal building is 35 feet.\n"
    "The maximum height of an accessory building is 20 feet.\nThe minimum front setback is 25 feet.\n"
    "The minimum side setback is 10 feet on each side.\nThe minimum lot frontage is 99 feet on the quay.",
}


@pytest.fixture(scope="module")
def kg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    folder = tmp_path_factory.mktemp("subjects")
    settings = Settings(data_dir=folder, models_dir=folder / "none", query_workers=1, _env_file=None)  # type: ignore[call-arg]
    with KnowledgeGraph.open(folder, settings) as opened:
        opened.receive = ingest
        for number, (title, text) in enumerate(SECTIONS.items()):
            kg_ingest_code_section(opened, **MERE, section_id=str(number), title=title, level=1, raw_content=text)
        other: Any = {"municipality": "Plain Mere", "state": "UT"}
        kg_ingest_dimensional_standards(
            opened,
            **other,
            standards=[{"district": "A", "standard_type": "building-height", "value": "30", "unit": "feet"}],
        )
        yield opened


@pytest.mark.parametrize(
    ("district", "asked", "values", "only_for"),
    [
        ("R-1", "height", [], [6]),
        ("R-1", "max height", [], [6]),
        ("R-1", "front setback", [], [15]),
        ("R-1", "lot area", [7000], []),
        ("R-2", "height", [20, 35], []),
        ("R-2", "front setback", [25], []),
        ("R-2", "side setback", [10], []),
        ("R-2", "frontage", [99], []),
        ("R-1", "fence height", [6], []),
        ("R-2", "accessory building height", [20], []),
        ("R-1", "corner lot front setback", [15], []),
        ("R-1", None, [6, 15, 7000], []),
    ],
)
def test_only_standards_for_what_was_asked_answer(
    kg: KnowledgeGraph, district: str, asked: str | None, values: list[float], only_for: list[float]
) -> None:
    found = kg_query_standards(kg, **MERE, district=district, standard_type=asked)
    assert sorted(each.value or 0 for each in found.standards) == values
    assert [each.value for each in found.only_for] == only_for
    assert found.meta.total == len(values)


def test_subject_without_a_standard_is_not_found(kg: KnowledgeGraph) -> None:
    with pytest.raises(NotFoundError, match=r"'shed' is not recorded\. Recorded for: all, 'accessory"):
        kg_query_standards(kg, **MERE, district="R-2", standard_type="shed height")
    with pytest.raises(NotFoundError, match="'fence' is not recorded"):
        kg_query_standards(kg, **MERE, district="R-2", standard_type="fence height")


def test_sections_with_the_words_of_a_missing_subject_are_named(kg: KnowledgeGraph) -> None:
    text = "A hedge is clipped in spring."
    kg_ingest_code_section(kg, **MERE, section_id="9", title="Gardens", level=1, raw_content=text)
    with pytest.raises(NotFoundError, match="The text of 9 has the subject"):
        kg_query_standards(kg, **MERE, district="R-2", standard_type="hedge height")


def test_comparison_leaves_out_what_is_for_another_subject(kg: KnowledgeGraph) -> None:
    rows = compare_zoning(kg, ["Subject Mere, UT", "Plain Mere, UT"], standard_type="height").standards
    mere = next(row.places[0] for row in rows if row.bound == "max")
    assert (mere.lowest, mere.highest, mere.districts, mere.only_for) == (35, 35, 1, None)


@pytest.mark.parametrize(
    ("subject", "general"),
    [
        (None, True),
        ("", True),
        ("Principal Building", True),
        ("all other uses", True),
        ("Projects", True),
        ("main buildings and structures", True),
        ("accessory building", False),
        ("corner lot", False),
        ("Dwellings", False),
    ],
)
def test_subjects_of_the_district_are_general(subject: str | None, general: bool) -> None:
    assert is_general(subject) is general
