"""The dataset shapes, checked in the background after commits: the result is told in `status` and stops nobody.

What is checked is the whole store, all graphs as one, by the dataset shapes: once when the first commit is seen, and
after that only the nodes that commits can have affected (`kg.shacl.incremental`). Each graph of a person is
checked too by the record shapes taken as open (an update is not held back by them), and has to be described. It all
runs on a checkpoint, so nobody waits for it, and the engine leaves the other threads alone while it looks.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Final

import pyoxigraph
from pyoxigraph import NamedNode, Triple

from kg.errors import QuadciteError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.results import DatasetCheck
from kg.shacl.data_graph import DataGraph
from kg.shacl.incremental import Affected, Change, find_affected, get_generation, load_change
from kg.shacl.report import Violation
from kg.shacl.shapes import Shapes
from kg.store.ownership import CURATED, is_user_graph
from kg.store.protocol import Term
from kg.user_graphs import record_shapes
from kg.vocabulary import KG, PROV, PROV_GRAPH, RDF

_TOLD: Final = 20
_REMEMBERED: Final = 10_000
"""Nodes whose first message is kept; of all others that break a shape it is known that they do."""
_log: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class _Violations:
    """What breaks the shapes, by the node that it was found from: how much, and the first of it in words."""

    counts: Counter[Term] = field(default_factory=Counter)
    messages: dict[Term, str] = field(default_factory=dict)

    def replace(self, nodes: Iterable[Term] | None, found: Iterable[tuple[Term, Violation]]) -> None:
        """Forget what was found of `nodes`, or of all of them, and take in what is `found`."""
        if nodes is None:
            self.counts.clear()
            self.messages.clear()
        for node in nodes or ():
            self.counts.pop(node, None)
            self.messages.pop(node, None)
        for node, violation in found:
            if violation.blocks:
                self.counts[node] += 1
                if len(self.messages) < _REMEMBERED:
                    self.messages.setdefault(node, f"{violation.focus}: {violation.message}")


@dataclass(slots=True)
class DatasetChecks:
    """Checks when told to, in a thread of its own, one check at a time; what is asked for meanwhile is one more.

    Between two checks there are at least `pause_s` seconds, since each takes a checkpoint, which slows a load down.
    `look_s`: how often `watching` looks for commits.
    """

    kg: KnowledgeGraph
    pause_s: float = 5.0
    look_s: float = 1.0
    _state: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _idle: threading.Event = field(default_factory=threading.Event, init=False, repr=False)
    _closing: threading.Event = field(default_factory=threading.Event, init=False, repr=False)
    _wanted: bool = field(default=False, init=False)
    _result: DatasetCheck | None = field(default=None, init=False)
    _ended: float = field(default=-1e9, init=False)
    _checked: int | None = field(default=None, init=False)
    """The generation that what is known is of; None where nothing is."""
    _nodes: _Violations = field(default_factory=_Violations, init=False, repr=False)
    _graphs: _Violations = field(default_factory=_Violations, init=False, repr=False)

    def __post_init__(self) -> None:
        self._idle.set()

    def schedule(self) -> None:
        """Have the store checked soon; returns at once."""
        with self._state:
            self._wanted = True
            if not self._idle.is_set() or self._closing.is_set():
                return
            self._idle.clear()
        threading.Thread(target=self._work, name="dataset-shapes", daemon=True).start()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Schedule a check after each commit, whoever makes it, for as long as the block runs."""
        seen = self.kg.store.statistics().generation

        def look() -> None:
            nonlocal seen
            while not self._closing.wait(self.look_s):
                generation = self.kg.store.statistics().generation
                if generation != seen:
                    seen = generation
                    self.schedule()

        watcher = threading.Thread(target=look, name="dataset-watch", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            self.close()
            watcher.join()

    def result(self) -> DatasetCheck | None:
        """Return what the last check found; None before the first."""
        with self._state:
            if self._result is None:
                return None
            return self._result.model_copy(update={"pending": not self._idle.is_set()})

    def wait(self, timeout_s: float) -> bool:
        """Wait until no check is under way; return whether that is so."""
        return self._idle.wait(timeout_s)

    def close(self) -> None:
        """Begin no further check."""
        self._closing.set()

    def _work(self) -> None:
        while True:
            self._closing.wait(max(0.0, self._ended + self.pause_s - time.monotonic()))
            with self._state:
                if not self._wanted or self._closing.is_set():
                    self._idle.set()
                    return
                self._wanted = False
            if self._checked == self.kg.store.statistics().generation:  # whoever committed and the watch both told
                continue
            try:
                result = self._check()
            except (QuadciteError, OSError, RuntimeError) as error:  # the last two: a checkpoint that cannot be read
                _log.warning("the dataset shapes could not be checked: %s", error)
                self._checked = None
                generation = self.kg.store.statistics().generation
                result = DatasetCheck(generation=generation, checked="nothing", problem=str(error))
            self._ended = time.monotonic()
            with self._state:
                self._result = result

    def _check(self) -> DatasetCheck:
        begun = time.perf_counter()
        with self.kg.store.snapshot(self.kg.store.statistics().generation) as snapshot:
            return self._on(pyoxigraph.Store.read_only(str(snapshot.path)), begun)

    def _on(self, store: pyoxigraph.Store, begun: float) -> DatasetCheck:
        since, generation = self._checked, get_generation(store)
        self._checked = None  # until all is known
        change = Change(unknown="nothing is known yet") if since is None else load_change(store, since)
        data, suite = DataGraph.from_store(store), load_dataset_shapes()
        found = Affected(None) if since is None else find_affected(suite, data, change)
        outdated = found.find_outdated(self._nodes.counts)
        self._nodes.replace(outdated, suite.results_by_target(data, found.nodes, details=False))
        touched = list(store.named_graphs()) if change.unknown else change.graphs | change.lost
        graphs = [graph for graph in touched if isinstance(graph, NamedNode) and is_user_graph(graph)]
        self._graphs.replace(
            None if change.unknown else graphs,
            ((graph, violation) for graph in graphs for violation in _check_user_graph(store, graph)),
        )
        self._checked = generation
        some = "the whole store"
        if since is not None:
            everything = f"everything anew, since {found.why}"
            some = everything if found.nodes is None else f"{len(found.nodes)} nodes that commits since can affect"
        violations = self._nodes.counts.total() + self._graphs.counts.total()
        told = dict.fromkeys([*self._nodes.messages.values(), *self._graphs.messages.values()])
        return DatasetCheck(
            generation=generation,
            checked=f"{some}, by the dataset shapes; {len(graphs)} graphs of people, by the open record shapes",
            conforms=not violations,
            violations=violations,
            messages=list(told)[:_TOLD],
            seconds=round(time.perf_counter() - begun, 3),
        )


def _check_user_graph(store: pyoxigraph.Store, graph: NamedNode) -> Iterator[Violation]:
    """Yield what breaks the record shapes in the graph of a person, and what it lacks where nothing says what it is."""
    if not store.contains_named_graph(graph):
        return
    yield from record_shapes().results(DataGraph.from_store(store, graph), details=False)
    if not any(store.quads_for_pattern(graph, RDF.type, None, PROV_GRAPH)):
        # The class that a graph has by its name is what the dataset shapes look for.
        kind = KG.CuratedGraph if graph.value.startswith(CURATED) else KG.UserGraph
        yield from load_dataset_shapes().check([Triple(graph, RDF.type, kind), *_provenance_of(store, graph)])


def _provenance_of(store: pyoxigraph.Store, graph: NamedNode) -> Iterator[Triple]:
    """Yield what ``graph/prov`` says of a graph, of what it came from and of who made it."""
    todo = [graph]
    seen = {graph}
    while todo:
        for quad in store.quads_for_pattern(todo.pop(), None, None, PROV_GRAPH):
            yield quad.triple
            if quad.predicate in _WHENCE and isinstance(quad.object, NamedNode) and quad.object not in seen:
                seen.add(quad.object)
                todo.append(quad.object)


_WHENCE: Final = frozenset({PROV.wasGeneratedBy, PROV.wasDerivedFrom, PROV.wasAssociatedWith})


@cache
def load_dataset_shapes() -> Shapes:
    """Return the dataset shapes that ship with Quadcite."""
    return Shapes.load_dataset()
