"""Vectors are kept by model and hash of their text, until they are dropped."""

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
    cache.use(0, "m", 8)
    return cache


def test_vectors_come_back_as_they_were_put(cache: VectorCache, tmp_path: Path) -> None:
    given = {make_hash(number): make_rows(number, number % 3 + 1) for number in range(1_200)}
    cache.put("m", given)
    cache.close()
    again = VectorCache(tmp_path)
    again.use(0, "m", 8)
    found = again.get([*given, make_hash(9_999)], "m")
    assert found.keys() == given.keys()
    assert all(np.array_equal(found[key], given[key]) for key in given)
    again.close()


def test_only_the_model_that_had_the_slot_loses_its_vectors(cache: VectorCache) -> None:
    """A model that changes its slot keeps its vectors."""
    key = make_hash(1)
    cache.use(1, "n", 4)
    cache.put("m", {key: make_rows(1)})
    cache.put("n", {key: make_rows(2)})
    cache.use(0, "n", 4)
    cache.use(1, "m", 8)
    assert [cache.get([key], model)[key].shape for model in ("m", "n")] == [(2, 8), (4, 4)]
    cache.use(1, "other", 8)
    assert [len(cache.get([key], model)) for model in ("m", "n", "other")] == [0, 1, 0]
    cache.put("m", {key: make_rows(1)})
    assert cache.count("m") == 0
    cache.close()


def test_a_file_of_one_model_is_taken_over(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        database.executescript(
            "CREATE TABLE space (name TEXT NOT NULL, dimensions INTEGER NOT NULL); INSERT INTO space VALUES ('m', 8);"
            "CREATE TABLE vectors (text_hash BLOB PRIMARY KEY, rows BLOB NOT NULL);"
        )
        database.execute("INSERT INTO vectors VALUES (?, ?)", (bytes.fromhex(make_hash(1)), make_rows(1).tobytes()))
        database.commit()
    cache = VectorCache(tmp_path)
    cache.use(0, "m", 8)
    cache.use(1, "n", 4)
    cache.keep([make_hash(1)])
    assert np.array_equal(cache.get([make_hash(1)], "m")[make_hash(1)], make_rows(1))
    cache.close()


def test_dropped_texts_are_in_no_file(cache: VectorCache, tmp_path: Path) -> None:
    secret = make_rows(7_777)
    cache.put("m", {make_hash(number): make_rows(number) for number in range(50)} | {SECRET.hex(): secret})
    assert any(SECRET in path.read_bytes() for path in tmp_path.iterdir())
    cache.keep(make_hash(number) for number in range(40))
    assert cache.count("m") == 40
    cache.put("m", {make_hash(60): make_rows(60)})
    cache.close()
    for path in tmp_path.iterdir():
        assert SECRET not in path.read_bytes()
        assert secret.tobytes() not in path.read_bytes()


@pytest.mark.parametrize("content", [b"not a database" * 100, b"SQLite format 3\0" + b"\xff" * 9_000])
def test_a_damaged_file_is_begun_again(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    cache = VectorCache(tmp_path)
    cache.use(0, "m", 8)
    cache.put("m", {make_hash(1): make_rows(1)})
    assert cache.count("m") == 1
    cache.close()


def test_damage_that_is_found_later_costs_the_vectors_and_no_answer(cache: VectorCache, tmp_path: Path) -> None:
    cache.put("m", {make_hash(number): make_rows(number, 40) for number in range(300)})
    cache.close()
    path = tmp_path / FILE
    content = path.read_bytes()
    path.write_bytes(content[:8_192] + b"\xff" * (len(content) - 8_192))
    again = VectorCache(tmp_path)
    again.use(0, "m", 8)
    found = [again.get([make_hash(number)], "m") for number in range(300)]
    assert {} in found
    again.put("m", {make_hash(1): make_rows(1)})
    assert np.array_equal(again.get([make_hash(1)], "m")[make_hash(1)], make_rows(1))
    again.close()


def test_a_copy_has_all_vectors(cache: VectorCache, tmp_path: Path) -> None:
    cache.put("m", {make_hash(1): make_rows(1)})
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
    cache.use(0, "model", 2)
    key, rows = "ab" * 32, np.ones((1, 2), np.float16)
    cache.put("model", {key: rows})
    assert cache.get([key], "model") == {}
    (tmp_path / FILE).rmdir()
    cache.put("model", {key: rows})
    assert cache.get([key], "model").keys() == {key}
    cache.close()


def test_a_batch_that_ends_after_the_cache_is_closed_costs_only_its_own_vectors(
    cache: VectorCache, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = {make_hash(number): make_rows(number) for number in range(20)}
    cache.put("m", given)
    cache.close()
    cache.put("m", {make_hash(99): make_rows(99)})
    cache.use(0, "other", 8)
    assert (cache.get(given, "m"), cache.count("m"), caplog.records) == ({}, 0, [])
    with pytest.raises(sqlite3.OperationalError, match="closed"):
        cache.copy(tmp_path / "copy")
    again = VectorCache(tmp_path)
    again.use(0, "m", 8)
    assert again.get([*given, make_hash(99)], "m").keys() == given.keys()
    again.close()


def test_an_error_that_is_no_damage_leaves_the_file_as_it_is(
    cache: VectorCache, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache.put("m", {make_hash(1): make_rows(1)})
    with cache._tolerating(), cache._writing() as database:
        database.execute("INSERT INTO vectors_1 VALUES (x'01', NULL)")
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    cache.close()
    again = VectorCache(tmp_path)
    assert again.get([make_hash(1)], "m").keys() == {make_hash(1)}
    again.close()


@pytest.mark.parametrize(
    "table",
    ["models(a)", "space(a)", "models(id, slot, name, dimensions); INSERT INTO models VALUES (1, 0, 'm', 8)"],
)
def test_a_file_with_other_columns_is_begun_again(tmp_path: Path, table: str) -> None:
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        database.executescript(f"CREATE TABLE {table}")
    cache = VectorCache(tmp_path)
    cache.use(0, "m", 8)
    cache.put("m", {make_hash(1): make_rows(1)})
    assert cache.count("m") == 1
    cache.close()


def test_a_file_that_cannot_be_written_again_is_removed(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    cache = VectorCache(tmp_path)
    cache.keep([])
    assert not (tmp_path / FILE).exists()
    cache.use(0, "m", 8)
    cache.put("m", {make_hash(1): make_rows(1)})
    assert cache.count("m") == 1
    cache.close()
