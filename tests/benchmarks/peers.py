"""SHACL validators in processes of their own, ours among them: the same files in, seconds and results out.

The others are installed, at the versions below, in a virtual environment that is kept in the user's cache folder, so
they are neither in our environment nor in its lock. This file runs there as a script and imports nothing of ours, but
for what measures us. What is timed begins with files on the disk and ends with the number of results: reading and
parsing data and shapes, validating, counting. Starting Python and importing is not timed.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

PINS: Final = {"pyshacl": "0.40.1", "pyrudof": "0.3.35"}
PINS_3_13: Final = {"purrdf": "3.0.1"}
"""Needs Python 3.13."""
ROOT: Final = Path(__file__).resolve().parents[2]
MANY_PASSAGES: Final = 170_000
"""Each of them breaks six shapes."""

Times = dict[str, float]
"""Seconds by what was done, in the order in which it was done."""


def environment() -> tuple[Path, str]:
    """Return the Python that has the other validators, made and filled where needed; and what it lacks, if anything.

    Raises CalledProcessError where pip cannot install them.
    """
    from platformdirs import user_cache_path

    interpreter = _python_3_13()
    pins = PINS | (PINS_3_13 if interpreter else {})
    wanted = [f"{name}=={version}" for name, version in pins.items()]
    home = user_cache_path("quadcite") / "benchmarks" / "-".join(f"{name}{version}" for name, version in pins.items())
    python = home / "bin" / "python"
    if not (home / "complete").exists():
        shutil.rmtree(home, ignore_errors=True)
        subprocess.run([interpreter or sys.executable, "-m", "venv", home], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--quiet", "--no-input", *wanted], check=True)
        (home / "complete").touch()
    return python, "" if interpreter else "no Python 3.13 on PATH or among pyenv's versions, so no purrdf"


def measure(name: str, shapes: Path, data: Path, python: Path | None = None) -> tuple[Times, int, float]:
    """Run one of `VALIDATORS` in a new process; return its seconds, how many results it found, and its peak MiB."""
    command = [python or sys.executable, Path(__file__), name, shapes, data]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    found = json.loads(done.stdout.splitlines()[-1])
    return found["times"], found["results"], found["mib"]


def _python_3_13() -> str | None:
    """Return a Python 3.13: the one on the path, or pyenv's."""
    found = [shutil.which("python3.13")]
    if pyenv := shutil.which("pyenv"):
        root = subprocess.run([pyenv, "root"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        found += sorted(str(each) for each in Path(root, "versions").glob("3.13.*/bin/python3.13"))
    for each in filter(None, found):
        # A shim of pyenv stands for every version, and fails where its own is not chosen.
        if subprocess.run([each, "-c", ""], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return each
    return None


def ours(shapes: Path, data: Path) -> Callable[[], tuple[Times, int]]:
    import pyoxigraph

    from kg.shacl.shapes import Shapes

    def work() -> tuple[Times, int]:
        clock = Clock()
        suite = Shapes.load(shapes)
        found = suite.check(pyoxigraph.parse(path=data))
        clock.lap("all")
        return clock.times, len(found)

    return work


def ours_stored(shapes: Path, data: Path) -> Callable[[], tuple[Times, int]]:
    import pyoxigraph

    from kg.shacl.data_graph import DataGraph
    from kg.shacl.shapes import Shapes

    store = pyoxigraph.Store()
    store.bulk_load(path=data)

    def work() -> tuple[Times, int]:
        clock = Clock()
        found = Shapes.load(shapes).validate(DataGraph.from_store(store))
        clock.lap("all")
        return clock.times, len(found)

    return work


def pyshacl(shapes: Path, data: Path) -> Callable[[], tuple[Times, int]]:
    import rdflib
    from pyshacl import validate

    result = rdflib.URIRef("http://www.w3.org/ns/shacl#ValidationResult")

    def work() -> tuple[Times, int]:
        clock = Clock()
        graph, suite = rdflib.Graph().parse(data), rdflib.Graph().parse(shapes)
        clock.lap("parsing")
        _, report, _ = validate(graph, shacl_graph=suite)
        found = sum(1 for _ in report.subjects(rdflib.RDF.type, result))
        clock.lap("validating")
        return clock.times, found

    return work


def pyrudof(shapes: Path, data: Path) -> Callable[[], tuple[Times, int]]:
    from pyrudof import Rudof, RudofConfig, ShaclValidationMode

    def work() -> tuple[Times, int]:
        clock = Clock()
        rudof = Rudof(RudofConfig())
        rudof.read_data(data.read_text(encoding="utf-8"))
        rudof.read_shacl(shapes.read_text(encoding="utf-8"))
        clock.lap("parsing")
        found = len(rudof.validate_shacl(ShaclValidationMode.Native))
        clock.lap("validating")
        return clock.times, found

    return work


def purrdf(shapes: Path, data: Path) -> Callable[[], tuple[Times, int]]:
    from purrdf import RdfFormat, Store
    from purrdf import shapes as shacl

    def work() -> tuple[Times, int]:
        clock = Clock()
        store = Store()
        store.load(data.read_text(encoding="utf-8"), RdfFormat.TURTLE)
        suite = shacl.Shapes(shapes.read_text(encoding="utf-8"))
        clock.lap("parsing")
        found = len(suite.validate_store(store).results)
        clock.lap("validating")
        return clock.times, found

    return work


def many_results(data: Path, report: Path) -> Callable[[], tuple[Times, int, float]]:
    """Make data in which everything is wrong, to write a report on it; the memory is what that takes beside them."""
    import pyoxigraph

    from kg.shacl.data_graph import DataGraph
    from kg.shacl.report_writers import write_report
    from kg.shacl.shapes import Shapes
    from kg.vocabulary import KG, RDF

    passages = (pyoxigraph.NamedNode(f"https://example.org/{number}") for number in range(MANY_PASSAGES))
    held = DataGraph.from_quads(pyoxigraph.Triple(passage, RDF.type, KG.Passage) for passage in passages)

    def work() -> tuple[Times, int, float]:
        Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
        clock, before = Clock(), peak_mib()
        with report.open("wb") as output:
            counts = write_report(Shapes.load().results(held), "ttl", output, checked=str(data))
        clock.lap("all")
        return clock.times, sum(counts.values()), peak_mib() - before

    return work


VALIDATORS: Final = {each.__name__: each for each in (ours, ours_stored, many_results, pyshacl, pyrudof, purrdf)}


class Clock:
    """Notes how long each of some things done one after the other takes."""

    def __init__(self) -> None:
        self.times: Times = {}
        self._since = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.times[name], self._since = now - self._since, now


def peak_mib() -> float:
    """Return the most memory that this process has had; getrusage would tell its parent's, if that had more."""
    status = Path("/proc/self/status").read_text()
    return int(re.findall(r"VmHWM:\s*(\d+) kB", status)[0]) / 1024


if __name__ == "__main__":
    # Python looks first in the folder of a script; ours is below that of the project.
    sys.path[0] = str(ROOT)
    work = VALIDATORS[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
    spent, results, *mib = work()
    print(json.dumps({"times": spent, "results": results, "mib": mib[0] if mib else peak_mib()}))
