"""The queue of loads runs each load once, in order, and loses none by a stop or a kill."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kg.errors import ClientBusyError, InvalidInputError, NotFoundError, QueryLimitError, StoreVersionError
from kg.load_queue import ENDED, QUEUED_PER_CLIENT, STARTS, LoadQueue, QueuedLoad
from kg.queries.pool import Cancellation
from kg.search.index_sync import Progress

WAIT_S = 20.0


def finish(queue: LoadQueue, number: int) -> QueuedLoad:
    load = queue.get(number)
    while load.state not in ENDED:
        after = queue.wait(number, load, WAIT_S)
        assert after != load
        load = after
    return load


class Work:
    """Runs loads: one whose source is "held" until it is released or cancelled."""

    def __init__(self) -> None:
        self.ran: list[int] = []
        self.began, self.released = threading.Event(), threading.Event()

    def __call__(self, load: QueuedLoad, progress: Progress, cancellation: Cancellation) -> dict[str, Any]:
        self.ran.append(load.number)
        progress(1, 2, "reading")
        self.began.set()
        if load.source == "held":
            while not self.released.wait(0.01):
                if cancellation.cancelled:
                    raise QueryLimitError("cancelled")
        if load.source == "bad":
            raise InvalidInputError("no such file")
        if load.source == "broken":
            raise ZeroDivisionError("by nothing")
        return {"loaded": len(load.locations)}


def test_loads_run_in_order_and_keep_their_reports(tmp_path: Path) -> None:
    queue, work = LoadQueue(tmp_path), Work()
    numbers = [queue.submit("files", ["a", "b"][: each + 1], client="ann").number for each in range(2)]
    with queue.working(work):
        assert [finish(queue, each).report for each in numbers] == [{"loaded": 1}, {"loaded": 2}]
    assert work.ran == numbers
    again = LoadQueue(tmp_path)
    assert [(each.number, each.state) for each in again.list()] == [(numbers[1], "done"), (numbers[0], "done")]


@pytest.mark.parametrize(("source", "error"), [("bad", "no such file"), ("broken", "ZeroDivisionError: by nothing")])
def test_failed_load_has_its_error_and_the_next_one_runs(tmp_path: Path, source: str, error: str) -> None:
    queue = LoadQueue(tmp_path)
    bad, good = (queue.submit(each, ["x"], client="ann").number for each in (source, "files"))
    with queue.working(Work()):
        assert (finish(queue, bad).state, finish(queue, bad).error) == ("failed", error)
        assert finish(queue, good).state == "done"


def test_running_load_shows_its_progress_and_is_cancelled(tmp_path: Path) -> None:
    queue, work = LoadQueue(tmp_path), Work()
    held, waiting = (queue.submit("held", [each], client="ann").number for each in "xy")
    with queue.working(work):
        assert work.began.wait(WAIT_S)
        load = queue.get(held)
        assert (load.state, load.done, load.total, load.doing) == ("running", 1, 2, "reading")
        assert queue.cancel(waiting).state == "cancelled"
        queue.cancel(held)
        assert finish(queue, held).state == "cancelled"
        assert queue.cancel(held).state == "cancelled"
    assert work.ran == [held]


def test_load_that_a_stop_interrupts_runs_again_at_the_next_start(tmp_path: Path) -> None:
    queue, work = LoadQueue(tmp_path), Work()
    held = queue.submit("held", ["x"], client="ann").number
    with queue.working(work):
        assert work.began.wait(WAIT_S)
    again = LoadQueue(tmp_path)
    assert (again.get(held).state, again.get(held).starts) == ("queued", 0)
    work.released.set()
    with again.working(work):
        assert finish(again, held).state == "done"
    assert work.ran == [held, held]


@contextmanager
def edited(folder: Path) -> Any:
    database = sqlite3.connect(folder / "loads.sqlite")
    with database:
        yield database
    database.close()


@pytest.mark.parametrize(("starts", "state"), [(1, "done"), (STARTS, "failed")])
def test_load_of_a_killed_server_runs_again_unless_it_killed_several(tmp_path: Path, starts: int, state: str) -> None:
    number = LoadQueue(tmp_path).submit("files", ["x"], client="ann").number
    with edited(tmp_path) as database:
        database.execute("UPDATE loads SET state = 'running', starts = ?", [starts])
    queue = LoadQueue(tmp_path)
    with queue.working(Work()):
        assert finish(queue, number).state == state


def test_client_has_a_limit_that_is_not_that_of_others(tmp_path: Path) -> None:
    queue = LoadQueue(tmp_path)
    for number in range(QUEUED_PER_CLIENT):
        queue.submit("files", [str(number)], client="ann")
    with pytest.raises(ClientBusyError):
        queue.submit("files", ["x"], client="ann")
    assert queue.submit("files", ["x"], client="ben").state == "queued"


def test_load_that_waits_is_queued_once(tmp_path: Path) -> None:
    queue = LoadQueue(tmp_path)
    options = {"collection": "n", "tags": "a"}
    first = queue.submit("files", ["x"], client="ann", options=options)
    assert queue.submit("files", ["x"], client="ben", options=dict(reversed(options.items()))) == first
    others = [queue.submit("files", ["x"], client="ann", prune=True), queue.submit("files", ["y"], client="ann")]
    assert [each.number for each in others] == [2, 3]
    queue.cancel(1)
    assert queue.submit("files", ["x"], client="ann", options=options).number == 4


def test_unknown_load_and_load_of_nothing_are_errors(tmp_path: Path) -> None:
    queue = LoadQueue(tmp_path)
    with pytest.raises(InvalidInputError):
        queue.submit("files", [], client="ann")
    for call in (queue.get, queue.cancel, lambda number: queue.wait(number, None, 0)):
        with pytest.raises(NotFoundError):
            call(7)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5_000])


def overwrite(path: Path) -> None:
    path.write_bytes(b"no database" * 1_000)


@pytest.mark.parametrize("damage", [truncate, overwrite])
def test_damaged_queue_is_kept_and_another_begins(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    LoadQueue(tmp_path).submit("files", ["x" * 3_000] * 10, client="ann")
    damage(tmp_path / "loads.sqlite")
    queue = LoadQueue(tmp_path)
    assert queue.list() == []
    assert queue.submit("files", ["x"], client="ann").state == "queued"
    assert len([*tmp_path.glob("loads-damaged-*")]) == 1


def test_queue_of_a_newer_version_is_refused_and_kept(tmp_path: Path) -> None:
    LoadQueue(tmp_path).submit("files", ["x"], client="ann")
    with edited(tmp_path) as database:
        database.execute("PRAGMA user_version = 99")
    before = (tmp_path / "loads.sqlite").read_bytes()
    with pytest.raises(StoreVersionError, match=r"loads\.sqlite .*99.* up to 1"):
        LoadQueue(tmp_path)
    assert (tmp_path / "loads.sqlite").read_bytes() == before
    assert not [*tmp_path.glob("loads-damaged-*")]


def test_schedule_finds_its_last_load(tmp_path: Path) -> None:
    queue = LoadQueue(tmp_path)
    queue.submit("files", ["x"], client="schedule", label="notes")
    last = queue.submit("files", ["y"], client="schedule", label="notes", options=json.loads('{"collection": "n"}'))
    queue.submit("files", ["z"], client="ann")
    assert (queue.find_last("notes"), queue.find_last("others")) == (last, None)
