"""Suites of SHACL shapes and their validation of data graphs: by queries, or by pySHACL where these cannot."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Self

from pyoxigraph import Literal, NamedNode, Quad, Triple

from kg import bundle
from kg.shacl import prebinding
from kg.shacl.data_graph import DataGraph
from kg.shacl.engine import Engine, Queries, needs_shapes_graph
from kg.shacl.rdf_files import open_document
from kg.shacl.report import Violation
from kg.shacl.shape_model import Shape, ShapeNode, SparqlConstraint, get_reachable, nesting_error
from kg.shacl.shape_parser import parse_shapes
from kg.sparql.terms import bind
from kg.store.protocol import Term, batched
from kg.vocabulary import OWL, RDF, RDFS, SH, curie

_CLOSING: Final = frozenset({SH.closed, SH.ignoredProperties, SH.targetSubjectsOf})
"""Terms that restrict record shapes to records: they forbid other properties, or target nodes of other classes."""

_AT_ONCE: Final = 1_000
"""Focus nodes listed in one query."""


class Shapes:
    """A suite of shapes.

    `targets` are the target classes and `target_predicates` the values of sh:targetSubjectsOf. `roots` are the shapes
    with targets, `uncompiled` those of them that pySHACL runs, each with the reason.
    """

    def __init__(self, triples: Iterable[Quad | Triple], *, opened: bool = False) -> None:
        self.triples = [triple for triple in triples if not (opened and triple.predicate in _CLOSING)]
        self.targets: frozenset[Term] = frozenset(t.object for t in self.triples if t.predicate == SH.targetClass)
        self.target_predicates: frozenset[Term] = frozenset(
            t.object for t in self.triples if t.predicate == SH.targetSubjectsOf
        )
        self.shapes = parse_shapes(self.triples)
        advanced = {triple.subject for triple in self.triples if triple.predicate == SH.target}
        self.roots = [node for node, shape in self.shapes.items() if shape.targets or node in advanced]
        self.uncompiled = {node: reason for node in self.roots if (reason := self._explain_uncompiled(node))}
        self.notes = [
            f"{curie(node.value)} has its instances as targets because it is an owl:Class. The standard names only "
            "rdfs:Class, so other validators may check nothing."
            for node in self.roots
            if isinstance(node, NamedNode) and self._is_class_of_owl_only(node)
        ]
        """Remarks on the meaning of the shapes."""
        self._queries: Queries = {}
        self._asks_for_shapes = any(map(needs_shapes_graph, self.shapes.values()))
        self._compiled = [node for node in self.roots if node not in self.uncompiled]
        self._from_absent = [node for node in self._compiled if self._may_start_absent(node)]

    @classmethod
    def load_dataset(cls) -> Self:
        """Load the dataset shapes that ship with Quadcite."""
        return cls.load(*sorted(bundle.folder("shapes").glob("dataset-*.ttl")))

    @classmethod
    def load(cls, *paths: Path, opened: bool = False) -> Self:
        """Load a suite from RDF files; without paths, the record shapes that ship with Quadcite.

        `opened`: for data with additional properties and nodes; closed shapes become open, and only instances of target
        classes are checked.

        Raises SourceError for an unreadable or malformed file, InvalidInputError for ill-formed shapes.
        """
        triples: list[Triple] = []
        for path in paths or sorted(bundle.folder("shapes").glob("record-*.ttl")):
            triples += [quad.triple for quad in open_document(str(path)).parse_all()]
        return cls(triples, opened=opened)

    def _is_class_of_owl_only(self, node: NamedNode) -> bool:
        types = {triple.object for triple in self.triples if triple.predicate == RDF.type and triple.subject == node}
        return node in self.shapes[node].targets.classes and OWL.Class in types and RDFS.Class not in types

    def has_target_in(self, triples: Iterable[Quad | Triple]) -> bool:
        """Return whether `triples` contain a target by class or by sh:targetSubjectsOf."""
        return any(
            triple.predicate in self.target_predicates
            or (triple.predicate == RDF.type and triple.object in self.targets)
            for triple in triples
        )

    def check(self, quads: Iterable[Quad | Triple]) -> list[Violation]:
        """Validate the quads, merged into one graph, and return the results in no particular order."""
        return self.validate(DataGraph.from_quads(quads))

    def check_disjoint(self, graphs: Iterable[tuple[Sequence[Quad], Iterable[int]]]) -> list[Violation]:
        """Validate graphs as in `DataGraph.from_disjoint`, and return the results in no particular order."""
        if self._asks_for_shapes:  # the shapes graph would be one of the merged graphs
            return self.check(quad for quads, _ in graphs for quad in quads)
        return self.validate(DataGraph.from_disjoint(graphs))

    def validate(self, data: DataGraph) -> list[Violation]:
        """Validate `data` and return the results in no particular order."""
        return list(self.results(data))

    def results(
        self, data: DataGraph, focus: Collection[Term] | None = None, *, details: bool = True
    ) -> Iterator[Violation]:
        """Validate `data` and yield the results as they are found, in no particular order.

        `focus`: limits the focus nodes to these. With few nodes, the time depends on them and not on the size of the
        data, except for shapes that pySHACL runs, and if one of the nodes is a blank node, which a query cannot name.
        `details`: whether a result of ``sh:node`` contains the results of the nested shape, which takes memory.
        """
        for _, result in self.results_by_target(data, focus, details=details):
            yield result

    def results_by_target(
        self, data: DataGraph, focus: Collection[Term] | None = None, *, details: bool = True
    ) -> Iterator[tuple[Term, Violation]]:
        """Yield the same as `results`, each with the target that led to it.

        The target differs from the focus node only for a property shape inside a property shape, whose focus node is
        reached by a path. For a result of pySHACL the focus node is returned.
        """
        if focus is None:
            yield from self._run(data, details=details)
        else:
            focus = frozenset(focus)
            named = [node for node in focus if isinstance(node, NamedNode | Literal)]
            if len(named) == len(focus):
                for portion in batched(named, _AT_ONCE):
                    yield from self._run(data, portion, details=details)
            else:
                yield from (found for found in self._run(data, details=details) if found[0] in focus)
        yield from self._run_pyshacl(data, self.uncompiled.keys(), focus)

    def _run(
        self, data: DataGraph, among: Collection[NamedNode | Literal] | None = None, *, details: bool
    ) -> Iterator[tuple[Term, Violation]]:
        try:
            engine = Engine(self.shapes, data, self.triples, self._queries, among=among, details=details)
            engine.prefetch(self._compiled)
            absent = {node: self._find_absent(node, data) for node in self._from_absent}
            for node in self._compiled:
                left = absent.get(node, ())
                yield from (found for found in engine.results(node) if found[0] not in left)
        except RecursionError:
            raise nesting_error() from None
        for node in self._from_absent:
            left = absent[node] if among is None else absent[node].intersection(among)
            yield from self._run_pyshacl(data, [node], left)

    def _run_pyshacl(
        self, data: DataGraph, nodes: Collection[ShapeNode], focus: Collection[Term] | None
    ) -> Iterator[tuple[Term, Violation]]:
        """Yield the results of pySHACL for the shapes `nodes`."""
        if nodes and (focus is None or focus):
            from kg.shacl import pyshacl_engine  # slow to import and rarely needed

            for result in pyshacl_engine.validate(self.triples, data.quads(), nodes):
                if result.focus is not None and (focus is None or result.focus in focus):
                    yield result.focus, result

    def _find_absent(self, node: ShapeNode, data: DataGraph) -> set[Term]:
        """Return the sh:targetNode values of a shape that do not occur in the data."""
        return {
            term
            for term in self.shapes[node].targets.nodes
            if not any(True for _ in data.find_quads(term, None, None))
            and not any(True for _ in data.find_quads(None, None, term))
        }

    def describe_uncompiled(self) -> dict[str, str]:
        """Return `uncompiled` as text, and the shapes that pySHACL runs only for target nodes missing in the data."""
        some = dict.fromkeys(self._from_absent, "a path of length zero from a target node that is not in the data")
        return {
            node.value if isinstance(node, NamedNode) else str(node): why
            for node, why in (self.uncompiled | some).items()
        }

    def _explain_uncompiled(self, node: ShapeNode) -> str:
        """Return why the shape `node`, or a shape that it refers to, cannot be compiled; empty if they can."""
        return "; ".join(
            dict.fromkeys(shape.uncompiled for shape in get_reachable(self.shapes, node) if shape.uncompiled)
        )

    def _may_start_absent(self, node: ShapeNode) -> bool:
        """Return whether a query of `node` may follow a path of length zero from a listed target."""
        return bool(self.shapes[node].targets.nodes) and any(
            map(_has_zero_length_path, get_reachable(self.shapes, node))
        )


def _has_zero_length_path(shape: Shape) -> bool:
    """Return whether a query of `shape` has a path of length zero; Oxigraph follows it only from nodes in the data."""
    return any(
        isinstance(constraint, SparqlConstraint) and prebinding.has_zero_length_path(constraint.query)
        for constraint in shape.constraints
    )


_FOUND_BY: Final = {
    "classes": "SELECT ?node WHERE { VALUES ?of { $values } ?of ^rdfs:subClassOf*/^rdf:type ?node } LIMIT 1",
    "subjects_of": "SELECT ?node WHERE { VALUES ?of { $values } ?node ?of ?value } LIMIT 1",
    "objects_of": "SELECT ?node WHERE { VALUES ?of { $values } ?value ?of ?node } LIMIT 1",
}
_PROLOGUE: Final = f"PREFIX rdf: <{RDF.iri}> PREFIX rdfs: <{RDFS.iri}> "


def has_targets(shapes: Shapes, data: DataGraph) -> bool:
    """Return whether `data` contains a target of an active shape of `shapes`."""
    active = [shapes.shapes[node] for node in shapes.roots if not shapes.shapes[node].deactivated]
    # Nodes are validated wherever they are. Targets by a query (SHACL Advanced Features) are found by pySHACL alone.
    if any(shape.targets.nodes or not shape.targets for shape in active):
        return True
    values = {kind: {each for shape in active for each in getattr(shape.targets, kind)} for kind in _FOUND_BY}
    return any(
        next(iter(data.select(_PROLOGUE + bind(_FOUND_BY[kind], values=sorted(named, key=str)))), None) is not None
        for kind, named in values.items()
        if named
    )
