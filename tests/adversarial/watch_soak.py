"""A folder that changes at random while watchers are killed: the graph is at last that of a fresh load of the folder.

`python -m tests.adversarial.watch_soak [--seconds 1800] [--seed 1] [--kills 3]` prints the counts, and exits with 1 if
the graphs differ. The watcher is `kg watch` or a server with QUADCITE_WATCH_FOLDERS, in turn. Files are created,
edited, copied, renamed and deleted, also between two watchers.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
from pyoxigraph import Quad

from kg.search.registry import MINILM
from kg.server.auth import read_token
from kg.store.lock import find_address
from kg.store.protocol import select, term_text
from kg.vocabulary import SOURCED
from loaders.sources import load
from tests.conftest import opened
from tests.loaders.files.folder_changes import change_at_random, graphs_of, sources_of

SETTLE_S: Final = 300.0
"""Maximum seconds until the last watcher has loaded all changes. More than a search for changes without events."""
PAUSE_S: Final = 0.3
FILES: Final = "SELECT ?path ?mtime WHERE { ?file a kg:File ; kg:path ?path ; kg:mtime ?mtime }"


@dataclass
class Report:
    """The changes, the lives of watchers, and what was wrong."""

    done: Counter[str] = field(default_factory=Counter)
    lives: Counter[str] = field(default_factory=Counter)
    files: int = 0
    quads: int = 0
    settled_s: float = 0.0
    broken: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Yield the report as lines of text."""
        yield "changes: " + ", ".join(f"{name} {count}" for name, count in sorted(self.done.items()))
        yield "watchers: " + ", ".join(f"{name} {count}" for name, count in sorted(self.lives.items()))
        yield f"at the end: {self.files} files, {self.quads} quads, {self.settled_s:.1f} s after the last change"
        yield from (f"BROKEN: {problem}" for problem in self.broken)
        if not self.broken:
            yield "passed: the graph is that of a fresh load, triple for triple"


