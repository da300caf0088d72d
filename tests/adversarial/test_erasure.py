"""Erased text is gone from all bytes of a data directory after `kg compact`, and everything else is as it was."""

from __future__ import annotations

import io
import shutil
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from pyoxigraph import Quad

from kg.cli import backups
from kg.errors import StoreDamagedError, StoreLockedError
from kg.integrity.backups import restore_backup, write_backup
from kg.integrity.compaction import compact
from kg.integrity.doctor import inspect_closed
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.results import SearchFilters
from kg.search.index_client import EdgeIndex
from kg.search.index_sync import repair_index
from kg.settings import Settings
from kg.store.protocol import named_node, select
from kg.tools.search.passages import search
from loaders import pipeline
from loaders.sources import build_loader, load
from tests.search import word_embedder

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

MARKERS = {
    "deleted": "Quollbridge7Vantern",
    "replaced": "Zephyrmoor4Ockley",
    "redacted": "Xylobert9Fennwick",
    "quarantined": "Juxtapond3Wraxall",
    "duplicate": "Kestrelvane8Dorrit",
}
"""Words that are in one text each. They are searched for as UTF-8 and UTF-16, also in compressed data."""
KEPT = "Harrowgate5Pembling"


def open_graph(folder: Path) -> KnowledgeGraph:
    settings = Settings(
        data_dir=folder, model="words/16", models_dir=folder.parent / "journal", query_workers=1, _env_file=None
    )
    return KnowledgeGraph.open(folder, settings)


def find_markers(folder: Path) -> dict[str, set[str]]:
    """Find the files that contain each word in any encoding, themselves or where they are compressed."""
    words = {**MARKERS, "kept": KEPT}
    wanted = {
        kind: [word.encode(encoding) for encoding in ("utf-8", "utf-16-le", "utf-16-be")]
        for kind, word in words.items()
    }
    found: dict[str, set[str]] = {kind: set() for kind in words}
    for path in (path for path in folder.rglob("*") if path.is_file()):
        for content in unpack(path.read_bytes().strip(b"\0")):
            for kind, encoded in wanted.items():
                if any(each in content for each in encoded):
                    found[kind].add(path.relative_to(folder).as_posix())
    return found


def unpack(content: bytes) -> Iterator[bytes]:
    """Yield the bytes, and what they decompress to: archives, and streams of zlib and gzip anywhere in them."""
    yield content
    if zipfile.is_zipfile(io.BytesIO(content)):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            yield from map(archive.read, archive.namelist())
    for start in (b"\x78\x9c", b"\x78\x01", b"\x78\xda", b"\x1f\x8b\x08"):
        place = content.find(start)
        while place >= 0:
            with suppress(zlib.error):
                yield zlib.decompressobj(47).decompress(memoryview(content)[place : place + (1 << 20)], 1 << 24)
            place = content.find(start, place + 1)


