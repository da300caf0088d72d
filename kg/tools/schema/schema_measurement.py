"""Measures the schema of the store: its classes, the properties of their instances, and the values of these.

A measurement is a few dozen aggregate queries in the query workers. It runs in a background thread, one at a time per
graph. The last result is cached in memory and in the data directory, and is returned while a newer one is computed.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pyoxigraph import Literal, NamedNode

from kg.errors import QuadciteError, QueryMemoryError
from kg.files import write_file
from kg.knowledge_graph import KnowledgeGraph
from kg.ontology import load_declared_terms, load_used_vocabulary
from kg.provenance.superclasses import get_subclasses
from kg.sparql.measured_schema import ClassUse, FamilyUse, PropertyUse, Schema
from kg.sparql.terms import bind
from kg.store.protocol import Rows, Term
from kg.vocabulary import (
    ABOUT_GRAPH,
    BASE,
    CATALOG_GRAPH,
    CODES_GRAPH,
    KG,
    PROPERTIES_GRAPH,
    RDF,
    SHAPES_GRAPH,
    SUPERCLASS_GRAPH,
    TBOX_GRAPH,
)

log = logging.getLogger(__name__)

FIRST_WAIT_S: Final = 8.0
"""Seconds that a call waits for the first measurement. It is enough for a small store."""
QUERY_DEADLINE_S: Final = 300.0
"""Deadline of one query of a measurement, in seconds."""
REST: Final = 9.0
"""Pause after a measurement, as a multiple of its duration: measuring takes a tenth of the time at most."""
RETRY_S: Final = 60.0
"""Seconds before a failed measurement of the same generation is retried: a worker may have died or been busy."""
EXAMPLE_CHARACTERS: Final = 160
"""Maximum characters of a literal in an example."""
FILE: Final = "schema.json"
"""Name of the last measurement's file in the data directory."""

_FORMAT: Final = 1
_ALL_ROWS: Final = 1_000_000

# A query that needs more memory than a worker has runs in PARTS, by a hash of the subject in place of #PART.
PARTS: Final = 16
PART: Final = "FILTER(STRSTARTS(MD5(STR(?s)), $part))"

