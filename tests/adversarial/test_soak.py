"""A short soak: what it promises for fifteen minutes (`make soak`) holds for some seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adversarial.soak import soak


@pytest.mark.measures_time
@pytest.mark.long
@pytest.mark.timeout(300)
def test_attacks_and_faults_lose_no_acknowledged_write_and_hold_nothing(tmp_path: Path) -> None:
    report = soak(tmp_path, 20, seed=42)
    print("\n".join(report.lines()))
    assert report.broken == []
    assert min(report.done[name] for name in ("kill -9", "SIGSTOP of the index", "runaway", "silent reader")) > 0
