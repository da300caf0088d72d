"""The names of Wikidata's items and properties that are in the graph, for the reading of questions."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyoxigraph import Literal

from kg.fuzzy_names import Match, Names, fold
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.concept_index import NAMED, Concepts, load_concepts
from kg.retrieval.reader import Reader, iri_of
from kg.sparql.terms import bind
from kg.store.protocol import Term, preference
from kg.vocabulary import RDFS, SCHEMA, SKOS, WD, WDT

MISSPELT: Final = 0.9
"""Least similarity of a name that a question misspells."""
_CLEAR: Final = 0.04
"""Least distance to the next item of a misspelt name."""
_QID: Final = re.compile(r"q[1-9][0-9]{0,18}")
_NO_NAMES: Final = frozenset(
    ("what", "who", "where", "when", "how", "which", "is", "was", "are", "were", "the", "a", "an", "of", "in", "on",
     "at", "by", "to", "for", "and", "it", "its", "he", "she", "they", "his", "her", "did", "does", "do", "has", "had",
     "have", "s", "year", "born")
)  # fmt: skip
"""Words that are no name of an item by themselves, though some works are called so."""

HUMANS: Final = """
SELECT ?human WHERE { ?human $instanceOf $human }"""

PROPERTIES: Final = """
SELECT ?property ?name ?value WHERE {
  ?property a wikibase:Property . ?property ?name ?value
  FILTER(?name IN (rdfs:label, skos:altLabel, schema:description))
}"""


@dataclass(frozen=True, slots=True)
class Property:
    """A property of Wikidata with its names and description, English ones."""

    id: str
    label: str | None
    aliases: tuple[str, ...] = ()
    description: str | None = None


class ItemNames:
    """Wikidata's items by their folded names."""

    def __init__(self, concepts: Concepts, humans: frozenset[str]) -> None:
        self.concepts: Final = concepts
        labels: dict[str, list[str]] = defaultdict(list)
        names: dict[str, list[str]] = defaultdict(list)
        families: dict[str, set[str]] = defaultdict(set)
        self._known: Final = {
            concept.entity for concept in concepts.by_iri.values() if concept.entity.startswith(WD.iri)
        }
        for concept in concepts.by_iri.values():
            if concept.entity not in self._known:
                continue
            labels[fold(concept.label)].append(concept.entity)
            for name in dict.fromkeys(fold(name) for name in concept.names):
                names[name].append(concept.entity)
            words = fold(concept.label).split()
            if concept.entity in humans and len(words) > 1:
                families[words[-1]].add(concept.entity)
        self._labels: Final = labels
        self._names: Final = names
        self._families: Final = families

    def is_name(self, name: str) -> bool:
        """Whether folded words are a name of an item, its id, or the family name of one person alone."""
        return bool(name not in _NO_NAMES and self.find(name))

    def find(self, name: str) -> Sequence[str]:
        """Find the items with a folded name: by label, else by alias, else by family name or id."""
        if found := self._labels.get(name) or self._names.get(name):
            return found
        if _QID.fullmatch(name) and (iri := WD.iri + name.upper()) in self._known:
            return [iri]
        family = self._families.get(name, set())
        return list(family) if len(family) == 1 else ()

    def find_all(self, name: str) -> Sequence[str]:
        """Find the items that have a folded name as label or alias."""
        return self._names.get(name, ())

    def names_of(self, iri: str) -> set[str]:
        """Get all folded names of an item; none if it is not here."""
        concept = self.concepts.at(iri)
        return {fold(name) for name in concept.names} if concept else set()

    def find_misspelt(self, text: str) -> tuple[str, str] | None:
        """Find the item with a name that is clearly the nearest to `text`: its IRI and that name."""
        found = [(match, concept) for match, concept in self.concepts.like(text, 5) if concept.entity in self._known]
        if not found or found[0][0].score < MISSPELT:
            return None
        if len(found) > 1 and found[0][0].score - found[1][0].score < _CLEAR:
            return None
        return found[0][1].entity, found[0][0].name


def load_item_names(kg: KnowledgeGraph) -> ItemNames:
    """Load the names of items. Cached with the concepts, which can be slightly older than the last commit."""
    concepts = load_concepts(kg)
    key = "names of items", concepts.generation, len(concepts)
    kept: ItemNames | None = kg.memory.get(key)
    if kept is not None:
        return kept
    query = bind(HUMANS, instanceOf=WDT.P31, human=WD.Q5)
    rows = Reader(kg).rows("persons", query)
    return kg.memory.keep(key, ItemNames(concepts, frozenset(iri_of(row["human"]) for row in rows)))


class PropertyNames:
    """Wikidata's properties by their folded names."""

    def __init__(self, properties: Mapping[str, Property]) -> None:
        self.properties: Final = properties
        self._listed: Final = list(properties.values())
        self._spelt: Final = Names(
            [(number, name) for number, each in enumerate(self._listed) for name in (each.label, *each.aliases) if name]
        )
        self._by_name: Final[dict[str, dict[str, bool]]] = defaultdict(dict)
        for pid, each in sorted(properties.items(), key=lambda item: int(item[0][1:])):
            for alias in each.aliases:
                self._by_name[fold(alias)].setdefault(pid, False)
            if each.label:
                self._by_name[fold(each.label)][pid] = True

    def find(self, name: str) -> Mapping[str, bool]:
        """Find the properties with a folded name, in singular or plural, and whether it is the label of each."""
        for form in (name, name.removesuffix("s"), f"{name}s"):
            if found := self._by_name.get(form):
                return found
        return {name.upper(): True} if name.upper() in self.properties else {}

    def find_similar(self, text: str, most: int) -> list[tuple[Match, Property]]:
        """Find properties with a name similar to `text`, best first."""
        found = [(match, self._listed[match.number]) for match in self._spelt.nearest(text, most)]
        return [(match, each) for match, each in found if match.score >= NAMED]


def load_property_names(reader: Reader) -> PropertyNames:
    """Load the names of all properties of Wikidata that the graph describes. Cached until the next commit."""

    def read(rows: list[dict[str, Term]]) -> PropertyNames:
        said: dict[str, dict[str, list[Literal]]] = defaultdict(lambda: defaultdict(list))
        for row in rows:
            iri, value = iri_of(row["property"]), row["value"]
            if iri.startswith(WD.iri + "P") and isinstance(value, Literal) and preference(value)[0] < 3:
                said[iri.removeprefix(WD.iri)][iri_of(row["name"])].append(value)
        return PropertyNames({pid: _to_property(pid, values) for pid, values in said.items()})

    return reader.kept("names of properties", PROPERTIES, read)


def _to_property(pid: str, said: Mapping[str, Sequence[Literal]]) -> Property:
    labels = sorted(said.get(RDFS.label.value, ()), key=preference)
    descriptions = sorted(said.get(SCHEMA.description.value, ()), key=preference)
    names = [*labels[1:], *sorted(said.get(SKOS.altLabel.value, ()), key=preference)]
    return Property(
        pid,
        labels[0].value if labels else None,
        tuple(dict.fromkeys(name.value for name in names)),
        descriptions[0].value if descriptions else None,
    )
