"""The first units of a ranking are exact, though only a part of the scores is looked up."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import numpy as np
import pytest

from kg.search import unit_index
from kg.search.analyzers import ENGLISH, PLAIN
from kg.search.parts import MOST_PARTS
from kg.search.points import Hits, VectorSpace, get_first
from kg.search.protocol import Candidate, IndexedUnit, Ranking
from kg.search.ranking import PAIR_WEIGHT, POOL, Fusion, Meaning
from kg.search.relevance import CALIBRATIONS
from kg.search.shards import Shards
from kg.search.spaces import Spaces
from kg.search.unit_index import UnitIndex
from kg.search.vector_cache import VectorCache
from kg.search.word_overlap import NO_WORDS

QUERY = "wind power"
Scores = dict[int, float]


class Scored(UnitIndex):
    """An index with given scores. It counts the scores that are looked up by id."""

    def __init__(self, bm25: Scores, cosine: Scores) -> None:
        self.bm25, self.cosine, self.looked_up = bm25, cosine, 0
        space = {"dense": VectorSpace("m", 1)}
        shards = SimpleNamespace(fields=(ENGLISH,), spaces=space, written=0, count_each=lambda words: {})
        self.shards = cast(Shards, shards)
        self.spaces = Spaces({0: "m"}, {0: None})
        self._rankings = OrderedDict()
        self.embed_query = lambda query, number: [1.0]

    def counts(self) -> tuple[int, int, int]:
        return len(self.bm25 | self.cosine), 0, 1

    def _count_languages(self) -> dict[str, int]:
        return {"en": len(self.cosine)}

    def _by_words(self, asked: Any, where: Any, limit: int) -> Hits:
        return self._best(self.bm25, where, limit)

    def _by_meaning(self, asked: Any, where: Any, limit: int, *, exact: bool = False) -> Meaning:
        hits = self._best(self.cosine, where, limit)
        return Meaning.join([(0, asked.compared[0], hits, None if len(hits) < limit else hits.least)])

    def _best(self, scores: Scores, where: Any, limit: int) -> Hits:
        if where is not None:
            self.looked_up += len(where["ids"])
            scores = {id_: scores[id_] for id_ in where["ids"] if id_ in scores}
        hits = Hits(np.array([*scores], np.int64), np.array([*scores.values()], np.float64))
        return Hits.join([hits]).cut(limit)

    def _retrieve(self, ids: Sequence[int], fields: list[str]) -> dict[int, Any]:
        return {id_: {"iri": name(id_), "search": "", "primary_language": "en"} for id_ in ids}


def name(id_: int) -> str:
    return f"urn:{get_first(id_):08d}"


def make_ids(number: int, parts: int = 1) -> list[int]:
    """Make the ids of points of units with so many parts each."""
    return [first * MOST_PARTS + part for first in range(number // parts) for part in range(parts)]


def rank_all(bm25: Scores, cosine: Scores) -> list[Candidate]:
    fusion = Fusion(max(bm25.values()), max(cosine.values()), pair_weight=PAIR_WEIGHT)
    found = [
        Candidate(name(id_), fusion.score(bm25.get(id_, 0.0), cosine.get(id_)), bm25.get(id_, 0.0), cosine.get(id_))
        for id_ in sorted(bm25 | cosine)
    ]
    best: dict[str, Candidate] = {}
    for each in sorted(found, key=lambda each: (-each.score, each.iri)):
        best.setdefault(each.iri, each)
    return [*best.values()]


def make_scores(seed: int, spread: float, without_vector: int, parts: int = 1) -> tuple[Scores, Scores]:
    chance = random.Random(seed)
    ids = make_ids(3_000, parts)
    bm25 = {id_: round(chance.random() ** spread * 12, 4) for id_ in ids if chance.random() < 0.7}
    cosine = {id_: round(chance.random() ** spread * 0.9, 4) for id_ in ids[without_vector:]}
    return bm25, cosine


@pytest.mark.parametrize("spread", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("without_vector", [0, 500])
@pytest.mark.parametrize("limit", [1, 64, 150])
@pytest.mark.parametrize("parts", [1, 4])
def test_first_units_are_those_of_a_ranking_of_all(spread: float, without_vector: int, limit: int, parts: int) -> None:
    for seed in range(3):
        bm25, cosine = make_scores(seed, spread, without_vector, parts)
        found = Scored(bm25, cosine).rank(QUERY, None, None, limit)
        expected = rank_all(bm25, cosine)[: max(limit, POOL)]
        assert [each.iri for each in found.candidates] == [each.iri for each in expected[:limit]]
        assert [(each.bm25, each.cosine) for each in found.candidates] == [
            (each.bm25, each.cosine) for each in expected[:limit]
        ]


def test_few_scores_are_looked_up_where_the_first_units_are_clear() -> None:
    bm25, cosine = make_scores(1, 4.0, 0)
    for number, id_ in enumerate(make_ids(POOL + 20)):
        bm25[id_], cosine[id_] = 12.0 - number / 1_000, 0.9 - number / 10_000
    index = Scored(bm25, cosine)
    index.rank(QUERY, None, None, 10)
    assert index.looked_up < 20


def test_lists_have_a_maximum_depth_where_the_first_units_are_never_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_index, "_FIRST_DEPTH", 16)
    monkeypatch.setattr(unit_index, "_MAX_DEPTH", 256)
    monkeypatch.setattr(unit_index, "_MAX_WORDS_DEPTH", 512)
    asked: dict[str, list[int]] = {"words": [], "meaning": []}

    class Noted(Scored):
        def _by_words(self, query: Any, where: Any, limit: int) -> Hits:
            if where is None:
                asked["words"].append(limit)
            return super()._by_words(query, where, limit)

        def _by_meaning(self, query: Any, where: Any, limit: int, *, exact: bool = False) -> Meaning:
            if where is None:
                asked["meaning"].append(limit)
            return super()._by_meaning(query, where, limit, exact=exact)

    same = dict.fromkeys(make_ids(3_000), 0.5)
    found = Noted(same, same).rank(QUERY, None, None, 1)
    assert (len(found.candidates), found.exhaustive) == (1, False)
    assert asked == {"words": [16, 64, 256, 512, 512], "meaning": [16, 32, 64, 128, 256]}


@pytest.fixture
def index(tmp_path: Path) -> Iterator[UnitIndex]:
    shard = Shards(tmp_path / "index")
    yield UnitIndex(shard, VectorCache(tmp_path), lambda query, number: None)
    shard.close()


def put(index: UnitIndex, texts: dict[str, tuple[str, str | None]], digest: str = "1") -> None:
    units = [IndexedUnit(f"urn:{name}", "urn:g", "urn:d", text, language=tag) for name, (text, tag) in texts.items()]
    index.begin(["urn:g"])
    index.put(units)
    index.finish({"urn:g": digest})


def test_units_are_not_written_after_a_replacement_that_could_not_begin(
    index: UnitIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    units = [IndexedUnit("urn:x", "urn:g", "urn:d", "Solar farms.")]
    put(index, {"x": ("Wind farms.", None)})
    index.begin(["urn:g"])  # and interrupted
    with monkeypatch.context() as broken:
        broken.setattr(Shards, "scroll", Mock(side_effect=OSError("full")))
        with pytest.raises(OSError, match="full"):
            index.begin(["urn:g"])
    with pytest.raises(KeyError):
        index.put(units)
    assert (find(index, "wind"), find(index, "solar"), index.state()) == (["x"], [], {})
    put(index, {"x": ("Solar farms.", None)})
    assert (find(index, "wind"), find(index, "solar"), index.state()) == ([], ["x"], {"urn:g": "1"})


def find(index: UnitIndex, query: str, **options: Any) -> list[str]:
    found = index.rank(query, None, options.pop("parents", None), 10, **options).candidates
    return [each.iri.removeprefix("urn:") for each in found if each.bm25 > 0]


TEXTS = {
    "de": ("Die Häuser der Gemeinden werden für alle Bürger gebaut.", "de-AT"),
    "gl": ("As casas dos concellos.", "qaa"),
    "es": ("Las leyes sobre viviendas.", "es"),
    "en": ("Regulations about housing.", "en"),
    "none": ("Regulated dwellings.", None),
    "und": ("Regulating 12 parcels.", "und"),
}


def test_words_are_stemmed_as_in_the_language_of_the_text(index: UnitIndex) -> None:
    put(index, TEXTS)
    assert index.shards.fields == (ENGLISH, "search_de", "search_es", PLAIN)
    assert find(index, "Haus") == ["de"]
    assert find(index, "bürger einer Gemeinde") == ["de"]
    assert find(index, "vivienda") == ["es"]
    assert set(find(index, "regulation")) == {"en", "none", "und"}
    assert find(index, "casas") == ["gl"]
    assert find(index, "casa") == [], "a language without a stemmer has its words as they are"
    assert find(index, "für die werden") == [], "stop words of the language"


def test_required_words_are_found_in_each_language(index: UnitIndex) -> None:
    put(index, TEXTS)
    assert find(index, "Haus housing casas", must=["Gemeinde"]) == ["de"]
    assert set(find(index, "Haus regulated", parents=["urn:d"], must=["Haus"])) == {"de"}
    assert find(index, "Haus", must=["housing"]) == []


def test_fields_and_texts_without_vectors_are_kept_when_the_index_is_opened_again(tmp_path: Path) -> None:
    shard = Shards(tmp_path)
    put(UnitIndex(shard, VectorCache(tmp_path), lambda query, number: None), TEXTS)
    shard.close()
    index = UnitIndex(Shards(tmp_path), VectorCache(tmp_path), lambda query, number: None)
    assert index.shards.fields == (ENGLISH, "search_de", "search_es", PLAIN)
    assert find(index, "Haus") == ["de"]
    assert sorted(text for _, text in index.pending("dense", 10).values()) == sorted(text for text, _ in TEXTS.values())
    index.shards.close()


def test_a_text_that_gets_a_language_is_indexed_again_and_keeps_its_vector(index: UnitIndex) -> None:
    index.use_model(0, "m", 2, None)
    put(index, {"x": ("Die Häuser.", None), "y": ("Homes.", None)})
    pending = index.pending("dense", 10)
    rows = np.array([[1.0, 0.0]], np.float16)
    index.cache.use(0, "m", 2)
    index.cache.put("m", {digest: rows for digest, _ in pending.values()})
    index.set_vectors("dense", {id_: (digest, rows) for id_, (digest, _) in pending.items()})
    assert find(index, "Haus") == []
    put(index, {"x": ("Die Häuser.", "de"), "y": ("Homes.", None)}, "2")
    assert find(index, "Haus") == ["x"]
    assert index.pending("dense", 10) == {}


def put_documents(index: UnitIndex, names: Sequence[str]) -> None:
    """Write a graph with one unit for each document."""
    graphs = [f"urn:graph:{name}" for name in names]
    index.begin(graphs)
    index.put([IndexedUnit(f"urn:{name}", f"urn:graph:{name}", f"urn:d:{name}", "wind power") for name in names])
    index.finish(dict.fromkeys(graphs, "1"))


def test_required_words_of_many_units_filter_the_candidates(index: UnitIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    put(
        index,
        {f"u{i}": (f"wind tariff {'levy' if i % 3 else 'bonus'} {i}", "de" if i % 5 else None) for i in range(60)},
    )
    for must in (["levy"], ["tariffs", "levy"], ["wind", "7"], ["wind the"], ["the"], ["absent", "wind"]):
        few = index.rank("wind tariff", None, None, 50, must=must)
        monkeypatch.setattr(unit_index, "_FEW", 0)
        assert index.rank("wind tariff", None, None, 50, must=must) == few
        monkeypatch.undo()
    assert len(index.rank("wind tariff", None, None, 50, must=["levy"]).candidates) == 40
    assert not index.rank("wind tariff", None, None, 50, must=["the"]).candidates


def test_a_filter_that_leaves_all_units_is_left_out_until_there_are_others(
    index: UnitIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    filters: list[bool] = []
    rank = UnitIndex._rank_proposed

    def ranking(self: UnitIndex, asked: Any, conditions: list[Any], required: Any, limit: int) -> Ranking:
        filters.append(bool(conditions))
        return rank(self, asked, conditions, required, limit)

    monkeypatch.setattr(UnitIndex, "_rank_proposed", ranking)
    put_documents(index, ["a", "b"])
    everything = ["urn:d:a", "urn:d:b", "urn:d:absent"]
    assert find(index, QUERY, parents=everything) == find(index, QUERY) == ["a", "b"]
    put_documents(index, ["c"])
    assert find(index, QUERY, parents=everything) == ["a", "b"]
    assert find(index, QUERY, parents=["urn:d:b"]) == ["b"]
    index.remove(["urn:graph:c"])
    assert find(index, QUERY, parents=everything) == ["a", "b"]
    assert filters == [False, False, True, True, False]


# Codes.


def coded(name: str, parent: str, text: str, **codes: list[str]) -> IndexedUnit:
    return IndexedUnit(f"urn:{name}", "urn:g", parent, text, codes=codes)


@pytest.fixture
def shard_index(tmp_path: Path) -> Iterator[UnitIndex]:
    shard = Shards(tmp_path / "codes")
    yield UnitIndex(shard, VectorCache(tmp_path), lambda query, number: None)
    shard.close()


def fill_codes(index: UnitIndex, **derived: list[str]) -> None:
    """Put three units, the last one with the codes of a speech and `derived` ones."""
    units = [
        coded("a", "urn:d", "wind power", domain=["climate"], place=["urn:bra"], year=["2030"]),
        coded("b", "urn:d#lang=en", "wind power", domain=["climate"], place=["urn:bra", "urn:ken"]),
        coded("c", "urn:e", "wind farms", domain=["parliament"], state=["urn:nsw"], **derived),
    ]
    index.begin(["urn:g"])
    index.put(units)
    index.finish({"urn:g": "1"})


def test_units_are_counted_by_their_codes_exactly(shard_index: UnitIndex) -> None:
    fill_codes(shard_index)
    found = shard_index.count(["domain", "place"])
    assert (found.units, found.documents) == (3, 2)
    assert found.by_field == {"domain": {"climate": 2, "parliament": 1}, "place": {"urn:bra": 2, "urn:ken": 1}}
    some = shard_index.count(["year"], [{"place": ["urn:ken"], "state": ["urn:nsw"]}])
    assert (some.units, some.documents, some.by_field["year"]) == (2, 2, {})
    assert shard_index.count([], [{"place": []}]).units == 0


def test_counts_are_kept_up_to_a_number_of_values(shard_index: UnitIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_codes(shard_index)
    monkeypatch.setattr("kg.search.unit_index._MOST_COUNTED_VALUES", 4)
    for names, kept in ((["domain"], [2]), (["place"], [2, 2]), (["parent"], [3]), (["domain", "parent"], [5])):
        found = shard_index.count(names)
        assert [sum(map(len, each.by_field.values())) for each in shard_index._totals.values()] == kept
        assert shard_index.count(names) is found


def test_a_ranking_is_limited_by_codes(shard_index: UnitIndex) -> None:
    fill_codes(shard_index)
    ranking = shard_index.rank("wind", None, None, 10, "bm25", codes=[{"domain": ["climate"]}])
    assert {each.iri for each in ranking.candidates} == {"urn:a", "urn:b"}
    ranking = shard_index.rank("wind", ["urn:a", "urn:c"], None, 10, "bm25", codes=[{"state": ["urn:nsw"]}])
    assert [each.iri for each in ranking.candidates] == ["urn:c"]


def test_a_ranking_is_kept_until_the_next_update(shard_index: UnitIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_codes(shard_index)
    first = shard_index.rank("wind", None, None, 10, "bm25", counted=5)
    assert shard_index.rank("wind", None, None, 10, "bm25", counted=5) is first
    others = [
        shard_index.rank("wind", None, None, 10, "bm25"),
        shard_index.rank("wind", None, None, 1, "bm25", counted=5),
        shard_index.rank("wind", None, None, 10, "hybrid", counted=5),
        shard_index.rank("wind", None, None, 10, "bm25", ["farms"], counted=5),
        shard_index.rank("wind", None, None, 10, "bm25", codes=[{"domain": ["climate"]}], counted=5),
        shard_index.rank("wind", None, ["urn:e"], 10, "bm25", counted=5),
        shard_index.rank("power", None, None, 10, "bm25", counted=5),
    ]
    assert all(other is not first and other != first for other in others)
    shard_index.remove(["urn:g"])
    assert not shard_index.rank("wind", None, None, 10, "bm25", counted=5).candidates
    monkeypatch.setattr("kg.search.unit_index._MOST_RANKINGS", 3)
    for number in range(5):
        shard_index.rank(f"wind {number}", None, None, 10, "bm25")
    assert len(shard_index._rankings) == 3


def test_codes_that_are_derived_later_replace_the_unit(shard_index: UnitIndex) -> None:
    fill_codes(shard_index)
    fill_codes(shard_index, party=["urn:greens"])
    assert shard_index.load_codes(["urn:c", "urn:none"]) == {
        "urn:c": {"parent": ["urn:e"], "domain": ["parliament"], "state": ["urn:nsw"], "party": ["urn:greens"]}
    }
    assert shard_index.count(["party"]).by_field == {"party": {"urn:greens": 1}}
    fill_codes(shard_index)
    assert shard_index.count(["party"]).by_field == {"party": {}}


def test_a_ranking_to_be_counted_has_the_codes_of_its_units(shard_index: UnitIndex) -> None:
    fill_codes(shard_index)
    ranking = shard_index.rank("wind power", None, None, 10, counted=10)
    plain = shard_index.rank("wind power", None, None, 10)
    assert [each.iri for each in ranking.candidates] == [each.iri for each in plain.candidates]
    assert ranking.counted == shard_index.load_codes([each.iri for each in plain.candidates])
    assert ranking.near == len(ranking.counted)
    assert plain.counted == {}
    given = shard_index.rank("wind power", ["urn:a", "urn:c"], None, 1, counted=10)
    assert given.counted == shard_index.load_codes(["urn:a", "urn:c"])
    # The codes are read again after an update.
    fill_codes(shard_index, party=["urn:greens"])
    assert shard_index.rank("wind power", None, None, 10, counted=10).counted["urn:c"]["party"] == ["urn:greens"]


def test_units_far_from_the_query_are_counted_after_those_near_it(
    shard_index: UnitIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_codes(shard_index)
    cosines = {"urn:a": 0.2, "urn:b": 0.9, "urn:c": 0.1}
    found = {shard_index.shards.compute_id(iri): Candidate(iri, 0.5, 1.0, cosine) for iri, cosine in cosines.items()}
    model = next(iter(CALIBRATIONS))
    monkeypatch.setattr(UnitIndex, "_get_model", lambda self, asked: model)
    asked = unit_index._Asked("wind", None, NO_WORDS, counted=2)
    counted = shard_index._add_counted(asked, Ranking((), exhaustive=False), found)
    assert [*counted.counted] == ["urn:b", "urn:a"]
    assert counted.near == 1
