"""Runs shapes over data: constraints by queries, nested shapes by the sets of nodes that break them.

Focus nodes go down into a query as the pattern that finds them; what comes back up is the nodes that do not conform. So
a shape that others refer to is checked once for all nodes that it is asked about, and nothing is correlated.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Triple

from kg.errors import InvalidInputError
from kg.sparql.terms import quote
from kg.store.protocol import Term
from kg.validation import model, prebinding
from kg.validation.compiler import Compiler, Focus, Query, Values
from kg.validation.components import SHAPES_GRAPH
from kg.validation.data import Data
from kg.validation.literals import has_datatype
from kg.validation.model import Constraint, Shape, ShapeNode, Targets
from kg.validation.paths import Path
from kg.validation.report import Violation
from kg.validation.wording import fill_in, main_text, sentence

_MANY: Final = 100_000
"""Targets that are counted at most, to choose between two ways of looking for what is wrong."""
_STEP: Final = 4
"""How many times as long it takes to go from a target to its values as to look at a value."""

Queries = dict[tuple[ShapeNode, Focus, bool], list[Query]]
"""What was compiled for a shape and its focus nodes, where literals are encoded and where they are not."""

Found = Mapping[Term, list[Violation]]
"""The results by the focus node that they are about."""


class Engine:
    """The shapes of one suite over one set of data.

    `shapes_graph`: what ``$shapesGraph`` holds, where a query speaks of it. `queries` keeps what was compiled for the
    next candidate of the same suite: nothing in a query is of the data, where no class has another one below it.
    """

    def __init__(
        self,
        shapes: Mapping[ShapeNode, Shape],
        data: Data,
        shapes_graph: Iterable[Quad | Triple] = (),
        queries: Queries | None = None,
    ) -> None:
        self._shapes, self._data = shapes, data
        for shape in shapes.values():
            for node in shape.targets.nodes:
                data.term(node)  # known before it is asked whether there are encoded literals
        names = {name for shape in shapes.values() for name in _classes(shape)}
        subclasses = {name: data.subclasses(name) for name in names}
        self._compiler = Compiler(subclasses, data.term, lambda: data.encodes, self._scans)
        lasting = data.as_written and all(len(below) == 1 for below in subclasses.values())
        self._queries: Queries = queries if queries is not None and lasting else {}
        self._encoded = data.encodes
        self._plain = Compiler(subclasses, lambda term: term)
        self._scanned: dict[tuple[Targets, NamedNode], bool] = {}
        self._aimed: dict[Targets, bool] = {}
        self._known: dict[tuple[ShapeNode, Focus], Found] = {}
        if any(asks_for_shapes(shape) for shape in shapes.values()):
            data.add_shapes(shapes_graph)

    def _scans(self, targets: Targets, predicate: NamedNode) -> bool:
        """Return whether all that has `predicate` is soon looked through, beside all targets.

        A candidate is all of one kind. In a store, one predicate may be everywhere and the targets few.
        """
        if self._data.as_written:
            return True
        known = self._scanned.get((targets, predicate))
        if known is None:
            focus = self._compiler.nodes(targets)
            several = self._data.count(focus, _MANY)
            steps = f"SELECT ?this WHERE {{ ?this {quote(predicate)} ?value }}"
            known = several * _STEP > 0 and self._data.count(steps, several * _STEP) < several * _STEP
            self._scanned[targets, predicate] = known
        return known

    def results(self, node: ShapeNode) -> list[Violation]:
        """Return what the shape `node` finds on its targets."""
        targets = self._shapes[node].targets
        if targets not in self._aimed:
            self._aimed[targets] = any(True for _ in self._rows(self._compiler.nodes(targets) + " LIMIT 1"))
        if not self._aimed[targets]:
            return []
        found = self._found(node, targets)
        return [result for results in found.values() for result in results]

    def _found(self, node: ShapeNode, focus: Focus) -> Found:
        """Return the results about each of the focus nodes that does not conform to the shape `node`."""
        known = self._known.get((node, focus))
        if known is None:
            by_node: dict[Term, list[Violation]] = defaultdict(list)
            shape = self._shapes[node]
            if not shape.deactivated:
                for result in self._own(shape, focus):
                    if result.focus is not None:
                        by_node[result.focus].append(result)
                for constraint in shape.constraints:
                    if isinstance(constraint, model.Property):
                        inner = self._found(constraint.shape, self._below(focus, shape))
                        for this, value in self._pairs(focus, shape.path, inner):
                            by_node[this] += inner[value]
            known = self._known[node, focus] = by_node
        return known

    def _own(self, shape: Shape, focus: Focus) -> Iterator[Violation]:
        """Yield the results of the constraints of a shape, but for those of its property shapes."""
        key = (shape.node, focus, self._encoded)
        queries = self._queries.get(key)
        if queries is None:
            queries = self._queries[key] = self._compiler.queries(shape.constraints, focus, shape.path)
        for query in queries:
            yield from self._queried(shape, query)
        for constraint in shape.constraints:
            match constraint:
                case model.Node(_, inner):
                    found = self._found(inner, self._below(focus, shape))
                    for this, value in self._pairs(focus, shape.path, found):
                        yield _result(shape, constraint, this, value, details=tuple(found[value]))
                case model.Combined():
                    yield from self._combined(shape, focus, constraint)
                case model.Qualified():
                    yield from self._qualified(shape, focus, constraint)
                case model.SparqlConstraint():
                    yield from self._asked(shape, focus, constraint)

    def _below(self, focus: Focus, shape: Shape) -> Focus:
        return focus if shape.path is None else Values(focus, shape.path)

    def _pairs(self, focus: Focus, path: Path | None, among: Iterable[Term] | None = None) -> list[tuple[Term, Term]]:
        """Return each focus node with each of its values; only with those `among` some, if they are given."""
        among = None if among is None else set(among)
        if among is not None and path is None:
            return [(node, node) for node in among]
        if among is not None and not among:
            return []
        original = self._data.original
        found = dict.fromkeys(
            (original(row[0]), original(row[1])) for row in self._rows(self._compiler.pairs(focus, path))
        )
        return [pair for pair in found if among is None or pair[1] in among]

    def _rows(self, query: str) -> Iterator[tuple[Term, ...]]:
        return (tuple(row) for row in self._data.rows(query))

    def _queried(self, shape: Shape, query: Query) -> Iterator[Violation]:
        original = self._data.original
        several = len(query.constraints) > 1
        if query.probe and not any(True for _ in self._rows(query.probe)):
            return
        for cells in dict.fromkeys(self._rows(query.text)):
            this, value = original(cells[0]), original(cells[1]) if query.has_value else None
            path = cells[2] if query.has_path else None
            for at, constraint in enumerate(query.constraints):
                if several and cells[2 + at].value != "true":  # type: ignore[union-attr]  # a boolean
                    continue
                match constraint:
                    case model.Datatype(_, name) if value is not None:
                        if not has_datatype(value, name, as_written=self._data.as_written):
                            yield _result(shape, constraint, this, value)
                    case model.UniqueLang() if value is not None:
                        yield _result(shape, constraint, this, detail=str(value.value))  # type: ignore[union-attr]
                    case model.Closed() if isinstance(path, NamedNode):
                        yield _result(shape, constraint, this, value, path)
                    case _:
                        yield _result(shape, constraint, this, value)

    def _combined(self, shape: Shape, focus: Focus, constraint: model.Combined) -> Iterator[Violation]:
        below = self._below(focus, shape)
        failing = [self._found(node, below).keys() for node in constraint.shapes]
        match constraint.operator:
            case "and":
                pairs = self._pairs(focus, shape.path, set().union(*failing))
            case "or" if failing:
                pairs = self._pairs(focus, shape.path, set.intersection(*map(set, failing)))
            case _:
                wanted = 0 if constraint.operator == "not" else 1
                pairs = [
                    (this, value)
                    for this, value in self._pairs(focus, shape.path)
                    if sum(value not in nodes for nodes in failing) != wanted
                ]
        for this, value in pairs:
            yield _result(shape, constraint, this, value)

    def _qualified(self, shape: Shape, focus: Focus, constraint: model.Qualified) -> Iterator[Violation]:
        below = self._below(focus, shape)
        failing = self._found(constraint.shape, below).keys()
        siblings = [self._found(node, below).keys() for node in constraint.siblings]
        counts = Counter(
            this
            for this, value in self._pairs(focus, shape.path)
            if value not in failing and all(value in nodes for nodes in siblings)
        )
        if constraint.most is not None:
            for this, count in counts.items():
                if count > constraint.most:
                    yield _result(shape, constraint, this)
        elif constraint.least is not None:
            nodes = dict.fromkeys(self._data.original(row[0]) for row in self._rows(self._compiler.nodes(focus)))
            for this in nodes:
                if counts[this] < constraint.least:
                    yield _result(shape, constraint, this)

    def _asked(self, shape: Shape, focus: Focus, constraint: model.SparqlConstraint) -> Iterator[Violation]:
        if constraint.ask:
            prebound = ("this", "value")
            pattern = self._plain.values(focus, shape.path)
            query = prebinding.as_select(constraint.query, prebound)
        else:
            prebound, query = ("this",), constraint.query  # type: ignore[assignment]
            pattern = self._plain.focus(focus)
        binding = pattern
        if constraint.ask or not self._plain.is_plain(focus) or self._data.may_repeat:
            binding = f"{{ SELECT DISTINCT {' '.join(f'?{name}' for name in prebound)} WHERE {{ {pattern} }} }}"
        text = prebinding.inject(query, prebound, binding)
        if text is None:
            raise InvalidInputError("the focus nodes cannot be bound in a graph of the query")
        try:
            rows = self._data.rows(text, plain=True)
        except SyntaxError as error:
            raise InvalidInputError(
                f"the query of {shape.node} cannot be asked about several nodes: {error}"
            ) from error
        names = [variable.value for variable in rows.variables]
        found = [dict(zip(names, row, strict=True)) for row in rows]
        if constraint.ask:
            yield from self._denied(shape, focus, constraint, found)
            return
        for row in dict.fromkeys(tuple(each.items()) for each in found):
            yield self._selected(shape, constraint, dict(row))

    def _denied(
        self, shape: Shape, focus: Focus, constraint: model.SparqlConstraint, found: Iterable[Mapping[str, Term]]
    ) -> Iterator[Violation]:
        sound = {(row["this"], row["value"]) for row in found}
        pairs = self._plain.pairs(focus, shape.path)
        for this, value in dict.fromkeys(tuple(row) for row in self._data.rows(pairs, plain=True)):
            if (this, value) not in sound:
                yield self._selected(shape, constraint, {"this": this, "value": value})

    def _selected(self, shape: Shape, constraint: model.SparqlConstraint, row: Mapping[str, Term]) -> Violation:
        said = {name: self._data.original(term, plain=True) for name, term in row.items() if term is not None}
        failure = said.get("failure")
        if isinstance(failure, Literal) and failure.value == "true":
            raise InvalidInputError(
                f"the query of the shape {shape.node} reports a failure (?failure) at {said['this']}"
            )
        path = said.get("path")
        value = said.get("value", said["this"] if shape.path is None else None)
        messages = tuple(
            fill_in(message, {**constraint.parameters, **said}) for message in constraint.messages or shape.messages
        )
        own = said.get("message")
        if isinstance(own, Literal):
            messages = (own,)
        return _result(
            shape,
            constraint,
            said["this"],
            value,
            path if isinstance(path, NamedNode) else None,
            messages=messages,
            source=constraint.source,
        )


def _result(
    shape: Shape,
    constraint: Constraint,
    this: Term,
    value: Term | None = None,
    path: NamedNode | None = None,
    *,
    messages: tuple[Literal, ...] = (),
    source: NamedNode | BlankNode | None = None,
    details: tuple[Violation, ...] = (),
    detail: str = "",
) -> Violation:
    messages = messages or shape.messages or (Literal(sentence(constraint, detail), language="en"),)
    return Violation(
        focus=this,
        message=main_text(messages),
        severity=shape.severity,
        path=path if path is not None else shape.path,
        value=value,
        shape=shape.node,
        component=constraint.component,
        messages=messages,
        source_constraint=source,
        details=details,
    )


def _classes(shape: Shape) -> Iterator[NamedNode]:
    yield from shape.targets.classes
    for constraint in shape.constraints:
        if isinstance(constraint, model.ClassOf):
            yield constraint.name


def asks_for_shapes(shape: Shape) -> bool:
    """Return whether a query of `shape` looks at the shapes graph."""
    return any(
        isinstance(constraint, model.SparqlConstraint) and SHAPES_GRAPH.value in constraint.query
        for constraint in shape.constraints
    )
