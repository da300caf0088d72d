"""A folder whose changes are loaded: the graph is that of a fresh load of the whole folder."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import QueryTimeoutError, SourceError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.load_records import load_sources
from kg.store.oxigraph import OxigraphStore
from kg.vocabulary import DCTERMS, KG, mint
from loaders.files.graph import watched_folder
from loaders.files.graph.entities import get_entity_graph
from loaders.files.graph.watched_folder import Changes, Part, WatchedFolder, _Update
from loaders.files.loader import Reading
from loaders.readers.locations import File
from loaders.sources import load, load_changed
from tests.examples import spread
from tests.loaders.conftest import content
from tests.loaders.files.folder_changes import LONG, MOVED, change_at_random, graphs_of, sources_of


@pytest.fixture
def kg(open_graph: Callable[..., KnowledgeGraph]) -> KnowledgeGraph:
    return open_graph()


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


def watch(kg: KnowledgeGraph, folder: Path) -> WatchedFolder:
    return WatchedFolder(kg, folder, None, load_changed)


def update(folder: WatchedFolder) -> None:
    """Load all changes, as the search for changes finds them."""
    folder.load(folder.find_changes())


def extract(folder: WatchedFolder) -> None:
    """Find the entities of all files."""
    parts = folder.find_unextracted() or [[]]
    for number, part in enumerate(parts, start=1):
        folder.extract(part, link=number == len(parts))


def assert_as_fresh(kg: KnowledgeGraph, fresh: KnowledgeGraph, folder: Path) -> None:
    if any(path.is_file() for path in folder.rglob("*.*")):
        load(fresh, "files", [str(folder)])
    made = watch(kg, folder)
    extract(made)
    assert graphs_of(kg.store) == graphs_of(fresh.store)
    assert sources_of(kg.store) == sources_of(fresh.store)
    assert kg.search.state() == fresh.search.state()


def moves_of(kg: KnowledgeGraph) -> dict[str, str]:
    start = mint("file", "notes").value + "/"
    return {
        quad.subject.value.removeprefix(start): quad.object.value.removeprefix(start)  # type: ignore[union-attr]
        for quad in content(kg.store)
        if quad.predicate == DCTERMS.isReplacedBy and quad.graph_name.value.startswith(MOVED)  # type: ignore[union-attr]
    }


def paths_of(kg: KnowledgeGraph) -> set[str]:
    return {quad.object.value for quad in content(kg.store) if quad.predicate == KG.path}  # type: ignore[union-attr]


def outcomes(kg: KnowledgeGraph) -> dict[str, int]:
    return dict(kg.ingestion.get_status().counts or {})


def test_new_changed_and_deleted_files_are_loaded_and_removed(
    kg: KnowledgeGraph, open_graph: Callable[..., KnowledgeGraph], notes: Path
) -> None:
    (notes / "a.md").write_text("# A\n\nOld words.")
    (notes / "b.md").write_text("# B\n\nOther words.")
    (notes / "c.md").write_text("# C\n\nThird words.")
    folder = watch(kg, notes)
    update(folder)
    assert outcomes(kg) == {"loaded": 3}
    (notes / "a.md").write_text("# A\n\nNew words.")
    (notes / "b.md").unlink()
    (notes / "d.txt").write_text("Fourth words.")
    update(folder)
    assert paths_of(kg) == {"a.md", "c.md", "d.txt"}
    assert {name: outcomes(kg)[name] for name in ("loaded", "removed")} == {"loaded": 5, "removed": 1}
    assert_as_fresh(kg, open_graph("fresh"), notes)


def test_removal_of_a_file_reads_its_graphs_for_nothing_but_the_difference(
    kg: KnowledgeGraph, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (notes / "otter.md").write_text("# Pumps\n\nThe Otter pump uses the Heron valve of Marrow Ltd.\n")
    (notes / "other.md").write_text("# Piers\n\nThe pier is old.\n")
    folder = watch(kg, notes)
    update(folder)
    extract(folder)
    read: list[str] = []
    graph = OxigraphStore.graph

    def reading(self: OxigraphStore, name: NamedNode) -> list[Quad]:
        read.append(name.value)
        return graph(self, name)

    source = mint("graph", "src", "files", "notes", "otter.md")
    own = get_entity_graph(source)
    assert kg.store.count(own) > 0
    monkeypatch.setattr(OxigraphStore, "graph", reading)
    (notes / "otter.md").unlink()
    update(folder)
    assert kg.store.count(source) == kg.store.count(own) == 0
    assert {source.value, own.value}.isdisjoint(read)


def test_file_that_can_no_longer_be_read_is_removed_and_reported(kg: KnowledgeGraph, notes: Path) -> None:
    (notes / "a.md").write_text("# A\n\nWords.")
    folder = watch(kg, notes)
    update(folder)
    (notes / "a.md").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 50)
    (notes / "b.md").write_text("")
    update(folder)
    assert paths_of(kg) == set()
    assert outcomes(kg)["rejected"] == 2
    assert "b.md: The file is empty." in (kg.ingestion.get_status().last_error or "")
    (notes / "a.md").write_text("# A\n\nWords again.")
    update(folder)
    assert paths_of(kg) == {"a.md"}


def test_renamed_file_is_moved_and_its_old_iri_leads_to_the_new_one(
    kg: KnowledgeGraph, open_graph: Callable[..., KnowledgeGraph], notes: Path
) -> None:
    (notes / "a.md").write_text("# A\n\nWords.")
    (notes / "b.md").write_text("# B\n\nOther words.")
    folder = watch(kg, notes)
    update(folder)
    (notes / "deep").mkdir()
    (notes / "a.md").rename(notes / "deep" / "z.md")
    update(folder)
    assert moves_of(kg) == {"a.md": "deep/z.md"}
    assert outcomes(kg)["moved"] == 1
    graph = mint("graph", "src", "files", "notes", "deep", "z.md")
    assert list(load_sources(kg.store, [graph])[graph].values()) == ["deep/z.md"]
    assert_as_fresh(kg, open_graph("fresh"), notes)
    # A file that was moved and edited, which only an event can tell.
    (notes / "deep" / "z.md").rename(notes / "y.md")
    (notes / "y.md").write_text("# A\n\nEdited words.")
    folder.load(Changes(["deep/z.md", "y.md"], {"y.md": "deep/z.md"}))
    assert moves_of(kg) == {"a.md": "deep/z.md", "deep/z.md": "y.md"}
    # A new file at an old path is not replaced by another one.
    (notes / "a.md").write_text("# A\n\nNew words at the old path.")
    update(folder)
    assert moves_of(kg) == {"deep/z.md": "y.md"}
    (notes / "y.md").unlink()
    update(folder)
    assert moves_of(kg) == {}


def test_move_that_happened_while_nobody_watched_is_found_by_the_hash(
    kg: KnowledgeGraph, open_graph: Callable[..., KnowledgeGraph], notes: Path
) -> None:
    for name in ("a", "b", "c"):
        (notes / f"{name}.md").write_text(f"# {name}\n\nWords of {name}.")
    update(watch(kg, notes))
    (notes / "a.md").rename(notes / "moved.md")
    (notes / "b.md").unlink()
    (notes / "c.md").write_text("# c\n\nEdited.")
    update(watch(kg, notes))
    assert moves_of(kg) == {"a.md": "moved.md"}
    assert paths_of(kg) == {"moved.md", "c.md"}
    assert_as_fresh(kg, open_graph("fresh"), notes)


def test_move_that_is_reported_as_a_new_file_and_later_as_a_deleted_one_is_found(
    kg: KnowledgeGraph, open_graph: Callable[..., KnowledgeGraph], notes: Path
) -> None:
    for name in ("a", "b"):
        (notes / f"{name}.md").write_text(f"# {name}\n\nWords of {name}.")
    folder = watch(kg, notes)
    update(folder)
    (notes / "deep").mkdir()
    (notes / "a.md").rename(notes / "deep" / "z.md")
    (notes / "deep" / "copy.md").write_bytes((notes / "b.md").read_bytes())
    folder.load(Changes(["deep/copy.md", "deep/z.md"], {}))
    assert moves_of(kg) == {"a.md": "deep/z.md"}
    assert paths_of(kg) == {"b.md", "deep/z.md"}
    folder.load(Changes(["a.md"], {}))
    assert moves_of(kg) == {"a.md": "deep/z.md"}
    assert_as_fresh(kg, open_graph("fresh"), notes)


def test_load_by_command_ends_the_move_of_a_file_that_is_there_again(kg: KnowledgeGraph, notes: Path) -> None:
    (notes / "a.md").write_text("# A\n\nWords.")
    folder = watch(kg, notes)
    update(folder)
    (notes / "a.md").rename(notes / "b.md")
    update(folder)
    (notes / "a.md").write_text("# A\n\nNew words.")
    load(kg, "files", [str(notes)], prune=True)
    assert moves_of(kg) == {}


def test_file_that_changes_while_it_is_read_is_read_again(
    kg: KnowledgeGraph, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (notes / "a.md").write_text("# A\n\nWords.")
    (notes / "b.md").write_text("# B\n\nWords of b.")
    folder = watch(kg, notes)
    from loaders.files.graph import watched_folder

    found = watched_folder.find_in_folder

    def change(*given: object) -> object:
        located = found(*given)  # type: ignore[arg-type]
        (notes / "a.md").write_text("# A\n\nWords that came later.")
        return located

    monkeypatch.setattr(watched_folder, "find_in_folder", change)
    assert folder.load(Changes(["a.md", "b.md"], {})) == ["a.md"]
    monkeypatch.undo()
    assert paths_of(kg) == {"b.md"}
    assert "rejected" not in outcomes(kg)
    assert folder.load(Changes(["a.md"], {})) == []
    assert paths_of(kg) == {"a.md", "b.md"}


def test_near_duplicate_is_loaded_when_its_original_is_gone(
    kg: KnowledgeGraph, open_graph: Callable[..., KnowledgeGraph], notes: Path
) -> None:
    for name in ("b", "c", "d"):
        (notes / f"{name}.md").write_text(LONG * 8)
    folder = watch(kg, notes)
    update(folder)
    assert paths_of(kg) == {"b.md"}
    (notes / "b.md").write_text("Something else.")
    update(folder)
    assert paths_of(kg) == {"b.md", "c.md"}
    (notes / "a.md").write_text(LONG * 8)
    update(folder)
    assert paths_of(kg) == {"a.md", "b.md"}
    assert_as_fresh(kg, open_graph("fresh"), notes)


def test_near_duplicate_of_another_collection_is_loaded_when_that_is_gone(
    kg: KnowledgeGraph, notes: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "z.md").write_text(LONG * 8)
    (other / "y.md").write_text("Staying words.")
    (notes / "a.md").write_text(LONG * 8)
    load(kg, "files", [str(other)], index=False)
    folder = watch(kg, notes)
    update(folder)
    assert paths_of(kg) == {"y.md", "z.md"}
    assert folder.find_freed() == []
    (other / "z.md").unlink()
    load(kg, "files", [str(other)], prune=True, index=False)
    assert paths_of(kg) == {"y.md"}
    folder.load(Changes(folder.find_freed(), {}))
    assert paths_of(kg) == {"a.md", "y.md"}


def test_tags_of_a_load_outlive_edits_and_moves_in_a_watched_folder(kg: KnowledgeGraph, notes: Path) -> None:
    (notes / "a.md").write_text("# A\n\nOld words.")
    load(kg, "files", [str(notes)], index=False, tags="kb")
    folder = watch(kg, notes)
    update(folder)
    (notes / "a.md").write_text("# A\n\nNew words.")
    update(folder)
    (notes / "a.md").rename(notes / "b.md")
    update(folder)
    tags = {str(quad.subject): quad.object for quad in content(kg.store) if quad.predicate == DCTERMS.subject}
    assert tags == {str(mint("file", "notes", "b.md")): Literal("kb")}


def test_excluded_hidden_and_linked_files_are_left_out(
    kg: KnowledgeGraph, open_graph: Callable[..., KnowledgeGraph], notes: Path, tmp_path: Path
) -> None:
    for name in ("a.md", "drafts/b.md", "build/c.md", "build/deep/d.md", ".hidden/e.md", "drafts/keep.md"):
        (notes / name).parent.mkdir(exist_ok=True, parents=True)
        (notes / name).write_text(f"# {name}\n\nWords of {name}.")
    (tmp_path / "secret.md").write_text("not for the graph")
    (notes / "link.md").symlink_to(tmp_path / "secret.md")
    (notes / "away").symlink_to(tmp_path)
    (notes / ".gitignore").write_text("build/\n")
    (notes / "drafts" / ".kgignore").write_text("*.md\n!keep.md\n")
    folder = watch(kg, notes)
    update(folder)
    assert paths_of(kg) == {"a.md", "drafts/keep.md"}
    assert outcomes(kg)["rejected"] == 2
    paths = ["build/c.md", "drafts/b.md", ".hidden/e.md", "away/secret.md", "link.md"]
    folder.load(Changes(paths, {}))
    assert paths_of(kg) == {"a.md", "drafts/keep.md"}
    assert_as_fresh(kg, open_graph("fresh"), notes)
    (notes / ".gitignore").write_text("a.md\n")
    update(folder)
    assert paths_of(kg) == {"build/c.md", "build/deep/d.md", "drafts/keep.md"}


def test_odd_names_are_loaded_or_reported(kg: KnowledgeGraph, notes: Path) -> None:
    (notes / "two\nlines #?%.md").write_text("# Two lines\n\nWords.")
    try:
        Path(os.fsdecode(os.fsencode(notes) + b"/caf\xe9.md")).write_text("Latin name.")
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    folder = watch(kg, notes)
    update(folder)
    assert paths_of(kg) == {"two\nlines #?%.md"}
    [event] = [each for each in kg.ingestion.list_events() if each.outcome == "rejected"]
    assert event.path.encode()
    assert "not UTF-8" in event.text
    for path in notes.iterdir():
        path.unlink()
    update(folder)
    assert paths_of(kg) == set()


@pytest.mark.long
@pytest.mark.parametrize("seed", spread(range(12), 1))
def test_random_changes_give_the_graph_of_a_fresh_load(
    kg: KnowledgeGraph, open_graph: Callable[..., KnowledgeGraph], notes: Path, seed: int
) -> None:
    chance = random.Random(seed)
    folder = watch(kg, notes)
    for number in range(40):
        change_at_random(chance, notes)
        if chance.random() < 0.3:
            update(folder)
        if number == 20:
            folder = watch(kg, notes)
    update(folder)
    assert_as_fresh(kg, open_graph("fresh"), notes)


def test_content_that_wanders_to_another_file_keeps_no_file_from_being_loaded(
    kg: KnowledgeGraph, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (notes / "b.md").write_text("# B\n\nFirst words.")
    folder = watch(kg, notes)
    update(folder)
    (notes / "a.md").write_text("# B\n\nFirst words.")
    (notes / "b.md").write_text("# B\n\nSecond words.")
    with monkeypatch.context() as patch:  # b.md changes again while it is read
        patch.setattr(_Update, "has_changed", lambda self, path: path == "b.md")
        read = Reading.read_record

        def fail(self: Reading, file: File, *given: object) -> object:
            if file.path.name == "b.md":
                raise SourceError("b.md: The file changed while it was loaded.")
            return read(self, file, *given)  # type: ignore[arg-type]

        patch.setattr(Reading, "read_record", fail)
        assert folder.load(Changes(["a.md", "b.md"], {})) == ["b.md"]
    folder.load(Changes(["b.md"], {}))
    assert paths_of(kg) == {"a.md", "b.md"}
    assert outcomes(kg).get("rejected", 0) == 0
    assert "Second words." in str(content(kg.store))


def test_files_are_read_for_entities_in_parts_of_a_limited_length(
    kg: KnowledgeGraph, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_folder, "MOST_EXTRACTED", 3)
    monkeypatch.setattr(watched_folder, "EXTRACTED_CHARACTERS", 1_000)
    monkeypatch.setattr(watched_folder, "LONG", 1_500)
    lengths = {"a": 2_000, "b": 10, "c": 20, "d": 30, "e": 40, "f": 700, "g": 400, "h": 5_000}
    for name, length in lengths.items():
        (notes / f"{name}.md").write_text(f"{name} " * (length // 2))
    folder = watch(kg, notes)
    update(folder)
    parts = [[Path(file.value).stem for file in part] for part in folder.find_unextracted()]
    assert parts == [["b", "c", "d"], ["e", "f"], ["g"], ["a"], ["h"]]
    extract(folder)
    assert folder.find_unextracted() == []


def test_only_the_file_that_takes_too_long_is_rejected(kg: KnowledgeGraph, notes: Path) -> None:
    def load_slowly(kg: KnowledgeGraph, part: Part, **options: Any) -> list[str]:
        if "slow.md" in part.files:
            raise QueryTimeoutError("The text was not read in 600 s.")
        return load_changed(kg, part, **options)

    (notes / "slow.md").write_text("# Slow\n\nThe first text.\n")
    folder = watch(kg, notes)
    update(folder)
    for name in ("a", "b", "slow"):
        (notes / f"{name}.md").write_text(f"# {name}\n\nThe text of {name}.\n")
    folder = WatchedFolder(kg, notes, None, load_slowly)
    update(folder)
    assert folder.stored is not None
    assert set(folder.stored) == {"a.md", "b.md"}
    [rejected] = [each for each in kg.ingestion.list_events() if each.outcome == "rejected"]
    assert (rejected.path, "600 s" in rejected.text) == ("slow.md", True)
