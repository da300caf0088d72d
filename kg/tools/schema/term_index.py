"""Index of named terms: classes, properties, and individuals such as codes, places and policy families."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pyoxigraph import Literal as RdfLiteral
from pyoxigraph import NamedNode

from kg.errors import NotFoundError
from kg.fuzzy_names import Names, fold
from kg.knowledge_graph import KnowledgeGraph
from kg.ontology import get_ancestors, load_code_lists, load_shapes
from kg.provenance.catalog import MEANINGS
from kg.retrieval.property_names import PropertyName, find_property, is_detailed, load_property_names
from kg.retrieval.reader import Reader, iri_of, share
from kg.sparql.measured_schema import Schema
from kg.sparql.schema_index import local_name
from kg.sparql.terms import bind
from kg.store.protocol import Rows, preference, term_text
from kg.text import quoted
from kg.tools.schema.schema_measurement import FIRST_WAIT_S, UNMEASURED, get_schema
from kg.vocabulary import (
    BASE,
    DCAT,
    DCTERMS,
    FOAF,
    KG,
    PREFIXES,
    PROPERTIES_GRAPH,
    RDF,
    RDFS,
    SCHEMA,
    SKOS,
    VOID,
    curie,
    prefixed_name,
)

Kind = Literal["class", "property", "individual"]

INDIVIDUAL_NAMES: Final = 200_000
"""Maximum names of individuals. Truncation is reported."""

NEAR: Final = 0.5
"""Least similarity of a name that is suggested for an unknown one."""

_COMPARED: Final = 2_000
"""Maximum entries with the same beginning that are ordered by their use."""

NAMING: Final = (SKOS.prefLabel, RDFS.label, SKOS.altLabel, SKOS.notation, FOAF.name, SCHEMA.name, DCTERMS.title)
"""The properties whose values are names, the preferred one first."""

IN_CATALOG: Final = (DCAT.Dataset.value, VOID.Dataset.value)
"""The classes of the catalog."""

# Not what ships about properties of Wikidata: those that the data uses are found as predicates.
CLASSES_IN_USE: Final = """
SELECT DISTINCT ?class WHERE { GRAPH ?graph { ?thing a ?class } FILTER(?graph != $properties) }"""

NAMES_OF: Final = """
SELECT DISTINCT ?thing ?class ?property ?name WHERE {
  VALUES ?class { $classes } VALUES ?property { $names }
  GRAPH ?graph { ?thing a ?class } FILTER(?graph != $properties) ?thing ?property ?name
}"""


@dataclass(frozen=True, slots=True)
class Entry:
    """A named term. `names` are its labels, aliases, codes and local name. The first one is shown."""

    iri: str
    kind: Kind
    names: tuple[str, ...]
    about: str | None = None
    """Definition from the ontology or message of the shapes, if any."""
    classes: tuple[str, ...] = ()
    """Classes of an individual."""
    count: int | None = None
    """Number of instances of a class, or of triples of a property."""

    @property
    def label(self) -> str:
        """The name to show."""
        return self.names[0]


class TermIndex:
    """All named terms at `generation`."""

    def __init__(self, schema: Schema, entries: Sequence[Entry], generation: int, *, truncated: bool) -> None:
        self.schema = schema
        self.entries = entries
        self.generation = generation
        self.truncated = truncated
        self._by_iri = {entry.iri: entry for entry in entries}
        self._names = {
            kind: Names([(n, name) for n, entry in enumerate(entries) if entry.kind == kind for name in entry.names])
            for kind in ("class", "property", "individual")
        }
        self._starts: dict[str, list[tuple[str, int]]] = {}
        self.explained = [entry for entry in entries if entry.about]
        """Entries that can be found by meaning."""

    def like(self, text: str, kinds: Sequence[str], most: int) -> list[tuple[float, Entry, str]]:
        """Find at most `most` entries of each of `kinds` with similar names. Returns score, entry and matching name."""
        found = [
            (likeness.score, self.entries[likeness.number], likeness.name)
            for kind in kinds
            for likeness in self._names[kind].nearest(text, most)
        ]
        return sorted(found, key=lambda item: -item[0])

    def starting(self, text: str, kind: Kind, most: int) -> list[Entry]:
        """Find at most `most` entries of `kind` with a name that begins with `text`, the most used first."""
        if kind not in self._starts:
            self._starts[kind] = sorted(
                {
                    (fold(name), at)
                    for at, entry in enumerate(self.entries)
                    if entry.kind == kind
                    for name in entry.names
                }
            )
        wanted, names = fold(text), self._starts[kind]
        at = bisect_left(names, (wanted, -1))
        found: dict[int, None] = {}
        while at < len(names) and names[at][0].startswith(wanted) and len(found) < _COMPARED:
            found[names[at][1]] = None
            at += 1
        return sorted((self.entries[number] for number in found), key=lambda entry: -(entry.count or 0))[:most]

    def get(self, text: str) -> Entry | None:
        """Get an entry by IRI, prefixed name, or local name in ``kg:``."""
        stripped = text.strip().removeprefix("<").removesuffix(">")
        prefix, colon, local = stripped.partition(":")
        forms = [stripped, KG.iri + stripped]
        if colon and prefix in PREFIXES:
            forms.insert(0, PREFIXES[prefix] + local)
        return next((self._by_iri[form] for form in forms if form in self._by_iri), None)

    def resolve(self, text: str, kinds: Sequence[str]) -> Entry:
        """Find the one entry of `kinds` that `text` names, by IRI, prefixed name, label or alias.

        Raises NotFoundError with similar names.
        """
        entry = self.get(text)
        if entry is not None and entry.kind in kinds:
            return entry
        found = self.like(text.partition(":")[2] or text, kinds, 6) if ":" in text else self.like(text, kinds, 6)
        wanted = fold(text)
        same = [item for _, item, name in found if fold(name) == wanted]
        # Of the predicates of one property of a Wikibase, most queries want the direct one.
        same = [item for item in same if not is_detailed(item.iri)] or same
        if len(same) == 1 or (same and same[0].kind != same[-1].kind):
            return same[0]
        raise self.unknown(text, kinds, [item for score, item, _ in found if score >= NEAR])

    def unknown(self, text: str, kinds: Sequence[str], near: Sequence[Entry]) -> NotFoundError:
        """Build the error for a name without an entry of `kinds`. `near` are similar entries."""
        singular = " or ".join(kinds)
        close = ", ".join(f"{to_query_name(entry.iri)} ({quoted(entry.label)})" for entry in near[:5])
        other = self.get(text)
        if other is not None:
            classes = ", ".join(map(to_query_name, other.classes))
            return NotFoundError(
                f"{to_query_name(other.iri)} is not a {singular} but an {other.kind} of {classes}. "
                "kg://entity/{iri} shows its statements."
            )
        hint = f" Similar: {close}." if close else ""
        return NotFoundError(
            f"Unknown {singular} {quoted(text)}.{hint} find_terms finds terms by meaning. describe_schema without a "
            "term lists the classes."
        )


def get_term_index(kg: KnowledgeGraph, wait_s: float = FIRST_WAIT_S) -> TermIndex:
    """Get the index in the state that the call reads, with the last measured counts of the schema.

    It can be that of another state (`share`). It waits for the first measurement of the schema for `wait_s` at most. An
    index without one has no counts.
    """
    schema = get_schema(kg, wait_s)

    def is_current(terms: TermIndex) -> bool:
        named = kg.store.find_last_change(frozenset(name.value for name in NAMING))
        return named <= min(terms.generation, kg.generation) and terms.schema.generation >= schema.generation

    return share(kg, "terms", lambda: _build_index(kg, schema), is_current, what="terms")


def _build_index(kg: KnowledgeGraph, schema: Schema) -> TermIndex:
    labelled = load_property_names(Reader(kg), [*schema.properties, *schema.classes])
    entries = {entry.iri: entry for entry in [*_vocabulary_entries(schema, labelled), *_code_entries()]}
    individuals, generation, truncated = _load_individuals(kg, schema)
    for entry in individuals:
        known = entries.get(entry.iri)
        if known is None:
            entries[entry.iri] = entry
        elif known.kind == "individual":
            names = tuple(dict.fromkeys(known.names + entry.names))
            entries[entry.iri] = Entry(entry.iri, "individual", names, known.about, entry.classes)
    return TermIndex(schema, list(entries.values()), generation or schema.generation, truncated=truncated)


def _vocabulary_entries(schema: Schema, named: Mapping[str, PropertyName]) -> Iterator[Entry]:
    """Yield the classes and properties that are used or declared. `named` are the names of predicates of Wikibases."""
    said = _shape_messages(schema)
    uses: Mapping[str, tuple[Kind, int]] = {
        **{iri: ("property", use.triples) for iri, use in schema.properties.items()},
        **{iri: ("class", use.entities) for iri, use in schema.classes.items()},
    }
    declared_kinds: dict[str, Kind] = {
        iri: "class" if term.kind == "class" else "property"
        for iri, term in schema.terms.items()
        if term.kind in ("class", "property")
    }
    for iri in dict.fromkeys([*uses, *declared_kinds]):
        unused = 0 if schema.generation and iri not in UNMEASURED else None
        kind, count = uses.get(iri) or (declared_kinds[iri], unused)
        term = schema.terms.get(iri)
        local = local_name(iri)
        wikibase = named.get(iri, PropertyName())
        label = term.label if term else wikibase.label or (split_words(local) if find_property(iri) is None else local)
        others = term.alt_labels if term else wikibase.aliases
        names = (label, *others, local, split_words(local), to_query_name(iri))
        about = (term.definition if term else None) or said.get(iri) or _find_meaning_in_catalog(schema, iri)
        if about is None and wikibase.description:
            about = describe_foreign(iri, wikibase.description)
        yield Entry(iri, kind, tuple(dict.fromkeys(names)), about, count=count)


def _find_meaning_in_catalog(schema: Schema, iri: str) -> str | None:
    """Find the meaning of a class of the catalog, or of a property that is mostly used in it."""
    meaning = MEANINGS.get(NamedNode(iri))
    if meaning is None or iri not in schema.properties:
        return meaning
    uses = [
        use.properties[iri].triples for use in schema.classes.values() if iri in use.properties and not use.inferred
    ]
    own = [schema.classes[name].properties.get(iri) for name in IN_CATALOG if name in schema.classes]
    return meaning if 2 * max((use.triples for use in own if use), default=0) >= max(uses, default=0) else None


def _code_entries() -> Iterator[Entry]:
    concept = (SKOS.Concept.value,)
    for scheme, codes in load_code_lists().items():
        for code in codes:
            about = f"{split_words(local_name(scheme))} {quoted(code.notation)}: {code.definition or code.label}"
            yield Entry(code.iri, "individual", tuple(dict.fromkeys((code.label, code.notation))), about, concept)


def _shape_messages(schema: Schema) -> dict[str, str]:
    """Get a message of the shapes for each property, as a description of those of other vocabularies.

    A property that is mostly used with classes without a shape for it has none.
    """
    found: dict[str, list[str]] = defaultdict(list)
    covered: dict[str, int] = defaultdict(int)
    for name, shape in load_shapes().items():
        uses = schema.classes[name].properties if name in schema.classes else {}
        for path, constraint in shape.properties.items():
            found[path].extend(constraint.messages)
            covered[path] += uses[path].triples if path in uses else 0
    return {
        path: messages[0]
        for path, messages in found.items()
        if messages and (path not in schema.properties or 2 * covered[path] >= schema.properties[path].triples)
    }


def _load_individuals(kg: KnowledgeGraph, schema: Schema) -> tuple[list[Entry], int, bool]:
    """Load the named individuals, without documents and text units, of which there are too many, and without datasets,
    whose names are those of files.
    """
    named = (
        [iri for iri, use in schema.classes.items() if any(name.value in use.properties for name in NAMING)]
        if schema.generation
        else _load_classes(kg)
    )
    apart = {KG.Document.value, KG.TextUnit.value, *IN_CATALOG}
    classes = [NamedNode(iri) for iri in named if apart.isdisjoint((iri, *get_ancestors(iri)))]
    if not classes:
        return [], 0, False
    query = bind(NAMES_OF, classes=classes, names=list(NAMING), properties=PROPERTIES_GRAPH)
    answer = kg.query(query, limit=INDIVIDUAL_NAMES)
    if not isinstance(answer.result, Rows):
        raise TypeError("a SELECT returned no rows")
    ranks = {name.value: rank for rank, name in enumerate(NAMING)}
    names: dict[str, list[tuple[int, tuple[int, str, str], str]]] = defaultdict(list)
    of: dict[str, set[str]] = defaultdict(set)
    for row in answer.result:
        if isinstance(row["thing"], NamedNode):
            iri = row["thing"].value
            name = row["name"]
            rank = preference(name) if isinstance(name, RdfLiteral) else (0, "", "")
            names[iri].append((ranks[iri_of(row["property"])], rank, term_text(name)))
            of[iri].add(iri_of(row["class"]))
    entries = [
        Entry(
            iri, "individual", tuple(dict.fromkeys(name for _, _, name in sorted(named))), None, tuple(sorted(of[iri]))
        )
        for iri, named in names.items()
    ]
    return entries, answer.generation, answer.truncated


def _load_classes(kg: KnowledgeGraph) -> list[str]:
    """Load the classes in use, while the schema is not measured."""
    result = kg.query(bind(CLASSES_IN_USE, properties=PROPERTIES_GRAPH)).result
    if not isinstance(result, Rows):
        raise TypeError("a SELECT returned no rows")
    return sorted(row["class"].value for row in result if isinstance(row["class"], NamedNode))


def get_scheme(iri: str) -> str | None:
    """Get the IRI of the code list of a code, None for any other IRI."""
    scheme, _, code = iri.rpartition("/")
    return scheme if code and scheme.startswith(f"{BASE}vocab/") else None


def split_words(name: str) -> str:
    """Split a local name into words: ``isPartOf`` and ``is_part_of`` become "is part of"."""
    return " ".join(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ").replace("-", " ").split()).lower()


def to_query_name(iri: str) -> str:
    """Write `iri` as in a query: ``a``, a prefixed name, or in angle brackets."""
    return "a" if iri == RDF.type.value else curie(iri)


def describe_foreign(iri: str, label: str) -> str:
    """Describe a class or property that the ontology does not define, by its label or description."""
    if "/prop/novalue/" in iri:
        return f"items with a statement that they have no value of {local_name(iri)}"
    if (wikibase := find_property(iri)) is not None:
        return wikibase[1] if fold(label) == fold(local_name(iri)) else f"{label}: {wikibase[1]}"
    name = prefixed_name(iri)
    whose = "another vocabulary" if name is None else f"{name.partition(':')[0]}:"
    return f"{label}, as {whose} defines it"
