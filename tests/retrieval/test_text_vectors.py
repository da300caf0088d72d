"""Comparing short texts: caching of their vectors, and what counts without a model."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from kg.retrieval import text_vectors
from kg.retrieval.text_vectors import (
    BEING_COMPUTED,
    WITHOUT_MODEL,
    WORDS,
    describe_matching,
    embed,
    find_cosines,
    find_overlaps,
    word_vectors,
)


class Search:
    """An index whose model gives every text the same vector; None: without a model."""

    def __init__(self, vector):
        self.vector, self.asked = vector, []

    def embed(self, texts):
        self.asked.append(len(texts))
        return None if self.vector is None else [self.vector for _ in texts]

    def status(self):
        return self

    first_model = "a-model"


class Memory(dict):
    def keep(self, key, value):
        self[key] = value
        return value


class Graph:
    def __init__(self, vector):
        self.search, self.memory = Search(vector), Memory()


def test_vectors_of_the_same_texts_are_computed_once():
    kg = Graph([1.0, 0.0])
    for _ in range(3):
        assert find_cosines(kg, "q", ["one", "two"]) == [1.0, 1.0]
    assert kg.search.asked == [1, 2, 1, 1]


def test_without_a_model_there_are_no_cosines_but_vectors_of_words():
    kg = Graph(None)
    assert find_cosines(kg, "q", ["one", "two"]) is None
    model, rows = embed(kg, ["fences", "a fence of the yard"])
    assert model == WORDS
    assert rows[0] @ rows[1] == pytest.approx(1 / np.sqrt(2))


def test_vectors_that_take_long_are_computed_in_the_background_once(monkeypatch):
    monkeypatch.setattr(text_vectors, "WAIT_S", 0.01)
    kg, ready = Graph([1.0, 0.0]), threading.Event()

    def embed_slowly(texts, embed=kg.search.embed):
        if len(texts) > 1:
            ready.wait(60)
        return embed(texts)

    monkeypatch.setattr(kg.search, "embed", embed_slowly)
    texts = ["one", "two"]
    assert find_cosines(kg, "q", texts) is None
    assert describe_matching(kg, texts) == BEING_COMPUTED
    assert find_cosines(kg, "q", texts) is None
    ready.set()
    monkeypatch.setattr(text_vectors, "WAIT_S", 60.0)
    assert find_cosines(kg, "q", texts) == [1.0, 1.0]
    assert kg.search.asked.count(2) == 1


def test_without_a_model_matching_is_said_to_have_none():
    kg = Graph(None)
    assert find_cosines(kg, "q", ["one"]) is None
    assert describe_matching(kg, ["one"]) == WITHOUT_MODEL


def test_shared_words_count_by_how_rare_they_are():
    first, second, none = find_overlaps("the height of fences", ["fence", "height fence", "yards"])
    assert (second, none) == (1.0, 0.0)
    assert 0 < first < 0.5


def test_vectors_of_words_ignore_stop_words_and_are_of_unit_length():
    rows = word_vectors(["the of and", "Kilns burn", "kiln"])
    assert np.linalg.norm(rows, axis=1).tolist() == pytest.approx([0.0, 1.0, 1.0])
    assert rows[1] @ rows[2] == 0 or rows[1] @ rows[2] > 0.5
