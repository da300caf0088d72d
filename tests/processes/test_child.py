"""Child processes: frames of any size, deadlines, the end of either side, and the limits of a child."""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kg
from kg import interruption
from kg.processes import frames
from kg.processes.child import Child, ChildGoneError, ChildLateError, Limits, pop_frame, run_task

ROOT = Path(kg.__file__).parents[1]
ECHO = """
import sys, time
sys.path.append(sys.argv[1])
from kg.processes import confine, frames
requests, answers = confine.take_pipes()
print("a library prints")
while (frame := frames.read(requests)) is not None:
    time.sleep(float(frame[1]) if frame[0] == b"S" else 0)
    confine.write_all(answers, frames.encode(*frame))
"""
FRAMES = st.lists(st.tuples(st.binary(min_size=1, max_size=1), st.binary(max_size=100)))


@pytest.fixture
def child() -> Iterator[Child]:
    started = Child([sys.executable, "-I", "-c", ECHO, str(ROOT)])
    yield started
    started.end()


@given(FRAMES, st.integers(1, 50))
def test_frames_are_read_however_the_bytes_are_cut(sent: list[frames.Frame], step: int) -> None:
    data = b"".join(frames.encode(*frame) for frame in sent)
    stream, buffer, popped = io.BytesIO(data), bytearray(), []
    assert [frames.read(stream) for _ in sent] == sent
    assert frames.read(stream) is None
    for start in range(0, len(data), step):
        buffer += data[start : start + step]
        while (frame := pop_frame(buffer)) is not None:
            popped.append(frame)
    assert (popped, buffer) == (sent, b"")


def test_a_frame_that_breaks_off_is_the_end_of_the_stream() -> None:
    data = frames.encode(b"D", b"text")
    assert [frames.read(io.BytesIO(data[:size])) for size in range(len(data))] == [None] * len(data)


@pytest.mark.parametrize("size", [0, 1, 100_000, 5 << 20])
def test_a_payload_of_any_size_comes_back(child: Child, size: int) -> None:
    payload = b"x" * size
    child.send(b"D", payload)
    assert child.receive() == (b"D", payload)


def test_a_late_answer_is_not_waited_for(child: Child) -> None:
    child.send(b"S", b"20")
    started = time.monotonic()
    with pytest.raises(ChildLateError):
        child.receive(started + 0.2)
    with pytest.raises(ChildLateError):  # the pipe is full, and nobody reads it
        child.send(b"D", b"x" * (1 << 20), started + 0.4)
    assert time.monotonic() - started < 10


def test_a_killed_child_is_gone(child: Child) -> None:
    child.send(b"S", b"20")
    child.kill()
    with pytest.raises(ChildGoneError):
        child.receive()
    child.process.wait()
    with pytest.raises(ChildGoneError):
        child.send(b"D", b"")
    assert "memory" in str(child.describe_end())


@pytest.mark.parametrize(("end", "described"), [
    ("import sys; sys.exit(3)", "3"),
    ("import os; os.kill(os.getpid(), 7)", "SIGBUS"),
    ("import os; os.kill(os.getpid(), 11)", "SIGSEGV"),
])  # fmt: skip
def test_the_end_of_a_child_is_described(end: str, described: str) -> None:
    child = Child([sys.executable, "-c", end])
    with pytest.raises(ChildGoneError):
        child.receive()
    assert described in str(child.describe_end())
    child.end()


def test_a_confined_process_cannot_create_a_socket() -> None:
    script = (
        "import socket, sys; from kg.processes.confine import deny_sockets; denied = deny_sockets()\n"
        "try: socket.socket()\nexcept PermissionError: sys.exit(0 if denied else 2)\n"
        "sys.exit(3 if denied else 4)"
    )
    code = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False).returncode
    if code == 4:
        pytest.skip("this machine has no seccomp for its processor")
    assert code == 0


@pytest.mark.parametrize("module", ["kg.queries.worker", "kg.processes.task"])
def test_a_worker_imports_little(module: str) -> None:
    """It has to start fast: of Quadcite, it needs frames and limits only."""
    script = f"import sys, {module}; print(*sorted(name for name in sys.modules if name.partition('.')[0] == 'kg'))"
    found = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    package = module.rpartition(".")[0]
    allowed = {"kg", "kg.processes", "kg.processes.confine", "kg.processes.frames", package, module}
    assert set(found.split()) <= allowed


def test_a_task_leaves_only_folders_that_the_next_process_removes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with run_task("syntax", b"INSERT DATA {}", {"prefixes": {}}, Limits(20.0, 1 << 29), what="the update") as working:
        assert working.is_relative_to(tmp_path)
        [left] = tmp_path.iterdir()
        assert left.name.startswith(interruption.PREFIX)
    assert not list(tmp_path.iterdir())
