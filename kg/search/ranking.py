"""Fusion of BM25 scores and cosines into one ranking. Pure functions.

The fusion is a convex combination, ``0.35 * bm25 / max(bm25) + 0.65 * cosine``, with both scores known for every
candidate (Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", ACM TOIS 2023). For the first
candidates, a tenth of the score is the share of the query's pairs of adjacent words. The score depends on the query and
the unit alone, not on which list proposed the unit or how long the page is; so pages are consistent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kg.search.points import NO_HITS, Floats, Hits, Ids, get_firsts
from kg.search.protocol import Candidate

# nDCG@10 on the even ones of 1,394 real questions over 12,988 regulation passages (tests/benchmarks/ranking.py):
# BM25's weight  0.00   0.20   0.25   0.30   0.35   0.40   0.50   0.70   1.00
#                0.565  0.687  0.698  0.702  0.706  0.705  0.700  0.680  0.659
# On the odd ones: 0.721; BM25 alone 0.680, embeddings alone 0.568, reciprocal ranks 0.675, without scoring again 0.708.
BM25_WEIGHT = 0.35
COSINE_WEIGHT = 0.65

# nDCG@10 by the weight of the share of the query's pairs of adjacent words, on every fifth dev question of ObliQA and
# all of CLIMATE-FEVER (tests/benchmarks/ranking.py):
# pairs          0.00   0.05   0.10   0.13   0.15   0.20
#                0.709  0.712  0.713  0.714  0.715  0.716
#                0.412  0.412  0.415  0.414  0.413  0.410
# Pairs without stop words, of stems in a window, or weighed by their rarity gain as much on ObliQA and lose 0.001 to
# 0.004 on CLIMATE-FEVER. Unweighed, they depend on the query and the unit alone, as the other scores do.
#
# SPLADE-tiny as 30 % of the word score, with pairs at 0.2: +0.007 (+-0.010, 220 questions) and +0.004 (+-0.014, 266),
# for 28 ms of processor time a passage, where the embedding takes 19. It is not used. A reranker that is always right
# about the first 50 would reach 0.885 and 0.795.
PAIR_WEIGHT = 0.1

INCOMPARABLE_SHARE = 0.5
# Share of the best BM25 score of a unit in another language than the query that is as near as the nearest one. Even
# questions of XQuAD, in English: hit@10 of the only answer, in another language, among 12,000 English passages
# (es, de, ru, zh), and hit@1 and hit@10 of an English answer among these and 956 other passages in these languages:
# share     0                   0.4                 0.5                 0.6                 0.7
# foreign   .66 .64 .63 .63     .91 .89 .90 .88     .93 .92 .91 .89     .94 .94 .92 .90     .96 .95 .93 .92
# English   .915 .990           .912 .983           .912 .973           .905 .973           .898 .959
# A share that is the same for every cosine is worse for English answers, one by the square of the cosine for others.

POOL = 100
"""The first candidates of a query, whose words are compared with the question's."""

Indices = NDArray[np.intp]
"""Places of units in `Scores`."""

_DECIMALS = 6
"""Scores are rounded to this, so that float noise cannot swap equals."""

_SCALE = 10.0**_DECIMALS

_LEAST_COSINE = 1e-6
"""Best cosine below which shares of it are not computed."""

MARGIN = 2 / _SCALE
"""How much a bound may exceed the score of a unit with both scores."""


