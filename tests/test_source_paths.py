"""Paths of the machine that loads are for the next load only: no quad contains one, and none is in a backup's graph."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg import bundle
from kg.integrity.backups import restore_backup
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.explanation import explain_iri
from kg.provenance.load_records import Agent, RecordOrigin, RowsOf, Run, SourceFile, load_sources, mint_source
from kg.provenance.source_paths import SourcePaths
from kg.store.protocol import GraphChange, Patch
from kg.tools.commands import backup
from kg.vocabulary import DCTERMS, KG, OWL, PROV, PROV_GRAPH, TBOX_GRAPH, mint
from loaders.sources import load
from tests.folders import open_graph

pytestmark = pytest.mark.long

HEAD = "speech_id,date,chamber,speaker,party,state,text,title,hansard_reference\n"
SPEECHES = [mint("graph", "src", "hansard", "speech", name) for name in "ab"]


def write(path: Path, name: str, text: str = "Quokkas graze.") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{HEAD}{name},2024-10-16,Senate,Fern Ashby,ALP,NSW,{text},On quokkas,Made up\n", encoding="utf-8")
    return path


def find_texts(kg: KnowledgeGraph, words: str) -> list[Quad]:
    return [quad for graph in kg.store.graphs() for quad in kg.store.graph(graph) if words in str(quad)]


def test_no_quad_contains_a_path_of_this_machine(tmp_path: Path) -> None:
    sources = tmp_path / "machine-folder" / "sources"
    shutil.copytree(bundle.folder("fixtures"), sources)
    with open_graph(tmp_path / "data") as kg:
        for domain in ("climate", "wikibase", "hansard", "zoning"):
            load(kg, domain, [str(sources / domain)])
        mapping = sources / "mapping.toml"
        shutil.copy(next(Path("loaders/zoning/mappings").glob("*.toml")), mapping)
        load(kg, "zoning", [str(sources / "joined" / "zoning")], mapping=str(mapping))
        assert find_texts(kg, "machine-folder") == []
        assert find_texts(kg, "machine%2Dfolder") == []
        locations = {quad.object.value for quad in kg.store.graph(PROV_GRAPH) if quad.predicate == KG.location}
        assert any(name.startswith("climate/") for name in locations)


def test_prune_finds_records_of_deleted_files_after_a_restart(tmp_path: Path) -> None:
    folder = tmp_path / "speeches"
    write(folder / "a.csv", "a"), write(folder / "b.csv", "b")
    with open_graph(tmp_path / "data") as kg:
        load(kg, "hansard", [str(folder)])
    (folder / "b.csv").unlink()
    other = write(tmp_path / "other" / "c.csv", "c")
    with open_graph(tmp_path / "data") as kg:
        assert load(kg, "hansard", [str(other)], prune=True).removed == 0
        assert load(kg, "hansard", [str(folder)], prune=True).removed == 1
        assert SPEECHES[0] in kg.store.graphs()
        assert SPEECHES[1] not in kg.store.graphs()


def test_same_file_is_recognized_without_its_path_and_another_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "speeches" / "a.csv", "a")
    twin = write(tmp_path / "twin" / "speeches" / "a.csv", "a", "Wallabies graze.")
    with open_graph(tmp_path / "data") as kg:
        load(kg, "hansard", [str(path)])
    (tmp_path / "data" / "source-paths.txt").unlink()
    with open_graph(tmp_path / "data") as kg:
        refused = load(kg, "hansard", [str(twin)])
        assert (refused.loaded, refused.rejected) == (0, 1)
        assert str(tmp_path / "speeches") not in refused.rejections[0].reason
        write(path, "a", "Bilbies dig.")
        assert load(kg, "hansard", [str(path)]).loaded == 1
        assert load(kg, "hansard", [str(tmp_path / "speeches")], prune=True).removed == 0


def test_paths_that_an_earlier_version_stored_are_replaced_when_it_is_opened(tmp_path: Path) -> None:
    path = write(tmp_path / "speeches" / "a.csv", "a")
    with open_graph(tmp_path / "data") as kg:
        load(kg, "hansard", [str(path)])
        sources = load_sources(kg.store, SPEECHES[:1])
        [snapshot] = [q.subject for q in kg.store.graph(PROV_GRAPH) if q.object == Literal("speeches/a.csv")]
        own, old = mint_source(str(path)), mint("source", str(path))
        run = next(q.subject for q in kg.store.graph(PROV_GRAPH) if q.predicate == PROV.used and q.object == snapshot)
        described = Patch(
            frozenset(
                {
                    Quad(snapshot, KG.location, Literal("speeches/a.csv"), PROV_GRAPH),
                    Quad(snapshot, PROV.specializationOf, own, PROV_GRAPH),
                }
            ),
            frozenset(
                {
                    Quad(snapshot, KG.location, Literal(str(path)), PROV_GRAPH),
                    Quad(snapshot, PROV.specializationOf, old, PROV_GRAPH),
                    Quad(
                        run,
                        KG.configuration,
                        Literal(json.dumps({"corrects": f"{path} (sha256 12) rows 1; {path} (sha256 34) rows 2"})),
                        PROV_GRAPH,
                    ),
                }
            ),
        )
        version = next(
            q for q in kg.store.graph(TBOX_GRAPH) if q.predicate == OWL.versionInfo and q.subject == TBOX_GRAPH
        )
        kg.store.commit({TBOX_GRAPH: [q for q in kg.store.graph(TBOX_GRAPH) if q != version]}, lambda _: described)
        assert find_texts(kg, str(tmp_path))
        before = kg.store.statistics()
    (tmp_path / "data" / "source-paths.txt").unlink()
    with open_graph(tmp_path / "data") as kg:
        assert find_texts(kg, str(tmp_path)) == []
        assert find_texts(kg, old.value) == []
        assert (kg.store.statistics().quads, kg.store.statistics().graphs) == (before.quads, before.graphs)
        assert load_sources(kg.store, SPEECHES[:1]) == sources
        assert SourcePaths(tmp_path / "data").get(own.value) == str(path)
        [why] = explain_iri(kg.store.query, SPEECHES[0])
        assert why.sources[0].locations == ("speeches/a.csv",)
        settings = {q.object.value for q in kg.store.graph(PROV_GRAPH) if q.predicate == KG.configuration}
        assert (
            json.dumps({"corrects": "speeches/a.csv (sha256 12) rows 1; speeches/a.csv (sha256 34) rows 2"}) in settings
        )
        path.unlink()
        write(tmp_path / "speeches" / "b.csv", "b")
        assert load(kg, "hansard", [str(tmp_path / "speeches")], prune=True).removed == 1


@pytest.mark.exhaustive
def test_backup_prunes_like_the_original(tmp_path: Path) -> None:
    folder = tmp_path / "speeches"
    write(folder / "a.csv", "a"), write(folder / "b.csv", "b")
    with open_graph(tmp_path / "data") as kg:
        load(kg, "hansard", [str(folder)])
        backup(kg, str(tmp_path / "backups"))
    restore_backup(tmp_path / "backups", tmp_path / "copy")
    (folder / "b.csv").unlink()
    with open_graph(tmp_path / "copy") as kg:
        assert load(kg, "hansard", [str(folder)], prune=True).removed == 1


@pytest.mark.parametrize("line", ["not JSON", "12", '"cut'])
def test_damaged_line_of_the_paths_is_skipped(tmp_path: Path, line: str) -> None:
    (tmp_path / "source-paths.txt").write_text(f'\n"/a/b/c.csv"\n{line}', encoding="utf-8")
    paths = SourcePaths(tmp_path)
    paths.add(["/a/d.csv", "hub:x/y/z.csv", "PUT https://x/y"])
    again = SourcePaths(tmp_path)
    assert [again.get(mint_source(path).value) for path in ("/a/b/c.csv", "/a/d.csv", "hub:x/y/z.csv")] == [
        "/a/b/c.csv",
        "/a/d.csv",
        None,
    ]


def test_name_of_a_snapshot_is_stored_and_identifies_two_files_of_equal_name(tmp_path: Path) -> None:
    with open_graph(tmp_path / "data") as kg:
        files = [SourceFile(digit * 64, f"/{digit}/folder/name.csv") for digit in "12"]
        graphs = [mint("graph", "src", "test", file.sha256[0]) for file in files]
        run = Run(Agent("test", "1"), {}, files)
        records = {graph: RecordOrigin("0" * 64, [RowsOf(file)]) for graph, file in zip(graphs, files, strict=True)}
        quads = {graph: [Quad(NamedNode(graph.value), DCTERMS.title, Literal(graph.value), graph)] for graph in graphs}

        def describe(changes: tuple[GraphChange, ...]) -> Patch:
            return run.describe(kg.store, records)(changes)

        kg.store.commit(quads, describe)  # type: ignore[arg-type]
        found = load_sources(kg.store, graphs)
        assert [list(found[graph].values()) for graph in graphs] == [["folder/name.csv"]] * 2
        assert found[graphs[0]].keys().isdisjoint(found[graphs[1]])
