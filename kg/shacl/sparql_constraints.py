"""Parse SHACL-SPARQL: ``sh:sparql`` constraints, and the constraint components that a shapes graph declares.

https://www.w3.org/TR/shacl/#sparql-constraints and https://www.w3.org/TR/shacl/#sparql-constraint-components
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Final

from pyoxigraph import BlankNode, Literal, NamedNode, Store, Triple

from kg.shacl import prebinding
from kg.shacl.property_paths import IllFormedError, Path, to_sparql
from kg.shacl.shape_model import Constraint, ShapeNode, SparqlConstraint, shape_error
from kg.sparql.lexer import escape_inner_dots, significant_tokens
from kg.sparql.terms import quote
from kg.store.protocol import Term
from kg.vocabulary import OWL, RDF, RDFS, SH, SHAPES_GRAPH, XSD, curie

_VARIABLE: Final = re.compile(r"\w+")
_RESERVED: Final = frozenset({"this", "shapesGraph", "currentShape", "path", "PATH", "value"})
"""Reserved parameter names (https://www.w3.org/TR/shacl/#sparql-constraint-components-parameters)."""
_VALIDATORS: Final = (SH.nodeValidator, SH.propertyValidator)

Graph = Mapping[Term, Mapping[NamedNode, Sequence[Term]]]


@dataclass(frozen=True, slots=True)
class _Component:
    node: NamedNode
    needed: tuple[NamedNode, ...]
    optional: tuple[NamedNode, ...]


class Components:
    """The SPARQL of a shapes graph. `parameters` are the mandatory parameters: a node with one of them is a shape."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._declared = list(self._parse_components())
        self.parameters = frozenset(predicate for each in self._declared for predicate in each.needed)
        self.parameter_nodes = frozenset(
            node for about in graph.values() for node in about.get(SH.parameter, ()) if not isinstance(node, Literal)
        )

    def find_subclasses(self, name: NamedNode) -> set[Term]:
        """Return `name` and its subclasses in the shapes graph."""
        found: set[Term] = {name}
        while added := {
            node
            for node, about in self._graph.items()
            if node not in found and not found.isdisjoint(about.get(RDFS.subClassOf, ()))
        }:
            found |= added
        return found

    def _parse_components(self) -> Iterator[_Component]:
        kinds = self.find_subclasses(SH.ConstraintComponent)
        for node, about in self._graph.items():
            if kinds.isdisjoint(about.get(RDF.type, ())) or not isinstance(node, NamedNode):
                continue
            needed: list[NamedNode] = []
            optional: list[NamedNode] = []
            for parameter in about.get(SH.parameter, ()):
                properties = self._graph.get(parameter, {})
                paths = properties.get(SH.path, ())
                if len(paths) != 1 or not isinstance(paths[0], NamedNode):
                    raise shape_error(node, SH.parameter, "a parameter must have exactly one sh:path, an IRI")
                if not _VARIABLE.fullmatch(name := _parameter_name(paths[0])) or name in _RESERVED:
                    raise shape_error(
                        node, SH.parameter, f"the local name of its path is not a valid variable: {name!r}"
                    )
                is_optional = any(
                    isinstance(v, Literal) and v.value in ("true", "1") for v in properties.get(SH.optional, ())
                )
                (optional if is_optional else needed).append(paths[0])
            if needed:
                yield _Component(node, tuple(needed), tuple(optional))

    def parse_constraints(
        self, node: ShapeNode, about: Mapping[NamedNode, Sequence[Term]], path: Path | None
    ) -> Iterator[Constraint]:
        """Yield the SPARQL constraints of a shape. Raises InvalidInputError for an ill-formed one."""
        for source in about.get(SH.sparql, ()):
            if isinstance(source, Literal | Triple):
                raise shape_error(node, SH.sparql, f"the value must be a node with sh:select, not {source}")
            properties = self._graph.get(source, {})
            if not _is_true(properties.get(SH.deactivated, ())):
                yield self._parse_query(node, path, source, SH.SPARQLConstraintComponent, SH.select, {})
        for component in self._declared:
            if any(predicate not in about for predicate in component.needed):
                continue
            given = [name for name in (*component.needed, *component.optional) if name in about]
            if len(given) > 1 and any(len(about[name]) > 1 for name in given):
                raise shape_error(
                    node,
                    given[0],
                    f"{curie(component.node.value)} has several parameters, so each must have exactly one value",
                )
            for values in product(*(about[name] for name in given)):
                yield self._parse_component(node, path, component, dict(zip(given, values, strict=True)))

    def _parse_component(
        self, node: ShapeNode, path: Path | None, component: _Component, given: Mapping[NamedNode, Term]
    ) -> SparqlConstraint:
        properties = self._graph[component.node]
        own, general = properties.get(_VALIDATORS[path is not None], ()), properties.get(SH.validator, ())
        parameters = {_parameter_name(predicate): value for predicate, value in given.items()}
        for validators, form in ((own, SH.select), (general, SH.ask)):
            for validator in validators:
                if not isinstance(validator, Literal | Triple):
                    return self._parse_query(node, path, validator, component.node, form, parameters)
        kind = "node" if path is None else "property"
        raise shape_error(node, component.node, f"the component has no validator for {kind} shapes")

    def _parse_query(
        self,
        node: ShapeNode,
        path: Path | None,
        source: NamedNode | BlankNode,
        component: NamedNode,
        form: NamedNode,
        parameters: Mapping[str, Term],
    ) -> SparqlConstraint:
        properties = self._graph.get(source, {})
        texts = properties.get(form, ())
        if len(texts) != 1 or not isinstance(texts[0], Literal) or texts[0].datatype != XSD.string:
            raise shape_error(node, form, f"{_node_text(source)} must have one query, an xsd:string, not {len(texts)}")
        ask = form == SH.ask
        query = escape_inner_dots(texts[0].value)
        prebound = {"this", "shapesGraph", "currentShape", *parameters} | ({"value"} if ask else set())
        try:
            prebinding.check_query(query, prebound, {"this", "value"} if ask else {"this"})
            query = self._substitute(query, node, path, parameters)
            query = f"{self._build_prologue(properties.get(SH.prefixes, ()))}{query}"
            if prebinding.get_form(query) != ("ASK" if ask else "SELECT"):
                raise IllFormedError(f"the value must be {'an ASK' if ask else 'a SELECT'} query")
            if not ask and "this" not in prebinding.get_variables(query):
                raise IllFormedError("the query must return $this")
            Store().query(query)
        except SyntaxError as error:
            if absent := ", ".join(f"{prefix}:" for prefix in _find_undeclared_prefixes(query)):
                rule = (
                    f"undeclared prefix {absent}. Declare it with sh:declare on a value of sh:prefixes, or with PREFIX"
                )
                raise shape_error(node, form, rule) from error
            raise shape_error(node, form, f"the query is not valid SPARQL: {error}") from error
        except IllFormedError as error:
            raise shape_error(node, form, str(error)) from error
        messages = tuple(value for value in properties.get(SH.message, ()) if isinstance(value, Literal))
        own = component == SH.SPARQLConstraintComponent
        return SparqlConstraint(component, query, ask, source if own else None, messages, dict(parameters))

    def _substitute(self, query: str, node: ShapeNode, path: Path | None, parameters: Mapping[str, Term]) -> str:
        """Substitute the variables that have the same value for every focus node."""
        terms = {"shapesGraph": quote(SHAPES_GRAPH)}
        if isinstance(node, NamedNode):
            terms["currentShape"] = quote(node)
        for name, value in parameters.items():
            if not isinstance(value, BlankNode):
                terms[name] = quote(value)
        if path is not None:
            terms["PATH"] = to_sparql(path)
        return prebinding.substitute(query, terms)

    def explain_uncompiled(self, constraint: SparqlConstraint) -> str:
        """Return why a constraint cannot be compiled to one query for all focus nodes; empty if it can."""
        if prebinding.has_slice(constraint.query):
            return "LIMIT and OFFSET apply to each focus node"
        if "currentShape" in prebinding.get_variables(constraint.query):
            return "$currentShape is a blank node"
        if any(isinstance(value, BlankNode) for value in constraint.parameters.values()):
            return "a parameter is a blank node"
        if prebinding.inject_binding(constraint.query, {"this", "value"}, "") is None:
            return "an expression inside GRAPH uses a pre-bound variable"
        return ""

    def _build_prologue(self, nodes: Sequence[Term]) -> str:
        declared: dict[str, str] = {}
        todo, seen = list(nodes), set(nodes)
        while todo:
            properties = self._graph.get(todo.pop(), {})
            for node in properties.get(SH.declare, ()):
                about = self._graph.get(node, {})
                prefixes, namespaces = about.get(SH.prefix, ()), about.get(SH.namespace, ())
                if len(prefixes) != 1 or len(namespaces) != 1 or isinstance(prefixes[0], Triple | BlankNode):
                    raise IllFormedError("a prefix declaration must have one sh:prefix and one sh:namespace")
                prefix, namespace = prefixes[0].value, namespaces[0]
                if (
                    isinstance(namespace, Triple | BlankNode)
                    or declared.setdefault(prefix, namespace.value) != namespace.value
                ):
                    raise IllFormedError(f"the prefix {prefix}: is declared for two namespaces")
            for further in properties.get(OWL.imports, ()):
                if further not in seen:
                    seen.add(further)
                    todo.append(further)
        return "".join(f"PREFIX {prefix}: {quote(NamedNode(iri))} " for prefix, iri in declared.items())


def _is_true(found: Sequence[Term]) -> bool:
    return any(isinstance(value, Literal) and value.value in ("true", "1") for value in found)


def _parameter_name(predicate: NamedNode) -> str:
    """Return the variable name of a parameter: the local name of its path."""
    return predicate.value.replace("#", "/").rpartition("/")[2]


def _node_text(node: NamedNode | BlankNode) -> str:
    return curie(node.value) if isinstance(node, NamedNode) else str(node)


def _find_undeclared_prefixes(query: str) -> list[str]:
    """Return the prefixes that `query` uses without declaring them."""
    names = list(significant_tokens(query))
    declared = {
        name.text for before, name in pairwise(names) if before.text.lower() == "prefix" and name.kind == "name"
    }
    used = {token.text.partition(":")[0] for token in names if token.kind == "name"}
    return sorted(prefix for prefix in used - {"_"} if f"{prefix}:" not in declared)
