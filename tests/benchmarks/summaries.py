"""Is the descent through the summaries of a large code fast, and does it find what plain search finds?

A made-up code of some 2,000 sections in a real data directory, with the real index and workers. The time of a descent
is counted above that of embedding the question, which plain search needs as well.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from kg.knowledge_graph import KnowledgeGraph
from kg.search import healing
from kg.settings import settings
from kg.summaries import hierarchy
from kg.summaries.building import build
from kg.summaries.descent import descend
from kg.summaries.hierarchy import latest
from tests.benchmarks.comparison import Comparison, median, p95, timed
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
        reading = timed(lambda _: latest(kg, TOWN), questions[:5])
        yield Comparison("reading the tree of all sections", median(reading), None, "ms")
        kept = timed(lambda _: hierarchy.kept(kg, TOWN), questions[:5])
        yield Comparison("reading it again, nothing changed", median(kept), None, "ms")
