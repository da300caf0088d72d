"""Fusion of BM25 scores and cosines into one ranking. Pure functions.

The fusion is a convex combination, ``0.35 * bm25 / max(bm25) + 0.65 * cosine``, with both scores known for every
candidate (Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", ACM TOIS 2023). For the first
candidates, a tenth of the score is the share of the query's pairs of adjacent words. The score depends on the query and
the unit alone, not on which list proposed the unit or how long the page is; so pages are consistent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

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

POOL = 100
"""The first candidates of a query, whose words are compared with the question's."""

_DECIMALS = 6
"""Scores are rounded to this, so that float noise cannot swap equals."""

MARGIN = 2 * 10**-_DECIMALS
"""How much a bound may exceed the score of a unit with both scores."""


@dataclass(frozen=True, slots=True)
class Fusion:
    """The fusion for one query: `top_bm25` and `top_cosine` are the best scores among all units that are allowed.

    The cosine of a unit without a vector is estimated as its share of the best BM25 score times the best cosine. So
    units that are not embedded yet are not hidden or favoured, and without any vectors the order is that of BM25.
    """

    top_bm25: float
    top_cosine: float
    bm25_weight: float = BM25_WEIGHT
    cosine_weight: float = COSINE_WEIGHT
    pair_weight: float = 0.0
    """PAIR_WEIGHT if the query has pairs of words."""

    def score(self, bm25: float, cosine: float | None, pairs: float = 0.0) -> float:
        """Compute the fused score; `cosine` is None for a unit without a vector. At most 1."""
        share = bm25 / self.top_bm25 if self.top_bm25 > 0 else 0.0
        if cosine is None:
            cosine = share * max(self.top_cosine, 0.0)
        fused = self.bm25_weight * share + self.cosine_weight * cosine
        return round((1 - self.pair_weight) * fused + self.pair_weight * pairs, _DECIMALS)

    def score_all(
        self, iris: Iterable[str], bm25: Mapping[str, float], cosine: Mapping[str, float]
    ) -> dict[str, float]:
        """Compute the score of each of `iris`. A missing score counts as BM25 0 or cosine None."""
        return {iri: self.score(bm25.get(iri, 0.0), cosine.get(iri)) for iri in iris}

    def ceiling(self, bm25: float, cosine: float) -> float:
        """Compute the maximum score of a unit whose BM25 and cosine are at most these, with or without a vector."""
        return max(self.score(bm25, cosine), self.score(bm25, None))

    def bound(
        self, bm25: Mapping[str, float], cosine: Mapping[str, float], least_bm25: float, least_cosine: float
    ) -> dict[str, float]:
        """Compute the maximum score of each unit; one that lacks a BM25 or cosine has at most the least one.

        For a unit with both it is at most 0.000002 too high. It makes no calls, since there are thousands of units.
        """
        share = 1 / self.top_bm25 if self.top_bm25 > 0 else 0.0
        words = (1 - self.pair_weight) * self.bm25_weight * share
        meaning = (1 - self.pair_weight) * self.cosine_weight
        alone = words + meaning * share * max(self.top_cosine, 0.0)
        least = meaning * least_cosine
        found = {iri: max(words * score + least, alone * score) + MARGIN for iri, score in bm25.items()}
        for iri, score in cosine.items():
            found[iri] = words * bm25.get(iri, least_bm25) + meaning * score + MARGIN
        return found

    def rank(self, iris: Iterable[str], bm25: Mapping[str, float], cosine: Mapping[str, float]) -> list[Candidate]:
        """Rank `iris`, best first, equal scores by IRI. A missing score counts as BM25 0 or cosine None."""
        candidates = [
            Candidate(iri, self.score(bm25.get(iri, 0.0), cosine.get(iri)), bm25.get(iri, 0.0), cosine.get(iri))
            for iri in iris
        ]
        candidates.sort(key=lambda candidate: (-candidate.score, candidate.iri))
        return candidates


def is_settled(candidates: Sequence[Candidate], limit: int, ceiling: float) -> bool:
    """Return whether no unseen unit, with a score of at most `ceiling`, can enter the first `limit` candidates.

    This is the stopping rule of Fagin's threshold algorithm. A tie is not settled, since it is ordered by IRI.
    """
    return len(candidates) >= limit and candidates[limit - 1].score > ceiling
