from __future__ import annotations

import pytest

from kg.words import FORMS, is_stop_word, singular, stems, unjoin

SINGULARS = {
    "dwellings": "dwelling", "families": "family", "uses": "use", "houses": "house", "boxes": "box", "feet": "foot",
    "gases": "gas", "gas": "gas", "buses": "bus", "wolves": "wolf", "leaves": "leaf", "axes": "axis", "axis": "axis",
    "analyses": "analysis", "people": "person", "children": "child", "sales": "sale", "lenses": "lens",
    "series": "series", "species": "species", "news": "news", "premises": "premises", "goods": "goods",
    "status": "status", "basis": "basis", "religious": "religious", "address": "address", "addresses": "address",
    "has": "has", "data": "data", "building": "building", "adus": "adu", "ndcs": "ndc", "zorpies": "zorpy",
}  # fmt: skip


@pytest.mark.parametrize(("word", "expected"), SINGULARS.items())
def test_singular(word: str, expected: str) -> None:
    assert singular(word) == expected
    assert singular(expected) == expected


@pytest.mark.parametrize(
    ("language", "word", "form"),
    [("en", "gas", "gases"), ("en", "people", "person"), ("fr", "journal", "journaux"), ("es", "ley", "leyes"),
     ("pt", "nação", "nações")],
)  # fmt: skip
def test_the_other_number_is_among_the_forms(language: str, word: str, form: str) -> None:
    assert form in FORMS[language](word)


def test_a_form_is_never_another_word() -> None:
    assert "new" not in FORMS["en"]("news")
    assert "good" not in FORMS["en"]("goods")


def test_stop_words_are_those_of_the_language_or_of_any() -> None:
    assert is_stop_word("der", "de")
    assert not is_stop_word("der", "en")
    assert is_stop_word("der", "")


def test_stems_relate_words_of_one_family_and_leave_out_common_words() -> None:
    assert stems("which regulations are regulated") == ["regul", "regul"]


@pytest.mark.parametrize(
    ("language", "word", "expected"),
    [
        ("ar", "وبالطاقة", {(4, "طاقة"), (2, "الطاقة"), (1, "بالطاقة")}),
        ("ar", "للمناخ", {(2, "مناخ"), (2, "المناخ"), (1, "لمناخ")}),
        ("he", "ושהאקלים", {(3, "אקלים"), (2, "האקלים"), (1, "שהאקלים")}),
        ("ar", "وا", set()),
        ("en", "alphabet", set()),
    ],
)
def test_clitics_are_removed_one_by_one(language: str, word: str, expected: set[tuple[int, str]]) -> None:
    assert {(length, rest) for length, rest, _ in unjoin(word, language)} == expected