class WatchSoak:
    """A folder of notes, and the watcher of the moment."""

    def __init__(self, base: Path, seed: int) -> None:
        self.notes, self.data, self.log = base / "notes", base / "data", base / "log"
        self.fresh: Final = base / "fresh"
        self.report = Report()
        self._chance: Final = random.Random(seed)
        self._process: subprocess.Popen[bytes] | None = None
        self.notes.mkdir()

    def run(self, seconds: float, kills: int) -> Report:
        """Change the folder for `seconds` with `kills`, then compare the graph with that of a fresh load."""
        begin = time.monotonic()
        for life in range(kills + 1):
            # The last one is a server, which can be asked.
            self.start(is_server=(kills - life) % 2 == 0)
            self.change_until(begin + seconds * (life + 1) / (kills + 1))
            if life < kills:
                self.kill()
                for _ in range(self._chance.randrange(8)):
                    self.change()
        last = time.monotonic()
        with opened(self.fresh) as fresh:
            load(fresh, "files", [str(self.notes)])
            rows = select(fresh.store.query, FILES)
            expected = {(term_text(row["path"]), term_text(row["mtime"])) for row in rows}
        while self.is_loading() or self.ask() != expected:
            if time.monotonic() - last > SETTLE_S:
                self.report.broken.append(f"{SETTLE_S:g} s after the last change the files are not those of the folder")
                break
            time.sleep(0.1)
        self.report.settled_s = time.monotonic() - last
        self.stop()
        self.compare()
        return self.report

    def start(self, *, is_server: bool) -> None:
        """Start a watcher of the folder."""
        self.report.lives["kg serve" if is_server else "kg watch"] += 1
        environment = {
            **os.environ,
            "QUADCITE_MODELS_DIR": str(self.data.with_name("no-models")),
            "QUADCITE_MODEL": MINILM,
            "QUADCITE_WATCH_FOLDERS": str(self.notes) if is_server else "",
        }
        command = ["serve", "--port", "0"] if is_server else ["watch", str(self.notes)]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "kg.cli", *command, "--data-dir", str(self.data)],
                env=environment, stdout=log, stderr=log,
            )  # fmt: skip

    def kill(self) -> None:
        """Kill the watcher."""
        assert self._process is not None
        if (code := self._process.poll()) is not None:
            self.report.broken.append(f"the watcher ended with {code}")
        self._process.kill()
        self._process.wait()
        self.report.done["kill -9"] += 1

    def stop(self) -> None:
        """Stop the watcher, which has to end well."""
        assert self._process is not None
        self._process.terminate()
        if (code := self._process.wait(90)) not in (0, 143):
            self.report.broken.append(f"the watcher ended with {code}")
        if "Traceback" in (said := self.log.read_text(errors="replace")):
            self.report.broken.append("a traceback in the log: " + said[said.index("Traceback") :][:3_000])

    def change_until(self, end: float) -> None:
        """Change the folder until a time, in bursts."""
        while time.monotonic() < end:
            for _ in range(self._chance.choice([1, 1, 1, 2, 10])):
                self.change()
            time.sleep(min(self._chance.uniform(0, 2 * PAUSE_S), max(0.0, end - time.monotonic())))

    def change(self) -> None:
        """Change a file or a folder."""
        self.report.done[change_at_random(self._chance, self.notes)] += 1

    def is_loading(self) -> bool:
        """Return whether the server is not there yet, or has files that wait."""
        token = read_token(self.data)
        answer = self.request("POST", "/tools/watch", json={"folder": str(self.notes)}, token=token) if token else None
        folder = answer["folder"] if answer is not None and "folder" in answer else None
        return folder is None or folder["state"] != "watching" or folder["pending"] > 0 or folder["unextracted"] > 0

    def ask(self) -> set[tuple[str, str]]:
        """Ask the server for the files in its graph."""
        answer = self.request("GET", "/sparql", params={"query": FILES})
        rows = answer["results"]["bindings"] if answer is not None and "results" in answer else ()
        return {(row["path"]["value"], row["mtime"]["value"]) for row in rows}

    def request(self, method: str, path: str, token: str | None = None, **given: Any) -> Any:
        """Send a request to the server; None while it does not answer."""
        assert self._process is not None
        assert self._process.poll() is None, self.log.read_text(errors="replace")[-3_000:]
        if (address := find_address(self.data)) is None:
            return None
        headers = {"Accept": "application/sparql-results+json, application/json"}
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        try:
            url = f"{address}{path}"
            return httpx.request(method, url, headers=headers, timeout=60, trust_env=False, **given).json()
        except (httpx.HTTPError, ValueError):
            return None

    def compare(self) -> None:
        """Compare the graphs, their provenance and the index with those of a fresh load."""
        with opened(self.data) as kg, opened(self.fresh) as fresh:
            ours, theirs = graphs_of(kg.store), graphs_of(fresh.store)
            self._note_differences("quads", ours, theirs)
            self._note_differences("provenance", sources_of(kg.store), sources_of(fresh.store))
            if kg.search.state() != fresh.search.state():
                self.report.broken.append("the index differs")
            self.report.quads = len(ours)
            self.report.files = sum(1 for graph in kg.store.graphs() if graph.value.startswith(f"{SOURCED}files/"))

    def _note_differences(self, name: str, ours: set[Quad], theirs: set[Quad]) -> None:
        for kind, found in (("extra", ours - theirs), ("missing", theirs - ours)):
            if found:
                shown = "\n  ".join(sorted(map(str, found))[:10])
                self.report.broken.append(f"{len(found)} {kind} {name}:\n  {shown}")


def main(arguments: Sequence[str]) -> int:
    """Run the soak and print its report; return 1 if the graphs differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.adversarial.watch_soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1_800.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=3)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        report = WatchSoak(Path(folder), given.seed).run(given.seconds, given.kills)
    print("\n".join(report.lines()))
    return 1 if report.broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
