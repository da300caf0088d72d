"""Run a SPARQL Update on a copy of the store in a confined process, and determine the difference that it makes."""

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
from kg.sparql.lexer import escape_inner_dots
from kg.store import difference
from kg.store.commits import has_touched
from kg.store.difference import Delta
from kg.store.protocol import Snapshot
from kg.store.skolem import skolemize
from kg.store.update_scope import find_mentioned_graphs, reads_any_graph, reject_default_graph_patterns
from kg.vocabulary import ABOUT_GRAPH, CATALOG_GRAPH, PREFIXES, PROPERTIES_GRAPH, PROV_GRAPH, SUPERCLASS_GRAPH

_WHAT: Final = "the update"
_UNRECORDED: Final = frozenset({PROV_GRAPH, SUPERCLASS_GRAPH, ABOUT_GRAPH, CATALOG_GRAPH, PROPERTIES_GRAPH})
"""Graphs that commits change without a record of it."""
_SHARED_SUFFIXES: Final = frozenset({".sst", ".blob"})


@dataclass(frozen=True, slots=True)
class Outcome:
    """The quads that an update removes and adds, by graph."""

    removed: Mapping[NamedNode, Sequence[Quad]]
    added: Mapping[NamedNode, Sequence[Quad]]

    def deltas(self, store: Store) -> list[Delta]:
        """Return it as differences from the current graphs of `store`."""
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
    """An update to run. It is never parsed or evaluated in this process, since hostile text can crash a parser.

    Construction raises what `check_update` raises; `run` raises all other errors.
    """

    text: str
    default_graphs: Sequence[NamedNode] = ()
    named_graphs: Sequence[NamedNode] = ()
    scope: frozenset[NamedNode] = field(init=False)
    """The graphs that it may write."""
    _original: str = field(init=False)
    _reads_any: bool = field(init=False)
    _error: InvalidInputError | None = field(init=False, default=None)
    """The error to raise if its syntax is valid: a syntax error takes precedence."""

    def __post_init__(self) -> None:
        self.scope = frozenset()
        check_update(self.text)
        self._original = self.text = escape_inner_dots(self.text)
        try:
            if self.default_graphs or self.named_graphs:
                self.text = add_dataset(self.text, self.default_graphs, self.named_graphs)
            self.scope = find_mentioned_graphs(self.text)
            reject_default_graph_patterns(self.text)
        except InvalidInputError as error:
            self._error = error
        self._reads_any = reads_any_graph(self.text)

    def run(self, snapshot: Snapshot, folder: Path, limits: Limits) -> Outcome:
        """Run it on a copy of `snapshot`, created in `folder`.

        Raises QuerySyntaxError, InvalidInputError if its graphs cannot be determined or an operation fails,
        QueryTimeoutError and QueryMemoryError.
        """
        if self._error is not None or self.text != self._original:
            with run_task("syntax", self._original.encode(), {"prefixes": PREFIXES}, limits, what=_WHAT, folder=folder):
                pass
        if self._error is not None:
            raise self._error
        scratch = folder / f"copy-{id(self)}"
        settings = {
            "snapshot": str(snapshot.path),
            "scratch": str(scratch),
            "prefixes": PREFIXES,
            "reach": sorted(graph.value for graph in self.scope),
        }
        try:
            _copy(snapshot.path, scratch)
            with run_task("update", self.text.encode(), settings, limits, what=_WHAT, folder=folder) as results:
                return Outcome(_read_quads(results / "removed"), _skolemize(_read_quads(results / "added")))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def is_outdated(self, store: Store, seen: int, current: int) -> bool:
        """Return whether a commit after generation `seen` touched what this update reads or writes."""
        if seen == current:
            return False
        if self._reads_any or not self.scope.isdisjoint(_UNRECORDED):
            return True
        return has_touched(store, self.scope, seen, current)


def _copy(checkpoint: Path, folder: Path) -> None:
    """Make a writable copy of a checkpoint. Table files are hard links: the engine never modifies them."""
    folder.mkdir()
    for path in checkpoint.iterdir():
        if path.suffix in _SHARED_SUFFIXES:
            (folder / path.name).hardlink_to(path)
        elif path.name != "LOCK" and not path.name.startswith("LOG"):
            shutil.copyfile(path, folder / path.name)


def _read_quads(path: Path) -> dict[NamedNode, list[Quad]]:
    found: dict[NamedNode, list[Quad]] = defaultdict(list)
    if path.exists():
        for quad in pyoxigraph.parse(path=path, format=RdfFormat.N_QUADS):
            if isinstance(quad.graph_name, NamedNode):
                found[quad.graph_name].append(quad)
    return found


def _skolemize(added: Mapping[NamedNode, Iterable[Quad]]) -> dict[NamedNode, list[Quad]]:
    return {
        graph: [
            Quad(triple.subject, triple.predicate, triple.object, graph)
            for triple in skolemize(graph, [quad.triple for quad in quads])
        ]
        for graph, quads in added.items()
    }
