"""The analyzers of fields: forms of a word have one dimension, in texts and in queries."""

from __future__ import annotations

import pytest

from kg.search.analyzers import ENGLISH, PLAIN, find_field, find_language, get_analyzer


def finds(language: str, query: str, text: str) -> bool:
    analyzer = get_analyzer(find_field(language))
    wanted = set(analyzer.embed_query(query).indices)
    return bool(wanted) and wanted <= set(analyzer.embed_document(text).indices)


@pytest.mark.parametrize(
    ("language", "query", "text"),
    [
        ("en", "regulated calendar", "The regulation of the calen-\ndar"),
        ("en", "1250000", "a loan of 1,250,000 dollars"),
        ("de", "Haus", "in den Häusern"),
        ("fr", "elections", "l'élection présidentielle"),
        ("es", "educacion", "la educación pública"),
        ("pl", "ustawa", "o zmianie ustawy"),
        ("pl", "podatek", "o podatku"),
        ("cs", "obcanum", "občanům"),
        ("sk", "vlada", "návrh vlády"),
        ("uk", "закон", "відповідно до законів"),
        ("bg", "бюджет", "гласуването на бюджетите"),
        ("hr", "energija", "o energiji"),
        ("sl", "mesto", "v mestih"),
        ("lv", "nodoklis", "par nodokļiem"),
        ("gl", "orzamento", "os orzamentos"),
        ("ar", "حكومة", "والحكومة"),
        ("ar", "قانون", "بقانون جديد"),
        ("ar", "وللجنة", "اللجنة"),
        ("ar", "اللجنة", "للجنة الوطنية"),
        ("ar", "للطاقة", "الطاقة"),
        ("und", "لجنة", "واللجنة الوطنية"),
        ("und", "ממשלה", "ובממשלה"),
        ("he", "ממשלה", "ובממשלה"),
        ("he", "הממשלה", "ממשלת ישראל"),
        ("ko", "정부", "정부는"),
        ("zh", "气候", "应对气候变化"),
    ],
)
def test_form_of_a_word_is_found(language: str, query: str, text: str) -> None:
    assert finds(language, query, text)


@pytest.mark.parametrize(
    ("language", "query", "text"),
    [("en", "the", "the law"), ("de", "für", "für das Gesetz"), ("en", "1250", "on 12 and 50"), ("he", "שר", "שירות")],
)
def test_stop_words_and_other_words_are_not_found(language: str, query: str, text: str) -> None:
    assert not finds(language, query, text)


def test_pieces_do_not_make_a_text_longer() -> None:
    values = [get_analyzer(ENGLISH).embed_document(text).values[0] for text in ("low income", "low-income")]
    assert values[0] == values[1]


@pytest.mark.parametrize(
    ("tag", "field", "language"),
    [(None, ENGLISH, "en"), ("en-GB", ENGLISH, "en"), ("und", ENGLISH, "en"), ("pt-BR", "search_pt", "pt"),
     ("nb", "search_no", "no"), ("uk", "search_uk", "uk"), ("zh-Hant", PLAIN, None)],
)  # fmt: skip
def test_field_of_a_language(tag: str | None, field: str, language: str | None) -> None:
    assert find_field(tag) == field
    assert find_language(field) == language
