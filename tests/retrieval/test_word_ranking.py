"""Ranking by words in the store: a word of a query finds its singular and plural, and no word that it is cut to."""

from __future__ import annotations

import re

import pytest

from kg.retrieval.word_ranking import to_pattern


@pytest.mark.parametrize(
    ("word", "found", "not_found"),
    [
        ("policies", ["policy", "policies", "policy's"], ["police", "policing"]),
        ("policy", ["policies", "policy"], ["polices"]),
        ("analysis", ["analysis", "analyses"], ["analyst"]),
        ("glass", ["glass", "glasses"], ["glasnost"]),
        ("tariffs", ["tariff", "tariffs"], ["tari"]),
        ("tariff", ["tariff", "tariffs"], []),
        ("census", ["census", "censuses"], ["censure"]),
        ("children", ["child", "children"], ["chill"]),
        ("news", ["news"], ["newt", "new"]),
        ("énergies", ["énergies"], []),
        ("c++", ["c++"], []),
        ("2030", ["2030"], ["12030"]),
    ],
)
def test_pattern_of_a_word_matches_its_singular_and_plural(word: str, found: list[str], not_found: list[str]) -> None:
    pattern = re.compile(to_pattern(word), re.I | re.A)
    assert [each for each in found if not pattern.search(f"The {each}.")] == []
    assert [each for each in not_found if pattern.search(f"The {each}.")] == []
