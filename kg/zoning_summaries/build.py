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
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import ConflictError, InvalidInputError, QuadciteError
from kg.knowledge_graph import KnowledgeGraph, read_newest
from kg.provenance import permissions
from kg.provenance.load_records import Agent, RecordOrigin, Run, timestamp
from kg.remote.chat import ChatClosedError
from kg.search.index_sync import Progress
from kg.sparql.terms import bind
from kg.store.protocol import Query, batched, named_node, select
from kg.text import quoted
from kg.vocabulary import KG, PROV, RDF, SCHEMA, sha256
from kg.zoning_summaries import code_tree
from kg.zoning_summaries.code_tree import CodeTree, Summary, to_summary_graph, to_summary_iri
from kg.zoning_summaries.prompts import Source, build_instructions, check_summary
from kg.zoning_summaries.writers import Mode, Writer, open_writer

AGENT: Final = Agent("kg.summaries", "1")
"""The agent that commits the graphs of summaries, by whichever writer. The name is part of stored provenance."""
BATCH: Final = 50
"""Sections whose texts are read together, and whose summaries are committed together if they cost nothing."""

_WRITING: Final = threading.Lock()
_WAIT_S: Final = 0.2
_BUILDING: Final[defaultdict[tuple[Path, str], threading.Lock]] = defaultdict(threading.Lock)
"""Locks by data directory and municipality."""

_RANKS: Final = ("extractive/words", "extractive/", "chat/", "")
"""Beginnings of the models of writers. The first that fits is the rank of a writer, and an agent's is the highest."""

GRAPHS_OF: Final = """
SELECT ?graph ?section WHERE { VALUES ?section { $sections } GRAPH ?graph { ?summary kg:summaryOf ?section } }"""

ORPHANS: Final = """
SELECT ?graph ?section WHERE {
  GRAPH ?graph { ?summary kg:summaryOf ?section } FILTER NOT EXISTS { ?section a kg:CodeSection }
}"""


class BuildPausedError(Exception):
    """Raised by a progress callback: the summaries that are written stay, and the next build writes the others."""


@dataclass(slots=True)
class BuildReport:
    """The outcome of a build. `run` is its IRI in ``graph/prov``, None if nothing was committed."""

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


def build(
    kg: KnowledgeGraph,
    municipality: str,
    root: str | None = None,
    *,
    mode: Mode = "extractive",
    again: bool = False,
    above: bool = False,
    on_progress: Progress = lambda done, whole, doing: None,
) -> BuildReport:
    """Build the missing and stale summaries of a municipality: at and below `root`, or all.

    With `again`, current summaries are rewritten, too: with `above` only that of `root`, and those above it are built.
    A section that fails is reported and stops only the sections above it. `on_progress` can raise BuildPausedError to
    end the build early. While another build of this code runs, it is called, too. An endpoint that fails several times
    in a row is no longer called. Raises NotFoundError for an unknown municipality or root, InvalidInputError if `mode`
    needs an endpoint and none is configured, and ForbiddenError if only the summary of `root` is to be rewritten, and
    it is the operator's, and the caller has no token.
    """
    writer = open_writer(kg, mode)
    lock = _BUILDING[kg.settings.data_dir, municipality]
    while not lock.acquire(timeout=_WAIT_S):
        on_progress(0, None, "waiting for another build to finish")
    try:
        work = _Build(kg, code_tree.read_tree(kg, municipality), writer, municipality, on_progress)
        sections = work.tree.below(root)
        forced = set(sections if again else ())
        if above and root is not None:
            forced &= {root}
            sections += work.tree.above(root)
            permissions.refuse_foreign(list(work.find_held(forced).values()), permissions.get_author() or "")
        return work.run(sections, forced)
    finally:
        lock.release()


