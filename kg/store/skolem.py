"""Skolemize blank nodes: replace them by IRIs derived from their content, so that equal payloads give equal IRIs.

An IRI is ``.well-known/genid/{hash}-{copy}-{number}`` (https://www.w3.org/TR/rdf11-concepts/#section-skolemization).
The hash covers the name of the graph and the canonical form (https://www.w3.org/TR/rdf-canon/, RDFC-1.0) of the
connected component: all triples of this blank node and of those connected with it. The copy distinguishes equal
components, the number the nodes of one component. So a change to one part of a payload does not rename nodes in
others.
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
"""Maximum number of indistinguishable blank nodes in one component: RDFC-1.0 takes factorial time for them."""
MAX_WORK: Final = 60_000
"""Maximum visits of triples by the refinement of one payload, in addition to four per triple."""


def skolemize(graph: NamedNode, triples: Sequence[Triple]) -> list[Triple]:
    """Replace the blank nodes in `triples`, which belong to `graph`, by IRIs.

    Raises InvalidInputError for a component with more than `MAX_EQUAL` indistinguishable nodes, or too much work.
    """
    components = _components(triples)
    if not components:
        return list(triples)
    found = [triple for triple in triples if not _blank_nodes(triple)]
    copies: Counter[str] = Counter()
    work = MAX_WORK + 4 * len(triples)
    for component in components:
        labelled, work = _canonicalize(component, work)
        key = sha256("\n".join([graph.value, *sorted(map(str, labelled))]))[:32]
        labels = sorted({node for triple in labelled for node in _blank_nodes(triple)}, key=lambda node: node.value)
        names = {node: NamedNode(f"{GENID}{key}-{copies[key]}-{number}") for number, node in enumerate(labels)}
        copies[key] += 1
        found += [_rename(triple, names) for triple in labelled]
    return list(dict.fromkeys(found))


def _components(triples: Iterable[Triple]) -> list[list[Triple]]:
    """Group the triples with blank nodes into connected components."""
    parent: dict[BlankNode, BlankNode] = {}

    def root(node: BlankNode) -> BlankNode:
        while parent[node] != node:
            parent[node] = node = parent[parent[node]]
        return node

    with_nodes = [(triple, nodes) for triple in triples if (nodes := _blank_nodes(triple))]
    for _, nodes in with_nodes:
        for node in nodes:
            parent.setdefault(node, node)
        for node in nodes[1:]:
            parent[root(node)] = root(nodes[0])
    found: dict[BlankNode, list[Triple]] = defaultdict(list)
    for triple, nodes in with_nodes:
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


def _canonicalize(component: Sequence[Triple], work: int) -> tuple[list[Triple], int]:
    """Return `component` with canonical labels for its blank nodes, and the rest of `work`."""
    # Color refinement before RDFC-1.0 is what bounds the time of a hostile payload. RDFC-1.0 alone (pyoxigraph 0.5)
    # takes 3 s for 8 nodes that all point to each other and over 40 s for 9; for a chain of 1,000 equal nodes it takes
    # over 40 s, and a chain of 5,000 aborts the process. Refinement is iterative, its work is counted, and RDFC-1.0
    # then orders at most MAX_EQUAL nodes.
    colours = {node: "" for triple in component for node in _blank_nodes(triple)}
    classes = 1
    while True:
        views: dict[BlankNode, list[str]] = defaultdict(list)
        for triple in component:
            for node in dict.fromkeys(_blank_nodes(triple)):
                views[node].append(str(_view_from(node, triple, colours)))
        work -= len(component)
        if work < 0:
            raise InvalidInputError(
                "Blank nodes too complex: the payload has long chains of indistinguishable blank nodes. Give them IRIs."
            )
        colours = {node: sha256(colours[node] + "\n".join(sorted(lines))) for node, lines in views.items()}
        refined = len(set(colours.values()))
        if refined in (classes, len(colours)):
            break
        classes = refined
    shared = {colour for colour, count in Counter(colours.values()).items() if count > 1}
    distinct = {node: NamedNode(GENID + colour) for node, colour in colours.items() if colour not in shared}
    if (equal := len(colours) - len(distinct)) > MAX_EQUAL:
        raise InvalidInputError(
            f"Too many indistinguishable connected blank nodes: {equal}. Maximum: {MAX_EQUAL}. Give them IRIs."
        )
    renamed = (_rename(triple, distinct) for triple in component)
    dataset = Dataset(Quad(triple.subject, triple.predicate, triple.object) for triple in renamed)
    if equal:
        dataset.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    labels = {name: BlankNode("d" + name.value.removeprefix(GENID)) for name in distinct.values()}
    return [_rename(quad.triple, labels) for quad in dataset], work


def _view_from(node: BlankNode, triple: Triple, colours: Mapping[BlankNode, str]) -> Triple:
    """Return `triple` with `node` replaced by a marker and each other blank node by its color."""
    names = {other: NamedNode(GENID + (colours[other] or "other")) for other in _blank_nodes(triple)}
    return _rename(triple, {**names, node: NamedNode(GENID + "self")})


def _rename(triple: Triple, names: Mapping[Any, BlankNode | NamedNode]) -> Triple:
    def name(term: Any) -> Any:
        return _rename(term, names) if isinstance(term, Triple) else names.get(term, term)

    return Triple(name(triple.subject), triple.predicate, name(triple.object))
