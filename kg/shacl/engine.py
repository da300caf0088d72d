"""Validation of a data graph: constraints by queries, nested shapes by the sets of nodes that violate them.

Focus nodes enter a query as the pattern that finds them; the query returns the nodes that do not conform. So a nested
shape is checked once for all of its focus nodes, without correlated subqueries.

Results are yielded as they are found. For each set of targets, these are kept: the failing nodes of a shape under
sh:and, sh:or, sh:xone, sh:not or sh:qualifiedValueShape; the results of a shape under sh:node, if details are wanted;
and the results of a property shape inside a property shape, since several focus nodes may share a value.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Triple

from kg.errors import InvalidInputError
from kg.processes.cores import count_cores
from kg.shacl import prebinding, shape_model
from kg.shacl.compiler import Compiler, Focus, Query, Values
from kg.shacl.data_graph import DataGraph, has_datatype
from kg.shacl.messages import choose_text, describe_constraint, fill_in
from kg.shacl.property_paths import Path
from kg.shacl.report import Violation
from kg.shacl.shape_model import Constraint, Shape, ShapeNode, SparqlConstraint, Targets
from kg.sparql.terms import quote
from kg.store.protocol import Term
from kg.vocabulary import RDF, SHAPES_GRAPH

Row = tuple[Term, ...]

KEPT_ROWS: Final = 1000
"""Rows that are kept of a prefetched query. A query with more rows is run again when they are needed."""
_THREADS: Final = min(count_cores(), 8)


def prefetch(queries: Sequence[Query], rows: Callable[[str], Iterator[Row]]) -> Mapping[str, Sequence[Row]]:
    """Run queries in parallel with `rows`, and return all rows of each by its text, except for queries with many rows.

    Over conforming data most queries have no rows, so that finding this out is the whole validation.
    """
    if _THREADS == 1:  # nothing would run at the same time
        return {}

    def found(query: Query) -> Sequence[Row] | None:
        if query.probe and not any(True for _ in rows(query.probe)):
            return ()
        first = list(islice(rows(query.text), KEPT_ROWS + 1))
        return first if len(first) <= KEPT_ROWS else None

    with ThreadPoolExecutor(_THREADS) as threads:
        answers = zip(queries, threads.map(found, queries), strict=True)
        return {query.text: answer for query, answer in answers if answer is not None}


_MANY: Final = 100_000
"""Targets that are counted at most, to choose between a scan and a lookup of each target."""
_STEP: Final = 4
"""Cost of a lookup of the values of a target, relative to the scan of one triple."""
_SAMPLE: Final = 5_000
"""Values that are sampled to estimate the number of distinct ones; with fewer values, each is tested."""

Queries = dict[tuple[ShapeNode, Focus, bool], list[Query]]
"""Compiled queries by shape, focus nodes and whether literals are encoded."""

Found = Mapping[Term, list[Violation]]
"""Results by focus node."""


class Engine:
    """The shapes of one suite over one data graph.

    `shapes_graph`: the triples of ``$shapesGraph``, for queries that use it. `queries`: a cache of compiled queries for
    the next candidate of the suite; queries do not depend on the data as long as it has no subclasses. `among`: limits
    the focus nodes to these, which must not be blank nodes. `details`: whether a result of ``sh:node`` contains the
    results of the shape that it refers to.
    """

    def __init__(
        self,
        shapes: Mapping[ShapeNode, Shape],
        data: DataGraph,
        shapes_graph: Iterable[Quad | Triple] = (),
        queries: Queries | None = None,
        *,
        among: Collection[NamedNode | Literal] | None = None,
        details: bool = True,
    ) -> None:
        self._shapes, self._data, self._among, self._details = shapes, data, among, details
        for node in among or ():
            data.encode(node)
        for shape in shapes.values():
            for node in shape.targets.nodes:
                data.encode(node)  # before `has_encoded` is read below
        names = {name for shape in shapes.values() for name in _get_classes(shape)}
        self._subclasses = subclasses = {name: data.find_subclasses(name) for name in names}
        repeats = data.may_repeat
        self._compiler = Compiler(
            subclasses, data.encode, lambda: data.has_encoded, self._prefers_scan, repeats, self._has_few_values
        )
        lasting = data.as_written and among is None and all(len(below) == 1 for below in subclasses.values())
        self._queries: Queries = queries if queries is not None and lasting else {}
        self._encoded = data.has_encoded
        self._plain = Compiler(subclasses, lambda term: term, repeats=repeats)
        self._counted: dict[Targets, int] = {}
        self._scanned: dict[tuple[Targets, NamedNode], bool] = {}
        self._few: dict[NamedNode, bool] = {}
        self._aimed: dict[Targets, Targets | None] = {}
        self._typed: dict[Term, list[Term]] | None = None
        self._asked_about: Targets | None = None
        self._known: dict[tuple[ShapeNode, Focus], Found] = {}
        self._failed: dict[tuple[ShapeNode, Focus], set[Term]] = {}
        self._prefetched: Mapping[str, Sequence[Row]] = {}
        if any(needs_shapes_graph(shape) for shape in shapes.values()):
            data.add_shapes(shapes_graph)

    def prefetch(self, nodes: Iterable[ShapeNode]) -> None:
        """Run the queries of these shapes in parallel, unless the data graph or the set of focus nodes is small."""
        if self._data.is_small or self._among is not None:
            return
        queries: list[Query] = []
        for node in nodes:
            if (targets := self._find_targets(self._shapes[node].targets)) is not None:
                queries += self._direct_queries(self._shapes[node], targets)
        self._prefetched = prefetch(queries, self._select)

    def _direct_queries(self, shape: Shape, targets: Targets) -> Iterator[Query]:
        """Yield the queries of a shape and of its property shapes."""
        if not shape.deactivated:
            yield from self._get_queries(shape, targets)
            if shape.path is None:
                for constraint in shape.constraints:
                    if isinstance(constraint, shape_model.Property):
                        yield from self._direct_queries(self._shapes[constraint.shape], targets)

    def _prefers_scan(self, targets: Targets, predicate: NamedNode) -> bool:
        """Return whether a scan of `predicate` is faster than a lookup from each target.

        It always is in a candidate, whose records are of one kind. In a store a predicate may be common and the targets
        few, so both are counted.
        """
        if self._data.as_written:
            return True
        known = self._scanned.get((targets, predicate))
        if known is None:
            several = self._counted.get(targets)
            if several is None:
                several = self._counted[targets] = self._data.count_rows(self._compiler.compile_nodes(targets), _MANY)
            steps = f"SELECT ?this WHERE {{ ?this {quote(predicate)} ?value }}"
            known = several * _STEP > 0 and self._data.count_rows(steps, several * _STEP) < several * _STEP
            self._scanned[targets, predicate] = known
        return known

    def _has_few_values(self, predicate: NamedNode) -> bool:
        """Return whether `predicate` has many triples with few distinct values, estimated from a sample."""
        if self._data.is_small:
            return False
        known = self._few.get(predicate)
        if known is None:
            some = f"SELECT ?value WHERE {{ ?this {quote(predicate)} ?value }} LIMIT {_SAMPLE}"
            [row] = self._select(
                f"SELECT (COUNT(*) AS ?all) (COUNT(DISTINCT ?value) AS ?values) WHERE {{ {{ {some} }} }}"
            )
            found, values = (int(each.value) for each in row)  # type: ignore[union-attr]  # numbers
            known = self._few[predicate] = found == _SAMPLE and values * _STEP < found
        return known

    def results(self, node: ShapeNode) -> Iterator[tuple[Term, Violation]]:
        """Yield the results of the shape `node`, each with the target that led to it."""
        targets = self._find_targets(self._shapes[node].targets)
        if targets is None:
            return
        if targets != self._asked_about:  # results are kept for one set of targets, to bound memory
            self._asked_about = targets
            self._known.clear()
            self._failed.clear()
        yield from self._check_shape(node, targets)

    def _find_targets(self, targets: Targets) -> Targets | None:
        """Return the targets within `among`, or None if the data graph has none."""
        if targets not in self._aimed:
            kept = targets if self._among is None else Targets(tuple(self._filter_targets(targets, self._among)))
            self._aimed[targets] = kept if self._has_any(kept) else None
        return self._aimed[targets]

    def _has_any(self, targets: Targets) -> bool:
        """Return whether the data graph has any of `targets`. Parsing a query takes longer than these lookups."""
        patterns: list[tuple[NamedNode, Term | None]] = [
            (RDF.type, each) for name in targets.classes for each in self._subclasses[name]
        ]
        patterns += [(name, None) for name in (*targets.subjects_of, *targets.objects_of)]
        found = (quad for predicate, value in patterns for quad in self._data.find_quads(None, predicate, value))
        return bool(targets.nodes) or any(True for _ in found)

    def _filter_targets(
        self, targets: Targets, among: Collection[NamedNode | Literal]
    ) -> Iterator[NamedNode | Literal]:
        listed = set(targets.nodes).intersection(among)
        yield from tuple(listed)
        by_property = Targets(subjects_of=targets.subjects_of, objects_of=targets.objects_of)
        found: Iterable[Term] = self._find_instances(targets.classes) if among and targets.classes else ()
        if among and by_property:
            found = [
                *found,
                *(
                    self._data.to_original(node)
                    for [node] in self._select(self._compiler.compile_membership(by_property, among))
                ),
            ]
        for term in found:
            if isinstance(term, NamedNode | Literal) and term not in listed:
                listed.add(term)  # literals of different lexical form may be equal to Oxigraph
                yield term

    def _find_instances(self, classes: Iterable[NamedNode]) -> list[Term]:
        """Return the instances of `classes` within `among`. The types of all of these are loaded once."""
        if self._typed is None:
            self._typed = defaultdict(list)
            for node, kind in self._select(self._compiler.compile_types(self._among or ())):
                self._typed[kind].append(node)
        below = {each for name in classes for each in self._subclasses[name]}
        return [node for each in below for node in self._typed.get(each, ())]

    def _check_shape(self, node: ShapeNode, focus: Focus) -> Iterator[tuple[Term, Violation]]:
        """Yield the results of the shape `node`, each with its focus node."""
        shape = self._shapes[node]
        if shape.deactivated:
            return
        for result in self._check_constraints(shape, focus):
            if result.focus is not None:
                yield result.focus, result
        for constraint in shape.constraints:
            if not isinstance(constraint, shape_model.Property):
                continue
            if shape.path is None:
                yield from self._check_shape(constraint.shape, focus)
                continue
            inner = self._collect_results(constraint.shape, self._inner_focus(focus, shape))
            for this, value in self._find_pairs(focus, shape.path, inner):
                yield from ((this, result) for result in inner[value])

    def _collect_results(self, node: ShapeNode, focus: Focus) -> Found:
        """Return the results of the shape `node` by focus node, cached."""
        known = self._known.get((node, focus))
        if known is None:
            by_node: dict[Term, list[Violation]] = defaultdict(list)
            for this, result in self._check_shape(node, focus):
                by_node[this].append(result)
            known = self._known[node, focus] = by_node
        return known

    def _find_failing(self, node: ShapeNode, focus: Focus) -> Collection[Term]:
        """Return the focus nodes that do not conform to the shape `node`, cached."""
        if (known := self._known.get((node, focus))) is not None:
            return known.keys()
        failed = self._failed.get((node, focus))
        if failed is None:
            failed = self._failed[node, focus] = {this for this, _ in self._check_shape(node, focus)}
        return failed

    def _check_constraints(self, shape: Shape, focus: Focus) -> Iterator[Violation]:
        """Yield the results of the constraints of a shape, except sh:property."""
        for query in self._get_queries(shape, focus):
            yield from self._run_query(shape, query)
        for constraint in shape.constraints:
            match constraint:
                case shape_model.Node(_, inner):
                    below = self._inner_focus(focus, shape)
                    found = self._collect_results(inner, below) if self._details else {}
                    for this, value in self._find_pairs(focus, shape.path, found or self._find_failing(inner, below)):
                        yield _build_result(shape, constraint, this, value, details=tuple(found.get(value, ())))
                case shape_model.Combined():
                    yield from self._check_combined(shape, focus, constraint)
                case shape_model.Qualified():
                    yield from self._check_qualified(shape, focus, constraint)
                case SparqlConstraint():
                    yield from self._check_sparql(shape, focus, constraint)

    def _get_queries(self, shape: Shape, focus: Focus) -> list[Query]:
        key = (shape.node, focus, self._encoded)
        queries = self._queries.get(key)
        if queries is None:
            queries = self._queries[key] = self._compiler.compile_constraints(shape.constraints, focus, shape.path)
        return queries

    def _inner_focus(self, focus: Focus, shape: Shape) -> Focus:
        return focus if shape.path is None else Values(focus, shape.path)

    def _find_pairs(
        self, focus: Focus, path: Path | None, among: Collection[Term] | None = None
    ) -> Iterator[tuple[Term, Term]]:
        """Yield each pair of focus node and value, or only those with a value in `among`."""
        if among is not None and path is None:
            yield from ((node, node) for node in among)
        elif among is None or among:
            original = self._data.to_original
            for row in self._select(self._compiler.compile_pairs(focus, path)):
                this, value = original(row[0]), original(row[1])
                if among is None or value in among:
                    yield this, value

    def _select(self, query: str) -> Iterator[Row]:
        return (tuple(row) for row in self._data.select(query))

    def _run_query(self, shape: Shape, query: Query) -> Iterator[Violation]:
        original = self._data.to_original
        several = len(query.constraints) > 1
        rows: Iterable[Row] | None = self._prefetched.get(query.text)
        if rows is None:
            if query.probe and not any(True for _ in self._select(query.probe)):
                return
            rows = self._select(query.text)
        for cells in rows:
            this, value = original(cells[0]), original(cells[1]) if query.has_value else None
            path = cells[2] if query.has_path else None
            for at, constraint in enumerate(query.constraints):
                if several and cells[2 + at].value != "true":  # type: ignore[union-attr]  # a boolean
                    continue
                match constraint:
                    case shape_model.Datatype(_, name) if value is not None:
                        if not has_datatype(value, name, as_written=self._data.as_written):
                            yield _build_result(shape, constraint, this, value)
                    case shape_model.UniqueLang() if value is not None:
                        yield _build_result(shape, constraint, this, detail=str(value.value))  # type: ignore[union-attr]
                    case shape_model.Closed() if isinstance(path, NamedNode):
                        yield _build_result(shape, constraint, this, value, path)
                    case _:
                        yield _build_result(shape, constraint, this, value)

    def _check_combined(self, shape: Shape, focus: Focus, constraint: shape_model.Combined) -> Iterator[Violation]:
        below = self._inner_focus(focus, shape)
        failing = [self._find_failing(node, below) for node in constraint.shapes]
        pairs: Iterable[tuple[Term, Term]]
        match constraint.operator:
            case "and":
                pairs = self._find_pairs(focus, shape.path, set().union(*failing))
            case "or" if failing:
                pairs = self._find_pairs(focus, shape.path, set.intersection(*map(set, failing)))
            case _:
                wanted = 0 if constraint.operator == "not" else 1
                pairs = (
                    (this, value)
                    for this, value in self._find_pairs(focus, shape.path)
                    if sum(value not in nodes for nodes in failing) != wanted
                )
        for this, value in pairs:
            yield _build_result(shape, constraint, this, value)

    def _check_qualified(self, shape: Shape, focus: Focus, constraint: shape_model.Qualified) -> Iterator[Violation]:
        below = self._inner_focus(focus, shape)
        failing = self._find_failing(constraint.shape, below)
        siblings = [self._find_failing(node, below) for node in constraint.siblings]
        counts = Counter(
            this
            for this, value in self._find_pairs(focus, shape.path)
            if value not in failing and all(value in nodes for nodes in siblings)
        )
        if constraint.most is not None:
            for this, count in counts.items():
                if count > constraint.most:
                    yield _build_result(shape, constraint, this)
        elif constraint.least is not None:
            for row in self._select(self._compiler.compile_nodes(focus)):
                this = self._data.to_original(row[0])
                if counts[this] < constraint.least:
                    yield _build_result(shape, constraint, this)

    def _check_sparql(self, shape: Shape, focus: Focus, constraint: SparqlConstraint) -> Iterator[Violation]:
        if constraint.ask:
            prebound = ("this", "value")
            pattern = self._plain.compile_values(focus, shape.path)
            query = prebinding.to_select(constraint.query, prebound)
        else:
            prebound, query = ("this",), prebinding.to_distinct(constraint.query)  # type: ignore[assignment]
            pattern = self._plain.compile_focus(focus)
        # A pattern that finds a node several times would repeat its results, and its variables may clash.
        binding = pattern
        if constraint.ask or not self._plain.is_plain(focus):
            binding = f"{{ SELECT DISTINCT {' '.join(f'?{name}' for name in prebound)} WHERE {{ {pattern} }} }}"
        text = prebinding.inject_binding(query, prebound, binding)
        if text is None:
            raise InvalidInputError(
                f"Invalid shapes: {shape.node}: its query uses $this inside GRAPH, which is not supported."
            )
        try:
            rows = self._data.select(text, plain=True, once=prebinding.counts_duplicates(constraint.query))
        except SyntaxError as error:
            raise InvalidInputError(
                f"Invalid shapes: {shape.node}: its query cannot be run for several focus nodes: {error}"
            ) from error
        names = [variable.value for variable in rows.variables]
        found = (dict(zip(names, row, strict=True)) for row in rows)
        if constraint.ask:
            yield from self._check_ask(shape, focus, constraint, found)
            return
        for each in found:
            yield self._to_violation(shape, constraint, each)

    def _check_ask(
        self, shape: Shape, focus: Focus, constraint: SparqlConstraint, found: Iterable[Mapping[str, Term]]
    ) -> Iterator[Violation]:
        sound = {(row["this"], row["value"]) for row in found}
        pairs = self._plain.compile_pairs(focus, shape.path)
        for this, value in self._data.select(pairs, plain=True):
            if (this, value) not in sound:
                yield self._to_violation(shape, constraint, {"this": this, "value": value})

    def _to_violation(self, shape: Shape, constraint: SparqlConstraint, row: Mapping[str, Term]) -> Violation:
        bindings = {name: self._data.to_original(term, plain=True) for name, term in row.items() if term is not None}
        failure = bindings.get("failure")
        if isinstance(failure, Literal) and failure.value == "true":
            raise InvalidInputError(
                f"Validation failed: the query of the shape {shape.node} returned ?failure for {bindings['this']}."
            )
        path = bindings.get("path")
        value = bindings.get("value", bindings["this"] if shape.path is None else None)
        messages = tuple(
            fill_in(message, {**constraint.parameters, **bindings}) for message in constraint.messages or shape.messages
        )
        own = bindings.get("message")
        if isinstance(own, Literal):
            messages = (own,)
        return _build_result(
            shape,
            constraint,
            bindings["this"],
            value,
            path if isinstance(path, NamedNode) else None,
            messages=messages,
            source=constraint.source,
        )


def _build_result(
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
    messages = messages or shape.messages or (Literal(describe_constraint(constraint, detail), language="en"),)
    return Violation(
        focus=this,
        message=choose_text(messages),
        severity=shape.severity,
        path=path if path is not None else shape.path,
        value=value,
        shape=shape.node,
        component=constraint.component,
        messages=messages,
        source_constraint=source,
        details=details,
    )


def _get_classes(shape: Shape) -> Iterator[NamedNode]:
    yield from shape.targets.classes
    for constraint in shape.constraints:
        if isinstance(constraint, shape_model.ClassOf):
            yield constraint.name


def needs_shapes_graph(shape: Shape) -> bool:
    """Return whether a query of `shape` uses the shapes graph."""
    return any(
        isinstance(constraint, SparqlConstraint) and SHAPES_GRAPH.value in constraint.query
        for constraint in shape.constraints
    )
