"""Whether the texts searched treat the subject of a query, from the scores of its candidates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.search.points import ALSO, OTHER
from kg.search.protocol import Candidate, Ranking
from kg.search.query_language import is_latin
from kg.search.relevance import CALIBRATIONS, are_near, drop_unrelated, estimate_answers, estimate_relevance, is_related

MODEL, LIMITS = next(iter(CALIBRATIONS.items()))
COMPLETE = Ranking((), True, MODEL, units=100)
SHARES = st.floats(0, 1)


def candidate(cosine: float | None, words: float = 0.0, language: str | None = None) -> Candidate:
    return Candidate("urn:a", 0.5, 1.0, cosine, 0.0, words, language)


def covers(*candidates: Candidate, units: int | None = 100) -> float:
    found = estimate_relevance(candidates, replace(COMPLETE, units=units)).covers
    assert found is not None
    return found


@given(SHARES, SHARES, st.integers(1, 10**6), SHARES)
def test_covers_grows_with_nearness_and_words_and_falls_with_units(
    cosine: float, words: float, units: int, more: float
) -> None:
    least = covers(candidate(cosine, words), units=units)
    assert 0 <= least <= 1
    assert least <= covers(candidate(min(1, cosine + more), words), units=units)
    assert least <= covers(candidate(cosine, min(1, words + more)), units=units)
    assert least <= covers(candidate(cosine, words), candidate(more, more), units=units)
    assert least >= covers(candidate(cosine, words), units=10 * units)


def test_an_answer_is_refused_below_the_floor_alone() -> None:
    assert not estimate_relevance([candidate(0.8, 0.8)], COMPLETE).refused
    assert estimate_relevance([candidate(0.1)], COMPLETE).refused
    assert estimate_relevance([], COMPLETE).refused
    assert estimate_relevance([candidate(0.1)], replace(COMPLETE, units=5)).refused
    assert not estimate_relevance([candidate(0.1, 0.1)], replace(COMPLETE, units=5)).refused


@pytest.mark.parametrize(
    "ranking",
    [
        replace(COMPLETE, model=None),
        replace(COMPLETE, model="other/model"),
        replace(COMPLETE, pending=1),
        replace(COMPLETE, incomplete="a shard did not answer"),
    ],
)
def test_what_cannot_be_told_is_null_with_the_reason(ranking: Ranking) -> None:
    found = estimate_relevance([candidate(0.1)], ranking)
    assert (found.covers, found.refused) == (None, False)
    assert found.reason


def test_texts_that_no_model_compares_are_results_with_most_words_alone() -> None:
    lacking = replace(COMPLETE, uncompared={"bn": 12})
    for words, refused in ((0.1, True), (0.9, False)):
        found = estimate_relevance([candidate(0.1), candidate(None, words, "bn")], lacking)
        assert found.refused == refused
        assert (found.covers is None) == (not refused)


@pytest.mark.parametrize(
    ("uncompared", "candidates", "is_filtered", "is_known"),
    [(12, (0.1, None), False, True), (50, (0.1,), False, True), (51, (0.1, None), False, False),
     (1, (None,), False, False), (1, (), False, True), (1, (), True, False)],
)  # fmt: skip
def test_texts_that_no_model_compares_leave_it_open_if_they_are_most(
    uncompared: int, candidates: tuple[float | None, ...], is_filtered: bool, is_known: bool
) -> None:
    ranking = replace(COMPLETE, uncompared={"bn": uncompared}, candidates=[candidate(0.9)] if is_filtered else ())
    found = estimate_relevance([candidate(cosine) for cosine in candidates], ranking)
    assert (found.covers is not None, found.refused) == (is_known, True)
    assert is_known or "Bangla" in (found.reason or "")


def test_a_query_in_an_unknown_language_is_compared_unless_it_may_be_nonsense() -> None:
    near = replace(candidate(0.7, language="en"), space=ALSO)
    models = {ALSO: next(name for name, each in CALIBRATIONS.items() if each.other is not None)}
    unsure = replace(COMPLETE, models=models)
    assert is_latin("Qwrtz naïve Łódź 12")
    assert not is_latin("Кто выиграл XLIX?")
    assert estimate_relevance([near], unsure).refused
    assert not estimate_relevance([near], replace(unsure, is_latin=False)).refused
    assert not estimate_relevance([near], replace(unsure, language="ru")).refused


def test_probability_is_not_stated_if_the_nearest_text_is_in_another_language() -> None:
    second = next(model for model, limits in CALIBRATIONS.items() if limits.other is not None)
    ranking = replace(COMPLETE, model=second, models={OTHER: second}, language="en")
    near, far = (replace(candidate(cosine, language="fr"), space=OTHER) for cosine in (0.8, 0.0))
    own = replace(candidate(0.8, 0.8, "en"), space=OTHER)
    for each, refused in ((near, False), (far, True)):
        found = estimate_relevance([each], ranking)
        assert (found.stated, found.covers is None, found.refused) == (None, False, refused)
        assert found.reason
    found = estimate_relevance([own, far], ranking)
    assert (found.stated, found.reason) == (found.covers, None)


def test_texts_that_are_near_are_told_although_others_are_lacking() -> None:
    near = [candidate(0.8, 0.8)]
    for lacking in (replace(COMPLETE, incomplete="a shard did not answer"), replace(COMPLETE, uncompared={"bn": 12})):
        assert (estimate_relevance(near, lacking).covers or 0) > 0.9


def test_a_single_unit_is_dropped_if_it_is_far_and_has_few_words() -> None:
    near, far = candidate(LIMITS.cut), candidate(LIMITS.cut - 0.01)
    worded = candidate(LIMITS.cut - 0.2, words=0.9)
    assert drop_unrelated([near, far, worded, candidate(None)], MODEL) == [near, worded, candidate(None)]
    assert drop_unrelated([far], "another model") == [far]


def test_units_are_near_by_their_cosines_as_each_of_them_is() -> None:
    cosines = [LIMITS.cut, LIMITS.cut - 0.01, -1.0, 0.9]
    for model in (MODEL, "another model", None):
        found = are_near(np.array(cosines), model).tolist()
        assert found == [is_related(candidate(cosine), model) for cosine in cosines]
    assert not are_near(np.array([np.nan]), MODEL)[0], "not known to be near"


@pytest.mark.parametrize(
    ("question", "is_judged"),
    [
        ("Who repairs the church roof?", True),
        ("In what year was the sea wall built?", True),
        ("how many lanterns are lit", True),
        ("What does the harbour committee recommend?", False),
        ("Wer repariert das Kirchendach?", False),
        ("sea wall", False),
        ("When " + "the sea wall and " * 5 + "was built?", False),
    ],
)
def test_only_short_questions_for_a_fact_have_answers_judged(question: str, is_judged: bool) -> None:
    first, second = replace(candidate(0.7, 0.9), iri="urn:first"), replace(candidate(0.4, 0.2), iri="urn:second")
    french = replace(candidate(0.7, 0.9, "fr"), iri="urn:french")
    found = estimate_answers(question, [first, second], COMPLETE)
    assert bool(found) == is_judged
    if is_judged:
        assert found["urn:first"] > 0.8 > 0.1 > found["urn:second"]
        disputed = estimate_answers(question, [first, replace(first, iri="urn:equal"), french], COMPLETE)
        assert disputed["urn:first"] < found["urn:first"]
        assert "urn:french" not in disputed
    assert estimate_answers(question, [first, second], replace(COMPLETE, pending=1)) == {}
