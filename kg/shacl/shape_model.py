"""Well-formed shapes as values.

https://www.w3.org/TR/shacl/#core-components and https://www.w3.org/TR/shacl/#sparql-constraints
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pyoxigraph import BlankNode, NamedNode, Quad, Triple
from pyoxigraph import Literal as RdfLiteral

from kg.errors import InvalidInputError
from kg.shacl.property_paths import Path
from kg.store.protocol import Term
from kg.vocabulary import OWL, RDF, RDFS, SH, curie

TARGETS: Final = frozenset({SH.targetNode, SH.targetClass, SH.targetSubjectsOf, SH.targetObjectsOf, SH.target})

ShapeNode = NamedNode | BlankNode | RdfLiteral
"""The node of a shape."""


@dataclass(frozen=True, slots=True)
class Targets:
    """The targets of a shape."""

    nodes: tuple[NamedNode | RdfLiteral, ...] = ()
    classes: tuple[NamedNode, ...] = ()
    subjects_of: tuple[NamedNode, ...] = ()
    objects_of: tuple[NamedNode, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.nodes or self.classes or self.subjects_of or self.objects_of)


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint, with the IRI of its component."""

    component: NamedNode


@dataclass(frozen=True, slots=True)
class ClassOf(Constraint):
    """``sh:class``."""

    name: NamedNode


@dataclass(frozen=True, slots=True)
class Datatype(Constraint):
    """``sh:datatype``."""

    name: NamedNode


@dataclass(frozen=True, slots=True)
class NodeKind(Constraint):
    """``sh:nodeKind``: the local name of the kind."""

    kind: str


@dataclass(frozen=True, slots=True)
class Count(Constraint):
    """``sh:minCount`` or ``sh:maxCount``."""

    least: int | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Range(Constraint):
    """``sh:minInclusive``, ``sh:minExclusive``, ``sh:maxInclusive`` or ``sh:maxExclusive``: value, relation, bound."""

    relation: Literal["<", "<=", ">", ">="]
    bound: RdfLiteral


@dataclass(frozen=True, slots=True)
class Length(Constraint):
    """``sh:minLength`` or ``sh:maxLength``."""

    relation: Literal["<=", ">="]
    length: int


@dataclass(frozen=True, slots=True)
class Pattern(Constraint):
    """``sh:pattern`` with its ``sh:flags``."""

    pattern: str
    flags: str


@dataclass(frozen=True, slots=True)
class LanguageIn(Constraint):
    """``sh:languageIn``."""

    ranges: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UniqueLang(Constraint):
    """``sh:uniqueLang true``."""


@dataclass(frozen=True, slots=True)
class Equals(Constraint):
    """``sh:equals``."""

    predicate: NamedNode


@dataclass(frozen=True, slots=True)
class Disjoint(Constraint):
    """``sh:disjoint``."""

    predicate: NamedNode


@dataclass(frozen=True, slots=True)
class Less(Constraint):
    """``sh:lessThan`` or ``sh:lessThanOrEquals``."""

    relation: Literal["<", "<="]
    predicate: NamedNode


@dataclass(frozen=True, slots=True)
class Closed(Constraint):
    """``sh:closed true`` with the allowed predicates, including those of ``sh:property``."""

    allowed: tuple[NamedNode, ...]


@dataclass(frozen=True, slots=True)
class HasValue(Constraint):
    """``sh:hasValue``."""

    value: NamedNode | RdfLiteral


@dataclass(frozen=True, slots=True)
class In(Constraint):
    """``sh:in``."""

    values: tuple[NamedNode | RdfLiteral, ...]


@dataclass(frozen=True, slots=True)
class Property(Constraint):
    """``sh:property``: the results of the property shape are reported directly."""

    shape: ShapeNode


@dataclass(frozen=True, slots=True)
class Node(Constraint):
    """``sh:node``."""

    shape: ShapeNode


@dataclass(frozen=True, slots=True)
class Combined(Constraint):
    """``sh:not``, ``sh:and``, ``sh:or`` or ``sh:xone``."""

    operator: Literal["not", "and", "or", "xone"]
    shapes: tuple[ShapeNode, ...]


@dataclass(frozen=True, slots=True)
class Qualified(Constraint):
    """``sh:qualifiedValueShape`` with minimum or maximum; `siblings`: shapes that its values must not conform to."""

    shape: ShapeNode
    siblings: tuple[ShapeNode, ...]
    least: int | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class SparqlConstraint(Constraint):
    """``sh:sparql``, or a constraint of a component that the shapes graph declares.

    `query` includes its prefixes and parameter values; an ``ASK`` is true for conforming values.
    """

    query: str
    ask: bool
    source: NamedNode | BlankNode | None
    messages: tuple[RdfLiteral, ...]
    parameters: Mapping[str, Term] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape: a property shape if it has a path, else a node shape.

    `severity` is the local name of a SHACL severity, or the IRI of another one. `uncompiled` is the reason why it
    cannot be compiled to queries; empty if it can.
    """

    node: ShapeNode
    path: Path | None = None
    targets: Targets = field(default_factory=Targets)
    constraints: tuple[Constraint, ...] = ()
    severity: str = "Violation"
    messages: tuple[RdfLiteral, ...] = ()
    deactivated: bool = False
    uncompiled: str = ""


def get_references(constraint: Constraint) -> tuple[ShapeNode, ...]:
    """Return the shapes that a constraint refers to."""
    match constraint:
        case Property(_, shape) | Node(_, shape):
            return (shape,)
        case Combined(_, _, shapes):
            return shapes
        case Qualified(_, shape, siblings):
            return (shape, *siblings)
    return ()


def get_reachable(shapes: Mapping[ShapeNode, Shape], node: ShapeNode) -> Iterator[Shape]:
    """Yield the shape `node` and the shapes that it refers to, directly or not, except deactivated ones."""
    todo, seen = [node], {node}
    while todo:
        shape = shapes[todo.pop()]
        if shape.deactivated:
            continue
        yield shape
        referred = {each for constraint in shape.constraints for each in get_references(constraint)}
        todo += referred - seen
        seen |= referred


def is_target_triple(triple: Quad | Triple) -> bool:
    """Return whether a triple of a shapes graph gives a shape a target, possibly as an implicit class target."""
    return triple.predicate in TARGETS or (triple.predicate == RDF.type and triple.object in (RDFS.Class, OWL.Class))


def nesting_error() -> InvalidInputError:
    """Build the error for shapes that are nested too deeply."""
    return InvalidInputError("Invalid shapes: shapes, paths or patterns are nested too deeply.")


def shape_error(node: Term | None, term: NamedNode | None, rule: str) -> InvalidInputError:
    """Build the error for an ill-formed shapes graph: the shape, its term and the violated rule."""
    where = (
        ""
        if node is None
        else f" {curie(node.value) if isinstance(node, NamedNode) else node}{'' if term is None else ','}"
    )
    about = "" if term is None else f" {curie(term.value)}"
    return InvalidInputError(f"Invalid shapes:{where}{about}: {rule}{'' if rule.endswith(('.', '?')) else '.'}")
