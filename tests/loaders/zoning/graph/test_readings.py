"""What agents read: quotations are checked, claims are unconfirmed, and two readers that agree confirm one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.errors import RecordError
from kg.knowledge_graph import SENDER, KnowledgeGraph
from kg.tools.zoning.ingest import (
    kg_ingest_code_section,
    kg_ingest_definitions,
    kg_ingest_dimensional_standards,
    kg_ingest_use_permissions,
)
from kg.tools.zoning.provisions import kg_query_definition, kg_query_permissions, kg_query_standards
from kg.tools.zoning.reading_tasks import zoning_reading_tasks
from loaders.zoning.extraction.section_scope import Scope
from loaders.zoning.graph.authorities import Authorities
from loaders.zoning.graph.readings import Checks
from loaders.zoning.graph.stored_codes import Code
from loaders.zoning.readers.code_model import Section
from tests.folders import open_graph

TOWN: Any = {"municipality": "Read Ripley", "state": "UT"}
PERMITTED = "On each lot, one smithy is permitted as of right, and a kiln after leave of the reeve."
HIGH = "No roof of a smithy may rise to more than 31 feet."
TEXT = f"{PERMITTED}\n{HIGH}\nA smithy means a shop where iron is worked."
SMITHY = {"district": "R-1", "use": "smithy", "permission": "permitted", "section_ref": "1", "quotations": [PERMITTED]}


@pytest.fixture
def kg(tmp_path: Path) -> Iterator[KnowledgeGraph]:
    with open_graph(tmp_path) as opened:
        for number, title, text in (
            ("1", "R-1 Cottage District", TEXT),
            ("2", "R-2 Terrace District", "Permitted uses:\n1. Terraces."),
        ):
            kg_ingest_code_section(opened, **TOWN, section_id=number, title=title, level=1, raw_content=text)
        yield opened


def send(kg: KnowledgeGraph, *entries: dict[str, Any], sender: str = "ann") -> Any:
    token = SENDER.set(replace(SENDER.get(), name=sender))
    try:
        return kg_ingest_use_permissions(kg, **TOWN, permissions=list(entries))
    finally:
        SENDER.reset(token)


def told(kg: KnowledgeGraph, use: str = "smithy") -> tuple[list[str], list[str]]:
    """The bases of the permissions that are law, and of those that are not."""
    found = kg_query_permissions(kg, **TOWN, district="R-1", use=use)
    return [each.evidence.basis for each in found.permissions], [each.evidence.basis for each in found.unsure]


def test_a_quoted_claim_is_unconfirmed_until_another_reader_agrees(kg: KnowledgeGraph) -> None:
    assert send(kg, SMITHY).stored == 1
    assert told(kg) == ([], ["read by agent/ann, unconfirmed"])
    assert send(kg, SMITHY).stored == 1
    assert told(kg) == ([], ["read by agent/ann, unconfirmed"])  # twice the same reader
    assert send(kg, SMITHY, sender="bob").stored == 1
    assert told(kg) == (["read by agent/ann, agent/bob"], [])
    [permission] = kg_query_permissions(kg, **TOWN, district="R-1", use="smithy").permissions
    assert [span.text for span in permission.evidence.spans or ()] == [PERMITTED]
    assert permission.section_ref == "1"


@pytest.mark.parametrize("conditions", [[], ["after leave of the reeve"]])
def test_a_claim_has_the_conditions_of_its_entry(kg: KnowledgeGraph, conditions: list[str]) -> None:
    assert send(kg, {**SMITHY, "use": "kiln", "conditions": conditions}).stored == 1
    [unsure] = kg_query_permissions(kg, **TOWN, district="R-1", use="kiln").unsure
    assert unsure.conditions == conditions


def test_a_misreading_of_true_words_does_not_become_law(kg: KnowledgeGraph) -> None:
    wrong = {**SMITHY, "use": "kiln"}  # the sentence permits it after leave only
    assert send(kg, wrong).stored == 1
    assert told(kg, "kiln") == ([], ["read by agent/ann, unconfirmed"])
    right = {**SMITHY, "use": "kiln", "permission": "after leave of the reeve"}
    assert send(kg, right, sender="bob").stored == 1
    assert told(kg, "kiln")[0] == []  # readers who differ confirm nothing


@pytest.mark.parametrize(
    "wrong",
    [
        {"quotations": ["On each lot, one tavern is permitted."]},
        {"quotations": []},
        {"quotations": "On each lot"},
        {"use": "tavern"},
        {"permission": "prohibited"},
        {"conditions": ["with leave of the crown"]},
        {"district": "R-2"},
        {"district": "R-9"},
        {"section_ref": "7"},
        {"section_ref": None},
        {"quotations": ["a"]},
    ],
)
def test_an_invention_is_refused(kg: KnowledgeGraph, wrong: dict[str, Any]) -> None:
    done = send(kg, {**SMITHY, **wrong}, {**SMITHY})
    assert [(each.entry, each.outcome) for each in done.entries] == [(1, "rejected"), (2, "stored")]
    assert done.entries[0].reason


def test_a_reading_ends_when_the_text_changes(kg: KnowledgeGraph) -> None:
    send(kg, SMITHY)
    kg_ingest_code_section(
        kg, **TOWN, section_id="1", title="R-1 Cottage District", level=1, raw_content=f"{TEXT} It is loud."
    )
    assert told(kg) == ([], [])


def test_standards_and_definitions_are_read_too(kg: KnowledgeGraph) -> None:
    standard = {
        "district": "R-1", "standard_type": "maximum building height", "value": "31", "unit": "feet",
        "section_ref": "1", "quotations": [HIGH],
    }  # fmt: skip
    done = kg_ingest_dimensional_standards(kg, **TOWN, standards=[standard, {**standard, "value": "13"}])
    assert [each.outcome for each in done.entries] == ["rejected", "stored"]
    [found] = kg_query_standards(kg, **TOWN, district="R-1", standard_type="height").unsure
    assert (found.value, found.unit, found.evidence.basis) == (31, "FT", "read by agent/local, unconfirmed")
    definition = {
        "term": "smithy", "definition_text": "a shop where iron is worked", "section_ref": "1",
        "quotations": ["A smithy means a shop where iron is worked."],
    }  # fmt: skip
    assert kg_ingest_definitions(kg, **TOWN, definitions=[definition]).stored == 1
    [read] = kg_query_definition(kg, **TOWN, term="smithy").unsure
    assert (read.term, read.evidence.basis) == ("smithy", "read by agent/local, unconfirmed")


def test_tasks_hand_out_the_sections_of_a_district_with_the_form(kg: KnowledgeGraph) -> None:
    found = zoning_reading_tasks(kg, **TOWN, district="R-1", kind="uses")
    assert (found.tasks[0].section_ref, found.tasks[0].text, found.tool) == ("1", TEXT, "kg_ingest_use_permissions")
    assert found.tasks[0].districts == ["R-1"]
    send(kg, SMITHY)
    assert zoning_reading_tasks(kg, **TOWN, district="R-1", kind="uses").tasks[0].known == 0  # a claim is not law yet
    assert "2" not in {each.section_ref for each in found.tasks}
    assert [each.section_ref for each in zoning_reading_tasks(kg, **TOWN, section_id="2").tasks] == ["2"]


def test_tasks_about_definitions_begin_with_the_sections_that_have_them(kg: KnowledgeGraph) -> None:
    for number, title, text in (("3", "Definitions", "A kiln is an oven."), ("4", "Ovens", "See the definitions.")):
        kg_ingest_code_section(kg, **TOWN, section_id=number, title=title, level=1, raw_content=text)
    assert zoning_reading_tasks(kg, **TOWN, kind="definitions").tasks[0].section_ref == "3"


SECTION = Section("1", "1", "R-1 Cottage District", "section", 1, None, 0, TEXT)
SCOPES = (Scope("districts", ("R-1",), 0, len(TEXT)),)


@given(st.text(max_size=60), st.integers(-5, len(TEXT) + 5), st.booleans())
def test_spans_of_a_claim_are_its_quotations(words: str, start: int, has_start: bool) -> None:
    quotation: Any = {"text": words, "start": start} if has_start else words
    entry = {**SMITHY, "quotations": [PERMITTED, quotation]}
    known: Any = {"R-1": type("District", (), {"name": "Cottage"})}
    try:
        checks = Checks(Code.empty("us-ut-read-ripley"), known, {"1": SCOPES}, Authorities("Read Ripley", "UT"))
        claim = checks.check("permission", entry, SECTION)
    except RecordError:
        assert words not in TEXT or len(words) < 30
        return
    quoted = [TEXT[first:last] for first, last in claim.spans]
    assert quoted[0] == PERMITTED
    assert quoted[1:] in ([], [words])
