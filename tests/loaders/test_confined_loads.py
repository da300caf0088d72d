"""Tests of loads in a confined process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kg.errors import InvalidInputError, QueryMemoryError, QueryTimeoutError
from kg.knowledge_graph import KnowledgeGraph
from loaders import confined_loads
from loaders.confined_loads import ConfinedLoads
from loaders.zoning.graph.ingest import ingest
from tests.loaders.conftest import content

pytestmark = pytest.mark.long

TEXT = "(a) A kiln is subject to section 4.2. Permitted uses in the M-1 District: kilns; forges; wood yards."


@pytest.fixture
def loads(kg: KnowledgeGraph) -> Iterator[ConfinedLoads]:
    confined = ConfinedLoads(kg)
    yield confined
    confined.close()


def _section(text: str) -> dict[str, Any]:
    entry = {"section_id": "4.1", "title": "Kilns", "level": "section", "raw_content": text}
    said = {"tool": "kg_ingest_code_section", "municipality": "Upper Feign", "state": "CT", "kind": "section"}
    return {**said, "entries": [entry], "sent_by": "a test"}


def test_a_confined_load_stores_what_a_load_stores(
    loads: ConfinedLoads, open_graph: Any, kg: KnowledgeGraph, tmp_path: Path
) -> None:
    page = tmp_path / "kilns.md"
    page.write_text("# Kilns\n\nThe Feign Kiln is maintained by Ada Brick.\n")
    other: KnowledgeGraph = open_graph("other")
    told = loads.receive(kg, **_section(TEXT)), ingest(other, **_section(TEXT))
    assert told[0].keys() == told[1].keys()
    assert told[0]["entries"] == told[1]["entries"]
    heard: list[str] = []
    report = loads.load(kg, "files", [str(page)], on_progress=lambda done, total, doing: heard.append(doing))
    assert (report.loaded, report.rejected) == (1, 0)
    assert heard
    found = {quad for quad in content(kg.store) if "/files/" not in str(quad.graph_name)}
    assert {quad for quad in content(other.store) if "/zoning/" in str(quad.graph_name)} <= found
    with pytest.raises(InvalidInputError, match="Available"):
        loads.load(kg, "kilns", [])


def test_a_load_that_exceeds_a_limit_is_stopped_and_the_next_one_runs(
    loads: ConfinedLoads, kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(confined_loads, "SENT_S", 0.01)
        with pytest.raises(QueryTimeoutError, match=r"0\.01 s"):
            loads.receive(kg, **_section(TEXT))
    assert not content(kg.store)
    with monkeypatch.context() as patch:
        patch.setattr(confined_loads, "MEMORY_BYTES", 16 << 20)
        with pytest.raises(QueryMemoryError, match="16 MiB"):
            loads.receive(kg, **_section(TEXT))
    assert kg.unindexed.is_set()
    assert loads.receive(kg, **_section(TEXT + " Kilns are round."))["entries"][0]["outcome"] == "stored"
