"""How fast municipal codes become committed sections with what is found in them, beside lxml and `Store.extend`.

``python -m tests.benchmarks zoning [-- --folder FOLDER]``. The files are the real ones where they lie beside the
project, else the fictional code many times over. The alternative does nothing but parse the files and put the finished
quads of the same load into a store: nothing is read out of the markup, extracted, resolved, checked or described.
Vectors are not made. Each measurement runs in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pyoxigraph
from lxml import etree

from kg.knowledge_graph import KnowledgeGraph
from kg.settings import Settings
from kg.store.oxigraph import OxigraphStore
from kg.vocabulary import PROV_GRAPH
from loaders.sources import build_loader, load
from loaders.zoning.readers import input_files
from tests.benchmarks.comparison import Comparison
from tests.benchmarks.hansard import NoIndex, timed

ROOT = Path(__file__).parent.parent.parent
REAL = Path(os.environ.get("QUADCITE_SHARED", ROOT.parent / "shared")) / "data" / "zoning"
TITLE = ROOT / "fixtures" / "zoning" / "title_17_zoning.html"
MADE_UP_TITLES = 20
MOST = 5
_FILES = (".html", ".xml")


def run(arguments: Sequence[str]) -> Iterator[Comparison]:
    parser = argparse.ArgumentParser(prog="zoning")
    parser.add_argument("--folder", type=Path, default=REAL if REAL.is_dir() else None)
    folder: Path | None = parser.parse_args(arguments).folder
    with tempfile.TemporaryDirectory(prefix="quadcite-bench-") as made_up:
        source = folder or write_titles(Path(made_up))
        raw, bare, whole = (measure(mode, source) for mode in ("raw", "bare", "whole"))
    size = f"{raw['files']} files, {raw['bytes'] / 1e6:.1f} MB, {raw['quads']:,} quads"
    least = raw["seconds"]
    for name, found in ((f"load ({size})", bare), ("the same with gate and text index", whole)):
        yield Comparison(name, found["seconds"], least, "s", f"ratio <= {MOST}", found["seconds"] <= MOST * least)
    yield Comparison("load by processor time", bare["cpu"], raw["cpu"], "s")
    yield Comparison("lxml alone", raw["parsing"], None, "s")
    yield Comparison("our parsers alone", raw["reading"], None, "s")
    yield Comparison("sections", bare["sections"] / bare["seconds"], None, "sections/s")
    yield Comparison.at_most("peak memory of the load", bare["mib"], "MiB", 1024, raw["mib"])


def write_titles(folder: Path) -> Path:
    """Write titles of a code that differ in their number alone."""
    text = TITLE.read_text(encoding="utf-8")
    for number in range(MADE_UP_TITLES):
        title = (
            text.replace("17.", f"{number + 20}.")
            .replace("17_", f"{number + 20}_")
            .replace("Title 17", f"Title {number + 20}")
        )
        (folder / f"title_{number + 20}.html").write_text(title, encoding="utf-8")
    return folder


def files_in(source: Path) -> list[Path]:
    """The files that hold the text of codes."""
    return sorted(path for path in source.rglob("*") if path.suffix in _FILES)


def measure(mode: str, source: Path) -> dict[str, Any]:
    """Run one measurement in a child process and return what it found."""
    command = [sys.executable, "-m", "tests.benchmarks.zoning", mode, str(source)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def raw(files: Sequence[Path], folder: Path) -> dict[str, Any]:
    with OxigraphStore(folder / "loaded") as stored:
        settings = Settings(data_dir=folder / "loaded", models_dir=folder / "models")
        load_into(KnowledgeGraph(settings, stored, cast(Any, NoIndex()), cast(Any, None)), files, bare=True)
        dump = folder / "quads.nq"
        with dump.open("wb") as output:
            stored.dump(output, pyoxigraph.RdfFormat.N_QUADS)
    batch = [quad for quad in pyoxigraph.parse(path=dump) if quad.graph_name != PROV_GRAPH]
    store = pyoxigraph.Store(folder / "raw")

    def extend() -> None:
        store.extend(batch)
        store.flush()

    reading = timed(lambda: [each.read() for each in input_files.find_codes(list(files)).inputs])
    parsing = timed(
        lambda: [etree.parse(path, etree.HTMLParser() if path.suffix == ".html" else None) for path in files]
    )
    extending = timed(extend)
    return {
        "seconds": parsing[0] + extending[0],
        "cpu": parsing[1] + extending[1],
        "parsing": parsing[0],
        "reading": reading[0],
        "files": len(files),
        "bytes": sum(path.stat().st_size for path in files),
        "quads": len(batch),
    }


def ready() -> None:
    """Import what a load of codes imports when it is first asked for."""
    build_loader("zoning", Settings())


def load_into(kg: KnowledgeGraph, files: Sequence[Path], *, bare: bool) -> None:
    """Load codes, if `bare` without gate and index."""
    report = load(kg, "zoning", [str(path) for path in files], gate=not bare, index=not bare, state="UT")
    if report.rejections:
        raise RuntimeError(f"{len(report.rejections)} sections were kept out; the first: {report.rejections[0].reason}")


def loaded(mode: str, files: Sequence[Path], folder: Path) -> dict[str, Any]:
    # No model lies there: units wait for vectors that are not made.
    settings = Settings(data_dir=folder / "data", models_dir=folder / "models")
    if mode == "whole":
        with KnowledgeGraph.open(settings.data_dir, settings) as kg:
            seconds, cpu = timed(lambda: load_into(kg, files, bare=False))
            sections = count(kg)
    else:
        with OxigraphStore(settings.data_dir) as store:
            kg = KnowledgeGraph(settings, store, cast(Any, NoIndex()), cast(Any, None))
            seconds, cpu = timed(lambda: load_into(kg, files, bare=True))
            sections = count(kg)
    return {"seconds": seconds, "cpu": cpu, "sections": sections}


def count(kg: KnowledgeGraph) -> int:
    """How many sections there are."""
    [[number]] = kg.store.query("SELECT (COUNT(?s) AS ?n) WHERE { ?s a kg:CodeSection }").rows  # type: ignore[union-attr]
    return int(cast(pyoxigraph.Literal, number).value)


def child(mode: str, source: Path) -> dict[str, Any]:
    """Do one measurement in this process."""
    logging.disable(logging.WARNING)
    ready()
    with tempfile.TemporaryDirectory(prefix="quadcite-bench-") as folder:
        files = files_in(source)
        found = raw(files, Path(folder)) if mode == "raw" else loaded(mode, files, Path(folder))
        return found | {"mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


if __name__ == "__main__":
    print(json.dumps(child(sys.argv[1], Path(sys.argv[2]))))
