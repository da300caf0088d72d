"""``kg top``: the state of a server as lines and as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from kg.cli.top import render
from kg.data_directory import DataDirectory
from kg.store.lock import find_address
from tests.cli.running import answer, run, served

STATE: dict[str, Any] = {
    "version": "1.0",
    "uptime_s": 90_061.0,
    "store": {"generation": 7, "quads": 1_200, "bytes": 5 << 20},
    "index": {"texts": 30, "vectors_pending": 4, "vectors_per_s": None, "model": "m", "problem": None},
    "requests": {
        "in_progress": 1,
        "total": 30,
        "failed": 2,
        "tools": {"search": {"calls": 10.0, "failed": 1.0, "mean_ms": 12.5}},
    },
    "queries": [
        {
            "pool": "tools",
            "id": 3,
            "client": "ann\x1b[2J",
            "age_s": 4.2,
            "lane": "long",
            "state": "running",
            "sha256": "0",
        }
    ],
    "calls": {"own": {"running": 2, "waiting": 1}, "raw": {"running": 0, "waiting": 0}},
    "loads": [{"source": "climate", "done": 3, "total": None, "doing": "reading"}],
    "held": {},
    "processes": [{"pid": 1, "name": "kg", "memory_bytes": 3 << 20}, {"pid": 2, "name": "kg", "memory_bytes": 1 << 20}],
    "problems": ["The index does not answer."],
}


def test_the_lines_state_rates_queues_queries_and_memory() -> None:
    before = {**STATE, "requests": {**STATE["requests"], "total": 10, "tools": {}}}
    text = "\n".join(render(STATE, before, 4.0))
    assert "up 1 d 1 h" in text
    assert "5.0 a second, 30 in total" in text
    assert "4 MiB in 2 processes (kg 4)" in text
    assert "own 2 running, 1 waiting" in text
    assert "raw" not in text
    assert "problem: The index does not answer." in text
    rows = [line.split() for line in text.splitlines()]
    assert ["search", "10", "2.5", "1", "12.5"] in rows
    assert any(row[:4] == ["3", "tools", "4.2", "s"] for row in rows)
    assert "\x1b" not in text


def test_without_an_earlier_state_there_are_no_rates() -> None:
    assert "a second," not in "\n".join(render(STATE, None, 0.0))


def test_without_a_server_it_fails(tmp_path: Path) -> None:
    assert run("top", "--once", "--data-dir", tmp_path).exit_code == 1
    DataDirectory(tmp_path).format.write_text("{}")
    assert run("top", "--once", "--data-dir", tmp_path).exit_code == 1


@pytest.mark.long
def test_the_state_of_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUADCITE_MODELS_DIR", str(tmp_path / "none"))
    data = tmp_path / "data"
    with served(data):
        httpx.post(f"{find_address(data)}/tools/health", json={}, timeout=60)
        state = answer("top", "--once", "--data-dir", data)
        assert state["requests"]["tools"]["health"]["calls"] == 1
        assert {each["name"] for each in state["processes"]} >= {"kg.queries.worker"}
        lines = run("top", "--once", "--data-dir", data).stdout.splitlines()
        assert any(line.startswith("health ") for line in lines)
