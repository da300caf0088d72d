"""Blank nodes become IRIs made from what is said of them, so that the same payload gives the same nodes. Pure.

An IRI is ``.well-known/genid/{hash}-{copy}-{number}`` (https://www.w3.org/TR/rdf11-concepts/#section-skolemization):
the hash of the graph's name and of the canonical form (https://www.w3.org/TR/rdf-canon/, RDFC-1.0) of all that is said
of this blank node and of those it hangs together with; which of several equal ones it is; and its number among those
that hang together. So a change to one part of a payload leaves the nodes of the others as they are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pyoxigraph import BlankNode, CanonicalizationAlgorithm, Dataset, NamedNode, Quad, Triple

from kg.errors import InvalidInputError
from kg.vocabulary import BASE, sha256

GENID: Final = BASE + ".well-known/genid/"
MAX_EQUAL: Final = 6
"""Blank nodes that nothing tells apart, which may hang together: the work to order them grows with their factorial."""
MAX_WORK: Final = 60_000
"""How often a triple is looked at, at most, to tell the blank nodes of one payload apart; four times each besides."""


def skolemize(graph: NamedNode, triples: Sequence[Triple]) -> list[Triple]:
    """Return `triples` without blank nodes, as they stand in `graph`.

    Raises InvalidInputError where too many blank nodes hang together that nothing tells apart.
    """
    components = _components(triples)
    if not components:
        return list(triples)
    found = [triple for triple in triples if not _blank_nodes(triple)]
    copies: Counter[str] = Counter()
    work = MAX_WORK + 4 * len(triples)
    for component in components:
        labelled, work = _labelled(component, work)
        key = sha256("\n".join([graph.value, *sorted(map(str, labelled))]))[:32]
        labels = sorted({node for triple in labelled for node in _blank_nodes(triple)}, key=lambda node: node.value)
        names = {node: NamedNode(f"{GENID}{key}-{copies[key]}-{number}") for number, node in enumerate(labels)}
        copies[key] += 1
        found += [_renamed(triple, names) for triple in labelled]
    return list(dict.fromkeys(found))


def _components(triples: Iterable[Triple]) -> list[list[Triple]]:
    """Return the triples that have blank nodes, those together that share one."""
    parent: dict[BlankNode, BlankNode] = {}

    def root(node: BlankNode) -> BlankNode:
        while parent[node] != node:
            parent[node] = node = parent[parent[node]]
        return node

    said = [(triple, nodes) for triple in triples if (nodes := _blank_nodes(triple))]
    for _, nodes in said:
        for node in nodes:
            parent.setdefault(node, node)
        for node in nodes[1:]:
            parent[root(node)] = root(nodes[0])
    found: dict[BlankNode, list[Triple]] = defaultdict(list)
    for triple, nodes in said:
        found[root(nodes[0])].append(triple)
    return list(found.values())


def _blank_nodes(triple: Triple) -> list[BlankNode]:
    nodes = []
    for term in (triple.subject, triple.object):
        if isinstance(term, BlankNode):
            nodes.append(term)
        elif isinstance(term, Triple):
            nodes += _blank_nodes(term)
    return nodes


def _labelled(component: Sequence[Triple], work: int) -> tuple[list[Triple], int]:
    """Return `component` with canonical labels for its blank nodes, and what is left of `work`.

    Nodes are told apart by what is said of them, of their neighbours, and so on (colour refinement), which takes no
    recursion; RDFC-1.0 itself, exponential at worst, is left with what then is still equal.
    """
    colours = {node: "" for triple in component for node in _blank_nodes(triple)}
    classes = 1
    while True:
        said: dict[BlankNode, list[str]] = defaultdict(list)
        for triple in component:
            for node in dict.fromkeys(_blank_nodes(triple)):
                said[node].append(str(_seen_from(node, triple, colours)))
        work -= len(component)
        if work < 0:
            raise InvalidInputError(
                "the blank nodes take too much work to be told apart: long chains of them are equal; give them IRIs"
            )
        colours = {node: sha256(colours[node] + "\n".join(sorted(lines))) for node, lines in said.items()}
        refined = len(set(colours.values()))
        if refined in (classes, len(colours)):
            break
        classes = refined
    shared = {colour for colour, count in Counter(colours.values()).items() if count > 1}
    distinct = {node: NamedNode(GENID + colour) for node, colour in colours.items() if colour not in shared}
    if (equal := len(colours) - len(distinct)) > MAX_EQUAL:
        raise InvalidInputError(
            f"{equal} blank nodes that hang together cannot be told apart, and at most {MAX_EQUAL} may: give them IRIs"
        )
    renamed = (_renamed(triple, distinct) for triple in component)
    dataset = Dataset(Quad(triple.subject, triple.predicate, triple.object) for triple in renamed)
    if equal:
        dataset.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    labels = {name: BlankNode("d" + name.value.removeprefix(GENID)) for name in distinct.values()}
    return [_renamed(quad.triple, labels) for quad in dataset], work


def _seen_from(node: BlankNode, triple: Triple, colours: Mapping[BlankNode, str]) -> Triple:
    """Return `triple` with `node` and each other blank node replaced by what is known of it."""
    names = {other: NamedNode(GENID + (colours[other] or "other")) for other in _blank_nodes(triple)}
    return _renamed(triple, {**names, node: NamedNode(GENID + "self")})


def _renamed(triple: Triple, names: Mapping[Any, BlankNode | NamedNode]) -> Triple:
    def name(term: Any) -> Any:
        return _renamed(term, names) if isinstance(term, Triple) else names.get(term, term)

    return Triple(name(triple.subject), triple.predicate, name(triple.object))
