"""Is the descent through the summaries of a large code fast, and does it find what plain search finds?

A made-up code of some 2,000 sections in a real data directory, with the real index and workers. The time of a descent
is counted above that of embedding the question, which plain search needs as well.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from kg.knowledge_graph import KnowledgeGraph
from kg.search import healing
from kg.settings import settings
from kg.summaries import hierarchy
from kg.summaries.building import build
from kg.summaries.descent import descend
from kg.summaries.hierarchy import latest
from tests.benchmarks.comparison import Comparison
from tests.summaries.made_up_code import PLACES, THINGS, TOWN, enact, large_code

TOP_K = 5
LIMIT_MS = 150.0


def run(arguments: Sequence[str]) -> Iterable[Comparison]:
    """Build the summaries of a code and descend through them; the argument is its sections (2,000)."""
    sections = int(arguments[0]) if arguments else 2_000
    laws = large_code(4, 10, sections // 40)
    with tempfile.TemporaryDirectory() as folder, KnowledgeGraph.open(Path(folder), settings()) as kg:
        enact(kg.store, laws)  # type: ignore[arg-type]  # what `open` opens
        healing.heal(kg.store, kg.search)
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
        first = _timed(lambda question: descend(kg, TOWN, question, TOP_K), questions[:1])
        embedding = _timed(lambda question: kg.search.embed([f"{question}?"]), questions)
        again_ms = _timed(lambda question: descend(kg, TOWN, question, TOP_K), questions)
        fresh_ms = _timed(lambda question: descend(kg, TOWN, f"{question}, please", TOP_K), questions)
        plain_ms = _timed(lambda question: kg.search.rank(f"{question}, now", limit=TOP_K), questions)
        yield Comparison("first descent, the tree read on the way", first[0], None, "ms")
        yield Comparison("embedding one question", _p95(embedding), None, "ms p95")
        yield Comparison.at_most("descent, the question known", _p95(again_ms), "ms p95", LIMIT_MS, _p95(plain_ms))
        above = _p95(fresh_ms) - statistics.median(embedding)
        yield Comparison.at_most("descent, above embedding the question", above, "ms p95", LIMIT_MS, _p95(plain_ms))
        generation = kg.store.statistics().generation
        laws[-1].text = "A windmill may hum."
        enact(kg.store, laws[-1:])  # type: ignore[arg-type]
        assert kg.store.statistics().generation > generation
        stale = _timed(lambda question: descend(kg, TOWN, question, TOP_K), questions[:1])
        yield Comparison("first descent after a commit", stale[0], None, "ms")
        reading = _timed(lambda _: latest(kg, TOWN), questions[:5])
        yield Comparison("reading the tree of all sections", statistics.median(reading), None, "ms")
        kept = _timed(lambda _: hierarchy.kept(kg, TOWN), questions[:5])
        yield Comparison("reading it again, nothing changed", statistics.median(kept), None, "ms")


def _timed(run_one: Callable[[str], object], questions: Sequence[str]) -> list[float]:
    times = []
    for question in questions:
        began = time.perf_counter()
        run_one(question)
        times.append((time.perf_counter() - began) * 1000)
    return times


def _p95(times: Sequence[float]) -> float:
    return sorted(times)[int(0.95 * (len(times) - 1))]
