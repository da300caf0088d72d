"""Data directories for commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import CLIMATE, REPORT, run
from tests.conftest import build_once
from tests.folders import copy_folder


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with the climate fixtures in it and their vectors, which no test changes."""

    def build(folder: Path) -> None:
        result = run("load", "climate", CLIMATE, "--data-dir", folder, "--wait", "--json")
        assert result.exit_code == 0, result.output
        report = json.loads(result.stdout)
        assert set(report) == REPORT
        assert report["loaded"] > 0
        assert report["rejections"] == []

    return build_once(tmp_path_factory, "cli", build)


@pytest.fixture
def copy(data: Path, tmp_path: Path) -> Path:
    """A data directory of a test's own."""
    return copy_folder(data, tmp_path / "kg-data")
