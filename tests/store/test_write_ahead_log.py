"""The checksums of write-ahead logs: damage is found where it is, and a log that a crash has cut is not damage."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Quad, Store

from kg.store.write_ahead_log import find_damage

G = NamedNode("urn:g")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The log of a store that was not flushed: several blocks, with records that go on in the next one."""
    folder: Path = tmp_path_factory.mktemp("unflushed")
    store = Store(str(folder))
    for number in range(40):
        store.add(Quad(NamedNode(f"urn:s{number}"), NamedNode("urn:p"), Literal(f"{number} " * 2_000), G))
    found = max(folder.glob("*.log"), key=lambda path: path.stat().st_size).read_bytes()
    assert len(found) > 3 * 32_768
    return found


def test_find_damage_returns_none_for_logs_of_the_engine(log: bytes, tmp_path: Path) -> None:
    path = tmp_path / "000004.log"
    for content in (log, b"", log[: len(log) // 2], log + bytes(4_096)):  # whole, empty, cut by a crash, allocated
        path.write_bytes(content)
        assert find_damage(path) is None


@pytest.mark.parametrize("part", [0.0, 0.2, 0.5, 0.8, 0.99])
def test_find_damage_returns_the_place_of_a_flipped_byte(log: bytes, tmp_path: Path, part: float) -> None:
    at = int(len(log) * part)
    damaged = bytearray(log)
    damaged[at] ^= 4
    path = tmp_path / "000004.log"
    path.write_bytes(damaged)
    found = find_damage(path)
    assert found is not None
    assert found <= at < found + 32_768
