"""Writing the summaries of a code: level by level from its leaves, whatever is missing or stale and no more.

Every batch is one commit, so a build that is killed has done what it has committed, and the next one goes on from
there: the hashes of the inputs say what is left. One writer's current summaries are not replaced by a plainer one's:
extracts never replace what a model or an agent has written of the same text.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from pyoxigraph import Literal

from kg.errors import QuadciteError, UpstreamError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance import Run
from kg.provenance.reading import iri_of
from kg.search.healing import Progress
from kg.sparql.terms import bind
from kg.store.protocol import select
from kg.summaries import hierarchy, vectors
from kg.summaries.descent import standing_for
from kg.summaries.hierarchy import Hierarchy, Summary, summary_of
from kg.summaries.instructions import Source
from kg.summaries.storing import AGENT, commit, source_of, summary_by
from kg.summaries.writers import Chat, Mode, Summarizer, rank, writer_for
from kg.vocabulary import BASE, sha256

BATCH: Final = 50
"""Summaries of one commit."""
ENOUGH_FAILURES: Final = 5
"""Failures of an endpoint in a row after which a build asks it no more."""

_SUMMARIES: Final = BASE + "id/summary/"

ALL_GRAPHS: Final = """
SELECT ?graph ?section WHERE {
  GRAPH ?graph { ?summary kg:summaryOf ?section } FILTER(STRSTARTS(STR(?section), $prefix))
}"""


@dataclass(slots=True)
class BuildReport:
    """What a build did. `run` is its run in ``graph/prov``, None where nothing had to be committed."""

    municipality: str
    model: str
    run: str | None = None
    sections: int = 0
    """Sections in question: those below the root that was given, or all."""
    built: int = 0
    current: int = 0
    """Summaries that were current already."""
    empty: int = 0
    """Sections in which nothing can be summarized."""
    removed: int = 0
    """Summaries of sections that are gone, or have nothing to summarize any more."""
    failed: dict[str, str] = field(default_factory=dict)
    """Sections without a summary now, and why."""
    waiting: int = 0
    """Sections that wait for a part that failed, or for which an endpoint was not asked any more."""
    circular: list[str] = field(default_factory=list)
    """Sections that are, over their parents, parts of themselves."""
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON types."""
        said = {name: getattr(self, name) for name in self.__slots__}
        return said | {"seconds": round(self.seconds, 3)}


