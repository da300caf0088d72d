"""Places: counts of records by kind, of policy documents by type and language, and of passages by concept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Final, Literal

from pydantic import BaseModel, Field
from pyoxigraph import NamedNode

from kg.errors import InvalidInputError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.concept_index import Concept, load_concepts
from kg.retrieval.evidence import code_of
from kg.retrieval.filters import BY_STATE, Scope, compile_territory
from kg.retrieval.notes import Note
from kg.retrieval.places import Place, Places, Territory, find_place, load_places, load_places_in_use, load_territory
from kg.retrieval.reader import Reader, bounded_page, iri_of, page_of
from kg.retrieval.results import Layout, Limit, Offset, PlaceName, Result, TopConcept
from kg.store.protocol import Term, term_text
from kg.vocabulary import KG, SCHEMA

BINS_SHOWN: Final = 200
PARTS_SHOWN: Final = 20

# A document and its translation have one slug: they count once.
TOTALS: Final = """
SELECT (COUNT(DISTINCT ?slug) AS ?documents) (COUNT(DISTINCT ?family) AS ?families) WHERE {
  #DOCUMENT
  ?document a kg:PolicyDocument ; kg:slug ?slug .
  OPTIONAL { ?document eli:is_member_of ?family }
}"""

DOCUMENTS_BY: Final = """
SELECT ?value (COUNT(DISTINCT ?slug) AS ?count) WHERE {
  #DOCUMENT
  ?document a kg:PolicyDocument ; kg:slug ?slug ; $property ?value
} GROUP BY ?value"""

RECORDS_BY_KIND: Final = """
SELECT ?value (COUNT(DISTINCT ?document) AS ?count) WHERE {
  #DOCUMENT
  ?document a ?value FILTER(?value IN (kg:Speech, kg:Bill, kg:CodeSection, kg:ZoningDistrict))
} GROUP BY ?value"""

# The mentions in each branch: after the UNION, the engine joins them with those of the whole store.
CONCEPTS_BY: Final = """
SELECT ?value (COUNT(DISTINCT ?unit) AS ?count) (COUNT(DISTINCT ?work) AS ?documents) WHERE {
  {
    #DOCUMENT
    ?document a ?kind FILTER(?kind IN (kg:PolicyDocument, kg:Speech))
    ?unit dcterms:isPartOf ?document . ?unit kg:mentions ?value
    OPTIONAL { ?document kg:slug ?slug }
  } UNION {
    #DOCUMENT
    ?document a kg:CodeSection . ?document kg:mentions ?value BIND(?document AS ?unit)
  }
  BIND(COALESCE(?slug, STR(?document)) AS ?work)
} GROUP BY ?value"""

By = Literal["kind", "corpus_type", "language", "concept"]
_PROPERTY: Final[Mapping[str, NamedNode]] = {"corpus_type": KG.corpusType, "language": SCHEMA.inLanguage}
_KINDS: Final[Mapping[str, str]] = {
    "Speech": "speeches",
    "Bill": "bills",
    "CodeSection": "code sections",
    "ZoningDistrict": "zoning districts",
}


class CorpusCount(BaseModel):
    """The number of documents of a corpus type."""

    corpus_type: str
    documents: int


class LanguageCount(BaseModel):
    """The number of documents in a language."""

    language: str
    documents: int


class KindCount(BaseModel):
    """The number of records of a kind."""

    kind: str = Field(description="policy documents, speeches, bills, code sections, zoning districts")
    records: int


class Part(BaseModel):
    """A place, as an argument for any place filter."""

    id: str
    code: str
    name: str


class JurisdictionResult(Result):
    """Counts for one place, with all places inside it."""

    layout: ClassVar[Layout] = Layout(paged=("top_concepts",))

    id: str
    iso3: str = Field(description="Code of the place")
    name: str
    within: list[Part] = Field(description="The places that contain it, the smallest first")
    parts: list[Part] = Field(description="The places directly inside it that have records")
    kinds: list[KindCount] = Field(description="Records of all domains; translations do not count")
    documents: int = Field(description="Number of policy documents; translations do not count")
    families: int
    corpus_types: list[CorpusCount]
    languages: list[LanguageCount]
    top_concepts: list[TopConcept]


class ComparisonResult(Result):
    """Counts for two places, bin by bin."""

    layout: ClassVar[Layout] = Layout(paged=("bins", "qids", "a", "b"))

    iso3_a: str
    iso3_b: str
    counted: Literal["records", "documents", "passages"]
    bins: list[str]
    qids: list[str] | None = Field(None, description="by=concept: the concept of each bin")
    a: list[int]
    b: list[int]


def jurisdiction_overview(
    kg: KnowledgeGraph,
    iso3: PlaceName | None = None,
    place: PlaceName | None = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> JurisdictionResult:
    """Count the records of one place (country, state, town) and all places inside it, in all domains.

    Use to learn the contents of the graph for a place, and its topics. Pass place or iso3. Returns kinds{kind,
    records}, within, parts, documents, families, corpus_types, languages, top_concepts{qid, label, passages,
    documents}; limit and offset page through top_concepts.
    Example: jurisdiction_overview(iso3="BRA").
    Next: `search` with filters.place; `concept_mentions` with a qid and place; `compare_jurisdictions`.
    """
    bounded_page(limit, offset)
    given = [text for text in (iso3, place) if text is not None]
    if len(given) != 1:
        raise InvalidInputError("Pass one place, as place or as iso3, for example place='US-UT'.")
    reader = Reader(kg)
    argument = "place" if iso3 is None else "iso3"
    found, territory = _territory(reader, argument, given[0])
    places = load_places(reader)
    parts = _parts_in_use(reader, places, found)
    scope = compile_territory(territory)
    reader.start_selection()
    [totals] = reader.kept("documents and families", scope.compile(TOTALS), list)
    kinds = _counts(reader, scope, "kind")
    corpus_types, languages = (_ranked(_counts(reader, scope, by)) for by in ("corpus_type", "language"))
    top = top_concepts(reader, scope)
    result = JurisdictionResult(
        id=found.iri,
        iso3=found.code,
        name=found.name,
        within=[_part(outer) for outer in places.get_chain(found)],
        parts=[_part(part) for part in parts[:PARTS_SHOWN]],
        kinds=[KindCount(kind=kind, records=count) for kind, count in _ranked(kinds)],
        documents=int(term_text(totals["documents"])),
        families=int(term_text(totals["families"])),
        corpus_types=[CorpusCount(corpus_type=name, documents=count) for name, count in corpus_types],
        languages=[LanguageCount(language=name, documents=count) for name, count in languages],
        top_concepts=[
            TopConcept(qid=concept.qid, label=concept.label, passages=passages, documents=documents)
            for concept, passages, documents in top[offset : offset + limit]
        ],
    )
    result.notes += territory.empty
    if territory.states:
        result.notes.append(BY_STATE)
    if len(parts) > PARTS_SHOWN:
        shown = f"the first {PARTS_SHOWN} of {len(parts)} places"
        result.notes.append(Note(f"parts has {shown}.", f"Of the places in it, only {shown} are listed."))
    if top and set(kinds) - {"policy documents"}:
        result.notes.append(Note("documents of top_concepts counts speeches and sections of codes too."))
    if not top and not territory.empty:
        result.notes.append(_explain_no_mentions(reader, [found]))
    return reader.finish(result, total=len(top), next_offset=page_of(top, offset, limit))


def _territory(reader: Reader, argument: str, text: str) -> tuple[Place, Territory]:
    place = find_place(reader, argument, text)
    return place, load_territory(reader, argument, [place])


def _part(place: Place) -> Part:
    return Part(id=place.iri, code=place.code, name=place.name)


def _parts_in_use(reader: Reader, places: Places, outer: Place) -> list[Place]:
    """List the places directly inside `outer` that have records, or have parts with records."""
    in_use = load_places_in_use(reader)
    used = in_use.jurisdictions | in_use.states
    having = [iri for iri in places.get_parts(outer.iri) if not used.isdisjoint(places.get_all_parts(iri))]
    found = [place for iri in having if (place := places.get(iri)) is not None]
    return sorted(found, key=lambda place: (place.name, place.iri))


def _explain_no_mentions(reader: Reader, places: Sequence[Place]) -> str:
    """Explain why the records of `places` mention no concept: none is loaded, or none of their names occurs there."""
    concepts = len(load_concepts(reader.kg))
    if not concepts:
        return "No concepts are loaded. Load some with kg load wikibase."
    said = f"No mention of any of the {concepts:,} loaded concepts is recorded in passages of"
    names, codes = (" or ".join(getattr(place, kind) for place in places) for kind in ("name", "code"))
    return Note(f"{said} {codes}. `search` with filters.place finds passages by meaning.", f"{said} {names}.")


def compare_jurisdictions(
    kg: KnowledgeGraph,
    iso3_a: PlaceName,
    iso3_b: PlaceName,
    by: Annotated[By, Field(description="concept counts passages, kind records, others policies")] = "corpus_type",
    limit: Limit = 50,
    offset: Offset = 0,
) -> ComparisonResult:
    """Compare two places by their numbers of records per kind, documents per type or language, passages per concept.

    Use to find differences between two countries, states or towns. Returns bins, with a and b: the counts of each place
    for each bin, largest sum first.
    Example: compare_jurisdictions(iso3_a="BRA", iso3_b="DJI", by="corpus_type").
    Next: `jurisdiction_overview` for one of them; `search` with filters.place for passages.
    """
    bounded_page(limit, offset)
    reader = Reader(kg)
    (place_a, territory_a), (place_b, territory_b) = (
        _territory(reader, "iso3_a", iso3_a),
        _territory(reader, "iso3_b", iso3_b),
    )
    scopes = compile_territory(territory_a), compile_territory(territory_b)
    reader.start_selection()
    labels: dict[str, str] = {}
    counts: list[Mapping[str, int]]
    if by == "concept":
        tops = [top_concepts(reader, scope) for scope in scopes]
        labels = {concept.qid: concept.label for of in tops for concept, _, _ in of}
        counts = [{concept.qid: passages for concept, passages, _ in of} for of in tops]
    else:
        counts = [_counts(reader, scope, by) for scope in scopes]
    both: dict[str, int] = defaultdict(int)
    for of in counts:
        for name, count in of.items():
            both[name] += count
    ranked = sorted(both, key=lambda name: (-both[name], labels.get(name, name), name))
    page = ranked[offset : offset + limit]
    result = ComparisonResult(
        iso3_a=place_a.code,
        iso3_b=place_b.code,
        counted="passages" if by == "concept" else "records" if by == "kind" else "documents",
        bins=[labels.get(name, name) for name in page],
        qids=page if by == "concept" else None,
        a=[counts[0].get(name, 0) for name in page],
        b=[counts[1].get(name, 0) for name in page],
        notes=[*territory_a.empty, *territory_b.empty],
    )
    if (territory_a.states or territory_b.states) and by in ("kind", "concept"):
        result.notes.append(BY_STATE)
    if by in ("corpus_type", "language") and not ranked:
        result.notes.append("No law or policy of these places is loaded. by=kind counts the records of all domains.")
    if by == "concept" and not ranked:
        result.notes.append(_explain_no_mentions(reader, [place_a, place_b]))
    return reader.finish(result, total=len(ranked), next_offset=page_of(ranked, offset, limit))


def top_concepts(reader: Reader, scope: Scope) -> list[tuple[Concept, int, int]]:
    """Load the concepts that the records in `scope` mention, with the numbers of passages and documents, most first."""
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

    counted = reader.kept("concepts that they mention", scope.compile(CONCEPTS_BY), read)
    known = [(concepts.at(iri), passages, documents) for iri, passages, documents in counted]
    return [(concept, passages, documents) for concept, passages, documents in known if concept is not None]


def _counts(reader: Reader, scope: Scope, by: str) -> Mapping[str, int]:
    """Count the records by kind, or the policy documents by corpus type or language."""

    def read(rows: list[dict[str, Term]]) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for row in rows:
            value = row.get("value")
            if value is not None:
                name = code_of(value.value) if isinstance(value, NamedNode) else term_text(value)
                found[name] = int(term_text(row["count"]))
        return found

    if by != "kind":
        return reader.kept(f"documents by {by}", scope.compile(DOCUMENTS_BY, property=_PROPERTY[by]), read)
    counted = reader.kept("records by kind", scope.compile(RECORDS_BY_KIND), read)
    [totals] = reader.kept("documents and families", scope.compile(TOTALS), list)
    found = {_KINDS[name.partition("#")[2]]: count for name, count in counted.items()}
    documents = int(term_text(totals["documents"]))
    return {**found, "policy documents": documents} if documents else dict(found)


def _ranked(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:BINS_SHOWN]
