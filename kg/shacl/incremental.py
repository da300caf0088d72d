"""Which focus nodes a change can affect, so that only these need to be validated anew.

What a suite finds on a focus node depends on the quads that it looks at, and it comes to each by a walk from the focus
node (`kg.shacl.dependencies`). Take a node whose results differ before and after a change, and both of its validations
side by side: up to the first step at which they differ, they have gone the same way, over quads that stand in the data
before and after. At that step a quad was added or removed. So from the end of each changed quad at which such a step
begins, the walks are followed backward to the shapes where they begin. They lead over quads that are there before and
after, so the data after the change have them all: a removed quad is looked for at its ends, and never walked over.
Whether a node is a target at all is looked up by steps of the same kind (its classes, the classes above them, whether
it has a property), so a node that became a target, or no longer is one, is found like any other. What is found this way
is a superset of what differs.

The steps that a SPARQL constraint takes are read off its patterns; where a pattern is joined with ``$this`` by no other
ones, all targets of the shape are affected by anything. What pySHACL runs may look anywhere: then all is affected.

Each commit of a store records what a later validation cannot see any more (`kg.store.commits`): the nodes and the
properties of the quads that it removed, and the nodes of which it changed what ``graph/prov`` says. What it added is
among what the graphs hold that it touched, unless it is gone again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from pyoxigraph import BlankNode, NamedNode, Quad, Store
from pyoxigraph import Literal as RdfLiteral

from kg.errors import InvalidInputError
from kg.shacl.compiler import Compiler
from kg.shacl.data_graph import DataGraph
from kg.shacl.dependencies import Automaton, Direction, Step
from kg.shacl.shape_model import ShapeNode
from kg.shacl.shapes import Shapes
from kg.store.commits import HEAD, HEAD_PROPERTIES, Removal, commit_iri, load_removal
from kg.store.protocol import GraphChange, Term
from kg.vocabulary import KG, PROV_GRAPH, RDFS

MAX_QUADS: Final = 100_000
"""Quads of a change that are looked at one by one; with more of them, all is validated."""


@dataclass(frozen=True, slots=True)
class Change:
    """What may have changed in the data: quads that were added or removed, and what is known of others.

    `lost` and `by`: the nodes and the properties of quads that were removed too; the literals and the pairs are not
    known. `graphs`: where these stood. `unknown`: why it cannot be said what has changed; empty, if it can.
    """

    added: Collection[Quad] = ()
    removed: Collection[Quad] = ()
    lost: frozenset[NamedNode] = frozenset()
    by: frozenset[NamedNode] = frozenset()
    graphs: frozenset[NamedNode] = frozenset()
    unknown: str = ""

    @classmethod
    def from_commits(cls, changes: Iterable[GraphChange]) -> Change:
        """Return what one or several commits did to graphs."""
        changes = list(changes)
        return cls(
            frozenset().union(*(change.added for change in changes)),
            frozenset().union(*(change.removed for change in changes)),
        )


@dataclass(frozen=True, slots=True)
class Affected:
    """The focus nodes whose results may differ: those of other nodes are what they were.

    `nodes` is the `focus` of `Shapes.results` and `Shapes.results_by_target`; None for all nodes, for the reason `why`.
    `whole` are the shapes all of whose targets are among `nodes`, each with the part that could not be analysed.
    """

    nodes: frozenset[Term] | None
    why: str = ""
    whole: Mapping[ShapeNode, str] = field(default_factory=dict)
    literals: bool = False
    """Whether literals may have been targets that are none any more; which ones is not known."""

    def find_outdated(self, known: Iterable[Term]) -> frozenset[Term] | None:
        """Return the targets whose results of before do not hold, out of those of which some are `known`; None for all.

        All of `nodes` are among them: what a validation finds of these is what holds instead.
        """
        if self.nodes is None or not self.literals:
            return self.nodes
        return self.nodes.union(node for node in known if isinstance(node, RdfLiteral))


def load_change(store: Store, generation: int) -> Change:
    """Return what the commits after `generation` may have changed, by what `store` keeps of them.

    Raises InvalidInputError for a generation that does not exist.
    """
    commits = _commits_since(store, generation)
    if not commits:
        return Change()
    removal, described = Removal(), {HEAD}
    for number in commits:
        found = load_removal(store, number)
        if found is None:
            return Change(unknown=f"commit {number} does not say what it removed")
        removal |= found
        described |= {commit_iri(number), *found.described}
    graphs = load_touched_graphs(store, generation)
    added = list(islice(_load_quads(store, graphs - {PROV_GRAPH}, described | graphs), MAX_QUADS + 1))
    if len(added) > MAX_QUADS:
        return Change(unknown=f"more than {MAX_QUADS:,} quads may have changed")
    return Change(
        added,
        (),
        removal.nodes | {HEAD},
        removal.properties | HEAD_PROPERTIES,
        frozenset(graphs | {PROV_GRAPH}),
    )


def load_touched_graphs(store: Store, generation: int) -> set[NamedNode]:
    """Return the graphs that commits after `generation` changed.

    Raises InvalidInputError for a generation that does not exist.
    """
    touched: set[NamedNode] = set()
    for number in _commits_since(store, generation):
        quads = store.quads_for_pattern(commit_iri(number), KG.touched, None, PROV_GRAPH)
        touched.update(quad.object for quad in quads if isinstance(quad.object, NamedNode))
    return touched


def _commits_since(store: Store, generation: int) -> range:
    current = get_generation(store)
    if not 0 <= generation <= current:
        raise InvalidInputError(f"there is no generation {generation}: the newest one is {current}, the first is 0")
    return range(generation + 1, current + 1)


def get_generation(store: Store) -> int:
    """Return how many commits `store` has had; 0 where none is recorded."""
    [*held] = store.quads_for_pattern(HEAD, KG.generation, None, PROV_GRAPH)
    return int(held[0].object.value) if held and isinstance(held[0].object, RdfLiteral) else 0


def _load_quads(store: Store, graphs: Iterable[NamedNode], described: Iterable[NamedNode]) -> Iterator[Quad]:
    for graph in graphs:
        yield from store.quads_for_pattern(None, None, None, graph)
    for node in described:
        yield from store.quads_for_pattern(node, None, None, PROV_GRAPH)


def find_affected(suite: Shapes, data: DataGraph, change: Change) -> Affected:
    """Return the focus nodes of `suite` whose results `change` may have altered; `data` are those after it."""
    if change.unknown:
        return Affected(None, change.unknown)
    if suite.uncompiled:
        return Affected(None, f"pySHACL runs {', '.join(sorted(suite.describe_uncompiled()))}")
    walks = Automaton(suite.shapes, suite.roots, data.find_subclasses)
    whole = dict(walks.opaque)
    if change.lost:
        for node in walks.find_shapes_from_literals(change.by):
            whole.setdefault(node, "it may look from a literal to what has it, and it is not known which are gone")
    nodes = frozenset(_walk_back(walks, data, set(_find_starts(walks, change))))
    if not (change.added or change.removed or change.lost):
        whole.clear()
    if whole:
        compiler = _build_compiler(suite, data)
        for node in whole:
            rows = data.select(compiler.compile_nodes(suite.shapes[node].targets))
            nodes |= {data.to_original(row[0]) for row in rows}
    literals = bool(change.lost) and any(
        not change.by.isdisjoint(suite.shapes[node].targets.objects_of) for node in suite.roots
    )
    return Affected(nodes, whole=whole, literals=literals)


def _build_compiler(suite: Shapes, data: DataGraph) -> Compiler:
    names = {name for node in suite.roots for name in suite.shapes[node].targets.classes}
    return Compiler({name: data.find_subclasses(name) for name in names}, data.encode, repeats=data.may_repeat)


def _find_starts(walks: Automaton, change: Change) -> Iterator[tuple[int, Term]]:
    """Yield each state and node from which a step would be over a changed quad."""
    by_predicate: dict[NamedNode | None, list[Step]] = defaultdict(list)
    for step in walks.steps:
        by_predicate[step.predicate].append(step)
    anything = by_predicate[None]
    for quads, present in ((change.added, True), (change.removed, False)):
        for quad in quads:
            for step in (*by_predicate.get(quad.predicate, ()), *anything):
                if not (present and step.classes is not None and quad.object not in step.classes):
                    yield step.source, _start_of(step, quad)
    for predicate, steps in by_predicate.items():
        if change.lost and (predicate is None or predicate in change.by):
            for step in steps:
                for node in change.graphs if step.direction == "graph" else change.lost:
                    yield step.source, node


def _start_of(step: Step, quad: Quad) -> Term:
    if step.direction in ("forward", "home"):
        return quad.subject
    if step.direction == "inverse":
        return quad.object
    return quad.graph_name if isinstance(quad.graph_name, NamedNode | BlankNode) else RDFS.Resource


def _walk_back(walks: Automaton, data: DataGraph, begun: set[tuple[int, Term]]) -> Iterator[Term]:
    """Yield the nodes at which the walks begin that come to what is `begun`."""
    led: dict[tuple[Direction, NamedNode | None, frozenset[Term] | None, Term], Sequence[Term]] = {}
    todo = list(begun)
    while todo:
        state, node = todo.pop()
        if walks.can_begin(state, node):
            yield node
        before = {(source, node) for source in walks.jumps.get(state, ())}
        for step in walks.into.get(state, ()):
            way = (step.direction, step.predicate, step.classes if step.direction == "home" else None, node)
            if (sources := led.get(way)) is None:
                sources = led[way] = tuple(_find_sources(step, node, data))
            before.update((step.source, each) for each in sources)
        before -= begun
        begun |= before
        todo += before


def _find_sources(step: Step, node: Term, data: DataGraph) -> Iterator[Term]:
    """Yield the nodes from which `step` leads to `node`."""
    if step.direction == "forward":
        yield from data.find_subjects(step.predicate, node)
    elif step.direction == "inverse":
        yield from (quad.object for quad in data.find_quads(node, step.predicate, None))
    elif step.direction == "graph":
        found = data.find_quads(node, step.predicate, None)
        yield from (quad.graph_name for quad in found if isinstance(quad.graph_name, NamedNode | BlankNode))
    elif isinstance(node, NamedNode | BlankNode):
        for value in step.classes or (None,):
            yield from data.find_subjects(step.predicate, value, node)
