"""Measuring the store: which classes there are, which properties their things have, and with what values.

A measurement is a few dozen aggregate queries in the workers. It runs in a thread of its own, one at a time for each
graph; the last one is kept in memory and in the data directory, and is served while a newer one is made.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pyoxigraph import Literal, NamedNode

from kg.errors import QuadciteError, QueryMemoryError
from kg.knowledge_graph import KnowledgeGraph
from kg.ontology import load_declared_terms
from kg.sparql.measured_schema import ClassUse, FamilyUse, PropertyUse, Schema
from kg.sparql.terms import bind
from kg.store.protocol import Rows, Term
from kg.vocabulary import BASE, RDF

log = logging.getLogger(__name__)

FIRST_WAIT_S: Final = 8.0
"""Seconds that a call waits for the very first measurement; a small store is measured by then."""
QUERY_DEADLINE_S: Final = 300.0
"""Deadline of one query of a measurement, in seconds."""
REST: Final = 9.0
"""How many times as long as a measurement took no new one is begun: measuring takes a tenth of the time at most."""
RETRY_S: Final = 60.0
"""Seconds after which a measurement that failed is tried again over the same generation: a worker died, or was busy."""
EXAMPLE_CHARACTERS: Final = 160
"""Characters of a literal that an example shows."""
FILE: Final = "schema.json"
"""Name of the last measurement's file in the data directory."""

_FORMAT: Final = 1
_ALL_ROWS: Final = 1_000_000

# A query that needs more memory than a worker has is asked in PARTS, by the hash of the subject in place of #PART.
PARTS: Final = 16
PART: Final = "FILTER(STRSTARTS(MD5(STR(?s)), $part))"

# One pass over the store. The family of a graph is worked out once for each graph, not for each quad.
FAMILIES: Final = """
SELECT ?family ?property (SUM(?quads) AS ?count) WHERE {
  { SELECT ?graph ?property (COUNT(*) AS ?quads) WHERE { GRAPH ?graph { ?s ?property ?o #PART
  } } GROUP BY ?graph ?property }
  BIND(REPLACE(STR(?graph), $pattern, "$1") AS ?family)
} GROUP BY ?family ?property"""

CLASSES: Final = """
SELECT ?class (COUNT(*) AS ?count) (SAMPLE(?s) AS ?example) WHERE {
  { SELECT DISTINCT ?s ?class WHERE { ?s a ?class #PART
  } }
} GROUP BY ?class"""

CLASS_FAMILIES: Final = """
SELECT ?family ?class (SUM(?things) AS ?count) WHERE {
  { SELECT ?graph ?class (COUNT(*) AS ?things) WHERE { GRAPH ?graph { ?s a ?class #PART
  } } GROUP BY ?graph ?class }
  BIND(REPLACE(STR(?graph), $pattern, "$1") AS ?family)
} GROUP BY ?family ?class"""

ENTITY_FAMILIES: Final = """
SELECT ?family (SUM(?things) AS ?count) WHERE {
  { SELECT ?graph (COUNT(*) AS ?things) WHERE {
    { SELECT DISTINCT ?graph ?s WHERE { GRAPH ?graph { ?s a ?class #PART
    } } }
  } GROUP BY ?graph }
  BIND(REPLACE(STR(?graph), $pattern, "$1") AS ?family)
} GROUP BY ?family"""

GRAPH_FAMILIES: Final = """
SELECT ?family (COUNT(?graph) AS ?count) WHERE {
  GRAPH ?graph {} BIND(REPLACE(STR(?graph), $pattern, "$1") AS ?family)
} GROUP BY ?family"""

# One look into the index for each thing, where a join for each property would take one for each triple.
CLASS_PROPERTIES: Final = """
SELECT ?class ?property (COUNT(*) AS ?count) WHERE {
  { SELECT DISTINCT ?s ?class WHERE { ?s a ?class #PART
  } }
  ?s ?property ?o
} GROUP BY ?class ?property"""

# For one property, and for one class of its subjects where $class is bound in PATTERN.
PATTERNS: Final = {
    # (of one class, a triple may stand in two graphs)
    (False, False): "?s $property ?o #PART\n",
    (False, True): "{ SELECT DISTINCT ?s ?o WHERE { ?s $property ?o #PART\n} }",
    (True, False): "?s a $class . ?s $property ?o #PART\n",
    (True, True): "{ SELECT DISTINCT ?s ?o WHERE { ?s a $class . ?s $property ?o #PART\n} }",
}

TRIPLES: Final = "SELECT (COUNT(*) AS ?count) WHERE { { SELECT DISTINCT ?s ?o WHERE { PATTERN } } }"
SUBJECTS: Final = "SELECT (COUNT(*) AS ?count) WHERE { { SELECT DISTINCT ?s WHERE { PATTERN } } }"

VALUES: Final = """
SELECT ?datatype ?language (COUNT(*) AS ?count) (SAMPLE(?o) AS ?example) WHERE {
  PATTERN
} GROUP BY (DATATYPE(?o) AS ?datatype) (LANG(?o) AS ?language)"""

OBJECT_CLASSES: Final = """
SELECT ?type (SUM(?uses) AS ?count) WHERE {
  { SELECT DISTINCT ?o ?uses ?type WHERE {
    { SELECT ?o (COUNT(*) AS ?uses) WHERE { PATTERN FILTER(!isLiteral(?o)) } GROUP BY ?o }
    OPTIONAL { ?o a ?type }
  } }
} GROUP BY ?type"""


