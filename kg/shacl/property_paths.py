"""SHACL property paths as values, as SPARQL and as triples.

https://www.w3.org/TR/shacl/#property-paths
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pyoxigraph import BlankNode, NamedNode, Triple

from kg.sparql.terms import quote
from kg.store.protocol import Term
from kg.vocabulary import RDF, SH, curie


@dataclass(frozen=True, slots=True)
class InversePath:
    """A path from object to subject."""

    path: Path


@dataclass(frozen=True, slots=True)
class SequencePath:
    """One path after the other."""

    steps: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class AlternativePath:
    """Any of several paths."""

    choices: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class RepeatedPath:
    """A path any number of times (``*``), at least once (``+``) or at most once (``?``)."""

    path: Path
    times: Literal["*", "+", "?"]


Path = NamedNode | InversePath | SequencePath | AlternativePath | RepeatedPath

_REPEATED: Final[Mapping[NamedNode, Literal["*", "+", "?"]]] = {
    SH.zeroOrMorePath: "*",
    SH.oneOrMorePath: "+",
    SH.zeroOrOnePath: "?",
}
_PREDICATES: Final = {times: predicate for predicate, times in _REPEATED.items()}

Description = Mapping[Term, Mapping[NamedNode, Sequence[Term]]]
"""The triples of a graph by subject and predicate."""


MAX_STEPS: Final = 128
"""The engine's time to plan a sequence grows with its third power: 300 steps take a second, 600 more than half a
minute."""


class IllFormedError(Exception):
    """A node does not describe a valid path, list or query; the message is the violated rule."""


def parse_path(node: Term, graph: Description, inside: tuple[Term, ...] = ()) -> Path:
    """Parse the path that `node` describes. Raises IllFormedError."""
    if isinstance(node, NamedNode):
        return node
    if not isinstance(node, BlankNode):
        raise IllFormedError(f"a path must be an IRI or a blank node, not {node}")
    if node in inside:
        raise IllFormedError("a path must not contain itself")
    inside = (*inside, node)
    about = graph.get(node, {})
    if RDF.first in about:  # a list is a sequence even if its node has other properties
        sequence = SequencePath(_parse_paths(node, graph, inside, "a sequence path"))
        if (steps := _count_steps(sequence)) > MAX_STEPS:
            raise IllFormedError(f"a path must have at most {MAX_STEPS} consecutive steps, not {steps:,}")
        return sequence
    if (inverted := about.get(SH.inversePath)) is not None:
        return InversePath(parse_path(_single(inverted, SH.inversePath), graph, inside))
    if (choices := about.get(SH.alternativePath)) is not None:
        return AlternativePath(_parse_paths(_single(choices, SH.alternativePath), graph, inside, "sh:alternativePath"))
    for predicate, times in _REPEATED.items():
        if (repeated := about.get(predicate)) is not None:
            return RepeatedPath(parse_path(_single(repeated, predicate), graph, inside), times)
    raise IllFormedError(
        "a path must be an IRI, a list of paths, or a node with sh:inversePath, sh:alternativePath, "
        "sh:zeroOrMorePath, sh:oneOrMorePath or sh:zeroOrOnePath"
    )


def _count_steps(path: Path) -> int:
    """Count the consecutive steps of `path`, each repetition once."""
    match path:
        case SequencePath(steps):
            return sum(map(_count_steps, steps))
        case AlternativePath(choices):
            return max(map(_count_steps, choices))
        case InversePath(inner) | RepeatedPath(inner, _):
            return _count_steps(inner)
    return 1


def _parse_paths(head: Term, graph: Description, inside: tuple[Term, ...], what: str) -> tuple[Path, ...]:
    members = parse_list(head, graph)
    if len(members) < 2:
        raise IllFormedError(f"{what} must have at least two members")
    return tuple(parse_path(member, graph, inside) for member in members)


def _single(found: Sequence[Term], predicate: NamedNode) -> Term:
    if len(found) != 1:
        raise IllFormedError(f"a path must have exactly one {curie(predicate.value)}, not {len(found)}")
    return found[0]


def parse_list(head: Term, graph: Description) -> tuple[Term, ...]:
    """Return the members of an RDF list. Raises IllFormedError for an invalid or cyclic list."""
    members: list[Term] = []
    seen: set[Term] = set()
    while head != RDF.nil:
        about = graph.get(head, {})
        first, rest = about.get(RDF.first, ()), about.get(RDF.rest, ())
        if len(first) != 1 or len(rest) != 1 or head in seen:
            raise IllFormedError(
                "an RDF list must have one rdf:first and one rdf:rest at each node, and end with rdf:nil"
            )
        seen.add(head)
        members.append(first[0])
        head = rest[0]
    return tuple(members)


def to_sparql(path: Path) -> str:
    """Write `path` as a SPARQL property path that can be embedded in another one."""
    match path:
        case NamedNode():
            return quote(path)
        case InversePath(inner):
            return f"^({to_sparql(inner)})" if not isinstance(inner, NamedNode) else f"^{to_sparql(inner)}"
        case SequencePath(steps):
            return f"({'/'.join(map(to_sparql, steps))})"
        case AlternativePath(choices):
            return f"({'|'.join(map(to_sparql, choices))})"
        case RepeatedPath(inner, times):
            return f"({to_sparql(inner)}){times}"


def is_nullable(path: Path) -> bool:
    """Return whether `path` may have length zero, so that it leads from every node to itself.

    Oxigraph finds that only for nodes in the data, so queries have to treat it separately.
    """
    match path:
        case NamedNode():
            return False
        case InversePath(inner):
            return is_nullable(inner)
        case SequencePath(steps):
            return all(map(is_nullable, steps))
        case AlternativePath(choices):
            return any(map(is_nullable, choices))
        case RepeatedPath(inner, times):
            return times != "+" or is_nullable(inner)


def to_triples(path: Path) -> tuple[NamedNode | BlankNode, list[Triple]]:
    """Return a node that describes `path` and its triples, with new blank nodes for each call."""
    if isinstance(path, NamedNode):
        return path, []
    if isinstance(path, SequencePath):
        return _list_to_triples(path.steps)
    node = BlankNode()
    if isinstance(path, AlternativePath):
        inner, described = _list_to_triples(path.choices)
        predicate = SH.alternativePath
    else:
        inner, described = to_triples(path.path)
        predicate = SH.inversePath if isinstance(path, InversePath) else _PREDICATES[path.times]
    return node, [Triple(node, predicate, inner), *described]


def _list_to_triples(members: Sequence[Path]) -> tuple[NamedNode | BlankNode, list[Triple]]:
    head: NamedNode | BlankNode = RDF.nil
    described: list[Triple] = []
    for member in reversed(members):
        node, inner = to_triples(member)
        cell = BlankNode()
        described += [Triple(cell, RDF.first, node), Triple(cell, RDF.rest, head), *inner]
        head = cell
    return head, described


def to_text(path: Path) -> str:
    """Write `path` for people, with prefixed names."""
    match path:
        case NamedNode():
            return curie(path.value)
        case InversePath(inner):
            return f"^{_grouped(inner)}"
        case SequencePath(steps):
            return "/".join(map(_grouped, steps))
        case AlternativePath(choices):
            return "|".join(map(_grouped, choices))
        case RepeatedPath(inner, times):
            return f"{_grouped(inner)}{times}"


def _grouped(path: Path) -> str:
    return to_text(path) if isinstance(path, NamedNode) else f"({to_text(path)})"
