"""The names of all entities in memory, for lookups of similar names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from pyoxigraph import NamedNode

from kg.fuzzy_names import Match, Names
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.concept_index import NAMED, NAMES_READ
from kg.retrieval.reader import share
from kg.sparql.graph_exclusion import find_reads
from kg.store.protocol import Rows, term_text
from kg.tools.documents.nodes import list_types
from kg.vocabulary import SKOS

NAMES: Final = """
SELECT ?entity ?type ?property ?name WHERE {
  ?entity a kg:Entity ; kg:entityType ?type ; ?property ?name FILTER(?property IN (skos:prefLabel, skos:altLabel))
}"""


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity with its names."""

    iri: str
    type: str
    name: str
    aliases: tuple[str, ...]


@dataclass(frozen=True)
class EntityNames:
    """All entities at `generation`."""

    entities: Sequence[Entity]
    generation: int
    truncated: bool = False

    @cached_property
    def _names(self) -> Names:
        listed = enumerate(self.entities)
        return Names([(number, name) for number, each in listed for name in (each.name, *each.aliases)])

    def find(self, text: str, type_: str | None, most: int) -> list[tuple[Match, Entity]]:
        """Find at most `most` entities with a name similar to `text`, best first."""
        # The type is checked after the search, among more entities than are wanted.
        found = [(each, self.entities[each.number]) for each in self._names.nearest(text, 10 * most)]
        named = [pair for pair in found if pair[0].score >= NAMED and (type_ is None or pair[1].type == type_)]
        return named[:most]


def load_entity_names(kg: KnowledgeGraph) -> EntityNames:
    """Load the entities, cached until a commit changes them. They can be those of another state (`share`)."""

    def is_current(names: EntityNames) -> bool:
        return kg.store.find_last_change(find_reads(NAMES)) <= min(names.generation, kg.generation)

    return share(kg, "entities", lambda: _read(kg), is_current, what="entities")


def _read(kg: KnowledgeGraph) -> EntityNames:
    answer = kg.query(NAMES, limit=NAMES_READ)
    if not isinstance(answer.result, Rows):
        raise TypeError("a SELECT returned no rows")
    types = list_types()
    kinds: dict[str, str] = {}
    labels: dict[str, str] = {}
    aliases: dict[str, set[str]] = defaultdict(set)
    for entity, kind, name, text in answer.result.rows:
        if not (isinstance(entity, NamedNode) and isinstance(kind, NamedNode) and text is not None):
            continue
        code = kind.value.rpartition("/")[2]
        kinds[entity.value] = types.get(code, code)
        if name == SKOS.prefLabel:
            labels[entity.value] = term_text(text)
        else:
            aliases[entity.value].add(term_text(text))
    entities = [Entity(iri, kinds[iri], name, tuple(sorted(aliases[iri]))) for iri, name in sorted(labels.items())]
    return EntityNames(entities, answer.generation, answer.truncated)