@dataclass(frozen=True, slots=True)
class Fusion:
    """The fusion for one query: `top_bm25` and `top_cosine` are the best scores among all units that are allowed.

    The cosine of a unit without a vector is estimated as its share of the best BM25 score times the best cosine. So
    units that are not embedded yet are not hidden or favoured, and without any vectors the order is that of BM25.

    A unit in another language than the query shares names and numbers with it at most. Its share of the best BM25
    score is at least its share of the best cosine times `INCOMPARABLE_SHARE`.
    """

    top_bm25: float
    top_cosine: float
    bm25_weight: float = BM25_WEIGHT
    cosine_weight: float = COSINE_WEIGHT
    pair_weight: float = 0.0
    """PAIR_WEIGHT if the query has pairs of words."""
    foreign_share: float = 0.0
    """INCOMPARABLE_SHARE if it is compared with units in other languages."""

    def score(self, bm25: float, cosine: float | None, pairs: float = 0.0, *, is_foreign: bool = False) -> float:
        """Compute the fused score; `cosine` is None for a unit without a vector.

        `is_foreign`: the unit is in another language than the query.
        """
        share = bm25 / self.top_bm25 if self.top_bm25 > 0 else 0.0
        if cosine is None:
            cosine = share * max(self.top_cosine, 0.0)
        elif is_foreign:
            share = max(share, cosine * self._find_foreign_share())
        fused = self.bm25_weight * share + self.cosine_weight * cosine
        # as `numpy.round` does, so that `score_all` computes the same
        return round(((1 - self.pair_weight) * fused + self.pair_weight * pairs) * _SCALE) / _SCALE

    def _find_foreign_share(self) -> float:
        """Find the least share of the best BM25 score that a unit in another language has, for a cosine of 1."""
        return self.foreign_share / self.top_cosine if self.top_cosine > _LEAST_COSINE else 0.0

    def score_all(self, bm25: Floats, cosine: Floats, is_foreign: NDArray[np.bool_] | bool = False) -> Floats:
        """Compute the scores of units. A BM25 of NaN is 0; a unit with a cosine of NaN has no vector."""
        share = np.nan_to_num(bm25 / self.top_bm25) if self.top_bm25 > 0 else np.zeros(len(bm25))
        near = np.where(np.isnan(cosine), share * max(self.top_cosine, 0.0), cosine)
        share = np.where(is_foreign, np.maximum(share, near * self._find_foreign_share()), share)
        fused: Floats = np.round(
            (1 - self.pair_weight) * (self.bm25_weight * share + self.cosine_weight * near), _DECIMALS
        )
        return fused

    def ceiling(self, bm25: float, cosine: float) -> float:
        """Compute the maximum score of a unit whose BM25 and cosine are at most these, with or without a vector."""
        return max(self.score(bm25, cosine, is_foreign=True), self.score(bm25, None))

    def bound(
        self,
        bm25: Floats,
        cosine: Floats,
        least_bm25: float,
        least_cosine: float,
        is_foreign: NDArray[np.bool_] | bool = False,
    ) -> Floats:
        """Compute the maximum score of each unit; one that lacks a BM25 or cosine (NaN) has at most the least one.

        A unit without a cosine may be in another language. For a unit with both it is at most 0.000002 too high.
        """
        known, has_none = np.where(np.isnan(bm25), least_bm25, bm25), np.isnan(cosine)
        near = np.where(has_none, least_cosine, cosine)
        bounds = self.score_all(known, near, is_foreign | has_none)
        return np.where(has_none, np.maximum(bounds, self.score_all(known, cosine, is_foreign)), bounds) + MARGIN


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """Vectors that a query is compared with: those of a space, or of its units in some languages."""

    space: str
    vector: Sequence[float]
    offset: float = 0.0
    """The number that is added to their cosines, so that those of all spaces and languages have one scale."""
    languages: tuple[str, ...] | None = None
    is_foreign: bool = False
    """Whether these units are in other languages than the query."""


@dataclass(frozen=True, slots=True, eq=False)
class Meaning:
    """The units that the searches of several lists of vectors found, with their best cosines on one scale."""

    hits: Hits
    lists: NDArray[np.int8]
    """The number of the list that each cosine is from."""
    least: float | None
    """A cosine that every unit that was not found is below or has; None if these are all."""

    @staticmethod
    def join(found: Sequence[tuple[int, Compared, Hits, float | None]]) -> Meaning:
        """Join lists, given by their numbers.

        With each, a cosine that every unit of it that was not found is below or has; None if these are all.
        """
        moved = [(number, _move(hits, each.offset)) for number, each, hits, _ in found if len(hits)]
        leasts = [float(_add(np.array([least]), each.offset)[0]) for _, each, _, least in found if least is not None]
        least = max(leasts, default=None)
        if len(moved) <= 1:
            number, hits = moved[0] if moved else (0, NO_HITS)
            return Meaning(hits, np.full(len(hits), number, np.int8), least)
        ids, scores = (np.concatenate([getattr(hits, name) for _, hits in moved]) for name in ("ids", "scores"))
        lists = np.concatenate([np.full(len(hits), number, np.int8) for number, hits in moved])
        order = np.lexsort((ids, -scores))
        if least is not None:  # another list may have a better cosine of a unit below it
            order = order[: int(np.count_nonzero(scores >= least))]
        first = np.zeros(len(order), np.bool_)
        first[np.unique(ids[order], return_index=True)[1]] = True
        order = order[first]
        return Meaning(Hits(ids[order], scores[order]), lists[order], least)

    def keep(self, among: Ids) -> Meaning:
        """Return those that are among some units."""
        kept = np.isin(self.hits.ids, among)
        return Meaning(self.hits.keep(among), self.lists[kept], self.least)


