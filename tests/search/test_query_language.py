"""The language of queries: sure where letters or words of the index show it, else unsure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from kg.search.analyzers import find_field
from kg.search.query_language import detect_query_language

TEXTS = {"en": 5_000, "pt": 400, "fr": 300}
HAVING = {
    "carbon": {"en": 200},
    "price": {"en": 300},
    "energia": {"pt": 30},
    "solar": {"en": 60, "pt": 12},
    "taxe": {"en": 200, "fr": 15},  # as tax
    "carbone": {"en": 200, "fr": 20},  # as carbon
    "internet": {"en": 90, "pt": 8, "fr": 6},
}


def count(words: Sequence[str]) -> Mapping[str, tuple[int, Sequence[int]]]:
    return {
        find_field(tag): (texts, [HAVING.get(word, {}).get(tag, 0) for word in words]) for tag, texts in TEXTS.items()
    }


@pytest.mark.parametrize(
    ("query", "language"),
    [
        ("What is the capital of France?", "en"),
        ("Wie viele Menschen wohnen in Berlin?", "de"),
        ("cuantos habitantes tiene Madrid", "es"),
        ("Quelle est la capitale de la France", "fr"),
        ("黑豹队的防守丢了多少分？", "zh"),
        ("kto jest autorem tej ustawy", "pl"),
        ("carbon price", "en"),
        ("energia solar e eólica", "pt"),
        ("energia solar", None),
        ("taxe carbone", None),
        ("Angela Merkel", None),
        ("GDPR", None),
        ("HB 1234", None),
        ("internet", None),
        ("気候変動", None),
        ("2019/1234", None),
        ("", None),
    ],
)
def test_language_is_that_of_the_query_or_unsure(query: str, language: str | None) -> None:
    assert detect_query_language(query, count) == language


def test_words_of_an_index_without_their_language_do_not_make_a_query_english() -> None:
    def english(words: Sequence[str]) -> Mapping[str, tuple[int, Sequence[int]]]:
        return {name: found for name, found in count(words).items() if name == find_field("en")}

    for query in ("energia solar", "taxe carbone"):
        assert detect_query_language(query, english) is None
    assert detect_query_language("carbon price", english) == "en"
