"""A kill or a full disk while a shard is optimized loses nothing that was acknowledged."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from kg.errors import IndexUnavailableError
from kg.files import is_unwritable
from kg.search.shards import Shards
from kg.search.unit_index import UnitIndex
from kg.search.vector_cache import VectorCache
from tests.adversarial.small_disk import SmallDisk
from tests.search.test_shards import UNITS, WORDS, add_vectors, list_pids, make_units, open_index, put
from tests.waiting import find_children, is_alive, until

WRITER = """
import sys, threading
from pathlib import Path
from tests.search.test_shards import add_vectors, open_index, put
index = open_index(Path(sys.argv[1]), most_texts=120, processes=int(sys.argv[2]))
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
@pytest.mark.parametrize("processes", [1, 2])
def test_a_kill_while_shards_are_written_and_optimized_loses_nothing(tmp_path: Path, processes: int) -> None:
    chance = random.Random(3)
    folder = tmp_path / "index"
    for _ in range(4):
        command = [sys.executable, "-c", WRITER, str(folder), str(processes)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            first = writer.stdout.readline()
            time.sleep(chance.uniform(1.0, 4.0))
            children = find_children(writer.pid)
            writer.kill()
            # The last line may be cut off.
            lines = [first, *writer.stdout.read().splitlines(keepends=True)]
        until(lambda: not any(is_alive(pid) for pid in children))  # noqa: B023 -- called here
        written = dict(line.split() for line in lines if line.endswith("\n"))
        index = UnitIndex(Shards(folder, most_texts=120), VectorCache(folder), lambda query, number: None)
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
        # A process of shards may be optimizing one, which has two folders for a moment.
        until(lambda: all(len([*(folder / name).glob("edge-*")]) == 1 for name in index.shards.names))  # noqa: B023
        index.shards.close()
        for path in folder.glob("shard-*/words.npz"):
            path.unlink()
        again = UnitIndex(Shards(folder, most_texts=120), VectorCache(folder), lambda query, number: None)
        assert [again.rank(word, None, None, 20, "bm25") for word in WORDS] == ranked, "counted again"
        again.shards.close()


@pytest.mark.long
def test_a_full_disk_leaves_the_shard_as_it_was_until_there_is_room(
    disk: SmallDisk, caplog: pytest.LogCaptureFixture
) -> None:
    index = UnitIndex(Shards(disk.folder / "index"), VectorCache(disk.folder), lambda query, number: None)
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


@pytest.mark.long
def test_a_full_disk_while_shards_are_opened_deletes_none(disk: SmallDisk) -> None:
    folder = disk.folder / "index"
    index = open_index(folder)
    put(index, "a")
    before = index.rank("wind", None, None, 10, "bm25")
    index.shards.close()
    disk.fill()
    with pytest.raises(Exception, match="No space left") as raised:
        open_index(folder)
    assert is_unwritable(raised.value)
    disk.free()
    again = open_index(folder)
    assert not again.shards.lost
    assert again.rank("wind", None, None, 10, "bm25") == before
    again.shards.close()


@pytest.mark.long
def test_kills_of_a_process_of_shards_lose_no_write_and_stop_no_search(tmp_path: Path) -> None:
    index = open_index(tmp_path / "index", most_texts=60, processes=2)
    for name in map(str, range(12)):
        put(index, name)
    stop = threading.Event()
    raised: list[Exception] = []

    def kill() -> None:
        chance = random.Random(4)
        while not stop.wait(chance.uniform(0.2, 2.0)):
            for pid in list_pids(index):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def search() -> None:
        chance = random.Random(5)
        while not stop.is_set():
            try:
                with index.shards.tolerating():
                    assert index.rank(chance.choice(WORDS), None, None, 10).candidates
            except Exception as error:  # noqa: BLE001 -- asserted below
                raised.append(error)

    threads = [threading.Thread(target=work) for work in (kill, search)]
    for thread in threads:
        thread.start()
    acknowledged: dict[str, int] = {}
    end = time.monotonic() + 12
    seed = 0
    while time.monotonic() < end:
        seed += 1
        name = str(seed % 12)
        try:
            put(index, name, seed)
            add_vectors(index)
        except IndexUnavailableError:  # killed twice: the client writes the graph again
            acknowledged.pop(name, None)
        else:
            acknowledged[name] = seed
    stop.set()
    for thread in threads:
        thread.join()
    assert raised == []
    index.shards.close()
    for name in map(str, range(12)):
        acknowledged.setdefault(name, 0)
    again, other = open_index(tmp_path / "index"), open_index(tmp_path / "other")
    for name, seed in acknowledged.items():
        put(other, name, seed)
        if again.state().get(f"urn:g:{name}") != str(seed):
            assert seed == 0, "it was acknowledged"
            put(again, name, seed)
    add_vectors(other)
    add_vectors(again)
    assert again.counts() == other.counts()
    for word in WORDS:
        assert again.rank(word, None, None, 20) == other.rank(word, None, None, 20)
    again.shards.close()
    other.shards.close()
