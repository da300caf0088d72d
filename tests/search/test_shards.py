"""Several shards answer as one does, and a lost one is missing alone."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from kg.search.points import VectorSpace
from kg.search.protocol import IndexedUnit, Ranking
from kg.search.shard import Shard
from kg.search.shards import Shards
from kg.search.unit_index import UnitIndex
from kg.search.vector_cache import VectorCache

DIMENSIONS = 16
GRAPHS = 24
UNITS = 12
SPACE = VectorSpace("made up", DIMENSIONS)
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
    while waiting := index.pending(500):
        index.set_vectors(
            {id_: (digest, np.array([embed(texts[0])], np.float16)) for id_, (digest, texts) in waiting.items()}
        )


def open_index(folder: Path, *, most_texts: int = 10_000, exact_vectors: int = 10_000) -> UnitIndex:
    index = UnitIndex(Shards(folder, exact_vectors=exact_vectors, most_texts=most_texts), embed, VectorCache(folder))
    index.shards.use_space(SPACE)
    return index


def fill(index: UnitIndex) -> None:
    for number in range(GRAPHS):
        put(index, str(number))
    for number in range(0, GRAPHS, 3):  # again, with other texts
        put(index, str(number), 1)
    index.remove(["urn:g:5", "urn:g:17"])
    add_vectors(index)


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[UnitIndex, UnitIndex]]:
    """The same units in one shard and in four."""
    folder = tmp_path_factory.mktemp("shards")
    one, four = open_index(folder / "one"), open_index(folder / "four", most_texts=GRAPHS * UNITS // 4)
    for index in (one, four):
        fill(index)
    yield one, four
    one.shards.close()
    four.shards.close()


def test_four_shards_answer_as_one(indexes: tuple[UnitIndex, UnitIndex]) -> None:
    one, four = indexes
    assert (len(one.shards.names), len(four.shards.names)) == (1, 4)
    assert one.state() == four.state()
    assert one.counts() == four.counts()
    chance = random.Random(1)
    for number in range(200):
        query = " ".join(chance.sample(WORDS, chance.randint(1, 5)))
        mode = ("hybrid", "bm25", "dense")[number % 3]
        codes = [{"place": ["KEN"]}] if number % 4 == 0 else []
        parents = [f"urn:d:{each}" for each in range(number % 20 + 1)] if number % 5 == 0 else None
        must = [chance.choice(WORDS)] if number % 7 == 0 else []
        limit = (1, 10, 50)[number % 3]
        found = [index.rank(query, None, parents, limit, mode, must, codes) for index in indexes]
        assert found[0] == found[1], (query, mode)
    units = [unit.iri for unit in make_units("3", 1)]
    assert one.rank("wind taxland", units, None, 5) == four.rank("wind taxland", units, None, 5)
    assert one.count(["place"], [{"place": ["KEN"]}]) == four.count(["place"], [{"place": ["KEN"]}])


def test_quantized_vectors_find_the_same(tmp_path: Path) -> None:
    """Approximate search: of the first ten by meaning, 99 % are those of an exact search."""
    exact, quick = open_index(tmp_path / "exact"), open_index(tmp_path / "quick", most_texts=60, exact_vectors=0)
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


def test_a_replaced_graph_stays_in_its_shard(tmp_path: Path) -> None:
    index = open_index(tmp_path, most_texts=UNITS)
    put(index, "a")
    put(index, "b")
    for seed in range(1, 4):
        put(index, "a", seed)
    assert len(index.shards.names) == 2
    assert [*index.shards.count_texts().values()] == [UNITS, UNITS]
    index.shards.close()


@pytest.mark.parametrize("damage", ["missing", "record", "segments"])
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
    assert (index.shards.fields, index.shards.space) == (("search", "search_de"), SPACE)
    index.shards.close()
    for name in index.shards.names:
        part = Shard(tmp_path / name)
        assert (part.fields, part.space) == (("search", "search_de"), SPACE)
        part.close()
