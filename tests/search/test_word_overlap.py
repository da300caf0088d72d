"""The words and pairs of words that a question shares with passages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.search.word_overlap import parse_question


def test_pairs_are_the_share_of_adjacent_words_in_the_same_order() -> None:
    question = parse_question("feed in tariff")
    shares = [overlap.pairs for overlap in question.measure(["A feed-in tariff.", "tariff in feed", "Feed in kind"])]
    assert shares == [1.0, 0.0, 0.5]


def test_words_match_in_singular_and_plural_and_without_accents() -> None:
    [overlap] = parse_question("resumés of councils").measure(["A council read the resumes."])
    assert overlap.words == 1.0


def test_a_word_that_no_passage_has_weighs_most() -> None:
    texts = ["solar roofs", "solar farms", "solar cells", "zeppelins"]
    shares = [overlap.words for overlap in parse_question("solar zeppelin hangars").measure(texts)]
    assert shares[0] == shares[1] < shares[3] < 0.5


def test_a_phrase_in_quotes_and_an_identifier_count_as_all_words() -> None:
    text = "Under section 61-3-115 the warden of the mill keeps HB1234."
    for query in ('what does "warden of the mill" mean', "penalties of 61-3-115", "who wrote HB1234 and why"):
        assert parse_question(query).measure([text, "other"])[0].words == 1.0, query
    for query in ("what does the mill's warden mean", "rules of 61-3-1150", "rules since 2016", "1.5 degrees of mill"):
        assert parse_question(query).measure([text, "other"])[0].words < 1.0, query


@given(st.text(max_size=60), st.lists(st.text(max_size=80), max_size=4))
def test_shares_are_from_zero_to_one_for_any_text(query: str, texts: list[str]) -> None:
    for overlap in parse_question(query).measure(texts):
        assert 0 <= overlap.pairs <= 1
        assert 0 <= overlap.words <= 1 + 1e-9


@pytest.mark.parametrize(
    ("query", "text", "language"),
    [
        ("podatek od nieruchomości", "O podatku od nieruchomościach.", "pl"),
        ("قانون الحكومة", "بقانون والحكومة", "ar"),
        ("Haus", "In den Häusern", "de"),
    ],
)
def test_words_of_a_text_are_compared_in_its_language(query: str, text: str, language: str) -> None:
    [overlap] = parse_question(query).measure([text], [language])
    assert overlap.words == 1.0 > parse_question(query).measure([text])[0].words
