"""`graph/catalog` describes each source of each loader, and its counts follow every load, deletion and restore."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyoxigraph
import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg import bundle
from kg.access.actors import ADMIN, CURATE, WRITE, Actor
from kg.errors import ForbiddenError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.catalog import FAMILIES, build_catalog, find_source
from kg.provenance.explanation import explain_iri, explain_triple
from kg.provenance.load_records import CORRECTION, Agent, RecordOrigin, RowsOf, Run, SourceFile
from kg.provenance.shipped import INFERENCES
from kg.shacl.data_graph import DataGraph
from kg.store.protocol import select, term_text
from kg.tools.catalog.resources import list_resources
from kg.tools.shacl.background_validation import load_dataset_shapes
from kg.user_graphs import UserGraphs
from kg.vocabulary import CATALOG_GRAPH, RDF, SOURCED, UNCOUNTED_GRAPHS, VOID, mint, sha256
from loaders.sources import load
from tests.folders import open_graph

ADA = Actor("ada", frozenset({WRITE, CURATE, ADMIN}))
FIXTURES = bundle.folder("fixtures")
DATASETS = """
SELECT ?dataset ?loader ?title ?records ?triples ?issued ?modified ?run ?hash WHERE { GRAPH $catalog {
  ?dataset a dcat:Dataset ; kg:loader ?loader ; dcterms:title ?title ; void:documents ?records ; void:triples ?triples ;
    dcterms:issued ?issued ; dcterms:modified ?modified ; prov:wasGeneratedBy ?run ; prov:wasDerivedFrom ?snapshot }
  ?snapshot kg:sha256 ?hash ; kg:retrievedAt ?read
}""".replace("$catalog", str(CATALOG_GRAPH))
PARTS = """
SELECT ?dataset ?family ?triples WHERE {
  ?dataset a dcat:Dataset ; void:subset ?part . ?part dcterms:type ?family ; void:triples ?triples
}"""


def rows(kg: KnowledgeGraph, query: str = DATASETS) -> list[dict[str, str]]:
    return [{name: term_text(term) for name, term in row.items()} for row in select(kg.store.query, query)]


def counts(kg: KnowledgeGraph) -> dict[tuple[str, str], int]:
    """The quads of each loader by family, as the catalog says."""
    found: Counter[tuple[str, str]] = Counter()
    loaders = {row["dataset"]: row["loader"] for row in rows(kg)}
    for row in rows(kg, PARTS):
        found[loaders[row["dataset"]], row["family"].partition("#")[2]] += int(row["triples"])
    return dict(found)


def recount(kg: KnowledgeGraph, domain: str, family: str) -> int:
    """The quads in all graphs of a family that belong to a loader, counted one by one."""
    start = next(start for start, kind in FAMILIES.items() if kind.value.endswith(f"#{family}"))
    writer = "" if start == SOURCED else "(?:[^/]+/)?"
    aligned = "|alignment/municipality/" if domain == "zoning" else ""
    own = re.compile(f"{start}(?:{writer}{domain}/{aligned})")
    return sum(len(kg.store.graph(graph)) for graph in kg.store.graphs() if own.match(graph.value))


def records(kg: KnowledgeGraph, domain: str) -> int:
    return sum(graph.value.startswith(f"{SOURCED}{domain}/") for graph in kg.store.graphs())


def test_each_source_of_each_loader_is_a_dataset(joined: KnowledgeGraph) -> None:
    found = rows(joined)
    by_loader = Counter(row["loader"] for row in found)
    assert by_loader.keys() == {"climate", "files", "hansard", "wikibase", "zoning"}
    assert {row["title"] for row in found} >= {"climate/rooftops.jsonl", "zoning/tern_harbour.json"}
    assert not any(row["title"].startswith("/") or "/tmp" in row["dataset"] for row in found)
    for domain in by_loader:
        per_dataset = {row["dataset"]: int(row["records"]) for row in found if row["loader"] == domain}
        assert sum(per_dataset.values()) == records(joined, domain)
        assert counts(joined)[domain, "AssertedGraph"] == recount(joined, domain, "AssertedGraph")
    assert counts(joined)["climate", "ExtractedGraph"] == recount(joined, "climate", "ExtractedGraph")


def test_the_sum_of_the_families_is_the_number_of_quads(joined: KnowledgeGraph) -> None:
    parts: Counter[str] = Counter()
    for row in rows(joined, PARTS):
        parts[row["dataset"]] += int(row["triples"])
    assert parts == {row["dataset"]: int(row["triples"]) for row in rows(joined)}


def test_counts_follow_loads_changes_and_deletions(tmp_path: Path) -> None:
    code = tmp_path / "code.json"
    source = FIXTURES / "joined" / "zoning" / "harrow_inlet.json"
    with open_graph(tmp_path / "data") as kg:
        load(kg, "wikibase", [str(FIXTURES / "wikibase")], base="climate")
        shutil.copy(source, code)
        load(kg, "zoning", [str(code)])
        [first] = [row for row in rows(kg) if row["loader"] == "zoning"]
        assert int(first["records"]) == records(kg, "zoning") > 5
        load(kg, "zoning", [str(code)])
        assert [row for row in rows(kg) if row["loader"] == "zoning"] == [first]
        code.write_text(source.read_text().replace("once in fifty years", "rarely"))
        load(kg, "zoning", [str(code)])
        changed = [row for row in rows(kg) if row["loader"] == "zoning"]
        assert {row["issued"] for row in changed} == {first["issued"]}
        assert all(int(row["records"]) == int(first["records"]) for row in changed)
        for family in ("AssertedGraph", "ExtractedGraph"):
            assert counts(kg)["zoning", family] == recount(kg, "zoning", family)
        small = {"municipality": "Harrow Inlet", "state": "UT", "sections": [{"section_id": "1", "title": "A"}]}
        code.write_text(json.dumps(small))
        load(kg, "zoning", [str(code)], prune=True)
        assert {int(row["records"]) for row in rows(kg) if row["loader"] == "zoning"} == {1}
        assert counts(kg)["zoning", "AssertedGraph"] == recount(kg, "zoning", "AssertedGraph")
        kg.store.commit({graph: () for graph in kg.store.graphs() if f"{SOURCED}zoning/" in graph.value})
        assert not [row for row in rows(kg) if row["loader"] == "zoning" and int(row["records"])]


@pytest.mark.long
def test_a_pruned_source_leaves_the_catalog(tmp_path: Path) -> None:
    folder = tmp_path / "laws"
    folder.mkdir()
    lines = (FIXTURES / "joined" / "climate" / "rooftops.jsonl").read_text().splitlines(keepends=True)
    (folder / "first.jsonl").write_text("".join(lines[:5]))
    (folder / "second.jsonl").write_text("".join(lines[5:]))
    with open_graph(tmp_path / "data") as kg:
        load(kg, "climate", [str(folder)])
        assert {row["title"]: int(row["records"]) for row in rows(kg)} == {
            "laws/first.jsonl": 1,
            "laws/second.jsonl": 1,
        }
        (folder / "second.jsonl").unlink()
        load(kg, "climate", [str(folder)], prune=True)
        [left] = rows(kg)
        assert left["title"] == "laws/first.jsonl"
        assert {quad.subject.value.partition("#")[0] for quad in kg.store.graph(CATALOG_GRAPH)} == {left["dataset"]}  # type: ignore[union-attr]


def test_two_writers_keep_the_rows_of_each_other(tmp_path: Path) -> None:
    with open_graph(tmp_path / "data") as kg:

        def write(domain: str) -> None:
            file = SourceFile(sha256(domain), f"/data/{domain}.csv")
            run = Run(Agent(f"loaders.{domain}", "1"), sources=[file])
            for number in range(20):
                graph = mint("graph", "src", domain, str(number))
                described = run.describe(kg.store, {graph: RecordOrigin("x", [RowsOf(file)])})
                kg.store.commit({graph: [Quad(graph, RDF.value, Literal(number), graph)]}, described)

        writers = [threading.Thread(target=write, args=(domain,)) for domain in ("climate", "zoning")]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert {row["title"]: (row["records"], row["triples"]) for row in rows(kg)} == {
            "data/climate.csv": ("20", "20"),
            "data/zoning.csv": ("20", "20"),
        }


@pytest.mark.long
def test_a_copy_of_the_data_has_the_catalog_and_an_old_store_gets_one(tmp_path: Path) -> None:
    with open_graph(tmp_path / "data") as kg:
        load(kg, "climate", [str(FIXTURES / "joined" / "climate")], index=False)
        before = {(row["dataset"], row["records"], row["triples"], row["hash"]) for row in rows(kg)}
        with kg.store.snapshot() as snapshot:
            kg_format = (tmp_path / "data" / "format.json").read_bytes()
            shutil.copytree(snapshot.path, tmp_path / "restored" / "store")
        (tmp_path / "restored" / "format.json").write_bytes(kg_format)
    with open_graph(tmp_path / "restored") as kg:
        assert {(row["dataset"], row["records"], row["triples"], row["hash"]) for row in rows(kg)} == before
        kg.store.refill(CATALOG_GRAPH, lambda store: iter(()))  # type: ignore[attr-defined]
        kg.store.update("DELETE WHERE { GRAPH <https://w3id.org/quadcite/graph/tbox> { ?s owl:versionInfo ?o } }")
    with open_graph(tmp_path / "restored") as kg:
        assert {(row["dataset"], row["records"], row["triples"], row["hash"]) for row in rows(kg)} == before
        with kg.store.snapshot() as snapshot:
            found = load_dataset_shapes().validate(DataGraph.from_store(pyoxigraph.Store.read_only(str(snapshot.path))))
        assert not [each for each in found if each.focus == CATALOG_GRAPH]


@pytest.mark.long
def test_a_catalog_whose_building_crashes_is_built_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_graph(tmp_path / "data") as kg:
        load(kg, "climate", [str(FIXTURES / "joined" / "climate")], index=False)
        before = rows(kg)
        kg.store.refill(CATALOG_GRAPH, lambda store: iter(()))  # type: ignore[attr-defined]
        kg.store.update("DELETE WHERE { GRAPH <https://w3id.org/quadcite/graph/tbox> { ?s owl:versionInfo ?o } }")

    def build_part(store: Any) -> Iterator[Any]:
        yield from itertools.islice(build_catalog(store), 5)
        raise KeyboardInterrupt

    with monkeypatch.context() as crashing:
        crashing.setitem(INFERENCES, CATALOG_GRAPH, replace(INFERENCES[CATALOG_GRAPH], build=build_part))
        with pytest.raises(KeyboardInterrupt), open_graph(tmp_path / "data"):
            pass
    with open_graph(tmp_path / "data") as kg:
        assert [row["triples"] for row in rows(kg)] == [row["triples"] for row in before] != []


def test_nobody_else_writes_the_catalog(joined: KnowledgeGraph) -> None:
    assert CATALOG_GRAPH in UNCOUNTED_GRAPHS
    update = f"INSERT DATA {{ GRAPH {CATALOG_GRAPH} {{ <urn:x> a dcat:Dataset }} }}"
    with pytest.raises(ForbiddenError):
        UserGraphs(joined).update(update, (), (), ADA)


def test_resources_list_the_datasets_of_the_catalog(joined: KnowledgeGraph) -> None:
    listed = {each.uri: each for each in list_resources(joined, limit=200).resources if each.kind == "dataset"}
    wanted = {row["dataset"]: row for row in rows(joined)}
    assert listed.keys() == wanted.keys()
    assert all(listed[iri].count == int(row["records"]) for iri, row in wanted.items())


@pytest.mark.parametrize(
    ("location", "source"),
    [
        ("/data/laws.csv", "/data/laws.csv"),
        (f"/q/fix.csv{CORRECTION}/data/laws.csv rows 3-4", "/data/laws.csv"),
        ("kg_ingest_section us-ut-quarry-bend 17.1", "kg_ingest_section us-ut-quarry-bend"),
    ],
)
def test_a_correction_belongs_to_the_source_that_it_corrects(location: str, source: str) -> None:
    assert find_source(location) == source


def test_a_dataset_has_the_version_that_its_source_states(joined: KnowledgeGraph) -> None:
    query = "SELECT ?version WHERE { ?dataset a dcat:Dataset ; kg:loader 'wikibase' ; dcat:version ?version }"
    stated = "SELECT DISTINCT ?version WHERE { ?snapshot kg:datasetRevision ?version }"
    assert {row["version"] for row in rows(joined, query)} <= {row["version"] for row in rows(joined, stated)}


def test_the_catalog_names_existing_snapshots_only(joined: KnowledgeGraph) -> None:
    query = f"""
    SELECT ?snapshot WHERE {{
      GRAPH {CATALOG_GRAPH} {{ ?dataset prov:wasDerivedFrom ?snapshot }} MINUS {{ ?snapshot kg:sha256 ?hash }}
    }}"""
    assert rows(joined, query) == []
    assert all(isinstance(graph, NamedNode) for graph in joined.store.graphs())


def test_why_leads_from_a_dataset_and_its_parts_to_the_run_and_the_files(joined: KnowledgeGraph) -> None:
    query = joined.store.query
    files = {each["hash"] for each in rows(joined)}
    datasets = {each["dataset"]: each["run"] for each in rows(joined)}
    assert len(datasets) > 2
    for dataset, run in datasets.items():
        [found] = explain_iri(query, NamedNode(dataset))
        assert (found.graph, found.kind, found.run) == (CATALOG_GRAPH.value, "catalog", run)
        assert found.agent
        assert {source.sha256 for source in found.sources} <= files
        assert found.sources
    parts = "SELECT ?dataset ?part ?quads { ?dataset a dcat:Dataset ; void:subset ?part . ?part void:triples ?quads }"
    for row in select(query, parts):
        [found] = explain_triple(query, row["part"], VOID.triples, row["quads"])  # type: ignore[arg-type]
        assert (found.kind, found.run) == ("catalog", datasets[term_text(row["dataset"])])
    [found] = explain_iri(query, CATALOG_GRAPH)
    assert (found.kind, found.run) == ("catalog", None)
