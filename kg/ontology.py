"""The ontology and the SHACL shapes that ship with Quadcite: their quads, terms, code lists and constraints.

Every function parses the Turtle files once and caches its result.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, Triple, parse

from kg import bundle
from kg.sparql.measured_schema import Term
from kg.vocabulary import BASE, DCTERMS, OWL, RDF, RDFS, SH, SKOS, UNCOUNTED_TERMS

Node = NamedNode | BlankNode | Literal | Triple
Properties = Mapping[NamedNode, Sequence[Node]]

_PARENTS: Final = (RDFS.subClassOf, RDFS.subPropertyOf)
_CODE_PATTERN: Final = re.compile(re.escape("^" + BASE + "vocab/") + r"(\w+)/")


@dataclass(frozen=True, slots=True)
class Code:
    """One entry of a code list."""

    iri: str
    notation: str
    label: str
    definition: str | None = None


@dataclass(frozen=True, slots=True)
class Constraint:
    """The constraints that the shapes of one class set on one of its properties."""

    least: int = 0
    most: int | None = None
    wanted: bool = False
    """Whether a missing value is a warning."""
    datatypes: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    pattern: str | None = None
    lowest: str | None = None
    values: tuple[str, ...] = ()
    """All allowed values (sh:in), as N-Triples terms."""
    messages: tuple[str, ...] = ()

    @property
    def cardinality(self) -> str:
        """The number of values per subject, in words."""
        if self.most is not None:
            words = f"exactly {self.most}" if self.least == self.most else f"{self.least or 'at most'}"
            words += "" if self.least == self.most else f"{' to' if self.least else ''} {self.most}"
        else:
            words = f"{self.least} or more" if self.least else "any number"
        return words + (", a warning where missing" if self.wanted and not self.least else "")

    @property
    def scheme(self) -> str | None:
        """The IRI of the code list that contains the values."""
        found = _CODE_PATTERN.match(self.pattern or "")
        return f"{BASE}vocab/{found[1]}" if found else None

    def and_(self, other: Constraint) -> Constraint:
        """Combine two constraints into one that implies both."""
        most = [limit for limit in (self.most, other.most) if limit is not None]
        return Constraint(
            max(self.least, other.least),
            min(most, default=None),
            self.wanted or other.wanted,
            self.datatypes + other.datatypes,
            self.classes + other.classes,
            self.pattern or other.pattern,
            self.lowest or other.lowest,
            self.values + other.values,
            self.messages + other.messages,
        )


@dataclass(frozen=True, slots=True)
class Shape:
    """The constraints that the shapes set on the instances of one class."""

    closed: bool = False
    pattern: str | None = None
    """Regular expression that the IRIs of the instances match."""
    messages: tuple[str, ...] = ()
    properties: Mapping[str, Constraint] = field(default_factory=dict)


@cache
def load_ontology() -> Mapping[NamedNode, Sequence[Quad]]:
    """Load the quads of the ontology by subject IRI. The graph of each quad is the IRI of its module."""
    found: dict[NamedNode, list[Quad]] = {}
    for file in sorted(bundle.folder("ontology").glob("*.ttl")):
        quads = list(parse(file.read_bytes(), format=RdfFormat.TURTLE))
        modules = [quad.subject for quad in quads if quad.object == OWL.Ontology]
        module = modules[0] if modules and isinstance(modules[0], NamedNode) else NamedNode(f"{BASE}ns/{file.stem}")
        for quad in quads:
            if isinstance(quad.subject, NamedNode):
                found.setdefault(quad.subject, []).append(Quad(quad.subject, quad.predicate, quad.object, module))
    return found


@cache
def load_declared_terms() -> Mapping[str, Term]:
    """Load the classes, properties and individuals that the ontology declares, by IRI."""
    terms: dict[str, Term] = {}
    for subject, quads in load_ontology().items():
        kind = _kind({quad.object for quad in quads if quad.predicate == RDF.type})
        label = _words(quads, RDFS.label, SKOS.prefLabel)
        if kind is None or not label:
            continue
        module = next((quad.object for quad in quads if quad.predicate == RDFS.isDefinedBy), None)
        terms[subject.value] = Term(
            iri=subject.value,
            kind=kind,
            label=label[0],
            alt_labels=tuple(_words(quads, SKOS.altLabel)),
            definition=next(iter(_words(quads, SKOS.definition, RDFS.comment)), None),
            domain=_module_name(module) if isinstance(module, NamedNode) else "core",
            parents=tuple(
                sorted({q.object.value for q in quads if q.predicate in _PARENTS and isinstance(q.object, NamedNode)})
            ),
        )
    return terms


@cache
def load_used_vocabulary() -> frozenset[str]:
    """Load the IRIs of the properties and classes that the ontology, the shapes, the catalog and the topics use."""
    found: set[str] = {term.value for term in UNCOUNTED_TERMS}
    for path in (*bundle.folder("ontology").glob("*.ttl"), *bundle.folder("shapes").glob("*.ttl")):
        for quad in parse(path.read_bytes(), format=RdfFormat.TURTLE):
            found.add(quad.predicate.value)
            if quad.predicate == RDF.type and isinstance(quad.object, NamedNode):
                found.add(quad.object.value)
    return frozenset(found)


@cache
def load_modules() -> Mapping[str, tuple[str, str]]:
    """Load title and description of each ontology module (``core``, ``climate``, ...), core first."""
    found = {
        _module_name(subject): (_text_of(quads, DCTERMS.title), _text_of(quads, DCTERMS.description))
        for subject, quads in load_ontology().items()
        if any(quad.predicate == RDF.type and quad.object == OWL.Ontology for quad in quads)
    }
    return dict(sorted(found.items(), key=lambda item: (item[0] != "core", item[0])))


@cache
def load_code_lists() -> Mapping[str, Sequence[Code]]:
    """Load the entries of each code list by the IRI of the list."""
    found: dict[str, list[Code]] = defaultdict(list)
    for subject, quads in load_ontology().items():
        notation, label = _text_of(quads, SKOS.notation), _text_of(quads, SKOS.prefLabel)
        code = Code(subject.value, notation, label, _text_of(quads, SKOS.definition) or None)
        for scheme in get_objects(subject.value, SKOS.inScheme):
            found[scheme].append(code)
    return {scheme: sorted(codes, key=lambda code: code.notation) for scheme, codes in found.items()}


def get_objects(iri: str, *properties: NamedNode) -> list[str]:
    """Get the texts of the objects that the ontology declares for a subject, in the order of `properties`."""
    quads = load_ontology().get(NamedNode(iri), ())
    return [_text(quad.object) for name in properties for quad in quads if quad.predicate == name]


def get_parents(iri: str) -> list[str]:
    """Get the direct superclasses or superproperties of a term."""
    return get_objects(iri, *_PARENTS)


def get_ancestors(iri: str) -> set[str]:
    """Get all superclasses or superproperties of a term, direct and indirect."""
    found: set[str] = set()
    queue = [iri]
    while queue:
        new = [parent for parent in get_parents(queue.pop()) if parent not in found]
        found.update(new)
        queue += new
    return found


def _module_name(module: NamedNode) -> str:
    return module.value.removeprefix(BASE + "ns").strip("/") or "core"


def _kind(types: set[Any]) -> str | None:
    if OWL.Ontology in types or not types:
        return None
    if types & {OWL.Class, RDFS.Class, RDFS.Datatype}:
        return "class"
    if types & {RDF.Property, OWL.ObjectProperty, OWL.DatatypeProperty, OWL.AnnotationProperty}:
        return "property"
    return "individual"


def _words(quads: Sequence[Quad], *properties: NamedNode) -> list[str]:
    """List the literals of the first of `properties` that has any, English ones first."""
    for name in properties:
        found = [q.object for q in quads if q.predicate == name and isinstance(q.object, Literal)]
        if found:
            return [literal.value for literal in sorted(found, key=lambda o: (o.language or "en") != "en")]
    return []


def _text_of(quads: Sequence[Quad], name: NamedNode) -> str:
    return next((_text(quad.object) for quad in quads if quad.predicate == name), "")


def _text(node: Node) -> str:
    return str(node) if isinstance(node, Triple) else node.value


# -- shapes


@cache
def load_shapes() -> Mapping[str, Shape]:
    """Load the shapes by the IRI of their target class. Several shapes of one class are combined."""
    nodes: dict[Node, dict[NamedNode, list[Node]]] = defaultdict(lambda: defaultdict(list))
    for file in sorted(bundle.folder("shapes").glob("*.ttl")):
        for quad in parse(path=file, rename_blank_nodes=True):
            nodes[quad.subject][quad.predicate].append(quad.object)
    found: dict[str, Shape] = {}
    for properties in list(nodes.values()):
        for target in properties.get(SH.targetClass, ()):
            before = found.get(_text(target), Shape())
            constraints = dict(before.properties)
            for part in properties.get(SH.property, ()):
                for path, constraint in _constraints(nodes, part):
                    known = constraints.get(path)
                    constraints[path] = known.and_(constraint) if known else constraint
            closed = any(term == Literal(True) for term in properties.get(SH.closed, ()))
            pattern = next(map(_text, properties.get(SH.pattern, ())), None)
            messages = () if closed else tuple(map(_text, properties.get(SH.message, ())))
            found[_text(target)] = Shape(
                before.closed or closed, before.pattern or pattern, before.messages + messages, constraints
            )
    return found


def _constraints(nodes: Mapping[Node, Properties], shape: Node) -> Iterator[tuple[str, Constraint]]:
    properties = nodes.get(shape, {})

    def first(name: NamedNode) -> Node | None:
        return next(iter(properties.get(name, ())), None)

    def number(name: NamedNode) -> int | None:
        value = first(name)
        return int(value.value) if isinstance(value, Literal) else None

    for path in properties.get(SH.path, ()):
        if not isinstance(path, NamedNode):
            continue
        least = number(SH.minCount) or 0
        warning = first(SH.severity) in (SH.Warning, SH.Info)
        lowest = first(SH.minInclusive)
        pattern = first(SH.pattern)
        yield (
            path.value,
            Constraint(
                least=0 if warning else least,
                most=None if warning else number(SH.maxCount),
                wanted=bool(warning and least),
                datatypes=tuple(map(_text, properties.get(SH.datatype, ()))),
                classes=tuple(map(_text, properties.get(SH["class"], ()))),
                pattern=_text(pattern) if pattern is not None else None,
                lowest=_text(lowest) if lowest is not None else None,
                values=tuple(str(term) for term in _list(nodes, first(SH["in"]))),
                messages=() if warning else tuple(map(_text, properties.get(SH.message, ()))),
            ),
        )


def _list(nodes: Mapping[Node, Properties], node: Node | None) -> Iterator[Node]:
    while node is not None and node != RDF.nil:
        properties = nodes[node]
        yield from properties.get(RDF.first, ())
        node = next(iter(properties.get(RDF.rest, ())), None)