class _Build:
    def __init__(
        self,
        kg: KnowledgeGraph,
        tree: CodeTree,
        writer: Writer,
        municipality: str,
        on_progress: Progress = lambda done, whole, doing: None,
    ) -> None:
        self.kg, self.tree, self.writer, self.on_progress = kg, tree, writer, on_progress
        self.report = BuildReport(writer.model)
        self.prov_run = Run(AGENT, {"municipality": municipality, "model": writer.model})
        self.written: list[Summary] = []
        """Summaries that are not committed."""
        self.committed: list[Summary] = []
        self.done = self.whole = 0

    def run(self, sections: Sequence[str], forced: set[str]) -> BuildReport:
        started = time.perf_counter()
        tree, report = self.tree, self.report
        report.sections = len(sections)
        report.circular = sorted(iri for iri, state in tree.states.items() if state == "circular")
        report.empty = sum(tree.states[iri] == "empty" for iri in sections)
        self.sweep()
        todo = sorted((iri for iri in sections if iri in tree.heights), key=tree.heights.__getitem__)
        self.whole = len(todo)
        try:
            for _, level in groupby(todo, tree.heights.__getitem__):
                self.write_level(list(level), forced)
        except BuildPausedError:
            report.paused = True
        if self.writer.endpoint is not None:
            for name, count in asdict(self.writer.endpoint.usage).items():
                setattr(report, name, count)
        report.seconds = round(time.perf_counter() - started, 3)
        return report

    def write_level(self, level: Sequence[str], forced: set[str]) -> None:
        """Write the summaries of one level that are forced or due, once those below are written."""
        todo = [iri for iri in level if iri in forced or self.is_due(iri)]
        held = self.find_held(todo)
        self.report.current += len(level) - len(todo)
        self.report.kept += len(held)
        ready = [iri for iri in todo if iri not in held and self.tree.is_ready(iri)]
        self.report.waiting += len(todo) - len(held) - len(ready)
        self.done += len(level) - len(ready)  # without a call, so that a build that is paused has written one
        for portion in batched(ready, BATCH):
            self.write(build_sources(self.kg.store.query_sources, self.tree, portion))
        self.tree.put(self.committed)

    def find_held(self, sections: Iterable[str]) -> dict[str, NamedNode]:
        """Find the sections whose summaries the caller may not replace, with their graphs."""
        stored = {iri: NamedNode(self.tree.summaries[iri].graph) for iri in sections if iri in self.tree.summaries}
        if permissions.get_author() is None:
            return {}
        own = permissions.find_attributed(self.kg.store, stored.values())
        return {iri: graph for iri, graph in stored.items() if graph not in own}

    def is_due(self, iri: str) -> bool:
        """Check whether the summary of `iri` must be written: it is not current, or by a writer of lower rank."""
        summary = self.tree.summaries.get(iri)
        if summary is None or self.tree.states[iri] != "current":
            return True
        mine, theirs = _get_rank(self.writer.model), _get_rank(summary.model)
        if mine != theirs:
            return mine > theirs
        said = summary.model, summary.prompt_sha256
        return said != (self.writer.model, sha256(self.writer.build_prompt(self.tree.heights[iri])))

    def write(self, sources: Sequence[Source]) -> None:
        """Write the summaries of some sections of one level, and commit them, also when aborted."""
        endpoint = self.writer.endpoint
        answers: Generator[tuple[Source, Summary | QuadciteError]]
        if endpoint is None:
            answers = ((source, self.summarize(source)) for source in sources)
        else:
            answers = endpoint.run(sources, self.summarize, self.writer.threads)
        try:
            with closing(answers):  # before the last commit, which keeps all that was answered
                for source, answer in answers:
                    if isinstance(answer, ChatClosedError):
                        self.report.waiting += 1
                    elif isinstance(answer, QuadciteError):
                        self.report.failed[source.section] = str(answer)
                    if endpoint is not None:
                        self.keep()
                    self.done += 1
                    used = f", {endpoint.usage.tokens:,} tokens" if endpoint is not None else ""
                    self.on_progress(self.done, self.whole, f"summarizing{used}")
        finally:
            self.keep()

    def summarize(self, source: Source) -> Summary:
        """Write the summary of a section, in a thread if there is an endpoint."""
        text, prompt = self.writer.write(source), self.writer.build_prompt(source.level)
        graph = to_summary_graph(source.section, self.writer.model).value
        inputs = self.tree.inputs(source.section)
        made = Summary(source.section, graph, text, source.level, sha256(prompt), inputs)
        self.written.append(made)
        return made

    def keep(self) -> None:
        """Commit the summaries that are not committed. One that is interrupted is repeated by the next call."""
        if summaries := list(self.written):
            self.report.run = commit_summaries(self.kg, self.tree, summaries, self.prov_run) or self.report.run
            del self.written[: len(summaries)]
            self.report.built += len(summaries)
            self.committed += summaries

    def sweep(self) -> None:
        """Remove the summaries of sections that no longer exist or have no text to summarize."""
        summaries, heights = self.tree.summaries.values(), self.tree.heights
        gone = [named_node(row["graph"]) for row in select(self.kg.store.query_sources, ORPHANS)]
        gone += [NamedNode(each.graph) for each in summaries if each.section not in heights]
        if gone:
            self.kg.store.commit(dict.fromkeys(gone, ()), self.prov_run.describe(self.kg.store, {}))
            read_newest()
        self.report.removed = len(gone)


