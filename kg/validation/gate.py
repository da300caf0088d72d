"""The gate of every load: candidate graphs in, violations per graph out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pyoxigraph import BlankNode, Literal, NamedNode, Quad

from kg.store.protocol import Term
from kg.validation.report import Violation
from kg.validation.shapes import Shapes
from kg.vocabulary import RDF, SH

BATCH_QUADS: Final = 20_000
"""Quads that are validated together: enough to share the fixed cost of a call, few enough for memory."""


@dataclass(slots=True)
class _Batch:
    """Graphs that can be validated as one, since none says anything of what another says or names."""

    graphs: dict[NamedNode, Sequence[Quad]] = field(default_factory=dict)
    subjects: set[Term] = field(default_factory=set)
    objects: set[Term] = field(default_factory=set)
    quads: int = 0

    def takes(self, subjects: set[Term], objects: set[Term], quads: int) -> bool:
        if self.graphs and self.quads + quads > BATCH_QUADS:
            return False
        return not (subjects & self.subjects or subjects & self.objects or objects & self.subjects)

    def add(self, graph: NamedNode, quads: Sequence[Quad], subjects: set[Term], objects: set[Term]) -> None:
        self.graphs[graph] = quads
        self.subjects |= subjects
        self.objects |= objects
        self.quads += len(quads)


class RecordGate:
    """Checks candidate graphs against record shapes before they are committed.

    Graphs are validated many at a time, with the same result as each alone: what two graphs both speak of is never
    validated together, so a record that breaks the shapes does not taint another.
    """

    def __init__(self, shapes: Shapes | None = None) -> None:
        self.shapes = shapes or Shapes.load()

    def check(self, candidates: Mapping[NamedNode, Sequence[Quad]]) -> dict[NamedNode, list[Violation]]:
        """Return what is wrong with each graph that is not perfect; `Violation.blocks` tells errors from warnings."""
        found: dict[NamedNode, list[Violation]] = {}
        for graphs in _batches(candidates):
            for graph, violations in self._check_batch(graphs).items():
                found.setdefault(graph, []).extend(violations)
        for graph, quads in candidates.items():
            if strays := self._strays(graph, quads):
                found.setdefault(graph, []).extend(strays)
        for violations in found.values():
            violations.sort(key=lambda violation: (not violation.blocks, str(violation.focus), violation.message))
        return found

    def _check_batch(self, graphs: Mapping[NamedNode, Sequence[Quad]]) -> dict[NamedNode, list[Violation]]:
        results = self.shapes.check(quad for quads in graphs.values() for quad in quads)
        if not results:
            return {}
        home: dict[Term, NamedNode] = {quad.subject: graph for graph, quads in graphs.items() for quad in quads}
        if len(graphs) > 1 and any(result.focus not in home for result in results):
            # A node that no graph describes was checked. Only one graph at a time shows whose fault it is.
            return {
                graph: violations
                for graph, quads in graphs.items()
                for violations in self._check_batch({graph: quads}).values()
            }
        found: dict[NamedNode, list[Violation]] = defaultdict(list)
        for result in results:
            graph = home.get(result.focus) if result.focus is not None else None
            graph = graph or next(iter(graphs))
            found[graph].append(replace(result, graph=graph))
        return found

    def _strays(self, graph: NamedNode, quads: Sequence[Quad]) -> list[Violation]:
        """Report what no shape would look at, and blank nodes, which a graph here never has."""
        subjects: set[Term] = {quad.subject for quad in quads}
        checked: set[Term] = {
            quad.subject
            for quad in quads
            if (quad.predicate == RDF.type and quad.object in self.shapes.targets)
            or quad.predicate in self.shapes.target_predicates
        }
        strays = [
            Violation(
                focus=subject,
                message="No shape checks this node: it has no type (rdf:type) that a record of this source may have.",
                component=SH.ClassConstraintComponent,
                path=RDF.type,
                graph=graph,
            )
            for subject in subjects - checked
            if not isinstance(subject, BlankNode)
        ]
        blank: set[Term] = {
            term for quad in quads for term in (quad.subject, quad.object) if isinstance(term, BlankNode)
        }
        strays += [
            Violation(
                focus=node,
                message="A graph here has no blank nodes: give it an identifier made from its content.",
                component=SH.NodeKindConstraintComponent,
                graph=graph,
            )
            for node in blank
        ]
        return strays


def _batches(candidates: Mapping[NamedNode, Sequence[Quad]]) -> Iterator[Mapping[NamedNode, Sequence[Quad]]]:
    open_batches: list[_Batch] = []
    for graph, quads in candidates.items():
        subjects: set[Term] = {quad.subject for quad in quads}
        objects: set[Term] = {quad.object for quad in quads if not isinstance(quad.object, Literal)}
        objects -= subjects
        batch = next((batch for batch in open_batches if batch.takes(subjects, objects, len(quads))), None)
        if batch is None:
            batch = _Batch()
            open_batches.append(batch)
        batch.add(graph, quads, subjects, objects)
        if batch.quads >= BATCH_QUADS:
            open_batches.remove(batch)
            yield batch.graphs
    yield from (batch.graphs for batch in open_batches)
