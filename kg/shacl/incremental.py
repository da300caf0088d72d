"""The focus nodes that a change can affect, so that only these have to be validated again.

The results on a focus node depend on quads that are reached by walks from it (`kg.shacl.dependencies`). Take a node
whose results differ before and after a change, and compare both validations: up to the first difference they walk over
the same quads, which exist before and after the change. The next step is over an added or removed quad. So the search
starts at the end of each changed quad where such a step begins, and follows the walks backward to focus nodes. It needs
only quads that exist before and after, hence the data after the change; a removed quad is never walked over. Whether a
node is a target is decided by steps of the same kind (its classes, their superclasses, its properties), so nodes that
became or ceased to be targets are found too. The nodes found are a superset of those whose results differ.

The steps of a SPARQL constraint are derived from its patterns. If a pattern is not connected to ``$this``, any change
affects all targets of the shape. Shapes that pySHACL runs may depend on any quad, so then everything is affected.

Each commit of a store records facts that a later validation can no longer see (`kg.store.commits`): the nodes and
properties of removed quads, and the nodes whose description in ``graph/prov`` changed. Added quads are in the graphs
that the commit touched, unless they were removed again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
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
from kg.store.commits import HEAD, HEAD_PROPERTIES, Removal, load_removal
from kg.store.protocol import Term
from kg.vocabulary import KG, PROV_GRAPH, RDFS, commit_iri

MAX_QUADS: Final = 100_000
"""Most quads of a change that are analysed; after a larger change everything is validated."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the data: quads that were added or removed, as far as known.

    Of further removed quads only the nodes (`lost`), the properties (`by`) and the graphs (`graphs`) are known, not the
    literals or the combinations. `unknown` is the reason if the change is not known at all, else empty.
    """

    added: Collection[Quad] = ()
    removed: Collection[Quad] = ()
    lost: frozenset[NamedNode] = frozenset()
    by: frozenset[NamedNode] = frozenset()
    graphs: frozenset[NamedNode] = frozenset()
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Affected:
    """The focus nodes whose results may differ after a change.

    `nodes` is the `focus` of `Shapes.results` and `Shapes.results_by_target`; None for all nodes, for the reason `why`.
    `whole` are the shapes all of whose targets are among `nodes`, each with the part that could not be analysed.
    """

    nodes: frozenset[Term] | None
    why: str = ""
    whole: Mapping[ShapeNode, str] = field(default_factory=dict)
    literals: bool = False
    """Whether unknown literals may have ceased to be targets."""

    def find_outdated(self, known: Iterable[Term]) -> frozenset[Term] | None:
        """Return the targets whose earlier results are outdated, given the targets with `known` results; None for all.

        They include all of `nodes`, whose new results replace them.
        """
        if self.nodes is None or not self.literals:
            return self.nodes
        return self.nodes.union(node for node in known if isinstance(node, RdfLiteral))


def load_change(store: Store, generation: int) -> Change:
    """Load the change that the commits after `generation` made.

    Raises InvalidInputError for a generation that does not exist.
    """
    commits = _commits_since(store, generation)
    if not commits:
        return Change()
    removal, described = Removal(), {HEAD}
    for number in commits:
        found = load_removal(store, number)
        if found is None:
            return Change(unknown=f"commit {number} has no record of its removed quads")
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
    """Load the names of the graphs that commits after `generation` changed.

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
        raise InvalidInputError(f"Unknown generation {generation}. Available: 0 to {current}.")
    return range(generation + 1, current + 1)


def get_generation(store: Store) -> int:
    """Return the number of commits of `store`; 0 if none is recorded."""
    [*held] = store.quads_for_pattern(HEAD, KG.generation, None, PROV_GRAPH)
    return int(held[0].object.value) if held and isinstance(held[0].object, RdfLiteral) else 0


def _load_quads(store: Store, graphs: Iterable[NamedNode], described: Iterable[NamedNode]) -> Iterator[Quad]:
    for graph in graphs:
        yield from store.quads_for_pattern(None, None, None, graph)
    for node in described:
        yield from store.quads_for_pattern(node, None, None, PROV_GRAPH)


def find_affected(suite: Shapes, data: DataGraph, change: Change) -> Affected:
    """Find the focus nodes of `suite` whose results `change` may have altered. `data` is the data after the change."""
    if change.unknown:
        return Affected(None, change.unknown)
    if suite.uncompiled:
        return Affected(None, f"pySHACL runs {', '.join(sorted(suite.describe_uncompiled()))}")
    automaton = Automaton(suite.shapes, suite.roots, data.find_subclasses)
    whole = dict(automaton.opaque)
    if change.lost:
        for node in automaton.find_shapes_from_literals(change.by):
            whole.setdefault(node, "it may depend on the subjects of literals, and the removed literals are not known")
    nodes = frozenset(_walk_back(automaton, data, set(_find_starts(automaton, change))))
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


def find_influences(
    suite: Shapes, store: Store, graphs: Iterable[NamedNode], nodes: AbstractSet[Term]
) -> dict[Term, list[NamedNode]]:
    """Find which of `graphs` may alter the results of `nodes` in the union of all graphs.

    A graph of unknown influence, such as a large one, may alter all.
    """
    found: dict[Term, list[NamedNode]] = defaultdict(list)
    data = DataGraph.from_store(store)
    for graph in graphs:
        quads = list(islice(store.quads_for_pattern(None, None, None, graph), MAX_QUADS + 1))
        many = f"{graph.value} has more than {MAX_QUADS:,} quads" if len(quads) > MAX_QUADS else ""
        affected = find_affected(suite, data, Change(() if many else quads, unknown=many))
        for node in nodes if affected.nodes is None else nodes & affected.nodes:
            found[node].append(graph)
    return found


def _build_compiler(suite: Shapes, data: DataGraph) -> Compiler:
    names = {name for node in suite.roots for name in suite.shapes[node].targets.classes}
    return Compiler({name: data.find_subclasses(name) for name in names}, data.encode, repeats=data.may_repeat)


def _find_starts(automaton: Automaton, change: Change) -> Iterator[tuple[int, Term]]:
    """Yield each state and node from which a step leads over a changed quad."""
    by_predicate: dict[NamedNode | None, list[Step]] = defaultdict(list)
    for step in automaton.steps:
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


def _walk_back(automaton: Automaton, data: DataGraph, starts: set[tuple[int, Term]]) -> Iterator[Term]:
    """Yield the nodes at which walks begin that reach `starts`."""
    known: dict[tuple[Direction, NamedNode | None, frozenset[Term] | None, Term], Sequence[Term]] = {}
    todo = list(starts)
    while todo:
        state, node = todo.pop()
        if automaton.can_begin(state, node):
            yield node
        before = {(source, node) for source in automaton.jumps.get(state, ())}
        for step in automaton.into.get(state, ()):
            key = (step.direction, step.predicate, step.classes if step.direction == "home" else None, node)
            if (sources := known.get(key)) is None:
                sources = known[key] = tuple(_find_sources(step, node, data))
            before.update((step.source, each) for each in sources)
        before -= starts
        starts |= before
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
