"""A document to be read: its outline, a page of its passages with their marks, and the citations in both directions."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyoxigraph import NamedNode

from kg.errors import InvalidInputError, NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.evidence import Unit, code_of, describe, load_units, origin_of, title_of, url_of
from kg.retrieval.reader import Reader, iri_of
from kg.retrieval.results import Provenance, Statement
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
from kg.text import quoted
from kg.tools.claims.citations import Citation, find_citing, find_targets, load_citations
from kg.tools.entities.dereference import names_of
from kg.tools.reading.facts import load_facts
from kg.tools.reading.marks import Marks, load_marks
from kg.vocabulary import DCTERMS, ELI, KG, SCHEMA, SOURCED, mint

PASSAGES: Final = 150
"""Passages on a page."""
CITING: Final = 20
"""Citing texts on a page."""
OUTLINE: Final = 100
"""Maximum number of headings that a page lists of a document: 500 take half of the size of a page."""
HEADING_CHARACTERS: Final = 120

# In one graph: over all graphs together, each lookup takes longer (20,000 passages: 245 ms, or 150).
ORDER: Final = """
SELECT ?unit ?position WHERE { GRAPH ?graph { ?unit dcterms:isPartOf $document . ?unit schema:position ?position } }"""

# The graphs that `ORDER` and `HEADINGS` read.
GRAPHS_OF_PARTS: Final = """
SELECT DISTINCT ?graph WHERE { GRAPH ?graph { ?unit dcterms:isPartOf $document } }"""

GRAPHS: Final = """
SELECT DISTINCT ?graph WHERE { GRAPH ?graph { $document a ?class } }"""

# With the document in each branch: outside of them, the engine would find the headings of all documents first.
HEADINGS: Final = """
SELECT ?unit ?type ?text ?path WHERE {
  {
    VALUES ?type { $types }
    GRAPH ?graph { ?unit dcterms:isPartOf $document . ?unit kg:blockType ?type ; schema:text ?words }
  } UNION { GRAPH ?graph { ?unit dcterms:isPartOf $document . ?unit kg:breadcrumb ?path } }
  BIND(SUBSTR(?words, 1, $most) AS ?text)
}"""

FACTS: Final = (
    DCTERMS.description, DCTERMS.identifier, DCTERMS.creator, DCTERMS.subject, DCTERMS.date, ELI.date_document,
    ELI.is_member_of, KG.isLaw, KG.corpusType, KG.jurisdiction, KG.path, SCHEMA.inLanguage, SCHEMA.encodingFormat,
    SCHEMA.numberOfPages, SCHEMA.keywords,
)  # fmt: skip

VERSIONS: Final = """
SELECT DISTINCT ?document ?language WHERE {
  $document kg:slug ?slug . ?document kg:slug ?slug OPTIONAL { ?document schema:inLanguage ?language }
}"""

_HEADING_TYPES: Final = ("title", "Title", "sectionHeading", "SectionHeading", "heading", "Heading")


@dataclass(frozen=True, slots=True)
class Heading:
    """An entry of an outline: the passage with the heading, its place from 0, and its page from 1."""

    iri: str
    text: str
    place: int
    page: int
    level: int = 1


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Adjacent headings that an outline leaves out: the first one and their number."""

    first: Heading
    count: int


@dataclass(frozen=True, slots=True)
class Version:
    """The document in another language."""

    iri: str
    language: str


@dataclass(frozen=True, slots=True)
class CitedBy:
    """A page of the texts that cite something, with the number of all citations."""

    citations: Sequence[Citation] = ()
    total: int = 0
    page: int = 1
    more: bool = False


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """A page of a document."""

    iri: str
    title: str
    url: str
    facts: Mapping[NamedNode, Sequence[Term]]
    labels: Mapping[str, str]
    """Labels of the IRIs among the facts."""
    versions: Sequence[Version]
    outline: Sequence[Heading | LeftOut]
    """The headings of the document, of a long one those near the page."""
    passages: Sequence[Unit]
    shown: Sequence[str]
    """The IRIs of all passages on this page, also of those whose text the ones before them have."""
    first: int
    """The place of the first of these passages in the document, from 0."""
    total: int
    page: int
    pages: int
    marks: Marks
    cited_by: CitedBy
    provenance: Provenance
    generation: int
    queries: Sequence[Statement] = field(default_factory=list, repr=False)

    def values(self, *properties: NamedNode) -> list[str]:
        """Get the values of properties as text, sorted."""
        return sorted(term_text(term) for name in properties for term in self.facts.get(name, ()))


