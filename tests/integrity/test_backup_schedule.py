"""A server adds points by itself: on time, once after a restart, again after a failure, and health has it all."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kg.errors import IndexUnavailableError, InvalidInputError
from kg.integrity import backup_schedule
from kg.integrity.backup_folder import BackupFolder
from kg.integrity.backup_schedule import BackupSchedule
from kg.knowledge_graph import KnowledgeGraph
from kg.search.index_client import EdgeIndex
from kg.settings import parse_period
from kg.tools.catalog.health import health
from tests.folders import without_models
from tests.waiting import until


@pytest.fixture
def kg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KnowledgeGraph]:
    def refuse(*_: object) -> None:
        raise IndexUnavailableError("not in this test")

    monkeypatch.setattr(EdgeIndex, "copy", refuse)
    data = tmp_path / "data"
    with KnowledgeGraph.open(data, without_models(data, query_workers=1, backup_to=tmp_path / "backups")) as opened:
        yield opened


@pytest.mark.long
def test_the_first_point_is_written_at_once_and_the_next_one_after_its_time(kg: KnowledgeGraph) -> None:
    schedule = BackupSchedule(kg)
    kg.backup_state = lambda: schedule.state
    with schedule.running():
        until(lambda: schedule.state.point == 1)
        until(lambda: not schedule.state.running)
    state = schedule.state
    assert state.confirmed is not None
    assert state.next == state.confirmed + timedelta(days=1)
    again = BackupSchedule(kg)
    with again.running():
        assert again.state.next == state.next, "a restart does not begin again"
        assert again.state.point == 1
    found = health(kg).backups
    assert found is not None
    assert (found.point, found.failures, found.generation) == (1, 0, state.generation)


@pytest.mark.long
def test_a_failure_is_reported_and_tried_again(
    kg: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup_schedule, "FIRST_RETRY_S", 0.05)
    (tmp_path / "backups").write_text("a file in the way")
    schedule = BackupSchedule(kg)
    kg.backup_state = lambda: schedule.state
    with schedule.running():
        until(lambda: schedule.state.failures > 1)
        state = health(kg)
        assert state.status == "degraded"
        assert any(str(tmp_path / "backups") in problem for problem in map(str, state.problems))
        (tmp_path / "backups").unlink()
        until(lambda: schedule.state.point == 1)
        until(lambda: not schedule.state.running)
    assert schedule.state.failures == 0
    assert schedule.state.describe_problem() is None


def test_retries_take_longer_each_time_but_not_longer_than_usual(
    kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("broken")

    monkeypatch.setattr(backup_schedule, "write_backup", fail)
    schedule = BackupSchedule(kg)
    pauses = []
    for _ in range(12):
        schedule.back_up()
        assert schedule.state.next is not None
        pauses.append((schedule.state.next - datetime.now(UTC)).total_seconds())
    assert pauses == sorted(pauses)
    assert pauses[0] < 31
    assert pauses[-1] <= 3_600


@pytest.mark.long
def test_a_day_has_one_point_that_is_read_through(kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = BackupSchedule(kg)
    folder = BackupFolder(kg.settings.data_dir.parent / "backups")
    assert schedule._is_read_due()
    schedule.back_up()
    assert folder.load().read
    assert not schedule._is_read_due()
    monkeypatch.setattr(backup_schedule, "_READ_EVERY", timedelta(0))
    assert schedule._is_read_due()


@pytest.mark.long
def test_a_folder_in_the_data_directory_is_refused(kg: KnowledgeGraph) -> None:
    kg.settings = kg.settings.model_copy(update={"backup_to": kg.settings.data_dir / "backups"})
    with pytest.raises(InvalidInputError):
        BackupSchedule(kg)


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30), ("15m", 900), ("6h", 21_600), ("1d", 86_400), ("2w", 1_209_600)]
)
def test_times_have_a_unit(text: str, seconds: int) -> None:
    assert parse_period(text) == seconds


@pytest.mark.parametrize("text", ["", "1", "d", "0d", "-1d", "1.5d", "1 d", "1y", "999999999999d", "²d"])
def test_other_times_are_invalid(text: str) -> None:
    with pytest.raises(ValueError, match="Expected a number with a unit"):
        parse_period(text)
