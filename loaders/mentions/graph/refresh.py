"""Updating the mentions of a store after changes of its texts or concepts."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any, Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.load_records import Agent, RecordOrigin, Run
from kg.search.index_sync import Progress
from kg.sparql.terms import bind
from kg.store.ownership import is_user_graph
from kg.store.protocol import Store, named_node, select
from kg.text import quoted
from kg.vocabulary import BASE, EXTRACTED, KG, OA, PROV_GRAPH, XSD, mint_mention
from loaders.languages.graph.text_languages import VERSION as LANGUAGES_VERSION
from loaders.languages.graph.text_languages import derive_languages
from loaders.mentions.graph.alignments import refresh_alignments
from loaders.mentions.graph.concept_names import Table, find_needles
from loaders.mentions.graph.search_state import Known, SearchState
from loaders.mentions.graph.text_units import (
    Unit,
    add_languages,
    find_units_in,
    find_units_with,
    load_hashes,
    load_units,
)
from loaders.mentions.graph_words import Vocabularies
from loaders.mentions.label_variants import Label, primary_language, unfit_reason
from loaders.mentions.matcher import Match, Matcher, filter_possible

log = logging.getLogger(__name__)

VERSION: Final = "4"
"""A new version searches all texts again. Recorded in ``graph/prov`` with the run of each graph of mentions."""
METHOD: Final = "label-match"
CONFIDENCE: Final = Literal("0.9", datatype=XSD.decimal)
"""The confidence of a mention that was found by its words and not reviewed."""

BATCH_QUADS: Final = 50_000
"""Maximum quads of a commit; a larger record is committed alone."""
NEEDLES: Final = 500
"""Maximum changed names or words for an incremental search. Beyond it all texts are searched."""

_GRAPHS_AT_ONCE: Final = 50
_SMALL: Final = 500
"""Up to this number of graphs are loaded first, so that the automaton needs only the names that they may contain."""
_FEW: Final = 4
"""Texts are loaded graph by graph if at most one in four of them may contain a name; else the store filters."""
_SHOWN: Final = 20
_ROOT: Final = BASE + "graph/"
_EXTRACTED: Final = EXTRACTED + "mentions/"


@dataclass(slots=True)
class MentionReport:
    """The outcome of an update. `run` is the IRI of the run in ``graph/prov``, None if nothing was committed."""

    run: str | None = None
    concepts: int = 0
    labels: int = 0
    """Names of concepts, including negative ones."""
    graphs: int = 0
    """Graphs whose text was searched. Unchanged text is not."""
    text_units: int = 0
    mentions: int = 0
    """Mentions in the searched graphs."""
    alignments: int = 0
    """Land uses, topics and definitions that have the name of a concept."""
    quads_added: int = 0
    quads_removed: int = 0
    seconds: float = 0.0
    unfit: list[str] = field(default_factory=list)
    """New names that are not searched for, with the reasons."""

    def to_dict(self) -> dict[str, Any]:
        """Build the object that ``kg mentions --json`` prints."""
        return {
            "run": self.run,
            "concepts": self.concepts,
            "labels": self.labels,
            "unfit_labels": len(self.unfit),
            "graphs": self.graphs,
            "text_units": self.text_units,
            "mentions": self.mentions,
            "alignments": self.alignments,
            "quads_added": self.quads_added,
            "quads_removed": self.quads_removed,
            "seconds": round(self.seconds, 3),
        }


def refresh(kg: KnowledgeGraph, *, full: bool = False, on_progress: Progress | None = None) -> MentionReport:
    """Search the texts of `kg` for the names of its concepts, as far as either has changed, and commit the mentions.

    New and changed texts are searched for all names. After changes of names, the texts with an old or a new one are
    searched again; with `full`, all texts are. A killed update is continued by the next call. A store without concepts
    costs one query.
    """
    return _Refreshing(kg, on_progress).run(full)


def mention_graph(source: NamedNode) -> NamedNode:
    """Return the name of the graph of the mentions in the text of the graph `source`."""
    return NamedNode(_EXTRACTED + source.value.removeprefix(_ROOT).removeprefix("src/"))


def to_quads(graph: NamedNode, unit: NamedNode, found: Sequence[Match]) -> list[Quad]:
    """Build the quads of the mentions in one text unit."""
    result: list[Quad] = []
    source, thing, start, end, kind = OA.hasSource, KG.object, KG.start, KG.end, KG.matchType
    concepts = {match.concept: NamedNode(match.concept) for match in found}
    for match in found:
        concept = concepts[match.concept]
        mention = mint_mention(unit, match.start, match.end, concept)
        if match.within is not None:
            for other in found:
                if (other.start, other.end) == match.within:
                    longer = mint_mention(unit, other.start, other.end, concepts[other.concept])
                    result.append(Quad(mention, KG.nestedIn, longer, graph))
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


def _load_mention_graphs(store: Store) -> list[NamedNode]:
    """Load the names of the graphs of mentions."""
    found = select(store.query, bind(SEARCHED, prov=PROV_GRAPH, prefix=Literal(_EXTRACTED)))
    return [named_node(row["graph"]) for row in found]


def _find_silent(found: Mapping[NamedNode, Sequence[Unit]]) -> list[NamedNode]:
    """Find the graphs with texts without a language: loaded by an earlier version, or put there by a person."""
    return [graph for graph, units in found.items() if not all(unit.languages for unit in units)]


Todo = Mapping[NamedNode, Mapping[NamedNode, str] | None]
"""Graphs to search, with the text units to search and their texts; None for all text units of the graph."""


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
        self.full = full
        started = time.perf_counter()
        report, generation = self.report, self.store.statistics().generation
        with (
            SearchState(self.folder, VERSION) as state,
            Vocabularies(self.folder, VERSION, reset=full) as self.vocabularies,
        ):
            settled = None if full else state.load_settled(generation)
            table = settled.table.update(self.store, settled.generation) if settled else Table.load(self.store)
            known = Known() if full else state.load_known(settled, table)
            if not full and known.table is None and not _load_mention_graphs(self.store):
                if not table.rows:
                    return report
                # No text has been searched for any name, so that each is settled for a table without names.
                known = replace(known, table=Table(), graphs=self.load_sources())
            report.concepts, report.labels = table.concepts, table.names
            untouched = (
                settled is not None and settled.generation == generation and not known.newer and not known.doubtful
            )
            if not untouched:
                self.update(table, known, state)
        report.seconds = time.perf_counter() - started
        return report

    def load_sources(self) -> Mapping[NamedNode, str]:
        """Load the graphs of sources that may contain text, with their content hashes."""
        return {graph: digest for graph, digest in load_hashes(self.store).items() if not is_user_graph(graph)}

    def update(self, table: Table, known: Known, state: SearchState) -> None:
        """Search the changed texts, and record the search as complete."""
        current = load_hashes(self.store)
        names = table.changed(known.table or Table())
        todo, gone = self.find_todo(table, names, known, current), self.find_gone(known, current)
        self.prov_run = Run(Agent("loaders.mentions", VERSION), {"names": table.digest})
        if todo or gone or names or known.doubtful or known.newer:
            state.begin(table, known)
            for start in range(0, len(gone), _GRAPHS_AT_ONCE):
                self.write(dict.fromkeys(gone[start : start + _GRAPHS_AT_ONCE], ()), {})
            self.search(todo, table, current, state)
        self.report.alignments = refresh_alignments(self.store, table, self.folder, full=self.full)
        self.vocabularies.tidy(current)
        state.close(table, current, self.store.statistics().generation)
        self.log_unfit(table, names)

    def find_todo(
        self, table: Table, names: Collection[tuple[str, str]], known: Known, current: Mapping[NamedNode, str]
    ) -> Todo:
        """Find the graphs to search, with the text units if not all of them."""
        done = {graph for graph, digest in known.newer.items() if current.get(graph) == digest}
        settled = {graph for graph, digest in known.graphs.items() if current.get(graph) == digest}
        settled -= known.doubtful | done
        todo: dict[NamedNode, Mapping[NamedNode, str] | None] = {
            graph: None for graph in current if graph not in settled and graph not in done
        }
        if settled and names:
            words = find_needles(names, table.languages) if len(names) <= NEEDLES else None
            if words is None or len(words) > NEEDLES:
                return dict.fromkeys((graph for graph in current if graph not in done), None)
            if not words:
                return todo
            held: dict[NamedNode, dict[NamedNode, str]] = defaultdict(dict)
            maybe = settled - self.vocabularies.lacking(
                [[word] for word in words], {graph: current[graph] for graph in settled}
            )
            few = len(maybe) * _FEW <= len(settled)
            for graph, unit, text in (
                find_units_in(self.store, maybe, words) if few else find_units_with(self.store, words)
            ):
                held[graph][unit] = text
            todo |= {graph: found for graph, found in held.items() if graph in settled}
        return todo

    def find_gone(self, known: Known, current: Mapping[NamedNode, str]) -> list[NamedNode]:
        """Find the graphs of mentions whose text was deleted."""
        if known.table is not None:
            return [
                mention_graph(graph) for graph in {*known.graphs, *known.newer, *known.doubtful} if graph not in current
            ]
        right = {mention_graph(graph) for graph in current}
        return [graph for graph in _load_mention_graphs(self.store) if graph not in right]

    def search(
        self,
        todo: Todo,
        table: Table,
        current: Mapping[NamedNode, str],
        state: SearchState,
    ) -> None:
        """Find the mentions in the texts of `todo`, and commit them in batches."""
        if not todo:
            return
        read = self.load_texts(todo)
        labels: Iterable[Label] = table.labels()
        first = list(islice(read, _SMALL))
        if len(first) < _SMALL:
            labels = filter_possible(labels, (unit.text for _, found in first for unit in found))
        matcher = Matcher(labels, table.confusable())
        for done, (source, found) in enumerate(chain(first, read), start=1):
            graph = mention_graph(source)
            if todo[source] is None:
                self.vocabularies.add(source, current[source], (unit.text for unit in found))
                kept = []
            else:
                kept = _others(self.store, graph, {unit.iri for unit in found})
            self.batch[source] = [*kept, *self.find_mentions(graph, found, matcher)]
            self.searched[source] = current[source]
            self.size += len(self.batch[source])
            if self.size >= BATCH_QUADS:
                self.commit(state)
            if self.on_progress is not None:
                self.on_progress(done, len(todo), "finding mentions")
        self.commit(state)

    def load_texts(self, todo: Todo) -> Iterator[tuple[NamedNode, list[Unit]]]:
        """Load each graph with its text units to search."""
        whole = [graph for graph, held in todo.items() if held is None]
        for start in range(0, len(whole), _GRAPHS_AT_ONCE):
            found = load_units(self.store, whole[start : start + _GRAPHS_AT_ONCE])
            if silent := _find_silent(found):
                self.add_languages_to(silent)
                found |= load_units(self.store, silent)
            yield from found.items()
        parts = {graph: held for graph, held in todo.items() if held is not None}
        for start in range(0, len(parts), _GRAPHS_AT_ONCE):
            several = dict(islice(parts.items(), start, start + _GRAPHS_AT_ONCE))
            found = add_languages(self.store, several)
            if silent := _find_silent(found):
                self.add_languages_to(silent)
                found |= add_languages(self.store, {graph: several[graph] for graph in silent})
            yield from found.items()

    def add_languages_to(self, graphs: Sequence[NamedNode]) -> None:
        """Derive and commit the languages of the texts in graphs where their source states none."""
        derived = derive_languages(self.store, {graph: self.store.graph(graph) for graph in graphs})
        run = Run(Agent("loaders.languages", LANGUAGES_VERSION))
        replace = {graph: quads for graph, (quads, _) in derived.items()}
        self.store.commit(replace, run.describe(self.store, {graph: origin for graph, (_, origin) in derived.items()}))

    def find_mentions(self, graph: NamedNode, found: Sequence[Unit], matcher: Matcher) -> Iterator[Quad]:
        """Yield the quads of the mentions in text units."""
        self.report.graphs += 1
        self.report.text_units += len(found)
        for unit in found:
            matches = matcher.find(unit.text, unit.languages)
            if matches:
                self.report.mentions += len(matches)
                yield from to_quads(graph, unit.iri, matches)

    def commit(self, state: SearchState) -> None:
        """Commit the batch."""
        batch, searched = self.batch, self.searched
        self.batch, self.searched, self.size = {}, {}, 0
        if not batch:
            return
        state.announce(searched)
        said = [(KG.method, Literal(METHOD)), (KG.confidence, CONFIDENCE)]
        origins = {
            mention_graph(source): RecordOrigin(searched[source], (), derived_from=[source], said=said)
            for source in batch
        }
        self.write({mention_graph(source): found for source, found in batch.items()}, origins)
        state.settle()

    def write(self, replace: Mapping[NamedNode, Sequence[Quad]], origins: Mapping[NamedNode, RecordOrigin]) -> None:
        """Commit graphs with their provenance."""
        commit = self.store.commit(replace, self.prov_run.describe(self.store, origins))
        if any(change.content_sha256 is not None for change in commit.changes):
            self.report.run = self.prov_run.iri.value
        self.report.quads_added += commit.added
        self.report.quads_removed += commit.removed

    def log_unfit(self, table: Table, names: Collection[tuple[str, str]]) -> None:
        """Report and log the new names that are not searched for."""
        for concept, kind, tag, text in table.rows if names else ():
            if kind != "unlike" and (text, tag) in names and (reason := unfit_reason(text, primary_language(tag))):
                self.report.unfit.append(f"{quoted(text)} of {concept} {reason}")
        self.report.unfit = sorted({*self.report.unfit})  # the same name may occur in several languages
        for line in self.report.unfit[:_SHOWN]:
            log.warning("Name not searched for: %s", line)
        if (more := len(self.report.unfit) - _SHOWN) > 0:
            log.warning("%d more names not searched for", more)


def _others(store: Store, graph: NamedNode, found: Collection[NamedNode]) -> list[Quad]:
    """Load the quads of `graph` about mentions in other text units than those in `found`."""
    held = store.graph(graph)
    going: set[object] = set(found)
    going |= {quad.subject for quad in held if quad.predicate == OA.hasSource and quad.object in found}
    return [quad for quad in held if quad.subject not in going]
