"""Running commands, in this process and in others."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from kg import bundle
from kg.cli.main import app
from kg.store.lock import find_address
from tests.waiting import until

CLIMATE = bundle.folder("fixtures") / "climate"
MALFORMED = bundle.folder("fixtures") / "malformed" / "climate"
ROOT = Path(__file__).parent.parent.parent
KG = [sys.executable, "-m", "kg.cli"]
REPORT = {
    "source", "run", "loaded", "skipped", "rejected", "removed", "text_units", "mentions",
    "quads_added", "quads_removed", "older", "redacted", "ceded", "returned",
    "pending_vectors", "seconds", "rejections", "unread",
}  # fmt: skip


def run(*arguments: object, stdin: str | None = None) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin, catch_exceptions=False)


def answer(*arguments: object) -> Any:
    """The JSON document that a command prints with --json, which has to be all that it prints."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def processes_of(parent: int) -> list[int]:
    """The process and its children."""
    return [parent, *map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split())]


@contextmanager
def served(data_dir: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A server of `data_dir` in a process of its own, which has to end well on SIGTERM and to print nothing."""
    with subprocess.Popen(
        [*KG, "serve", "--port", "0", "--data-dir", data_dir, *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            until(lambda: find_address(data_dir) is not None)
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=60)
    assert process.returncode in (0, 128 + signal.SIGTERM)
    assert out == ""
