"""From the IRIs of passages to evidence: their words, their document, and the row of the file they were read from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from pyoxigraph import NamedNode

from kg.provenance import parse_rows
from kg.sparql.terms import bind
from kg.store.protocol import Term
from kg.tools.model import Document, Evidence, Passage, Provenance
from kg.tools.reading import Reader, iri_of, text_of
from kg.vocabulary import DCTERMS, ELI, FOAF, KG, PROV, PROV_GRAPH, SCHEMA, slug_of

# Properties are chosen by FILTER, after the lookup by subject: with a second VALUES, or with OPTIONAL patterns inside
# GRAPH, Oxigraph reads the whole store (10 passages of 2,000: 9 and 50 ms, against 0.6 ms so).
PASSAGES: Final = """
SELECT DISTINCT ?unit ?graph ?property ?value WHERE {
  VALUES ?unit { $units }
  GRAPH ?graph { ?unit ?property ?value }
  FILTER(?property IN (dcterms:isPartOf, schema:position, schema:text, kg:pageNumber, kg:blockType))
}"""

DESCRIPTIONS: Final = """
SELECT DISTINCT ?subject ?property ?value WHERE {
  {
    VALUES ?subject { $documents } ?subject ?property ?value
    FILTER(?property IN (dcterms:title, kg:slug, dcterms:identifier, kg:jurisdiction, schema:inLanguage,
                         eli:is_member_of, foaf:page, dcterms:source))
  } UNION {
    VALUES ?document { $documents }
    ?document eli:is_member_of ?subject . ?subject dcterms:title ?value BIND(dcterms:title AS ?property)
  } UNION {
    VALUES ?subject { $graphs } GRAPH $prov { ?subject ?property ?value }
    FILTER(?property IN (prov:wasDerivedFrom, prov:qualifiedDerivation, kg:sourceRows, kg:contentSha256))
  } UNION {
    VALUES ?graph { $graphs } GRAPH $prov { ?graph prov:wasDerivedFrom ?subject . ?subject ?property ?value }
    FILTER(?property IN (kg:sha256, kg:location, kg:datasetRevision))
  } UNION {
    VALUES ?graph { $graphs } GRAPH $prov { ?graph prov:qualifiedDerivation ?subject . ?subject ?property ?value }
    FILTER(?property IN (prov:entity, schema:position, kg:sourceRows))
  }
}"""

POSITIONS: Final = """
SELECT DISTINCT ?unit ?position WHERE { GRAPH $graph { ?unit schema:position ?position } }"""

Properties = Mapping[NamedNode, Sequence[Term]]
_NOTHING: Final[Properties] = {}


@dataclass(frozen=True, slots=True)
class Descriptions:
    """What the graph says of documents, their families, and the origin of graphs."""

    said: Mapping[str, Properties]

    def all(self, iri: str, name: NamedNode) -> list[str]:
        """Return the values of one property, sorted."""
        return sorted(text_of(term) for term in self.said.get(iri, _NOTHING).get(name, ()))

    def one(self, iri: str, name: NamedNode) -> str | None:
        """Return the first value of one property."""
        return next(iter(self.all(iri, name)), None)


@dataclass(frozen=True, slots=True)
class Unit:
    """A passage as it stands in the graph."""

    iri: str
    graph: str
    document: str
    position: int
    text: str
    page: int | None
    kind: str | None


def code_of(iri: str) -> str:
    """Return the code that a place or a code-list IRI was minted from: its last segment."""
    return unquote(iri.rpartition("/")[2])


def read_units(reader: Reader, iris: Sequence[str]) -> dict[str, Unit]:
    """Return the passages among `iris` that the graph has."""
    if not iris:
        return {}
    said: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for row in reader.rows("passages", bind(PASSAGES, units=[NamedNode(iri) for iri in iris])):
        said[iri_of(row["unit"]), iri_of(row["graph"])][iri_of(row["property"])] = text_of(row["value"])
    units: dict[str, Unit] = {}
    for (iri, graph), values in sorted(said.items()):
        document, position = values.get(DCTERMS.isPartOf.value), values.get(SCHEMA.position.value)
        text, page = values.get(SCHEMA.text.value), values.get(KG.pageNumber.value)
        if document is None or position is None or text is None:
            continue
        units[iri] = Unit(
            iri=iri,
            graph=graph,
            document=document,
            position=int(position),
            text=text,
            page=None if page is None else int(page),
            kind=code_of(values[KG.blockType.value]) if KG.blockType.value in values else None,
        )
    return units


def describe(reader: Reader, documents: Iterable[str], graphs: Iterable[str]) -> Descriptions:
    """Read what is needed to cite from these documents and graphs."""
    said: dict[str, dict[NamedNode, list[Term]]] = defaultdict(lambda: defaultdict(list))
    query = bind(
        DESCRIPTIONS,
        documents=[NamedNode(iri) for iri in sorted(set(documents))],
        graphs=[NamedNode(iri) for iri in sorted(set(graphs))],
        prov=PROV_GRAPH,
    )
    for row in reader.rows("documents and origins", query):
        said[iri_of(row["subject"])][NamedNode(iri_of(row["property"]))].append(row["value"])
    return Descriptions(said)


def url_of(descriptions: Descriptions, document: str) -> str:
    """Return the page that shows a document to people; never empty."""
    return descriptions.one(document, FOAF.page) or descriptions.one(document, DCTERMS.source) or document


def title_of(descriptions: Descriptions, document: str) -> str:
    """Return the title of a document; its slug if it has none."""
    return descriptions.one(document, DCTERMS.title) or slug_of(document)


def family_of(descriptions: Descriptions, document: str) -> str | None:
    """Return the title of the family of a document."""
    families = descriptions.all(document, ELI.is_member_of)
    return descriptions.one(families[0], DCTERMS.title) if families else None


def document_of(descriptions: Descriptions, document: str) -> Document:
    """Return a document as evidence names it."""
    return Document(
        slug=descriptions.one(document, KG.slug) or slug_of(document),
        document_id=descriptions.one(document, DCTERMS.identifier),
        title=title_of(descriptions, document),
        family_title=family_of(descriptions, document),
        geographies=[code_of(iri) for iri in descriptions.all(document, KG.jurisdiction)],
        languages=descriptions.all(document, SCHEMA.inLanguage),
        url=url_of(descriptions, document),
    )


def origin_of(reader: Reader, descriptions: Descriptions, graph: str, position: int | None = None) -> Provenance:
    """Return where a graph was read from, and with `position` the row of the passage that has it."""
    derivations = descriptions.all(graph, PROV.qualifiedDerivation)
    derivations.sort(key=lambda node: int(descriptions.one(node, SCHEMA.position) or 0))
    parts = [(descriptions.one(node, PROV.entity), descriptions.one(node, KG.sourceRows)) for node in derivations] or [
        (snapshot, descriptions.one(graph, KG.sourceRows)) for snapshot in descriptions.all(graph, PROV.wasDerivedFrom)
    ]
    snapshot = parts[0][0] if parts else None
    row: int | None = None
    if position is not None and any(rows for _, rows in parts):
        rank = _positions(reader, descriptions, graph).get(position)
        for part, rows in parts:
            numbers = parse_rows(rows) if rows else []
            if rank is not None and rank < len(numbers):
                snapshot, row = part, numbers[rank]
                break
            rank = None if rank is None else rank - len(numbers)
    if snapshot is None:
        return Provenance(graph=graph)
    return Provenance(
        graph=graph,
        source=descriptions.one(snapshot, KG.location),
        sha256=descriptions.one(snapshot, KG.sha256),
        row=row,
        revision=descriptions.one(snapshot, KG.datasetRevision),
    )


def _positions(reader: Reader, descriptions: Descriptions, graph: str) -> Mapping[int, int]:
    """Return the rank of each position in a graph: the rows of a record stand in the order of its units."""
    key = ("positions", graph, descriptions.one(graph, KG.contentSha256))
    known: Mapping[int, int] | None = reader.kg.memory.get(key)
    if known is None:
        rows = reader.rows("order of passages", bind(POSITIONS, graph=NamedNode(graph)))
        order = sorted({int(text_of(row["position"])) for row in rows})
        known = reader.kg.memory.keep(key, {position: rank for rank, position in enumerate(order)})
    return known


def evidence_of(reader: Reader, units: Sequence[Unit], scores: Mapping[str, float] | None = None) -> list[Evidence]:
    """Return the evidence for `units`, in their order."""
    if not units:
        return []
    descriptions = describe(reader, {unit.document for unit in units}, {unit.graph for unit in units})
    documents = {iri: document_of(descriptions, iri) for iri in {unit.document for unit in units}}
    return [
        Evidence(
            id=unit.iri,
            document=documents[unit.document],
            passage=Passage(index=unit.position, page_number=unit.page, type=unit.kind, text=unit.text),
            score=(scores or {}).get(unit.iri),
            provenance=origin_of(reader, descriptions, unit.graph, unit.position),
        )
        for unit in units
    ]
