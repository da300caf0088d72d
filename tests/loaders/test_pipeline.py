from __future__ import annotations

import gc
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import SourceError, StoreError
from kg.interruption import PREFIX
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance import load_records
from kg.provenance.explanation import explain_iri
from kg.search.index_sync import repair_index
from kg.vocabulary import DCTERMS, ELI, KG, PROV, SCHEMA, SKOS, mint
from loaders import batches, pipeline
from loaders.climate.documents import read
from loaders.model import Notice, Rejection, SourceDocument
from loaders.pipeline import Loading
from loaders.quarantine import Quarantine
from loaders.readers.locations import Located
from loaders.sources import LOADERS, build_loader, load
from tests.examples import spread
from tests.loaders.conftest import MemoryIndex, content, values

CLIMATE = Path(__file__).parent.parent.parent / "fixtures" / "climate"


def index_of(kg: KnowledgeGraph) -> MemoryIndex:
    assert isinstance(kg.search, MemoryIndex)
    return kg.search


def rows(slug: str, texts: Sequence[str], **fields: object) -> list[dict[str, object]]:
    base = {
        "document_id": f"FICT.{slug}", "document_slug": slug, "document_name": f"Fictional {slug}",
        "geography_iso": "BRA", "family_slug": f"family-{slug}", "family_name": f"Family {slug}",
        "category": "executive", "language": "en", "page_number": 0, "type": "Text",
    }  # fmt: skip
    return [{**base, **fields, "block_index": i, "text": text} for i, text in enumerate(texts)]


def write(path: Path, *records: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for record in records for row in record))
    return path


def test_the_fixtures_load_whole_and_a_second_time_nothing_changes(kg: KnowledgeGraph) -> None:
    report = load(kg, "climate", [str(CLIMATE)])
    assert (report.loaded, report.rejected, report.rejections) == (13, 0, [])
    assert {layout.rpartition(" ")[2] for layout in report.layouts} == {"'sample'", "'published'", "'flat'", "'laws'"}
    before, generation = content(kg.store), kg.store.statistics().generation
    again = load(kg, "climate", [str(CLIMATE)])
    assert (again.loaded, again.skipped, again.quads_added, again.quads_removed, again.run) == (0, 13, 0, 0, None)
    assert (content(kg.store), kg.store.statistics().generation) == (before, generation)


def test_the_report_has_exactly_the_keys_that_the_command_prints(kg: KnowledgeGraph) -> None:
    report = load(kg, "climate", [str(CLIMATE / "laws.csv")]).to_dict()
    assert list(report) == [
        "source", "run", "loaded", "skipped", "rejected", "unread", "removed", "text_units", "mentions",
        "quads_added", "quads_removed", "older", "redacted", "ceded", "returned",
        "pending_vectors", "seconds", "rejections",
    ]  # fmt: skip
    assert json.loads(json.dumps(report))["source"] == "climate"


