"""Kill loads and derivations of real data at random moments, and compare what is derived in the end with a fresh load.

`python -m tests.derivations.chaos [--kills 12] [--seed 1] SOURCE:LOCATION[,OPTION=VALUE...] ...` prints what differs,
and exits with 1 if anything does. Each kill is a SIGKILL of one or two commands of `kg` on one data directory.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kg.search.registry import MINILM
from kg.store.oxigraph import OxigraphStore
from tests.derivations.test_histories import compare, dump

LONGEST_S: Final = 1.5
"""A command is killed within this multiple of the time that it takes when it is not killed."""


class Chaos:
    """A data directory, and the commands that write it."""

    def __init__(self, folder: Path, sources: Sequence[str]) -> None:
        self.folder: Final = folder
        self.loads: Final = [self._parse(source) for source in sources]

    @staticmethod
    def _parse(source: str) -> list[str]:
        name, _, rest = source.partition(":")
        location, *options = rest.split(",")
        pairs = [option.partition("=") for option in options]
        return ["load", name, location, "--prune", *(word for key, _, value in pairs for word in (f"--{key}", value))]

    def start(self, data: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a command of `kg` in a session of its own, without a model of vectors."""
        return subprocess.Popen(
            [sys.executable, "-m", "kg.cli.main", *command, "--data-dir", str(self.folder / data)],
            env={**os.environ, "QUADCITE_MODELS_DIR": str(self.folder / "no-models"), "QUADCITE_MODEL": MINILM},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def finish(self, data: str, command: Sequence[str]) -> float:
        """Run a command to its end, and return the seconds it took."""
        began = time.monotonic()
        process = self.start(data, command)
        errors = process.communicate()[1].decode()
        if process.returncode not in (0, 1):  # 1: some records are rejected, as in any run
            raise SystemExit(f"{' '.join(command)} exits with {process.returncode}: {errors[-2_000:]}")
        return time.monotonic() - began

    def kill(self, command: Sequence[str], other: Sequence[str] | None, after: float) -> bool:
        """Kill a command, and another writer beside it, after some seconds. Return whether it had not ended."""
        several = [self.start("killed", each) for each in (command, other) if each is not None]
        time.sleep(after)
        running = [process for process in several if process.poll() is None]
        for process in running:
            os.killpg(process.pid, signal.SIGKILL)
        for process in several:
            process.communicate()
        return several[0] in running

    def run(self, kills: int, seed: int) -> list[str]:
        """Kill, finish, and compare with a fresh load."""
        chance = random.Random(seed)
        seconds = {tuple(load): self.finish("fresh", load) for load in self.loads}
        seconds["derive", "--full"] = self.finish("fresh", ["derive", "--full"])
        for number in range(kills):
            command = list(chance.choice(list(seconds)))
            other = list(chance.choice(list(seconds))) if chance.random() < 0.25 else None
            after = chance.uniform(0, LONGEST_S * seconds[tuple(command)])
            was_running = self.kill(command, other, after)
            print(f"{number}: {' '.join(command[:3])} after {after:.1f} s, {'killed' if was_running else 'ended'}")
        for load in self.loads:
            self.finish("killed", load)
        self.finish("killed", ["derive"])
        found, wanted = (self._read(data) for data in ("killed", "fresh"))
        return compare(found, wanted)

    def _read(self, data: str) -> set[str]:
        with OxigraphStore(self.folder / data) as store:
            return dump(store)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("sources", nargs="+")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines = Chaos(Path(folder), given.sources).run(given.kills, given.seed)
    print("\n".join(lines[:40]) or "equal")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
