"""Contents of the graph: valid filter values, counts by class, source files, and resources."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final, Literal

from pydantic import BaseModel, Field
from pyoxigraph import NamedNode

from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.concept_index import load_concepts
from kg.retrieval.evidence import code_of
from kg.retrieval.filters import load_values_in_use
from kg.retrieval.places import load_places, load_places_in_use
from kg.retrieval.reader import Reader, bounded_page, iri_of, page_of, read_counts
from kg.retrieval.results import Limit, Offset, Result
from kg.sparql.terms import bind
from kg.store.protocol import Store, select, term_text
from kg.tools.parliament.speech_filters import label_chamber, parties, tags
from kg.tools.zoning.name_lookup import load_places as load_municipalities
from kg.vocabulary import CATALOG_GRAPH, DCTERMS, KG, PROV_GRAPH, SCHEMA, SHIPPED_GRAPHS, SKOS

COUNTS: Final = """
SELECT ?class (COUNT(DISTINCT ?thing) AS ?count) WHERE {
  { VALUES ?class { kg:PolicyFamily kg:Place kg:Speech kg:Debate kg:Division } ?thing a ?class }
  UNION { BIND(kg:PolicyDocument AS ?class) ?document a kg:PolicyDocument ; kg:slug ?thing }
} GROUP BY ?class"""

DATASETS: Final = """
SELECT ?dataset ?title ?loader ?records ?triples ?modified WHERE {
  GRAPH $catalog {
    ?dataset a dcat:Dataset ; dcterms:title ?title ; kg:loader ?loader ; dcterms:modified ?modified ;
      void:documents ?records ; void:triples ?triples
  }
} ORDER BY ?loader ?title LIMIT 10000"""

HUB_DATASETS: Final = """
SELECT DISTINCT ?title ?version WHERE {
  GRAPH $catalog { ?dataset dcat:version ?version ; dcterms:title ?title FILTER(STRSTARTS(?title, "hub:")) }
}"""

SOURCES: Final = """
SELECT DISTINCT ?snapshot ?sha256 ?location ?revision WHERE {
  GRAPH $prov {
    ?snapshot kg:sha256 ?sha256 .
    FILTER NOT EXISTS { VALUES ?shipped { $shipped } ?shipped prov:wasDerivedFrom ?snapshot }
    OPTIONAL { ?snapshot kg:location ?location }
    OPTIONAL { ?snapshot kg:datasetRevision ?revision }
  }
} LIMIT 10000"""


class Resource(BaseModel):
    """A filter with its values, a class, a dataset, a source file, a resource or an endpoint."""

    uri: str
    title: str
    kind: Literal["resource", "endpoint", "filter", "class", "dataset", "source"]
    count: int | None = Field(None, exclude_if=lambda count: count is None)
    values: list[str] = Field(default_factory=list, exclude_if=lambda values: not values)


class ResourceResult(Result):
    """Contents of this server."""

    resources: list[Resource]


def list_resources(kg: KnowledgeGraph, limit: Limit = 100, offset: Offset = 0) -> ResourceResult:
    """List the contents of this server: filters with all valid values, counts by class, datasets, source files.

    Use to look up valid filter values. Returns resources: uri, title, kind
    (filter | class | dataset | source | resource | endpoint), count, values.
    Example: list_resources(limit=10).
    Next: `search` or `family_overview` with these values.
    """
    bounded_page(limit, offset)
    reader = Reader(kg)
    counts = reader.kept("counts", COUNTS, partial(read_counts, "class", "count"))
    resources = [
        _places(reader),
        *(_filter(reader, name, term) for name, term in FILTERS),
        *_speech_filters(reader),
        *_municipalities(reader),
        *(
            Resource(uri=term.value, title=title, kind="class", count=counts.get(term.value, 0))
            for term, title in (
                (KG.PolicyDocument, "Policy documents, translations not counted"),
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
        Resource(uri="cpr://status", title="Health of the server", kind="resource"),
        Resource(uri="cpr://dataset/revision", title="Source files with their hashes", kind="resource"),
        Resource(uri="kg://entity/{iri}", title="All quads about one IRI", kind="resource"),
        *datasets(reader),
        *sources(reader),
    ]
    return reader.finish(
        ResourceResult(resources=resources[offset : offset + limit]),
        total=len(resources),
        next_offset=page_of(resources, offset, limit),
    )


PARLIAMENT: Final = (("Speech", "Speeches"), ("Debate", "Debates"), ("Division", "Divisions by names"))
FILTERS: Final = (("language", SCHEMA.inLanguage), ("corpus_type", KG.corpusType))


def _places(reader: Reader) -> Resource:
    """List the countries and states with records; municipalities are in a list of their own."""
    places, in_use = load_places(reader), load_places_in_use(reader)
    used = [place for iri in in_use.jurisdictions | in_use.states if (place := places.get(iri)) is not None]
    found = {outer.iri: outer for place in used for outer in (place, *places.get_chain(place))}
    values = sorted(place.code for place in found.values() if place.kind != "municipality")
    title = "Filter iso3: values in use"
    return Resource(uri=KG.jurisdiction.value, title=title, kind="filter", count=len(values), values=values)


def _filter(reader: Reader, name: str, term: NamedNode) -> Resource:
    values = [
        code_of(value.value) if isinstance(value, NamedNode) else value.value
        for value in load_values_in_use(reader, term).values()
    ]
    return Resource(
        uri=term.value, title=f"Filter {name}: values in use", kind="filter", count=len(values), values=sorted(values)
    )


def _speech_filters(reader: Reader) -> Iterator[Resource]:
    """Yield the filters of speeches that have values."""
    values = {
        KG.party: [choice.label for choice in parties(reader)],
        KG.chamber: [label_chamber(reader, iri) for iri in _codes(reader, KG.chamber)],
        KG.state: [code_of(iri).rpartition("-")[2] for iri in _codes(reader, KG.state)],
        DCTERMS.subject: tags(reader),
    }
    for name, term in (("party", KG.party), ("chamber", KG.chamber), ("state", KG.state), ("topics", DCTERMS.subject)):
        if found := sorted(set(values[term])):
            title = f"Filter {name} of speeches: values in use"
            yield Resource(uri=term.value, title=title, kind="filter", count=len(found), values=found)


def _municipalities(reader: Reader) -> Iterator[Resource]:
    """Yield the municipalities that have a code or a table of districts."""
    if found := [place.shown for place in load_municipalities(reader)]:
        title = "Municipalities with a code, or a table of districts"
        yield Resource(uri=KG.Municipality.value, title=title, kind="filter", count=len(found), values=found)


def _codes(reader: Reader, term: NamedNode) -> list[str]:
    return [value.value for value in load_values_in_use(reader, term).values() if isinstance(value, NamedNode)]


def _concepts(reader: Reader) -> list[Resource]:
    count = len(load_concepts(reader.kg))
    return [Resource(uri=SKOS.Concept.value, title="Concepts", kind="class", count=count)]


def datasets(reader: Reader) -> list[Resource]:
    """List the datasets of the catalog with their records, and their loader, quads and last change as values."""
    return [
        Resource(
            uri=iri_of(row["dataset"]),
            title=term_text(row["title"]),
            kind="dataset",
            count=int(term_text(row["records"])),
            values=[
                term_text(row["loader"]),
                f"{int(term_text(row['triples'])):,} quads",
                f"last changed {term_text(row['modified'])}",
            ],
        )
        for row in reader.rows("datasets of the catalog", bind(DATASETS, catalog=CATALOG_GRAPH))
    ]


class HubDataset(BaseModel):
    """A dataset of the model hub that was loaded, at one revision."""

    name: str
    revision: str


def hub_datasets(store: Store) -> list[HubDataset]:
    """List the loaded datasets of the model hub with their revisions, in this process."""
    loaded = {
        ("/".join(term_text(title).removeprefix("hub:").split("/")[:2]), term_text(version))
        for title, version in select(store.query, bind(HUB_DATASETS, catalog=CATALOG_GRAPH)).rows
    }
    return [HubDataset(name=name, revision=revision) for name, revision in sorted(loaded)]


def sources(reader: Reader) -> list[Resource]:
    """List the loaded source files, with the hash of each at that time."""
    rows = {
        (term_text(row["location"]) if "location" in row else "", term_text(row["sha256"])): row
        for row in reader.rows("source files", bind(SOURCES, prov=PROV_GRAPH, shipped=list(SHIPPED_GRAPHS)))
    }
    return [
        Resource(
            uri=term_text(row["snapshot"]),
            title=location,
            kind="source",
            values=[sha256, *([term_text(row["revision"])] if "revision" in row else [])],
        )
        for (location, sha256), row in sorted(rows.items())
    ]
