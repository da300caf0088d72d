"""Evidence for passages: text, document, mentioned concepts, and provenance down to the row of the source file."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import unquote

from pyoxigraph import NamedNode

from kg.iso3166 import find_area
from kg.languages import UNKNOWN
from kg.provenance.load_records import find_row, parse_rows
from kg.retrieval.attribution import Chunk, Voice, load_voices
from kg.retrieval.concept_index import load_concepts
from kg.retrieval.display_titles import build_display_title
from kg.retrieval.reader import Reader, iri_of
from kg.retrieval.results import ConceptMatch, Document, Evidence, Passage, Provenance
from kg.sparql.terms import bind
from kg.store.ownership import is_user_graph
from kg.store.protocol import Term, term_text
from kg.text import to_number
from kg.vocabulary import DCTERMS, DERIVED, ELI, FOAF, KG, PROV, PROV_GRAPH, SCHEMA, SKOS, iri_prefix, slug_of

# Properties are selected by FILTER, after the lookup by subject: with a second VALUES, or with OPTIONAL patterns inside
# GRAPH, Oxigraph scans the whole store (10 passages of 2,000: 9 and 50 ms, against 0.6 ms).
PASSAGES: Final = """
SELECT DISTINCT ?unit ?graph ?property ?value WHERE {
  VALUES ?unit { $units }
  GRAPH ?graph { ?unit ?property ?value }
  FILTER(?property IN (dcterms:isPartOf, schema:position, schema:text, kg:pageNumber, kg:blockType, kg:start, kg:end,
                       kg:sourceLines, schema:pagination, kg:breadcrumb, kg:disputedOrder, schema:inLanguage))
}"""

DESCRIPTIONS: Final = """
SELECT DISTINCT ?of ?subject ?graph ?property ?value WHERE {
  {
    VALUES ?of { $documents } GRAPH ?graph { ?of ?property ?value }
    FILTER(?property IN (dcterms:title, skos:prefLabel, kg:slug, dcterms:identifier, kg:jurisdiction,
                         schema:inLanguage, eli:is_member_of, foaf:page, dcterms:source,
                         kg:speakerAsRecorded, dcterms:date, kg:hansardReference, kg:sourceLines,
                         schema:pagination, kg:debateType, eli:type_subdivision, kg:sectionNumber))
    BIND(?of AS ?subject)
  } UNION {
    VALUES ?of { $documents }
    ?of eli:is_member_of ?subject . GRAPH ?graph { ?subject dcterms:title ?value } BIND(dcterms:title AS ?property)
  } UNION {
    VALUES ?of { $sections }
    ?of kg:jurisdiction ?subject . GRAPH ?graph { ?subject skos:prefLabel ?value } BIND(skos:prefLabel AS ?property)
  } UNION {
    VALUES ?of { $graphs } GRAPH $prov { ?of ?property ?value }
    FILTER(?property IN (prov:wasDerivedFrom, prov:qualifiedDerivation, kg:sourceRows, kg:contentSha256))
    BIND(?of AS ?subject)
  } UNION {
    VALUES ?of { $graphs } GRAPH $prov { ?of prov:wasDerivedFrom ?subject . ?subject ?property ?value }
    FILTER(?property IN (kg:sha256, kg:location, kg:datasetRevision, kg:retrievedAt, prov:wasAttributedTo))
  } UNION {
    VALUES ?of { $graphs } GRAPH $prov { ?of prov:qualifiedDerivation ?subject . ?subject ?property ?value }
    FILTER(?property IN (prov:entity, schema:position, kg:sourceRows))
  }
}"""

POSITIONS: Final = """
SELECT ?graph (GROUP_CONCAT(STR(?position); separator=" ") AS ?positions) WHERE {
  VALUES ?graph { $graphs } GRAPH ?graph { ?unit schema:position ?position }
} GROUP BY ?graph"""

MATCHES: Final = """
SELECT DISTINCT ?unit ?concept ?type ?start ?end ?longer WHERE {
  VALUES ?unit { $units }
  ?mention oa:hasSource ?unit ; kg:object ?concept ; kg:matchType ?type ; kg:start ?start ; kg:end ?end
  OPTIONAL { ?mention kg:nestedIn ?longer }
}"""

UNITS_KEPT: Final = 400
"""Passages that are kept with their texts: those of some pages of results."""

Properties = Mapping[NamedNode, Sequence[Term]]
_DERIVED_REFERENCE: Final = NamedNode(DERIVED + KG.hansardReference.value)
"""The key of a reference that is derived, not stated by the source."""
_NOTHING: Final[Properties] = {}
_SECTIONS: Final = iri_prefix("section")
_STATE: Final = re.compile(r"([a-z]{2}-[a-z0-9]{1,3})-")
"""The state in the key of a municipality."""


@dataclass(frozen=True, slots=True)
class Descriptions:
    """Properties of documents, their families, and the sources of graphs."""

    said: Mapping[str, Properties]

    def all(self, iri: str, name: NamedNode) -> list[str]:
        """Get the values of a property, sorted."""
        terms = self.said.get(iri, _NOTHING).get(name)
        return sorted(map(term_text, terms)) if terms else []

    def one(self, iri: str, name: NamedNode) -> str | None:
        """Get the first value of a property."""
        return next(iter(self.all(iri, name)), None)


@dataclass(frozen=True, slots=True)
class Unit:
    """A passage in the graph."""

    iri: str
    graph: str
    document: str
    """Its document; the section above a section of a code; itself if it is part of nothing."""
    position: int
    text: str
    page: int | None
    kind: str | None
    span: tuple[int, int] | None = None
    """For a chunk of a speech or file: its offsets in the text of that, end-exclusive."""
    lines: str | None = None
    """Its lines in the source file, if recorded for the passage itself."""
    pages: str | None = None
    """Its pages, if it is on several."""
    section: str | None = None
    """The headings above a chunk of a file."""
    is_disputed: bool = False
    """Whether the order of its words is not sure."""
    language: str | None = None
    """Its language (BCP 47), stated or detected, if recorded for the passage itself."""

    @property
    def cited(self) -> str:
        """The IRI that a citation names: the document, or a section of a code itself."""
        return self.iri if self.iri.startswith(_SECTIONS) else self.document


def code_of(iri: str) -> str:
    """Get the code of a place or a code-list IRI: its last segment."""
    return unquote(iri.rpartition("/")[2])


def load_units(reader: Reader, iris: Sequence[str]) -> dict[str, Unit]:
    """Load the passages among `iris`. The last ones are cached until the next commit, for a `fetch` after a search."""
    read: list[str] = []

    def load(missing: list[str]) -> dict[str, Unit]:
        read.extend(missing)
        return _read_units(reader, missing)

    wanted = list(dict.fromkeys(iris))
    found = reader.kept_by_iri("units", wanted, load, most=UNITS_KEPT)
    if len(read) < len(wanted):
        reader.note("passages", bind(PASSAGES, units=[NamedNode(iri) for iri in wanted]))
    return {iri: found[iri] for iri in wanted if iri in found}


def _read_units(reader: Reader, iris: Sequence[str]) -> dict[str, Unit]:
    said: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    query = bind(PASSAGES, units=[NamedNode(iri) for iri in iris])
    for row in drop_user_rows(reader, reader.rows("passages", query, declared=("unit",))):
        if row["property"] != DCTERMS.isPartOf or isinstance(row["value"], NamedNode):
            said[iri_of(row["unit"]), iri_of(row["graph"])][iri_of(row["property"])] = term_text(row["value"])
    detected = {
        iri: values[SCHEMA.inLanguage.value]
        for (iri, graph), values in sorted(said.items())
        if SCHEMA.inLanguage.value in values and graph.startswith(DERIVED)
    }
    units: dict[str, Unit] = {}
    # Sorted, so that a passage which several graphs have is always cited from the same one.
    for (iri, graph), values in sorted(said.items()):
        document, text = values.get(DCTERMS.isPartOf.value), values.get(SCHEMA.text.value)
        position, page = (to_number(values.get(name.value, "")) for name in (SCHEMA.position, KG.pageNumber))
        if position is None or text is None:
            continue
        units[iri] = Unit(
            iri=iri,
            graph=graph,
            document=document or iri,
            position=position,
            text=text,
            page=page,
            kind=code_of(values[KG.blockType.value]) if KG.blockType.value in values else None,
            span=_span(values),
            lines=values.get(KG.sourceLines.value),
            pages=values.get(SCHEMA.pagination.value),
            section=values.get(KG.breadcrumb.value),
            is_disputed=values.get(KG.disputedOrder.value) == "true",
            language=values.get(SCHEMA.inLanguage.value) or detected.get(iri),
        )
    return units


def drop_user_rows(reader: Reader, rows: Sequence[dict[str, Term]]) -> list[dict[str, Term]]:
    """Drop the rows about text units that users added to documents of a source.

    A row has ``unit`` and ``graph``, and ``property`` and ``value``.
    """
    documents: dict[Term, set[NamedNode]] = defaultdict(set)
    for row in rows:
        document = row["value"]
        if is_user_graph(row["graph"]) and row["property"] == DCTERMS.isPartOf and isinstance(document, NamedNode):
            documents[row["unit"]].add(document)
    if not documents:
        return list(rows)
    recorded = reader.find_described(set().union(*documents.values()))
    return [row for row in rows if recorded.isdisjoint(documents.get(row["unit"], ()))]


def _span(values: Mapping[str, str]) -> tuple[int, int] | None:
    start, end = (to_number(values.get(name.value, "")) for name in (KG.start, KG.end))
    return None if start is None or end is None else (start, end)


def speakers_of(reader: Reader, units: Iterable[Unit]) -> dict[str, Voice]:
    """Load the utterance and person of those of `units` that are chunks of speeches, by IRI."""
    return load_voices(reader, [Chunk(unit.iri, unit.document, *unit.span) for unit in units if unit.span is not None])


def said_by(descriptions: Descriptions, unit: Unit, voice: Voice | None) -> str | None:
    """Get the name of the person who said a chunk of a speech, as recorded; None for other passages."""
    if voice is not None:
        return voice.name
    return descriptions.one(unit.document, KG.speakerAsRecorded) if unit.span is not None else None


def describe(reader: Reader, documents: Iterable[str], graphs: Iterable[str], *, rows: bool = True) -> Descriptions:
    """Load the properties that citations of documents and graphs need; with `rows`, also the order of their rows.

    Cached until the next commit.
    """
    documents, graphs = set(documents), set(graphs)

    def load(missing: list[str]) -> Mapping[str, Mapping[str, Properties]]:
        nodes = {iri: NamedNode(iri) for iri in missing}
        query = bind(
            DESCRIPTIONS,
            documents=[node for iri, node in nodes.items() if iri in documents],
            sections=[node for iri, node in nodes.items() if iri in documents and iri.startswith(_SECTIONS)],
            graphs=[node for iri, node in nodes.items() if iri in graphs],
            prov=PROV_GRAPH,
        )
        read: dict[str, dict[str, dict[NamedNode, list[Term]]]] = {iri: {} for iri in missing}
        for row in reader.rows("documents and origins", query, declared=("of", "subject")):
            about = read[iri_of(row["of"])].setdefault(iri_of(row["subject"]), {})
            name = NamedNode(iri_of(row["property"]))
            if name == KG.hansardReference and "graph" in row and iri_of(row["graph"]).startswith(DERIVED):
                name = _DERIVED_REFERENCE
            about.setdefault(name, []).append(row["value"])
        return read

    known = reader.kept_by_iri("said", documents | graphs, load)
    said = {subject: about for found in known.values() for subject, about in found.items()}
    # A requested node is described in full; the family or place of another document by its title alone.
    said |= {iri: found[iri] for iri, found in known.items() if iri in found}
    descriptions = Descriptions(said)
    if rows:
        _read_positions(reader, descriptions, graphs)
    return descriptions


def language_of(descriptions: Descriptions, unit: Unit) -> str | None:
    """Get the language of a passage, else that of its document if it has a single one; None if it is not known."""
    languages = {unit.language} if unit.language is not None else {*descriptions.all(unit.cited, SCHEMA.inLanguage)}
    language = languages.pop() if len(languages) == 1 else None
    return None if language == UNKNOWN else language


def url_of(descriptions: Descriptions, document: str) -> str:
    """Get the URL of a document for readers, else its IRI."""
    return descriptions.one(document, FOAF.page) or descriptions.one(document, DCTERMS.source) or document


def title_of(descriptions: Descriptions, document: str, voice: Voice | None = None) -> str:
    """Get the title or name of a document, else one built for display, then the citation of a speech or section."""
    name = descriptions.one(document, DCTERMS.title) or descriptions.one(document, SKOS.prefLabel)
    title = name or build_display_title(document, partial(descriptions.one, document))
    citation = citation_of(descriptions, document, voice) or (voice.other if voice is not None else None)
    if citation and f", {title}," in f", {citation},":  # as that of the record of a sitting
        return citation
    return f"{title} ({citation})" if citation else title


def citation_of(descriptions: Descriptions, document: str, voice: Voice | None = None) -> str | None:
    """Build the citation of a speech (speaker, date, Hansard reference) or a section (municipality, state, number).

    None for other documents, and without a reference. `voice` is the person whose words are cited, if known.
    """
    if document.startswith(_SECTIONS):
        return _cite_section(descriptions, document)
    reference = descriptions.one(document, KG.hansardReference)
    if reference is None:
        derived = descriptions.one(document, _DERIVED_REFERENCE)
        if derived is None:
            return None
        reference = f"{derived} (derived from chamber, date and page)"
    speaker = descriptions.one(document, KG.speakerAsRecorded)
    if voice is not None and voice.other:
        speaker = f"{voice.other} in the speech of {speaker}" if speaker else voice.other
    parts = (speaker, descriptions.one(document, DCTERMS.date), reference)
    return ", ".join(part for part in parts if part)


def _cite_section(descriptions: Descriptions, section: str) -> str:
    """Build the citation of a section: ``Quarry Bend, UT, 17.12.040``. Levels of a code have keys like
    ``chapter 61|article II``.
    """
    place = descriptions.one(section, KG.jurisdiction)
    name = None if place is None else descriptions.one(place, SKOS.prefLabel)
    key = section.removeprefix(_SECTIONS).partition("/")[0]
    state = _STATE.match(key)
    area = find_area(state[1]) if name and state else None
    parts = (name or key, area and (area.short or area.name), code_of(section).replace("|", ", "))
    return ", ".join(part for part in parts if part)


def _key_of(document: str) -> str:
    return slug_of(document) if document.startswith("cpr://") else code_of(document)


def family_title(descriptions: Descriptions, document: str) -> str | None:
    """Get the title of the family of a document."""
    families = descriptions.all(document, ELI.is_member_of)
    return descriptions.one(families[0], DCTERMS.title) if families else None


def document_of(descriptions: Descriptions, document: str, voice: Voice | None = None) -> Document:
    """Build the description of a document. `voice` is the person whose words are cited, if known."""
    return Document(
        slug=descriptions.one(document, KG.slug) or _key_of(document),
        document_id=descriptions.one(document, DCTERMS.identifier),
        title=title_of(descriptions, document, voice),
        family_title=family_title(descriptions, document),
        geographies=[code_of(iri) for iri in descriptions.all(document, KG.jurisdiction)],
        languages=descriptions.all(document, SCHEMA.inLanguage),
        url=url_of(descriptions, document),
        citation=citation_of(descriptions, document, voice),
    )


def place_of(descriptions: Descriptions, unit: Unit) -> tuple[str | None, str | None]:
    """Get the lines of a passage in the source file, else those of its document, and the pages."""
    lines = unit.lines or descriptions.one(unit.cited, KG.sourceLines)
    return lines, unit.pages or descriptions.one(unit.cited, SCHEMA.pagination)


def origin_of(
    reader: Reader,
    descriptions: Descriptions,
    graph: str,
    position: int | None = None,
    lines: str | None = None,
    pages: str | None = None,
) -> Provenance:
    """Build the provenance of a graph, with the row of the passage at `position`, or the only row.

    `lines` are the first and last line of the passage in a file without rows, `pages` those of a PDF.
    """
    derivations = descriptions.all(graph, PROV.qualifiedDerivation)
    derivations.sort(key=lambda node: int(descriptions.one(node, SCHEMA.position) or 0))
    parts = [(descriptions.one(node, PROV.entity), descriptions.one(node, KG.sourceRows)) for node in derivations] or [
        (snapshot, descriptions.one(graph, KG.sourceRows)) for snapshot in descriptions.all(graph, PROV.wasDerivedFrom)
    ]
    snapshot = parts[0][0] if parts else None
    row: int | None = None
    if position is not None and any(rows for _, rows in parts):
        rank = _positions(reader, descriptions, graph).get(position)
        place = None if rank is None else find_row(rank, (parse_rows(rows or "") for _, rows in parts))
        if place is not None:
            snapshot, row = parts[place[0]][0], place[1]
    if row is None and len(parts) == 1 and len(rows := set(parse_rows(parts[0][1] or ""))) == 1:
        [row] = rows
    if snapshot is None:
        return Provenance(graph=graph)
    sender = descriptions.one(snapshot, PROV.wasAttributedTo)
    return Provenance(
        graph=graph,
        source=descriptions.one(snapshot, KG.location),
        sha256=descriptions.one(snapshot, KG.sha256),
        row=row,
        lines=lines,
        pages=pages,
        revision=descriptions.one(snapshot, KG.datasetRevision),
        sent_by=None if sender is None else code_of(sender),
    )


def _read_positions(reader: Reader, descriptions: Descriptions, graphs: Iterable[str]) -> None:
    """Compute and cache the rank of each position in `graphs`."""
    keys = {graph: _positions_key(descriptions, graph) for graph in graphs if _has_rows(descriptions, graph)}
    missing = sorted(graph for graph, key in keys.items() if reader.kg.memory.get(key) is None)
    if not missing:
        return
    found: dict[str, str] = dict.fromkeys(missing, "")
    for row in reader.rows("order of passages", bind(POSITIONS, graphs=[NamedNode(graph) for graph in missing])):
        if "graph" in row:
            found[iri_of(row["graph"])] = term_text(row["positions"])
    for graph, positions in found.items():
        order = sorted({int(position) for position in positions.split()})
        reader.kg.memory.keep(keys[graph], {position: rank for rank, position in enumerate(order)})


def _positions_key(descriptions: Descriptions, graph: str) -> tuple[str, str, str | None]:
    return "positions", graph, descriptions.one(graph, KG.contentSha256)


def _has_rows(descriptions: Descriptions, graph: str) -> bool:
    nodes = [graph, *descriptions.all(graph, PROV.qualifiedDerivation)]
    return any(descriptions.one(node, KG.sourceRows) for node in nodes)


def _positions(reader: Reader, descriptions: Descriptions, graph: str) -> Mapping[int, int]:
    """Get the rank of each position in a graph. The rows of a record are in the order of its units."""
    key = _positions_key(descriptions, graph)
    known: Mapping[int, int] | None = reader.kg.memory.get(key)
    if known is None:
        _read_positions(reader, descriptions, [graph])
        known = reader.kg.memory.get(key)
    return known or {}


def load_concept_matches(
    reader: Reader, texts: Mapping[str, str], only: Collection[str] | None = None, *, nested: bool = True
) -> dict[str, list[ConceptMatch]]:
    """Load the mentions of concepts in passages, given with their texts, in the order of the text.

    Mentions of a concept by the same kind of name are one match. `only` limits the concepts. Without `nested`, names
    within a longer name of another concept are left out.
    """
    concepts = load_concepts(reader.kg)
    if not texts or not len(concepts):
        return {}
    places: dict[tuple[str, str, str], set[tuple[int, int]]] = defaultdict(set)
    rows = reader.rows("concepts that passages mention", bind(MATCHES, units=[NamedNode(iri) for iri in sorted(texts)]))
    for row in rows:
        concept = iri_of(row["concept"])
        if (only is None or concept in only) and (nested or "longer" not in row):
            place = (int(term_text(row["start"])), int(term_text(row["end"])))
            places[iri_of(row["unit"]), concept, term_text(row["type"])].add(place)
    found: dict[str, list[ConceptMatch]] = defaultdict(list)
    for (unit, concept, kind), spans in sorted(places.items(), key=lambda item: (min(item[1]), item[0])):
        known = concepts.at(concept)
        if known is None:
            continue
        offsets = sorted(spans)
        words = [texts[unit][start:end] for start, end in offsets]
        found[unit].append(
            ConceptMatch(qid=known.qid, label=known.label, match_type=kind, offsets=offsets, words=words)
        )
    return found


def build_evidence(
    reader: Reader,
    units: Sequence[Unit],
    scores: Mapping[str, float] | None = None,
    mentioned: Collection[str] | None = None,
    nested: bool = True,
) -> list[Evidence]:
    """Build the evidence for `units`, in order, with the concepts that they mention, limited to `mentioned`.

    Without `nested`, mentions within a longer name of another concept are left out.
    """
    if not units:
        return []
    matches = load_concept_matches(reader, {unit.iri: unit.text for unit in units}, mentioned, nested=nested)
    descriptions = describe(reader, {unit.cited for unit in units}, {unit.graph for unit in units})
    voices = speakers_of(reader, units)
    return [
        Evidence(
            id=unit.iri,
            document=document_of(descriptions, unit.cited, voices.get(unit.iri)),
            passage=Passage(
                index=unit.position,
                page_number=unit.page,
                type=unit.kind,
                text=unit.text,
                disputed_order=unit.is_disputed or None,
            ),
            said_by=said_by(descriptions, unit, voices.get(unit.iri)),
            concept_matches=matches.get(unit.iri, []),
            score=(scores or {}).get(unit.iri),
            provenance=origin_of(reader, descriptions, unit.graph, unit.position, *place_of(descriptions, unit)),
        )
        for unit in units
    ]
