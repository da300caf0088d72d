"""Builds the missing and stale summaries of a zoning code, level by level from the leaves.

Summaries are committed as they are written, so the next build continues where an interrupted one stopped. Answers of a
chat endpoint are committed at once, since they were paid for. A current summary is never replaced by one of a writer of
lower rank: extracts do not replace the text of a model or an agent. A second build of the same code in one process
waits for the first.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pyoxigraph import Literal, NamedNode

from kg.errors import QuadciteError, UpstreamError
from kg.knowledge_graph import KnowledgeGraph, read_newest
from kg.provenance import permissions
from kg.provenance.load_records import Run
from kg.search.index_sync import Progress
from kg.sparql.terms import bind
from kg.store.protocol import named_node, select
from kg.vocabulary import sha256
from kg.zoning_summaries import code_tree
from kg.zoning_summaries.code_tree import CodeTree, Summary
from kg.zoning_summaries.prompts import Source
from kg.zoning_summaries.scoring import section_vectors
from kg.zoning_summaries.section_ranking import build_heading_path
from kg.zoning_summaries.stored_summaries import AGENT, build_source, build_summary, commit_summaries
from kg.zoning_summaries.writers import Chat, Mode, Summarizer, get_rank, open_writer

BATCH: Final = 50
"""Sections whose texts are read together, and graphs removed in one commit."""
ENOUGH_FAILURES: Final = 5
"""Consecutive failures of an endpoint after which a build stops calling it."""

_WAIT_S: Final = 0.2
_BUILDING: Final[defaultdict[tuple[Path, str], threading.Lock]] = defaultdict(threading.Lock)
"""Locks by data directory and municipality."""

ALL_GRAPHS: Final = """
SELECT ?graph ?section WHERE {
  GRAPH ?graph { ?summary kg:summaryOf ?section } FILTER(STRSTARTS(STR(?section), $prefix))
}"""

ORPHANS: Final = """
SELECT ?graph ?section WHERE {
  GRAPH ?graph { ?summary kg:summaryOf ?section } FILTER NOT EXISTS { ?section a kg:CodeSection }
}"""


class BuildPausedError(Exception):
    """Raised by a progress callback: the summaries that are written stay, and the next build writes the others."""


@dataclass(slots=True)
class BuildReport:
    """The outcome of a build. `run` is its IRI in ``graph/prov``, None if nothing was committed."""

    municipality: str
    model: str
    run: str | None = None
    sections: int = 0
    """Sections in scope: those at and below the given root, or all."""
    built: int = 0
    current: int = 0
    """Summaries that were already current."""
    empty: int = 0
    """Sections without text to summarize."""
    removed: int = 0
    """Summaries removed since their section was deleted (in any code) or has no text to summarize."""
    failed: dict[str, str] = field(default_factory=dict)
    """Reasons by section."""
    kept: int = 0
    """Summaries of the operator that were not rewritten, since the caller has no token."""
    waiting: int = 0
    """Sections skipped since one of their parts failed, or since the endpoint is no longer called."""
    paused: bool = False
    """Whether `on_progress` ended it before all sections in scope were summarized."""
    circular: list[str] = field(default_factory=list)
    """Sections whose parents form a cycle."""
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Convert the report to JSON types."""
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
    sleep: Callable[[float], object] | None = None,
) -> BuildReport:
    """Build the missing and stale summaries of a municipality: at and below `root`, or all.

    With `anew`, current summaries are rewritten, too. A section that fails is reported and stops only the sections
    above it. `on_progress` can raise BuildPausedError to end the build early. An endpoint is no longer called after
    `ENOUGH_FAILURES` consecutive failures. Raises NotFoundError for an unknown municipality or root, and
    InvalidInputError if `mode` needs an endpoint and none is configured.
    """
    halt = threading.Event()
    writer = open_writer(kg, mode, sleep or halt.wait)
    with _alone(kg, municipality, on_progress):
        tree = code_tree.read_tree(kg, municipality)
        return _Build(kg, tree, writer, municipality, on_progress, halt).run(tree.below(root), forced=anew)