def test_a_changed_record_is_written_as_its_difference(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", rows("a", ["one", "two"]), rows("b", ["three"]))
    load(kg, "climate", [str(path)])
    write(path, rows("a", ["one", "changed"]), rows("b", ["three"]))
    report = load(kg, "climate", [str(path)])
    assert (report.loaded, report.skipped, report.text_units) == (1, 1, 2)
    assert (report.quads_added, report.quads_removed) == (2, 2)  # its text and its hash
    assert {unit.text for unit in index_of(kg).units()} == {"one", "changed", "three"}


def test_a_new_version_of_the_loader_reads_every_record_anew(
    kg: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "t.jsonl", rows("a", ["one"]))
    load(kg, "climate", [str(path)])
    climate = build_loader("climate", kg.settings)
    monkeypatch.setitem(LOADERS, "climate", lambda *_: replace(climate, version="next"))
    asked: list[object] = []
    commit = kg.store.commit
    monkeypatch.setattr(type(kg.store), "commit", lambda _, *given: asked.append(given) or commit(*given))
    load(kg, "climate", [str(path)])
    assert len(asked) == 1


def test_garbage_collector_runs_rarely_during_a_load_and_as_before_after_it(kg: KnowledgeGraph, tmp_path: Path) -> None:
    before, during = gc.get_threshold(), []

    def fail(*_: object) -> None:
        during.append(gc.get_threshold()[0])
        raise InterruptedError

    with pytest.raises(InterruptedError):
        load(kg, "climate", [str(write(tmp_path / "a.jsonl", rows("s", ["one"])))], on_progress=fail)
    assert during == [batches.YOUNG_OBJECTS]
    assert gc.get_threshold() == before


def test_load_removes_temporary_folders_of_killed_processes(
    kg: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left = tmp_path / f"{PREFIX}left"
    left.mkdir()
    os.utime(left, (1, 1))
    with pytest.raises(SourceError):
        load(kg, "climate", [str(write(tmp_path / "empty.jsonl"))])
    assert not left.exists()


def test_a_duplicate_is_rejected_with_the_places_of_both_records(kg: KnowledgeGraph, tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{name}.jsonl", rows("a", [name])) for name in ("first", "second")]
    apart = replace(
        build_loader("climate", kg.settings), read=lambda files: (item for file in files for item in read([file]))
    )
    report = pipeline.load(kg, apart, [str(path) for path in paths])
    assert (report.loaded, report.rejected) == (1, 1)
    assert report.rejections[0].reason == (
        f"Identifier {mint('document', 'a').value} at row 1 of {paths[1]} belongs to another record, "
        f"at row 1 of {paths[0]}. The record that was read first counts; records are never merged."
    )


@pytest.mark.parametrize("exclusive", [False, True])
def test_the_quarantine_names_file_and_row_of_both_duplicates(
    kg: KnowledgeGraph, tmp_path: Path, exclusive: bool
) -> None:
    first, second = (write(tmp_path / f"{name}.jsonl", rows("z", ["x"]), rows("a", [name])) for name in ("one", "two"))
    apart = replace(
        build_loader("climate", kg.settings),
        read=lambda files: (item for file in files for item in read([file])),
        exclusive=exclusive,
    )
    pipeline.load(kg, apart, [str(first), str(second)])
    entries, _ = Quarantine(kg.settings.directory.quarantine).entries()
    [reason] = [each.reason for each in entries if each.reason.startswith(f"Identifier {mint('document', 'a').value} ")]
    assert f"row 2 of {first}" in reason
    assert f"row 2 of {second}" in reason
    assert "function" not in reason


def test_a_duplicate_of_a_rejected_record_names_the_rows_of_that_record(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", rows("b", ["x"]), rows("a", ["y"]))
    found = read(pipeline.find_files([str(path)], kg.settings).files)
    document = next(item for item in found if isinstance(item, SourceDocument) and item.key == ("a",))
    refused = Rejection("a", "It is refused.", document.origins, document.key)
    loader = replace(build_loader("climate", kg.settings), read=lambda _: (item for item in (refused, document)))
    report = pipeline.load(kg, loader, [str(path)])
    assert f"at row 2 of {path}" in report.rejections[1].reason.partition("another record")[2]


def test_provenance_leads_from_a_passage_to_file_row_and_hash(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", rows("a", ["x"]), rows("b", ["one", "two", "three"]))
    report = load(kg, "climate", [str(path)])
    [explanation] = explain_iri(kg.store.query, mint("passage", "b", "2"))
    [source] = explanation.sources
    assert (source.locations, source.row, explanation.run) == ((f"{path.parent.name}/{path.name}",), 4, report.run)
    assert source.sha256 == pipeline.find_files([str(path)], kg.settings).files[0].snapshot.sha256


def test_a_record_that_breaks_its_shapes_is_quarantined_with_the_report_and_comes_back(
    kg: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = NamedNode("https://example.org/not-a-code")
    quads = pipeline.to_quads

    def spoiled(document: object) -> list[Quad]:
        made = quads(document)  # type: ignore[arg-type]
        graph = made[0].graph_name
        if made[0].subject == mint("document", "bad"):
            made.append(Quad(mint("passage", "bad", "0"), KG.blockType, broken, graph))
        return made

    path = write(tmp_path / "t.jsonl", rows("bad", ["x", "y"]), rows("good", ["z"]))
    monkeypatch.setattr(pipeline, "to_quads", spoiled)
    report = load(kg, "climate", [str(path)])
    assert (report.loaded, report.rejected) == (1, 1)
    assert "block type" in report.rejections[0].reason
    assert not kg.store.graph(mint("graph", "src", "climate", "bad"))
    assert not kg.store.graph(mint("graph", "ref", "family", "family-bad"))
    [entry] = [json.loads(each.read_text()) for each in kg.settings.data_dir.glob("quarantine/*.json")]
    assert (entry["record"], entry["places"][0]["rows"], entry["places"][0]["file"]) == ("bad", "1-2", str(path))
    [report_file] = kg.settings.data_dir.glob("quarantine/*.ttl")
    assert "sh:ValidationReport" in report_file.read_text()

    monkeypatch.setattr(pipeline, "to_quads", quads)
    report = load(kg, "climate", [str(path)])
    assert (report.loaded, report.skipped, report.rejected) == (1, 1, 0)
    assert list(kg.settings.data_dir.glob("quarantine/*")) == []


def test_a_quarantine_that_cannot_be_written_is_a_store_error(kg: KnowledgeGraph, tmp_path: Path) -> None:
    kg.settings.directory.quarantine.write_text("in the way")
    path = write(tmp_path / "t.jsonl", rows("a", ["one"]) * 2)
    with pytest.raises(StoreError, match="quarantine"):
        load(kg, "climate", [str(path)])


def test_a_rejected_new_version_leaves_the_old_one_even_when_pruning(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", rows("a", ["one"]), rows("b", ["two"]))
    load(kg, "climate", [str(path)])
    write(path, rows("a", ["one"]) * 2, rows("b", ["two"]))
    report = load(kg, "climate", [str(path)], prune=True)
    assert (report.rejected, report.removed) == (1, 0)
    assert kg.store.graph(mint("graph", "src", "climate", "a"))


def test_prune_removes_what_is_gone_from_these_locations_and_nothing_else(kg: KnowledgeGraph, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    write(here / "a.jsonl", rows("a", ["x"]), rows("b", ["y"]))
    write(here / "c.jsonl", rows("c", ["x"]))
    write(there / "d.jsonl", rows("d", ["x"]))
    load(kg, "climate", [str(here), str(there)])
    write(here / "a.jsonl", rows("a", ["x"]))
    (here / "c.jsonl").unlink()
    (there / "d.jsonl").unlink()
    assert load(kg, "climate", [str(here)]).removed == 0
    report = load(kg, "climate", [str(here)], prune=True)
    assert (report.removed, report.skipped) == (2, 1)
    left = {graph.value.rpartition("/")[2] for graph in load_records.load_versions(kg.store, "climate")}
    assert left == {"a", "d"}
    assert {unit.parent for unit in index_of(kg).units()} == {"cpr://doc/a", "cpr://doc/d"}
    # What b and c shared with nobody went with them.
    assert not kg.store.graph(mint("graph", "ref", "family", "family-b"))
    assert kg.store.graph(mint("graph", "ref", "place", "BRA"))


def test_prune_spares_the_records_of_a_file_that_cannot_be_read_now(kg: KnowledgeGraph, tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", rows("a", ["x"]))
    write(tmp_path / "b.jsonl", rows("b", ["x"]))
    load(kg, "climate", [str(tmp_path)])
    (tmp_path / "b.jsonl").write_text("")
    report = load(kg, "climate", [str(tmp_path)], prune=True)
    assert (report.removed, report.rejected) == (0, 1)


def test_original_and_translation_load_in_any_order_to_the_same_graph(
    open_graph: Callable[..., KnowledgeGraph],
) -> None:
    original, translation = (str(CLIMATE / "flat" / f"solar-road-map{part}.parquet") for part in ("", "_translated_en"))
    dumps = []
    for number, loads in enumerate(
        [[[original, translation]], [[original], [translation]], [[translation], [original]]]
    ):
        kg = open_graph(f"data{number}")
        for locations in loads:
            assert load(kg, "climate", locations).rejected == 0
        dumps.append((content(kg.store), index_of(kg).units()))
    assert dumps[0] == dumps[1] == dumps[2]
    slug = "roteiro-solar-ficticio_br02"
    passage, translated = mint("passage", slug, "3"), mint("passage", slug, "3", lang="en")
    assert values(kg.store, translated, PROV.wasDerivedFrom) == {passage.value}
    assert values(kg.store, mint("document", slug, lang="en"), SCHEMA.translationOfWork) == {f"cpr://doc/{slug}"}
    assert values(kg.store, passage, SCHEMA.text) != values(kg.store, translated, SCHEMA.text)
    assert values(kg.store, mint("document", slug), SCHEMA.inLanguage) == {"pt"}
    assert values(kg.store, mint("document", slug, lang="en"), SCHEMA.inLanguage) == {"en"}


def test_laws_keep_apart_in_spite_of_one_slug_and_children_join_their_parents_family(kg: KnowledgeGraph) -> None:
    load(kg, "climate", [str(CLIMATE / "laws.csv")])
    act, other, child = (
        mint("document", slug)
        for slug in (
            "fictional-zero-carbon-act_law9001",
            "fictional-zero-carbon-act_law9003",
            "fictional-zero-carbon-adaptation-regulations_law9002",
        )
    )
    assert values(kg.store, act, KG.jurisdiction) == {mint("place", "NZL").value}
    assert values(kg.store, other, KG.jurisdiction) == {mint("place", "JPN").value}
    assert values(kg.store, child, ELI.is_member_of) == values(kg.store, act, ELI.is_member_of)
    assert values(kg.store, act, ELI.is_member_of) != values(kg.store, other, ELI.is_member_of)
    assert values(kg.store, act, DCTERMS.source) == {
        "https://climate-laws.org/geographies/new-zealand/laws/fictional-zero-carbon-act"
    }
    assert values(kg.store, mint("place", "JPN"), SKOS.prefLabel) == {"Japan"}


def test_a_shared_graph_that_says_less_does_not_take_away_what_is_known(kg: KnowledgeGraph, tmp_path: Path) -> None:
    named = write(tmp_path / "named.jsonl", rows("a", ["x"], geography="Brazil"))
    unnamed = write(tmp_path / "unnamed.jsonl", rows("b", ["x"]))
    load(kg, "climate", [str(named)])
    load(kg, "climate", [str(unnamed)])
    assert values(kg.store, mint("place", "BRA"), SKOS.prefLabel) == {"Brazil"}


def test_codes_that_the_ontology_does_not_know_bring_their_own_graph(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", rows("a", ["x"], category="Fictional charter", type="Marginalia"))
    load(kg, "climate", [str(path)])
    code = mint("code", "blockType", "Marginalia")
    assert values(kg.store, code, SKOS.notation) == {"Marginalia"}
    assert kg.store.graph(mint("graph", "ref", "code", "corpusType", "Fictional charter"))


def test_records_whose_identifiers_are_one_after_normalization_are_not_merged(
    kg: KnowledgeGraph, tmp_path: Path
) -> None:
    path = write(tmp_path / "t.jsonl", rows("caf\u00e9", ["composed"]), rows("cafe\u0301", ["decomposed"]))
    report = load(kg, "climate", [str(path)])
    assert (report.loaded, report.rejected) == (1, 1)
    assert mint("document", "caf\u00e9").value in report.rejections[0].reason


def test_a_load_and_a_rebuild_give_the_same_index(kg: KnowledgeGraph) -> None:
    load(kg, "climate", [str(CLIMATE)])
    loaded = index_of(kg).units()
    assert any("\n" in unit.prelude for unit in loaded)
    assert len(index_of(kg).replaced) == len(set(index_of(kg).replaced))  # each record is indexed once
    repaired = repair_index(kg.store, kg.search, full=True)
    assert repaired.replaced == 13
    assert index_of(kg).units() == loaded


def test_repair_of_the_index_works_in_both_directions_and_touches_nothing_else(kg: KnowledgeGraph) -> None:
    load(kg, "climate", [str(CLIMATE)])
    index = index_of(kg)
    before = dict(index.graphs)
    lost, stale, *_ = sorted(before)
    del index.graphs[lost]
    index.graphs[stale] = type(before[stale])("0" * 64, ())
    index.graphs["https://w3id.org/quadcite/graph/src/climate/never-committed"] = before[stale]
    index.replaced.clear()
    repaired = repair_index(kg.store, kg.search)
    assert (repaired.replaced, repaired.removed, sorted(index.replaced)) == (2, 1, [lost, stale])
    assert index.graphs == before


def test_a_document_without_text_is_no_reason_to_repair_the_index(kg: KnowledgeGraph, tmp_path: Path) -> None:
    load(kg, "climate", [str(write(tmp_path / "t.jsonl", rows("a", [""])))])
    del index_of(kg).graphs[mint("graph", "src", "climate", "a").value]
    assert repair_index(kg.store, kg.search).replaced == 0


def test_repair_of_the_index_stops_when_told(kg: KnowledgeGraph) -> None:
    load(kg, "climate", [str(CLIMATE)], index=False)
    stop = threading.Event()
    stop.set()
    assert repair_index(kg.store, kg.search, stop=stop).replaced == 0


def test_a_load_indexes_what_an_earlier_one_left_unindexed(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", rows("a", ["one"]))
    load(kg, "climate", [str(path)], index=False)
    assert index_of(kg).units() == []
    load(kg, "climate", [str(path)])
    assert [unit.text for unit in index_of(kg).units()] == ["one"]


def test_batches_are_bounded_and_a_huge_record_goes_alone(
    kg: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_QUADS", 100)
    path = write(tmp_path / "t.jsonl", *[rows(f"s{i}", ["x"]) for i in range(30)], rows("z", ["y"] * 40))
    load(kg, "climate", [str(path)])
    touched = kg.store.query(
        "SELECT ?c (COUNT(?g) AS ?n) { ?c kg:touched ?g FILTER(CONTAINS(STR(?g), '/src/')) } GROUP BY ?c"
    )
    counts = sorted(int(row["n"].value) for row in touched if isinstance(row["n"], Literal))  # type: ignore[union-attr]
    assert counts[0] == 1
    assert 1 < counts[-1] < 15
    assert sum(counts) == 31


def count_records_by_commit(kg: KnowledgeGraph) -> list[int]:
    found = kg.store.query(
        "SELECT ?at (COUNT(?g) AS ?n) { ?c kg:generation ?at ; kg:touched ?g FILTER(CONTAINS(STR(?g), '/src/')) } "
        "GROUP BY ?at ORDER BY ?at"
    )
    return [int(row["n"].value) for row in found]  # type: ignore[union-attr]


def test_batches_grow_with_a_load_up_to_a_limit(
    kg: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_QUADS", 100)
    monkeypatch.setattr(batches, "MOST_BATCH_QUADS", 300)
    path = write(tmp_path / "t.jsonl", *[rows(f"s{i:03}", ["x"]) for i in range(150)])
    load(kg, "climate", [str(path)])
    counts = count_records_by_commit(kg)
    assert sum(counts) == 150
    assert counts[0] == counts[1] < counts[-2] <= 3 * counts[0] + 3
    assert counts[:-1] == sorted(counts[:-1])


def test_a_batch_of_long_texts_does_not_grow(
    kg: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_QUADS", 100)
    monkeypatch.setattr(batches, "MOST_BATCH_CHARACTERS", 2_000)
    path = write(tmp_path / "t.jsonl", *[rows(f"s{i:03}", ["x" * 1_000]) for i in range(80)])
    load(kg, "climate", [str(path)])
    counts = count_records_by_commit(kg)
    assert sum(counts) == 80
    assert len(set(counts[:-1])) == 1


def test_each_part_of_a_batch_is_indexed(kg: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "UNITS_AT_ONCE", 3)
    path = write(tmp_path / "t.jsonl", *[rows(f"s{i}", [f"{i} a", f"{i} b"]) for i in range(10)])
    load(kg, "climate", [str(path)])
    assert sorted(unit.text for unit in index_of(kg).units()) == [f"{i} {end}" for i in range(10) for end in "ab"]
    repaired = repair_index(kg.store, kg.search)
    assert (repaired.replaced, repaired.removed) == (0, 0)


def test_progress_is_reported_while_a_batch_is_read(
    kg: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "PROGRESS_S", 0.0)
    path = write(tmp_path / "t.jsonl", *[rows(f"s{i}", ["x"]) for i in range(5)])
    done: list[int] = []
    load(kg, "climate", [str(path)], on_progress=lambda number, _, doing: done.append(number))
    assert done[:5] == [1, 2, 3, 4, 5]


KILLED = """
import sys
from pathlib import Path
from tests.loaders.conftest import MemoryIndex
from kg.knowledge_graph import KnowledgeGraph
from kg.settings import Settings
from kg.store.oxigraph import OxigraphStore
from loaders import batches, sources
batches.BATCH_QUADS = 200
data_dir, source = map(Path, sys.argv[1:])
kg = KnowledgeGraph(Settings(_env_file=None, data_dir=data_dir), OxigraphStore(data_dir), MemoryIndex(), None)
sources.load(kg, "climate", [str(source)], gate=False, on_progress=lambda *_: print("batch", flush=True))
"""


@pytest.mark.long
@pytest.mark.parametrize("batches", spread([4, 1], 1))
def test_a_load_killed_and_started_again_ends_as_an_undisturbed_one(
    batches: int, open_graph: Callable[..., KnowledgeGraph], tmp_path: Path
) -> None:
    chance = random.Random(batches)
    path = write(
        tmp_path / "t.jsonl",
        *[
            rows(f"s{i}", [f"text {i} {chance.random()}" for _ in range(20)], family_slug=f"f{i // 3}")
            for i in range(60)
        ],
    )
    root = Path(__file__).parent.parent.parent
    command = [sys.executable, "-c", KILLED, str(tmp_path / "killed"), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        for _ in range(batches):
            assert process.stdout.readline() == "batch\n"
        process.kill()
    assert process.returncode == -signal.SIGKILL
    disturbed, undisturbed = open_graph("killed"), open_graph("undisturbed")
    report = load(disturbed, "climate", [str(path)], gate=False)
    assert report.skipped >= batches
    assert report.loaded > 0
    load(undisturbed, "climate", [str(path)], gate=False)
    assert content(disturbed.store) == content(undisturbed.store)
    assert index_of(disturbed).units() == index_of(undisturbed).units()


def test_the_published_sample_loads_whole_and_verbatim(kg: KnowledgeGraph, shared: Path) -> None:
    path = shared / "data" / "climate" / "CPR_huggingface_data_sample.parquet"
    report = load(kg, "climate", [str(path)], gate=False)
    assert (report.loaded, report.text_units, report.rejected) == (7, 2401, 0)
    stored = {quad.subject: quad.object.value for quad in content(kg.store) if quad.predicate == SCHEMA.text}
    cells = {
        mint("passage", row["document_slug"], str(row["block_index"])): row["text"]
        for row in pq.read_table(path, columns=["document_slug", "block_index", "text"]).to_pylist()
    }
    assert stored == cells
    again = load(kg, "climate", [str(path)])
    assert (again.skipped, again.quads_added) == (7, 0)


def test_real_translations_stand_beside_their_originals(kg: KnowledgeGraph, shared: Path) -> None:
    flat = shared / "data" / "climate" / "flat"
    report = load(kg, "climate", [str(flat)], gate=False)
    assert (report.loaded, report.text_units, report.rejected) == (9, 1634, 0)


@pytest.mark.long
def test_the_workbook_of_laws_loads_without_losing_one(kg: KnowledgeGraph, shared: Path) -> None:
    report = load(kg, "climate", [str(shared / "data" / "climate" / "climate_laws_2021.xlsx")], gate=False)
    assert (report.loaded, report.rejected) == (2100, 0)


def test_the_gate_takes_what_the_loader_makes_of_real_documents(
    kg: KnowledgeGraph, shared: Path, tmp_path: Path
) -> None:
    flat = shared / "data" / "climate" / "flat"
    for name in ("TESTCCLW.executive.1564.rtl_280.parquet", "TESTCCLW.executive.10409.5111_translated_en.parquet"):
        shutil.copy(flat / name, tmp_path)
    assert load(kg, "climate", [str(tmp_path)]).rejections == []


def test_a_warning_is_logged_as_one_line_whatever_the_record_says(
    kg: KnowledgeGraph, caplog: pytest.LogCaptureFixture
) -> None:
    loading = Loading(kg, build_loader("climate", kg.settings), Located((), ()), None)
    loading.report.warnings.append("the value is 'a\nkg: all is well\x1b[2J'")
    loading.log_warnings()
    assert caplog.messages == ["the value is 'a\\nkg: all is well\\u001b[2J'"]


def test_files_of_one_layout_are_one_line(kg: KnowledgeGraph, tmp_path: Path) -> None:
    for number in range(21):
        write(tmp_path / f"{number:02}.jsonl", rows(f"slug-{number}", ["x"]))
    notices = (Notice(f"{number:02}.jsonl: a table") for number in range(21))
    other = Notice("z.csv: another table")
    loader = replace(build_loader("climate", kg.settings), read=lambda _: (each for each in (*notices, other)))
    report = pipeline.load(kg, loader, [str(tmp_path)])
    assert report.layouts == ["00.jsonl: a table", "20 more files: a table", "z.csv: another table"]
