"""How much the words of a query weigh in texts of its own and of other languages."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kg.search.analyzers import ENGLISH, find_field, get_analyzer
from kg.search.word_rarity import weigh

FRENCH = find_field("fr")
QUERY = "energy policy of Zanzibar"


def weigh_words(
    language: str | None, english: Mapping[str, int], french: Mapping[str, int], query: str = QUERY, texts: int = 1_000
) -> dict[str, float]:
    """Weigh the query's words in 1,000 French texts, by the number of them and of English `texts` that have each."""
    asked, counted = {}, {}
    for field, numbers in ((ENGLISH, english), (FRENCH, french)):
        analyzed = get_analyzer(field).embed_query(query)
        asked[field] = analyzed.indices, analyzed.values
        of_words = {get_analyzer(field).list_dimensions(word)[0]: number for word, number in numbers.items()}
        counted[field] = texts if field == ENGLISH else 1_000, [of_words.get(word, 0) for word in analyzed.indices]
    words, weights = weigh(query, language, asked, counted).get(FRENCH, ((), ()))
    by_word = dict(zip(words, weights, strict=True))
    return {word: by_word.get(get_analyzer(FRENCH).list_dimensions(word)[0], 0.0) for word in french}


@pytest.mark.parametrize("language", ["en", "fr", None])
def test_in_another_language_a_word_weighs_at_most_what_it_does_in_that_of_the_query(language: str | None) -> None:
    """A heading in English among French texts has rare words there; a name is as rare in both."""
    english, french = {"energy": 400, "policy": 500, "zanzibar": 2}, {"energy": 1, "policy": 1, "zanzibar": 2}
    found = weigh_words(language, english, french, QUERY.lower())
    if language == "en":
        assert found["energy"] < found["zanzibar"] / 4
        assert found["policy"] < found["energy"]
    else:
        assert found["energy"] == found["policy"] > found["zanzibar"]
    assert found["zanzibar"] == weigh_words(None, english, french)["zanzibar"]


@pytest.mark.parametrize("texts", [0, 1_000])
def test_in_another_language_words_in_small_letters_do_not_count_beside_names_and_numbers(texts: int) -> None:
    english, french = dict.fromkeys(("energy", "zanzibar", "2031"), 9), {"energy": 9, "zanzibar": 2, "2031": 2}
    found = weigh_words("en", english, french, "What energy has Zanzibar in 2031?", texts)
    assert found["energy"] == 0 < found["zanzibar"] == found["2031"]


def test_a_language_without_texts_limits_no_word() -> None:
    french = {"energy": 1, "zanzibar": 2}
    asked = {FRENCH: (get_analyzer(FRENCH).embed_query(QUERY).indices, get_analyzer(FRENCH).embed_query(QUERY).values)}
    counted = {FRENCH: (1_000, [1 for _ in asked[FRENCH][0]])}
    assert weigh(QUERY, "en", asked, counted) == weigh(QUERY, None, asked, counted)
    assert weigh_words("en", {"energy": 0}, french, QUERY.lower())["energy"] > 0
