"""``kg audit``: filters, ages, and the verification of the chain."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from kg.access.actors import Actor
from kg.access.audit import AuditLog, Entry, list_files
from kg.cli.audit import parse_since
from kg.data_directory import DataDirectory
from kg.errors import InvalidInputError
from tests.cli.running import answer, run


@pytest.fixture
def data(tmp_path: Path) -> Path:
    directory = DataDirectory(tmp_path)
    directory.format.write_text("{}")
    with AuditLog(directory) as log:
        for who, action, outcome in (("ann", "search", "ok"), ("bob", "sparql", "forbidden"), ("ann", "sparql", "ok")):
            log.record(Entry(action, actor=Actor(who, frozenset()), outcome=outcome))
    return tmp_path


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        ((), [1, 2, 3]),
        (("--who", "ann"), [1, 3]),
        (("--action", "sp"), [2, 3]),
        (("--outcome", "forbidden"), [2]),
        (("--since", "1h", "--limit", "1"), [3]),
        (("--since", "2999-01-01"), []),
    ],
)
def test_entries_are_filtered(data: Path, options: tuple[str, ...], numbers: list[int]) -> None:
    assert [entry["n"] for entry in answer("audit", *options, "--data-dir", data)["entries"]] == numbers
    assert len(run("audit", *options, "--data-dir", data).stdout.splitlines()) == len(numbers) + 1


def test_a_removed_entry_is_a_failure(data: Path) -> None:
    assert answer("audit", "verify", "--data-dir", data)["entries"] == 3
    [path] = list_files(DataDirectory(data).audit)
    first, _, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + last)
    assert run("audit", "verify", "--data-dir", data).exit_code == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90m", datetime(2026, 5, 1, 10, 30, tzinfo=UTC)),
        ("1d", datetime(2026, 4, 30, 12, tzinfo=UTC)),
        ("2026-05-01T08:00", datetime(2026, 5, 1, 8, tzinfo=UTC)),
        ("2026-05-01T08:00+02:00", datetime(2026, 5, 1, 6, tzinfo=UTC)),
    ],
)
def test_times_and_ages(text: str, expected: datetime) -> None:
    assert parse_since(text, datetime(2026, 5, 1, 12, tzinfo=UTC)) == expected


def test_another_text_is_no_time() -> None:
    with pytest.raises(InvalidInputError):
        parse_since("yesterday", datetime.now(UTC))
