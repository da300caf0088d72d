"""A kill or a full disk while a shard is optimized loses nothing that was acknowledged."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kg.search.shards import Shards
from kg.search.unit_index import UnitIndex
from kg.search.vector_cache import VectorCache
from tests.adversarial.small_disk import SmallDisk
from tests.search.test_shards import UNITS, WORDS, make_units, put

WRITER = """
import sys, threading
from pathlib import Path
from tests.search.test_shards import add_vectors, open_index, put
index = open_index(Path(sys.argv[1]), most_texts=120)
def optimize():
    while True:
        for name in index.shards.names:
            index.shards.optimize(name)
threading.Thread(target=optimize, daemon=True).start()
for number in range(10_000):
    name = str(number % 40)
    put(index, name, number)
    add_vectors(index)
    if number % 5 == 0:
        index.shards.flush()
    print(name, number, flush=True)
"""

DISK_MB = 300


@pytest.mark.long
def test_a_kill_while_shards_are_written_and_optimized_loses_nothing(tmp_path: Path) -> None:
    chance = random.Random(3)
    folder = tmp_path / "index"
    for _ in range(4):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            first = writer.stdout.readline()
            time.sleep(chance.uniform(1.0, 4.0))
            writer.kill()
            # The last line may be cut off.
            lines = [first, *writer.stdout.read().splitlines(keepends=True)]
        written = dict(line.split() for line in lines if line.endswith("\n"))
        index = UnitIndex(Shards(folder, most_texts=120), lambda _: None, VectorCache(folder))
        state = index.state()
        assert index.shards.lost == 0
        for name, seed in written.items():
            if (held := state.get(f"urn:g:{name}")) is None:
                continue  # being replaced when it was killed, at most one
            assert int(held) >= int(seed)
            units = make_units(name, int(held))
            found = index.rank(units[0].text, [unit.iri for unit in units], None, UNITS, "bm25")
            assert all(each.bm25 > 0 for each in found.candidates[:1])
            assert index.load_codes([unit.iri for unit in units]).keys() == {unit.iri for unit in units}
        assert sum(f"urn:g:{name}" not in state for name in written) <= 1
        ranked = [index.rank(word, None, None, 20, "bm25") for word in WORDS]
        for name in index.shards.names:
            assert len(list((folder / name).glob("edge-*"))) == 1
        index.shards.close()
        for path in folder.glob("shard-*/words.npz"):
            path.unlink()
        again = UnitIndex(Shards(folder, most_texts=120), lambda _: None, VectorCache(folder))
        assert [again.rank(word, None, None, 20, "bm25") for word in WORDS] == ranked, "counted again"
        again.shards.close()


@pytest.mark.long
def test_a_full_disk_leaves_the_shard_as_it_was_until_there_is_room(
    disk: SmallDisk, caplog: pytest.LogCaptureFixture
) -> None:
    index = UnitIndex(Shards(disk.folder / "index"), lambda _: None, VectorCache(disk.folder))
    put(index, "a")
    before = index.rank("wind", None, None, 10, "bm25")
    index.shards.flush()
    disk.fill()
    [name] = index.shards.names
    assert not index.shards.optimize(name)
    assert not index.shards.optimize(name)
    assert len([each for each in caplog.messages if "free space" in each]) == 1, "said once"
    assert [path.name for path in (disk.folder / "index" / name).glob("edge-*")] == ["edge-1"]
    assert index.rank("wind", None, None, 10, "bm25") == before
    disk.free()
    assert index.shards.optimize(name)
    assert index.rank("wind", None, None, 10, "bm25") == before
    index.shards.close()
