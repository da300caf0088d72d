"""Processes with several threads keep little freed memory."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library has no mallopt")
@pytest.mark.parametrize(("call", "few"), [("keep_few_arenas()", True), ("None", False)])
def test_a_running_process_makes_no_more_pools(monkeypatch: pytest.MonkeyPatch, call: str, few: bool) -> None:
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    script = (
        "import ctypes, threading\nfrom kg.processes.memory import keep_few_arenas\n"
        f"{call}\n"
        "done = threading.Barrier(5)\n"
        "def allocate():\n    kept = [bytes(2_000) for _ in range(1_000)]\n    done.wait()\n"
        "threads = [threading.Thread(target=allocate) for _ in range(4)]\n"
        "[each.start() for each in threads]\ndone.wait()\n"
        "ctypes.CDLL(None).malloc_stats()"
    )
    shown = subprocess.run([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True, check=True).stderr
    assert (shown.count("Arena ") <= 2) == few