def read_quads(folder: Path) -> set[Quad]:
    with open_graph(folder) as kg:
        rows = select(kg.store.query, "SELECT DISTINCT ?g WHERE { GRAPH ?g { ?s ?p ?o } }")
        return {quad for row in rows for quad in kg.store.graph(named_node(row["g"]))}


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with a history: texts that were deleted, replaced, redacted, rejected and then corrected."""
    folder: Path = tmp_path_factory.mktemp("erasure")
    notes, data = folder / "notes", folder / "data"
    notes.mkdir()
    filler = " ".join(f"The pump {number} is at berth {number * 7}." for number in range(300))
    (notes / "kept.md").write_text(f"# Kept {KEPT}\n\nThe tide gate {KEPT} stays. {filler}")
    (notes / "deleted.md").write_text(
        f"---\ntitle: {MARKERS['deleted']}\ntags: [{MARKERS['deleted']}]\n---\n# About {MARKERS['deleted']}\n\n{filler}"
    )
    (notes / "replaced.txt").write_bytes(f"It was {MARKERS['replaced']} then. {filler} And now.".encode("utf-16"))
    (notes / "redacted.md").write_text(f"# Lock\n\npassword: {MARKERS['redacted']}\n")
    (notes / "rejected.md").write_bytes(f"{MARKERS['quarantined']}\x00\x01\x02\x03".encode() * 30)
    (notes / "sub").mkdir()
    (notes / "sub" / "copy.md").write_text(f"Alone: {MARKERS['duplicate']} {filler}")
    settings = Settings(data_dir=data, unredacted_collections=("notes",), _env_file=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EdgeIndex, "command", (sys.executable, word_embedder.__file__))
        with open_graph(data) as kg:
            pipeline.load(kg, build_loader("files", settings), [str(notes)])
            kg.search.wait(lambda status: None)
        with open_graph(data) as kg:  # again with secrets redacted, after the log was written to tables
            (notes / "deleted.md").unlink()
            (notes / "rejected.md").write_text("Now it is text.")
            (notes / "replaced.txt").write_text(f"Something else. {filler}")
            (notes / "sub" / "copy.md").write_text((notes / "kept.md").read_text())
            load(kg, "files", [str(notes)], prune=True)
            kg.search.wait(lambda status: None)
        for name in ("schema.json", "summaries", "half.partial"):
            (data / name).write_text(f'{{"example": "{MARKERS["deleted"]}"}}')
    return folder


@pytest.fixture
def data(used: Path, tmp_path: Path) -> Path:
    shutil.copytree(used / "data", tmp_path / "data")
    return tmp_path / "data"


def test_markers_are_in_the_files_before_and_nowhere_after_compaction(data: Path) -> None:
    before = find_markers(data)
    for kind in ("deleted", "replaced", "redacted", "duplicate"):
        assert any(name.startswith("store/") for name in before[kind]), kind
        assert any(name.startswith("index/") for name in before[kind]), kind
    quads, problems = read_quads(data), inspect_closed(data).problems
    done = compact(data)
    after = find_markers(data)
    assert {kind for kind, names in after.items() if names} == {"kept"}
    assert {name.partition("/")[0] for name in after["kept"]} == {"store", "index"}
    assert (done["index"], done["remains"]) == ("rewritten", [])
    assert inspect_closed(data).problems == problems
    assert read_quads(data) == quads


def test_index_keeps_its_texts_and_vectors(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EdgeIndex, "command", (sys.executable, word_embedder.__file__))
    found = []
    for _ in range(2):
        with open_graph(data) as kg:
            status = kg.search.status()
            filters = SearchFilters(domain=["files"])
            results = search(kg, query="tide gate", filters=filters).results
            found.append((status.units, status.pending_vectors, kg.search.state(), [each.id for each in results]))
        if len(found) == 1:
            compact(data)
    assert found[0] == found[1]
    assert found[0][1] == 0
    assert found[0][3]


def test_compaction_needs_the_directory_for_itself(data: Path) -> None:
    with open_graph(data), pytest.raises(StoreLockedError, match="start it again"):
        compact(data)


def test_damaged_store_is_left_as_it_is(data: Path) -> None:
    for table in (data / "store").glob("*.sst"):
        content = bytearray(table.read_bytes())
        for place in range(0, len(content) // 2, 1_000):
            content[place] ^= 0xFF
        table.write_bytes(content)
    names = sorted(path.name for path in data.rglob("*"))
    with pytest.raises(StoreDamagedError, match="kg doctor"):
        compact(data)
    assert set(names) - {path.name for path in data.rglob("*")} <= {"lock"}


def test_damaged_index_is_built_again_from_the_store(data: Path) -> None:
    for path in (data / "index").glob("shard-*/**/*"):
        if path.is_file():
            path.write_bytes(b"damaged")
    compact(data)
    with open_graph(data) as kg:
        assert repair_index(kg.store, kg.search).replaced


def test_old_stores_that_a_repair_kept_are_named(data: Path) -> None:
    (data / "store-damaged-20260101T000000000000").mkdir()
    assert compact(data)["remains"] == ["store-damaged-20260101T000000000000"]


@pytest.mark.parametrize("moment", ["copied", "renamed"])
def test_killed_compaction_leaves_a_store_and_the_next_one_ends_it(data: Path, moment: str) -> None:
    """Leave the folders as a kill does, after the copy, and before the new store has its name."""
    store = data / "store"
    shutil.copytree(store, data / "store.rebuilt")
    if moment != "copied":
        store.rename(data / ".replaced")
    compact(data)
    assert not inspect_closed(data).is_damaged
    assert not (data / "store.rebuilt").exists()
    assert not (data / ".replaced").exists()


def test_command_names_the_backups_that_still_have_the_text(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(data / "index")
    with open_graph(data) as kg:
        write_backup(kg, data.parent / "backup")
    backups.compact(data_dir=data)
    assert str(data.parent / "backup") in capsys.readouterr().out
    restore_backup(data.parent / "backup", data.parent / "restored")
    assert find_markers(data.parent / "restored" / "store")["deleted"]
    assert not find_markers(data / "store")["deleted"]
