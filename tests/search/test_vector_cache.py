"""Vectors are kept by the hash of their text, for one model, until they are dropped."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from kg.search.vector_cache import FILE, Rows, VectorCache

SECRET = bytes.fromhex("abcdef0123456789abcdef0123456789")


def make_rows(seed: int, rows: int = 2) -> Rows:
    return np.random.default_rng(seed).standard_normal((rows, 8)).astype(np.float16)


def make_hash(number: int) -> str:
    return f"{number:032x}"


@pytest.fixture
def cache(tmp_path: Path) -> VectorCache:
    cache = VectorCache(tmp_path)
    cache.use("m", 8)
    return cache


def test_vectors_come_back_as_they_were_put(cache: VectorCache, tmp_path: Path) -> None:
    given = {make_hash(number): make_rows(number, number % 3 + 1) for number in range(1_200)}
    cache.put(given)
    cache.close()
    again = VectorCache(tmp_path)
    again.use("m", 8)
    found = again.get([*given, make_hash(9_999)], "m")
    assert found.keys() == given.keys()
    assert all(np.array_equal(found[key], given[key]) for key in given)
    again.close()


def test_vectors_of_another_model_are_dropped(cache: VectorCache) -> None:
    cache.put({make_hash(1): make_rows(1)})
    cache.use("other", 8)
    assert cache.get([make_hash(1)], "m") == cache.get([make_hash(1)], "other") == {}
    cache.close()


def test_dropped_texts_are_in_no_file(cache: VectorCache, tmp_path: Path) -> None:
    secret = make_rows(7_777)
    cache.put({make_hash(number): make_rows(number) for number in range(50)} | {SECRET.hex(): secret})
    assert any(SECRET in path.read_bytes() for path in tmp_path.iterdir())
    cache.keep(make_hash(number) for number in range(40))
    assert cache.count() == 40
    cache.put({make_hash(60): make_rows(60)})
    cache.close()
    for path in tmp_path.iterdir():
        assert SECRET not in path.read_bytes()
        assert secret.tobytes() not in path.read_bytes()


@pytest.mark.parametrize("content", [b"not a database" * 100, b"SQLite format 3\0" + b"\xff" * 9_000])
def test_a_damaged_file_is_begun_again(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    cache = VectorCache(tmp_path)
    cache.use("m", 8)
    cache.put({make_hash(1): make_rows(1)})
    assert cache.count() == 1
    cache.close()


def test_damage_that_is_found_later_costs_the_vectors_and_no_answer(cache: VectorCache, tmp_path: Path) -> None:
    cache.put({make_hash(number): make_rows(number, 40) for number in range(300)})
    cache.close()
    path = tmp_path / FILE
    content = path.read_bytes()
    path.write_bytes(content[:8_192] + b"\xff" * (len(content) - 8_192))
    again = VectorCache(tmp_path)
    again.use("m", 8)
    found = [again.get([make_hash(number)], "m") for number in range(300)]
    assert {} in found
    again.put({make_hash(1): make_rows(1)})
    assert np.array_equal(again.get([make_hash(1)], "m")[make_hash(1)], make_rows(1))
    again.close()


def test_a_copy_has_all_vectors(cache: VectorCache, tmp_path: Path) -> None:
    cache.put({make_hash(1): make_rows(1)})
    target = tmp_path / "copy"
    target.mkdir()
    assert cache.copy(target).keys() == {FILE}
    copied = VectorCache(target)
    assert np.array_equal(copied.get([make_hash(1)], "m")[make_hash(1)], make_rows(1))
    copied.close()
    cache.close()


def test_a_file_that_cannot_be_opened_costs_only_the_cache(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    cache = VectorCache(tmp_path)
    cache.use("model", 2)
    key, rows = "ab" * 32, np.ones((1, 2), np.float16)
    cache.put({key: rows})
    assert cache.get([key], "model") == {}
    (tmp_path / FILE).rmdir()
    cache.put({key: rows})
    assert cache.get([key], "model").keys() == {key}
    cache.close()


def test_a_batch_that_ends_after_the_cache_is_closed_costs_only_its_own_vectors(
    cache: VectorCache, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = {make_hash(number): make_rows(number) for number in range(20)}
    cache.put(given)
    cache.close()
    cache.put({make_hash(99): make_rows(99)})
    cache.use("other", 8)
    assert (cache.get(given, "m"), cache.count(), caplog.records) == ({}, 0, [])
    with pytest.raises(sqlite3.OperationalError, match="closed"):
        cache.copy(tmp_path / "copy")
    again = VectorCache(tmp_path)
    again.use("m", 8)
    assert again.get([*given, make_hash(99)], "m").keys() == given.keys()
    again.close()


def test_an_error_that_is_no_damage_leaves_the_file_as_it_is(
    cache: VectorCache, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache.put({make_hash(1): make_rows(1)})
    with cache._tolerating(), cache._writing() as database:
        database.execute("INSERT INTO vectors VALUES (x'01', NULL)")
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    cache.close()
    again = VectorCache(tmp_path)
    assert again.get([make_hash(1)], "m").keys() == {make_hash(1)}
    again.close()


@pytest.mark.parametrize("table", ["vectors(a, b)", "vectors(text_hash, other)", "space(a)"])
def test_a_file_with_other_columns_is_begun_again(tmp_path: Path, table: str) -> None:
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        database.execute(f"CREATE TABLE {table}")
    cache = VectorCache(tmp_path)
    cache.use("m", 8)
    cache.put({make_hash(1): make_rows(1)})
    assert cache.count() == 1
    cache.close()


def test_a_file_that_cannot_be_written_again_is_removed(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    cache = VectorCache(tmp_path)
    cache.keep([])
    assert not (tmp_path / FILE).exists()
    cache.use("m", 8)
    cache.put({make_hash(1): make_rows(1)})
    assert cache.count() == 1
    cache.close()
