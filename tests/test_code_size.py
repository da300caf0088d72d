"""The sizes that `code_size.json` allows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import code_size

RECORD = {"tokens": {"kg": 100}, "modules": {"kg/long.py": 700}}


def test_the_code_is_not_larger_than_recorded() -> None:
    assert code_size.find_growth(code_size.read_record(), *code_size.measure()) == []


@pytest.mark.parametrize(
    ("tokens", "modules", "grown"),
    [
        (100, {"kg/long.py": 700}, 0),
        (101, {"kg/long.py": 700}, 1),
        (100, {"kg/long.py": 701}, 1),
        (100, {"kg/long.py": 700, "kg/other.py": 601}, 1),
        (99, {}, 1),  # an entry that is needed no more
    ],
)
def test_growth_is_found(tokens: int, modules: dict[str, int], grown: int) -> None:
    assert len(code_size.find_growth(RECORD, {"kg": (1, tokens)}, modules)) == grown


@pytest.mark.parametrize(
    ("tokens", "modules", "lowered"),
    [
        (90, {"kg/long.py": 650}, {"tokens": {"kg": 90}, "modules": {"kg/long.py": 650}}),
        (110, {"kg/long.py": 750, "kg/other.py": 601}, RECORD),
        (100, {}, {"tokens": {"kg": 100}, "modules": {}}),
    ],
)
def test_recording_only_lowers(tokens: int, modules: dict[str, int], lowered: dict[str, dict[str, int]]) -> None:
    assert code_size.lower(RECORD, {"kg": (1, tokens)}, modules) == lowered


def test_tokens_are_counted_without_comments_and_layout(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("# a comment\n\ndef f(a):\n    return a + 1\n")
    assert code_size.count(tmp_path) == (4, 10)