def _move(hits: Hits, offset: float) -> Hits:
    return Hits(hits.ids, _add(hits.scores, offset)) if offset else hits


def _add(cosines: Floats, offset: float) -> Floats:
    moved: Floats = np.round((cosines + offset).clip(max=1.0), _DECIMALS) if offset else cosines
    return moved


NO_MEANING: Final = Meaning(NO_HITS, np.empty(0, np.int8), None)


@dataclass(slots=True, eq=False)
class Scores:
    """The scores of units for one query, in ascending order of their ids. NaN: a unit without a score, or unknown."""

    ids: Ids
    bm25: Floats
    cosine: Floats
    lists: NDArray[np.int8]
    """The number of the list of vectors that a cosine is from, -1 without one."""
    starts: Indices = field(init=False)
    """The place of the first point of each unit: the parts of a text are next to each other."""

    def __post_init__(self) -> None:
        firsts = get_firsts(self.ids)
        self.starts = np.flatnonzero(np.diff(firsts, prepend=-1))

    @staticmethod
    def join(words: Hits, meaning: Meaning, ids: Ids | None = None) -> Scores:
        """Join the hits of two searches: the scores of these units, or of those that have one."""
        units = np.union1d(words.ids, meaning.hits.ids) if ids is None else np.sort(ids)
        number = len(units)
        found = Scores(units, np.full(number, np.nan), np.full(number, np.nan), np.full(number, -1, np.int8))
        found.add(words, meaning)
        return found

    def add(self, words: Hits, meaning: Meaning) -> None:
        """Add hits, all of which are among these units."""
        self.bm25[np.searchsorted(self.ids, words.ids)] = words.scores
        places = np.searchsorted(self.ids, meaning.hits.ids)
        self.cosine[places], self.lists[places] = meaning.hits.scores, meaning.lists

    def find_foreign(self, foreign: Sequence[bool]) -> NDArray[np.bool_]:
        """Find the units whose cosines are from lists of units in other languages than the query."""
        return np.array([*foreign, False], np.bool_)[self.lists]  # the last one for units without a list

    @property
    def top_bm25(self) -> float:
        """The best score by words; 0 without one."""
        return _find_top(self.bm25)

    @property
    def top_cosine(self) -> float:
        """The best cosine; 0 without one."""
        return _find_top(self.cosine)

    def find_tops(self, values: Floats) -> Floats:
        """Find the best value of the points of each unit."""
        if len(self.starts) == len(values):
            return values
        tops: Floats = np.fmax.reduceat(values, self.starts)
        return tops

    def find_best(self, values: Floats) -> Indices:
        """Find the place of the point of each unit that has its best value; of equal ones the first."""
        if len(self.starts) == len(values):
            return self.starts
        sizes = np.diff(self.starts, append=len(values))
        best = np.flatnonzero(values == np.repeat(self.find_tops(values), sizes))
        firsts = get_firsts(self.ids[best])
        return best[np.flatnonzero(np.diff(firsts, prepend=-1))]

    def get_candidate(self, place: int, score: float, spaces: Sequence[str], iri: str = "") -> Candidate:
        """Build the candidate of the unit at a place of the order of ids. `spaces` are those of the lists."""
        bm25, cosine, number = float(self.bm25[place]), float(self.cosine[place]), int(self.lists[place])
        return Candidate(
            iri,
            score,
            0.0 if math.isnan(bm25) else bm25,
            None if math.isnan(cosine) else cosine,
            space=None if number < 0 else spaces[number],
        )


