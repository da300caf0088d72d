"""Due derived graphs are listed by the status and computed by ``kg derive``."""

from __future__ import annotations

from pathlib import Path

import pytest

from kg import bundle
from kg.data_directory import DataDirectory
from tests.cli.running import answer, run


@pytest.mark.long
def test_due_graphs_are_listed_and_derived(tmp_path: Path) -> None:
    data = tmp_path / "kg-data"
    answer("load", "climate", bundle.folder("fixtures") / "climate", "--data-dir", data)
    names = set(answer("derive", "--data-dir", data))
    assert names >= {"citations", "mentions", "alignments", "superclass", "about", "catalog"}
    assert answer("status", "--data-dir", data)["due"] == []
    DataDirectory(data).derivations.unlink()
    lost = answer("status", "--data-dir", data)["due"]
    assert "mentions" in {each.partition(" ")[0] for each in lost if each.endswith(" never derived")}
    assert set(answer("derive", "--data-dir", data)) == names
    assert answer("derive", "mentions", "--full", "--data-dir", data)["mentions"]["run"] is None
    assert run("derive", "speeches", "--data-dir", data).exit_code != 0
    assert answer("doctor", "--data-dir", data)["ok"]
