"""What there is: families of documents, what can be filtered by and read, the state of the server, one entity."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Annotated, Final

from pydantic import BaseModel, Field
from pyoxigraph import NamedNode, Quad, RdfFormat, serialize

from kg import __version__
from kg.errors import InvalidInputError, NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.concept_index import concepts_of, known_concepts
from kg.retrieval.evidence import code_of, describe, origin_of, title_of
from kg.retrieval.filters import DOCUMENT_LANGUAGE, Scope, in_use, scope_of
from kg.retrieval.reader import Reader, bounded, bounded_page, iri_of, text_of
from kg.retrieval.results import (
    Explain,
    Family,
    FamilyResult,
    Health,
    Iso3,
    Language,
    Limit,
    Name,
    Offset,
    Resource,
    ResourceResult,
    SampleDocument,
    SearchFilters,
    TopConcept,
)
from kg.sparql.terms import bind
from kg.tools.parliament.speech_filters import CHAMBERS, parties, tags
from kg.tools.zoning.municipalities import load_places
from kg.vocabulary import DCTERMS, KG, PREFIXES, PROV_GRAPH, SCHEMA, SKOS, slug_of

ENTITY_TRIPLES: Final = 2_000
"""Triples of one entity that are shown; the cut is announced."""

# A document and its translation have one slug: they count once.
FAMILIES: Final = """
SELECT ?family ?title (COUNT(DISTINCT ?slug) AS ?documents) (MIN(STR(?document)) AS ?sample) WHERE {
  #DOCUMENT
  ?document a kg:PolicyDocument ; kg:slug ?slug ; eli:is_member_of ?family .
  ?family dcterms:title ?title .
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

COUNTS: Final = """
SELECT ?class (COUNT(DISTINCT ?thing) AS ?count) WHERE {
  { VALUES ?class { kg:PolicyFamily kg:Place kg:Speech kg:Debate kg:Division } ?thing a ?class }
  UNION { BIND(kg:PolicyDocument AS ?class) ?document a kg:PolicyDocument ; kg:slug ?thing }
} GROUP BY ?class"""

SOURCES: Final = """
SELECT DISTINCT ?snapshot ?sha256 ?location ?revision WHERE {
  GRAPH $prov {
    ?snapshot kg:sha256 ?sha256 .
    OPTIONAL { ?snapshot kg:location ?location }
    OPTIONAL { ?snapshot kg:datasetRevision ?revision }
  }
} LIMIT 10000"""

ABOUT: Final = """
SELECT DISTINCT ?graph ?property ?value WHERE { GRAPH ?graph { $iri ?property ?value } }"""


def family_overview(
    kg: KnowledgeGraph,
    iso3: Annotated[list[Iso3] | None, Field(max_length=300)] = None,
    language: Annotated[list[Language] | None, Field(max_length=100)] = None,
    corpus_type: Annotated[list[Name] | None, Field(max_length=100)] = None,
    top_concepts: Annotated[int, Field(ge=0, le=20, description="Concepts to show of each family")] = 0,
    limit: Limit = 50,
    offset: Offset = 0,
    explain: Explain = False,
) -> FamilyResult:
    """List policy families (a law with its amendments, a plan with its annexes) by title, with their document counts.

    Use to see what a country has before searching. Returns families: id, family_title, doc_count,
    sample_doc{id, slug, title}, top_concepts{qid, label, passages, documents}, provenance. Only documents that pass
    the filters count.
    Example: family_overview(iso3=["BRA"], language=["en"]).
    Next: `fetch` a family or sample_doc id, or `search` with filters.family_slug.
    """
    bounded_page(limit, offset)
    bounded("top_concepts", top_concepts, 0, 20)
    reader = Reader(kg)
    scope, notes = scope_of(
        reader, SearchFilters(iso3=iso3 or [], language=language or [], corpus_type=corpus_type or [])
    )
    if language:
        scope = Scope((*scope.on_document, DOCUMENT_LANGUAGE), terms=scope.terms)
    reader.ran.clear()
    rows = [
        (text_of(row["title"]), iri_of(row["family"]), int(text_of(row["documents"])), text_of(row["sample"]))
        for row in reader.rows("families that the filters leave", scope.compile(FAMILIES))
    ]
    rows.sort()
    page = rows[offset : offset + limit]
    families = _families(reader, page)
    if top_concepts:
        _add_concepts(reader, scope, families, top_concepts)
    following = offset + limit if len(rows) > offset + limit else None
    return reader.finish(
        FamilyResult(families=families, notes=notes), total=len(rows), next_offset=following, explain=explain
    )


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
    """Name the concepts that the documents of each family mention in most passages."""
    concepts = concepts_of(reader.kg)
    if not families or not len(concepts):
        return
    found: dict[str, list[TopConcept]] = defaultdict(list)
    nodes = [NamedNode(family.id) for family in families]
    for row in reader.rows("concepts of families", scope.compile(CONCEPTS_OF, shown=nodes)):
        concept = concepts.at(iri_of(row["concept"])) if "concept" in row else None
        if concept is not None:
            passages, documents = int(text_of(row["passages"])), int(text_of(row["documents"]))
            top = TopConcept(qid=concept.qid, label=concept.label, passages=passages, documents=documents)
            found[iri_of(row["family"])].append(top)
    for family in families:
        ranked = sorted(found[family.id], key=lambda top: (-top.passages, -top.documents, top.label, top.qid))
        family.top_concepts = ranked[:most]


def list_resources(
    kg: KnowledgeGraph, limit: Limit = 100, offset: Offset = 0, explain: Explain = False
) -> ResourceResult:
    """List what this server holds: what can be filtered by (with all valid values), counts, source files, resources.

    Use to learn which values of filters are valid. Returns resources: uri, title, kind
    (filter | class | source | resource | endpoint), count, values.
    Example: list_resources(limit=10).
    Next: `search` or `family_overview` with these values.
    """
    bounded_page(limit, offset)
    reader = Reader(kg)
    counts = {
        iri_of(row["class"]): int(text_of(row["count"])) for row in reader.rows("counts", COUNTS) if "class" in row
    }
    resources = [
        *(_filter(reader, name, term) for name, term in FILTERS),
        *_speech_filters(reader),
        *_municipalities(reader),
        *(
            Resource(uri=term.value, title=title, kind="class", count=counts.get(term.value, 0))
            for term, title in (
                (KG.PolicyDocument, "Policy documents, a translation not counted apart"),
                (KG.PolicyFamily, "Policy families"),
                (KG.Place, "Places"),
                *((KG[name], title) for name, title in PARLIAMENT if counts.get(KG[name].value)),
            )
        ),
        Resource(
            uri=KG.Passage.value, title="Passages and chunks of speeches", kind="class", count=kg.search.status().units
        ),
        *_concepts(reader),
        Resource(uri="/sparql", title="SPARQL 1.1 query endpoint", kind="endpoint", count=kg.store.statistics().quads),
        Resource(uri="cpr://status", title="State of the server", kind="resource"),
        Resource(uri="cpr://dataset/revision", title="Source files with their hashes", kind="resource"),
        Resource(uri="kg://entity/{iri}", title="All that the graph says of one IRI", kind="resource"),
        *sources(reader),
    ]
    following = offset + limit if len(resources) > offset + limit else None
    return reader.finish(
        ResourceResult(resources=resources[offset : offset + limit]),
        total=len(resources),
        next_offset=following,
        explain=explain,
    )


PARLIAMENT: Final = (("Speech", "Speeches"), ("Debate", "Debates"), ("Division", "Divisions by names"))
FILTERS: Final = (("iso3", KG.jurisdiction), ("language", SCHEMA.inLanguage), ("corpus_type", KG.corpusType))


def _filter(reader: Reader, name: str, term: NamedNode) -> Resource:
    values = [
        code_of(value.value) if isinstance(value, NamedNode) else value.value for value in in_use(reader, term).values()
    ]
    return Resource(
        uri=term.value, title=f"Filter {name}: values in use", kind="filter", count=len(values), values=sorted(values)
    )


def _speech_filters(reader: Reader) -> Iterator[Resource]:
    """Yield what speeches can be filtered by, where there are any."""
    values = {
        KG.party: [choice.label for choice in parties(reader)],
        KG.chamber: [CHAMBERS.get(code_of(iri), code_of(iri)) for iri in _codes(reader, KG.chamber)],
        KG.state: [code_of(iri).rpartition("-")[2] for iri in _codes(reader, KG.state)],
        DCTERMS.subject: tags(reader),
    }
    for name, term in (("party", KG.party), ("chamber", KG.chamber), ("state", KG.state), ("topics", DCTERMS.subject)):
        if found := sorted(set(values[term])):
            title = f"Filter {name} of speeches: values in use"
            yield Resource(uri=term.value, title=title, kind="filter", count=len(found), values=found)


def _municipalities(reader: Reader) -> Iterator[Resource]:
    """Yield the municipalities whose codes or tables are here, where there are any."""
    if found := [place.shown for place in load_places(reader)]:
        title = "Municipalities with a code, or a table of districts"
        yield Resource(uri=KG.Municipality.value, title=title, kind="filter", count=len(found), values=found)


def _codes(reader: Reader, term: NamedNode) -> list[str]:
    return [value.value for value in in_use(reader, term).values() if isinstance(value, NamedNode)]


def _concepts(reader: Reader) -> list[Resource]:
    count = len(concepts_of(reader.kg))
    return [Resource(uri=SKOS.Concept.value, title="Concepts to find mentions of", kind="class", count=count)]


def sources(reader: Reader) -> list[Resource]:
    """Return the files that the graph was read from, as they were then."""
    rows = {
        (text_of(row["location"]) if "location" in row else "", text_of(row["sha256"])): row
        for row in reader.rows("source files", bind(SOURCES, prov=PROV_GRAPH))
    }
    return [
        Resource(
            uri=text_of(row["snapshot"]),
            title=location,
            kind="source",
            values=[sha256, *([text_of(row["revision"])] if "revision" in row else [])],
        )
        for (location, sha256), row in sorted(rows.items())
    ]


def health(kg: KnowledgeGraph) -> Health:
    """Say whether the server is well, how much it holds, and how many passages still wait for their embedding.

    Use when answers look thin or a call failed. Returns status (ok | degraded), counts, generation, problems.
    Example: health().
    Next: `list_resources` for what is held.
    """
    counted = kg.store.statistics()
    index = kg.search.status()
    problems = []
    if index.embedder_error is not None:
        problems.append(f"no embeddings are made, ranking is by words alone: {index.embedder_error}")
    result = Health(
        status="degraded" if problems else "ok",
        version=__version__,
        generation=counted.generation,
        quads=counted.quads,
        graphs=counted.graphs,
        bytes_on_disk=counted.bytes_on_disk,
        indexed_passages=index.units,
        pending_vectors=index.pending_vectors,
        model=index.model,
        dataset=kg.settings.dataset_repo,
        dataset_revision=kg.settings.dataset_revision,
        concepts=_state_of_concepts(kg),
        dataset_shapes=None if kg.dataset_check is None else kg.dataset_check(),
        problems=problems,
    )
    result.meta.snapshot = counted.generation
    return result


def _state_of_concepts(kg: KnowledgeGraph) -> str:
    concepts = known_concepts(kg)
    if concepts is None:
        return "not read yet: the first question about concepts reads them"
    return f"{len(concepts):,} concepts, as of generation {concepts.generation}" if len(concepts) else "none are loaded"


class Said(BaseModel):
    """One quad about an entity."""

    graph: str
    property: str
    value: str = Field(description="The value as an N-Triples term")


class Entity(BaseModel):
    """All that the graph says of one IRI."""

    iri: str
    quads: list[Said]
    truncated: bool = False
    generation: int


def entity(kg: KnowledgeGraph, iri: str) -> tuple[Entity, str]:
    """Return what the graph says of `iri`, and the same as Turtle with one block for each graph.

    Raises InvalidInputError for what is no IRI and NotFoundError for one that no graph has as subject.
    """
    try:
        node = NamedNode(iri)
    except ValueError as error:
        raise InvalidInputError(f"{iri[:200]!r} is not an absolute IRI: {error}") from None
    reader = Reader(kg)
    rows = reader.rows("entity", bind(ABOUT, iri=node))
    if not rows:
        raise NotFoundError(
            f"no graph says anything of <{iri}>; search and family_overview give the IRIs that there are"
        )
    rows.sort(key=lambda row: (str(row["graph"]), str(row["property"]), str(row["value"])))
    cut = rows[:ENTITY_TRIPLES]
    said = [Said(graph=iri_of(row["graph"]), property=iri_of(row["property"]), value=str(row["value"])) for row in cut]
    shown = Entity(
        iri=iri, quads=said, truncated=len(cut) < len(rows) or reader.truncated, generation=reader.generation
    )
    used = [iri, *(text for quad in said for text in (quad.property, quad.value))]
    prefixes = {name: start for name, start in PREFIXES.items() if any(start in text for text in used)}
    blocks = [f"# generation {shown.generation}{', cut off' if shown.truncated else ''}"]
    for graph in dict.fromkeys(quad.graph for quad in said):
        quads = [
            Quad(node, NamedNode(iri_of(row["property"])), row["value"]) for row in cut if iri_of(row["graph"]) == graph
        ]
        turtle = serialize((quad.triple for quad in quads), format=RdfFormat.TURTLE, prefixes=prefixes)
        blocks.append(f"# graph <{graph}>\n{(turtle or b'').decode()}")
    return shown, "\n".join(blocks)