def read_document(kg: KnowledgeGraph, iri: str, page: int = 1, citing_page: int = 1) -> DocumentPage:
    """Load a page of a document, by its IRI.

    A document without passages has one empty page. Raises NotFoundError for a page that it does not have.
    """
    with kg.reading():
        return _read_page(Reader(kg), iri, page, citing_page)


def _read_page(reader: Reader, iri: str, page: int, citing_page: int) -> DocumentPage:
    node = NamedNode(iri)
    order = load_order(reader, node)
    pages = max(1, -(-len(order) // PASSAGES))
    if not 1 <= page <= pages:
        raise NotFoundError(f"Page {page} does not exist. {quoted(iri)} has the pages 1 to {pages}.")
    first = (page - 1) * PASSAGES
    shown = [unit for _, unit in order[first : first + PASSAGES]]
    units = load_units(reader, shown)
    passages = drop_overlaps([units[each] for each in shown if each in units])
    facts = load_facts(reader, iri, FACTS, "properties of the document")
    graph = passages[0].graph if passages else _find_graph(reader, node)
    descriptions = describe(reader, [iri], [graph])
    return DocumentPage(
        iri=iri,
        title=title_of(descriptions, iri),
        url=url_of(descriptions, iri),
        facts=facts,
        labels=names_of(
            reader.kg, [each.value for some in facts.values() for each in some if isinstance(each, NamedNode)]
        ),
        versions=_load_versions(reader, node),
        outline=choose_headings(_load_headings(reader, node, order), page),
        passages=passages,
        shown=shown,
        first=first,
        total=len(order),
        page=page,
        pages=pages,
        marks=load_marks(reader, {unit.iri: unit.text for unit in passages}),
        cited_by=load_cited_by(reader, node, citing_page),
        provenance=origin_of(reader, descriptions, graph),
        generation=reader.kg.generation,
        queries=list(reader.ran),
    )


def _find_graph(reader: Reader, document: NamedNode) -> str:
    """Find the graph of a source that has a document; empty if none has it."""
    graphs = (iri_of(row["graph"]) for row in reader.rows("graph of the document", bind(GRAPHS, document=document)))
    return min((graph for graph in graphs if graph.startswith(SOURCED)), default="")


def load_order(reader: Reader, document: NamedNode) -> Sequence[tuple[int, str]]:
    """Load the positions and IRIs of the passages of a document, in order. Cached until a commit changes them."""

    def read(rows: list[dict[str, Term]]) -> Sequence[tuple[int, str]]:
        found = {iri_of(row["unit"]): int(term_text(row["position"])) for row in rows}
        return sorted((position, unit) for unit, position in found.items())

    graphs = bind(GRAPHS_OF_PARTS, document=document)
    return reader.kept_in_graphs("order of the passages", bind(ORDER, document=document), graphs, read)


def find_page(order: Sequence[tuple[int, str]], unit: str, position: int) -> int:
    """Find the page, from 1, with a passage."""
    return bisect_left(order, (position, unit)) // PASSAGES + 1


def drop_overlaps(units: Sequence[Unit]) -> list[Unit]:
    """Leave out the chunks of a file whose text the chunks before them have, all in order."""
    kept: list[Unit] = []
    end = 0
    for unit in units:
        if unit.span is None or unit.span[1] > end:
            kept.append(unit)
            end = max(end, unit.span[1] if unit.span else 0)
    return kept


def choose_headings(headings: Sequence[Heading], page: int) -> list[Heading | LeftOut]:
    """Choose at most `OUTLINE` of the headings of a document for the outline next to a page.

    These are the headings that the page is below, those on it, those of the first level if they are few, and the
    nearest others.
    """
    if len(headings) <= OUTLINE:
        return list(headings)
    start = bisect_left(headings, page, key=lambda each: each.page)
    end = bisect_left(headings, page + 1, key=lambda each: each.page)
    chosen: dict[int, None] = {}
    level = max(each.level for each in headings) + 1
    for number in reversed(range(start)):  # the headings that are open where the page begins
        if headings[number].level < level:
            level = headings[number].level
            chosen[number] = None
    chosen |= dict.fromkeys(range(start, end))
    top = [number for number, each in enumerate(headings) if each.level == 1]
    if len(top) <= OUTLINE // 2:
        chosen |= dict.fromkeys(top)
    near = range(max(0, start - OUTLINE), min(len(headings), end + OUTLINE))
    chosen |= dict.fromkeys(sorted(near, key=lambda number: max(start - number, number - end + 1)))
    found: list[Heading | LeftOut] = []
    following = 0
    for number in (*sorted([*chosen][:OUTLINE]), len(headings)):
        if number > following:
            found.append(LeftOut(headings[following], number - following))
        found += headings[number : number + 1]
        following = number + 1
    return found


def _load_headings(reader: Reader, document: NamedNode, order: Sequence[tuple[int, str]]) -> Sequence[Heading]:
    """Load the headings of a document, given the order of its passages. Cached until a commit changes them."""

    def read(rows: list[dict[str, Term]]) -> Sequence[Heading]:
        places = {unit: place for place, (_, unit) in enumerate(order)}
        said: dict[str, tuple[str, int]] = {}
        for row in rows:
            if "text" in row:
                text = " ".join(term_text(row["text"]).split())
                level = 1 if code_of(iri_of(row["type"])).casefold() == "title" else 2
            else:
                steps = term_text(row["path"]).split(" > ")
                text, level = steps[-1], len(steps)
            said[iri_of(row["unit"])] = text, level
        headings: list[Heading] = []
        for unit in sorted(said.keys() & places.keys(), key=lambda unit: places[unit]):
            text, level = said[unit]
            if text and not (headings and headings[-1].text == text):
                place = places[unit]
                headings.append(Heading(unit, text[:HEADING_CHARACTERS], place, place // PASSAGES + 1, level))
        if headings and (least := min(each.level for each in headings)) > 1:
            headings = [
                Heading(each.iri, each.text, each.place, each.page, each.level - least + 1) for each in headings
            ]
        return headings

    types = [mint("code", "blockType", name) for name in _HEADING_TYPES]
    query = bind(HEADINGS, document=document, types=types, most=HEADING_CHARACTERS + 40)
    graphs = bind(GRAPHS_OF_PARTS, document=document)
    also = bind(ORDER, document=document)
    return reader.kept_in_graphs("headings of the document", query, graphs, read, also=also)


def _load_versions(reader: Reader, document: NamedNode) -> list[Version]:
    rows = reader.rows("the document in other languages", bind(VERSIONS, document=document))
    found = {
        iri_of(row["document"]): term_text(row["language"]) if "language" in row else "language not known"
        for row in rows
    }
    found.pop(document.value, None)
    return [Version(iri, language) for iri, language in sorted(found.items(), key=lambda item: item[::-1])]


def load_cited_by(reader: Reader, node: NamedNode, page: int = 1) -> CitedBy:
    """Load a page of the texts that cite a node, or the law or family that it is. Raises InvalidInputError."""
    if page < 1:
        raise InvalidInputError(f"The page of citing texts is {page}. It must be at least 1.")
    found = find_citing(reader, find_targets(reader, node))
    start = (page - 1) * CITING
    shown = load_citations(reader, found[start : start + CITING])
    return CitedBy(shown, len(found), page, len(found) > start + CITING)
