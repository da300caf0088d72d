"""Folders that are watched, with real events of the file system. Each wait ends as soon as the graph is as expected."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from watchdog.events import DirCreatedEvent, FileDeletedEvent
from watchdog.observers.api import BaseObserver

from kg.errors import InvalidInputError
from kg.ingestion import Folder
from kg.knowledge_graph import KnowledgeGraph
from kg.loading import exclusive_load
from kg.tools import commands
from loaders.files.graph import watcher as watching
from loaders.files.graph.watcher import Watcher
from loaders.sources import build_watcher
from tests.loaders.conftest import content
from tests.loaders.files.test_watched_folder import moves_of, paths_of
from tests.waiting import until

WORDS = "# {0}\n\nWords of {0}."


@pytest.fixture
def kg(open_graph: Callable[..., KnowledgeGraph]) -> KnowledgeGraph:
    graph = open_graph()
    graph.settings = graph.settings.model_copy(update={"watch_debounce_ms": 20})
    return graph


@pytest.fixture
def watcher(kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watcher]:
    monkeypatch.setattr(watching, "LOOK_S", 0.02)
    # Entities are the subject of other tests: to load their pipeline takes seconds.
    monkeypatch.setattr("loaders.files.graph.watched_folder.find_pending", lambda kg: {})
    made = build_watcher(kg, exclusive_load)
    assert isinstance(made, Watcher)
    yield made
    made.close()


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


def state_of(kg: KnowledgeGraph) -> Folder | None:
    return next(iter(kg.ingestion.get_status().folders), None)


def is_watching(kg: KnowledgeGraph) -> bool:
    state = state_of(kg)
    return state is not None and state.state == "watching"


def test_files_are_loaded_removed_and_moved_as_they_change(kg: KnowledgeGraph, watcher: Watcher, notes: Path) -> None:
    (notes / "a.md").write_text(WORDS.format("a"))
    watcher.watch(notes, None)
    until(lambda: paths_of(kg) == {"a.md"} and is_watching(kg))
    deep = notes / "one" / "two"
    deep.mkdir(parents=True)
    (deep / "b.md").write_text(WORDS.format("b"))
    until(lambda: paths_of(kg) == {"a.md", "one/two/b.md"})
    (notes / "a.md").rename(deep / "c.md")
    until(lambda: paths_of(kg) == {"one/two/b.md", "one/two/c.md"})
    (notes / "one").rename(notes / "uno")
    until(lambda: paths_of(kg) == {"uno/two/b.md", "uno/two/c.md"})
    steps = {"a.md": "one/two/c.md", "one/two/b.md": "uno/two/b.md", "one/two/c.md": "uno/two/c.md"}
    assert moves_of(kg) == steps
    # As editors save: a file beside it replaces the old one.
    (notes / "uno" / "two" / ".b.md.swp").write_text(WORDS.format("b") + " More words.")
    (notes / "uno" / "two" / ".b.md.swp").rename(notes / "uno" / "two" / "b.md")
    (notes / "new.txt").write_text("New words.")
    until(lambda: "new.txt" in paths_of(kg) and "More words." in str(content(kg.store)))
    shutil.rmtree(notes / "uno")
    until(lambda: paths_of(kg) == {"new.txt"})
    (notes / ".gitignore").write_text("new.*\n")
    until(lambda: paths_of(kg) == set())
    status = kg.ingestion.get_status()
    assert status.last_file in ("notes/new.txt", "notes/uno/two/b.md")
    assert status.mean_commit_ms


@pytest.mark.skipif(sys.platform != "linux", reason="of inotify")
def test_a_folder_that_the_observer_adds_twice_is_no_error(kg: KnowledgeGraph, watcher: Watcher, notes: Path) -> None:
    from watchdog.observers.inotify_c import InotifyFD, Mask

    watcher.watch(notes, None)
    until(lambda: is_watching(kg))
    inotify = InotifyFD.get_instance()
    added = [inotify.add_callback(os.fsencode(notes), Mask(0x100), lambda *_: None, "twice") for _ in range(2)]
    inotify.remove_callbacks([(added[0], "twice")])
    (notes / "a.md").write_text(WORDS.format("a"))
    until(lambda: paths_of(kg) == {"a.md"})


def test_file_that_is_moved_into_a_new_folder_leads_there(kg: KnowledgeGraph, watcher: Watcher, notes: Path) -> None:
    for number in range(5):
        (notes / f"{number}.md").write_text(WORDS.format(number))
    watcher.watch(notes, None)
    until(lambda: len(paths_of(kg)) == 5 and is_watching(kg))
    for number in range(5):
        deep = notes / f"in{number}" / "deep"
        deep.mkdir(parents=True)
        (notes / f"{number}.md").rename(deep / "moved.md")  # the system may not watch the folder yet
    expected = {f"{number}.md": f"in{number}/deep/moved.md" for number in range(5)}
    until(lambda: paths_of(kg) == set(expected.values()))
    assert moves_of(kg) == expected


def test_file_that_is_moved_into_a_new_folder_without_an_event_of_its_arrival_leads_there(
    kg: KnowledgeGraph, watcher: Watcher, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BaseObserver, "schedule", Mock(side_effect=OSError("no events")))
    (notes / "a.md").write_text(WORDS.format("a"))
    watcher.watch(notes, None)
    until(lambda: paths_of(kg) == {"a.md"} and is_watching(kg))
    [watch] = watcher._watches.values()
    (notes / "new").mkdir()
    watch.dispatch(DirCreatedEvent(str(notes / "new")))
    until(lambda: len(watch.pending) == 0)
    (notes / "a.md").rename(notes / "new" / "a.md")
    watch.dispatch(FileDeletedEvent(str(notes / "a.md")))
    until(lambda: paths_of(kg) == {"new/a.md"})
    assert moves_of(kg) == {"a.md": "new/a.md"}


def test_folder_that_vanishes_is_reported_and_comes_back(kg: KnowledgeGraph, watcher: Watcher, notes: Path) -> None:
    (notes / "a.md").write_text(WORDS.format("a"))
    watcher.watch(notes, None)
    until(lambda: paths_of(kg) == {"a.md"} and is_watching(kg))
    notes.rename(notes.with_name("away"))
    until(lambda: bool(kg.ingestion.find_problems()))
    assert (state_of(kg) or Folder("", "", "watching")).state == "missing"
    assert paths_of(kg) == {"a.md"}
    (notes.with_name("away") / "b.md").write_text(WORDS.format("b"))
    notes.with_name("away").rename(notes)
    until(lambda: paths_of(kg) == {"a.md", "b.md"} and is_watching(kg))
    assert kg.ingestion.find_problems() == []
    (notes / "c.md").write_text(WORDS.format("c"))
    until(lambda: paths_of(kg) == {"a.md", "b.md", "c.md"})


def test_more_changes_than_are_kept_are_found_by_a_search(
    kg: KnowledgeGraph, watcher: Watcher, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loaders.files.changes.MOST_PENDING", 3)
    monkeypatch.setattr(watching, "MOST_FILES", 4)
    watcher.watch(notes, None)
    until(lambda: is_watching(kg))
    for number in range(12):
        (notes / f"{number}.md").write_text(WORDS.format(number))
    until(lambda: len(paths_of(kg)) == 12)


def test_load_that_fails_is_reported_and_repeated(
    kg: KnowledgeGraph, watcher: Watcher, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "RETRY_S", 0.01)
    (notes / "a.md").write_text(WORDS.format("a"))
    failing = [True]

    def fail(*_: object) -> bool:
        if failing[0]:
            raise OSError(28, "No space left on device")
        return False

    monkeypatch.setattr("loaders.files.graph.watched_folder.WatchedFolder._is_unchanged", fail)
    watcher.watch(notes, None)
    until(lambda: any("No space left" in problem for problem in kg.ingestion.find_problems()))
    failing[0] = False
    until(lambda: paths_of(kg) == {"a.md"} and not kg.ingestion.find_problems())


def test_watch_ends_with_its_lease_and_collections_are_distinct(
    kg: KnowledgeGraph, watcher: Watcher, notes: Path, tmp_path: Path
) -> None:
    watcher.watch(notes, None, seconds=600)
    other = tmp_path / "other" / "notes"
    other.mkdir(parents=True)
    with pytest.raises(InvalidInputError):
        watcher.watch(other, None)
    with pytest.raises(InvalidInputError):
        watcher.watch(notes, "third")
    watcher.watch(other, "second", seconds=0.05)
    until(lambda: [each.path for each in kg.ingestion.get_status().folders] == [str(notes)])


def test_command_prolongs_the_watch_and_returns_the_events_of_its_folder(
    kg: KnowledgeGraph, watcher: Watcher, notes: Path
) -> None:
    kg.watcher = watcher
    (notes / "a.md").write_text(WORDS.format("a"))
    first = commands.watch(kg, str(notes))
    assert first["events"] == []
    until(lambda: bool(commands.watch(kg, str(notes), after=first["after"])["events"]))
    later = commands.watch(kg, str(notes), after=first["after"])
    assert [(event["outcome"], event["path"]) for event in later["events"]] == [("loaded", "a.md")]
    assert later["folder"]["collection"] == "notes"
    assert commands.watch(kg, str(notes), after=later["after"])["events"] == []
