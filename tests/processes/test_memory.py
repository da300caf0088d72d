"""Processes keep little freed memory, and use jemalloc where the system has it."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from ctypes.util import find_library
from pathlib import Path

import pytest

from kg.processes import memory
from kg.search.index_client import EdgeIndex
from kg.settings import Settings
from tests.waiting import find_children

SHOW = [sys.executable, "-c", "import ctypes; print(hasattr(ctypes.CDLL(None), 'mallctl'))"]


@pytest.fixture(autouse=True)
def _use_the_c_library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    monkeypatch.setattr(memory, "_has_jemalloc", lambda: False)
    memory._find_jemalloc.cache_clear()
    yield
    memory._find_jemalloc.cache_clear()


class TestPreferJemalloc:
    def test_a_process_and_its_children_use_it_if_the_system_has_it(self) -> None:
        nested = [sys.executable, "-c", f"import subprocess; subprocess.run({SHOW!r}, check=True)"]
        for command in (SHOW, nested):
            shown = subprocess.check_output(memory.prefer_jemalloc(command), text=True)
            assert shown == f"{find_library('jemalloc') is not None}\n"

    @pytest.mark.parametrize(
        ("code", "said"), [(-6, b""), (0, b"ERROR: ld.so: object cannot be preloaded"), (None, b"")]
    )
    def test_one_that_is_missing_or_ends_processes_is_not_used(
        self, monkeypatch: pytest.MonkeyPatch, code: int | None, said: bytes
    ) -> None:
        tried = []

        def run(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
            tried.append(command)
            if code is None:
                raise FileNotFoundError("env")
            return subprocess.CompletedProcess(command, code, b"", said)

        monkeypatch.setattr(subprocess, "run", run)
        assert memory.prefer_jemalloc(SHOW) == memory.prefer_jemalloc(SHOW) == SHOW
        assert [command[0] for command in tried] == ["env"]
        assert "LD_PRELOAD=libjemalloc.so.2" in tried[0]

    def test_children_of_a_process_with_it_get_its_options(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(memory, "_has_jemalloc", lambda: True)
        assert memory.prefer_jemalloc(SHOW) == ["env", f"MALLOC_CONF={memory._OPTIONS}", *SHOW]

    def test_the_index_prefers_it(self, tmp_path: Path) -> None:
        before = find_children(os.getpid())
        with closing(EdgeIndex(tmp_path, Settings(_env_file=None, data_dir=tmp_path))) as index:
            assert index.state() == {}
            [process] = {*find_children(os.getpid())}.difference(before)
            assert ("libjemalloc" in Path(f"/proc/{process}/maps").read_text()) == (
                find_library("jemalloc") is not None
            )


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
