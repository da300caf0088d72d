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

# The node as a number, since the engine has to look the text of each IRI in a row up.
_EDGES: Final = """{ SELECT ($part AS ?part) ?node ?other WHERE {
    VALUES (?at ?node) { ?NODES } #EDGE
  } LIMIT $most }"""
_FROM: Final = _EDGES.replace("#EDGE", "?at #PATH ?other")
_TO: Final = _EDGES.replace("#EDGE", "?other #PATH ?at")


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
    terms = [bind("$rows", rows=[(NamedNode(node), number)]) for number, node in enumerate(read)]
    every = " ".join(terms)
    paths: list[tuple[Relation, str, str]] = [(name, curie(PROPERTIES[name].value), every) for name in chosen]
    others = " ".join(term for node, term in zip(read, terms, strict=True) if not node.startswith(ENTITIES))
    if "cites" in chosen and others:
        paths.append(("cites", "|".join(curie(node.value) for node in OF_LAWS), others))
    read_parts = [(name, path, those, forward) for name, path, those in paths for forward in (True, False)]
    parts = [
        bind((_FROM if forward else _TO).replace("#PATH", path), part=number, most=MOST_EDGES).replace("?NODES", those)
        for number, (_, path, those, forward) in enumerate(read_parts)
    ]
    query = f"SELECT DISTINCT ?part ?node ?other WHERE {{ {' UNION '.join(parts)} }}"
    found: dict[str, dict[Edge, None]] = {}
    counts: Counter[int] = Counter()
    rows = [
        (int(term_text(part)), int(term_text(number)), other.value)
        for part, number, other in reader.tuples("relations of the entities", query)
        if isinstance(other, NamedNode) and part is not None and number is not None
    ]
    for place, number, end in sorted(rows, key=lambda row: row[0]):  # the engine reads the parts in any order
        at = read[number]
        name, _, _, forward = read_parts[place]
        counts[place] += 1
        if at != end:
            found.setdefault(at, {})[Edge(at, name, end) if forward else Edge(end, name, at)] = None
    if any(count >= MOST_EDGES for count in counts.values()):
        notes.add(f"Some entities have very many relations; {MOST_EDGES} of each kind were followed.")
    return {node: list(edges) for node, edges in found.items()}
