"""Relations between entities: their names in tools, their properties, and the edges around nodes, within limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pyoxigraph import NamedNode

from kg.retrieval.reader import Reader
from kg.sparql.terms import bind
from kg.store.protocol import term_text
from kg.vocabulary import BASE, CITO, DCTERMS, ELI, KG, curie

Relation = Literal[
    "defines",
    "refers_to",
    "part_of",
    "uses",
    "depends_on",
    "precedes",
    "owned_by",
    "located_in",
    "cites",
    "same_as",
    "related_to",
]
"""The names of relations that tools take and return."""

PROPERTIES: Final[Mapping[Relation, NamedNode]] = {
    "defines": KG.defines,
    "refers_to": DCTERMS.references,
    "part_of": KG.partOf,
    "uses": KG.uses,
    "depends_on": KG.dependsOn,
    "precedes": KG.precedes,
    "owned_by": KG.ownedBy,
    "located_in": KG.within,
    "cites": CITO.cites,
    "same_as": KG.sameAsCandidate,
    "related_to": KG.relatesTo,
}
"""The property of each relation."""

OF_LAWS: Final = (
    ELI.cites, KG.authorizedBy, KG.defersTo, KG.exceptAsProvidedIn, KG.incorporates, KG.mustComplyWith,
    KG.notwithstanding, KG.references, KG.subjectTo, KG.supersedes, KG.supplements, KG.usesDefinitionIn,
)  # fmt: skip
"""The properties by which a text cites a law. They are the relation ``cites`` too."""

BY_PROPERTY: Final[Mapping[str, Relation]] = {
    **{node.value: name for name, node in PROPERTIES.items()},
    **{node.value: "cites" for node in OF_LAWS},
}
"""The relation of each property."""

ENTITIES: Final = BASE + "id/entity/"
"""IRI prefix of the entities of files."""

MOST_NODES: Final = 24
"""Maximum number of nodes whose edges are read at once."""
MOST_EDGES: Final = 40
"""Maximum number of edges of one relation that are read in one direction."""

_FROM: Final = "{ SELECT ($number AS ?part) ?at ?other WHERE { VALUES ?at { $nodes } ?at #PATH ?other } LIMIT $most }"
_TO: Final = "{ SELECT ($number AS ?part) ?at ?other WHERE { VALUES ?at { $nodes } ?other #PATH ?at } LIMIT $most }"


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """A relation that is asserted: a text states it surely enough, a person accepted it, or a source has it."""

    src: str
    rel: Relation
    dst: str

    def other(self, node: str) -> str:
        """Get the node at the other end."""
        return self.dst if node == self.src else self.src


def load_edges(
    reader: Reader, nodes: Sequence[str], relations: Collection[Relation], notes: set[str]
) -> Mapping[str, list[Edge]]:
    """Load the edges of these relations from and to each of the first `MOST_NODES` nodes.

    Of each relation and direction `MOST_EDGES` are read, in the order of `nodes`: those with very many edges should be
    last. Adds a note if there may be more.
    """
    chosen = [name for name in PROPERTIES if name in relations]
    if not nodes or not chosen:
        return {}
    read = list(nodes[:MOST_NODES])
    paths: list[tuple[Relation, str, list[str]]] = [(name, curie(PROPERTIES[name].value), read) for name in chosen]
    others = [node for node in read if not node.startswith(ENTITIES)]
    if "cites" in chosen and others:
        paths.append(("cites", "|".join(curie(node.value) for node in OF_LAWS), others))
    read_parts = [(name, path, those, forward) for name, path, those in paths for forward in (True, False)]
    parts = [
        bind(
            (_FROM if forward else _TO).replace("#PATH", path),
            number=number,
            nodes=[NamedNode(node) for node in those],
            most=MOST_EDGES,
        )
        for number, (_, path, those, forward) in enumerate(read_parts)
    ]
    query = f"SELECT DISTINCT ?part ?at ?other WHERE {{ {' UNION '.join(parts)} }}"
    found: dict[str, dict[Edge, None]] = {}
    counts: Counter[int] = Counter()
    for part, at, other in reader.tuples("relations of the entities", query):
        if not (isinstance(at, NamedNode) and isinstance(other, NamedNode) and part is not None):
            continue
        number = int(term_text(part))
        name, _, _, forward = read_parts[number]
        counts[number] += 1
        edge = Edge(at.value, name, other.value) if forward else Edge(other.value, name, at.value)
        if at != other:
            found.setdefault(at.value, {})[edge] = None
    if any(count >= MOST_EDGES for count in counts.values()):
        notes.add(f"Some entities have very many relations; {MOST_EDGES} of each kind were followed.")
    return {node: list(edges) for node, edges in found.items()}
