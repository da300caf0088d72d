"""How the cost of each part grows with the number of passages: load, memory, disk, opening, searches, tools, SPARQL.

``make bench-scale`` (ARGS="--sizes 10000,100000,1000000"). It also embeds with ``--vectors words``, made-up vectors
that follow from the words of a text, or ``--vectors random``, which have nothing to do with them: then a search has to
read the lists by words and by meaning far down before its first results are certain.

It is no part of ``make bench``: a million passages take an hour. Each size is loaded by one process and asked by
another one, after a clean stop and after a kill, so each peak is of one job. Figures are printed as a table and, with
``--json FILE``, written as soon as each is measured, for the plots of the chapter.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from pyoxigraph import NamedNode
from rich.console import Console
from rich.table import Table

from kg.files import write_file
from kg.integrity.backups import write_backup
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.results import SearchFilters
from kg.search import index_process
from kg.search.embedding import Embedder
from kg.search.index_client import EdgeIndex
from kg.search.index_sync import repair_index
from kg.settings import Settings
from kg.tools import registry
from kg.tools.reading.why import explain
from kg.tools.schema.schema_measurement import get_schema, measuring
from kg.tools.shacl.background_validation import DatasetChecks
from loaders.mentions.graph.refresh import refresh as refresh_mentions
from loaders.sources import load
from tests.benchmarks.comparison import Comparison, median, p95, table
from tests.benchmarks.loading import PASSAGES_A_DOCUMENT, make_words, noting_indexed, tenths, write_passages
from tests.benchmarks.mentions import concept as make_concept
from tests.benchmarks.search import RandomEmbedder, WordEmbedder
from tests.waiting import find_children

SIZES: Final = (10_000, 100_000, 1_000_000)
QUESTIONS: Final = 40
MILLION: Final = 1_000_000
MOST_BYTES: Final = 150.0
"""Maximum anonymous memory of the processes of the index, in bytes a passage, for a million passages."""
CHECK_S: Final = 3_600.0
MIB: Final = 1 << 20
SCRIPT: Final = (sys.executable, "-m", "tests.benchmarks.scale")

Figures = dict[str, float]

EMBEDDERS: Final[dict[str, Callable[[], Embedder]]] = {"words": WordEmbedder, "random": RandomEmbedder}

SPARQL: Final = {
    "SPARQL, one passage": "SELECT ?t { ?u schema:position 3 ; schema:text ?t } LIMIT 1",
    "SPARQL, count by country": """SELECT ?place (COUNT(?document) AS ?n) {
        ?document a kg:PolicyDocument ; kg:jurisdiction ?place } GROUP BY ?place""",
    "SPARQL, count all passages": "SELECT (COUNT(?unit) AS ?n) { ?unit a kg:Passage }",
}
TOOLS: Final[dict[str, dict[str, Any]]] = {
    "family_overview": {"place": ["KEN"]},
    "jurisdiction_overview": {"place": "KEN"},
    "compare_jurisdictions": {"iso3_a": "KEN", "iso3_b": "BRA"},
    "list_resources": {},
    "describe_schema": {},
    "find_terms": {"text": "Kenya"},
}
"""Arguments of further tools, each of which is measured."""


def run(arguments: Sequence[str]) -> Iterator[Comparison]:
    """Measure each size; the first size is the one that the others are compared with."""
    parser = argparse.ArgumentParser(prog="scale")
    parser.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",")], default=list(SIZES))
    parser.add_argument("--vectors", choices=[*EMBEDDERS], default="", help="embed, by the words or at random")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    given = parser.parse_args(arguments)
    found: dict[int, Figures] = {}
    for size in given.sizes:
        for figures in measure(size, given.vectors):
            found.setdefault(size, {}).update(figures)
            if given.json is not None:  # each time, so that a run that is stopped keeps its figures
                write_file(given.json, json.dumps(found, indent=1) + "\n")
    Console(width=None if sys.stdout.isatty() else 160).print(build_table(found))
    least, most = found[given.sizes[0]], found[given.sizes[-1]]
    for name in ("load: passages/s", "index: bytes on disk a passage", "search, words: p95 ms", "search, all: p95 ms"):
        yield Comparison(f"{name}, {given.sizes[-1]:,} beside {given.sizes[0]:,}", most[name], least[name], "")
    anonymous = most["index process: anonymous bytes a passage"]
    yield compare_memory("anonymous memory a passage", anonymous, given.sizes[-1])
    last, first = most["load, last tenth: passages/s"], most["load, first tenth: passages/s"]
    yield Comparison.at_least("last tenth of the load beside the first", last, first, "passages/s", 0.8)


def measure(passages: int, vectors: str) -> Iterator[Figures]:
    """Load `passages` in one process, ask in others, and yield the figures as they are measured."""
    with tempfile.TemporaryDirectory(prefix="bench-scale-") as folder:
        source, data = Path(folder) / "passages.parquet", Path(folder) / "data"
        write_passages(source, passages)
        yield from run_child("load", str(source), str(data), vectors)
        for part in ("store", "index"):
            used = sum(file.stat().st_blocks * 512 for file in (data / part).rglob("*") if file.is_file())
            yield {f"{part}: bytes on disk a passage": used / passages}
        yield from run_child("ask", str(data), vectors, str(passages))
        more = Path(folder) / "more.parquet"
        write_passages(more, PASSAGES_A_DOCUMENT, first=passages)
        yield from run_child("change", str(more), str(data), vectors)
        yield from run_child("search", str(data), vectors)
        yield from run_child("kill", str(data), vectors)
        for figures in run_child("open", str(data), vectors):
            yield {f"{name}, after kill -9": value for name, value in figures.items()}


def run_child(*arguments: str) -> Iterator[Figures]:
    """Run one job in a process of its own and yield its figures as it prints them."""
    command = [*SCRIPT, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout is not None
        for line in job.stdout:
            yield json.loads(line)
    if job.returncode:
        raise subprocess.CalledProcessError(job.returncode, command)


def compare_memory(name: str, used: float, passages: int) -> Comparison:
    """Build the line of the anonymous memory of the index in bytes a passage, with its limit from a million on.

    With fewer passages most of it is that of the processes.
    """
    name = f"{name}, {passages:,}"
    if passages < MILLION:
        return Comparison(name, used, None, "bytes")
    return Comparison.at_most(name, used, "bytes", MOST_BYTES)


def build_table(found: dict[int, Figures]) -> Table:
    """Build the table of all figures: a row a figure, a column a size."""
    table = Table("figure", *(f"{size:,}" for size in found))
    for name in next(iter(found.values())):
        table.add_row(
            name,
            *(f"{each[name]:,.4g}" if each.get(name, 0) < 1e6 else f"{each[name]:,.0f}" for each in found.values()),
        )
    return table


def read_memory(pid: int) -> Figures:
    """Read the memory of a process in bytes: anonymous, of files, and its peak."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {name: int(status[name].split()[0]) * 1024.0 for name in ("RssAnon", "RssFile", "VmHWM")}


