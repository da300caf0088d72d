"""Validates the store in the background after commits. The result is part of `status` and blocks nothing.

The union of all graphs is validated by the dataset shapes: all of it after the first commit, later only the nodes that
commits can have affected (`kg.shacl.incremental`), also after a restart (`kg.tools.shacl.validation_state`). Each user
graph is validated by the open record shapes, too (updates are not rejected by them), and must be described in
``graph/prov``. Validation runs on a checkpoint, so no request waits for it, and the engine blocks no other thread.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from functools import cache
from typing import Final

import pyoxigraph
from pyoxigraph import NamedNode, Triple

from kg.errors import QuadciteError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.results import DatasetCheck
from kg.shacl.data_graph import DataGraph
from kg.shacl.incremental import Affected, Change, find_affected, find_influences, get_generation, load_change
from kg.shacl.report import Violation
from kg.shacl.shapes import Shapes
from kg.store.ownership import CURATED, is_user_graph
from kg.store.protocol import Term
from kg.text import quoted
from kg.tools.shacl.validation_state import LastCheck, Violations
from kg.user_graphs import record_shapes
from kg.vocabulary import KG, PROV, PROV_GRAPH, RDF

_TOLD: Final = 20
_log: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class DatasetChecks:
    """Runs scheduled checks in a background thread, one at a time. Requests during a check cause one more.

    Checks are at least `pause_s` seconds apart, since each takes a checkpoint, which slows down a load. `watching`
    polls for commits every `look_s` seconds.
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
    """The validated generation; None if unknown."""
    _has_loaded: bool = field(default=False, init=False)
    """Whether the result of the last check before this start was looked for."""
    _nodes: Violations = field(default_factory=Violations, init=False, repr=False)
    _graphs: Violations = field(default_factory=Violations, init=False, repr=False)

    _last: LastCheck = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._last = LastCheck(self.kg)
        self._idle.set()

    def schedule(self) -> None:
        """Schedule a check and return at once."""
        with self._state:
            self._wanted = True
            if not self._idle.is_set() or self._closing.is_set():
                return
            self._idle.clear()
        threading.Thread(target=self._work, name="dataset-shapes", daemon=True).start()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Schedule a check after each commit while the block runs."""
        seen = self.kg.store.statistics().generation
        if "never derived" not in self._last.count_due():
            self.schedule()  # only what has changed since

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
        """Get the result of the last check; None before the first."""
        with self._state:
            if self._result is None:
                return None
            return self._result.model_copy(update={"pending": not self._idle.is_set()})

    def wait(self, timeout_s: float) -> bool:
        """Wait until no check is running. Returns False at the timeout."""
        return self._idle.wait(timeout_s)

    def close(self) -> None:
        """Stop starting checks."""
        self._closing.set()

    def _work(self) -> None:
        while True:
            self._closing.wait(max(0.0, self._ended + self.pause_s - time.monotonic()))
            with self._state:
                if not self._wanted or self._closing.is_set():
                    self._idle.set()
                    return
                self._wanted = False
            if self._checked == self.kg.store.statistics().generation:  # scheduled by the writer and by `watching`
                continue
            try:
                result = self.check()
            except (QuadciteError, OSError, RuntimeError) as error:  # the last two: an unreadable checkpoint
                _log.warning("Background validation failed: %s", error)
                self._checked = None
                generation = self.kg.store.statistics().generation
                result = DatasetCheck(generation=generation, checked="nothing", problem=str(error))
            self._ended = time.monotonic()
            with self._state:
                self._result = result

    def _count_own(self) -> Counter[str]:
        """Count the violations by shape that no user graph can have caused."""
        own = self._nodes.messages.keys() - self._nodes.caused
        return sum((self._nodes.shapes[node] for node in own), Counter())

    def _count_by_shape(self) -> Counter[str]:
        return sum((Counter(each) for of in (self._nodes, self._graphs) for each in of.shapes.values()), Counter[str]())

    def check(self, *, full: bool = False) -> DatasetCheck:
        """Validate what commits since the last check can affect, or everything, in this thread."""
        if full:
            self._checked, self._has_loaded = None, True
        begun = time.perf_counter()
        with self.kg.store.snapshot(self.kg.store.statistics().generation) as snapshot:
            return self._on(pyoxigraph.Store.read_only(str(snapshot.path)), begun)

    def _on(self, store: pyoxigraph.Store, begun: float) -> DatasetCheck:
        if not self._has_loaded:
            self._has_loaded = True
            if (known := self._last.load()) is not None:
                self._checked, (self._nodes, self._graphs) = known
        since, generation = self._checked, get_generation(store)
        self._checked = None  # until this check is complete
        change = Change(unknown="nothing is known yet") if since is None else load_change(store, since)
        data, suite = DataGraph.from_store(store), load_dataset_shapes()
        found = Affected(None) if since is None else find_affected(suite, data, change)
        outdated = found.find_outdated(self._nodes.counts)
        self._nodes.replace(outdated, suite.results_by_target(data, found.nodes, details=False))
        self._name_causes(store, suite, outdated)
        touched = list(store.named_graphs()) if change.unknown else change.graphs | change.lost
        graphs = [graph for graph in touched if isinstance(graph, NamedNode) and is_user_graph(graph)]
        self._graphs.replace(
            None if change.unknown else graphs,
            ((graph, violation) for graph in graphs for violation in _check_user_graph(store, graph)),
        )
        self._checked = generation
        self._last.save(generation, (self._nodes, self._graphs))
        some = "the whole store"
        if since is not None:
            everything = f"the whole store again, since {found.why}"
            some = everything if found.nodes is None else f"{len(found.nodes)} nodes that later commits can affect"
        violations = self._nodes.counts.total() + self._graphs.counts.total()
        graphs_of_users = "1 user graph" if len(graphs) == 1 else f"{len(graphs)} user graphs"
        told = dict.fromkeys([*self._nodes.messages.values(), *self._graphs.messages.values()])
        return DatasetCheck(
            generation=generation,
            checked=f"{some}, by the dataset shapes; {graphs_of_users}, by the open record shapes",
            conforms=not violations,
            violations=violations,
            messages=list(told)[:_TOLD],
            by_shape=dict(self._count_by_shape().most_common(_TOLD)),
            own=dict(self._count_own().most_common(_TOLD)),
            seconds=round(time.perf_counter() - begun, 3),
        )

    def _name_causes(self, store: pyoxigraph.Store, suite: Shapes, outdated: Set[Term] | None) -> None:
        """Name the user graphs that may be the cause of the violations of nodes, which need not be of users.

        Those that ``graph/prov`` has alone are the store's own: nobody else writes it.
        """
        messages = self._nodes.messages
        nodes = messages.keys() if outdated is None else messages.keys() & outdated
        written = [graph for graph in store.named_graphs() if is_user_graph(graph)] if nodes else ()
        influences = find_influences(suite, store, written, nodes)  # type: ignore[arg-type]
        alone = suite.results_by_target(DataGraph.from_store(store, PROV_GRAPH), influences.keys(), details=False)
        for node in {node for node, violation in alone if violation.blocks}:
            influences.pop(node, None)
        self._nodes.caused |= influences.keys()
        for node, graphs in influences.items():
            more = f" and {len(graphs) - 1} other user graphs" if len(graphs) > 1 else ""
            messages[node] += f" Statements of the user graph {quoted(graphs[0].value)}{more} may be the cause."


def _check_user_graph(store: pyoxigraph.Store, graph: NamedNode) -> Iterator[Violation]:
    """Yield the violations of the record shapes in a user graph, and of the dataset shapes if it is not described."""
    if not store.contains_named_graph(graph):
        return
    yield from record_shapes().results(DataGraph.from_store(store, graph), details=False)
    if not any(store.quads_for_pattern(graph, RDF.type, None, PROV_GRAPH)):
        # The dataset shapes target the class of the graph, which its name implies.
        kind = KG.CuratedGraph if graph.value.startswith(CURATED) else KG.UserGraph
        yield from load_dataset_shapes().check([Triple(graph, RDF.type, kind), *_provenance_of(store, graph)])


def _provenance_of(store: pyoxigraph.Store, graph: NamedNode) -> Iterator[Triple]:
    """Yield the triples of ``graph/prov`` about a graph, its sources and its agents."""
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
    """Load the dataset shapes that ship with Quadcite."""
    return Shapes.load_dataset()