@dataclass(slots=True, eq=False)
class Proposed:
    """The units that a list by words and one by meaning propose, and what their scores can be.

    A unit is known by its place in the order of `Scores`.
    """

    scores: Scores
    fusion: Fusion
    least_bm25: InitVar[float | None]
    """The last score of the list by words; None if it has all units that have one."""
    least_cosine: InitVar[float | None]
    """The same of the list by meaning."""
    foreign: Sequence[bool] = ()
    """Whether the units of each list of vectors are in other languages than the query."""
    bounds: Floats = field(init=False)
    """The maximum score of each unit, by the scores that its lists gave it."""
    ceiling: float = field(init=False)
    """The maximum score of a unit that is in neither list."""
    complete: bool = field(init=False)
    """Whether no unit that is in neither list has a score."""
    unsure: NDArray[np.bool_] = field(init=False)
    """Which units are in one list alone, and may have the other score."""
    fused: Floats = field(init=False)
    """The scores of the units; minus infinity for unsure ones."""

    def __post_init__(self, least_bm25: float | None, least_cosine: float | None) -> None:
        bm25, cosine = self.scores.bm25, self.scores.cosine
        least = 0.0 if least_bm25 is None else least_bm25, -1.0 if least_cosine is None else least_cosine
        is_foreign = self.scores.find_foreign(self.foreign)
        self.bounds = self.fusion.bound(bm25, cosine, *least, is_foreign)
        self.ceiling = self.fusion.ceiling(*least)
        self.complete = least_bm25 is None and least_cosine is None
        self.unsure = np.zeros(len(bm25), np.bool_)
        if least_bm25 is not None:
            self.unsure |= np.isnan(bm25)
        if least_cosine is not None:
            self.unsure |= np.isnan(cosine)
        self.fused = np.where(self.unsure, -np.inf, self.fusion.score_all(bm25, cosine, is_foreign))

    def __len__(self) -> int:
        """The number of units."""
        return len(self.scores.starts)

    def fuse(self, places: Indices) -> None:
        """Compute the scores of units whose missing scores were looked up."""
        self.unsure[places] = False
        is_foreign = self.scores.find_foreign(self.foreign)[places]
        self.fused[places] = self.fusion.score_all(self.scores.bm25[places], self.scores.cosine[places], is_foreign)

    def find_best_bounds(self, number: int) -> Indices:
        """Find so many units with the best bounds, in any order."""
        if number >= len(self.bounds):
            return np.arange(len(self.bounds))
        return np.argpartition(-self.bounds, number)[:number]

    def find_likely(self, number: int) -> Indices:
        """Find the unsure units that can be among the first `number`, by their bounds."""
        return self._sort(self.keep_likely(np.flatnonzero(self.unsure), number), self.bounds)

    def keep_likely(self, places: Indices, number: int) -> Indices:
        """Return those of some units that can be among the first `number`, by the scores that are known now."""
        return places[self.bounds[places] >= self._find_nth(number)]

    def is_settled(self, number: int) -> bool:
        """Return whether the first `number` units are certain."""
        return is_settled(self.scores.find_tops(self.fused), number, self.ceiling)

    def _find_nth(self, number: int) -> float:
        return find_nth(self.scores.find_tops(self.fused), number)

    def find_first(self, number: int) -> Indices:
        """Find the first `number` units, best first, and all that have the score of the last one: their best points."""
        best = self.scores.find_best(self.fused)
        return self._sort(best[~self.unsure[best] & (self.fused[best] >= self._find_nth(number))], self.fused)

    def list_candidates(self, places: Indices, spaces: Sequence[str]) -> dict[int, Candidate]:
        """Build the candidates of some units, by id and without their IRIs. `spaces` are those of the lists."""
        ids, fused = self.scores.ids[places].tolist(), self.fused[places].tolist()
        return {
            id_: self.scores.get_candidate(place, score, spaces)
            for id_, place, score in zip(ids, places.tolist(), fused, strict=True)
        }

    def list_others(self, places: Indices) -> Hits:
        """List all units but some, with their cosines, by their bounds."""
        best = self.scores.find_best(self.bounds)
        nearest = self.scores.find_tops(self.scores.cosine)
        left = np.isin(get_firsts(self.scores.ids[best]), get_firsts(self.scores.ids[places]), invert=True)
        order = np.argsort(-self.bounds[best[left]], kind="stable")
        return Hits(self.scores.ids[best[left][order]], nearest[left][order])

    def _sort(self, places: Indices, by: Floats) -> Indices:
        """Sort units, best first, equal ones by id."""
        return places[np.argsort(-by[places], kind="stable")]


def _find_top(scores: Floats) -> float:
    return float(np.nanmax(scores)) if np.isfinite(scores).any() else 0.0


def find_nth(scores: Floats, number: int) -> float:
    """Find the score at place `number` of the order, from 1; minus infinity if there are fewer."""
    return float(np.partition(scores, -number)[-number]) if len(scores) >= number else -math.inf


def is_settled(scores: Floats, limit: int, ceiling: float) -> bool:
    """Return whether no unseen unit, with a score of at most `ceiling`, can be among the first `limit` by these scores.

    This is the stopping rule of Fagin's threshold algorithm. A tie is not settled, since it is ordered by IRI.
    """
    return find_nth(scores, limit) > ceiling
