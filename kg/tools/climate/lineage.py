"""The history of a policy family: its documents in order of date, and which of them amend or repeal what."""

from __future__ import annotations

from collections import defaultdict
from typing import Annotated, Final, Literal

from pydantic import Field
from pyoxigraph import NamedNode

from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.evidence import code_of, describe, origin_of
from kg.retrieval.filters import family_of
from kg.retrieval.reader import Reader, bounded_page, iri_of, page_of, text_of
from kg.retrieval.results import Explain, Limit, Name, Offset, Provenance, Result
from kg.retrieval.token_budget import Lean
from kg.sparql.terms import bind
from kg.vocabulary import DCTERMS, ELI, slug_of

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

Relation = Literal["amends", "repeals"]
_RELATIONS: Final[dict[NamedNode, tuple[Relation, bool]]] = {
    ELI.amends: ("amends", False),
    ELI.amended_by: ("amends", True),
    ELI.repeals: ("repeals", False),
    ELI.repealed_by: ("repeals", True),
}


class LineageDocument(Lean):
    """One document of a family; its translations count as it."""

    id: str
    slug: str
    title: str
    date: str | None = None
    corpus_type: str | None = None
    languages: list[str]
    provenance: Provenance


class LineageEdge(Lean):
    """One document changes or ends another."""

    subject: str
    relation: Relation
    object: str
    subject_title: str | None = None
    object_title: str | None = None


class LineageResult(Result):
    """A family, its documents oldest first, and what amends or repeals what."""

    id: str
    family_title: str
    doc_count: int
    documents: list[LineageDocument]
    edges: list[LineageEdge]


def policy_lineage(
    kg: KnowledgeGraph,
    family_slug: Annotated[Name, Field(description="Slug or id of a family, as family_overview gives it")],
    include_docs: bool = True,
    limit: Limit = 50,
    offset: Offset = 0,
    explain: Explain = False,
) -> LineageResult:
    """Follow the history of one policy family: its documents, oldest first, with what amends or repeals what.

    Use to find the version in force or how a law changed. Returns family_title, doc_count, documents{id, slug, title,
    date, corpus_type, languages, provenance}, edges{subject, relation, object} where the graph has them.
    Example: policy_lineage(family_slug="fictional-geothermal-programme_d0f0").
    Next: `fetch` a document id, or `search` with filters.family_slug.
    """
    bounded_page(limit, offset)
    reader = Reader(kg)
    family = family_of(reader, family_slug)
    reader.ran.clear()
    said: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    graphs: dict[str, str] = {}
    for row in reader.rows("documents of the family", bind(DOCUMENTS, family=family)):
        document = iri_of(row["document"])
        value = row["value"]
        name = iri_of(row["property"]).rpartition("#")[2].rpartition("/")[2]
        said[document][name].append(code_of(value.value) if isinstance(value, NamedNode) else text_of(value))
        graphs[document] = min(iri_of(row["graph"]), graphs.get(document, iri_of(row["graph"])))
    works = _works(said)
    page = works[offset : offset + limit] if include_docs else []
    descriptions = describe(reader, [family.value], [graphs[iris[0]] for iris in page], rows=False)
    edges = _edges(reader, [*said, family.value])
    result = LineageResult(
        id=family.value,
        family_title=descriptions.one(family.value, DCTERMS.title) or slug_of(family.value),
        doc_count=len(works),
        documents=[
            LineageDocument(
                id=iris[0],
                slug=slug_of(iris[0]),
                title=min(said[iris[0]]["title"], default=slug_of(iris[0])),
                date=min(said[iris[0]]["date_document"], default=None),
                corpus_type=min(said[iris[0]]["corpusType"], default=None),
                languages=sorted({language for iri in iris for language in said[iri]["inLanguage"]}),
                provenance=origin_of(reader, descriptions, graphs[iris[0]]),
            )
            for iris in page
        ],
        edges=edges[:EDGES_SHOWN],
    )
    if len(edges) > EDGES_SHOWN:
        result.notes.append(f"These are the first {EDGES_SHOWN} of {len(edges)} relations.")
    if not edges:
        result.notes.append("The graph has no amends or repeals relations of these documents; dates alone order them.")
    following = page_of(works, offset, limit) if include_docs else None
    return reader.finish(result, total=len(works), next_offset=following, explain=explain)


def _works(said: dict[str, dict[str, list[str]]]) -> list[list[str]]:
    """Return the documents oldest first, each with its translations behind it; the undated come last."""
    works: dict[str, list[str]] = defaultdict(list)
    for document in sorted(said):
        works[document.partition("#")[0]].append(document)

    def key(iris: list[str]) -> tuple[object, ...]:
        dates = [date for iri in iris for date in said[iri]["date_document"]]
        return not dates, min(dates, default=""), min(said[iris[0]]["title"], default=""), iris[0]

    return sorted(works.values(), key=key)


def _edges(reader: Reader, nodes: list[str]) -> list[LineageEdge]:
    """Return what amends or repeals what, of the family or its documents, each relation once and read forwards."""
    rows = reader.rows("relations", bind(RELATIONS, nodes=[NamedNode(iri) for iri in sorted(nodes)]))
    found: set[tuple[str, Relation, str]] = set()
    for row in rows:
        relation, inverse = _RELATIONS[NamedNode(iri_of(row["relation"]))]
        ends = iri_of(row["from"]), iri_of(row["to"])
        found.add((ends[inverse], relation, ends[not inverse]))
    things = [NamedNode(iri) for iri in sorted({iri for edge in found for iri in (edge[0], edge[2])})]
    titles: dict[str, str] = {}
    for row in reader.rows("titles", bind(TITLES, things=things)) if things else ():
        iri, title = iri_of(row["thing"]), text_of(row["title"])
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