def build(
    kg: KnowledgeGraph,
    municipality: str,
    root: str | None = None,
    *,
    mode: Mode = "extractive",
    anew: bool = False,
    on_progress: Progress | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> BuildReport:
    """Bring the summaries of a municipality in line with its sections: those at and below `root`, or all.

    With `anew`, those that are current are written again too. A section that fails is told of and does not stop the
    others, only those that it is a part of; an endpoint that fails `ENOUGH_FAILURES` times in a row is left alone.
    Raises NotFoundError where there is no such municipality or root, InvalidInputError where `mode` has no endpoint.
    """
    writer = writer_for(kg, mode, sleep)
    tree = hierarchy.latest(kg, municipality)
    return _Build(kg, tree, writer, municipality, on_progress).run(tree.below(root), forced=anew)


def rebuild(
    kg: KnowledgeGraph,
    section: str,
    *,
    mode: Mode = "extractive",
    on_progress: Progress | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> BuildReport:
    """Write the summary of `section` again, and those below and above it that are missing or stale; else as `build`."""
    municipality = hierarchy.municipality_of(kg.store.query, section)
    writer = writer_for(kg, mode, sleep)
    tree = hierarchy.latest(kg, municipality)
    work = _Build(kg, tree, writer, municipality, on_progress)
    return work.run([*reversed(tree.above(section)), *tree.below(section)], forced={section})


class _Build:
    def __init__(
        self,
        kg: KnowledgeGraph,
        tree: Hierarchy,
        writer: Summarizer,
        municipality: str,
        on_progress: Progress | None,
    ) -> None:
        self.kg, self.tree, self.writer, self.on_progress = kg, tree, writer, on_progress
        self.report = BuildReport(municipality, writer.model)
        self.prov_run = Run(AGENT, {"municipality": municipality, "model": writer.model})
        self.failures = 0
        """Of the endpoint, in a row."""
        self.lock = threading.Lock()

    def run(self, sections: Sequence[str], forced: bool | set[str] = False) -> BuildReport:
        started = time.perf_counter()
        tree, report = self.tree, self.report
        report.sections = len(sections)
        report.circular = sorted(iri for iri, state in tree.states.items() if state == "circular")
        report.empty = sum(tree.states[iri] == "empty" for iri in sections)
        self.sweep()
        levels: dict[int, list[str]] = {}
        for iri in sections:
            if iri in tree.heights:
                levels.setdefault(tree.heights[iri], []).append(iri)
        done, whole = 0, sum(map(len, levels.values()))
        for _, level in sorted(levels.items()):
            todo = [iri for iri in level if forced is True or (forced and iri in forced) or self.is_due(iri)]
            report.current += len(level) - len(todo)
            done += len(level) - len(todo)
            written: list[Summary] = []
            with ThreadPoolExecutor(self.writer.threads, "summaries") as threads:
                for start in range(0, len(todo), BATCH):
                    batch = todo[start : start + BATCH]
                    written += self.write(batch, threads)
                    done += len(batch)
                    if self.on_progress is not None:
                        self.on_progress(done, whole, "summarizing")
            tree.put(written)
        if report.built:  # so that the first question does not wait for it
            texts = [standing_for(tree, section) for section in tree.order if section in tree.heights]
            vectors.of_code(self.kg, report.municipality, texts)
        if isinstance(self.writer, Chat):
            usage = self.writer.endpoint.usage
            report.requests = usage.requests
            report.prompt_tokens, report.completion_tokens = usage.prompt_tokens, usage.completion_tokens
        report.seconds = time.perf_counter() - started
        return report

    def is_due(self, iri: str) -> bool:
        """Say whether the summary of `iri` is to be written: what is current stays, unless it is a plainer one's."""
        summary = self.tree.summaries.get(iri)
        if summary is None or self.tree.states[iri] != "current":
            return True
        mine, theirs = rank(self.writer.model), rank(summary.model)
        if mine != theirs or summary.method == "agent":
            return mine > theirs
        [source] = self.sources([iri], {})
        return summary.model != self.writer.model or summary.prompt_sha256 != self.writer.prompt_sha256(source)

    def sources(self, sections: Iterable[str], texts: dict[str, str]) -> list[Source]:
        return [source_of(self.tree, iri, texts.get(iri, "")) for iri in sections]

    def write(self, batch: Sequence[str], threads: ThreadPoolExecutor) -> list[Summary]:
        """Have the summaries of some sections of one level written, and commit them."""
        texts = hierarchy.texts(self.kg.store.query, batch)
        ready = [iri for iri in batch if self.is_ready(iri, texts.get(iri))]
        sources = self.sources(ready, texts)
        made = [
            (source, text) for source, text in zip(sources, threads.map(self.attempt, sources), strict=True) if text
        ]
        summaries = [
            summary_by(self.tree, source.section, text, self.writer.model, self.writer.prompt_sha256(source))
            for source, text in made
        ]
        if summaries:
            self.report.run = commit(self.kg, self.tree, summaries, self.prov_run) or self.report.run
            self.report.built += len(summaries)
        return summaries

    def is_ready(self, iri: str, text: str | None) -> bool:
        digest = self.tree.sections[iri].text_sha256
        if (None if text is None else sha256(text)) != digest:
            self.report.failed[iri] = "its text was changed meanwhile; build again"
            return False
        if any(self.tree.states[part] != "current" for part in self.tree.parts(iri)):
            self.report.waiting += 1
            return False
        return True

    def attempt(self, source: Source) -> str | None:
        with self.lock:
            if self.failures >= ENOUGH_FAILURES:
                self.report.waiting += 1
                return None
        try:
            text = self.writer.write(source)
        except QuadciteError as error:
            with self.lock:
                self.failures += isinstance(error, UpstreamError)
                self.report.failed[source.section] = str(error)
            return None
        with self.lock:
            self.failures = 0
        return text

    def sweep(self) -> None:
        """Remove the summaries of what cannot have one, or not any more."""
        tree = self.tree
        prefix = summary_of(next(iter(tree.sections))).value.removeprefix(_SUMMARIES).partition("/")[0]
        query = bind(ALL_GRAPHS, prefix=Literal(f"{BASE}id/section/{prefix}/"))
        found = [(iri_of(row["graph"]), iri_of(row["section"]).value) for row in select(self.kg.store.query, query)]
        gone = [graph for graph, section in found if section not in tree.heights]
        for start in range(0, len(gone), BATCH):
            self.kg.store.commit(
                dict.fromkeys(gone[start : start + BATCH], ()), self.prov_run.describe(self.kg.store, {})
            )
        self.report.removed = len(gone)
        for _, section in found:
            if section not in tree.heights:
                tree.summaries.pop(section, None)
