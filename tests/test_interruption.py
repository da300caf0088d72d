"""A signal that Python drops, because it came within a finalizer, is raised again."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import os, signal, sys, time
from kg import interruption
interruption.AGAIN_S = 0.2
interruption.listen()
class Dropped:
    def __del__(self):
        os.kill(os.getpid(), signal.{name})
        time.sleep(0.01)
sys.unraisablehook = lambda _: None
Dropped()
print("dropped", flush=True)
try:
    time.sleep(30)
finally:
    interruption.obeyed()
    time.sleep(0.6)
    print("closed", flush=True)
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_that_was_dropped_is_raised_again_and_closing_is_left_alone(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(name=name)], capture_output=True, text=True, timeout=25, check=False
    )
    assert done.stdout.split() == ["dropped", "closed"]
    assert done.returncode in (-2, 130) if name == "SIGINT" else done.returncode == 143
