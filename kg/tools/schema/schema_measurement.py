"""Measures the schema of the store: its classes, the properties of their instances, and the values of these.

A measurement is a few dozen aggregate queries in the query workers, or an update of the last one
(`kg.tools.schema.schema_counts`). It runs in a background thread, one at a time per graph. The last result is cached in
memory and in the state of derivations, and is returned while a newer one is computed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

import pyoxigraph
from pyoxigraph import Literal, NamedNode

from kg.derivations.aggregates import SCHEMA, Aggregate
from kg.derivations.engine import choose
from kg.errors import QuadciteError, QueryMemoryError
from kg.knowledge_graph import KnowledgeGraph
from kg.ontology import load_declared_terms, load_used_vocabulary
from kg.queries.pool import Cancellation
from kg.sparql.measured_schema import ClassUse, FamilyUse, PropertyUse, Schema
from kg.sparql.terms import bind
from kg.store.protocol import Rows, Snapshot, Term
from kg.tools.schema.schema_counts import (
    FAMILY,
    UNMEASURED_GRAPHS,
    Counts,
    sort_uses,
    to_example,
    to_text,
    update_counts,
)
from kg.vocabulary import KG, RDF

log = logging.getLogger(__name__)

FIRST_WAIT_S: Final = 8.0
"""Seconds that a call waits for the first measurement. It is enough for a small store."""
QUERY_DEADLINE_S: Final = 300.0
"""Deadline of one query of a measurement, in seconds."""
REST: Final = 9.0
"""Pause after a measurement, as a multiple of its duration: measuring takes a tenth of the time at most."""
RETRY_S: Final = 60.0
"""Seconds before a failed measurement of the same generation is retried: a worker may have died or been busy."""
SERVED_WAIT_S: Final = 0.4
"""Seconds that a call waits for the first measurement in a server, which goes on measuring when the call has ended."""
LOOK_S: Final = 1.0
"""Seconds between looks for commits while the measurement is kept up."""

_ALL_ROWS: Final = 1_000_000

# A query that needs more memory than a worker has runs in PARTS, by a hash of the subject in place of #PART.
PARTS: Final = 16
PART: Final = "FILTER(STRSTARTS(MD5(STR(?s)), $part))"

# The graphs that describe content or follow from it are not measured.
CONTENT: Final = "FILTER(?graph NOT IN ($tbox, $codes, $shapes, $catalog, $superclasses, $about, $properties))"
UNMEASURED: Final = frozenset({KG.about.value})
"""The properties that have quads in these graphs only: not measured, which is not the same as not used."""

# A single scan of the store. The family of a graph is computed once per graph, not per quad.
FAMILIES: Final = f"""
SELECT ?family ?property (SUM(?quads) AS ?count) WHERE {{
  {{ SELECT ?graph ?property (COUNT(*) AS ?quads) WHERE {{ GRAPH ?graph {{ ?s ?property ?o #PART
  }} {CONTENT} }} GROUP BY ?graph ?property }}
  BIND(REPLACE(STR(?graph), $pattern, "$1") AS ?family)
}} GROUP BY ?family ?property"""

PROPERTIES: Final = f"""
SELECT ?property (COUNT(*) AS ?count) WHERE {{
  GRAPH ?graph {{ ?s ?property ?o #PART
  }} {CONTENT}
}} GROUP BY ?property"""

CLASSES: Final = f"""
SELECT ?class (COUNT(*) AS ?count) (SAMPLE(?s) AS ?example) WHERE {{
  {{ SELECT DISTINCT ?s ?class WHERE {{ GRAPH ?graph {{ ?s a ?class #PART
  }} {CONTENT} }} }}
}} GROUP BY ?class"""

SUPERCLASSES: Final = """
SELECT ?class (COUNT(*) AS ?count) (SAMPLE(?s) AS ?example) WHERE {
  GRAPH $superclasses { ?s a ?class #PART
  }
} GROUP BY ?class"""

CLASS_FAMILIES: Final = f"""
SELECT ?family ?class (SUM(?things) AS ?count) WHERE {{
  {{ SELECT ?graph ?class (COUNT(*) AS ?things) WHERE {{ GRAPH ?graph {{ ?s a ?class #PART
  }} {CONTENT} }} GROUP BY ?graph ?class }}
  BIND(REPLACE(STR(?graph), $pattern, "$1") AS ?family)
}} GROUP BY ?family ?class"""

ENTITY_FAMILIES: Final = f"""
SELECT ?family (SUM(?things) AS ?count) WHERE {{
  {{ SELECT ?graph (COUNT(*) AS ?things) WHERE {{
    {{ SELECT DISTINCT ?graph ?s WHERE {{ GRAPH ?graph {{ ?s a ?class #PART
    }} {CONTENT} }} }}
  }} GROUP BY ?graph }}
  BIND(REPLACE(STR(?graph), $pattern, "$1") AS ?family)
}} GROUP BY ?family"""

GRAPH_FAMILIES: Final = f"""
SELECT ?family (COUNT(?graph) AS ?count) WHERE {{
  GRAPH ?graph {{}} {CONTENT} BIND(REPLACE(STR(?graph), $pattern, "$1") AS ?family)
}} GROUP BY ?family"""

# One index lookup per instance. A query per property would need one per triple.
CLASS_PROPERTIES: Final = f"""
SELECT ?class ?property (COUNT(*) AS ?count) WHERE {{
  {{ SELECT DISTINCT ?s ?class WHERE {{ GRAPH ?graph {{ ?s a ?class #PART
  }} {CONTENT} }} }}
  GRAPH ?graph {{ ?s ?property ?o }} {CONTENT}
}} GROUP BY ?class ?property"""

# PATTERN of a property, or of a property with the subjects of one class.
_PATTERN: Final = f"GRAPH ?graph {{ ?s $property ?o }} {CONTENT} #PART\n"
PATTERNS: Final = {
    # (with a class, a triple may be in two graphs)
    (False, False): _PATTERN,
    (False, True): f"{{ SELECT DISTINCT ?s ?o WHERE {{ {_PATTERN}}} }}",
    (True, False): f"?s a $class . {_PATTERN}",
    (True, True): f"{{ SELECT DISTINCT ?s ?o WHERE {{ ?s a $class . {_PATTERN}}} }}",
}

TRIPLES: Final = "SELECT (COUNT(*) AS ?count) WHERE { { SELECT DISTINCT ?s ?o WHERE { PATTERN } } }"
SUBJECTS: Final = "SELECT (COUNT(*) AS ?count) WHERE { { SELECT DISTINCT ?s WHERE { PATTERN } } }"

VALUES: Final = """
SELECT ?datatype ?language (COUNT(*) AS ?count) (SAMPLE(?o) AS ?example) WHERE {
  PATTERN
} GROUP BY (DATATYPE(?o) AS ?datatype) (LANG(?o) AS ?language)"""

OBJECT_CLASSES: Final = f"""
SELECT ?type (SUM(?uses) AS ?count) WHERE {{
  {{ SELECT DISTINCT ?o ?uses ?type WHERE {{
    {{ SELECT ?o (COUNT(*) AS ?uses) WHERE {{ PATTERN FILTER(!isLiteral(?o)) }} GROUP BY ?o }}
    OPTIONAL {{ GRAPH ?home {{ ?o a ?type }} {CONTENT.replace("?graph", "?home")} }}
  }} }}
}} GROUP BY ?type"""


def get_schema(kg: KnowledgeGraph, wait_s: float = FIRST_WAIT_S, *, newest: bool = False) -> Schema:
    """Get the last measured schema of `kg`. Starts a new measurement in the background if the store has changed.

    `Schema.generation` is the measured generation. Before the first measurement is complete (an empty store, or one
    that takes longer than `wait_s`) it is 0, and the schema has only `terms`. With `newest`, also waits for a running
    measurement of a changed store. A view is never measured.
    """
    if kg.audience is not None:
        return _build_unmeasured()
    return _get_measurements(kg).current(wait_s, newest)


def get_measured_generation(kg: KnowledgeGraph) -> int | None:
    """Get the generation of the last measured schema, without starting a measurement. None before the first one."""
    known: _Measurements | None = kg.memory.get("measurements")
    return None if known is None or known.schema is None else known.schema.generation


class SchemaCounts(Aggregate[Counts]):
    """The counts as a derivation."""

    _kg: KnowledgeGraph

    def __init__(self, kg: KnowledgeGraph) -> None:
        super().__init__(kg, SCHEMA)
        self.write, self.read = asdict, Counts.from_json
        self.renew = lambda full: _get_measurements(kg).take(measure_counts(kg))

    def find_differing(self, most: int) -> list[NamedNode]:
        """Measure up to `most` properties again, chosen by chance, and find those whose counts are others."""
        found = self.load()
        if found is None or found[0] != self._kg.store.statistics().generation:
            return []
        stored, measurement = found[1].properties, _Measurement(self._kg)
        return [
            node
            for node in choose(map(NamedNode, stored), most)
            if replace(measurement.measure_property(node.value, True), example=None)
            != replace(stored[node.value], example=None)
        ]


class _Measurements:
    """The measurements of one graph: at most one runs at a time, and the last successful one is cached.

    While it is kept up (`measuring`), the checkpoint of the last one is held, so that the next is an update.
    """

    def __init__(self, kg: KnowledgeGraph) -> None:
        self._kg: Final = kg
        self._lock = threading.Lock()
        self._running: threading.Thread | None = None
        self._next = self._next_whole = self._retry = 0.0
        """The earliest times of the next measurement: an update, of the whole store, after a failure."""
        self._failed = -1
        self._saved: Final = SchemaCounts(kg)
        found = self._saved.load()
        self._counts = found and found[1]
        self.schema = self._counts.build_schema() if self._counts else None
        self._base: Snapshot | None = None
        self.is_kept_up = False
        self._cancellation = Cancellation()
        """Stops the queries of a running measurement."""

    def current(self, wait_s: float, newest: bool) -> Schema:
        running = self._begin(newest)
        if running is not None:
            running.join(min(wait_s, SERVED_WAIT_S) if self.is_kept_up and not newest else wait_s)
        return self.schema or _build_unmeasured()

    def take(self, counts: Counts) -> None:
        """Take counts that were measured elsewhere, and save them."""
        self._saved.save(counts.generation, counts)
        with self._lock:
            self._counts, self.schema = counts, counts.build_schema()

    def keep_up(self) -> None:
        """Hold the checkpoint of each measurement from now on."""
        with self._lock:
            self.is_kept_up = True
        if self._counts is None or self._counts.generation != self._kg.store.statistics().generation:
            return
        try:
            self._hold(self._kg.store.snapshot(self._counts.generation))
        except (QuadciteError, OSError) as error:  # such as a full disk
            log.warning("The schema will be measured again after the next commit: %s", error)

    def update_saved(self) -> None:
        """Update the saved counts, if they were current when `keep_up` was called and the change since is small."""
        generation = self._kg.store.statistics().generation
        if self._base is None or self._base.generation == generation:
            return
        try:
            with self._kg.store.snapshot(generation) as checkpoint:
                if (counts := self._update(checkpoint)) is not None:
                    self.take(counts)
        except (QuadciteError, OSError) as error:
            log.warning("The saved counts of the schema are not updated: %s", error)

    def end(self) -> None:
        """Stop a running measurement, wait for its end, and hold no checkpoint any more."""
        with self._lock:
            self.is_kept_up = False
            running, cancellation = self._running, self._cancellation
            self._cancellation = Cancellation()  # of later ones, which calls begin
        cancellation.cancel()
        if running is not None:
            running.join()
        self._hold(None)

    def _hold(self, checkpoint: Snapshot | None) -> None:
        """Hold `checkpoint`, if it is that of the counts, in place of the one before."""
        with self._lock:
            fits = (
                checkpoint is not None
                and self.is_kept_up
                and not checkpoint.is_live
                and self._counts is not None
                and checkpoint.generation == self._counts.generation
            )
            before, self._base = self._base, checkpoint if fits else None
        for unused in (before, None if fits else checkpoint):
            if unused is not None:
                unused.release()

    def _begin(self, newest: bool) -> threading.Thread | None:
        """Start a measurement if one is due. Returns the thread to wait for: without a result, or for the newest."""
        generation = self._kg.store.statistics().generation
        with self._lock:
            stale = self.schema is None or self.schema.generation < generation
            now = time.monotonic()
            due = now >= (self._retry if generation == self._failed else self._next)
            if self._running is None and stale and due:
                self._running = threading.Thread(
                    target=self._work, args=(generation, self._cancellation), name="measure", daemon=True
                )
                self._running.start()
            # The schema of an empty store is useless once it has data: wait as for the first.
            return self._running if newest or self.schema is None or self.schema.triples == 0 else None

    def _work(self, generation: int, cancellation: Cancellation) -> None:
        started = time.monotonic()
        counts = checkpoint = None
        is_update = is_postponed = False
        try:
            checkpoint = self._kg.store.snapshot(generation) if self.is_kept_up else None
            counts = self._update(checkpoint)
            is_update = counts is not None
            is_postponed = counts is None and started < self._next_whole
            if not is_update:  # more has changed than an update counts, so the checkpoint before serves nobody
                self._hold(None)
            if not is_postponed:
                counts = counts or measure_counts(self._kg, checkpoint, cancellation)
                self._saved.save(counts.generation, counts)
        except QuadciteError as error:
            is_ended = cancellation.cancelled or self._kg.pool.closed  # a command ends while it measures
            level = logging.DEBUG if is_ended else logging.WARNING
            log.log(level, "Cannot measure generation %d of the store: %s", generation, error)
        finally:
            now = time.monotonic()
            rest = REST * (now - started)
            schema = counts.build_schema() if counts else None
            is_cancelled = schema is None and cancellation.cancelled
            with self._lock:
                self._counts = counts or self._counts
                self.schema = schema or self.schema
                self._failed = -1 if schema or is_postponed or is_cancelled else generation
                if not is_update and not is_postponed and not is_cancelled:
                    self._next_whole = now + rest
                # While a checkpoint is held, the next one is an update, which takes less.
                can_update = self.is_kept_up and counts is not None
                self._next = now + (rest if is_update else 0.0) if can_update else self._next_whole
                self._retry = max(now + rest, now + RETRY_S)
                self._running = None
            if counts is not None:
                self._hold(checkpoint)
                for pool in (self._kg.pool, self._kg.raw_pool):
                    pool.close_snapshots_before(counts.generation)
            elif checkpoint is not None:
                checkpoint.release()

    def _update(self, checkpoint: Snapshot | None) -> Counts | None:
        """Update the counts from the checkpoint that is held to a newer one; None if that is not possible."""
        base, counts = self._base, self._counts
        if base is None or counts is None or checkpoint is None:
            return None
        try:
            before, after = (pyoxigraph.Store.read_only(str(each.path)) for each in (base, checkpoint))
            return update_counts(counts, before, after, _get_time())
        except (OSError, RuntimeError) as error:  # of a checkpoint that cannot be read
            log.warning("Cannot update the measured schema, and measure again: %s", error)
            return None


def _build_unmeasured() -> Schema:
    return Schema(0, 0, {}, {}, load_declared_terms(), unmeasured=load_used_vocabulary())


_MAKING: Final = threading.Lock()


def _get_measurements(kg: KnowledgeGraph) -> _Measurements:
    with _MAKING:
        known: _Measurements | None = kg.memory.get("measurements")
        return known or kg.memory.keep("measurements", _Measurements(kg))


@contextmanager
def measuring(kg: KnowledgeGraph, look_s: float = LOOK_S) -> Iterator[None]:
    """Keep the measured schema in line with the commits in the background while the block runs.

    Polls for commits every `look_s` seconds. A checkpoint of the last measured generation is held, so that the next
    measurement counts what has changed since. Calls do not wait for long then.
    """
    measurements, closing = _get_measurements(kg), threading.Event()
    measurements.keep_up()

    def look() -> None:
        while True:
            measurements.current(0.0, newest=False)
            if closing.wait(look_s):
                return

    watcher = threading.Thread(target=look, name="schema-watch", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        closing.set()
        watcher.join()
        measurements.end()


@contextmanager
def updating(kg: KnowledgeGraph) -> Iterator[None]:
    """Update the saved measurement for the commits of the block, so that the next server need not measure everything.

    Does nothing in a server (`measuring`), if the saved measurement is of an earlier commit, or after a large change.
    """
    measurements = _get_measurements(kg)
    if measurements.is_kept_up:
        yield
        return
    measurements.keep_up()
    try:
        yield
        measurements.update_saved()
    finally:
        measurements.end()


def measure_schema(kg: KnowledgeGraph) -> Schema:
    """Measure the store now. Blocks for some milliseconds per property and some seconds per million quads.

    Raises QueryLimitError if a query hits a limit or the pool is closed.
    """
    return measure_counts(kg).build_schema()


def measure_counts(
    kg: KnowledgeGraph, checkpoint: Snapshot | None = None, cancellation: Cancellation | None = None
) -> Counts:
    """Measure the store now, at one checkpoint or, without it, at any generations from the last commit on.

    Raises the errors of `measure_schema`, and QueryLimitError after a cancellation.
    """
    return _Measurement(kg, checkpoint, cancellation).measure()


def _get_time() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class _Measurement:
    """The queries of one measurement: of all content, or of the catalog."""

    def __init__(
        self,
        kg: KnowledgeGraph,
        checkpoint: Snapshot | None = None,
        cancellation: Cancellation | None = None,
        *,
        of_catalog: bool = False,
    ) -> None:
        self._kg = kg
        self._checkpoint = checkpoint
        self._cancellation = cancellation
        self._of_catalog = of_catalog
        self._at_least = kg.store.statistics().generation
        self._generation: int | None = None if checkpoint is None else checkpoint.generation

    def measure(self) -> Counts:
        measured_at = _get_time()
        families = self._families()
        quads: dict[str, int] = {}
        for family in families.values():
            for iri, count in family.properties.items():
                quads[iri] = quads.get(iri, 0) + count
        classes, properties = self._measure_terms(quads)
        catalog = _Measurement(self._kg, self._checkpoint, self._cancellation, of_catalog=True)
        described = {to_text(row["property"]): _count(row) for row in catalog._rows(PROPERTIES)}
        catalog_classes, catalog_properties = catalog._measure_terms(described)
        return Counts(
            generation=self._generation or self._at_least,
            measured_at=measured_at,
            classes=classes,
            properties=properties,
            holdings=families,
            anchors={to_text(row["class"]): (_count(row), to_text(row["example"])) for row in self._rows(SUPERCLASSES)},
            catalog_classes=catalog_classes,
            catalog_properties=catalog_properties,
        )

    def _measure_terms(self, quads: Mapping[str, int]) -> tuple[dict[str, ClassUse], dict[str, PropertyUse]]:
        """Measure the classes, and the properties with these numbers of quads."""
        triples = {iri: self._triples(iri) for iri in quads}
        doubled = {iri for iri, count in quads.items() if triples[iri] < count}
        classes = self._rows(CLASSES)
        entities = {to_text(row["class"]): _count(row) for row in classes}
        pairs: dict[str, dict[str, int]] = {}
        for row in self._rows(CLASS_PROPERTIES):
            pairs.setdefault(to_text(row["property"]), {})[to_text(row["class"])] = _count(row)
        properties: dict[str, PropertyUse] = {}
        of_class: dict[str, dict[str, PropertyUse]] = {name: {} for name in entities}
        for iri in sorted(triples, key=lambda iri: (-triples[iri], iri)):
            properties[iri] = self.measure_property(iri, iri in doubled)
            for name, count in pairs.get(iri, {}).items():
                # If all its subjects are of this class, its measurement is that of the class.
                if count == quads[iri]:
                    of_class[name][iri] = properties[iri]
                elif iri == RDF.type.value and iri not in doubled:
                    of_class[name][iri] = PropertyUse(iri, count, entities[name], {}, {}, {"": count}, f"<{name}>")
                else:
                    of_class[name][iri] = self.measure_property(
                        iri, not doubled.isdisjoint((iri, RDF.type.value)), name
                    )
        measured = {
            to_text(row["class"]): ClassUse(
                iri=to_text(row["class"]),
                entities=_count(row),
                properties=sort_uses(of_class[to_text(row["class"])]),
                example=to_text(row["example"]),
            )
            for row in classes
        }
        return measured, properties

    def _families(self) -> dict[str, FamilyUse]:
        graphs, entities = (
            {
                to_text(row["family"]): _count(row)
                for row in self._rows(query, pattern=Literal(FAMILY))
                if "family" in row
            }
            for query in (GRAPH_FAMILIES, ENTITY_FAMILIES)
        )
        classes: dict[str, dict[str, int]] = {}
        properties: dict[str, dict[str, int]] = {}
        for query, term, counts in ((CLASS_FAMILIES, "class", classes), (FAMILIES, "property", properties)):
            for row in sorted(
                self._rows(query, pattern=Literal(FAMILY)), key=lambda row: (-_count(row), str(row[term]))
            ):
                counts.setdefault(to_text(row["family"]), {})[to_text(row[term])] = _count(row)
        return {
            family: FamilyUse(
                graphs=graphs.get(family, 0),
                quads=sum(properties[family].values()),
                entities=entities.get(family, 0),
                classes=classes.get(family, {}),
                properties=properties[family],
            )
            for family in sorted(properties)
        }

    def _triples(self, iri: str) -> int:
        return _count(self._rows(TRIPLES.replace("PATTERN", PATTERNS[False, False]), property=NamedNode(iri))[0])

    def measure_property(self, iri: str, doubled: bool, of: str | None = None) -> PropertyUse:
        """Measure a property, or that of a class. `doubled`: a triple may be in two graphs."""
        terms = {"property": NamedNode(iri)} | ({} if of is None else {"class": NamedNode(of)})
        pattern = PATTERNS[of is not None, doubled]
        datatypes: dict[str, int] = {}
        languages: dict[str, int] = {}
        classes: dict[str, int] = {}
        triples, things, example = 0, 0, None
        rows = self._rows(VALUES.replace("PATTERN", pattern), **terms)
        for row in sorted(rows, key=lambda row: -_count(row)):
            triples += _count(row)
            example = example or to_example(row["example"])
            if "datatype" not in row:
                things += _count(row)
                continue
            datatype, language = to_text(row["datatype"]), to_text(row["language"])
            datatypes[datatype] = datatypes.get(datatype, 0) + _count(row)
            if language:
                languages[language] = languages.get(language, 0) + _count(row)
        if things:
            found = self._rows(OBJECT_CLASSES.replace("PATTERN", pattern), **terms)
            for row in sorted(found, key=lambda row: -_count(row)):
                classes[to_text(row["type"]) if "type" in row else ""] = _count(row)
        subjects = self._rows(SUBJECTS.replace("PATTERN", PATTERNS[of is not None, False]), **terms)
        return PropertyUse(iri, triples, _count(subjects[0]), datatypes, languages, classes, example)

    def _rows(self, query: str, **terms: NamedNode | Literal) -> list[dict[str, Term]]:
        """Run a counting query. Its only aggregates may be `count` and `example`."""
        if self._of_catalog:
            query = query.replace("GRAPH ?graph", "GRAPH $catalog").replace(CONTENT, "")
        terms |= {name: graph for name, graph in UNMEASURED_GRAPHS.items() if f"${name}" in query}
        try:
            return self._asked(bind(query, **terms))
        except QueryMemoryError:
            if "#PART" not in query:
                raise
        counted: dict[tuple[tuple[str, Term], ...], dict[str, Term]] = {}
        for part in range(PARTS):
            asked = bind(query.replace("#PART", PART), **terms, part=Literal(f"{part:x}"))
            for row in self._asked(asked):
                key = tuple((name, term) for name, term in row.items() if name not in ("count", "example"))
                total = _count(row) + (_count(counted[key]) if key in counted else 0)
                counted[key] = {**row, **counted.get(key, {}), "count": Literal(total)}
        # An aggregate without groups has a row even without solutions.
        return [row for key, row in counted.items() if not key or _count(row)]

    def _asked(self, query: str) -> list[dict[str, Term]]:
        run = partial(self._kg.pool.run, cancellation=self._cancellation)
        if self._checkpoint is not None:
            run = partial(run, exactly=self._checkpoint.generation)
        answer = run(query, limit=_ALL_ROWS, timeout_s=QUERY_DEADLINE_S, at_least=self._at_least)
        if not isinstance(answer.result, Rows):
            raise TypeError(f"not a SELECT: {query}")
        if self._generation is None:
            self._generation = answer.generation
        return list(answer.result)


def _count(row: Mapping[str, Term]) -> int:
    return int(to_text(row["count"]))
