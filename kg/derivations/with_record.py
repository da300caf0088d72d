"""Derivations with the record: graphs computed from memory, in the commit of the graphs that they follow from.

The state has a row for each derivation, and one for each input while that is due: after a new version, or if there is
no state of this store. Due inputs are computed again from the stored graphs, in batches, and commit nothing that is
stored already. An input that a commit replaces is no longer due. A kill between a commit and its record in the state
leaves inputs due that are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

from pyoxigraph import NamedNode, Quad

from kg.derivations.engine import Opened, choose
from kg.derivations.protocol import Definition, Graph, Outcome, Progress
from kg.derivations.state import State
from kg.provenance.load_records import INVALIDATED, Derived, RecordOrigin
from kg.store.difference import content_sha256
from kg.store.protocol import Store, term_text
from kg.vocabulary import SCHEMA

BATCH_QUADS: Final = 50_000
"""Quads of stored graphs from which a batch is computed."""

LOAD_AGAIN: Final = "load the source again"
"""Why inputs are due whose source is needed."""

Graphs = Mapping[NamedNode, Sequence[Quad]]
CommitDue = Callable[[Graphs, dict[NamedNode, Sequence[Quad]], dict[NamedNode, RecordOrigin]], None]
"""Commits what follows from stored graphs, with the origins."""


@dataclass(frozen=True, slots=True)
class WithRecord:
    """A step of a commit. It gets the graphs that the commit replaces, with the outputs of the steps before it.

    It returns graphs that the commit replaces too. Their content must not depend on the order of commits.
    """

    derive: Callable[[Store, Graphs], Derived]
    definition: Definition | None = None
    """None for a step without a version: it is computed again with the inputs of the steps before it."""
    marks_change: bool = False
    """Whether it follows from the change or removal of graphs, so that there is nothing to compute again."""

    @property
    def follows_graphs(self) -> bool:
        """Whether it can be computed from the stored graphs."""
        return not self.marks_change and not (self.definition is not None and self.definition.needs_source)


class Steps:
    """The steps of the commits of one load, in their order, for the records whose graphs begin with `root`."""

    def __init__(self, kg: Graph, root: str, steps: Sequence[WithRecord]) -> None:
        """Load the due records, and mark those that a new version makes due."""
        self._kg: Final = kg
        self._store: Final = kg.store
        self._root: Final = root
        self._steps: Final = steps
        self._due: Final[dict[str, set[NamedNode]]] = {}
        """The due records, by the name of the derivation."""
        self._first: Final[set[Definition]] = set()
        """The derivations that have no state yet, of a store without their inputs."""
        with State(kg.settings.data_dir) as state:
            for definition in self._definitions(steps):
                recorded = Recorded(kg, state, definition, ())
                if not recorded.mark_outdated():
                    self._first.add(definition)
                due = recorded.load_due()
                self._due[definition.name] = {graph for graph in due if graph.value.startswith(root)}

    @staticmethod
    def _definitions(steps: Iterable[WithRecord]) -> list[Definition]:
        return [step.definition for step in steps if step.definition is not None]

    def needs_source(self, graph: NamedNode) -> bool:
        """Whether a step is due for a record that only its source can give."""
        return any(each.needs_source and graph in self._due[each.name] for each in self._definitions(self._steps))

    def derive(
        self, replace: dict[NamedNode, Sequence[Quad]], records: dict[NamedNode, RecordOrigin]
    ) -> list[NamedNode]:
        """Add what follows from the graphs of a commit, and their origins; return the graphs that it invalidates."""
        return _derive(self._store, self._steps, replace, records)

    def record(self, graphs: Collection[NamedNode], steps: Sequence[WithRecord] | None = None) -> None:
        """Record that a commit has the outputs of all steps, or of `steps`, for these graphs."""
        definitions = self._definitions(self._steps if steps is None else steps)
        done = {each.name: found for each in definitions if (found := self._due[each.name].intersection(graphs))}
        if not (done or self._first) or not self._store.statistics().generation:
            return
        with State(self._kg.settings.data_dir) as state, state.writing():
            for definition in definitions:
                if definition.name in done or definition in self._first:
                    Recorded(self._kg, state, definition, ()).record(done.get(definition.name, ()))
        for name, found in done.items():
            self._due[name] -= found
        self._first.difference_update(definitions)

    def derive_due(
        self, commit: CommitDue, outcome: Outcome, on_progress: Progress | None, only: str | None = None
    ) -> None:
        """Compute due outputs from the stored graphs, and the steps after them, with `only` of one derivation."""
        for position, step in enumerate(self._steps):
            name = step.definition.name if step.definition is not None else None
            if name is None or not step.follows_graphs or only not in (None, name):
                continue
            due = sorted(self._due[name], key=str)
            before = outcome.graphs
            following = [each for each in self._steps[position:] if each.follows_graphs]
            for batch in read_batches(self._store, due):
                made: dict[NamedNode, Sequence[Quad]] = dict(batch)
                records: dict[NamedNode, RecordOrigin] = {}
                _derive(self._store, following, made, records)
                commit(batch, {graph: quads for graph, quads in made.items() if graph not in batch}, records)
                self.record(batch.keys(), following)
                outcome.graphs += len(batch)
                if on_progress is not None:
                    on_progress(outcome.graphs - before, len(due), f"deriving {name}")

    def find_differing(self, name: str, sample: Sequence[NamedNode]) -> list[NamedNode]:
        """Compute the outputs of a derivation for own records again, and find those that the store has otherwise."""
        own = [graph for graph in sample if graph.value.startswith(self._root)]
        steps = [step for step in self._steps if step.follows_graphs]
        last = next((n for n, step in enumerate(steps) if step.definition and step.definition.name == name), -1)
        differing = []
        for batch in read_batches(self._store, own) if last >= 0 else ():
            made: dict[NamedNode, Sequence[Quad]] = dict(batch)
            _derive(self._store, steps[:last], made, {})
            for graph, (quads, _) in steps[last].derive(self._store, made).items():
                if content_sha256(quads) != content_sha256(self._store.graph(graph)):
                    differing.append(graph)
        return differing


def _derive(
    store: Store,
    steps: Iterable[WithRecord],
    replace: dict[NamedNode, Sequence[Quad]],
    records: dict[NamedNode, RecordOrigin],
) -> list[NamedNode]:
    invalidated = []
    for step in steps:
        for graph, found in step.derive(store, replace).items():
            if found is INVALIDATED:
                invalidated.append(graph)
            else:
                replace[graph], records[graph] = found
    return invalidated


def read_batches(store: Store, graphs: Iterable[NamedNode]) -> Iterator[dict[NamedNode, Sequence[Quad]]]:
    """Read stored graphs in batches, each in the order of its text units. One that is gone is empty."""
    batch: dict[NamedNode, Sequence[Quad]] = {}
    size = 0
    for graph in graphs:
        batch[graph] = _read(store, graph)
        size += len(batch[graph])
        if size >= BATCH_QUADS:
            yield batch
            batch, size = {}, 0
    if batch:
        yield batch


def _read(store: Store, graph: NamedNode) -> list[Quad]:
    """Read a graph in the order in which a loader writes its text units."""
    quads = store.graph(graph)
    places: dict[object, float] = {}
    for quad in quads:
        if quad.predicate == SCHEMA.position:
            with suppress(ValueError):
                places[quad.subject] = float(term_text(quad.object))
    return sorted(quads, key=lambda quad: (places.get(quad.subject, -1.0), str(quad)))


class StepsOf(Protocol):
    """The steps for the records of one source."""

    @property
    def steps(self) -> Steps:
        """Their steps."""

    def derive_due(self, outcome: Outcome, on_progress: Progress | None, only: str | None = None) -> None:
        """Compute and commit due outputs, of `only` this derivation, and add to the outcome."""


class Recorded(Opened[Sequence[StepsOf]]):
    """A derivation with the record, of the sources that its computation opens."""

    def mark_outdated(self, *, full: bool = False) -> bool:
        """Record that all inputs are due, if a new version or another store makes them so, or `full`.

        With `full`, inputs that only their source could change stay as they are.
        Returns false if that is to be recorded with the first commit, since there are no inputs.
        """
        known, reason = self.load_known()
        if known is not None and (not full or self.definition.needs_source):
            return True
        inputs = self._load_inputs()
        with self._state.writing():
            self._state.remove(self._name, self.load_due().keys() - inputs.keys())
            self._state.mark_due(self._name, inputs, reason or "asked for")
            if inputs:
                self.save()
        return bool(inputs)

    def load_due(self) -> dict[NamedNode, str]:
        """Load the due inputs, each with the reason."""
        return self._state.load_due(self._name)

    def record(self, done: Iterable[NamedNode]) -> None:
        """Record that inputs are done, as of the last commit."""
        self._state.remove(self._name, done)
        self.save()

    def count_due(self) -> Counter[str]:
        """Count the due inputs, by reason."""
        known, _ = self.load_known()
        due = super().count_due() if known is None else Counter(self.load_due().values())
        return +Counter({LOAD_AGAIN: due.total()}) if self.definition.needs_source else due

    def derive(self, *, full: bool = False, on_progress: Progress | None = None) -> Outcome:
        """Compute the due outputs, or all outputs. Those that need the source stay due."""
        outcome = Outcome()
        self.mark_outdated(full=full)
        for each in self._derivation if self.load_due() else ():
            each.derive_due(outcome, on_progress, self._name)
        return outcome

    def find_differing(self, most: int) -> list[NamedNode]:
        """Compute the outputs of up to `most` inputs again, chosen by chance, and find those that differ."""
        if self.load_known()[0] is None:
            return []
        sample = choose(self._load_inputs().keys() - self.load_due().keys(), most)
        differing = set[NamedNode]()
        for each in self._derivation if sample else ():
            differing.update(each.steps.find_differing(self._name, sample))
        return sorted(differing, key=str)