def rebuild(
    kg: KnowledgeGraph,
    section: str,
    *,
    mode: Mode = "extractive",
    on_progress: Progress | None = None,
) -> BuildReport:
    """Rewrite the summary of `section`, and build the missing and stale ones below and above it; see `build`.

    Raises ForbiddenError if the summary is the operator's, and the caller has no token.
    """
    municipality = code_tree.find_municipality(kg.store.query_sources, section)
    halt = threading.Event()
    writer = open_writer(kg, mode, halt.wait)
    with _alone(kg, municipality, on_progress):
        tree = code_tree.read_tree(kg, municipality)
        work = _Build(kg, tree, writer, municipality, on_progress, halt)
        if (author := permissions.get_author()) is not None:
            permissions.refuse_foreign(list(work.find_held([section]).values()), author)
        return work.run([*reversed(tree.above(section)), *tree.below(section)], forced={section})


@contextmanager
def _alone(kg: KnowledgeGraph, municipality: str, on_progress: Progress | None) -> Iterator[None]:
    """Hold the lock of builds of this code. While waiting, `on_progress` is called and may raise."""
    lock = _BUILDING[kg.settings.data_dir, municipality]
    while not lock.acquire(timeout=_WAIT_S):
        if on_progress is not None:
            on_progress(0, None, "waiting for another build to finish")
    try:
        yield
    finally:
        lock.release()


