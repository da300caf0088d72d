"""`kg load`: what it reports, skips, rejects and prunes, and how it stops."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from contextlib import nullcontext
from pathlib import Path

import pytest

from kg.interruption import PREFIX
from kg.store.lock import find_holder
from tests.cli.running import CLIMATE, KG, MALFORMED, answer, processes_of, run, served
from tests.examples import spread
from tests.waiting import until


@pytest.mark.parametrize("source", ["congress", "minutes"])
def test_a_source_that_cannot_be_loaded_is_usage_and_names_those_that_can(source: str, tmp_path: Path) -> None:
    result = run("load", source, CLIMATE, "--data-dir", tmp_path / "kg-data")
    assert result.exit_code == 2
    assert source in result.stderr
    assert all(repr(known) in result.stderr for known in ("climate", "wikibase", "parliament", "members", "zoning"))
    assert not (tmp_path / "kg-data").exists()


@pytest.mark.long
def test_loading_the_same_again_skips_all_and_changes_nothing(copy: Path) -> None:
    before = answer("status", "--data-dir", copy)
    report = answer("load", "climate", CLIMATE, "--data-dir", copy)
    assert (report["loaded"], report["quads_added"], report["quads_removed"]) == (0, 0, 0)
    assert report["skipped"] > 0
    after = answer("status", "--data-dir", copy)
    assert (after["generation"], after["quads"]) == (before["generation"], before["quads"])


@pytest.mark.exhaustive
def test_a_load_with_wait_leaves_no_vector_pending_and_says_in_plain_words_what_it_did(tmp_path: Path) -> None:
    result = run("load", "climate", CLIMATE, "--data-dir", tmp_path / "kg-data", "--wait")
    assert result.exit_code == 0
    assert re.search(r"^loaded +13$", result.stdout, re.MULTILINE)
    assert re.search(r"^pending vectors +0$", result.stdout, re.MULTILINE)
    assert answer("status", "--data-dir", tmp_path / "kg-data")["pending_vectors"] == 0


@pytest.mark.long
def test_waiting_without_a_model_keeps_what_was_loaded_says_so_and_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUADCITE_MODELS_DIR", str(tmp_path / "no models"))
    done = subprocess.run(
        [*KG, "load", "climate", CLIMATE, "--data-dir", tmp_path / "kg-data", "--wait", "--json"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["loaded"] > 0
    assert report["pending_vectors"] > 0
    assert "kg models pull" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_rejected_records_end_a_load_with_3_and_are_named(tmp_path: Path) -> None:
    result = run(
        "load", "climate", MALFORMED / "duplicate-keys.csv", "--data-dir", tmp_path / "kg-data", "--json",
    )  # fmt: skip
    report = json.loads(result.stdout)
    assert result.exit_code == 3
    assert report["rejected"] == len(report["rejections"]) > 0
    assert all(set(rejection) == {"record", "reason"} and all(rejection.values()) for rejection in report["rejections"])
    told = run("load", "climate", MALFORMED / "duplicate-keys.csv", "--data-dir", tmp_path / "kg-data")
    assert told.exit_code == 3
    assert report["rejections"][0]["record"] in told.stderr
    assert answer("status", "--data-dir", tmp_path / "kg-data")["quarantined"] == report["rejected"]


@pytest.mark.long
def test_prune_removes_what_is_gone_from_the_location(tmp_path: Path) -> None:
    source = Path(shutil.copytree(CLIMATE, tmp_path / "in"))
    before = answer("load", "climate", source, "--data-dir", tmp_path / "kg-data")
    (source / "laws.csv").unlink()
    kept = answer("load", "climate", source, "--data-dir", tmp_path / "kg-data")
    pruned = answer("load", "climate", source, "--data-dir", tmp_path / "kg-data", "--prune")
    assert (kept["removed"], pruned["removed"]) == (0, 3)
    assert pruned["quads_removed"] > 0
    assert answer("status", "--data-dir", tmp_path / "kg-data")["text_units"] < before["text_units"]


def test_a_file_that_is_not_there_is_an_error_without_a_traceback(tmp_path: Path) -> None:
    result = run("load", "climate", tmp_path / "absent.parquet", "--data-dir", tmp_path / "kg-data", "--json")
    assert result.exit_code == 1
    assert "absent.parquet" in result.stderr
    assert "absent.parquet" in json.loads(result.stdout)["error"]["message"]


@pytest.mark.long
@pytest.mark.parametrize("number", spread([signal.SIGTERM, signal.SIGINT], 1))
def test_a_load_that_is_told_to_stop_stops_and_cleans_up(number: signal.Signals, tmp_path: Path) -> None:
    row = {
        "document_id": "F.1", "document_slug": "s", "document_name": "N", "geography_iso": "BRA", "family_slug": "f",
        "family_name": "F", "text": "fictional " * 50,
    }  # fmt: skip
    source = tmp_path / "t.jsonl"
    source.write_text("".join(json.dumps({**row, "block_index": i}) + "\n" for i in range(60_000)))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with subprocess.Popen(
        [*KG, "load", "climate", source, "--data-dir", tmp_path / "data"], stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True, start_new_session=True, env={**os.environ, "TMPDIR": str(temporary)},
    ) as process:  # fmt: skip
        # Not any file: Python tries whether it can write into TMPDIR.
        until(lambda: any(temporary.glob(f"{PREFIX}*")))
        children = processes_of(process.pid)
        os.killpg(process.pid, number)
        out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (128 + number, "")
    assert list(temporary.iterdir()) == []
    until(lambda: not any(Path(f"/proc/{child}").exists() for child in children))
    assert find_holder(tmp_path / "data") is None


@pytest.mark.long
@pytest.mark.parametrize("is_served", spread([False, True], 1))
def test_a_load_names_files_as_they_were_written(
    is_served: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "in" / "laws"
    shutil.copytree(CLIMATE, folder)
    shutil.copytree(MALFORMED, folder / "bad")
    monkeypatch.chdir(tmp_path / "in")
    data_dir = tmp_path / "kg-data"
    with served(data_dir) if is_served else nullcontext():
        results = [run("load", "climate", "laws", "--data-dir", data_dir, *how) for how in ((), ("--json",))]
        results.append(run("load", "climate", "laws/bad/absent.csv", "--data-dir", data_dir))
        results.append(run("quarantine", "list", "--data-dir", data_dir))
        monkeypatch.chdir(tmp_path)
        results.append(run("quarantine", "list", "--json", "--data-dir", data_dir))
    assert [result.exit_code for result in results] == [3, 3, 1, 0, 0]
    assert "laws/bad/" in results[0].stderr
    for result in results:
        assert str(folder) not in result.stdout + result.stderr
