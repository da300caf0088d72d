"""Schedules are read strictly, and submit a load when it is due and not before."""

from __future__ import annotations

import sqlite3
import time
from datetime import timedelta
from pathlib import Path

import pytest

from kg.errors import InvalidInputError
from kg.load_queue import LoadQueue
from kg.load_schedule import Schedule, read_schedules, scheduling, submit_due
from kg.tools.operations.loads import check_source

NOTES = '[notes]\nsource = "files"\nlocations = ["/data/notes"]\nevery = "6h"\n'


def read(folder: Path, text: str) -> list[Schedule]:
    file = folder / "schedules.toml"
    file.write_text(text, encoding="utf-8")
    return read_schedules(file, check_source)


def test_schedules_have_the_present_name_of_their_source(tmp_path: Path) -> None:
    more = '[talk]\nsource = "hansard"\nlocations = ["a", "b"]\nevery = "2w"\nprune = true\noptions = {chamber = "x"}\n'
    notes, talk = read(tmp_path, NOTES + more)
    assert (notes.source, notes.every, notes.prune, notes.options) == ("files", timedelta(hours=6), False, {})
    assert (talk.source, talk.every, talk.prune, talk.options) == (
        "parliament", timedelta(weeks=2), True, {"chamber": "x"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (NOTES.replace("6h", "6 hours"), "every"),
        (NOTES.replace("6h", "0h"), "every"),
        (NOTES.replace('"6h"', "6"), "every"),
        (NOTES.replace('["/data/notes"]', "[]"), "locations"),
        (NOTES.replace("files", "film"), "film"),
        (NOTES + 'options = {chamber = "x"}\n', "chamber"),
        (NOTES + "frequency = 3\n", "frequency"),
        (NOTES.replace("[notes]", '["no tes"]'), "no tes"),
        ('source = "files"\n', "source"),
        ("[notes\n", "TOML"),
        ("\n".join(f"[n{each}]" for each in range(201)), "201"),
    ],
)
def test_error_names_the_place(tmp_path: Path, text: str, where: str) -> None:
    with pytest.raises(InvalidInputError, match=where):
        read(tmp_path, text)


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError):
        read_schedules(tmp_path / "none.toml", check_source)


def test_load_is_due_once_in_its_time_and_not_while_the_last_one_waits(tmp_path: Path) -> None:
    [schedule] = read(tmp_path, NOTES)
    queue = LoadQueue(tmp_path)
    assert [submit_due(queue, schedule) for _ in range(2)] == [True, False]
    with sqlite3.connect(tmp_path / "loads.sqlite") as database:
        database.execute("UPDATE loads SET submitted = '2020-01-01T00:00:00+00:00'")
    assert not submit_due(queue, schedule)
    queue.cancel(1)
    assert [submit_due(queue, schedule) for _ in range(2)] == [True, False]
    load = queue.get(2)
    assert (load.source, load.locations, load.label) == ("files", ("/data/notes",), "notes")


def test_schedules_are_looked_at_until_the_block_ends(tmp_path: Path) -> None:
    queue = LoadQueue(tmp_path)
    with scheduling(queue, read(tmp_path, NOTES), look_s=0.01):
        deadline = time.monotonic() + 20
        while not queue.list() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert [each.label for each in queue.list()] == ["notes"]