class _Build:
    def __init__(
        self,
        kg: KnowledgeGraph,
        tree: CodeTree,
        writer: Summarizer,
        municipality: str,
        on_progress: Progress | None,
        halt: threading.Event,
    ) -> None:
        self.kg, self.tree, self.writer, self.on_progress = kg, tree, writer, on_progress
        self.report = BuildReport(municipality, writer.model)
        self.prov_run = Run(AGENT, {"municipality": municipality, "model": writer.model})
        self.failures = 0
        """Consecutive failures of the endpoint."""
        self.halt = halt
        """Set when the build is aborted: retries stop waiting, and no further requests start."""
        self.lock = threading.Lock()
        self.done = self.whole = 0

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
        self.whole = sum(map(len, levels.values()))
        try:
            self.write_levels([level for _, level in sorted(levels.items())], forced)
        except BuildPausedError:
            report.paused = True
        if report.built and not report.paused:  # in advance, so that the first search is fast
            texts = [build_heading_path(tree, section) for section in tree.order if section in tree.heights]
            section_vectors(self.kg, report.municipality, texts)
        if isinstance(self.writer, Chat):
            usage = self.writer.endpoint.usage
            report.requests = usage.requests
            report.prompt_tokens, report.completion_tokens = usage.prompt_tokens, usage.completion_tokens
        report.seconds = time.perf_counter() - started
        return report

    def write_levels(self, levels: Sequence[list[str]], forced: bool | set[str]) -> None:
        """Write the summaries of each level, the lowest first."""
        for level in levels:
            todo = [iri for iri in level if forced is True or (forced and iri in forced) or self.is_due(iri)]
            self.report.current += len(level) - len(todo)
            held = self.find_held(todo)
            self.report.kept += len(held)
            todo = [iri for iri in todo if iri not in held]
            self.done += len(level) - len(todo)  # without a call, so that a build that is paused has written one
            written: list[Summary] = []
            with ThreadPoolExecutor(self.writer.threads, "summaries") as threads:
                for start in range(0, len(todo), BATCH):
                    written += self.write(todo[start : start + BATCH], threads)
            self.tree.put(written)

    def find_held(self, sections: Iterable[str]) -> dict[str, NamedNode]:
        """Find the sections whose summaries the caller may not replace, with their graphs."""
        stored = {iri: NamedNode(self.tree.summaries[iri].graph) for iri in sections if iri in self.tree.summaries}
        if permissions.get_author() is None or not stored:
            return {}
        own = permissions.find_attributed(self.kg.store, stored.values())
        return {iri: graph for iri, graph in stored.items() if graph not in own}

    def is_due(self, iri: str) -> bool:
        """Check whether the summary of `iri` must be written: it is not current, or by a writer of lower rank."""
        summary = self.tree.summaries.get(iri)
        if summary is None or self.tree.states[iri] != "current":
            return True
        mine, theirs = get_rank(self.writer.model), get_rank(summary.model)
        if mine != theirs or summary.method == "agent":
            return mine > theirs
        [source] = self.sources([iri], {})
        return summary.model != self.writer.model or summary.prompt_sha256 != self.writer.prompt_sha256(source)

    def sources(self, sections: Iterable[str], texts: dict[str, str]) -> list[Source]:
        return [build_source(self.tree, iri, texts.get(iri, "")) for iri in sections]

    def write(self, batch: Sequence[str], threads: ThreadPoolExecutor) -> list[Summary]:
        """Write the summaries of some sections of one level, and commit them, also when aborted."""
        texts = code_tree.load_texts(self.kg.store.query_sources, batch)
        ready = [iri for iri in batch if self.is_ready(iri, texts.get(iri))]
        self.advance(len(batch) - len(ready))
        asked = {threads.submit(self.attempt, source): source for source in self.sources(ready, texts)}
        made: list[Summary] = []
        kept = 0

        def take(answered: Future[str | None]) -> None:
            source = asked.pop(answered)
            if not answered.cancelled() and (text := answered.result()) is not None:
                prompt = self.writer.prompt_sha256(source)
                made.append(build_summary(self.tree, source.section, text, self.writer.model, prompt))

        try:
            for answered in as_completed(list(asked)):  # a copy, since `take` removes from it
                take(answered)
                if len(made) - kept >= self.writer.at_once:
                    self.keep(made[kept:])
                    kept = len(made)
                self.advance(1)
        finally:
            if asked:
                self.halt.set()
                for each in asked:
                    each.cancel()
                for answered in [each for each in asked if each.done()]:
                    take(answered)
                if isinstance(self.writer, Chat):
                    self.writer.endpoint.close()
            self.keep(made[kept:])
        return made

    def keep(self, summaries: Sequence[Summary]) -> None:
        if summaries:
            self.report.run = commit_summaries(self.kg, self.tree, summaries, self.prov_run) or self.report.run
            self.report.built += len(summaries)

    def advance(self, sections: int) -> None:
        self.done += sections
        if self.on_progress is not None and sections:
            tokens = self.writer.endpoint.usage.tokens if isinstance(self.writer, Chat) else 0
            self.on_progress(self.done, self.whole, f"summarizing, {tokens:,} tokens" if tokens else "summarizing")

    def is_ready(self, iri: str, text: str | None) -> bool:
        digest = self.tree.sections[iri].text_sha256
        if (None if text is None else sha256(text)) != digest:
            self.report.failed[iri] = "Its text changed during the build. Build again."
            return False
        if any(self.tree.states[part] != "current" for part in self.tree.parts(iri)):
            self.report.waiting += 1
            return False
        return True

    def attempt(self, source: Source) -> str | None:
        with self.lock:
            if self.halt.is_set() or self.failures >= ENOUGH_FAILURES:
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
        """Remove the summaries of sections that no longer exist or have no text to summarize."""
        tree = self.tree
        query = bind(ALL_GRAPHS, prefix=Literal(next(iter(tree.sections)).rpartition("/")[0] + "/"))
        rows = [*select(self.kg.store.query_sources, query), *select(self.kg.store.query_sources, ORPHANS)]
        found = {named_node(row["graph"]): named_node(row["section"]).value for row in rows}
        gone = [graph for graph, section in found.items() if section not in tree.heights]
        for start in range(0, len(gone), BATCH):
            self.kg.store.commit(
                dict.fromkeys(gone[start : start + BATCH], ()), self.prov_run.describe(self.kg.store, {})
            )
        read_newest()
        self.report.removed = len(gone)
        for section in found.values():
            if section not in tree.heights:
                tree.summaries.pop(section, None)
