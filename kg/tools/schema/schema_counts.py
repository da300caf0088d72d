"""The counts of a measured schema, and their update for the commits after it.

An update counts the nodes that later commits can have affected in two checkpoints, that of the counts and a newer one,
and adds the difference. Affected are the subjects of the quads that were added or removed, and the subjects of quads
whose object gained or lost a class, since a property counts the classes of its values. So an update takes time by the
change, not by the store. It gives up if the change is large: then everything is measured again.
"""

from __future__ import annotations

import logging
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Store

from kg.ontology import load_declared_terms, load_used_vocabulary
from kg.provenance.superclasses import get_subclasses
from kg.shacl.incremental import get_generation, load_touched_graphs
from kg.sparql.measured_schema import ClassUse, FamilyUse, PropertyUse, Schema
from kg.store.commits import HEAD
from kg.store.protocol import Term
from kg.vocabulary import (
    ABOUT_GRAPH,
    BASE,
    CATALOG_GRAPH,
    CODES_GRAPH,
    KG,
    PROPERTIES_GRAPH,
    PROV_GRAPH,
    RDF,
    SHAPES_GRAPH,
    SUPERCLASS_GRAPH,
    TBOX_GRAPH,
    commit_iri,
)

log = logging.getLogger(__name__)

UNMEASURED_GRAPHS: Final[Mapping[str, NamedNode]] = {
    "tbox": TBOX_GRAPH,
    "codes": CODES_GRAPH,
    "shapes": SHAPES_GRAPH,
    "catalog": CATALOG_GRAPH,
    "superclasses": SUPERCLASS_GRAPH,
    "about": ABOUT_GRAPH,
    "properties": PROPERTIES_GRAPH,
}
"""The graphs that describe content or follow from it, by their names in queries. They are in no count of content."""

MAX_QUADS: Final = 50_000
"""Most quads of changed graphs and affected nodes that an update reads; after a larger change all is measured."""
EXAMPLE_CHARACTERS: Final = 160
"""Maximum characters of a literal in an example."""
FAMILY: Final = rf"^{re.escape(BASE)}graph/([^/]+(/[^/]+)?).*$"
"""Pattern of the names of graphs; its first group is the family."""

