"""The dataset shapes, checked in the background after people wrote: the result is told in `status` and stops nobody.

What is checked is what people wrote: what ``graph/prov`` says of their graphs, by the dataset shapes, and each graph
that says something of a class of ours, by the record shapes taken as open (an update is not held back by them). A
graph is checked once for each content, and one with more than `MAX_TRIPLES` triples, or beyond the first `MAX_GRAPHS`,
not at all: the result says how many.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from pyoxigraph import NamedNode, Triple

from kg.errors import QuadciteError
from kg.knowledge_graph import KnowledgeGraph
from kg.sparql.terms import bind
from kg.store.ownership import CURATED, yields
from kg.store.protocol import Rows
from kg.tools.model import DatasetCheck
from kg.tools.user_graphs import record_shapes
from kg.validation.report import Violation
from kg.validation.shapes import Shapes
from kg.vocabulary import KG, PROV_GRAPH, RDF

MAX_GRAPHS: Final = 2_000
MAX_TRIPLES: Final = 20_000
_TOLD: Final = 20
_AT_ONCE: Final = 200
_log: Final = logging.getLogger(__name__)

SAID: Final = """
SELECT DISTINCT ?s ?p ?o WHERE {
  GRAPH $prov {
    VALUES ?graph { $graphs }
    { BIND(?graph AS ?s) }
    UNION { ?graph prov:wasGeneratedBy ?s }
    UNION { ?graph prov:wasDerivedFrom ?s }
    UNION { ?graph prov:wasGeneratedBy ?run . ?run prov:wasAssociatedWith ?s }
    ?s ?p ?o
  }
}"""

HASH: Final = "SELECT ?hash WHERE { GRAPH $prov { $graph kg:contentSha256 ?hash } }"


@dataclass(slots=True)
class DatasetChecks:
    """Checks when told to, in a thread of its own, one check at a time; what is asked for meanwhile is one more."""

    kg: KnowledgeGraph
    _state: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _idle: threading.Event = field(default_factory=threading.Event, init=False, repr=False)
    _wanted: bool = field(default=False, init=False)
    _closed: bool = field(default=False, init=False)
    _result: DatasetCheck | None = field(default=None, init=False)
    _known: dict[NamedNode, tuple[object, list[Violation]]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self._idle.set()

    def schedule(self) -> None:
        """Have what people wrote checked soon; returns at once."""
        with self._state:
            self._wanted = True
            if not self._idle.is_set() or self._closed:
                return
            self._idle.clear()
        threading.Thread(target=self._work, name="dataset-shapes", daemon=True).start()

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
        with self._state:
            self._closed = True

    def _work(self) -> None:
        while True:
            with self._state:
                if not self._wanted or self._closed:
                    self._idle.set()
                    return
                self._wanted = False
            try:
                result = self._check()
            except QuadciteError as error:
                _log.warning("the dataset shapes could not be checked: %s", error)
                generation = self.kg.store.statistics().generation
                result = DatasetCheck(generation=generation, checked="nothing", problem=str(error))
            with self._state:
                self._result = result

    def _check(self) -> DatasetCheck:
        begun = time.perf_counter()
        store = self.kg.store
        generation = store.statistics().generation
        graphs = sorted((graph for graph in store.graphs() if yields(graph)), key=lambda graph: graph.value)
        taken, left_out = graphs[:MAX_GRAPHS], len(graphs) - MAX_GRAPHS
        found = [
            violation
            for start in range(0, len(taken), _AT_ONCE)
            for violation in self._provenance(taken[start : start + _AT_ONCE])
        ]
        known, too_large = {}, 0
        for graph in taken:
            violations = self._content(graph)
            too_large += violations is None
            if violations is not None:
                known[graph] = violations
                found += violations[1]
        self._known = known
        blocking = [violation for violation in found if violation.blocks]
        checked = f"{len(taken)} graphs of people and their provenance, by the dataset and the open record shapes"
        if too_large:
            checked += f"; the content of {too_large} is too large"
        if left_out > 0:
            checked += f"; {left_out} graphs are left out"
        return DatasetCheck(
            generation=generation,
            checked=checked,
            conforms=not blocking,
            violations=len(blocking),
            messages=list(dict.fromkeys(_told(violation) for violation in blocking))[:_TOLD],
            seconds=round(time.perf_counter() - begun, 3),
        )

    def _provenance(self, graphs: Sequence[NamedNode]) -> list[Violation]:
        # The class that a graph has by its name is added, so that one of which nothing is said is looked at too.
        triples = [
            Triple(graph, RDF.type, KG.CuratedGraph if graph.value.startswith(CURATED) else KG.UserGraph)
            for graph in graphs
        ]
        rows = self.kg.store.query(bind(SAID, prov=PROV_GRAPH, graphs=graphs))
        if isinstance(rows, Rows):
            triples += [Triple(row["s"], row["p"], row["o"]) for row in rows]  # type: ignore[arg-type]  # of a quad
        return _dataset_shapes().check(triples)

    def _content(self, graph: NamedNode) -> tuple[object, list[Violation]] | None:
        """Return the content hash of `graph` and what breaks its shapes, or None for a graph that is too large."""
        store = self.kg.store
        hashes = store.query(bind(HASH, prov=PROV_GRAPH, graph=graph))
        digest = hashes.rows[0][0] if isinstance(hashes, Rows) and len(hashes) else None
        if (known := self._known.get(graph)) is not None and digest is not None and known[0] == digest:
            return known
        quads = store.graph(graph)
        shapes = record_shapes()
        if not shapes.targets_any(quads):
            return digest, []
        return None if len(quads) > MAX_TRIPLES else (digest, shapes.check(quads))


@cache
def _dataset_shapes() -> Shapes:
    return Shapes.dataset()


def _told(violation: Violation) -> str:
    return f"{violation.focus}: {violation.message}"
