"""The check of the English of the project's own texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import prose_lint


def check(path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    monkeypatch.setattr(prose_lint, "ROOT", path.parent)
    return [(fault.line, fault.words) for fault in prose_lint.faults(path)]


def test_docstrings_comments_and_messages_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.py"
    path.write_text(
        '"""One line.\n\nWhoever reads this.\n"""\n'
        "# it is done anew\n"
        "def f(name: str) -> None:\n"
        '    raise ValueError(f"{name} is no number of ours")\n'
    )
    assert check(path, monkeypatch) == [(5, "anew"), (3, "Whoever"), (7, "is no number")]


def test_code_quotations_and_marked_lines_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.py"
    path.write_text(
        '"""Rename `told` and "beside"."""\n'
        "told = 1\n"
        "# a thing  prose: ok\n"
        'QUERY = "SELECT ?thing WHERE { ?thing a ?b }"\n'
    )
    assert check(path, monkeypatch) == []


def test_markdown_is_checked_outside_code_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.md"
    path.write_text("A snapshot stands.\n\n```sh\nkg tell\n```\n\nIt is told.\n")
    assert check(path, monkeypatch) == [(1, "stands"), (7, "told")]