def _get_rank(model: str) -> int:
    return next(rank for rank, beginning in enumerate(_RANKS) if model.startswith(beginning))


def build_sources(query: Query, tree: CodeTree, sections: Sequence[str]) -> list[Source]:
    """Load the inputs of the summaries of some sections."""
    texts = code_tree.load_texts(query, sections)
    return [
        Source(
            section,
            tree.sections[section].name,
            texts.get(section, ""),
            [
                (tree.sections[part].name, tree.summaries[part].text)
                for part in tree.parts(section)
                if part in tree.summaries
            ],
            tree.heights[section],
        )
        for section in sections
    ]


def hash_inputs(tree: CodeTree, section: str) -> str:
    """Hash all inputs of the summary of a section."""
    return sha256(" ".join(sorted(tree.inputs(section))))


def record_summary(
    kg: KnowledgeGraph, municipality: str, section: str, text: str, *, inputs_sha256: str | None = None
) -> None:
    """Store a summary written by the calling agent.

    Raises InvalidInputError for an invalid summary (see `check_summary`) and for a section
    without text to summarize, and ConflictError if the section or its parts have changed since `inputs_sha256`.
    """
    tree = code_tree.cached_tree(kg, municipality)
    if section not in tree.heights:
        state = tree.states.get(section, "unknown")
        raise InvalidInputError(f"{quoted(section)} cannot have a summary: its state is {state}.")
    if inputs_sha256 not in (None, hash_inputs(tree, section)):
        name = quoted(tree.sections[section].name)
        raise ConflictError(f"{name} or its parts have changed. Get its source again.")
    sources = build_sources(kg.store.query_sources, tree, [section])
    agent = Writer("agent/agent", build_instructions, lambda source: check_summary(text, source.level, source.given()))
    _Build(kg, tree, agent, municipality).write(sources)


def commit_summaries(kg: KnowledgeGraph, tree: CodeTree, summaries: Sequence[Summary], run: Run) -> str | None:
    """Commit summaries, each replacing any other of its section. Returns the run, or None if nothing changed.

    Concurrent builds leave one summary per section. Raises ForbiddenError if a caller without the scope ``admin`` would
    replace a summary of the operator.
    """
    built = timestamp(datetime.now(UTC))
    graphs = {NamedNode(summary.graph): summary for summary in summaries}
    origins = {
        graph: RecordOrigin(
            "",
            (),
            derived_from=[NamedNode(tree.sections[summary.section].graph)],
            said=[(KG.method, Literal(summary.model.partition("/")[0])), (PROV.generatedAtTime, built)],
            author=permissions.get_author(),
        )
        for graph, summary in graphs.items()
    }
    with _WRITING:
        stored = bind(GRAPHS_OF, sections=[NamedNode(summary.section) for summary in summaries])
        held = [named_node(row["graph"]) for row in select(kg.store.query_sources, stored)]
        describe = permissions.checked(kg.store, run.describe(kg.store, origins))
        replace: dict[NamedNode, Sequence[Quad]] = dict.fromkeys(held, ())
        done = kg.store.commit(replace | {graph: [*_quads(tree, graphs[graph])] for graph in graphs}, describe)
    read_newest()
    return run.iri.value if any(change.content_sha256 for change in done.changes) else None


def _quads(tree: CodeTree, summary: Summary) -> Iterator[Quad]:
    graph, node = NamedNode(summary.graph), to_summary_iri(summary.section)
    parts = [to_summary_iri(part) for part in tree.parts(summary.section) if part in tree.summaries]
    statements: list[tuple[NamedNode, NamedNode | Literal]] = [
        (RDF.type, KG.Summary),
        (KG.summaryOf, NamedNode(summary.section)),
        (KG.summaryLevel, Literal(summary.level)),
        (SCHEMA.text, Literal(summary.text)),
        (KG.promptSha256, Literal(summary.prompt_sha256)),
        *((KG.inputSha256, Literal(digest)) for digest in summary.inputs),
        *((PROV.wasDerivedFrom, each) for each in (NamedNode(summary.section), *parts)),
    ]
    for predicate, value in statements:
        yield Quad(node, predicate, value, graph)
