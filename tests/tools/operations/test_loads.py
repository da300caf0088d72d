"""Loads are submitted, followed and cancelled by tools, as a server runs them."""

from __future__ import annotations

import pytest

from kg.access.actors import EVERYONE, HOLDER
from kg.errors import InvalidInputError, NotFoundError, StoreError
from kg.knowledge_graph import PROGRESS, SENDER, KnowledgeGraph
from kg.server.queued_loads import running_loads
from kg.tools.operations.loads import cancel_load, load_status, submit_load
from tests.cli.running import CLIMATE


def test_submitted_load_runs_and_its_counts_are_reported(receiving: KnowledgeGraph) -> None:
    seen: list[str] = []
    token = PROGRESS.set(lambda done, total, doing: seen.append(doing))
    try:
        with running_loads(receiving, ()):
            [load] = submit_load(receiving, "climate", [str(CLIMATE)]).loads
            assert (load.number, load.state, load.source) == (1, "queued", "climate")
            while load.state in ("queued", "running"):
                [load] = load_status(receiving, number=1, wait_s=20).loads
    finally:
        PROGRESS.reset(token)
    assert load.state == "done", load.error
    assert load.counts is not None
    assert (load.counts["loaded"] > 0, load.counts["rejected"]) == (True, 0)
    assert seen


def test_load_of_a_missing_file_fails_with_the_reason_for_the_administrator_alone(receiving: KnowledgeGraph) -> None:
    with running_loads(receiving, ()):
        submit_load(receiving, "climate", ["/no/such/file.csv"])
        [read] = load_status(receiving, number=1, wait_s=20).loads
        token = SENDER.set(HOLDER)
        try:
            [load] = load_status(receiving, number=1).loads
        finally:
            SENDER.reset(token)
    assert (read.state, load.state, load.locations) == ("failed", "failed", ["/no/such/file.csv"])
    assert load.error is not None
    assert "/no/such/file.csv" in load.error
    assert (read.locations, read.submitted_by) == (None, EVERYONE.name)
    assert read.error is not None
    assert "/no/such" not in read.error


def test_loads_come_in_pages(receiving: KnowledgeGraph) -> None:
    with running_loads(receiving, ()):
        for number in range(3):
            submit_load(receiving, "climate", [f"/no/such/{number}.csv"])
        first = load_status(receiving, limit=2)
        assert first.next_offset == 2
        rest = load_status(receiving, limit=2, offset=2)
    assert [each.number for each in (*first.loads, *rest.loads)] == [3, 2, 1]
    assert rest.next_offset is None


@pytest.mark.parametrize(("source", "options"), [("film", {}), ("files", {"chamber": "x"})])
def test_unknown_source_or_option_is_not_queued(
    receiving: KnowledgeGraph, source: str, options: dict[str, str]
) -> None:
    with running_loads(receiving, ()):
        with pytest.raises(InvalidInputError):
            submit_load(receiving, source, ["x"], options=options)
        assert load_status(receiving).loads == []
        with pytest.raises(NotFoundError):
            cancel_load(receiving, 1)


def test_without_a_server_there_is_no_queue(receiving: KnowledgeGraph) -> None:
    with pytest.raises(StoreError):
        load_status(receiving)
