"""The quads that the results of a suite depend on, as an automaton that walks from focus nodes over quads. Pure.

A state is a position in the shapes: a shape about to be checked on a node, its values, or the nodes that a constraint
compares them with. A step leads to the next state over a quad with one predicate, or any, in either direction; a jump
leads to the next state at the same node. The results of a shape on a node depend only on the quads that match steps
from states that a walk from this node reaches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pyoxigraph import Literal as RdfLiteral
from pyoxigraph import NamedNode

from kg.shacl import shape_model
from kg.shacl.property_paths import AlternativePath, InversePath, Path, RepeatedPath, SequencePath
from kg.shacl.shape_model import Shape, ShapeNode, SparqlConstraint, get_reachable, get_references
from kg.sparql.algebra import Node, Pattern, variable_name
from kg.sparql.lexer import significant_tokens
from kg.sparql.parser import parse
from kg.store.protocol import Term
from kg.vocabulary import RDF, RDFS, SHAPES_GRAPH

Direction = Literal["forward", "inverse", "graph", "home"]
"""From subject to object, from object to subject, from a graph to its subjects, or from a subject to its graph."""

_TIMES: Final[Mapping[str, Literal["*", "+", "?"]]] = {"*": "*", "+": "+", "?": "?"}

_Place = tuple[str, tuple[int, ...], int]
"""A variable of a query, the groups that it is in, and the state that binds it."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step over a quad. `predicate`: None for any. `classes`: only quads with one of these as the object."""

    source: int
    target: int
    predicate: NamedNode | None
    direction: Direction
    classes: frozenset[Term] | None = None


class UnanalysableError(Exception):
    """The quads that a query depends on cannot be determined; the message is the reason."""


