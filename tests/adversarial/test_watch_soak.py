"""A short soak of a watched folder: the result of thirty minutes (`make soak`) is that of some seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adversarial.watch_soak import WatchSoak
from tests.examples import spread


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("seconds", "kills", "seed"), spread([(12, 2, 18), (40, 3, 42)], 1))
def test_folder_under_random_changes_and_kills_is_as_a_fresh_load(
    tmp_path: Path, seconds: float, kills: int, seed: int
) -> None:
    report = WatchSoak(tmp_path, seed).run(seconds, kills)
    print("\n".join(report.lines()))
    assert report.broken == []
    assert report.done["kill -9"] == kills
    assert report.files > 0
