"""Agents fill the uses of a code through its reading tasks, over HTTP: what they invent or misread is no law."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from kg.knowledge_graph import KnowledgeGraph
from kg.tools.zoning.ingest import kg_ingest_code_section
from tests.folders import open_graph
from tests.tools.zoning.agent_readers import connect, fill, invent, misread, read_honestly

TOWN: Any = {"municipality": "Hearth Hollow", "state": "UT"}
SECTIONS = {
    "3": (
        "Districts",
        "The town is divided into these districts:\nC1-90 Wide Cottage District\nC1-40 Narrow Cottage District\n"
        "C2H Double Cottage District",
        None,
    ),
    "5": ("Cottage Districts: Detached One and Two-Hearth", "", None),
    "5.02": (
        "Permitted uses",
        "In Detached One and Two-Hearth Cottage Districts, buildings and land shall be used by right for only the main "
        "and accessory uses set forth below.\n(a) Main Uses.\n(1) In C1-90 and C1-40 Districts: one-hearth cottages.\n"
        "(2) In a C2H District: two-hearth cottages\n(b) Accessory Uses.\n(1) Ovens as regulated in Section 5.04.\n"
        "(2) Duck ponds.\n(3) Fairground wheels are prohibited by Chapter 9.",
        "5",
    ),
}


@pytest.fixture
def kg(tmp_path: Path) -> Iterator[KnowledgeGraph]:
    with open_graph(tmp_path) as opened:
        for key, (title, text, parent) in SECTIONS.items():
            kg_ingest_code_section(
                opened, **TOWN, section_id=key, title=title, level=1, raw_content=text, parent_id=parent
            )
        yield opened


@pytest.mark.long
def test_inventions_are_refused_and_misreadings_stay_unconfirmed(kg: KnowledgeGraph) -> None:
    async def run() -> None:
        async with connect(kg) as clients:

            async def told(use: str) -> tuple[list[tuple[str, str]], set[str]]:
                """The level and basis of what is law about a use, and the levels of what is not."""
                async with clients("ann") as client:
                    asked = {**TOWN, "use": use, "district": "C1-90"}
                    found = (await client.call_tool("kg_query_permissions", asked)).structured_content or {}
                law = [(each["as_recorded"], each["evidence"]["basis"]) for each in found["permissions"]]
                return law, {each["as_recorded"] for each in found.get("unsure", ())}

            async def send(name: str, reader: Any) -> set[str]:
                async with clients(name) as client:
                    return {*await fill(client, TOWN, reader)}

            assert await send("eve", invent) == {"rejected"}
            assert await send("mal", misread) == {"stored"}
            assert await told("duck pond") == ([], {"prohibited"})
            assert await send("ann", read_honestly) == {"stored"}
            assert await told("duck pond") == ([], {"prohibited", "used by right"})  # two that differ confirm nothing
            assert await send("bob", read_honestly) == {"stored"}
            assert await told("duck pond") == ([("used by right", "read by agent/ann, agent/bob")], {"prohibited"})

    anyio.run(run)
