"""How fast official XML becomes committed sitting days, beside lxml and `Store.extend` on the same files and quads.

``python -m tests.benchmarks hansard [-- --folder FOLDER]``. The files are the real ones where they lie beside the
project, else days made up from the fixture. The alternative does nothing but parse the XML and put finished quads into
a store: no text is read, cut or hashed, nothing checked, nothing described. Vectors are not made. Each measurement runs
in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any, cast

import pyoxigraph
from lxml import etree

from kg.knowledge_graph import KnowledgeGraph
from kg.settings import Settings
from kg.store.oxigraph import OxigraphStore
from loaders import model
from loaders.hansard.loader import FORMATS, Reading
from loaders.model import SourceGraph
from loaders.readers.locations import find_files
from loaders.sources import load
from tests.benchmarks.comparison import Comparison

ROOT = Path(__file__).parent.parent.parent
REAL = Path(os.environ.get("QUADCITE_SHARED", ROOT.parent / "shared")) / "data" / "hansard"
DAY = ROOT / "fixtures" / "hansard" / "house-2024-03-21.xml"
MADE_UP_DAYS, DEBATES_A_DAY = 5, 60
MOST = 4


def run(arguments: Sequence[str]) -> Iterator[Comparison]:
    parser = argparse.ArgumentParser(prog="hansard")
    parser.add_argument("--folder", type=Path, default=REAL if REAL.is_dir() else None)
    folder: Path | None = parser.parse_args(arguments).folder
    with tempfile.TemporaryDirectory(prefix="quadcite-bench-") as made_up:
        source = folder or write_days(Path(made_up))
        raw, bare, whole = (measure(mode, source) for mode in ("raw", "bare", "whole"))
    size = f"{raw['files']} days, {raw['bytes'] / 1e6:.1f} MB, {raw['quads']:,} quads"
    least = raw["seconds"]
    for name, found in ((f"load ({size})", bare), ("the same with gate and text index", whole)):
        yield Comparison(name, found["seconds"], least, "s", f"ratio <= {MOST}", found["seconds"] <= MOST * least)
    yield Comparison("load by processor time", bare["cpu"], raw["cpu"], "s")
    yield Comparison("lxml alone", raw["parsing"], None, "s")
    yield Comparison("speeches", bare["speeches"] / bare["seconds"], None, "speeches/s")
    yield Comparison.at_most("peak memory of the load", bare["mib"], "MiB", 1024, raw["mib"])


def write_days(folder: Path) -> Path:
    """Write sitting days of the size of real ones, all made of the debates of the fixture."""
    day = DAY.read_text(encoding="utf-8")
    start, end = day.index("<debate>"), day.rindex("</debate>") + len("</debate>")
    for number in range(MADE_UP_DAYS):
        on = (date(2024, 3, 21) - timedelta(days=number)).isoformat()
        text = day[:start] + day[start:end] * DEBATES_A_DAY + day[end:]
        (folder / f"{on}.xml").write_text(text.replace("2024-03-21", on), encoding="utf-8")
    return folder


def days(folder: Path) -> list[Path]:
    """The files that lxml parses."""
    found = []
    for path in sorted(folder.glob("*.xml")):
        try:
            etree.parse(path)
        except etree.XMLSyntaxError:
            continue
        found.append(path)
    return found


def measure(mode: str, source: Path) -> dict[str, Any]:
    """Run one measurement in a child process and return what it found."""
    command = [sys.executable, "-m", "tests.benchmarks.hansard", mode, str(source)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def timed(action: Callable[[], object]) -> tuple[float, float]:
    """Seconds by the clock and of the processor."""
    begun, used = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - begun, time.process_time() - used


def raw(files: Sequence[Path], folder: Path) -> dict[str, Any]:
    located = find_files([str(path) for path in files], Settings(), FORMATS).files
    batches = [
        model.to_quads(item) + [quad for quads in item.shared.values() for quad in quads]
        for item in Reading().read(located)
        if isinstance(item, SourceGraph)
    ]
    store = pyoxigraph.Store(folder)

    def extend() -> None:
        for batch in batches:
            store.extend(batch)
        store.flush()

    parsing = timed(lambda: [etree.parse(path) for path in files])
    extending = timed(extend)
    return {
        "seconds": parsing[0] + extending[0],
        "cpu": parsing[1] + extending[1],
        "parsing": parsing[0],
        "files": len(files),
        "bytes": sum(path.stat().st_size for path in files),
        "quads": sum(map(len, batches)),
    }


class NoIndex:
    """What a load asks of an index."""

    def status(self) -> Any:
        return argparse.Namespace(pending_vectors=0)


def loaded(mode: str, files: Sequence[Path], folder: Path) -> dict[str, Any]:
    # No model lies there: units wait for vectors that are not made.
    settings = Settings(data_dir=folder / "data", models_dir=folder / "models")
    places = [str(path) for path in files]
    if mode == "whole":
        with KnowledgeGraph.open(settings.data_dir, settings) as kg:
            seconds, cpu = timed(lambda: load(kg, "hansard", places))
            speeches = count(kg)
    else:
        with OxigraphStore(settings.data_dir) as store:
            kg = KnowledgeGraph(settings, store, cast(Any, NoIndex()), cast(Any, None))
            seconds, cpu = timed(lambda: load(kg, "hansard", places, gate=False, index=False))
            speeches = count(kg)
    return {"seconds": seconds, "cpu": cpu, "speeches": speeches}


def count(kg: KnowledgeGraph) -> int:
    """How many speeches there are, so that a load that rejected days is not taken for a fast one."""
    [[number]] = kg.store.query("SELECT (COUNT(?s) AS ?n) WHERE { ?s kg:length ?l }").rows  # type: ignore[union-attr]
    found = int(cast(pyoxigraph.Literal, number).value)
    assert found
    return found


def child(mode: str, source: Path) -> dict[str, Any]:
    """Do one measurement in this process."""
    with tempfile.TemporaryDirectory(prefix="quadcite-bench-") as folder:
        files = days(source)
        found = raw(files, Path(folder)) if mode == "raw" else loaded(mode, files, Path(folder))
        return found | {"mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


if __name__ == "__main__":
    print(json.dumps(child(sys.argv[1], Path(sys.argv[2]))))
