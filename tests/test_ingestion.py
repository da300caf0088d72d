"""The state of the ingestion of files: counts, rates, the last file and error, and events for readers."""

from __future__ import annotations

from datetime import UTC, datetime

from kg.ingestion import Folder, Ingestion

NOW = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


def test_status_has_counts_rates_and_the_last_file_and_error() -> None:
    ingestion = Ingestion(lambda: NOW)
    empty = ingestion.get_status()
    assert (empty.queue_depth, empty.counts, empty.last_file, empty.files_per_s) == (0, {}, None, None)
    ingestion.set_folder(Folder("/notes", "notes", "watching", files=3, pending=2))
    ingestion.record_file("loaded", "a.md", "notes")
    ingestion.record_file("unchanged", "b.md", "notes")
    ingestion.record_file("rejected", "c.md", "notes", "The file is empty.")
    ingestion.record_file("moved", "a.md", "notes", "new/a.md")
    ingestion.record_load(10, 2.0)
    ingestion.record_load(20, 4.0)
    ingestion.record_commit(0.02)
    ingestion.record_commit(0.04)
    status = ingestion.get_status()
    assert status.queue_depth == 2
    assert status.counts == {"loaded": 1, "unchanged": 1, "rejected": 1, "moved": 1}
    assert (status.last_file, status.last_file_at) == ("notes/new/a.md", NOW)
    assert (status.last_error, status.last_error_at) == ("notes/c.md: The file is empty.", NOW)
    assert status.files_per_s == 5.0
    assert status.mean_commit_ms is not None
    assert round(status.mean_commit_ms) == 30
    assert [event.outcome for event in ingestion.list_events()] == ["loaded", "rejected", "moved"]
    assert [event.path for event in ingestion.list_events(after=2)] == ["a.md"]


def test_problem_of_a_folder_and_its_end_are_events() -> None:
    ingestion = Ingestion(lambda: NOW)
    ingestion.set_folder(Folder("/notes", "notes", "watching"))
    for _ in range(2):
        ingestion.set_folder(Folder("/notes", "notes", "missing", problem="/notes: The folder is missing."))
    assert ingestion.find_problems() == ["/notes: The folder is missing."]
    assert ingestion.get_status().last_error == "/notes: The folder is missing."
    ingestion.set_folder(Folder("/notes", "notes", "scanning"))
    assert ingestion.find_problems() == []
    assert [event.outcome for event in ingestion.list_events()] == ["folder", "folder"]
    ingestion.remove_folder("/notes")
    assert ingestion.get_status().folders == ()
