"""The audit log: its chain, its rotation, and failures to write it."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.access import audit
from kg.access.actors import Actor
from kg.access.audit import AuditLog, Decision, Entry, FailureLimiter, list_files, read_entries, verify
from kg.data_directory import DataDirectory
from kg.errors import AuditUnavailableError
from kg.observability import REGISTRY

ANN = Actor("ann", frozenset({"read"}), frozenset({"press", "board"}))


def write(directory: DataDirectory, count: int, **options: int) -> None:
    with AuditLog(directory, **options) as log:  # type: ignore[arg-type]
        for number in range(count):
            log.record(Entry(f"tool-{number}", actor=ANN, peer="192.0.2.7"))


def test_an_entry_has_who_what_when_decision_and_outcome(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    decision = Decision(False, ("no-prices",), ("division by zero",))
    entry = Entry("search", "r1", ANN, "192.0.2.7", {"query": "a\u2028b"}, 7, decision, "forbidden")
    entry.began -= 5
    with AuditLog(directory) as log:
        log.record(entry)
    [read] = read_entries(directory)
    assert read["time"].endswith("Z")
    assert 5_000 <= read["ms"] < 1_000_000
    assert {name: read[name] for name in ("n", "request_id", "who", "groups", "peer", "action", "snapshot")} == {
        "n": 1,
        "request_id": "r1",
        "who": "ann",
        "groups": ["board", "press"],
        "peer": "192.0.2.7",
        "action": "search",
        "snapshot": 7,
    }
    assert read["decision"] == {"allowed": False, "policies": ["no-prices"], "problems": ["division by zero"]}
    assert (read["outcome"], read["arguments"]) == ("forbidden", {"query": "a\u2028b"})


def test_only_the_user_of_the_server_can_read_it(tmp_path: Path) -> None:
    write(DataDirectory(tmp_path), 1)
    [path] = list_files(tmp_path / "audit")
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_the_chain_goes_on_in_another_process_and_after_a_torn_line(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    with AuditLog(directory) as first, AuditLog(directory) as second:
        for log in (first, second, second, first):
            log.record(Entry("a"))
        [path] = list_files(directory.audit)
        with path.open("ab") as file:
            file.write(b'{"n":5,"time":"20')
        first.record(Entry("b"))
    result = verify(directory)
    assert (result.entries, result.problems, result.incomplete_lines) == (5, [], 1)
    assert [entry["n"] for entry in read_entries(directory)] == [1, 2, 3, 4, 5]


def test_entries_of_many_threads_are_one_chain(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    logs = [AuditLog(directory, max_bytes=16 * 2_000) for _ in range(2)]
    threads = [
        threading.Thread(target=lambda log=log: [log.record(Entry("a")) for _ in range(20)])
        for log in logs
        for _ in "ab"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    result = verify(directory)
    assert (result.entries, result.problems) == (80, [])
    assert len(list_files(directory.audit)) > 1


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    directory = DataDirectory(tmp_path_factory.mktemp("audit"))
    write(directory, 8)
    [path] = list_files(directory.audit)
    return path.read_bytes().splitlines(keepends=True)


@given(st.data())
def test_a_removed_moved_repeated_or_changed_line_is_found(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], data: st.DataObject
) -> None:
    directory = DataDirectory(tmp_path_factory.mktemp("changed"))
    place = data.draw(st.integers(0, 6))  # the last line can be cut, which only `head` finds
    change = data.draw(st.sampled_from(["remove", "swap", "repeat", "edit", "forge"]))
    changed = list(lines)
    if change == "remove":
        del changed[place]
    elif change == "swap":
        changed[place], changed[place + 1] = changed[place + 1], changed[place]
    elif change == "repeat":
        changed.insert(place, changed[place])
    elif change == "edit":
        changed[place] = changed[place].replace(b'"who":"ann"', b'"who":"bob"')
    else:  # with a hash that fits
        entry = json.loads(changed[place])
        del entry["sha256"]
        body = audit._encode(entry | {"who": "bob"})
        changed[place] = body[:-1] + b',"sha256":"' + audit.hashlib.sha256(body).hexdigest().encode() + b'"}\n'
    directory.audit.mkdir()
    (directory.audit / "000000000001.jsonl").write_bytes(b"".join(changed))
    assert verify(directory).problems


def test_a_cut_end_is_found_by_an_earlier_hash(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    write(directory, 3)
    head = verify(directory).head
    write(directory, 1)
    assert verify(directory, head).problems == []
    [path] = list_files(directory.audit)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    assert verify(directory).problems == []
    assert verify(directory, head).problems


def test_files_are_rotated_by_size_and_the_removal_is_an_entry(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    write(directory, 200, max_bytes=16 * 1_000)
    assert len(list_files(directory.audit)) == 16
    assert sum(path.stat().st_size for path in list_files(directory.audit)) <= 16 * 1_000
    assert verify(directory).problems == []
    assert [entry for entry in read_entries(directory) if entry["action"] == audit.EXPIRED]
    list_files(directory.audit)[0].unlink()
    assert verify(directory).problems


def test_files_older_than_the_days_are_removed(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    write(directory, 12, max_bytes=16 * 1_000, days=1)
    old = list_files(directory.audit)[:2]
    for path in old:
        os.utime(path, (0, 0))
    write(directory, 4, max_bytes=16 * 1_000, days=1)
    assert not any(path.exists() for path in old)
    assert verify(directory).problems == []


def test_without_room_requests_go_on_unless_the_log_is_required(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lost = REGISTRY.get_sample_value("quadcite_audit_entries_total", {"written": "false"}) or 0
    directory = DataDirectory(tmp_path / "gone")
    log, strict = AuditLog(directory), AuditLog(directory, required=True)
    for _ in range(3):
        log.record(Entry("a"))
    with pytest.raises(AuditUnavailableError):
        strict.record(Entry("b"))
    with pytest.raises(AuditUnavailableError):
        strict.require_writable()
    log.require_writable()
    assert log.problem
    assert len(caplog.records) == 2
    assert REGISTRY.get_sample_value("quadcite_audit_entries_total", {"written": "false"}) == lost + 4
    directory.path.mkdir()
    strict.require_writable()
    log.record(Entry("c"))
    said = [(entry["action"], (entry["arguments"] or {}).get("entries")) for entry in read_entries(directory)]
    assert said == [(audit.LOST, 1), (audit.LOST, 3), ("c", None)]
    assert (strict.problem, log.problem) == (None, None)


def test_a_process_that_keeps_the_lock_delays_no_request(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    with AuditLog(directory) as log:
        log.record(Entry("a"))
        folder = os.open(directory.audit, os.O_RDONLY)
        fcntl.flock(folder, fcntl.LOCK_EX)
        log.record(Entry("b"))
        assert log.problem
        os.close(folder)
        log.record(Entry("c"))
    assert [entry["action"] for entry in read_entries(directory)] == ["a", audit.LOST, "c"]
    assert verify(directory).problems == []


def test_failures_of_one_peer_do_not_fill_the_log() -> None:
    now = [0.0]
    limiter = FailureLimiter(lambda: now[0])
    assert sum(limiter.allows("a") for _ in range(50)) == 10
    assert limiter.allows("b")
    now[0] = 61
    assert limiter.allows("a")
