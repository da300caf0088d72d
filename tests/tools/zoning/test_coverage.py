"""Answers about districts state what of their sections was not understood, and follow references when comparing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kg.knowledge_graph import KnowledgeGraph
from kg.settings import Settings
from kg.tools.zoning.compare import compare_zoning
from kg.tools.zoning.coverage import find_unread
from kg.tools.zoning.ingest import kg_ingest_code_section, kg_ingest_use_permissions
from kg.tools.zoning.provisions import kg_query_permissions, kg_query_standards
from loaders.zoning.graph.ingest import ingest

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
}  # fmt: skip


@pytest.fixture(scope="module")
def kg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    folder: Path = tmp_path_factory.mktemp("coverage")
    settings = Settings(data_dir=folder, models_dir=folder / "none", query_workers=1, _env_file=None)  # type: ignore[call-arg]
    with KnowledgeGraph.open(folder, settings) as opened:
        opened.receive = ingest
        for number, (title, text) in SECTIONS.items():
            kg_ingest_code_section(opened, **VALE, section_id=number, title=title, level="section", raw_content=text)
        kg_ingest_use_permissions(
            opened, "Ash Dale", "UT", permissions=[{"district": "Z", "use": "Cottage", "permission": "P"}]
        )
        yield opened


def test_answer_is_complete_where_all_sentences_were_understood(kg: KnowledgeGraph) -> None:
    for found in (
        kg_query_permissions(kg, **VALE, district="R-1"),
        kg_query_permissions(kg, **VALE, district="R-1", use="cottage"),
        kg_query_standards(kg, **VALE, district="R-1"),
        kg_query_permissions(kg, "Ash Dale", "UT"),
    ):
        assert (found.meta.completeness, found.incomplete, found.not_understood) == ("complete", None, [])


def test_answer_names_the_sentences_that_were_not_understood(kg: KnowledgeGraph) -> None:
    found = kg_query_permissions(kg, **VALE, district="R-2", use="terrace")
    assert found.meta.completeness == "approximate"
    assert [(each.section_ref, each.words.split()[0]) for each in found.not_understood] == [("2", "No")]
    assert found.incomplete
    standards = kg_query_standards(kg, **VALE, district="R-2")
    assert [each.words.split()[0] for each in standards.not_understood] == ["Benches"]
    assert standards.meta.completeness == "approximate"


def test_district_without_a_section_is_not_complete(kg: KnowledgeGraph) -> None:
    kg_ingest_use_permissions(kg, **VALE, permissions=[{"district": "Q-9", "use": "Quay", "permission": "P"}])
    found = kg_query_permissions(kg, **VALE, district="Q-9")
    assert (len(found.permissions), found.meta.completeness) == (1, "approximate")
    assert "Q-9" in (found.incomplete or "")


def test_row_of_a_misprinted_code_is_not_understood(kg: KnowledgeGraph) -> None:
    town: Any = {"municipality": "Misprint Mere", "state": "UT"}
    own = "Permitted uses:\n1. Offices."
    kg_ingest_code_section(kg, **town, section_id="1", title="R-O Office District", level="section", raw_content=own)
    table = "R-0 | 6,000 square feet | 35 feet"
    kg_ingest_code_section(kg, **town, section_id="2", title="Table", level="section", raw_content=table)
    found = kg_query_standards(kg, **town, district="R-O")
    assert [each.section_ref for each in found.not_understood] == ["2"]


def test_code_of_a_matrix_without_a_meaning_is_not_understood(kg: KnowledgeGraph) -> None:
    town: Any = {"municipality": "Letter Ley", "state": "UT"}
    rows = ("Use\tR-1\tR-2\tC-1", "Shed\tP\tN\tSPR", "Mill\tN\tSPR\tP", "Kiln\tN\tQ\tQ", "Inn\tN\tP\tP")
    table = f"<table>{''.join('<tr><td>' + row.replace(chr(9), '</td><td>') + '</td></tr>' for row in rows)}</table>"
    for number, name in enumerate(("R-1 Cottage", "R-2 Terrace", "C-1 Corner"), 3):
        key = str(number)
        kg_ingest_code_section(
            kg, **town, section_id=key, title=f"{name} District", level="section", raw_content="Maps."
        )
    kg_ingest_code_section(kg, **town, section_id="1", title="Uses", level="section", raw_content=table)
    found = kg_query_permissions(kg, **town, district="C-1", use="mill")
    assert [each.words for each in found.not_understood] == [
        "Shed: SPR (C-1)",
        "Kiln: Q (R-2, C-1)",
    ]
    assert found.meta.completeness == "approximate"
    assert kg_query_permissions(kg, **town, district="R-1").meta.completeness == "complete"
    # The key is sent after the table, which is read again.
    key = "SPR: a use by right, with review of its plan."
    kg_ingest_code_section(kg, **town, section_id="2", title="Key to uses", level="section", raw_content=key)
    found = kg_query_permissions(kg, **town, district="R-2")
    assert [each.words for each in found.not_understood] == ["Kiln: Q (R-2, C-1)"]
    assert {each.use: each.permission for each in found.permissions}["Mill"] == "byRightWithConditions"


def test_note_on_other_districts_counts_no_prohibition(kg: KnowledgeGraph) -> None:
    said = [{"district": code, "use": "Mint", "permission": level} for code, level in (("K-1", "P"), ("K-2", "N"))]
    kg_ingest_use_permissions(kg, "Note Nook", "UT", permissions=[*said, {**said[0], "district": "K-3", "use": "Oast"}])
    found = kg_query_permissions(kg, "Note Nook", "UT", district="K-3", use="mint")
    [note] = [note for note in found.notes if note.startswith("Other districts")]
    assert "K-1" in note
    assert "K-2" not in note


def test_uses_of_the_underlying_zone_are_told_as_such(kg: KnowledgeGraph) -> None:
    town: Any = {"municipality": "Overlay Oaks", "state": "UT"}
    uses = "Permitted Uses: Uses permitted in the underlying zone are allowed with the overlay."
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
    assert (found.permissions, found.meta.completeness) == ([], "complete")


def test_comparison_follows_references(kg: KnowledgeGraph) -> None:
    places = ["Hazel Vale, UT", "Ash Dale, UT"]
    rows = {row.use: row.places[0] for row in compare_zoning(kg, places, use="bank").uses}
    assert rows["Banks and financial institutions"].by_reference == {"C-2": ["C-1"]}
    cells = {row.use: row.places[0].by_reference for row in compare_zoning(kg, places, use="cottage").uses}
    assert {"C-1": ["R-1"], "C-2": ["R-1"]} in cells.values()
    assert all(cell.by_reference is None for row in compare_zoning(kg, places).uses for cell in row.places)


@pytest.mark.parametrize(
    ("text", "spans", "kind", "left"),
    [
        ("Cottages are permitted.\n", [(0, 22)], "permission", []),
        ("Cottages are permitted. Barns are prohibited.\n", [(0, 22)], "permission", ["Barns are prohibited."]),
        ("The following are permitted:\nCottages.\n", [(29, 38)], "permission", []),
        ("No hall shall be used as\n(1) an inn.\n", [], "permission", ["No hall shall be used as"]),
        ("No lot may be occupied or used for a mill.\n", [(0, 42)], "permission", []),
        ("The following are permitted:\n", [], "permission", ["The following are permitted:"]),
        ("A building permit is issued in ten days.", [], "permission", []),
        ("Height 35 feet (10.7 m), width 50 feet.", [(7, 14)], "standard", ["Height 35 feet (10.7 m), width 50 feet."]),
        ("Height 35 feet (10.7 m).", [(7, 14)], "standard", []),
        ("thirty (30) feet", [], "standard", ["thirty (30) feet"]),
        ("Chapter 35 of 1990", [], "standard", []),
    ],
)  # fmt: skip
def test_sentences_without_findings_are_found(text: str, spans: Any, kind: Any, left: list[str]) -> None:
    assert [(words.strip(), is_item) for words, is_item in find_unread(text, spans, kind)] == [
        (each, False) for each in left
    ]


def test_items_of_lists_of_uses_are_found() -> None:
    text = "Coal Sheds.\nPermitted uses:\nInns.\nPiers.\nQuays.\nSigns (see § 4).\nKerbs 2 feet high.\n"
    spans = [(28, 33), (34, 40), (41, 47)]
    assert [text[start:end] for start, end in spans] == ["Inns.", "Piers.", "Quays."]
    assert list(find_unread(text, spans, "permission")) == [("Coal Sheds.\n", True)]


def test_items_with_labels_in_brackets_are_found() -> None:
    text = "(1) Inns.\n(2) Piers.\n(3) Quays.\n(b) Odds: gig houses and sheds.\n(1) Stalls.\n"
    spans = [(4, 9), (14, 20), (25, 31)]
    assert [text[start:end] for start, end in spans] == ["Inns.", "Piers.", "Quays."]
    assert [words.strip() for words, _ in find_unread(text, spans, "permission")] == [
        "(b) Odds: gig houses and sheds.",
        "(1) Stalls.",
    ]


def test_label_of_an_item_is_no_unread_item() -> None:
    text = "A. Inns.\nB. Piers.\nC. Quays.\nD. Any use.\n"
    spans = [(3, 8), (12, 18), (22, 28), (32, 40)]
    assert [text[start:end] for start, end in spans] == ["Inns.", "Piers.", "Quays.", "Any use."]
    assert list(find_unread(text, spans, "permission")) == []
