"""Tests of loads in a confined process."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kg.connectors.sparql import RemoteSparql
from kg.errors import (
    InvalidInputError,
    ModelError,
    NotFoundError,
    QueryLimitError,
    QueryMemoryError,
    QueryTimeoutError,
    UpstreamError,
)
from kg.knowledge_graph import KnowledgeGraph
from loaders import confined_loads
from loaders.confined_loads import ConfinedLoads, build_error, describe_error
from loaders.files.graph.watched_folder import WatchedFolder
from loaders.sources import load_changed
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
    told = loads(kg, "receive", **_section(TEXT)), ingest(other, **_section(TEXT))
    assert told[0].keys() == told[1].keys()
    assert told[0]["entries"] == told[1]["entries"]
    heard: list[str] = []
    report = loads(kg, "load", "files", [str(page)], on_progress=lambda done, total, doing: heard.append(doing))
    assert (report.loaded, report.rejected) == (1, 0)
    assert heard
    found = {quad for quad in content(kg.store) if "/files/" not in str(quad.graph_name)}
    assert {quad for quad in content(other.store) if "/zoning/" in str(quad.graph_name)} <= found
    with pytest.raises(InvalidInputError, match="Available"):
        loads(kg, "load", "kilns", [])


def test_a_call_that_waits_for_another_starts_no_process_once_the_server_stops(kg: KnowledgeGraph) -> None:
    loads = ConfinedLoads(kg)
    refused: list[BaseException] = []

    def wait() -> None:
        try:
            loads(kg, "receive", **_section(TEXT))
        except QueryLimitError as error:
            refused.append(error)

    with loads._loads._lock:
        threads = [threading.Thread(target=wait), threading.Thread(target=loads.close)]
        for thread in threads:
            thread.start()
        while not loads._loads._is_closed:
            time.sleep(0.01)
    for thread in threads:
        thread.join(60)
    assert (len(refused), loads._loads._child) == (1, None)


def test_a_load_that_exceeds_a_limit_is_stopped_and_the_next_one_runs(
    loads: ConfinedLoads, kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(confined_loads, "SENT_S", 0.01)
        with pytest.raises(QueryTimeoutError, match=r"0\.01 s"):
            loads(kg, "receive", **_section(TEXT))
    assert not content(kg.store)
    with monkeypatch.context() as patch:
        patch.setattr(confined_loads, "MEMORY_BYTES", 16 << 20)
        with pytest.raises(QueryMemoryError, match="16 MiB"):
            loads(kg, "receive", **_section(TEXT))
    assert kg.unindexed.is_set()
    assert loads(kg, "receive", **_section(TEXT + " Kilns are round."))["entries"][0]["outcome"] == "stored"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory", "kg"),
        RuntimeError("can't start new thread"),
        ImportError("libm.so: failed to map segment from shared object"),
    ],
)
def test_every_way_to_run_out_of_memory_is_that_error(error: Exception) -> None:
    assert type(build_error(*describe_error(error))) is QueryMemoryError


def test_a_watched_folder_is_read_there_as_in_this_process(
    loads: ConfinedLoads, open_graph: Any, kg: KnowledgeGraph, tmp_path: Path
) -> None:
    folder = tmp_path / "kilns"
    folder.mkdir()
    other: KnowledgeGraph = open_graph("other")
    kg.confined = loads
    watched = [
        WatchedFolder(graph, folder, None, load_part)
        for graph, load_part in (
            (kg, lambda graph, *given, **options: loads(graph, "load_changed", *given, **options)),
            (other, load_changed),
        )
    ]
    states: list[dict[str, str]] = [
        {"kilns.md": "# Kilns\n\nThe Feign Kiln is maintained by Ada Brick.\n", "forge.md": "# Forges\n\nForges.\n"},
        {"forge.md": "# Forges\n\nForges are hot.\n", "copy.md": "# Forges\n\nForges are hot.\n"},
    ]
    for texts in states:
        for path in folder.iterdir():
            path.unlink()
        for name, text in texts.items():
            (folder / name).write_text(text)
        for each in watched:
            each.load(each.find_changes())
            assert each.stored is not None
        assert content(kg.store) == content(other.store)
        assert watched[0].stored == watched[1].stored
    for each in watched:
        for part in each.find_unextracted():
            assert each.extract(part)
    assert content(kg.store) == content(other.store)


def test_other_work_on_foreign_text_runs_there_too(loads: ConfinedLoads, kg: KnowledgeGraph, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="embedding"):
        loads(kg, "align")
    with pytest.raises(NotFoundError, match="no sections"):
        loads(kg, "extract", "us-ct-nowhere", begin=list, end=list, mode="rules")
    loads(kg, "receive", **_section(TEXT))
    assert loads(kg, "extract", "us-ct-upper-feign", begin=list, end=list, mode="rules").sections == 1

    def ask(query: str, stale: bool) -> Any:
        raise UpstreamError("the server is gone")

    with pytest.raises(UpstreamError, match="is gone"):
        loads(kg, "store_remote", RemoteSparql("https://example.org", ask), "wikidata", ["Q1"], most=10)
