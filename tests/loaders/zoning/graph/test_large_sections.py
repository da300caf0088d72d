"""A section with very many findings: it loads in bounded memory, and answers report the sentences left out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kg.tools.zoning.provisions import kg_query_permissions
from loaders.sources import load
from loaders.zoning.graph import derive
from tests.folders import open_graph

LOAD = """
import resource, sys
from pathlib import Path
from loaders.sources import load
from tests.folders import open_graph
with open_graph(Path(sys.argv[1]) / "data") as kg:
    report = load(kg, "zoning", [sys.argv[2]])
print(report.loaded, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
"""


def write_code(folder: Path, lines: list[str]) -> str:
    section = {"section_id": "1", "title": "R-1 Cottage District", "level": "section", "raw_content": "\n".join(lines)}
    path = folder / "code.json"
    path.write_text(json.dumps({"municipality": "Long Acre", "state": "UT", "sections": [section]}))
    return str(path)


def test_findings_of_a_section_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(derive.MAX_QUADS, "permissions", 10)
    source = write_code(tmp_path, ["Permitted uses:", "1. Cottages.", "2. Mills.", "3. Quays are prohibited."])
    with open_graph(tmp_path / "data") as kg:
        assert load(kg, "zoning", [source]).loaded == 1
        found = kg_query_permissions(kg, "Long Acre", "UT", district="R-1")
    assert [each.use for each in found.permissions] == ["Cottages"]
    assert found.meta.completeness == "approximate"
    assert any("too many permissions" in record.getMessage() for record in caplog.records)


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
@pytest.mark.parametrize("line", ["See section 1.{} and section 2.{}.", "The minimum lot width of plot {} is {} feet."])
def test_section_of_5_mb_loads_below_500_mb(tmp_path: Path, line: str) -> None:
    lines = [line.format(number % 80 + 2, number) for number in range(5_000_000 // len(line))]
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(tmp_path), write_code(tmp_path, lines)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded, peak_mb = map(int, done.stdout.split()[-2:])
    assert loaded >= 1
    assert peak_mb < 500
