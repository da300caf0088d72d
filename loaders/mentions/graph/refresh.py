"""Bringing the mentions of a store in line with its texts and its concepts."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.load_records import Agent, RecordOrigin, Run
from kg.search.index_sync import Progress
from kg.sparql.terms import bind
from kg.store.protocol import Store, named_node, select
from kg.vocabulary import BASE, EXTRACTED, KG, OA, PROV_GRAPH, XSD, mint_mention
from loaders.mentions.graph.concept_names import Table, needles
from loaders.mentions.graph.search_state import Known, Ledger
from loaders.mentions.graph.text_units import Unit, hashes, holding, holding_in, units, with_languages
from loaders.mentions.graph_words import Vocabularies
from loaders.mentions.label_variants import Label, primary, unfit
from loaders.mentions.matcher import Match, Matcher, possible

log = logging.getLogger(__name__)

VERSION: Final = "2"
"""A new one makes every text be searched anew. It stands in ``graph/prov`` with the run of each graph of mentions."""
METHOD: Final = "label-match"
CONFIDENCE: Final = Literal("0.9", datatype=XSD.decimal)
"""What a mention found by its words alone is worth, unless somebody judges it."""

BATCH_QUADS: Final = 50_000
"""Quads that are committed together, unless one record has more."""
NEEDLES: Final = 500
"""When more words than these have to be looked for, all texts are searched instead."""

_GRAPHS_AT_ONCE: Final = 50
_SMALL: Final = 500
"""Graphs that are few enough to be read first: then only the names that may stand in them are made ready."""
_FEW: Final = 4
"""Texts are read graph by graph where one graph of so many may hold a name, or fewer: else the store looks through all.
"""
_SHOWN: Final = 20
_ROOT: Final = BASE + "graph/"
_EXTRACTED: Final = EXTRACTED + "mentions/"


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
    """The names, of those that are new, that text is not searched for, with the reasons."""

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
        mention = mint_mention(unit, match.start, match.end, concept)
        result += (
            Quad(mention, source, unit, graph),
            Quad(mention, thing, concept, graph),
            Quad(mention, start, Literal(match.start), graph),
            Quad(mention, end, Literal(match.end), graph),
            Quad(mention, kind, Literal(match.kind), graph),
        )
    result += (Quad(unit, KG.mentions, concept, graph) for concept in concepts.values())
    return result


SEARCHED: Final = """
SELECT ?graph WHERE { GRAPH $prov { ?graph a kg:ExtractedGraph } FILTER(STRSTARTS(STR(?graph), $prefix)) }"""


def _extracted(store: Store) -> list[NamedNode]:
    """Return the graphs of mentions that the store has."""
    found = select(store.query, bind(SEARCHED, prov=PROV_GRAPH, prefix=Literal(_EXTRACTED)))
    return [named_node(row["graph"]) for row in found]


Todo = Mapping[NamedNode, Mapping[NamedNode, str] | None]
"""Graphs to be searched: of each the text units with their texts, None for all that it has."""


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
        report, generation = self.report, self.store.statistics().generation
        with Ledger(self.folder, VERSION) as ledger, Vocabularies(self.folder, VERSION, anew=full) as self.vocabularies:
            settled = None if full else ledger.settled(generation)
            table = settled.table.renewed(self.store, settled.generation) if settled else Table.read(self.store)
            known = Known() if full else ledger.known(settled, table)
            if not table.rows and known.table is None and not _extracted(self.store):
                return report
            report.concepts, report.labels = table.concepts, table.names
            untouched = (
                settled is not None and settled.generation == generation and not known.newer and not known.doubtful
            )
            if not untouched:
                self.bring_in_line(table, known, ledger)
        report.seconds = time.perf_counter() - started
        return report

    def bring_in_line(self, table: Table, known: Known, ledger: Ledger) -> None:
        """Search what has to be searched, and settle that it was."""
        current = hashes(self.store)
        names = table.changed(known.table or Table())
        todo, gone = self.todo(table, names, known, current), self.gone(known, current)
        self.prov_run = Run(Agent("loaders.mentions", VERSION), {"names": table.digest})
        if todo or gone or names or known.doubtful or known.newer:
            ledger.begin(table, known)
            for start in range(0, len(gone), _GRAPHS_AT_ONCE):
                self.write(dict.fromkeys(gone[start : start + _GRAPHS_AT_ONCE], ()), {})
            self.search(todo, table, current, ledger)
        self.vocabularies.tidy(current)
        ledger.close(table, current, self.store.statistics().generation)
        self.tell(table, names)

    def todo(
        self, table: Table, names: Collection[tuple[str, str]], known: Known, current: Mapping[NamedNode, str]
    ) -> Todo:
        """Return the graphs whose text has to be searched, with the text units where it is not all of them."""
        done = {graph for graph, digest in known.newer.items() if current.get(graph) == digest}
        settled = {graph for graph, digest in known.graphs.items() if current.get(graph) == digest}
        settled -= known.doubtful | done
        todo: dict[NamedNode, Mapping[NamedNode, str] | None] = {
            graph: None for graph in current if graph not in settled and graph not in done
        }
        if settled and names:
            words = needles(names, table.languages) if len(names) <= NEEDLES else None
            if words is None or len(words) > NEEDLES:
                return dict.fromkeys((graph for graph in current if graph not in done), None)
            if not words:
                return todo
            held: dict[NamedNode, dict[NamedNode, str]] = defaultdict(dict)
            maybe = settled - self.vocabularies.lacking(words, {graph: current[graph] for graph in settled})
            few = len(maybe) * _FEW <= len(settled)
            for graph, unit, text in holding_in(self.store, maybe, words) if few else holding(self.store, words):
                held[graph][unit] = text
            todo |= {graph: found for graph, found in held.items() if graph in settled}
        return todo

    def gone(self, known: Known, current: Mapping[NamedNode, str]) -> list[NamedNode]:
        """Return the graphs of mentions whose text is gone."""
        if known.table is not None:
            return [graph_of(graph) for graph in {*known.graphs, *known.newer, *known.doubtful} if graph not in current]
        right = {graph_of(graph) for graph in current}
        return [graph for graph in _extracted(self.store) if graph not in right]

    def search(
        self,
        todo: Todo,
        table: Table,
        current: Mapping[NamedNode, str],
        ledger: Ledger,
    ) -> None:
        """Find the mentions in the text of the graphs `todo`, and commit them in batches."""
        if not todo:
            return
        read = self.read(todo)
        labels: Iterable[Label] = table.labels()
        first = list(islice(read, _SMALL))
        if len(first) < _SMALL:
            labels = possible(labels, (unit.text for _, found in first for unit in found))
        matcher = Matcher(labels, table.confusable())
        for done, (source, found) in enumerate(chain(first, read), start=1):
            graph = graph_of(source)
            if todo[source] is None:
                self.vocabularies.add(source, current[source], (unit.text for unit in found))
                kept = []
            else:
                kept = _others(self.store, graph, {unit.iri for unit in found})
            self.batch[source] = [*kept, *self.mentions(graph, found, matcher)]
            self.searched[source] = current[source]
            self.size += len(self.batch[source])
            if self.size >= BATCH_QUADS:
                self.commit(ledger)
            if self.on_progress is not None:
                self.on_progress(done, len(todo), "finding mentions")
        self.commit(ledger)

    def read(self, todo: Todo) -> Iterator[tuple[NamedNode, list[Unit]]]:
        """Yield each graph with its text units that have to be searched."""
        whole = [graph for graph, held in todo.items() if held is None]
        for start in range(0, len(whole), _GRAPHS_AT_ONCE):
            yield from units(self.store, whole[start : start + _GRAPHS_AT_ONCE]).items()
        for graph, held in todo.items():
            if held is not None:
                yield graph, with_languages(self.store, held)

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
        """Commit graphs with their provenance."""
        commit = self.store.commit(replace, self.prov_run.describe(self.store, origins))
        if any(change.content_sha256 is not None for change in commit.changes):
            self.report.run = self.prov_run.iri.value
        self.report.quads_added += commit.added
        self.report.quads_removed += commit.removed

    def tell(self, table: Table, names: Collection[tuple[str, str]]) -> None:
        """Say of which new names no text is searched for."""
        for concept, kind, tag, text in table.rows if names else ():
            if kind != "unlike" and (text, tag) in names and (reason := unfit(text, primary(tag))):
                self.report.unfit.append(f"{text[:80]!r} of {concept}, which {reason}")
        self.report.unfit = sorted({*self.report.unfit})  # the same word is a name in several languages
        for line in self.report.unfit[:_SHOWN]:
            log.warning("no text is searched for %s", line)
        if (more := len(self.report.unfit) - _SHOWN) > 0:
            log.warning("nor for %d more names", more)


def _others(store: Store, graph: NamedNode, found: Collection[NamedNode]) -> list[Quad]:
    """Return what `graph` says of the mentions in other text units than those in `found`."""
    held = store.graph(graph)
    going: set[object] = set(found)
    going |= {quad.subject for quad in held if quad.predicate == OA.hasSource and quad.object in found}
    return [quad for quad in held if quad.subject not in going]
