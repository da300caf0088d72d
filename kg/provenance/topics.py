"""Topics: `kg:about` leads from a text unit to each concept that it mentions or regulates, and to each broader one.

A unit is about the concepts that it mentions, that it defines (``kg:definesConcept`` of a definition in it), and to
which a land use of a rule in it is aligned (``skos:closeMatch``); about each concept that ``skos:broader`` leads to
from these, and about known concepts that are the same (``skos:exactMatch``). The premises are current mentions and
promoted claims.

The triples are in one inferred graph, `ABOUT_GRAPH`, which is maintained like the superclasses
(`kg.provenance.superclasses`): units whose premises change in a commit are inferred again in the same transaction.
Nothing follows from graphs that people write.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

import pyoxigraph
from pyoxigraph import NamedNode, Quad

from kg.provenance.load_records import Rule
from kg.provenance.superclasses import is_premise
from kg.sparql.terms import bind
from kg.store.difference import Delta
from kg.store.protocol import Patch, Query, named_node, select
from kg.vocabulary import ABOUT_GRAPH, ENTITIES, KG, RDF, SKOS, SOURCED

ABOUT: Final = Rule(
    "about",
    "1",
    "a text is about the concepts that it mentions, defines or regulates, and about the broader ones",
)

_PREMISES: Final = frozenset(
    {
        KG.mentions,
        KG.definedIn,
        KG.definesConcept,
        KG.landUse,
        SKOS.broader,
        SKOS.closeMatch,
        SKOS.exactMatch,
        RDF.type,
    }
)
_OF_TEXTS: Final = tuple(f"{SOURCED}{domain}/" for domain in ("climate", "hansard"))
"""Graphs of records that state no premise: their many quads need not be read."""

MENTIONED: Final = """
SELECT DISTINCT ?concept ?graph ?defines ?uses WHERE {
  {
    GRAPH ?graph { $unit kg:mentions ?concept }
  } UNION {
    GRAPH ?defines { ?definition kg:definedIn $unit } GRAPH ?graph { ?definition kg:definesConcept ?concept }
  } UNION {
    GRAPH ?defines { ?rule kg:definedIn $unit } GRAPH ?uses { ?rule kg:landUse ?use }
    GRAPH ?graph { ?use skos:closeMatch ?concept }
  }
}"""

NEXT: Final = """
SELECT DISTINCT ?from ?to ?graph WHERE {
  VALUES ?from { $concepts }
  { GRAPH ?graph { ?from skos:broader|skos:exactMatch ?to } } UNION { GRAPH ?graph { ?to skos:exactMatch ?from } }
}"""


def is_topical(graph: object) -> bool:
    """Whether topics follow from the statements of a graph. Entities of files are not concepts, so these are none."""
    return is_premise(graph) and not (isinstance(graph, NamedNode) and graph.value.startswith(ENTITIES))


def find_affected_topics(store: pyoxigraph.Store, deltas: Sequence[Delta], patch: Patch) -> tuple[set[Quad], set[Quad]]:
    """Find the topics before and after `deltas`, which are not written yet, of the units that they affect."""
    state = _State(store, deltas)
    held: set[Quad] = set()
    wanted: set[Quad] = set()
    is_filled = store.contains_named_graph(ABOUT_GRAPH)
    for unit in state.find_affected():
        wanted.update(Quad(unit, KG.about, topic, ABOUT_GRAPH) for topic in state.infer(unit))
        if is_filled:
            held.update(store.quads_for_pattern(unit, KG.about, None, ABOUT_GRAPH))
    return held, wanted


def infer_all_topics(store: pyoxigraph.Store) -> Iterator[Quad]:
    """Yield the content of `ABOUT_GRAPH` for the whole store."""
    state = _State(store, ())
    units = {
        quad.subject for quad in store.quads_for_pattern(None, KG.mentions, None, None) if is_topical(quad.graph_name)
    }
    for predicate in (KG.definesConcept, KG.landUse):
        for quad in store.quads_for_pattern(None, predicate, None, None):
            units.update(state.objects(quad.subject, KG.definedIn))
    for unit in units:
        for topic in state.infer(unit):
            yield Quad(unit, KG.about, topic, ABOUT_GRAPH)


def load_premises_of_topic(query: Query, unit: NamedNode, topic: NamedNode) -> list[tuple[NamedNode, NamedNode]]:
    """Load the concepts of `unit` from which its topic follows, each with the graph that connects them."""
    found = {
        (named_node(row["concept"]), named_node(row["graph"]))
        for row in select(query, bind(MENTIONED, unit=unit))
        if all(is_topical(row[name]) for name in ("graph", "defines", "uses") if name in row)
    }
    reaching = _find_reaching(query, {concept for concept, _ in found}, topic)
    return sorted(((concept, graph) for concept, graph in found if concept in reaching), key=str)


def _find_reaching(query: Query, concepts: set[NamedNode], topic: NamedNode) -> set[NamedNode]:
    """Find those of `concepts` from which premises lead to `topic`."""
    below: dict[NamedNode, set[NamedNode]] = defaultdict(set)
    seen, queue = set(concepts), set(concepts)
    while queue:
        rows = list(select(query, bind(NEXT, concepts=sorted(queue, key=str))))
        queue = set()
        for row in rows:
            if isinstance(row["to"], NamedNode) and is_topical(row["graph"]):
                below[row["to"]].add(named_node(row["from"]))
                queue.add(row["to"])
        queue -= seen
        seen |= queue
    reaching, left = {topic}, {topic}
    while left:
        left = {concept for each in left for concept in below[each]} - reaching
        reaching |= left
    return reaching & concepts


class _State:
    """The premises in the store as they will be after the differences."""

    def __init__(self, store: pyoxigraph.Store, deltas: Sequence[Delta]) -> None:
        self._store = store
        self._removed: set[Quad] = set()
        self._changed: list[Quad] = []
        self._of: dict[tuple[Any, Any], list[Any]] = defaultdict(list)
        """Objects that the differences add, by subject and predicate."""
        self._to: dict[tuple[Any, Any], list[Any]] = defaultdict(list)
        """Subjects that they add, by predicate and object."""
        self._topics: dict[Any, frozenset[Any]] = {}
        for delta in deltas:
            if not is_topical(delta.graph) or delta.graph.value.startswith(_OF_TEXTS):
                continue
            for quad in delta.removed.values():
                if quad.predicate in _PREMISES:
                    self._removed.add(quad)
                    self._changed.append(quad)
            for quad in delta.added.values():
                predicate = quad.predicate
                if predicate in _PREMISES:
                    self._changed.append(quad)
                    self._of[quad.subject, predicate].append(quad.object)
                    self._to[predicate, quad.object].append(quad.subject)
        self._changed = [each for each in self._changed if each.predicate != RDF.type or each.object == SKOS.Concept]

    def objects(self, subject: Any, predicate: NamedNode) -> set[Any]:
        """Get the objects of a property of `subject`."""
        found = {
            quad.object
            for quad in self._store.quads_for_pattern(subject, predicate, None, None)
            if quad not in self._removed and is_topical(quad.graph_name)
        }
        return found.union(self._of.get((subject, predicate), ()))

    def subjects(self, predicate: NamedNode, value: Any) -> set[Any]:
        """Get the subjects that have `value` as a property."""
        found = {
            quad.subject
            for quad in self._store.quads_for_pattern(None, predicate, value, None)
            if quad not in self._removed and is_topical(quad.graph_name)
        }
        return found.union(self._to.get((predicate, value), ()))

    def find_affected(self) -> set[Any]:
        """Find the text units whose topics may change."""
        if not self._has_topics():
            return set()
        units: set[Any] = set()
        parts: set[Any] = set()
        uses: set[Any] = set()
        concepts: set[Any] = set()
        for quad in self._changed:
            predicate = quad.predicate
            if predicate == KG.mentions:
                units.add(quad.subject)
            elif predicate == KG.definedIn:
                units.add(quad.object)
            elif predicate in (KG.definesConcept, KG.landUse):
                parts.add(quad.subject)
            elif predicate == SKOS.closeMatch:
                uses.add(quad.subject)
            else:
                concepts.add(quad.subject)
                if predicate == SKOS.exactMatch:
                    concepts.add(quad.object)
        for concept in self._find_below(concepts):
            units |= self._reach(KG.mentions, concept)
            parts |= self._reach(KG.definesConcept, concept)
            uses |= self._reach(SKOS.closeMatch, concept)
        for use in uses:
            parts |= self._reach(KG.landUse, use)
        for part in parts:
            units |= self.objects(part, KG.definedIn)
        return units

    def _has_topics(self) -> bool:
        """Whether anything mentions, defines or regulates a concept, before or after the differences."""
        links = (KG.mentions, KG.definesConcept, SKOS.closeMatch)
        if any(quad.predicate in links for quad in self._changed):
            return True
        return bool(self._changed) and any(
            True for link in links for _ in self._store.quads_for_pattern(None, link, None, None)
        )

    def _reach(self, predicate: NamedNode, value: Any) -> set[Any]:
        """Get the subjects that have `value` as a property before or after the differences."""
        before = {quad.subject for quad in self._store.quads_for_pattern(None, predicate, value, None)}
        return before.union(self._to.get((predicate, value), ()))

    def _find_below(self, concepts: Collection[Any]) -> set[Any]:
        """Find the concepts that are or were below `concepts`, with these."""
        found = set(concepts)
        queue = deque(concepts)
        while queue:
            concept = queue.popleft()
            near = self._reach(SKOS.broader, concept) | self._reach(SKOS.exactMatch, concept)
            near |= {quad.object for quad in self._store.quads_for_pattern(concept, SKOS.exactMatch, None, None)}
            near.update(self._of.get((concept, SKOS.exactMatch), ()))
            queue.extend(near - found)
            found |= near
        return found

    def infer(self, unit: Any) -> set[Any]:
        """Infer the topics of a text unit."""
        own = self.objects(unit, KG.mentions)
        for part in self.subjects(KG.definedIn, unit):
            own |= self.objects(part, KG.definesConcept)
            for use in self.objects(part, KG.landUse):
                own |= self.objects(use, SKOS.closeMatch)
        return {topic for concept in own for topic in self._get_topics(concept)}

    def _get_topics(self, concept: Any) -> frozenset[Any]:
        """Get a concept with the broader ones and those that are the same."""
        known = self._topics.get(concept)
        if known is None:
            found = {concept}
            queue = deque(found)
            while queue:
                each = queue.popleft()
                same = self.objects(each, SKOS.exactMatch) | self.subjects(SKOS.exactMatch, each)
                near = self.objects(each, SKOS.broader) | {other for other in same if self._is_concept(other)}
                queue.extend(near - found)
                found |= near
            known = self._topics[concept] = frozenset(found)
        return known

    def _is_concept(self, thing: Any) -> bool:
        """Whether the store describes `thing` as a concept: an identifier in another vocabulary is not a topic."""
        return isinstance(thing, NamedNode) and SKOS.Concept in self.objects(thing, RDF.type)
