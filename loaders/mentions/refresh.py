"""Bringing the mentions of a store in line with its texts and its concepts."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.knowledge_graph import KnowledgeGraph
from kg.provenance import Agent, RecordOrigin, Run
from kg.provenance.reading import iri_of, select
from kg.search.healing import Progress
from kg.sparql.terms import bind
from kg.store.protocol import Commit, Store
from kg.vocabulary import BASE, KG, OA, PROV_GRAPH, XSD, mention_of
from loaders.extraction.labels import primary
from loaders.extraction.matching import Match, Matcher
from loaders.mentions.ledger import Known, Ledger
from loaders.mentions.table import Table, needles
from loaders.mentions.texts import Unit, hashes, may_hold, texts, units

log = logging.getLogger(__name__)

VERSION: Final = "1"
"""A new one makes every text be searched anew. It stands in ``graph/prov`` with the run of each graph of mentions."""
METHOD: Final = "label-match"
CONFIDENCE: Final = Literal("0.9", datatype=XSD.decimal)
"""What a mention found by its words alone is worth, unless somebody judges it."""

BATCH_QUADS: Final = 50_000
"""Quads that are committed together, unless one record has more."""
NEEDLES: Final = 500
"""When more words than these have to be looked for, all texts are searched instead."""

_GRAPHS_AT_ONCE: Final = 50
_SHOWN: Final = 20
_ROOT: Final = BASE + "graph/"
_EXTRACTED: Final = BASE + "graph/ext/mentions/"


@dataclass(slots=True)
class MentionReport:
    """What was done. `run` is the IRI of its run in ``graph/prov``, None where nothing had to be committed."""

    run: str | None = None
    concepts: int = 0
    labels: int = 0
    """Names of concepts, negative ones too."""
    graphs: int = 0
    """Graphs whose text was searched: what has not changed is not searched again."""
    text_units: int = 0
    mentions: int = 0
    """Mentions in the graphs searched."""
    quads_added: int = 0
    quads_removed: int = 0
    seconds: float = 0.0
    unfit: list[str] = field(default_factory=list)
    """The names that text is not searched for, with the reasons."""

    def to_dict(self) -> dict[str, Any]:
        """Return what ``kg mentions --json`` prints."""
        return {
            "run": self.run,
            "concepts": self.concepts,
            "labels": self.labels,
            "unfit_labels": len(self.unfit),
            "graphs": self.graphs,
            "text_units": self.text_units,
            "mentions": self.mentions,
            "quads_added": self.quads_added,
            "quads_removed": self.quads_removed,
            "seconds": round(self.seconds, 3),
        }


def refresh(kg: KnowledgeGraph, *, full: bool = False, on_progress: Progress | None = None) -> MentionReport:
    """Search the texts of `kg` for the names of its concepts as far as either has changed, and commit what is found.

    New and changed texts are searched for all names; where names have changed, the texts that hold an old or a new one
    are searched again. With `full`, every text is. It may be killed at any time and is continued by the next call. A
    store without concepts costs one look.
    """
    return _Refreshing(kg, on_progress).run(full)


def graph_of(source: NamedNode) -> NamedNode:
    """Return the graph of the mentions in the text of the graph `source`."""
    return NamedNode(_EXTRACTED + source.value.removeprefix(_ROOT).removeprefix("src/"))


def quads(graph: NamedNode, unit: NamedNode, found: Sequence[Match]) -> list[Quad]:
    """Return what `graph` says of the mentions found in one text unit."""
    result: list[Quad] = []
    source, thing, start, end, kind = OA.hasSource, KG.object, KG.start, KG.end, KG.matchType
    concepts = {match.concept: NamedNode(match.concept) for match in found}
    for match in found:
        concept = concepts[match.concept]
        mention = mention_of(unit, match.start, match.end, concept)
        result += (
            Quad(mention, source, unit, graph),
            Quad(mention, thing, concept, graph),
            Quad(mention, start, Literal(match.start), graph),
            Quad(mention, end, Literal(match.end), graph),
            Quad(mention, kind, Literal(match.kind), graph),
        )
    result += (Quad(unit, KG.mentions, concept, graph) for concept in concepts.values())
    return result


EXTRACTED: Final = """
SELECT ?graph WHERE { GRAPH $prov { ?graph a kg:ExtractedGraph } FILTER(STRSTARTS(STR(?graph), $prefix)) }"""


def _extracted(store: Store) -> list[NamedNode]:
    """Return the graphs of mentions that the store has."""
    found = select(store.query, bind(EXTRACTED, prov=PROV_GRAPH, prefix=Literal(_EXTRACTED)))
    return [iri_of(row["graph"]) for row in found]


class _Refreshing:
    def __init__(self, kg: KnowledgeGraph, on_progress: Progress | None) -> None:
        self.store: Final = kg.store
        self.folder: Final = kg.settings.data_dir / "mentions"
        self.on_progress = on_progress
        self.report = MentionReport()
        self.batch: dict[NamedNode, list[Quad]] = {}
        self.searched: dict[NamedNode, str] = {}
        self.size = 0

    def run(self, full: bool) -> MentionReport:
        started = time.perf_counter()
        table, report = Table.read(self.store), self.report
        with Ledger(self.folder, VERSION) as ledger:
            generation = self.store.statistics().generation
            known = Known() if full else ledger.read(table, generation)
            if not table.rows and not known.graphs and known.table is None and not any(_extracted(self.store)):
                return report
            current = hashes(self.store)
            self.prov_run = Run(Agent("loaders.mentions", VERSION), {"names": table.digest})
            report.concepts = table.concepts
            todo = self.todo(table, known, current)
            gone = self.gone(known, current)
            if todo or gone or known.table != table or known.doubtful or known.newer:
                labels = table.labels()
                report.labels = len(labels)
                matcher = Matcher(labels, table.confusable())
                report.unfit = [f"{label.text[:80]!r} of {label.concept} {why}" for label, why in matcher.unfit]
                ledger.begin(table, known)
                for start in range(0, len(gone), 500):
                    self.write(dict.fromkeys(gone[start : start + 500], ()), {})
                self.search(todo, matcher, current, ledger)
                ledger.close(table, current, self.store.statistics().generation)
        report.seconds = time.perf_counter() - started
        for line in report.unfit[:_SHOWN]:
            log.warning("no text is searched for %s", line)
        if (more := len(report.unfit) - _SHOWN) > 0:
            log.warning("nor for %d more names", more)
        return report

    def todo(self, table: Table, known: Known, current: Mapping[NamedNode, str]) -> list[NamedNode]:
        """Return the graphs whose text has to be searched."""
        if known.table is None:
            return [graph for graph, digest in current.items() if known.newer.get(graph) != digest]
        searched = [graph for graph, digest in current.items() if known.graphs.get(graph) == digest]
        settled = {graph for graph in searched if graph not in known.doubtful}
        done = {graph for graph, digest in known.newer.items() if current.get(graph) == digest}
        names = known.table.changed(table)
        wanted: set[NamedNode] = set()
        if names:
            languages = {primary(tag) for _, _, tag, _ in table.rows} - {""}
            words = needles(names, languages) if len(names) <= NEEDLES else None
            candidates = [graph for graph in searched if graph in settled and graph not in done]
            if words is None or len(words) > NEEDLES:
                wanted.update(candidates)
            else:
                wanted.update(self.holding(candidates, words))
        return [graph for graph in current if graph not in done and (graph not in settled or graph in wanted)]

    def holding(self, graphs: Sequence[NamedNode], words: set[str]) -> Iterator[NamedNode]:
        """Yield the graphs of which some text may hold one of the words."""
        for start in range(0, len(graphs), _GRAPHS_AT_ONCE):
            found: set[NamedNode] = set()
            for graph, _, text in texts(self.store, graphs[start : start + _GRAPHS_AT_ONCE]):
                if graph not in found and may_hold(text, words):
                    found.add(graph)
            yield from found
            self.progress(start, len(graphs), "looking for what has changed")

    def gone(self, known: Known, current: Mapping[NamedNode, str]) -> list[NamedNode]:
        """Return the graphs of mentions whose text is gone."""
        if known.table is not None:
            return [graph_of(graph) for graph in {*known.graphs, *known.newer, *known.doubtful} if graph not in current]
        right = {graph_of(graph) for graph in current}
        return [graph for graph in _extracted(self.store) if graph not in right]

    def search(
        self, todo: Sequence[NamedNode], matcher: Matcher, current: Mapping[NamedNode, str], ledger: Ledger
    ) -> None:
        for start in range(0, len(todo), _GRAPHS_AT_ONCE):
            for source, found in units(self.store, todo[start : start + _GRAPHS_AT_ONCE]).items():
                graph = graph_of(source)
                self.batch[source] = list(self.mentions(graph, found, matcher))
                self.searched[source] = current[source]
                self.size += len(self.batch[source])
                if self.size >= BATCH_QUADS:
                    self.commit(ledger)
            self.progress(min(start + _GRAPHS_AT_ONCE, len(todo)), len(todo), "finding mentions")
        self.commit(ledger)

    def mentions(self, graph: NamedNode, found: Sequence[Unit], matcher: Matcher) -> Iterator[Quad]:
        """Yield what `graph` is to say."""
        self.report.graphs += 1
        self.report.text_units += len(found)
        for unit in found:
            matches = matcher.find(unit.text, unit.languages)
            if matches:
                self.report.mentions += len(matches)
                yield from quads(graph, unit.iri, matches)

    def commit(self, ledger: Ledger) -> None:
        """Commit the batch."""
        batch, searched = self.batch, self.searched
        self.batch, self.searched, self.size = {}, {}, 0
        if not batch:
            return
        ledger.announce(searched)
        said = [(KG.method, Literal(METHOD)), (KG.confidence, CONFIDENCE)]
        origins = {
            graph_of(source): RecordOrigin(searched[source], (), derived_from=[source], said=said) for source in batch
        }
        self.write({graph_of(source): found for source, found in batch.items()}, origins)
        ledger.settle()

    def write(self, replace: Mapping[NamedNode, Sequence[Quad]], origins: Mapping[NamedNode, RecordOrigin]) -> None:
        commit: Commit = self.store.commit(replace, self.prov_run.describe(self.store, origins))
        if any(change.content_sha256 is not None for change in commit.changes):
            self.report.run = self.prov_run.iri.value
        self.report.quads_added += commit.added
        self.report.quads_removed += commit.removed

    def progress(self, done: int, total: int, what: str) -> None:
        if self.on_progress is not None:
            self.on_progress(done, total, what)
