"""Conditions of uses that are only in the words that a permission rests on."""

from __future__ import annotations

from typing import Any

import pytest

from kg.knowledge_graph import KnowledgeGraph
from kg.tools.zoning.compare import compare_zoning
from kg.tools.zoning.ingest import kg_ingest_code_section
from kg.tools.zoning.provisions import kg_query_permissions
from kg.tools.zoning.use_conditions import add_conditions


@pytest.mark.parametrize(
    ("use", "text", "recorded", "conditions"),
    [
        ("Offices", "Offices and canteens are permitted as accessory uses.", (), ["as accessory uses"]),
        ("inns", "The reeve may approve inns of not more than 6 rooms, and mills.", (), ["not more than 6 rooms"]),
        ("mills", "The reeve may approve inns of not more than 6 rooms, and mills.", (), []),
        ("Kilns", "Kilns on a lot of 2.5 acres are allowed.", (), ["on a lot of 2.5 acres"]),
        ("Kilns", "Kilns are allowed, if of brick.", ("if of brick",), ["if of brick"]),
        ("Kilns", "Kilns are allowed if cold and if of brick.", ("if cold",), ["if cold and if of brick"]),
        ("Barns", "Barns are permitted, and sheds are permitted if of stone.", (), []),
        ("Barns", "Barns are permitted in the R-1 District.", (), []),
        ("Barns", "Sheds of not more than 9 feet. Barns.", (), []),
        ("Barn with a loft", "Barn with a loft.", (), []),
        ("barns", "New barns and sheds are prohibited.", (), ["New barns"]),
        ("sheds", "New barns and sheds are prohibited.", (), []),
        ("Sties", "Pigs are allowed if tethered.", (), []),
    ],
)  # fmt: skip
def test_conditions_next_to_a_use_or_of_its_sentence_are_added(
    use: str, text: str, recorded: tuple[str, ...], conditions: list[str]
) -> None:
    assert add_conditions(use, [text], recorded) == conditions


def test_answers_have_the_conditions_of_their_evidence(receiving: KnowledgeGraph) -> None:
    for name in ("Accessory Ash", "Accessory Elm"):
        town: Any = {"municipality": name, "state": "UT"}
        text = "Offices are permitted in the R-1 District as accessory uses."
        kg_ingest_code_section(
            receiving, **town, section_id="1", title="R-1 Cottage District", level=1, raw_content=text
        )
    [found] = kg_query_permissions(receiving, **town, district="R-1", use="office").permissions
    assert found.conditions == ["as accessory uses"]
    [row] = compare_zoning(receiving, ["Accessory Ash, UT", "Accessory Elm, UT"], use="office").uses
    assert [cell.with_conditions for cell in row.places] == [["R-1"], ["R-1"]]
