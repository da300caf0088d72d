"""The first units of a ranking are exact, though only a part of the scores is looked up."""

from __future__ import annotations

import random
from typing import Any, cast

import pytest

from kg.search.protocol import Candidate
from kg.search.ranking import PAIR_WEIGHT, Fusion
from kg.search.shard import Shard
from kg.search.unit_index import POOL, UnitIndex

QUERY = "wind power"
Scores = dict[str, float]


class Scored(UnitIndex):
    """An index with given scores. It counts the scores that are looked up by id."""

    def __init__(self, bm25: Scores, cosine: Scores) -> None:
        self.bm25, self.cosine, self.looked_up = bm25, cosine, 0
        self.shard = cast(Shard, self)
        self.space = None
        self.embed_query = lambda query: [1.0]

    def counts(self) -> tuple[int, int, int]:
        return len(self.bm25 | self.cosine), 0, 1

    def _by_words(self, text: str | None, where: Any, limit: int) -> Scores:
        return self._best(self.bm25, where, limit)

    def _by_meaning(self, vector: Any, where: Any, limit: int) -> Scores:
        return self._best(self.cosine, where, limit)

    def _best(self, scores: Scores, where: Any, limit: int) -> Scores:
        return dict(sorted(scores.items(), key=lambda item: -item[1])[:limit])

    def _add_missing(self, asked: Any, bm25: Scores, cosine: Scores, among: Any) -> None:
        for found, scores in ((bm25, self.bm25), (cosine, self.cosine)):
            rest = among - found.keys()
            self.looked_up += len(rest)
            found |= {id_: scores[id_] for id_ in rest if id_ in scores}

    def _retrieve(self, ids: list[str], fields: list[str]) -> dict[str, Any]:
        return {id_: {"iri": id_, "search": ""} for id_ in ids}


def rank_all(bm25: Scores, cosine: Scores) -> list[Candidate]:
    fusion = Fusion(max(bm25.values()), max(cosine.values()), pair_weight=PAIR_WEIGHT)
    return fusion.rank(bm25 | cosine, bm25, cosine)


def make_scores(seed: int, spread: float, without_vector: int) -> tuple[Scores, Scores]:
    chance = random.Random(seed)
    ids = [f"00000000-0000-4000-8000-{number:012d}" for number in range(3_000)]
    bm25 = {id_: round(chance.random() ** spread * 12, 4) for id_ in ids if chance.random() < 0.7}
    cosine = {id_: round(chance.random() ** spread * 0.9, 4) for id_ in ids[without_vector:]}
    return bm25, cosine


@pytest.mark.parametrize("spread", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("without_vector", [0, 500])
@pytest.mark.parametrize("limit", [1, 64, 150])
def test_first_units_are_those_of_a_ranking_of_all(spread: float, without_vector: int, limit: int) -> None:
    for seed in range(3):
        bm25, cosine = make_scores(seed, spread, without_vector)
        found = Scored(bm25, cosine).rank(QUERY, None, None, limit)
        expected = rank_all(bm25, cosine)[: max(limit, POOL)]
        assert [each.iri for each in found.candidates] == [each.iri for each in expected[:limit]]
        assert [(each.bm25, each.cosine) for each in found.candidates] == [
            (each.bm25, each.cosine) for each in expected[:limit]
        ]


def test_few_scores_are_looked_up_where_the_first_units_are_clear() -> None:
    bm25, cosine = make_scores(1, 4.0, 0)
    for number in range(POOL + 20):
        id_ = f"00000000-0000-4000-8000-{number:012d}"
        bm25[id_], cosine[id_] = 12.0 - number / 1_000, 0.9 - number / 10_000
    index = Scored(bm25, cosine)
    index.rank(QUERY, None, None, 10)
    assert index.looked_up < 20
