"""Countries: counts of documents by corpus type and language, and of passages by concept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal

from pydantic import BaseModel, Field
from pyoxigraph import NamedNode

from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.concept_index import Concept, load_concepts
from kg.retrieval.evidence import code_of
from kg.retrieval.filters import find_place
from kg.retrieval.reader import Reader, bounded_page, iri_of, page_of
from kg.retrieval.results import Explain, Iso3, Limit, Offset, Result, TopConcept
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
from kg.vocabulary import KG, SCHEMA

BINS_SHOWN: Final = 200

# A document and its translation have one slug: they count once.
TOTALS: Final = """
SELECT (COUNT(DISTINCT ?slug) AS ?documents) (COUNT(DISTINCT ?family) AS ?families) WHERE {
  ?document kg:jurisdiction $place ; a kg:PolicyDocument ; kg:slug ?slug .
  OPTIONAL { ?document eli:is_member_of ?family }
}"""

DOCUMENTS_BY: Final = """
SELECT ?value (COUNT(DISTINCT ?slug) AS ?count) WHERE {
  ?document kg:jurisdiction $place ; a kg:PolicyDocument ; kg:slug ?slug ; $property ?value
} GROUP BY ?value"""

CONCEPTS_BY: Final = """
SELECT ?value (COUNT(DISTINCT ?unit) AS ?count) (COUNT(DISTINCT ?slug) AS ?documents) WHERE {
  ?document kg:jurisdiction $place ; kg:slug ?slug . ?unit dcterms:isPartOf ?document . ?unit kg:mentions ?value
} GROUP BY ?value"""

By = Literal["corpus_type", "language", "concept"]
_PROPERTY: Final[Mapping[str, NamedNode]] = {"corpus_type": KG.corpusType, "language": SCHEMA.inLanguage}


class CorpusCount(BaseModel):
    """The number of documents of a corpus type."""

    corpus_type: str
    documents: int


class LanguageCount(BaseModel):
    """The number of documents in a language."""

    language: str
    documents: int


class JurisdictionResult(Result):
    """Counts for one country."""

    iso3: str
    documents: int = Field(description="Number of documents; translations do not count")
    families: int
    corpus_types: list[CorpusCount]
    languages: list[LanguageCount]
    top_concepts: list[TopConcept]


class ComparisonResult(Result):
    """Counts for two countries, bin by bin."""

    iso3_a: str
    iso3_b: str
    counted: Literal["documents", "passages"]
    bins: list[str]
    qids: list[str] | None = Field(None, description="by=concept: the concept of each bin")
    a: list[int]
    b: list[int]


def jurisdiction_overview(
    kg: KnowledgeGraph, iso3: Iso3, limit: Limit = 20, offset: Offset = 0, explain: Explain = False
) -> JurisdictionResult:
    """Count the documents of one country by corpus type and language, and list the concepts mentioned most.

    Use to learn the topics of a country's laws and policies. Returns documents, families, corpus_types, languages,
    top_concepts{qid, label, passages, documents}; limit and offset page through top_concepts.
    Example: jurisdiction_overview(iso3="BRA").
    Next: `concept_mentions` with a qid and iso3, or `compare_jurisdictions` with another country.
    """
    bounded_page(limit, offset)
    reader = Reader(kg)
    place = find_place(reader, "iso3", iso3)
    reader.ran.clear()
    [totals] = reader.kept("documents and families", bind(TOTALS, place=place), list)
    corpus_types, languages = (_ranked(_counts(reader, place, by)) for by in ("corpus_type", "language"))
    top = top_concepts(reader, place)
    result = JurisdictionResult(
        iso3=code_of(place.value),
        documents=int(term_text(totals["documents"])),
        families=int(term_text(totals["families"])),
        corpus_types=[CorpusCount(corpus_type=name, documents=count) for name, count in corpus_types],
        languages=[LanguageCount(language=name, documents=count) for name, count in languages],
        top_concepts=[
            TopConcept(qid=concept.qid, label=concept.label, passages=passages, documents=documents)
            for concept, passages, documents in top[offset : offset + limit]
        ],
    )
    if not top:
        result.notes.append(_explain_no_mentions(reader, [place]))
    return reader.finish(result, total=len(top), next_offset=page_of(top, offset, limit), explain=explain)


def _explain_no_mentions(reader: Reader, places: Sequence[NamedNode]) -> str:
    """Explain why the documents of `places` mention no concept: none is loaded, or none of their names occurs there."""
    concepts = len(load_concepts(reader.kg))
    if not concepts:
        return "No concepts are loaded. Load some with kg load wikibase."
    named = " or ".join(code_of(place.value) for place in places)
    return (
        f"No mention of any of the {concepts:,} loaded concepts is recorded in passages of {named}. "
        "`search` with filters.iso3 finds passages by meaning."
    )


def compare_jurisdictions(
    kg: KnowledgeGraph,
    iso3_a: Iso3,
    iso3_b: Iso3,
    by: Annotated[By, Field(description="concept counts passages, the others count documents")] = "corpus_type",
    limit: Limit = 50,
    offset: Offset = 0,
    explain: Explain = False,
) -> ComparisonResult:
    """Compare two countries by their numbers of documents per corpus type or language, or of passages per concept.

    Use to find differences between two countries. Returns bins, with a and b: the counts of each country for each bin,
    largest sum first.
    Example: compare_jurisdictions(iso3_a="BRA", iso3_b="DJI", by="corpus_type").
    Next: `jurisdiction_overview` for one of them; `search` with filters.iso3 for passages.
    """
    bounded_page(limit, offset)
    reader = Reader(kg)
    places = find_place(reader, "iso3_a", iso3_a), find_place(reader, "iso3_b", iso3_b)
    reader.ran.clear()
    labels: dict[str, str] = {}
    counts: list[Mapping[str, int]]
    if by == "concept":
        tops = [top_concepts(reader, place) for place in places]
        labels = {concept.qid: concept.label for of in tops for concept, _, _ in of}
        counts = [{concept.qid: passages for concept, passages, _ in of} for of in tops]
    else:
        counts = [_counts(reader, place, by) for place in places]
    both: dict[str, int] = defaultdict(int)
    for of in counts:
        for name, count in of.items():
            both[name] += count
    ranked = sorted(both, key=lambda name: (-both[name], labels.get(name, name), name))
    page = ranked[offset : offset + limit]
    result = ComparisonResult(
        iso3_a=code_of(places[0].value),
        iso3_b=code_of(places[1].value),
        counted="passages" if by == "concept" else "documents",
        bins=[labels.get(name, name) for name in page],
        qids=page if by == "concept" else None,
        a=[counts[0].get(name, 0) for name in page],
        b=[counts[1].get(name, 0) for name in page],
        notes=[_explain_no_mentions(reader, places)] if by == "concept" and not ranked else [],
    )
    return reader.finish(result, total=len(ranked), next_offset=page_of(ranked, offset, limit), explain=explain)


def top_concepts(reader: Reader, place: NamedNode) -> list[tuple[Concept, int, int]]:
    """Load the concepts that a place's documents mention, with the numbers of passages and documents, most first."""
    concepts = load_concepts(reader.kg)
    if not len(concepts):
        return []

    def read(rows: list[dict[str, Term]]) -> list[tuple[str, int, int]]:
        found = [
            (iri_of(row["value"]), int(term_text(row["count"])), int(term_text(row["documents"])))
            for row in rows
            if isinstance(row.get("value"), NamedNode)
        ]
        return sorted(found, key=lambda item: (-item[1], -item[2], item[0]))

    counted = reader.kept("concepts that they mention", bind(CONCEPTS_BY, place=place), read)
    known = [(concepts.at(iri), passages, documents) for iri, passages, documents in counted]
    return [(concept, passages, documents) for concept, passages, documents in known if concept is not None]


def _counts(reader: Reader, place: NamedNode, by: str) -> Mapping[str, int]:
    """Count the documents of a place by corpus type or language."""

    def read(rows: list[dict[str, Term]]) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for row in rows:
            value = row.get("value")
            if value is not None:
                name = code_of(value.value) if isinstance(value, NamedNode) else term_text(value)
                found[name] = int(term_text(row["count"]))
        return found

    return reader.kept(f"documents by {by}", bind(DOCUMENTS_BY, place=place, property=_PROPERTY[by]), read)


def _ranked(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:BINS_SHOWN]
