"""Several shards answer as one does, and a lost one is missing alone."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np
import pytest
import qdrant_edge as qe

from kg.errors import IndexUnavailableError
from kg.processes import rpc
from kg.search import shard, shard_group, shard_process
from kg.search.points import LANGUAGE, Hits, Precision, VectorSpace
from kg.search.protocol import IndexedUnit, Mode, Ranking
from kg.search.shard import Shard
from kg.search.shards import Shards, compact_folders
from kg.search.unit_index import UnitIndex
from kg.search.vector_cache import VectorCache
from tests.waiting import is_alive, until

DIMENSIONS = 16
GRAPHS = 24
UNITS = 12
SPACE = VectorSpace("made up", DIMENSIONS)
MODES: tuple[Mode, ...] = ("hybrid", "bm25", "dense")
WORDS = [f"{start}{end}" for start in ("wind", "solar", "tax", "river", "forest") for end in ("", "er", "land", "ing")]


def embed(text: str) -> Sequence[float]:
    vector = np.random.default_rng([ord(each) for each in text]).standard_normal(DIMENSIONS)
    found: list[float] = (vector / np.linalg.norm(vector)).tolist()
    return found


def make_text(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, weights=range(1, len(WORDS) + 1), k=chance.randint(3, 40)))


def make_units(name: str, seed: int, units: int = UNITS) -> list[IndexedUnit]:
    chance = random.Random(f"{name} {seed}")
    return [
        IndexedUnit(
            f"urn:u:{name}:{number}",
            f"urn:g:{name}",
            f"urn:d:{name}",
            make_text(chance),
            language=("en", "de", None)[number % 3],
            codes={"place": [("KEN", "BRA")[number % 2]]},
        )
        for number in range(units)
    ]


def put(index: UnitIndex, name: str, seed: int = 0, units: int = UNITS) -> None:
    graph = f"urn:g:{name}"
    index.begin([graph])
    index.put(make_units(name, seed, units))
    index.finish({graph: str(seed)})


def add_vectors(index: UnitIndex) -> None:
    while waiting := index.pending("dense", 500):
        index.set_vectors(
            "dense",
            {id_: (digest, np.array([embed(text)], np.float16)) for id_, (digest, text) in waiting.items()},
        )


def by_id(hits: Hits) -> dict[int, float]:
    return dict(zip(hits.ids.tolist(), hits.scores.tolist(), strict=True))


def open_index(
    folder: Path, *, most_texts: int = 10_000, precision: Precision = "original", processes: int = 1
) -> UnitIndex:
    shards = Shards(
        folder,
        exact_vectors=10_000 if precision == "original" else 0,
        rescored_vectors=0 if precision == "quantized" else 10_000,
        most_texts=most_texts,
        processes=processes,
    )
    index = UnitIndex(shards, VectorCache(folder), lambda text, number: embed(text))
    index.use_model(0, SPACE.model, SPACE.dimensions, None)
    return index


def fill(index: UnitIndex) -> None:
    for number in range(GRAPHS):
        put(index, str(number))
    for number in range(0, GRAPHS, 3):  # again, with other texts
        put(index, str(number), 1)
    index.remove(["urn:g:5", "urn:g:17"])
    add_vectors(index)


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UnitIndex]:
    index = open_index(tmp_path_factory.mktemp("one"))
    fill(index)
    yield index
    index.shards.close()


@pytest.fixture(scope="module", params=[1, 2], ids=["in one process", "in two processes"])
def four(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[UnitIndex]:
    """The same units in four shards."""
    index = open_index(tmp_path_factory.mktemp("four"), most_texts=GRAPHS * UNITS // 4, processes=request.param)
    fill(index)
    yield index
    index.shards.close()


@pytest.mark.long
def test_graphs_leave_a_shard_with_more_texts_than_a_lower_limit(tmp_path: Path) -> None:
    index = open_index(tmp_path)
    fill(index)
    before, ranking = index.counts(), index.rank("wind solar", None, None, 20)
    assert len(index.shards.names) == 1
    index.shards.close()
    index = open_index(tmp_path, most_texts=4 * UNITS)
    for graph, state in sorted(index.state().items()):
        index.begin([graph])
        index.put(make_units(graph.rpartition(":")[2], int(state)))
        index.finish({graph: state})
    add_vectors(index)
    assert index.counts() == before
    assert all(texts <= 5 * UNITS for texts in index.shards.count_texts().values())
    homes: dict[str, set[str]] = {}
    for name, _, payload in index.shards.scroll({"fields": []}, ["graph", "graph_iri"]):
        homes.setdefault(payload.get("graph") or payload["graph_iri"], set()).add(name)
    assert len(homes) == GRAPHS - 2
    assert all(len(names) == 1 for names in homes.values())
    assert index.rank("wind solar", None, None, 20).candidates == ranking.candidates
    index.shards.close()


def list_pids(index: UnitIndex) -> list[int]:
    """The processes of shards, without this one."""
    connections = [process._connection for process in index.shards._processes]
    return [connection.child.process.pid for connection in connections if connection is not None]


def ask_all(index: UnitIndex) -> list[Ranking]:
    """Ask 200 queries in all modes, with and without filters."""
    chance = random.Random(1)
    found = []
    for number in range(200):
        query = " ".join(chance.sample(WORDS, chance.randint(1, 5)))
        mode: Mode = MODES[number % 3]
        codes = [{"place": ["KEN"]}] if number % 4 == 0 else []
        parents = [f"urn:d:{each}" for each in range(number % 20 + 1)] if number % 5 == 0 else None
        must = [chance.choice(WORDS)] if number % 7 == 0 else []
        limit = (1, 10, 50)[number % 3]
        found.append(index.rank(query, None, parents, limit, mode, must, codes))
    units = [unit.iri for unit in make_units("3", 1)]
    return [*found, index.rank("wind taxland", units, None, 5)]


def test_four_shards_answer_as_one(one: UnitIndex, four: UnitIndex) -> None:
    assert (len(one.shards.names), len(four.shards.names)) == (1, 4)
    assert one.state() == four.state()
    assert one.counts() == four.counts()
    assert ask_all(one) == ask_all(four)
    assert one.count(["place"], [{"place": ["KEN"]}]) == four.count(["place"], [{"place": ["KEN"]}])


@pytest.mark.long
def test_shards_are_divided_among_processes_and_one_needs_no_other(tmp_path: Path) -> None:
    index = open_index(tmp_path, most_texts=UNITS, processes=3)
    put(index, "a")
    assert list_pids(index) == []
    for name in "bcdef":
        put(index, name)
    assert len(list_pids(index)) == 2
    assert sorted(len(process.names) for process in index.shards._processes) == [2, 2]
    before = index.rank("wind", None, None, 50, "bm25")
    index.shards.close()
    index = open_index(tmp_path, most_texts=UNITS, processes=2)
    assert [len(process.names) for process in index.shards._processes] == [3]
    assert index.rank("wind", None, None, 50, "bm25") == before
    index.shards.close()
    assert list_pids(index) == []


def test_a_process_that_is_killed_is_started_again_and_asked_again(tmp_path: Path) -> None:
    index = open_index(tmp_path, most_texts=UNITS, processes=2)
    for name in "abcd":
        put(index, name)
    add_vectors(index)
    expected = [index.rank(word, None, None, 20) for word in WORDS]
    index._rankings.clear()
    found = []
    for number, word in enumerate(WORDS):
        if number % 8 == 0:
            [pid] = list_pids(index)
            os.kill(pid, signal.SIGKILL)
        found.append(index.rank(word, None, None, 20))
    assert found == expected
    [pid] = list_pids(index)
    os.kill(pid, signal.SIGKILL)
    put(index, "b", 1)
    assert index.state()["urn:g:b"] == "1"
    units = [unit.iri for unit in make_units("b", 1)]
    assert index.load_codes(units).keys() == {*units}
    index.shards.close()


@pytest.mark.long
def test_a_process_that_keeps_dying_is_left_out_of_searches_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = open_index(tmp_path, most_texts=UNITS, processes=2)
    for name in "abcd":
        put(index, name)
    whole = index.rank("wind", None, None, 50, "bm25")
    [process] = index.shards._processes
    command = process._build_command()
    monkeypatch.setattr(process, "_build_command", lambda: [sys.executable, "-c", ""])
    [pid] = list_pids(index)
    os.kill(pid, signal.SIGKILL)
    index._rankings.clear()
    with index.shards.tolerating() as silent:
        part = index.rank("wind", None, None, 50, "bm25")
    assert silent == {*process.names}
    iris = {each.iri for each in part.candidates}
    assert iris < {each.iri for each in whole.candidates}
    assert {iri.split(":")[2] for iri in iris} == {"a", "c"}
    for read in (lambda: index.count(["place"]), lambda: index.rank("wind", None, None, 50, "bm25")):
        with pytest.raises(IndexUnavailableError):
            read()
    with pytest.raises(IndexUnavailableError):
        put(index, "b", 1)
    monkeypatch.setattr(process, "_build_command", lambda: command)
    monkeypatch.setattr(rpc, "_PAUSE_S", 0.0)
    with index.shards.tolerating() as silent:
        assert index.rank("solar", None, None, 50, "bm25").candidates
    assert silent == set()
    put(index, "b", 1)
    assert index.state()["urn:g:b"] == "1"
    index.shards.close()


@pytest.mark.long
def test_a_write_waits_for_a_process_that_a_search_does_not_wait_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_process, "_READING_S", 0.2)
    monkeypatch.setattr(shard_process, "_FIRST_READING_S", 0.2)
    index = open_index(tmp_path, most_texts=UNITS, processes=2)
    for name in "abc":
        put(index, name)
    [pid] = list_pids(index)
    os.kill(pid, signal.SIGSTOP)
    going_on = Timer(1.5, os.kill, (pid, signal.SIGCONT))
    going_on.start()
    with index.shards.tolerating() as silent:
        index.rank("wind", None, None, 50, "bm25")
    assert silent
    put(index, "d")  # begins with reads: which shard has room, and which has the texts
    assert not going_on.is_alive()
    assert index.state().keys() == {f"urn:g:{name}" for name in "abcd"}
    assert list_pids(index) == [pid]
    index.shards.close()


@pytest.mark.long
def test_nothing_is_kept_of_an_answer_without_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = open_index(tmp_path, most_texts=UNITS, processes=2)
    for name in "abcd":
        put(index, name)

    def ask() -> list[object]:
        in_kenya = [{"place": ["KEN"]}]
        rankings = [index.rank("wind", None, None, 50, "bm25", codes=codes) for codes in ((), in_kenya)]
        return [index.counts(), *rankings, index.count(["place"])]

    [process] = index.shards._processes
    command = process._build_command()
    monkeypatch.setattr(process, "_build_command", lambda: [sys.executable, "-c", ""])
    [pid] = list_pids(index)
    os.kill(pid, signal.SIGKILL)
    with index.shards.tolerating() as silent:
        part = ask()
    assert silent == {*process.names}
    monkeypatch.setattr(process, "_build_command", lambda: command)
    monkeypatch.setattr(rpc, "_PAUSE_S", 0.0)
    found = ask()
    assert found != part
    index.shards.close()
    index = open_index(tmp_path, most_texts=UNITS)
    assert found == ask()
    index.shards.close()


@pytest.mark.long
def test_an_index_whose_process_lost_a_shard_is_to_be_opened_again(tmp_path: Path) -> None:
    index = open_index(tmp_path, most_texts=UNITS, processes=2)
    told: list[bool] = []
    index.shards._on_lost = lambda: told.append(True)
    for name in "abc":
        put(index, name)
    [process] = index.shards._processes
    [pid] = list_pids(index)
    os.kill(pid, signal.SIGKILL)
    (tmp_path / process.names[0] / "index.json").write_text("{", "utf-8")
    index.shards.count()
    assert told == [True]
    index.shards.close()
    index = open_index(tmp_path, most_texts=UNITS, processes=2)
    assert index.shards.lost == 1
    assert len(index.state()) < 3
    index.shards.close()


@pytest.mark.long
def test_processes_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from tests.search.test_shards import *\n"
        "index = open_index(Path(sys.argv[1]), most_texts=UNITS, processes=3)\n"
        "for name in 'abcd': put(index, name)\n"
        "print(*list_pids(index), flush=True); input()"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        parent.kill()
    assert len(pids) == 2
    until(lambda: not any(is_alive(pid) for pid in pids))
    index = open_index(tmp_path, most_texts=UNITS)
    assert len(index.state()) == 4
    index.shards.close()


@pytest.mark.long
@pytest.mark.parametrize("precision", ["rescored", "quantized"])
def test_quantized_vectors_find_the_same(tmp_path: Path, precision: Precision) -> None:
    """Approximate search: of the first ten by meaning, 99 % are those of an exact search."""
    exact, quick = open_index(tmp_path / "exact"), open_index(tmp_path / "quick", most_texts=60, precision=precision)
    for index in (exact, quick):
        fill(index)
    for name in quick.shards.names:
        assert quick.shards.optimize(name)
    same = 0
    chance = random.Random(2)
    for _ in range(50):
        query = make_text(chance)
        pages = [
            {each.iri for each in index.rank(query, None, None, 10, "dense").candidates} for index in (exact, quick)
        ]
        same += len(pages[0] & pages[1])
    assert same >= 0.99 * 500
    exact.shards.close()
    quick.shards.close()


def test_a_unit_that_moves_to_a_graph_in_another_shard_is_there_once(tmp_path: Path) -> None:
    index = open_index(tmp_path, most_texts=UNITS)
    put(index, "a")
    put(index, "b")
    assert len(index.shards.names) == 2
    [moved, *_] = make_units("a", 0)
    index.begin(["urn:g:b"])
    index.put([IndexedUnit(moved.iri, "urn:g:b", moved.parent, "geothermal")])
    index.finish({"urn:g:b": "1"})
    assert index.counts()[0] == UNITS
    assert [each.iri for each in index.rank("geothermal", None, None, 10, "bm25").candidates] == [moved.iri]
    index.shards.close()


def test_texts_are_counted_again_only_when_a_shard_may_be_full_or_may_have_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = open_index(tmp_path, most_texts=5 * UNITS)
    counts: list[dict[str, int]] = []
    count_texts = index.shards.count_texts

    def count() -> dict[str, int]:
        counts.append(count_texts())
        return counts[-1]

    monkeypatch.setattr(index.shards, "count_texts", count)
    for number in range(10):
        put(index, f"g{number}")
    assert count_texts() == {"shard-1": 5 * UNITS, "shard-2": 5 * UNITS}
    assert len(counts) <= 5
    for seed in range(1, 7):  # in place of others: there are no more texts than before
        put(index, "g9", seed)
    index.remove(["urn:g:g1", "urn:g:g8"])
    put(index, "more")
    put(index, "further")
    assert count_texts() == {"shard-1": 5 * UNITS, "shard-2": 5 * UNITS}
    index.shards.close()


def test_a_replaced_graph_stays_in_its_shard(tmp_path: Path) -> None:
    index = open_index(tmp_path, most_texts=UNITS)
    put(index, "a")
    put(index, "b")
    for seed in range(1, 4):
        put(index, "a", seed)
    assert len(index.shards.names) == 2
    assert [*index.shards.count_texts().values()] == [UNITS, UNITS]
    index.shards.close()


@pytest.mark.long
@pytest.mark.parametrize("damage", ["missing", "record", "segments", "texts"])
def test_a_lost_shard_is_missing_alone_until_its_graphs_are_there_again(tmp_path: Path, damage: str) -> None:
    index = open_index(tmp_path, most_texts=UNITS)
    for name in ("a", "b", "c"):
        put(index, name)
    before = index.rank("wind", None, None, 50, "bm25")
    index.shards.close()
    lost = tmp_path / "shard-2"
    if damage == "missing":
        shutil.rmtree(lost)
    elif damage == "record":
        (lost / "index.json").write_text("{", "utf-8")
    elif damage == "texts":  # as without a segment that does not have the marker of their graph
        edge = qe.EdgeShard.load(str(lost / "edge-1"))
        units = qe.Filter(must=[qe.FieldCondition("kind", match=qe.MatchValue("unit"))])
        edge.update(qe.UpdateOperation.delete_points_by_filter(units))
        edge.flush()
        edge.close()
    else:
        for path in (lost / "edge-1" / "segments").rglob("*"):
            if path.is_file():
                path.write_bytes(b"\0\xff" * 32)
    for _ in range(2):
        index = open_index(tmp_path, most_texts=UNITS)
        assert index.state() == {"urn:g:a": "0", "urn:g:c": "0"}
        assert index.shards.lost == 1, "also after another start"
        index.shards.close()
    index = open_index(tmp_path, most_texts=UNITS)
    put(index, "b")
    index.shards.note_complete()
    assert index.rank("wind", None, None, 50, "bm25") == before
    assert len(index.shards.names) == 3
    index.shards.close()
    index = open_index(tmp_path, most_texts=UNITS)
    assert index.shards.lost == 0
    index.shards.close()


@pytest.mark.long
@pytest.mark.parametrize("damage", ["missing", "garbage", "short", "not ASCII"])
def test_without_the_key_of_its_ids_an_index_is_made_again(tmp_path: Path, damage: str) -> None:
    index = open_index(tmp_path, most_texts=UNITS)
    for name in ("a", "b"):
        put(index, name)
    before = index.rank("wind", None, None, 50, "bm25")
    index.shards.close()
    key = tmp_path / "ids.key"
    first = key.read_text("ascii")
    if damage == "missing":
        key.unlink()
    else:
        key.write_text({"garbage": "x" * 32, "short": first[:-2], "not ASCII": "\u00e9" * 32}[damage], "utf-8")
    index = open_index(tmp_path, most_texts=UNITS)
    assert key.read_text("ascii") not in ("", first)
    assert (index.shards.lost, index.state(), index.counts()) == (2, {}, (0, 0, 0))
    for name in ("a", "b"):
        put(index, name)
    index.shards.note_complete()
    assert index.rank("wind", None, None, 50, "bm25") == before
    index.shards.close()


@pytest.mark.parametrize(("version", "level"), [(5, "WARNING"), (None, "ERROR")])
def test_an_index_of_an_earlier_version_is_no_damage(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, version: int | None, level: str
) -> None:
    index = open_index(tmp_path, most_texts=UNITS)
    put(index, "a")
    index.shards.close()
    (tmp_path / "ids.key").unlink()
    record = tmp_path / "shard-1" / "index.json"
    if version is not None:
        record.write_text(json.dumps(json.loads(record.read_text("utf-8")) | {"version": version}), "utf-8")
    index = open_index(tmp_path, most_texts=UNITS)
    assert [each.levelname for each in caplog.records] == [level]
    assert (index.shards.lost, index.state()) == (1, {})
    index.shards.close()
    caplog.clear()
    open_index(tmp_path, most_texts=UNITS).shards.close()
    assert not caplog.records


@pytest.mark.long
def test_a_shard_of_an_index_with_another_key_is_indexed_again(tmp_path: Path) -> None:
    index, other = (open_index(tmp_path / name, most_texts=UNITS) for name in ("index", "other"))
    for each in (index, other):
        for name in ("a", "b"):
            put(each, name)
        each.shards.close()
    before = open_index(tmp_path / "index", most_texts=UNITS)
    expected = before.rank("wind", None, None, 50, "bm25")
    before.shards.close()
    shutil.rmtree(tmp_path / "index" / "shard-2")
    shutil.copytree(tmp_path / "other" / "shard-2", tmp_path / "index" / "shard-2")
    index = open_index(tmp_path / "index", most_texts=UNITS)
    assert (index.shards.lost, [*index.state()], index.counts()[0]) == (1, ["urn:g:a"], UNITS)
    put(index, "b")
    index.shards.note_complete()
    assert index.rank("wind", None, None, 50, "bm25") == expected
    index.shards.close()
    index = open_index(tmp_path / "index", most_texts=UNITS)
    assert (index.shards.lost, [*index.state()]) == (0, ["urn:g:a", "urn:g:b"])
    index.shards.close()


@pytest.mark.long
@pytest.mark.parametrize("source", ["copy of another", "earlier state"])
def test_graphs_that_two_shards_have_are_indexed_again(tmp_path: Path, source: str) -> None:
    folder, earlier = tmp_path / "index", tmp_path / "earlier"
    index = open_index(folder, most_texts=UNITS)
    for name in ("a", "b"):
        put(index, name)
    index.shards.close()
    shutil.copytree(folder / "shard-1", earlier)
    index = open_index(folder, most_texts=UNITS)
    if source == "earlier state":  # of a graph that is in another shard since
        index.remove(["urn:g:a"])
        put(index, "c")
        put(index, "a", 5)
    wanted = index.state()
    before = index.rank("wind", None, None, 50, "bm25")
    index.shards.close()
    replaced = folder / ("shard-2" if source == "copy of another" else "shard-1")
    shutil.rmtree(replaced)
    shutil.copytree(earlier, replaced)
    index = open_index(folder, most_texts=UNITS)
    assert index.shards.lost == 1
    assert "urn:g:a" not in index.state(), "the store has to say which one is right"
    for name in wanted.keys() - index.state().keys():
        put(index, name.rpartition(":")[2], int(wanted[name]))
    index.shards.note_complete()
    assert index.state() == wanted
    assert index.rank("wind", None, None, 50, "bm25") == before
    index.shards.close()
    index = open_index(folder, most_texts=UNITS)
    assert index.shards.lost == 0
    index.shards.close()


def test_only_folders_that_the_index_made_are_shards(tmp_path: Path) -> None:
    index = open_index(tmp_path)
    put(index, "a")
    index.shards.close()
    shutil.copytree(tmp_path / "shard-1", tmp_path / "shard-1.bak")
    shutil.copytree(tmp_path / "shard-1", tmp_path / "shard-old")
    index = open_index(tmp_path)
    assert index.shards.names == ("shard-1",)
    assert index.counts()[0] == UNITS
    index.shards.close()


def test_without_the_list_of_shards_none_is_known_to_be_there(tmp_path: Path) -> None:
    index = open_index(tmp_path, most_texts=UNITS)
    for name in ("a", "b"):
        put(index, name)
    index.shards.close()
    (tmp_path / "index.json").unlink()
    shutil.rmtree(tmp_path / "shard-2")
    index = open_index(tmp_path, most_texts=UNITS)
    assert index.shards.lost == 1
    put(index, "b")
    index.shards.note_complete()
    assert index.shards.lost == 0
    index.shards.close()


def test_a_shard_whose_making_was_interrupted_is_made_again_and_is_not_lost(tmp_path: Path) -> None:
    index = open_index(tmp_path, most_texts=UNITS)
    put(index, "a")
    index.shards.close()
    (tmp_path / "shard-2" / "edge-1").mkdir(parents=True)
    index = open_index(tmp_path, most_texts=UNITS)
    assert (index.shards.lost, len(index.shards.names)) == (0, 2)
    assert index.state() == {"urn:g:a": "0"}
    put(index, "b")
    assert index.state() == {"urn:g:a": "0", "urn:g:b": "0"}
    index.shards.close()


def kill(folder: Path, copy: Path) -> UnitIndex:
    """Copy the files as a killed process leaves them, and open them."""
    shutil.copytree(folder, copy)
    return open_index(copy)


def test_the_rarity_of_words_survives_a_kill(tmp_path: Path) -> None:
    index = open_index(tmp_path / "a")
    put(index, "a")
    index.shards.flush()
    put(index, "a", 1)
    put(index, "b")
    index.remove(["urn:g:b"])
    put(index, "c")
    expected: list[Ranking] = [index.rank(word, None, None, 20, "bm25") for word in WORDS]
    again = kill(tmp_path / "a", tmp_path / "b")
    assert [again.rank(word, None, None, 20, "bm25") for word in WORDS] == expected
    again.shards.close()
    journal = tmp_path / "b" / "shard-1" / "words.journal"
    assert not journal.exists()
    index.shards.close()


@pytest.mark.long
@pytest.mark.parametrize("damage", ["missing", "garbage", "other"])
def test_counts_of_words_that_are_lost_or_wrong_are_made_again(tmp_path: Path, damage: str) -> None:
    index = open_index(tmp_path / "a")
    put(index, "a")
    put(index, "b")
    expected = [index.rank(word, None, None, 20, "bm25") for word in WORDS]
    index.shards.close()
    counts = tmp_path / "a" / "shard-1" / "words.npz"
    if damage == "missing":
        counts.unlink()
    elif damage == "garbage":
        counts.write_bytes(b"PK\3\4 not a file")
    else:
        other = open_index(tmp_path / "other")
        put(other, "c", 0, 3)
        other.shards.close()
        counts.write_bytes((tmp_path / "other" / "shard-1" / "words.npz").read_bytes())
    again = open_index(tmp_path / "a")
    assert [again.rank(word, None, None, 20, "bm25") for word in WORDS] == expected
    again.shards.close()


def test_fields_and_vectors_are_those_of_all_shards(tmp_path: Path) -> None:
    index = open_index(tmp_path, most_texts=UNITS)
    put(index, "a")
    put(index, "b")
    assert (index.shards.fields, index.shards.spaces) == (("search", "search_de"), {"dense": SPACE})
    index.shards.close()
    for name in index.shards.names:
        part = Shard(tmp_path / name)
        assert (part.fields, part.spaces) == (("search", "search_de"), {"dense": SPACE})
        part.close()


@pytest.mark.long
def test_vectors_are_created_when_the_first_text_has_them(tmp_path: Path) -> None:
    index = open_index(tmp_path)
    index.use_model(1, "other", 8, frozenset(("de",)))
    put(index, "a", units=20)
    assert index.shards.optimize("shard-1")
    waiting = [*index.pending("dense", 20).items()]
    for rows, (id_, (digest, text)) in enumerate(waiting[:2], 1):
        index.set_vectors("dense", {id_: (digest, np.array([embed(text)] * rows, np.float16))})
        index.shards.flush()
        assert json.loads((tmp_path / "shard-1" / "index.json").read_text())["names"] == ["dense", "dense_rows"][:rows]
    index.shards.close()
    compact_folders(tmp_path)
    index = open_index(tmp_path)
    found = index.shards.search_vectors("dense", embed("solar"), None, 30)
    assert {*found.ids.tolist()} == {id_ for id_, _ in waiting[:2]}
    assert not list((tmp_path / "shard-1").rglob("vector_storage-other*"))
    index.use_model(0, "another", DIMENSIONS * 2, None)
    assert not len(index.shards.search_vectors("dense", embed("solar") * 2, None, 30))
    (id_, (digest, _)), *_ = index.pending("dense", 20).items()
    index.set_vectors("dense", {id_: (digest, np.array([embed("solar") * 2], np.float16))})
    assert index.shards.search_vectors("dense", embed("solar") * 2, None, 30).ids.tolist() == [id_]
    assert index.shards.optimize("shard-1")
    assert index.shards.search_vectors("dense", embed("solar") * 2, None, 30).ids.tolist() == [id_]
    index.shards.close()


def test_an_optimized_shard_has_its_texts_by_language(tmp_path: Path) -> None:
    part = Shard(tmp_path)
    with part._borrow() as edge:
        schema = edge.info().payload_schema
    assert {name for name, field in schema.items() if getattr(field.params, "is_tenant", None)} == {LANGUAGE}
    part.close()


@pytest.mark.long
def test_vectors_are_read_ahead_unless_they_are_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = open_index(tmp_path)
    put(index, "a", units=150)
    add_vectors(index)
    index.shards.close()
    part = Shard(tmp_path / "shard-1")
    assert part.read_vectors() >= 150 * DIMENSIONS * 2
    monkeypatch.setattr(shard, "_FEW_BYTES", 0)
    assert part.read_vectors() == 0
    assert part.optimize()
    quantized = part.read_vectors()
    assert quantized >= 150 * DIMENSIONS
    monkeypatch.setattr(shard, "_FEW_BYTES", 1 << 20)
    assert part.read_vectors() >= quantized + 150 * DIMENSIONS * 2
    part.close()
    shutil.rmtree(part.folder)
    assert part.read_vectors() == 0


@pytest.mark.long
@pytest.mark.parametrize("precision", ["original", "rescored", "quantized"])
def test_the_score_of_a_text_with_several_vectors_is_that_of_the_best(tmp_path: Path, precision: Precision) -> None:
    index = open_index(tmp_path, precision=precision)
    put(index, "a", units=60)
    chance = np.random.default_rng(1)
    made: dict[int, np.ndarray] = {}
    for number, (id_, (digest, _)) in enumerate(index.pending("dense", 100).items()):
        rows = chance.standard_normal((number % 3 + 1, DIMENSIONS))
        made[id_] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
        index.set_vectors("dense", {id_: (digest, made[id_])})
    assert index.counts() == (60, 0, 1)
    if precision != "original":
        assert index.shards.optimize("shard-1")
    vector = embed("solar")
    found = by_id(index.shards.search_vectors("dense", vector, None, 30))
    expected = {id_: float((rows.astype(np.float32) @ np.array(vector)).max()) for id_, rows in made.items()}
    best = sorted(expected, key=lambda id_: -expected[id_])
    assert {*found} == {*best[:30]}
    assert found == pytest.approx({id_: expected[id_] for id_ in best[:30]}, abs=0.002)
    some = [*best[:3], *best[-3:]]
    assert by_id(index.shards.search_vectors("dense", vector, {"ids": some}, 6, exact=True)).keys() == {*some}
    index.shards.close()


def test_a_list_is_not_shorter_for_units_deleted_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = open_index(tmp_path, precision="quantized")
    put(index, "a", units=60)
    add_vectors(index)
    gather = Shards._gather_hits
    deleted: list[int] = []

    def delete_between(self: Shards, operation: str, asked: dict[Any, Any]) -> dict[Any, Hits]:
        hits = gather(self, operation, asked)
        if not deleted:
            deleted.extend(next(iter(hits.values())).ids[:1].tolist())
            index.shards.delete(deleted)
        return hits

    monkeypatch.setattr(Shards, "_gather_hits", delete_between)
    found = index.shards.search_vectors("dense", embed("solar"), None, 30)
    assert len({*found.ids.tolist()}) == 30
    assert {*deleted} < {*found.ids.tolist()}
    index.shards.close()


def count_searches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note the folder of a shard at each search in it by meaning."""
    noted: list[str] = []
    search = Shard.search_vectors

    def note(self: Shard, *arguments: Any, **options: Any) -> Hits:
        noted.append(self.folder.name)
        return search(self, *arguments, **options)

    monkeypatch.setattr(Shard, "search_vectors", note)
    return noted


