"""What a source module yields: documents whose units hold text verbatim, with the place each came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import RecordError
from kg.vocabulary import DCTERMS, KG, RDF, SCHEMA, mint, sha256

Property = tuple[NamedNode, NamedNode | Literal]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The bytes that a record was read from: one file as it was, known by its hash."""

    sha256: str
    source: str
    """Path or URL, as given by whoever loads."""
    revision: str | None = None
    """Revision of the dataset that the file belongs to, if it has one."""
    read_at: datetime | None = None
    """When it was read, if that was in an earlier run; what lies there by now may be something else."""
    sent_by: str | None = None
    """Who gave it, where it is a person's correction of a record."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where one record stands in a snapshot. `rows` are 1-based data rows, one for each unit, in unit order."""

    snapshot: Snapshot
    rows: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class TextUnit:
    """A citable piece of text, byte for byte as the source has it."""

    iri: NamedNode
    kind: NamedNode
    position: int
    text: str
    parent: NamedNode | None
    """What it is part of; None for what stands alone, such as the highest level of a code."""
    language: str | None = None
    properties: Sequence[Property] = ()

    def __post_init__(self) -> None:
        if not self.text:
            raise RecordError(f"{self.iri.value}: a text unit has no text")
        if self.position < 0:
            raise RecordError(f"{self.iri.value}: position {self.position} is negative; positions count from 0")


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """One source record: the unit of replacement, deletion, provenance and re-indexing."""

    domain: str
    key: tuple[str, ...]
    """Path of its graph below ``graph/src/{domain}/``."""
    iri: NamedNode
    title: str
    kinds: Sequence[NamedNode]
    properties: Sequence[Property]
    units: Sequence[TextUnit]
    origins: Sequence[Origin]
    """One origin, or one a file when a record spans files; their rows together follow the order of units."""
    source_sha256: str
    """Hash over what was read for this record; with the loader's version it decides whether anything changed."""
    shared: Mapping[NamedNode, Sequence[Quad]] = field(default_factory=dict)
    """Graphs below ``graph/ref/`` that hold what this record shares with others (its family, its places)."""
    warnings: Sequence[str] = ()
    context: Sequence[Origin] = ()
    """Rows that were read to make it and hold no unit of it: empty ones, and those of records that it refers to."""


@dataclass(frozen=True, slots=True)
class SourceGraph:
    """One source record that is no single document: RDF in its source's own model, or many documents together.

    `units` are the text units of all the documents in it, each of its own parent; the title of a document is among
    `quads`.
    """

    domain: str
    key: tuple[str, ...]
    iri: NamedNode
    quads: Sequence[Quad]
    """All of its graph, ``graph/src/{domain}/{key}``, but for what `units` say."""
    origins: Sequence[Origin]
    source_sha256: str
    shared: Mapping[NamedNode, Sequence[Quad]] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    context: Sequence[Origin] = ()
    units: Sequence[TextUnit] = ()


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """A record of which its source says that it is no more."""

    record: str
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rejection:
    """A record that could not become a graph, with what is wrong and where."""

    record: str
    reason: str
    origins: Sequence[Origin] = ()
    """Where it stands; an origin without rows is a file that could not be read."""
    key: tuple[str, ...] | None = None
    """Path of the graph that the record would have had; None where the record is not known."""
    context: Sequence[Origin] = ()
    """Rows of others that it takes to make it."""

    @property
    def source(self) -> str | None:
        """The file that it stands in, the first where there are several."""
        return self.origins[0].snapshot.source if self.origins else None

    @property
    def rows(self) -> Sequence[int]:
        """Its rows, in whatever files."""
        return [row for origin in self.origins for row in origin.rows]


@dataclass(frozen=True, slots=True)
class Notice:
    """Something to tell whoever loads that concerns no single record, such as the layout of a file."""

    text: str
    warning: bool = False
    expected_rows: int | None = None
    """How many data rows are to be read, once that is known."""


def graph_name(document: SourceDocument | SourceGraph) -> NamedNode:
    """Return the name of the graph that holds the record: ``graph/src/{domain}/{key}``."""
    return mint("graph", "src", document.domain, *document.key)


def to_quads(document: SourceDocument | SourceGraph) -> list[Quad]:
    """Return the quads of the record, without those of the graphs that it shares with others."""
    graph = graph_name(document)
    if isinstance(document, SourceGraph):
        return [*document.quads, *_units(document.units, graph)] if document.units else list(document.quads)
    iri = document.iri
    result = [Quad(iri, RDF.type, kind, graph) for kind in document.kinds]
    result.append(Quad(iri, DCTERMS.title, Literal(document.title), graph))
    result += [Quad(iri, predicate, value, graph) for predicate, value in document.properties]
    return result + _units(document.units, graph)


def _units(units: Sequence[TextUnit], graph: NamedNode) -> list[Quad]:
    result = []
    type_, part_of, position = RDF.type, DCTERMS.isPartOf, SCHEMA.position
    text, text_sha256, language = SCHEMA.text, KG.textSha256, SCHEMA.inLanguage
    for unit in units:
        subject = unit.iri
        result.append(Quad(subject, type_, unit.kind, graph))
        if unit.parent is not None:
            result.append(Quad(subject, part_of, unit.parent, graph))
        result.append(Quad(subject, position, Literal(unit.position), graph))
        result.append(Quad(subject, text, Literal(unit.text), graph))
        result.append(Quad(subject, text_sha256, Literal(sha256(unit.text)), graph))
        if unit.language is not None:
            result.append(Quad(subject, language, _plain(unit.language), graph))
        for predicate, value in unit.properties:
            result.append(Quad(subject, predicate, value, graph))
    return result


@lru_cache(maxsize=1024)
def _plain(text: str) -> Literal:
    return Literal(text)
