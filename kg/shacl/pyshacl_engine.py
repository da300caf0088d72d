"""pySHACL on an rdflib copy: runs shapes that do not compile to queries, and is the reference in tests."""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Any, Final

import rdflib
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Triple
from rdflib.namespace import SH as SHACL
from rdflib.plugins.sparql import prepareQuery

from kg.errors import InvalidInputError
from kg.shacl.messages import choose_text
from kg.shacl.property_paths import Description, parse_path
from kg.shacl.report import Violation
from kg.shacl.shape_model import is_target_triple, nesting_error
from kg.store.protocol import Term
from kg.vocabulary import SH

_ENGINE: Final = threading.Lock()
"""pySHACL patches rdflib during a call, so only one call may run at a time."""


# Shapes report ill-typed literals; rdflib would log each with a traceback.
logging.getLogger("rdflib.term").setLevel(logging.CRITICAL)


def validate(
    shapes: Iterable[Quad | Triple], quads: Iterable[Quad | Triple], only: Collection[Term] | None = None
) -> list[Violation]:
    """Validate the quads, merged into one graph, and return the results in no particular order.

    `only`: the shapes whose targets are checked; other shapes are used only if one of these refers to them. Raises
    InvalidInputError if pySHACL rejects the shapes.
    """
    import pyshacl  # slow to import, and needed only for shapes that do not compile
    from pyparsing import ParseBaseException  # raised by rdflib for a query that it cannot parse
    from pyshacl.errors import ReportableRuntimeError, ShapeLoadError, ShapeRecursionWarning

    kept = [triple for triple in shapes if only is None or triple.subject in only or not is_target_triple(triple)]
    with _ENGINE, warnings.catch_warnings():
        # The reason for running these shapes states it. pySHACL follows the references to a fixed depth.
        warnings.simplefilter("ignore", ShapeRecursionWarning)
        try:
            _, report, text = pyshacl.validate(
                to_rdflib(quads), shacl_graph=_shapes_graph(tuple(kept)), inplace=True, advanced=True
            )
        except (ShapeLoadError, ReportableRuntimeError, ParseBaseException) as error:
            raise InvalidInputError(f"Invalid shapes: {error}") from error
        except RecursionError:
            raise nesting_error() from None
        except Exception as error:  # rdflib raises plain Exception for some unsupported queries
            named = ", ".join(sorted(str(each) for each in only or ()))
            why = str(error) or type(error).__name__
            raise InvalidInputError(f"Invalid shapes: pySHACL cannot run {named}: {why}") from error
    if not isinstance(report, rdflib.Graph):
        raise InvalidInputError(f"Invalid shapes: {text}")
    graph = _from_rdflib(report)
    [head] = report.subjects(rdflib.RDF.type, SHACL.ValidationReport)
    return [_to_violation(graph, node) for node in graph[_to_term(head)].get(SH.result, ())]


class _DataGraph(rdflib.Graph):
    """A graph with a cache of parsed queries: pySHACL runs the same query text for every focus node."""

    def query(self, query_object: Any, *args: Any, **kwargs: Any) -> Any:
        query = _prepare(query_object) if isinstance(query_object, str) else query_object
        return super().query(query, *args, **kwargs)


@lru_cache(maxsize=256)
def _prepare(query: str) -> Any:
    return prepareQuery(query)


@lru_cache(maxsize=4)
def _shapes_graph(triples: tuple[Quad | Triple, ...]) -> rdflib.Graph:
    return to_rdflib(triples)


def to_rdflib(quads: Iterable[Quad | Triple]) -> rdflib.Graph:
    """Copy quads to rdflib, without graph names.

    Converting term by term is two to three times as fast as parsing N-Triples. Triple terms, which rdflib does not
    support, are skipped.
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
        return rdflib.Literal(term.value, datatype=convert(term.datatype), normalize=False)

    for quad in quads:
        if not isinstance(quad.object, Triple):
            graph.add((convert(quad.subject), convert(quad.predicate), convert(quad.object)))
    return graph


def _from_rdflib(report: rdflib.Graph) -> dict[Term, dict[NamedNode, list[Term]]]:
    graph: dict[Term, dict[NamedNode, list[Term]]] = {}
    for subject, predicate, value in report:
        terms = _to_term(subject), _to_term(predicate), _to_term(value)
        if isinstance(terms[1], NamedNode):
            graph.setdefault(terms[0], {}).setdefault(terms[1], []).append(terms[2])
    return graph


def _to_violation(graph: Description, result: Term) -> Violation:
    properties = graph[result]

    def one(predicate: NamedNode) -> Term | None:
        return next(iter(properties.get(predicate, ())), None)

    path, component, severity = one(SH.resultPath), one(SH.sourceConstraintComponent), one(SH.resultSeverity)
    source = one(SH.sourceConstraint)
    messages = tuple(each for each in properties.get(SH.resultMessage, ()) if isinstance(each, Literal))
    return Violation(
        focus=one(SH.focusNode),
        message=choose_text(messages),
        severity=severity.value.removeprefix(SH.iri) if isinstance(severity, NamedNode) else "Violation",
        path=None if path is None else parse_path(path, graph),
        value=one(SH.value),
        shape=one(SH.sourceShape),
        component=component if isinstance(component, NamedNode) else None,
        messages=messages,
        source_constraint=source if isinstance(source, NamedNode | BlankNode) else None,
        details=tuple(_to_violation(graph, each) for each in properties.get(SH.detail, ()) if each in graph),
    )


def _to_term(term: Any) -> Term:
    if isinstance(term, rdflib.URIRef):
        return NamedNode(str(term))
    if isinstance(term, rdflib.BNode):
        return BlankNode(str(term))
    if term.language is not None:
        return Literal(str(term), language=term.language)
    if term.datatype is not None:
        return Literal(str(term), datatype=NamedNode(str(term.datatype)))
    return Literal(str(term))
