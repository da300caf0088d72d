"""A suite of SHACL shapes, read once, and the pySHACL engine that runs it on an rdflib copy of the data."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Self

import pyshacl
import rdflib
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, Triple, parse, serialize
from pyshacl.errors import ReportableRuntimeError, ShapeLoadError
from rdflib.collection import Collection
from rdflib.namespace import SH as SHACL
from rdflib.plugins.sparql import prepareQuery

from kg import bundle
from kg.errors import InvalidInputError, SourceError
from kg.store.protocol import Term
from kg.validation.report import Severity, Violation
from kg.vocabulary import RDF, SH

_SEVERITIES: Final[dict[object, Severity]] = {
    SHACL.Violation: "Violation",
    SHACL.Warning: "Warning",
    SHACL.Info: "Info",
}

_CLOSING: Final = frozenset({SH.closed, SH.ignoredProperties, SH.targetSubjectsOf})
"""What makes a record shape one for records alone: it allows nothing more, and looks at what has no class of ours."""

_ENGINE = threading.Lock()
"""pySHACL patches rdflib for the time of a call, so there is one call at a time."""

# A literal that does not fit its datatype is what shapes report; rdflib would log each with a traceback.
logging.getLogger("rdflib.term").setLevel(logging.CRITICAL)


class Shapes:
    """A parsed suite. `targets` are the classes, `target_predicates` the predicates whose subjects it looks at."""

    def __init__(self, triples: Iterable[Triple], *, hoist: bool = True, opened: bool = False) -> None:
        triples = [triple for triple in triples if not (opened and triple.predicate in _CLOSING)]
        self.targets: frozenset[Term] = frozenset(t.object for t in triples if t.predicate == SH.targetClass)
        self.target_predicates: frozenset[Term] = frozenset(
            t.object for t in triples if t.predicate == SH.targetSubjectsOf
        )
        self._graph = rdflib.Graph()
        self._graph.parse(data=serialize(triples, format=RdfFormat.N_TRIPLES), format="nt")
        if hoist:
            _hoist_properties(self._graph)

    @classmethod
    def dataset(cls) -> Self:
        """Read the dataset shapes that ship with Quadcite."""
        return cls.load(*sorted(bundle.folder("shapes").glob("dataset-*.ttl")))

    @classmethod
    def load(cls, *paths: Path, hoist: bool = True, opened: bool = False) -> Self:
        """Read a suite from Turtle files; without paths, the record shapes that ship with Quadcite.

        `opened`: as they are for data that may say more: closed shapes are open, and only what has a class that a shape
        targets is looked at.

        Raises SourceError for a file that cannot be read, InvalidInputError for shapes that are not SHACL.
        """
        triples: list[Triple] = []
        for path in paths or sorted(bundle.folder("shapes").glob("record-*.ttl")):
            try:
                triples += [quad.triple for quad in parse(path=path, rename_blank_nodes=True)]
            except SyntaxError as error:
                raise SourceError(f"{path}, line {error.lineno}: not Turtle: {error.msg}") from error
            except (OSError, ValueError) as error:
                raise SourceError(f"{path}: cannot be read as shapes: {error}") from error
        shapes = cls(triples, hoist=hoist, opened=opened)
        shapes.check([])
        return shapes

    def targets_any(self, triples: Iterable[Quad | Triple]) -> bool:
        """Return whether the suite looks at anything in `triples`."""
        return any(
            triple.predicate in self.target_predicates
            or (triple.predicate == RDF.type and triple.object in self.targets)
            for triple in triples
        )

    def check(self, quads: Iterable[Quad | Triple]) -> list[Violation]:
        """Validate the quads, taken as one graph, and return the results in no particular order.

        Raises InvalidInputError when the shapes themselves cannot be understood.
        """
        with _ENGINE:
            try:
                _, report, text = pyshacl.validate(rdflib_graph(quads), shacl_graph=self._graph, inplace=True)
            except (ShapeLoadError, ReportableRuntimeError) as error:
                raise InvalidInputError(f"the shapes cannot be used: {error}") from error
        if not isinstance(report, rdflib.Graph):
            raise InvalidInputError(f"the shapes cannot be used: {text}")
        return [_violation(report, node) for node in report.subjects(rdflib.RDF.type, SHACL.ValidationResult)]


def _hoist_properties(shapes: rdflib.Graph) -> None:
    """Give the property shapes of node shapes their targets, to the same effect.

    pySHACL runs a property shape once a focus node where it hangs on a node shape, and once for all of them where it
    has targets of its own: several times as fast. The paths of a closed shape become ignored properties instead.
    """
    targets = (SHACL.targetClass, SHACL.targetNode, SHACL.targetSubjectsOf, SHACL.targetObjectsOf)
    for shape in set(shapes.subjects(SHACL.property)):
        own = [(predicate, term) for predicate in targets for term in shapes.objects(shape, predicate)]
        referred_to = (None, None, shape) in shapes
        if not own or referred_to or (shape, SHACL.deactivated, None) in shapes:
            continue
        properties = list(shapes.objects(shape, SHACL.property))
        shapes.remove((shape, SHACL.property, None))
        for property_shape in properties:
            for predicate, term in own:
                shapes.add((property_shape, predicate, term))
        if (shape, SHACL.closed, rdflib.Literal(True)) in shapes:
            paths = [path for node in properties for path in shapes.objects(node, SHACL.path)]
            old = shapes.value(shape, SHACL.ignoredProperties)
            ignored = [*Collection(shapes, old), *paths] if old is not None else paths
            shapes.remove((shape, SHACL.ignoredProperties, None))
            new = rdflib.BNode()
            Collection(shapes, new, [path for path in ignored if isinstance(path, rdflib.URIRef)])
            shapes.add((shape, SHACL.ignoredProperties, new))


class _DataGraph(rdflib.Graph):
    """A graph that parses each query text once: pySHACL asks the same anew for every focus node."""

    def query(self, query_object: Any, *args: Any, **kwargs: Any) -> Any:
        query = _prepared(query_object) if isinstance(query_object, str) else query_object
        return super().query(query, *args, **kwargs)


@lru_cache(maxsize=256)
def _prepared(query: str) -> Any:
    return prepareQuery(query)


def rdflib_graph(quads: Iterable[Quad | Triple]) -> rdflib.Graph:
    """Return an rdflib copy, without the graph names.

    Terms are made one by one: two to three times as fast as by way of N-Triples, and texts are not copied. Triple
    terms, which rdflib does not know, are left out.
    """
    graph = _DataGraph(bind_namespaces="none")
    nodes: dict[str, rdflib.URIRef] = {}

    def convert(term: Any) -> Any:
        if isinstance(term, NamedNode):
            node = nodes.get(term.value)
            if node is None:
                node = nodes[term.value] = rdflib.URIRef(term.value)
            return node
        if isinstance(term, BlankNode):
            return rdflib.BNode(term.value)
        if term.language is not None:
            return rdflib.Literal(term.value, lang=term.language)
        if term.datatype.value == "http://www.w3.org/2001/XMLSchema#string":
            return rdflib.Literal(term.value)
        return rdflib.Literal(term.value, datatype=convert(term.datatype))

    for quad in quads:
        if not isinstance(quad.object, Triple):
            graph.add((convert(quad.subject), convert(quad.predicate), convert(quad.object)))
    return graph


def _violation(report: rdflib.Graph, result: Any) -> Violation:
    def one(predicate: rdflib.URIRef) -> Any:
        return report.value(result, predicate)

    path, shape = _term(one(SHACL.resultPath)), _term(one(SHACL.sourceShape))
    component = _term(one(SHACL.sourceConstraintComponent))
    return Violation(
        focus=_term(one(SHACL.focusNode)),
        message=" ".join(sorted(str(message) for message in report.objects(result, SHACL.resultMessage))),
        severity=_SEVERITIES.get(one(SHACL.resultSeverity), "Violation"),
        path=path if isinstance(path, NamedNode) else None,
        value=_term(one(SHACL.value)),
        shape=shape if isinstance(shape, NamedNode) else None,
        component=component if isinstance(component, NamedNode) else None,
    )


def _term(term: Any) -> NamedNode | BlankNode | Literal | None:
    if isinstance(term, rdflib.URIRef):
        return NamedNode(str(term))
    if isinstance(term, rdflib.BNode):
        return BlankNode(str(term))
    if isinstance(term, rdflib.Literal):
        if term.language is not None:
            return Literal(str(term), language=term.language)
        if term.datatype is not None:
            return Literal(str(term), datatype=NamedNode(str(term.datatype)))
        return Literal(str(term))
    return None
