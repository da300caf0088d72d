"""Vectors of texts that are not in the index: what terms and questions are compared by."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kg.settings import Settings
from tests.search.conftest import WordIndex


def test_texts_get_unit_vectors_and_like_ones_are_near(index: WordIndex) -> None:
    vectors = index.embed(["solar tariff law", "a law of solar tariff", "harbour dues"])
    assert vectors is not None
    first, second, third = np.array(vectors)
    assert np.allclose(np.linalg.norm(np.array(vectors), axis=1), 1, atol=1e-5)
    assert first @ second > first @ third


def test_a_text_of_many_windows_has_one_vector(index: WordIndex) -> None:
    vectors = index.embed([" ".join(f"word{i}" for i in range(100)), ""])
    assert vectors is not None
    assert [len(vector) for vector in vectors] == [32, 32]


def test_without_a_model_there_are_none(open_index: Callable[..., WordIndex], words: Settings) -> None:
    assert open_index(words.model_copy(update={"model": "absent"})).embed(["solar"]) is None
