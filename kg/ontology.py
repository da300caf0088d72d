"""The ontology that ships with Quadcite, as quads by subject and as declared terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, parse

from kg import bundle
from kg.sparql.measured_schema import Term
from kg.vocabulary import BASE, OWL, RDF, RDFS, SKOS


@cache
def ontology() -> Mapping[NamedNode, Sequence[Quad]]:
    """Return what the ontology that ships with Quadcite says of each IRI; the graph of a quad is its module's IRI."""
    said: dict[NamedNode, list[Quad]] = {}
    for file in sorted(bundle.folder("ontology").glob("*.ttl")):
        quads = list(parse(file.read_bytes(), format=RdfFormat.TURTLE))
        modules = [quad.subject for quad in quads if quad.object == OWL.Ontology]
        module = modules[0] if modules and isinstance(modules[0], NamedNode) else NamedNode(f"{BASE}ns/{file.stem}")
        for quad in quads:
            if isinstance(quad.subject, NamedNode):
                said.setdefault(quad.subject, []).append(Quad(quad.subject, quad.predicate, quad.object, module))
    return said


@cache
def declared_terms() -> Mapping[str, Term]:
    """Return the classes, properties and individuals of the ontology that ships with Quadcite, by IRI."""
    terms: dict[str, Term] = {}
    for subject, quads in ontology().items():
        kind = _kind({quad.object for quad in quads if quad.predicate == RDF.type})
        label = _words(quads, RDFS.label, SKOS.prefLabel)
        if kind is None or not label:
            continue
        module = next((quad.object for quad in quads if quad.predicate == RDFS.isDefinedBy), None)
        part = module.value.removeprefix(BASE + "ns").strip("/") if isinstance(module, NamedNode) else ""
        parents = {q.object.value for q in quads if q.predicate in _ABOVE and isinstance(q.object, NamedNode)}
        terms[subject.value] = Term(
            iri=subject.value,
            kind=kind,
            label=label[0],
            alt_labels=tuple(_words(quads, SKOS.altLabel)),
            definition=next(iter(_words(quads, SKOS.definition, RDFS.comment)), None),
            domain=part or "core",
            parents=tuple(sorted(parents)),
        )
    return terms


_ABOVE: Final = (RDFS.subClassOf, RDFS.subPropertyOf)


def _kind(types: set[Any]) -> str | None:
    if OWL.Ontology in types or not types:
        return None
    if types & {OWL.Class, RDFS.Class, RDFS.Datatype}:
        return "class"
    if types & {RDF.Property, OWL.ObjectProperty, OWL.DatatypeProperty, OWL.AnnotationProperty}:
        return "property"
    return "individual"


def _words(quads: Sequence[Quad], *properties: NamedNode) -> list[str]:
    """Return the values of the first of `properties` that has any, English ones first."""
    for name in properties:
        found = [q.object for q in quads if q.predicate == name and isinstance(q.object, Literal)]
        if found:
            return [literal.value for literal in sorted(found, key=lambda o: (o.language or "en") != "en")]
    return []