class Automaton:
    """The automaton of a suite.

    `entries` are the initial states, by shape with targets. `into` and `jumps` map a state to the steps and to the
    states that lead to it. `opaque` are the shapes with targets that cannot be analysed, each with the reason.
    `classes` returns a class and its subclasses.
    """

    def __init__(
        self,
        shapes: Mapping[ShapeNode, Shape],
        roots: Sequence[ShapeNode],
        classes: Callable[[NamedNode], Collection[Term]],
    ) -> None:
        self._shapes, self._classes = shapes, classes
        self._states = 0
        self._entry: dict[ShapeNode, int] = {}
        self._opaque: dict[ShapeNode, str] = {}
        self.steps: list[Step] = []
        self.into: dict[int, list[Step]] = defaultdict(list)
        self.jumps: dict[int, set[int]] = defaultdict(set)
        self.entries: dict[int, ShapeNode] = {}
        for node in roots:
            if not shapes[node].deactivated:
                self.entries[self._add_shape(node)] = node
                self._add_targets(shapes[node])
        self.opaque = {node: why for node in self.entries.values() if (why := self._explain_opaque(node))}

    def can_begin(self, state: int, node: Term) -> bool:
        """Return whether a walk may begin at `node` in `state`: an initial state, whose shape may target the node."""
        if state not in self.entries:
            return False
        targets = self._shapes[self.entries[state]].targets
        by_data = targets.classes or targets.subjects_of or targets.objects_of
        return bool(by_data) or not isinstance(node, NamedNode) or node in targets.nodes

    def find_shapes_from_literals(self, predicates: Collection[NamedNode]) -> set[ShapeNode]:
        """Return the shapes with targets whose walks may step from a literal to its subject by one of `predicates`."""
        literal = {
            state
            for state, node in self.entries.items()
            if self._shapes[node].targets.objects_of
            or any(isinstance(each, RdfLiteral) for each in self._shapes[node].targets.nodes)
        }
        literal |= {step.target for step in self.steps if step.direction == "forward"}
        onward: dict[int, set[int]] = defaultdict(set)
        for target, sources in self.jumps.items():
            for source in sources:
                onward[source].add(target)
        todo = list(literal)
        while todo:
            for state in onward[todo.pop()] - literal:
                literal.add(state)
                todo.append(state)
        seen = {
            step.source
            for step in self.steps
            if step.direction == "inverse"
            and step.source in literal
            and (step.predicate is None or step.predicate in predicates)
        }
        todo = list(seen)
        while todo:
            state = todo.pop()
            before = self.jumps[state] | {step.source for step in self.into[state]}
            todo += before - seen
            seen |= before
        return {node for state, node in self.entries.items() if state in seen}

    # -- shapes

    def _new_state(self) -> int:
        self._states += 1
        return self._states

    def _add_step(
        self,
        source: int,
        target: int,
        predicate: NamedNode | None,
        direction: Direction = "forward",
        classes: frozenset[Term] | None = None,
    ) -> int:
        step = Step(source, target, predicate, direction, classes)
        self.steps.append(step)
        self.into[target].append(step)
        return target

    def _add_path(self, source: int, path: Path, *, inverse: bool = False) -> int:
        """Add the steps of `path` and return the state at its end."""
        match path:
            case NamedNode():
                return self._add_step(source, self._new_state(), path, "inverse" if inverse else "forward")
            case InversePath(inner):
                return self._add_path(source, inner, inverse=not inverse)
            case SequencePath(steps):
                for each in reversed(steps) if inverse else steps:
                    source = self._add_path(source, each, inverse=inverse)
                return source
            case AlternativePath(choices):
                end = self._new_state()
                self.jumps[end] |= {self._add_path(source, each, inverse=inverse) for each in choices}
                return end
            case RepeatedPath(inner, times):
                loop = self._new_state()
                self.jumps[loop].add(source)
                once = self._add_path(loop, inner, inverse=inverse)
                if times == "+":
                    self.jumps[loop].add(once)
                    return once
                end = self._new_state()
                self.jumps[end] |= {loop, once}
                if times == "*":
                    self.jumps[loop].add(once)
                return end

    def _add_instance_steps(self, source: int, name: NamedNode) -> None:
        kind = self._add_step(source, self._new_state(), RDF.type, classes=frozenset(self._classes(name)))
        self._add_path(kind, RepeatedPath(RDFS.subClassOf, "*"))

    def _add_targets(self, shape: Shape) -> None:
        entry, targets = self._entry[shape.node], shape.targets
        for name in targets.classes:
            self._add_instance_steps(entry, name)
        for predicate in targets.subjects_of:
            self._add_step(entry, self._new_state(), predicate)
        for predicate in targets.objects_of:
            self._add_step(entry, self._new_state(), predicate, "inverse")

    def _add_shape(self, node: ShapeNode) -> int:
        """Add the shape `node` and return the state in which it is checked."""
        if node in self._entry:
            return self._entry[node]
        entry = self._entry[node] = self._new_state()
        shape = self._shapes[node]
        if shape.deactivated:
            return entry
        values = entry if shape.path is None else self._add_path(entry, shape.path)
        for constraint in shape.constraints:
            match constraint:
                case shape_model.ClassOf(_, name):
                    self._add_instance_steps(values, name)
                case (
                    shape_model.Equals(_, predicate)
                    | shape_model.Disjoint(_, predicate)
                    | shape_model.Less(_, _, predicate)
                ):
                    self._add_step(entry, self._new_state(), predicate)
                case shape_model.Closed():
                    self._add_step(values, self._new_state(), None)
                case SparqlConstraint():
                    try:
                        self._add_query(constraint, entry, values)
                    except UnanalysableError as error:
                        self._opaque[node] = str(error)
            for inner in get_references(constraint):
                self.jumps[self._add_shape(inner)].add(values)
        return entry

    def _explain_opaque(self, node: ShapeNode) -> str:
        reachable = get_reachable(self._shapes, node)
        return "; ".join(dict.fromkeys(self._opaque[each.node] for each in reachable if each.node in self._opaque))

    # -- queries

    def _add_query(self, constraint: SparqlConstraint, entry: int, values: int) -> None:
        """Add the steps from ``$this`` to each pattern of a query.

        A pattern may be reached only from patterns in its own group or in a group around it: those take part in every
        solution that it takes part in. Raises UnanalysableError for a pattern that is not reached this way.
        """
        query = parse(constraint.query)
        if query is None or SHAPES_GRAPH.value in constraint.query:
            raise UnanalysableError("its query cannot be parsed, or uses the shapes graph")
        places: list[_Place] = [("this", (), entry)]
        if constraint.ask:
            places.append(("value", (), values))
        patterns = list(query.patterns)
        while patterns:
            for way in ("subject", "graph", "object"):
                found = next(
                    (
                        (pattern, state)
                        for pattern in patterns
                        if (state := _find_state(places, getattr(pattern, way), pattern.scope)) is not None
                    ),
                    None,
                )
                if found is None:
                    continue
                pattern, state = found
                patterns.remove(pattern)
                places += self._add_pattern(pattern, state, way)
                break
            else:
                stray = patterns[0]
                text = f"{stray.subject.text} {stray.path} {stray.object.text}"
                raise UnanalysableError(f"the pattern {text} of its query is not connected to $this")

    def _add_pattern(self, pattern: Pattern, state: int, way: str) -> Iterator[_Place]:
        """Add the steps of a pattern and yield the variables that they bind."""
        if way == "graph":
            predicate = pattern.predicate
            if predicate is None:
                raise UnanalysableError(f"unsupported path {pattern.path} in a graph that its query searches for")
            known = NamedNode(predicate.value) if predicate.kind == "iri" else None
            state = self._add_step(state, self._new_state(), known, "graph")
            yield _variable_name(pattern.subject), pattern.scope, state
        inverse = way == "object"
        if pattern.predicate is None:
            end = self._add_path(state, _parse_path(pattern), inverse=inverse)
        elif pattern.predicate.kind == "iri":
            end = self._add_path(state, NamedNode(pattern.predicate.value), inverse=inverse)
        else:
            end = self._add_step(state, self._new_state(), None, "inverse" if inverse else "forward")
        yield _variable_name(pattern.subject if inverse else pattern.object), pattern.scope, end
        graph = _variable_name(pattern.graph) if pattern.graph is not None and way != "graph" else ""
        if graph and pattern.predicate is not None:
            known = NamedNode(pattern.predicate.value) if pattern.predicate.kind == "iri" else None
            objects = frozenset({NamedNode(pattern.object.value)}) if pattern.object.kind == "iri" else None
            yield (
                graph,
                pattern.scope,
                self._add_step(end if inverse else state, self._new_state(), known, "home", objects),
            )


