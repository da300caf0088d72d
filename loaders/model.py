"""The items that a loader yields: documents with verbatim text units, graphs, rejections, and their origins."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import RecordError
from kg.vocabulary import DCTERMS, KG, RDF, SCHEMA, mint, sha256

Property = tuple[NamedNode, NamedNode | Literal]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One version of a source file, identified by its hash."""

    sha256: str
    source: str
    """Path or URL as given to the load."""
    revision: str | None = None
    """Revision of the dataset of the file, if any."""
    read_at: datetime | None = None
    """Time of reading, if by an earlier run; the file may have changed since."""
    sent_by: str | None = None
    """The sender, if the file is a person's correction of a record."""
    left: tuple[str, ...] = ()
    """Sources whose records had this content and have it no longer, as after a move."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The location of a record in a snapshot. `rows` are 1-based data rows, one for each unit, in unit order."""

    snapshot: Snapshot
    rows: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class TextUnit:
    """A citable piece of text, verbatim from the source."""

    iri: NamedNode
    kind: NamedNode
    position: int
    text: str
    parent: NamedNode | None
    """The document or unit that contains it; None for a root, such as the top level of a code."""
    language: str | None = None
    properties: Sequence[Property] = ()

    def __post_init__(self) -> None:
        if not self.text:
            raise RecordError(f"{self.iri.value}: The text unit is empty.")
        if self.position < 0:
            raise RecordError(f"{self.iri.value}: Invalid position {self.position}. Positions are zero-based.")


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """One source record: the unit of replacement, deletion, provenance and re-indexing."""

    domain: str
    key: tuple[str, ...]
    """Path of its graph below ``graph/src/{domain}/``."""
    iri: NamedNode
    title: str | None
    kinds: Sequence[NamedNode]
    properties: Sequence[Property]
    units: Sequence[TextUnit]
    origins: Sequence[Origin]
    """One origin for each file of the record; their rows together are in unit order."""
    source_sha256: str
    """Hash of the input of this record. With the loader's version it determines whether the record changed."""
    shared: Mapping[NamedNode, Sequence[Quad]] = field(default_factory=dict)
    """Graphs below ``graph/ref/`` with data that records share (families, places)."""
    warnings: Sequence[str] = ()
    context: Sequence[Origin] = ()
    """Rows that were read for this record and contain none of its units: empty rows, rows of referenced records."""
    redacted: Mapping[str, int] = field(default_factory=dict)
    """Number of secrets that were replaced in it, by kind."""
    keeps_secrets: bool = False
    """Whether secrets were not searched for, since a setting keeps them."""
    said: Sequence[tuple[NamedNode, Literal]] = ()
    """Other properties of its graph in ``graph/prov``."""


@dataclass(frozen=True, slots=True)
class SourceGraph:
    """One source record that is not a single document: RDF in the model of its source, or several documents.

    `units` are the text units of all its documents. The titles of the documents are in `quads`.
    """

    domain: str
    key: tuple[str, ...]
    iri: NamedNode
    quads: Sequence[Quad]
    """The quads of its graph, ``graph/src/{domain}/{key}``, without those of `units`."""
    origins: Sequence[Origin]
    source_sha256: str
    shared: Mapping[NamedNode, Sequence[Quad]] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    context: Sequence[Origin] = ()
    units: Sequence[TextUnit] = ()


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """A record that its source marks as deleted, or that is skipped for a `reason`: the store shall not have it."""

    record: str
    key: tuple[str, ...]
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Rejection:
    """A record that cannot be loaded, with the reason and the location."""

    record: str
    reason: str
    origins: Sequence[Origin] = ()
    """Its locations. An origin without rows is a file that cannot be read."""
    key: tuple[str, ...] | None = None
    """Path of the graph that the record would have; None if the record is unknown."""
    context: Sequence[Origin] = ()
    """Rows of other records that are needed to map it."""
    unopened: str | None = None
    """The path of a file that was not opened and has no origin; see `Unread.place`."""

    @property
    def source(self) -> str | None:
        """The (first) file of the record."""
        return self.origins[0].snapshot.source if self.origins else None

    @property
    def rows(self) -> Sequence[int]:
        """Its rows in all files."""
        return [row for origin in self.origins for row in origin.rows]


@dataclass(frozen=True, slots=True)
class Notice:
    """A message about no single record, such as the layout of a file."""

    text: str
    warning: bool = False
    expected_rows: int | None = None
    """Total number of data rows, once known."""


class RecordQuads(list[Quad]):
    """The quads of one record. Several derived graphs read a few properties of them each, so they are sorted once."""

    __slots__ = ("_by_predicate", "document")

    def __init__(self, quads: Iterable[Quad] = (), document: SourceDocument | None = None) -> None:
        super().__init__(quads)
        self.document: Final = document
        """The document that they state, if they are those of one that is being loaded."""
        self._by_predicate: dict[NamedNode, list[Quad]] | None = None

    def find(self, predicates: Iterable[NamedNode]) -> Iterator[Quad]:
        """Find the quads with any of `predicates`. Do not add quads after the first call."""
        found = self._by_predicate
        if found is None:
            found = self._by_predicate = {}
            for quad in self:
                found.setdefault(quad.predicate, []).append(quad)
        for predicate in predicates:
            yield from found.get(predicate, ())


def find_quads(quads: Iterable[Quad], predicates: Collection[NamedNode]) -> Iterator[Quad]:
    """Find the quads with any of `predicates`, by predicate where they are sorted."""
    if isinstance(quads, RecordQuads):
        return quads.find(predicates)
    return (quad for quad in quads if quad.predicate in predicates)


def graph_name(document: SourceDocument | SourceGraph) -> NamedNode:
    """Return the name of the graph of a record: ``graph/src/{domain}/{key}``."""
    return mint("graph", "src", document.domain, *document.key)


def to_quads(document: SourceDocument | SourceGraph) -> RecordQuads:
    """Convert a record to quads, without those of its shared graphs."""
    graph = graph_name(document)
    if isinstance(document, SourceGraph):
        return RecordQuads([*document.quads, *_unit_quads(document.units, graph)])
    iri = document.iri
    result = [Quad(iri, RDF.type, kind, graph) for kind in document.kinds]
    if document.title:
        result.append(Quad(iri, DCTERMS.title, Literal(document.title), graph))
    result += [Quad(iri, predicate, value, graph) for predicate, value in document.properties]
    return RecordQuads(result + _unit_quads(document.units, graph), document)


def _unit_quads(units: Sequence[TextUnit], graph: NamedNode) -> list[Quad]:
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
            result.append(Quad(subject, language, _string_literal(unit.language), graph))
        for predicate, value in unit.properties:
            result.append(Quad(subject, predicate, value, graph))
    return result


@lru_cache(maxsize=1024)
def _string_literal(text: str) -> Literal:
    return Literal(text)
