"""The folder of answers is bounded and shared, and what is damaged in it counts as absent."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.remote import response_cache
from kg.remote.response_cache import CachedResponse, ResponseCache


@given(st.text(), st.text(), st.binary(max_size=300), st.floats(0, 4e9))
def test_an_answer_is_got_as_it_was_kept(
    tmp_path_factory: pytest.TempPathFactory, endpoint: str, query: str, body: bytes, moment: float
) -> None:
    kept = ResponseCache(tmp_path_factory.mktemp("answers"))
    kept.put(endpoint, query, CachedResponse(body, moment))
    assert kept.get(endpoint, query) == CachedResponse(body, moment)
    assert kept.get(endpoint, query + " ") is None
    assert kept.get(endpoint + "/", query) is None


def test_a_file_that_is_damaged_or_of_another_question_counts_as_none(tmp_path: Path) -> None:
    kept = ResponseCache(tmp_path)
    kept.put("e", "q", CachedResponse(b"body of an answer", 1))
    [path] = tmp_path.iterdir()
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        assert kept.get("e", "q") is None
    for place in range(0, len(whole), 3):
        path.write_bytes(whole[:place] + b"\x00" + whole[place + 1 :])
        assert kept.get("e", "q") is None
    path.write_bytes(whole)
    os.rename(path, kept._path("e", "other"))
    assert kept.get("e", "other") is None
    kept.put("e", "other", CachedResponse(b"good", 2))
    assert kept.get("e", "other") == CachedResponse(b"good", 2)


@pytest.mark.parametrize("time", [1e300, -1e300, -1.0, float("nan"), float("inf"), "yesterday", None])
def test_an_answer_of_no_possible_time_counts_as_none(tmp_path: Path, time: object) -> None:
    kept = ResponseCache(tmp_path)
    kept.put("e", "q", CachedResponse(b"body", 1))
    [path] = tmp_path.iterdir()
    head, _, body = path.read_bytes().partition(b"\n")
    path.write_bytes(json.dumps(json.loads(head) | {"time": time}).encode() + b"\n" + body)
    assert kept.get("e", "q") is None


def test_the_oldest_go_when_there_are_too_many_bytes_or_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = ResponseCache(tmp_path, max_bytes=40_000)
    for number in range(20):
        kept.put("e", str(number), CachedResponse(b"x" * 5_000, number))
        os.utime(kept._path("e", str(number)), (number, number))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 40_000
    assert kept.get("e", "0") is None
    assert kept.get("e", "19") is not None
    kept.put("e", "too large", CachedResponse(b"x" * 11_000, 1))
    assert kept.get("e", "too large") is None
    monkeypatch.setattr(response_cache, "MAX_FILES", 3)
    kept.put("e", "last", CachedResponse(b"x", 1))
    assert len(list(tmp_path.iterdir())) == 3
    assert kept.get("e", "last") is not None


def test_what_a_killed_process_left_is_swept_and_what_one_writes_now_is_not(tmp_path: Path) -> None:
    old, new = tmp_path / "a.partial", tmp_path / "b.partial"
    for path in (old, new):
        path.write_bytes(b"x")
    os.utime(old, (time.time() - 7200, time.time() - 7200))
    ResponseCache(tmp_path).put("e", "q", CachedResponse(b"", 1))
    assert (old.exists(), new.exists()) == (False, True)


def test_that_nothing_can_be_kept_is_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_bytes(b"")
    kept = ResponseCache(tmp_path / "file")
    kept.put("e", "q", CachedResponse(b"", 1))
    assert kept.get("e", "q") is None
    assert "Cannot write" in caplog.text


def test_many_at_once_read_whole_answers_only(tmp_path: Path) -> None:
    bodies = {bytes([letter]) * 50_000 for letter in b"abcd"}
    seen: set[bytes] = set()

    def work(body: bytes) -> None:
        kept = ResponseCache(tmp_path, max_bytes=210_000)
        for number in range(30):
            kept.put("e", "q", CachedResponse(body, 1))
            kept.put("e", str(number), CachedResponse(body, 1))
            if (found := kept.get("e", "q")) is not None:
                seen.add(found.body)

    threads = [threading.Thread(target=work, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen
    assert seen <= bodies
    assert not list(tmp_path.glob("*.partial"))
