"""The gate of every load: validation of candidate graphs, and of stored records, against the record shapes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Store

from kg.shacl.incremental import load_touched_graphs
from kg.shacl.report import Violation
from kg.shacl.shapes import Shapes
from kg.store.ownership import is_shared_graph
from kg.store.protocol import Term
from kg.vocabulary import BASE, RDF, SH, SOURCED, XSD

_ENTITIES: Final = BASE + "graph/ref/entity/"
BATCH_QUADS: Final = 60_000
"""Quads that are validated together: enough to amortize the fixed cost of a call, few enough for memory."""


@dataclass(slots=True)
class _Candidate:
    """A graph and its nodes, collected in one pass, since each access to a quad creates its terms again."""

    graph: NamedNode
    quads: Sequence[Quad]
    subjects: set[Term] = field(default_factory=set)
    objects: set[Term] = field(default_factory=set)
    """IRIs and blank nodes that it mentions without describing them."""
    unchecked: set[Term] = field(default_factory=set)
    """Subjects that no shape targets."""
    blank: set[Term] = field(default_factory=set)
    typed: list[int] = field(default_factory=list)
    """Positions of the quads whose literal is not an xsd:string."""

    @classmethod
    def from_quads(cls, graph: NamedNode, quads: Sequence[Quad], shapes: Shapes) -> _Candidate:
        found = cls(graph, quads)
        checked: set[Term] = set()
        kind, targets, predicates, string = RDF.type, shapes.targets, tuple(shapes.target_predicates), XSD.string
        last = None
        for position, (subject, predicate, value, _) in enumerate(quads):
            if subject != last:  # the quads of a subject are mostly adjacent
                found.subjects.add(subject)
                last = subject
            if type(value) is not Literal:
                found.objects.add(value)
                if predicate == kind and value in targets:
                    checked.add(subject)
            elif value.datatype != string:
                found.typed.append(position)
            if predicate in predicates:
                checked.add(subject)
        found.blank = {term for term in found.subjects | found.objects if isinstance(term, BlankNode)}
        found.objects -= found.subjects
        found.unchecked = found.subjects - checked - found.blank
        return found


@dataclass(slots=True)
class _Batch:
    """Graphs that can be validated as one: none describes a node that another describes or mentions."""

    candidates: list[_Candidate] = field(default_factory=list)
    subjects: set[Term] = field(default_factory=set)
    objects: set[Term] = field(default_factory=set)
    quads: int = 0

    def accepts(self, candidate: _Candidate) -> bool:
        if self.candidates and self.quads + len(candidate.quads) > BATCH_QUADS:
            return False
        return (
            self.subjects.isdisjoint(candidate.subjects)
            and self.objects.isdisjoint(candidate.subjects)
            and self.subjects.isdisjoint(candidate.objects)
        )

    def add(self, candidate: _Candidate) -> None:
        self.candidates.append(candidate)
        self.subjects |= candidate.subjects
        self.objects |= candidate.objects
        self.quads += len(candidate.quads)


class RecordGate:
    """Checks candidate graphs against record shapes before they are committed.

    Graphs are validated in batches with the same results as one by one: graphs that share a node are never in the same
    batch, so an invalid record cannot affect another.
    """

    def __init__(self, shapes: Shapes | None = None) -> None:
        self.shapes = shapes or Shapes.load()

    def check(self, candidates: Mapping[NamedNode, Sequence[Quad]]) -> dict[NamedNode, list[Violation]]:
        """Validate graphs and return the results of each that has any; see `Violation.blocks`."""
        found: dict[NamedNode, list[Violation]] = {}
        gathered = (_Candidate.from_quads(graph, quads, self.shapes) for graph, quads in candidates.items())
        for batch in _build_batches(gathered):
            for graph, violations in self._check_batch(batch).items():
                found.setdefault(graph, []).extend(violations)
            for candidate in batch:
                if strays := list(_find_unchecked(candidate)):
                    found.setdefault(candidate.graph, []).extend(strays)
        for violations in found.values():
            violations.sort(key=lambda violation: (not violation.blocks, str(violation.focus), violation.message))
        return found

    def _check_batch(self, batch: Sequence[_Candidate]) -> dict[NamedNode, list[Violation]]:
        results = self.shapes.check_disjoint((each.quads, each.typed) for each in batch)
        if not results:
            return {}
        graph_of: dict[Term, NamedNode] = {subject: each.graph for each in batch for subject in each.subjects}
        if len(batch) > 1 and any(result.focus not in graph_of for result in results):
            # No graph describes this focus node, so check one graph at a time to find the graph at fault.
            return {graph: found for each in batch for graph, found in self._check_batch([each]).items()}
        found: dict[NamedNode, list[Violation]] = defaultdict(list)
        for result in results:
            graph = graph_of.get(result.focus) if result.focus is not None else None
            graph = graph or batch[0].graph
            found[graph].append(replace(result, graph=graph))
        return found


def _find_unchecked(candidate: _Candidate) -> Iterator[Violation]:
    """Yield a result for each subject that no shape targets, and for each blank node, which records must not have."""
    for subject in candidate.unchecked:
        yield Violation(
            focus=subject,
            message="No shape targets this node. Give it a type (rdf:type) that records may have.",
            component=SH.ClassConstraintComponent,
            path=RDF.type,
            graph=candidate.graph,
        )
    for node in candidate.blank:
        yield Violation(
            focus=node,
            message="Records must not contain blank nodes. Use an IRI derived from the content.",
            component=SH.NodeKindConstraintComponent,
            graph=candidate.graph,
        )


def _build_batches(candidates: Iterable[_Candidate]) -> Iterator[Sequence[_Candidate]]:
    open_batches: list[_Batch] = []
    for candidate in candidates:
        batch = next((batch for batch in open_batches if batch.accepts(candidate)), None)
        if batch is None:
            batch = _Batch()
            open_batches.append(batch)
        batch.add(candidate)
        if batch.quads >= BATCH_QUADS:
            open_batches.remove(batch)
            yield batch.candidates
    yield from (batch.candidates for batch in open_batches)


def is_record_graph(graph: object) -> bool:
    """Return whether `graph` contains a record: of a source, or shared by several.

    Entities are found in texts, so the shapes of the dataset describe them, not those of records.
    """
    if not isinstance(graph, NamedNode) or graph.value.startswith(_ENTITIES):
        return False
    return is_shared_graph(graph) or graph.value.startswith(SOURCED)


def find_record_graphs(store: Store, since: int | None = None) -> list[NamedNode]:
    """Return the names of the graphs of records, sorted.

    `since`: only graphs that commits after this generation touched and that still exist.

    Raises InvalidInputError for a generation that does not exist.
    """
    names = (
        store.named_graphs() if since is None else filter(store.contains_named_graph, load_touched_graphs(store, since))
    )
    found = [name for name in names if isinstance(name, NamedNode) and is_record_graph(name)]
    return sorted(found, key=lambda name: name.value)


def check_record_graphs(store: Store, graphs: Iterable[NamedNode], gate: RecordGate) -> Iterator[Violation]:
    """Check each of `graphs` by itself, in batches, and yield the results in the order of `graphs`."""
    batch: dict[NamedNode, list[Quad]] = {}
    size = 0
    for name in graphs:
        batch[name] = list(store.quads_for_pattern(None, None, None, name))
        size += len(batch[name])
        if size >= BATCH_QUADS:
            yield from _check_graphs(batch, gate)
            batch.clear()
            size = 0
    yield from _check_graphs(batch, gate)


def _check_graphs(batch: dict[NamedNode, list[Quad]], gate: RecordGate) -> Iterator[Violation]:
    results = gate.check(batch)
    for name in batch:
        yield from results.get(name, ())
