"""The schema of the data as measured: classes, their properties, and counts of their use.

The counts are those of VoID (https://www.w3.org/TR/void/): class partitions with their property partitions. The schema
tools, the hints about queries and ``/.well-known/void`` are based on `Schema`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class PropertyUse:
    """The use of one property with the instances of one class.

    `datatypes` counts literals by datatype IRI, `languages` those with a language tag by tag, `classes` the objects by
    their class IRI; objects without a class count under the empty string.
    """

    iri: str
    triples: int
    subjects: int
    datatypes: Mapping[str, int] = field(default_factory=dict)
    languages: Mapping[str, int] = field(default_factory=dict)
    classes: Mapping[str, int] = field(default_factory=dict)
    example: str | None = None
    """One value, as an N-Triples term; long literals are truncated."""


@dataclass(frozen=True, slots=True)
class ClassUse:
    """The number of instances of one class, and their properties, most used first."""

    iri: str
    entities: int
    properties: Mapping[str, PropertyUse]
    example: str | None = None
    """The IRI of one instance."""
    inferred: bool = False
    """Whether it is a superclass, whose instances are those of its subclasses."""


@dataclass(frozen=True, slots=True)
class Term:
    """The declaration of a class, property or individual, from the ontology or the data."""

    iri: str
    kind: str
    """``class``, ``property`` or ``individual``."""
    label: str
    alt_labels: tuple[str, ...] = ()
    definition: str | None = None
    domain: str | None = None
    """The part of the ontology: ``core``, ``climate``, ..."""
    parents: tuple[str, ...] = ()
    """IRIs of the declared superclasses or superproperties."""


@dataclass(frozen=True, slots=True)
class FamilyUse:
    """Counts for one family of graphs: graphs, quads, entities with a class there, and uses of each term."""

    graphs: int
    quads: int
    entities: int
    classes: Mapping[str, int]
    properties: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Schema:
    """The schema of generation `generation` of the store."""

    generation: int
    triples: int
    classes: Mapping[str, ClassUse]
    properties: Mapping[str, PropertyUse]
    """All properties, counted over subjects of any class, most used first."""
    terms: Mapping[str, Term]
    """Declared terms by IRI. A class or property can be in use without a declaration."""
    graphs: Mapping[str, int] = field(default_factory=dict)
    """Quads by family of graphs: ``src/climate``, ``ref/place``, ``prov`` and so on."""
    families: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The IRIs of the properties that each family of graphs uses; empty if not measured."""
    holdings: Mapping[str, FamilyUse] = field(default_factory=dict)
    """The counts for each family of graphs; empty if not measured."""
    unmeasured: frozenset[str] = frozenset()
    """The IRIs of properties and classes that only graphs which are not measured may use: ontology, shapes."""
    measured_at: str | None = None
    """Time of the measurement: UTC, as an ``xsd:dateTime``."""
