"""Parse a shapes graph to shapes. An error names the shape, the term and the violated rule.

https://www.w3.org/TR/shacl/#shapes and https://www.w3.org/TR/shacl/#syntax-rules
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad, QuerySolutions, Store, Triple
from rapidfuzz import process

from kg.errors import InvalidInputError, QueryForbiddenError
from kg.shacl import shape_model
from kg.shacl.property_paths import IllFormedError, Path, parse_list, parse_path
from kg.shacl.shape_model import Constraint, Shape, ShapeNode, Targets, shape_error
from kg.shacl.sparql_constraints import Components
from kg.sparql.guard import check_query
from kg.sparql.terms import bind, is_iri
from kg.store.protocol import Term
from kg.text import quoted
from kg.vocabulary import OWL, RDF, RDFS, SH, XSD, curie

_QUERIES: Final = frozenset({SH.select, SH.ask, SH.construct, SH.update})
_PREFIX: Final = re.compile(r"(?:[^\W\d_](?:[\w.-]*[\w-])?)?")
_JAVASCRIPT: Final = SH.iri + "js"


def check_features(triples: Iterable[Quad | Triple]) -> None:
    """Check a shapes graph for features that are not allowed.

    Raises QueryForbiddenError for a query that uses other servers, or a prefix that may hide one, QuerySyntaxError for
    a query that is nested too deeply, and InvalidInputError for JavaScript.
    """
    for triple in triples:
        predicate = triple.predicate
        if not predicate.value.startswith(SH.iri):
            continue
        value = triple.object.value if isinstance(triple.object, Literal | NamedNode) else ""
        if predicate in _QUERIES:
            try:
                check_query(value)
            except InvalidInputError as error:
                raise type(error)(f"Invalid shapes: {curie(predicate.value)}: {error}") from None
        elif predicate == SH.prefix and not _PREFIX.fullmatch(value):
            raise QueryForbiddenError(f"Invalid shapes: sh:prefix: {quoted(value)} is not a valid prefix.")
        elif predicate == SH.namespace and not is_iri(value):
            raise QueryForbiddenError(f"Invalid shapes: sh:namespace: {quoted(value)} is not an IRI.")
        elif predicate.value.startswith(_JAVASCRIPT):
            raise InvalidInputError(
                f"Invalid shapes: {curie(predicate.value)}: JavaScript is not supported. Use SPARQL."
            )


PROBE = "SELECT (REGEX('', $pattern, $flags) AS ?known) WHERE {}"


@lru_cache(maxsize=1024)
def is_supported_pattern(pattern: str, flags: str = "") -> bool:
    """Return whether Oxigraph supports the XPath regular expression `pattern` with `flags`."""
    found = Store().query(bind(PROBE, pattern=Literal(pattern), flags=Literal(flags)))
    assert isinstance(found, QuerySolutions)  # noqa: S101  # a SELECT
    return next(found)["known"] is not None


_TARGETS: Final = (SH.targetNode, SH.targetClass, SH.targetSubjectsOf, SH.targetObjectsOf)
_LISTS_OF_SHAPES: Final = {SH["and"]: "and", SH["or"]: "or", SH.xone: "xone"}
_KINDS: Final = ("IRI", "BlankNode", "Literal", "BlankNodeOrIRI", "BlankNodeOrLiteral", "IRIOrLiteral")
_RANGES: Final = {SH.minInclusive: ">=", SH.minExclusive: ">", SH.maxInclusive: "<=", SH.maxExclusive: "<"}
_ADVANCED: Final = (SH.target, SH.rule, SH.expression)
"""The terms that SHACL Advanced Features add to a shape (https://www.w3.org/TR/shacl-af/)."""
_PARAMETERS: Final = frozenset(
    SH[name]
    for name in (
        "class", "datatype", "nodeKind", "minCount", "maxCount", "minExclusive", "minInclusive", "maxExclusive",
        "maxInclusive", "minLength", "maxLength", "pattern", "flags", "languageIn", "uniqueLang", "equals", "disjoint",
        "lessThan", "lessThanOrEquals", "not", "and", "or", "xone", "node", "property", "qualifiedValueShape",
        "qualifiedMinCount", "qualifiedMaxCount", "qualifiedValueShapesDisjoint", "closed", "ignoredProperties",
        "hasValue", "in", "sparql",
    )
)  # fmt: skip
_OTHERS: Final = frozenset(
    SH[name]
    for name in (
        "path", "severity", "message", "deactivated", "name", "description", "order", "group", "defaultValue",
        "declare", "prefixes", "select", "ask", "shapesGraph", "entailment", "optional", "labelTemplate",
        "suggestedShapesGraph",
    )
)  # fmt: skip
_KNOWN: Final = _PARAMETERS | _OTHERS | {*_TARGETS, *_ADVANCED}
_SHAPE_CLASSES: Final = frozenset({SH.NodeShape, SH.PropertyShape, SH.Shape})
_FLAGS: Final = re.compile("[smixq]*")


def parse_shapes(triples: Iterable[Quad | Triple]) -> dict[ShapeNode, Shape]:
    """Parse every shape of a shapes graph, by its node.

    Shapes that refer to themselves are not compiled (https://www.w3.org/TR/shacl/#shapes-recursion). Raises
    InvalidInputError for a shape that is ill-formed, nested too deeply or has unknown SHACL terms, and the errors of
    `check_features`.
    """
    triples = list(triples)
    check_features(triples)
    for triple in triples:
        if triple.predicate == SH.entailment:  # https://www.w3.org/TR/shacl/#shacl-rdfs
            raise shape_error(None, SH.entailment, f"entailment regimes are not supported: {triple.object}")
    try:
        shapes_parser = _ShapesParser(triples)
        shapes = {node: shapes_parser.shape(node) for node in shapes_parser.nodes()}
    except RecursionError:
        raise shape_model.nesting_error() from None
    for node in _find_recursive(shapes):
        reasons = (shapes[node].uncompiled, "it refers to itself, which the standard leaves undefined")
        shapes[node] = replace(shapes[node], uncompiled="; ".join(filter(None, reasons)))
    return shapes


class _ShapesParser:
    def __init__(self, triples: Iterable[Quad | Triple]) -> None:
        self.graph: dict[Term, dict[NamedNode, list[Term]]] = {}
        for triple in dict.fromkeys((each.subject, each.predicate, each.object) for each in triples):
            self.graph.setdefault(triple[0], {}).setdefault(triple[1], []).append(triple[2])
        self.components = Components(self.graph)
        # OWL states that owl:Class is a subclass of rdfs:Class, which the standard names.
        kinds = (RDFS.Class, OWL.Class)
        self._classes = {each for kind in kinds for each in (kind, *self.components.find_subclasses(kind))}

    def nodes(self) -> list[ShapeNode]:
        """Find every node that is a shape (https://www.w3.org/TR/shacl/#shapes)."""
        marks = {*_TARGETS, *_PARAMETERS, *self.components.parameters}
        found: dict[Term, None] = {}
        for node, about in self.graph.items():
            if not marks.isdisjoint(about) or not _SHAPE_CLASSES.isdisjoint(about.get(RDF.type, ())):
                found[node] = None
        parameters = set(self.components.parameter_nodes)
        todo = [node for node in found if node not in parameters]
        found = dict.fromkeys(todo)
        while todo:
            for node in self._referred(self.graph.get(todo.pop(), {})):
                if node not in found:
                    found[node] = None
                    todo.append(node)
        return [node for node in found if not isinstance(node, Triple)]

    def _referred(self, about: dict[NamedNode, list[Term]]) -> Iterator[Term]:
        for predicate in (SH.property, SH.node, SH["not"], SH.qualifiedValueShape):
            yield from about.get(predicate, ())
        for predicate in _LISTS_OF_SHAPES:
            for head in about.get(predicate, ()):
                try:
                    yield from parse_list(head, self.graph)
                except IllFormedError:
                    continue  # reported when the shape is parsed

    def shape(self, node: ShapeNode) -> Shape:
        about = self.graph.get(node, {})
        for predicate in about:
            if predicate.value.startswith(SH.iri) and predicate not in _KNOWN:
                near = process.extractOne(predicate.value, [term.value for term in _KNOWN])[0]
                raise shape_error(node, predicate, f"unknown SHACL term. Did you mean {curie(near)}?")
        parser = _ShapeParser(self, node, about)
        path = parser.path()
        constraints, uncompiled = (
            [],
            [f"{curie(term.value)} is not part of SHACL Core or SHACL-SPARQL" for term in _ADVANCED if term in about],
        )
        for constraint in (*parser.constraints(path), *self.components.parse_constraints(node, about, path)):
            constraints.append(constraint)
            if isinstance(constraint, shape_model.Pattern) and not is_supported_pattern(
                constraint.pattern, constraint.flags
            ):
                uncompiled.append("the engine cannot match the pattern " + repr(constraint.pattern))
            if isinstance(constraint, shape_model.SparqlConstraint) and (
                reason := self.components.explain_uncompiled(constraint)
            ):
                uncompiled.append(reason)
        return Shape(
            node,
            path,
            parser.targets(self._classes),
            tuple(constraints),
            parser.severity(),
            parser.messages(),
            parser.flag(SH.deactivated),
            "; ".join(uncompiled),
        )


class _ShapeParser:
    """Parses the properties of one shape."""

    def __init__(self, shapes_parser: _ShapesParser, node: ShapeNode, about: dict[NamedNode, list[Term]]) -> None:
        self._graph, self._node, self._about = shapes_parser.graph, node, about

    def refuse(self, term: NamedNode, rule: str) -> InvalidInputError:
        return shape_error(self._node, term, rule)

    def all(self, term: NamedNode) -> Sequence[Term]:
        return self._about.get(term, ())

    def one(self, term: NamedNode) -> Term | None:
        found = self.all(term)
        if len(found) > 1:
            raise self.refuse(term, f"a shape must have at most one, not {len(found)}")
        return found[0] if found else None

    def iris(self, term: NamedNode) -> tuple[NamedNode, ...]:
        found = [value for value in self.all(term) if isinstance(value, NamedNode)]
        if len(found) != len(self.all(term)):
            raise self.refuse(term, "the value must be an IRI")
        return tuple(found)

    def integer(self, term: NamedNode) -> int | None:
        value = self.one(term)
        if value is None:
            return None
        if (
            not isinstance(value, Literal)
            or value.datatype != XSD.integer
            or not re.fullmatch(r"[+-]?\d+", value.value)
        ):
            raise self.refuse(term, f"the value must be an xsd:integer, not {value}")
        return int(value.value)

    def flag(self, term: NamedNode) -> bool:
        value = self.one(term)
        if value is None:
            return False
        if not isinstance(value, Literal) or value.datatype != XSD.boolean or value.value not in _BOOLEANS:
            raise self.refuse(term, f"the value must be true or false, not {value}")
        return value.value == "true"  # SHACL compares terms: "1" is a valid boolean, but not `true`

    def text(self, term: NamedNode) -> str | None:
        value = self.one(term)
        if value is None:
            return None
        if not isinstance(value, Literal) or value.datatype != XSD.string:
            raise self.refuse(term, f"the value must be an xsd:string, not {value}")
        return value.value

    def members(self, term: NamedNode, head: Term) -> tuple[Term, ...]:
        try:
            return parse_list(head, self._graph)
        except IllFormedError as error:
            raise self.refuse(term, str(error)) from error

    def terms(self, term: NamedNode, found: Iterable[Term]) -> tuple[NamedNode | Literal, ...]:
        kept = []
        for value in found:
            if not isinstance(value, NamedNode | Literal):
                raise self.refuse(term, f"the values must be IRIs or literals, not {value}")
            kept.append(value)
        return tuple(kept)

    def shapes(self, term: NamedNode, found: Iterable[Term]) -> tuple[ShapeNode, ...]:
        kept = []
        for value in found:
            if isinstance(value, Triple | Literal):
                raise self.refuse(term, f"the value must be a shape, not {value}")
            kept.append(value)
        return tuple(kept)

    def path(self) -> Path | None:
        node = self.one(SH.path)
        kinds = self.all(RDF.type)
        if node is None:
            if SH.PropertyShape in kinds:
                raise self.refuse(SH.path, "a property shape must have a path")
            return None
        if SH.NodeShape in kinds:
            raise self.refuse(SH.path, "a node shape must not have a path")
        try:
            return parse_path(node, self._graph)
        except IllFormedError as error:
            raise self.refuse(SH.path, str(error)) from error

    def targets(self, classes: set[Term]) -> Targets:
        implicit = [self._node] if isinstance(self._node, NamedNode) and classes & set(self.all(RDF.type)) else []
        return Targets(
            self.terms(SH.targetNode, self.all(SH.targetNode)),
            (*self.iris(SH.targetClass), *implicit),
            self.iris(SH.targetSubjectsOf),
            self.iris(SH.targetObjectsOf),
        )

    def severity(self) -> str:
        found = self.one(SH.severity)
        if found is None:
            return "Violation"
        if not isinstance(found, NamedNode):
            raise self.refuse(SH.severity, "the value must be an IRI, such as sh:Warning")
        return found.value.removeprefix(SH.iri)

    def messages(self) -> tuple[Literal, ...]:
        found = []
        for value in self.all(SH.message):
            if not isinstance(value, Literal) or value.datatype not in (XSD.string, RDF.langString):
                raise self.refuse(
                    SH.message, f"the value must be a string, with or without a language tag, not {value}"
                )
            found.append(value)
        return tuple(found)

    def constraints(self, path: Path | None) -> Iterator[Constraint]:
        if path is None:
            for term in (
                SH.minCount,
                SH.maxCount,
                SH.uniqueLang,
                SH.lessThan,
                SH.lessThanOrEquals,
                SH.qualifiedValueShape,
            ):
                if self.all(term):
                    raise self.refuse(term, "only a property shape (with sh:path) may have it")
        yield from self._of_values()
        yield from self._of_sets()
        yield from self._of_shapes()

    def _of_values(self) -> Iterator[Constraint]:
        for name in self.iris(SH["class"]):
            yield shape_model.ClassOf(SH.ClassConstraintComponent, name)
        self.one(SH.datatype)
        for name in self.iris(SH.datatype):
            yield shape_model.Datatype(SH.DatatypeConstraintComponent, name)
        if (kind := self.one(SH.nodeKind)) is not None:
            local = kind.value.removeprefix(SH.iri) if isinstance(kind, NamedNode) else ""
            if local not in _KINDS:
                raise self.refuse(SH.nodeKind, f"the value must be one of {', '.join(f'sh:{name}' for name in _KINDS)}")
            yield shape_model.NodeKind(SH.NodeKindConstraintComponent, local)
        for term, relation in _RANGES.items():
            if (bound := self.one(term)) is not None:
                if not isinstance(bound, Literal):
                    raise self.refuse(term, f"the value must be a literal, not {bound}")
                yield shape_model.Range(_component_of(term), relation, bound)  # type: ignore[arg-type]
        for term, order in ((SH.minLength, ">="), (SH.maxLength, "<=")):
            if (length := self.integer(term)) is not None:
                yield shape_model.Length(_component_of(term), order, length)  # type: ignore[arg-type]
        yield from self._patterns()
        for head in self._single(SH.languageIn):
            ranges = self.members(SH.languageIn, head)
            if any(not isinstance(value, Literal) or value.datatype != XSD.string for value in ranges):
                raise self.refuse(SH.languageIn, "the value must be a list of strings")
            tags = tuple(value.value for value in ranges if isinstance(value, Literal))
            yield shape_model.LanguageIn(SH.LanguageInConstraintComponent, tags)
        for head in self._single(SH["in"]):
            values = self.terms(SH["in"], self.members(SH["in"], head))
            yield shape_model.In(SH.InConstraintComponent, values)

    def _single(self, term: NamedNode) -> Sequence[Term]:
        found = self.one(term)
        return () if found is None else (found,)

    def _patterns(self) -> Iterator[Constraint]:
        flags = self.text(SH.flags) or ""
        if not _FLAGS.fullmatch(flags):
            raise self.refuse(SH.flags, f"the value must consist of the letters s, m, i, x and q, not {flags!r}")
        if (pattern := self.text(SH.pattern)) is None:
            return
        if not is_supported_pattern(pattern, flags):
            try:
                re.compile(pattern)
            except re.error as error:
                raise self.refuse(SH.pattern, f"{pattern!r} is not a valid regular expression: {error}") from error
        yield shape_model.Pattern(SH.PatternConstraintComponent, pattern, flags)

    def _of_sets(self) -> Iterator[Constraint]:
        if (least := self.integer(SH.minCount)) is not None:
            yield shape_model.Count(SH.MinCountConstraintComponent, least=least)
        if (most := self.integer(SH.maxCount)) is not None:
            yield shape_model.Count(SH.MaxCountConstraintComponent, most=most)
        if self.flag(SH.uniqueLang):
            yield shape_model.UniqueLang(SH.UniqueLangConstraintComponent)
        for predicate in self.iris(SH.equals):
            yield shape_model.Equals(SH.EqualsConstraintComponent, predicate)
        for predicate in self.iris(SH.disjoint):
            yield shape_model.Disjoint(SH.DisjointConstraintComponent, predicate)
        for predicate in self.iris(SH.lessThan):
            yield shape_model.Less(SH.LessThanConstraintComponent, "<", predicate)
        for predicate in self.iris(SH.lessThanOrEquals):
            yield shape_model.Less(SH.LessThanOrEqualsConstraintComponent, "<=", predicate)
        for value in self.terms(SH.hasValue, self.all(SH.hasValue)):
            yield shape_model.HasValue(SH.HasValueConstraintComponent, value)
        ignored = [member for head in self._single(SH.ignoredProperties) for member in self._ignored(head)]
        if self.flag(SH.closed):
            paths = [path for shape in self.all(SH.property) for path in self._graph.get(shape, {}).get(SH.path, ())]
            allowed = dict.fromkeys((*(path for path in paths if isinstance(path, NamedNode)), *ignored))
            yield shape_model.Closed(SH.ClosedConstraintComponent, tuple(allowed))

    def _ignored(self, head: Term) -> Iterator[NamedNode]:
        for member in self.members(SH.ignoredProperties, head):
            if not isinstance(member, NamedNode):
                raise self.refuse(SH.ignoredProperties, f"the value must be a list of IRIs, not {member}")
            yield member

    def _of_shapes(self) -> Iterator[Constraint]:
        for shape in self.shapes(SH.property, self.all(SH.property)):
            if SH.path not in self._graph.get(shape, {}):
                raise self.refuse(
                    SH.property, f"the value must be a property shape (with sh:path), which {shape} is not"
                )
            yield shape_model.Property(SH.PropertyShapeComponent, shape)
        for shape in self.shapes(SH.node, self.all(SH.node)):
            if SH.path in self._graph.get(shape, {}):
                raise self.refuse(SH.node, f"the value must be a node shape (without sh:path), which {shape} is not")
            yield shape_model.Node(SH.NodeConstraintComponent, shape)
        for shape in self.shapes(SH["not"], self.all(SH["not"])):
            yield shape_model.Combined(SH.NotConstraintComponent, "not", (shape,))
        for term, operator in _LISTS_OF_SHAPES.items():
            for head in self.all(term):
                shapes = self.shapes(term, self.members(term, head))
                yield shape_model.Combined(_component_of(term), operator, shapes)  # type: ignore[arg-type]
        least, most = self.integer(SH.qualifiedMinCount), self.integer(SH.qualifiedMaxCount)
        disjoint = self.flag(SH.qualifiedValueShapesDisjoint)
        for shape in self.shapes(SH.qualifiedValueShape, self.all(SH.qualifiedValueShape)):
            if least is None and most is None:
                raise self.refuse(
                    SH.qualifiedValueShape, "the shape must also have sh:qualifiedMinCount or sh:qualifiedMaxCount"
                )
            siblings = tuple(self._siblings(shape)) if disjoint else ()
            if least is not None:
                yield shape_model.Qualified(SH.QualifiedMinCountConstraintComponent, shape, siblings, least=least)
            if most is not None:
                yield shape_model.Qualified(SH.QualifiedMaxCountConstraintComponent, shape, siblings, most=most)

    def _siblings(self, own: ShapeNode) -> Iterator[ShapeNode]:
        """Yield the other qualified value shapes of the shapes that this property shape belongs to."""
        found: dict[Term, None] = {}
        for about in self._graph.values():
            properties = about.get(SH.property, ())
            if self._node in properties:
                for shape in properties:
                    found.update(dict.fromkeys(self._graph.get(shape, {}).get(SH.qualifiedValueShape, ())))
        found.pop(own, None)
        return iter(self.shapes(SH.qualifiedValueShape, found))


_BOOLEANS: Final = ("true", "false", "1", "0")


def _component_of(term: NamedNode) -> NamedNode:
    local = term.value.removeprefix(SH.iri)
    return SH[f"{local[0].upper()}{local[1:]}ConstraintComponent"]


def _find_recursive(shapes: Mapping[ShapeNode, Shape]) -> set[ShapeNode]:
    """Find the shapes that refer to themselves, directly or not."""
    references = {
        node: {each for constraint in shape.constraints for each in shape_model.get_references(constraint)}
        for node, shape in shapes.items()
    }
    # Shapes that refer to none, or only to such ones, are no part of a circle.
    remaining = {node for node, referred in references.items() if referred}
    while ended := {node for node in remaining if references[node].isdisjoint(remaining)}:
        remaining -= ended
    return {node for node in remaining if _reaches(references, node)}


def _reaches(references: Mapping[ShapeNode, Collection[ShapeNode]], node: ShapeNode) -> bool:
    """Return whether references lead from `node` back to it."""
    todo, seen = list(references[node]), set(references[node])
    while todo:
        further = set(references[todo.pop()]) - seen
        todo += further
        seen |= further
    return node in seen
