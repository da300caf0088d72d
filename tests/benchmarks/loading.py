"""How fast documents load, beside `Store.extend` of the same quads without gate, provenance or index.

``python -m tests.benchmarks loading [-- --passages N]``; the steadiness of long loads is judged from 200,000 passages.
Each measurement runs in a process of its own, so that its peak memory is its own too. Vectors are not made.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pyoxigraph

from kg.knowledge_graph import KnowledgeGraph
from kg.search.protocol import GraphUnits, SearchIndex
from kg.settings import Settings
from loaders import model
from loaders.batches import BATCH_QUADS
from loaders.climate import documents
from loaders.model import SourceDocument
from loaders.readers.locations import find_files
from loaders.sources import load
from tests.benchmarks.comparison import Comparison

PASSAGES = 50_000
LONG_LOAD = 200_000
PASSAGES_A_DOCUMENT = 100
GATED_SHARE = 10
MIB = 1 << 20


def run(arguments: Sequence[str]) -> Iterator[Comparison]:
    parser = argparse.ArgumentParser(prog="loading")
    parser.add_argument("--passages", type=int, default=PASSAGES)
    passages: int = parser.parse_args(arguments).passages
    with tempfile.TemporaryDirectory(prefix="quadcite-bench-") as folder:
        source, small = Path(folder) / "passages.parquet", Path(folder) / "some.parquet"
        write_passages(source, passages)
        write_passages(small, max(passages // GATED_SHARE, PASSAGES_A_DOCUMENT))
        raw = measure("raw", source)
        bare = measure("bare", source)
        indexed = measure("indexed", source)
        gated = measure("gated", small)
    theirs = raw["quads"] / raw["seconds"]
    size = f"{passages:,} passages"
    yield Comparison.at_least(f"load, no index ({size})", bare["quads"] / bare["seconds"], theirs, "quads/s", 0.4)
    yield Comparison.at_least(f"load, index ({size})", indexed["quads"] / indexed["seconds"], theirs, "quads/s", 0.25)
    yield Comparison("load, gate (a tenth of them)", gated["quads"] / gated["seconds"], theirs, "quads/s")
    for name, found in (("no index", bare), ("index", indexed)):
        first, last = tenths([(seconds, done) for seconds, done, _ in found["progress"]])
        title = f"last tenth beside the first, {name}"
        if passages >= LONG_LOAD:
            yield Comparison.at_least(title, last, first, "passages/s", 0.8)
        else:
            yield Comparison(title, last, first, "passages/s")
        first, last = tenths([(cpu, done) for _, done, cpu in found["progress"]])
        yield Comparison(f"the same by processor time, {name}", last, first, "passages/s")
    yield Comparison.at_most("peak memory of the load, no index", bare["mib"], "MiB", 1536, raw["mib"])
    yield Comparison.at_most("peak memory of the load, index", indexed["mib"], "MiB", 1536)
    yield Comparison.at_most("peak memory of the index process", indexed["child_mib"], "MiB", 1536)


def make_words(chance: random.Random) -> list[str]:
    """Make the vocabulary of made-up passages."""
    return ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9))) for _ in range(20_000)]


def write_passages(path: Path, passages: int, first: int = 0) -> None:
    """Write made-up passages of about 40 words from number `first`, a hundred a document, two documents a family."""
    chance = random.Random(0)
    words = make_words(chance)

    def row(number: int) -> dict[str, object]:
        document, index = divmod(number, PASSAGES_A_DOCUMENT)
        return {
            "document_id": f"FICT.executive.{document}",
            "document_slug": f"fictional-{document:07d}",
            "document_name": f"Fictional document {document}",
            "document_description": " ".join(chance.choices(words, k=60)),
            "geography_iso": ("BRA", "DJI", "FJI", "KEN")[document % 4],
            "family_slug": f"fictional-family-{document // 2}",
            "family_name": f"Fictional family {document // 2}",
            "category": "executive",
            "publication_ts": "2030-01-01",
            "document_source_url": f"https://example.org/{document}.pdf",
            "block_index": index,
            "page_number": index // 8,
            "type": "Text" if index % 10 else "sectionHeading",
            "language": "en",
            "text": " ".join(chance.choices(words, k=40)),
        }

    numbers = iter(range(first, first + passages))
    writer: pq.ParquetWriter | None = None
    while rows := [row(number) for number in islice(numbers, 10_000)]:
        table = pa.Table.from_pylist(rows)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def measure(mode: str, source: Path) -> dict[str, Any]:
    """Run one measurement in a child process and return what it found."""
    command = [sys.executable, "-m", "tests.benchmarks.loading", mode, str(source)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@contextlib.contextmanager
def noting_indexed(search: SearchIndex) -> Iterator[list[tuple[float, int, float]]]:
    """Note each time when passages have become searchable: when, how many are by now, and `processor_s`.

    Graphs that are indexed again count again, so this is for a load of new records.
    """
    noted: list[tuple[float, int, float]] = []
    lock = threading.Lock()
    replace = search.replace

    def replace_noting(graphs: Mapping[str, GraphUnits]) -> None:
        replace(graphs)
        with lock:
            before = noted[-1][1] if noted else 0
            added = sum(len(each.units) for each in graphs.values())
            noted.append((time.perf_counter(), before + added, processor_s()))

    with patch.object(search, "replace", replace_noting):
        yield noted


def tenths(progress: Sequence[tuple[float, int]]) -> tuple[float, float]:
    """Passages a second in the first tenth (after the first point, which waits for the file) and in the last."""
    share = progress[-1][1] / 10
    first = next((point for point in progress if point[1] - progress[0][1] >= share), progress[-1])
    before = next((point for point in reversed(progress) if progress[-1][1] - point[1] >= share), progress[0])

    def speed(start: tuple[float, int], end: tuple[float, int]) -> float:
        return (end[1] - start[1]) / (end[0] - start[0]) if end[0] > start[0] else 0.0

    return speed(progress[0], first), speed(before, progress[-1])


def extend_raw(source: Path, data_dir: Path) -> tuple[float, int]:
    """Seconds that `Store.extend` takes for the quads of `source`, making them not counted, and how many they are."""
    store = pyoxigraph.Store(data_dir / "store")
    seconds, count = 0.0, 0
    batch: list[pyoxigraph.Quad] = []

    def extend() -> None:
        nonlocal seconds, count
        start = time.perf_counter()
        store.extend(batch)
        seconds += time.perf_counter() - start
        count += len(batch)
        batch.clear()

    for item in documents.read(find_files([str(source)], Settings()).files):
        if isinstance(item, SourceDocument):
            batch += model.to_quads(item)
            batch += [quad for quads in item.shared.values() for quad in quads]
            if len(batch) >= BATCH_QUADS:
                extend()
    extend()
    return seconds, count


def processor_s() -> float:
    """Seconds of processor time of this process and, where the system tells, of those that it runs.

    Unlike the time on the clock they do not depend on what else the machine does.
    """
    ticks = 0
    for file in Path("/proc/self/task").glob("*/children"):
        for pid in file.read_text().split():
            fields = Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def child(mode: str, source: Path) -> dict[str, object]:
    """Do one measurement in this process."""
    with tempfile.TemporaryDirectory(prefix="quadcite-bench-") as folder:
        progress: list[tuple[float, int, float]] = []
        if mode == "raw":
            seconds, quads = extend_raw(source, Path(folder))
        else:
            # No model lies there: units wait for vectors that are not made.
            chosen = Settings(data_dir=Path(folder) / "data", models_dir=Path(folder) / "models")
            with KnowledgeGraph.open(chosen.data_dir, chosen) as kg:
                start = time.perf_counter()
                with noting_indexed(kg.search) as indexed:
                    report = load(
                        kg,
                        "climate",
                        [str(source)],
                        gate=mode == "gated",
                        index=mode == "indexed",
                        on_progress=lambda done, _, __: progress.append((time.perf_counter(), done, processor_s())),
                    )
                seconds, quads = time.perf_counter() - start, report.quads_added
                progress = indexed or progress
    return {
        "seconds": seconds,
        "quads": quads,
        "progress": progress,
        "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MIB,
        "child_mib": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / MIB,
    }


if __name__ == "__main__":
    print(json.dumps(child(sys.argv[1], Path(sys.argv[2]))))
