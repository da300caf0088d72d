"""`kg load --queue` and `kg loads`, on a server that is killed while it loads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from kg.store.lock import find_address
from tests.cli.running import CLIMATE, KG, answer, run, served
from tests.waiting import until


@pytest.mark.long
def test_queued_load_survives_a_kill_of_the_server(tmp_path: Path) -> None:
    data, texts = tmp_path / "data", tmp_path / "texts"
    texts.mkdir()
    for number in range(300):
        (texts / f"note-{number}.md").write_text(f"# Note {number}\n\nThe {number}. rope is long.\n")
    with subprocess.Popen([*KG, "serve", "--port", "0", "--data-dir", data], stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: find_address(data) is not None)
            assert answer("load", "files", texts, "--queue", "--data-dir", data)["number"] == 1
            assert answer("load", "climate", CLIMATE, "--queue", "--data-dir", data)["number"] == 2
            until(lambda: answer("loads", "list", "--data-dir", data)[-1]["state"] == "running")
        finally:
            os.kill(process.pid, signal.SIGKILL)
    with served(data):
        states = [answer("loads", "follow", number, "--data-dir", data) for number in (1, 2)]
        assert [each["state"] for each in states] == ["done", "done"]
        assert run("loads", "cancel", 9, "--data-dir", data).exit_code == 1
    query = "SELECT (COUNT(?file) AS ?files) { ?file a kg:File }"
    result = run("query", query, "--format", "json", "--data-dir", data)
    assert json.loads(result.stdout)["results"]["bindings"][0]["files"]["value"] == "300"


@pytest.mark.long
def test_sources_are_loaded_by_schedule(tmp_path: Path) -> None:
    schedules = tmp_path / "schedules.toml"
    schedules.write_text(f'[laws]\nsource = "climate"\nlocations = ["{CLIMATE}"]\nevery = "1d"\n')
    with served(tmp_path / "data", "--refresh", str(schedules)):
        until(lambda: bool(answer("loads", "list", "--data-dir", tmp_path / "data")))
        load = answer("loads", "follow", 1, "--data-dir", tmp_path / "data")
    assert (load["state"], load["schedule"], load["submitted_by"]) == ("done", "laws", "schedule")


def test_invalid_schedule_is_refused_before_the_server_starts(tmp_path: Path) -> None:
    schedules = tmp_path / "schedules.toml"
    schedules.write_text('[laws]\nsource = "film"\nlocations = ["x"]\nevery = "1d"\n')
    result = run("serve", "--refresh", schedules, "--data-dir", tmp_path / "data")
    assert result.exit_code == 2
    assert "[laws]" in result.output
    assert not (tmp_path / "data").exists()
