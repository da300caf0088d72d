"""Damage of write-ahead logs is found where it is. A log that a kill has cut and one in a recycled file have none."""

from __future__ import annotations

import struct
from pathlib import Path

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad, Store

from kg.store.write_ahead_log import find_damage, list_damage

G = NamedNode("urn:g")
NAME = "000008.log"
OLDER = 3
ACKNOWLEDGED = "ACKNOWLEDGED"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The log of a store that was not flushed: several blocks, with records that go on in the next one."""
    folder: Path = tmp_path_factory.mktemp("unflushed")
    store = Store(str(folder))
    for number in range(40):
        store.add(Quad(NamedNode(f"urn:s{number}"), NamedNode("urn:p"), Literal(f"{number} " * 2_000), G))
    path = max(folder.glob("*.log"))
    assert path.name == NAME
    found = path.read_bytes()
    assert len(found) > 3 * 32_768
    return found


def renumber(log: bytes, number: int) -> bytes:
    """Build the log with another number, as in a file before it is recycled."""
    content, at = bytearray(log), 0
    while at + 11 <= len(content):
        block_end = at - at % 32_768 + 32_768
        length, kind = struct.unpack_from("<HB", content, at + 4)
        if at + 11 > block_end or not kind:
            at = block_end
            continue
        struct.pack_into("<I", content, at + 7, number)
        computed = google_crc32c.value(bytes(content[at + 6 : at + 11 + length]))
        struct.pack_into("<I", content, at, (((computed >> 15) | (computed << 17)) + 0xA282EAD8) & 0xFFFFFFFF)
        at += 11 + length
    return bytes(content)


def test_logs_of_the_engine_have_no_damage(log: bytes, tmp_path: Path) -> None:
    path = tmp_path / NAME
    for content in (log, b"", log[: len(log) // 2], log + bytes(4_096)):  # whole, empty, cut by a crash, allocated
        path.write_bytes(content)
        assert find_damage(path) is None


@given(st.integers(0, 100), st.integers(0, 40_000))
def test_a_recycled_log_ends_where_the_bytes_of_the_older_one_begin(
    log: bytes, tmp_path_factory: pytest.TempPathFactory, records: int, skipped: int
) -> None:
    """The older bytes begin at any place of a fragment, and their own fragments are valid."""
    ends = [at for at in fragment_ends(log) if at < len(log) - 100]
    end = ends[records * (len(ends) - 1) // 100]
    older = renumber(log, OLDER)
    path = tmp_path_factory.mktemp("recycled") / NAME
    path.write_bytes(log[:end] + older[end + skipped :])
    assert find_damage(path) is None
    path.write_bytes(older)
    assert find_damage(path) is None


def fragment_ends(log: bytes) -> list[int]:
    """List where the fragments of a log end."""
    ends, at = [], 0
    while at + 11 <= len(log):
        block_end = at - at % 32_768 + 32_768
        length, kind = struct.unpack_from("<HB", log, at + 4)
        if at + 11 > block_end or not kind:
            at = block_end
            continue
        at += 11 + length
        ends.append(at)
    return ends


@pytest.mark.parametrize("part", [0.0, 0.2, 0.5, 0.8, 0.99])
@pytest.mark.parametrize("is_recycled", [False, True])
def test_a_flipped_byte_is_found_where_it_is(log: bytes, tmp_path: Path, part: float, is_recycled: bool) -> None:
    at = int(len(log) * part)
    damaged = bytearray(log)
    damaged[at] ^= 4
    path = tmp_path / NAME
    path.write_bytes(bytes(damaged) + (renumber(log, OLDER)[5:] if is_recycled else b""))
    found = find_damage(path)
    assert found is not None
    assert found <= at < found + 32_768


@pytest.mark.parametrize("byte", range(11))
def test_a_flipped_byte_in_a_header_is_found(log: bytes, tmp_path: Path, byte: int) -> None:
    at = fragment_ends(log)[10]
    damaged = bytearray(log)
    damaged[at + byte] ^= 2
    path = tmp_path / NAME
    path.write_bytes(damaged)
    assert find_damage(path) == at


@pytest.mark.parametrize(
    ("acknowledged", "generation", "is_damaged"),
    [("7", 7, False), ("7", 6, True), ("7", None, True), ("", 7, True), ("none", 7, True)],
)
def test_a_damaged_last_fragment_was_cut_by_a_kill_if_no_acknowledged_commit_is_missing(
    log: bytes, tmp_path: Path, acknowledged: str, generation: int | None, is_damaged: bool
) -> None:
    last = fragment_ends(log)[-2]
    path = tmp_path / NAME
    path.write_bytes(log[: last + 20] + renumber(log, OLDER))
    if acknowledged:
        (tmp_path / ACKNOWLEDGED).write_text(acknowledged)
    assert [found for found, _ in list_damage(tmp_path, generation)] == [path] * is_damaged


def test_missing_commits_are_damage_though_the_log_shows_none(log: bytes, tmp_path: Path) -> None:
    (tmp_path / ACKNOWLEDGED).write_text("9")
    (tmp_path / NAME).write_bytes(b"")
    assert [found.name for found, _ in list_damage(tmp_path, 8)] == [NAME]
    (tmp_path / NAME).unlink()
    assert [found.name for found, _ in list_damage(tmp_path, 8)] == ["missing.log"]
