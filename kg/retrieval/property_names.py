"""The names of the predicates of a Wikibase: ``wdt:P31``, ``ps:P31`` and ``pq:P31`` are the property "instance of".

They are the names of the property that the graph describes: from a load, or for Wikidata those that ship with Quadcite
(`kg.provenance.property_names`), also where a load describes a property without a label. A property without a name is
shown by its id.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyoxigraph import Literal, NamedNode

from kg.retrieval.reader import Reader, iri_of
from kg.sparql.terms import bind
from kg.store.protocol import preference
from kg.vocabulary import RDFS, SCHEMA, SKOS, WD
from kg.wikidata_properties import load_properties

ROLES: Final[Mapping[str, str]] = {
    "direct/": "values of the best statements, without their nodes",
    "direct-normalized/": "normalized values of the best statements",
    "": "statements, as nodes",
    "statement/": "value of a statement",
    "statement/value/": "full value of a statement",
    "statement/value-normalized/": "normalized value of a statement",
    "qualifier/": "qualifier of a statement",
    "qualifier/value/": "full value of a qualifier",
    "qualifier/value-normalized/": "normalized value of a qualifier",
    "reference/": "part of a reference",
    "reference/value/": "full value in a reference",
    "reference/value-normalized/": "normalized value in a reference",
    "novalue/": "class of items with a statement that they have no value",
}
"""The values of each kind of predicate, by the path between ``prop/`` and the id of the property."""

_PREDICATE: Final = re.compile(r"(https?://.+/)prop/((?:[a-z-]+/){0,2})(P[1-9][0-9]*)")

_NAMING: Final = frozenset({RDFS.label.value, SKOS.altLabel.value, SCHEMA.description.value})

NAMES: Final = """
SELECT DISTINCT ?property ?kind ?name WHERE {
  VALUES ?property { $properties } ?property ?kind ?name
  FILTER(?kind IN (rdfs:label, skos:altLabel, schema:description))
}"""


@dataclass(frozen=True, slots=True)
class PropertyName:
    """The names of a property in the preferred language of each; `label` is None for a property without one."""

    label: str | None = None
    aliases: Sequence[str] = ()
    description: str | None = None


def find_property(predicate: str) -> tuple[str, str] | None:
    """Find the IRI of the property of a predicate, and the kind of its values; None if it is not of a Wikibase."""
    found = _PREDICATE.fullmatch(predicate)
    if found is None or found[2] not in ROLES:
        return None
    return f"{found[1]}entity/{found[3]}", ROLES[found[2]]


def is_detailed(predicate: str) -> bool:
    """Return whether a predicate of a Wikibase is another one than the direct one, which most queries want."""
    found = find_property(predicate)
    return found is not None and found[1] != ROLES["direct/"]


def load_property_names(reader: Reader, predicates: Iterable[str]) -> Mapping[str, PropertyName]:
    """Load the names of those of `predicates` whose property has any. Cached until the next commit."""
    properties = {iri: of[0] for iri in predicates if (of := find_property(iri)) is not None}

    def load(missing: list[str]) -> Mapping[str, PropertyName]:
        said: dict[str, dict[str, list[Literal]]] = defaultdict(lambda: defaultdict(list))
        for row in reader.rows("names of properties", bind(NAMES, properties=[NamedNode(iri) for iri in missing])):
            if isinstance(row["name"], Literal):
                said[iri_of(row["property"])][iri_of(row["kind"])].append(row["name"])
        return {
            iri: _choose(said[iri] if RDFS.label.value in said[iri] else _add_shipped(iri, said[iri]))
            for iri in missing
        }

    names = reader.kept_by_iri("names of a property", set(properties.values()), load) if properties else {}
    found = {predicate: names[iri] for predicate, iri in properties.items() if iri in names}
    return {predicate: name for predicate, name in found.items() if name != PropertyName()}


def _add_shipped(iri: str, said: Mapping[str, list[Literal]]) -> Mapping[str, Sequence[Literal]]:
    """Add the names that ship with Quadcite to those of a property of Wikidata without a label in the graph."""
    shipped = load_properties().get(iri.removeprefix(WD.iri)) if iri.startswith(WD.iri) else None
    names: dict[str, list[Literal]] = defaultdict(list, {kind: list(values) for kind, values in said.items()})
    for predicate, value in shipped.describe() if shipped is not None else ():
        if predicate.value in _NAMING and isinstance(value, Literal) and not said.get(predicate.value):
            names[predicate.value].append(value)
    return names


def load_property_labels(reader: Reader, predicates: Iterable[str]) -> Mapping[str, str]:
    """Load the labels of those of `predicates` whose property has one."""
    return {iri: each.label for iri, each in load_property_names(reader, predicates).items() if each.label}


def _choose(said: Mapping[str, Sequence[Literal]]) -> PropertyName:
    labels = sorted(said.get(RDFS.label.value, ()), key=preference)
    descriptions = sorted(said.get(SCHEMA.description.value, ()), key=preference)
    aliases = sorted(said.get(SKOS.altLabel.value, ()), key=preference)
    best = preference(aliases[0])[0] if aliases else 0
    return PropertyName(
        labels[0].value if labels else None,
        tuple(alias.value for alias in aliases if preference(alias)[0] == best),
        descriptions[0].value if descriptions else None,
    )
