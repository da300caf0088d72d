"""Entities that are the same by an asserted link: one name, understood as a product here and as a term there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pyoxigraph import Literal, NamedNode

from kg.retrieval.reader import Reader, iri_of
from kg.sparql.terms import bind
from kg.store.protocol import batched, term_text
from kg.tools.documents.nodes import FILES
from kg.tools.documents.relations import ENTITIES, MOST_NODES, load_edges

MENTIONS_COUNTED: Final = 5_000
"""Maximum number of mentions of an entity that are counted."""

_COUNT: Final = """{ SELECT ($entity AS ?entity) (COUNT(?mention) AS ?count) WHERE {
    { SELECT ?mention ?unit WHERE { ?mention kg:object $entity ; oa:hasSource ?unit } LIMIT $most }
    FILTER(STRSTARTS(STR(?unit), $files))
  } }"""


def load_same(reader: Reader, entities: Sequence[str], notes: set[str]) -> dict[str, list[str]]:
    """Load the entities that each of `entities` is linked to as the same, in the order of their IRIs."""
    wanted = [entity for entity in entities if entity.startswith(ENTITIES)]
    found: dict[str, list[str]] = {}
    for portion in batched(wanted, MOST_NODES):
        edges = load_edges(reader, portion, ["same_as"], notes)
        for entity, own in edges.items():
            others = {edge.other(entity) for edge in own}
            found[entity] = sorted(other for other in others if other.startswith(ENTITIES))
    return found


def group_entities(entities: Iterable[str], same: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Group entities that are linked as the same, directly or by others of them, in their order."""
    groups: dict[str, list[str]] = {}
    for entity in entities:
        joined = [entity]
        for group in {id(groups[other]): groups[other] for other in same.get(entity, ()) if other in groups}.values():
            joined = [*group, *joined]
        for each in joined:
            groups[each] = joined
    return list({id(group): group for group in groups.values()}.values())


def count_mentions(reader: Reader, entities: Iterable[str]) -> dict[str, int]:
    """Count the mentions of entities in the texts of files, each up to `MENTIONS_COUNTED`."""
    parts = [
        bind(_COUNT, entity=NamedNode(entity), files=Literal(FILES), most=MENTIONS_COUNTED)
        for entity in sorted(set(entities))
    ]
    if not parts:
        return {}
    query = f"SELECT ?entity ?count WHERE {{ {' UNION '.join(parts)} }}"
    return {iri_of(row["entity"]): int(term_text(row["count"])) for row in reader.rows("their mentions", query)}
