"""A signal is not lost where Python drops it, and does not come between steps that belong together."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kg import interruption

SCRIPT = """
import os, signal, sys, time
from kg import interruption
interruption.REPEAT_S = 0.5
interruption.install_handlers()
class Dropped:
    def __del__(self):
        os.kill(os.getpid(), signal.{name})
        time.sleep(0.01)
sys.unraisablehook = lambda _: None
Dropped()
print("dropped", flush=True)
try:
    time.sleep(60)
finally:
    interruption.disarm()
    time.sleep(0.8)
    print("closed", flush=True)
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_that_was_dropped_is_raised_again_and_closing_is_left_alone(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(name=name)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.split() == ["dropped", "closed"]
    assert done.returncode in (-2, 130) if name == "SIGINT" else done.returncode == 143


BETWEEN = """
import os, signal, tempfile
from pathlib import Path
from kg import interruption
interruption.install_handlers()
made = tempfile.mkdtemp
def interrupted(*args, **kwargs):
    folder = made(*args, **kwargs)
    os.kill(os.getpid(), signal.{name})
    return folder
tempfile.mkdtemp = interrupted
try:
    with interruption.temporary_folder():
        print("entered")
finally:
    print(list(Path(tempfile.gettempdir()).iterdir()))
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_folder_goes_although_the_signal_comes_while_it_is_made(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BETWEEN.format(name=name)], capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert "entered" not in done.stdout
    assert list(tmp_path.iterdir()) == []
    assert done.returncode in (-2, 130) if name == "SIGINT" else done.returncode == 143


def test_leftovers_of_killed_processes_are_swept_and_folders_in_use_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    victim = tmp_path / "victim"
    victim.mkdir()
    left, young = f"{interruption.PREFIX}left", f"{interruption.PREFIX}young"
    for name in (left, young, "quadcite-data", "others"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    (tmp_path / f"{interruption.PREFIX}link").symlink_to(victim)
    for folder in (tmp_path / left, tmp_path / "quadcite-data", tmp_path / "others", victim):
        os.utime(folder, (1, 1))
    with interruption.temporary_folder() as used:
        assert (tmp_path / left).is_dir(), "only the start of a load or server looks for leftovers"
        os.utime(used, (1, 1))
        assert interruption.sweep_temporary_folders() == 1
        assert used.is_dir()
    assert {path.name for path in tmp_path.iterdir()} == {
        young,
        f"{interruption.PREFIX}link",
        "quadcite-data",
        "others",
        "victim",
    }
