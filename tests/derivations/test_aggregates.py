"""Aggregates are kept in the state of derivations between starts, and counted again where that cannot be believed."""

from __future__ import annotations

import json
import multiprocessing
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import NamedNode, Quad

from kg.derivations.aggregates import DEFINITIONS
from kg.derivations.state import Known, State
from kg.integrity.compaction import compact
from kg.knowledge_graph import KnowledgeGraph
from kg.tools import derivations
from kg.tools.schema.schema_measurement import SchemaCounts, get_schema
from kg.tools.shacl.background_validation import DatasetChecks
from kg.tools.shacl.validation_state import LastCheck
from kg.vocabulary import KG, RDF, mint
from tests.folders import open_graph

GRAPH = mint("graph", "src", "climate", "x")
NODES = [NamedNode(f"urn:node{number}") for number in range(3)]
NAMES = [each.name for each in DEFINITIONS]


@pytest.fixture
def kg(tmp_path: Path) -> Iterator[KnowledgeGraph]:
    with open_graph(tmp_path / "data") as opened:
        write(opened, 1)
        yield opened


def write(kg: KnowledgeGraph, number: int) -> None:
    kg.store.commit({GRAPH: [Quad(node, RDF.type, KG.PolicyDocument, GRAPH) for node in NODES[:number]]})


def count_due(kg: KnowledgeGraph) -> dict[str, dict[str, int]]:
    return {name: dict(reasons) for name, reasons in derivations.count_due(kg).items() if name in NAMES}


def derive(kg: KnowledgeGraph, *, full: bool = False) -> None:
    for name in NAMES:
        kg.memory.drop("measurements")  # as in another process
        derivations.derive(kg, name, full=full, on_progress=lambda *_: None)


def alter(kg: KnowledgeGraph, change: Callable[[Known], Known]) -> None:
    with State(kg.settings.data_dir) as state:
        for name in NAMES:
            known = state.load(name)
            assert known is not None
            state.save(name, change(known))


def test_they_are_due_until_they_are_derived_and_after_each_commit(kg: KnowledgeGraph) -> None:
    assert count_due(kg) == {name: {"never derived": 1} for name in NAMES}
    derive(kg)
    assert count_due(kg) == {name: {} for name in NAMES}
    assert get_schema(kg).generation == kg.store.statistics().generation
    write(kg, 2)
    assert count_due(kg) == {name: {"changed": 1} for name in NAMES}
    derive(kg)
    assert count_due(kg) == {name: {} for name in NAMES}
    assert get_schema(kg).classes[KG.PolicyDocument.value].entities == 2
    kg.settings.directory.derivations.write_bytes(b"no database")
    assert SchemaCounts(kg).load() is None
    derive(kg)


def test_doctor_finds_counts_that_are_wrong_and_computes_them(kg: KnowledgeGraph) -> None:
    derive(kg)
    assert not any(derivations.find_differing(kg, 1_000)[name] for name in NAMES)

    def falsify(known: Known) -> Known:
        content = json.loads(known.compared)
        if isinstance(content, dict):
            content["properties"][RDF.type.value]["triples"] += 1
        else:
            content[0][0][1] = {"kgs:Other": 1}
        return replace(known, compared=json.dumps(content).encode())

    alter(kg, falsify)
    found = derivations.find_differing(kg, 1_000)
    assert found["schema"] == [RDF.type.value]
    assert len(found["dataset-check"]) == 1
    derive(kg, full=True)
    assert not any(derivations.find_differing(kg, 1_000)[name] for name in NAMES)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": ""}, "new version"),
        ({"latest": 1, "committed": "2020-01-01T00:00:00Z"}, "another state of the store"),
        ({"generation": 7, "latest": 7, "committed": "2020-01-01T00:00:00Z"}, "another state of the store"),
        ({"compared": b"{"}, None),
        ({"compared": b"3"}, None),
        ({"compared": b'{"classes": 3}'}, None),
        ({"compared": b'[[["no term", {}, null, 0]], []]'}, None),
    ],
)
def test_a_value_that_is_not_of_this_store_is_not_believed(
    kg: KnowledgeGraph, change: dict[str, Any], reason: str | None
) -> None:
    derive(kg)
    alter(kg, lambda known: replace(known, **change))
    if reason is not None:
        assert count_due(kg) == {name: {reason: 1} for name in NAMES}
    assert (SchemaCounts(kg).load(), LastCheck(kg).load()) == (None, None)
    kg.memory.drop("measurements")
    assert get_schema(kg).generation == kg.store.statistics().generation
    assert DatasetChecks(kg).check().checked.startswith("the whole store")
    assert count_due(kg) == {name: {} for name in NAMES}


def test_a_state_in_the_format_of_another_version_costs_one_more_count(kg: KnowledgeGraph) -> None:
    derive(kg)
    with closing(sqlite3.connect(kg.settings.directory.derivations)) as database:
        database.executescript("ALTER TABLE derivations ADD COLUMN later TEXT; PRAGMA user_version = 99")
    assert count_due(kg) == {name: {"never derived": 1} for name in NAMES}
    derive(kg)
    assert count_due(kg) == {name: {} for name in NAMES}


def hold(path: str, ready: Event, rows: int) -> None:
    """Write rows in a transaction that is never committed."""
    with State(Path(path)) as state, state.writing():
        state.mark_due("mentions", (NamedNode(f"urn:graph{number}") for number in range(rows)), "new")
        ready.set()
        time.sleep(600)


def test_reading_does_not_wait_for_a_process_that_writes(kg: KnowledgeGraph) -> None:
    derive(kg)
    processes = multiprocessing.get_context("spawn")
    ready = processes.Event()
    writer = processes.Process(target=hold, args=(str(kg.settings.data_dir), ready, 100_000))
    writer.start()
    try:
        assert ready.wait(60)
        assert count_due(kg) == {name: {} for name in NAMES}
        assert SchemaCounts(kg).load() is not None
    finally:
        writer.kill()  # the transaction is rolled back by who opens the file next
        writer.join()
    assert count_due(kg) == {name: {} for name in NAMES}
    write(kg, 3)
    derive(kg)
    assert count_due(kg) == {name: {} for name in NAMES}


def test_where_nothing_can_be_written_everything_is_counted(
    kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect

    def refuse(path: object, **options: object) -> sqlite3.Connection:
        return connect("/dev/null/none" if isinstance(path, Path) else path, **options)  # type: ignore[call-overload, no-any-return]

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", refuse)
        assert count_due(kg) == {name: {"never derived": 1} for name in NAMES}
        derive(kg)
        assert get_schema(kg).generation == kg.store.statistics().generation
    assert count_due(kg) == {name: {"never derived": 1} for name in NAMES}


def test_a_compaction_removes_what_they_quote(tmp_path: Path) -> None:
    with open_graph(tmp_path / "data") as kg:
        write(kg, 1)
        derive(kg)
        file = kg.settings.directory.derivations
        assert NODES[0].value.encode() in file.read_bytes()
    compact(tmp_path / "data")
    assert NODES[0].value.encode() not in file.read_bytes()