def find_index_processes() -> list[int]:
    """Find the index process and those of its shards."""

    def runs(pid: int, module: bytes) -> bool:
        return module in Path(f"/proc/{pid}/cmdline").read_bytes()

    [index] = [pid for pid in find_children(os.getpid()) if runs(pid, b"index")]
    return [index, *(pid for pid in find_children(index) if runs(pid, b"shard_process"))]


@contextlib.contextmanager
def opened(data: Path, vectors: str, processes: int = 0) -> Iterator[KnowledgeGraph]:
    """Open the graph, with the made-up embedder or without a model."""
    if vectors:
        EdgeIndex.command = (*SCRIPT, "index", vectors)
    settings = Settings(data_dir=data, models_dir=data / "models", index_processes=processes, _env_file=None)
    with KnowledgeGraph.open(data, settings) as kg:
        yield kg


def load_source(source: Path, data: Path, vectors: str) -> Iterator[Figures]:
    """Load the file, wait until the index rests, and report rates and peaks."""
    with opened(data, vectors) as kg, watching_memory() as most:
        begun = time.perf_counter()
        with noting_indexed(kg.search) as indexed:
            load(kg, "climate", [str(source)])
        seconds = time.perf_counter() - begun
        units = kg.search.status().units
        first, last = tenths([(at, done) for at, done, _ in indexed])
        total = indexed[-1][1]
        ends = [next(at for at, done, _ in indexed if done >= total * tenth / 10) - begun for tenth in range(1, 11)]
        yield {
            "load: passages/s": units / seconds,
            "load, first tenth: passages/s": first,
            "load, last tenth: passages/s": last,
        }
        for tenth, (start, end) in enumerate(pairwise([0.0, *ends]), 1):
            yield {f"load, tenth {tenth} until it is searchable: s": end - start}
        if vectors:
            begun = time.perf_counter()
            kg.search.wait()
            yield {"vectors stored after the load: s": time.perf_counter() - begun}
        begun = time.perf_counter()
        wait_until_at_rest(data / "index")
        yield {"optimizing after the load: s": time.perf_counter() - begun}
        yield {
            "load: most anonymous memory of all processes of the index, MiB": max(most.index, default=0.0) / MIB,
            "load: most anonymous memory of optimizing, MiB": max(most.optimizing, default=0.0) / MIB,
        }
        quarters = [max(part, default=0.0) / MIB for part in divide(most.index, 4)]
        for number, used in enumerate(quarters, 1):
            yield {f"load: anonymous memory of all processes of the index, quarter {number}, MiB": used}
        [index, *_] = find_index_processes()
        yield {
            "load: peak of the first process of the index, MiB": read_memory(index)["VmHWM"] / MIB,
            "load: peak of the loading process, MiB": read_memory(os.getpid())["VmHWM"] / MIB,
        }


