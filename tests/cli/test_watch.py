"""kg watch: lines about what becomes of files, through a connection of any kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kg.cli import watching
from kg.cli.connection import Connection
from kg.errors import SourceError, UpstreamError


class Scripted:
    """A connection that returns documents in order, raises what is an exception, and then is interrupted."""

    def __init__(self, answers: list[dict[str, Any] | Exception]) -> None:
        self.answers = answers
        self.asked: list[Mapping[str, Any]] = []
        self.connected = 0

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        self.connected += 1
        yield self  # type: ignore[misc]

    def call(self, name: str, arguments: Mapping[str, Any], advance: Callable[..., None] = print) -> dict[str, Any]:
        assert name == "watch"
        self.asked.append(arguments)
        if not self.answers:
            raise KeyboardInterrupt
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def said(after: int, state: str, *events: dict[str, Any]) -> dict[str, Any]:
    folder = {"path": "/x", "collection": "notes", "state": state, "files": 1, "pending": 0, "problem": None}
    return {"after": after, "folder": folder, "events": list(events)}


def event(number: int, outcome: str, path: str, text: str = "") -> dict[str, Any]:
    return {"number": number, "outcome": outcome, "path": path, "collection": "notes", "text": text}


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_PAUSE_S", 0.0)


def test_events_are_lines_and_the_next_holder_of_the_data_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted = Scripted([
        said(4, "scanning"),
        said(5, "watching", event(5, "loaded", "a.md")),
        said(7, "watching", event(6, "moved", "a.md", "b.md"), event(7, "rejected", "c.md", "The file is empty.")),
        UpstreamError("The server has ended."),
        said(9, "watching"),
        said(10, "watching", event(10, "folder", "/x", "The folder is missing.")),
    ])  # fmt: skip
    watching.show_changes(scripted.connect, str(tmp_path), None, as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "loaded notes/a.md",
        "moved notes/a.md -> b.md",
        "rejected notes/c.md: The file is empty.",
        "folder /x: The folder is missing.",
    ]
    assert [each["after"] for each in scripted.asked] == [None, 4, 5, 7, None, 9, 10]
    assert scripted.connected == 2


def test_missing_folder_and_a_first_call_that_fails_are_errors(tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        watching.show_changes(Scripted([]).connect, str(tmp_path / "absent"), None, as_json=False)
    with pytest.raises(UpstreamError):
        watching.show_changes(Scripted([UpstreamError("No.")]).connect, str(tmp_path), None, as_json=False)
