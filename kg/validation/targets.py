"""Whether shapes look at anything: data that no target finds conform to every shape, and were not checked."""

from __future__ import annotations

from typing import Final

from pyoxigraph import NamedNode

from kg.sparql.terms import bind
from kg.validation.data import Data
from kg.validation.shapes import Shapes
from kg.vocabulary import OWL, RDF, RDFS, SH

_TARGETS: Final = {
    SH.targetClass: "SELECT ?node WHERE { VALUES ?of { $values } ?of ^rdfs:subClassOf*/^rdf:type ?node } LIMIT 1",
    SH.targetSubjectsOf: "SELECT ?node WHERE { VALUES ?of { $values } ?node ?of ?value } LIMIT 1",
    SH.targetObjectsOf: "SELECT ?node WHERE { VALUES ?of { $values } ?value ?of ?node } LIMIT 1",
}
_PROLOGUE: Final = f"PREFIX rdf: <{RDF.iri}> PREFIX rdfs: <{RDFS.iri}> "


def looks_at(shapes: Shapes, data: Data) -> bool:
    """Return whether a target of `shapes` finds anything in `data`."""
    typed = {t.subject for t in shapes.triples if t.predicate == RDF.type and t.object in (RDFS.Class, OWL.Class)}
    shaped = {t.subject for t in shapes.triples if t.predicate.value.startswith(SH.iri)}
    values: dict[NamedNode, list[NamedNode]] = {SH.targetClass: [n for n in typed & shaped if isinstance(n, NamedNode)]}
    for triple in shapes.triples:
        if triple.predicate in (SH.targetNode, SH.target):
            return True
        if triple.predicate in _TARGETS and isinstance(triple.object, NamedNode):
            values.setdefault(triple.predicate, []).append(triple.object)
    return any(
        next(iter(data.rows(_PROLOGUE + bind(_TARGETS[target], values=named))), None) is not None
        for target, named in values.items()
        if named
    )
