"""A short soak: what it promises for fifteen minutes (`make soak`) holds for some seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adversarial.soak import soak
from tests.examples import spread


@pytest.mark.measures_time
@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("seconds", "seed"), spread([(8, 228), (20, 42)], 1))
def test_attacks_and_faults_lose_no_acknowledged_write_and_hold_nothing(
    tmp_path: Path, seconds: float, seed: int
) -> None:
    report = soak(tmp_path, seconds, seed)
    print("\n".join(report.lines()))
    assert report.broken == []
    assert min(report.done[name] for name in ("kill -9", "SIGSTOP of the index", "runaway", "silent reader")) > 0
