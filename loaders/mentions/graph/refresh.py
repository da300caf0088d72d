"""Updating the mentions of a store after changes of its texts or concepts."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, islice
from typing import Any, Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.derivations.engine import AfterCommit, Engine, Result, WholeEngine, commit_derived
from kg.derivations.state import State
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.load_records import Agent, Run
from kg.search.index_sync import Progress
from kg.store.protocol import Store, batched
from kg.text import list_first, quoted
from kg.vocabulary import KG, OA, XSD, mint_mention
from loaders.languages.graph.text_languages import VERSION as LANGUAGES_VERSION
from loaders.languages.graph.text_languages import derive_languages
from loaders.mentions.graph import ALIGNMENTS, MENTIONS
from loaders.mentions.graph.alignments import Alignments, count_alignments
from loaders.mentions.graph.concept_names import Table, find_needles
from loaders.mentions.graph.text_units import (
    Unit,
    add_languages,
    find_units_in,
    find_units_with,
    load_units,
)
from loaders.mentions.graph_words import filter_of, may_have
from loaders.mentions.label_variants import Label, primary_language, unfit_reason
from loaders.mentions.matcher import Match, Matcher, filter_possible

log = logging.getLogger(__name__)

METHOD: Final = "label-match"
CONFIDENCE: Final = Literal("0.9", datatype=XSD.decimal)
"""The confidence of a mention that was found by its words and not reviewed."""

NEEDLES: Final = 500
"""Maximum changed names or words for an incremental search. Beyond it all texts are searched."""

_GRAPHS_AT_ONCE: Final = 50
_SMALL: Final = 500
"""Up to this number of graphs are loaded first, so that the automaton needs only the names that they may contain."""
_FEW: Final = 4
"""Texts are loaded graph by graph if at most one in four of them may contain a name; else the store filters."""
_SHOWN: Final = 20
_SAID: Final = ((KG.method, Literal(METHOD)), (KG.confidence, CONFIDENCE))


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
        said = {"unfit_labels": len(self.unfit), "seconds": round(self.seconds, 3)}
        return {name: value for name, value in (asdict(self) | said).items() if name != "unfit"}


def refresh(kg: KnowledgeGraph, *, full: bool = False, on_progress: Progress | None = None) -> MentionReport:
    """Search the texts of `kg` for the names of its concepts, as far as either has changed, and commit the mentions.

    New and changed texts are searched for all names. After changes of names, the texts with an old or a new one are
    searched again; with `full`, all texts are. A killed update is continued by the next call. A store without concepts
    costs one query.
    """
    started = time.perf_counter()
    derivation = Mentions(kg)
    report = derivation.report
    with State(kg.settings.data_dir) as state:
        engine = Engine(kg, state, MENTIONS, derivation)
        due = engine.find_due(full=full)
        report.concepts, report.labels = due.table.concepts, due.table.names
        outcome = engine.run(due, on_progress)
        WholeEngine(kg, state, ALIGNMENTS, Alignments(kg, due.table)).derive(full=full)
    report.alignments = count_alignments(kg.store)
    report.run, report.quads_added, report.quads_removed = outcome.run, outcome.added, outcome.removed
    report.seconds = time.perf_counter() - started
    return report


mention_graph: Final = MENTIONS.get_output
"""Returns the name of the graph of the mentions in the text of a graph."""


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


Part = Mapping[NamedNode, str]
"""The text units of a graph that may contain a changed name, with their texts."""


class Mentions(AfterCommit[Table, Part]):
    """The derivation of mentions from the graphs with texts. Its table are the names of all concepts."""

    def __init__(self, kg: KnowledgeGraph) -> None:
        super().__init__(kg)
        self.report: Final = MentionReport()
        self.changed: Collection[tuple[str, str]] = ()
        """The names that have changed since the last run."""

    def load_table(
        self, saved: bytes | None, since: int, touched: Collection[NamedNode] | None
    ) -> tuple[Table | None, Table]:
        """Load the names of the last run, and the current ones."""
        before = None if saved is None else Table.load_saved(saved)
        table = Table.load(self.store) if before is None else before.update(self.store, since, touched)
        self.changed = table.changed(before or Table())
        return before, table

    def save_table(self, table: Table) -> bytes:
        """Write the names."""
        return table.save()

    def affected(
        self, before: Table, after: Table, finished: Iterable[tuple[NamedNode, bytes | None]]
    ) -> Mapping[NamedNode, Part | None]:
        """Find the graphs with a changed name, with the text units that may contain it."""
        names = after.changed(before)
        words = find_needles(names, after.languages) if len(names) <= NEEDLES else None
        if words is None or len(words) > NEEDLES:
            return dict.fromkeys(graph for graph, _ in finished)
        if not words:
            return {}
        phrases = [[word] for word in words]
        graphs = {graph: held is None or may_have(held, phrases) for graph, held in finished}
        maybe = [graph for graph, is_possible in graphs.items() if is_possible]
        few = len(maybe) * _FEW <= len(graphs)
        held: dict[NamedNode, dict[NamedNode, str]] = defaultdict(dict)
        for graph, unit, text in find_units_in(self.store, maybe, words) if few else find_units_with(self.store, words):
            if graph in graphs:
                held[graph][unit] = text
        return held

    def compute(self, due: Mapping[NamedNode, Part | None], table: Table) -> Iterator[tuple[NamedNode, Result]]:
        """Find the mentions in the texts of each graph, or in its `Part`."""
        self.log_unfit(table)
        if not table.rows:
            yield from ((graph, Result(())) for graph in due)
            return
        read = self.load_texts(due)
        labels: Iterable[Label] = table.labels()
        first = list(islice(read, _SMALL))
        if len(first) < _SMALL:
            labels = filter_possible(labels, (unit.text for _, found in first for unit in found))
        matcher = Matcher(labels, table.confusable())
        for source, found in chain(first, read):
            graph = mention_graph(source)
            mentions = list(self.find_mentions(graph, found, matcher))
            if due[source] is None:
                yield source, Result(mentions, _SAID, filter_of(unit.text for unit in found))
            else:
                yield source, Result([*_others(self.store, graph, {unit.iri for unit in found}), *mentions], _SAID)

    def configure(self, table: Table) -> Mapping[str, str]:
        """Return the digest of the names."""
        return {"names": table.digest}

    def load_texts(self, todo: Mapping[NamedNode, Part | None]) -> Iterator[tuple[NamedNode, list[Unit]]]:
        """Load each graph with its text units to search."""

        def load(graphs: Sequence[NamedNode]) -> dict[NamedNode, list[Unit]]:
            found = load_units(self.store, [graph for graph in graphs if todo[graph] is None])
            parts = {graph: part for graph in graphs if (part := todo[graph]) is not None}
            return found | add_languages(self.store, parts)

        for several in batched(todo, _GRAPHS_AT_ONCE):
            found = load(several)
            if silent := [graph for graph, units in found.items() if not all(unit.languages for unit in units)]:
                # Texts without a language: loaded by an earlier version, or put there by a person.
                self.add_languages_to(silent)
                found |= load(silent)
            yield from found.items()

    def add_languages_to(self, graphs: Sequence[NamedNode]) -> None:
        """Derive and commit the languages of the texts in graphs where their source states none."""
        derived = derive_languages(self.store, {graph: self.store.graph(graph) for graph in graphs})
        commit_derived(self.store, Run(Agent("loaders.languages", LANGUAGES_VERSION)), derived)

    def find_mentions(self, graph: NamedNode, found: Sequence[Unit], matcher: Matcher) -> Iterator[Quad]:
        """Yield the quads of the mentions in text units."""
        self.report.graphs += 1
        self.report.text_units += len(found)
        for unit in found:
            matches = matcher.find(unit.text, unit.languages)
            if matches:
                self.report.mentions += len(matches)
                yield from to_quads(graph, unit.iri, matches)

    def log_unfit(self, table: Table) -> None:
        """Report and log the new names that are not searched for."""
        unfit = {  # the same name may occur in several languages
            f"{quoted(text)} of {concept} {reason}"
            for concept, kind, tag, text in (table.rows if self.changed else ())
            if kind != "unlike" and (text, tag) in self.changed
            if (reason := unfit_reason(text, primary_language(tag)))
        }
        self.report.unfit = sorted(unfit)
        for line in list_first(self.report.unfit, _SHOWN, "names"):
            log.warning("Not searched for: %s", line)


def _others(store: Store, graph: NamedNode, found: Collection[NamedNode]) -> list[Quad]:
    """Load the quads of `graph` about mentions in other text units than those in `found`."""
    held = store.graph(graph)
    going: set[object] = set(found)
    going |= {quad.subject for quad in held if quad.predicate == OA.hasSource and quad.object in found}
    return [quad for quad in held if quad.subject not in going]
