"""Expansion of hits over the relations of what they mention: the texts that are a few hops away, and the ways there.

A node is an entity, a concept, a law or a text. Hits and what they mention have hop 0. A relation leads to nodes one
hop further, from either end. A text is reached if it is such a node (it defines an entity, or cites a law), or mentions
one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode

from kg.retrieval.reader import Reader
from kg.sparql.terms import bind
from kg.store.protocol import term_text
from kg.tools.documents.nodes import FILES
from kg.tools.documents.relations import ENTITIES, MOST_NODES, Edge, Relation, load_edges

MENTIONED: Final = """
SELECT DISTINCT ?number ?thing WHERE { VALUES (?unit ?number) { $units } ?unit kg:mentions ?thing } LIMIT $most"""

# Of a node that is mentioned very often, a part of the mentions is read.
MENTIONING: Final = """{ SELECT ($thing AS ?thing) ?unit WHERE {
    { SELECT ?unit WHERE { ?unit kg:mentions $thing } LIMIT $read }
    FILTER(STRSTARTS(STR(?unit), $files))
  } LIMIT $most }"""

MENTIONS_READ: Final = 2_000
THINGS_READ: Final = 20
"""Maximum number of reached nodes of which the mentions are read."""
UNITS_OF_THING: Final = 8
_SCANNED: Final = 100

TEXTS_FIRST: Final = 6
"""Number of hits whose own relations are followed: what they define, and the laws that they cite."""
_NOT_ALPHANUMERIC: Final = re.compile(r"[\W_]+")
_SHORTEST: Final = 3
"""Least letters of a name that is searched for in a query."""

Weigh = Callable[[int, Relation | None], float]
"""Computes the part of a score for the number of hops and the relation."""


@dataclass(frozen=True, slots=True)
class Path:
    """The way to a node or text: the edges from the nearest hit, and the node that the text mentions."""

    edges: tuple[Edge, ...] = ()
    origin: str | None = None
    """The hit that it begins at."""
    thing: str | None = None
    """The node that the text mentions; None if the text is the end of the last edge itself."""

    @property
    def hops(self) -> int:
        """The number of edges."""
        return len(self.edges)

    @property
    def relation(self) -> Relation | None:
        """The relation of the last edge."""
        return self.edges[-1].rel if self.edges else None


@dataclass(slots=True)
class Expansion:
    """Texts that hits lead to."""

    paths: dict[str, Path] = field(default_factory=dict)
    """The best path to each text that is not a hit."""
    edges: dict[Edge, None] = field(default_factory=dict)
    """The relations of the hits, and of the nodes that they mention."""
    mentioned: dict[str, list[str]] = field(default_factory=dict)
    """The nodes that each hit mentions."""
    notes: set[str] = field(default_factory=set)


def expand(
    reader: Reader,
    query: str,
    hits: Mapping[str, float],
    hops: int,
    relations: Collection[Relation],
    weigh: Weigh,
    *,
    texts: bool = True,
) -> Expansion:
    """Expand the `hits` of `query` (the score of each, best first) over `relations`, at most `hops` of them.

    Without `texts`, only the relations of the hits and of what they mention are read, not the texts that they lead to.
    """
    expansion = Expansion()
    expansion.mentioned = _load_mentioned(reader, list(hits))
    if not hops or not relations:
        return expansion
    nodes: dict[str, Path] = {}
    for hit in hits:
        for node in (hit, *expansion.mentioned.get(hit, ())):
            nodes.setdefault(node, Path(origin=hit))
    frontier = order_starts(query, hits, expansion.mentioned)
    for hop in range(1, (hops if texts else 1) + 1):
        edges = load_edges(reader, frontier, relations, expansion.notes)
        if hop == 1:
            expansion.edges = {edge: None for node in frontier for edge in edges.get(node, ())}
        reached: dict[str, Path] = {}
        for node in frontier[:MOST_NODES]:
            for edge in edges.get(node, ()):
                other = edge.other(node)
                if other in nodes:
                    continue
                path = Path((*nodes[node].edges, edge), nodes[node].origin)
                if other not in reached or _rank(path, weigh) > _rank(reached[other], weigh):
                    reached[other] = path
        nodes |= reached
        frontier = sorted(reached, key=lambda node: -_rank(reached[node], weigh))
    if texts:
        _reach_texts(reader, expansion, hits, {node: path for node, path in nodes.items() if path.hops}, weigh)
    return expansion


def _rank(path: Path, weigh: Weigh) -> float:
    return weigh(path.hops, path.relation)


def _load_mentioned(reader: Reader, units: Sequence[str]) -> dict[str, list[str]]:
    if not units:
        return {}
    found: dict[str, list[str]] = defaultdict(list)
    query = bind(MENTIONED, units=[(NamedNode(unit), number) for number, unit in enumerate(units)], most=MENTIONS_READ)
    for number, thing in reader.tuples("mentions in the hits", query):
        if number is not None and isinstance(thing, NamedNode):
            found[units[int(term_text(number))]].append(thing.value)
    return {unit: sorted(things) for unit, things in found.items()}


def order_starts(query: str, hits: Mapping[str, float], mentioned: Mapping[str, Sequence[str]]) -> list[str]:
    """Order the nodes to begin at: the best hits, and nodes that the query names or that the hits mention most.

    Of the chosen nodes, one that fewer hits mention comes first: nodes that many mention have most relations, and the
    number of relations that are read is limited.
    """
    words = _normalize(query)
    weights: dict[str, float] = defaultdict(float)
    counts: dict[str, int] = defaultdict(int)
    for hit, score in hits.items():
        for thing in mentioned.get(hit, ()):
            weights[thing] += score
            counts[thing] += 1
    for thing in weights:
        name = _normalize(unquote(thing.rpartition("/")[2])) if thing.startswith(ENTITIES) else ""
        if len(name) >= _SHORTEST and name in words:
            weights[thing] += len(hits)
    things = sorted(weights, key=lambda thing: (-weights[thing], thing))[: MOST_NODES - TEXTS_FIRST]
    return [*list(hits)[:TEXTS_FIRST], *sorted(things, key=lambda thing: (counts[thing], -weights[thing], thing))]


def _normalize(text: str) -> str:
    return _NOT_ALPHANUMERIC.sub("", text.casefold())


def _reach_texts(
    reader: Reader, expansion: Expansion, hits: Collection[str], nodes: Mapping[str, Path], weigh: Weigh
) -> None:
    """Find the texts of files that are reached nodes, or mention one."""
    paths = {node: path for node, path in nodes.items() if node.startswith(FILES) and "#" in node}
    things = sorted(nodes.keys() - paths.keys(), key=lambda node: (-_rank(nodes[node], weigh), node))
    chosen = things[:THINGS_READ]
    mentioning = reader.kept_by_iri("mentioning", chosen, lambda missing: _load_mentioning(reader, missing))
    for thing, units in mentioning.items():
        path = Path(nodes[thing].edges, nodes[thing].origin, thing)
        for unit in units:
            if unit not in paths or _rank(path, weigh) > _rank(paths[unit], weigh):
                paths[unit] = path
    expansion.paths = {unit: path for unit, path in paths.items() if unit not in hits}


def _load_mentioning(reader: Reader, things: Sequence[str]) -> dict[str, list[str]]:
    """Load some texts of files that mention each of `things`."""
    parts = [
        bind(MENTIONING, thing=NamedNode(thing), files=Literal(FILES), read=_SCANNED, most=UNITS_OF_THING)
        for thing in things
    ]
    query = f"SELECT DISTINCT ?unit ?thing WHERE {{ {' UNION '.join(parts)} }}"
    found: dict[str, list[str]] = {thing: [] for thing in things}
    for unit, thing in reader.tuples("texts that mention the related entities", query):
        if isinstance(unit, NamedNode) and isinstance(thing, NamedNode):
            found[thing.value].append(unit.value)
    return found