def _find_state(places: Sequence[_Place], node: Node | None, scope: tuple[int, ...]) -> int | None:
    name = "" if node is None else _variable_name(node)
    if not name:
        return None
    return next((state for each, held, state in places if each == name and scope[: len(held)] == held), None)


def _variable_name(node: Node) -> str:
    """Return the name of a variable or blank node; empty for another term."""
    if node.kind == "blank":
        return variable_name(node)
    return node.value if node.kind == "variable" else ""


def _parse_path(pattern: Pattern) -> Path:
    """Parse the path of a pattern. Raises UnanalysableError for a negated one."""
    words = list(significant_tokens(pattern.path))
    atoms = iter(pattern.atoms)
    at = 0

    def peek() -> str:
        return words[at].text if at < len(words) else ""

    def parse_list(mark: str, parse: Callable[[], Path]) -> Iterator[Path]:
        nonlocal at
        yield parse()
        while peek() == mark:
            at += 1
            yield parse()

    def alternative() -> Path:
        choices = tuple(parse_list("|", sequence))
        return choices[0] if len(choices) == 1 else AlternativePath(choices)

    def sequence() -> Path:
        steps = tuple(parse_list("/", element))
        return steps[0] if len(steps) == 1 else SequencePath(steps)

    def element() -> Path:
        nonlocal at
        if peek() == "^":
            at += 1
            return InversePath(element())
        if peek() == "(":
            at += 1
            path = alternative()
            if peek() != ")":
                raise UnanalysableError(f"unsupported path {pattern.path} in its query")
        else:
            atom = next(atoms, None)
            if atom is None or peek() != atom.text:
                raise UnanalysableError(f"unsupported path {pattern.path} in its query")
            path = NamedNode(atom.value)
        at += 1
        if peek() in _TIMES:
            path = RepeatedPath(path, _TIMES[peek()])
            at += 1
        return path

    found = alternative()
    if at != len(words):
        raise UnanalysableError(f"unsupported path {pattern.path} in its query")
    return found
