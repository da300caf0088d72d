"""The quads of one entity, for the MCP resource ``kg://entity/{iri}``."""

from __future__ import annotations

from itertools import groupby
from typing import Final

from pydantic import BaseModel, Field
from pyoxigraph import NamedNode, Quad, RdfFormat, serialize

from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.reader import Reader, iri_of
from kg.sparql.terms import bind
from kg.tools.entities.dereference import graph_of, parse_iri
from kg.vocabulary import PREFIXES

ENTITY_TRIPLES: Final = 2_000
"""Maximum number of quads of one entity. Truncation is reported."""

ABOUT: Final = """
SELECT DISTINCT ?graph ?property ?value WHERE { GRAPH ?graph { $iri ?property ?value } }"""


class EntityQuad(BaseModel):
    """One quad about an entity."""

    graph: str
    property: str
    value: str = Field(description="The value as an N-Triples term")


class Entity(BaseModel):
    """All quads with one IRI as the subject."""

    iri: str
    quads: list[EntityQuad]
    truncated: bool = False
    generation: int


def load_entity(kg: KnowledgeGraph, iri: str) -> tuple[Entity, str]:
    """Load the quads about `iri`, also as Turtle with one block for each graph.

    Raises InvalidInputError for an invalid IRI and NotFoundError for one that is not a subject in any graph.
    """
    node = parse_iri(iri)
    reader = Reader(kg)
    rows = reader.rows("entity", bind(ABOUT, iri=node), all_graphs=True)
    if not rows:
        raise NotFoundError(f"No graph has quads about <{iri}>. search and family_overview return valid IRIs.")
    rows.sort(key=lambda row: (str(row["graph"]), str(row["property"]), str(row["value"])))
    cut = rows[:ENTITY_TRIPLES]
    quads = [
        Quad(node, NamedNode(iri_of(row["property"])), row["value"], NamedNode(iri_of(row["graph"]))) for row in cut
    ]
    found = [EntityQuad(graph=graph_of(quad), property=quad.predicate.value, value=str(quad.object)) for quad in quads]
    shown = Entity(
        iri=iri, quads=found, truncated=len(cut) < len(rows) or reader.truncated, generation=reader.kg.generation
    )
    used = [iri, *(text for quad in found for text in (quad.property, quad.value))]
    prefixes = {name: start for name, start in PREFIXES.items() if any(start in text for text in used)}
    blocks = [f"# generation {shown.generation}{', truncated' if shown.truncated else ''}"]
    for graph, said in groupby(quads, graph_of):  # they are sorted by graph
        turtle = serialize((quad.triple for quad in said), format=RdfFormat.TURTLE, prefixes=prefixes)
        blocks.append(f"# graph <{graph}>\n{(turtle or b'').decode()}")
    return shown, "\n".join(blocks)
