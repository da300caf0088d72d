"""How fast files of a watched folder become searchable, and how fast they go.

``python -m tests.benchmarks watching [-- --pages N]``: made-up Markdown pages of 2 KB are loaded; then single pages are
saved under a watcher until a search finds their new word; then two long documents are deleted: one of random words,
which names few entities, and one with many names in each chunk. Vectors are not made.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pyoxigraph import Literal

from kg.interruption import temporary_folder
from kg.knowledge_graph import KnowledgeGraph
from kg.loading import exclusive_load
from kg.retrieval.results import SearchFilters
from kg.sparql.terms import bind
from kg.store.protocol import select, term_text
from kg.tools.search.passages import search
from kg.vocabulary import mint
from loaders import pipeline
from loaders.derivations import follow_load
from loaders.files.graph.entities import get_entity_graph
from loaders.sources import build_loader, build_watcher
from tests.benchmarks.comparison import Comparison
from tests.folders import without_models

PAGES = 1_000
SAVES = 10
CHUNKS = 500
NAMES = 40
"""Names of entities in each chunk of a document that has many."""
CHUNKS_OF = "SELECT (COUNT(*) AS ?n) { ?file kg:path $path . ?chunk dcterms:isPartOf ?file }"
DEADLINE_S = 600.0


def run(arguments: Sequence[str]) -> Iterator[Comparison]:
    parser = argparse.ArgumentParser(prog="watching")
    parser.add_argument("--pages", type=int, default=PAGES)
    pages: int = parser.parse_args(arguments).pages
    with temporary_folder() as base:
        notes, data = base / "notes", base / "data"
        notes.mkdir()
        size = write_pages(notes, pages)
        settings = without_models(data)
        with KnowledgeGraph.open(data, settings) as kg:
            loader = build_loader("files", settings)
            began, before = time.perf_counter(), time.process_time()
            report = pipeline.load(kg, replace(loader, refresh=None), [str(notes)])
            seconds, cpu = time.perf_counter() - began, time.process_time() - before
            assert report.rejected == 0
            name = f"{report.loaded:,} Markdown pages ({size / 1e6:.1f} MB) searchable by words"
            yield Comparison.at_most(name, seconds, "s", 20.0)
            yield Comparison("the same by processor time, without the index process", cpu, None, "s")
            began = time.perf_counter()
            follow_load(kg, loader.domain)
            yield Comparison("their entities and relations", time.perf_counter() - began, None, "s")
            kg.watcher = build_watcher(kg, exclusive_load)
            began = time.perf_counter()
            kg.watcher.watch(notes, None)
            wait_until(lambda: is_resting(kg))
            yield Comparison("start of a watcher of the unchanged folder", time.perf_counter() - began, None, "s")
            times = [save_page(kg, notes, number) for number in range(SAVES)]
            yield Comparison.at_most("a saved page searchable, median", statistics.median(times), "s", 2.0)
            yield Comparison.at_most("the same, slowest", max(times), "s", 2.0)
            yield from delete_long_document(kg, notes, names=0)
            yield from delete_long_document(kg, notes, names=NAMES)


def write_pages(folder: Path, pages: int) -> int:
    """Write made-up pages of 2 KB with three sections each, and return their bytes."""
    chance = random.Random(0)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9))) for _ in range(5_000)]

    def sentence() -> str:
        return " ".join(chance.choices(words, k=12)).capitalize() + "."

    size = 0
    for number in range(pages):
        sections = [f"## {sentence()}\n\n" + " ".join(sentence() for _ in range(8)) for _ in range(3)]
        text = f"# Page {number}\n\n" + "\n\n".join(sections) + "\n"
        (folder / f"{number // 100}").mkdir(exist_ok=True)
        size += (folder / f"{number // 100}" / f"page{number}.md").write_text(text)
    return size


def save_page(kg: KnowledgeGraph, folder: Path, number: int) -> float:
    """Save a page with a new word, and return the seconds until a search finds it."""
    word = f"quorbel{number}x"
    path = folder / "0" / f"page{number}.md"
    path.write_text(path.read_text() + f"\nThe {word} was mended.\n")
    began = time.perf_counter()
    only = SearchFilters(domain=["files"])
    wait_until(lambda: any(word in str(hit) for hit in search(kg, query=word, filters=only, limit=3).results))
    seconds = time.perf_counter() - began
    wait_until(lambda: is_resting(kg))
    return seconds


def delete_long_document(kg: KnowledgeGraph, folder: Path, names: int) -> Iterator[Comparison]:
    """Delete a document of 500 chunks with `names` names in each.

    Measures its commit, and the time until it is gone from the index and what was extracted from it is gone too.
    """
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(5_000)]
    known = [f"{chance.choice(words).title()} {chance.choice(words).title()}" for _ in range(40 * names)]
    parts = []
    for part in range(CHUNKS):
        said = chance.choices(words, k=510 - 4 * names)
        for _ in range(names):
            said.insert(chance.randrange(len(said)), f"the **{chance.choice(known)}** and")
        parts.append(f"# Part {part}\n\n{' '.join(said)}.")
    path = f"long{names}.md"
    (folder / path).write_text("\n\n".join(parts))
    wait_until(lambda: counted(kg, path) > 0 and is_resting(kg))
    entities = get_entity_graph(mint("graph", "src", "files", folder.name, path))
    chunks, quads = counted(kg, path), kg.store.count(entities)
    units = kg.search.status().units
    time.sleep(2)  # a search for changes that was due meanwhile would find the deletion before it has rested
    (folder / path).unlink()
    began, before = time.perf_counter(), time.process_time()
    wait_until(lambda: counted(kg, path) == 0)
    seconds, cpu = time.perf_counter() - began, time.process_time() - before
    wait_until(lambda: kg.search.status().units == units - chunks)
    indexed = time.perf_counter() - began
    wait_until(lambda: kg.store.count(entities) == 0)
    ended = time.perf_counter() - began
    rest = kg.settings.watch_debounce_ms / 1000
    name = f"a document of {chunks} chunks, {quads:,} quads of entities, deleted after its rest of {1000 * rest:.0f} ms"
    yield Comparison.at_most(name, 1000 * (seconds - rest), "ms", 200)
    yield Comparison("the same by processor time, with the looks at it", 1000 * cpu, None, "ms")
    yield Comparison("the same until it is gone from the index", 1000 * (indexed - rest), None, "ms")
    yield Comparison("the same until its entities are gone too", 1000 * (ended - rest), None, "ms")


def counted(kg: KnowledgeGraph, path: str) -> int:
    """Count the chunks of a file in the store."""
    [row] = select(kg.store.query, bind(CHUNKS_OF, path=Literal(path)))
    return int(term_text(row["n"]))


def is_resting(kg: KnowledgeGraph) -> bool:
    """Return whether the folder is watched and no file waits."""
    folders = kg.ingestion.get_status().folders
    return bool(folders) and all(
        each.state == "watching" and not each.pending and not each.unextracted for each in folders
    )


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait until `is_so` returns true."""
    end = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)
