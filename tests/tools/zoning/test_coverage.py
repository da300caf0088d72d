"""Answers about districts state what of their sections was not understood, and follow references when comparing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import NamedNode

from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.choices import Choice
from kg.settings import Settings
from kg.tools.zoning.compare import compare_zoning
from kg.tools.zoning.coverage import compile_finder, enumerates_others, find_unread
from kg.tools.zoning.ingest import (
    kg_ingest_code_section,
    kg_ingest_dimensional_standards,
    kg_ingest_use_permissions,
)
from kg.tools.zoning.provisions import kg_query_permissions, kg_query_standards
from kg.tools.zoning.term_lookup import Named
from kg.tools.zoning.unrecorded import prohibits_unlisted
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
        ("The uses allowed are as follows.\nCottages.\n", [(33, 42)], "permission", []),
        ("No hall shall be used as\n(1) an inn.\n", [], "permission", ["No hall shall be used as"]),
        ("No lot may be occupied or used for a mill.\n", [(0, 42)], "permission", []),
        ("The following are permitted:\n", [], "permission", ["The following are permitted:"]),
        ("A building permit is issued in ten days.", [], "permission", []),
        ("Inns may also be authorized.", [], "permission", ["Inns may also be authorized."]),
        ("Land may be used for any lawful end.", [], "permission", ["Land may be used for any lawful end."]),
        ("Accessory uses, which include quays.", [], "permission", ["Accessory uses, which include quays."]),
        ("(2) Inns are permitted. Piers are prohibited.", [(4, 23)], "permission", ["Piers are prohibited."]),
        ("The following are prohibited: kilns.\nInns are permitted.", [(37, 56)], "permission",
         ["The following are prohibited: kilns."]),
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


CLOSED = "A use that is not listed in section 2 of a district is prohibited there, unless the reeve finds it alike."
TOWN = {
    "1": ("General", f"Maps are kept.\n{CLOSED}\nA bakery smells."),
    "2": ("R-1 Cottage District", "Permitted uses:\n1. Cottages.\n2. Inns.\n3. Kilns."),
    "3": (
        "R-2 Terrace District",
        "Permitted uses:\n1. Terraces.\n2. Inns.\n3. Kilns.\n"
        + "".join(f"No {each} of any sort is to be allowed save by leave.\n" for each in "abcdefgh")
        + "Save by leave, no pier is to be allowed on a bank.\nAny bakehouse is forbidden to them.",
    ),
    "4": ("Home Occupations", "A use that is not listed in this section is prohibited."),
    "5": ("C-1 Corner District", "Permitted uses:\n1. Piers.\nA sign not listed here is prohibited."),
}  # fmt: skip


@pytest.fixture(scope="module")
def closed(kg: KnowledgeGraph) -> Any:
    """A town that prohibits what it does not list."""
    town: Any = {"municipality": "Closed Cove", "state": "UT"}
    for number, (title, text) in TOWN.items():
        kg_ingest_code_section(kg, **town, section_id=number, title=title, level="section", raw_content=text)
    return town


def test_unknown_use_names_what_was_not_understood(kg: KnowledgeGraph, closed: Any) -> None:
    with pytest.raises(NotFoundError) as raised:
        kg_query_permissions(kg, **closed, district="R-2", use="bakehouse")
    message = str(raised.value)
    assert "10 sentences" in message
    assert "in 3, were not understood" in message
    assert "bakehouse is forbidden" in message
    with pytest.raises(NotFoundError) as raised:
        kg_query_permissions(kg, **closed, district="R-1", use="bakery")
    message = str(raised.value)
    assert "not understood" not in message
    assert "The text of 1 has these words" in message
    with pytest.raises(NotFoundError) as raised:
        kg_query_permissions(kg, **VALE, district="R-1", use="bakery")
    assert not re.search(r"not understood|has these words|prohibits", str(raised.value))


def test_sentences_with_the_words_asked_for_come_first_and_all_can_be_read(kg: KnowledgeGraph, closed: Any) -> None:
    found = kg_query_permissions(kg, **closed, district="R-2", use="piers")
    assert found.not_understood_total == 10
    assert "pier" in found.not_understood[0].words
    read: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = kg_query_permissions(kg, **closed, district="R-2", limit=4, offset=offset)
        assert (page.meta.total, page.not_understood_total) == (3, 10)
        read += [each.words for each in page.not_understood]
        offset = page.next_offset
    assert (len(read), len(set(read))) == (10, 10)


def test_sentences_about_the_type_asked_for_come_first(kg: KnowledgeGraph) -> None:
    town: Any = {"municipality": "Order Oast", "state": "UT"}
    text = "The lot area is 7,000 square feet.\nBenches stand 3 feet off the path.\nA mast is 40 feet tall at most."
    kg_ingest_code_section(kg, **town, section_id="1", title="R-1 Cottage District", level=1, raw_content=text)
    found = kg_query_standards(kg, **town, district="R-1")
    assert [each.words.split()[0] for each in found.not_understood] == ["Benches", "A"]
    text += "\nThe building height is 35 feet."
    kg_ingest_code_section(kg, **town, section_id="1", title="R-1 Cottage District", level=1, raw_content=text)
    found = kg_query_standards(kg, **town, district="R-1", standard_type="height")
    assert [each.words.split()[0] for each in found.not_understood] == ["A", "Benches"]


def test_section_that_prohibits_uses_not_listed_is_cited(kg: KnowledgeGraph, closed: Any) -> None:
    found = kg_query_permissions(kg, **closed, district="R-1", use="pier")
    assert [(each.section_ref, each.words) for each in found.uses_not_listed] == [("1", CLOSED)]
    assert not any("not a prohibition" in note for note in found.notes)
    assert kg_query_permissions(kg, **closed, district="R-1", use="kiln").uses_not_listed == []
    found = kg_query_permissions(kg, **VALE, district="R-1", use="bank")
    assert found.uses_not_listed == []
    assert any("not a prohibition" in note for note in found.notes)


def test_prohibition_in_a_district_is_of_that_district(kg: KnowledgeGraph) -> None:
    town: Any = {"municipality": "Half Haven", "state": "UT"}
    for number, title, text in (
        ("1", "R-1 Cottage District", "Permitted uses:\n1. Cottages.\nUses not listed above are prohibited."),
        ("2", "R-2 Terrace District", "Permitted uses:\n1. Terraces."),
    ):
        kg_ingest_code_section(kg, **town, section_id=number, title=title, level=1, raw_content=text)
    cited = {
        code: [each.section_ref for each in kg_query_permissions(kg, **town, district=code, use=use).uses_not_listed]
        for code, use in (("R-1", "terrace"), ("R-2", "cottage"))
    }
    assert cited == {"R-1": ["1"], "R-2": []}


@pytest.mark.parametrize(
    ("sentence", "is_cited"),
    [
        (CLOSED, True),
        ("C. Uses of land not expressly provided for in Section 5.2 are hereby prohibited.", True),
        ("Any use not stated as permitted, and not listed as conditional, shall not be permitted.", True),
        ("Unlisted uses are prohibited.", True),
        ("All uses other than those listed shall be unlawful.", True),
        ("No building or land shall be used except for a purpose permitted in its district.", True),
        ("(a) Uses. In the R-1 District no building or land shall be used except for the following:", True),
        ("The following uses, and no others, are permitted:", True),
        ("The following uses are permitted:", False),
        ("A sign not listed in this article is prohibited.", False),
        ("Accessory uses not listed are prohibited.", False),
        ("A use that is not listed may be approved if it is alike.", False),
        ("No building shall be used until the work that a permit allowed is done.", False),
        ("Nothing here prohibits a use that is not listed.", False),
        ("A use that is listed is not prohibited.", False),
    ],
)
def test_only_words_that_prohibit_unlisted_uses_are_cited(sentence: str, is_cited: bool) -> None:
    assert prohibits_unlisted(sentence) is is_cited


def test_comparison_reports_the_coverage_of_each_district(kg: KnowledgeGraph) -> None:
    places = ["Hazel Vale, UT", "Ash Dale, UT"]
    found = compare_zoning(kg, places)
    uses, standards = found.coverage
    assert found.meta.completeness == "approximate"
    assert {uses.municipality, standards.municipality} == {"Hazel Vale, Utah"}  # a table has no text
    assert (uses.kind, uses.not_understood, uses.read) == ("use", {"R-2": 1}, ["2"])
    assert (standards.kind, standards.not_understood) == ("standard", {"R-2": 1})
    assert {"R-1", "C-1", "C-2"} <= set(uses.complete or ())
    assert [each.kind for each in compare_zoning(kg, places, use="cottage").coverage] == ["use"]
    assert [each.kind for each in compare_zoning(kg, places, standard_type="lot-area").coverage] == ["standard"]


def test_comparison_of_what_was_understood_is_complete(kg: KnowledgeGraph) -> None:
    towns = ("Whole Wold", "Whole Wick")
    for name in towns:
        town: Any = {"municipality": name, "state": "UT"}
        text = "Permitted uses:\n1. Cottages.\nThe minimum lot area is 7,000 square feet."
        kg_ingest_code_section(kg, **town, section_id="1", title="R-1 Cottage District", level=1, raw_content=text)
    found = compare_zoning(kg, [f"{name}, UT" for name in towns])
    assert found.meta.completeness == "complete"
    assert {each.kind: each.complete for each in found.coverage} == {"use": ["R-1"], "standard": ["R-1"]}


def test_reference_that_excepts_the_use_is_noted_and_not_followed(kg: KnowledgeGraph) -> None:
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
            assert any("excepts this use" in note for note in found.notes) == (code == "C-2")
        assert "Kilns" in {each.use for each in kg_query_permissions(kg, **town, district=code, use="kiln").permissions}
    theaters = compare_zoning(kg, ["Except Eyot, UT", "Ash Dale, UT"], use="theater").uses
    assert [row.places[0].by_reference for row in theaters] == [None]


def test_district_with_rules_about_all_districts_only_is_not_complete(kg: KnowledgeGraph) -> None:
    town: Any = {"municipality": "Missing Marsh", "state": "UT"}
    for number, title, text in (
        ("1", "Districts", "The districts are:\nR-1 Cottage District\nC-9 Corner District"),
        ("2", "R-1 Cottage District", "Permitted uses:\n1. Cottages."),
        ("3", "General", "Mills are prohibited in the R-1 and C-9 Districts."),
    ):
        kg_ingest_code_section(kg, **town, section_id=number, title=title, level=1, raw_content=text)
    assert kg_query_permissions(kg, **town, district="R-1").meta.completeness == "complete"
    for found in (kg_query_permissions(kg, **town, district="C-9"), kg_query_standards(kg, **town, district="C-9")):
        assert found.meta.completeness == "approximate"
        assert "C-9" in (found.incomplete or "")


def test_unknown_standard_type_names_what_was_not_understood(kg: KnowledgeGraph) -> None:
    kg_ingest_dimensional_standards(
        kg, **VALE, standards=[{"district": "R-1", "standard_type": "height", "value": "9", "unit": "feet"}]
    )
    for asked in ("bench height", "moat"):
        with pytest.raises(NotFoundError, match=r"A sentence with measures about R-2, in 2, was not understood"):
            kg_query_standards(kg, **VALE, district="R-2", standard_type=asked)


def test_sentence_was_understood_for_the_districts_of_its_rules_only(kg: KnowledgeGraph) -> None:
    town: Any = {"municipality": "Served Slade", "state": "UT"}
    for number, title, text in (
        ("1", "R-1 Cottage District", "Permitted uses:\n1. Cottages."),
        ("2", "HM Harbor Market District", "Permitted uses:\n1. Quays."),
        ("3", "Earth", "Digging of more than 9 yards is by leave. It is prohibited in the Harbor Market District."),
    ):
        kg_ingest_code_section(kg, **town, section_id=number, title=title, level=1, raw_content=text)
    assert kg_query_permissions(kg, **town, district="R-1").meta.completeness == "complete"
    found = kg_query_permissions(kg, **town, district="HM")
    assert [each.section_ref for each in found.not_understood] == ["3"]


def test_sentence_names_the_districts_that_it_is_about() -> None:
    codes = {"R-1": "Cottage District", "B-1": "Corner District", "HM": "Harbor Market District"}
    known = {
        code: Named(Choice(NamedNode(f"urn:{code}"), code, (code, name)), code, name) for code, name in codes.items()
    }
    find = compile_finder(known)
    assert find("Mills are prohibited in the R-1 and B-1 Districts.", is_inside=True) == {"R-1", "B-1"}
    assert find("Mills are prohibited in the R-1 District and the Harbor Market District.", is_inside=True) == {
        "R-1",
        "HM",
    }
    assert find("Any use permitted in the R-1 District is allowed in the B-1 District.", is_inside=True) == {"B-1"}
    assert find("Where a lot abuts the R-1 District, a yard is 9 feet.", is_inside=True) == set()
    assert find("Where a lot abuts the R-1 District, a yard is 9 feet.") == {"R-1"}


def test_sentence_with_a_subject_that_was_not_read_was_not_understood() -> None:
    names = {"quay", "inn"}
    for sentence, others in (
        ("Quays and inns are permitted.", False),
        ("(2) In the R-1 District, quays and sheds are permitted.", True),
        ("They are permitted.", False),
        ("In addition, the following are permitted: quays and inns.", False),
        ("Quays are permitted, including piers.", True),
    ):
        assert enumerates_others(sentence, names) is others


def test_enumeration_with_other_uses_was_not_understood(kg: KnowledgeGraph) -> None:
    town: Any = {"municipality": "Include Isle", "state": "UT"}
    said = [{"district": "R-1", "use": "Huts", "permission": "P"}]
    kg_ingest_use_permissions(kg, **town, permissions=said)
    text = "Permitted uses:\n1. Huts, including sheds.\n2. Inns.\n3. Piers."
    kg_ingest_code_section(kg, **town, section_id="1", title="R-1 Cottage District", level=1, raw_content=text)
    found = kg_query_permissions(kg, **town, district="R-1")
    told = " ".join(each.use + " ".join(each.conditions) for each in found.permissions)
    assert "sheds" in told or [each.section_ref for each in found.not_understood] == ["1"]


def test_item_between_items_that_were_understood_is_found_whatever_its_words() -> None:
    text = (
        "The following need a special permit of the Board:\ni. Kilns;\nii. Mills;\n"
        "iii. Any use that covers more than 15 percent of a lot.\nA. Lot area. One acre.\n"
    )
    spans = [(text.index(word), text.index(word) + 5) for word in ("Kilns", "Mills")]
    assert list(find_unread(text, spans, "permission")) == [
        ("iii. Any use that covers more than 15 percent of a lot.\n", True)
    ]


def test_accessory_uses_in_a_line_are_found() -> None:
    assert list(find_unread("Accessory uses: sheds and pools.", [], "permission")) == [
        ("Accessory uses: sheds and pools.", False)
    ]


def test_comparison_says_that_a_value_applies_in_a_case_only(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, models_dir=tmp_path / "none", query_workers=1, _env_file=None)  # type: ignore[call-arg]
    texts = {
        "Ash Mere": "The maximum building height is 50 feet.",
        "Elm Mere": "Where a lot abuts a park, the height of buildings shall not exceed 35 feet.",
    }
    with KnowledgeGraph.open(tmp_path, settings) as opened:
        opened.receive = ingest
        for name, text in texts.items():
            kg_ingest_code_section(
                opened, name, "UT", section_id="1", title="R-1 Cottage District", level="section", raw_content=text
            )
        found = compare_zoning(opened, ["Ash Mere, UT", "Elm Mere, UT"], standard_type="height")
    assert [(each.lowest, each.lowest_in_case, each.highest_in_case) for each in found.standards[0].places] == [
        (50.0, None, None),
        (35.0, True, True),
    ]
