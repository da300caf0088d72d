"""The record of each commit in ``graph/prov``, and the head of the store.

The quads that a commit added are in the graphs that it touched. Of the quads that it removed, it records the nodes and
properties, and also the nodes whose description in ``graph/prov`` it changed. These are literals and not IRIs, so that
no link leads to a removed node::

    <id/commit/{generation}> kg:removedCount n ; kg:removedNode "..." ; kg:removedProperty "..." ; kg:described "..."
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad, Store

from kg.errors import InvalidInputError
from kg.store.difference import Delta, Statements, canonical_statements
from kg.store.protocol import GraphChange, Patch
from kg.vocabulary import KG, PROV, PROV_GRAPH, RDF, XSD, commit_iri, mint

HEAD: Final = mint("commit", "head")
HEAD_PROPERTIES: Final = frozenset({KG.generation, KG.quadCount, KG.graphCount})
"""Properties of the head, which each commit replaces. Records of commits do not mention them."""

MAX_NODES: Final = 10_000
"""Maximum number of nodes of removed quads in a record. A commit that removes more records only the number of quads."""

_COMMITS: Final = str(HEAD).removesuffix("head>")


@dataclass(frozen=True, slots=True)
class Head:
    """The counters of the store after its last commit, without `UNCOUNTED_GRAPHS`."""

    generation: int = 0
    quads: int = 0
    graphs: int = 0

    @property
    def has_counted(self) -> bool:
        """Whether the counts include the quads of this head: those of the first commits of content."""
        return self.generation > 0 and self.quads > 0

    def as_quads(self) -> list[Quad]:
        """Return the quads of the head; its counts include these quads."""
        counts = (KG.generation, self.generation), (KG.quadCount, self.quads), (KG.graphCount, self.graphs)
        return [Quad(HEAD, predicate, Literal(count), PROV_GRAPH) for predicate, count in counts]


@dataclass(frozen=True, slots=True)
class Removal:
    """What one or more commits removed: the subjects and objects of the quads, and their predicates.

    `described`: the nodes whose description in ``graph/prov`` changed.
    """

    nodes: frozenset[NamedNode] = frozenset()
    properties: frozenset[NamedNode] = frozenset()
    described: frozenset[NamedNode] = frozenset()

    def __or__(self, other: Removal) -> Removal:
        return Removal(self.nodes | other.nodes, self.properties | other.properties, self.described | other.described)


@dataclass(frozen=True, slots=True)
class PreparedCommit:
    """A commit to write: the quads to remove, the graphs to drop, the quads to add, and the head afterwards."""

    head: Head
    deltas: Sequence[Delta]
    changes: tuple[GraphChange, ...]
    remove: Mapping[NamedNode, Collection[str]]
    drop: Collection[NamedNode]
    add: Mapping[NamedNode, Collection[str]]
    invalidated: AbstractSet[NamedNode] = frozenset()
    """The graphs that it invalidates (`kg.store.protocol.Patch`)."""
    restored: AbstractSet[NamedNode] = frozenset()
    """The invalidated graphs that it writes: queries read all their statements again, also those that it keeps."""


def load_counters(store: Store) -> dict[NamedNode, int]:
    """Load the numbers that the last commit recorded: the generation, the quads and the graphs. Empty before it."""
    return {
        quad.predicate: int(quad.object.value)
        for quad in store.quads_for_pattern(HEAD, None, None, PROV_GRAPH)
        if isinstance(quad.object, Literal)
    }


def build_time() -> Literal:
    """Build the literal of the current time, to the millisecond."""
    return Literal(datetime.now(UTC).isoformat(timespec="milliseconds"), datatype=XSD.dateTime)


def build_commit_record(
    generation: int, touched: Sequence[NamedNode], removed: Iterable[str], patched: Delta
) -> list[Quad]:
    """Build the record of commit `generation`, with the current time.

    It changes the graphs `touched`, removes the statements `removed` from them, and changes ``graph/prov`` by
    `patched`.
    """
    node, now = commit_iri(generation), build_time()
    nodes: set[str] = set()
    properties: set[str] = set()
    count = 0
    # From the text, which takes a fourth of the time of reading the terms of quads.
    for statement in chain(removed, patched.removed):
        count += 1
        if len(nodes) <= MAX_NODES:
            subject, predicate, value = statement.split(" ", 2)
            properties.add(predicate)
            nodes.add(subject)
            if value.startswith("<") and not value.startswith("<<"):
                nodes.add(value)
    values = [(KG.removedCount, Literal(count))]
    if len(nodes) <= MAX_NODES:
        values += [(KG.removedNode, _iri_literal(each)) for each in nodes]
        values += [(KG.removedProperty, _iri_literal(each)) for each in properties]
    described = {statement.partition(" ")[0] for statement in chain(patched.removed, patched.added)}
    described.difference_update(map(str, touched))
    values += [(KG.described, _iri_literal(each)) for each in described]
    return [
        Quad(node, RDF.type, KG.Commit, PROV_GRAPH),
        Quad(node, KG.generation, Literal(generation), PROV_GRAPH),
        Quad(node, PROV.endedAtTime, now, PROV_GRAPH),
        *(Quad(node, KG.touched, graph, PROV_GRAPH) for graph in touched),
        *(Quad(node, predicate, value, PROV_GRAPH) for predicate, value in values),
    ]


def has_touched(store: Store, graphs: AbstractSet[NamedNode], since: int, until: int) -> bool:
    """Return whether a commit after generation `since`, up to `until`, touched any of `graphs`."""
    return any(
        quad.object in graphs
        for generation in range(since + 1, until + 1)
        for quad in store.quads_for_pattern(commit_iri(generation), KG.touched, None, PROV_GRAPH)
    )


def load_removal(store: Store, generation: int) -> Removal | None:
    """Load what commit `generation` removed; None if that is not recorded."""
    values: dict[NamedNode, set[str]] = {}
    for quad in store.quads_for_pattern(commit_iri(generation), None, None, PROV_GRAPH):
        if isinstance(quad.object, Literal):
            values.setdefault(quad.predicate, set()).add(quad.object.value)
    counts = values.get(KG.removedCount)
    if counts is None or (counts != {"0"} and KG.removedNode not in values):
        return None
    return Removal(
        *(
            frozenset(NamedNode(iri) for iri in values.get(predicate, ()))
            for predicate in (KG.removedNode, KG.removedProperty, KG.described)
        )
    )


def _iri_literal(node: str) -> Literal:
    return Literal(node[1:-1], datatype=XSD.anyURI)


def reduce_patch(store: Store, patch: Patch) -> Delta:
    """Reduce `patch` to its effective changes of ``graph/prov``. A quad both removed and added counts as added.

    Raises InvalidInputError for a quad of another graph, and for a change to the records of commits.
    """
    remove, add = (canonical_statements(PROV_GRAPH, quads) for quads in (patch.remove, patch.add))
    for line in (*remove, *add):
        if line.startswith(_COMMITS):
            subject = line.partition(" ")[0]
            raise InvalidInputError(f"{subject} is a commit record of the store. It cannot be changed.")
    removed = {line: quad for line, quad in remove.items() if line not in add and quad in store}
    added: Statements = {}
    known: dict[str, bool] = {}  # whether the store describes a subject: looking for each quad takes longer
    for line, quad in add.items():
        subject = line.partition(" ")[0]
        if subject not in known:
            known[subject] = any(True for _ in store.quads_for_pattern(quad.subject, None, None, PROV_GRAPH))
        if not known[subject] or quad not in store:
            added[line] = quad
    return Delta(PROV_GRAPH, removed, added, None)
