"""How BM25 and cosine become one order."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from kg.search.points import Floats, Hits
from kg.search.ranking import (
    INCOMPARABLE_SHARE,
    NO_MEANING,
    Compared,
    Fusion,
    Meaning,
    Scores,
    find_nth,
    is_settled,
)

SCORES = st.floats(0, 50, allow_nan=False).map(lambda score: round(score, 6))
"""As those of an index, which have six decimals."""
COSINES = st.floats(-1, 1, allow_nan=False)


def test_the_score_is_the_convex_combination_of_both() -> None:
    fusion = Fusion(top_bm25=8.0, top_cosine=0.9)
    assert math.isclose(fusion.score(4.0, 0.6), 0.35 * 0.5 + 0.65 * 0.6)
    assert math.isclose(fusion.score(0.0, -0.2), 0.65 * -0.2)


def test_a_unit_without_a_vector_is_taken_to_be_as_near_by_meaning_as_by_words() -> None:
    fusion = Fusion(top_bm25=8.0, top_cosine=0.6)
    assert math.isclose(fusion.score(8.0, None), fusion.score(8.0, 0.6))
    assert math.isclose(fusion.score(4.0, None), fusion.score(4.0, 0.3))
    assert fusion.score(0.0, None) == 0.0


NAN = math.nan


def floats(*values: float) -> Floats:
    return np.array(values, np.float64)


def test_without_any_vectors_the_order_is_that_of_bm25() -> None:
    scores = Fusion(top_bm25=5.0, top_cosine=0.0).score_all(floats(1.0, 5.0, 2.0), floats(NAN, NAN, NAN))
    assert np.argsort(-scores).tolist() == [1, 2, 0]


def test_when_no_term_matches_the_order_is_that_of_the_cosine() -> None:
    scores = Fusion(top_bm25=0.0, top_cosine=0.9).score_all(floats(NAN, NAN), floats(0.2, 0.9))
    assert np.argsort(-scores).tolist() == [1, 0]


def test_equal_scores_are_equal_also_when_they_differ_by_float_noise() -> None:
    one, other = Fusion(1.0, 1.0).score_all(floats(NAN, NAN), floats(0.5, 0.5 + 1e-9))
    assert one == other


@example(units=[(1.0, 0.5, True)], top=(1.0, 2e-311), pair_weight=0.0)
@given(
    units=st.lists(st.tuples(st.none() | SCORES, st.none() | COSINES, st.booleans()), min_size=1),
    top=st.tuples(SCORES, COSINES),
    pair_weight=st.sampled_from([0.0, 0.1]),
)
def test_scores_of_many_units_are_those_of_each(
    units: list[tuple[float | None, float | None, bool]], top: tuple[float, float], pair_weight: float
) -> None:
    fusion = Fusion(*top, pair_weight=pair_weight, foreign_share=INCOMPARABLE_SHARE)
    bm25, cosine = (
        floats(*(NAN if each is None else each for each in side)) for side in [*zip(*units, strict=True)][:2]
    )
    is_foreign = np.array([near is not None and foreign for _, near, foreign in units])
    found = fusion.score_all(bm25, cosine, is_foreign).tolist()
    assert found == [fusion.score(score or 0.0, near, is_foreign=foreign) for score, near, foreign in units]


def test_scores_of_two_searches_are_joined() -> None:
    words = Hits(np.array([7, 3]), floats(4.0, 1.0))
    meaning = Meaning.join([(0, Compared("dense", ()), Hits(np.array([5, 7]), floats(0.9, 0.4)), None)])
    scores = Scores.join(words, meaning)
    assert scores.ids.tolist() == [3, 5, 7]
    assert (scores.top_bm25, scores.top_cosine) == (4.0, 0.9)
    found = [scores.get_candidate(place, 0.5, ["dense"]) for place in range(3)]
    assert [(each.bm25, each.cosine) for each in found] == [
        (1.0, None), (0.0, 0.9), (4.0, 0.4)
    ]  # fmt: skip
    assert Scores.join(words, meaning, np.array([9, 7, 5, 3])).ids.tolist() == [3, 5, 7, 9]
    empty = Scores.join(words.cut(0), NO_MEANING)
    assert (len(empty.ids), empty.top_bm25, empty.top_cosine) == (0, 0.0, 0.0)


@given(
    top=st.tuples(SCORES, COSINES),
    seen=st.tuples(SCORES, COSINES),
    below=st.tuples(SCORES, COSINES),
    vector=st.booleans(),
    is_foreign=st.booleans(),
)
def test_no_unit_below_both_lists_scores_above_the_ceiling(
    top: tuple[float, float], seen: tuple[float, float], below: tuple[float, float], vector: bool, is_foreign: bool
) -> None:
    fusion = Fusion(max(top[0], seen[0]), max(top[1], seen[1]), foreign_share=INCOMPARABLE_SHARE)
    unit = min(below[0], seen[0]), min(below[1], seen[1])
    assert fusion.score(unit[0], unit[1] if vector else None, is_foreign=is_foreign) <= fusion.ceiling(*seen)


def test_a_page_is_settled_only_above_the_ceiling_and_when_it_is_full() -> None:
    fused = Fusion(1.0, 1.0, 0.3, 0.7).score_all(floats(NAN, NAN), floats(1.0, 0.5))
    assert is_settled(fused, 2, ceiling=0.3)
    assert not is_settled(fused, 2, ceiling=0.35), "an unseen unit of equal score may have the smaller IRI"
    assert not is_settled(fused, 3, ceiling=-1.0)
    assert find_nth(fused, 1) == 0.7


@given(
    units=st.dictionaries(
        st.sampled_from("abcdef"), st.tuples(SCORES, COSINES, st.integers(0, 3), st.booleans()), min_size=1
    ),
    least=st.tuples(SCORES, COSINES),
    pair_weight=st.sampled_from([0.0, 0.1]),
)
def test_bound_is_at_least_the_score(
    units: dict[str, tuple[float, float, int, bool]], least: tuple[float, float], pair_weight: float
) -> None:
    """A unit in one list alone has any score up to the least one of the other list, or no vector."""
    of_units = [*units.values()]
    bm25 = floats(*(NAN if lists == 0 else score for score, _, lists, _ in of_units))
    cosine = floats(*(NAN if lists in (1, 2) else near for _, near, lists, _ in of_units))
    tops = np.nanmax([least[0], *bm25]), np.nanmax([least[1], *cosine])
    fusion = Fusion(*tops, pair_weight=pair_weight, foreign_share=INCOMPARABLE_SHARE)
    bounds = fusion.bound(bm25, cosine, *least, np.array([foreign for *_, foreign in of_units]))
    for (score, near, lists, foreign), bound in zip(of_units, bounds, strict=True):
        exact = fusion.score(
            score if lists else min(score, least[0]),
            None if lists == 2 else near if lists != 1 else min(near, least[1]),
            is_foreign=foreign,
        )
        assert exact <= bound
        if lists == 3:
            assert bound <= exact + 3e-6