def read(encoded: dict[str, str]) -> dict[int, float]:
    return by_id(Hits.decode(encoded))


@pytest.mark.long
def test_more_hits_of_a_search_are_found_without_another_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = open_index(tmp_path, most_texts=60)
    fill(index)
    group, vector = index.shards._group, embed("solar tax")
    noted = count_searches(monkeypatch)
    few = read(group.search_vectors("dense", vector, None, 20, "original"))
    scans = len(noted)
    more = read(group.search_vectors("dense", vector, None, 40, "original"))
    assert scans >= len(index.shards.names) > 3
    assert len(noted) == scans
    put(index, "other")
    assert few.items() <= more.items() == read(group.search_vectors("dense", vector, None, 40, "original")).items()
    assert len(noted) > scans  # since an update was made
    assert read(group.search_vectors("dense", embed("wind"), None, 40, "original")) != more
    index.shards.close()


@pytest.mark.long
def test_a_shard_with_most_of_the_best_hits_is_asked_for_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = open_index(tmp_path, most_texts=UNITS)
    for name in "abcdef":
        put(index, name)
    waiting = index.pending("dense", 500)
    near, far = embed("solar"), [-each for each in embed("solar")]
    first = index.shards._group.parts["shard-1"].find([*waiting])
    index.set_vectors(
        "dense",
        {id_: (digest, np.array([near if id_ in first else far], np.float16)) for id_, (digest, _) in waiting.items()},
    )
    noted = count_searches(monkeypatch)
    monkeypatch.setattr(shard_group, "_AHEAD", 1)
    assert {*index.shards.search_vectors("dense", near, None, UNITS).ids.tolist()} == {*first}
    assert noted.count("shard-1") == 2
    assert noted.count("shard-2") == 1
    index.shards.close()


@pytest.mark.parametrize("chance", [*map(random.Random, range(4))])
def test_a_list_of_any_length_is_that_of_a_shard_that_has_all(
    one: UnitIndex, four: UnitIndex, chance: random.Random
) -> None:
    vector, text = embed(make_text(chance)), make_text(chance)
    for limit in sorted(chance.choices(range(1, 200), k=6)):
        for search in ("search_vectors", "search_words"):
            given = ("dense", vector) if search == "search_vectors" else (text, None)
            found, expected = (getattr(index.shards, search)(*given, None, limit) for index in (four, one))
            assert len(found) == len(expected) == limit
            assert found.scores == pytest.approx(expected.scores, abs=2e-4)
