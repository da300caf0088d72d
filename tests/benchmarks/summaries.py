"""Is the descent through the summaries of a large code fast, and does it find what plain search finds?

A made-up code of some 2,000 sections in a real data directory, with the real index and workers. The time of a descent
is counted above that of embedding the question, which plain search needs as well. Where the real code lies beside the
project, the questions of ``tests/summaries/topics.toml`` are asked of it: how many have an answer among the first five?
"""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from kg.knowledge_graph import KnowledgeGraph
from kg.search import index_sync
from kg.settings import settings
from kg.tools.zoning.topic_search import descend
from kg.zoning_summaries import code_tree
from kg.zoning_summaries.build import build
from kg.zoning_summaries.code_tree import read_tree
from loaders.sources import load
from tests.benchmarks.comparison import Comparison, median, p95, timed
from tests.zoning_summaries.made_up_code import PLACES, THINGS, TOWN, enact, large_code
from tests.zoning_summaries.topics import ask, municipality_in, topics

ROOT = Path(__file__).parent.parent.parent
TOP_K = 5
LIMIT_MS = 150.0


REAL = Path(os.environ.get("QUADCITE_SHARED", ROOT.parent / "shared")) / "data" / "zoning" / "spanish-fork"


def run(arguments: Sequence[str]) -> Iterable[Comparison]:
    """Build the summaries of a code and descend through them; the argument is its sections (2,000)."""
    yield from fast(int(arguments[0]) if arguments else 2_000)
    if REAL.is_dir():
        yield from found()


def found() -> Iterator[Comparison]:
    """Ask a real code what people ask, by the descent and by plain search."""
    logging.getLogger("loaders").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder, KnowledgeGraph.open(Path(folder), settings()) as kg:
        load(kg, "zoning", [str(REAL)], municipality="Spanish Fork", state="UT")
        kg.search.wait()
        place = municipality_in(kg)
        build(kg, place)
        for use in ("development", "kept"):
            asked = ask(kg, place, [topic for topic in topics() if topic.use == use])
            mine, plain = sum(each.found for each in asked), sum(each.found_plainly for each in asked)
            name = f"of {len(asked)} real questions ({use}), answered among the first {TOP_K}"
            yield Comparison(name, mine, plain, "questions", f">= {plain}", mine >= plain)


def fast(sections: int) -> Iterator[Comparison]:
    """Time building and descending."""
    laws = large_code(4, 10, sections // 40)
    with tempfile.TemporaryDirectory() as folder, KnowledgeGraph.open(Path(folder), settings()) as kg:
        enact(kg.store, laws)  # type: ignore[arg-type]  # what `open` opens
        index_sync.repair_index(kg.store, kg.search)
        kg.search.wait()
        began = time.perf_counter()
        report = build(kg, TOWN)
        built_s = time.perf_counter() - began
        yield Comparison("summaries built", report.built / built_s, None, "sections/s")
        began = time.perf_counter()
        again = build(kg, TOWN)
        yield Comparison("building again, nothing changed", (time.perf_counter() - began) * 1000, None, "ms")
        if again.built:
            raise AssertionError(f"{again.built} summaries were built twice")

        questions = [f"rules on a {thing} in a {place}" for thing in THINGS for place in PLACES]
        first = timed(lambda question: descend(kg, TOWN, question, TOP_K), questions[:1])
        embedding = timed(lambda question: kg.search.embed([f"{question}?"]), questions)
        again_ms = timed(lambda question: descend(kg, TOWN, question, TOP_K), questions)
        fresh_ms = timed(lambda question: descend(kg, TOWN, f"{question}, please", TOP_K), questions)
        plain_ms = timed(lambda question: kg.search.rank(f"{question}, now", limit=TOP_K), questions)
        yield Comparison("first descent, the tree read on the way", first[0], None, "ms")
        yield Comparison("embedding one question", p95(embedding), None, "ms p95")
        yield Comparison.at_most("descent, the question known", p95(again_ms), "ms p95", LIMIT_MS, p95(plain_ms))
        above = p95(fresh_ms) - median(embedding)
        yield Comparison.at_most("descent, above embedding the question", above, "ms p95", LIMIT_MS, p95(plain_ms))
        generation = kg.store.statistics().generation
        laws[-1].text = "A windmill may hum."
        enact(kg.store, laws[-1:])  # type: ignore[arg-type]
        assert kg.store.statistics().generation > generation
        stale = timed(lambda question: descend(kg, TOWN, question, TOP_K), questions[:1])
        yield Comparison("first descent after a commit", stale[0], None, "ms")
        reading = timed(lambda _: read_tree(kg, TOWN), questions[:5])
        yield Comparison("reading the tree of all sections", median(reading), None, "ms")
        kept = timed(lambda _: code_tree.cached_tree(kg, TOWN), questions[:5])
        yield Comparison("reading it again, nothing changed", median(kept), None, "ms")
