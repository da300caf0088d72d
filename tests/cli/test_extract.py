"""`kg extract`: what it asks for, what it reports, and the same through a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import HttpUrl
from typer.testing import CliRunner

from kg.cli import main
from kg.knowledge_graph import KnowledgeGraph
from kg.settings import Settings
from loaders.sources import load
from tests.folders import without_models
from tests.zoning_summaries.stand_in import StandIn, completion

pytestmark = pytest.mark.long

HERE = ("Wickham Fen", "UT")
LAW = "Permitted here: smithies."


@pytest.fixture
def data(tmp_path: Path) -> Path:
    code = {
        "municipality": "Wickham Fen",
        "state": "UT",
        "sections": [{"section_id": "4", "title": "R-1 Cottage Residential District", "raw_content": LAW}],
    }
    path = tmp_path / "fen.json"
    path.write_text(json.dumps(code), encoding="utf-8")
    folder = tmp_path / "kg-data"
    with KnowledgeGraph.open(folder, settings(folder)) as kg:
        load(kg, "zoning", [str(path)])
    return folder


def settings(folder: Path, **chat: Any) -> Settings:
    return without_models(folder, **chat)


def run(monkeypatch: pytest.MonkeyPatch, folder: Path, *arguments: str, **chat: Any) -> Any:
    monkeypatch.setattr("kg.cli.connection.settings_for", lambda _: settings(folder, **chat))
    return CliRunner().invoke(main.app, ["extract", *HERE, *arguments, "--data-dir", str(folder)])


def test_a_command_without_an_endpoint_tells_how_to_configure_one(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, data, "--mode", "chat")
    assert result.exit_code == 2
    assert "QUADCITE_CHAT_URL" in result.stderr
    assert run(monkeypatch, data, "--mode", "wish").exit_code == 2


def test_a_run_reports_what_was_read_and_a_failed_one_ends_with_3(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"permissions": [{"district": "R-1", "use": "smithies", "permission": "permitted", "quotations": [LAW]}]}
    answers = [completion("No."), completion("No."), completion(json.dumps(said))]
    server = StandIn(*answers)
    chat = {"chat_url": HttpUrl(server.url), "chat_model": "small"}
    try:
        failed = run(monkeypatch, data, "--json", **chat)
        assert failed.exit_code == 3
        [reason] = json.loads(failed.stdout)["failed"]
        assert reason["section_id"] == "4"
        done = run(monkeypatch, data, "--json", **chat)
        assert done.exit_code == 0
        assert {name: json.loads(done.stdout)[name] for name in ("read", "claimed", "failed", "waiting")} == {
            "read": 1,
            "claimed": 1,
            "failed": [],
            "waiting": 0,
        }
        assert "current" in run(monkeypatch, data, **chat).stdout
    finally:
        server.close()
    assert json.loads(run(monkeypatch, data, "--mode", "rules", "--json").stdout)["removed"] == 1
