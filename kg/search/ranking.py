"""How a BM25 score and a cosine become one order. Pure functions.

The fusion is a convex combination, ``0.35 * bm25 / max(bm25) + 0.65 * cosine``, with both scores known for every
candidate (Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", ACM TOIS 2023). It depends on
the query and the unit alone, not on which list proposed the unit or how long the page is; so pages are consistent.
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

_DECIMALS = 6
"""Scores are rounded to this, so that float noise cannot swap equals."""


@dataclass(frozen=True, slots=True)
class Fusion:
    """The fusion for one query: `top_bm25` and `top_cosine` are the best scores among all units that are allowed.

    A unit that has no vector yet is taken to be as good by meaning as it is by words: its cosine is estimated as its
    share of the best BM25 score times the best cosine. So a load that is still being embedded neither hides nor
    favours its units, and without any vectors the order is BM25's.
    """

    top_bm25: float
    top_cosine: float
    bm25_weight: float = BM25_WEIGHT
    cosine_weight: float = COSINE_WEIGHT

    def score(self, bm25: float, cosine: float | None) -> float:
        """Return the fused score; `cosine` None means that the unit has no vector yet."""
        share = bm25 / self.top_bm25 if self.top_bm25 > 0 else 0.0
        if cosine is None:
            cosine = share * max(self.top_cosine, 0.0)
        return round(self.bm25_weight * share + self.cosine_weight * cosine, _DECIMALS)

    def ceiling(self, bm25: float, cosine: float) -> float:
        """Return the best score that a unit can have whose BM25 and cosine are at most these, vector or not."""
        return max(self.score(bm25, cosine), self.score(bm25, None))

    def rank(self, iris: Iterable[str], bm25: Mapping[str, float], cosine: Mapping[str, float]) -> list[Candidate]:
        """Return `iris` as candidates, best first; equal scores by IRI. No entry: BM25 0, cosine None."""
        candidates = [
            Candidate(iri, self.score(bm25.get(iri, 0.0), cosine.get(iri)), bm25.get(iri, 0.0), cosine.get(iri))
            for iri in iris
        ]
        candidates.sort(key=lambda candidate: (-candidate.score, candidate.iri))
        return candidates


def is_settled(candidates: Sequence[Candidate], limit: int, ceiling: float) -> bool:
    """Say whether no unseen unit, which scores at most `ceiling`, can enter the first `limit` of `candidates`.

    The stopping rule of Fagin's threshold algorithm. A tie is not settled, since equal scores are ordered by IRI.
    """
    return len(candidates) >= limit and candidates[limit - 1].score > ceiling
