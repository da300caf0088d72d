"""An index of the concepts of the graph by name and id, and the resolution of arguments that name concepts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from pyoxigraph import Literal, NamedNode

from kg.errors import InvalidInputError, NotFoundError
from kg.fuzzy_names import Match, Names, fold, nearest
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.reader import Reader, iri_of, share
from kg.sparql.graph_exclusion import type_key
from kg.sparql.terms import bind, is_iri
from kg.store.protocol import Rows, Term, batched, preference
from kg.text import name_or_quote, quoted
from kg.vocabulary import BASE, KG, PREFIXES, SKOS

NAMES_READ: Final = 400_000
"""Maximum number of names of concepts. Truncation is reported."""
NAMED: Final = 0.55
"""Minimum similarity of a name that counts as found."""
NEAR: Final = 5
"""Number of concepts that are suggested for an unknown one."""
_AT_ONCE: Final = 2_000

_CONCEPT_ROOT: Final = "cpr://concept/"
_CODE_LISTS: Final = BASE + "vocab/"
_ID: Final = re.compile(r"[QPLM][1-9][0-9]{0,18}")

CONCEPTS: Final = """
SELECT ?concept WHERE { ?concept a skos:Concept }"""

# Joined in this process, in half the time that the store takes.
PAIRS: Final = """
SELECT ?concept ?value WHERE { ?concept $property ?value }"""

NAMES_IN: Final = """
SELECT ?concept ?value WHERE { ?concept $property ?value FILTER(REGEX(LANG(?value), $languages)) }"""

OTHER_LABELS: Final = """
SELECT ?concept ?value WHERE { VALUES ?concept { $concepts } ?concept skos:prefLabel ?value }"""

LANGUAGES: Final = """
SELECT DISTINCT ?language WHERE { ?document a kg:PolicyDocument ; schema:inLanguage ?language }"""

_READS: Final = frozenset(
    {type_key(SKOS.Concept.value), *(each.value for each in (KG.wikibaseEntity, SKOS.prefLabel, SKOS.altLabel))}
)
"""The properties and the class that concepts and their names are read from (`kg.sparql.graph_exclusion.find_reads`)."""

MERGED: Final = """
SELECT DISTINCT ?from ?to WHERE { VALUES ?from { $entities } ?from owl:sameAs ?to }"""


@dataclass(frozen=True, slots=True)
class Concept:
    """A concept with its label and all its names, English first, then in the languages of the documents."""

    iri: str
    label: str
    names: tuple[str, ...]
    entity: str
    """The subject of its statements: the item for the climate concept store, else the concept itself."""

    @property
    def qid(self) -> str:
        """The id in tools: the QID of a climate concept, the IRI of any other."""
        return self.iri.removeprefix(_CONCEPT_ROOT)

    @property
    def shown(self) -> str:
        """The id with the label, for messages."""
        return f"{self.qid} ({name_or_quote(self.label)})"


class Concepts:
    """All concepts at `generation`, except the codes of code lists."""

    def __init__(
        self, concepts: Iterable[Concept], generation: int, *, languages: str | None = None, truncated: bool = False
    ) -> None:
        self.by_iri: Final = {concept.iri: concept for concept in concepts}
        self.generation = generation
        """A generation of which they are known to be those: the one that was read, or a later one."""
        self.languages: Final = languages
        """The pattern of the languages of their names; None if they have none."""
        self.truncated: Final = truncated
        self._by_entity: Final = {concept.entity: concept for concept in self.by_iri.values()}

    def __len__(self) -> int:
        return len(self.by_iri)

    def at(self, iri: str) -> Concept | None:
        """Get the concept with this IRI, or with this entity."""
        return self.by_iri.get(iri) or self._by_entity.get(iri)

    def label_of(self, iri: str) -> str | None:
        """Get the label of a concept or of its entity, if known."""
        concept = self.at(iri)
        return concept.label if concept else None

    @cached_property
    def _ordered(self) -> Sequence[Concept]:
        return list(self.by_iri.values())

    @cached_property
    def _names(self) -> Names:
        return Names([(number, name) for number, concept in enumerate(self._ordered) for name in concept.names])

    @cached_property
    def _by_id(self) -> Mapping[str, Sequence[Concept]]:
        found: dict[str, list[Concept]] = defaultdict(list)
        for concept in self.by_iri.values():
            found[concept.iri.rpartition("/")[2]].append(concept)
        return found

    @cached_property
    def _entity_bases(self) -> Sequence[str]:
        return sorted({entity.rpartition("/")[0] + "/" for entity in self._by_entity})

    def like(self, text: str, most: int) -> list[tuple[Match, Concept]]:
        """Find at most `most` concepts with a name similar to `text`, best first."""
        found = [(each, self._ordered[each.number]) for each in self._names.nearest(text, most)]
        return [(each, concept) for each, concept in found if each.score >= NAMED]

    @cached_property
    def _by_name(self) -> Mapping[str, Sequence[Concept]]:
        found: dict[str, list[Concept]] = defaultdict(list)
        for concept in self.by_iri.values():
            for name in {fold(name) for name in concept.names}:
                found[name].append(concept)
        return found

    def called(self, text: str) -> Sequence[Concept]:
        """Find the concept with this label or alias, if no other has it."""
        found = self._by_name.get(fold(text), ())
        return found if len(found) == 1 else ()

    def named(self, text: str) -> Sequence[Concept]:
        """Find concepts by QID or IRI. A QID can match in several Wikibases; the climate concept store comes first."""
        wanted = plain_id(text)
        concept = self.at(wanted)
        if concept is not None:
            return [concept]
        own = self.by_iri.get(_CONCEPT_ROOT + wanted)
        return [own] if own else self._by_id.get(wanted, ())

    def entities_called(self, text: str) -> list[NamedNode]:
        """List the possible nodes of a QID or an IRI in all known Wikibases."""
        wanted = plain_id(text)
        if _ID.fullmatch(wanted):
            return [NamedNode(base + wanted) for base in self._entity_bases]
        wanted = wanted.removeprefix(_CONCEPT_ROOT)
        return [NamedNode(wanted)] if wanted.startswith(("http://", "https://")) and is_iri(wanted) else []

    def near(self, text: str) -> str:
        """Suggest concepts for an unknown id or name, in one or two sentences."""
        if not self.by_iri:
            return "No concepts are loaded."
        wanted = plain_id(text).rpartition("/")[2]
        if _ID.fullmatch(wanted):
            alike = [each for each in self._by_id if each[:2] == wanted[:2]] or list(self._by_id)
            ids = nearest(wanted, alike[:_AT_ONCE], NEAR)
            close = [concept for each in ids for concept in self._by_id[each]]
        else:
            close = [concept for _, concept in self.like(wanted.replace("_", " "), NEAR)]
        if not close:
            return f"concept_find finds the {len(self):,} concepts by name."
        return f"Similar: {', '.join(concept.shown for concept in close[:NEAR])}. concept_find finds concepts by name."


def load_concepts(kg: KnowledgeGraph, *, fresh: bool = False) -> Concepts:
    """Load the concepts, cached until a commit changes them or the languages of documents.

    Without `fresh` they can be those of another state (`kg.retrieval.reader.share`).
    """

    def is_current(concepts: Concepts) -> bool:
        if concepts.generation == kg.generation:
            return True
        if kg.store.find_last_change(_READS) > min(concepts.generation, kg.generation):
            return False
        if concepts.languages is not None and _languages(_Queries(kg)) != concepts.languages:
            return False
        concepts.generation = max(concepts.generation, kg.generation)
        return True

    return share(kg, "concepts", lambda: _read(kg), is_current, what="concepts", fresh=fresh)


def get_loaded_concepts(kg: KnowledgeGraph) -> Concepts | None:
    """Get the cached concepts without a query; None before the first load."""
    kept: tuple[Concepts, float, float] | None = kg.memory.get("concepts")
    return None if kept is None else kept[0]


class _Queries:
    """Queries with a row limit that is high enough for names."""

    def __init__(self, kg: KnowledgeGraph) -> None:
        self.kg = kg
        self.truncated = False

    def pairs(self, query: str) -> Iterable[tuple[Term | None, ...]]:
        answer = self.kg.query(query, limit=NAMES_READ)
        if not isinstance(answer.result, Rows):
            raise TypeError("a SELECT returned no rows")
        self.truncated = self.truncated or answer.truncated
        return answer.result.rows


def _read(kg: KnowledgeGraph) -> Concepts:
    reading = _Queries(kg)
    found = {
        concept.value
        for (concept,) in reading.pairs(CONCEPTS)
        if isinstance(concept, NamedNode) and not concept.value.startswith(_CODE_LISTS)
    }
    if not found:
        return Concepts((), kg.generation)
    entities = {
        concept.value: entity.value
        for concept, entity in reading.pairs(bind(PAIRS, property=KG.wikibaseEntity))
        if isinstance(concept, NamedNode) and isinstance(entity, NamedNode)
    }
    languages = _languages(reading)
    labels: dict[str, list[Literal]] = defaultdict(list)
    aliases: dict[str, list[Literal]] = defaultdict(list)
    for into, name in ((labels, SKOS.prefLabel), (aliases, SKOS.altLabel)):
        for concept, value in reading.pairs(bind(NAMES_IN, property=name, languages=Literal(languages))):
            if isinstance(concept, NamedNode) and isinstance(value, Literal) and concept.value in found:
                into[concept.value].append(value)
    silent = sorted(found - labels.keys())[: NAMES_READ // 10]
    for portion in batched(silent, _AT_ONCE):
        nodes = [NamedNode(iri) for iri in portion]
        for concept, value in reading.pairs(bind(OTHER_LABELS, concepts=nodes)):
            if isinstance(concept, NamedNode) and isinstance(value, Literal):
                labels[concept.value].append(value)
    concepts = []
    for iri in sorted(found):
        own = sorted(labels.get(iri, ()), key=preference)
        others = sorted((*own[1:], *aliases.get(iri, ())), key=preference)
        names = tuple(dict.fromkeys(name.value for name in (*own[:1], *others)))
        label = names[0] if own else iri.rpartition("/")[2]
        concepts.append(Concept(iri, label, names, entities.get(iri, iri)))
    return Concepts(concepts, kg.generation, languages=languages, truncated=reading.truncated)


def _languages(reading: _Queries) -> str:
    """Build a pattern of language tags of names: English, none, "mul", and the languages of documents."""
    tags = {"en", "mul"}
    for (language,) in reading.pairs(LANGUAGES):
        if isinstance(language, Literal):
            tags.add(re.sub("[^a-z0-9]", "", language.value.casefold().partition("-")[0]))
    return f"^(({'|'.join(sorted(tags - {''}))})(-.*)?)?$"


def resolve_concepts(reader: Reader, argument: str, texts: Sequence[str]) -> list[Concept]:
    """Resolve QIDs or IRIs to concepts, each once.

    Raises InvalidInputError for an id that cannot be an item, such as a property or a name, and NotFoundError for an
    unknown item. Both suggest similar ones.
    """
    found: dict[str, Concept] = {}
    for text in texts:
        concept = one(reader, argument, text)
        found[concept.iri] = concept
    return list(found.values())


def one(reader: Reader, argument: str, text: str) -> Concept:
    """Resolve a QID, an IRI or a name that one concept has. Raises as `resolve_concepts` does."""
    concepts = load_concepts(reader.kg)
    candidates = concepts.named(text) or concepts.called(text)
    if not candidates:
        check_item(concepts, argument, text)
        concepts = load_concepts(reader.kg, fresh=True)
        candidates = concepts.named(text) or _merged(reader, concepts, text)
    if not candidates:
        raise NotFoundError(f"{argument}: Unknown concept {quoted(text)}. {concepts.near(text)}")
    if len(candidates) > 1:
        several = ", ".join(f"{concept.iri} ({name_or_quote(concept.label)})" for concept in candidates[:NEAR])
        raise InvalidInputError(
            f"{argument}: {quoted(text)} is a QID in more than one Wikibase. Pass an IRI: {several}."
        )
    return candidates[0]


def plain_id(text: str) -> str:
    """Normalize an id: remove angle brackets, and expand a prefixed name (wd:Q42)."""
    wanted = text.strip().removeprefix("<").removesuffix(">")
    prefix, colon, local = wanted.partition(":")
    return PREFIXES[prefix] + local if colon and prefix in PREFIXES and not local.startswith("//") else wanted


def check_item(concepts: Concepts, argument: str, text: str) -> None:
    """Raise InvalidInputError unless `text` is a QID or an IRI."""
    wanted = plain_id(text)
    last = wanted.rpartition("/")[2]
    if last.startswith("P") and _ID.fullmatch(last):
        raise InvalidInputError(
            f"{argument}: {last} is a property, not an item. concept_properties counts its statements, and "
            "concept_neighbors follows it if passed in predicates."
        )
    if last[:1] in ("L", "M") and _ID.fullmatch(last):
        raise InvalidInputError(f"{argument}: {last} is not an item. An item has a QID, like Q1167.")
    if not _ID.fullmatch(wanted) and not re.match(r"[a-z][a-z0-9+.-]*://", wanted, re.IGNORECASE):
        raise InvalidInputError(
            f"{argument}: {quoted(text)} is not a QID. Pass Q and a number, like Q1167, or the IRI of a concept of "
            f"another Wikibase. {concepts.near(wanted)}"
        )


def _merged(reader: Reader, concepts: Concepts, text: str) -> Sequence[Concept]:
    """Find the concept that the one with the id `text` was merged into."""
    entities = concepts.entities_called(text)
    if not entities:
        return ()
    rows = reader.rows("merged into", bind(MERGED, entities=entities))
    targets = (concepts.at(iri_of(row["to"])) for row in rows if isinstance(row["to"], NamedNode))
    return list(dict.fromkeys(target for target in targets if target))
