"""A SPARQL Update run on a copy of the store, in a process of its own, and what it changed there."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyoxigraph
from pyoxigraph import NamedNode, Quad, RdfFormat, Store

from kg.errors import InvalidInputError
from kg.processes.child import Limits, run_task
from kg.sparql.dataset_clauses import add_dataset
from kg.sparql.guard import check_update
from kg.store import difference
from kg.store.difference import Delta
from kg.store.protocol import Snapshot
from kg.store.skolem import skolemize
from kg.store.update_scope import find_mentioned_graphs, reads_any_graph, reject_default_graph_patterns
from kg.vocabulary import KG, PREFIXES, PROV_GRAPH, mint

_WHAT: Final = "the update"
_SHARED_SUFFIXES: Final = frozenset({".sst", ".blob"})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an update does to each graph that it changes."""

    removed: Mapping[NamedNode, Sequence[Quad]]
    added: Mapping[NamedNode, Sequence[Quad]]

    def deltas(self, store: Store) -> list[Delta]:
        """Return the same as differences to what `store` holds."""
        found = []
        for graph in sorted({*self.removed, *self.added}, key=lambda graph: graph.value):
            held = difference.load_statements(store, graph)
            gone = difference.canonical_statements(graph, self.removed.get(graph, ()))
            wanted = {line: quad for line, quad in held.items() if line not in gone}
            wanted.update(difference.canonical_statements(graph, self.added.get(graph, ())))
            if delta := difference.compare(graph, held, wanted):
                found.append(delta)
        return found


@dataclass(slots=True)
class Update:
    """An update that may be run. Nothing of it is parsed or evaluated in this process, which a parser may overrun.

    Raises what `check_update` raises. What else is wrong with it, `run` says.
    """

    text: str
    default_graphs: Sequence[NamedNode] = ()
    named_graphs: Sequence[NamedNode] = ()
    reach: frozenset[NamedNode] = field(init=False)
    _given: str = field(init=False)
    _reads_any: bool = field(init=False)
    _fault: InvalidInputError | None = field(init=False, default=None)
    """Why it cannot be run, unless it is no update to begin with."""

    def __post_init__(self) -> None:
        self._given = self.text
        self.reach = frozenset()
        check_update(self.text)
        try:
            if self.default_graphs or self.named_graphs:
                self.text = add_dataset(self.text, self.default_graphs, self.named_graphs)
            self.reach = find_mentioned_graphs(self.text)
            reject_default_graph_patterns(self.text)
        except InvalidInputError as error:
            self._fault = error
        self._reads_any = reads_any_graph(self.text)

    def run(self, snapshot: Snapshot, folder: Path, limits: Limits) -> Outcome:
        """Run it on a copy of `snapshot`, which is made in `folder`.

        Raises QuerySyntaxError, InvalidInputError where the graphs that it writes cannot be read off its text and for
        an operation that fails, QueryTimeoutError and QueryMemoryError.
        """
        if self._fault is not None or self.text != self._given:
            with run_task("syntax", self._given.encode(), {"prefixes": PREFIXES}, limits, what=_WHAT, folder=folder):
                pass
        if self._fault is not None:
            raise self._fault
        scratch = folder / f"copy-{id(self)}"
        settings = {
            "snapshot": str(snapshot.path),
            "scratch": str(scratch),
            "prefixes": PREFIXES,
            "reach": sorted(graph.value for graph in self.reach),
        }
        try:
            _copy(snapshot.path, scratch)
            with run_task("update", self.text.encode(), settings, limits, what=_WHAT, folder=folder) as results:
                return Outcome(_quads(results / "removed"), _skolemized(_quads(results / "added")))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def is_outdated(self, store: Store, seen: int, current: int) -> bool:
        """Return whether a commit after generation `seen` touched what this update reads or writes."""
        if seen == current:
            return False
        if self._reads_any or PROV_GRAPH in self.reach:
            return True
        return any(
            quad.object in self.reach
            for generation in range(seen + 1, current + 1)
            for quad in store.quads_for_pattern(mint("commit", str(generation)), KG.touched, None, PROV_GRAPH)
        )


def _copy(checkpoint: Path, folder: Path) -> None:
    """Make a copy of a checkpoint that can be written to; tables, which no engine ever changes, are shared."""
    folder.mkdir()
    for path in checkpoint.iterdir():
        if path.suffix in _SHARED_SUFFIXES:
            (folder / path.name).hardlink_to(path)
        elif path.name != "LOCK" and not path.name.startswith("LOG"):
            shutil.copyfile(path, folder / path.name)


def _quads(path: Path) -> dict[NamedNode, list[Quad]]:
    found: dict[NamedNode, list[Quad]] = defaultdict(list)
    if path.exists():
        for quad in pyoxigraph.parse(path=path, format=RdfFormat.N_QUADS):
            if isinstance(quad.graph_name, NamedNode):
                found[quad.graph_name].append(quad)
    return found


def _skolemized(added: Mapping[NamedNode, Iterable[Quad]]) -> dict[NamedNode, list[Quad]]:
    return {
        graph: [
            Quad(triple.subject, triple.predicate, triple.object, graph)
            for triple in skolemize(graph, [quad.triple for quad in quads])
        ]
        for graph, quads in added.items()
    }
