"""What the data are made of, as measured: classes, their properties and how often each is used. Pure.

The counts are those of VoID (https://www.w3.org/TR/void/): a class partition with its property partitions. `Schema` is
what the schema tools show, what a query is checked against, and what ``/.well-known/void`` publishes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class PropertyUse:
    """How one property is used with the things of one class.

    `datatypes` counts literals by datatype IRI, `languages` those with a language tag by tag, `classes` the objects by
    their class IRI; what has no class counts under the empty string.
    """

    iri: str
    triples: int
    subjects: int
    datatypes: Mapping[str, int] = field(default_factory=dict)
    languages: Mapping[str, int] = field(default_factory=dict)
    classes: Mapping[str, int] = field(default_factory=dict)
    example: str | None = None
    """One value, as an N-Triples term; long literals are cut."""


@dataclass(frozen=True, slots=True)
class ClassUse:
    """How many things there are of one class, and which properties they have, most used first."""

    iri: str
    entities: int
    properties: Mapping[str, PropertyUse]
    example: str | None = None
    """The IRI of one of them."""


@dataclass(frozen=True, slots=True)
class Term:
    """What the ontology, or the data themselves, say of a class, property or individual."""

    iri: str
    kind: str
    """``class``, ``property`` or ``individual``."""
    label: str
    alt_labels: tuple[str, ...] = ()
    definition: str | None = None
    domain: str | None = None
    """The part of the model that it belongs to: ``core``, ``climate``, ..."""
    parents: tuple[str, ...] = ()
    """IRIs of the classes or properties that it is declared to be under."""


@dataclass(frozen=True, slots=True)
class FamilyUse:
    """What one family of graphs holds: its graphs, the things that have a class there, how often each term is used."""

    graphs: int
    quads: int
    entities: int
    classes: Mapping[str, int]
    properties: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Schema:
    """The measured state of generation `generation` of the store."""

    generation: int
    triples: int
    classes: Mapping[str, ClassUse]
    properties: Mapping[str, PropertyUse]
    """Every property whatever the class of its subject, most used first."""
    terms: Mapping[str, Term]
    """Declared terms by IRI; a class or property that is used without being declared has none."""
    graphs: Mapping[str, int] = field(default_factory=dict)
    """Quads by family of graphs: ``src/climate``, ``ref/place``, ``prov`` and so on."""
    families: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The IRIs of the properties that each family of graphs uses; empty where that was not measured."""
    holdings: Mapping[str, FamilyUse] = field(default_factory=dict)
    """What each family of graphs holds; empty where that was not measured."""
    measured_at: str | None = None
    """When it was measured: UTC, as an ``xsd:dateTime``."""
