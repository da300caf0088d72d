"""Policy families (a law with its amendments, a plan with its annexes): overview, and the history of one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated, Final, Literal

from pydantic import BaseModel, Field
from pyoxigraph import NamedNode

from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.concept_index import load_concepts
from kg.retrieval.display_titles import build_display_title
from kg.retrieval.evidence import code_of, describe, origin_of, title_of
from kg.retrieval.filters import DOCUMENT_LANGUAGE, Scope, compile_scope, find_family
from kg.retrieval.reader import Reader, bounded, bounded_page, iri_of, page_of
from kg.retrieval.results import (
    Language,
    Lean,
    Limit,
    Name,
    Offset,
    PlaceName,
    Provenance,
    Result,
    SearchFilters,
    TopConcept,
)
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
from kg.tools.claims.citations import find_citing, find_targets, load_citations
from kg.vocabulary import ELI, slug_of

_BEFORE_WORDS: Final = " \t\n\xa0\"'“”‘’«»„([*-–—"
"""What titles of some sources begin with."""

# A document and its translation have one slug: they count once.
FAMILIES: Final = """
SELECT ?family ?title (COUNT(DISTINCT ?slug) AS ?documents) (MIN(STR(?document)) AS ?sample) WHERE {
  #DOCUMENT
  ?document a kg:PolicyDocument ; kg:slug ?slug ; eli:is_member_of ?family .
  OPTIONAL { ?family dcterms:title ?title }
} GROUP BY ?family ?title"""

CONCEPTS_OF: Final = """
SELECT ?family ?concept (COUNT(DISTINCT ?unit) AS ?passages) (COUNT(DISTINCT ?slug) AS ?documents) WHERE {
  VALUES ?family { $shown } ?document eli:is_member_of ?family ; kg:slug ?slug .
  #DOCUMENT
  ?unit dcterms:isPartOf ?document . ?unit kg:mentions ?concept
} GROUP BY ?family ?concept"""

GRAPHS_OF: Final = """
SELECT DISTINCT ?document ?graph WHERE {
  VALUES ?document { $documents } GRAPH ?graph { ?document a kg:PolicyDocument }
}"""

DOCUMENTS: Final = """
SELECT DISTINCT ?document ?graph ?property ?value WHERE {
  VALUES ?family { $family } ?document eli:is_member_of ?family .
  GRAPH ?graph { ?document ?property ?value }
  FILTER(?property IN (dcterms:title, kg:slug, kg:corpusType, schema:inLanguage, eli:date_document))
}"""

RELATIONS: Final = """
SELECT DISTINCT ?from ?relation ?to WHERE {
  VALUES ?relation { eli:amends eli:amended_by eli:repeals eli:repealed_by }
  { VALUES ?from { $nodes } ?from ?relation ?to } UNION { VALUES ?to { $nodes } ?from ?relation ?to }
  FILTER(isIRI(?to))
}"""

TITLES: Final = """
SELECT DISTINCT ?thing ?title WHERE { VALUES ?thing { $things } ?thing dcterms:title ?title }"""

EDGES_SHOWN: Final = 200
CITING_SHOWN: Final = 5

Relation = Literal["amends", "repeals"]
_RELATIONS: Final[dict[NamedNode, tuple[Relation, bool]]] = {
    ELI.amends: ("amends", False),
    ELI.amended_by: ("amends", True),
    ELI.repeals: ("repeals", False),
    ELI.repealed_by: ("repeals", True),
}


class SampleDocument(BaseModel):
    """A document of a family."""

    id: str
    slug: str
    title: str


class Family(BaseModel):
    """A policy family, with the number of its documents that pass the filters."""

    id: str
    family_title: str
    doc_count: int
    sample_doc: SampleDocument
    top_concepts: list[TopConcept] = Field(
        default_factory=list, description="With top_concepts: the concepts mentioned most"
    )
    provenance: Provenance


class FamilyResult(Result):
    """Policy families, sorted by title."""

    families: list[Family]


class LineageDocument(Lean):
    """A document of a family, together with its translations."""

    id: str
    slug: str
    title: str
    date: str | None = None
    corpus_type: str | None = None
    languages: list[str]
    provenance: Provenance


class LineageEdge(Lean):
    """A relation between two documents: one amends or repeals the other."""

    subject: str
    relation: Relation
    object: str
    subject_title: str | None = None
    object_title: str | None = None


class CitingText(Lean):
    """A text that cites a family by its title, or the law that it is."""

    citing: str
    title: str
    words: str
    confidence: float


class LineageResult(Result):
    """A family, its documents oldest first, the relations between them, and the first texts that cite it."""

    id: str
    family_title: str
    doc_count: int
    documents: list[LineageDocument]
    edges: list[LineageEdge]
    cited_by: list[CitingText]


def family_overview(
    kg: KnowledgeGraph,
    iso3: Annotated[list[PlaceName] | None, Field(max_length=300)] = None,
    place: Annotated[list[PlaceName] | None, Field(max_length=300)] = None,
    language: Annotated[list[Language] | None, Field(max_length=100)] = None,
    corpus_type: Annotated[list[Name] | None, Field(max_length=100)] = None,
    top_concepts: Annotated[int, Field(ge=0, le=20, description="Number of concepts per family")] = 0,
    limit: Limit = 50,
    offset: Offset = 0,
) -> FamilyResult:
    """List policy families (a law with its amendments, a plan with its annexes) by title, with their document counts.

    Use before a search, to see the documents of a country. Returns families: id, family_title, doc_count,
    sample_doc{id, slug, title}, top_concepts{qid, label, passages, documents}, provenance. Only documents that pass
    the filters count.
    Example: family_overview(iso3=["BRA"], language=["en"]).
    Next: `fetch` a family or sample_doc id, or `search` with filters.family_slug.
    """
    bounded_page(limit, offset)
    bounded("top_concepts", top_concepts, 0, 20)
    reader = Reader(kg)
    scope, notes = compile_scope(
        reader,
        SearchFilters(iso3=iso3 or [], place=place or [], language=language or [], corpus_type=corpus_type or []),
        speeches=False,
    )
    if language:
        scope = Scope((*scope.on_document, DOCUMENT_LANGUAGE), terms=scope.terms)
    reader.start_selection()
    rows = reader.kept("families that the filters leave", scope.compile(FAMILIES), read_families)
    page = rows[offset : offset + limit]
    families = _families(reader, page)
    if top_concepts:
        _add_concepts(reader, scope, families, top_concepts)
    return reader.finish(
        FamilyResult(families=families, notes=notes),
        total=len(rows),
        next_offset=page_of(rows, offset, limit),
    )


def read_families(rows: list[dict[str, Term]]) -> list[tuple[str, str, int, str]]:
    """Read title, IRI, number of documents and a document of each family, by the words of the title."""
    families = [
        (
            term_text(row["title"]) if "title" in row else build_display_title(iri_of(row["family"])),
            iri_of(row["family"]),
            int(term_text(row["documents"])),
            term_text(row["sample"]),
        )
        for row in rows
    ]
    return sorted(families, key=lambda each: (each[0].lstrip(_BEFORE_WORDS).casefold(), each))


def _families(reader: Reader, page: Sequence[tuple[str, str, int, str]]) -> list[Family]:
    samples = [NamedNode(sample) for _, _, _, sample in page]
    if not samples:
        return []
    graphs = {
        iri_of(row["document"]): iri_of(row["graph"])
        for row in reader.rows("graphs of documents", bind(GRAPHS_OF, documents=samples))
    }
    descriptions = describe(reader, [sample.value for sample in samples], graphs.values(), rows=False)
    return [
        Family(
            id=family,
            family_title=title,
            doc_count=count,
            sample_doc=SampleDocument(id=sample, slug=slug_of(sample), title=title_of(descriptions, sample)),
            provenance=origin_of(reader, descriptions, graphs[sample]),
        )
        for title, family, count, sample in page
        if sample in graphs
    ]


def _add_concepts(reader: Reader, scope: Scope, families: Sequence[Family], most: int) -> None:
    """Add the concepts that most passages of each family mention."""
    concepts = load_concepts(reader.kg)
    if not families or not len(concepts):
        return
    found: dict[str, list[TopConcept]] = defaultdict(list)
    nodes = [NamedNode(family.id) for family in families]
    for row in reader.rows("concepts of families", scope.compile(CONCEPTS_OF, shown=nodes)):
        concept = concepts.at(iri_of(row["concept"])) if "concept" in row else None
        if concept is not None:
            passages, documents = int(term_text(row["passages"])), int(term_text(row["documents"]))
            top = TopConcept(qid=concept.qid, label=concept.label, passages=passages, documents=documents)
            found[iri_of(row["family"])].append(top)
    for family in families:
        ranked = sorted(found[family.id], key=lambda top: (-top.passages, -top.documents, top.label, top.qid))
        family.top_concepts = ranked[:most]


def policy_lineage(
    kg: KnowledgeGraph,
    family_slug: Annotated[Name, Field(description="Slug or id of a family, from family_overview")],
    include_docs: bool = True,
    limit: Limit = 50,
    offset: Offset = 0,
) -> LineageResult:
    """List the documents of one policy family, oldest first, and which of them amend or repeal which.

    Use to find the version in force or how a law changed. Returns family_title, doc_count, documents{id, slug, title,
    date, corpus_type, languages, provenance}, edges{subject, relation, object} where the graph has them, and cited_by,
    the first texts of any domain that cite the family by title, or the law that it is.
    Example: policy_lineage(family_slug="fictional-geothermal-programme_d0f0").
    Next: `fetch` a document id, or `search` with filters.family_slug.
    """
    bounded_page(limit, offset)
    reader = Reader(kg)
    family = find_family(reader, family_slug)
    reader.start_selection()
    said: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    graphs: dict[str, str] = {}
    for row in reader.rows("documents of the family", bind(DOCUMENTS, family=family)):
        document = iri_of(row["document"])
        value = row["value"]
        name = iri_of(row["property"]).rpartition("#")[2].rpartition("/")[2]
        said[document][name].append(code_of(value.value) if isinstance(value, NamedNode) else term_text(value))
        graphs[document] = min(iri_of(row["graph"]), graphs.get(document, iri_of(row["graph"])))
    works = _works(said)
    page = works[offset : offset + limit] if include_docs else []
    descriptions = describe(reader, [family.value], [graphs[iris[0]] for iris in page], rows=False)
    edges = _edges(reader, [*said, family.value])
    citing = find_citing(reader, find_targets(reader, family))
    result = LineageResult(
        id=family.value,
        family_title=title_of(descriptions, family.value),
        doc_count=len(works),
        documents=[
            LineageDocument(
                id=iris[0],
                slug=slug_of(iris[0]),
                title=min(said[iris[0]]["title"], default=None) or build_display_title(iris[0]),
                date=min(said[iris[0]]["date_document"], default=None),
                corpus_type=min(said[iris[0]]["corpusType"], default=None),
                languages=sorted({language for iri in iris for language in said[iri]["inLanguage"]}),
                provenance=origin_of(reader, descriptions, graphs[iris[0]]),
            )
            for iris in page
        ],
        edges=edges[:EDGES_SHOWN],
        cited_by=[
            CitingText(citing=each.citing, title=each.title, words=each.words, confidence=each.confidence)
            for each in load_citations(reader, citing[:CITING_SHOWN])
        ],
    )
    if len(citing) > CITING_SHOWN:
        result.notes.append(f"cited_by has the first {CITING_SHOWN} of {len(citing)}. citations lists all.")
    if len(edges) > EDGES_SHOWN:
        result.notes.append(f"edges is truncated to the first {EDGES_SHOWN} of {len(edges)} relations.")
    if not edges:
        result.notes.append("The graph has no amends or repeals relations for these documents, only dates.")
    following = page_of(works, offset, limit) if include_docs else None
    return reader.finish(result, total=len(works), next_offset=following)


def _works(said: dict[str, dict[str, list[str]]]) -> list[list[str]]:
    """Sort documents, each with its translations, oldest first and undated last."""
    works: dict[str, list[str]] = defaultdict(list)
    for document in sorted(said):
        works[document.partition("#")[0]].append(document)

    def key(iris: list[str]) -> tuple[object, ...]:
        dates = [date for iri in iris for date in said[iri]["date_document"]]
        return not dates, min(dates, default=""), min(said[iris[0]]["title"], default=""), iris[0]

    return sorted(works.values(), key=key)


def _edges(reader: Reader, nodes: list[str]) -> list[LineageEdge]:
    """Load the relations of the family and its documents, each once; inverse properties are turned around."""
    rows = reader.rows("relations", bind(RELATIONS, nodes=[NamedNode(iri) for iri in sorted(nodes)]))
    found: set[tuple[str, Relation, str]] = set()
    for row in rows:
        relation, inverse = _RELATIONS[NamedNode(iri_of(row["relation"]))]
        ends = iri_of(row["from"]), iri_of(row["to"])
        found.add((ends[inverse], relation, ends[not inverse]))
    things = [NamedNode(iri) for iri in sorted({iri for edge in found for iri in (edge[0], edge[2])})]
    titles: dict[str, str] = {}
    for row in reader.rows("titles", bind(TITLES, things=things)) if things else ():
        iri, title = iri_of(row["thing"]), term_text(row["title"])
        titles[iri] = min(title, titles.get(iri, title))
    return [
        LineageEdge(
            subject=subject,
            relation=relation,
            object=target,
            subject_title=titles.get(subject),
            object_title=titles.get(target),
        )
        for subject, relation, target in sorted(found)
    ]
