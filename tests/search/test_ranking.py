"""How BM25 and cosine become one order."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from kg.search.ranking import Fusion, is_settled

SCORES = st.floats(0, 50, allow_nan=False)
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


def test_without_any_vectors_the_order_is_that_of_bm25() -> None:
    ranked = Fusion(top_bm25=5.0, top_cosine=0.0).rank(["a", "b", "c"], {"a": 1.0, "b": 5.0, "c": 2.0}, {})
    assert [candidate.iri for candidate in ranked] == ["b", "c", "a"]


def test_when_no_term_matches_the_order_is_that_of_the_cosine() -> None:
    ranked = Fusion(top_bm25=0.0, top_cosine=0.9).rank(["a", "b"], {}, {"a": 0.2, "b": 0.9})
    assert [(candidate.iri, candidate.bm25) for candidate in ranked] == [("b", 0.0), ("a", 0.0)]


def test_equal_scores_are_ordered_by_iri_also_when_they_differ_by_float_noise() -> None:
    ranked = Fusion(1.0, 1.0).rank(["b", "a"], {}, {"a": 0.5, "b": 0.5 + 1e-9})
    assert [candidate.iri for candidate in ranked] == ["a", "b"]


@given(
    top=st.tuples(SCORES, COSINES),
    seen=st.tuples(SCORES, COSINES),
    below=st.tuples(SCORES, COSINES),
    vector=st.booleans(),
)
def test_no_unit_below_both_lists_scores_above_the_ceiling(
    top: tuple[float, float], seen: tuple[float, float], below: tuple[float, float], vector: bool
) -> None:
    fusion = Fusion(max(top[0], seen[0]), max(top[1], seen[1]))
    unit = min(below[0], seen[0]), min(below[1], seen[1])
    assert fusion.score(unit[0], unit[1] if vector else None) <= fusion.ceiling(*seen)


def test_a_page_is_settled_only_above_the_ceiling_and_when_it_is_full() -> None:
    ranked = Fusion(1.0, 1.0, 0.3, 0.7).rank(["a", "b"], {}, {"a": 1.0, "b": 0.5})
    assert is_settled(ranked, 2, ceiling=0.3)
    assert not is_settled(ranked, 2, ceiling=0.35), "an unseen unit of equal score may have the smaller IRI"
    assert not is_settled(ranked, 3, ceiling=-1.0)


@given(
    units=st.dictionaries(st.sampled_from("abcdef"), st.tuples(SCORES, COSINES, st.integers(0, 3)), min_size=1),
    least=st.tuples(SCORES, COSINES),
    pair_weight=st.sampled_from([0.0, 0.1]),
)
def test_bound_is_at_least_the_score(
    units: dict[str, tuple[float, float, int]], least: tuple[float, float], pair_weight: float
) -> None:
    """A unit in one list alone has any score up to the least one of the other list, or no vector."""
    bm25 = {iri: score for iri, (score, _, lists) in units.items() if lists != 0}
    cosine = {iri: score for iri, (_, score, lists) in units.items() if lists not in (1, 2)}
    fusion = Fusion(max([least[0], *bm25.values()]), max([least[1], *cosine.values()]), pair_weight=pair_weight)
    bounds = fusion.bound(bm25, cosine, *least)
    assert bounds.keys() == units.keys()
    for iri, (score, near, lists) in units.items():
        exact = fusion.score(
            score if lists else min(score, least[0]),
            None if lists == 2 else near if lists != 1 else min(near, least[1]),
        )
        assert exact <= bounds[iri]
        if lists == 3:
            assert bounds[iri] <= exact + 3e-6