# The graphs that describe content or follow from it are not measured.
CONTENT: Final = "FILTER(?graph NOT IN ($tbox, $codes, $shapes, $catalog, $superclasses, $about, $properties))"
UNCOUNTED: Final = {
    "tbox": TBOX_GRAPH,
    "codes": CODES_GRAPH,
    "shapes": SHAPES_GRAPH,
    "catalog": CATALOG_GRAPH,
    "superclasses": SUPERCLASS_GRAPH,
    "about": ABOUT_GRAPH,
    "properties": PROPERTIES_GRAPH,
}

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
    measurement of a changed store.
    """
    return _get_measurements(kg).current(wait_s, newest)


def get_measured_generation(kg: KnowledgeGraph) -> int | None:
    """Get the generation of the last measured schema, without starting a measurement. None before the first one."""
    known: _Measurements | None = kg.memory.get("measurements")
    return None if known is None or known.schema is None else known.schema.generation


def get_family(graph: str) -> str:
    """Get the family of a graph: ``src/climate``, ``prov``. A graph outside ``graph/`` is its own family."""
    parts = graph.removeprefix(BASE + "graph/")
    return graph if parts == graph else "/".join(parts.split("/")[:2])


class _Measurements:
    """The measurements of one graph: at most one runs at a time, and the last successful one is cached."""

    def __init__(self, kg: KnowledgeGraph) -> None:
        self._kg: Final = kg
        self._lock = threading.Lock()
        self._running: threading.Thread | None = None
        self._next = self._retry = 0.0
        self._failed = -1
        self.schema = _load(kg.settings.data_dir / FILE, kg.store.statistics().generation)

    def current(self, wait_s: float, newest: bool) -> Schema:
        running = self._begin(newest)
        if running is not None:
            running.join(wait_s)
        return self.schema or Schema(0, 0, {}, {}, load_declared_terms(), unmeasured=load_used_vocabulary())

    def _begin(self, newest: bool) -> threading.Thread | None:
        """Start a measurement if one is due. Returns the thread to wait for: without a result, or for the newest."""
        generation = self._kg.store.statistics().generation
        with self._lock:
            stale = self.schema is None or self.schema.generation < generation
            now = time.monotonic()
            due = now >= (self._retry if generation == self._failed else self._next)
            if self._running is None and stale and due:
                self._running = threading.Thread(target=self._work, args=(generation,), name="measure", daemon=True)
                self._running.start()
            # The schema of an empty store is useless once it has data: wait as for the first.
            return self._running if newest or self.schema is None or self.schema.triples == 0 else None

    def _work(self, generation: int) -> None:
        started = time.monotonic()
        schema = None
        try:
            schema = measure_schema(self._kg)
            _save(self._kg.settings.data_dir, schema)
        except QuadciteError as error:
            log.warning("Cannot measure generation %d of the store: %s", generation, error)
        except OSError as error:
            log.warning("Cannot save the measured schema in %s: %s", self._kg.settings.data_dir, error)
        finally:
            took = time.monotonic() - started
            with self._lock:
                self.schema = schema or self.schema
                self._failed = -1 if schema else generation
                self._next = time.monotonic() + REST * took
                self._retry = max(self._next, time.monotonic() + RETRY_S)
                self._running = None


_MAKING: Final = threading.Lock()


def _get_measurements(kg: KnowledgeGraph) -> _Measurements:
    with _MAKING:
        known: _Measurements | None = kg.memory.get("measurements")
        return known or kg.memory.keep("measurements", _Measurements(kg))


def measure_schema(kg: KnowledgeGraph) -> Schema:
    """Measure the store now. Blocks for some milliseconds per property and some seconds per million quads.

    Raises QueryLimitError if a query hits a limit or the pool is closed.
    """
    return _Measurement(kg).schema()


class _Measurement:
    """The queries of one measurement: of all content, or of the catalog."""

    def __init__(self, kg: KnowledgeGraph, *, of_catalog: bool = False) -> None:
        self._kg = kg
        self._of_catalog = of_catalog
        self._at_least = kg.store.statistics().generation
        self._generation: int | None = None

    def schema(self) -> Schema:
        measured_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        families = self._families()
        quads: dict[str, int] = {}
        for family in families.values():
            for iri, count in family.properties.items():
                quads[iri] = quads.get(iri, 0) + count
        measured, properties = self._measure_terms(quads)
        triples = sum(use.triples for use in properties.values())
        for row in self._rows(SUPERCLASSES):
            measured[_text(row["class"])] = _merge_subclasses(measured, row)
        # The catalog is in no count of content, but its classes and its own properties are queried like others.
        catalog = _Measurement(self._kg, of_catalog=True)
        described = {_text(row["property"]): _count(row) for row in catalog._rows(PROPERTIES)}
        classes_of_catalog, properties_of_catalog = catalog._measure_terms(described)
        measured = {**classes_of_catalog, **measured}
        properties = {**properties_of_catalog, **properties}
        return Schema(
            generation=self._generation or self._at_least,
            triples=triples,
            classes=dict(sorted(measured.items(), key=lambda use: (-use[1].entities, use[0]))),
            properties=properties,
            terms=load_declared_terms(),
            unmeasured=load_used_vocabulary(),
            graphs={name: family.quads for name, family in families.items()},
            families=_family_terms(families),
            holdings=families,
            measured_at=measured_at,
        )

    def _measure_terms(self, quads: Mapping[str, int]) -> tuple[dict[str, ClassUse], dict[str, PropertyUse]]:
        """Measure the classes, and the properties with these numbers of quads."""
        triples = {iri: self._triples(iri) for iri in quads}
        doubled = {iri for iri, count in quads.items() if triples[iri] < count}
        classes = self._rows(CLASSES)
        entities = {_text(row["class"]): _count(row) for row in classes}
        pairs: dict[str, dict[str, int]] = {}
        for row in self._rows(CLASS_PROPERTIES):
            pairs.setdefault(_text(row["property"]), {})[_text(row["class"])] = _count(row)
        properties: dict[str, PropertyUse] = {}
        of_class: dict[str, dict[str, PropertyUse]] = {name: {} for name in entities}
        for iri in sorted(triples, key=lambda iri: (-triples[iri], iri)):
            properties[iri] = self._use(iri, iri in doubled)
            for name, count in pairs.get(iri, {}).items():
                # If all its subjects are of this class, its measurement is that of the class.
                if count == quads[iri]:
                    of_class[name][iri] = properties[iri]
                elif iri == RDF.type.value and iri not in doubled:
                    of_class[name][iri] = PropertyUse(iri, count, entities[name], {}, {}, {"": count}, f"<{name}>")
                else:
                    of_class[name][iri] = self._use(iri, not doubled.isdisjoint((iri, RDF.type.value)), name)
        measured = {
            _text(row["class"]): ClassUse(
                iri=_text(row["class"]),
                entities=_count(row),
                properties=_sort(of_class[_text(row["class"])]),
                example=_text(row["example"]),
            )
            for row in classes
        }
        return measured, properties

    def _families(self) -> dict[str, FamilyUse]:
        graphs, entities = (
            {_text(row["family"]): _count(row) for row in self._rows(query, pattern=FAMILY) if "family" in row}
            for query in (GRAPH_FAMILIES, ENTITY_FAMILIES)
        )
        classes: dict[str, dict[str, int]] = {}
        properties: dict[str, dict[str, int]] = {}
        for query, term, counts in ((CLASS_FAMILIES, "class", classes), (FAMILIES, "property", properties)):
            for row in sorted(self._rows(query, pattern=FAMILY), key=lambda row: (-_count(row), str(row[term]))):
                counts.setdefault(_text(row["family"]), {})[_text(row[term])] = _count(row)
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

    def _use(self, iri: str, doubled: bool, of: str | None = None) -> PropertyUse:
        terms = {"property": NamedNode(iri)} | ({} if of is None else {"class": NamedNode(of)})
        pattern = PATTERNS[of is not None, doubled]
        datatypes: dict[str, int] = {}
        languages: dict[str, int] = {}
        classes: dict[str, int] = {}
        triples, things, example = 0, 0, None
        rows = self._rows(VALUES.replace("PATTERN", pattern), **terms)
        for row in sorted(rows, key=lambda row: -_count(row)):
            triples += _count(row)
            example = example or _example(row["example"])
            if "datatype" not in row:
                things += _count(row)
                continue
            datatype, language = _text(row["datatype"]), _text(row["language"])
            datatypes[datatype] = datatypes.get(datatype, 0) + _count(row)
            if language:
                languages[language] = languages.get(language, 0) + _count(row)
        if things:
            found = self._rows(OBJECT_CLASSES.replace("PATTERN", pattern), **terms)
            for row in sorted(found, key=lambda row: -_count(row)):
                classes[_text(row["type"]) if "type" in row else ""] = _count(row)
        subjects = self._rows(SUBJECTS.replace("PATTERN", PATTERNS[of is not None, False]), **terms)
        return PropertyUse(iri, triples, _count(subjects[0]), datatypes, languages, classes, example)

    def _rows(self, query: str, **terms: NamedNode | Literal) -> list[dict[str, Term]]:
        """Run a counting query. Its only aggregates may be `count` and `example`."""
        if self._of_catalog:
            query = query.replace("GRAPH ?graph", "GRAPH $catalog").replace(CONTENT, "")
        terms |= {name: graph for name, graph in UNCOUNTED.items() if f"${name}" in query}
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
        answer = self._kg.pool.run(query, limit=_ALL_ROWS, timeout_s=QUERY_DEADLINE_S, at_least=self._at_least)
        if not isinstance(answer.result, Rows):
            raise TypeError(f"not a SELECT: {query}")
        if self._generation is None:
            self._generation = answer.generation
        return list(answer.result)


def _merge_subclasses(measured: Mapping[str, ClassUse], row: Mapping[str, Term]) -> ClassUse:
    """Build the use of a superclass from its own and those of its subclasses, which have no instance in common."""
    iri = _text(row["class"])
    below = [measured[name.value] for name in get_subclasses(NamedNode(iri)) if name.value in measured]
    parts = [*([measured[iri]] if iri in measured else []), *below]
    merged: dict[str, PropertyUse] = {}
    for use in (use for part in parts for use in part.properties.values()):
        known = merged.get(use.iri)
        merged[use.iri] = use if known is None else _add_uses(known, use)
    entities = _count(row) + (measured[iri].entities if iri in measured else 0)
    return ClassUse(iri, entities, _sort(merged), _text(row["example"]), inferred=True)


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


def _sort(uses: Mapping[str, PropertyUse]) -> dict[str, PropertyUse]:
    return dict(sorted(uses.items(), key=lambda use: (-use[1].triples, use[0])))


FAMILY: Final = Literal(f"^{re.escape(BASE)}graph/([^/]+(/[^/]+)?).*$")


def _text(term: Term) -> str:
    return term.value if isinstance(term, (NamedNode, Literal)) else str(term)


def _count(row: Mapping[str, Term]) -> int:
    return int(_text(row["count"]))


def _example(term: Term) -> str:
    if isinstance(term, Literal) and len(term.value) > EXAMPLE_CHARACTERS:
        cut = term.value[:EXAMPLE_CHARACTERS].rstrip() + "…"
        return str(Literal(cut, language=term.language) if term.language else Literal(cut, datatype=term.datatype))
    return str(term)


# The cache file has no terms: they belong to the running version.


def _save(folder: Path, schema: Schema) -> None:
    if not folder.is_dir():
        return
    content = {"format": _FORMAT, **asdict(schema)}
    del content["terms"], content["families"], content["unmeasured"]
    write_file(folder / FILE, json.dumps(content, ensure_ascii=False, separators=(",", ":")))


def _load(file: Path, newest: int) -> Schema | None:
    """Load the schema saved in `file`, None if it is unreadable or of a generation after `newest`."""
    try:
        content = json.loads(file.read_text())
        if content.pop("format") != _FORMAT or content["generation"] > newest:
            return None
        classes = {
            iri: ClassUse(**{**use, "properties": dict(_uses(use["properties"]))})
            for iri, use in content.pop("classes").items()
        }
        properties = dict(_uses(content.pop("properties")))
        holdings = {name: FamilyUse(**family) for name, family in content.pop("holdings").items()}
        return Schema(
            **content,
            classes=classes,
            properties=properties,
            terms=load_declared_terms(),
            unmeasured=load_used_vocabulary(),
            families=_family_terms(holdings),
            holdings=holdings,
        )
    except OSError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        log.warning("%s is not a valid schema and is rebuilt: %s", file, error)
        return None


def _family_terms(holdings: Mapping[str, FamilyUse]) -> dict[str, frozenset[str]]:
    return {name: frozenset(family.properties) for name, family in holdings.items()}


def _uses(content: Mapping[str, Any]) -> Iterator[tuple[str, PropertyUse]]:
    return ((iri, PropertyUse(**use)) for iri, use in content.items())