@dataclass(slots=True)
class Watched:
    """Anonymous memory in bytes over time: of the index process with those of its shards, and of optimizing a shard."""

    index: list[float] = field(default_factory=list)
    optimizing: list[float] = field(default_factory=list)


@contextlib.contextmanager
def watching_memory(pause_s: float = 0.5) -> Iterator[Watched]:
    """Read the memory of the index process and its children until the block ends."""
    watched, stop = Watched(), threading.Event()

    def watch() -> None:
        while not stop.wait(pause_s):
            with contextlib.suppress(OSError, KeyError, ValueError):  # of a process that has ended
                processes = find_index_processes()
                watched.index.append(sum(read_memory(pid)["RssAnon"] for pid in processes))
                optimizing = {child for pid in processes for child in find_children(pid)} - {*processes}
                watched.optimizing += [read_memory(child)["RssAnon"] for child in optimizing]

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield watched
    finally:
        stop.set()
        thread.join()


def divide(values: Sequence[float], parts: int) -> list[Sequence[float]]:
    """Divide values in order into parts of the same number."""
    return [values[len(values) * each // parts : len(values) * (each + 1) // parts] for each in range(parts)]


def wait_until_at_rest(index: Path, quiet_s: float = 12.0) -> None:
    """Wait until no shard of the index has been written or replaced for `quiet_s` seconds."""
    state, since = "", time.monotonic()
    while time.monotonic() < since + quiet_s:
        shards, copies = sorted(index.glob("shard-*")), sorted(index.glob("shard-*/edge-*"))
        now = json.dumps([str(path) for path in copies])
        if now != state or len(copies) > len(shards):
            state, since = now, time.monotonic()
        time.sleep(0.5)


def open_only(data: Path, vectors: str) -> Iterator[Figures]:
    """Measure the time until the first search is answered."""
    begun = time.perf_counter()
    with opened(data, vectors) as kg:
        kg.search.rank("solar levy", limit=10, mode="bm25")
        yield {"open: s until the first search": time.perf_counter() - begun}


def ask(data: Path, vectors: str, passages: int) -> Iterator[Figures]:
    """Measure the opening, searches, tools and queries, and the memory of the processes after them."""
    begun = time.perf_counter()
    with opened(data, vectors) as kg, measuring(kg):
        kg.search.rank("solar levy", limit=10, mode="bm25")
        yield {"open: s until the first search": time.perf_counter() - begun}
        yield {"tool describe_schema: ms while it is measured": measure_call(kg)}
        wait_until_measured(kg)
        yield {"schema measured after opening: s": time.perf_counter() - begun}
        chance, question = random.Random(5), make_questions()
        tools = {name: registry.get(name) for name in ("search", "fetch", *TOOLS)}
        known = [each.iri for each in kg.search.rank(question(), limit=100, mode="bm25").candidates]

        def search(**filters: Any) -> None:
            tools["search"].function(kg, question(), limit=10, **filters)

        jobs: dict[str, Callable[[], object]] = {
            **list_searches(kg, question),
            "tool search, no filter": search,
            "tool search, a quarter": lambda: search(filters=SearchFilters(place=["KEN"])),
            "tool fetch": lambda: tools["fetch"].function(kg, ids=[chance.choice(known)]),
        }
        jobs |= {f"tool {name}": partial(tools[name].function, kg, **given) for name, given in TOOLS.items()}
        jobs |= {
            "why of a passage": lambda: explain(kg, NamedNode(chance.choice(known))),
            **{name: partial(kg.query, query) for name, query in SPARQL.items()},
        }
        for name, job in jobs.items():
            begun = time.perf_counter()
            job()
            if name.removeprefix("tool ") in TOOLS:  # which keep what they count until the next commit
                yield {f"{name}: first ms": (time.perf_counter() - begun) * 1_000}
            often = name.startswith(("search", "tool search", "tool fetch", "why"))
            yield measure_times(name, job, QUESTIONS if often else 10)
        used = [read_memory(pid) for pid in find_index_processes()]
        anonymous = sum(each["RssAnon"] for each in used)
        yield {
            "index process: with those of its shards": len(used),
            "index process: anonymous bytes a passage": anonymous / passages,
            "index process: anonymous MiB": anonymous / MIB,
            "index process: of files, MiB": sum(each["RssFile"] for each in used) / MIB,
        }


def measure_times(name: str, job: Callable[[], object], number: int) -> Figures:
    """Run a job several times, and report the median and the 95th percentile."""
    times = []
    for _ in range(number):
        begun = time.perf_counter()
        job()
        times.append((time.perf_counter() - begun) * 1_000)
    times.sort()
    return {f"{name}: p50 ms": median(times), f"{name}: p95 ms": p95(times)}


def measure_call(kg: KnowledgeGraph) -> float:
    """Measure a call of describe_schema in milliseconds."""
    begun = time.perf_counter()
    registry.get("describe_schema").function(kg)
    return (time.perf_counter() - begun) * 1_000


def wait_until_measured(kg: KnowledgeGraph) -> None:
    """Wait until the schema of the last commit is measured."""
    while get_schema(kg, 0.0).generation < kg.store.statistics().generation:
        time.sleep(0.01)


def change(source: Path, data: Path, vectors: str) -> Iterator[Figures]:
    """Measure the costs of a small change, and of a backup: all should depend on the change, and on the files."""

    def measure_s(name: str, job: Callable[[], object]) -> Figures:
        begun = time.perf_counter()
        job()
        return {f"{name}: s": time.perf_counter() - begun}

    with opened(data, vectors) as kg, tempfile.TemporaryDirectory(prefix="bench-scale-", dir=data.parent) as folder:
        checks = DatasetChecks(kg, pause_s=0.0)

        def check() -> None:
            checks.schedule()
            if not checks.wait(CHECK_S) or (result := checks.result()) is None or result.problem:
                raise RuntimeError(f"the check of the dataset failed: {checks.result()}")

        concepts = [make_concept(number, word) for number, word in enumerate(make_words(random.Random(0))[:2], 1)]
        yield measure_s("check of the dataset, first", check)
        yield measure_s("one document more", lambda: load(kg, "climate", [str(source)]))
        yield measure_s("check of the dataset after it", check)
        for name, (graph, quads) in zip(
            ("mentions of the first concept", "mentions of a new concept"), concepts, strict=True
        ):
            kg.store.commit({graph: quads})
            yield measure_s(name, lambda: refresh_mentions(kg))
        yield measure_s("comparison of index and store", lambda: repair_index(kg.store, kg.search))
        yield measure_s("backup", lambda: write_backup(kg, Path(folder) / "backup"))


def make_questions() -> Callable[[], str]:
    """Return a function that makes up the next question."""
    vocabulary, chance = make_words(random.Random(0)), random.Random(5)
    return lambda: " ".join(chance.sample(vocabulary, 4))


def list_searches(kg: KnowledgeGraph, question: Callable[[], str]) -> dict[str, Callable[[], object]]:
    """List the searches that are measured."""
    return {
        "search, words": lambda: kg.search.rank(question(), limit=100, mode="bm25"),
        "search, all": lambda: kg.search.rank(question(), limit=100),
    }


def search_in_one_process(data: Path, vectors: str) -> Iterator[Figures]:
    """Measure searches while the index process has all shards."""
    with opened(data, vectors, processes=1) as kg:
        for name, job in list_searches(kg, make_questions()).items():
            job()
            yield measure_times(f"{name}, one process", job, QUESTIONS)


def kill_while_open(data: Path, vectors: str) -> Iterator[Figures]:
    """Open the graph, and kill its processes."""
    with opened(data, vectors) as kg:
        kg.search.rank("solar levy", limit=10, mode="bm25")
        yield {}
        for pid in find_children(os.getpid()):
            os.kill(pid, signal.SIGKILL)
        os._exit(0)


JOBS: Final[dict[str, Callable[..., Iterator[Figures]]]] = {
    "load": lambda source, data, vectors: load_source(Path(source), Path(data), vectors),
    "ask": lambda data, vectors, passages: ask(Path(data), vectors, int(passages)),
    "change": lambda source, data, vectors: change(Path(source), Path(data), vectors),
    "search": lambda data, vectors: search_in_one_process(Path(data), vectors),
    "open": lambda data, vectors: open_only(Path(data), vectors),
    "kill": lambda data, vectors: kill_while_open(Path(data), vectors),
}
"""What a process of its own measures, by name."""


if __name__ == "__main__":
    mode, given = sys.argv[1], sys.argv[2:]
    if mode == "index":
        index_process.main(lambda settings, model: EMBEDDERS[given[0]]())
    elif mode in JOBS:
        for figures in JOBS[mode](*given):
            print(json.dumps(figures), flush=True)
    else:
        Console().print(table("scale", list(run(sys.argv[1:]))))