_EXAMPLES_READ: Final = 20_000
"""Most quads that are read for another example: more than the graphs that ship have of any property."""
_UNMEASURED: Final = frozenset(UNMEASURED_GRAPHS.values())


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of generation `generation`.

    `classes` and `properties` are those of content, without the superclasses that are inferred: `anchors` has their
    instances. `catalog_classes` and `catalog_properties` are those of the catalog.
    """

    generation: int
    measured_at: str
    classes: Mapping[str, ClassUse]
    properties: Mapping[str, PropertyUse]
    holdings: Mapping[str, FamilyUse]
    anchors: Mapping[str, tuple[int, str]]
    """Number of instances and an example, by superclass."""
    catalog_classes: Mapping[str, ClassUse] = field(default_factory=dict)
    catalog_properties: Mapping[str, PropertyUse] = field(default_factory=dict)

    def build_schema(self) -> Schema:
        """Build the schema with these counts and the terms of the running version."""
        measured = dict(self.classes)
        for iri, (count, example) in self.anchors.items():
            measured[iri] = _merge_subclasses(measured, iri, count, example)
        # The catalog is in no count of content, but its classes and its own properties are queried like others.
        measured = {**self.catalog_classes, **measured}
        return Schema(
            generation=self.generation,
            triples=sum(use.triples for use in self.properties.values()),
            classes=dict(sorted(measured.items(), key=lambda use: (-use[1].entities, use[0]))),
            properties={**self.catalog_properties, **self.properties},
            terms=load_declared_terms(),
            unmeasured=load_used_vocabulary(),
            graphs={name: family.quads for name, family in self.holdings.items()},
            families={name: frozenset(family.properties) for name, family in self.holdings.items()},
            holdings=self.holdings,
            measured_at=self.measured_at,
        )

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Counts:
        """Read the counts that `dataclasses.asdict` has made JSON of. Raises ValueError, KeyError or TypeError."""
        for name in ("classes", "catalog_classes"):
            content[name] = {
                iri: ClassUse(**{**use, "properties": _load_uses(use["properties"])})
                for iri, use in content[name].items()
            }
        for name in ("properties", "catalog_properties"):
            content[name] = _load_uses(content[name])
        content["holdings"] = {name: FamilyUse(**family) for name, family in content["holdings"].items()}
        content["anchors"] = {iri: (int(count), str(example)) for iri, (count, example) in content["anchors"].items()}
        content["generation"] = int(content["generation"])
        return cls(**content)


def _load_uses(content: Mapping[str, Any]) -> dict[str, PropertyUse]:
    return {iri: PropertyUse(**use) for iri, use in content.items()}


def get_family(graph: str) -> str:
    """Get the family of a graph: ``src/climate``, ``prov``. A graph outside ``graph/`` is its own family."""
    parts = graph.removeprefix(BASE + "graph/")
    return graph if parts == graph else "/".join(parts.split("/")[:2])


def sort_uses(uses: Mapping[str, PropertyUse]) -> dict[str, PropertyUse]:
    """Sort properties, most used first."""
    return dict(sorted(uses.items(), key=lambda use: (-use[1].triples, use[0])))


def to_text(term: Term) -> str:
    """Return the value of an IRI or literal; another term as it is written."""
    return term.value if isinstance(term, (NamedNode, Literal)) else str(term)


def to_example(term: Term) -> str:
    """Return a value as an N-Triples term; a long literal is truncated."""
    if isinstance(term, Literal) and len(term.value) > EXAMPLE_CHARACTERS:
        cut = term.value[:EXAMPLE_CHARACTERS].rstrip() + "…"
        return str(Literal(cut, language=term.language) if term.language else Literal(cut, datatype=term.datatype))
    return str(term)


def _merge_subclasses(measured: Mapping[str, ClassUse], iri: str, count: int, example: str) -> ClassUse:
    """Build the use of a superclass from its own and those of its subclasses, which have no instance in common."""
    below = [measured[name.value] for name in get_subclasses(NamedNode(iri)) if name.value in measured]
    parts = [*([measured[iri]] if iri in measured else []), *below]
    merged: dict[str, PropertyUse] = {}
    for use in (use for part in parts for use in part.properties.values()):
        known = merged.get(use.iri)
        merged[use.iri] = use if known is None else _add_uses(known, use)
    entities = count + (measured[iri].entities if iri in measured else 0)
    return ClassUse(iri, entities, sort_uses(merged), example, inferred=True)


def _add_uses(one: PropertyUse, other: PropertyUse) -> PropertyUse:
    def add(some: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
        total = Counter(some)
        total.update(more)
        return dict(total.most_common())

    return PropertyUse(
        one.iri,
        one.triples + other.triples,
        one.subjects + other.subjects,
        add(one.datatypes, other.datatypes),
        add(one.languages, other.languages),
        add(one.classes, other.classes),
        one.example or other.example,
    )


# -- updates


class _TooLargeError(Exception):
    """The change cannot be counted, or not faster than everything."""


def update_counts(counts: Counts, before: Store, after: Store, measured_at: str) -> Counts | None:
    """Update `counts` of the checkpoint `before` for the commits up to the checkpoint `after`.

    Returns None if the change is large, or if the counts do not fit the checkpoints.
    """
    try:
        return _Update(counts, before, after).apply(measured_at)
    except _TooLargeError as reason:
        log.info("The schema is measured again after generation %d: %s", counts.generation, reason)
        return None


@dataclass(slots=True)
class _Use:
    """The use of one property with the counted nodes, or with those of one class."""

    triples: int = 0
    subjects: int = 0
    datatypes: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)
    classes: Counter[str] = field(default_factory=Counter)
    examples: dict[str, None] = field(default_factory=dict)


class _Reading:
    """The counted graphs of one checkpoint: those of content, or `graphs`."""

    def __init__(self, store: Store, graphs: frozenset[NamedNode] | None = None) -> None:
        self.store: Final = store
        self._graphs: Final = graphs
        self._kinds: dict[NamedNode | BlankNode, frozenset[str]] = {}

    def counts_graph(self, graph: object) -> bool:
        if not isinstance(graph, NamedNode | BlankNode):
            return False
        return graph not in _UNMEASURED if self._graphs is None else graph in self._graphs

    def quads(self, subject: NamedNode | BlankNode) -> list[Quad]:
        """Load the counted quads of a node."""
        found = self.store.quads_for_pattern(subject, None, None, None)
        return [quad for quad in found if self.counts_graph(quad.graph_name)]

    def get_kinds(self, node: NamedNode | BlankNode) -> frozenset[str]:
        """Get the classes of a node."""
        kinds = self._kinds.get(node)
        if kinds is None:
            quads = self.store.quads_for_pattern(node, RDF.type, None, None)
            kinds = frozenset(to_text(quad.object) for quad in quads if self.counts_graph(quad.graph_name))
            self._kinds[node] = kinds
        return kinds


def _get_graph_name(quad: Quad) -> str:
    graph = quad.graph_name
    return to_text(graph) if isinstance(graph, NamedNode | BlankNode) else ""


class _Tally:
    """Counts of some nodes in one checkpoint."""

    def __init__(self, reading: _Reading, of_values: _Reading | None = None) -> None:
        """`of_values` has the classes of values, if not `reading`."""
        self._reading: Final = reading
        self._of_values: Final = of_values or reading
        self.properties: dict[str, Counter[str]] = defaultdict(Counter)
        """Quads by family and property; `classes`: nodes by family and class."""
        self.classes: dict[str, Counter[str]] = defaultdict(Counter)
        self.entities: Counter[str] = Counter()
        self.instances: dict[str, dict[str, None]] = defaultdict(dict)
        """The counted nodes of each class; `anchors`: of each inferred superclass."""
        self.anchors: dict[str, dict[str, None]] = defaultdict(dict)
        self.uses: dict[tuple[str | None, str], _Use] = defaultdict(_Use)

    def add(self, node: NamedNode | BlankNode) -> int:
        """Count a node, and return the number of its quads."""
        quads = self._reading.quads(node)
        typed: set[object] = set()
        triples: dict[tuple[NamedNode, Term], None] = {}
        for quad in quads:
            family = get_family(_get_graph_name(quad))
            self.properties[family][quad.predicate.value] += 1
            if quad.predicate == RDF.type:
                self.classes[family][to_text(quad.object)] += 1
                if quad.graph_name not in typed:
                    typed.add(quad.graph_name)
                    self.entities[family] += 1
            triples[quad.predicate, quad.object] = None
        kinds = self._reading.get_kinds(node)
        of: list[str | None] = [None, *kinds]
        for kind in kinds:
            self.instances[kind][to_text(node)] = None
        for quad in self._reading.store.quads_for_pattern(node, RDF.type, None, SUPERCLASS_GRAPH):
            self.anchors[to_text(quad.object)][to_text(node)] = None
        known: set[NamedNode] = set()
        for predicate, value in triples:
            first = predicate not in known
            known.add(predicate)
            example = to_example(value)
            datatype = value.datatype.value if isinstance(value, Literal) else ""
            language = value.language if isinstance(value, Literal) else None
            of_value = self._of_values.get_kinds(value) if isinstance(value, NamedNode | BlankNode) else ()
            for each in of:
                use = self.uses[each, predicate.value]
                use.triples += 1
                use.subjects += first
                use.examples[example] = None
                if datatype:
                    use.datatypes[datatype] += 1
                    if language:
                        use.languages[language] += 1
                else:
                    use.classes.update(of_value or ("",))
        return len(quads)


def measure_graph(store: Store, graph: NamedNode) -> tuple[dict[str, ClassUse], dict[str, PropertyUse]]:
    """Measure the classes and properties of one small graph of a checkpoint, whose values have classes in content."""
    tally = _Tally(_Reading(store, frozenset({graph})), _Reading(store))
    subjects = {quad.subject for quad in store.quads_for_pattern(None, None, None, graph)}
    for node in subjects:
        if isinstance(node, NamedNode | BlankNode):
            tally.add(node)
    uses: dict[str | None, dict[str, PropertyUse]] = defaultdict(dict)
    for (kind, iri), use in tally.uses.items():
        uses[kind][iri] = _change_use(PropertyUse(iri, 0, 0), _Use(), use)
    classes = {
        kind: ClassUse(kind, len(held), sort_uses(uses[kind]), next(iter(held)))
        for kind, held in tally.instances.items()
    }
    return classes, sort_uses(uses[None])


class _Update:
    def __init__(self, counts: Counts, before: Store, after: Store) -> None:
        self._counts: Final = counts
        self._before: Final = _Reading(before)
        self._after: Final = _Reading(after)
        self._spare = MAX_QUADS
        touched = load_touched_graphs(after, counts.generation)
        if SUPERCLASS_GRAPH in touched:  # not by the consequences of a commit, but as a whole
            raise _TooLargeError("all superclasses were inferred again")
        self._graphs: Final = {graph for graph in {*touched, PROV_GRAPH} if self._after.counts_graph(graph)}
        self._generation: Final = get_generation(after)
        self._described: Final[set[NamedNode]] = {HEAD, *touched}

    def apply(self, measured_at: str) -> Counts:
        """Count the change. Raises _TooLargeError."""
        affected = self._find_affected()
        old, new = _Tally(self._before), _Tally(self._after)
        for node in affected:
            self._spend(old.add(node) + new.add(node))
        classes, properties = self._change_uses(old, new)
        catalog_classes, catalog_properties = measure_graph(self._after.store, CATALOG_GRAPH)
        return Counts(
            generation=self._generation,
            measured_at=measured_at,
            classes=classes,
            properties=properties,
            holdings=self._change_holdings(old, new),
            anchors=self._change_instances(self._counts.anchors, old.anchors, new.anchors, SUPERCLASS_GRAPH),
            catalog_classes=catalog_classes,
            catalog_properties=catalog_properties,
        )

    def _spend(self, quads: int) -> None:
        self._spare -= quads
        if self._spare < 0:
            raise _TooLargeError(f"more than {MAX_QUADS:,} quads may have changed")

    def _find_affected(self) -> set[NamedNode | BlankNode]:
        """Find the nodes whose counts may differ."""
        found: set[NamedNode | BlankNode] = set()
        for graph in self._graphs - {PROV_GRAPH}:
            held = [self._load_graph(reading, graph) for reading in (self._before, self._after)]
            found.update(quad.subject for quad in held[0] ^ held[1] if isinstance(quad.subject, NamedNode | BlankNode))
        for number in range(self._counts.generation + 1, self._generation + 1):
            record = commit_iri(number)
            self._described.add(record)
            for quad in self._after.store.quads_for_pattern(record, KG.described, None, PROV_GRAPH):
                self._described.add(NamedNode(to_text(quad.object)))
            self._spend(1)
        found |= self._described
        # A value counts by its classes, also for nodes that did not change.
        for node in [node for node in found if self._before.get_kinds(node) != self._after.get_kinds(node)]:
            for reading in (self._before, self._after):
                for quad in reading.store.quads_for_pattern(None, None, node, None):
                    self._spend(1)
                    if isinstance(quad.subject, NamedNode | BlankNode):
                        found.add(quad.subject)
        return found

    def _load_graph(self, reading: _Reading, graph: NamedNode) -> set[Quad]:
        quads = set(islice(reading.store.quads_for_pattern(None, None, None, graph), self._spare + 1))
        self._spend(len(quads))
        return quads

    def _change_holdings(self, old: _Tally, new: _Tally) -> dict[str, FamilyUse]:
        graphs: Counter[str] = Counter()
        for graph in self._graphs:
            graphs[get_family(graph.value)] += self._after.store.contains_named_graph(
                graph
            ) - self._before.store.contains_named_graph(graph)
        found: dict[str, FamilyUse] = {}
        for family in sorted({*self._counts.holdings, *new.properties}):
            known = self._counts.holdings.get(family) or FamilyUse(0, 0, 0, {}, {})
            properties = _change(known.properties, old.properties[family], new.properties[family])
            if properties:
                found[family] = FamilyUse(
                    graphs=known.graphs + graphs[family],
                    quads=sum(properties.values()),
                    entities=known.entities - old.entities[family] + new.entities[family],
                    classes=_change(known.classes, old.classes[family], new.classes[family]),
                    properties=properties,
                )
        return found

    def _change_instances(
        self,
        known: Mapping[str, tuple[int, str]],
        old: Mapping[str, Mapping[str, None]],
        new: Mapping[str, Mapping[str, None]],
        graph: NamedNode | None,
    ) -> dict[str, tuple[int, str]]:
        """Count the instances of each class, each with an example: in `graph`, or in all content."""
        found = {}
        for iri in {*known, *new}:
            count, example = known.get(iri, (0, ""))
            count += len(new.get(iri, ())) - len(old.get(iri, ()))
            if count < 0:
                raise _TooLargeError(f"the number of instances of {iri} does not fit")
            if not count:
                continue
            if not example or (example in old.get(iri, ()) and example not in new.get(iri, ())):
                example = next(iter(new.get(iri, ())), "") or self._find_instance(iri, graph)
            found[iri] = count, example
        return found

    def _find_instance(self, iri: str, graph: NamedNode | None) -> str:
        with suppress(ValueError):  # if the class is not an IRI
            for quad in self._find_quads(RDF.type, NamedNode(iri), graph):
                return to_text(quad.subject)
        raise _TooLargeError(f"no example of {iri} is known")

    def _find_quads(self, predicate: NamedNode, value: NamedNode | None, graph: NamedNode | None) -> Iterator[Quad]:
        quads = self._after.store.quads_for_pattern(None, predicate, value, graph)
        return (quad for quad in islice(quads, _EXAMPLES_READ) if graph or self._after.counts_graph(quad.graph_name))

    def _change_uses(self, old: _Tally, new: _Tally) -> tuple[dict[str, ClassUse], dict[str, PropertyUse]]:
        known = {iri: (use.entities, use.example or "") for iri, use in self._counts.classes.items()}
        instances = self._change_instances(known, old.instances, new.instances, None)
        before: dict[tuple[str | None, str], PropertyUse] = {
            (None, iri): use for iri, use in self._counts.properties.items()
        }
        before.update(
            ((kind, iri), use) for kind, of in self._counts.classes.items() for iri, use in of.properties.items()
        )
        changed: dict[str | None, dict[str, PropertyUse]] = defaultdict(dict)
        for kind, iri in {*before, *new.uses}:
            key, use = (kind, iri), before.get((kind, iri)) or PropertyUse(iri, 0, 0)
            if key in old.uses or key in new.uses:
                gone, come = (tally.uses.get(key, _Use()) for tally in (old, new))
                use = _change_use(use, gone, come)
                if use.triples and use.example is None:
                    use = _with_example(use, self._find_example(kind, iri))
            if use.triples:
                changed[kind][iri] = use
        classes = {
            iri: ClassUse(iri, count, sort_uses(changed[iri]), example) for iri, (count, example) in instances.items()
        }
        return classes, sort_uses(changed[None])

    def _find_example(self, kind: str | None, iri: str) -> str:
        for quad in self._find_quads(NamedNode(iri), None, None):
            if kind is None or (
                isinstance(quad.subject, NamedNode | BlankNode) and kind in self._after.get_kinds(quad.subject)
            ):
                return to_example(quad.object)
        raise _TooLargeError(f"no example of {iri} is known")


def _change(known: Mapping[str, int], gone: Mapping[str, int], come: Mapping[str, int]) -> dict[str, int]:
    """Subtract and add counts; the largest come first. Raises _TooLargeError if one would be negative."""
    total = Counter(known)
    total.subtract(gone)
    total.update(come)
    if any(count < 0 for count in total.values()):
        raise _TooLargeError("its counts do not fit")
    return dict(sorted(((name, count) for name, count in total.items() if count), key=lambda each: (-each[1], each[0])))


def _change_use(known: PropertyUse, gone: _Use, come: _Use) -> PropertyUse:
    """Subtract and add the use by some nodes. The example is None if it may be gone."""
    triples, subjects = known.triples - gone.triples + come.triples, known.subjects - gone.subjects + come.subjects
    if triples < 0 or subjects < 0:
        raise _TooLargeError(f"the number of uses of {known.iri} does not fit")
    example = known.example
    if example is None or (example in gone.examples and example not in come.examples):
        example = next(iter(come.examples), None)
    return PropertyUse(
        known.iri,
        triples,
        subjects,
        _change(known.datatypes, gone.datatypes, come.datatypes),
        _change(known.languages, gone.languages, come.languages),
        _change(known.classes, gone.classes, come.classes),
        example,
    )


def _with_example(use: PropertyUse, example: str) -> PropertyUse:
    return PropertyUse(use.iri, use.triples, use.subjects, use.datatypes, use.languages, use.classes, example)
