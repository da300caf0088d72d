"""Which shared graphs a commit leaves without a reference. Pure: reads the store, writes nothing.

What several records share (a family, a place) stands in a graph of its own below ``graph/ref/``. It lives as long as
a quad of another graph has one of its subjects as object; what ``graph/prov`` says does not keep it alive.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from pyoxigraph import NamedNode, Quad, Store

from kg.store.protocol import GraphChange
from kg.vocabulary import BASE, PROV, PROV_GRAPH

_SHARED: Final = BASE + "graph/ref/"


def is_shared(graph: object) -> bool:
    """Say whether `graph` is one of those that live as long as something refers to them."""
    return isinstance(graph, NamedNode) and graph.value.startswith(_SHARED)


def orphaned_graphs(store: Store, changes: Sequence[GraphChange], kept: Collection[NamedNode]) -> list[NamedNode]:
    """Return the shared graphs that lose their last reference by `changes`, which are not written yet.

    Only graphs that a removed quad referred to, directly or through other such graphs, can be orphans. Those that
    refer to each other in a circle, and that nothing else refers to, are orphans together. The graphs in `kept`, which
    the commit fills itself, are not.
    """
    after = _After(store, changes)
    suspects: dict[NamedNode, set[NamedNode]] = {}  # graph -> the suspects that refer to it
    queue = deque(after.shared_graphs_of(quad.object for change in changes for quad in change.removed))
    alive: set[NamedNode] = set()
    while queue:
        graph = queue.popleft()
        if graph in suspects or graph in alive:
            continue
        if graph in kept:
            alive.add(graph)
            continue
        referrers: set[NamedNode] = set()
        for referrer in after.referrers(graph):
            if not is_shared(referrer):
                alive.add(graph)
                break
            referrers.add(referrer)
        else:
            suspects[graph] = referrers
            queue.extend(after.shared_graphs_of(quad.object for quad in after.quads(graph)))
    live = deque(graph for graph, referrers in suspects.items() if not referrers <= suspects.keys())
    while live:
        graph = live.popleft()
        if suspects.pop(graph, None) is not None:
            live.extend(other for other, referrers in suspects.items() if graph in referrers)
    return sorted(suspects, key=lambda graph: graph.value)


def provenance_of(store: Store, graphs: Iterable[NamedNode]) -> frozenset[Quad]:
    """Return what ``graph/prov`` says of `graphs`, with the derivation nodes that belong to them."""
    found: set[Quad] = set()
    for graph in graphs:
        for quad in store.quads_for_pattern(graph, None, None, PROV_GRAPH):
            found.add(quad)
            if quad.predicate == PROV.qualifiedDerivation and isinstance(quad.object, NamedNode):
                found.update(store.quads_for_pattern(quad.object, None, None, PROV_GRAPH))
    return frozenset(found)


class _After:
    """The content of the store as it will be after the changes."""

    def __init__(self, store: Store, changes: Sequence[GraphChange]) -> None:
        self._store = store
        self._removed = {change.graph: change.removed for change in changes}
        self._added = {change.graph: change.added for change in changes}
        self._adding: dict[object, set[NamedNode]] | None = None

    def quads(self, graph: NamedNode) -> Iterator[Quad]:
        removed = self._removed.get(graph, frozenset())
        for quad in self._store.quads_for_pattern(None, None, None, graph):
            if quad not in removed:
                yield quad
        yield from self._added.get(graph, ())

    def shared_graphs_of(self, terms: Iterable[object]) -> Iterator[NamedNode]:
        """Yield the shared graphs that have one of `terms` as a subject."""
        for term in {term for term in terms if isinstance(term, NamedNode)}:
            for quad in self._store.quads_for_pattern(term, None, None, None):
                if is_shared(quad.graph_name) and isinstance(quad.graph_name, NamedNode):
                    yield quad.graph_name

    def referrers(self, graph: NamedNode) -> Iterator[NamedNode]:
        """Yield the graphs, other than itself and ``graph/prov``, that refer to a subject of `graph`."""
        for subject in {quad.subject for quad in self.quads(graph)}:
            for quad in self._store.quads_for_pattern(None, None, subject, None):
                referrer = quad.graph_name
                if (
                    isinstance(referrer, NamedNode)
                    and referrer not in (graph, PROV_GRAPH)
                    and quad not in self._removed.get(referrer, frozenset())
                ):
                    yield referrer
            yield from self._adders(subject) - {graph}

    def _adders(self, term: object) -> set[NamedNode]:
        """Return the graphs to which a quad with the object `term` is added."""
        if self._adding is None:
            self._adding = {}
            for graph, quads in self._added.items():
                for quad in quads:
                    if isinstance(quad.object, NamedNode):
                        self._adding.setdefault(quad.object, set()).add(graph)
        return self._adding.get(term, set())