def get_schema(kg: KnowledgeGraph, wait_s: float = FIRST_WAIT_S) -> Schema:
    """Return the last measurement of `kg`, and begin a newer one in the background when the store has moved on.

    `Schema.generation` says what it speaks of. As long as nothing has been measured at all (an empty store, or a large
    one whose first measurement takes longer than `wait_s`) the generation is 0, and only `terms` are given.
    """
    return _get_measurements(kg).current(wait_s)


def get_family(graph: str) -> str:
    """Return the family that a graph is counted with: ``src/climate``, ``prov``; its IRI where it is none of ours."""
    parts = graph.removeprefix(BASE + "graph/")
    return graph if parts == graph else "/".join(parts.split("/")[:2])


class _Measurements:
    """The measurements of one graph: at most one runs at a time, the last good one is kept."""

    def __init__(self, kg: KnowledgeGraph) -> None:
        self._kg: Final = kg
        self._lock = threading.Lock()
        self._running: threading.Thread | None = None
        self._next = self._retry = 0.0
        self._failed = -1
        self._schema = _load(kg.settings.data_dir / FILE, kg.store.statistics().generation)

    def current(self, wait_s: float) -> Schema:
        first = self._begin()
        if first is not None:
            first.join(wait_s)
        return self._schema or Schema(0, 0, {}, {}, load_declared_terms())

    def _begin(self) -> threading.Thread | None:
        """Start measuring if that is due; return the thread to wait for when there is nothing to show yet."""
        generation = self._kg.store.statistics().generation
        with self._lock:
            stale = self._schema is None or self._schema.generation < generation
            now = time.monotonic()
            due = now >= (self._retry if generation == self._failed else self._next)
            if self._running is None and stale and due:
                self._running = threading.Thread(target=self._work, args=(generation,), name="measure", daemon=True)
                self._running.start()
            # That it was empty is no help to anybody once it is not.
            return self._running if self._schema is None or self._schema.triples == 0 else None

    def _work(self, generation: int) -> None:
        started = time.monotonic()
        schema = None
        try:
            schema = measure_schema(self._kg)
            _save(self._kg.settings.data_dir, schema)
        except QuadciteError as error:
            log.warning("generation %d of the store could not be measured: %s", generation, error)
        except OSError as error:
            log.warning("the measurement could not be kept in %s: %s", self._kg.settings.data_dir, error)
        finally:
            took = time.monotonic() - started
            with self._lock:
                self._schema = schema or self._schema
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
    """Measure the store as it is. Blocks: some milliseconds a property, and some seconds a million quads.

    Raises what the pool raises: a QueryLimitError when a query hit a limit or the pool was closed.
    """
    return _Measurement(kg).schema()


class _Measurement:
    def __init__(self, kg: KnowledgeGraph) -> None:
        self._kg = kg
        self._at_least = kg.store.statistics().generation
        self._generation: int | None = None

    def schema(self) -> Schema:
        measured_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        families = self._families()
        quads: dict[str, int] = {}
        for family in families.values():
            for iri, count in family.properties.items():
                quads[iri] = quads.get(iri, 0) + count
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
                # Where all its subjects are of this class, what was measured holds for the class.
                if count == quads[iri]:
                    of_class[name][iri] = properties[iri]
                elif iri == RDF.type.value and iri not in doubled:
                    of_class[name][iri] = PropertyUse(iri, count, entities[name], {}, {}, {"": count}, f"<{name}>")
                else:
                    of_class[name][iri] = self._use(iri, not doubled.isdisjoint((iri, RDF.type.value)), name)
        return Schema(
            generation=self._generation or self._at_least,
            triples=sum(triples.values()),
            classes={
                _text(row["class"]): ClassUse(
                    iri=_text(row["class"]),
                    entities=_count(row),
                    properties=dict(
                        sorted(of_class[_text(row["class"])].items(), key=lambda use: (-use[1].triples, use[0]))
                    ),
                    example=_text(row["example"]),
                )
                for row in sorted(classes, key=lambda row: (-_count(row), _text(row["class"])))
            },
            properties=properties,
            terms=load_declared_terms(),
            graphs={name: family.quads for name, family in families.items()},
            families=_family_terms(families),
            holdings=families,
            measured_at=measured_at,
        )

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
        """Return the rows of a query that counts, as `count`; nothing else may be an aggregate but an `example`."""
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
        # An aggregate without groups has one row, also of nothing.
        return [row for key, row in counted.items() if not key or _count(row)]

    def _asked(self, query: str) -> list[dict[str, Term]]:
        answer = self._kg.pool.run(query, limit=_ALL_ROWS, timeout_s=QUERY_DEADLINE_S, at_least=self._at_least)
        if not isinstance(answer.result, Rows):
            raise TypeError(f"a measurement compiled something that is not a SELECT: {query}")
        if self._generation is None:
            self._generation = answer.generation
        return list(answer.result)


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


# The last measurement as a file. The terms are not in it: they come with the version that runs.


def _save(folder: Path, schema: Schema) -> None:
    if not folder.is_dir():
        return
    content = {"format": _FORMAT, **asdict(schema)}
    del content["terms"], content["families"]
    partial = folder / f".{FILE}.partial"
    partial.write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")))
    partial.replace(folder / FILE)


def _load(file: Path, newest: int) -> Schema | None:
    """Return the measurement kept in `file`, if it can be read and is of this store, at `newest` or earlier."""
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
            families=_family_terms(holdings),
            holdings=holdings,
        )
    except OSError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        log.warning("%s is no measurement, and is made again: %s", file, error)
        return None


def _family_terms(holdings: Mapping[str, FamilyUse]) -> dict[str, frozenset[str]]:
    return {name: frozenset(family.properties) for name, family in holdings.items()}


def _uses(content: Mapping[str, Any]) -> Iterator[tuple[str, PropertyUse]]:
    return ((iri, PropertyUse(**use)) for iri, use in content.items())
